"""Steady states, latencies that a depth is searched for, and shares of several jobs: as fio has them."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.fio.test_lower import lowered

import loadstone
from loadstone import _core
from loadstone.errors import OptionError
from loadstone.fio import FioError
from loadstone.plan import RunOptions

STEADY = "[a]\nioengine=null\nrw=randread\nsize=1g\ntime_based\nrate_iops=1000\n"


def fio(text, folder, *, fails=False):
    """What fio says of the jobs of a file."""
    (folder / "job.fio").write_text(text)
    words = ["fio", folder / "job.fio", "--output-format=json"]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert fails or ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout[ran.stdout.index("{\n") :])["jobs"]


def ours(folder, on="null:", **options):
    return loadstone.run(loadstone.job(folder / "job.fio", on, RunOptions(**options))).summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "runtime", "attained"),
    [("iops:30%", 60, 1), ("bw_slope:10%", 60, 1), ("iops:0.000001", 7, 0)],
)
def test_a_run_ends_in_a_steady_state_where_that_of_fio_does(limit, runtime, attained, tmp_path, need_tools):
    need_tools("fio")
    # Two seconds may well have equally many requests, four hardly ever.
    samples = 2 if attained else 4
    text = STEADY + f"runtime={runtime}\nsteadystate={limit}\nss_dur={samples}s\nss_ramp=1s\n"
    # Evenly paced requests are steady, but never to a millionth.
    jitter = text if attained else text.replace("rate_iops=1000\n", "rate_iops=1000\nrate_process=poisson\n")
    [theirs] = fio(jitter, tmp_path)
    found = ours(tmp_path)
    assert theirs["steadystate"]["attained"] == attained
    assert found["steady"]["attained"] == bool(attained)
    assert found["partial"] is False
    seconds = found["elapsed_ns"] / 1e9
    assert (seconds < runtime - 5) == bool(attained)
    assert len(found["steady"]["samples"]) == samples
    assert found["steady"]["mean"] == pytest.approx(1000 * (4096 if "bw" in limit else 1), rel=0.3)


def test_a_steady_state_becomes_one_of_the_plan(tmp_path):
    text = "[a]\nsize=1m\nruntime=9\nsteadystate=lat_slope:5%\nsteadystate_duration=300\n"
    [plan] = lowered(text + "steadystate_ramp_time=60\nsteadystate_check_interval=10\n", tmp_path).plans
    second = 1_000_000_000
    assert plan["steps"][-1]["steady"] == {
        "of": "latency",
        "by": "slope",
        "limit": 0.05,
        "relative": True,
        "window_ns": 300 * second,
        "after_ns": 60 * second,
        "sample_ns": 10 * second,
    }
    found = lowered("[a]\nsize=1m\nsteadystate=iops:10\n", tmp_path)
    assert "steady" not in found.plans[0]["steps"][-1]
    assert any("no effect without steadystate_duration" in note for note in found.notes)
    for wrong, what in [
        ("steadystate=iops\nss_dur=10", "and a limit behind, as in iops:10%"),
        ("steadystate=watts:3\nss_dur=10", "write one of iops, iops_slope"),
        ("steadystate=iops:0\nss_dur=10", "a limit of 0 is never kept"),
        ("steadystate=iops:1%\nss_dur=1", "must be two samples or more"),
        ("steadystate=iops:1%\nss_dur=10\nsteadystate_check_interval=500ms", "must be 1 s or more"),
        ("steadystate=iops:1%\nss_dur=10\n[b]\nsize=1m", "make both alike"),
    ]:
        with pytest.raises(FioError, match=what):
            lowered(f"[a]\nsize=1m\n{wrong}\n", tmp_path)


@pytest.mark.parametrize("text", ["iops", "iops:0", "iops:ten%", "watts:1", "iops:1%,1s", "lat:1%,soon"])
def test_what_is_no_steady_state_is_refused(text):
    with pytest.raises(OptionError, match="until_steady"):
        loadstone.job("randread", "null:", RunOptions(until_steady=text, size="1m", duration=9))


def test_any_load_may_end_in_a_steady_state():
    options = RunOptions(until_steady="iops:50%,2s", size="1g", rate=500, duration=60)
    found = loadstone.run(loadstone.job("randread", "null:", options)).summary
    assert found["steady"]["attained"] and found["elapsed_ns"] < 50e9
    assert found["steady"]["relative"] and found["steady"]["limit"] == 0.5


@pytest.mark.skipif(bool(_core.uring_refused()), reason="io_uring is not permitted here")
@pytest.mark.parametrize(("target", "depth", "found"), [("10s", 8, True), ("1", 1, False)])
def test_a_depth_is_found_as_fio_finds_it(target, depth, found, tmp_path, need_tools):
    """All of a latency that everything keeps, and none of one that nothing keeps."""
    need_tools("fio")
    text = (
        "[a]\nfilename=f\nsize=16m\nrw=randread\nioengine=libaio\niodepth=8\nruntime=30\ntime_based\n"
        f"invalidate=0\ndirect=1\nlatency_target={target}\nlatency_window=50ms\n"
    )
    [theirs] = fio(text, tmp_path, fails=not found)
    told = ours(tmp_path, tmp_path)
    [one] = told["depths"]
    assert (one["depth"], one["found"], one["kept"]) == (depth, found, found)
    assert theirs["latency_depth"] == depth
    assert (theirs["error"] == 0) == found
    # Both end long before their time.
    assert told["elapsed_ns"] < 20e9 and theirs["read"]["runtime"] < 20_000


@pytest.mark.skipif(bool(_core.uring_refused()), reason="io_uring is not permitted here")
def test_a_latency_target_becomes_one_of_the_plan(tmp_path):
    text = (
        "[a]\nsize=1m\nlatency_target=500\nlatency_window=5000000\nlatency_percentile=99.9\nlatency_run=1\n"
    )
    [plan] = lowered(text, tmp_path).plans
    [worker] = plan["workers"]
    assert worker["latency_target"] == {
        "ns": 500_000,
        "share": pytest.approx(0.999),
        "window_ns": 5_000_000_000,
        "follow": True,
    }
    assert worker["backend"] == "io_uring"
    for wrong, what in [
        ("latency_target=1ms\nlatency_percentile=101", "above 0 and at most 100"),
        ("latency_target=soon", "is no time"),
        ("latency_target=1ms\nrate_iops=5", "leave one out"),
        ("latency_target=1ms\nioengine=mmap", "needs io_uring"),
    ]:
        with pytest.raises(FioError, match=what):
            lowered(f"[a]\nsize=1m\n{wrong}\n", tmp_path)
    for text in ("fast", "1ms:0", "1ms:101", "0s", "1ms:99,soon"):
        with pytest.raises(OptionError, match="latency_target"):
            loadstone.job("randread", tmp_path / "f", RunOptions(latency_target=text, size="1m", duration=9))


@pytest.mark.parametrize("engine", ["null", "psync"])
def test_jobs_share_requests_by_their_weights_as_in_fio(engine, tmp_path, need_tools):
    need_tools("fio")
    text = (
        f"[global]\nioengine={engine}\nsize=4m\nruntime=2\ntime_based\nrw=randread\nnorandommap\n"
        "flow_id=7\ninvalidate=0\n[a]\nflow=1\n[b]\nflow=8\n"
    )
    counts = [job["read"]["total_ios"] for job in fio(text, tmp_path)]
    (tmp_path / "ours").mkdir()
    job = loadstone.job(tmp_path / "job.fio", "null:" if engine == "null" else tmp_path / "ours")
    mine = [one["count"] for one in loadstone.run(job, by="group").summary["groups"]]
    assert counts[1] / counts[0] == pytest.approx(8, rel=0.05)
    # The end may come while one of them waits for its share.
    assert mine[1] / mine[0] == pytest.approx(8, rel=0.1)


def test_a_job_that_ends_leaves_its_share_to_the_others(tmp_path):
    text = "[global]\nioengine=null\nsize=4m\nbs=4k\nrw=randread\n[a]\nflow=1\nnumber_ios=50\n[b]\nflow=1\n"
    (tmp_path / "job.fio").write_text(text)
    assert ours(tmp_path)["requests"] == 50 + 1024
    for wrong, what in [
        ("flow=3\nrate_iops=9", "and a rate both"),
        ("flow=3\nstartdelay=2", "begins later"),
        ("flow=2000", "2000 must be from 0 to 1000"),
        ("flow=3\nflow_sleep=x", "is no time"),
    ]:
        with pytest.raises(FioError, match=what):
            lowered(f"[a]\nsize=1m\n{wrong}\n", tmp_path)
