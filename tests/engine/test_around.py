"""What surrounds a load, for real: remounts, memory limits, priorities, advice, arrivals of a trace."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import resource
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import loadstone
from loadstone import Error
from loadstone.bundle import table
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_replay, plan_uniform

MIB = 1 << 20


def sh(*words):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout.strip()


def cached(path):
    """Bytes of a file that are in the page cache (mincore(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    size = os.path.getsize(path)
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    with open(path, "rb") as file:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        try:
            assert libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), pages) == 0
        finally:
            libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


def command(*words, before=()):
    """Runs the command line of the package under test; returns what it printed and the bytes it read."""
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(loadstone.__file__))}
    blocks = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    words = [*before, sys.executable, "-c", "from loadstone.cli import main; main()", *words]
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, env=env, check=False, timeout=300
    )
    return done, (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - blocks) * 512


def _image(path):
    with path.open("wb") as file:
        file.truncate(96 * MIB)
    sh("mkfs.ext4", "-q", "-F", path)
    return path


@pytest.fixture
def disk(tmp_path, need_root, need_tools):
    """A file system of its own, its mount point."""
    need_tools("losetup", "mkfs.ext4")
    mount = tmp_path / "mnt"
    mount.mkdir()
    # The loop device goes away with its last user, as those of mount -o loop do.
    sh("mount", "-o", "loop,noatime,nodev,data=writeback", _image(tmp_path / "image"), mount)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", mount], check=False)


def options_of(mount):
    return sh("findmnt", "-n", "-o", "SOURCE,FSTYPE,OPTIONS,PROPAGATION", mount)


def reads(target, **more):
    options = {"requests": 300, "cache": "remount", "backend": "sync", "depth": 2, **more}
    return plan_uniform("randread", target, RunOptions(**options))


@pytest.mark.root
def test_a_remount_leaves_nothing_cached_and_everything_as_it_was(disk):
    target, before = disk / "file", options_of(disk)
    plan = reads(target, size=8 * MIB)
    assert [step["step"] for step in plan["steps"]] == ["prepare", "remount", "run"]
    summary = execute(plan)["summary"]
    assert summary["errors"] == 0 and summary["requests"] == 300
    assert f"unmounted {disk} and mounted it again" in summary["notes"]
    assert options_of(disk) == before
    # Of the 8 MiB that were filled only what was read is there, with what was read ahead.
    assert 0 < cached(target) < 8 * MIB
    cold = {**plan, "workers": [{**plan["workers"][0], "requests": 1}]}
    execute({**cold, "steps": plan["steps"][1:], "targets": [{**plan["targets"][0], "prepare": "none"}]})
    assert cached(target) <= MIB


@pytest.mark.root
@pytest.mark.parametrize(
    ("above", "kind"), [("shared", "private"), ("private", "shared"), ("shared", "shared")]
)
def test_a_remount_keeps_how_mounts_spread(disk, above, kind):
    """A new mount has it of the one that it lies on, and a private one was shared afterwards."""
    parent = disk.parent
    sh("mount", "--bind", parent, parent)
    try:
        sh("mount", f"--make-{above}", parent)
        inner = parent / "inner"
        inner.mkdir()
        sh("mount", "-o", "loop", _image(parent / "inner.img"), inner)
        sh("mount", f"--make-{kind}", inner)
        before = options_of(inner)
        assert kind in before
        assert execute(reads(inner / "file", size=MIB))["summary"]["errors"] == 0
        assert options_of(inner) == before
    finally:
        subprocess.run(["umount", parent / "inner"], check=False)
        sh("umount", "--lazy", parent)


