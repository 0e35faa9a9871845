"""Whether two groups vary alike: F test, and Levene's with the median as the centre.

The F test (R. Fisher; G. Snedecor and W. Cochran, Statistical Methods) needs values of a normal
distribution and errs badly on others. Readers of papers expect it, and
:func:`loadstone.stats.means.t_test` can choose by it. :func:`levene` (M. Brown and A. Forsythe,
Journal of the American Statistical Association 69, 1974) does not need normal values; prefer it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadstone.errors import OptionError
from loadstone.stats.intervals import Interval
from loadstone.stats.samples import Summary, sample, share


@dataclass(frozen=True)
class FTest:
    """The ratio of two variances."""

    statistic: float
    """Variance of the second group over that of the first."""
    freedoms: tuple[int, int]
    """Degrees of freedom of the second and of the first group."""
    p: float
    """Two-sided: chance of a ratio as far from 1, if the variances were alike."""
    ratio: Interval
    """The statistic and its interval."""


@dataclass(frozen=True)
class Levene:
    """Spread around each group's median, compared."""

    statistic: float
    freedoms: tuple[int, int]
    """Of the groups, and of the values within."""
    p: float
    """Chance of spreads as different, if all groups varied alike."""


def f_test(first: ArrayLike | Summary, second: ArrayLike | Summary, confidence: float = 0.99) -> FTest:
    """F test of two groups of values, shape ``(n,)`` each, or of their summaries.

    The ratio is second over first; R's ``var.test(x, y)`` tells ``x`` over ``y``, which is
    ``f_test(y, x)``. Raises ``OptionError`` for fewer than two values, and where a group does not
    vary at all: then there is no ratio.
    """
    from scipy.stats import f

    a, b = Summary.of(first, "first"), Summary.of(second, "second")
    for name, one in (("first", a), ("second", b)):
        if one.n < 2:
            raise OptionError(name, None, "is a single value, which has no variance; make more runs")
        if one.variance == 0:
            raise OptionError(name, None, "does not vary; the F test needs values that do")
    statistic = b.variance / a.variance
    freedoms = b.n - 1, a.n - 1
    tails = float(f.cdf(statistic, *freedoms)), float(f.sf(statistic, *freedoms))
    rest = (1 - share(confidence)) / 2
    low, high = (statistic / float(f.ppf(at, *freedoms)) for at in (1 - rest, rest))
    interval = Interval(statistic, low, high, confidence, "F", min(a.n, b.n))
    return FTest(statistic, freedoms, min(2 * min(tails), 1.0), interval)


def levene(*groups: ArrayLike) -> Levene:
    """Levene's test of two or more groups, each of shape ``(n,)`` with at least three values.

    Groups that do not vary at all are alike: p is 1. Raises ``OptionError`` where the deviations
    within each group are all of one size, which leaves the test without a scale.
    """
    from scipy.stats import f

    if len(groups) < 2:
        raise OptionError("groups", len(groups), "must be at least two")
    found = [sample(one, f"groups[{at}]", least=3) for at, one in enumerate(groups)]
    deviations = [np.abs(one - np.median(one)) for one in found]
    total = sum(map(len, deviations))
    freedoms = len(found) - 1, total - len(found)
    middle = np.concatenate(deviations).mean()
    between = sum(len(one) * float(one.mean() - middle) ** 2 for one in deviations)
    # Rounding of a mean must not count as spread.
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in deviations if np.ptp(one) > 0)
    if within == 0:
        if max(float(one.max()) for one in deviations) == 0:
            return Levene(0.0, freedoms, 1.0)
        raise OptionError("groups", None, "have too few different values for this test; make more runs")
    statistic = between / freedoms[0] / (within / freedoms[1])
    return Levene(statistic, freedoms, float(f.sf(statistic, *freedoms)))
