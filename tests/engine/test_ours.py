"""Only what Loadstone made is removed or overwritten, and one run at a time has a target."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error, _core
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_uniform


def plan(on: Path, *, entries: int = 20, present: float = 1.0, **parts: Any) -> dict[str, Any]:
    """A plan of one set that is made and looked at."""
    destroy = parts.pop("allow_destroy", False)
    step = {"name": "stat", "act": "stat", "set": "s"}
    return check(
        {
            "version": 1,
            "targets": [{"id": "t", "kind": "tree", "path": str(on), "allow_destroy": destroy}],
            "sets": [
                {"id": "s", "target": "t", "path": "files", "entries": entries, "present": present, **parts}
            ],
            "workers": [{"group": "w", "source": {"kind": "program", "ops": [step]}, "backend": "posix"}],
            "steps": [{"step": "prepare"}, {"step": "run", "duration_ns": 5_000_000}],
        }
    )


def unpacking(on: Path, archive: Path, **parts: Any) -> dict[str, Any]:
    """A plan that unpacks an archive."""
    step = {"name": "extract", "act": "extract", "set": "s", "index": 0, "archive": str(archive)}
    found = plan(on, entries=1, present=0.0, any_names=True, **parts)
    found["steps"][1]["duration_ns"] = 500_000_000
    found["workers"][0]["source"]["ops"] = [step]
    return check(found)


def below(path: Path) -> dict[str, str]:
    """What is in a directory: names and texts."""
    return {str(p.relative_to(path)): p.read_text(errors="replace") for p in path.rglob("*") if p.is_file()}


def started(long: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A process that runs a plan until it is killed."""
    long["steps"][1]["duration_ns"] = 600 * 10**9
    program = "import sys, json; from loadstone import _core; _core.start(sys.argv[1]).join()"
    return subprocess.Popen([sys.executable, "-c", program, json.dumps(long)])


def wait_for(made: Callable[[], Any], child: subprocess.Popen[bytes] | None = None) -> None:
    """Waits until a run has made something."""
    deadline = time.monotonic() + 60
    while not made():
        assert time.monotonic() < deadline and (child is None or child.poll() is None), "nothing was made"
        time.sleep(0.001)


@contextmanager
def bound(what: Path, at: Path):
    subprocess.run(["mount", "--bind", what, at], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", at], check=True)


@contextmanager
def loop(image: Path | str):
    done = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    device = done.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


@pytest.fixture
def archive(tmp_path):
    import tarfile

    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text("packed")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "etc", "etc")
    return tmp_path / "a.tar"


def test_a_mark_does_not_outlive_its_directory(tmp_path, archive):
    on = tmp_path / "on"
    execute(unpacking(on, archive))
    assert (on / "files/00000000/etc/hosts").read_text() == "packed"
    assert [p.name for p in on.iterdir()] == ["files"]
    # Once more: it is ours, and made anew.
    execute(unpacking(on, archive))
    subprocess.run(["rm", "-r", on / "files"], check=True)
    (on / "files/00000000").mkdir(parents=True)
    (on / "files/00000000/thesis").write_text("mine")
    with pytest.raises(Error, match="was not made by Loadstone"):
        execute(unpacking(on, archive))
    assert below(on) == {"files/00000000/thesis": "mine"}


@pytest.mark.parametrize("name", ["thesis", "00000000/etc/thesis", "20231127/1700000000"])
def test_what_others_put_among_unpacked_files_stays(tmp_path, archive, name):
    on = tmp_path / "on"
    execute(unpacking(on, archive))
    mine = on / "files" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(Error, match=f"{name.split('/')[0]}.* was not made by Loadstone"):
        execute(unpacking(on, archive))
    assert mine.read_text() == "mine" and (on / "files/00000000/etc/hosts").exists()


@pytest.mark.parametrize("names", ["numbers", "archive"])
def test_what_a_killed_run_cannot_be_shown_to_have_made_stays(tmp_path, archive, names):
    on = tmp_path / "on"

    def load(**parts):
        return plan(on, **parts) if names == "numbers" else unpacking(on, archive, **parts)

    long = load()
    child = started(long)
    made = on / ("files/00000001/00000001" if names == "numbers" else "files/00000000/etc/hosts")
    try:
        wait_for(made.exists, child)
    finally:
        child.kill()
        child.wait()
    mine = made.with_name("thesis")
    mine.write_text("mine")
    before = below(on)
    with pytest.raises(Error, match=f"has files of a run that was killed.*`allow_destroy` {on}"):
        execute(load())
    assert below(on) == before
    mine.unlink()
    # Nothing tells that nobody else's file is among those with numbers for names, either.
    made.unlink()
    made.write_text("mine")
    for again in (load(), load(reuse=True)) if names == "numbers" else (load(),):
        with pytest.raises(Error, match="killed"):
            execute(again)
    assert made.read_text() == "mine"
    execute(load(allow_destroy=True))
    execute(load())
    assert made.exists() and not mine.exists()