@pytest.mark.root
def test_a_remount_with_programs(disk):
    """Roots of sets are open all the time, and are exchanged under the program's feet."""
    plan = {
        "version": 1,
        "targets": [{"id": "t", "kind": "tree", "path": str(disk / "tree")}],
        "sets": [
            {"id": "s", "target": "t", "path": "s", "entries": 50, "size": 65536, "width": 10, "present": 1}
        ],
        "workers": [
            {
                "source": {
                    "kind": "program",
                    "ops": [
                        {"name": "all", "act": "read_whole", "set": "s"},
                        {"name": "end", "act": "close"},
                    ],
                },
                "backend": "posix",
                "depth": 2,
            }
        ],
        "steps": [{"step": "prepare"}, {"step": "remount"}, {"step": "run", "duration_ns": 200_000_000}],
    }
    summary = execute(check(plan))["summary"]
    assert summary["errors"] == 0 and summary["requests"] > 10 and not summary["failure"]


@pytest.mark.root
def test_a_remount_with_a_tree_of_files(disk, root):
    plan = plan_replay(
        root / "tests/data/nfs-session.pcap.gz", disk / "tree", RunOptions(pace="max", cache="remount")
    )
    summary = execute(plan)["summary"]
    assert summary["errors"] == 0 and summary["requests"] == 121
    assert f"unmounted {disk} and mounted it again" in summary["notes"]


@pytest.mark.root
def test_a_file_system_in_use_is_not_touched(disk):
    target, before = disk / "file", options_of(disk)
    said = f"this process has {disk / 'held'} open; end that, or use `cache` drop"
    with open(disk / "held", "w"), pytest.raises(Error, match=said):
        execute(reads(target, size=8 * MIB))
    # It was seen before anything was made.
    assert sorted(os.listdir(disk)) == ["held", "lost+found"]
    sleeper = subprocess.Popen(["sleep", "60"], cwd=disk)
    try:
        with pytest.raises(Error, match=rf"process {sleeper.pid} \(.*\) has {disk} open"):
            execute(reads(target, size=8 * MIB))
    finally:
        sleeper.kill()
        sleeper.wait()
    inside = disk / "inside"
    inside.mkdir()
    sh("mount", "-t", "tmpfs", "none", inside)
    try:
        with pytest.raises(Error, match=f"{inside} is mounted inside; unmount that first"):
            execute(reads(target, size=8 * MIB))
    finally:
        sh("umount", inside)
    assert options_of(disk) == before and not target.exists()


@pytest.mark.root
def test_a_file_system_that_becomes_busy_stays_mounted(disk):
    """Taken between the trial and the remount itself: the run ends, and nothing is left unmounted."""
    plan = reads(disk / "file", size=64 * MIB, duration=1.0)
    held = []

    def hold():
        # The trial is over once there is a target.
        while not (disk / "file").exists():
            time.sleep(0.001)
        held.append(os.open(disk / "held", os.O_WRONLY | os.O_CREAT))

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        with pytest.raises(Error, match=r"held open; end that, or use `cache` drop"):
            execute(plan)
    finally:
        thread.join()
        os.close(held[0])
    assert os.path.ismount(disk)


@pytest.mark.usefixtures("need_root")
@pytest.mark.root
def test_what_has_no_file_system_of_its_own(tmp_path):
    sh("mount", "-t", "tmpfs", "none", tmp_path)
    try:
        with pytest.raises(Error, match="tmpfs does not lie on a block device"):
            execute(reads(tmp_path / "file", size=MIB))
        assert not os.listdir(tmp_path)
    finally:
        sh("umount", tmp_path)
    with pytest.raises(Error, match="the target null: performs and keeps nothing; name a file or a device"):
        plan_uniform("randread", "null:", RunOptions(requests=1, cache="remount"))


def group():
    """Memory cgroup of this process, or why it has none that may be used."""
    plan = plan_uniform("randread", "null:", RunOptions(requests=1, memory_limit=64 * MIB))
    try:
        return execute(plan)["summary"]["notes"][-1]
    except Error as error:
        assert str(error).startswith("limiting memory: ")
        pytest.skip(str(error))


