"""fio's JSON (``--output-format=json``, format of fio 3): rates and latencies by direction, and by job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_PERCENTILES = (50.0, 95.0, 99.0, 99.9)
_BEYOND = 10
"""Requests that must be beyond a percentile."""


def read(text: str) -> list[tuple[Metric, float]]:
    """``read.iops``, ``read.bw``, ``read.latency_mean``, ``read.latency_p99``, ...; also by name of the job.

    Rates are summed over jobs. Percentiles are of completion latency, and only told of single jobs.
    """
    begin = text.find("{")
    try:
        jobs = json.JSONDecoder().raw_decode(text[begin:])[0]["jobs"] if begin >= 0 else None
    except (ValueError, KeyError, TypeError):
        jobs = None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs) or not jobs:
        raise Error("is no JSON of fio; run fio with --output-format=json")
    if failed := [job for job in jobs if job.get("error")]:
        raise Error(f"fio: job {failed[0].get('jobname')} ended with error {failed[0]['error']}")
    found = _figures(jobs, "")
    names = dict.fromkeys(str(job.get("jobname")) for job in jobs)
    if len(names) > 1:
        for name in names:
            found += _figures([job for job in jobs if str(job.get("jobname")) == name], f"{name}.")
    if not found:
        raise Error("fio: no job did any I/O")
    return found


def _figures(jobs: Sequence[Mapping[str, Any]], before: str) -> list[tuple[Metric, float]]:
    found: list[tuple[Metric, float]] = []
    for way in ("read", "write", "trim"):
        sides = [side for job in jobs if (side := job.get(way) or {}).get("total_ios")]
        if not sides:
            continue
        name = f"{before}{way}"
        ios = sum(side["total_ios"] for side in sides)
        mean = sum(side["lat_ns"]["mean"] * side["total_ios"] for side in sides) / ios
        found += [
            (Metric(f"{name}.iops", "ops/s", "higher", "harmonic"), sum(side["iops"] for side in sides)),
            (Metric(f"{name}.bw", "bytes/s", "higher", "harmonic"), sum(side["bw_bytes"] for side in sides)),
            (Metric(f"{name}.latency_mean", "ns", "lower"), mean),
        ]
        told = sides[0].get("clat_ns", {}).get("percentile", {}) if len(sides) == 1 else {}
        for q in _PERCENTILES:
            if (value := told.get(f"{q:.6f}")) is not None and ios * (1 - q / 100) >= _BEYOND:
                found.append((Metric(f"{name}.latency_p{q:g}", "ns", "lower"), value))
    return found
