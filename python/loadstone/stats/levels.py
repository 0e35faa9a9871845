"""Levels of a factor in ascending order, such as 0, 120, 240 snapshots: from which on does it
matter?

:func:`first_that_differs` is what papers ask: the first level whose runs differ from those of the
base. It depends on how many runs there are: with more runs an earlier level differs.
:func:`change_point` asks where the figures change most, and how well that is known. It does not
move with the number of runs, but its interval does.

Sources: many looks are corrected by S. Holm, Scandinavian Journal of Statistics 6, 1979. The change
point is that of D. Hinkley, Biometrika 57, 1970 (one step of the mean); its interval is made by
resampling runs within each level (A. Davison and D. Hinkley, Bootstrap Methods and their
Application, 1997), its p by relabelling runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from loadstone.errors import OptionError
from loadstone.stats.intervals import Interval
from loadstone.stats.many import holm
from loadstone.stats.means import Variances, t_test
from loadstone.stats.samples import Floats, sample, share

RESAMPLES = 1999
"""Of bootstrap and permutation."""


@dataclass(frozen=True)
class First:
    """The first level that differs from the base."""

    level: float | None
    """None where no level differs."""
    lasting: float | None
    """The first level from which on all differ; None where the last one does not."""
    ps: tuple[float, ...]
    """Of each level but the base, corrected for all of them together."""
    differences: tuple[Interval, ...]
    """Each of them minus the base, in the unit of the values; each interval is of one level
    alone.
    """


def first_that_differs(
    levels: Sequence[float],
    samples: Sequence[ArrayLike],
    confidence: float = 0.99,
    variances: Variances = "auto",
    direction: Literal["both", "lower", "higher"] = "both",
    blocks: Sequence[Sequence[int]] | None = None,
) -> First:
    """The first of the ascending ``levels`` whose runs differ from those of the first level.

    ``samples`` holds the values of each level, one a run, and ``blocks`` the block of each value
    where runs are paired. ``direction`` asks only for values that are lower or higher than the
    base. All levels together call one different wrongly in at most 1 - ``confidence`` of the cases
    (Holm).
    """
    _ascending(levels, samples)
    tests = [
        t_test(
            samples[0],
            samples[at],
            variances,
            confidence,
            None if blocks is None else (blocks[0], blocks[at]),
        )
        for at in range(1, len(levels))
    ]
    ps = []
    for test in tests:
        sign = {"both": 0, "lower": -1, "higher": 1}[direction] * test.difference.value
        ps.append(test.p if direction == "both" else test.p / 2 if sign > 0 else 1 - test.p / 2)
    corrected = holm(ps)
    found = corrected < 1 - share(confidence)
    first = levels[1 + int(np.argmax(found))] if found.any() else None
    same = np.flatnonzero(~found)
    from_here = int(same[-1]) + 1 if same.size else 0
    lasting = levels[1 + from_here] if from_here < len(found) else None
    return First(first, lasting, tuple(map(float, corrected)), tuple(one.difference for one in tests))


@dataclass(frozen=True)
class ChangePoint:
    """Where the mean changes most along the levels."""

    level: float
    """The first level after the change."""
    low: float
    """The interval that should hold that level: its lower end, one of the levels."""
    high: float
    """Its upper end, one of the levels."""
    before: float
    """Mean of all runs before, in the unit of the values."""
    after: float
    """Mean of all runs from that level on."""
    p: float
    """Chance of so large a change somewhere, if the levels did not matter: only below 0.05 there is
    a change.
    """


def change_point(
    levels: Sequence[float],
    samples: Sequence[ArrayLike],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 1,
) -> ChangePoint:
    """The one step of the mean along ascending ``levels`` that explains most, with its interval.

    ``samples`` holds the values of each level, one a run. A slow decline has its step in the
    middle. The same values and seed give the same answer.
    """
    groups = _ascending(levels, samples)
    rng = np.random.default_rng(seed)
    counts = np.array([len(one) for one in groups], dtype=np.float64)
    # Around the mean of all, so that squares of large values keep their digits.
    everything = np.concatenate(groups)
    middle = everything.mean()
    groups = [one - middle for one in groups]
    sums = np.array([one.sum() for one in groups])
    gains = _gains(sums[None], counts)[0]
    at = int(np.argmax(gains))
    drawn = np.stack(
        [one[rng.integers(0, len(one), (resamples, len(one)))].sum(axis=1) for one in groups], axis=1
    )
    places = np.argmax(_gains(drawn, counts), axis=1)
    rest = (1 - share(confidence)) / 2
    low, high = np.quantile(places, [rest, 1 - rest], method="inverted_cdf")
    edges = np.cumsum(counts)[:-1].astype(int)
    shuffled = rng.permuted(np.tile(everything - middle, (resamples, 1)), axis=1)
    relabelled = np.add.reduceat(shuffled, np.concatenate([[0], edges]), axis=1)
    # Values that are all alike change nowhere, whatever rounding leaves.
    as_large = _gains(relabelled, counts).max(axis=1) >= gains[at] * (1 - 1e-9)
    p = (1 + np.count_nonzero(as_large)) / (1 + resamples) if np.ptp(everything) > 0 else 1.0
    edge = edges[at]
    before, after = everything[:edge].mean(), everything[edge:].mean()
    return ChangePoint(
        levels[at + 1],
        levels[min(int(low), at) + 1],
        levels[max(int(high), at) + 1],
        float(before),
        float(after),
        float(p),
    )


def days_to_reach(count: float, per_hour: float) -> float:
    """Days until a policy of so many per hour has made ``count``: 604 snapshots at six an hour take
    4.19.
    """
    for name, value in (("count", count), ("per_hour", per_hour)):
        if not 0 < value < math.inf:
            raise OptionError(name, value, "must be a number above zero")
    return count / per_hour / 24


def _gains(sums: Floats, counts: Floats) -> Floats:
    """For rows of sums by level: how much of the squares a step behind each level but the last
    explains.
    """
    left, of_left = np.cumsum(sums, axis=1)[:, :-1], np.cumsum(counts)[:-1]
    right, of_right = sums.sum(axis=1)[:, None] - left, counts.sum() - of_left
    out: Floats = (left / of_left - right / of_right) ** 2 * (of_left * of_right / counts.sum())
    return out


def _ascending(levels: Sequence[float], samples: Sequence[ArrayLike]) -> list[Floats]:
    """The samples; raises where they are not those of ascending levels."""
    if len(levels) < 2 or len(levels) != len(samples):
        told = f"must be at least two, with one sample each; {len(samples)} are given"
        raise OptionError("levels", len(levels), told)
    if not (np.diff(sample(levels, "levels")) > 0).all():
        raise OptionError("levels", None, "must ascend; the first is the base")
    return [sample(one, f"samples[{at}]") for at, one in enumerate(samples)]
