"""pgbench's report, of PostgreSQL 10 and newer."""

from __future__ import annotations

import re

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_LINES: tuple[tuple[str, Metric, float], ...] = (
    (r"latency average = ([\d.]+) ms", Metric("latency_mean", "ns", "lower"), 1e6),
    (r"latency stddev = ([\d.]+) ms", Metric("latency_stddev", "ns", "lower"), 1e6),
    (r"rate limit schedule lag: avg ([\d.]+)", Metric("lag_mean", "ns", "lower"), 1e6),
    (r"number of failed transactions: (\d+)", Metric("failed", "", "lower"), 1),
    (r"number of transactions skipped: (\d+)", Metric("skipped", "", "lower"), 1),
)


def read(text: str) -> list[tuple[Metric, float]]:
    """``tps`` (without the time to connect), latencies, and what failed."""
    told = re.findall(r"^tps = ([\d.]+) \((\w+)", text, re.M)
    if not told:
        raise Error("is no report of pgbench: it has no line that begins with tps")
    rates = {kind: float(value) for value, kind in told}
    # Before PostgreSQL 14 both were told.
    rate = rates.get("excluding", rates.get("without", float(told[0][0])))
    found = [(Metric("tps", "ops/s", "higher", "harmonic"), rate)]
    for regex, metric, scale in _LINES:
        if match := re.search(rf"^{regex}", text, re.M):
            found.append((metric, float(match[1]) * scale))
    return found
