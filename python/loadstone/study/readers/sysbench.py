"""sysbench's report, of 1.0: rates of fileio, events per second of others, latencies."""

from __future__ import annotations

import re

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_MIB = 1 << 20
_LINES: tuple[tuple[str, Metric, float], ...] = (
    (r"reads/s:\s+([\d.]+)", Metric("reads_per_s", "ops/s", "higher", "harmonic"), 1),
    (r"writes/s:\s+([\d.]+)", Metric("writes_per_s", "ops/s", "higher", "harmonic"), 1),
    (r"fsyncs/s:\s+([\d.]+)", Metric("fsyncs_per_s", "ops/s", "higher", "harmonic"), 1),
    (r"read, MiB/s:\s+([\d.]+)", Metric("read_bytes_per_s", "bytes/s", "higher", "harmonic"), _MIB),
    (r"written, MiB/s:\s+([\d.]+)", Metric("written_bytes_per_s", "bytes/s", "higher", "harmonic"), _MIB),
    (r"transactions:\s+\d+\s+\(([\d.]+) per sec", Metric("transactions_per_s", "ops/s", "higher"), 1),
    (r"queries:\s+\d+\s+\(([\d.]+) per sec", Metric("queries_per_s", "ops/s", "higher"), 1),
    (r"avg:\s+([\d.]+)", Metric("latency_mean", "ns", "lower"), 1e6),
    (r"max:\s+([\d.]+)", Metric("latency_max", "ns", "lower"), 1e6),
    (r"(?:\d+)th percentile:\s+([\d.]+)", Metric("latency_percentile", "ns", "lower"), 1e6),
)


def read(text: str) -> list[tuple[Metric, float]]:
    """``events_per_s`` first, which every test has; sums of reads and writes come as sysbench tells them."""
    time = re.search(r"total time:\s+([\d.]+)s", text)
    events = re.search(r"total number of events:\s+(\d+)", text)
    if time is None or events is None or not float(time[1]):
        raise Error("is no report of sysbench 1.0: it lacks the total time and number of events")
    rate = Metric("events_per_s", "ops/s", "higher", "harmonic")
    found = [(rate, int(events[1]) / float(time[1]))]
    for regex, metric, scale in _LINES:
        if match := re.search(rf"^\s*{regex}", text, re.M):
            found.append((metric, float(match[1]) * scale))
    return found
