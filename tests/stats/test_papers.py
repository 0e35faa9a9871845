"""The papers' own numbers: tests and intervals from the means and variances that they print."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone.stats.intervals import t_interval
from loadstone.stats.levels import days_to_reach, first_that_differs
from loadstone.stats.means import change, t_test
from loadstone.stats.repetition import PRESETS
from loadstone.stats.samples import Summary
from loadstone.stats.variances import f_test

SETS = {
    "ZFS OLTP, 0 and 1811": (
        Summary(67383.03, 430239.5, 29),
        Summary(6448.276, 71895.06, 29),
        (5.984271, 9.54e-6, (2.197153, 16.299048)),
        ("welch", 463.0779, 37.104, None, (60577.50, 61292.02)),
    ),
    "ZFS IOzone write, 0 and 1811": (
        Summary(26033.6, 7620596, 10),
        Summary(226.3, 190.6778, 10),
        (39965.83, None, (6109.966, 261420.097)),
        ("welch", 29.5626, 9, 2.829e-10, (22970.32, 28644.28)),
    ),
    "HAMMER OLTP, 0 and 840": (
        Summary(103095, 10686403, 10),
        Summary(90163.75, 2964387, 4),
        (3.604929, 0.3192, (0.08214975, 31.42436105)),
        ("pooled", 7.3868, 12, 8.423e-06, (7584.004, 18278.496)),
    ),
    "HAMMER IOzone write, 0 and 840": (
        Summary(34372.8, 2164506, 10),
        Summary(32188.5, 2445046, 10),
        (0.8852618, 0.859, (0.1353386, 5.7905769)),
        ("pooled", 3.2172, 18, 0.004778, (230.0209, 4138.5791)),
    ),
    "HAMMER and ZFS, 0": (
        Summary(34372.8, 2164506, 10),
        Summary(26033.6, 7620596, 10),
        (0.2840336, 0.07471, None),
        ("pooled", 8.4303, 18, 1.153e-07, None),
    ),
    "HAMMER 840, ZFS 846": (
        Summary(32188.5, 2445046, 10),
        Summary(8811.5, 2445046 / 4.343107, 10),
        (4.343107, 0.03949, None),
        ("pooled", 42.6235, 18, None, None),
    ),
}
"""X and Y of the snapshots thesis, chapter 6; F, its p and the 99 % interval of the ratio of variances;
t, degrees of freedom, p and the 99 % interval of the difference of means. None where p is below 2.2e-16
or no interval is told."""


@pytest.mark.parametrize("name", SETS)
def test_f_tests_of_the_snapshots_thesis(name):
    x, y, (statistic, p, ends), _ = SETS[name]
    # The thesis tells X over Y.
    found = f_test(y, x, confidence=0.99)
    assert found.statistic == pytest.approx(statistic, rel=2e-6)
    assert found.freedoms == (x.n - 1, y.n - 1)
    assert found.p == pytest.approx(p, rel=2e-3) if p else found.p < 2.2e-16
    if ends:
        assert (found.ratio.low, found.ratio.high) == pytest.approx(ends, rel=2e-6)


@pytest.mark.parametrize("name", SETS)
def test_t_tests_of_the_snapshots_thesis(name):
    x, y, _, (variances, statistic, freedom, p, ends) = SETS[name]
    # The last set's F test is below 5 %, and the thesis pools its variances all the same.
    asked = "pooled" if name == "HAMMER 840, ZFS 846" else "auto"
    found = t_test(y, x, asked, confidence=0.99)
    assert found.variances == variances
    assert found.statistic == pytest.approx(statistic, abs=6e-5)
    assert found.freedom == pytest.approx(freedom, abs=0.006 * freedom if freedom == 9 else 0.001)
    assert found.p == pytest.approx(p, rel=1e-3) if p else found.p < 2.2e-16
    if ends:
        assert (found.difference.low, found.difference.high) == pytest.approx(ends, rel=2e-6)


def test_the_last_set_has_variances_that_differ_at_5_percent():
    x, y, (_, p, _), _ = SETS["HAMMER 840, ZFS 846"]
    assert t_test(y, x).variances == "welch" and p < 0.05


def test_stop_rule_of_auto_pilot():
    hammer, zfs = SETS["HAMMER OLTP, 0 and 840"][0], SETS["ZFS IOzone write, 0 and 1811"][0]
    assert t_interval(hammer).relative == pytest.approx(0.0227, abs=5e-5)
    assert t_interval(zfs).relative == pytest.approx(0.0759, abs=5e-5)
    rule = PRESETS["auto-pilot"]
    assert rule.assess({"ops": runs(hammer)}).sure
    found = rule.assess({"ops": runs(hammer), "kb_per_s": runs(zfs)})
    assert not found.enough and found.half_widths["kb_per_s"] == pytest.approx(0.0759, abs=5e-5)
    assert found.expected == math.ceil(10 * (0.075855 / 0.05) ** 2)


def runs(summary):
    """Values with exactly this mean and variance."""
    shape = np.linspace(-1, 1, summary.n)
    return summary.mean + shape * math.sqrt(summary.variance) / shape.std(ddof=1)


def test_output_of_auto_pilot_in_the_nfs_paper():
    mean = 1224.160
    found = t_interval(Summary(mean, (0.03481 * mean) ** 2, 5))
    assert found.relative == pytest.approx(0.04322, abs=6e-6)
    assert (found.low, found.high) == pytest.approx((1171.252, 1277.068), abs=0.01)
    rates = t_interval(Summary(29.160, (0.03409 * 29.160) ** 2, 5))
    # The paper cuts the last digit off.
    assert rates.relative == pytest.approx(0.04233, abs=6e-6)
    assert (rates.low, rates.high) == pytest.approx((27.926, 30.394), abs=1e-3)
    assert PRESETS["nfs"].assess({"ops": runs(Summary(mean, (0.03481 * mean) ** 2, 5))}).sure


def test_decreases_in_percent():
    hammer, zfs = SETS["HAMMER IOzone write, 0 and 840"], SETS["HAMMER 840, ZFS 846"]
    assert change(hammer[0].mean, hammer[1].mean) == pytest.approx(-0.0635, abs=5e-5)
    assert change(26033.6, zfs[1].mean) == pytest.approx(-0.6615, abs=5e-5)
    assert change(67383.03, 6448.276) == pytest.approx(-0.9043, abs=5e-5)


def test_policy_of_snapshots():
    assert days_to_reach(604, per_hour=6) == pytest.approx(4.19, abs=5e-3)


def test_an_interval_of_a_positive_quantity_that_reaches_below_zero_is_flagged():
    # btrfs, varmail, code path in us/op: -2779961 to 8696048 at 95 % of ten runs.
    mean, half = (8696048 - 2779961) / 2, (8696048 + 2779961) / 2
    found = t_interval(Summary(mean, (half / 2.2621571628540993 * math.sqrt(10)) ** 2, 10))
    assert (found.low, found.high) == pytest.approx((-2779961, 8696048), rel=1e-9)
    assert "below zero" in found.flag() and found.flag(positive=False) is None
    assert t_interval(SETS["ZFS OLTP, 0 and 1811"][0]).flag() is None


ZFS = (0, 121, 241, 362, 483, 604, 725, 846, 967, 1088, 1210, 1334, 1461, 1592, 1811)
HAMMER = (0, 120, 240, 360, 480, 600, 720, 840)


@pytest.mark.parametrize(("levels", "first"), [(ZFS, 604), (ZFS, 362), (HAMMER, 240), (HAMMER, 480)], ids=str)
def test_first_level_that_differs(levels, first):
    """The thesis prints no runs by level: here are some with its spread that fall from that level on."""
    rng = np.random.default_rng(first)
    samples = [67383 * (1 - 0.03 * (at >= first)) * (1 + 0.0097 * rng.standard_normal(29)) for at in levels]
    found = first_that_differs(levels, samples, confidence=0.99)
    assert found.level == first
