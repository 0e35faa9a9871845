"""What a run is made from and writes besides is no target and stays, as do images in use."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest

CALLS = '7 1.0 openat(AT_FDCWD, "/w/f", O_RDWR|O_CREAT, 0666) = 3 <0.000010>\n'


@contextmanager
def mounted(*words):
    subprocess.run(["mount", *words], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", words[-1]], check=True)


@contextmanager
def locked(directory):
    """As a run has the directory that it works in."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def given_up(loadstone, tree, *words):
    return loadstone(*words, "--on", tree, "--allow-destroy", tree, status=1).stderr


def test_files_of_a_run_are_no_targets_of_it(tmp_path, loadstone, root):
    trace = tmp_path / "t.parquet"
    trace.write_bytes((root / "examples/loop0.parquet").read_bytes())
    before = trace.read_bytes()
    words = ["--size", "1m", "--offsets", "wrap", "--pace", "max", "--allow-destroy", trace]
    done = loadstone("replay", trace, "--on", trace, *words, status=1)
    assert "which the run reads; name another target" in done.stderr and trace.read_bytes() == before
    link = tmp_path / "link.parquet"
    os.link(trace, link)
    assert "which the run reads" in loadstone("replay", link, "--on", trace, *words, status=1).stderr
    # Those that are not there yet, too.
    for option, what in (("--log", "where the run writes its log"), ("--verify-state", "keeps its state")):
        new = tmp_path / "new"
        done = loadstone(
            "run", "randwrite", "--on", new, "--size", "1m", "--requests", 9, option, new, status=1
        )
        assert what in done.stderr and not new.exists()
    tree = tmp_path / "tree"
    tree.mkdir()
    calls = tree / "t.strace"
    calls.write_text('7 1.0 openat(AT_FDCWD, "/w/f", O_RDWR|O_CREAT, 0666) = 3 <0.000010>\n')
    done = loadstone("replay", calls, "--on", tree, "--pace", "max", "--allow-destroy", tree, status=1)
    assert "is given up and holds" in done.stderr and calls.exists()


@pytest.mark.root
def test_a_trace_is_known_behind_a_bind_mount_and_by_another_name(tmp_path, loadstone, need_root):
    tree, bound = tmp_path / "tree", tmp_path / "bound"
    for folder in (tree / "deep/er", bound):
        folder.mkdir(parents=True)
    calls = tree / "deep/er/t.strace"
    calls.write_text(CALLS)
    with mounted("--bind", tree, bound):
        text = given_up(loadstone, tree, "replay", bound / "deep/er/t.strace")
        assert "deep/er/t.strace: is or holds" in text and "nothing was removed" in text
        other = tmp_path / "other.strace"
        other.write_text(CALLS)
        text = given_up(loadstone, tree, "replay", other, "--out", bound / "deep/b")
        assert "which belongs to the run" in text and os.listdir(tree / "deep") == ["er"]
    os.link(calls, tmp_path / "name")
    assert "is or holds" in given_up(loadstone, tree, "replay", tmp_path / "name")
    assert calls.read_text() == CALLS


@pytest.mark.slow
def test_scripts_jobs_plans_and_results_stay(tmp_path, loadstone):
    tree = tmp_path / "tree"
    (tree / "files").mkdir(parents=True)
    script = tree / "files/s.f"
    script.write_text(
        "define fileset name=files,path=$dir,entries=2\n"
        "define process name=p {\n thread name=t {\n  flowop statfile name=s,filesetname=files\n }\n}\n"
        "run 1\n"
    )
    profile = tree / "files/s.prof"
    profile.write_text("DEFAULTS {\n}\nCONFIG one {\n personality = s;\n runtime = 1;\n}\n")
    for path in (script, profile):
        text = given_up(loadstone, tree, "run", path)
        assert f"{path}, which belongs to the run" in text
    jobs = tree / "job.fio"
    jobs.write_text("[keep]\nrw=write\nbs=4k\nsize=64k\nfilename=job.fio\n")
    assert "which belongs to the run; name another target" in given_up(loadstone, tree, "run", jobs)
    assert jobs.read_text().startswith("[keep]")
    calls = tmp_path / "t.strace"
    calls.write_text(CALLS)
    plan = tree / "p.json"
    words = ["--on", tree, "--allow-destroy", tree, "--dry-run"]
    plan.write_text(loadstone("replay", calls, *words).stdout)
    done = loadstone("run", plan, "--allow-destroy", tree, status=1)
    assert f"holds {plan}, which belongs to the run" in done.stderr
    assert "own" not in json.loads(plan.read_text())
    for path in (script, profile, jobs, plan):
        path.unlink()
    text = given_up(loadstone, tree, "replay", calls, "--out", tree / "b")
    assert "which belongs to the run" in text and list(tree.iterdir()) == [tree / "files"]
    loadstone("replay", calls, "--on", tree, "--allow-destroy", tree, "--out", tmp_path / "b")


