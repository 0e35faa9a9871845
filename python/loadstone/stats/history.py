"""Results of one benchmark over time, one figure a build or a day: where do they step?

E-divisive (D. Matteson and N. James, Journal of the American Statistical Association 109, 2014), which
MongoDB uses for histories (D. Daly et al., ICPE 2020): the split with the largest energy distance
between both sides counts if relabelling the results seldom gives a larger one; then each part is
asked again. It was chosen by simulation: of steps of 1.5 standard deviations in 40 results it found
80 to 100 %, and PELT with robust noise (:mod:`loadstone.stats.steady`) 25 to 83 %, in normal, skewed
and heavy-tailed noise and beside bad results. Of histories without a step it called 0 to 8 %
stepped, and PELT 0 to 12 %. It takes results for independent; where neighbours are alike, it calls
their wandering a step. A step lasts at least ``LEAST`` results, so that one bad result is none.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadstone.errors import OptionError
from loadstone.stats.samples import Floats, sample, share

LEAST = 3
"""Results between two steps, at least."""
PERMUTATIONS = 199
"""Relabellings of the results to judge one step."""
MOST = 1000
"""Results up to which a history is searched: its cost goes with the square of their number."""


@dataclass(frozen=True)
class Step:
    """A lasting change of the results."""

    index: int
    """The first result after it, from 0."""
    before: float
    """Mean of the results since the step before, in the unit of the values."""
    after: float
    """Mean of the results up to the next step."""
    p: float
    """Chance of as clear a step somewhere, without one; at least 1 in ``PERMUTATIONS`` + 1."""

    @property
    def change(self) -> float | None:
        """As a share of the mean before; None where that is not above zero."""
        return (self.after - self.before) / self.before if self.before > 0 else None


def steps(
    values: ArrayLike,
    confidence: float = 0.95,
    least: int = LEAST,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> tuple[Step, ...]:
    """The lasting steps of a history, in its order, by ascending index.

    ``values`` are the results in order of time, shape ``(n,)`` with n up to ``MOST``. A history
    without a step gets one in at most 1 - ``confidence`` of the cases. Below ``2 * least`` results
    there is none. The same values and seed give the same answer. Raises ``OptionError`` for too few
    ``permutations`` to reach the confidence.
    """
    found = sample(values, least=0)
    error = 1 - share(confidence)
    if least < 2:
        raise OptionError("least", least, "must be at least 2 results")
    if (1 + permutations) * error < 1 - 1e-9:
        raise OptionError("permutations", permutations, f"cannot tell {confidence:g}; take more")
    if len(found) > MOST:
        raise OptionError("values", None, f"are {len(found)}, more than {MOST}; leave out the oldest")
    rng = np.random.default_rng(seed)
    # Distances have a scale of their own, which must not overflow.
    scaled = found / max(float(np.abs(found).max(initial=0)), 1e-300)
    ps: dict[int, float] = {}
    while True:
        edges = [0, *sorted(ps), len(found)]
        parts = [scaled[a:b] for a, b in itertools.pairwise(edges)]
        spread = [np.abs(part[:, None] - part) for part in parts]
        best, at = max(
            (top, a + place)
            for (top, place), a in zip((_split(one, least) for one in spread), edges[:-1], strict=True)
        )
        if best <= 1e-12:
            break
        p = _chance(spread, best, least, permutations, error, rng)
        if p > error:
            break
        ps[at] = p
    edges = [0, *sorted(ps), len(found)]
    means = [float(found[a:b].mean()) for a, b in itertools.pairwise(edges)] if len(found) else []
    return tuple(
        Step(index, before, after, ps[index])
        for index, (before, after) in zip(sorted(ps), itertools.pairwise(means), strict=True)
    )


def _split(spread: Floats, least: int) -> tuple[float, int]:
    """The largest energy distance between both sides of a split, and the place behind it; 0 where
    none is.
    """
    n = len(spread)
    if n < 2 * least:
        return 0.0, 0
    sizes = np.arange(least, n - least + 1)
    rest = n - sizes
    rows = np.cumsum(spread.sum(axis=1))
    inside = 2 * np.cumsum(np.tril(spread).sum(axis=1))
    left = inside[sizes - 1]
    across = rows[sizes - 1] - left
    right = rows[-1] - left - 2 * across
    energy = 2 * across / (sizes * rest) - left / (sizes * (sizes - 1)) - right / (rest * (rest - 1))
    weighed = energy * sizes * rest / n
    at = int(np.argmax(weighed))
    return float(weighed[at]), int(sizes[at])


def _chance(
    spread: list[Floats],
    best: float,
    least: int,
    permutations: int,
    error: float,
    rng: np.random.Generator,
) -> float:
    """Share of relabellings within all parts that have as clear a split; ends once it is above
    ``error``.
    """
    as_clear = 0
    long = [one for one in spread if len(one) >= 2 * least]
    for _ in range(permutations):
        top = 0.0
        for one in long:
            order = rng.permutation(len(one))
            top = max(top, _split(one[np.ix_(order, order)], least)[0])
        as_clear += top >= best * (1 - 1e-9)
        if 1 + as_clear > error * (1 + permutations):
            break
    return (1 + as_clear) / (1 + permutations)
