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

:func:`chance` says how often chance alone would set two groups of runs as far apart. Were replays and
emulations alike, which run is called what would not matter. So the runs are relabelled: into all
pairs of groups of these sizes, or 2,000 of them drawn at random, and of each it is asked how far
apart its groups are relative to their own floor. This is a permutation test (P. Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses, 3rd ed., 2005); it assumes nothing of the noise but
that runs are exchangeable, and cannot answer less than one in the number of different pairs: a
third for two runs of each kind, a tenth for three.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

RELABELLED = 2000
"""Most pairs of groups that are looked at."""


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


def chance(first: ArrayLike, second: ArrayLike) -> float:
    """Share of relabellings that are at least as far apart as the groups are, 0 to 1.

     How far: RMS or maximum distance over its floor, whichever is more
    . Each argument has one row per run and one column per
     interval; both have at least two rows, equally many columns, and no NaN. The same runs always
     give the same answer.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    runs, size = np.concatenate([a, b]), len(a)
    # A ratio of distances has no scale.
    between = np.array([[pair(x, y, 1.0) for y in runs] for x in runs])
    told = _ratios(between, _groups(np.arange(size)[None], len(runs)))[0]
    if math.comb(len(runs), size) <= RELABELLED:
        every = np.array(list(itertools.combinations(range(len(runs)), size)))
        return float(np.mean(_ratios(between, _groups(every, len(runs))) >= told - 1e-12))
    rng = np.random.default_rng(1)
    drawn = rng.permuted(np.tile(np.arange(len(runs)), (RELABELLED, 1)), axis=1)[:, :size]
    as_far = _ratios(between, _groups(drawn, len(runs))) >= told - 1e-12
    # The groups as they are count as one of them, so that chance is never zero.
    return float((1 + np.count_nonzero(as_far)) / (1 + RELABELLED))


def _groups(members: NDArray[np.int64], runs: int) -> Floats:
    """A row for each relabelling: 1 for runs of the first group, 0 for those of the second."""
    out: Floats = np.zeros((len(members), runs))
    np.put_along_axis(out, members, 1.0, axis=1)
    return out


def _ratios(between: Floats, groups: Floats) -> Floats:
    """Distance over floor of each relabelling, of RMS or maximum whichever is more."""
    sizes = groups.sum(axis=1)
    rest = groups.shape[1] - sizes
    ratios = []
    for measure in (np.ascontiguousarray(between[:, :, 0]), np.ascontiguousarray(between[:, :, 1])):
        # Not a product of matrices: its threads wait for each other where the host is busy.
        first = (np.einsum("gi,ij->gj", groups, measure) * groups).sum(axis=1)
        across = groups @ measure.sum(axis=1) - first
        second = measure.sum() - first - 2 * across
        floor = np.maximum(first / (sizes * (sizes - 1)), second / (rest * (rest - 1)))
        apart = across / (sizes * rest)
        # Sums of distances that are zero are left with rounding.
        tiny = 1e-12 * float(measure.max())
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios.append(np.where(floor > tiny, apart / floor, np.where(apart > tiny, np.inf, 0.0)))
    out: Floats = np.maximum(*ratios)
    return out
