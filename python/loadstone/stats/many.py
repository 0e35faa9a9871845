"""Many metrics at once: chances that keep what they say of all of them together.

Of 20 metrics of two arms that are alike one is below 5 % in two of three cases. One metric is the
primary one and is judged by itself; the others are judged by :func:`holm` (none of them is called
different wrongly, in 95 % of the cases) or, where they are many, by :func:`benjamini_hochberg` (of
those called different 5 % are wrong).

Sources: S. Holm, Scandinavian Journal of Statistics 6, 1979; Y. Benjamini and Y. Hochberg, Journal
of the Royal Statistical Society B 57, 1995.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loadstone.errors import OptionError
from loadstone.stats.samples import Floats, sample


def holm(ps: ArrayLike) -> Floats:
    """The chances, shape ``(n,)`` in their order, corrected so that all together err at most as
    often as one.

    Raises ``OptionError`` where one is not a number from 0 to 1.
    """
    found = _chances(ps)
    order = np.argsort(found, kind="stable")
    steps = np.maximum.accumulate(found[order] * np.arange(len(found), 0, -1))
    return _put(found, order, steps)


def benjamini_hochberg(ps: ArrayLike) -> Floats:
    """The chances, shape ``(n,)`` in their order, corrected so that so many of those called
    different are wrong.

    It holds for metrics that are independent or rise together. Raises ``OptionError`` where one is
    not a number from 0 to 1.
    """
    found = _chances(ps)
    order = np.argsort(found, kind="stable")
    scaled = found[order] * len(found) / np.arange(1, len(found) + 1)
    return _put(found, order, np.minimum.accumulate(scaled[::-1])[::-1])


def _chances(ps: ArrayLike) -> Floats:
    found = sample(ps, "ps", least=0)
    if found.size and not (found.min() >= 0 and found.max() <= 1):
        raise OptionError("ps", None, "must lie from 0 to 1")
    return found


def _put(found: Floats, order: NDArray[np.intp], steps: Floats) -> Floats:
    out = np.empty_like(steps)
    out[order] = steps
    # Rounding must not lower a chance.
    return np.clip(out, found, 1.0)
