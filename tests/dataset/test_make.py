"""Profiles, what is made from them, and what is found of it by scanning and by other readers."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import random
import subprocess
import tarfile
import zlib

import pytest

from loadstone import Error, content, dataset

NAMES = ("py", "txt", "zweckverband")


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Five states of a tree of 400 files: some are modified, moved, copied, come and go."""
    seed, folder = random.Random(8), tmp_path_factory.mktemp("real")
    words = [seed.randbytes(seed.randrange(3, 9)).hex().encode() for _ in range(3000)]

    def fresh() -> bytes:
        size = int(seed.lognormvariate(8.5, 1.5))
        if seed.random() < 0.3:
            return seed.randbytes(size)
        return b" ".join(seed.choices(words, k=size // 12 + 1))

    files = {f"d{i % 9}/secret{i}.{NAMES[i % 3]}": fresh() for i in range(400)}
    roots, count = [], 400
    for snapshot in range(5):
        root = folder / f"{snapshot}"
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        roots.append(root)
        for _ in range(30):
            name = seed.choice(sorted(files))
            data = files[name]
            at = seed.randrange(len(data) + 1)
            files[name] = data[:at] + fresh()[:3000] + data[at + 500 :]
        for _ in range(5):
            count += 1
            files[f"d{count % 9}/secret{count}.py"] = fresh()
            files[f"d{count % 9}/umzug{count}.py"] = files.pop(seed.choice(sorted(files)))
            files[f"d{count % 9}/copy{count}.py"] = files[seed.choice(sorted(files))]
            del files[seed.choice(sorted(files))]
    path = folder / "real.fst"
    dataset.scan(roots, path)
    return path


@pytest.fixture(scope="module")
def profile(series, tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "real.profile"
    dataset.profile(series, path)
    return path


@pytest.mark.slow
def test_what_was_made_verifies(profile, tmp_path, loadstone):
    """The whole way by the command line: create, write, verify."""
    made, out = tmp_path / "made.fst", tmp_path / "out"
    told = json.loads(loadstone("dataset", "create", profile, "--seed", "7", "-o", made, "--json").stdout)
    assert len(told["generations"]) == 5
    assert all(one["missing"] == 0 for one in told["generations"])
    loadstone("dataset", "write", made, "--all", "--to", out)
    assert sorted(os.listdir(out)) == ["000", "001", "002", "003", "004"]
    done = loadstone("dataset", "verify", out, "--profile", profile, "--json")
    found = json.loads(done.stdout)
    assert found["ok"]
    assert found["worst_percent"] < 10
    names = {one["name"] for one in found["parameters"]}
    assert {
        "files",
        "dup2",
        "compress_ratio",
        "depths",
        "sizes",
        "types",
        "markov UU",
        "pattern BEM",
    } <= names


def test_what_is_something_else_does_not_verify(series, profile, tmp_path, loadstone):
    out = tmp_path / "out"
    out.mkdir()
    for number in range(5):
        (out / f"{number:03}").mkdir()
        (out / f"{number:03}" / "file").write_bytes(random.Random(number).randbytes(100_000))
    done = loadstone("dataset", "verify", out, "--profile", profile, status=1)
    assert "differs" in done.stdout
    dataset.scan(out / "000", tmp_path / "fixed.fst", chunking="fixed:4k")
    fixed = dataset.profile(tmp_path / "fixed.fst")
    with pytest.raises(Error, match="cannot be compared"):
        dataset.compare(dataset.describe_profile(profile), fixed)


@pytest.mark.slow
def test_another_reader_finds_the_ratios(series, tmp_path):
    """What is written from a scanned series deduplicates and compresses as it was found to, by other code."""
    dataset.write(series, tmp_path / "out", snapshots="all")
    told = dataset.describe(series)["snapshots"][-1]["together"]
    found = content.examine(tmp_path / "out", unit=4096, compress=None)
    assert found["fastcdc"]["chunks"] == told["chunks"]
    assert found["fastcdc"]["unique_chunks"] == told["distinct"]
    assert found["fastcdc"]["ratio"] == pytest.approx(told["dedup_ratio"], rel=1e-6)
    distinct = {path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    whole = [data for data in distinct if len(data) > 20_000]
    deflated = sum(map(len, whole)) / sum(len(zlib.compress(data, 6)) for data in whole)
    assert deflated == pytest.approx(told["compress_ratio"], rel=0.25)


def test_files_are_the_same_whoever_writes_them(series, tmp_path):
    digests = []
    for threads in (1, 3):
        out = tmp_path / f"{threads}"
        dataset.write(series, out, threads=threads)
        files = sorted(path for path in out.rglob("*") if path.is_file())
        digests.append([(str(p.relative_to(out)), hashlib.sha256(p.read_bytes()).digest()) for p in files])
    assert digests[0] == digests[1]
    dataset.write(series, tmp_path / "x.tar", snapshots=4, tar=True)
    with tarfile.open(tmp_path / "x.tar") as archive:
        for member in archive:
            if member.isfile():
                data = archive.extractfile(member)
                assert data is not None
                assert data.read() == (tmp_path / "1" / member.name).read_bytes()
    dataset.write(series, tmp_path / "changed", only_changed=True)
    changed = [path for path in (tmp_path / "changed").rglob("*") if path.is_file()]
    assert 20 < len(changed) < 60


def test_profiles_tell_no_names(profile):
    import subprocess

    text = subprocess.run(["zstd", "-dc", profile], capture_output=True, check=True).stdout
    assert b"txt" in text
    for word in (b"secret", b"umzug", b"zweck", b"verband", b"real"):
        assert word not in text
    assert profile.stat().st_size < 300_000


def test_bad_input_is_told(series, profile, tmp_path, loadstone):
    (tmp_path / "text").write_text("no profile, nor a series")
    with pytest.raises(Error, match="is no profile"):
        dataset.create(tmp_path / "text", tmp_path / "x.fst")
    with pytest.raises(Error, match="no fstree file"):
        dataset.profile(tmp_path / "text")
    with pytest.raises(Error, match="is a series of file trees; "):
        dataset.create(series, tmp_path / "x.fst")
    with pytest.raises(Error, match="is a profile of file trees; "):
        dataset.profile(profile)
    with pytest.raises(Error, match="there are 5"):
        dataset.write(series, tmp_path / "x", snapshots=5)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_bytes(lzma.compress(b"x"))
    with pytest.raises(Error, match="is not empty"):
        dataset.write(series, tmp_path / "full")
    with pytest.raises(Error, match="a scale of -1: use"):
        dataset.create(profile, tmp_path / "x.fst", scale=-1)
    assert not (tmp_path / "x.fst").exists()
    done = loadstone("dataset", "write", series, "--to", "-", status=2)
    assert "takes an archive" in done.stderr


def test_a_target_without_room_is_refused_before(series, tmp_path, need_root):
    import subprocess

    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        with pytest.raises(Error, match="has room for"):
            dataset.write(series, small / "out")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_many_extensions_take_no_more_than_their_share(tmp_path, loadstone, need_tools):
    """Each was numbered by going through all: a profile of 27 KB took for ever."""
    need_tools("zstd")
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(3):
        (tree / f"f{number}.txt").write_bytes(bytes([number]) * 20_000)
    loadstone("dataset", "scan", tree, "-o", tmp_path / "s.fst")
    loadstone("dataset", "profile", tmp_path / "s.fst", "-o", tmp_path / "p.profile")
    packed = subprocess.run(["zstd", "-dc", tmp_path / "p.profile"], check=True, capture_output=True).stdout
    made = json.loads(packed)
    made["extensions"] = ["", *(f"x{number}" for number in range(60_000))]
    text = json.dumps(made).encode()
    bad = subprocess.run(["zstd", "-c"], input=text, check=True, capture_output=True).stdout
    (tmp_path / "p.profile").write_bytes(bad)
    loadstone("dataset", "create", tmp_path / "p.profile", "-o", tmp_path / "o.fst", timeout=60)


def test_a_profile_of_no_bytes_is_damage(tmp_path, loadstone, need_tools):
    need_tools("zstd")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "f").write_bytes(random.Random(1).randbytes(20_000))
    loadstone("dataset", "scan", tree, "-o", tmp_path / "s.fst")
    loadstone("dataset", "profile", tmp_path / "s.fst", "-o", tmp_path / "p.profile")
    packed = subprocess.run(["zstd", "-dc", tmp_path / "p.profile"], check=True, capture_output=True).stdout
    made = json.loads(packed)
    made["measured"][0]["together"]["compressed_bytes"] = 0.0
    bad = subprocess.run(["zstd", "-c"], input=json.dumps(made).encode(), check=True, capture_output=True)
    (tmp_path / "p.profile").write_bytes(bad.stdout)
    done = loadstone("dataset", "verify", tree, "--profile", tmp_path / "p.profile", status=1)
    assert "the compress_ratio of snapshot 0 is no number" in done.stderr
