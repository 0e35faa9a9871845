"""What hostile series cannot do, and what writes leave that were ended."""

from __future__ import annotations

import fcntl
import os
import random
import resource
import signal
import subprocess
import sys
import tarfile
import time
from functools import partial

import pytest

from loadstone import Error, dataset

UNFINISHED = ".loadstone-unfinished"


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Two snapshots of 400 files each."""
    folder, seed = tmp_path_factory.mktemp("series"), random.Random(3)
    for snapshot in range(2):
        root = folder / f"{snapshot}"
        for number in range(400):
            path = root / f"d{number % 20}" / f"{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(seed.randbytes(seed.randrange(20_000)))
        os.symlink("d1", root / "link")
    dataset.scan([folder / "0", folder / "1"], folder / "x.fst", compress=False)
    return folder / "x.fst"


@pytest.mark.parametrize("how", [{}, {"tar": True}, {"hashes": True}])
def test_hostile_series_lead_nowhere(root, tmp_path, how):
    """Names and extensions that lead out, and links of the names of directories."""
    hostile = sorted((root / "fuzz/seeds/fstree").glob("out-*.fst"))
    assert len(hostile) >= 5
    inner = tmp_path / "a/b/c"
    inner.mkdir(parents=True)
    for path in hostile:
        with pytest.raises(Error, match=r"leads elsewhere|letters and digits|two entries are named"):
            dataset.write(path, inner / "out", **how)
    assert [found for found in tmp_path.rglob("*") if not found.is_dir()] == []
    assert sorted(inner.rglob("*")) == []


def written(root):
    """Every file and link below a directory with its size."""
    found = {}
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = os.lstat(path).st_size
    return found


def killed(work, after):
    """Does work in another process that is killed, or done, after some seconds."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.slow
@pytest.mark.parametrize("tar", [False, True])
def test_what_a_killed_write_leaves_does_not_look_whole(series, tmp_path, tar):
    dataset.write(series, tmp_path / "first", snapshots="all", tar=tar, threads=1)
    begun = time.monotonic()
    dataset.write(series, tmp_path / "whole", snapshots="all", tar=tar, threads=1)
    took = time.monotonic() - begun
    whole, seed = written(tmp_path / "whole"), random.Random(5)
    for turn in range(30):
        to = tmp_path / f"{turn}"
        killed(
            lambda to=to: dataset.write(series, to, snapshots="all", tar=tar, threads=1),
            seed.uniform(0, took),
        )
        left = written(to)
        if left and left != whole:
            assert UNFINISHED in left, turn
            with pytest.raises(Error, match="is unfinished"):
                dataset.verify(to, against=tmp_path / "whole", chunk_sizes=[])
    assert list(tmp_path.glob(f"*/{UNFINISHED}")), "some were ended between begin and end"


def test_scan_and_verify_say_that_a_dataset_is_unfinished(series, tmp_path, loadstone):
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        dataset.write(series, out, snapshots="all", tar=True, progress=_stop)
    assert (out / UNFINISHED).is_file()
    text = "is unfinished: loadstone dataset write"
    for arguments in (
        ["scan", out, "-o", tmp_path / "x.fst"],
        ["scan", "--snapshots", out, "-o", tmp_path / "x.fst"],
        ["verify", out, "--against", out],
    ):
        done = loadstone("dataset", *arguments, status=1)
        assert text in done.stderr, arguments
    assert not (tmp_path / "x.fst").exists()
    done = loadstone("dataset", "write", series, "--all", "--to", out, status=1)
    assert text in done.stderr
    # Archives may be written again; whoever wants the part takes the mark away.
    dataset.write(series, out, snapshots="all", tar=True, force=True)
    assert sorted(path.name for path in out.iterdir()) == ["000.tar", "001.tar"]
    (out / UNFINISHED).touch()
    (out / UNFINISHED).unlink()
    dataset.scan(out, tmp_path / "x.fst")


