"""Scanning: what is told of real trees is what is there."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import socket
import stat
import subprocess
import tarfile

import pytest

from loadstone import Error, dataset


@pytest.fixture
def snapshots(tmp_path):
    """Two states of a tree: one file changes, one goes, one comes."""
    seed = random.Random(4)
    first, second = tmp_path / "mon", tmp_path / "tue"
    for folder in (first, second):
        (folder / "sub").mkdir(parents=True)
    content = {f"sub/{i}.bin": seed.randbytes(1000 * i + 1) for i in range(40)}
    for name, data in content.items():
        (first / name).write_bytes(data)
    content["sub/3.bin"] = content["sub/3.bin"] + b"more"
    content["new"] = content.pop("sub/4.bin")
    for name, data in content.items():
        (second / name).write_bytes(data)
    return first, second


def blocks(folder, size):
    """Digests of all blocks of all files, by another library than the package's."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found += [hashlib.sha256(data[at : at + size]).digest() for at in range(0, len(data), size)]
    return found


def test_counts_are_those_of_another_reader(snapshots, tmp_path):
    found = dataset.scan(snapshots, tmp_path / "x.fst", chunking="fixed:4k")
    every: list[bytes] = []
    for folder, told in zip(snapshots, found["snapshots"], strict=True):
        own = blocks(folder, 4096)
        every += own
        for counts, digests in ((told["alone"], own), (told["together"], every)):
            occurs = [digests.count(one) for one in set(digests)]
            assert counts["chunks"] == len(digests)
            assert counts["distinct"] == len(occurs)
            assert [counts["unique"], counts["dup1"], counts["dup2"]] == [occurs.count(n) for n in (1, 2, 3)]
    assert found["snapshots"][1]["alone"]["files"] == 40
    again = dataset.describe(tmp_path / "x.fst")
    assert again == {key: value for key, value in found.items() if key != "scanned"}


def test_the_key_is_not_kept(snapshots, tmp_path):
    for name in ("a.fst", "b.fst"):
        dataset.scan(snapshots, tmp_path / name)
    a, b = (tmp_path / "a.fst").read_bytes(), (tmp_path / "b.fst").read_bytes()
    assert len(a) == len(b)
    assert a != b


def test_archives_are_snapshots(snapshots, tmp_path):
    paths = []
    for folder in snapshots:
        path = tmp_path / f"{folder.name}.tar.xz"
        with tarfile.open(path, "w:xz") as archive:
            archive.add(folder, arcname=f"release-{folder.name}")
        paths.append(path)
    plain = dataset.scan(snapshots, tmp_path / "plain.fst")
    packed = dataset.scan(paths, tmp_path / "packed.fst", strip=1)
    for one, other in zip(plain["snapshots"], packed["snapshots"], strict=True):
        assert {**one, "label": ""} == {**other, "label": ""}


def test_what_has_no_content_is_counted(tmp_path, loadstone):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "good").write_bytes(b"x" * 5000)
    os.mkfifo(folder / "pipe")
    os.symlink("loop", folder / "loop")
    done = loadstone("dataset", "scan", folder, "-o", tmp_path / "x.fst", "--json")
    report = json.loads(done.stdout)["scanned"][0]
    assert (report["files"], report["others"], report["symlinks"], report["unreadable"]) == (1, 1, 1, 0)


def test_devices_loops_and_names_that_are_no_text(tmp_path, need_root, loadstone):
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    os.mknod(folder / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(folder / "disk", 0o600 | stat.S_IFBLK, os.makedev(7, 200))
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(folder / "socket"))
    os.symlink("..", folder / "sub/up")
    os.symlink("two", folder / "one")
    os.symlink("one", folder / "two")
    name = os.fsencode(folder) + b"/\xff\xfe.txt"
    with open(name, "wb") as file:
        file.write(b"x" * 5000)
    report = dataset.scan(folder, tmp_path / "x.fst")["scanned"][0]
    assert (report["files"], report["others"], report["symlinks"], report["unreadable"]) == (1, 3, 3, 0)
    loadstone("dataset", "write", tmp_path / "x.fst", "--to", tmp_path / "out")
    assert b"\xff\xfe.txt" in os.listdir(os.fsencode(tmp_path / "out"))


