"""Ratios of two groups of runs: what the interval covers, and what is said of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone import OptionError
from loadstone.stats.equivalence import difference, ratio, runs_to_decide

MARGIN = 0.05


def groups(rng, runs, spread, true=1.0):
    return [scale * np.exp(spread * rng.standard_normal(runs)) for scale in (100.0, 100.0 * true)]


def test_the_interval_by_hand():
    # Logarithms 0 and 1, 1 and 2: means 0.5 and 1.5, variances 1/2 each, 2 degrees of freedom.
    found = ratio([1, math.e], [math.e, math.e**2])
    half = 2.9199855803537 * math.sqrt(0.5)
    assert found.value == pytest.approx(math.e)
    assert (found.low, found.high) == pytest.approx((math.exp(1 - half), math.exp(1 + half)))
    assert ratio([1, 0], [1, 1]) is None and ratio([], [1]) is None
    alone = ratio([5.0], [5.0, 5.1])
    assert alone.low == 0 and alone.answer(MARGIN, 1) == "open"
    assert ratio([5.0, 5.0], [5.0, 5.0]).answer(MARGIN, 2) == "same"


@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("spread", [0.02, 0.2])
def test_the_interval_covers_nine_of_ten(runs, spread):
    rng = np.random.default_rng(runs)
    found = [ratio(*groups(rng, runs, spread, 1.3)) for _ in range(2000)]
    covered = np.mean([one.low <= 1.3 <= one.high for one in found])
    assert 0.88 <= covered <= 0.93, covered


@pytest.mark.parametrize("runs", [2, 3, 10])
def test_who_is_at_the_edge_is_seldom_called_the_same(runs):
    rng = np.random.default_rng(20 + runs)
    said = [ratio(*groups(rng, runs, 0.02, 1 - MARGIN)).answer(MARGIN, runs) for _ in range(2000)]
    assert said.count("same") / 2000 <= 0.065 and said.count("different") / 2000 <= 0.065


def test_groups_that_are_alike_are_never_far_apart():
    rng = np.random.default_rng(4)
    for runs in (2, 3, 5):
        for spread in (0.01, 0.1, 0.5):
            said = [ratio(*groups(rng, runs, spread)).answer(MARGIN, runs) for _ in range(500)]
            # Three standard deviations of a share of 5 %.
            assert said.count("different") / 500 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)
            assert runs > 2 or "different" not in said


def test_of_many_comparisons_together_few_are_wrong():
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(400):
        said = [ratio(*groups(rng, 3, 0.3), tests=11).answer(MARGIN, 3) for _ in range(11)]
        wrong += "different" in said
    assert wrong / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_as_many_runs_as_are_proposed_decide():
    rng = np.random.default_rng(5)
    for true in (1.0, 1.02, 1.2):
        a, b = groups(rng, 200, 0.03, true)
        runs = runs_to_decide(a, b, MARGIN)
        said = [ratio(*groups(rng, runs, 0.03, true)).answer(MARGIN, runs) for _ in range(500)]
        assert said.count("different" if true > 1.1 else "same") >= 320, (true, runs)
    assert runs_to_decide(*groups(rng, 50, 3.0), MARGIN) is None
    assert runs_to_decide([0.0, 1.0], [1.0, 1.0], MARGIN) is None


def test_a_difference_may_be_of_values_that_are_zero_or_negative():
    # Means 0 and 1, variances 1 each, four runs each: Welch with six degrees of freedom.
    shape = np.array([-1, -1, 1, 1]) * math.sqrt(3 / 4)
    found = difference(shape, shape + 1)
    half = 1.9431802805153022 * math.sqrt(0.5)
    assert (found.value, found.low, found.high) == pytest.approx((1, 1 - half, 1 + half))
    assert found.answer(3.0, 4) == "same" and found.answer(2.0, 4) == "open"
    assert found.answer((-0.1, 3.0), 4) == "open" and found.answer((-0.5, 3.0), 4) == "same"
    assert difference([0.0] * 3, [1.0] * 3).answer(0.5, 3) == "different"
    assert difference([0.0] * 3, [0.0] * 3).answer(0.0, 3) == "same"


def test_the_interval_lies_within_where_both_one_sided_tests_succeed():
    rng = np.random.default_rng(7)
    for _ in range(100):
        a, b = groups(rng, 6, 0.04, 1.02)
        for found, margin in ((ratio(a, b), 0.06), (difference(a, b), 6.0), (ratio(a, b), (0.9, 1.05))):
            assert (found.p_same(margin) <= 0.05) == (found.answer(margin, 6) == "same")


def test_blocks_decide_what_drift_hides():
    rng = np.random.default_rng(8)
    drift = np.linspace(1, 3, 10)
    a, b = (drift * one for one in groups(rng, 10, 0.01))
    blocks = (list(range(10)), list(range(10)))
    for ask, margin, scale in ((ratio, 0.05, "ratio"), (difference, 10.0, "difference")):
        assert ask(a, b).answer(margin, 10) == "open"
        assert ask(a, b, blocks=blocks).answer(margin, 10) == "same"
        assert runs_to_decide(a, b, margin, scale=scale) is None
        assert 3 <= runs_to_decide(a, b, margin, blocks=blocks, scale=scale) <= 10


@pytest.mark.parametrize("margin", [-0.1, 1.0, 1.5, math.nan, (0.0, 1.1), (1.01, 1.1), (0.9, math.inf)])
def test_impossible_margins_are_refused(margin):
    with pytest.raises(OptionError, match="`margin`"):
        ratio([1.0, 2.0], [1.0, 2.0]).answer(margin, 2)
    if margin in (-0.1, (1.01, 1.1)) or margin != margin:
        with pytest.raises(OptionError, match="`margin`"):
            difference([1.0, 2.0], [1.0, 2.0]).answer(margin, 2)
