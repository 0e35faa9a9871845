"""Numbers of runs: against published tables, and kept in simulation; variance by levels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone import OptionError
from loadstone.stats.intervals import t_interval
from loadstone.stats.means import t_test
from loadstone.stats.planning import levels, runs_for_difference, runs_for_width


@pytest.mark.parametrize(
    ("effect", "power", "confidence", "paired", "runs"),
    [
        # Cohen 1988, table 2.4.1, at two-sided 5 and 1 %.
        (0.2, 0.8, 0.95, False, 394),
        (0.5, 0.8, 0.95, False, 64),
        (0.8, 0.8, 0.95, False, 26),
        (1.0, 0.9, 0.95, False, 23),
        (0.5, 0.8, 0.99, False, 96),
        (0.5, 0.8, 0.95, True, 34),
    ],
)
def test_runs_are_those_of_the_tables(effect, power, confidence, paired, runs):
    assert runs_for_difference(1.0, effect, power, confidence, paired) == runs
    assert runs_for_difference(20.0, -20 * effect, power, confidence, paired) == runs


def test_planned_runs_find_the_difference_as_often_as_asked():
    rng = np.random.default_rng(1)
    n = runs_for_difference(0.05, 0.06)
    groups = ((rng.normal(1, 0.05, n), rng.normal(1.06, 0.05, n)) for _ in range(1500))
    found = np.mean([t_test(a, b, "pooled").p < 0.05 for a, b in groups])
    assert 0.8 - 0.03 <= found <= 0.87, (n, found)


@pytest.mark.parametrize("sure", [0.5, 0.9])
def test_planned_runs_reach_the_width_as_often_as_asked(sure):
    rng = np.random.default_rng(2)
    n = runs_for_width(0.1, 0.05, sure=sure)
    narrow = [t_interval(rng.normal(1, 0.1, n)).half_width < 0.05 for _ in range(1500)]
    # One run more or less makes a step.
    assert sure - 0.03 <= np.mean(narrow) <= sure + 0.09, (n, np.mean(narrow))


def test_ends_of_planning():
    # From Auto-pilot's rule: 10 runs are enough for a spread of 6.9 %, 11 for 7 %.
    assert runs_for_width(0.0, 0.05) == 2 and runs_for_difference(0.0, 1.0) == 2
    assert runs_for_width(0.05, 0.05, least=10) == 10
    assert runs_for_width(1.0, 1e-6) is None and runs_for_difference(1.0, 1e-6) is None
    assert runs_for_difference(1e-9, 1e9) == 2
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(OptionError, match="`spread`"):
            runs_for_width(wrong)
        with pytest.raises(OptionError, match="`spread`"):
            runs_for_difference(wrong, 1.0)
    for wrong in (0.0, math.nan):
        with pytest.raises(OptionError, match="`half_width`"):
            runs_for_width(1.0, wrong)
        with pytest.raises(OptionError, match="`difference`"):
            runs_for_difference(1.0, wrong)


def nested(rng, counts, spreads, mean=100.0):
    if not counts:
        return mean
    return [
        nested(rng, counts[1:], spreads[1:], mean + spreads[0] * rng.standard_normal())
        for _ in range(counts[0])
    ]


def test_levels_by_hand():
    # Means of runs 2 and 6: their variance is 8, of which the values within explain 2 / 2.
    found = levels([[1.0, 3.0], [5.0, 7.0]])
    assert found.variances == (7.0, 2.0) and found.mean == 4 and found.counts == (2, 2)
    assert found.error([2, 2]) == pytest.approx(math.sqrt(7 / 2 + 2 / 4))
    # sqrt(90 / 10 * 2 / 7) = 1.6
    assert found.repeats([90.0, 10.0]) == (2,)
    assert levels([3.0, 5.0, 7.0]).variances == (4.0,) and levels([3.0, 5.0]).repeats([1.0]) == ()
    # Values within explain all: the variance of runs is not negative.
    assert levels([[0.0, 10.0], [0.0, 10.0]]).variances == (0.0, 50.0)


def test_levels_are_found_again():
    rng = np.random.default_rng(3)
    found = np.array([levels(nested(rng, (6, 5, 4), (3.0, 2.0, 1.0))).variances for _ in range(150)])
    assert found.mean(axis=0) == pytest.approx([9, 4, 1], rel=0.15)


def test_repeats_that_are_advised_are_the_cheapest():
    """No other number of repeats gives a smaller error for the same cost."""
    found = levels(nested(np.random.default_rng(4), (8, 8, 8), (1.0, 3.0, 2.0)))
    costs = (600.0, 60.0, 5.0)
    advised = found.repeats(costs)

    def worth(inner):
        cost = costs[0] + inner[0] * (costs[1] + inner[1] * costs[2])
        return found.error([1, *inner]) ** 2 * cost

    best = min(worth((a, b)) for a in range(1, 40) for b in range(1, 40))
    assert worth(advised) <= 1.05 * best, (advised, worth(advised) / best)


def test_lists_that_are_not_nested_alike_are_refused():
    for wrong in ([], [[]], [1.0, [2.0]], [["a"], ["b"]], [[1.0], [2.0]], [[math.nan, 1.0], [1.0, 2.0]]):
        with pytest.raises(OptionError, match="`values"):
            levels(wrong)
    with pytest.raises(OptionError, match="`costs`"):
        levels([[1.0, 3.0], [5.0, 7.0]]).repeats([1.0])
    with pytest.raises(OptionError, match="`counts`"):
        levels([[1.0, 3.0], [5.0, 7.0]]).error([1, 0])
