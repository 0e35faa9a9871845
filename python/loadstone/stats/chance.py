"""How often chance alone would set two groups of runs as far apart.

Were replays and emulations alike, which run is called what would not matter. So the runs are
relabelled: into all pairs of groups of these sizes, or 2,000 of them drawn at random, and of each
it is asked how far apart its groups are relative to their own floor. This is a permutation test (P.
Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 3rd ed., 2005); it assumes nothing
of the noise but that runs are exchangeable, and cannot answer less than one in the number of
different pairs: a third for two runs of each kind, a tenth for three.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loadstone.stats.distance import pair

RELABELLED = 2000
"""Most pairs of groups that are looked at."""

Floats = NDArray[np.float64]


def chance(first: ArrayLike, second: ArrayLike) -> float:
    """Share of relabellings that are at least as far apart as the groups are, 0 to 1.

    How far: RMS or maximum distance over its floor, whichever is more
    (:mod:`loadstone.stats.distance`). Each argument has one row per run and one column per
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
    drawn = np.array([rng.permutation(len(runs))[:size] for _ in range(RELABELLED)])
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
    others = 1 - groups

    def mean(rows: Floats, columns: Floats, pairs: Floats) -> Floats:
        total: Floats = np.einsum("gi,ijk,gj->gk", rows, between, columns, optimize=True)
        return total / pairs[:, None]

    sizes, rest = groups.sum(axis=1), others.sum(axis=1)
    across = mean(groups, others, sizes * rest)
    inside = mean(groups, groups, sizes * (sizes - 1))
    floor = np.maximum(inside, mean(others, others, rest * (rest - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = np.where(floor > 0, across / floor, np.where(across > 0, np.inf, 0.0))
    out: Floats = ratios.max(axis=1)
    return out
