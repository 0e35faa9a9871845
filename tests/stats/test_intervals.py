"""Intervals: known values, what they cover in simulation, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import OptionError
from loadstone.stats.intervals import (
    LEAST_FOR_BCA,
    bootstrap,
    paired,
    pooled,
    ratio,
    t_interval,
    welch,
)
from loadstone.stats.samples import LARGEST, Summary

SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
"""Student's own data (Biometrika 6, 1908): hours of sleep gained by two drugs, ten patients."""


def test_student_s_own_data():
    found = paired(SLEEP_1, SLEEP_2)
    assert (found.statistic, found.freedom) == (pytest.approx(4.0621, abs=5e-5), 9)
    assert found.p() == pytest.approx(0.002833, abs=5e-7)
    ends = found.interval(0.95)
    assert (ends.low, ends.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    other = welch(SLEEP_1, SLEEP_2)
    assert (other.statistic, other.freedom) == pytest.approx((1.8608, 17.776), abs=6e-4)
    assert other.p() == pytest.approx(0.07939, abs=5e-6)
    assert pooled(SLEEP_1, SLEEP_2).freedom == 18
    assert pooled(SLEEP_1, SLEEP_2).p() == pytest.approx(0.07919, abs=5e-6)
    assert other.p(side="above") == pytest.approx(0.07939 / 2, abs=5e-6)
    assert other.p(side="above") + other.p(side="below") == pytest.approx(1)


def test_one_value_tells_nothing_and_equal_values_all():
    one = t_interval([5.0])
    assert (one.value, one.low, one.high, one.relative) == (5.0, -math.inf, math.inf, math.inf)
    alike = t_interval([0.1] * 7)
    assert (alike.low, alike.high, alike.relative) == (0.1, 0.1, 0.0)
    assert t_interval([0.0, 0.0]).relative == 0 and t_interval([-1.0, 1.0]).relative == math.inf
    assert bootstrap([3.0]).high == math.inf and bootstrap([0.1, 0.1]).half_width == 0
    assert welch([1.0], [1.0, 2.0]).p() == 1 and welch([1.0, 1.0], [1.0, 1.0]).p() == 1
    assert welch([1.0, 1.0], [2.0, 2.0]).p() == 0


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "`values`: are 0, and at least 1 are needed"),
        ([1.0, math.nan], "hold nan at index 1"),
        ([math.inf], "hold inf at index 0"),
        ([1.0, 10 * LARGEST], "use a larger unit"),
        ([[1.0]], r"have the shape \(1, 1\)"),
        (["fast"], "are no numbers"),
    ],
)
def test_what_is_no_sample_is_refused(values, told):
    for ask in (t_interval, bootstrap):
        with pytest.raises(OptionError, match=told):
            ask(values)


def test_impossible_questions_are_refused():
    for confidence in (0, 1, 95, math.nan):
        with pytest.raises(OptionError, match="between 0 and 1"):
            t_interval([1.0, 2.0], confidence)
    with pytest.raises(OptionError, match="`first`: hold 0 at index 1, and must be above zero"):
        ratio([1.0, 0.0], [1.0, 2.0])
    with pytest.raises(OptionError, match="no block in common"):
        ratio([1.0], [1.0], blocks=([1], [2]))
    with pytest.raises(OptionError, match="`blocks`: of `second` are 1, and its values 2"):
        ratio([1.0], [1.0, 2.0], blocks=([1], [1]))
    with pytest.raises(OptionError, match="equally many"):
        paired([1.0], [1.0, 2.0])
    for wrong in ((1.0, -1.0, 3), (1.0, math.nan, 3), (math.nan, 1.0, 3), (1.0, 1.0, 0)):
        with pytest.raises(OptionError):
            Summary(*wrong)


@given(st.lists(st.floats(-LARGEST, LARGEST), min_size=2, max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_numbers_have_an_interval_around_their_mean(values):
    found = t_interval(values)
    assert not math.isnan(found.half_width)
    middle = found.low / 2 + found.high / 2
    assert found.low <= found.value <= found.high
    assert middle == pytest.approx(found.value, rel=1e-6, abs=1e-9 * max(map(abs, values)))


def test_a_ratio_is_paired_by_block_and_does_not_turn_with_the_order():
    first, second = [10.0, 20.0, 40.0], [44.0, 11.0, 22.0]
    found = ratio(first, second, blocks=([1, 2, 3], [3, 1, 2]))
    assert (found.value, found.low, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert found.method == "paired t" and found.n == 3
    apart = ratio(first, second)
    assert apart.value == pytest.approx(1.1) and apart.low < 0.5 and apart.high > 2
    assert apart.method == "Welch"
    back = ratio(second, first)
    assert (back.low, back.high) == pytest.approx((1 / apart.high, 1 / apart.low))
    # A block that only one group has is left out; runs of one block count as one.
    more = ratio([*first, 99.0], [*second, 11.0], blocks=([1, 2, 3, 4], [3, 1, 2, 1]))
    assert more.n == 3 and more.value == pytest.approx(1.1)
    lone = ratio([2.0], [3.0], blocks=([1], [1]))
    assert (lone.value, lone.low, lone.high) == (pytest.approx(1.5), 0, math.inf)


def test_the_bootstrap_is_reproducible_and_serves_other_statistics():
    values = np.random.default_rng(1).lognormal(0, 0.5, 40)
    assert bootstrap(values) == bootstrap(values)
    assert bootstrap(values).high == pytest.approx(t_interval(values).high, rel=0.05)
    median = bootstrap(values, np.median)
    assert median.value == np.median(values) and median.low < median.value < median.high
    # All resamples but few give the same median.
    odd = bootstrap([5.0] * 12 + [9.0], np.median)
    assert odd.value == odd.low == 5 and math.isfinite(odd.high)


@pytest.mark.parametrize("runs", [10, 20, 30])
@pytest.mark.parametrize("spread", ["normal", "lognormal, CV 10 %"])
def test_t_intervals_cover_what_they_say(runs, spread):
    rng = np.random.default_rng(runs)
    size, sigma = 3000, math.sqrt(math.log(1.01))
    if spread == "normal":
        values = rng.standard_normal((size, runs)) + 10
        true = 10.0
    else:
        values, true = rng.lognormal(0, sigma, (size, runs)), math.exp(sigma**2 / 2)
    covered = np.mean([t_interval(one).holds(true) for one in values])
    assert 0.93 <= covered <= 0.97, covered


@pytest.mark.parametrize("pairs", [LEAST_FOR_BCA - 1, LEAST_FOR_BCA])
def test_the_interval_of_a_paired_ratio_covers_under_drift(pairs):
    """Blocks drift together by far more than the runs within them vary."""
    rng = np.random.default_rng(pairs)
    trials = 200
    held = narrow = 0
    blocks = (list(range(pairs)),) * 2
    for _ in range(trials):
        drift = np.linspace(1, 2, pairs)
        first, second = (drift * np.exp(0.05 * rng.standard_normal(pairs)) * by for by in (1, 1.1))
        found = ratio(first, second, blocks)
        held += found.holds(1.1)
        narrow += found.high - found.low < 0.2
    assert found.method == ("BCa" if pairs >= LEAST_FOR_BCA else "paired t")
    # Three standard deviations below 92 and 95 %.
    assert held / trials >= (0.865 if pairs >= LEAST_FOR_BCA else 0.90), held / trials
    assert narrow == trials