def test_a_memory_limit_holds(tmp_path):
    """A file that is larger than the limit is read twice from the disk, and one that is not only once."""
    before = Path("/proc/self/cgroup").read_text()
    note = group()
    assert note.startswith("memory was limited to 64.0 MiB by a cgroup (version ")
    assert Path("/proc/self/cgroup").read_text() == before
    target = tmp_path / "file"
    target.write_bytes(os.urandom(MIB) * 240)
    if sh("stat", "-f", "-c", "%T", tmp_path) == "tmpfs":
        pytest.skip("a file system on a disk")
    twice = 2 * 240
    words = ["run", "read", "--on", target, "--bs", "1m", "--requests", twice, "--depth", 1]
    free, once = command(*words, "--backend", "sync", "--json")
    assert free.returncode == 0, free.stderr
    assert cached(target) == 240 * MIB and once < 300 * MIB
    limited, read = command(*words, "--backend", "sync", "--json", "--memory-limit", "96m")
    assert limited.returncode == 0, limited.stderr
    assert read > 400 * MIB
    assert cached(target) <= 96 * MIB
    notes = json.loads(limited.stdout)["notes"]
    assert any(one.startswith("memory was limited to 96.0 MiB") and "limit was met" in one for one in notes)


@pytest.mark.slow
def test_a_limit_that_requests_of_a_trace_outgrow_is_refused(tmp_path, root):
    words = ["replay", root / "examples/loop0.parquet", "--on", tmp_path / "t", "--size", "256m", "--yes"]
    words += ["--offsets", "wrap", "--pace", "x8", "--memory-limit"]
    small, _ = command(*words, "128m")
    assert small.returncode == 1
    assert "--memory-limit: this takes" in small.stderr and "256 requests in flight" in small.stderr
    assert not (tmp_path / "t").exists()
    enough, _ = command(*words, re.search(r"at least (\d+m)", small.stderr).group(1))
    assert enough.returncode == 0, enough.stderr


@pytest.mark.slow
@pytest.mark.root
def test_a_limit_holds_what_is_drawn_first_and_what_is_verified(tmp_path, root, need_root):
    """Both asked the host for memory and not the group that the run is in: the kernel killed it."""
    on = ["--on", tmp_path / "t", "--yes", "--memory-limit"]
    verify = ["run", "randwrite", "--size", "1g", "--requests", "9", "--no-fill", "--verify-unit", "512"]
    known, _ = command(*verify, *on, "64m")
    assert known.returncode == 1 and not (tmp_path / "t").exists()
    assert "--memory-limit: this takes" in known.stderr
    assert "2097152 blocks of 512 bytes are verified" in known.stderr
    # What requests in flight take and what is kept of blocks fit each, and not both.
    words = ["run", "randwrite", "--bs", "512k", "--depth", "76", "--backend", "sync", "--direct"]
    words += ["--size", "900m", "--duration", "1s", "--no-fill", "--verify-unit", "512"]
    both, _ = command(*words, *on, "64m")
    assert both.returncode == 1, both.stderr
    enough, _ = command(*words, *on, re.search(r"at least (\d+m)", both.stderr).group(1))
    assert enough.returncode == 0, enough.stderr
    (tmp_path / "t").unlink()
    small, large = tmp_path / "m.mdh", tmp_path / "large.mdh"
    command("model", "fit", root / "examples/loop0.parquet", "-o", small)
    # 10.6 million requests of 56 bytes each.
    command("model", "scale", small, "--rate", "x100", "-o", large)
    words = ["run", large, "--size", "64m", "--offsets", "wrap", "--pace", "max", "--depth", "4"]
    drawn, _ = command(*words, "--duration", "1s", "--json", *on, "300m")
    assert drawn.returncode == 0, drawn.stderr
    summary = json.loads(drawn.stdout)
    assert 0 < summary["drawn_first"] < 5_000_000 and summary["requests"] > 0


@pytest.mark.slow
def test_a_limit_that_the_threads_outgrow_is_refused(tmp_path):
    """The kernel would kill the run, and its results with it."""
    small = command("run", "webproxy", "--on", tmp_path / "set", "--duration", "1s", "--memory-limit", "80m")[
        0
    ]
    assert small.returncode == 1
    assert "--memory-limit: this takes about 12" in small.stderr and "at least 1" in small.stderr
    least = re.search(r"at least (\d+m)", small.stderr).group(1)
    enough, _ = command(
        "run", "webproxy", "--on", tmp_path / "set", "--duration", "1s", "--memory-limit", least
    )
    assert enough.returncode == 0, enough.stderr


