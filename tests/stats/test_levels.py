"""Levels of a factor, histories, and values that lie apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone import OptionError
from loadstone.stats.history import steps
from loadstone.stats.levels import change_point, days_to_reach, first_that_differs
from loadstone.stats.outliers import flag, modified_z

LEVELS = (0, 120, 240, 360, 480, 600, 720, 840)


def by_level(rng, means, spread=0.03, runs=10):
    return [1000 * mean * (1 + spread * rng.standard_normal(runs)) for mean in means]


def test_levels_that_are_alike_seldom_differ_though_they_are_many():
    rng = np.random.default_rng(1)
    trials = 150
    found = [first_that_differs(LEVELS, by_level(rng, [1] * 8), 0.95) for _ in range(trials)]
    wrong = np.mean([one.level is not None for one in found])
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials), wrong
    alone = np.mean([min(one.ps) / 7 < 0.05 for one in found])
    assert alone > 0.15, "without the correction one of seven would often differ"


def test_the_first_and_the_lasting_level():
    rng = np.random.default_rng(2)
    samples = by_level(rng, [1, 1, 0.8, 1, 1, 0.8, 0.8, 0.8])
    found = first_that_differs(LEVELS, samples)
    assert (found.level, found.lasting) == (240, 600)
    assert len(found.ps) == len(found.differences) == 7 and found.differences[1].high < 0
    assert first_that_differs(LEVELS, samples, direction="higher").level is None
    assert first_that_differs(LEVELS, samples, direction="lower").level == 240
    up = first_that_differs(LEVELS[:2], [[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]])
    assert up.level == up.lasting == 120
    alike = first_that_differs(LEVELS[:2], [[1.0, 1.0], [1.0, 1.0]])
    assert alike.level is None and alike.ps == (1.0,)


def test_blocks_find_a_level_that_drift_hides():
    rng = np.random.default_rng(3)
    drift = np.linspace(1, 2, 8)
    samples = [drift * one for one in by_level(rng, [1, 0.9], 0.01, 8)]
    blocks = [list(range(8))] * 2
    assert first_that_differs((0, 1), samples).level is None
    assert first_that_differs((0, 1), samples, blocks=blocks).level == 1


@pytest.mark.parametrize("at", [2, 5])
def test_a_change_point_and_its_interval(at):
    rng = np.random.default_rng(4)
    means = [1.0] * at + [0.95] * (8 - at)
    held = wide = 0
    trials = 100
    for _ in range(trials):
        found = change_point(LEVELS, by_level(rng, means), resamples=399)
        held += found.low <= LEVELS[at] <= found.high
        wide += found.high - found.low
        assert found.low <= found.level <= found.high
    assert held / trials >= 0.9, held
    assert wide / trials < 400 and found.p < 0.01
    assert found.before == pytest.approx(1000, rel=0.02) and found.after == pytest.approx(950, rel=0.02)


def test_without_a_change_p_is_what_it_says():
    rng = np.random.default_rng(5)
    ps = [change_point(LEVELS, by_level(rng, [1] * 8, runs=5), resamples=199).p for _ in range(200)]
    assert np.mean(np.array(ps) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)
    assert change_point((0, 1), [[5.0], [5.0]]).p == 1
    again = by_level(rng, [1, 2])
    assert change_point((0, 1), again) == change_point((0, 1), again)


@pytest.mark.parametrize("ask", [first_that_differs, change_point])
def test_levels_must_ascend_and_have_runs(ask):
    for levels, samples, told in (
        ((0,), [[1.0]], "at least two"),
        ((0, 1), [[1.0]], "at least two, with one sample each"),
        ((1, 0), [[1.0], [1.0]], "must ascend"),
        ((0, 1), [[1.0], []], "are 0"),
        ((0, 1), [[1.0], [math.nan]], "hold nan"),
    ):
        with pytest.raises(OptionError, match=told):
            ask(levels, samples)
    with pytest.raises(OptionError, match="`per_hour`"):
        days_to_reach(5, 0)


NOISES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "lognormal": lambda rng, n: (rng.lognormal(0, 0.5, n) - math.exp(0.125)) / 0.604,
    "heavy": lambda rng, n: rng.standard_t(3, n) / math.sqrt(3),
}


@pytest.mark.parametrize("noise", NOISES)
def test_histories_without_a_step_seldom_get_one(noise):
    rng = np.random.default_rng(6)
    trials = 100
    found = np.mean([bool(steps(100 + 5 * NOISES[noise](rng, 40))) for _ in range(trials)])
    assert found <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials), found


@pytest.mark.parametrize("noise", NOISES)
def test_lasting_steps_are_found(noise):
    rng = np.random.default_rng(7)
    at = np.arange(60)
    right = 0
    for _ in range(20):
        values = 100 - 20 * (at >= 25) + 5 * NOISES[noise](rng, 60)
        found = steps(values)
        right += len(found) == 1 and abs(found[0].index - 25) <= 2
    assert right >= 16, right
    assert found[0].change == pytest.approx(-0.2, abs=0.05) and found[0].p <= 0.05


def test_a_step_there_and_back_are_two_and_a_bad_result_is_none():
    rng = np.random.default_rng(8)
    right = alone = 0
    for _ in range(20):
        values = 100 + rng.standard_normal(60)
        values[20:40] += 10
        found = steps(values)
        right += [one.index for one in found] == [20, 40]
        lone = 100 + rng.standard_normal(60)
        lone[30] = 150
        alone += steps(lone) == ()
    assert right >= 16 and alone >= 16, (right, alone)
    assert steps(values) == found
    assert found[0].before == pytest.approx(100, abs=1) and found[1].before == pytest.approx(110, abs=1)


def test_ends_of_histories():
    assert steps([]) == steps([1.0]) == steps([5.0] * 50) == ()
    assert [one.index for one in steps([0.0] * 10 + [1.0] * 10)] == [10]
    assert steps([0.0] * 10 + [1.0] * 10)[0].change is None
    assert [one.index for one in steps([1e150] * 10 + [-1e150] * 10)] == [10]
    for wrong in ({"least": 1}, {"permutations": 10}, {"confidence": 1.0}):
        with pytest.raises(OptionError):
            steps([1.0] * 20, **wrong)
    with pytest.raises(OptionError, match="leave out the oldest"):
        steps([1.0] * 1001)


def test_values_that_lie_apart_are_flagged_and_stay():
    values = [10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 14.0, 10.1, 9.9, 10.0]
    found = flag(values, {6: "swapped 2 GB", 2: "nothing to explain"})
    (one,) = found.outliers
    assert (one.index, one.value, one.fence, one.evidence) == (6, 14.0, 2, "swapped 2 GB")
    # The median is 10 and the median distance 0.1.
    assert one.z == pytest.approx(0.6745 * 4 / 0.1, rel=1e-6)
    assert found.median == 10.0 and found.unexplained == 0
    assert found.trimmed == pytest.approx(np.mean([9.9, 10.0, 10.0, 10.0, 10.1, 10.1]))
    assert flag(values).unexplained == 1
    low = flag([100 - one for one in values]).outliers[0]
    assert low.z == pytest.approx(-one.z)


def test_ends_of_outliers():
    assert flag([5.0]).outliers == flag([1.0, 2.0, 300.0, 4.0]).outliers == ()
    assert flag([0.1] * 9).outliers == () and list(modified_z([3.0, 3.0])) == [0, 0]
    # More than half of them alike: the mean distance takes the place of the median one.
    assert [one.index for one in flag([5.0] * 12 + [9.0]).outliers] == [12]
    with pytest.raises(OptionError):
        flag([1.0, math.nan])


def test_normal_runs_seldom_lie_apart():
    rng = np.random.default_rng(9)
    found = [flag(rng.standard_normal(20)).outliers for _ in range(300)]
    by_z = np.mean([any(abs(one.z) >= 3.5 for one in row) for row in found])
    outer = np.mean([any(one.fence == 2 for one in row) for row in found])
    assert by_z <= 0.12 and outer <= 0.05, (by_z, outer)
