"""Samples: what every function of this package accepts as values, and their summary.

Values are one-dimensional, finite, and one a run. NaN is refused, because a run that does not tell
a metric says nothing about its mean. Magnitudes beyond ``LARGEST`` are refused, because their
squares overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loadstone.errors import OptionError

LARGEST = 1e150
"""Magnitude up to which values can be squared and added."""

Floats: TypeAlias = NDArray[np.float64]


def sample(values: ArrayLike, name: str = "values", least: int = 1, positive: bool = False) -> Floats:
    """The values as an array of shape ``(n,)``.

    Raises ``OptionError`` with ``name`` where there are fewer than ``least``, where one is not
    finite or beyond ``LARGEST``, or not above zero though all must be (``positive``).
    """
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(name, None, "are no numbers; give one number a run") from None
    if found.ndim != 1:
        raise OptionError(name, None, f"have the shape {found.shape}; give one row of numbers")
    if len(found) < least:
        raise OptionError(name, None, f"are {len(found)}, and at least {least} are needed; make more runs")
    wrong = np.flatnonzero(~np.isfinite(found))
    if wrong.size:
        at = int(wrong[0])
        raise OptionError(name, None, f"hold {found[at]} at index {at}; leave out runs without a figure")
    if found.size and np.abs(found).max() > LARGEST:
        raise OptionError(name, None, f"are beyond {LARGEST:g}; use a larger unit")
    if positive and found.size and found.min() <= 0:
        at = int(np.argmin(found))
        raise OptionError(
            name,
            None,
            f"hold {found[at]:g} at index {at}, and must be above zero; compare differences instead",
        )
    return found


def share(value: float, name: str = "confidence") -> float:
    """The value, if it lies between 0 and 1, both excluded; else raises ``OptionError``."""
    if not 0 < value < 1:
        raise OptionError(name, value, "must lie between 0 and 1, such as 0.95")
    return float(value)


@dataclass(frozen=True)
class Summary:
    """What tests of means and variances need of a sample, such as a paper prints it."""

    mean: float
    """In the unit of the values."""
    variance: float
    """Sum of squared deviations over ``n - 1``; of a single value NaN."""
    n: int
    """Number of values, at least 1."""

    def __post_init__(self) -> None:
        """Raises ``OptionError`` where no sample can have these."""
        if self.n < 1:
            raise OptionError("n", self.n, "must be at least 1")
        if not abs(self.mean) <= LARGEST:
            raise OptionError("mean", self.mean, f"must be a number up to {LARGEST:g}")
        if self.n > 1 and not 0 <= self.variance <= LARGEST**2:
            raise OptionError("variance", self.variance, "must be a number of at least 0")

    @classmethod
    def of(cls, values: ArrayLike | Summary, name: str = "values") -> Summary:
        """Of values, shape ``(n,)`` with n at least 1; a summary stays as it is."""
        if isinstance(values, Summary):
            return values
        found = sample(values, name)
        # The mean of equal values is rounded, which would give them a variance.
        if found.min() == found.max():
            return cls(float(found[0]), 0.0 if len(found) > 1 else float("nan"), len(found))
        return cls(float(found.mean()), float(found.var(ddof=1)), len(found))


def by_block(
    first: ArrayLike, second: ArrayLike, blocks: tuple[Sequence[int], Sequence[int]]
) -> tuple[Floats, Floats]:
    """The means of both groups in each block that both have, in ascending order of the blocks.

    ``blocks`` holds the block of each value of ``first`` and of ``second``. A block that only one
    group has says nothing about their difference and is left out. Raises ``OptionError`` where no
    block is common.
    """
    groups: list[dict[int, float]] = []
    for values, name, own in ((first, "first", blocks[0]), (second, "second", blocks[1])):
        found, marks = sample(values, name), np.asarray(own)
        if marks.shape != found.shape:
            raise OptionError("blocks", None, f"of `{name}` are {marks.size}, and its values {len(found)}")
        groups.append({int(mark): float(found[marks == mark].mean()) for mark in np.unique(marks)})
    common = sorted(groups[0].keys() & groups[1].keys())
    if not common:
        raise OptionError("blocks", None, "have no block in common; compare without blocks")
    one, other = (np.array([group[mark] for mark in common]) for group in groups)
    return one, other