@pytest.mark.root
def test_what_lies_at_the_path_of_an_image_now_is_not_opened(tmp_path, need_root, need_tools):
    """Caches of the image were dropped by its path, where a pipe may be by now."""
    need_tools("losetup", "mkfs.ext4")
    mount, image = tmp_path / "mnt", _image(tmp_path / "image")
    mount.mkdir()
    sh("mount", "-o", "loop", image, mount)
    try:
        image.unlink()
        os.mkfifo(tmp_path / "image (deleted)")
        os.mkfifo(image)
        done, _ = command("run", "randread", "--on", mount / "t", "--size", "1m", "--requests", 9, "--yes")
        assert done.returncode == 0, done.stderr
    finally:
        sh("umount", mount)


def test_no_group_is_left_after_a_failure(tmp_path):
    group()
    before = Path("/proc/self/cgroup").read_text()
    plan = plan_uniform("randread", tmp_path / "new", RunOptions(size=MIB, requests=1, memory_limit=64 * MIB))
    target = {**plan["targets"][0], "path": str(tmp_path / "none" / "new")}
    with pytest.raises(Error, match="cannot be made"):
        execute({**plan, "targets": [target]})
    assert Path("/proc/self/cgroup").read_text() == before


def test_the_group_of_a_run_that_was_killed_is_removed_by_the_next():
    group()
    words = "import loadstone\n"
    words += f"options = loadstone.RunOptions(duration=60.0, memory_limit={64 * MIB})\n"
    words += "loadstone.run(loadstone.job('randread', 'null:', options))"
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(loadstone.__file__))}
    with subprocess.Popen([sys.executable, "-c", words], env=env) as child:
        own = Path(f"/proc/{child.pid}/cgroup")
        while "/loadstone-" not in (groups := own.read_text()):
            assert child.poll() is None
            time.sleep(0.02)
        child.kill()
    name = next(line for line in groups.splitlines() if "/loadstone-" in line).rpartition("/")[2]
    mounted = sh("findmnt", "-n", "-o", "TARGET", "-t", "cgroup,cgroup2").splitlines()

    def left():
        return [path for at in mounted for path in Path(at).rglob(name)]

    assert len(left()) == 1
    group()
    assert not left()


def test_limits_need_a_policy():
    with pytest.raises(Error, match="`cache` none: with `memory_limit`"):
        plan_uniform("randread", "null:", RunOptions(requests=1, cache="none", memory_limit=64 * MIB))
    with pytest.raises(Error, match="`memory_limit`: is 1048576 bytes; use at least 67108864"):
        plan_uniform("randread", "null:", RunOptions(requests=1, memory_limit=MIB))


def test_threads_have_the_priorities_of_the_plan():
    plan = plan_uniform(
        "randread",
        "null:",
        RunOptions(
            duration=1.0, rate=1000, nice=7, ioprio="best-effort:6", cpus=[os.sched_getaffinity(0).pop()]
        ),
    )
    found = {}

    def look(live):
        for thread in os.listdir("/proc/self/task"):
            try:
                task = Path("/proc/self/task", thread)
                name = (task / "comm").read_text().strip()
                nice = int((task / "stat").read_text().rpartition(")")[2].split()[16])
            except FileNotFoundError:
                continue
            ioprio = ctypes.CDLL(None).syscall(
                {"x86_64": 252, "aarch64": 31}[os.uname().machine], 1, int(thread)
            )
            found[name] = (nice, ioprio, len(os.sched_getaffinity(int(thread))))

    execute(plan, look)
    assert found["loadstone-w0.0"] == (7, 2 << 13 | 6, 1)
    assert found["loadstone-run"][0] == os.getpriority(os.PRIO_PROCESS, 0)