def test_archives_of_a_longer_series_are_not_taken_for_parts(series, tmp_path):
    out = tmp_path / "out"
    dataset.write(series, out, snapshots="all", tar=True)
    (out / "002.tar").write_bytes(b"of another series")
    with pytest.raises(Error, match=r"002\.tar: belongs to a longer series"):
        dataset.write(series, out, snapshots="all", tar=True, force=True)
    assert (out / "002.tar").read_bytes() == b"of another series"
    # Others of the same series may lie there.
    dataset.write(series, out, snapshots=[0, 1], tar=True, force=True)


def _stop(done, of):
    raise RuntimeError("enough")


def test_two_runs_do_not_write_one_place(series, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with (out / UNFINISHED).open("w") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        for snapshots in (0, "all"):
            with pytest.raises(Error, match="is being written by another run"):
                dataset.write(series, out, snapshots=snapshots)
        with pytest.raises(Error, match="is being written by loadstone dataset write; wait"):
            dataset.scan(out, tmp_path / "x.fst")
    with pytest.raises(Error, match="was ended before all was there"):
        dataset.write(series, out, snapshots=0)
    assert list(out.iterdir()) == [out / UNFINISHED]


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_no_dataset(tmp_path, need_root, need_tools):
    """Directories take room that nobody knows of before."""
    need_tools("mkfs.ext4")
    source = tmp_path / "source"
    for number in range(3000):
        (source / f"{number}/below").mkdir(parents=True)
        (source / f"{number}/below/file").write_bytes(b"x")
    dataset.scan(source, tmp_path / "x.fst", compress=False)
    image, at = tmp_path / "image", tmp_path / "at"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(24 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-b", "4096", "-N", "20000", "-O", "^has_journal", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True)
    try:
        with pytest.raises(Error, match=rf"{at}/out/.*: No space left on device"):
            dataset.write(tmp_path / "x.fst", at / "out")
        with pytest.raises(Error, match="is unfinished"):
            dataset.scan(at / "out", tmp_path / "again.fst")
    finally:
        subprocess.run(["umount", at], check=True)


def test_what_does_not_reach_the_disk_stays_marked(tmp_path, need_root, need_tools):
    """A disk that promised more than it has: writes succeed, and write-back does not."""
    need_tools("mkfs.ext4")
    dataset.populate(tmp_path / "x.fst", files=300, sizes="lognormal:11,2", seed=3)
    small, at = tmp_path / "small", tmp_path / "at"
    small.mkdir()
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "none", small], check=True)
    try:
        with (small / "image").open("wb") as file:
            file.truncate(600 << 20)
        made = ["mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=1", small / "image"]
        subprocess.run(made, check=True)
        subprocess.run(["mount", "-o", "loop", small / "image", at], check=True)
        try:
            with pytest.raises(Error, match=rf"{at}/out.*did not reach the disk whole.*Input/output error"):
                dataset.write(tmp_path / "x.fst", at / "out")
            assert (at / "out" / UNFINISHED).exists()
        finally:
            subprocess.run(["umount", at], check=True)
    finally:
        subprocess.run(["umount", small], check=True)


