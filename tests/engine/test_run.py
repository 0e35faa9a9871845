"""``run`` and ``replay`` as commands, and what they leave behind."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadstone import _core
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_uniform

LOOP0 = "examples/loop0.parquet"


def test_help_has_examples(loadstone):
    for verb in ("run", "replay"):
        assert "Example:" in loadstone(verb, "--help").stdout


def test_run_json(loadstone, tmp_path):
    done = loadstone("run", "randread", "--on", tmp_path / "t", "--size", "4m", "--requests", 2000, "--json")
    summary = json.loads(done.stdout)
    assert summary["requests"] == 2000 and summary["ops_per_s"] > 0 and not summary["partial"]
    assert summary["ops"]["read"]["count"] == 2000


def without_close_range():
    """Makes close_range(2) unknown to this process and its children, as before Linux 5.9."""
    load, jump_equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.ENOSYS
    filters = [(load, 0, 0, 0), (jump_equal, 0, 1, 436), (answer, 0, 0, refuse), (answer, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *f) for f in filters))
    program = struct.pack("@HP", len(filters), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((38, 1, 0, 0, 0), (22, 2, ctypes.c_char_p(program))):
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), "prctl")
    nothing = 2**31 - 1
    assert libc.syscall(436, nothing, nothing, 0) and ctypes.get_errno() == errno.ENOSYS


def test_runs_where_threads_cannot_have_their_own_descriptors(loadstone, tmp_path):
    words = ["run", "randread", "--on", tmp_path / "t", "--size", "4m", "--requests", 2000, "--json"]
    done = loadstone(*words, "--backend", "sync", "--depth", 4, before=without_close_range)
    summary = json.loads(done.stdout)
    assert summary["requests"] == 2000 and summary["errors"] == 0


def test_a_replay_leaves_nothing_of_its_trace_in_the_page_cache(loadstone, tmp_path, need_tools):
    need_tools("fincore")
    trace = tmp_path / "long.spc"
    with trace.open("w") as file:
        file.writelines(f"0,{i * 8},4096,r,{i / 1e4:.6f}\n" for i in range(200_000))
        file.flush()
        os.fsync(file.fileno())

    def cached() -> int:
        words = ["fincore", "--bytes", "--noheadings", "--output", "RES", trace]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    os.posix_fadvise(fd := os.open(trace, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    if cached():
        pytest.skip("the file system keeps what it is asked to drop")
    assert trace.read_bytes() and cached() == -(-trace.stat().st_size // 4096) * 4096
    loadstone("replay", trace, "--on", "null:", "--pace", "max")
    assert cached() == 0


def test_replay_shows_a_table_and_lateness(loadstone, root, tmp_path):
    done = loadstone(
        "replay", root / LOOP0, "--on", "null:", "--pace", "x50", "--log", tmp_path / "log.parquet"
    )
    assert "106,099 requests" in done.stdout and "response p50" in done.stdout
    assert "lateness" in done.stdout and "slope" in done.stdout and "106,099 rows" in done.stdout
    # The log is a request table: it can be replayed again.
    again = loadstone("replay", tmp_path / "log.parquet", "--on", "null:", "--pace", "max", "--json")
    assert json.loads(again.stdout)["requests"] == 106_099
    assert (
        "exists"
        in loadstone(
            "replay", root / LOOP0, "--on", "null:", "--log", tmp_path / "log.parquet", status=1
        ).stderr
    )


def test_a_dry_run_prints_a_plan_that_runs(loadstone, root, tmp_path):
    plan = loadstone("replay", root / LOOP0, "--on", "null:", "--pace", "max", "--dry-run").stdout
    (tmp_path / "plan.json").write_text(plan)
    done = loadstone("run", tmp_path / "plan.json", "--json")
    assert json.loads(done.stdout)["requests"] == 106_099


def test_failed_requests_make_the_status(loadstone, tmp_path):
    # Direct requests that are no whole sectors fail.
    keys = "rw=randread\nbs=1000\ndirect=1\nsize=1m\nnumber_ios=50\nfilename=t\n"
    (tmp_path / "x.fio").write_text(f"[a]\n{keys}")
    (tmp_path / "on").mkdir()
    done = loadstone("run", tmp_path / "x.fio", "--on", tmp_path / "on", status=None)
    if "no direct I/O" in done.stderr:
        pytest.skip(f"{tmp_path} is on a file system without direct I/O")
    assert done.returncode == 1
    assert "failed: 50 read requests: EINVAL" in done.stderr and "error: 50 requests failed" in done.stderr


def test_holes_and_existing_targets_are_refused(loadstone, tmp_path):
    target = tmp_path / "sparse"
    with target.open("wb") as file:
        file.truncate(1 << 20)
    assert "hole at byte 0" in loadstone("run", "randread", "--on", target, "--requests", 5, status=1).stderr
    done = loadstone("run", "randwrite", "--on", target, "--requests", 5, status=1)
    assert f"--allow-destroy {target}" in done.stderr
    assert target.stat().st_blocks == 0
    loadstone("run", "randwrite", "--on", target, "--requests", 5, "--allow-destroy", target, "--no-fill")
    # Five places, and what the file system keeps to know where they are.
    assert 0 < target.stat().st_blocks * 512 <= 6 * 4096


def test_a_target_too_small_is_refused(loadstone, root, tmp_path):
    target = tmp_path / "small"
    target.write_bytes(b"x" * 4096)
    done = loadstone("run", "randread", "--on", target, "--requests", 5, "--size", "8k", status=1)
    assert "too small" in done.stderr
    done = loadstone("replay", root / LOOP0, "--on", target, "--allow-destroy", target, status=1)
    assert "use a larger target, or --offsets wrap or scale" in done.stderr
    assert target.read_bytes() == b"x" * 4096


@pytest.mark.parametrize("backend", ["sync", "io_uring"])
def test_ctrl_c_keeps_what_was_measured(loadstone, tmp_path, backend):
    if backend == "io_uring" and (why := _core.uring_refused()):
        pytest.skip(why)
    program = loadstone("--version").args[0]
    words = ["run", "randread", "--on", tmp_path / "t", "--size", "4m", "--duration", "60s", "--json"]
    words += ["--backend", backend, "--out", tmp_path / "bundle"]
    run = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_threads(run.pid)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    summary = json.loads(out)
    assert summary["partial"] and summary["requests"] > 0
    assert b"partial" in err
    assert json.loads((tmp_path / "bundle" / "summary.json").read_text())["partial"]


def test_kill_leaves_nothing_that_looks_whole(loadstone, tmp_path):
    program = loadstone("--version").args[0]
    words = ["run", "randread", "--on", tmp_path / "t", "--size", "4m", "--duration", "60s"]
    words += ["--out", tmp_path / "bundle", "--log", tmp_path / "log.parquet"]
    run = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_threads(run.pid)
    run.kill()
    run.communicate(timeout=30)
    assert not (tmp_path / "bundle").exists() and not (tmp_path / "log.parquet").exists()
    # The next run is not in its way.
    loadstone("run", "randread", "--on", tmp_path / "t", "--requests", 10, "--out", tmp_path / "bundle")
    assert (tmp_path / "bundle" / "summary.json").exists()


def wait_for_threads(pid):
    """Until the workers of a process are there and have run for a moment."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            names = [task.joinpath("comm").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        except FileNotFoundError:
            names = []
        if any(name.startswith("loadstone-w") for name in names):
            time.sleep(0.5)
            return
        time.sleep(0.02)
    raise AssertionError("the run never started")


