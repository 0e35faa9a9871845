"""The command on a real trace, its real model and a real file."""

import json
import os
import random

import pytest

from loadstone import _core
from loadstone.bundle import Series
from loadstone.model import Model, fit
from loadstone.observe import PARAMETERS


@pytest.fixture
def trace(root):
    return root / "examples" / "loop0.parquet"


def test_help_has_an_example(loadstone):
    text = loadstone("evaluate", "--help").stdout
    assert "Example:" in text and "loadstone evaluate trace.spc" in text and "--budget" in text


@pytest.mark.slow
def test_replay_and_model_in_turns_at_full_speed(loadstone, trace, tmp_path):
    out = tmp_path / "out"
    done = loadstone(
        "evaluate", trace, "--on", tmp_path / "target", "--size", "64m", "--offsets", "wrap", "--depth", 4,
        "--pace", "max", "--duration", "0.8s", "--repeat", 2, "--out", out, "--json",
    )  # fmt: skip
    told = done.stderr.splitlines()
    assert "4 runs of about" in told[0] and "at full speed" in told[0]
    assert [line.split(":")[0] for line in told[1:5]] == ["replay-1", "model-1", "replay-2", "model-2"]
    answer = json.loads(done.stdout)
    assert [row["parameter"] for row in answer["distances"]] == [m.name for m in PARAMETERS]
    assert answer["errors"] == 0 and not answer["partial"] and answer["alignment"] == "progress"
    series = Series.read(out)
    assert series.summary == answer
    bundles = series.bundles()
    assert len({b.summary["requests"] for b in bundles}) == 1
    assert [b.plan["workers"][0]["source"]["kind"] for b in bundles] == ["trace", "model"] * 2
    # At full speed all that a run asks for is drawn before it.
    drawn = [b.summary.get("drawn_first") for b in bundles]
    assert drawn == [None, answer["schedule"]["requests"]] * 2
    assert answer["content"]["verdict"]["faithful"]
    assert [b.plan["seed"] for b in bundles] == [0, 1, 0, _core.derive_seed(1, "repeat", 1)]
    assert Model.load(out / "model.mdh").requests > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "target"]


@pytest.mark.slow
def test_a_model_is_drawn_from_meanwhile_where_that_is_asked_for(loadstone, trace, tmp_path):
    out, model = tmp_path / "out", tmp_path / "m.mdh"
    fit(trace).save(model)
    loadstone(
        "evaluate", trace, "--on", tmp_path / "target", "--size", "64m", "--offsets", "wrap", "--pace", "max",
        "--duration", "0.5s", "--repeat", 2, "--model", model, "--draw-meanwhile", "--out", out,
    )  # fmt: skip
    series = Series.read(out)
    bundles = series.bundles()
    assert series.summary["errors"] == 0 and not any("drawn_first" in b.summary for b in bundles)
    assert [b.plan["workers"][0]["source"].get("draw") for b in bundles] == [None, "meanwhile"] * 2
    # Each was of a seed of its own.
    moved = [b.summary["bytes"] for b in bundles]
    assert moved[0] == moved[2] and moved[1] != moved[3]


@pytest.mark.slow
def test_a_budget_says_what_it_chose_and_a_null_target_has_no_response(loadstone, trace, tmp_path):
    model = tmp_path / "m.mdh"
    fit(trace).save(model)
    done = loadstone(
        "evaluate", trace, "--on", "null:", "--model", model, "--repeat", 2, "--budget", "13s",
    )  # fmt: skip
    assert "paced x" in done.stderr and "instead of as recorded" in done.stderr
    # Nothing of the host is blamed for what a null target does not do.
    assert done.stdout.splitlines()[-1] == "device: a null target has no response to compare"
    assert "✓ cache misses: LRU miss ratios differ by" in done.stdout and "(limits 0.02, 0.05)" in done.stdout
    assert "counters" not in done.stdout and "undecided" not in done.stdout
    refused = loadstone("evaluate", trace, "--on", "null:", "--model", model, "--until-decided", status=2)
    assert "--until-decided: a null target has no response" in refused.stderr


