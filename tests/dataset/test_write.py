"""Writing: archives that other programs read, hash traces, and targets that cannot take what is written."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import subprocess
import tarfile
import threading

import pytest

from loadstone import Error, dataset

LONG = "n" * 150


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Two states of a tree with holes, links, long names, names that are not UTF-8 and a program."""
    folder, seed = tmp_path_factory.mktemp("odd"), random.Random(2)
    roots = []
    for snapshot in range(2):
        root = folder / f"{snapshot}"
        deep = root / LONG / LONG
        deep.mkdir(parents=True)
        (deep / LONG).write_bytes(b"deep" * 3000)
        with open(os.fsencode(root) + b"/not\xffutf8", "wb") as file:
            file.write(random.Random(5).randbytes(40_000))
        (root / "one").write_bytes(random.Random(6 + snapshot).randbytes(30_000))
        os.link(root / "one", deep / "other")
        os.symlink("../one", root / "link")
        (root / "program").write_bytes(b"#!/bin/sh\n")
        (root / "program").chmod(0o755)
        # More pieces than a head has room for, and than a further block has; a hole at the end of the second.
        for name, pieces, size in (("few", 2, 3 << 20), ("many", 40, 0)):
            with (root / name).open("wb") as file:
                for piece in range(pieces):
                    file.seek((piece + 1) << 16)
                    file.write(seed.randbytes(9000))
                if size:
                    file.truncate(size)
        roots.append(root)
    dataset.scan(roots, folder / "odd.fst")
    return folder / "odd.fst"


