"""The latency histogram: log-linear buckets, 64 per octave, losslessly mergeable.

The layout is frozen in ``docs/reference/formats/bundle.md``: a value ``v`` of nanoseconds below 128
is bucket ``v``; above, with ``shift = floor(log2 v) - 6``, it is ``(shift << 6) + (v >> shift)``.
Values above ``2**42`` ns (73 minutes) are counted as ``2**42``. A bucket is narrower than 1/64 of
its values, so its middle is off by less than 1/128.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST = 1 << 42
BUCKETS = 2369

PERCENTILES = {
    "p50": 50.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "p999": 99.9,
    "p9999": 99.99,
    "p99999": 99.999,
}
"""The percentiles that are told, by the names they have in summaries."""

BEYOND = 10
"""Values that must be expected beyond a percentile before it is told."""


def supported(count: float, q: float) -> bool:
    """Whether ``count`` values tell their ``q``-th percentile (0 to 100).

    They do where at least ten of them are expected beyond it. How many lie beyond the true
    percentile is binomial (Hahn and Meeker, Statistical Intervals, 5.2): of ten expected, none come
    once in 22,000 samples, and the number varies by a third; with fewer, the figure is little more
    than the largest value.
    """
    # The margin is for 100 - 99.9, which is not exact in binary.
    return count * (100 - q) / 100 >= BEYOND * (1 - 1e-9)


def bucket_of(values: ArrayLike) -> NDArray[np.int64]:
    """The bucket of each value (nanoseconds, negative ones count as 0)."""
    v = np.clip(np.asarray(values, dtype=np.int64), 0, LARGEST)
    # frexp is exact on integers below 2**53: v = m * 2**e with m in [0.5, 1), so floor(log2 v) = e
    # - 1.
    shift = np.maximum(np.frexp(v.astype(np.float64))[1].astype(np.int64) - 7, 0)
    out: NDArray[np.int64] = (shift << 6) + (v >> shift)
    return out


def lower_edges() -> NDArray[np.int64]:
    """The smallest value of every bucket, and after them the end of the last: ``BUCKETS + 1``
    values."""
    b = np.arange(BUCKETS + 1, dtype=np.int64)
    shift = np.maximum((b >> 6) - 1, 0)
    out: NDArray[np.int64] = (b - (shift << 6)) << shift
    return out


_EDGES = lower_edges()
_MIDDLES = (_EDGES[:-1] + _EDGES[1:] - 1) / 2


def middles(buckets: ArrayLike) -> NDArray[np.float64]:
    """The middle of each bucket, nanoseconds."""
    out: NDArray[np.float64] = _MIDDLES[np.asarray(buckets, dtype=np.int64)]
    return out


class Histogram:
    """How many values fell in each bucket.

    Adding histograms is exact, associative and commutative; :meth:`percentile` and :meth:`mean` are
    within 1/128 of those of the values themselves.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: NDArray[np.int64] | None = None) -> None:
        """``counts``: one number per bucket (length :data:`BUCKETS`); all zero without it."""
        self.counts = np.zeros(BUCKETS, dtype=np.int64) if counts is None else counts

    @classmethod
    def of(cls, values: ArrayLike) -> Histogram:
        """Counts values (nanoseconds)."""
        return cls(np.bincount(bucket_of(values), minlength=BUCKETS).astype(np.int64))

    @classmethod
    def from_sparse(cls, buckets: ArrayLike, counts: ArrayLike) -> Histogram:
        """From the lists of a bundle's row; buckets that repeat are added up."""
        b = np.asarray(buckets, dtype=np.int64)
        if b.size and (b.min() < 0 or b.max() >= BUCKETS):
            raise ValueError(f"bucket {b.max()} is outside 0..{BUCKETS - 1}; the histogram is damaged")
        out = cls()
        np.add.at(out.counts, b, np.asarray(counts, dtype=np.int64))
        return out

    def sparse(self) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
        """The non-empty buckets and their counts."""
        used = np.flatnonzero(self.counts)
        return used.astype(np.uint16), self.counts[used].astype(np.uint64)

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """The sum of any number of histograms."""
        out = cls()
        for part in parts:
            out.counts += part.counts
        return out

    def __add__(self, other: Histogram) -> Histogram:
        """The sum of two."""
        return Histogram(self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        """Whether every bucket holds the same."""
        return isinstance(other, Histogram) and bool(np.array_equal(self.counts, other.counts))

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    def percentile(self, q: float) -> float:
        """The ``q``-th percentile (0 to 100) in nanoseconds by nearest rank; NaN when empty."""
        if not 0 <= q <= 100:
            raise ValueError(f"percentile {q} is outside 0..100")
        total = len(self)
        if total == 0:
            return float("nan")
        rank = max(int(np.ceil(q / 100 * total)), 1)
        return float(_MIDDLES[np.searchsorted(np.cumsum(self.counts), rank)])

    def mean(self) -> float:
        """The mean in nanoseconds; NaN when empty."""
        total = len(self)
        return float(self.counts @ _MIDDLES / total) if total else float("nan")

    def minimum(self) -> float:
        """The smallest bucket's lower edge, nanoseconds; NaN when empty."""
        used = np.flatnonzero(self.counts)
        return float(_EDGES[used[0]]) if used.size else float("nan")

    def maximum(self) -> float:
        """The largest value the largest bucket may hold, nanoseconds; NaN when empty."""
        used = np.flatnonzero(self.counts)
        return float(_EDGES[used[-1] + 1] - 1) if used.size else float("nan")

    def told(self, q: float) -> float | None:
        """The ``q``-th percentile, nanoseconds; None where the count does not support it."""
        return self.percentile(q) if supported(len(self), q) else None

    def summary(self) -> dict[str, Any]:
        """``count``, and in nanoseconds ``mean``, ``min``, the percentiles of :data:`PERCENTILES`,
        ``max``.

        A percentile that the count does not support is None. Without values there is only
        ``count``.
        """
        if not len(self):
            return {"count": 0}
        points = {name: self.told(q) for name, q in PERCENTILES.items()}
        return {
            "count": len(self),
            "mean": self.mean(),
            "min": self.minimum(),
            **points,
            "max": self.maximum(),
        }
