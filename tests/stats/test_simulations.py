"""Whole protocols in simulation: what goes wrong where runs are made or judged carelessly, and here
does not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone.stats.intervals import ratio, t_interval
from loadstone.stats.means import t_test
from loadstone.stats.ranks import mann_whitney
from loadstone.stats.repetition import UntilSure


def most(share, trials):
    """A share, and three standard deviations more."""
    return share + 3 * math.sqrt(share * (1 - share) / trials)


@pytest.mark.slow
@pytest.mark.parametrize(("least", "covered"), [(2, 0.883), (5, 0.917), (10, 0.937)])
def test_stopping_early_makes_intervals_too_narrow(least, covered):
    """Runs of lognormal values (CV 10 %) until the half-width is below 5 % of the mean, at most
    60.
    """
    rng = np.random.default_rng(1)
    sigma = math.sqrt(math.log(1.01))
    true, trials = math.exp(sigma**2 / 2), 400
    rule, held = UntilSure(least=least, most=60), 0
    for _ in range(trials):
        values = rng.lognormal(0, sigma, 60)
        runs = next(n for n in range(least, 61) if rule.assess({"ops": values[:n]}).enough)
        held += t_interval(values[:runs]).holds(true)
    assert held / trials == pytest.approx(covered, abs=3 * math.sqrt(covered * (1 - covered) / trials))


def test_looking_at_p_again_and_again_finds_what_is_not_there():
    """A/A: a look every 5 runs up to 50, against a rule that asks widths and one test at the
    end.
    """
    rng = np.random.default_rng(2)
    trials, peeking, waiting = 400, 0, 0
    rule = UntilSure(least=10, most=50, half_width=0.05)
    for _ in range(trials):
        a, b = 100 + 10 * rng.standard_normal((2, 50))
        peeking += any(t_test(a[:n], b[:n], "welch").p < 0.05 for n in range(5, 51, 5))
        runs = next(n for n in range(10, 51) if rule.assess({"a": a[:n], "b": b[:n]}).enough)
        waiting += t_test(a[:runs], b[:runs], "welch").p < 0.05
    assert peeking / trials == pytest.approx(0.195, abs=0.06)
    assert waiting / trials <= most(0.05, trials)


def drifting(rng, at):
    """A run at a time from 0 to 1 of the campaign: the host drifts by 1.5 times the noise."""
    return 10 + 0.45 * at + 0.3 * rng.standard_normal(len(at))


@pytest.mark.slow
def test_random_blocks_keep_drift_out():
    """A/A of ten runs each: one arm after the other, and in random blocks."""
    rng = np.random.default_rng(3)
    trials = 500
    at = np.linspace(0, 1, 20)
    blocks = (list(range(10)),) * 2
    wrong = dict.fromkeys(("in sequence", "in blocks, by ranks", "paired t", "paired ratio"), 0)
    for _ in range(trials):
        values = drifting(rng, at)
        wrong["in sequence"] += mann_whitney(values[:10], values[10:]).p < 0.05
        pairs = drifting(rng, at).reshape(10, 2)
        pairs = rng.permuted(pairs, axis=1)
        first, second = pairs[:, 0], pairs[:, 1]
        wrong["in blocks, by ranks"] += mann_whitney(first, second).p < 0.05
        wrong["paired t"] += t_test(first, second, blocks=blocks).p < 0.05
        wrong["paired ratio"] += not ratio(first, second, blocks).holds(1)
    share = {name: count / trials for name, count in wrong.items()}
    assert share.pop("in sequence") == pytest.approx(0.295, abs=0.06)
    assert share["in blocks, by ranks"] == pytest.approx(0.026, abs=0.025)
    assert max(share.values()) <= most(0.05, trials), share


@pytest.mark.slow
def test_the_run_is_the_unit_and_not_the_operation():
    """A/A: runs differ by 5 % of their spread of operations, 5 runs of 2,000 operations each."""
    rng = np.random.default_rng(4)
    trials = 100
    pooled = by_run = 0
    for _ in range(trials):
        arms = rng.standard_normal((2, 5, 2000)) + 0.05 * rng.standard_normal((2, 5, 1))
        pooled += mann_whitney(*arms.reshape(2, -1)).p < 0.05
        by_run += mann_whitney(*np.median(arms, axis=2)).p < 0.05
    assert pooled / trials == pytest.approx(0.39, abs=0.15)
    assert by_run / trials <= most(0.032, trials)


@pytest.mark.parametrize(("runs", "wrong"), [(3, 0.116), (5, 0.075), (10, 0.047)])
def test_two_sigma_of_few_runs_are_no_bound(runs, wrong):
    """To be above the mean by 1.96 standard deviations happens so often; a test of both arms errs less."""
    rng = np.random.default_rng(5)
    trials = 4000
    base, new = rng.standard_normal((trials, runs)), rng.standard_normal(trials)
    careless = np.mean(new > base.mean(axis=1) + 1.96 * base.std(axis=1, ddof=1))
    assert careless == pytest.approx(wrong, abs=3 * math.sqrt(wrong / trials))
    found = [t_test(a, [b], "pooled").p < 0.05 for a, b in zip(base[:1000], new[:1000], strict=True)]
    assert np.mean(found) <= most(0.05, 1000)
