import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from outcome import PLAN, outcome

import loadstone
from loadstone import Error, RunOptions
from loadstone._core import HeldFolder
from loadstone._kept import LeftBehind
from loadstone.bundle import Bundle, Event, Series, aside, clean_up, write_bundle, write_series
from loadstone.bundle.environment import mount_of, snapshot
from loadstone.observe import Observer, ProbeSpec
from loadstone.stats import Histogram
from loadstone.workload import plan_uniform, run_plan


def write(path, **kw):
    made, hists = outcome(**kw)
    with Observer(None, 0.01, [ProbeSpec("p", "echo x=4", 0.05)]) as observer:
        time.sleep(0.2)
    with aside(path) as folder:
        write_bundle(
            folder,
            PLAN,
            made,
            snapshot({"t": str(path.parent)}),
            observer.result,
            [Event(1, "started", "go")],
        )
    return hists


def test_what_is_written_is_read(tmp_path):
    hists = write(tmp_path / "b")
    b = Bundle.read(tmp_path / "b")
    assert not b.partial and b.plan == PLAN
    # Of those that succeeded.
    assert b.summary["ops_per_s"] == pytest.approx(250 / 3)
    assert b.summary["ops"]["read"]["count"] == 150
    assert b.summary["ops"]["write"]["errors"] == {"EIO": 50}
    assert b.summary["lateness"] == {"p50_ns": 10, "p99_ns": None, "slope_ns_per_s": 0.0}
    assert b.ops.histogram() == Histogram.merged(hists[:-1]), "failed requests are not among the latencies"
    assert b.ops.histogram("response", b.ops.where(op=0)) == Histogram.merged(hists[0::2])
    assert b.ops.where(group="vm1").tolist() == [False, True] * 3
    assert b.ops.by_interval()[0].tolist() == [100, 100, 50]
    heat = b.ops.heat()
    assert b.ops.heat(together=2).tolist() == [(heat[0] + heat[1]).tolist(), heat[2].tolist()]
    assert heat.shape[0] == 3 and np.array_equal(heat.sum(axis=0), b.ops.histogram().counts)
    assert b.series["flight_mean"].tolist() == [1.0, 2.0, 1.5]
    assert b.series["lateness_count"][:2].tolist() == [100, 100] and np.isnan(b.series["lateness_count"][2])
    assert b.events[0] == Event(1, "started", "go")
    assert any("no block counters" in w for w in b.summary["warnings"])
    assert len(b.observation.columns["time"]) == b.summary["observation"]["samples"] >= 2
    assert b.observation.readings[0][1:] == ("p.x", 4.0)
    (environment,) = b.environment.values()
    assert environment["kernel"].startswith("Linux") and environment["targets"]["t"]["mount"]["point"]


def test_an_outcome_without_any_row(tmp_path):
    made, _ = outcome()
    ops = made["ops"]
    for name, column in ops.items():
        if name != "group":
            ops[name] = column[:1] if name.endswith("offsets") else column[:0]
    made["summary"] |= {"requests": 0, "bytes": 0, "errors": 0, "short": 0}
    with aside(tmp_path / "b") as folder:
        write_bundle(folder, PLAN, made, {"host": "h"})
    b = Bundle.read(tmp_path / "b")
    assert len(b.ops) == 0 and len(b.ops.histogram()) == 0 and b.events == [] and b.observation is None
    with pytest.raises(Error, match="was not observed"):
        b.response()


@pytest.mark.parametrize(
    "name", ["summary.json", "plan.json", "ops.parquet", "events.parquet", "series.parquet"]
)
def test_a_missing_or_damaged_file_is_named(tmp_path, name):
    write(tmp_path / "b")
    kept = (tmp_path / "b" / name).read_bytes()
    (tmp_path / "b" / name).write_bytes(kept[: len(kept) // 2])
    with pytest.raises(Error, match=name):
        b = Bundle.read(tmp_path / "b")
        assert b.ops and b.events and b.series
    (tmp_path / "b" / name).unlink()
    with pytest.raises(Error, match=name):
        Bundle.read(tmp_path / "b")


def test_a_newer_version_and_strange_folders_are_refused(tmp_path):
    write(tmp_path / "b")
    file = tmp_path / "b" / "summary.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    with pytest.raises(Error, match=r"version 99.*newer Loadstone"):
        Bundle.read(tmp_path / "b")
    with pytest.raises(Error, match="is not a folder"):
        Bundle.read(tmp_path / "nothing")
    with pytest.raises(Error, match="not a bundle"):
        Bundle.read(tmp_path)


def test_nothing_that_is_not_a_bundle_is_ever_replaced(tmp_path):
    write(tmp_path / "b")
    before = (tmp_path / "b" / "summary.json").read_bytes()
    with pytest.raises(Error, match="`force`"), aside(tmp_path / "b"):
        raise AssertionError("the block must not start")
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.tex").write_text("all of it")
    with pytest.raises(Error, match="never replaced"), aside(precious, force=True):
        raise AssertionError("the block must not start")
    (tmp_path / "file").write_text("x")
    with pytest.raises(Error, match="not a folder"), aside(tmp_path / "file", force=True):
        raise AssertionError("the block must not start")
    with pytest.raises(RuntimeError), aside(tmp_path / "b", force=True):
        raise RuntimeError("half way")
    assert (tmp_path / "b" / "summary.json").read_bytes() == before
    with aside(tmp_path / "b", force=True) as folder:
        (folder / "summary.json").write_text("{}")
    assert (tmp_path / "b" / "summary.json").read_text() == "{}"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "file", "home"]
    with pytest.raises(Error, match="does not exist; make it first"), aside(tmp_path / "no" / "b"):
        raise AssertionError("the block must not start")


CHILD = """
import sys, time
sys.path.insert(0, {here!r})
from pathlib import Path
from outcome import PLAN, outcome
from loadstone.bundle import aside, write_bundle
with aside(Path({path!r})) as folder:
    write_bundle(folder, PLAN, outcome()[0], {{"host": "h"}})
    print("written", flush=True)
    time.sleep(60)
"""


def test_kill_9_leaves_nothing_that_looks_whole(tmp_path):
    path = tmp_path / "b"
    code = CHILD.format(here=str(Path(__file__).parent), path=str(path))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "written\n"
    assert clean_up(path) == [], "what a living process is writing is left alone"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".b.loadstone-")
    with pytest.raises(Error, match="is not a folder"):
        Bundle.read(path)
    # All of it was written, so the next writer keeps it.
    with pytest.warns(LeftBehind, match="b.unfinished"):
        write(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "b.unfinished"]