@pytest.mark.parametrize("name", ["20231127/1700000000", "00000001/20231127", "00000001/00000099", "7"])
def test_dates_are_no_numbers_of_a_set(tmp_path, name):
    on = tmp_path / "on"
    execute(plan(on))
    mine = on / "files" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    for again in (plan(on), plan(on, reuse=True), plan(on, entries=5)):
        with pytest.raises(Error, match="was not made by Loadstone"):
            execute(again)
    assert mine.read_text() == "mine" and len(below(on)) == 22
    mine.unlink()
    if name.startswith("20231127"):
        mine.parent.rmdir()
    elif "/" in name:
        # Nothing tells a directory from which something was taken from one that came from elsewhere.
        with pytest.raises(Error, match="changed after its last run"):
            execute(plan(on, entries=5))
    execute(plan(on, entries=5, allow_destroy=name.startswith("00000001/")))
    assert len(below(on)) == 6


def test_a_file_that_was_changed_after_the_run_is_somebody_elses(tmp_path):
    on = tmp_path / "on"
    execute(plan(on))
    changed = next(p for p in (on / "files").rglob("0*") if p.is_file())
    changed.write_text("mine")
    with pytest.raises(Error, match="changed after its last run"):
        execute(plan(on))
    assert changed.read_text() == "mine" and len(below(on)) == 21
    execute(plan(on, allow_destroy=True))
    assert "mine" not in below(on).values()


def test_a_directory_that_was_moved_into_a_set_is_somebody_elses(tmp_path):
    """Its files keep their times, and have names of the set."""
    on, photos = tmp_path / "on", tmp_path / "photos"
    photos.mkdir()
    for number in range(1, 9):
        (photos / f"{number:08}").write_text("mine")
    time.sleep(0.05)
    execute(plan(on, width=4.0))
    deep = next(p for p in (on / "files").rglob("0*") if p.is_dir())
    deep.rename(tmp_path / "old")
    photos.rename(deep)
    with pytest.raises(Error, match="changed after its last run"):
        execute(plan(on, width=4.0))
    assert sorted(deep.iterdir())[0].read_text() == "mine"


def test_the_time_of_the_last_run_is_not_that_of_the_mark(tmp_path):
    on = tmp_path / "on"
    execute(plan(on))
    time.sleep(0.05)
    changed = next(p for p in (on / "files").rglob("0*") if p.is_file())
    changed.write_text("mine")
    time.sleep(0.05)
    (on / "files/.loadstone").chmod(0o600)
    os.utime(on / "files/.loadstone")
    with pytest.raises(Error, match="changed after its last run"):
        execute(plan(on))
    assert changed.read_text() == "mine"


@pytest.mark.root
@pytest.mark.parametrize("inode", [128, 256])
def test_times_of_whole_seconds_tell_files_of_others(tmp_path, need_root, need_tools, inode):
    """ext4 with small inodes has no parts of seconds, and no time of birth."""
    need_tools("mkfs.ext4")
    image, at = tmp_path / "image", tmp_path / "at"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-I", str(inode), image], check=True, capture_output=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True)
    try:
        on = at / "on"
        execute(plan(on))
        changed = next(p for p in (on / "files").rglob("0*") if p.is_file())
        changed.write_text("mine")
        with pytest.raises(Error, match="changed after its last run"):
            execute(plan(on))
        assert changed.read_text() == "mine"
        execute(plan(on, allow_destroy=True))
        # A copy that is put in its place is no set of Loadstone's, even where it gets the same inode.
        subprocess.run(["cp", "-a", on, at / "copy"], check=True)
        subprocess.run(["rm", "-rf", on], check=True)
        subprocess.run(["cp", "-a", at / "copy", on], check=True)
        with pytest.raises(Error, match="from which this one was copied"):
            execute(plan(on))
    finally:
        subprocess.run(["umount", at], check=True)


