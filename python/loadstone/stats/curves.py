"""Curves for pictures of runs: distribution, comparison with a normal one, and a smooth curve with
its band.

Sources: W. Cleveland and S. Devlin, Journal of the American Statistical Association 83, 1988 (LOESS
and the error of its curve); points and line of the QQ plot are those of R's ``qqnorm`` and
``qqline``, which the snapshots thesis uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadstone.errors import OptionError
from loadstone.stats.samples import Floats, sample, share

MOST = 3000
"""Points up to which a smooth curve is made: its error needs the square of their number."""


@dataclass(frozen=True)
class Ecdf:
    """Share of the values up to each of them: a curve of steps."""

    values: Floats
    """The different values, ascending."""
    shares: Floats
    """Share of all values up to and including each, above 0 to 1."""


@dataclass(frozen=True)
class QQ:
    """Values beside those of a normal distribution: on one line where they are normal."""

    theoretical: Floats
    """Quantiles of the standard normal distribution, ascending."""
    ordered: Floats
    """The values, ascending."""
    slope: float
    """Of the line through the quartiles, in the unit of the values."""
    intercept: float
    """Where that line crosses 0, in the unit of the values."""
    correlation: float
    """Of both, up to 1; NaN where no value differs."""


@dataclass(frozen=True)
class Loess:
    """A smooth curve and the band in which it lies."""

    x: Floats
    """Where it was asked for."""
    fit: Floats
    """The curve, in the unit of y."""
    low: Floats
    """Lower end of the interval at each x; it is of the curve there, not of values."""
    high: Floats
    """Upper end."""
    residual: float
    """Standard deviation of the values around the curve."""


def ecdf(values: ArrayLike) -> Ecdf:
    """The empirical distribution of values, one a run, shape ``(n,)``."""
    found, counts = np.unique(sample(values), return_counts=True)
    return Ecdf(found, np.cumsum(counts) / counts.sum())


def qq(values: ArrayLike) -> QQ:
    """Values, at least two, beside the quantiles of a normal distribution, with the line through
    their quartiles.
    """
    from scipy.special import ndtri

    ordered = np.sort(sample(values, least=2))
    n = len(ordered)
    a = 3 / 8 if n <= 10 else 1 / 2
    theoretical = ndtri((np.arange(1, n + 1) - a) / (n + 1 - 2 * a))
    low, high = np.quantile(ordered, [0.25, 0.75])
    slope = float(high - low) / (2 * float(ndtri(0.75)))
    varies = ordered[0] < ordered[-1]
    off = ordered / max(abs(ordered[0]), abs(ordered[-1])) if varies else ordered
    correlation = float(np.corrcoef(theoretical, off)[0, 1]) if varies else float("nan")
    return QQ(theoretical, ordered, slope, float(low + high) / 2, correlation)


def loess(
    x: ArrayLike,
    y: ArrayLike,
    at: ArrayLike | None = None,
    span: float = 0.75,
    degree: int = 2,
    confidence: float = 0.95,
) -> Loess:
    """A smooth curve through points by local polynomials, with the interval of the curve at each
    place.

    ``x`` and ``y`` have the shape ``(n,)`` with n up to ``MOST``; ``at`` holds the places, by
    default the different x in ascending order. ``span`` is the share of the points that count at a
    place, and ``degree`` 1 or 2. Raises ``OptionError`` where the span holds too few different x,
    and for places outside of the points.
    """
    from scipy.special import stdtrit

    xs, ys = sample(x, "x", least=3), sample(y, "y", least=3)
    if len(xs) != len(ys):
        raise OptionError("y", None, f"are {len(ys)} values beside {len(xs)} of `x`")
    if len(xs) > MOST:
        raise OptionError("x", None, f"are {len(xs)} points, more than {MOST}; give means of groups of them")
    if degree not in (1, 2):
        raise OptionError("degree", degree, "must be 1 or 2")
    if not 0 < span <= 1:
        raise OptionError("span", span, "must be above 0 and at most 1")
    places = np.unique(xs) if at is None else sample(at, "at")
    if places.min() < xs.min() or places.max() > xs.max():
        raise OptionError("at", None, f"must lie from {xs.min():g} to {xs.max():g}, where there are points")
    share(confidence)
    near = int(np.floor(span * len(xs) + 1e-5))
    rows = _weights(xs, places, near, degree)
    own = np.eye(len(xs)) - _weights(xs, xs, near, degree)
    squares = own.T @ own
    one, two = float(np.trace(squares)), float((squares**2).sum())
    fit = rows @ ys
    if one < 1e-9 * len(xs):
        raise OptionError("span", span, "leaves a curve through every point; widen it, or give more points")
    residual = float(np.sqrt(((own @ ys) ** 2).sum() / one))
    half = float(stdtrit(one**2 / two, (1 + confidence) / 2)) * residual * np.sqrt((rows**2).sum(axis=1))
    return Loess(places, fit, fit - half, fit + half, residual)


def _weights(xs: Floats, places: Floats, near: int, degree: int) -> Floats:
    """Row by place: what each y counts in the curve there."""
    out = np.zeros((len(places), len(xs)))
    for row, place in enumerate(places):
        off = np.abs(xs - place)
        reach = np.partition(off, max(near, 1) - 1)[max(near, 1) - 1]
        by = np.clip(1 - (off / reach) ** 3, 0, 1) ** 3 if reach > 0 else (off == 0).astype(float)
        used = by > 0
        if len(np.unique(xs[used])) <= degree:
            raise OptionError(
                "span",
                None,
                f"holds {len(np.unique(xs[used]))} different x around {place:g}, and a curve of degree "
                f"{degree} needs {degree + 1}; widen it or take a lower degree",
            )
        root = np.sqrt(by[used])
        basis = np.vander((xs[used] - place) / reach, degree + 1, increasing=True) * root[:, None]
        out[row, used] = np.linalg.pinv(basis)[0] * root
    return out
