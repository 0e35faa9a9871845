"""Figures by worker, group and thread, and which percentiles of lateness are told."""

import numpy as np
import pytest

from loadstone import Error
from loadstone.bundle.figures import divided, lateness, parts
from loadstone.stats import Histogram

# Worker, thread, op, step, errno, latencies; 255: a step that is no request.
ROWS = [
    (0, 0, 0, 1, 0, [100] * 30),
    (0, 1, 0, 1, 0, [200] * 50),
    (0, 1, 255, 2, 0, [10**9] * 7),
    (1, 0, 1, 3, 0, [4000] * 20),
    (1, 0, 1, 3, 5, [9] * 3),
    (2, 0, 0, 1, 0, [800] * 40),
]
GROUPS = ["web", "db", "web"]


@pytest.fixture
def ops():
    sparse = [Histogram.of(row[5]).sparse() for row in ROWS]
    ops = {
        "worker": np.array([row[0] for row in ROWS], dtype=np.uint16),
        "thread": np.array([row[1] for row in ROWS], dtype=np.uint16),
        "op": np.array([row[2] for row in ROWS], dtype=np.uint8),
        "name": np.array([row[3] for row in ROWS], dtype=np.uint16),
        "errno": np.array([row[4] for row in ROWS], dtype=np.int32),
        "count": np.array([len(row[5]) for row in ROWS], dtype=np.uint64),
        "bytes": np.array([0 if row[4] else 10 * len(row[5]) for row in ROWS], dtype=np.uint64),
        "group": GROUPS,
        "names": ["get", "pause", "put"],
        "response_offsets": np.zeros(len(ROWS) + 1, dtype=np.int64),
        "response_bucket": np.array([], dtype=np.uint16),
        "response_count": np.array([], dtype=np.uint64),
        "service_offsets": np.concatenate(([0], np.cumsum([len(b) for b, _ in sparse]))),
        "service_bucket": np.concatenate([b for b, _ in sparse]),
        "service_count": np.concatenate([c for _, c in sparse]),
    }
    return ops


def test_by_worker_waiting_is_no_request_and_steps_are_told(ops):
    found = parts(ops, "worker", 2.0)
    assert [(p["worker"], p["group"], p["count"], p["bytes"]) for p in found] == [
        (0, "web", 80, 800),
        (1, "db", 23, 200),
        (2, "web", 40, 400),
    ]
    assert found[0]["ops_per_s"] == 40 and found[1]["errors"] == {"EIO": 3}
    assert found[0]["service_ns"]["count"] == 80 and found[0]["service_ns"]["p50"] == pytest.approx(
        200, rel=0.01
    )
    assert found[1]["service_ns"]["count"] == 20, "failed requests have no latency"
    assert list(found[0]["ops"]) == ["read"] and list(found[0]["steps"]) == ["get", "pause"]
    assert found[0]["steps"]["pause"]["op"] == "other"


def test_by_group_workers_of_one_group_are_one(ops):
    found = parts(ops, "group", 1.0)
    assert [(p["group"], p["count"]) for p in found] == [("web", 120), ("db", 23)]
    whole = Histogram.of([100] * 30 + [200] * 50 + [800] * 40)
    assert found[0]["service_ns"] == whole.summary()


def test_by_thread_needs_threads_that_were_recorded_apart(ops):
    found = parts(ops, "thread", 1.0)
    assert [(p["worker"], p["thread"], p["count"]) for p in found] == [
        (0, 0, 30),
        (0, 1, 50),
        (1, 0, 23),
        (2, 0, 40),
    ]
    assert divided({"version": 1}, "thread") == {"version": 1, "by_thread": True}
    assert divided({"version": 1}, "worker") == {"version": 1}
    del ops["thread"]
    with pytest.raises(Error, match="by_thread"):
        parts(ops, "thread", 1.0)


def test_lateness_of_few_requests_has_no_percentiles():
    told = {"count": np.array([15, 4]), "p50_ns": 3, "p99_ns": 9, "max_ns": 9, "slope_ns_per_s": 0.5}
    assert lateness(told) == {"p50_ns": None, "p99_ns": None, "max_ns": 9, "slope_ns_per_s": 0.5}
    assert lateness({**told, "count": np.array([999, 1])})["p99_ns"] == 9
    assert lateness({}) == {}
