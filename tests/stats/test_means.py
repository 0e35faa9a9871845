"""Means and variances: tests against known values, and how often they err in simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import OptionError
from loadstone.stats.intervals import Interval
from loadstone.stats.means import change, mean_of, t_test
from loadstone.stats.samples import Summary
from loadstone.stats.variances import f_test, levene

VALUES = st.lists(st.integers(-(10**6), 10**6).map(float), min_size=3, max_size=12)


@given(VALUES, VALUES)
@settings(max_examples=60, deadline=None)
def test_answers_are_those_of_scipy(a, b):
    for way, pool in (("pooled", True), ("welch", False)):
        if min(np.ptp(a), np.ptp(b)) == 0:
            continue
        found, other = t_test(a, b, way), scipy.stats.ttest_ind(b, a, equal_var=pool)
        assert (found.statistic, found.p, found.freedom) == pytest.approx(
            (other.statistic, other.pvalue, other.df), rel=1e-9, abs=1e-300
        )
        ends = other.confidence_interval(0.99)
        scale = max(map(abs, [*a, *b]))
        assert found.difference.low == pytest.approx(ends.low, rel=1e-9, abs=1e-9 * scale)
        assert found.difference.high == pytest.approx(ends.high, rel=1e-9, abs=1e-9 * scale)


@given(VALUES, VALUES)
@settings(max_examples=60, deadline=None)
def test_levene_is_that_of_scipy(a, b):
    try:
        found = levene(a, b)
    except OptionError:
        return
    if np.ptp(a) == np.ptp(b) == 0:
        assert found.p == 1
        return
    other = scipy.stats.levene(a, b, center="median")
    assert (found.statistic, found.p) == pytest.approx((other.statistic, other.pvalue), rel=1e-6)


def test_values_that_do_not_vary_have_defined_answers():
    alike = t_test([5.0] * 3, [5.0] * 4)
    assert (alike.statistic, alike.p, alike.variances) == (0, 1, "pooled")
    assert (alike.ratio.low, alike.ratio.high) == (1, 1)
    apart = t_test([5.0] * 3, [6.0] * 4)
    assert apart.statistic == math.inf and apart.p == 0 and apart.difference.half_width == 0
    one = t_test([5.0] * 3, [5.9, 6.0, 6.1])
    assert one.variances == "welch" and one.freedom == 2
    lone = t_test([5.0], [6.0])
    assert lone.p == 1 and lone.difference.low == -math.inf and lone.ratio is None
    # Of one value against several, pooled variances are those of the several.
    assert t_test([5.0], [5.9, 6.0, 6.1]).freedom == 2
    assert levene([1.0] * 3, [7.0] * 3).p == 1


def test_impossible_tests_are_refused():
    with pytest.raises(OptionError, match="`second`: does not vary"):
        f_test([1.0, 2.0], [3.0, 3.0])
    with pytest.raises(OptionError, match="`first`: is a single value"):
        f_test([1.0], [3.0, 3.0])
    with pytest.raises(OptionError, match="too few different values"):
        levene([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0, 2.0])
    with pytest.raises(OptionError, match="at least two"):
        levene([1.0, 2.0, 3.0])
    with pytest.raises(OptionError, match="auto, pooled or welch"):
        t_test([1.0], [1.0], "students")
    with pytest.raises(OptionError, match="a summary has no pairs"):
        t_test(Summary(1, 1, 3), [1.0], blocks=([1], [1]))
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(OptionError, match="above zero"):
            change(wrong, 1.0)


def test_pairs_find_what_drift_hides():
    blocks = (list(range(6)), list(range(6)))
    first = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]
    second = [one + 1 + 0.1 * (-1) ** at for at, one in enumerate(first)]
    assert t_test(first, second).p > 0.5
    found = t_test(first, second, blocks=blocks)
    assert found.p < 1e-5 and found.variances == "paired" and found.freedom == 5


def test_the_interval_of_a_ratio_of_means():
    # Fieller by hand: means 2 and 3, each with the standard error 0.1, four runs each.
    a, b = Summary(2.0, 0.04, 4), Summary(3.0, 0.04, 4)
    found = t_test(a, b, "pooled", confidence=0.95).ratio
    g = (2.4469118511449692 * 0.1 / 2) ** 2
    half = 2.4469118511449692 / 2 * math.sqrt(0.01 * (1 - g) + 1.5**2 * 0.01)
    assert (found.low, found.high) == pytest.approx(((1.5 - half) / (1 - g), (1.5 + half) / (1 - g)))
    assert t_test([-1.0, 1.0, 0.5], [5.0, 6.0, 7.0]).ratio is None, "any ratio is possible"


@pytest.mark.parametrize("variances", ["pooled", "welch"])
def test_the_interval_of_a_ratio_covers_what_it_says(variances):
    rng = np.random.default_rng(5)
    spread = 2.0 if variances == "pooled" else 6.0
    first, second = rng.standard_normal((2, 1500, 10))
    pairs = zip(10 + 2 * first, 15 + spread * second, strict=True)
    found = [t_test(a, b, variances, confidence=0.95).ratio for a, b in pairs]
    assert all(isinstance(one, Interval) for one in found)
    assert 0.93 <= np.mean([one.holds(1.5) for one in found]) <= 0.97


@pytest.mark.parametrize(("variances", "runs"), [("auto", (10, 10)), ("welch", (5, 20)), ("welch", (10, 10))])
def test_arms_that_are_alike_differ_in_5_of_100(variances, runs):
    rng = np.random.default_rng(6)
    trials, spreads = 1500, (1.0, 3.0 if variances == "welch" else 1.0)
    found = [
        t_test(
            *(spread * rng.standard_normal(n) for spread, n in zip(spreads, runs, strict=True)), variances
        ).p
        for _ in range(trials)
    ]
    # Three standard deviations of a share of 5 %.
    assert abs(np.mean(np.array(found) < 0.05) - 0.05) <= 3 * math.sqrt(0.05 * 0.95 / trials)


def test_levene_keeps_its_word_where_the_f_test_does_not():
    """Values of a heavy distribution with one and the same spread."""
    rng = np.random.default_rng(7)
    groups = [rng.lognormal(0, 0.6, (2, 15)) for _ in range(600)]
    classic = np.mean([f_test(a, b).p < 0.05 for a, b in groups])
    robust = np.mean([levene(a, b).p < 0.05 for a, b in groups])
    assert classic > 0.15 and robust < 0.07, (classic, robust)


def test_runs_are_averaged_as_their_metric_says():
    # Two runs of 60 km, at 30 and 60 km/h: 120 km in 3 h.
    assert mean_of([30.0, 60.0], "harmonic") == pytest.approx(40)
    assert mean_of([2.0, 0.5], "geometric") == pytest.approx(1)
    assert mean_of([2.0, -2.0]) == 0
    assert mean_of([1e-150, 1e150], "geometric") == pytest.approx(1)
    with pytest.raises(OptionError, match="above zero"):
        mean_of([1.0, 0.0], "harmonic")
