"""Whether two groups of runs are the same within a margin, differ by more, or neither can be said.

Two one-sided tests (D. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987): two means
are equivalent where the 90 % interval of their ratio lies within the margin. At the edge of the margin this
errs in at most 5 % of the cases. They differ by more where a wider interval lies outside of it as a whole:
one of 95 %, or of several comparisons together (Bonferroni), so that of groups that are alike none is called
different in 95 % of the cases. The intervals are those of Welch (Biometrika 34, 1947) for the difference of
the means of logarithms. So they are of the ratio of geometric means, and need positive values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.90
"""Of the interval that must lie within the margin: one-sided tests at 5 %."""
ERROR = 0.05
"""Share of cases in which groups that are alike may be called different, of all comparisons together."""
LEAST_TO_DIFFER = 3
"""Runs of each kind below which none are called different: two have one degree of freedom each."""
MOST_RUNS = 30
"""Runs of each kind beyond which more are not proposed."""
POWER = 0.8
"""Share of cases in which as many runs as are proposed should decide."""

Answer = Literal["same", "different", "open"]


@dataclass(frozen=True)
class Ratio:
    """Second over first, and the intervals in which it lies."""

    value: float
    """Of the geometric means."""
    low: float
    """Lower end of the 90 % interval."""
    high: float
    """Its upper end; infinite where one of the groups has a single value."""
    least: float
    """Lower end of the interval that must lie outside of the margin for a difference."""
    most: float
    """Its upper end."""

    def answer(self, margin: float, runs: int) -> Answer:
        """Whether it is 1 within ``margin`` (0.05: from 0.95 to 1/0.95), by so many runs of each kind."""
        edge, other = 1 - margin, 1 / (1 - margin)
        if edge <= self.low and self.high <= other:
            return "same"
        outside = self.most < edge or self.least > other
        return "different" if outside and runs >= LEAST_TO_DIFFER else "open"


def ratio(first: Sequence[float], second: Sequence[float], tests: int = 1) -> Ratio | None:
    """The ratio of the second group's mean to the first's, as one of so many ``tests``.

    None where a value is not positive.
    """
    a, b = _logs(first), _logs(second)
    if a is None or b is None:
        return None
    middle = float(b.mean() - a.mean())
    halves = [_half_width(a, b, len(a), len(b), level) for level in (CONFIDENCE, 1 - ERROR / tests)]
    ends = [math.exp(min(middle + sign * half, 700.0)) for half in halves for sign in (-1, 1)]
    return Ratio(math.exp(middle), *ends)


def runs_to_decide(
    first: Sequence[float], second: Sequence[float], margin: float, tests: int = 1
) -> int | None:
    """Runs of each kind, as noisy as these, that decide in four of five cases; None beyond ``MOST_RUNS``.

    It is an estimate: the spread of few runs is itself known badly.
    """
    from scipy.stats import norm

    a, b = _logs(first), _logs(second)
    if a is None or b is None or min(len(a), len(b)) < 2:
        return None
    edge, apart = -math.log1p(-margin), abs(float(b.mean() - a.mean()))
    level = CONFIDENCE if apart < edge else 1 - ERROR / tests
    for runs in range(LEAST_TO_DIFFER, MOST_RUNS + 1):
        # Chance may take it to either edge.
        chance = float(norm.ppf((1 + POWER) / 2)) * math.sqrt(
            (float(a.var(ddof=1)) + float(b.var(ddof=1))) / runs
        )
        if _half_width(a, b, runs, runs, level) + chance < abs(edge - apart):
            return runs
    return None


def _logs(values: Sequence[float]) -> NDArray[np.float64] | None:
    found = np.asarray(values, dtype=np.float64)
    return np.log(found) if len(found) and (found > 0).all() else None


def _half_width(
    a: NDArray[np.float64], b: NDArray[np.float64], of_a: int, of_b: int, confidence: float
) -> float:
    """Half of the interval with so many runs of the spread that these have."""
    from scipy.stats import t

    if min(len(a), len(b)) < 2:
        return math.inf
    parts = float(a.var(ddof=1)) / of_a, float(b.var(ddof=1)) / of_b
    if sum(parts) == 0:
        return 0.0
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (of_a - 1) + parts[1] ** 2 / (of_b - 1))
    return float(t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(sum(parts))
