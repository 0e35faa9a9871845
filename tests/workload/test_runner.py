"""Runs of the real engine, observed and kept."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from loadstone import Error
from loadstone.bundle import Bundle, Series
from loadstone.observe import ProbeSpec
from loadstone.workload import runner
from loadstone.workload.runner import NamedRun, ObserveOptions, run_plan, run_series

MB = 1 << 20


def plan(target="null:", seconds=0.5, reads=1.0, requests=0, size=8 * MB, rate=0.0, interval=0.1):
    null = target == "null:"
    where = {"kind": "null"} if null else {"kind": "file", "path": str(target), "prepare": "fill"}
    return {
        "version": 1,
        "seed": 1,
        "interval_ns": int(interval * 1e9),
        "targets": [{"id": "t", "size": size, **where}],
        "workers": [
            {
                "source": {"kind": "uniform", "reads": reads, "size": 4096, "rate": rate},
                "pace": {"kind": "open", "speed": 1.0} if rate else {"kind": "closed"},
                "backend": "null" if null else "sync",
                "depth": 1 if null else 4,
                "requests": requests,
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": size}]},
            }
        ],
        "steps": [
            {"step": "prepare"},
            {"step": "drop_caches"},
            {"step": "run", "duration_ns": int(seconds * 1e9)},
        ],
    }


def test_a_run_becomes_a_bundle(tmp_path):
    seen = []
    options = ObserveOptions(0.02, [ProbeSpec("p", "echo v=7", 0.1)])
    b = run_plan(plan(tmp_path / "t", seconds=0.8), tmp_path / "b", observe=options, on_live=seen.append)
    assert not b.partial and b.summary["requests"] > 0 and b.summary["errors"] == 0
    assert b.summary["requests"] == sum(b.ops.columns["count"]) == len(b.ops.histogram())
    assert b.summary["ops"]["read"]["bytes"] == 4096 * b.summary["requests"]
    assert b.summary["ops_per_s"] == pytest.approx(b.summary["requests"] / b.summary["elapsed_ns"] * 1e9)
    assert b.summary["elapsed_ns"] > 0.5e9
    done, size = b.ops.by_interval()
    assert len(done) >= 5 and done.sum() == b.summary["requests"] and np.array_equal(size, done * 4096)
    assert len(b.ops.histogram("response")) == 0, "a closed pace has no intended times"
    assert {"started", "ended", "note"} <= {e.kind for e in b.events}
    assert seen and seen[-1]["requests"] == b.summary["requests"]
    progress = b.observation.columns["progress"]
    assert progress[0] == 0 and progress[-1] == b.summary["requests"]
    start = b.summary["started_monotonic_ns"]
    time_of = b.observation.columns["time"]
    assert time_of[0] < start and time_of[-1] >= start + b.summary["elapsed_ns"], "samples cover the run"
    assert b.observation.readings[0][1:] == ("p.v", 7.0)
    got = b.response(5)
    assert got.values["own_cpu"].shape == (5,) and np.all(got.values["context_switches_per_s"] > 0)
    device = b.summary["observation"]["device"]
    if device is None:
        assert any("no block counters" in w for w in b.summary["warnings"])
    by_progress = b.response(5, by="progress")
    assert by_progress.edges[0] <= start + 0.1e9 and len(by_progress.edges) == 6


@pytest.mark.root
def test_what_the_engine_did_is_what_the_device_counted(alone, tmp_path):
    direct = plan(alone, requests=3000, seconds=0, reads=0.7)
    # Only the run: a late sampler's last sample misses writes of filling, and the flush of dropping pages.
    direct["targets"][0] |= {"kind": "device", "direct": True, "allow_destroy": True, "prepare": "none"}
    direct["steps"] = [step for step in direct["steps"] if step["step"] == "run"]
    direct["workers"][0]["depth"] = 1
    b = run_plan(direct, tmp_path / "b", observe=ObserveOptions(0.01))
    columns = b.observation.columns
    start = b.summary["started_monotonic_ns"]
    before = np.flatnonzero(columns["time"] < start)[-1]
    gained = {k: int(v[-1] - v[before]) for k, v in columns.items() if k.startswith("disk_")}
    ops = b.summary["ops"]
    assert ops["read"]["count"] + ops["write"]["count"] == 3000
    # One at a time, so nothing is merged; the flush at the end of what is written is the other one.
    assert gained["disk_reads"] == ops["read"]["count"]
    assert gained["disk_writes"] - ops["write"]["count"] in (0, 1)
    assert gained["disk_read_sectors"] * 512 == ops["read"]["bytes"]
    whole = b.response(1)
    # The kernel counts the bytes of a request before the request: a sample may see one ahead at each edge.
    assert whole.values["request_size"] == pytest.approx([4096], abs=2 * 4096 / 3000)
    assert 0 < whole.values["latency_ms"][0] <= 1.05 * b.summary["service_ns"]["mean"] / 1e6
    assert b.summary["observation"]["device"]["name"] == os.path.basename(alone)


def test_an_open_pace_has_lateness_and_response(tmp_path):
    b = run_plan(plan(seconds=0.5, rate=2000.0), tmp_path / "b", observe=ObserveOptions(0.05))
    assert b.summary["requests"] == pytest.approx(1000, abs=20)
    assert len(b.ops.histogram("response")) == b.summary["requests"]
    assert {"p50_ns", "p99_ns", "slope_ns_per_s"} <= set(b.summary["lateness"])
    assert np.nansum(b.series["lateness_count"]) == b.summary["requests"]
    assert {"flight_mean", "flight_max"} <= set(b.series)
    assert b.summary["observation"]["device"] is None


def test_a_plan_that_cannot_run_leaves_nothing(tmp_path):
    bad = plan(tmp_path / "no" / "folder")
    with pytest.raises(Error, match="folder"):
        run_plan(bad, tmp_path / "b")
    with pytest.raises(Error, match="plan"):
        run_plan({**plan(), "version": 99}, tmp_path / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "precious").write_text("x")
    with pytest.raises(Error, match="exists"):
        run_plan(plan(tmp_path / "t"), tmp_path / "b")
    assert not (tmp_path / "t").exists(), "the name of the bundle is checked before a target is touched"


def interrupt_after(seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_an_interrupt_keeps_what_was_measured(tmp_path):
    interrupt_after(0.6)
    b = run_plan(plan(seconds=60), tmp_path / "b", observe=ObserveOptions(0.05))
    assert b.partial and b.summary["requests"] > 0
    assert b.summary["elapsed_ns"] < 30e9
    assert "interrupted" in {e.kind for e in b.events}


def test_a_series_keeps_its_order_and_ends_at_an_interrupt(tmp_path):
    def runs():
        for i in range(3):
            if i == 2:
                interrupt_after(0.5)
            yield NamedRun(f"r{i}", plan(seconds=60 if i == 2 else 0.2), {"role": "load", "repeat": i})

    ended, given = [], []

    def finish(done, folder):
        (folder / "more.txt").write_text("kept")
        given.extend(run.name for run, _ in done)
        return {"answer": 42}

    s = run_series(
        runs(), tmp_path / "s", kind="study", finish=finish, on_done=lambda run, b: ended.append(run.name)
    )
    assert [r["name"] for r in s.runs] == ["r0", "r1", "r2"] and [r["repeat"] for r in s.runs] == [0, 1, 2]
    assert ended == given == ["r0", "r1"], "an interrupted run is kept but not counted as ended"
    assert s.summary["partial"] and s.summary["answer"] == 42
    assert [b.partial for b in Series.read(tmp_path / "s").bundles()] == [False, False, True]
    assert (tmp_path / "s" / "more.txt").read_text() == "kept"


CHILD = """
import sys
sys.path.insert(0, {here!r})
from test_runner import plan
from loadstone.workload.runner import run_plan
run_plan(plan(seconds=60), {out!r}, on_live=lambda live: print(live["requests"], flush=True))
"""


def test_kill_9_during_a_run_leaves_no_bundle(tmp_path):
    out = tmp_path / "b"
    code = CHILD.format(here=os.path.dirname(__file__), out=str(out))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    while int(child.stdout.readline() or 1) == 0:
        pass
    child.kill()
    child.wait()
    assert [p.name[:13] for p in tmp_path.iterdir()] == [".b.loadstone-"]
    with pytest.raises(Error, match="is not a folder"):
        Bundle.read(out)
    run_plan(plan(seconds=0.1), out)
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_progress_ends_where_the_requests_end(tmp_path):
    b = run_plan(plan(requests=5000, seconds=0), tmp_path / "b", observe=ObserveOptions(0.01))
    assert b.summary["requests"] == 5000 == b.observation.columns["progress"][-1]


class Often:
    """A run whose state is asked for often enough to see a short filling."""

    def __init__(self, run):
        self.run = run

    def wait(self, seconds):
        return self.run.wait(seconds / 100)

    def __getattr__(self, name):
        return getattr(self.run, name)


def test_an_interrupt_while_the_target_is_filled(tmp_path, monkeypatch):
    start, sent = runner._core.start, []
    monkeypatch.setattr(runner, "_core", SimpleNamespace(start=lambda text: Often(start(text))))

    def on_live(live):
        # Once: a second one would give up what was measured.
        if live["phase"] == "filling" and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    b = run_plan(plan(tmp_path / "t", size=256 << 20), tmp_path / "b", on_live=on_live)
    assert b.partial and b.summary["requests"] == 0 and len(b.ops) == 0
    assert any("nothing was measured" in note for note in b.summary["notes"])
    assert not (tmp_path / "t").exists(), "a target that was never whole is of no use"
