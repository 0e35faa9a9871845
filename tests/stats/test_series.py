"""Series within a run: autocorrelation, batch means, and whether a run is steady."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import OptionError
from loadstone.stats.intervals import t_interval
from loadstone.stats.series import autocorrelation, batch_means, effective_size
from loadstone.stats.steady import change_points, classify, noise, window_rule


def wandering(rng, rho, n, size=1):
    """Series of the first order with this autocorrelation, mean 0 and variance 1; one a row."""
    shocks = rng.standard_normal((size, n))
    shocks[:, 1:] *= math.sqrt(1 - rho**2)
    return scipy.signal.lfilter([1], [1, -rho], shocks, axis=1)


def test_autocorrelation_by_hand():
    # Deviations -1.5, -0.5, 0.5, 1.5: squares sum to 5, neighbours to 1.25.
    assert autocorrelation([1, 2, 3, 4]) == pytest.approx([1, 0.25, -0.3, -0.45])
    assert len(autocorrelation([1, 2, 3, 4], 2)) == 3
    assert list(autocorrelation([5.0] * 4)) == [1, 0, 0, 0]
    assert effective_size([0.1] * 9) == 9
    assert effective_size([1.0, -1.0] * 50) == 100


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.8])
def test_effective_size_is_that_of_theory(rho):
    rng = np.random.default_rng(1)
    found = np.median([effective_size(one) for one in wandering(rng, rho, 600, 100)])
    assert found == pytest.approx(600 * (1 - rho) / (1 + rho), rel=0.15)


@pytest.mark.parametrize(("rho", "plain"), [(0.0, 0.946), (0.3, 0.855), (0.6, 0.668), (0.8, 0.481)])
def test_batch_means_cover_where_plain_intervals_do_not(rho, plain):
    """300 seconds of a run, as in the table of the reference."""
    rng = np.random.default_rng(2)
    rows = wandering(rng, rho, 300, 1200)
    found = [batch_means(one).interval for one in rows]
    told = [one for one in found if one is not None]
    assert len(told) >= 0.85 * len(found)
    covered = np.mean([one.holds(0) for one in told])
    # Three standard deviations below 92 %.
    assert covered >= 0.92 - 3 * math.sqrt(0.92 * 0.08 / len(told)), covered
    seen = np.mean([t_interval(one).holds(0) for one in rows])
    assert seen == pytest.approx(plain, abs=0.045)


@pytest.mark.parametrize(("rho", "refused"), [(0.9, 0.85), (0.95, 0.98)])
def test_beyond_that_there_are_too_few_effective_samples(rho, refused):
    rng = np.random.default_rng(3)
    found = [batch_means(one) for one in wandering(rng, rho, 300, 400)]
    assert np.mean([one.interval is None for one in found]) >= refused
    assert "too few effective samples: 300 values" in next(one for one in found if one.reason).reason
    # A longer run of the same kind tells enough.
    longer = [batch_means(one).interval for one in wandering(rng, rho, 6000, 100)]
    assert all(longer) and np.mean([one.holds(0) for one in longer]) >= 0.87


def test_batches_are_of_equal_size_and_end_with_the_series():
    found = batch_means([99.0, *range(20)], batches=5)
    assert found.means == (1.5, 5.5, 9.5, 13.5, 17.5) and found.size == 4
    alike = batch_means([0.1] * 40)
    assert alike.interval.low == alike.interval.high == 0.1
    with pytest.raises(OptionError, match="are 19, and at least 20"):
        batch_means(range(19))
    with pytest.raises(OptionError, match="`batches`"):
        batch_means(range(19), batches=1)


def test_the_window_rule_by_hand():
    flat = window_rule([100.0, 101, 99, 100, 100])
    assert flat.start == 0 and flat.last and flat.excursion == pytest.approx(0.02)
    # 3 % a step are 12 % over five intervals, within the excursion and beyond the slope.
    rising = window_rule(100 * (1 + 0.03 * np.arange(9)))
    assert rising.start is None and rising.excursion < 0.2 and rising.slope > 0.1
    late = window_rule([10.0, 20, 40, 80, 100, 100, 100, 100, 100, 300])
    assert late.start == 4 and not late.last
    assert window_rule([0.0] * 5).start == 0 and window_rule([-1.0, 1, -1, 1, 0]).start is None
    with pytest.raises(OptionError, match="are 4, and at least 5"):
        window_rule([1.0] * 4)


def exact(values, price, least):
    """The best cuts of all that there are."""
    n = len(values)
    found = (math.inf, ())
    for count in range(n // least):
        for cuts in itertools.combinations(range(1, n), count):
            edges = (0, *cuts, n)
            parts = [values[a:b] for a, b in itertools.pairwise(edges)]
            if min(map(len, parts)) >= least:
                cost = sum(float(((one - one.mean()) ** 2).sum()) for one in parts) + price * count
                found = min(found, (cost, cuts), key=lambda one: (round(one[0], 9), len(one[1])))
    return found


@given(st.lists(st.integers(0, 8), min_size=6, max_size=11), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_changes_are_the_best_of_all(values, least):
    found = change_points(values, penalty=0.5, least=least)
    if len(values) < 2 * least or np.ptp(values) == 0:
        assert found == ()
        return
    scaled = np.array(values) / np.ptp(values)
    price = 0.5 * math.log(len(values)) * max(noise(scaled).variance, 1e-12)
    parts = [scaled[a:b] for a, b in itertools.pairwise((0, *found, len(values)))]
    assert min(map(len, parts)) >= least
    cost = sum(float(((one - one.mean()) ** 2).sum()) for one in parts) + price * len(found)
    assert cost == pytest.approx(exact(scaled, price, least)[0], abs=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.8])
def test_noise_is_found_beside_steps(rho):
    rng = np.random.default_rng(4)
    steps = 20 * (np.arange(300) >= 100) - 50 * (np.arange(300) >= 200)
    found = [noise(3 * one + steps) for one in wandering(rng, rho, 300, 100)]
    assert np.median([one.deviation for one in found]) == pytest.approx(3, rel=0.15)
    assert np.median([one.autocorrelation for one in found]) == pytest.approx(rho, abs=0.1)


@pytest.mark.parametrize(("n", "rho", "most"), [(40, 0.0, 0.04), (40, 0.5, 0.12), (150, 0.5, 0.10)])
@pytest.mark.parametrize("skewed", [False, True])
def test_series_without_a_change_seldom_get_one(n, rho, most, skewed):
    """Other lengths, autocorrelations and noises than those by which the penalty was chosen."""
    rng = np.random.default_rng(5)
    rows = wandering(rng, rho, n, 100)
    found = [bool(change_points(np.exp(0.2 * one) if skewed else one)) for one in rows]
    assert np.mean(found) <= most, np.mean(found)


AT = np.arange(90)
SHAPES = {
    "flat": (np.ones(90), "steady"),
    "one spike": (1 - 0.6 * (AT == 40), "steady"),
    "a short dip": (1 - 0.5 * ((AT >= 40) & (AT < 44)), "steady"),
    "step up": (1 - 0.4 * (AT < 15), "warm-up then steady"),
    "slow warm-up": (1 - 0.6 * np.exp(-AT / 5), "warm-up then steady"),
    "step down": (1 + 0.5 * (AT < 20), "slowdown"),
    "down twice": (1 + 0.3 * (AT < 15) + 0.3 * (AT < 30), "slowdown"),
    "drift down": (1 - 0.5 * AT / 90, "not steady"),
    "drift up": (1 + 0.5 * AT / 90, "not steady"),
    "drop at the end": (1 - 0.5 * (AT >= 80), "not steady"),
    "waves": (1 + 0.3 * np.sin(2 * np.pi * AT / 18), "cyclic"),
    "stalls": (1 - 0.6 * (AT % 15 < 4), "cyclic"),
    "two levels in turn": (1 + 0.2 * np.sign(np.sin(2 * np.pi * AT / 20 + 0.1)), "cyclic"),
}


@pytest.mark.parametrize("noisy", ["normal", "wandering", "skewed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_runs_are_called_what_they_are(shape, noisy):
    rng = np.random.default_rng(6)
    form, state = SHAPES[shape]
    rows = wandering(rng, 0.4 if noisy == "wandering" else 0.0, 90, 15)
    off = np.exp(0.04 * rows) if noisy == "skewed" else 1 + 0.04 * rows
    found = [classify(8000 * form * one) for one in off]
    right = np.mean([one.state == state for one in found])
    assert right >= 0.8, [(one.state, one.reason) for one in found if one.state != state]
    if state == "cyclic":
        assert np.median([one.period for one in found if one.period]) in (15, 18, 20)


def test_what_is_said_of_a_warm_up():
    rng = np.random.default_rng(7)
    values = 1000 * (1 - 0.4 * (np.arange(60) < 12)) * (1 + 0.02 * rng.standard_normal(60))
    found = classify(values)
    assert (found.state, found.start) == ("warm-up then steady", 12)
    assert [(one.start, one.end) for one in found.segments] == [(0, 12), (12, 60)]
    assert found.segments[1].mean == pytest.approx(1000, rel=0.02)
    # The window rule is content with the low level before, and both are told.
    assert found.window.start == 0 and found.window.last
    # Of a latency the same is a slowdown, and where nothing is better a warm-up.
    assert classify(values, better="lower").state == "slowdown"
    assert classify(2000 - values, better="neither").state == "warm-up then steady"


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_states_have_no_unit(scale):
    values = 1 - 0.4 * (np.arange(60) < 12) + 0.02 * np.sin(np.arange(60) ** 2)
    assert classify(values * scale).state == "warm-up then steady"


def test_ends_of_the_states():
    assert classify([0.0] * 10).state == "steady" and classify([0.1] * 10).segments[0].end == 10
    assert change_points([1.0, 2.0]) == () and change_points([0.0] * 5 + [1.0] * 5) == (5,)
    assert classify([0.0] * 20 + [1.0] * 20).state == "warm-up then steady"
    assert classify([1.0] * 20 + [0.0] * 20).state == "slowdown"
    with pytest.raises(OptionError, match="are 9, and at least 10"):
        classify([1.0] * 9)
    with pytest.raises(OptionError, match="take longer intervals"):
        classify([1.0, 2.0] * 10_001)
    with pytest.raises(OptionError, match="hold nan"):
        classify([1.0] * 9 + [math.nan])
    for wrong in ({"margin": 0.0}, {"lasts": 0.0}, {"window": 2}):
        with pytest.raises(OptionError):
            classify([1.0] * 20, **wrong)
    for wrong in ({"penalty": 0.0}, {"least": 0}):
        with pytest.raises(OptionError):
            change_points([1.0] * 20, **wrong)


@given(st.lists(st.floats(-1e150, 1e150), min_size=10, max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_series_has_a_state(values):
    found = classify(values)
    assert (found.start is not None) == (found.state in ("steady", "warm-up then steady", "slowdown"))
    assert found.segments[0].start == 0 and found.segments[-1].end == len(values)
    assert math.isfinite(effective_size(values))
