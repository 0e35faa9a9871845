"""What a run says at its end: why it stopped early, in its first line, and its parts."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from loadstone import Error
from loadstone.bundle import Bundle
from loadstone.cli._summary import slope_text
from loadstone.stats import Histogram
from loadstone.workload import job, run

# Each thread removes files until there are none.
RUNS_OUT = """define fileset name=fs,path=$dir,entries=20,dirwidth=20,prealloc=100
define process name=p,instances=1 { thread name=t,instances=2 { flowop deletefile name=rm,filesetname=fs } }
run 30
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "out.f"
    path.write_text(RUNS_OUT)
    return path


def test_a_script_that_runs_out_of_files_says_so_first(loadstone, script, tmp_path):
    done = loadstone("run", script, "--on", tmp_path / "d", "--out", tmp_path / "b", status=1)
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("stopped early: ") and "found no file" in first and "rm" in first
    assert second.startswith("20 requests") and "(partial)" in second
    assert "found no file" in done.stderr
    kept = Bundle.read(tmp_path / "b")
    assert kept.partial and kept.summary["requests"] == 20


def test_json_of_a_run_that_stopped_early(loadstone, script, tmp_path):
    done = loadstone("run", script, "--on", tmp_path / "d", "--json", status=1)
    told = json.loads(done.stdout)
    assert told["partial"] and "found no file" in told["failure"] and told["requests"] == 20
    assert list(told).index("failure") < list(told).index("ops"), "it is told before the figures"
    assert "found no file" in done.stderr.splitlines()[-1]


def test_a_replay_that_fails_says_why_first(loadstone, root, tmp_path):
    content = bytearray((root / "examples" / "loop0.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = bytes(2000)
    trace = tmp_path / "damaged.parquet"
    trace.write_bytes(content)
    done = loadstone("replay", trace, "--on", "null:", "--size", "64g", "--pace", "max", status=1)
    assert done.stdout.splitlines()[0].startswith("stopped early: ")
    assert done.stdout.splitlines()[0].removeprefix("stopped early: ") in done.stderr


def test_ctrl_c_says_so_first(loadstone, tmp_path):
    program = loadstone("--version").args[0]
    words = [program, "run", "randread", "--on", "null:", "--rate", "1000", "--duration", "60s"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _wait_until_loaded(run.pid)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert out.splitlines()[0] == "stopped early: interrupted"
    assert "(partial)" in out.splitlines()[1] and "partial" in err


def _wait_until_loaded(pid: int) -> None:
    import time

    for _ in range(3000):
        names = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/comm")]
        if any(name.startswith("loadstone-w") for name in names):
            time.sleep(0.2)
            return
        time.sleep(0.01)
    raise AssertionError("the run did not start")


def test_threads_of_a_run_add_up_to_their_worker(loadstone, tmp_path):
    words = ["run", "randread", "--on", "null:", "--requests", "20000", "--backend", "null", "--depth", "3"]
    done = loadstone(*words, "--by", "thread", "--json", "--out", tmp_path / "b")
    told = json.loads(done.stdout)
    assert [part["worker"] for part in told["threads"]] == [0] * len(told["threads"])
    assert sum(part["count"] for part in told["threads"]) == told["requests"] == 20_000
    kept = Bundle.read(tmp_path / "b")
    assert kept.plan["by_thread"] and kept.summary["threads"] == told["threads"]
    for part in told["threads"]:
        mine = kept.ops.where(errno=0, worker=0, thread=part["thread"])
        assert kept.ops.histogram("service", mine).summary() == part["service_ns"]


def test_workers_of_a_script_are_its_threads(loadstone, tmp_path):
    script = tmp_path / "two.f"
    script.write_text(
        "define fileset name=fs,path=$dir,entries=50,dirwidth=20,prealloc=100\n"
        "define process name=web,instances=2 {\n"
        "  thread name=a,instances=2 { flowop statfile name=look,filesetname=fs }\n"
        "  thread name=b { flowop openfile name=o,filesetname=fs,fd=1\n flowop closefile name=c,fd=1 }\n"
        "}\n"
        "define process name=db { thread name=d { flowop statfile name=look,filesetname=fs } }\n"
        "run 1\n"
    )
    done = loadstone("run", script, "--on", tmp_path / "d", "--by", "worker", "--out", tmp_path / "b")
    assert [line.split()[:2] for line in done.stdout.splitlines() if line[:2] in ("0 ", "1 ", "2 ")][:3] == [
        ["0", "web"],
        ["1", "web"],
        ["2", "db"],
    ]
    kept = Bundle.read(tmp_path / "b")
    workers = kept.summary["workers"]
    assert [w["group"] for w in workers] == ["web", "web", "db"]
    assert list(workers[1]["steps"]) == ["o", "c"]
    assert sum(w["count"] for w in workers) == kept.summary["requests"]
    merged = Histogram.merged(kept.ops.histogram("service", kept.ops.where(worker=i)) for i in range(3))
    assert merged.summary() == kept.summary["service_ns"]
    with pytest.raises(Error, match="`by` thread"):
        kept.ops.where(thread=0)


def test_scripts_from_python_tell_threads_too(tmp_path):
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=fs,path=$dir,entries=50,dirwidth=20,prealloc=100\n"
        "define process name=p { thread name=a,instances=2 { flowop statfile name=look,filesetname=fs } }\n"
        "run 1\n"
    )
    told = run(job(script, tmp_path / "d"), by="thread").summary
    assert [(part["worker"], part["thread"]) for part in told["threads"]] == [(0, 0), (0, 1)]
    assert sum(part["count"] for part in told["threads"]) == told["requests"] > 0


def test_percentiles_without_enough_requests_are_dashes(loadstone):
    done = loadstone("run", "randread", "--on", "null:", "--requests", "150")
    line = done.stdout.splitlines()[-2 if not done.stdout.splitlines()[-1] else -1]
    assert line.split()[0] == "read" and line.split()[-4:] == ["-"] * 4, done.stdout


def test_times_and_counts_are_written_as_people_do():
    from loadstone.cli._show import counted, human_time

    assert human_time(3.1 * 3600e9) == "3.1 h" and human_time(11_600 * 3600e9) == "11,600 h"
    assert human_time(999.6 * 3600e9) == "1,000 h" and human_time(2e9) == "2 s"
    assert counted(1, "request") == "1 request" and counted(2000, "request") == "2,000 requests"
    assert counted(1, "matrix", "matrices") == "1 matrix" and counted(0, "matrix", "matrices") == "0 matrices"


@pytest.mark.parametrize(
    ("slope", "told"),
    [
        (1_033_856_866.0, "slope +1.03 s a second: the load falls further and further behind"),
        (12.4, "slope +12.4 ns a second"),
        (0.0, "slope +0 ns a second"),
        (-2500.0, "slope -2.5 us a second"),
    ],
)
def test_how_lateness_changes_is_said_in_words(slope, told):
    assert slope_text(slope) == told
