"""Verdicts, by arms of which the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made import P99, RATE, arm

from loadstone import Error
from loadstone.compare import Arm, RunValues, compare, floors
from loadstone.compare.verdicts import interval
from loadstone.errors import OptionError
from loadstone.stats.metric import Metric

TEN = [100, 101, 99, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100]


def rates(rng, n=10, cv=0.03, times=1.0):
    return times * 1000 * np.exp(rng.normal(0, cv, n))


def only(metric, name, values):
    return Arm(name, {metric.name: metric}, [RunValues({metric.name: one}) for one in values])


def primary(*arms, **more):
    return compare(arms, **more).primary[0]


@pytest.mark.parametrize(("cv", "most"), [(0.03, 0.05), (0.1, 0.08)])
def test_arms_that_are_alike_are_seldom_called_different(cv, most):
    """Of 200 comparisons 5 % would be 10; with noise beyond the margin chance makes it up to 16."""
    rng = np.random.default_rng(48)
    called = [primary(arm("a", rates(rng, cv=cv)), arm("b", rates(rng, cv=cv))).verdict for _ in range(200)]
    assert sum(one in ("better", "worse") for one in called) / 200 <= most


def test_a_true_difference_of_a_tenth_is_found():
    rng = np.random.default_rng(49)
    found = [primary(arm("a", rates(rng)), arm("b", rates(rng, times=1.1))).verdict for _ in range(200)]
    assert found.count("better") / 200 > 0.9 and "worse" not in found


def test_what_is_alike_is_called_the_same_and_noise_undecided():
    rng = np.random.default_rng(50)
    quiet = [primary(arm("a", rates(rng)), arm("b", rates(rng))).verdict for _ in range(100)]
    assert quiet.count("same") > 70
    noisy = primary(arm("a", rates(rng, 5, 0.3)), arm("b", rates(rng, 5, 0.3)))
    assert noisy.verdict == "undecided" and noisy.more is None
    near = primary(arm("a", [100, 110, 90, 100]), arm("b", [112, 122, 102, 113]))
    assert near.verdict == "undecided" and 4 < near.more <= 30


def test_twenty_metrics_of_equal_arms_are_judged_together():
    """By themselves one of nineteen is called different in 62 % of the cases."""
    rng = np.random.default_rng(51)
    names = ["ops_per_s", *(f"step{at}.service_p99" for at in range(19))]
    known = {name: Metric(name, "ns", "lower") for name in names}
    wrong = 0
    for _ in range(60):
        pair = []
        for name in "ab":
            values = rng.lognormal(0, 0.2, (10, 20)).tolist()
            pair.append(Arm(name, known, [RunValues(dict(zip(names, row, strict=True))) for row in values]))
        others = [one for one in compare(pair, all_metrics=True).verdicts if not one.primary]
        assert len(others) == 19
        wrong += any(one.verdict in ("better", "worse") for one in others)
    assert wrong / 60 <= 0.15


def test_which_way_is_better_is_the_metrics():
    faster, slower = [120 + one / 100 for one in TEN], [80 + one / 100 for one in TEN]
    found = compare([arm("a", TEN, TEN), arm("b", faster, slower)])
    assert [one.verdict for one in found.verdicts] == ["better", "better"]
    assert found.verdicts[0].change > 0 and found.verdicts[1].change > 0
    turned = compare([arm("b", faster, slower), arm("a", TEN, TEN)])
    assert [one.verdict for one in turned.verdicts] == ["worse", "worse"]
    neither = Metric("files", "", "neither")
    pair = [only(neither, "a", TEN), only(neither, "b", faster)]
    assert compare(pair).primary[0].verdict == "higher"


def test_blocks_take_out_what_they_have_in_common():
    slow = np.linspace(1, 2, 10)
    noise = np.random.default_rng(3).normal(1, 0.01, 20)
    a, b = 100 * slow * noise[:10], 110 * slow * noise[10:]
    blocks = list(range(10))
    assert primary(arm("a", a), arm("b", b)).verdict == "undecided"
    paired = primary(arm("a", a, blocks=blocks), arm("b", b, blocks=blocks))
    assert paired.verdict == "better" and paired.ratio.low < 1.1 < paired.ratio.high


def test_one_run_each_has_no_verdict_and_two_call_nothing_different():
    found = compare([arm("a", [100]), arm("b", [200])])
    assert found.primary[0].verdict == "no verdict" and found.primary[0].ratio.value == pytest.approx(2)
    assert "--repeat" in found.notes[0]
    assert primary(arm("a", [100, 100.1]), arm("b", [200, 200.1])).verdict == "undecided"
    assert primary(arm("a", [100]), arm("b", [200, 201, 202])).verdict == "no verdict"


def test_zeros_and_constants():
    assert primary(arm("a", [0, 0, 0]), arm("b", [0, 0, 0])).verdict == "same"
    some = primary(arm("a", [0, 0, 0.0]), arm("b", [5, 5.1, 4.9]))
    assert some.verdict == "better" and some.ratio is None and some.change is None
    assert primary(arm("a", [7, 7, 7]), arm("b", [7, 7, 7])).verdict == "same"
    assert primary(arm("a", [7, 7, 7]), arm("b", [8, 8, 8])).verdict == "better"
    assert primary(arm("a", [0, 10, 20, 3]), arm("b", [0, 12, 19, 5])).verdict == "undecided"


def test_an_exact_metric_differs_by_anything():
    exact = Metric("written", "", "lower", exact=True)
    pair = [only(exact, "a", [100.0]), only(exact, "b", [101.0])]
    assert compare(pair).primary[0].verdict == "worse"


def test_what_is_below_the_floor_is_undecided():
    rng = np.random.default_rng(52)
    a, b = arm("a", rates(rng)), arm("b", rates(rng, times=1.06))
    drifts = arm("d", 1000 * np.linspace(1, 1.3, 10), started=1.0)
    assert primary(a, b).verdict == "better"
    found = compare([a, b], floor=[drifts])
    one = found.primary[0]
    assert one.verdict == "undecided" and one.below_floor and one.floor > 0.06
    assert "floor" in found.text()
    assert floors([a])["ops_per_s"] < 0.06
    with pytest.raises(Error, match="3 runs"):
        floors([arm("few", [1, 2, 3])])


def test_means_are_those_that_metrics_declare():
    assert interval(RATE, [1, 3], 0.95).value == pytest.approx(1.5)
    assert interval(P99, [1, 3], 0.95).value == pytest.approx(2)
    ratio = Metric("r", "", "higher", "geometric")
    assert interval(ratio, [1, 4], 0.95).value == pytest.approx(2)
    assert math.isinf(interval(RATE, [1, 30], 0.95).high)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"margin": 0}, "margin"),
        ({"margin": 1.5}, "margin"),
        ({"confidence": 1}, "confidence"),
        ({"metrics": ["ops_per_sec"]}, "did you mean ops_per_s"),
    ],
)
def test_what_cannot_be_is_refused(more, text):
    with pytest.raises(OptionError, match=text):
        compare([arm("a", TEN), arm("b", TEN)], **more)


def test_arms_without_runs_or_metrics_in_common_are_refused():
    with pytest.raises(Error, match="no run"):
        compare([arm("a", []), arm("b", TEN)])
    other = only(Metric("x", "", "lower"), "b", [1.0])
    with pytest.raises(Error, match="no metric in common"):
        compare([arm("a", TEN), other])
    with pytest.raises(OptionError, match="at least two"):
        compare([arm("a", TEN)])


def test_a_metric_that_only_some_runs_tell_is_left_out():
    """p99.9 is told by runs with enough requests: by the fast ones."""
    a, b = arm("a", TEN, TEN), arm("b", TEN, TEN)
    del b.runs[0].values["service_p99"]
    found = compare([a, b])
    assert [one.metric.name for one in found.verdicts] == ["ops_per_s"]
    assert any("service_p99" in note for note in found.notes)
    with pytest.raises(OptionError, match="all runs of b"):
        compare([a, b], metrics=["service_p99"])
