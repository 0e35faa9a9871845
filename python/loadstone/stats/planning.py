"""How many runs are worth making, and at which level to repeat.

Sample sizes follow J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed., 1988,
with the noncentral t distribution. Levels follow T. Kalibera and R. Jones, Rigorous Benchmarking in
Reasonable Time, ISMM 2013: figures vary from one set-up of a system to the next, from run to run
within it, and from one measurement to the next within a run. Repeats pay where variance is large
and cost is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.errors import OptionError
from loadstone.stats.samples import sample, share

MOST = 1_000_000
"""Runs beyond which none are planned."""


def runs_for_width(
    spread: float, half_width: float = 0.05, confidence: float = 0.95, sure: float = 0.5, least: int = 2
) -> int | None:
    """Runs until the half-width of the t interval of the mean is below ``half_width``; None beyond
    ``MOST``.

    ``spread`` is the standard deviation of runs and ``half_width`` the wanted one, both in one unit
    or both as a share of the mean. ``sure`` is the share of series that shall reach it by then: the
    spread of a series varies, and at 0.5 half of them need more.
    """
    from scipy.stats import chi2, t

    _amount(spread, "spread", zero=True)
    _amount(half_width, "half_width")
    share(confidence), share(sure, "sure")

    def reached(n: int) -> bool:
        likely = spread * math.sqrt(float(chi2.ppf(sure, n - 1)) / (n - 1))
        return float(t.ppf((1 + confidence) / 2, n - 1)) * likely / math.sqrt(n) < half_width

    return _first(reached, max(least, 2))


def runs_for_difference(
    spread: float,
    difference: float,
    power: float = 0.8,
    confidence: float = 0.95,
    paired: bool = False,
) -> int | None:
    """Runs of each arm with which a t test finds a true ``difference``; None beyond ``MOST``.

    ``spread`` is the standard deviation of runs, or of the differences of pairs (``paired``); both
    are in one unit or both a share of the mean. ``power`` is the share of studies that shall find
    it, at 1 - ``confidence`` false finds.
    """
    from scipy.stats import nct, t

    _amount(spread, "spread", zero=True)
    _amount(abs(difference), "difference")
    share(power, "power"), share(confidence)
    if spread == 0:
        return 2
    effect = min(abs(difference) / spread, 1e3)

    def reached(n: int) -> bool:
        freedom = n - 1 if paired else 2 * (n - 1)
        off = effect * math.sqrt(n if paired else n / 2)
        edge = float(t.ppf((1 + confidence) / 2, freedom))
        # Beyond this the distribution is normal, and the library's own is slow and may answer NaN.
        found = float(nct.sf(edge, freedom, off)) if off < 30 else 1.0
        return found >= power

    return _first(reached, 2)


@dataclass(frozen=True)
class Levels:
    """How much figures vary at each level, from the outermost to the innermost."""

    variances: tuple[float, ...]
    """Variance of each level alone, in the square of the unit; 0 where the levels within explain
    all.
    """
    counts: tuple[float, ...]
    """Repeats of each level within the one around it: the harmonic mean where they differ."""
    mean: float
    """Mean of the means of the outermost level."""

    def error(self, counts: Sequence[float]) -> float:
        """Standard error of the mean with so many repeats of each level, in the unit of the
        values.
        """
        if len(counts) != len(self.variances) or min(counts, default=0) <= 0:
            raise OptionError(
                "counts", str(list(counts)), f"must be {len(self.variances)} numbers above zero"
            )
        return math.sqrt(sum(np.array(self.variances) / np.cumprod(counts)))

    def repeats(self, costs: Sequence[float]) -> tuple[int, ...]:
        """Repeats of each level but the outermost, within one of the level around it, that pay
        best.

        ``costs`` are those of one more repeat of each level, without the levels within it, in any
        unit. How often to repeat the outermost follows from the width that is wanted. At least 1
        each (Kalibera and Jones, 6).
        """
        if len(costs) != len(self.variances) or not all(0 < cost < math.inf for cost in costs):
            raise OptionError("costs", str(list(costs)), f"must be {len(self.variances)} numbers above zero")
        out = []
        for outer, inner in zip(range(len(costs)), range(1, len(costs)), strict=False):
            if self.variances[inner] == 0:
                out.append(1)
            elif self.variances[outer] == 0:
                out.append(MOST)
            else:
                pays = costs[outer] / costs[inner] * self.variances[inner] / self.variances[outer]
                out.append(max(1, min(math.ceil(math.sqrt(pays)), MOST)))
        return tuple(out)


def levels(values: object) -> Levels:
    """Splits the variance of nested values by level.

    ``values`` is a list for each set-up, of lists for each run, and so on down to numbers, such as
    ``[[10.1, 10.2], [9.7, 9.9]]``: two set-ups of two runs. All lists are equally deep; each level
    needs at least two repeats somewhere, else ``OptionError`` is raised. A group with one repeat
    tells nothing of the spread within it.
    """
    depth = _depth(values)
    current: list[object] = [values]
    parts: list[list[object]] = []
    for _ in range(depth):
        parts.append(current)
        current = [one for part in current for one in part]  # type: ignore[attr-defined]
    means = [float(one) for one in sample([_number(one) for one in current])]
    squares, counts = [0.0] * depth, [0.0] * depth
    for level in range(depth - 1, -1, -1):
        groups = []
        rest = iter(means)
        for part in parts[level]:
            groups.append([next(rest) for _ in range(len(part))])  # type: ignore[arg-type]
        several = [group for group in groups if len(group) > 1]
        if not several:
            raise OptionError("values", None, f"have no two repeats at level {level + 1}; repeat that level")
        freedom = sum(len(group) - 1 for group in several)
        squares[level] = sum((len(group) - 1) * float(np.var(group, ddof=1)) for group in several) / freedom
        counts[level] = len(groups) / sum(1 / len(group) for group in groups)
        means = [float(np.mean(group)) for group in groups]
    own = [
        max(squares[level] - (squares[level + 1] / counts[level + 1] if level + 1 < depth else 0.0), 0.0)
        for level in range(depth)
    ]
    return Levels(tuple(own), tuple(counts), means[0])


def _depth(values: object) -> int:
    """How deep lists are nested; raises where that differs, or a list is empty."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        return 0
    depths = {_depth(one) for one in values}
    if len(depths) != 1:
        raise OptionError("values", None, "must be lists that are nested equally deep, and not empty")
    return 1 + depths.pop()


def _number(value: object) -> float:
    if not isinstance(value, int | float | np.number):
        raise OptionError("values", repr(value), "must be a number")
    return float(value)


def _amount(value: float, name: str, zero: bool = False) -> None:
    if not (0 <= value < math.inf) or (value == 0 and not zero):
        raise OptionError(name, value, "must be a number above zero")


def _first(reached: Callable[[int], bool], least: int) -> int | None:
    """The smallest count from ``least`` to ``MOST`` that suffices; what suffices once does so for
    more.
    """
    high = least
    while not reached(high):
        if high >= MOST:
            return None
        high = min(2 * high, MOST)
    low = max(high // 2, least)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return low
