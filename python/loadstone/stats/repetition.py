"""How often to repeat a run: a fixed number of times, or until every metric is known well enough.

The rule is Auto-pilot's (C. Wright et al., USENIX 2005; snapshots thesis, chapter 5): runs go on
until the half-width of the t interval of the mean is below a share of the mean, for all metrics at
once. It asks widths only. A rule that stops when a test succeeds finds differences where none are
(J. Simmons et al., Psychological Science 22, 2011).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.stats.intervals import t_interval


@dataclass(frozen=True)
class Assessment:
    """Whether runs suffice, and what is known of each metric by now."""

    enough: bool
    """Whether to stop."""
    sure: bool
    """Whether the rule was met; not where runs ended at their cap."""
    half_widths: Mapping[str, float]
    """Of each metric's interval, as a share of its mean; infinite below two values."""
    expected: int
    """Runs that are likely needed in all, at most the cap."""


@dataclass(frozen=True)
class Fixed:
    """So many runs."""

    runs: int

    def assess(self, values: Mapping[str, Sequence[float]]) -> Assessment:
        """Looks at the values of each metric, one a run."""
        widths = {name: half_width(found) for name, found in values.items()}
        done = min(map(len, values.values()), default=0)
        return Assessment(done >= self.runs, done >= self.runs, widths, self.runs)


@dataclass(frozen=True)
class UntilSure:
    """Runs until each metric's interval is narrow enough, or the cap is reached."""

    least: int = 10
    """Runs before the rule is asked: below ten, intervals of skewed values are too narrow."""
    most: int = 30
    """The cap."""
    half_width: float = 0.05
    """What the half-width may be, as a share of the mean."""
    confidence: float = 0.95
    """Of the interval."""

    def assess(self, values: Mapping[str, Sequence[float]]) -> Assessment:
        """Looks at the values of each metric, one a run."""
        widths = {name: half_width(found, self.confidence) for name, found in values.items()}
        done = min(map(len, values.values()), default=0)
        sure = done >= self.least and all(width < self.half_width for width in widths.values())
        # Widths go with the root of the number of runs.
        asked = [done * (width / self.half_width) ** 2 for width in widths.values() if math.isfinite(width)]
        expected = min(max([self.least, done, *(math.ceil(one) for one in asked)]), self.most)
        return Assessment(sure or done >= self.most, sure, widths, expected)


Repetition = Fixed | UntilSure

PRESETS: Mapping[str, Repetition] = {
    "until-sure": UntilSure(),
    "auto-pilot": UntilSure(least=10, most=30),
    "nfs": UntilSure(least=5, most=30),
}
"""By name; ``nfs`` is the rule of the file server paper, section 4.1."""


def half_width(values: Sequence[float], confidence: float = 0.95) -> float:
    """Half of the t interval of the mean as a share of the mean; infinite where it cannot be told.

    Student, Biometrika 6, 1908. Values that are all the same have none.
    """
    found = np.asarray(values, dtype=np.float64)
    if len(found) < 2 or not np.isfinite(found).all():
        return math.inf
    return t_interval(found, confidence).relative