def test_what_others_have_locked_is_not_removed(tmp_path, loadstone):
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    data, other = tree / "deep/data", tree / "file"
    data.write_text("rows")
    other.write_text("mine")
    calls = tmp_path / "t.strace"
    calls.write_text(CALLS)
    with data.open("r+") as file:
        for lock in (fcntl.flock, fcntl.lockf):
            lock(file, fcntl.LOCK_EX)
            text = given_up(loadstone, tree, "replay", calls)
            assert f"{data}: is locked by process {os.getpid()}, which must end first" in text
            lock(file, fcntl.LOCK_UN)
    with locked(tree / "deep"):
        assert f"{tree}/deep: is locked by process" in given_up(loadstone, tree, "replay", calls)
    assert (data.read_text(), other.read_text()) == ("rows", "mine")
    loadstone("replay", calls, "--on", tree, "--allow-destroy", tree)
    assert not data.exists()


@pytest.mark.root
@pytest.mark.parametrize(
    "hidden", ["unshare -pf --mount-proc", "unshare -m bash -c 'umount -l /proc && exec \"$@\"' -"]
)
def test_locks_of_others_are_known_in_a_container(tmp_path, need_root, need_tools, hidden):
    """There proc(5) tells of no process outside, or is not there."""
    need_tools("unshare")
    tree, calls = tmp_path / "tree", tmp_path / "t.strace"
    (tree / "deep").mkdir(parents=True)
    data = tree / "deep/data"
    data.write_bytes(b"x" * (1 << 20))
    calls.write_text(CALLS)
    cli = f"{hidden} {sys.executable} -m loadstone"
    with data.open("r+") as file:
        for lock in (fcntl.flock, fcntl.lockf):
            lock(file, fcntl.LOCK_EX)
            writes = f"run randwrite --size 1m --requests 9 --on {data} --allow-destroy {data}"
            for words in (f"replay {calls} --on {tree} --allow-destroy {tree}", writes):
                done = subprocess.run(["bash", "-c", f"{cli} {words}"], capture_output=True, text=True)
                assert done.returncode == 1, words
                assert "is locked by a program" in done.stderr or "it holds a lock on it" in done.stderr
            lock(file, fcntl.LOCK_UN)
    assert data.read_bytes() == b"x" * (1 << 20)


@pytest.mark.root
def test_the_image_of_a_loop_device_is_not_removed(tmp_path, loadstone, need_root, need_tools):
    need_tools("losetup")
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    image, other = tree / "deep/image", tree / "file"
    image.write_bytes(bytes(1 << 20))
    other.write_text("mine")
    calls = tmp_path / "t.strace"
    calls.write_text(CALLS)
    find = ["losetup", "--find", "--show", image]
    device = subprocess.run(find, check=True, capture_output=True, text=True).stdout.strip()
    try:
        text = given_up(loadstone, tree, "replay", calls)
        assert f"{image}: is in use by {device}; detach it first" in text
        assert other.read_text() == "mine"
    finally:
        subprocess.run(["losetup", "-d", device], check=True)
    loadstone("replay", calls, "--on", tree, "--allow-destroy", tree)
    assert not image.exists() and not other.exists()


