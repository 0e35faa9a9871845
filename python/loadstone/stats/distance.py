"""How far emulations are from replays, and how far either are from themselves.

The MDH thesis (section 3.5) states the root-mean-square and the maximum relative distance between
the curve of a response parameter over time in a replay and in an emulation. A single pair of runs
mixes two things: what the model lost, and what two runs of the very same load differ by anyway. So
the same statistic is taken between runs of the same kind, and stands beside it as the floor.

Definition. Run ``a`` gives a series ``a[1..n]``, one value per interval. Let ``s`` be the mean over
intervals and replays. For two runs ``a`` and ``b``

    rms(a, b) = sqrt(mean over i of (a[i] - b[i])**2) / s
    max(a, b) = (max over i of |a[i] - b[i]|) / s

- the **distance** is the mean of ``rms`` (of ``max``) over every pair of a replay and an emulation;
- the **floor** is the larger of its mean over the pairs of replays and over those of emulations.

Both average over pairs of *single* runs, so they compare like with like: were replays and
emulations drawn from one distribution, all pairs would be exchangeable, and the expected distance
would be no larger than the expected floor, whatever the noise is like. (The distance between the
*means* of three replays and three emulations is smaller by about ``sqrt(3)`` and comparable with no
pair; it is given too, for information, as an estimate of what the model itself lost.)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Distance:
    """The distance between two groups of series, relative to the mean of the first group."""

    rms: float
    """Mean over pairs across the groups of the root-mean-square over intervals."""
    max: float
    """Mean over pairs across the groups of the maximum over intervals."""
    floor_rms: float
    """The larger of the same between members of the first, and of the second group."""
    floor_max: float
    """Likewise for the maximum."""
    means_rms: float
    """Root-mean-square between the groups' mean series: the noise is averaged down."""
    means_max: float
    """Likewise for the maximum."""
    scale: float
    """What the differences were divided by: the mean of the first group."""


def pair(a: Floats, b: Floats, scale: float) -> tuple[float, float]:
    """Root-mean-square and maximum of ``a - b`` over intervals, divided by ``scale``.

    Dividing by zero gives 0 for equal series and infinity for others.
    """
    d = np.abs(a - b)
    if scale == 0:
        return (0.0, 0.0) if not d.any() else (float("inf"), float("inf"))
    return float(np.sqrt(np.mean(d**2)) / abs(scale)), float(d.max() / abs(scale))


def distance(first: ArrayLike, second: ArrayLike) -> Distance:
    """The distance between two groups of runs; each argument has one row per run.

    Both need at least two rows, or there is no floor, and equally many columns, at least one; no
    NaN. Raises ``ValueError`` otherwise.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or a.shape[1] == 0:
        raise ValueError(f"series of shapes {a.shape} and {b.shape} cannot be compared")
    if len(a) < 2 or len(b) < 2:
        raise ValueError("at least two runs of each kind are needed, or there is no noise floor")
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError("series with unknown values cannot be compared; leave those intervals out")
    scale = float(a.mean())

    def mean(pairs: list[tuple[Floats, Floats]]) -> Floats:
        out: Floats = np.array([pair(x, y, scale) for x, y in pairs]).mean(axis=0)
        return out

    across = mean(list(itertools.product(a, b)))
    floor = np.maximum(mean(list(itertools.combinations(a, 2))), mean(list(itertools.combinations(b, 2))))
    means = pair(a.mean(axis=0), b.mean(axis=0), scale)
    return Distance(
        float(across[0]),
        float(across[1]),
        float(floor[0]),
        float(floor[1]),
        means[0],
        means[1],
        scale,
    )