def tree(root):
    """What is there: kind, whether it is a program, content and number of names of each file, by name."""
    found = {}
    for folder, _, files in os.walk(os.fsencode(root)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            told = os.lstat(path)
            below = os.path.relpath(path, os.fsencode(root))
            at = pathlib.Path(os.fsdecode(path))
            content = os.readlink(path) if at.is_symlink() else at.read_bytes()
            found[below] = (told.st_mode & 0o170100, content, told.st_nlink)
    return found


@pytest.mark.parametrize("reader", ["tar", "tarfile"])
def test_archives_are_read_by_others(odd, tmp_path, reader):
    dataset.write(odd, tmp_path / "files", snapshots=1)
    dataset.write(odd, tmp_path / "x.tar", snapshots=1, tar=True)
    out = tmp_path / "out"
    out.mkdir()
    if reader == "tar":
        subprocess.run(["tar", "-xf", tmp_path / "x.tar", "-C", out], check=True)
    else:
        with tarfile.open(tmp_path / "x.tar") as archive:
            archive.extractall(out, filter="tar")
    assert tree(out) == tree(tmp_path / "files")
    assert len(tree(out)) == 8
    for name in ("few", "many"):
        for told in (os.stat(tmp_path / "files" / name), os.stat(out / name)):
            assert told.st_blocks < told.st_size // 512 // 2
    # Data only: 40 pieces of 9,000 bytes, and what is not sparse.
    assert (tmp_path / "x.tar").stat().st_size < 700_000


def test_an_archive_is_scanned_as_the_files_are(odd, tmp_path):
    for snapshot in range(2):
        dataset.write(odd, tmp_path / f"{snapshot}.tar", snapshots=snapshot, tar=True)
    found = dataset.scan([tmp_path / "0.tar", tmp_path / "1.tar"], tmp_path / "again.fst")
    asked = dataset.describe(odd)["snapshots"]
    for one, other in zip(asked, found["snapshots"], strict=True):
        for name in ("sizes", "depths", "types"):
            assert one[name] == other[name], name
        for name in ("files", "bytes", "chunks", "distinct", "unique", "dup1", "dup2"):
            assert one["together"][name] == other["together"][name], name
    assert [one["sparse"] for one in found["scanned"]] == [2, 2]


@pytest.mark.parametrize("made", [False, True])
def test_a_hash_trace_has_all_but_content(odd, tmp_path, made):
    series = odd
    if made:
        dataset.profile(odd, tmp_path / "profile")
        dataset.create(tmp_path / "profile", tmp_path / "made.fst", generations=3)
        series = tmp_path / "made.fst"
    written = dataset.write(series, tmp_path / "out", snapshots="all", hashes=True)
    asked = dataset.describe(series)["snapshots"]
    assert [os.path.basename(one["path"]) for one in written][-1] == f"{len(asked) - 1:03}.hash"
    found = dataset.scan([one["path"] for one in written], tmp_path / "again.fst")["snapshots"]
    for one, other in zip(asked, found, strict=True):
        for name in ("files", "bytes", "chunks", "distinct", "unique", "dup1", "dup2"):
            assert one["together"][name] == other["together"][name], name
        assert other["together"]["compress_ratio"] == pytest.approx(
            one["together"]["compress_ratio"], rel=0.05
        )
        assert one["sizes"] == other["sizes"]
        assert one["depths"] == other["depths"]
    with pytest.raises(Error, match="`force`"):
        dataset.write(series, written[0]["path"], hashes=True)


def test_an_incremental_hash_trace_has_what_changed(odd, tmp_path):
    told = dataset.write(odd, tmp_path / "x.hash", hashes=True, only_changed=True)[0]["written"]
    assert (told["files"], told["directories"]) == (3, 0)
    found = dataset.scan(tmp_path / "x.hash", tmp_path / "again.fst")
    assert found["snapshots"][0]["alone"]["files"] == 3


def test_wrong_targets_are_told(odd, tmp_path, loadstone):
    (tmp_path / "file").write_text("x")
    with pytest.raises(Error, match="is a file"):
        dataset.write(odd, tmp_path / "file")
    with pytest.raises(Error, match="is a file"):
        dataset.write(odd, tmp_path / "file" / "below")
    with pytest.raises(Error, match="is a file"):
        dataset.write(odd, tmp_path / "file", snapshots="all")
    with pytest.raises(Error, match="leave tar out"):
        dataset.write(odd, tmp_path / "x", tar=True, hashes=True)
    done = loadstone("dataset", "write", odd, "--all", "--to", tmp_path / "file", status=1)
    assert "is a file" in done.stderr
    done = loadstone("dataset", "write", odd, "--tar", "--hashes", "--to", tmp_path / "x", status=2)
    assert "give one of them" in done.stderr
    assert (tmp_path / "file").read_text() == "x"


@pytest.fixture
def mounted(tmp_path, need_root):
    """A function that mounts a small tmpfs."""
    at = tmp_path / "mounted"

    def mount(options):
        at.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", at], check=True)
        return at

    yield mount
    subprocess.run(["umount", at], check=True)


@pytest.mark.parametrize(
    ("form", "says"), [({}, "is not empty"), ({"tar": True}, "exists"), ({"hashes": True}, "exists")]
)
def test_a_refused_second_write_changes_nothing(odd, tmp_path, form, says):
    to = tmp_path / "to"
    dataset.write(odd, to, snapshots="all", **form)
    before = sorted(to.rglob("*"))
    with pytest.raises(Error, match=says):
        dataset.write(odd, to, snapshots="all", **form)
    assert sorted(to.rglob("*")) == before and not (to / ".loadstone-unfinished").exists()


def test_several_snapshots_leave_what_is_beside_them(odd, tmp_path):
    (tmp_path / "file").write_text("of somebody else")
    dataset.write(odd, tmp_path, snapshots="all")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000", "001", "file"]
    assert (tmp_path / "file").read_text() == "of somebody else"


def test_tar_checks_the_bytes_that_verify_does_not(odd, tmp_path, loadstone):
    to = tmp_path / "to"
    dataset.write(odd, to, snapshots="all")
    archive = tmp_path / "all.tar"
    dataset.write(odd, archive, snapshots=1, tar=True)

    def told() -> set[str]:
        words = ["tar", "--compare", "-C", str(to / "001"), "-f", str(archive)]
        lines = subprocess.run(words, capture_output=True, text=True, check=False, env={"LC_ALL": "C"}).stdout
        return {line for line in lines.splitlines() if "Contents differ" in line}

    assert told() == set()
    (whole,) = (path for path in (to / "001").rglob("*") if path.is_file() and path.stat().st_size == 40_000)
    with whole.open("r+b") as file:
        file.write(b"damaged")
    assert len(told()) == 1


def test_a_read_only_target_is_told(odd, mounted):
    at = mounted("size=64m,ro")
    for how in ({}, {"tar": True}, {"hashes": True}):
        with pytest.raises(Error, match="Read-only file system"):
            dataset.write(odd, at / "x", **how)


def test_room_for_all_snapshots_is_asked_before(odd, mounted):
    """Each would fit, both do not."""
    at = mounted("size=1000k")
    for how in ({}, {"tar": True}):
        with pytest.raises(Error, match=r"bytes, .* are needed"):
            dataset.write(odd, at / "x", snapshots="all", **how)
        assert list((at / "x").iterdir()) == []
    dataset.write(odd, at / "y", snapshots=0)


def test_inodes_are_asked_for_before(odd, mounted):
    at = mounted("size=64m,nr_inodes=8")
    with pytest.raises(Error, match=r"inodes, 1[0-9] are needed"):
        dataset.write(odd, at / "x", snapshots=0)


def test_a_target_that_fills_up_meanwhile_is_told(tmp_path, mounted):
    """Another writer takes the room once the first file is there."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(64):
        (source / f"{number:02}").write_bytes(random.Random(number).randbytes(4 << 20))
    dataset.scan(source, tmp_path / "x.fst", compress=False)
    at = mounted("size=300m")

    def fill() -> None:
        while not (at / "x").exists():
            pass
        with (at / "other").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))

    other = threading.Thread(target=fill)
    other.start()
    try:
        with pytest.raises(Error, match=rf"{at}/x/\d\d: cannot be written: No space left on device"):
            dataset.write(tmp_path / "x.fst", at / "x", threads=1)
    finally:
        other.join()
    with pytest.raises(Error, match="is unfinished"):
        dataset.scan(at / "x", tmp_path / "again.fst")


@pytest.mark.parametrize("form", ["", ".tar", ".hash"])
def test_nothing_is_written_through_a_link_where_snapshots_go(form, tmp_path, loadstone):
    tree, to, outside = tmp_path / "tree", tmp_path / "to", tmp_path / "outside"
    for folder in (tree, to):
        folder.mkdir()
    (tree / "a").write_bytes(os.urandom(5000))
    if form:
        outside.write_text("mine")
    else:
        outside.mkdir()
    (to / f"000{form}").symlink_to(outside)
    loadstone("dataset", "scan", tree, "-o", tmp_path / "s.fst")
    how = {"": (), ".tar": ("--tar", "--force"), ".hash": ("--hashes", "--force")}[form]
    done = loadstone("dataset", "write", tmp_path / "s.fst", "--all", "--to", to, *how, status=1)
    assert f"000{form}: is a link" in done.stderr
    assert outside.read_text() == "mine" if form else not list(outside.iterdir())