def test_a_log_and_a_state_are_two_files(tmp_path, loadstone):
    words = ("run", "randrw", "--on", tmp_path / "t", "--size", "1m", "--requests", 10)
    done = loadstone(*words, "--log", tmp_path / "x", "--verify-state", tmp_path / "x", status=1)
    assert "is to be the log and the state of the verification" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_names_of_one_target_are_refused(tmp_path, loadstone):
    trace = tmp_path / "t.spc"
    trace.write_text("".join(f"{i % 2},{i * 8},4096,{'rw'[i % 3 == 0]},{i / 1000}\n" for i in range(100)))
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(bytes(1 << 20))
    os.link(one, other)
    words = (
        "replay",
        trace,
        "--map",
        f"0={one}",
        "--map",
        f"1={other}",
        "--offsets",
        "wrap",
        "--pace",
        "max",
    )
    done = loadstone(*words, "--allow-destroy", one, "--allow-destroy", other, status=1)
    assert f"is the same as {one}" in done.stderr and one.read_bytes() == bytes(1 << 20)


def test_a_file_that_another_program_has_locked_is_no_target(tmp_path, loadstone):
    """As virtual machines and databases lock theirs: by records, and not as a whole."""
    target, jobs = tmp_path / "f", tmp_path / "j.fio"
    target.write_bytes(b"x" * (1 << 20))
    jobs.write_text("[f]\nrw=randwrite\nsize=1m\nruntime=1\n")
    code = (
        "import fcntl, os, sys, time\nfd = os.open(sys.argv[1], os.O_RDWR)\nfcntl.lockf(fd, fcntl.LOCK_EX)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code + "print(1, flush=True)\ntime.sleep(60)", target], stdout=subprocess.PIPE
    )
    try:
        holder.stdout.readline()
        words = ["--size", "1m", "--requests", 9, "--allow-destroy", target]
        told = loadstone("run", "randwrite", "--on", target, *words, status=1).stderr
        assert f"is locked by process {holder.pid}" in told
        jobs.write_text("[f]\nrw=randwrite\nsize=1m\nruntime=1\nfilename=f\n")
        told = loadstone("run", jobs, "--on", tmp_path, "--allow-destroy", target, status=1).stderr
        assert f"is locked by process {holder.pid}" in told
        # Who only reads overwrites nothing.
        loadstone("run", "randread", "--on", target, "--requests", 9)
    finally:
        holder.kill()
        holder.communicate()
    assert target.read_bytes() == b"x" * (1 << 20)


