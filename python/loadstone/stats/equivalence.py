"""Whether two groups of runs are the same within a margin, differ by more, or neither can be said.

Two one-sided tests (D. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987): two
means are equivalent where the 90 % interval of their ratio, or of their difference, lies within the
margin. At the edge of the margin this errs in at most 5 % of the cases. They differ by more where a
wider interval lies outside of it as a whole: one of 95 %, or of several comparisons together
(Bonferroni), so that of groups that are alike none is called different in 95 % of the cases. The
intervals are paired by block where there are blocks, else those of Welch (Biometrika 34, 1947).
Those of a ratio are made of logarithms. So they are of the ratio of geometric means, and need
positive values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadstone.errors import OptionError
from loadstone.stats.intervals import Blocks, Contrast, contrast, exponential, logs, paired, welch
from loadstone.stats.samples import Summary, by_block, sample

CONFIDENCE = 0.90
"""Of the interval that must lie within the margin: one-sided tests at 5 %."""
ERROR = 0.05
"""Share of cases in which groups that are alike may be called different, of all comparisons
together.
"""
LEAST_TO_DIFFER = 3
"""Runs of each kind below which none are called different: two have one degree of freedom each."""
MOST_RUNS = 30
"""Runs of each kind beyond which more are not proposed."""
POWER = 0.8
"""Share of cases in which as many runs as are proposed should decide."""

Answer = Literal["same", "different", "open"]
Margin = float | tuple[float, float]
"""How far the second may be from the first: one number for both sides, or the lower and the upper
edge.
"""


@dataclass(frozen=True)
class Between:
    """Second beside first, and the intervals in which that lies."""

    value: float
    """Of a ratio that of the geometric means."""
    low: float
    """Lower end of the 90 % interval."""
    high: float
    """Its upper end; infinite where one of the groups has a single value."""
    least: float
    """Lower end of the interval that must lie outside of the margin for a difference."""
    most: float
    """Its upper end."""
    contrast: Contrast
    """What they are made of: of logarithms for a ratio."""

    def edges(self, margin: Margin) -> tuple[float, float]:
        """The lower and the upper edge of the margin; raises ``OptionError`` for an impossible
        one.
        """
        raise NotImplementedError

    def p_same(self, margin: Margin) -> float:
        """Chance of such runs, if the true value were at an edge of the margin: below 0.05 they are
        the same.
        """
        raise NotImplementedError

    def answer(self, margin: Margin, runs: int) -> Answer:
        """Whether it lies within ``margin``, by so many runs of each kind."""
        edge, other = self.edges(margin)
        if edge <= self.low and self.high <= other:
            return "same"
        outside = self.most < edge or self.least > other
        return "different" if outside and runs >= LEAST_TO_DIFFER else "open"


class Ratio(Between):
    """Second over first. A margin of 0.05 is from 0.95 to 1/0.95; a pair holds two ratios, such as
    (0.9, 1.05).
    """

    def edges(self, margin: Margin) -> tuple[float, float]:
        """The lower and the upper edge of the margin, both above zero."""
        edge, other = (
            margin if isinstance(margin, tuple) else (1 - margin, 1 / (1 - margin) if margin != 1 else 0)
        )
        if not 0 < edge <= 1 <= other < math.inf:
            raise OptionError("margin", str(margin), "must be a share below 1, or two ratios around 1")
        return edge, other

    def p_same(self, margin: Margin) -> float:
        """The larger chance of the two one-sided tests."""
        edge, other = self.edges(margin)
        return max(self.contrast.p(math.log(edge), "above"), self.contrast.p(math.log(other), "below"))


class Difference(Between):
    """Second minus first. A margin of 3 is from -3 to 3, in the unit of the values; a pair may
    differ by side.
    """

    def edges(self, margin: Margin) -> tuple[float, float]:
        """The lower and the upper edge of the margin, in the unit of the values."""
        edge, other = margin if isinstance(margin, tuple) else (-margin, margin)
        if not -math.inf < edge <= 0 <= other < math.inf:
            raise OptionError("margin", str(margin), "must be at least 0, or two numbers around 0")
        return edge, other

    def p_same(self, margin: Margin) -> float:
        """The larger chance of the two one-sided tests."""
        edge, other = self.edges(margin)
        return max(self.contrast.p(edge, "above"), self.contrast.p(other, "below"))


def ratio(
    first: Sequence[float], second: Sequence[float], tests: int = 1, blocks: Blocks | None = None
) -> Ratio | None:
    """The ratio of the second group's mean to the first's, as one of so many ``tests``.

    Paired where ``blocks`` holds the block of each value. None where a value is not positive, or
    there are none.
    """
    if not _positive(first) or not _positive(second):
        return None
    a, b = logs(first, second, blocks)
    found = (welch if blocks is None else paired)(a, b)
    inner, outer = (exponential(found.interval(level)) for level in (CONFIDENCE, 1 - ERROR / tests))
    return Ratio(inner.value, inner.low, inner.high, outer.low, outer.high, found)


def difference(
    first: Sequence[float], second: Sequence[float], tests: int = 1, blocks: Blocks | None = None
) -> Difference:
    """The second group's mean minus the first's, in the unit of the values, as one of so many
    ``tests``.

    It serves quantities that may be zero or negative. Paired where ``blocks`` holds the block of
    each value.
    """
    found = contrast(first, second, blocks)
    inner, outer = (found.interval(level) for level in (CONFIDENCE, 1 - ERROR / tests))
    return Difference(inner.value, inner.low, inner.high, outer.low, outer.high, found)


def runs_to_decide(
    first: Sequence[float],
    second: Sequence[float],
    margin: Margin,
    tests: int = 1,
    blocks: Blocks | None = None,
    scale: Literal["ratio", "difference"] = "ratio",
    most: int = MOST_RUNS,
) -> int | None:
    """Runs of each kind, as noisy as these, that decide in four of five cases; None beyond
    ``most``.

    It is an estimate: the spread of few runs is itself known badly.
    """
    from scipy.stats import norm

    found: Between | None = (ratio if scale == "ratio" else difference)(first, second, tests, blocks)
    if found is None or math.isinf(found.contrast.error):
        return None
    edges = found.edges(margin)
    edge, other = (math.log(edges[0]), math.log(edges[1])) if scale == "ratio" else edges
    groups = logs(first, second, blocks) if scale == "ratio" else _plain(first, second, blocks)
    apart = found.contrast.value
    level = CONFIDENCE if edge < apart < other else 1 - ERROR / tests
    room = min(abs(apart - edge), abs(apart - other))
    for runs in range(LEAST_TO_DIFFER, most + 1):
        planned = _as_many(groups, runs, blocks is not None)
        # Chance may take it to either edge.
        chance = float(norm.ppf((1 + POWER) / 2)) * planned.error
        if planned.interval(level).half_width + chance < room:
            return runs
    return None


def _positive(values: Sequence[float]) -> bool:
    found = np.asarray(values, dtype=np.float64)
    return bool(len(found) and (found > 0).all() and np.isfinite(found).all())


def _plain(first: Sequence[float], second: Sequence[float], blocks: Blocks | None) -> tuple[np.ndarray, ...]:
    return (sample(first), sample(second)) if blocks is None else by_block(first, second, blocks)


def _as_many(groups: Sequence[np.ndarray], runs: int, pairs: bool) -> Contrast:
    """The contrast of so many runs that vary as these do."""
    if pairs:
        one = Summary.of(groups[1] - groups[0])
        error = math.sqrt(one.variance / runs)
        return Contrast(one.mean, error, runs - 1.0, "paired t", runs)
    a, b = (Summary.of(one) for one in groups)
    return welch(Summary(a.mean, a.variance, runs), Summary(b.mean, b.variance, runs))
