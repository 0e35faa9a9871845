"""Tests by ranks: whether values of one group tend to be larger, whatever their distribution.

Sources: H. Mann and D. Whitney, Annals of Mathematical Statistics 18, 1947; E. Brunner and U.
Munzel, Biometrical Journal 42, 2000. Mann and Whitney's assumes that both groups have one shape;
Brunner and Munzel's does not. Values are one a run. On single operations, which are not
independent, both find differences where there are none.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadstone.stats.samples import Floats, sample

EXACT = 50
"""Values of each group up to which chance is counted exactly where no values are equal."""
RELABELLED = 20_000
"""Ways to relabel runs up to which all are looked at where values are equal."""


@dataclass(frozen=True)
class RankTest:
    """The answer of a test by ranks."""

    statistic: float
    """Mann and Whitney: pairs in which the second is larger, equal ones half. Brunner and Munzel:
    their W.
    """
    p: float
    """Two-sided: chance of groups as far apart, if neither tended to be larger."""
    larger: float
    """Share of pairs in which the second value is larger than the first, equal ones half: 0.5 is no
    effect.
    """
    least_p: float
    """The smallest p that groups of these sizes can give: at three of each 0.1, so that 0.05 is out
    of reach.
    """


def least_p(first: int, second: int) -> float:
    """The smallest two-sided p of groups of these sizes: 2 over the number of ways to relabel the
    runs.
    """
    return min(2 / math.comb(first + second, first), 1.0)


def mann_whitney(first: ArrayLike, second: ArrayLike) -> RankTest:
    """Mann and Whitney's test of two groups, shape ``(n,)`` each.

    Exact up to ``EXACT`` values of each without equal ones, and by relabelling where the number of
    ways permits; else by the normal approximation.
    """
    from scipy.stats import mannwhitneyu, rankdata

    a, b = sample(first, "first"), sample(second, "second")
    larger, least = _larger(a, b), least_p(len(a), len(b))
    statistic = larger * len(a) * len(b)
    both = np.concatenate([a, b])
    if both.min() == both.max():
        return RankTest(statistic, 1.0, larger, least)
    equal = len(np.unique(both)) < len(both)
    if equal and math.comb(len(both), len(a)) <= RELABELLED:
        ranks = rankdata(both)
        ways = np.array(list(itertools.combinations(range(len(both)), len(a))))
        sums = ranks[ways].sum(axis=1)
        # The first way is the one found. Equal values make the sums lopsided: the smaller tail counts twice.
        tails = np.mean(sums <= sums[0] + 1e-9), np.mean(sums >= sums[0] - 1e-9)
        p = 2 * float(min(tails))
    else:
        way = "asymptotic" if equal or max(len(a), len(b)) > EXACT else "exact"
        p = float(mannwhitneyu(b, a, method=way).pvalue)
    return RankTest(statistic, min(p, 1.0), larger, least)


def brunner_munzel(first: ArrayLike, second: ArrayLike) -> RankTest:
    """Brunner and Munzel's test of two groups, shape ``(n,)`` each with at least two values.

    Its p comes from a t distribution, which is too small for few runs; so it is never told below
    ``least_p``. That is the answer, too, where all values of one group are larger than all others.
    """
    from scipy.special import stdtr
    from scipy.stats import rankdata

    a, b = sample(first, "first", least=2), sample(second, "second", least=2)
    larger, least = _larger(a, b), least_p(len(a), len(b))
    if larger in (0.0, 1.0):
        return RankTest(math.copysign(math.inf, larger - 0.5), least, larger, least)
    ranks = rankdata(np.concatenate([a, b]))
    parts, means = [], []
    for own, among in ((a, ranks[: len(a)]), (b, ranks[len(a) :])):
        # How many values of the other group are below each.
        others = among - rankdata(own)
        means.append(float(among.mean()))
        parts.append(len(own) * float(((others - others.mean()) ** 2).sum()) / (len(own) - 1))
    total = sum(parts)
    if total == 0:
        return RankTest(0.0, 1.0, larger, least)
    statistic = len(a) * len(b) * (means[1] - means[0]) / ((len(a) + len(b)) * math.sqrt(total))
    freedom = total**2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
    p = 2 * float(stdtr(freedom, -abs(statistic)))
    return RankTest(statistic, min(max(p, least), 1.0), larger, least)


def _larger(a: Floats, b: Floats) -> float:
    """Share of pairs in which b is larger."""
    order = np.sort(a)
    below = np.searchsorted(order, b, "left") + np.searchsorted(order, b, "right")
    return float(below.sum() / (2 * len(a) * len(b)))