@pytest.mark.slow
def test_all_runs_write_what_was_asked_for(loadstone, trace, tmp_path):
    out = tmp_path / "out"
    words = ("--on", tmp_path / "target", "--size", "32m", "--offsets", "wrap", "--pace", "max")
    asked = ("--dedupe", "2", "--compress", "1.5", "--duration", "0.5s", "--repeat", 2, "--out", out)
    done = loadstone("evaluate", trace, *words, *asked)
    assert "content asked: dedupe 2, compress 1.5, in blocks of 4.0 KiB" in done.stdout
    assert "content found after runs of the model: dedupe " in done.stdout
    series = Series.read(out)
    written = series.summary["written"]
    assert written["asked"] == {"dedupe": 2.0, "compress": 1.5, "unit": 4096}
    assert len(written["replay"]) == len(written["model"]) == 2
    for found in (*written["replay"], *written["model"]):
        assert found["dedupe"] == pytest.approx(2.0, rel=0.03)
        assert found["compress"]["zstd"] == pytest.approx(1.5, rel=0.02)
    assert all(bundle.plan["content"] == written["asked"] for bundle in series.bundles())
    refused = loadstone("evaluate", trace, *words, "--dedupe", "2", "--reset", "once", status=2)
    assert "--reset once: blocks of one run are no duplicates of another's" in refused.stderr


@pytest.mark.slow
def test_all_runs_write_chunks_of_a_dataset(loadstone, trace, tmp_path):
    (tmp_path / "tree").mkdir()
    for number in range(4):
        (tmp_path / f"tree/{number}").write_bytes(random.Random(number % 2).randbytes(200_000))
    series, out = tmp_path / "x.fst", tmp_path / "out"
    loadstone("dataset", "scan", tmp_path / "tree", "-o", series, "--chunking", "fixed:4k")
    words = ("--on", tmp_path / "target", "--size", "8m", "--offsets", "wrap", "--pace", "max")
    words += ("--content", f"dataset:{series}")
    done = loadstone("evaluate", trace, *words, "--duration", "0.5s", "--repeat", 2, "--out", out)
    assert f"content asked: chunks of {series}, " in done.stdout
    written = Series.read(out).summary["written"]
    assert written["asked"]["dataset"] == str(series) and written["asked"]["dedupe"] == pytest.approx(2.0)
    # A reader that cuts by content finds some of what blocks of 4 KiB share, and of chance nothing.
    for found in (*written["replay"], *written["model"]):
        assert found["dedupe"] > 1.08 and found["compress_expected"] == pytest.approx(1.0, rel=0.01)
    refused = loadstone("evaluate", trace, *words, "--reset", "once", status=2)
    assert "--reset once: runs write the same chunks" in refused.stderr


def test_a_dry_run_prints_the_plans(loadstone, trace, tmp_path):
    done = loadstone(
        "evaluate", trace, "--on", tmp_path / "t", "--size", "64m", "--offsets", "wrap", "--dry-run"
    )
    runs = json.loads(done.stdout)["runs"]
    assert [r["name"] for r in runs] == [f"{kind}-{i}" for i in (1, 2, 3) for kind in ("replay", "model")]
    assert runs[0]["plan"]["targets"][0]["prepare"] == "fill"
    assert os.listdir(tmp_path) == []