def test_priorities_that_cannot_be_read():
    for text in ("fast", "idle:x", "best-effort:-1", ""):
        with pytest.raises(Error, match="write idle, best-effort:LEVEL or realtime:LEVEL"):
            plan_uniform("randread", "null:", RunOptions(requests=1, ioprio=text))
    with pytest.raises(Error, match=r"realtime:LEVEL, 0 \(highest\) to 7"):
        plan_uniform("randread", "null:", RunOptions(requests=1, ioprio="realtime:8"))


@pytest.mark.usefixtures("need_root")
@pytest.mark.root
@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--nice", "-5"], "setting the niceness -5: Permission denied"),
        (["--ioprio", "realtime:0"], "setting the I/O priority Realtime, level 0: Operation not permitted"),
    ],
)
def test_what_the_kernel_refuses_is_said_before_anything_is_made(tmp_path, need_tools, option, said):
    need_tools("setpriv")
    target = tmp_path / "file"
    weaker = ["setpriv", "--bounding-set", "-sys_nice,-sys_admin", "--inh-caps", "-sys_nice,-sys_admin"]
    done, _ = command(
        "run", "randread", "--on", target, "--size", "1m", "--requests", 1, *option, before=weaker
    )
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert not target.exists()


def test_advice_of_random_reads_stops_reading_ahead(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(os.urandom(MIB) * 16)
    if sh("stat", "-f", "-c", "%T", tmp_path) == "tmpfs":
        pytest.skip("a file system on a disk")
    kept = {}
    for advice in ("normal", "random"):
        execute(
            plan_uniform("read", target, RunOptions(requests=16, depth=1, backend="sync", fadvise=advice))
        )
        kept[advice] = cached(target)
    assert kept["random"] == 16 * 4096 < kept["normal"]
    with pytest.raises(Error, match=r"is for the page cache"):
        plan_uniform("read", target, RunOptions(requests=1, direct=True, fadvise="random"))


def due(plan, tmp_path):
    """When the requests of a plan were to go out, ns, from its log."""
    log = tmp_path / "log.parquet"
    summary = execute({**plan, "log": str(log)})["summary"]
    assert summary["errors"] == 0 and not summary["failure"]
    times = np.sort(table.read(log, ["intended"])["intended"])
    log.unlink()
    return times


def test_arrivals_at_the_times_of_a_trace(tmp_path):
    """Over and over, as they are or stretched to a rate; a mean gap lies between the last and the first."""
    source = tmp_path / "times.csv"
    base, times = 128166372000000000, [0, 10, 40, 300]
    lines = [f"{base + t * 1000},src,0,Read,0,4096,100" for t in times]
    source.write_text("\n".join(lines) + "\n")
    # In steps of 100 us; the period is 300 of these and a mean gap of 100.
    wanted = np.array([*times, *(400 + t for t in times), 800]) * 100_000
    plan = plan_uniform("randread", "null:", RunOptions(requests=9, arrival=f"trace:{source}"))
    assert plan["workers"][0]["pace"] == {"kind": "open", "speed": 1.0}
    assert due(plan, tmp_path).tolist() == wanted.tolist()
    fast = plan_uniform("randread", "null:", RunOptions(requests=9, arrival=f"trace:{source}", rate=1000))
    assert due(fast, tmp_path).tolist() == (wanted // 10).tolist()
    with pytest.raises(Error, match="there is no such trace"):
        plan_uniform("randread", "null:", RunOptions(requests=9, arrival="trace:none.csv"))
    source.write_text(lines[0] + "\n")
    with pytest.raises(Error, match="has no times that requests could arrive at"):
        execute(plan_uniform("randread", "null:", RunOptions(requests=9, arrival=f"trace:{source}")))


def test_each_worker_has_a_rate_and_a_law_of_its_own(tmp_path):
    plan = plan_uniform("randread", "null:", RunOptions(duration=1.0, rate=1000))
    (first,) = plan["workers"]
    worker = {
        **first,
        "source": {**first["source"], "rate": 4000.0, "arrival": {"kind": "gamma", "shape": 0.5}},
    }
    worker["source"]["reads"] = 0.0
    closed = {**first, "source": {**first["source"], "rate": 0.0}, "pace": {"kind": "closed"}, "requests": 50}
    plan["workers"] = [first, worker, closed]
    log = tmp_path / "log.parquet"
    outcome = execute({**plan, "log": str(log)})
    rows = table.read(log, ["op", "intended"])
    op, at = rows["op"], rows["intended"]
    writes, reads = np.diff(np.sort(at[op == 1])), np.sort(at[op == 0])
    # 4,000 gaps of squared variation 2: five standard deviations of their number.
    assert abs(len(writes) - 4000) < 5 * np.sqrt(2 * 4000)
    assert 1.5 < writes.var() / writes.mean() ** 2 < 2.6
    # The last of 1,000 may come too late for the end of the run.
    assert np.isin(np.arange(990) * 1_000_000, reads).all() and 1040 <= len(reads) <= 1050
    assert outcome["summary"]["requests"] == len(at)


def warm(path, size=4 * MIB):
    """A file that is cached as a whole."""
    path.write_bytes(os.urandom(size))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while file.read(MIB):
            pass
    assert cached(path) == size
    return path


def one_read(target, cache):
    return plan_uniform(
        "randread", target, RunOptions(requests=1, cache=cache, backend="sync", depth=1, fadvise="random")
    )


def test_only_the_pages_of_the_target_are_dropped(tmp_path):
    target, other = warm(tmp_path / "target"), warm(tmp_path / "other")
    done = execute(one_read(target, "drop"))["summary"]
    assert "synced and dropped the pages of 1 file or device" in done["notes"]
    assert cached(target) == 4096, "what the one request read"
    assert cached(other) == 4 * MIB


def test_pages_of_all_files_of_a_directory_are_dropped(tmp_path):
    """Links in it are not followed, and what is no file is left alone."""
    home, other = tmp_path / "home", warm(tmp_path / "other")
    (home / "a/b").mkdir(parents=True)
    files = [warm(home / "a/one"), warm(home / "a/b/two")]
    (home / "link").symlink_to(other)
    (home / "folder").symlink_to(tmp_path)
    os.mkfifo(home / "pipe")
    plan = {
        "version": 1,
        "targets": [{"id": "t", "kind": "tree", "path": str(home)}],
        "sets": [{"id": "s", "target": "t", "path": "s", "entries": 1, "size": 4096, "present": 1}],
        "workers": [
            {
                "source": {"kind": "program", "ops": [{"name": "a", "act": "stat", "set": "s"}]},
                "backend": "posix",
                "requests": 1,
            }
        ],
        "steps": [{"step": "prepare"}, {"step": "drop_caches"}, {"step": "run", "duration_ns": 10**8}],
    }
    done = execute(check(plan))["summary"]
    # With the set's own file, and what says that the set was made here.
    assert "synced and dropped the pages of 4 files or devices" in done["notes"]
    assert [cached(file) for file in files] == [0, 0]
    assert cached(other) == 4 * MIB


@pytest.mark.root
def test_pages_below_a_loop_device_are_dropped(disk, tmp_path):
    """What a file on it reads would come from memory otherwise."""
    target = warm(disk / "target")
    with open(tmp_path / "image", "rb") as image:
        while image.read(MIB):
            pass
    assert cached(tmp_path / "image") > 8 * MIB
    done = execute(one_read(target, "drop"))["summary"]
    assert any("below their loop devices" in note for note in done["notes"])
    assert cached(tmp_path / "image") < 4 * MIB


@pytest.mark.root
@pytest.mark.alone
def test_the_host_is_asked_for(tmp_path, need_root):
    target, other = warm(tmp_path / "target"), warm(tmp_path / "other")
    plan = one_read(target, "drop-host")
    assert {"step": "drop_caches", "host": True} in plan["steps"]
    done = execute(plan)["summary"]
    assert any(note.endswith("then all clean caches of the host") for note in done["notes"])
    assert cached(other) == 0


@pytest.mark.root
def test_a_name_that_leads_to_another_device_by_now_is_not_mounted(tmp_path, need_root, need_tools):
    """As after lvrename, or a disk that came back under another letter."""
    need_tools("losetup", "mkfs.ext4")
    mount, name, loops = tmp_path / "mnt", tmp_path / "disk", []
    mount.mkdir()
    try:
        for one in ("a", "b"):
            with (tmp_path / one).open("wb") as file:
                file.truncate(16 * MIB)
            sh("mkfs.ext4", "-q", "-F", tmp_path / one)
            loops.append(sh("losetup", "-f", "--show", tmp_path / one))
        numbers = [os.stat(one).st_rdev for one in loops]
        os.mknod(name, 0o600 | stat.S_IFBLK, numbers[0])
        sh("mount", "-c", name, mount)
        name.unlink()
        os.mknod(name, 0o600 | stat.S_IFBLK, numbers[1])
        with pytest.raises(Error, match=r"its device .*disk is now another one"):
            execute(reads(mount / "file", size=MIB))
        assert os.stat(mount).st_dev == numbers[0]
        name.unlink()
        os.mknod(name, 0o600 | stat.S_IFBLK, numbers[0])
        assert execute(reads(mount / "file", size=MIB))["summary"]["errors"] == 0
    finally:
        subprocess.run(["umount", mount], check=False)
        for one in loops:
            sh("losetup", "-d", one)


@pytest.mark.root
def test_btrfs_is_mounted_again(tmp_path, need_root, need_tools):
    """Its number is of no device, so it is found by its id."""
    need_tools("losetup", "mkfs.btrfs")
    with (tmp_path / "image").open("wb") as file:
        file.truncate(128 * MIB)
    sh("mkfs.btrfs", "-q", tmp_path / "image")
    mount = tmp_path / "mnt"
    mount.mkdir()
    sh("mount", "-o", "loop", tmp_path / "image", mount)
    try:
        summary = execute(reads(mount / "file", size=MIB))["summary"]
        assert f"unmounted {mount} and mounted it again" in summary["notes"]
    finally:
        sh("umount", mount)


@pytest.mark.root
def test_a_device_is_mounted_whatever_bytes_the_place_has(tmp_path, need_root, need_tools):
    """Also where another mount point is no text."""
    need_tools("losetup", "mkfs.ext4")
    odd, mount = os.path.join(os.fsencode(tmp_path), b"odd\xff"), tmp_path / "mnt"
    with (tmp_path / "image").open("wb") as file:
        file.truncate(16 * MIB)
    sh("mkfs.ext4", "-q", "-F", tmp_path / "image")
    os.mkdir(odd)
    mount.mkdir()
    subprocess.run([b"mount", b"-t", b"tmpfs", b"none", odd], check=True)
    try:
        sh("mount", "-o", "loop", tmp_path / "image", mount)
        device = sh("findmnt", "-n", "-o", "SOURCE", mount)
        options = RunOptions(requests=1, allow_destroy=[device])
        with pytest.raises(Error, match=f"is mounted at {mount}"):
            execute(plan_uniform("randwrite", device, options))
        sh("umount", mount)
    finally:
        subprocess.run([b"umount", odd], check=True)


@pytest.mark.root
def test_a_file_system_of_several_devices_stays_mounted(tmp_path, need_root, need_tools):
    """One device was held open in between. The other went away, and nothing could be mounted again."""
    need_tools("losetup", "mkfs.btrfs")
    loops, mount = [], tmp_path / "mnt"
    mount.mkdir()
    try:
        for name in ("a", "b"):
            with (tmp_path / name).open("wb") as file:
                file.truncate(256 * MIB)
            loops.append(sh("losetup", "-f", "--show", tmp_path / name).strip())
        sh("mkfs.btrfs", "-q", *loops)
        sh("mount", loops[0], mount)
        with pytest.raises(Error, match="it lies on several devices"):
            execute(reads(mount / "file", size=MIB))
        assert os.path.ismount(mount)
    finally:
        subprocess.run(["umount", mount], check=False)
        for loop in loops:
            subprocess.run(["losetup", "-d", loop], check=False)