def test_a_replacement_killed_half_way_is_put_back(tmp_path):
    held = HeldFolder(tmp_path, ".b.loadstone-")
    write_bundle(held.path, PLAN, outcome()[0], {"host": "h"})
    held.path.rename(f"{held.path}.old")
    held.release()
    (tmp_path / ".b.loadstone-0123456789abcdef0123456789abcdef").mkdir()
    with pytest.raises(Error, match="`force`"), aside(tmp_path / "b"):
        raise AssertionError("it is there again")
    assert [p.name for p in tmp_path.iterdir()] == ["b"] and Bundle.read(tmp_path / "b")
    assert not (tmp_path / "b/.loadstone").exists()


def test_series(tmp_path):
    with aside(tmp_path / "s") as folder:
        write_bundle_into(folder / "1-a", seed=1)
        write_bundle_into(folder / "2-b", seed=2)
        runs = [{"name": "a", "path": "1-a"}, {"name": "b", "path": "2-b"}]
        write_series(folder, "evaluate", runs, {"partial": False, "distances": {}})
    s = Series.read(tmp_path / "s")
    assert s.kind == "evaluate" and [b.path.name for b in s.bundles()] == ["1-a", "2-b"]
    assert s.bundle("b").ops.histogram() == Histogram.merged(outcome(seed=2)[1][:-1])
    with pytest.raises(Error, match="no run 'c'; it has a, b"):
        s.bundle("c")
    with pytest.raises(Error, match="several runs"):
        Bundle.read(tmp_path / "s")
    (tmp_path / "s" / "2-b" / "summary.json").unlink()
    with pytest.raises(Error, match="2-b: is missing"):
        Series.read(tmp_path / "s")


def write_bundle_into(folder, seed):
    folder.mkdir()
    write_bundle(folder, PLAN, outcome(seed=seed)[0], {"host": "h"})


def test_mounts_are_found_by_folder_and_the_latest_wins():
    table = (
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "30 27 0:40 / /usr/lib\\040x rw,noatime shared:1 - btrfs /dev/sdb1 rw,subvol=/\n"
        "31 27 0:41 / /usr rw - xfs /dev/a rw\n32 27 0:42 / /usr rw - xfs /dev/b rw\nbroken line\n"
    )
    assert mount_of("/usr/bin", table)["source"] == "/dev/b"
    assert mount_of("/usrx", table)["type"] == "ext4"
    assert mount_of("/usr/lib x/y", table)["options"] == "rw,noatime"


def test_a_picture_has_no_more_steps_than_it_can_show():
    options = RunOptions(requests=4000, rate=2000, interval=0.001, size="1m", seed=1)
    bundle = loadstone.run(loadstone.job("randread", "null:", options))
    assert bundle.summary["elapsed_ns"] > 1_900_000_000
    rates, service = bundle.plot().axes
    values = rates.patches[0].get_data().values
    edges = rates.patches[0].get_data().edges
    assert 400 < len(values) <= 600 and round(sum(values * np.diff(edges))) in range(3980, 4001)
    assert len(service.patches[0].get_data().values) == len(values)


def test_a_plan_too_large_to_be_indented_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr("loadstone.bundle.check.LARGEST", 30_000)
    monkeypatch.setattr("loadstone.bundle.folder.LARGEST", 30_000)
    plan = {**PLAN, "own": [f"/{i}" for i in range(3000)]}
    with aside(tmp_path / "b") as folder:
        write_bundle(folder, plan, outcome()[0], {"host": "h"})
    assert Bundle.read(tmp_path / "b").plan["own"] == plan["own"]


def test_a_plan_that_no_bundle_keeps_is_not_run(tmp_path, monkeypatch):
    """It was run, and then its bundle could not be read."""
    monkeypatch.setattr("loadstone.workload.runner.LARGEST", 30_000)
    plan = plan_uniform("randread", "null:", RunOptions(requests=1))
    with pytest.raises(Error, match="a bundle keeps 0 MiB at most; use fewer objects"):
        run_plan({**plan, "own": ["/x"] * 9000}, tmp_path / "b")
    assert not (tmp_path / "b").exists()
