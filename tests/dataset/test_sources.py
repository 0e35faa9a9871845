"""Commits, snapshots of file systems and hash files as snapshots of a series."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from loadstone import Error, dataset


def git(repo, *args):
    """Runs git with an identity of its own."""
    own = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", "-C", repo, *own, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path, need_tools):
    """Four commits, each with a version's tag."""
    need_tools("git")
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    seed = random.Random(1)
    for number in range(4):
        (repo / f"file{number}").write_bytes(seed.randbytes(30_000))
        (repo / "changing").write_bytes(seed.randbytes(20_000))
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "x")
        git(repo, "tag", f"v1.{number * 5}")
    return repo


def test_commits_are_what_their_checkouts_are(repo, tmp_path):
    found = dataset.scan_git(repo, tmp_path / "git.fst")
    checkouts = []
    for number in range(4):
        checkouts.append(tmp_path / f"{number}")
        git(repo, "worktree", "add", "-q", checkouts[-1], f"v1.{number * 5}")
        (checkouts[-1] / ".git").unlink()
    live = dataset.scan(checkouts, tmp_path / "live.fst")
    for one, other in zip(found["snapshots"], live["snapshots"], strict=True):
        assert {**one, "label": ""} == {**other, "label": ""}
    assert [one["reused"] for one in found["scanned"]] == [0, 1, 2, 3]
    profiled = dataset.profile(tmp_path / "git.fst")
    assert (profiled["markov"]["mm"], profiled["markov"]["uu"]) == (100, 100)


def test_the_command_chooses_commits(repo, tmp_path, loadstone):
    def labels(*args):
        done = loadstone(
            "dataset", "scan", "--git", repo, "-o", tmp_path / "x.fst", "--force", "--json", *args
        )
        return [one["label"] for one in json.loads(done.stdout)["snapshots"]]

    assert labels("--tags", "v1.*") == ["v1.0", "v1.5", "v1.10", "v1.15"]
    assert labels("--tags", "v1.*", "--every", 3) == ["v1.0", "v1.15"]
    commits = git(repo, "rev-list", "--reverse", "HEAD").splitlines()
    assert labels() == [commit[:12] for commit in commits]
    assert labels("--revisions", "v1.0..v1.10") == [commit[:12] for commit in commits[1:3]]


def test_sources_are_given_one_at_a_time(repo, tmp_path, loadstone):
    def refused(*args):
        return loadstone("dataset", "scan", "-o", tmp_path / "x.fst", *args, status=2).stderr

    assert "one of them" in refused()
    assert "one of them" in refused(repo, "--git", repo)
    assert "--git" in refused(repo, "--tags", "v*")
    assert "leave them out" in refused("--git", repo, "--strip", 1)
    assert "--snapshots" in refused(repo, "--order", "reverse")
    (tmp_path / "none").mkdir()
    done = loadstone("dataset", "scan", "--git", tmp_path / "none", "-o", tmp_path / "x.fst", status=None)
    assert done.returncode == 1
    assert "not a git repository" in done.stderr
    with pytest.raises(Error, match="give one of them"):
        dataset.scan_git(repo, tmp_path / "x.fst", tags="v*", revisions="HEAD")


def test_what_is_no_snapshot_is_not_taken_for_an_archive(tmp_path, loadstone):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_bytes(bytes(range(256)) * 100)
    series, text = tmp_path / "a.fst", tmp_path / "text"
    loadstone("dataset", "scan", tmp_path / "tree", "-o", series)
    text.write_text("no snapshot")
    long = tmp_path / "long"
    long.write_bytes(b"\x1b[31mred" * 1000)
    for given in (series, text, long):
        said = loadstone("dataset", "scan", given, "-o", tmp_path / "b.fst", status=1).stderr
        if given == series:
            assert f"{given}: is a series of file trees; loadstone dataset describe" in said
        else:
            assert f"{given}: is no tar archive" in said and "or a directory" in said
        assert "\x1b" not in said and "LSFSTREE" not in said
    said = loadstone("dataset", "verify", tmp_path / "tree", "--against", series, status=1).stderr
    assert f"{series}: is a series of file trees" in said