def test_a_hole_is_found_before_anything_is_run(tmp_path, loadstone):
    hole = tmp_path / "hole"
    hole.touch()
    os.truncate(hole, 8 << 20)
    reads = tmp_path / "reads.spc"
    reads.write_text("".join(f"0,{i * 8},4096,R,{i / 100}\n" for i in range(200)))
    words = ("evaluate", reads, "--on", hole, "--size", "8m", "--dry-run")
    assert "replay: " in (told := loadstone(*words, status=1).stderr) and "hole at byte 0" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    "words,status,text",
    [
        (("nothing.spc", "--on", "null:"), 1, "nothing.spc"),
        (("TRACE", "--on", "null:", "--repeat", 1), 2, "no noise floor"),
        (("TRACE", "--on", "null:", "--pace", "fast"), 2, "recorded, max"),
        (("TRACE", "--on", "null:", "--budget", "1s"), 1, "too small"),
        (("TRACE", "--on", "null:", "--probe", "x"), 2, "NAME=COMMAND"),
        (("TRACE",), 1, "--on"),
        (("TRACE", "--on", "{tmp}/kept", "--offsets", "wrap"), 1, "--allow-destroy"),
        (("TRACE", "--on", "null:", "--out", "{tmp}/kept"), 1, "kept: exists"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_left(loadstone, trace, tmp_path, words, status, text):
    kept = tmp_path / "kept"
    kept.write_bytes(b"precious" * 8192)
    given = [str(w).replace("TRACE", str(trace)).replace("{tmp}", str(tmp_path)) for w in words]
    done = loadstone("evaluate", *given, status=status)
    assert text in done.stderr and "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["kept"] and kept.read_bytes() == b"precious" * 8192


@pytest.mark.slow
def test_the_base_of_a_blktrace_capture_is_a_trace(loadstone, tmp_path):
    rows = [f"0,{8 * i},4096,{'rw'[i % 2]},{i / 1000:.6f}" for i in range(500)]
    (tmp_path / "t.spc").write_text("\n".join(rows) + "\n")
    loadstone("trace", "convert", tmp_path / "t.spc", "--to", "blktrace", "-o", tmp_path / "x.blktrace.0")
    words = ("--on", "null:", "--pace", "max", "--repeat", 2, "--dry-run")
    found = json.loads(loadstone("evaluate", tmp_path / "x", *words).stdout)
    assert [run["name"] for run in found["runs"]] == ["replay-1", "model-1", "replay-2", "model-2"]
    assert str(tmp_path / "x") in json.dumps(found["runs"][0]["plan"]["artefacts"])
    (tmp_path / "x.blktrace.0").unlink()
    assert "no such trace" in loadstone("evaluate", tmp_path / "x", *words, status=1).stderr


def test_what_is_not_filled_is_not_called_filled(loadstone, tmp_path):
    """A frightened user would take a device with data for one that was overwritten."""
    target, trace = tmp_path / "t", tmp_path / "ro.spc"
    target.write_bytes(random.Random(1).randbytes(1 << 20))
    before = target.read_bytes()
    trace.write_text("".join(f"0,{8 * i},4096,r,0.{i}\n" for i in range(1, 9)))
    out = tmp_path / "ev"
    done = loadstone("evaluate", trace, "--on", target, "--repeat", 2, "--out", out, status=None)
    assert "filled," not in done.stdout + done.stderr
    assert {run["reset"] for run in Series.read(out).runs} == {"caches dropped"}
    assert target.read_bytes() == before


@pytest.mark.slow
def test_runs_go_on_until_all_is_decided(loadstone, trace, tmp_path, monkeypatch):
    """Requests of both kinds are the same, and so is what the host does for them, to a few percent."""
    out = tmp_path / "out"
    words = ("--on", tmp_path / "t", "--size", "64m", "--offsets", "wrap", "--pace", "x40", "--repeat", 2)
    done = loadstone("evaluate", trace, *words, "--until-decided", "--duration", "0.4s", "--out", out)
    runs = Series.read(out).runs
    assert [run["role"] for run in runs] == ["replay", "model"] * (len(runs) // 2)
    summary = Series.read(out).summary
    # It stops where nothing is open that more runs would decide, or after thirty of each kind.
    open_ = [row for row in summary["distances"] if row["verdict"] == "undecided" and row["runs"]]
    assert 4 <= len(runs) <= 60 and (not open_ or len(runs) == 60)
    assert done.stdout.splitlines()[0].split()[:3] == ["parameter", "replay", "mean"]
    assert "content: faithful in cache misses" in done.stdout and "device: " in done.stdout


def test_runs_until_all_is_decided_keep_to_no_budget(loadstone, trace):
    refused = loadstone("evaluate", trace, "--on", "null:", "--until-decided", "--budget", "1m", status=2)
    assert "leave out --budget" in refused.stderr


@pytest.mark.slow
def test_a_bundle_is_not_replaced_by_an_evaluation_of_its_model(loadstone, trace, tmp_path):
    """It was refused after the first run, which took the place of all that was there."""
    out = tmp_path / "out"
    words = ("evaluate", trace, "--on", "null:", "--duration", "0.3s", "--repeat", 2, "--out", out)
    loadstone(*words)
    before = sorted(os.listdir(out))
    refused = loadstone(*words, "--model", out / "model.mdh", "--force", status=1)
    assert "which the run is made from" in refused.stderr
    assert sorted(os.listdir(out)) == before and os.listdir(tmp_path) == ["out"]
