"""From raw counters to response parameters per interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loadstone._arrow import AsArrow
from loadstone.errors import Error
from loadstone.observe.metrics import ENGINE, METRICS

NONE = -(2**63)
"""Stands for a value that could not be read."""

Floats = NDArray[np.float64]

# These may step back a little without meaning a reset (proc(5)).
_SOFT = ("cpu_idle", "cpu_iowait")
_BUSY = ("cpu_user", "cpu_nice", "cpu_system", "cpu_irq", "cpu_softirq", "cpu_steal")


@dataclass
class Response(AsArrow):
    """The response parameters of a run by interval; every array has one value per interval."""

    edges: Floats
    """Bounds of the intervals, CLOCK_MONOTONIC ns; one more than there are intervals."""
    values: dict[str, Floats]
    """Each metric of :data:`loadstone.observe.METRICS`, those of a bundle also of ``ENGINE``; NaN where it
    cannot be told."""
    counts: dict[str, Floats]
    """How many of what the metric table names as ``counted`` fell in each interval."""

    def _columns(self) -> Mapping[str, Floats]:
        """Bounds of each interval and its values."""
        return {"from_ns": self.edges[:-1], "to_ns": self.edges[1:], **self.values}


class _Counters:
    """Differences of raw columns over intervals, interpolated linearly between samples."""

    def __init__(self, samples: Mapping[str, NDArray[np.int64]], edges: Floats) -> None:
        self.samples = samples
        self.time = samples["time"].astype(np.float64)
        self.edges = edges
        self.seconds = np.diff(edges) / 1e9

    def _known(self, name: str) -> tuple[Floats, Floats] | None:
        column = self.samples.get(name)
        if column is None:
            return None
        known = column != NONE
        if known.sum() < 2:
            return None
        return self.time[known], column[known].astype(np.float64)

    def _nothing(self) -> Floats:
        return np.full(len(self.seconds), np.nan)

    def delta(self, name: str) -> Floats:
        """What a counter gained in each interval; NaN where reset or not sampled."""
        known = self._known(name)
        if known is None:
            return self._nothing()
        time, value = known
        steps = np.diff(value)
        total = np.concatenate(([0.0], np.cumsum(np.maximum(steps, 0))))
        out = np.diff(np.interp(self.edges, time, total))
        if name not in _SOFT:
            # An interval that touches a backward step has an unknown difference.
            for i in np.flatnonzero(steps < 0):
                out[(self.edges[:-1] < time[i + 1]) & (self.edges[1:] > time[i])] = np.nan
        out[(self.edges[:-1] < time[0]) | (self.edges[1:] > time[-1])] = np.nan
        return out

    def mean(self, name: str) -> Floats:
        """The mean of a level over each interval, linear between samples."""
        known = self._known(name)
        if known is None:
            return self._nothing()
        time, value = known
        area = np.concatenate(([0.0], np.cumsum((value[1:] + value[:-1]) / 2 * np.diff(time))))
        out = np.diff(np.interp(self.edges, time, area)) / np.diff(self.edges)
        out[(self.edges[:-1] < time[0]) | (self.edges[1:] > time[-1])] = np.nan
        return out

    def sum_of_samples(self, name: str) -> Floats:
        """The sum of a level's samples inside each interval."""
        known = self._known(name)
        if known is None:
            return self._nothing()
        return np.histogram(known[0], bins=self.edges, weights=known[1])[0].astype(np.float64)

    def sampled(self) -> Floats:
        """Samples inside each interval."""
        return np.histogram(self.time, bins=self.edges)[0].astype(np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _zero(values: Floats) -> Floats:
    return np.nan_to_num(values, nan=0.0)


def response_parameters(
    samples: Mapping[str, NDArray[np.int64]], edges: ArrayLike, ticks_per_s: int = 100
) -> Response:
    """The eleven response parameters (MDH thesis 5.5.2), and others, over the given intervals.

    ``samples`` are an observation's raw columns, ``edges`` ascending times on its clock (ns). Rates
    are differences over time; latency is milliseconds spent by reads and writes over their number
    (iostat's await); request size bytes over number; queue length the weighted time in the queue
    over time (iostat's aqu-sz); utilisation the time with a request in flight over time; CPU the
    share of all CPUs' ticks that was neither idle nor iowait; memory the mean size of the page
    cache and buffers, dirty pages included; processes blocked the mean number waiting for I/O.

    A parameter is NaN where its counters are absent, were reset inside the interval, or where the
    interval reaches beyond the samples; a ratio also where nothing was counted. Raises ``Error``
    for edges that do not ascend or fewer than two samples.
    """
    bounds = np.asarray(edges, dtype=np.float64)
    if bounds.ndim != 1 or len(bounds) < 2 or not np.all(np.diff(bounds) > 0):
        raise Error("the edges of intervals must be at least two ascending times")
    if len(samples["time"]) < 2:
        raise Error("there are fewer than two samples; observe for longer, or at a shorter interval")
    c = _Counters(samples, bounds)
    dt = c.seconds
    reads, writes = c.delta("disk_reads"), c.delta("disk_writes")
    requests = reads + writes
    waited = c.delta("disk_read_ms") + c.delta("disk_write_ms")
    read_bytes, write_bytes = (
        c.delta("disk_read_sectors") * 512,
        c.delta("disk_write_sectors") * 512,
    )
    busy_ms, queue_ms = c.delta("disk_busy_ms"), c.delta("disk_queue_ms")
    discards, flushes = c.delta("disk_discards"), c.delta("disk_flushes")
    # steal and softirq are absent on very old kernels: they count as nothing there.
    busy = c.delta("cpu_user") + sum(_zero(c.delta(name)) for name in _BUSY[1:])
    idle = c.delta("cpu_idle") + _zero(c.delta("cpu_iowait"))
    interrupts, switches = c.delta("interrupts"), c.delta("context_switches")
    stalled = c.delta("io_some_us")
    own = c.delta("process_user_us") + c.delta("process_system_us")
    sampled = c.sampled()
    values = {
        "reads_per_s": reads / dt,
        "writes_per_s": writes / dt,
        "latency_ms": _ratio(waited, requests),
        "utilisation": busy_ms / 1e3 / dt,
        "queue_length": queue_ms / 1e3 / dt,
        "request_size": _ratio(read_bytes + write_bytes, requests),
        "cpu": _ratio(busy, busy + idle),
        "memory": c.mean("mem_cached") + _zero(c.mean("mem_buffers")),
        "interrupts_per_s": interrupts / dt,
        "context_switches_per_s": switches / dt,
        "processes_blocked": c.mean("procs_blocked"),
        "read_bytes_per_s": read_bytes / dt,
        "write_bytes_per_s": write_bytes / dt,
        "discards_per_s": discards / dt,
        "flushes_per_s": flushes / dt,
        "dirty": c.mean("mem_dirty") + _zero(c.mean("mem_writeback")),
        "io_pressure": stalled / 1e6 / dt,
        "own_cpu": own / 1e6 / dt,
    }
    counts = {
        "reads_per_s": reads,
        "writes_per_s": writes,
        "latency_ms": requests,
        "utilisation": busy_ms,
        "queue_length": queue_ms,
        "request_size": requests,
        "cpu": busy,
        "memory": sampled,
        "interrupts_per_s": interrupts,
        "context_switches_per_s": switches,
        "processes_blocked": c.sum_of_samples("procs_blocked"),
        "read_bytes_per_s": reads,
        "write_bytes_per_s": writes,
        "discards_per_s": discards,
        "flushes_per_s": flushes,
        "dirty": sampled,
        "io_pressure": stalled / 1e3,
        "own_cpu": own / 1e3,
    }
    assert values.keys() == counts.keys() == {m.name for m in METRICS}
    return Response(bounds, values, counts)


def engine_parameters(
    samples: Mapping[str, NDArray[np.int64]], edges: ArrayLike, done: ArrayLike, service_ns: ArrayLike
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """What the engine saw over the given intervals: :data:`loadstone.observe.ENGINE`, values and counts.

    ``samples`` are an observation's raw columns, of which ``progress`` says how many requests had completed;
    ``done`` are ascending times (ns) on the same clock, one more than ``service_ns`` has rows: count and sum
    of the service latencies (ns) of the requests that succeeded between two of them.
    """
    bounds = np.asarray(edges, dtype=np.float64)
    rows = np.asarray(service_ns, dtype=np.int64).reshape(-1, 2)
    time = np.asarray(done, dtype=np.int64)
    # Known from before the first interval until after the last: nothing completes outside.
    time = np.concatenate(([min(time[0], int(bounds[0])) - 1], time, [max(time[-1], int(bounds[-1])) + 1]))
    sums = np.concatenate((np.zeros((2, 2), np.int64), np.cumsum(rows, axis=0), rows.sum(axis=0)[None]))
    kept = _Counters({"time": time, "count": sums[:, 0], "service": sums[:, 1]}, bounds)
    completed = _Counters(samples, bounds).delta("progress")
    count = kept.delta("count")
    values = {
        "engine_ops_per_s": completed / kept.seconds,
        "engine_latency_ms": _ratio(kept.delta("service") / 1e6, count),
    }
    counts = {"engine_ops_per_s": completed, "engine_latency_ms": count}
    assert values.keys() == counts.keys() == {m.name for m in ENGINE}
    return values, counts


def time_edges(start_ns: float, end_ns: float, intervals: int) -> Floats:
    """``intervals`` equal intervals between two times."""
    return np.linspace(start_ns, end_ns, intervals + 1)


def progress_edges(samples: Mapping[str, NDArray[np.int64]], intervals: int) -> Floats:
    """Times at which each ``intervals``-th part of all requests had been issued.

    Linear between samples. The first edge is the last sample before anything was issued, the last
    one the first sample at which all had been. Raises ``Error`` where the progress was not sampled
    or rises in too few samples to part the run.
    """
    time, progress = samples["time"].astype(np.float64), samples["progress"]
    total = progress[-1]
    if total <= 0:
        raise Error("no progress was sampled; the run issued no request")
    # Index of the first sample at or past each mark, so that a standstill is not crossed by a line.
    marks = np.arange(1, intervals + 1) * (float(total) / intervals)
    at = np.searchsorted(progress, marks, side="left")
    before = np.maximum(at - 1, 0)
    low, high = progress[before].astype(np.float64), progress[at].astype(np.float64)
    share = np.where(high > low, (marks - low) / np.where(high > low, high - low, 1), 1.0)
    inner = time[before] + share * (time[at] - time[before])
    start = time[max(int(np.argmax(progress > 0)) - 1, 0)]
    edges = np.concatenate(([start], inner))
    # With less than a sample per interval the edges would be made of interpolation alone.
    inside = np.count_nonzero((time > edges[0]) & (time <= edges[-1]))
    if inside < intervals or not np.all(np.diff(edges) > 0):
        raise Error(
            f"the run is too short to be cut into {intervals} intervals by its progress; "
            "let it take longer, at a pace or with more requests, or sample more often"
        )
    return edges