LEFT = """
import json, os, sys, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy's own thread is none of ours
import numpy
from loadstone import Error, _core
from loadstone.plan import RunOptions
from loadstone.workload import plan_uniform

def state():
    tasks = [open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task")]
    links = [f"/proc/self/fd/{f}" for f in os.listdir("/proc/self/fd")]
    return tasks, sorted(os.readlink(link) for link in links if os.path.lexists(link))

target, backend = sys.argv[1:]
options = {"size": 1 << 22, "requests": 5000, "backend": backend, "depth": 8, "log": target + ".log"}
plan = plan_uniform("randrw", target, RunOptions(**options))
time.sleep(0.5)  # what the checks of the plan started has gone
before = state()
_core.start(json.dumps(plan)).join()
os.unlink(target); os.unlink(target + ".log")
run = _core.start(json.dumps({**plan, "workers": [{**plan["workers"][0], "requests": 0}]}))
run.wait(0.2); run.stop(); run.join()
os.unlink(target); os.unlink(target + ".log")
try:
    _core.start(json.dumps({**plan, "workers": [{**plan["workers"][0], "cpus": [999]}]})).join()
    raise SystemExit("was not refused")
except Error:
    pass
dropped = _core.start(json.dumps({**plan, "targets": [{**plan["targets"][0], "allow_destroy": True}]}))
del dropped
end = time.monotonic() + 10
while state() != before and time.monotonic() < end:
    time.sleep(0.05)  # a joined thread leaves /proc a moment later
assert state() == before, (before, state())
"""