def test_a_shallow_clone_and_submodules_are_told(repo, tmp_path, loadstone):
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", repo, "sub")
    git(main, "commit", "-q", "-m", "x")
    done = loadstone("dataset", "scan", "--git", main, "-o", tmp_path / "x.fst")
    assert "1 submodules left out" in done.stderr
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
    done = loadstone("dataset", "scan", "--git", tmp_path / "shallow", "-o", tmp_path / "y.fst")
    assert "shallow clone" in done.stderr


def test_rotated_backups_are_read_once(tmp_path, loadstone):
    """As rsnapshot has them: 0 is the newest, and what did not change is a hard link."""
    backups = tmp_path / "backups"
    seed = random.Random(2)
    (backups / "daily.10").mkdir(parents=True)
    for number in range(20):
        (backups / f"daily.10/{number}").write_bytes(seed.randbytes(9000))
    for newer, older in (("daily.9", "daily.10"), ("daily.0", "daily.9")):
        shutil.copytree(backups / older, backups / newer, copy_function=os.link)
        (backups / newer / "3").unlink()
        (backups / newer / "3").write_bytes(seed.randbytes(9000))
    assert [Path(path).name for path in dataset.snapshots(backups)] == ["daily.0", "daily.9", "daily.10"]
    paths = dataset.snapshots(backups, "reverse")
    assert [Path(path).name for path in paths] == ["daily.10", "daily.9", "daily.0"]
    time.sleep(0.1)
    read = dataset.scan(paths, tmp_path / "read.fst", settled=None)
    known = dataset.scan(paths, tmp_path / "known.fst", settled=0.05)
    assert known["snapshots"] == read["snapshots"]
    assert [one["reused"] for one in read["scanned"]] == [0, 0, 0]
    assert [one["reused"] for one in known["scanned"]] == [0, 19, 19]
    # Too young for the default.
    out = tmp_path / "x.fst"
    done = loadstone("dataset", "scan", "--snapshots", backups, "--order", "reverse", "-o", out, "--json")
    assert [one["reused"] for one in json.loads(done.stdout)["scanned"]] == [0, 0, 0]


@pytest.fixture
def btrfs(tmp_path, need_root, need_tools):
    """A btrfs of its own, on a loop device."""
    need_tools("btrfs", "mkfs.btrfs", "mount")
    image, here = tmp_path / "btrfs.img", tmp_path / "btrfs"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    here.mkdir()
    if subprocess.run(["mount", "-o", "loop", image, here], check=False, capture_output=True).returncode:
        pytest.skip("this kernel mounts no btrfs")
    yield here
    subprocess.run(["umount", here], check=True)


