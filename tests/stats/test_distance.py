import numpy as np
import pytest

from loadstone.evaluation.faithful import FLOOR_FACTOR, compare, judge, overall
from loadstone.observe.metrics import PARAMETERS
from loadstone.observe.response import Response
from loadstone.stats.distance import chance, distance, pair
from loadstone.stats.equivalence import MOST_RUNS

RUNS, INTERVALS = 3, 24
SHAPE = 100 + 60 * np.sin(np.linspace(0, 7, INTERVALS))
NOISES = {
    "normal 3 %": lambda rng, shape: 1 + 0.03 * rng.standard_normal(shape),
    "normal 30 %": lambda rng, shape: 1 + 0.3 * rng.standard_normal(shape),
    "lognormal, heavy": lambda rng, shape: np.exp(0.7 * rng.standard_normal(shape)),
    "run to run 20 %": lambda rng, shape: (
        1 + 0.2 * rng.standard_normal((shape[0], 1)) + 0.02 * rng.standard_normal(shape)
    ),
}


def runs(rng, noise, shift=0.0):
    return SHAPE * (shift + NOISES[noise](rng, (RUNS, INTERVALS)))


def test_figures_worked_by_hand():
    a = [[10, 10, 10, 10], [10, 10, 10, 14]]
    b = [[12, 10, 10, 10], [12, 10, 10, 10]]
    d = distance(a, b)
    s = 10.5
    assert d.scale == s
    assert d.rms == pytest.approx((np.sqrt(4 / 4) + np.sqrt((4 + 16) / 4)) / 2 / s)
    assert d.max == pytest.approx((2 + 4) / 2 / s)
    assert d.floor_rms == pytest.approx(np.sqrt(16 / 4) / s), "the replays differ more than the emulations"
    assert d.floor_max == pytest.approx(4 / s)
    assert d.means_rms == pytest.approx(np.sqrt((4 + 4) / 4) / s)
    assert pair(np.zeros(3), np.zeros(3), 0.0) == (0.0, 0.0)
    assert pair(np.zeros(3), np.ones(3), 0.0) == (float("inf"), float("inf"))


