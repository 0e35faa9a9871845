"""Curves and latency: against R's own answers, worked figures, and what they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import OptionError
from loadstone.stats.curves import ecdf, loess, qq
from loadstone.stats.histogram import Histogram
from loadstone.stats.quantiles import percentile, shifts, wasserstein

SPEED = [4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15]
SPEED += [15, 16, 16, 17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25]
STOP = [2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26]
STOP += [54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85]
"""Speed and stopping distance of cars (M. Ezekiel 1930), which R ships as ``cars``."""


def test_loess_is_that_of_r():
    """R's ``predict(loess(dist ~ speed, cars, control = loess.control(surface = "direct")), 5:12)``."""
    told = [7.741006, 9.926596, 12.442424, 15.281082, 18.425712, 21.865315, 25.713413, 29.350386]
    found = loess(SPEED, STOP, at=range(5, 13))
    assert found.fit == pytest.approx(told, abs=1e-6)
    assert found.residual == pytest.approx(15.3, abs=0.05)
    assert (found.low < found.fit).all() and (found.high > found.fit).all()


def test_loess_keeps_what_is_a_parabola():
    x = np.linspace(-3, 5, 30)
    noise = 1e-9 * np.cos(x * 50)
    found = loess(x, 3 - 2 * x + x**2 + noise)
    assert found.fit == pytest.approx(3 - 2 * x + x**2, abs=1e-6)
    assert loess(x, 3 - 2 * x + noise, degree=1, span=0.3).fit == pytest.approx(3 - 2 * x, abs=1e-6)


def test_the_band_covers_the_curve():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 40)
    true = 100 - 20 * x**2
    held = []
    for _ in range(60):
        found = loess(x, true + 2 * rng.standard_normal(40))
        held.append((found.low <= true) & (true <= found.high))
    assert 0.92 <= np.mean(held) <= 0.98, np.mean(held)


@pytest.mark.parametrize(
    ("x", "y", "how", "told"),
    [
        ([1, 2, 3, 4], [1, 2, 3], {}, "3 values beside 4"),
        ([1, 2], [1, 2], {}, "at least 3"),
        ([1, 1, 1, 1], [1, 2, 3, 4], {}, "different x"),
        ([1, 2, 3, 4], [1, 2, 3, 4], {"span": 0.3}, "different x"),
        ([1, 2, 3], [1, 2, 3], {"span": 1.0, "degree": 1, "at": [9]}, "must lie from 1 to 3"),
        ([1, 2, 3], [1, 2, math.nan], {}, "hold nan"),
        ([1, 2, 3], [1, 2, 3], {"degree": 3}, "must be 1 or 2"),
        ([1, 2, 3], [1, 2, 3], {"span": 0}, "at most 1"),
        (range(3001), range(3001), {}, "more than 3000"),
    ],
)
def test_curves_that_cannot_be_are_refused(x, y, how, told):
    with pytest.raises(OptionError, match=told):
        loess(x, y, **how)


def test_ecdf_by_hand():
    found = ecdf([3.0, 1.0, 1.0, 2.0])
    assert list(found.values) == [1, 2, 3] and list(found.shares) == [0.5, 0.75, 1]


def test_qq_is_that_of_r():
    # R: qqnorm(1:5)$x, and qqline through the quartiles 2 and 4.
    found = qq([5.0, 3.0, 1.0, 2.0, 4.0])
    assert found.theoretical == pytest.approx([-1.1797611, -0.4972006, 0, 0.4972006, 1.1797611], abs=1e-7)
    assert list(found.ordered) == [1, 2, 3, 4, 5]
    assert found.slope == pytest.approx(2 / (2 * 0.6744898)) and found.intercept == pytest.approx(3)
    assert qq(range(11)).theoretical[0] == pytest.approx(scipy.stats.norm.ppf(0.5 / 11))
    assert math.isnan(qq([0.1, 0.1]).correlation) and qq([0.1, 0.1]).slope == 0
    rng = np.random.default_rng(2)
    assert qq(rng.standard_normal(300)).correlation > 0.99 > qq(rng.lognormal(0, 1, 300)).correlation
    assert qq([-1e150, 1e150]).correlation == pytest.approx(1)


@pytest.mark.parametrize(("q", "count"), [(50.0, 200), (95.0, 2000), (99.0, 3000), (99.9, 20000)])
def test_intervals_of_percentiles_cover(q, count):
    rng = np.random.default_rng(3)
    true = 1e6 * math.exp(0.5 * scipy.stats.norm.ppf(q / 100))
    rows = 1e6 * np.exp(0.5 * rng.standard_normal((200, count)))
    found = [percentile(Histogram.of(one), q) for one in rows]
    held = np.mean([one.holds(true) for one in found])
    # Discrete ranks and whole buckets make it somewhat wider.
    assert held >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 200), held
    assert all(one.low <= one.value <= one.high for one in found)
    assert np.median([one.relative for one in found]) < 0.2


def test_an_interval_of_a_percentile_by_hand():
    # Of 100 values the ranks 40 and 61 hold the median in 96.5 % (Hahn and Meeker, table A.15a).
    found = percentile(Histogram.of(np.arange(100)), 50)
    assert (found.low, found.high) == (39, 60)


def test_p99_9_of_too_few_operations_is_refused():
    with pytest.raises(OptionError, match="cannot be told from 9999 values; it needs 10000"):
        percentile(Histogram.of(np.arange(9999)), 99.9)
    assert percentile(Histogram.of(np.arange(10_000)), 99.9).value == pytest.approx(9990, rel=1 / 128)
    with pytest.raises(OptionError, match="needs 1000"):
        percentile(Histogram.of(np.arange(500)), 1)
    for wrong in (0, 100, math.nan):
        with pytest.raises(OptionError, match="between 0 and 100"):
            percentile(Histogram.of([1]), wrong)


def test_shifts_and_distance_by_hand():
    one, other = Histogram.of([10] * 50 + [20] * 50), Histogram.of([10] * 100 + [40] * 100)
    assert wasserstein(one, other) == 10 and wasserstein(other, one) == 10
    found = {shift.q: shift.difference for shift in shifts(one, other, (25, 75, 99.9))}
    assert found == {25: 0, 75: 20}
    with pytest.raises(OptionError, match="`second`: is an empty histogram"):
        wasserstein(one, Histogram())


VALUES = st.lists(st.integers(0, 1 << 30), min_size=1, max_size=50)


@given(VALUES, VALUES)
@settings(max_examples=60, deadline=None)
def test_the_distance_is_that_of_scipy(a, b):
    found = wasserstein(Histogram.of(a), Histogram.of(b))
    exact = scipy.stats.wasserstein_distance(a, b)
    assert found == pytest.approx(exact, rel=1e-9, abs=(max(a) + max(b)) / 128 + 1)
    assert wasserstein(Histogram.of(a), Histogram.of(a * 3)) == pytest.approx(0, abs=1e-6)
