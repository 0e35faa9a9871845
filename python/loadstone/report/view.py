"""What the report draws, taken out of bundles: one :class:`Run` each, gathered in groups.

Nothing here knows how a bundle lies on disk; :mod:`loadstone.report.collect` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.stats.histogram import Histogram

Floats = NDArray[np.float64]

# What a run's worker gets its requests from, in the words of the report.
ROLES = {"trace": "replay", "model": "model", "uniform": "uniform"}


@dataclass
class OpRow:
    """One kind of request of a run.

    ``count`` and ``bytes`` are of the successful ones, ``failed`` counts the others by the name of
    their error, ``service`` is a histogram's summary in nanoseconds.
    """

    op: str
    count: int
    bytes: int
    failed: dict[str, int]
    service: dict[str, Any]


@dataclass
class Series:
    """Numbers over time: ``time`` in seconds from the run's start, ``values`` as long."""

    time: Floats
    values: Floats


@dataclass
class Run:
    """One run as the report sees it.

    ``interval`` is the recorder's interval in seconds; arrays have one value per interval.
    ``p50`` and ``p99`` are in nanoseconds, NaN where nothing completed; ``cells`` are
    ``(interval, bucket, count)`` of service latency in the bundle's frozen buckets.
    """

    name: str
    role: str
    interval: float
    requests: Floats
    bytes: Floats
    failed: Floats
    p50: Floats
    p99: Floats
    service: Histogram
    cells: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    ops: list[OpRow]
    summary: dict[str, Any]
    plan: dict[str, Any]
    environment: dict[str, Any]
    response: Histogram | None = None
    response_p99: Floats | None = None
    flight: Series | None = None
    source_flight: Series | None = None
    lateness_p99: Series | None = None
    parameters: dict[str, Series] = field(default_factory=dict)
    events: list[tuple[float, str, str]] = field(default_factory=list)

    @property
    def time(self) -> Floats:
        """The middle of each interval, seconds."""
        return np.asarray((np.arange(len(self.requests)) + 0.5) * self.interval, dtype=np.float64)


@dataclass
class Group:
    """Runs that are drawn alike: repeats of one thing. ``colour`` is one of the page's c0, c1, ..."""

    label: str
    colour: str
    dash: str
    runs: list[Run]

    def mean(self, values: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """Mean, least and most over the runs, per interval; as long as the longest run."""
        length = max((len(v) for v in values), default=0)
        rows = np.full((len(values), length), np.nan)
        for row, v in zip(rows, values, strict=True):
            row[: len(v)] = v
        known = ~np.isnan(rows)
        count = known.sum(axis=0)
        total = np.where(known, rows, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        low = np.where(known, rows, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, rows, -np.inf).max(axis=0, initial=-np.inf)
        return mean, np.where(count > 0, low, np.nan), np.where(count > 0, high, np.nan)

    def service(self) -> Histogram:
        """Service latency of all runs together."""
        return Histogram.merged(run.service for run in self.runs)

    def response(self) -> Histogram | None:
        """Response latency of all runs together; None where no run had intended times."""
        parts = [run.response for run in self.runs if run.response is not None]
        return Histogram.merged(parts) if parts else None


STYLES = [
    ("c0", "solid"),
    ("c1", "dash"),
    ("c2", "dot"),
    ("c3", "dashdot"),
    ("c4", "longdash"),
    ("c5", "solid"),
]


def group(runs: list[Run]) -> list[Group]:
    """Repeats of a role become one group where several roles are compared; else each run is its own.

    Replay comes first, then model, then the others in the order given. Runs recorded at different
    intervals are never put together.
    """
    order = list(ROLES.values())
    roles = sorted({run.role for run in runs}, key=lambda r: order.index(r) if r in order else 9)
    if len(roles) > 1 and len({run.interval for run in runs}) == 1:
        named = [(role, [run for run in runs if run.role == role]) for role in roles]
    else:
        named = [(run.name, [run]) for run in runs]
    return [Group(label, *STYLES[i % len(STYLES)], members) for i, (label, members) in enumerate(named)]