def test_what_is_packed_of_an_unfinished_dataset_is_told(tmp_path, loadstone):
    """The directory itself is refused; an archive or a commit of it looked whole."""
    part = tmp_path / "g/001"
    part.mkdir(parents=True)
    (part / "f").write_text("x")
    (part / ".loadstone-unfinished").write_text("x")
    subprocess.run(["tar", "cf", tmp_path / "a.tar", "-C", tmp_path / "g", "001"], check=True)
    subprocess.run(["tar", "cf", tmp_path / "b.tar", "-C", part, "."], check=True)
    git = ["git", "-C", tmp_path / "g", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    for words in ((tmp_path / "a.tar",), (tmp_path / "b.tar",), ("--git", tmp_path / "g")):
        done = loadstone("dataset", "scan", *words, "-o", tmp_path / "o.fst", "--force")
        assert "is unfinished: dataset write was ended in it" in done.stdout + done.stderr, words


def test_options_that_say_nothing_are_refused(tmp_path, loadstone):
    loadstone("dataset", "populate", "--files", 9, "-o", tmp_path / "a.fst")
    done = loadstone("dataset", "write", tmp_path / "a.fst", "--to", tmp_path / "w", "--seed", 9, status=2)
    assert "--seed: the series was made" in done.stderr and not (tmp_path / "w").exists()
    loadstone("dataset", "write", tmp_path / "a.fst", "--to", tmp_path / "w")
    words = ("dataset", "scan", tmp_path / "w", "--strip", 2, "-o", tmp_path / "s.fst")
    assert "--strip says nothing of directories" in loadstone(*words, status=2).stderr


def test_all_places_are_looked_at_before_an_archive_is_replaced(tmp_path, loadstone):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    loadstone("dataset", "scan", tmp_path / "one", tmp_path / "two", "-o", tmp_path / "b.fst")
    (tmp_path / "w/001.tar").mkdir(parents=True)
    (tmp_path / "w/000.tar").write_text("an older one")
    words = ("dataset", "write", tmp_path / "b.fst", "--all", "--tar", "--to", tmp_path / "w", "--force")
    assert "001.tar: is a directory" in loadstone(*words, status=1).stderr
    assert (tmp_path / "w/000.tar").read_text() == "an older one"
    assert sorted(p.name for p in (tmp_path / "w").iterdir()) == ["000.tar", "001.tar"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_archive_that_is_interrupted_does_not_look_whole(tmp_path, number):
    """What reads the pipe, such as a backup, took what had come by then for all there is."""
    words = [sys.executable, "-m", "loadstone", "-q", "dataset"]
    subprocess.run([*words, "populate", "--files", "20000", "-o", tmp_path / "x.fst"], check=True)
    with subprocess.Popen(
        [*words, "write", tmp_path / "x.fst", "--tar", "--to", "-"], stdout=subprocess.PIPE
    ) as run:
        begin = run.stdout.read(1 << 20)
        run.send_signal(number)
        whole = begin + run.stdout.read()
    assert run.returncode == 128 + number
    (tmp_path / "part.tar").write_bytes(whole)
    read = subprocess.run(["tar", "-tf", tmp_path / "part.tar"], capture_output=True, text=True)
    # GNU tar passes over data by seeking, and finds the end in one way or another.
    assert read.returncode == 2, read.stderr
    done = subprocess.run(
        [*words, "scan", tmp_path / "part.tar", "-o", tmp_path / "p.fst"], capture_output=True, text=True
    )
    assert done.returncode == 1 or "cut short" in done.stderr, done.stderr


def test_limits_of_the_process_count_as_memory_there_is(tmp_path):
    """Batch systems set them (``ulimit -v``): it ended with an abort."""
    words = [sys.executable, "-m", "loadstone", "dataset", "populate", "--files", "5000000"]
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
    done = subprocess.run(
        [*words, "-o", tmp_path / "x.fst"], capture_output=True, text=True, timeout=120, preexec_fn=limit
    )
    assert done.returncode == 2 and "GiB may be taken" in done.stderr, done.stderr


@pytest.mark.slow
def test_a_write_ends_while_directories_are_made(tmp_path):
    """It made all of them first, which may take hours where they are deep."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(60_000):
            entry = tarfile.TarInfo(f"d{number % 100}/e{number}")
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
    dataset.scan([tmp_path / "x.tar"], tmp_path / "x.fst")
    words = [sys.executable, "-m", "loadstone", "-q", "dataset", "write", tmp_path / "x.fst", "--yes"]
    run = subprocess.Popen([*words, "--to", tmp_path / "to"], stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "to/d0").exists():
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    made = sum(len(folders) for _, folders, _ in os.walk(tmp_path / "to"))
    assert run.returncode == 130 and made < 60_000
