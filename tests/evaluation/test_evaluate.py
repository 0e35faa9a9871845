"""Evaluations with real runs: here both kinds are uniform loads, so that what differs is known."""

import json

import pytest

from loadstone import Error, _core
from loadstone.bundle import Bundle, Series
from loadstone.errors import Kept
from loadstone.evaluation import evaluation as module
from loadstone.evaluation.budget import OVERHEAD, fit_budget
from loadstone.evaluation.evaluation import Settings, aligned, evaluate
from loadstone.evaluation.lowering import Facts
from loadstone.observe import PARAMETERS
from loadstone.plan import RunOptions

MB = 1 << 20
SIZE = 32 * MB


class Uniform:
    """Replays uniform reads of 4 KiB, and "emulates" them with reads of another size."""

    def __init__(self, path, model_bytes=4096, seconds=3600.0, requests=1_000_000):
        self.path, self.model_bytes = path, model_bytes
        self.seconds, self.requests = seconds, requests
        self.asked = []
        self.window_seconds = 3600.0

    def facts(self):
        return Facts(self.requests, self.seconds)

    def fit(self, out):
        out.write_bytes(b"a model")

    def window(self, model):
        return self.window_seconds

    def content(self, model, seed):
        return None

    def plan(self, role, model, pace, seed):
        assert model.read_bytes() == b"a model"
        self.asked.append((role, pace, seed))
        paced = pace != "max"
        size = self.model_bytes if role == "model" else 4096
        rate = 2000.0
        return {
            "version": 1,
            "seed": seed,
            "interval_ns": 100_000_000,
            "targets": [
                {
                    "id": "t",
                    "kind": "device" if str(self.path).startswith("/dev/") else "file",
                    "path": str(self.path),
                    "allow_destroy": str(self.path).startswith("/dev/"),
                    "size": SIZE,
                    "prepare": "fill",
                    "direct": True,
                }
            ],
            "workers": [
                {
                    "source": {
                        "kind": "uniform",
                        "reads": 1.0,
                        "size": size,
                        "rate": rate if paced else 0.0,
                    },
                    "pace": {"kind": "open", "speed": float(pace)} if paced else {"kind": "closed"},
                    "depth": 4,
                    "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": SIZE}]},
                }
            ],
            "steps": [],
        }


@pytest.fixture
def disk(tmp_path):
    """A path that does not exist yet."""
    return tmp_path / "target"


def settings(disk, tmp_path, **change):
    trace = tmp_path / "trace"
    trace.write_text("only its name is used here")
    asked = {name: change.pop(name) for name in ("pace", "seed", "duration", "interval") if name in change}
    options = change.pop("options", {})
    return Settings(trace, str(disk), options=RunOptions(**{"pace": 1.0, **asked, **options}), **change)


@pytest.mark.slow
@pytest.mark.root
def test_paced_turns_with_the_same_load_and_with_another(alone, tmp_path):
    told, order = [], []
    found = evaluate(
        settings(alone, tmp_path, repeat=2, seed=5, duration=0.6),
        tmp_path / "same",
        lowering=Uniform(alone),
        on_schedule=told.append,
        on_run=lambda run: order.append((run.name, run.plan["seed"], run.about["reset"])),
    )
    assert order == [
        ("replay-1", 0, "caches dropped"),
        ("model-1", 5, "filled, caches dropped"),
        ("replay-2", 0, "filled, caches dropped"),
        ("model-2", _core.derive_seed(5, "repeat", 1), "filled, caches dropped"),
    ], "what finding out the time has filled serves the first run"
    assert told[0].repeat == 2 and 4 * told[0].fill_seconds < told[0].total
    assert told[0].fill_seconds > 0
    summary = json.loads((tmp_path / "same" / "summary.json").read_text())
    assert summary["alignment"] == "time" and summary["intervals"] == 20 and summary["errors"] == 0
    rows = {row["parameter"]: row for row in found.distances}
    assert list(rows) == [m.name for m in PARAMETERS]
    assert rows["request_size"]["verdict"] == "faithful", rows["request_size"]
    assert rows["request_size"]["scale"] == pytest.approx(4096, rel=0.01)
    assert rows["writes_per_s"]["reason"] or rows["writes_per_s"]["verdict"] != "unusable"
    for row in rows.values():
        assert (row["rms"] is None) == (not row["usable"])
        assert (row["reason"] is None) == (row["verdict"] in ("faithful", "not faithful"))
    series = Series.read(tmp_path / "same")
    assert [r["role"] for r in series.runs] == ["replay", "model"] * 2
    assert (tmp_path / "same" / "model.mdh").read_bytes() == b"a model"
    assert all(b.summary["requests"] > 0 for b in series.bundles())

    other = evaluate(
        settings(alone, tmp_path, repeat=3, duration=0.6, reset="once"),
        tmp_path / "other",
        lowering=Uniform(alone, model_bytes=16384),
    )
    rows = {row["parameter"]: row for row in other.distances}
    assert rows["request_size"]["verdict"] == "not faithful"
    assert rows["request_size"]["rms"] == pytest.approx(3, rel=0.05)
    resets = [r["reset"] for r in other.series.runs]
    assert resets == 6 * ["caches dropped"], "filled once, before the time was told"
    assert other.summary["schedule"]["fill_seconds"] == 0
    assert other.summary["faithful"] is False and "request size" in other.summary["verdict"]


