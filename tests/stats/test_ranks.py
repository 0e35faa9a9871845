"""Tests by ranks, and corrections for many metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import OptionError
from loadstone.stats.many import benjamini_hochberg, holm
from loadstone.stats.ranks import brunner_munzel, least_p, mann_whitney

PAIN_1 = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1]
PAIN_2 = [3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4]
"""Pain after an operation, two groups of patients (Brunner and Munzel 2000, table 1)."""


@pytest.mark.parametrize(("runs", "least"), [(3, 0.100), (4, 0.029), (5, 0.008), (6, 0.002)])
def test_few_runs_cannot_reach_5_percent(runs, least):
    low, high = list(range(runs)), list(range(100, 100 + runs))
    found = mann_whitney(low, high)
    assert found.p == found.least_p == pytest.approx(least, abs=5e-4)
    assert found.larger == 1 and found.statistic == runs**2
    assert brunner_munzel(low, high).p == found.least_p and brunner_munzel(low, high).statistic == math.inf


def test_known_values():
    found = brunner_munzel(PAIN_1, PAIN_2)
    assert (found.statistic, found.larger) == pytest.approx((3.1374674823029505, 0.788961), rel=1e-6)
    assert found.p == pytest.approx(0.0057862086661515377, rel=1e-9)
    # Hollander and Wolfe, Nonparametric Statistical Methods, table 4.1: permeability of membranes; W = 35.
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    membranes = mann_whitney(early, term)
    assert membranes.statistic == 35 and membranes.p == pytest.approx(0.2544, abs=5e-5)


def test_equal_values_are_counted_exactly():
    # Of the six ways to choose two of 1, 1, 2, 2 two are as far apart as these.
    assert mann_whitney([1.0, 1.0], [2.0, 2.0]).p == pytest.approx(2 / 6)
    # Of the ten ways here one is as low, and none is as high.
    assert mann_whitney([0.0, 0.0], [1.0, 1.0, 1.0]).p == pytest.approx(2 / 10)
    for ask in (mann_whitney, brunner_munzel):
        same = ask([5.0] * 4, [5.0] * 4)
        assert (same.p, same.larger) == (1.0, 0.5)


NUMBERS = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=8)


@given(NUMBERS, NUMBERS)
@settings(max_examples=60, deadline=None)
def test_turning_the_groups_turns_the_answer(a, b):
    for ask in (mann_whitney, brunner_munzel):
        one, other = ask(a, b), ask(b, a)
        assert one.p == pytest.approx(other.p) and one.larger == pytest.approx(1 - other.larger)
        assert least_p(len(a), len(b)) - 1e-12 <= one.p <= 1
        if math.isfinite(one.statistic) and ask is brunner_munzel:
            assert one.statistic == pytest.approx(-other.statistic, abs=1e-9)


@pytest.mark.parametrize("ask", [mann_whitney, brunner_munzel])
def test_arms_that_are_alike_seldom_differ(ask):
    rng = np.random.default_rng(8)
    trials = 800
    found = np.mean([ask(*rng.lognormal(0, 0.5, (2, 10))).p < 0.05 for _ in range(trials)])
    assert found <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials), found


@pytest.mark.parametrize("ask", [mann_whitney, brunner_munzel])
def test_a_shift_of_two_spreads_is_found(ask):
    rng = np.random.default_rng(9)
    found = np.mean([ask(rng.normal(0, 1, 10), rng.normal(2, 1, 10)).p < 0.05 for _ in range(200)])
    assert found > 0.95, found


def test_holm_by_hand():
    # Holm's own steps: 4 x 0.01, 3 x 0.02, 2 x 0.03, 1 x 0.04, none below the one before.
    assert holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert holm([0.5, 0.5]) == pytest.approx([1, 1]) and len(holm([])) == 0


BENJAMINI = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
BENJAMINI += [0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
"""The example of Benjamini and Hochberg 1995, section 3.1."""


def test_the_example_of_benjamini_and_hochberg():
    assert np.count_nonzero(benjamini_hochberg(BENJAMINI) <= 0.05) == 4
    assert np.count_nonzero(holm(BENJAMINI) <= 0.05) == 3
    assert benjamini_hochberg(BENJAMINI) == pytest.approx(scipy.stats.false_discovery_control(BENJAMINI))


@given(st.lists(st.floats(0, 1), max_size=12), st.randoms())
@settings(max_examples=60, deadline=None)
def test_corrections_keep_order_and_only_raise(ps, random):
    for ask in (holm, benjamini_hochberg):
        found = ask(ps)
        assert ((found >= ps) & (found <= 1)).all()
        turned = list(range(len(ps)))
        random.shuffle(turned)
        assert ask([ps[at] for at in turned]) == pytest.approx([found[at] for at in turned])
    assert (holm(ps) >= benjamini_hochberg(ps) - 1e-12).all()


def test_of_20_metrics_that_are_alike_few_are_called_different():
    rng = np.random.default_rng(10)
    ps = rng.uniform(size=(2000, 20))
    alone = np.mean((ps < 0.05).any(axis=1))
    together = np.mean([(holm(row) < 0.05).any() for row in ps])
    assert alone > 0.6 and together <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000), (alone, together)
    assert np.mean((ps < 0.05).sum(axis=1) >= 2) == pytest.approx(0.26, abs=0.03)


def test_benjamini_and_hochberg_bound_the_share_of_wrong_finds():
    rng = np.random.default_rng(11)
    shares = []
    for _ in range(500):
        ps = scipy.stats.norm.sf(rng.standard_normal(40) + 3 * (np.arange(40) < 20))
        found = benjamini_hochberg(ps) < 0.05
        shares.append(np.count_nonzero(found[20:]) / max(np.count_nonzero(found), 1))
    assert np.mean(shares) <= 0.05


def test_what_is_no_chance_is_refused():
    for wrong in ([1.1], [-0.1], [math.nan]):
        for ask in (holm, benjamini_hochberg):
            with pytest.raises(OptionError):
                ask(wrong)
