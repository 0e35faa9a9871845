"""Metrics of a bundle: the figures that comparisons and repetition look at, each with unit and direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from loadstone import Error
from loadstone.bundle.check import damaged
from loadstone.bundle.read import Bundle, Series
from loadstone.stats.metric import Metric

Values = dict[str, float]
Found = tuple[dict[str, Metric], Values]

LATENCIES = ("mean", "p50", "p95", "p99", "p999")
"""What is told of each kind of latency; a percentile only where the requests of the run support it."""

_RATES = (
    Metric("ops_per_s", "ops/s", "higher", "harmonic"),
    Metric("bytes_per_s", "bytes/s", "higher", "harmonic"),
)
_TIMES = tuple(
    Metric(f"{kind}_{one}", "ns", "lower") for kind in ("response", "service") for one in LATENCIES
)
_CPU = Metric("cpu_per_request", "ns", "lower")
_OF_MEASUREMENTS = (
    Metric("per_s", "1/s", "higher", "harmonic"),
    Metric("bytes_per_s", "bytes/s", "higher", "harmonic"),
    Metric("seconds", "s", "lower"),
    Metric("cpu_s", "s", "lower"),
)

KINDS: Mapping[str, Metric] = {one.name: one for one in (*_RATES, *_TIMES, _CPU, *_OF_MEASUREMENTS)}
"""Every metric there is; one of a part of a run has the part's name before it, as ``read.service_p99``."""


def metrics_of(bundle: Bundle) -> Found:
    """Metrics of a run, or of several runs that are one, and the value of each; the first is the primary one.

    Of a run: ``ops_per_s``, ``bytes_per_s``, latencies (``response_p99`` from the intended time,
    ``service_p99`` from the issue), CPU per request; the same of each op and step where there are several.
    Of a script the rates of all its runs together, and what each run has. Of a suite its measurements.
    Raises ``Error`` where the summary holds what no run has.
    """
    what = str(bundle.path) if bundle.path is not None else "the run"
    with damaged(what):
        found = _series(bundle) if isinstance(bundle, Series) else _run(bundle.summary)
        bad = next((name for name, value in found[1].items() if not math.isfinite(value) or value < 0), None)
        if bad is not None:
            raise Error(f"{what}: its {bad} is {found[1][bad]}, which no run has; the bundle is damaged")
    return found


def _number(value: Any) -> float:
    """A number of a summary; raises ``TypeError`` for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} where a number should be")
    return float(value)


def _named(values: Iterable[tuple[str, float]]) -> Found:
    """Values by name, and what each is: the part of its name behind the last dot says that."""
    told = dict(values)
    return {name: replace(KINDS[name.rpartition(".")[2]], name=name) for name in told}, told


def _run(summary: Mapping[str, Any]) -> Found:
    values = _figures(summary)
    cpu, requests = summary.get("cpu"), _number(summary["requests"])
    if cpu and requests:
        values[_CPU.name] = (_number(cpu["user_ns"]) + _number(cpu["system_ns"])) / requests
    for parts in (summary["ops"], summary.get("steps") or {}):
        for part, of in parts.items() if len(parts) > 1 else ():
            for name, value in _figures(of).items():
                # A step may be called as an op is; the op is told then.
                values.setdefault(f"{part}.{name}", value)
    return _named(values.items())


def _figures(told: Mapping[str, Any]) -> Values:
    """Rates and latencies of a run, an op or a step; without bytes there is no rate of them."""
    found = {one.name: _number(told[one.name]) for one in _RATES}
    if not found["bytes_per_s"]:
        del found["bytes_per_s"]
    for kind in ("response", "service"):
        latencies = told.get(f"{kind}_ns") or {}
        for name in LATENCIES:
            if latencies.get(name) is not None:
                found[f"{kind}_{name}"] = _number(latencies[name])
    return found


def _series(series: Series) -> Found:
    if rows := series.summary.get("measurements"):
        return _named(_measurements(rows))
    bundles = series.bundles()
    seconds = sum(_number(one.summary["elapsed_ns"]) for one in bundles) / 1e9
    done = sum(one.summary["requests"] - one.summary["errors"] - one.summary["short"] for one in bundles)
    moved = sum(one.summary["bytes"] for one in bundles)
    rates = {"ops_per_s": done / seconds, **({"bytes_per_s": moved / seconds} if moved else {})}
    values = dict(rates)
    if len(bundles) > 1:
        for listed, one in zip(series.runs, bundles, strict=True):
            name = str(listed.get("role") or listed["name"])
            values |= {f"{name}.{metric}": value for metric, value in _run(one.summary)[1].items()}
    elif bundles:
        values |= _run(bundles[0].summary)[1]
    return _named(values.items())


_FIGURES = ("seconds", "bytes", "bytes_per_s", "count", "per_s", "left_out", "requests", "cpu_s")
"""What a measurement of a suite tells; all else is what it is known by."""


def _measurements(rows: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, float]]:
    """Rates, times and CPU of each measurement; those that were cut off have none."""
    told = list(rows)
    keys = [{key: value for key, value in row.items() if key not in _FIGURES} for row in told]
    # What all have in common tells none apart.
    apart = [key for key in dict.fromkeys(key for one in keys for key in one) if key != "test"]
    apart = [key for key in apart if len({str(one.get(key)) for one in keys}) > 1]
    for row, known in zip(told, keys, strict=True):
        name = " ".join([str(known["test"]), *(f"{key}={known[key]}" for key in apart if key in known)])
        for one in _OF_MEASUREMENTS:
            if row.get(one.name) is not None and (one.name != "bytes_per_s" or row[one.name]):
                yield f"{name}.{one.name}", _number(row[one.name])
