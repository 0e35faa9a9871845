"""Runs that lie apart: flagged and shown with what the host did meanwhile, never dropped.

A run that lies apart was measured as well as the others. To drop it makes intervals too narrow.
Where many lie apart, the robust summary stands beside the mean.

Sources: B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers, 1993 (modified z); J. Tukey,
Exploratory Data Analysis, 1977 (fences).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadstone.stats.samples import Floats, sample

APART = 3.5
"""Modified z from which a value lies apart."""
FENCES = 1.5, 3.0
"""Interquartile ranges beyond the quartiles: the inner and the outer fence."""
LEAST = 5
"""Values below which no one is called apart: quartiles of fewer say nothing."""
TRIMMED = 0.2
"""Share of the values that the trimmed mean leaves out at either end."""


@dataclass(frozen=True)
class Outlier:
    """A value that lies apart."""

    index: int
    """Its place in the values, from 0."""
    value: float
    z: float
    """Modified z: distance from the median over the spread of the middle; its sign says to which
    side.
    """
    fence: int
    """0 within Tukey's fences, 1 beyond the inner, 2 beyond the outer one."""
    evidence: str | None
    """What the host did during this run, if the caller knows."""


@dataclass(frozen=True)
class Flagged:
    """What lies apart, and a summary that it does not move."""

    outliers: tuple[Outlier, ...]
    """By index. They count in every other figure."""
    median: float
    trimmed: float
    """Mean without the lowest and the highest fifth, in the unit of the values."""
    unexplained: int
    """Outliers without evidence."""


def flag(values: ArrayLike, evidence: Mapping[int, str] | None = None) -> Flagged:
    """The values, one a run, that lie apart by modified z or by Tukey's fences; all values stay.

    ``evidence`` says by index what the host did during a run, such as ``"swapped 2 GB"``. It
    explains and does not change what is flagged.
    """
    found, known = sample(values), evidence or {}
    z = modified_z(found)
    low, high = (np.quantile(found, q) for q in (0.25, 0.75))
    fences = np.zeros(len(found), dtype=int)
    if len(found) >= LEAST:
        for by in FENCES:
            fences += (found < low - by * (high - low)) | (found > high + by * (high - low))
    apart = (np.abs(z) >= APART) | (fences > 0) if len(found) >= LEAST else np.zeros(len(found), dtype=bool)
    outliers = tuple(
        Outlier(int(at), float(found[at]), float(z[at]), int(fences[at]), known.get(int(at)))
        for at in np.flatnonzero(apart)
    )
    cut = int(TRIMMED * len(found))
    trimmed = float(np.sort(found)[cut : len(found) - cut].mean())
    unexplained = sum(one.evidence is None for one in outliers)
    return Flagged(outliers, float(np.median(found)), trimmed, unexplained)


def modified_z(values: ArrayLike) -> Floats:
    """0.6745 times the distance from the median over the median distance, shape ``(n,)``.

    Where more than half of the values are alike, the mean distance takes its place; where all are,
    all are 0.
    """
    found = sample(values)
    off = found - np.median(found)
    spread = float(np.median(np.abs(off))) / 0.6745 or float(np.abs(off).mean()) * 1.253314
    return off / spread if spread else np.zeros(len(found))