def test_a_target_within_the_directory_of_another_run_is_refused(tmp_path):
    on = tmp_path / "on"
    long = plan(on, size=4096)
    child = started(long)
    try:
        wait_for(lambda: list(on.glob("files/0*/0*")), child)
        time.sleep(0.2)
        inner = plan(on / "files", allow_destroy=True)
        with pytest.raises(Error, match=f"lies in {on}, which is in use by another run"):
            execute(inner)
        one = next(p for p in (on / "files").rglob("0*") if p.is_file())
        words = {"size": 4096, "requests": 1, "cache": "none", "fill": False, "allow_destroy": [str(one)]}
        with pytest.raises(Error, match="in use by another run"):
            execute(plan_uniform("randwrite", str(one), RunOptions(**words)))
    finally:
        child.kill()
        child.wait()


@pytest.mark.root
@pytest.mark.parametrize("hidden", ["/sys/block", "/sys/devices/virtual/block", "/sys"])
def test_where_sys_hides_loop_devices_nothing_is_overwritten(tmp_path, need_tools, hidden):
    need_tools("losetup", "unshare")
    image = tmp_path / "image"
    image.write_bytes(b"x" * (1 << 20))
    words = [sys.executable, "-m", "loadstone", "run", "randwrite", "--on", image, "--allow-destroy", image]
    with loop(image):
        code = f"mount -t tmpfs none {hidden} && exec " + shlex.join(map(str, [*words, "--requests", "9"]))
        done = subprocess.run(["unshare", "-m", "sh", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "/sys/block does not tell" in done.stderr, done.stderr
    assert image.read_bytes() == b"x" * (1 << 20)


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
def test_the_image_of_a_loop_device_is_known_in_a_container(tmp_path, need_root, need_tools):
    """Without its node, with another path, and without /sys: what cannot be told is not overwritten."""
    need_tools("losetup", "unshare")
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.mkdir()
    outer.mkdir()
    image = inner / "image"
    image.write_bytes(b"x" * (1 << 20))
    run = f"{sys.executable} -m loadstone run randwrite --requests 9 --size 1m --on"
    nodes = "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9"
    hide = f"mount --bind {inner} {outer} && mount -t tmpfs none {inner} && {nodes}"
    with loop(image):
        for before, target, told in (
            ("umount -l /sys", image, "/sys/block does not tell"),
            (hide, outer / "image", "seems to back /dev/loop"),
            (nodes, image, "seems to back /dev/loop"),
        ):
            text = f"{before} && {run} {target} --allow-destroy {target}"
            done = subprocess.run(["unshare", "-m", "bash", "-c", text], capture_output=True, text=True)
            assert done.returncode == 1 and told in done.stderr, done.stderr
    assert image.read_bytes() == b"x" * (1 << 20)


def test_a_copy_of_a_marked_directory_is_not_ours(tmp_path):
    on, other = tmp_path / "on", tmp_path / "other"
    execute(plan(on))
    other.mkdir()
    subprocess.run(["cp", "-a", on / "files", other / "files"], check=True)
    before = below(other)
    with pytest.raises(Error, match="copied"):
        execute(plan(other))
    assert below(other) == before


def test_a_set_behind_a_link_is_refused(tmp_path):
    on, outside = tmp_path / "on", tmp_path / "outside"
    on.mkdir()
    outside.mkdir()
    (on / "files").symlink_to(outside)
    with pytest.raises(Error, match="in the way"):
        execute(plan(on))
    (on / "sub").symlink_to(outside)
    nested = plan(on)
    nested["sets"][0]["path"] = "sub/files"
    with pytest.raises(Error, match="link"):
        execute(check(nested))
    assert list(outside.iterdir()) == []


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
def test_bind_mounts_inside_a_set_are_not_emptied(tmp_path):
    on, precious = tmp_path / "on", tmp_path / "precious"
    execute(plan(on))
    precious.mkdir()
    (precious / "00000001").write_text("mine")
    at = next(p for p in (on / "files").iterdir() if p.is_dir())
    before = len(below(on / "files"))
    for again in (plan(on), plan(on, reuse=True), plan(on, allow_destroy=True)):
        with bound(precious, at), pytest.raises(Error, match="mounted"):
            execute(again)
        assert below(precious) == {"00000001": "mine"} and len(below(on / "files")) == before


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
def test_bind_mounts_inside_a_tree_are_not_emptied(tmp_path):
    from loadstone.workload import plan_replay

    trace = tmp_path / "a.strace"
    trace.write_text('1 1.000000 openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n')
    on, precious = tmp_path / "on", tmp_path / "precious"
    (on / "old/at").mkdir(parents=True)
    (on / "mine").write_text("given up")
    precious.mkdir()
    (precious / "file").write_text("mine")
    with bound(precious, on / "old/at"), pytest.raises(Error, match="old/at: something is mounted"):
        execute(plan_replay(trace, on, RunOptions(allow_destroy=[on])))
    assert below(precious) == {"file": "mine"} and below(on) == {"mine": "given up"}


@pytest.mark.slow
def test_stopping_removes_what_was_made_and_nothing_else(tmp_path):
    on = tmp_path / "on"
    run = _core.start(json.dumps(plan(on, entries=200_000, size=4096)))
    wait_for((on / "files/00000001").is_dir)
    (on / "mine").write_text("mine")
    (on / "files/00000001/mine").write_text("mine")
    run.stop()
    run.join()
    assert below(on) == {
        "mine": "mine",
        "files/00000001/mine": "mine",
        "files/.loadstone": below(on)["files/.loadstone"],
    }
    (on / "files/00000001/mine").unlink()
    execute(plan(on, allow_destroy=True))


@pytest.mark.slow
def test_stopping_removes_a_directory_that_is_empty_again(tmp_path):
    on = tmp_path / "on"
    run = _core.start(json.dumps(plan(on, entries=200_000, size=4096)))
    wait_for((on / "files/00000001").is_dir)
    run.stop()
    run.join()
    assert not on.exists()


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
def test_the_image_of_a_loop_device_is_refused_by_any_way(tmp_path, need_tools):
    need_tools("losetup")
    image, link = tmp_path / "image", tmp_path / "link"
    image.write_bytes(b"\xa5" * (4 << 20))
    os.link(image, link)

    def refused(target, text):
        words = plan_uniform(
            "randwrite",
            str(target),
            RunOptions(requests=9, cache="none", fill=False, allow_destroy=[str(target)]),
        )
        with pytest.raises(Error, match=text):
            execute(words)

    with loop(image) as first:
        refused(image, f"in use by {first}")
        refused(link, f"in use by {first}")
        with loop(link) as second:
            refused(second, f"same file as {first}")
        with loop(first) as above:
            refused(first, f"in use by {above}")
            refused(image, "in use by")
    assert image.read_bytes() == b"\xa5" * (4 << 20)


@pytest.mark.root
def test_the_image_of_a_loop_device_is_refused_through_an_overlay(tmp_path, need_root, need_tools):
    need_tools("losetup", "mount")
    layers = [tmp_path / name for name in ("low", "up", "work", "merged")]
    tmpfs = ["mount", "-t", "tmpfs", "tmpfs", tmp_path]
    subprocess.run(tmpfs, check=True)
    try:
        for layer in layers:
            layer.mkdir()
        low, up, work, merged = layers
        (low / "lower").write_bytes(bytes(1 << 20))
        how = f"lowerdir={low},upperdir={up},workdir={work}"
        if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", how, merged]).returncode:
            pytest.skip("no overlay can be mounted here")
        try:
            (up / "image").write_bytes(bytes(1 << 20))
            # The overlay shows this one under its first number when it was copied up.
            with (merged / "lower").open("r+b") as file:
                file.write(b"x")
            for made_of, seen in ((up, merged), (merged, up)):
                name = "image" if seen == merged else "lower"
                device = subprocess.run(
                    ["losetup", "-f", "--show", made_of / name], check=True, capture_output=True, text=True
                ).stdout.strip()
                try:
                    target = str(seen / name)
                    words = plan_uniform(
                        "randwrite",
                        target,
                        RunOptions(requests=9, cache="none", fill=False, allow_destroy=[target]),
                    )
                    with pytest.raises(Error, match=f"seems to back {device}"):
                        execute(words)
                finally:
                    subprocess.run(["losetup", "-d", device], check=True)
        finally:
            subprocess.run(["umount", merged], check=True)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_one_run_at_a_time_has_a_target(tmp_path):
    target = tmp_path / "t"
    target.write_bytes(b"x" * (1 << 20))
    reads = plan_uniform("randread", str(target), RunOptions(duration=60, cache="none"))
    writes = plan_uniform(
        "randwrite",
        str(target),
        RunOptions(requests=9, cache="none", fill=False, allow_destroy=[str(target)]),
    )
    run = _core.start(json.dumps(reads))
    try:
        execute(plan_uniform("randread", str(target), RunOptions(requests=9, cache="none")))
        with pytest.raises(Error, match="another run"):
            execute(writes)
    finally:
        run.stop()
        run.join()
    assert execute(writes)["summary"]["errors"] == 0


def test_one_run_at_a_time_has_a_directory_and_a_killed_one_has_none(tmp_path):
    on = tmp_path / "on"
    long = plan(on)
    child = started(long)
    try:
        wait_for((on / "files/.loadstone").exists, child)
        with pytest.raises(Error, match="another run"):
            execute(plan(on))
    finally:
        child.kill()
        child.wait()
    execute(plan(on, entries=3, allow_destroy=True))
    assert len(below(on)) == 4


def test_what_the_system_refuses_while_a_file_is_made_is_told(tmp_path, need_tools):
    """A system that forbids statx(2): one file aside was made after the other, for ever."""
    need_tools("strace")
    code = "import sys; from loadstone import _core; _core.AsideFile(sys.argv[1], False)"
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=statx", "-e", "inject=statx:error=EPERM"]
    done = subprocess.run(
        [*words, sys.executable, "-c", code, tmp_path / "x"], capture_output=True, text=True, timeout=60
    )
    assert "not permitted" in done.stderr and done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_reused_set_writes_through_no_hard_link(tmp_path):
    on, backup = tmp_path / "on", tmp_path / "backup"
    write = {"name": "w", "act": "write", "set": "s", "size": 4096}

    def load(**parts):
        found = plan(on, size=4096, reuse=True, **parts)
        found["workers"][0]["source"]["ops"] = [write]
        return check(found)

    execute(load())
    kept = {name: (on / name).read_bytes() for name in below(on) if "loadstone" not in name}
    subprocess.run(["cp", "-al", on, backup], check=True)
    execute(load(allow_destroy=True))
    assert {name: (backup / name).read_bytes() for name in kept} == kept
    assert all((on / name).stat().st_nlink == 1 for name in kept)


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
@pytest.mark.parametrize("kind", ["fallocate", "hole"])
def test_reads_of_what_was_never_written_are_refused(tmp_path, need_tools, kind):
    """Pages read from unwritten extents are in the cache, where lseek(2) takes them for data."""
    need_tools("mkfs.xfs", "fallocate")
    image, at = tmp_path / "image", tmp_path / "at"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(320 << 20)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True)
    try:
        file = at / "f"
        if kind == "fallocate":
            subprocess.run(["fallocate", "-l", "8M", file], check=True)
        else:
            with file.open("wb") as made:
                made.write(b"x" * (1 << 20))
                made.truncate(8 << 20)
        file.read_bytes()
        reads = plan_uniform("randread", str(file), RunOptions(requests=9, cache="none"))
        byte = 0 if kind == "fallocate" else 1 << 20
        with pytest.raises(Error, match=f"has a hole at byte {byte}"):
            execute(reads)
        file.write_bytes(b"x" * (8 << 20))
        execute(reads)
    finally:
        subprocess.run(["umount", at], check=True)


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
def test_what_is_mounted_where_a_set_goes_is_not_given_up_with_the_directory_above(tmp_path, archive):
    on, precious = tmp_path / "on", tmp_path / "precious"
    (on / "files").mkdir(parents=True)
    precious.mkdir()
    (precious / "mine").write_text("mine")
    for again in (
        plan(on),
        plan(on, allow_destroy=True),
        unpacking(on, archive, allow_destroy=True),
    ):
        with bound(precious, on / "files"), pytest.raises(Error, match=r"mount of its own|was there before"):
            execute(again)
        assert below(precious) == {"mine": "mine"}
    # An empty one takes the set, and the next run knows that as Loadstone's.
    (precious / "mine").unlink()
    for _ in range(2):
        with bound(precious, on / "files"):
            assert execute(plan(on, allow_destroy=True))["summary"]["errors"] == 0
        assert len(below(precious)) > 1


@pytest.mark.root
def test_a_subvolume_where_a_set_goes_is_not_given_up_with_the_directory_above(
    tmp_path, need_root, need_tools
):
    """btrfs shows it on the same mount, with a device of its own."""
    need_tools("mount", "umount", "mkfs.btrfs", "btrfs")
    image, disk = tmp_path / "i", tmp_path / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    try:
        (disk / "on").mkdir()
        subprocess.run(["btrfs", "-q", "subvolume", "create", disk / "on/files"], check=True)
        (disk / "on/files/mine").write_text("mine")
        with pytest.raises(Error, match=r"mount of its own|was there before"):
            execute(plan(disk / "on", allow_destroy=True))
        assert (disk / "on/files/mine").read_text() == "mine"
    finally:
        subprocess.run(["umount", disk], check=True)