@pytest.mark.root
def test_a_device_locked_through_another_node_is_no_target(tmp_path, loadstone, need_root, alone):
    """Virtual machines have nodes of their own, and locks of fcntl(2) belong to the node."""
    os.mknod(tmp_path / "disk", 0o600 | stat.S_IFBLK, os.stat(alone).st_rdev)
    classic = "fcntl.lockf(fd, fcntl.LOCK_EX, 100, 0)"
    # As qemu locks: by the open file (F_OFD_SETLK of fcntl.h).
    of_file = "fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 100, 1, 0))"
    for lock in (classic, of_file):
        code = f"import fcntl, os, struct, sys, time\nfd = os.open(sys.argv[1], os.O_RDWR)\n{lock}\n"
        words = [sys.executable, "-c", code + "print(1, flush=True)\ntime.sleep(60)", tmp_path / "disk"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
            try:
                holder.stdout.readline()
                asked = ("--on", alone, "--allow-destroy", alone, "--requests", 9)
                told = loadstone("run", "randwrite", *asked, status=1).stderr
                assert f"is locked by process {holder.pid}" in told
                loadstone("run", "randread", "--on", alone, "--requests", 9)
            finally:
                holder.kill()
    loadstone("run", "randwrite", *asked)


@pytest.mark.root
def test_a_partition_is_made_of_the_image_of_its_disk(tmp_path, loadstone, need_root, need_tools, alone):
    """Its number is its own, so what lies below it was not looked at."""
    need_tools("losetup", "addpart", "delpart", "mkfs.ext4")
    image = subprocess.run(
        ["losetup", "-nO", "BACK-FILE", alone], capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run(["addpart", alone, "1", "2048", "32768"], check=True)
    part = f"{alone}p1"
    asked = ("run", "randwrite", "--on", part, "--allow-destroy", part, "--requests", 9)
    try:
        with open(image, "rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            told = loadstone(*asked, status=1).stderr
            assert f"is made of {image}, which is locked by process {os.getpid()}" in told
        with open(alone, "rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            told = loadstone(*asked, status=1).stderr
            assert f"is made of a device that is locked by process {os.getpid()}" in told
        words = ["losetup", "-f", "--show", "-o", "1048576", image]
        other = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        try:
            told = loadstone(*asked, status=1).stderr
            assert f"is made of the same file as {other}" in told
        finally:
            subprocess.run(["losetup", "-d", other], check=True)
        loadstone(*asked)
    finally:
        subprocess.run(["delpart", alone, "1"], check=True)


@pytest.mark.root
def test_another_container_does_not_empty_the_tree_of_a_run(
    tmp_path, loadstone, need_root, need_tools, alone
):
    """In a pid namespace proc(5) tells no lock of others, so each is tried."""
    need_tools("unshare")
    calls, tree = tmp_path / "t.strace", tmp_path / "volume/tree"
    calls.write_text(CALLS)
    tree.mkdir(parents=True)
    inside = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "loadstone"]
    held = os.open(tree, os.O_RDONLY)
    node = os.open(alone, os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        fcntl.lockf(node, fcntl.LOCK_EX)
        for words in (
            ["replay", calls, "--on", tree.parent, "--allow-destroy", tree.parent, "--pace", "max", "--yes"],
            ["run", "randwrite", "--on", alone, "--allow-destroy", alone, "--requests", "9"],
        ):
            done = subprocess.run([*inside, *map(str, words)], capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and "is locked by a program that is not seen" in done.stderr, (
                done.stderr
            )
    finally:
        os.close(held)
        os.close(node)
    assert tree.is_dir()


def test_files_of_the_standard_streams_stay(tmp_path):
    tree, calls = tmp_path / "tree", tmp_path / "t.strace"
    tree.mkdir()
    calls.write_text(CALLS)
    told = tree / "told.json"
    words = [sys.executable, "-m", "loadstone", "replay", calls, "--on", tree, "--allow-destroy", tree]
    with told.open("w") as out:
        done = subprocess.run([*words, "--pace", "max"], stdout=out, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and f"holds {told}, where the output goes" in done.stderr and told.exists()
    target = tmp_path / "f"
    words = [sys.executable, "-m", "loadstone", "run", "randwrite", "--on", target, "--size", "1m"]
    with target.open("a") as out:
        done = subprocess.run(
            [*words, "--requests", "9", "--allow-destroy", target],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and "where the output goes" in done.stderr and target.stat().st_size == 0


def test_an_archive_is_not_removed_by_what_unpacks_it(tmp_path, loadstone):
    tree, packed = tmp_path / "tree", tmp_path / "x.tar"
    subprocess.run(["tar", "cf", packed, "-C", "/etc", "hostname"], check=True)
    words = ["run", "tar-extract", "--on", tree]
    loadstone(*words, "-D", f"archives={packed}")
    inside = tree / "unpacked/x.tar"
    packed.rename(inside)
    told = loadstone(*words, "-D", f"archives={inside}", "--allow-destroy", tree, status=1).stderr
    assert f"holds {inside}, which the run reads" in told and inside.exists()


def test_a_capture_is_known_by_what_its_files_share(tmp_path, loadstone, root):
    base = tmp_path / "c"
    loadstone("trace", "convert", root / "examples/loop0.parquet", "-o", base, "--to", "blktrace")
    part = tmp_path / "c.blktrace.0"
    before = part.read_bytes()
    words = ["--on", part, "--allow-destroy", part, "--offsets", "wrap", "--pace", "max"]
    assert "which the run reads" in loadstone("replay", base, *words, status=1).stderr
    assert part.read_bytes() == before


@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_what_is_locked_in_a_set_stays_without_leave_too(tmp_path, loadstone, kind):
    tree = tmp_path / "tree"
    words = ["run", "varmail", "--on", tree, "-D", "nfiles=20", "-D", "nthreads=1", "--duration", "200ms"]
    loadstone(*words)
    held = next(path for path in tree.rglob("0000*") if path.is_file())
    fd = os.open(held, os.O_RDWR)
    try:
        getattr(fcntl, kind)(fd, fcntl.LOCK_EX)
        told = loadstone(*words, status=1).stderr
    finally:
        os.close(fd)
    assert f"{held}: is locked by process {os.getpid()}" in told
    assert held.exists()
