"""Results survive: full disks, taken names, errors in later runs, and signals."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import loadstone
from loadstone import Error
from loadstone.bundle import Bundle, Series
from loadstone.errors import Kept
from loadstone.workload import job, run
from loadstone.workload.runner import NamedRun, run_plan, run_series

ROOT = Path(__file__).resolve().parents[2]
NULL = ("run", "randread", "--on", "null:", "--size", "1m")
THREE = "[global]\nrw=read\nsize=64k\nbs=4k\n[one]\n[two]\nstonewall\n[three]\nstonewall\n"


def plan(requests=1000, seconds=0.0, target="null:", rate=0.0):
    return {
        "version": 1,
        "seed": 1,
        "interval_ns": 10**8,
        "targets": [{"id": "t", "size": 1 << 20, "kind": "null"}],
        "workers": [
            {
                "source": {"kind": "uniform", "reads": 1.0, "size": 4096, "rate": rate},
                "pace": {"kind": "open", "speed": 1.0} if rate else {"kind": "closed"},
                "backend": "null",
                "depth": 1,
                "requests": requests,
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
            }
        ],
        "steps": [{"step": "run", "duration_ns": int(seconds * 1e9)}],
    }


@pytest.fixture
def small(tmp_path, need_root, need_tools):
    """Makes small file systems of their own: ``small("name", bytes)``."""
    need_tools("mount", "umount")
    made = []

    def mount(name, size):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        made.append(folder)
        return folder

    yield mount
    for folder in filter(os.path.ismount, made):
        subprocess.run(["umount", folder], check=True)


def fill(folder, leave=0):
    """Takes all room but some bytes."""
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
        file.truncate(file.tell() // 4096 * 4096 - leave)


def program():
    built = ROOT / ".venv/bin/loadstone"
    return str(built) if built.exists() else shutil.which("loadstone")


def start(*words, **more):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([program(), *map(str, words)], text=True, **{**pipes, **more})


def hidden(folder):
    return [p.name for p in folder.iterdir() if p.name.startswith(".")]


@pytest.mark.root
def test_a_full_disk_sends_the_bundle_elsewhere_and_says_so(loadstone, small, tmp_path, monkeypatch):
    disk, other = small("disk", "64k"), tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    fill(disk, leave=8192)
    words = (*NULL, "--requests", "1000", "--out", disk / "b")
    done = loadstone(*words, status=1)
    assert "1,000 requests" in done.stdout, "the summary is printed"
    assert "No space left" in done.stderr and f"results are in {other / 'b'}" in done.stderr
    assert Bundle.read(other / "b").summary["requests"] == 1000
    assert [p.name for p in disk.iterdir()] == ["filler"]
    again = loadstone(*words, "--json", status=1)
    assert json.loads(again.stdout)["requests"] == 1000
    assert f"results are in {other / 'b.2'}" in again.stderr and Bundle.read(other / "b.2")


@pytest.mark.root
@pytest.mark.parametrize("leave", range(12, 52, 8))
def test_a_disk_that_fills_at_any_part_of_a_bundle_loses_nothing(
    loadstone, small, tmp_path, monkeypatch, leave
):
    disk, other = small("disk", "128k"), tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    fill(disk, leave=leave << 10)
    done = loadstone(*NULL, "--requests", "1000", "--out", disk / "b", status=None)
    if done.returncode == 0:
        assert Bundle.read(disk / "b").summary["requests"] == 1000
        return
    assert "1,000 requests" in done.stdout and "panic" not in done.stderr
    assert "No space left" in done.stderr and f"results are in {other / 'b'}" in done.stderr
    assert Bundle.read(other / "b").ops.columns["count"].sum() == 1000
    assert [p.name for p in disk.iterdir()] == ["filler"]


@pytest.mark.root
@pytest.mark.parametrize("option", ["--out", "--log"])
def test_a_file_system_that_is_unmounted_during_a_run(option, tmp_path, monkeypatch, need_root, need_tools):
    need_tools("mount", "umount")
    disk, other = tmp_path / "disk", tmp_path / "other"
    disk.mkdir()
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
    run = start(*NULL, "--duration", "2s", "--rate", "1000", option, disk / "b")
    try:
        wait = time.monotonic() + 60
        while not hidden(disk):
            assert time.monotonic() < wait and run.poll() is None
            time.sleep(0.01)
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 1 and "requests" in out
    if option == "--log":
        assert "the log is not written" in err and "its file system unmounted" in err
    else:
        assert f"unmounted during the run; the results are in {other / 'b'}" in err
        assert Bundle.read(other / "b").summary["requests"] > 1000


@pytest.mark.root
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_system_that_shuts_down_during_a_run(jobs, tmp_path, monkeypatch, need_root, need_tools):
    """XFS answers no question about its folders then, unlike ext4."""
    need_tools("mount", "umount", "mkfs.xfs", "xfs_io")
    image, disk, other = tmp_path / "i", tmp_path / "disk", tmp_path / "other"
    disk.mkdir()
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    with image.open("wb") as file:
        file.truncate(400 << 20)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    (tmp_path / "x.fio").write_text("".join(
        f"[{name}]\nstonewall\nrw=read\nsize=1m\nfilename=q\ntime_based\nruntime=2\n" for name in "ab"
    ))  # fmt: skip
    load = (*NULL, "--duration", "2s") if jobs == 1 else ("run", tmp_path / "x.fio", "--on", tmp_path)
    run = start(*load, "--out", disk / "b")
    try:
        wait = time.monotonic() + 60
        begun = (lambda: hidden(disk)) if jobs == 1 else (lambda: list(disk.glob(".b*/01-*/summary.json")))
        while not begun():
            assert time.monotonic() < wait and run.poll() is None
            time.sleep(0.01)
        time.sleep(0.5)
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", disk], check=True)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
        subprocess.run(["umount", "--lazy", disk], check=True)
    assert run.returncode == 1 and "requests" in out
    name = "b" if jobs == 1 else "b-02-run2"
    assert f"cannot be written: Input/output error; the results are in {other / name}" in err
    assert jobs == 1 or "if that can be read again" in err
    assert Bundle.read(other / name).summary["requests"] > 1000


@pytest.mark.root
def test_what_writing_takes_is_loaded_before_the_load_begins(tmp_path):
    """With little address space the libraries that write could not be loaded when the run had ended."""
    code = (
        "import sys; from loadstone import _core; from loadstone.workload import runner; import json\n"
        "begin = _core.start\n"
        "def start(plan):\n"
        "    assert 'arro3.io' in sys.modules\n"
        "    print('begun'); return begin(plan)\n"
        "_core.start = start\n"
        "runner.run_plan(json.loads(sys.argv[1]), sys.argv[2])\n"
    )
    words = [sys.executable, "-c", code, json.dumps(plan()), tmp_path / "b"]
    assert subprocess.run(words, check=True, capture_output=True, text=True).stdout == "begun\n"


def test_where_no_disk_has_room_what_could_be_written_stays(small, need_tools):
    need_tools("unshare")
    if program().startswith(("/tmp/", "/var/tmp/")):
        pytest.skip("the checkout lies in /tmp, which this test mounts something over")
    disk = small("disk", "64k")
    fill(disk, leave=8192)
    # All folders for temporary files are on it, too.
    script = 'mount --bind "$0" /var/tmp; mount --bind "$0" /tmp; cd /tmp; exec "$@"'
    words = (disk, program(), *NULL, "--requests", "1000", "--out", "b")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, *words], capture_output=True, text=True)
    assert done.returncode == 1 and "1,000 requests" in done.stdout
    assert "left in b.unfinished" in done.stderr
    assert (disk / "b.unfinished" / "plan.json").is_file()
    with pytest.raises(Error):
        Bundle.read(disk / "b.unfinished")


@pytest.mark.root
def test_a_series_on_a_full_disk_keeps_all_its_runs(small, tmp_path, monkeypatch):
    disk = small("disk", "3m")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def runs():
        for number in range(1, 6):
            if number == 3:
                fill(disk)
            yield NamedRun(f"r{number}", plan())

    with pytest.raises(Kept, match=r"No space left.*2 runs are kept in") as kept:
        run_series(runs(), disk / "s", kind="study", finish=lambda done, _: {"ended": len(done)})
    series = Series.read(disk / "s")
    assert [run["name"] for run in series.runs] == ["r1", "r2"] and series.summary["ended"] == 2
    assert series.summary["partial"] and "No space left" in series.summary["failure"]
    assert all(bundle.summary["requests"] == 1000 for bundle in series.bundles())
    third = Bundle.read(tmp_path / "s-03-r3")
    assert third.summary["requests"] == 1000 and str(third.path) in str(kept.value)
    assert not hidden(disk) and not hidden(disk / "s")


@pytest.mark.root
def test_a_log_that_fills_its_disk_loses_no_result(loadstone, small, tmp_path):
    disk = small("disk", "64k")
    words = (*NULL, "--requests", "300000", "--log", disk / "log.parquet", "--out", tmp_path / "b")
    done = loadstone(*words, status=1)
    assert "300,000 requests" in done.stdout
    assert "log.parquet" in done.stderr and "No space left" in done.stderr
    found = Bundle.read(tmp_path / "b")
    assert not found.partial and found.summary["requests"] == 300_000
    assert found.summary["log"]["logged"] == 0 and "No space left" in found.summary["log"]["failure"]
    assert list(disk.iterdir()) == []


def test_a_log_whose_place_goes_is_not_called_slow(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    words = ("--rate", "2000", "--duration", "3s", "--log", place / "log")
    run = start(*NULL, *words)
    while not list(place.iterdir()):
        time.sleep(0.01)
    # The first file there may be a trial, before anything is measured.
    time.sleep(1)
    shutil.rmtree(place)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert "the log is lost" in errors and "somebody took the file away" in errors
    assert "too fast" not in errors


def test_of_two_runs_with_one_log_both_are_kept(tmp_path):
    log = tmp_path / "log"
    both = [start(*NULL, "--duration", "1s", "--rate", "100", "--log", log) for _ in range(2)]
    told = [child.communicate(timeout=60)[1] for child in both]
    assert sorted(child.returncode for child in both) == [0, 1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "log.2"]
    assert sum(f"what was to be written is {log}.2" in errors for errors in told) == 1


@pytest.mark.parametrize("broken", ["/dev/full", "pipe"])
def test_output_that_nobody_takes_ends_no_list_of_runs(loadstone, tmp_path, broken):
    """The results go to --out; what cannot be printed is told at the end."""
    jobs, out = tmp_path / "j.fio", tmp_path / "b"
    jobs.write_text("[global]\nsize=1m\nnumber_ios=99\n[a]\nrw=randread\n[b]\nstonewall\nrw=read\n")
    command = [sys.executable, "-m", "loadstone", "run", jobs, "--on", "null:", "--out", out]
    if broken == "pipe":
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
        os.close(write)
    else:
        with open(broken, "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == (141 if broken == "pipe" else 1)
    assert "Traceback" not in done.stderr
    assert len(list(Series.read(out).bundles())) == 2


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("how", ["unmounted", "read-only", "removed"])
def test_a_list_of_runs_whose_place_goes_is_kept_elsewhere(small, tmp_path, monkeypatch, how):
    disk, other = small("disk", "4m"), tmp_path / "other"
    other.mkdir()
    (disk / "sub").mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    jobs = tmp_path / "j.fio"
    jobs.write_text("[global]\nsize=1m\ntime_based\nruntime=1\nrw=randread\n[a]\n[b]\nstonewall\n")
    out = disk / "sub/o"
    run = start("run", jobs, "--on", "null:", "--out", out)
    deadline = time.monotonic() + 60
    while not list(disk.glob("sub/.o.loadstone-*/01-*/summary.json")):
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)
    if how == "unmounted":
        subprocess.run(["umount", "-l", disk], check=True)
    elif how == "read-only":
        # Files that are being written may hold it up.
        while subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True).returncode:
            time.sleep(0.01)
    else:
        shutil.rmtree(disk / "sub")
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1 and "cannot be written" in errors and "/proc/" not in errors
    told = [Path(word.strip(";,.\n")) for word in errors.split() if word.startswith(str(other))]
    assert told and all(path.is_dir() for path in told), errors
    if how == "unmounted":
        assert len(list(Series.read(told[0]).bundles())) == 2
    else:
        found = [
            Bundle.read(path.parent) for path in other.rglob("summary.json") if "-run" in str(path.parent)
        ]
        # What lay in a directory that was removed is gone.
        assert len(found) == (1 if how == "removed" else 2)
        assert all(one.summary["requests"] > 0 for one in found)


def test_two_runs_with_one_name_are_both_kept(tmp_path):
    out = tmp_path / "b"
    both = [start(*NULL, "--duration", "1s", "--seed", seed, "--out", out) for seed in (1, 2)]
    told = [child.communicate(timeout=60) for child in both]
    assert sorted(child.returncode for child in both) == [0, 1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "b.2"]
    assert {Bundle.read(out).plan["seed"], Bundle.read(tmp_path / "b.2").plan["seed"]} == {1, 2}
    assert sum(f"results are in {tmp_path / 'b.2'}" in errors for _, errors in told) == 1
    assert all("requests" in shown for shown, _ in told)


def test_an_error_in_a_later_run_keeps_those_before_it(tmp_path):
    def runs():
        yield NamedRun("a", plan())
        yield NamedRun("b", plan())
        raise Error("no more paper")

    finished = []
    with pytest.raises(Kept, match=r"no more paper; 2 runs are kept in .*/s") as kept:
        run_series(runs(), tmp_path / "s", kind="study", finish=lambda done, _: {"n": len(done)}, force=True)
    series = Series.read(tmp_path / "s")
    assert kept.value.bundle == series.path and kept.value.summary["n"] == 2
    assert series.summary["partial"] and series.summary["failure"] == "no more paper"
    assert [bundle.summary["requests"] for bundle in series.bundles()] == [1000, 1000]

    def broken(done, folder):
        finished.append(len(done))
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        run_series([NamedRun("a", plan())], tmp_path / "t", kind="study", finish=broken)
    assert finished == [1] and Series.read(tmp_path / "t").summary["failure"] == "a defect"


def test_of_a_list_of_runs_none_begins_where_a_later_one_cannot(tmp_path):
    hole = tmp_path / "hole"
    hole.touch()
    os.truncate(hole, 1 << 20)
    later = plan()
    later["targets"][0] |= {"kind": "file", "path": str(hole)}
    later["workers"][0]["backend"] = "sync"
    begun = []
    with pytest.raises(Error, match=r"b: .*hole at byte 0"):
        runs = [NamedRun("a", plan()), NamedRun("b", later)]
        run_series(runs, tmp_path / "s", kind="study", finish=lambda *_: {}, on_run=begun.append)
    assert not begun and [p.name for p in tmp_path.iterdir()] == ["hole"]


def test_an_error_in_the_first_run_leaves_nothing(tmp_path):
    with pytest.raises(Error, match=r"a: .* this build runs 1") as error:
        bad = [NamedRun("a", {**plan(), "version": 99})]
        run_series(bad, tmp_path / "s", kind="study", finish=lambda *_: {})
    assert not isinstance(error.value, Kept) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", [False, True])
def test_runs_that_were_done_are_kept_when_a_later_part_of_a_script_fails(loadstone, tmp_path, out):
    (tmp_path / "w.f").write_text(
        "define fileset name=s,path=$dir,entries=4,dirwidth=3,prealloc,size=8k\n"
        "define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=4k,iters=5\n"
        "flowop finishoncount name=f,value=20 } }\n"
        'run 1 run 1 system "exit 3" run 1\n'
    )
    words = ["run", tmp_path / "w.f", "--on", tmp_path / "d", "--allow-system", "--json"]
    done = loadstone(*words, *(["--out", tmp_path / "b"] if out else []), status=1)
    told = json.loads(done.stdout)
    assert len(told["runs"]) == 2 and told["partial"] and "exit 3: ended with status 3" in told["failure"]
    assert "exit 3: ended with status 3" in done.stderr
    if out:
        assert f"2 runs are kept in {tmp_path / 'b'}" in done.stderr
        assert [bundle.partial for bundle in Series.read(tmp_path / "b").bundles()] == [False, False]


def test_several_runs_are_one_json_object(loadstone, tmp_path):
    (tmp_path / "d").mkdir()
    file = tmp_path / "three.fio"
    file.write_text(THREE)
    for more in ((), ("--out", tmp_path / "b")):
        done = loadstone("run", file, "--on", tmp_path / "d", "--json", *more)
        told = json.loads(done.stdout)
        assert [run["requests"] for run in told["runs"]] == [16, 16, 16]
        assert told["script"] == str(file) and not told["partial"] and told["failure"] is None


def test_after_an_interrupt_no_further_job_begins(tmp_path):
    file = tmp_path / "two.fio"
    file.write_text("[global]\nrw=read\nsize=64k\nruntime=30\ntime_based\n[one]\n[two]\nstonewall\n")
    found = job(file, "null:")
    sent = []

    def on_live(live):
        if live["phase"] == "running" and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    said = []
    done = run(found, progress=on_live, on_run=lambda one: said.append(one.name))
    results = [one.summary for one in done.bundles()]
    assert done.partial and done.summary["partial"] and repr(done).endswith("(partial)>")
    assert said == ["one"] and len(results) == 1 and results[0]["partial"] and results[0]["requests"] > 0
    (tmp_path / "w.f").write_text(
        "define fileset name=s,path=$dir,entries=4,dirwidth=3,prealloc,size=8k\n"
        "define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=4k } }\n"
        'run 30 echo "never" run 30\n'
    )
    sent.clear()
    said.clear()
    done = run(job(tmp_path / "w.f", tmp_path / "d"), progress=on_live, say=said.append)
    results = [one.summary for one in done.bundles()]
    assert said == [] and len(results) == 1 and results[0]["partial"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, status",
    [
        ("SIGINT", 130),
        ("SIGTERM", 143),
        ("SIGHUP", 129),
        ("SIGUSR1", 138),
        ("SIGUSR2", 140),
        ("SIGXCPU", 152),
        ("SIGQUIT", 131),
    ],
)
def test_signals_end_a_run_and_keep_it(tmp_path, number, status):
    out = tmp_path / "b"
    child = start(*NULL, "--duration", "60s", "--out", out)
    while not (found := list(tmp_path.glob(".b.loadstone-*"))):
        time.sleep(0.01)
    time.sleep(0.5)
    child.send_signal(getattr(signal, number))
    shown, errors = child.communicate(timeout=30)
    assert child.returncode == status, errors
    assert "stopped early: interrupted" in shown and "partial" in errors
    bundle = Bundle.read(out)
    assert bundle.partial and bundle.summary["elapsed_ns"] < 30e9
    assert [p.name for p in tmp_path.iterdir()] == ["b"] and found


@pytest.mark.slow
def test_a_limit_of_cpu_time_ends_a_run_and_keeps_it(tmp_path):
    """The kernel sends SIGXCPU each second from the limit on."""
    import resource

    words = [sys.executable, "-m", "loadstone", *map(str, NULL), "--duration", "60s", "--out", tmp_path / "b"]
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (3, 60))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert done.returncode == 152 and "stopped early" in done.stdout, done.stderr
    assert Bundle.read(tmp_path / "b").partial


@pytest.mark.slow
def test_a_hard_limit_of_cpu_time_ends_a_run_and_keeps_it(tmp_path):
    """``ulimit -t`` sets both limits to one second, at which the kernel kills without a word."""
    import resource

    words = [sys.executable, "-m", "loadstone", *map(str, NULL), "--duration", "60s", "--out", tmp_path / "b"]
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (5, 5))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert done.returncode == 152 and Bundle.read(tmp_path / "b").partial, done.stderr


def test_signals_that_a_program_uses_itself_are_left_to_it():
    code = (
        "import os, signal; from loadstone import _signals\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('mine'))\n"
        "with _signals.deferred(): os.kill(os.getpid(), signal.SIGUSR1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "mine\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_load_begins_ends_the_run(number):
    """It comes while the engine looks at the targets, as the trial of a remount does for a while."""
    code = (
        "import json, os, sys; from loadstone import _core; from loadstone.workload import execute\n"
        "from loadstone import _signals\n_signals.install()\n"
        "begin = _core.start\n"
        "def start(plan):\n    os.kill(os.getpid(), int(sys.argv[2])); return begin(plan)\n"
        "_core.start = start\n"
        "try: print(execute(json.loads(sys.argv[1]))['summary']['partial'])\n"
        "except Exception as error: print(error)\n"
    )
    words = [sys.executable, "-c", code, json.dumps(plan(seconds=600)), str(int(number))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "True" in done.stdout or "interrupted" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("out", [True, False])
@pytest.mark.parametrize(
    "numbers, gap",
    [
        (["SIGTERM", "SIGTERM"], 0.0),  # timeout(1)
        (["SIGTERM", "SIGHUP"], 0.0),  # systemd
        (["SIGHUP", "SIGHUP"], 0.01),  # a terminal that closes, and its shell
        (["SIGINT", "SIGTERM"], 0.05),
        (["SIGINT", "SIGINT", "SIGINT"], 0.3),
        (["SIGTERM", "SIGINT"] * 4, 0.2),
    ],
)
def test_signals_that_come_together_are_one(tmp_path, numbers, gap, out):
    words = ["--out", tmp_path / "b"] if out else ["--json"]
    target = tmp_path / "t"
    child = start("run", "randread", "--on", target, "--size", "1m", "--duration", "60s", *words)
    while not target.exists() or target.stat().st_blocks * 512 < 1 << 20:
        time.sleep(0.01)
    time.sleep(1)
    for number in numbers:
        with suppress(ProcessLookupError):
            child.send_signal(getattr(signal, number))
        time.sleep(gap)
    shown, errors = child.communicate(timeout=30)
    sent = {getattr(signal, number) for number in numbers}
    # What comes when all is told ends the process, as nothing is left to do.
    assert child.returncode in {128 + number for number in sent} | {-number for number in sent}, errors
    assert "Traceback" not in errors
    if out:
        assert Bundle.read(tmp_path / "b").summary["requests"] > 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "t"]
    else:
        assert json.loads(shown)["requests"] > 0 and json.loads(shown)["partial"]


def test_nohup_is_obeyed(tmp_path):
    child = start(
        *NULL, "--duration", "1s", "--out", tmp_path / "b",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    while not list(tmp_path.glob(".b.loadstone-*")):
        time.sleep(0.01)
    child.send_signal(signal.SIGHUP)
    child.communicate(timeout=30)
    assert child.returncode == 0 and not Bundle.read(tmp_path / "b").partial


@pytest.mark.parametrize("live", [[], ["--live"]])
def test_a_terminal_that_is_gone_ends_a_run_and_loses_nothing(tmp_path, live):
    """As when a window is closed: SIGHUP, and whatever is printed then fails."""
    control, terminal = os.openpty()
    child = start(
        *NULL, "--duration", "60s", "--out", tmp_path / "b", *live,
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(terminal)
    while not list(tmp_path.glob(".b.loadstone-*")):
        time.sleep(0.01)
    time.sleep(0.5)
    os.close(control)
    child.send_signal(signal.SIGHUP)
    child.wait(30)
    assert child.returncode == 129
    assert Bundle.read(tmp_path / "b").partial


def test_a_run_whose_results_are_being_written_is_not_interrupted(tmp_path):
    """Ctrl-C in the last moments: whenever it comes, what was measured is there."""
    for delay in (0.45, 0.5, 0.52, 0.55, 0.6):
        out = tmp_path / f"b{delay}"
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.setitimer(signal.ITIMER_REAL, delay)
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
            try:
                run_plan(plan(requests=0, seconds=0.5), out)
            except (KeyboardInterrupt, Kept):
                pass
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert Bundle.read(out).summary["requests"] > 0


def limited(mebibytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20,) * 2)


def test_what_judging_needs_is_there_before_anything_is_measured(tmp_path, root):
    """OpenBLAS asks for memory without end where a limit leaves none."""
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", "evaluate", root / "examples/loop0.parquet", "--on", "null:",
         "--duration", "1s", "--repeat", "2", "--out", tmp_path / "e", "-q"],
        preexec_fn=limited(400), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and "too little to load scipy.stats" in done.stderr
    assert not os.listdir(tmp_path)


def test_what_cannot_be_read_once_it_is_there_is_told_with_its_place(tmp_path, monkeypatch):
    def fails(path):
        raise MemoryError

    monkeypatch.setattr(Bundle, "read", fails)
    job = loadstone.job("randread", "null:", loadstone.RunOptions(requests=9, size="1m"))
    with pytest.raises(Kept, match=r"results are in .*b, and cannot be read now: memory ran out") as kept:
        loadstone.run(job, out=tmp_path / "b")
    monkeypatch.undo()
    assert kept.value.bundle == tmp_path / "b"
    assert Bundle.read(tmp_path / "b").summary["requests"] == 9


@pytest.mark.parametrize("mebibytes", [250, 300, 330, 400])
def test_a_limit_of_memory_refuses_a_run_or_keeps_it(tmp_path, root, mebibytes):
    """An allocation that failed in the middle ended the process, and the run with it."""
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", "replay", root / "examples/loop0.parquet", "--on", "null:",
         "--pace", "x20", "--out", tmp_path / "b", "-q"],
        preexec_fn=limited(mebibytes), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if done.returncode:
        assert done.returncode == 1 and "raise the limit by" in done.stderr, done.stderr
        assert not os.listdir(tmp_path)
    else:
        assert not Bundle.read(tmp_path / "b").partial
