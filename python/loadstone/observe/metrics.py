"""The one table of metrics: unit, direction and how intervals and runs are put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One quantity that an observation yields per interval."""

    name: str
    """Column name."""
    title: str
    """For people."""
    unit: str
    """Of its values."""
    better: Literal["higher", "lower", "neither"]
    """Which way is better for the system observed."""
    aggregation: Literal["rate", "ratio", "level"]
    """``rate``: events over time, so intervals average by their length; ``ratio``: of two counters,
    so
    they average by the lower one; ``level``: a quantity at a time, averaged over time."""
    counted: str
    """What is counted to tell whether an interval holds enough."""
    enough: float
    """The least mean count per interval (``ratio``: the least count of each interval) that may be
    used."""


PARAMETERS: tuple[Metric, ...] = (
    Metric("reads_per_s", "reads", "1/s", "higher", "rate", "reads", 5),
    Metric("writes_per_s", "writes", "1/s", "higher", "rate", "writes", 5),
    Metric("latency_ms", "request latency", "ms", "lower", "ratio", "requests", 5),
    Metric("utilisation", "utilisation", "share", "neither", "level", "busy milliseconds", 20),
    Metric(
        "queue_length",
        "queue length",
        "requests",
        "neither",
        "level",
        "milliseconds in the queue",
        20,
    ),
    Metric("request_size", "request size", "byte", "neither", "ratio", "requests", 5),
    Metric("cpu", "CPU utilisation", "share", "lower", "level", "busy clock ticks", 10),
    Metric("memory", "memory (page cache)", "byte", "neither", "level", "samples", 1),
    Metric("interrupts_per_s", "interrupts", "1/s", "lower", "rate", "interrupts", 20),
    Metric("context_switches_per_s", "context switches", "1/s", "lower", "rate", "switches", 20),
    Metric(
        "processes_blocked",
        "processes blocked",
        "processes",
        "lower",
        "level",
        "sightings of a blocked process",
        5,
    ),
)
"""The eleven response parameters of the MDH thesis, section 5.5.2, in its order."""

ENGINE: tuple[Metric, ...] = (
    Metric("engine_ops_per_s", "requests (engine)", "1/s", "higher", "rate", "requests", 5),
    Metric("engine_latency_ms", "latency (engine)", "ms", "lower", "ratio", "requests", 5),
)
"""What the engine itself saw, of loads that need not reach the device: system calls on files."""

METRICS: tuple[Metric, ...] = (
    *PARAMETERS,
    Metric("read_bytes_per_s", "bytes read", "byte/s", "higher", "rate", "reads", 5),
    Metric("write_bytes_per_s", "bytes written", "byte/s", "higher", "rate", "writes", 5),
    Metric("discards_per_s", "discards", "1/s", "neither", "rate", "discards", 5),
    Metric("flushes_per_s", "flushes", "1/s", "neither", "rate", "flushes", 5),
    Metric("dirty", "dirty and under write-back", "byte", "neither", "level", "samples", 1),
    Metric(
        "io_pressure",
        "time with a task stalled on I/O",
        "share",
        "lower",
        "level",
        "stalled milliseconds",
        20,
    ),
    Metric(
        "own_cpu",
        "CPUs used by Loadstone itself",
        "CPUs",
        "lower",
        "level",
        "milliseconds of CPU",
        20,
    ),
)
"""The eleven, and others that are shown beside them but not judged."""
