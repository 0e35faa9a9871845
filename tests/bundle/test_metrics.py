"""Metrics of bundles: each has a unit, a direction and a mean, and the values are those of the summary."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from outcome import PLAN, outcome

from loadstone import Error
from loadstone.bundle import Bundle, Series, write_bundle
from loadstone.bundle.metrics import KINDS, metrics_of
from loadstone.stats.metric import Better, Mean


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "b"
    folder.mkdir()
    write_bundle(folder, PLAN, outcome()[0], {"host": "h"})
    return folder


def changed(folder, **keys):
    summary = json.loads((folder / "summary.json").read_text())
    summary.update(keys)
    (folder / "summary.json").write_text(json.dumps(summary))
    return Bundle.read(folder)


def test_no_metric_lacks_unit_direction_or_mean(bundle):
    for metric in (*KINDS.values(), *metrics_of(Bundle.read(bundle))[0].values()):
        assert metric.unit in ("ops/s", "bytes/s", "ns", "s", "1/s"), metric
        assert metric.better in get_args(Better) and metric.better != "neither"
        assert metric.mean in get_args(Mean)
        assert (metric.mean == "harmonic") is metric.unit.endswith("/s"), "rates of equal work"


def test_values_are_those_of_the_summary(bundle):
    read = Bundle.read(bundle)
    metrics, values = metrics_of(read)
    assert list(values)[:2] == ["ops_per_s", "bytes_per_s"] and list(metrics) == list(values)
    assert values["ops_per_s"] == read.summary["ops_per_s"]
    assert values["read.service_p50"] == read.summary["ops"]["read"]["service_ns"]["p50"]
    assert values["cpu_per_request"] == pytest.approx(11 / 300)
    # 250 requests support no 99.9th percentile.
    assert "service_p95" in values and "service_p999" not in values
    assert metrics["write.service_mean"].better == "lower"


def test_a_run_of_one_op_is_not_told_twice(bundle):
    read = Bundle.read(bundle)
    one = changed(bundle, ops={"read": read.summary["ops"]["read"]})
    assert not any(name.startswith("read.") for name in metrics_of(one)[0])


@pytest.mark.parametrize(
    "keys",
    [
        {"ops_per_s": -1.0},
        {"ops_per_s": True},
        {"service_ns": {"mean": "fast"}},
        {"service_ns": ["fast"]},
        {"service_ns": {"mean": -5}},
        {"cpu": {"user_ns": 1}},
        {"ops": {"read": 5, "write": 6}},
        {"cpu": "much"},
    ],
)
def test_a_summary_that_no_run_has_is_damaged(bundle, keys):
    with pytest.raises(Error, match="damaged"):
        metrics_of(changed(bundle, **keys))


def test_zeros_and_runs_without_requests(bundle):
    none = changed(
        bundle,
        ops_per_s=0.0,
        bytes_per_s=0.0,
        requests=0,
        service_ns={"count": 0},
        ops={},
        response_ns={"count": 0},
    )
    assert metrics_of(none)[1] == {"ops_per_s": 0.0}


def test_a_repeat_that_does_not_say_which_is_damaged(bundle):
    found = Series(None, "repeats", [{"name": "run1"}], {"repeats": [{}]}, [Bundle.read(bundle)])
    with pytest.raises(Error, match="damaged"):
        found.repeats()
    with pytest.raises(Error, match="script"):
        Series(None, "script", [], {}, []).repeats()