def test_snapshots_of_btrfs_are_read_once(btrfs, tmp_path):
    def run(*args):
        subprocess.run(["btrfs", "-q", "subvolume", *args], check=True, capture_output=True)

    source, keep = btrfs / "home", btrfs / ".snapshots"
    seed = random.Random(3)
    run("create", source)
    keep.mkdir()
    for number in range(30):
        (source / f"{number}").write_bytes(seed.randbytes(20_000))
    time.sleep(1.2)
    # Names that say nothing of the order, as the order is that of their making.
    for name, changed in (("z", ()), ("m", (1, 2)), ("a", (2, 3))):
        for number in changed:
            # The size and the mtime that it had: only the inode tells.
            path = source / f"{number}"
            times = path.stat()
            path.write_bytes(seed.randbytes(20_000))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        run("snapshot", "-r", source, keep / name)
    paths = dataset.snapshots(keep, "created")
    assert [Path(path).name for path in paths] == ["z", "m", "a"]
    read = dataset.scan(paths, tmp_path / "read.fst", settled=None)
    known = dataset.scan(paths, tmp_path / "known.fst", settled=1.0)
    assert known["snapshots"] == read["snapshots"]
    assert [one["reused"] for one in read["scanned"]] == [0, 0, 0]
    assert [one["reused"] for one in known["scanned"]] == [0, 28, 27]
    # Within a subvolume hard links are known, as anywhere.
    for name in ("0", "1"):
        (btrfs / "daily" / name).mkdir(parents=True)
    (btrfs / "daily/0/file").write_bytes(seed.randbytes(9000))
    os.link(btrfs / "daily/0/file", btrfs / "daily/1/file")
    time.sleep(0.1)
    linked = dataset.scan(dataset.snapshots(btrfs / "daily"), tmp_path / "x.fst", settled=0.05)
    assert [one["reused"] for one in linked["scanned"]] == [0, 1]
    # Another subvolume has the same inode numbers and nothing else in common.
    run("create", btrfs / "other")
    for number in range(30):
        (btrfs / "other" / f"{number}").write_bytes(seed.randbytes(20_000))
        times = (source / f"{number}").stat()
        os.utime(btrfs / "other" / f"{number}", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (btrfs / "other/5").stat().st_ino == (source / "5").stat().st_ino
    both = dataset.scan([source, btrfs / "other"], tmp_path / "both.fst", settled=0.0)
    assert both["scanned"][1]["reused"] == 0
    assert both["snapshots"][1]["together"]["distinct"] == both["snapshots"][1]["together"]["chunks"]


def test_a_key_makes_scans_comparable(tmp_path, loadstone):
    def prints(*args):
        loadstone("dataset", "scan", tree, "-o", tmp_path / "x.fst", "--force", *args)
        data = (tmp_path / "x.fst").read_bytes()
        at = 16
        while True:
            tag, _, length = struct.unpack_from("<4sIQ", data, at)
            at += 24
            if tag == b"cprt":
                return data[at : at + length]
            at += length

    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_bytes(random.Random(1).randbytes(50_000))
    (tmp_path / "key").write_bytes(bytes(range(32)))
    assert prints() != prints()
    assert prints("--key", tmp_path / "key") == prints("--key", tmp_path / "key") != prints()
    (tmp_path / "short").write_bytes(b"too short")
    done = loadstone("dataset", "scan", tree, "-o", tmp_path / "y.fst", "--key", tmp_path / "short", status=1)
    assert "has 9 bytes, a key has 16 to 1048576" in done.stderr


def test_compressibility_is_measured_as_asked(tmp_path, loadstone):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_bytes(b"all work and no play " * 5000)
    codecs = {
        "sample": "zstd level 1, a sample of the chunks",
        "whole": "zstd level 1, chunk by chunk",
        "none": None,
    }
    for how, codec in codecs.items():
        done = loadstone(
            "dataset", "scan", tree, "-o", tmp_path / "x.fst", "--force", "--json", "--compress", how
        )
        found = json.loads(done.stdout)
        assert found["meta"]["codec"] == codec
        ratio = found["snapshots"][0]["alone"]["compress_ratio"]
        assert (ratio > 20) == (how != "none")
    with pytest.raises(Error, match="unknown variant `half`"):
        dataset.scan(tree, tmp_path / "y.fst", compress="half")


@pytest.mark.parametrize("version", ["gnu", "0.0", "0.1", "1.0"])
def test_sparse_files_of_archives_are_what_they_were(version, tmp_path, need_tools):
    need_tools("tar")
    tree = tmp_path / "t"
    tree.mkdir()
    (tree / "plain").write_bytes(os.urandom(9000))
    with (tree / "sparse").open("wb") as file:
        file.truncate(50 << 20)
        for at in (20_000_000, 30_000_128):
            file.seek(at)
            file.write(b"abc" * 1000)
    os.truncate(tree / "sparse", 50 << 20)
    how = ["--format=gnu"] if version == "gnu" else ["--format=posix", f"--sparse-version={version}"]
    subprocess.run(["tar", "-S", *how, "-C", tmp_path, "-cf", tmp_path / "a.tar", "t"], check=True)
    subprocess.run(["tar", "-C", tmp_path, "-cf", tmp_path / "plain.tar", "t"], check=True)
    found = [dataset.scan([tmp_path / name], tmp_path / f"{name}.fst") for name in ("a.tar", "plain.tar")]
    for each in found:
        told = each["scanned"][0]
        assert (told["directories"], told["files"]) == (2, 2)
        assert told["bytes"] + told["hole_bytes"] == (50 << 20) + 9000
    assert (tmp_path / "a.tar").stat().st_size < 1 << 20