@pytest.mark.root
@pytest.mark.alone
def test_full_speed_is_aligned_by_progress(alone, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PILOT", 0.5)
    found = evaluate(
        settings(alone, tmp_path, pace="max", repeat=2, duration=0.8),
        tmp_path / "out",
        lowering=Uniform(alone, requests=10**12),
    )
    assert found.summary["alignment"] == "progress"
    assert found.summary["intervals"] == 20
    runs = [Bundle.read(b.path) for b in found.series.bundles()]
    assert len({b.summary["requests"] for b in runs}) == 1, "every run issues the same number"
    assert all("filled" in r["reset"] for r in found.series.runs), "the pilot has written to the target"
    rows = {row["parameter"]: row for row in found.distances}
    assert rows["request_size"]["verdict"] == "faithful", rows["request_size"]


def test_a_dry_run_touches_nothing(disk, tmp_path):
    runs = evaluate(settings(disk, tmp_path), tmp_path / "out", lowering=Uniform(disk), dry_run=True)
    assert [r.name for r in runs] == ["replay-1", "model-1", "replay-2", "model-2", "replay-3", "model-3"]
    assert [r.plan["targets"][0]["prepare"] for r in runs] == ["fill"] * 6
    assert all(r.plan["steps"][-2] == {"step": "drop_caches"} for r in runs)
    assert not disk.exists() and not (tmp_path / "out").exists()


def test_what_cannot_be_evaluated_is_refused_at_once(disk, tmp_path):
    for change, text in (
        ({"repeat": 1}, "no noise floor"),
        ({"intervals": 5}, "at least 20"),
        ({"pace": "max", "interval": 1.0}, "leave it out"),
        ({"interval": 1.0, "duration": 0.6}, r"gives 0 intervals in 0\.6 s"),
    ):
        with pytest.raises(Error, match=text):
            evaluate(settings(disk, tmp_path, **change), tmp_path / "out", lowering=Uniform(disk))
    missing = settings(disk, tmp_path)
    missing.trace.unlink()
    with pytest.raises(Error, match="there is no such trace"):
        evaluate(missing, tmp_path / "out", lowering=Uniform(disk))
    assert not disk.exists() and not list(tmp_path.glob(".out*"))


def test_a_foreign_target_is_not_written(disk, tmp_path):
    disk.write_bytes(b"precious" * 1000)
    with pytest.raises(Error, match="allow_destroy"):
        evaluate(settings(disk, tmp_path, repeat=2), tmp_path / "out", lowering=Uniform(disk))
    assert disk.read_bytes() == b"precious" * 1000
    assert not (tmp_path / "out").exists()


TRACE = Facts(requests=100_000, span=3000.0)


def test_without_a_budget_nothing_is_changed():
    s = fit_budget(TRACE, 3, None, None, 0)
    assert (s.repeat, s.pace, s.seconds, s.chosen) == (3, 1.0, None, ())
    assert s.total == pytest.approx(6 * (3000 + OVERHEAD))
    assert fit_budget(TRACE, 3, 10.0, None, 2.0).total == pytest.approx(6 * 303)


@pytest.mark.parametrize("budget", [20, 60, 600, 5000])
@pytest.mark.parametrize("pace", [None, 1.0, 100.0, 1000.0])
@pytest.mark.parametrize("repeat", [2, 3, 7])
@pytest.mark.parametrize(("fill", "spent"), [(0.0, 0.0), (1.5, 2.0)])
def test_a_budget_is_kept_and_what_was_chosen_is_told(budget, pace, repeat, fill, spent):
    s = fit_budget(TRACE, repeat, pace, budget, fill, spent=spent)
    assert s.total + spent <= budget * 1.0001
    assert 2 <= s.repeat <= repeat
    changed = s.repeat != repeat or s.seconds is not None or s.pace != (pace or 1.0)
    assert changed == bool(s.chosen)
    if pace is not None:
        assert s.pace == pace, "a pace that was asked for is kept"
    elif budget >= (600 if fill else 60):
        assert s.repeat == repeat and s.seconds is None, "the pace is what gives way"


def test_budgets_too_small_for_any_result():
    with pytest.raises(Error, match="the least that says anything takes 12 s"):
        fit_budget(TRACE, 3, 1.0, 5, 0)
    with pytest.raises(Error, match=r"`budget` 20s .* takes 24 s"):
        fit_budget(TRACE, 3, 1.0, 20, 2.0, spent=4.0)
    with pytest.raises(Error, match="`pace` max"):
        fit_budget(Facts(10, 0.0), 3, None, None, 0)


@pytest.mark.parametrize("budget", [15, 60, 400, 10_000])
def test_full_speed_after_its_pilot(budget):
    s = fit_budget(TRACE, 4, "max", budget, 0).limited(5).after_pilot(TRACE, 10_000, 5.0, budget)
    assert s.total <= budget * 1.0001
    if budget == 10_000:
        assert (s.repeat, s.requests, s.chosen) == (4, 0, ()) and s.run_seconds == pytest.approx(50)
    if budget == 60:
        assert s.repeat == 2 and s.requests == 28_000 and "first 28,000 of 100,000" in s.chosen[1]
    with pytest.raises(Error, match="too small"):
        fit_budget(TRACE, 4, "max", 5, 0).after_pilot(TRACE, 10_000, 5.0, 5)


@pytest.mark.parametrize(
    ("seconds", "window", "expected"),
    [
        (27.8, 1.0, (27, 27.0)),
        (15.001, 0.00125, (20, 15.0)),
        (27.99, 1.0, (28, 28.0)),
        (10.0, 1.0, (20, 10.0)),
    ],
)
def test_intervals_are_whole_windows_where_they_can_be(seconds, window, expected):
    parts, covered = aligned(20, seconds, window)
    assert (parts, pytest.approx(covered)) == expected


@pytest.mark.slow
def test_an_error_in_a_later_run_keeps_those_before_it(disk, tmp_path):
    def on_run(run):
        if run.name == "model-2":
            raise Error("the rack caught fire")

    settings = Settings(
        tmp_path / "t.spc",
        str(disk),
        repeat=2,
        options=RunOptions(pace="max", duration=0.5),
    )
    (tmp_path / "t.spc").write_text("0,0,512,r,0.0\n")
    with pytest.raises(Kept, match="the rack caught fire; 3 runs are kept in") as kept:
        evaluate(settings, tmp_path / "e", lowering=Uniform(disk), on_run=on_run)
    series = Series.read(tmp_path / "e")
    assert [run["name"] for run in series.runs] == ["replay-1", "model-1", "replay-2"]
    assert all(bundle.summary["requests"] > 0 for bundle in series.bundles())
    assert series.summary["failure"] == "the rack caught fire" and series.summary["partial"]
    assert "nothing can be said" in series.summary["verdict"] and kept.value.bundle == tmp_path / "e"
    assert (tmp_path / "e/model.mdh").read_bytes() == b"a model"