@pytest.mark.parametrize(
    "a,b",
    [
        ([[1.0]], [[1.0], [2.0]]),
        ([[1.0], [2]], [[1.0, 2], [1, 2]]),
        ([[1.0], [np.nan]], [[1.0], [2]]),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b):
    with pytest.raises(ValueError):
        distance(a, b)


@pytest.mark.parametrize("noise", NOISES)
def test_same_distribution_is_within_its_floor(noise):
    """A false alarm is a distance beyond 1.25 times the floor though both kinds are alike."""
    rng = np.random.default_rng(7)
    trials = 2000
    over_rms = over_max = 0
    across, floor = [], []
    for _ in range(trials):
        d = distance(runs(rng, noise), runs(rng, noise))
        over_rms += d.rms > FLOOR_FACTOR * d.floor_rms
        over_max += d.max > FLOOR_FACTOR * d.floor_max
        across.append(d.rms)
        floor.append(d.floor_rms)
    assert np.mean(across) <= np.mean(floor), "the expected distance is no larger than the expected floor"
    limit = 0.12 if "run to run" in noise else 0.02
    assert over_rms / trials <= limit, over_rms
    assert over_max / trials <= limit, over_max


@pytest.mark.parametrize("noise,shift", [("normal 3 %", 0.2), ("normal 30 %", 0.6), ("run to run 20 %", 0.8)])
def test_a_shift_is_found(noise, shift):
    rng = np.random.default_rng(8)
    found = sum(judge(distance(runs(rng, noise), runs(rng, noise, shift))) == "differs" for _ in range(500))
    assert found >= 475, found


def test_a_change_of_shape_with_the_same_mean_is_found():
    rng = np.random.default_rng(9)
    flat = SHAPE.mean() * NOISES["normal 3 %"](rng, (RUNS, INTERVALS))
    assert judge(distance(runs(rng, "normal 3 %"), flat)) == "differs"


def test_chance_by_hand():
    # 0, 1, 8 and 10 make pairs in three ways; distances over floors are 8.5 / 2, 5 / 9 and 5 / 10.
    for pairs, share in (((0, 1), (8, 10)), 1), (((0, 8), (1, 10)), 2), (((10, 0), (1, 8)), 3):
        one, other = ([[float(x)] for x in group] for group in pairs)
        assert chance(one, other) == pytest.approx(share / 3)
    assert chance([[5.0, 5.0]] * 2, [[5.0, 5.0]] * 2) == 1.0
    assert chance([[5.0]] * 3, [[6.0]] * 3) == pytest.approx(2 / 20), "without any noise"
    assert chance(np.zeros((4, 3)), np.ones((4, 3))) == pytest.approx(2 / 70)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("each", [4, 10])
def test_chance_is_what_it_says(noise, each):
    """Of runs that are alike no more than one in twenty has a chance below 5 %."""
    rng = np.random.default_rng(11)
    trials = 600 if each == 4 else 120

    def group():
        return SHAPE * NOISES[noise](rng, (each, INTERVALS))

    found = np.array([chance(group(), group()) for _ in range(trials)])
    # Three standard deviations of a share of 5 %.
    assert np.mean(found <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)
    assert 0.4 < np.mean(found) < 0.65, "and it is spread evenly"
    one, other = group(), group()
    assert chance(one, other) == chance(one, other) == pytest.approx(chance(3 * one, 3 * other))


def test_two_runs_of_each_kind_call_nothing_different():
    rng = np.random.default_rng(12)
    for each, verdict in ((2, "undecided"), (3, "not faithful"), (5, "not faithful")):
        a, b = responses(rng, k=each), responses(rng, k=each, request_size=(200.0, 1000.0))
        findings = compare(a, b)
        found, told = by_name(findings)["request_size"], overall(findings)
        assert found.over_time == "differs" and found.verdict == verdict
        assert found.ratio.value == pytest.approx(2, rel=0.02) and found.ratio.low < 2 < found.ratio.high
        assert told["faithful"] is (None if each == 2 else False)
        assert ("`until_decided`" in told["text"]) == (each == 2), told
        # On a busy host more runs are no answer.
        busy = overall(findings, busy=True)["text"]
        assert "--until-decided" not in busy and ("while others used the host" in busy) == (each == 2)
        assert (found.runs is None) == (each > 2) and (each > 2 or found.runs >= 4)


def test_noise_over_whole_runs_leaves_a_parameter_open():
    rng = np.random.default_rng(13)
    found = by_name(compare(noisy(rng, 0.035), noisy(rng, 0.035)))["latency_ms"]
    assert found.verdict == "undecided" and "runs of each kind would" in found.reason
    assert found.runs is not None and 3 < found.runs <= MOST_RUNS
    # Nobody is advised to make more runs than `until_decided` makes.
    wild = compare(noisy(rng, 0.5), noisy(rng, 0.5))
    assert by_name(wild)["latency_ms"].reason == f"{MOST_RUNS} runs of each kind would not decide"
    assert by_name(wild)["latency_ms"].runs is None and "--until-decided" not in overall(wild)["text"]
    # With many more it is decided.
    more = by_name(compare(noisy(rng, 0.04, 30), noisy(rng, 0.04, 30)))["latency_ms"]
    assert more.verdict == "faithful", more


def noisy(rng, spread, k=RUNS):
    """Responses whose latency is another one in each run."""
    out = responses(rng, k=k)
    for r in out:
        r.values["latency_ms"] = r.values["latency_ms"] * np.exp(spread * rng.standard_normal())
    return out


def test_targets_and_floor_are_judged_apart():
    rng = np.random.default_rng(1)
    assert judge(distance(runs(rng, "normal 3 %"), runs(rng, "normal 3 %"))) == "within target"
    assert judge(distance(runs(rng, "normal 30 %"), runs(rng, "normal 30 %"))) == "within noise"


def responses(rng, n=INTERVALS, k=RUNS, **change):
    """Responses of a machine on which everything can be told, but for the changes."""
    out = []
    for _ in range(k):
        values = {m.name: 100 * (1 + 0.02 * rng.standard_normal(n)) for m in PARAMETERS}
        counts = {m.name: np.full(n, 1000.0) for m in PARAMETERS}
        values["memory"] = np.linspace(1, 2, n) * 1e9
        for name, (value, count) in change.items():
            values[name], counts[name] = np.full(n, value), np.full(n, count)
        out.append(Response(np.arange(n + 1.0), values, counts))
    return out


def by_name(findings):
    return {f.parameter: f for f in findings}


def test_all_usable_and_alike():
    rng = np.random.default_rng(2)
    findings = compare(responses(rng), responses(rng))
    assert {f.over_time for f in findings} == {"within target"}
    assert {f.verdict for f in findings} == {"faithful"}
    verdict = overall(findings)
    assert verdict["faithful"] is True and verdict["usable"] == 11


def test_what_cannot_be_told_is_listed_with_its_reason():
    rng = np.random.default_rng(3)
    change = {
        "cpu": (0.5, 4.0),
        "processes_blocked": (0.0, 0.0),
        "queue_length": (np.nan, np.nan),
        "memory": (5e9, 50.0),
        "writes_per_s": (1.0, 2.0),
    }
    found = by_name(compare(responses(rng, **change), responses(rng, **change)))
    assert "4 busy clock ticks per interval, fewer than 10" in found["cpu"].reason
    assert "zero throughout" in found["processes_blocked"].reason
    assert "cannot be read" in found["queue_length"].reason
    assert "does not move it" in found["memory"].reason
    assert "2 writes per interval" in found["writes_per_s"].reason
    assert all(found[name].distance is None for name in change)
    verdict = overall(list(found.values()))
    assert verdict["faithful"] is True and verdict["usable"] == 6
    assert overall([f for f in found.values() if f.parameter != "latency_ms"])["faithful"] is None


def test_a_load_that_only_the_emulation_makes_is_a_difference():
    rng = np.random.default_rng(4)
    found = by_name(
        compare(responses(rng, writes_per_s=(0.0, 0.0)), responses(rng, writes_per_s=(50.0, 500.0)))
    )
    assert found["writes_per_s"].verdict == "not faithful" and found["writes_per_s"].ratio is None
    verdict = overall(list(found.values()))
    assert verdict["faithful"] is False and "writes" in verdict["text"]


def test_what_only_some_runs_have_is_undecided():
    """There is no ratio of it, and so it was called faithful."""
    rng = np.random.default_rng(4)
    both = []
    for _ in range(2):
        some = responses(rng)
        some[0].values["reads_per_s"][:] = 0
        both.append(some)
    found = by_name(compare(*both))["reads_per_s"]
    assert (found.verdict, found.ratio) == ("undecided", None) and "zero in some runs" in found.reason


def test_intervals_with_too_few_requests_are_left_out_of_ratios():
    rng = np.random.default_rng(5)
    a, b = responses(rng), responses(rng)
    for r in a:
        r.counts["latency_ms"][:5] = 4
        r.values["latency_ms"][:5] = 1e9
    b[0].values["reads_per_s"][3] = np.nan
    found = by_name(compare(a, b))
    assert found["latency_ms"].over_time == "within target" and found["latency_ms"].intervals == INTERVALS - 5
    assert "5 of 24 intervals left out" in found["latency_ms"].note
    assert found["reads_per_s"].intervals == INTERVALS - 1
    for r in a:
        r.counts["latency_ms"][:16] = 4
    reason = by_name(compare(a, b))["latency_ms"].reason
    assert "only 8 of 24 intervals" in reason


def test_loud_noise_over_time_says_nothing():
    """It passed, because runs of one kind differed as much; now whole runs decide."""
    rng = np.random.default_rng(6)
    a, b = responses(rng), responses(rng)
    for r in (*a, *b):
        r.values["latency_ms"] = 100 * np.exp(1.5 * rng.standard_normal(INTERVALS))
    found = by_name(compare(a, b))
    assert found["latency_ms"].over_time == "within noise" and found["latency_ms"].verdict == "undecided"
    assert overall(list(found.values()))["faithful"] is None