@pytest.mark.parametrize("backend", ["sync", "io_uring"])
def test_no_thread_and_no_descriptor_stays(tmp_path, backend):
    if backend == "io_uring" and (why := _core.uring_refused()):
        pytest.skip(why)
    subprocess.run([sys.executable, "-c", LEFT, str(tmp_path / "t"), backend], check=True, timeout=60)


def test_live_figures_and_progress(tmp_path):
    plan = plan_uniform("randread", "null:", RunOptions(rate=5000, duration=60))
    run = _core.start(json.dumps(plan))
    seen = []
    while not run.wait(0.1) and not (seen and seen[-1]["requests"] > 5000):
        seen.append(run.live())
    run.stop()
    handle = run.progress_handle()
    outcome = run.join()
    last = seen[-1]
    assert (
        last["phase"] == "running" and 0 < last["fraction"] < 1 and last["bytes"] == last["requests"] * 4096
    )
    (kind,) = last["kinds"]
    assert kind["op"] == 0 and kind["name"] is None and kind["requests"] == last["requests"]
    assert len(last["latency_bucket"]) and last["ops_per_s"] > 0
    # Of the last second, not of the whole run.
    assert 0 < last["latency_count"].sum() <= last["requests"]
    assert kind["latency_count"].sum() == last["latency_count"].sum()
    assert handle.value == outcome["summary"]["requests"]


def test_an_outcome_adds_up(root):
    plan = plan_uniform("randrw", "null:", RunOptions(requests=100_000, interval=0.001))
    outcome = execute(plan)
    ops, summary = outcome["ops"], outcome["summary"]
    assert summary["requests"] == ops["count"].sum() == 100_000
    assert summary["bytes"] == ops["bytes"].sum() == 100_000 * 4096
    for kind in ("service", "response"):
        assert len(ops[f"{kind}_offsets"]) == len(ops["count"]) + 1
        assert ops[f"{kind}_offsets"][-1] == len(ops[f"{kind}_bucket"]) == len(ops[f"{kind}_count"])
    assert ops["service_count"].sum() == 100_000 and ops["response_count"].sum() == 0
    assert ops["interval"].max() >= 1
    assert len(outcome["flight"]["mean"]) == len(outcome["flight"]["max"])


REFUSED = """
import ctypes, struct, sys
# A seccomp filter that answers io_uring_setup (425) with EPERM, as container runtimes do.
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
filter = Fprog(len(code), ctypes.addressof(program))
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0, ctypes.get_errno()
from loadstone.cli import main
sys.argv = ["loadstone", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the system call's number is that of x86-64")
def test_without_io_uring_there_is_sync(tmp_path):
    words = [sys.executable, "-c", REFUSED, "run", "randread", "--on", str(tmp_path / "t"), "--size", "4m"]
    words += ["--requests", "100"]
    asked = subprocess.run([*words, "--backend", "io_uring"], capture_output=True, text=True, timeout=60)
    assert asked.returncode == 1 and "use --backend sync" in asked.stderr and "not permitted" in asked.stderr
    assert not (tmp_path / "t").exists()
    best = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, timeout=60)
    assert json.loads(best.stdout)["workers"][0]["backend"] == "sync"


def test_ctrl_c_while_filling_leaves_no_target(loadstone, tmp_path):
    program = loadstone("--version").args[0]
    target = tmp_path / "t"
    words = [program, "run", "randread", "--on", target, "--size", "4g", "--yes", "--requests", "5", "--json"]
    run = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not target.exists() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if run.poll() is not None:
        pytest.skip(f"no room for the target: {run.stderr.read()}")
    time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    summary = json.loads(out)
    assert summary["partial"] and summary["requests"] == 0
    assert not target.exists()
