"""Latency: percentiles of a run with their intervals, and how far two histograms are apart.

Percentiles are told within a run; arms are compared by one percentile a run
(:mod:`loadstone.stats.means`). Tests of single operations, such as Kolmogorov and Smirnov's, are
left out on purpose: operations are not independent, and of millions any difference is significant.

Sources: the interval of a percentile from the binomial distribution, G. Hahn and W. Meeker,
Statistical Intervals, 1991, 5.2; shifts by percentile, K. Doksum, Annals of Statistics 2, 1974; the
distance of L. Vaserstein, Problems of Information Transmission 5, 1969.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadstone.errors import OptionError
from loadstone.stats.histogram import BEYOND, Histogram, lower_edges, middles, supported
from loadstone.stats.intervals import Interval
from loadstone.stats.samples import share

QS = (10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
"""Percentiles at which two histograms are compared."""


@dataclass(frozen=True)
class Shift:
    """How much slower the second histogram is at a percentile."""

    q: float
    """The percentile, 0 to 100."""
    first: float
    """Nanoseconds."""
    second: float
    """Nanoseconds."""

    @property
    def difference(self) -> float:
        """Second minus first, nanoseconds."""
        return self.second - self.first


def percentile(histogram: Histogram, q: float, confidence: float = 0.95) -> Interval:
    """The ``q``-th percentile (above 0, below 100) in nanoseconds, with its interval by order
    statistics.

    It holds for independent operations and is too narrow for others. Its ends are those of buckets,
    within 1/64. Raises ``OptionError`` where fewer than ten values are expected beyond the
    percentile on either side.
    """
    from scipy.special import bdtr

    if not 0 < q < 100:
        raise OptionError("q", q, "must lie between 0 and 100")
    count = len(histogram)
    if not (supported(count, q) and supported(count, 100 - q)):
        needed = math.ceil(BEYOND / (min(q, 100 - q) / 100) * (1 - 1e-9))
        raise OptionError("q", q, f"cannot be told from {count} values; it needs {needed}: run longer")
    rest = (1 - share(confidence)) / 2
    # Of the values below the true percentile there are fewer than low, or more than high, that seldom.
    spread = math.sqrt(count * q * (100 - q)) / 100
    middle = count * q / 100
    ranks = np.arange(max(int(middle - 9 * spread) - 9, 0), min(int(middle + 9 * spread) + 9, count) + 1)
    below = bdtr(ranks.astype(np.float64), count, q / 100)
    low = int(ranks[np.searchsorted(below, rest, "right")])
    high = int(ranks[np.searchsorted(below, 1 - rest, "left")]) + 1
    edges, sums = lower_edges(), np.cumsum(histogram.counts)
    ends = (np.searchsorted(sums, min(max(rank, 1), count)) for rank in (low, high))
    first, last = (int(one) for one in ends)
    value = histogram.percentile(q)
    return Interval(
        value, float(edges[first]), float(edges[last + 1] - 1), confidence, "order statistics", count
    )


def shifts(first: Histogram, second: Histogram, qs: Sequence[float] = QS) -> tuple[Shift, ...]:
    """Both histograms at each percentile that both have values enough to tell; others are left
    out.
    """
    return tuple(
        Shift(q, first.percentile(q), second.percentile(q))
        for q in qs
        if supported(len(first), q) and supported(len(second), q)
    )


def wasserstein(first: Histogram, second: Histogram) -> float:
    """How far values must move on average to make one histogram the other, nanoseconds.

    0 where both have the same shape, whatever their counts. Raises ``OptionError`` where one is
    empty.
    """
    shares = []
    for name, one in (("first", first), ("second", second)):
        if not len(one):
            raise OptionError(name, None, "is an empty histogram; there is nothing to compare")
        shares.append(np.cumsum(one.counts) / len(one))
    steps = np.diff(middles(np.arange(len(first.counts))))
    return float(np.abs(shares[0] - shares[1])[:-1] @ steps)
