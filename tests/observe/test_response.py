import time

import numpy as np
import pytest

from loadstone import Error, _core
from loadstone.observe import (
    METRICS,
    PARAMETERS,
    Observer,
    ProbeSpec,
    engine_parameters,
    progress_edges,
    response_parameters,
)
from loadstone.observe.response import NONE, time_edges

S = 1_000_000_000
# What is known of a machine that does 100 reads of 4 KiB and 50 writes of 8 KiB a second.
PER_SECOND = {
    "disk_reads": 100,
    "disk_read_sectors": 800,
    "disk_read_ms": 200,
    "disk_writes": 50,
    "disk_write_sectors": 800,
    "disk_write_ms": 250,
    "disk_busy_ms": 400,
    "disk_queue_ms": 450,
    "cpu_user": 30,
    "cpu_system": 20,
    "cpu_idle": 140,
    "cpu_iowait": 10,
    "interrupts": 1000,
    "context_switches": 2000,
    "io_some_us": 100_000,
    "process_user_us": 200_000,
    "process_system_us": 100_000,
    "progress": 150,
}
LEVELS = {"procs_blocked": 2, "mem_cached": 1 << 30, "mem_dirty": 1 << 20}


def steady(seconds=30, every=0.5):
    n = int(seconds / every) + 1
    k = np.arange(n)
    samples = {"time": (7 * S + k * every * S).astype(np.int64)}
    for name, rate in PER_SECOND.items():
        samples[name] = (12345 + k * every * rate).astype(np.int64)
    samples["progress"] -= 12345
    for name, level in LEVELS.items():
        samples[name] = np.full(n, level, dtype=np.int64)
    return samples


EXPECTED = {
    "reads_per_s": 100,
    "writes_per_s": 50,
    "latency_ms": 3,
    "utilisation": 0.4,
    "queue_length": 0.45,
    "request_size": 1600 * 512 / 150,
    "cpu": 0.25,
    "memory": 1 << 30,
    "interrupts_per_s": 1000,
    "context_switches_per_s": 2000,
    "processes_blocked": 2,
    "read_bytes_per_s": 409600,
    "write_bytes_per_s": 409600,
    "dirty": 1 << 20,
    "io_pressure": 0.1,
    "own_cpu": 0.3,
}


def test_the_eleven_of_the_thesis_and_a_complete_table():
    assert len(PARAMETERS) == 11
    assert len({m.name for m in METRICS}) == len(METRICS)
    assert all(m.unit and m.title and m.better and m.aggregation and m.counted for m in METRICS)


@pytest.mark.parametrize("intervals", [1, 7, 20, 29])
def test_known_rates_come_out_whatever_the_edges(intervals):
    got = response_parameters(steady(), time_edges(7 * S, 37 * S, intervals))
    for name, value in EXPECTED.items():
        assert got.values[name] == pytest.approx(np.full(intervals, value), rel=2e-2), name
    assert got.counts["reads_per_s"].sum() == pytest.approx(3000)
    assert np.isnan(got.values["discards_per_s"]).all(), "a counter that is absent is not zero"


def test_a_reset_spoils_its_interval_and_no_other():
    samples = steady()
    samples["disk_reads"][31:] -= 12345
    got = response_parameters(samples, time_edges(7 * S, 37 * S, 30))
    bad = np.flatnonzero(np.isnan(got.values["reads_per_s"]))
    assert bad.tolist() == [15]
    assert not np.isnan(got.values["writes_per_s"]).any()
    samples = steady()
    samples["cpu_iowait"][31:] -= 1
    assert not np.isnan(response_parameters(samples, [7 * S, 37 * S]).values["cpu"]).any()


def test_samples_that_could_not_be_read_are_bridged_and_the_edges_must_be_covered():
    samples = steady()
    samples["disk_reads"][10:20] = NONE
    got = response_parameters(samples, time_edges(7 * S, 37 * S, 10))
    assert got.values["reads_per_s"] == pytest.approx(np.full(10, 100))
    samples["disk_reads"][50:] = NONE
    assert np.isnan(response_parameters(samples, [30 * S, 36 * S]).values["reads_per_s"]).all()
    assert np.isnan(response_parameters(steady(), [0, 10 * S]).values["reads_per_s"]).all()
    for edges in ([1], [2, 2], [3, 1]):
        with pytest.raises(Error, match="ascending"):
            response_parameters(samples, edges)
    with pytest.raises(Error, match="fewer than two samples"):
        response_parameters({"time": np.array([1])}, [1, 2])


def test_progress_parts_a_run_by_its_requests():
    t = np.arange(0, 41) * S
    # 10 requests/s for 20 s, then a standstill of 10 s, then 40/s: 200 + 400 requests.
    p = np.concatenate((np.arange(0, 21) * 10, np.full(10, 200), 200 + np.arange(1, 11) * 40))
    edges = progress_edges({"time": t, "progress": p}, 6)
    assert edges / S == pytest.approx([0, 10, 20, 32.5, 35, 37.5, 40])
    with pytest.raises(Error, match="no progress"):
        progress_edges({"time": t, "progress": p * 0}, 6)
    with pytest.raises(Error, match="too short"):
        progress_edges({"time": t[:3], "progress": np.array([0, 0, 100])}, 20)


def test_an_observer_samples_progress_and_this_process():
    handle = _core.Progress()
    observer = Observer(None, 0.005)
    with observer:
        observer.attach(handle)
        end = time.process_time() + 0.2
        while time.process_time() < end:
            handle.add(1)
    seen = observer.result
    assert seen.columns["progress"][-1] == handle.value > 0
    got = response_parameters(
        seen.columns, [seen.columns["time"][0], seen.columns["time"][-1]], seen.ticks_per_s
    )
    used = got.counts["own_cpu"][0]
    assert used == pytest.approx(200, rel=0.25), "milliseconds of CPU of this process"
    assert seen.columns["observer_us"][-1] > 0


def test_probes_are_named_by_the_user():
    assert ProbeSpec.parse("power=cat /run/x=y") == ProbeSpec("power", "cat /run/x=y")
    for text in ("power", "=x", "a="):
        with pytest.raises(Error, match="NAME=COMMAND"):
            ProbeSpec.parse(text)
    with Observer(None, 0.02, [ProbeSpec("bad", "exit 7", 0.05)]) as observer:
        time.sleep(0.15)
    assert any("exit status 7" in text for _, kind, text in observer.result.events if kind == "probe")


def test_what_the_engine_saw_is_shared_out_to_the_intervals():
    second = 10**9
    samples = {
        "time": np.array([0, 2, 4, 6]) * second,
        "progress": np.array([0, 20, 20, 50]),
    }
    # Two requests of 1 ms in the first second after 1 s, none in the next, four of 3 ms in the third.
    rows = np.array([[2, 2_000_000], [0, 0], [4, 12_000_000]])
    values, counts = engine_parameters(
        samples, np.array([0.0, 1.5, 3.5, 6.0]) * second, [1e9, 2e9, 3e9, 4e9], rows
    )
    assert counts["engine_latency_ms"].tolist() == [1, 3, 2]
    assert values["engine_latency_ms"].tolist() == [1.0, pytest.approx((1 + 6) / 3), 3.0]
    assert values["engine_ops_per_s"].tolist() == [10.0, 2.5, 12.0]
    nothing, _ = engine_parameters(samples, [0.0, 1e9], [1e9], np.zeros((0, 2)))
    assert np.isnan(nothing["engine_latency_ms"]).all()
