"""Means of groups of runs: t tests with their intervals, and how runs are averaged.

Sources: Student, Biometrika 6, 1908; B. Welch, Biometrika 34, 1947; for the interval of a ratio E.
Fieller, Journal of the Royal Statistical Society B 16, 1954, with Satterthwaite's degrees of
freedom at the ratio found. A test is made once, when all runs are there. To repeat it after every
run until it succeeds finds differences where there are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from loadstone.errors import OptionError
from loadstone.stats.intervals import Blocks, Interval, paired, pooled, welch
from loadstone.stats.metric import Mean
from loadstone.stats.samples import Summary, sample, share
from loadstone.stats.variances import f_test

ALIKE = 0.05
"""The F test calls variances different below this chance, as the snapshots thesis does (chapter
7).
"""

Variances = Literal["auto", "pooled", "welch"]


@dataclass(frozen=True)
class TTest:
    """Whether the means of two groups differ, and by how much."""

    statistic: float
    """Difference over its standard error; infinite where no value varies and the means differ."""
    freedom: float
    """Degrees of freedom; a fraction for Welch's test."""
    p: float
    """Two-sided: chance of means as far apart, if the true ones were equal; 1 where runs are too
    few to tell.
    """
    difference: Interval
    """Second minus first, in the unit of the values."""
    ratio: Interval | None
    """Second over first; None of pairs, and where the first mean may be zero, so that any ratio may
    be.
    """
    variances: Literal["pooled", "welch", "paired"]
    """How the error was found."""


def t_test(
    first: ArrayLike | Summary,
    second: ArrayLike | Summary,
    variances: Variances = "auto",
    confidence: float = 0.99,
    blocks: Blocks | None = None,
) -> TTest:
    """Two-sample t test of values, shape ``(n,)`` each, or of their summaries; paired where there
    are ``blocks``.

    ``auto`` asks the F test at 5 % whether variances may be pooled, as the snapshots thesis does.
    ``welch`` is the safer choice where no paper is repeated. The difference is second minus first;
    R's ``t.test(x, y)`` tells ``x`` minus ``y``, which is ``t_test(y, x)``. Raises ``OptionError``
    for summaries with blocks.
    """
    if variances not in ("auto", "pooled", "welch"):
        raise OptionError("variances", variances, "must be auto, pooled or welch")
    share(confidence)
    if blocks is not None:
        if isinstance(first, Summary) or isinstance(second, Summary):
            raise OptionError("blocks", None, "need the values; a summary has no pairs")
        found = paired(first, second, blocks)
        gap = found.interval(confidence)
        return TTest(found.statistic, found.freedom, found.p(), gap, None, "paired")
    a, b = Summary.of(first, "first"), Summary.of(second, "second")
    way: Literal["pooled", "welch"] = "pooled" if variances == "pooled" else "welch"
    if variances == "auto" and _alike(a, b):
        way = "pooled"
    found = (pooled if way == "pooled" else welch)(a, b)
    return TTest(
        found.statistic,
        found.freedom,
        found.p(),
        found.interval(confidence),
        _fieller(a, b, way == "pooled", confidence),
        way,
    )


def _alike(a: Summary, b: Summary) -> bool:
    """Whether variances may be pooled; a single value has none of its own."""
    if min(a.n, b.n) < 2:
        return True
    if 0 in (a.variance, b.variance):
        return a.variance == b.variance
    return f_test(a, b).p >= ALIKE


def _fieller(a: Summary, b: Summary, one_variance: bool, confidence: float) -> Interval | None:
    """The interval of the mean of b over that of a."""
    from scipy.special import stdtrit

    if a.mean == 0:
        return None
    value, n = b.mean / a.mean, min(a.n, b.n)
    if one_variance:
        freedom = float(a.n + b.n - 2)
        if freedom < 1:
            return None
        common = sum((one.n - 1) * one.variance for one in (a, b) if one.n > 1) / freedom
        of_a, of_b = common / a.n, common / b.n
    else:
        if n < 2:
            return None
        of_a, of_b = a.variance / a.n, b.variance / b.n
        both = of_b + value**2 * of_a
        parts = (of_b / both, value**2 * of_a / both) if both else (0.5, 0.5)
        freedom = 1 / (parts[0] ** 2 / (b.n - 1) + parts[1] ** 2 / (a.n - 1))
    times = float(stdtrit(freedom, (1 + confidence) / 2))
    unsure = (times * math.sqrt(of_a) / abs(a.mean)) ** 2
    if unsure >= 1:
        return None
    half = times / abs(a.mean) * math.sqrt(max(of_b * (1 - unsure) + value**2 * of_a, 0.0))
    low, high = ((value + sign * half) / (1 - unsure) for sign in (-1, 1))
    return Interval(value, low, high, confidence, "Fieller", n)


def change(first: float, second: float) -> float:
    """Change from the first to the second as a share of the first: -0.1 is a decrease of 10 %.

    Raises ``OptionError`` where the first is not a number above zero.
    """
    if not (math.isfinite(first) and math.isfinite(second) and first > 0):
        raise OptionError("first", first, "must be above zero to tell a change as a share of it")
    return (second - first) / first


def mean_of(values: ArrayLike, mean: Mean = "arithmetic") -> float:
    """The mean over runs, of the kind that the metric declares, in the unit of the values.

    Harmonic for rates of equal work: the same as all work over all time. Geometric for ratios. Both
    need values above zero; ``OptionError`` is raised for others (P. Fleming and J. Wallace,
    Communications of the ACM 29, 1986).
    """
    if mean not in ("arithmetic", "harmonic", "geometric"):
        raise OptionError("mean", mean, "must be arithmetic, harmonic or geometric")
    found = sample(values, positive=mean != "arithmetic")
    if mean == "harmonic":
        return float(len(found) / np.sum(1 / found))
    return float(found.mean() if mean == "arithmetic" else np.exp(np.log(found).mean()))
