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
Cells = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""``(step, bucket, count)`` of latency in the bundle's frozen buckets, one entry per non-empty cell."""

# What a run's worker gets its requests from, in the words of the report.
ROLES = {"trace": "replay", "model": "model", "uniform": "uniform", "program": "program"}


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
class Kind:
    """One op of a run, or one step of its program, over time.

    ``row`` holds its figures; ``waits`` tells that it is no request; ``cells`` are as a run's.
    """

    name: str
    row: OpRow
    service: Histogram
    cells: Cells
    waits: bool = False


@dataclass
class Series:
    """Numbers over time: ``time`` in seconds from the run's start, ``values`` as long."""

    time: Floats
    values: Floats


@dataclass
class Run:
    """One run as the report sees it.

    ``interval`` is the length of a step in seconds, ``widths`` that of each step (the last one may
    be longer or shorter); arrays have one value per step. ``p50``, ``p90`` and ``p99`` are in nanoseconds,
    NaN where too few completed to tell; ``cells`` are those of service latency.
    ``series`` names the bundle of several runs that the run is part of.
    """

    name: str
    role: str
    interval: float
    widths: Floats
    requests: Floats
    bytes: Floats
    failed: Floats
    p50: Floats
    p90: Floats
    p99: Floats
    service: Histogram
    cells: Cells
    ops: list[OpRow]
    summary: dict[str, Any]
    plan: dict[str, Any]
    environment: dict[str, Any]
    series: str | None = None
    kinds: list[Kind] = field(default_factory=list)
    """Its steps, of a program; else its ops."""
    response: Histogram | None = None
    response_p99: Floats | None = None
    flight: Series | None = None
    source_flight: Series | None = None
    lateness_p99: Series | None = None
    parameters: dict[str, Series] = field(default_factory=dict)
    events: list[tuple[float, str, str]] = field(default_factory=list)

    @property
    def stepped(self) -> bool:
        """Whether it is of a program, whose steps have names."""
        return "steps" in self.summary

    @property
    def time(self) -> Floats:
        """The middle of each step, seconds."""
        return np.asarray(np.cumsum(self.widths) - self.widths / 2, dtype=np.float64)


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
    """Runs of one kind in a bundle of several runs are repeats: one group. Every other run is its own.

    Groups are named by what they are (replay, model) where that tells them apart, else by the run or
    the bundle too. Replay comes first, then model, then the others in the order given.
    """
    order = list(ROLES.values())
    members: dict[tuple[str | None, str], list[Run]] = {}
    for run in runs:
        members.setdefault((run.series, run.role if run.series else run.name), []).append(run)
    groups = sorted(
        members.items(), key=lambda g: order.index(g[1][0].role) if g[1][0].role in order else len(order)
    )
    roles = [found[0].role for _, found in groups]
    out = []
    for i, ((series, _), found) in enumerate(groups):
        label = found[0].role
        if roles.count(label) > 1 or (len(groups) == 1 and not series):
            label = f"{label} ({series})" if series else found[0].name
        out.append(Group(label, *STYLES[i % len(STYLES)], found))
    return out
