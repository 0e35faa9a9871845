"""Traces whose reading takes options, replayed and evaluated: each option, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadstone import Error, trace
from loadstone.bundle import Bundle, Series
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_replay, plan_uniform

SPC = [f"0,{8 * i},4096,{'R' if i % 2 else 'W'},{i / 100}" for i in range(400)]
SLOW = [f"0,{8 * i},4096,R,{i}" for i in range(30)]
# Numbers alone: MQSim's and DiskSim's are alike but for their polarity.
MQSIM = [f"{1000 * i} 0 {8 * i} 8 {i % 2}" for i in range(400)]
CSV = ["when;kind;sector;bytes"] + [f"{i};{'rs'[i % 2]};{8 * i};512" for i in range(400)]


def damaged(lines: list[str]) -> list[str]:
    """Two lines of which nothing can be made."""
    return [*lines[:100], "0,8,4096,R", *lines[100:200], "0,8,x,R,0.2", *lines[200:]]


def late(lines: list[str], by: int) -> list[str]:
    """One line so many lines too late."""
    return [*lines[1 : by + 1], lines[0], *lines[by + 1 :]]


# What is in the trace, which options it needs, and how a plan has them.
CASES = {
    "format": (MQSIM, ["--format", "mqsim"], {"format": "mqsim"}),
    "columns": (
        CSV,
        [
            *("--columns", "time=when:ms,op=kind,offset=sector:sector,size=bytes:byte"),
            *("--read", "r", "--write", "s", "--separator", ";", "--origin", "start"),
            *("--comment", "#", "--skip", "1"),
        ],
        None,
    ),
    "every": (
        [f"{8 * i},8" for i in range(400)],
        ["--columns", "offset=0:sector,size=1:sector", "--every", "read", "--rate", "1000"],
        None,
    ),
    "ops": (
        [f"{i},{8 * i},{'abcde'[i % 5]},8" for i in range(400)],
        [
            *("--columns", "time=0:ms,offset=1:sector,op=2,size=3:sector", "--read", "a", "--write", "b"),
            *("--flush", "c", "--discard", "d", "--ignore", "e"),
        ],
        None,
    ),
    "sort": (late(SPC, 399), ["--sort", "--reorder", "1ms"], {"sort": True, "reorder_ns": 1_000_000}),
    "reorder": (late(SLOW, 9), ["--reorder", "9s"], {"reorder_ns": 9_000_000_000}),
    "spread-ties": (
        [f"{i // 20},{8 * i},8,0,1" for i in range(400)],
        ["--format", "tencent", "--spread-ties"],
        {"format": "tencent", "spread_ties": True},
    ),
    "max-damaged": (damaged(SPC), ["--max-damaged", "2"], {"max_damaged": 2}),
    "salvage": (damaged(SPC), ["--salvage"], {"salvage": True}),
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    lines, options, reading = CASES[request.param]
    path = tmp_path / f"{request.param}.trace"
    path.write_text("\n".join(lines) + "\n")
    return path, options, reading


@pytest.mark.slow
def test_replay_reads_a_trace_as_convert_does(case, loadstone, tmp_path):
    path, options, reading = case
    converted, out = tmp_path / "converted.parquet", tmp_path / "out"
    loadstone("trace", "convert", path, "-o", converted, *options)
    plain = loadstone("replay", path, "--on", "null:", "--pace", "max", status=None)
    loadstone("replay", path, "--on", "null:", "--pace", "max", "--out", out, *options)
    bundle = Bundle.read(out)
    requests = trace.summary(converted)["requests"]
    assert bundle.summary["requests"] == requests > 0 and not bundle.partial
    artefact = bundle.plan["artefacts"][0]
    assert artefact["path"] == str(path) and artefact["digest"].startswith("sha256:")
    assert reading is None or artefact["reading"] == reading
    # What the plan holds is enough to do it again, and to see that the file is another one.
    assert execute(bundle.plan)["summary"]["requests"] == requests
    path.write_text(path.read_text() + "\n")
    with pytest.raises(Error, match="is not the file this plan was made for"):
        execute(bundle.plan)
    # Without its options it cannot be read at all.
    assert plain.returncode == 1


@pytest.mark.slow
def test_evaluate_reads_a_trace_as_convert_does(case, loadstone, tmp_path):
    path, options, reading = case
    done = loadstone(
        "evaluate", path, "--on", "null:", "--pace", "max", "--repeat", 2, "--dry-run", "--json", *options,
    )  # fmt: skip
    runs = json.loads(done.stdout)["runs"]
    readings = [run["plan"]["artefacts"][0].get("reading") for run in runs]
    assert readings[0] is not None and readings == [readings[0], None] * 2
    assert reading is None or readings[0] == reading


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--max-damaged", 2), ("--salvage",)])
def test_what_is_passed_over_is_counted(options, loadstone, tmp_path):
    path = tmp_path / "two.spc"
    path.write_text("\n".join(damaged([f"0,{8 * i},4096,R,{i / 200}" for i in range(400)])) + "\n")
    told = f"passed over 2 damaged records of the trace, the first: {path}, line 101: "
    done = loadstone("replay", path, "--on", "null:", "--pace", "max", *options, "--json")
    summary = json.loads(done.stdout)
    assert (summary["requests"], summary["damaged"]) == (400, 2)
    assert [note for note in summary["notes"] if note.startswith(told)]
    done = loadstone("replay", path, "--on", "null:", "--pace", "max", *options)
    assert f"note: {told}" in done.stderr
    out = tmp_path / "out"
    done = loadstone("evaluate", path, "--on", "null:", "--repeat", 2, *options, "--out", out)
    assert done.stdout.count(f"note: {told}") == 1
    series = Series.read(out)
    assert [b.summary["damaged"] for b in series.bundles()] == [2, 0] * 2
    assert series.bundles()[0].summary["requests"] == 400


def test_one_more_than_allowed_is_an_error_before_anything_is_made(loadstone, tmp_path):
    path = tmp_path / "two.spc"
    path.write_text("\n".join(damaged(SPC)) + "\n")
    for verb in ("replay", "evaluate"):
        options = ("--on", tmp_path / "target", "--max-damaged", 1)
        failed = loadstone(verb, path, *options, status=1)
        assert f"{path}, line 202" in failed.stderr
    assert not (tmp_path / "target").exists()


@pytest.mark.slow
def test_errors_name_the_options_that_the_verbs_have(loadstone, tmp_path):
    path = tmp_path / "late.spc"
    path.write_text("\n".join(["0,0,4096,R,5.0", "0,0,4096,W,0.0"]) + "\n")
    for verb in ("replay", "evaluate"):
        said = loadstone(verb, path, "--on", "null:", status=1).stderr
        assert "sort the whole trace with --sort" in said and "trace convert" not in said
        said = loadstone(verb, path, "--on", "null:", "--format", "spd", status=2).stderr
        assert "no format is called spd; known: " in said
        said = loadstone(verb, path, "--on", "null:", "--read", "r", status=2).stderr
        assert "--read: needs --columns" in said


def test_sorting_is_no_part_of_the_run(tmp_path, monkeypatch):
    path, place = tmp_path / "late.spc", tmp_path / "place"
    path.write_text("\n".join(late(SPC, 399)) + "\n")
    place.mkdir()
    monkeypatch.chdir(tmp_path)
    plan = plan_replay(path, "null:", RunOptions(pace=4.0, reading={"sort": True, "temp_dir": "place"}))
    assert plan["artefacts"][0]["reading"]["temp_dir"] == str(place)
    outcome = execute(plan)
    assert outcome["summary"]["requests"] == 400
    assert outcome["lateness"]["max_ns"] < 0.5e9


def test_what_plans_refuse(tmp_path):
    path = tmp_path / "a.spc"
    path.write_text("\n".join(SPC) + "\n")
    plan = plan_replay(path, "null:", RunOptions(reading={"sort": False, "reorder": None, "max_damaged": 0}))
    assert plan == plan_replay(path, "null:") and "reading" not in plan["artefacts"][0]
    for reading, told in (
        ({"sorted": True}, r"unknown field `sorted`"),
        ({"columns": {"times": {"at": 0}}, "format": "delimited"}, None),
    ):
        plan["artefacts"][0]["reading"] = reading
        if told is not None:
            with pytest.raises(Error, match=told):
                check(plan)
            continue
        with pytest.raises(Error, match="reading of the trace: unknown field `times`"):
            execute(check(plan))
    plan["artefacts"][0] = {"id": "source", "kind": "model", "path": "m.mdh", "reading": {"sort": True}}
    plan["workers"][0]["source"] = {"kind": "model", "artefact": "source"}
    with pytest.raises(Error, match=r"artefacts\[0\].reading: says how a trace is read, and this is none"):
        check(plan)
    for name in ("dependencies", "threads"):
        with pytest.raises(Error, match=f"{name}: is not for replays"):
            plan_replay(path, "null:", RunOptions(reading={name: 1}))


def test_trees_are_built_of_what_the_options_read(tmp_path, loadstone):
    path = tmp_path / "late.nfsdump"
    lines = []
    for i in range(60):
        # Two lines of each ten are told late.
        at = i - 3 if i % 10 == 9 else i
        asked, told = f"read fh {i % 7:08x} off 0 count 10", "read OK"
        lines.append(f"{100 + at}.000001 31.03f7 30.0801 T C3 {i:x} 6 {asked} con = 1 len = 1\n")
        lines.append(f"{100 + at}.000501 30.0801 31.03f7 T R3 {i:x} 6 {told} count 10 con = 1 len = 1\n")
    path.write_text("".join(lines))
    failed = loadstone("replay", path, "--on", tmp_path / "tree", status=1)
    assert "--sort" in failed.stderr
    options = ("--on", tmp_path / "tree", "--pace", "max", "--sort", "--json")
    done = loadstone("replay", path, *options, status=None)
    assert json.loads(done.stdout)["requests"] == trace.describe(path, sort=True)["requests"]
    done = loadstone("evaluate", path, "--on", tmp_path / "place", "--sort", "--repeat", 2, "--dry-run")
    plans = [run["plan"] for run in json.loads(done.stdout)["runs"]]
    assert plans[0]["artefacts"][0]["reading"] == {"sort": True}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["replay", "evaluate"])
def test_a_trace_of_numbers_alone(verb, loadstone, tmp_path):
    path = tmp_path / "numbers.trace"
    rows = (f"{2_500_000 * i} {i % 6} {(i * 7919) % 10**7 * 16} 16 {int(i % 9 > 0)}" for i in range(20_000))
    path.write_text("\n".join(rows) + "\n")
    failed = loadstone(verb, path, "--on", "null:", status=1)
    assert "--format mqsim" in failed.stderr
    out = tmp_path / "out"
    options = ("--repeat", 2) if verb == "evaluate" else ("--seed", 1)
    limits = ("--pace", "x20", "--duration", "1s", *options)
    loadstone(verb, path, "--on", "null:", "--format", "mqsim", "--out", out, *limits)
    bundle = Bundle.read(out) if verb == "replay" else Series.read(out).bundles()[0]
    assert bundle.plan["artefacts"][0]["reading"] == {"format": "mqsim"}
    assert bundle.summary["requests"] > 0


def test_arrivals_are_read_as_the_plan_says(tmp_path, loadstone):
    path = tmp_path / "a.trace"
    path.write_text("\n".join(MQSIM) + "\n")
    options = ("--on", "null:", "--requests", 100, "--arrival", f"trace:{path}")
    failed = loadstone("run", "randread", *options, status=1)
    assert "`format` mqsim" in failed.stderr
    assert "--arrival takes no options of reading: convert the trace" in failed.stderr
    plan = plan_uniform("randread", Path("null:"), RunOptions(requests=100, arrival=f"trace:{path}"))
    plan["artefacts"][0]["reading"] = {"format": "mqsim"}
    assert execute(check(plan))["summary"]["requests"] == 100