def test_a_series_that_was_cut_short_is_told(snapshots, tmp_path, loadstone):
    series = tmp_path / "x.fst"
    dataset.scan(snapshots, series)
    data = series.read_bytes()
    for length in (len(data) - 1, len(data) // 2, 100):
        series.write_bytes(data[:length])
        for verb in (("describe",), ("profile", "-o", tmp_path / "x.profile")):
            done = loadstone("dataset", verb[0], series, *verb[1:], status=1)
            assert f"{series}: ends before its last section; it was cut short" in done.stderr
    assert not (tmp_path / "x.profile").exists()


def test_files_that_may_not_be_read_are_named(tmp_path, need_root):
    """Scanned by a user who may not read one of two; the child has all modules, whatever it may open."""
    folder, out = tmp_path / "tree", tmp_path / "out"
    (folder / "sub").mkdir(parents=True)
    (folder / "secret").mkdir()
    (folder / "secret/file").write_bytes(b"x" * 5000)
    (folder / "secret").chmod(0)
    (folder / "good").write_bytes(b"x" * 5000)
    (folder / "sub/closed").write_bytes(b"x" * 5000)
    (folder / "sub/closed").chmod(0)
    out.mkdir()
    out.chmod(0o777)
    for above in [tmp_path, *tmp_path.parents]:
        above.chmod(above.stat().st_mode | 0o111)
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            found = dataset.scan(folder, out / "x.fst")
            (out / "found.json").write_text(json.dumps(found))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    found = json.loads((out / "found.json").read_text())
    report = found["scanned"][0]
    assert (report["files"], report["unreadable"], report["chunks"]) == (2, 2, 1)
    denied = "Permission denied (os error 13)"
    assert report["troubles"] == [[str(folder / "secret"), denied], [str(folder / "sub/closed"), denied]]


def test_a_trouble_ends_in_failure(tmp_path, loadstone):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "good").write_bytes(b"x" * 5000)
    # A path that is longer than the kernel takes can be made step by step, and cannot be listed.
    here = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    done = loadstone("dataset", "scan", folder, "-o", tmp_path / "x.fst", status=1)
    assert "1 could not be read" in done.stderr
    assert "File name too long" in done.stderr
    told = dataset.describe(tmp_path / "x.fst")["snapshots"][0]
    # The one that cannot be listed is a directory still, below as many as a path of 4,096 bytes has room for.
    assert (told["alone"]["files"], told["directories"]) == (1, 1 + (4096 - len(str(folder)) - 1) // 251 + 1)


def test_bad_input_is_told(snapshots, tmp_path):
    out = tmp_path / "x.fst"
    with pytest.raises(Error, match="not a chunking; write it like"):
        dataset.scan(snapshots, out, chunking="rabin")
    with pytest.raises(Error, match="ascending"):
        dataset.scan(snapshots, out, chunking="fastcdc:8k,4k,64k")
    with pytest.raises(Error, match="47 bits"):
        dataset.scan(snapshots, out, bits=47)
    out.write_bytes(b"LSFSTREE")
    with pytest.raises(Error, match="`force`"):
        dataset.scan(snapshots, out)
    with pytest.raises(Error, match="no fstree file"):
        dataset.describe(out)


def member(name, kind=b"0", content=b""):
    """A member of a tar archive, of any type and name."""
    info = tarfile.TarInfo("x")
    info.size, info.type = len(content), kind
    head = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    head[:100] = name.ljust(100, b"\0")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def test_members_that_are_not_known_are_named(tmp_path, need_tools):
    """The rest of a file of another volume, types of vendors, names that are empty or too long."""
    need_tools("zstd")
    path, end = tmp_path / "x.tar", bytes(1024)
    good = member(b"good", content=b"abc")
    long = b"n" * 256
    parts = [
        member(b"label", b"V"),
        member(b"Q", b"Q", b"xyz"),
        member(b"rest", b"M", b"xyz"),
        member(b"", content=b"xyz"),
        member(b"././@LongLink", b"L", long + b"\0") + member(b"short", content=b"xyz"),
        good,
    ]
    path.write_bytes(b"".join(parts) + end)
    (report,) = dataset.scan(path, tmp_path / "x.fst")["scanned"]
    assert (report["files"], report["unreadable"]) == (1, 4)
    told = [reason for _, reason in report["troubles"]]
    assert sorted(told) == [
        "has a name of more than 255 bytes",
        "has no name",
        "is of a type of member that is not known here",
        "is of a type of member that is not known here",
    ]
    assert not report["notes"]
    (path).write_bytes(good + end + member(b"after", content=b"abc") + end)
    (report,) = dataset.scan(path, tmp_path / "y.fst")["scanned"]
    assert report["files"] == 1 and "goes on behind the blocks that end it" in report["notes"][0]
    # A frame of zstd that is passed over comes first (RFC 8878, section 3.1.2).
    packed = subprocess.run(["zstd", "-qc"], input=good + end, stdout=subprocess.PIPE, check=True).stdout
    (tmp_path / "z.tar.zst").write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + packed)
    (report,) = dataset.scan(tmp_path / "z.tar.zst", tmp_path / "z.fst")["scanned"]
    assert report["files"] == 1 and not report["notes"]


def test_what_could_not_be_read_is_told_of_the_series_and_its_profile(tmp_path, loadstone):
    source, fst, out = tmp_path / "s.tar", tmp_path / "x.fst", tmp_path / "x.profile"
    link = tarfile.TarInfo("leads-nowhere")
    link.type, link.linkname = tarfile.SYMTYPE, "x"
    with tarfile.open(source, "w") as archive:
        for name in ("a", "b"):
            info = tarfile.TarInfo(name)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"abc"))
        link.linkname = "y" * 500_000
        archive.addfile(link)
    done = loadstone("dataset", "scan", source, "-o", fst, status=1)
    assert "1 could not be read" in done.stdout + done.stderr
    assert (
        "warning: 1 file could not be read when it was scanned"
        in loadstone("dataset", "describe", fst).stderr
    )
    assert dataset.describe(fst)["snapshots"][0]["unreadable"] == 1
    assert "1 file could not be read" in loadstone("dataset", "profile", fst, "-o", out).stderr


@pytest.mark.parametrize("tool", ["gzip", "zstd", "xz", "bzip2"])
def test_a_compressed_archive_is_read_to_the_end_of_its_compression(tmp_path, tool):
    text = b"".join(b"%d\n" % number for number in range(20_000))
    whole = member(b"x", content=text) + bytes(1024)
    packed = subprocess.run([tool, "-c"], input=whole, stdout=subprocess.PIPE, check=True).stdout
    path = tmp_path / "x.tar"
    path.write_bytes(packed)
    (report,) = dataset.scan(path, tmp_path / "x.fst")["scanned"]
    assert report["files"] == 1
    for cut in (1, 3, 4, 7):
        path.write_bytes(packed[:-cut])
        with pytest.raises(Error, match=r"x\.tar: "):
            dataset.scan(path, tmp_path / "y.fst")
