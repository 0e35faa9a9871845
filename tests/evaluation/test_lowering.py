"""Lowering: what a trace, a name and a target become, and what is refused before anything is touched."""

from __future__ import annotations

import copy
import json
import os
import uuid
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from loadstone import Error
from loadstone.plan import RunOptions, check, load_plan, schema, verify
from loadstone.workload import execute, job, plan_replay, plan_uniform

ROOT = Path(__file__).parents[2]
LOOP0 = "examples/loop0.parquet"
NO_DEVICE = f"/dev/{uuid.uuid4().hex}"


def csv_trace(path, rows):
    """An MSR trace: time (100 ns), host, disk, op, offset, size, response (100 ns)."""
    lines = [f"{t},src,{d},{op},{o},{s},{r}" for t, d, op, o, s, r in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def two_disks(tmp_path):
    base = 128166372000000000
    rows = [
        (base, 0, "Read", 0, 4096, 100),
        (base + 1000, 1, "Write", 8192, 5000, 100),
        (base + 2000, 0, "Write", 40960, 4096, 100),
    ]
    return csv_trace(tmp_path / "two.csv", rows)


def test_objects_lie_end_to_end(two_disks, tmp_path):
    plan = plan_replay(two_disks, tmp_path / "target")
    extents = plan["workers"][0]["map"]["objects"]
    assert [(e["base"], e["size"]) for e in extents] == [(0, 45056), (45056, 13192)]
    assert plan["targets"][0]["size"] == 45056 + 16384
    assert plan["targets"][0]["prepare"] == "fill"
    assert [s["step"] for s in plan["steps"]] == ["prepare", "drop_caches", "run"]
    assert plan["workers"][0]["pace"] == {"kind": "open", "speed": 1.0}


def test_objects_can_be_mapped_one_by_one(two_disks, tmp_path):
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    plan = plan_replay(two_disks, None, RunOptions(maps={"0": a, "1": b}))
    assert [t["path"] for t in plan["targets"]] == [a, b]
    assert [e["base"] for e in plan["workers"][0]["map"]["objects"]] == [0, 0]
    with pytest.raises(Error, match="has no target; give `on`, or `maps`"):
        plan_replay(two_disks, None, RunOptions(maps={"0": a}))
    with pytest.raises(Error, match="there is no such object"):
        plan_replay(two_disks, a, RunOptions(maps={"nine": b}))
    with pytest.raises(Error, match="null: cannot be mixed"):
        plan_replay(two_disks, a, RunOptions(maps={"1": "null:"}))


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        ("recorded", {"kind": "open", "speed": 1.0}),
        ("x0.5", {"kind": "open", "speed": 0.5}),
        (4, {"kind": "open", "speed": 4.0}),
        ("max", {"kind": "closed"}),
    ],
)
def test_paces(two_disks, pace, expected):
    plan = plan_replay(two_disks, "null:", RunOptions(pace=pace))
    assert plan["workers"][0]["pace"] == expected
    assert plan["workers"][0]["backend"] == "null"


@pytest.mark.parametrize("pace", ["x0", "fast", "-1", "xinf", "xnan"])
def test_paces_that_are_none(two_disks, pace):
    with pytest.raises(Error, match="write recorded, max, or an acceleration"):
        plan_replay(two_disks, "null:", RunOptions(pace=pace))


def test_a_small_target_needs_wrap_or_scale(root, tmp_path):
    trace = root / LOOP0
    with pytest.raises(Error, match="`offsets` wrap or scale"):
        plan_replay(trace, tmp_path / "t", RunOptions(size=1 << 20))
    with pytest.raises(Error, match="give the size to wrap to with `size`"):
        plan_replay(trace, tmp_path / "t", RunOptions(offsets="wrap"))
    for offsets in ("wrap", "scale"):
        plan = plan_replay(trace, tmp_path / "t", RunOptions(size=1 << 20, offsets=offsets))
        assert plan["targets"][0]["size"] == 1 << 20


def test_what_was_there_is_only_given_up_by_name(root, tmp_path):
    target = tmp_path / "image"
    target.write_bytes(b"x" * (1 << 20))
    keep = plan_uniform("randwrite", target, RunOptions(duration=1))
    assert keep["targets"][0]["prepare"] == "none" and not keep["targets"][0]["allow_destroy"]
    with pytest.raises(Error, match="`allow_destroy`"):
        execute(keep)
    assert target.read_bytes() == b"x" * (1 << 20)
    with pytest.raises(Error, match="is no target of this run"):
        plan_uniform("randwrite", target, RunOptions(duration=1, allow_destroy=[tmp_path / "imag"]))
    given_up = plan_uniform("randwrite", target, RunOptions(duration=1, allow_destroy=[target]))
    assert given_up["targets"][0]["prepare"] == "fill" and given_up["targets"][0]["allow_destroy"]


def test_a_trace_of_reads_may_read_what_is_there(tmp_path):
    base = 128166372000000000
    reads = csv_trace(tmp_path / "r.csv", [(base + i * 1000, 0, "Read", i * 512, 512, 10) for i in range(50)])
    target = tmp_path / "image"
    target.write_bytes(os.urandom(1 << 16))
    before = target.read_bytes()
    plan = plan_replay(reads, target, RunOptions(pace="max", cache="none"))
    assert plan["workers"][0]["reads_only"] and plan["targets"][0]["prepare"] == "none"
    outcome = execute(plan)
    assert outcome["summary"]["requests"] == 50 and outcome["summary"]["errors"] == 0
    assert target.read_bytes() == before


def test_dependencies_are_lowered(loadstone):
    plan = plan_replay(
        ROOT / "examples/loop0.parquet",
        "null:",
        RunOptions(independent="max", order="dependency", think=2, within=0.5),
    )
    worker = plan["workers"][0]
    assert (worker["order"], worker["think"], worker["within_ns"]) == ("dependency", 2.0, 500_000_000)
    assert worker["pace"] == {"kind": "closed"}
    for wrong in ({"think": -1}, {"within": -1}, {"think": float("nan")}):
        with pytest.raises(Error, match="0 or more"):
            plan_replay(ROOT / "examples/loop0.parquet", "null:", RunOptions(order="dependency", **wrong))
    # A model has no completions to wait for.
    with pytest.raises(Error, match="dependencies need a trace"):
        source = {"kind": "uniform", "reads": 1.0, "size": 4096}
        check({**plan, "workers": [{**worker, "source": source}]})


def test_the_options_of_dependencies_go_together(loadstone):
    trace = ROOT / "examples/loop0.parquet"

    def replay(*options, status):
        return loadstone("replay", trace, "--on", "null:", *options, status=status)

    done = replay(
        "--order", "dependency", "--independent", "max", "--think", "none", "--within", "1ms", status=0
    )
    assert "106,099 requests" in done.stdout
    assert "--independent says" in replay("--order", "dependency", "--pace", "x2", status=2).stderr
    assert "--think: needs --order dependency" in replay("--think", "x2", status=2).stderr
    assert "write it like 2, x2" in replay("--order", "dependency", "--think", "soon", status=2).stderr


def test_completion_order_needs_latencies(tmp_path):
    (tmp_path / "a.spc").write_text("0,8,4096,R,0.0\n0,16,4096,W,0.1\n")
    with pytest.raises(Error, match="no latencies"):
        plan_replay(tmp_path / "a.spc", "null:", RunOptions(order="completion"))


def test_names_and_their_variables(tmp_path):
    plan = job("randrw", "null:", RunOptions(duration=1, variables={"reads": "0.25", "bs": "8192"})).plans[0]
    assert plan["workers"][0]["source"] == {
        "kind": "uniform", "reads": 0.25, "size": 8192, "sequential": False, "rate": 0.0,
    }  # fmt: skip
    assert (
        job("randrw", "null:", RunOptions(duration=1, variables={"reads": "0.25", "bs": "8k"})).plans[0]
        == plan
    )
    for call, text in [
        (
            lambda: job("randrite", "null:", RunOptions(duration=1)).plans[0],
            "is not a workload; did you mean randwrite",
        ),
        (lambda: job("randread", "null:").plans[0], "has no end: give `duration`"),
        (lambda: job("randread", None, RunOptions(duration=1)).plans[0], "no target; give `on`"),
        (
            lambda: job("randread", "null:", RunOptions(duration=1, variables={"bs": "x"})).plans[0],
            "is not a size",
        ),
        (
            lambda: job("randread", "null:", RunOptions(duration=1, variables={"x": "1"})).plans[0],
            "has the variables",
        ),
        (
            lambda: job("randread", "null:", RunOptions(duration=1, variables={"reads": "1"})).plans[0],
            "use randrw",
        ),
        (lambda: job("randread", "null:", RunOptions(duration=1, pace="x2")).plans[0], "use `rate`"),
        (
            lambda: job("randread", tmp_path / "new", RunOptions(duration=1)).plans[0],
            "give its size with `size`",
        ),
        (lambda: job("randread", tmp_path, RunOptions(duration=1)).plans[0], "is a directory"),
        (
            lambda: job("randread", tmp_path / "no" / "t", RunOptions(duration=1)).plans[0],
            "the directory .* does not",
        ),
        (
            lambda: job("randread", NO_DEVICE, RunOptions(duration=1)).plans[0],
            "does not exist; check the dev",
        ),
        (lambda: job("nosuch.mdh", "null:").plans[0], "No such file or directory; check the path"),
        (
            lambda: job("randread", "/dev/null", RunOptions(duration=1)).plans[0],
            "neither a regular file nor a block",
        ),
    ]:
        with pytest.raises(Error, match=text):
            call()


def test_a_plan_survives_its_file(tmp_path):
    plan = plan_uniform("randread", "null:", RunOptions(requests=1000, seed=7))
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    assert load_plan(file) == {**plan, "own": [str(file)]} and plan == check(plan)
    # The script that it was made from may be gone.
    file.write_text(json.dumps({**plan, "own": ["/gone/script.f"]}))
    assert load_plan(file)["own"] == [str(file)]
    text = json.dumps(plan).replace('"requests": 1000', '"requests": ${n}')
    file.write_text(text)
    assert load_plan(file, options=RunOptions(variables={"n": "1000"})) == {**plan, "own": [str(file)]}
    with pytest.raises(Error, match="needs the variable n; give it with `variables`"):
        load_plan(file)
    with pytest.raises(Error, match="has no variable m"):
        load_plan(file, options=RunOptions(variables={"n": "5", "m": "6"}))
    file.write_text(text[:50])
    with pytest.raises(Error, match=r"plan.json, line 1: is no JSON"):
        load_plan(file)


def test_plans_that_cannot_be_run_say_where_and_why(root):
    good = plan_replay(root / LOOP0, "null:")

    def change(path, value):
        plan = copy.deepcopy(good)
        at = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return plan

    worker = ("workers", 0)
    for path, value, text in [
        (("version",), 99, "version: is 99"),
        (("interval_ns",), 5, "interval_ns: is under a millisecond"),
        (("workers",), [], "workers: is empty"),
        ((*worker, "depth"), 0, r"workers\[0\].depth: is 0"),
        ((*worker, "depth"), 100_000, r"workers\[0\].depth: is 100000"),
        ((*worker, "pace"), {"kind": "open", "speed": -1.0}, "pace.speed: is -1"),
        ((*worker, "source"), {"kind": "trace", "artefact": "x"}, "no artefact of that kind"),
        ((*worker, "map"), {"objects": []}, "no object has a place"),
        ((*worker, "surprise"), 1, "unknown field `surprise`"),
        ((*worker, "backend"), "tape", "unknown variant `tape`"),
        (("targets", 0, "size"), 0, r"targets\[0\]: has size 0"),
        (("targets", 0, "kind"), "file", r"targets\[0\]: has no path"),
        (("steps",), [{"step": "run"}, {"step": "run"}], "steps: has 2 run steps"),
        (("steps",), [], "steps: has no run step"),
    ]:
        with pytest.raises(Error, match=text):
            check(change(path, value))


def test_a_changed_artefact_is_noticed(root, tmp_path):
    copied = tmp_path / "trace.parquet"
    copied.write_bytes((root / LOOP0).read_bytes())
    plan = plan_replay(copied, "null:", RunOptions(pace="max"))
    verify(plan)
    copied.write_bytes(copied.read_bytes() + b"x")
    with pytest.raises(Error, match="is not the file this plan was made for"):
        execute(plan)


@pytest.mark.golden
def test_the_published_schema_is_that_of_this_build(golden):
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    golden(str(ROOT / "docs/reference/formats/plan.schema.json"), text)


def test_plans_fit_their_schema_and_others_do_not(two_disks, tmp_path):
    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(schema())
    uniform = plan_uniform("randread", tmp_path / "u", RunOptions(size=1 << 20, duration=1))
    for plan in (plan_replay(two_disks, tmp_path / "target"), uniform, check(uniform)):
        validator.validate(plan)
    for change in ({"version": "one"}, {"colour": "red"}, {"workers": {}}, {"steps": [{"step": "dance"}]}):
        assert not validator.is_valid({**uniform, **change}), change
    del uniform["targets"]
    assert not validator.is_valid(uniform)


def test_arrivals_are_laws_of_an_open_pace():
    plan = plan_uniform("randread", "null:", RunOptions(rate=1000, arrival="onoff:0.1,0.4", duration=1))
    assert plan["workers"][0]["source"]["arrival"] == {"kind": "onoff", "on_s": 0.1, "off_s": 0.4}
    assert (
        "arrival"
        not in plan_uniform("randread", "null:", RunOptions(rate=1000, duration=1))["workers"][0]["source"]
    )


@pytest.mark.parametrize(
    ("arrival", "rate", "text"),
    [
        ("poison", 10, "must be one of: constant, poisson"),
        ("gamma", 10, "write gamma:SHAPE"),
        ("onoff:1", 10, "write onoff:ON,OFF"),
        ("poisson:3", 10, "write poisson"),
        ("hyper:0.5", 10, "use 1 or more"),
        ("gamma:0", 10, "use a number above 0"),
        ("poisson", 0, "give `rate`, too"),
    ],
)
def test_arrivals_that_cannot_be_are_refused(arrival, rate, text):
    with pytest.raises(Error, match=text):
        plan_uniform("randread", "null:", RunOptions(rate=rate, arrival=arrival, duration=1))


def test_what_has_times_of_its_own_takes_no_arrivals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.mdh").write_bytes(b"")
    with pytest.raises(Error, match="has times of its own"):
        job("some.mdh", "null:", RunOptions(arrival="poisson")).plans[0]


def test_issued_gaps_are_as_asked(tmp_path):
    from loadstone.bundle import table

    log = tmp_path / "log.parquet"
    options = {"rate": 2000, "arrival": "poisson", "duration": 4, "backend": "sync", "depth": 8}
    execute(plan_uniform("randread", tmp_path / "t", RunOptions(size=1 << 20, fill=True, log=log, **options)))
    # Rows are in order of issue, in which the threads of a pool may overtake each other.
    times = np.sort(table.read(log, ["intended"])["intended"])
    gaps = (times[1:] - times[:-1]) / 500_000
    assert abs(gaps.mean() - 1) < 0.05 and abs(gaps.std() - 1) < 0.1


def test_sizes_and_hot_blocks_of_names():
    def source(**options):
        return plan_uniform("randread", "null:", RunOptions(duration=1, **options))["workers"][0]["source"]

    assert "sizes" not in source(bs="8k") and source(bs="8k")["size"] == 8192
    assert source(bs="4k-64KiB")["sizes"] == [{"share": 1, "low": 4096, "high": 65536}]
    # What is no multiple of the smallest is as much rarer as the last step is shorter.
    assert source(bs="3k-10k")["sizes"] == [
        {"share": 0.9, "low": 3072, "high": 9216},
        {"share": 0.1, "low": 10240, "high": 10240},
    ]
    assert source(bs="4k:1,5k-10k:3")["sizes"] == [
        {"share": 1, "low": 4096, "high": 4096},
        {"share": pytest.approx(24 / 9), "low": 5120, "high": 9216},
        {"share": pytest.approx(3 / 9), "low": 10240, "high": 10240},
    ]
    mixed = source(bs="64k:40, 4k-8k:60", skew="zipf:1.1")
    assert mixed["size"] == 4096
    assert mixed["sizes"] == [
        {"share": 40, "low": 65536, "high": 65536},
        {"share": 60, "low": 4096, "high": 8192},
    ]
    assert mixed["skew"] == {"kind": "zipf", "exponent": 1.1}
    assert source(skew="pareto:0.2")["skew"] == {"kind": "pareto", "share": 0.2}
    assert source(skew="hotcold:0.9,0.1")["skew"] == {"kind": "hotcold", "accesses": 0.9, "space": 0.1}
    assert "skew" not in source(skew="uniform")
    assert plan_uniform("readwrite", "null:", RunOptions(duration=1)) == plan_uniform(
        "rw", "null:", RunOptions(duration=1)
    )


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("randread", {"bs": "0"}, "is too small"),
        ("randread", {"bs": "4x"}, "'4x' is not a size"),
        ("randread", {"bs": "9" * 40}, "is too large"),
        ("randread", {"bs": "8k-4k"}, "goes from 8k down to 4k; exchange them"),
        ("randread", {"bs": "1g"}, "can move at most 256m"),
        ("randread", {"bs": "4k,8k"}, "4k needs its share"),
        ("randread", {"bs": "4k:-1,8k:2"}, "4k:-1 needs its share"),
        ("randread", {"bs": "4k:0,8k:0"}, "all 0"),
        ("randread", {"skew": "zipf"}, "write zipf:EXPONENT"),
        ("randread", {"skew": "zipf:-1"}, "exponent is -1; use 0 or more"),
        ("randread", {"skew": "pareto:1"}, "share is 1; use a share between 0 and 1"),
        ("randread", {"skew": "hotcold:0.9"}, "write hotcold:ACCESSES,SPACE"),
        ("randread", {"skew": "hotcold:2,0.1"}, "accesses is 2; use a share from 0 to 1"),
        ("randread", {"skew": "hotcold:0.5,0"}, "space is 0"),
        ("randread", {"skew": "normal:1"}, "must be one of: uniform, zipf, pareto, hotcold"),
        ("read", {"skew": "zipf:1"}, "goes from block to block"),
        ("randtrimwrite", {}, "discards that are followed by writes"),
    ],
)
def test_sizes_and_hot_blocks_that_cannot_be_are_refused(name, options, text):
    with pytest.raises(Error, match=text):
        plan_uniform(name, "null:", RunOptions(duration=1, **options))


def test_what_has_places_of_its_own_takes_no_hot_blocks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.mdh").write_bytes(b"")
    with pytest.raises(Error, match="has places of its own"):
        job("some.mdh", "null:", RunOptions(skew="zipf:1")).plans[0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sizes": [{"share": 1, "low": 0, "high": 4096}]}, r"sizes\[0\]: goes from 0 to 4096"),
        ({"sizes": [{"share": 1, "low": 8192, "high": 4096}]}, "low not above high"),
        ({"sizes": [{"share": 1, "low": 0.5, "high": 1}]}, "whole numbers"),
        ({"sizes": [{"share": 0, "low": 1, "high": 1}]}, "shares of 0 or more that are not all 0"),
        ({"follow": 1.5}, "follow: is 1.5; use a share from 0 to 1"),
        ({"sequential": True, "follow": 0.5}, "leave out one or the other"),
        ({"sequential": True, "skew": {"kind": "zipf", "exponent": 1}}, "leave out one or the other"),
        ({"skew": {"kind": "pareto", "share": 0}}, "share is 0; use a share between 0 and 1"),
    ],
)
def test_plans_of_uneven_requests_that_cannot_be_are_refused(change, text):
    plan = plan_uniform("randread", "null:", RunOptions(duration=1))
    plan["workers"][0]["source"].update(change)
    with pytest.raises(Error, match=text):
        check(plan)


def test_hot_blocks_and_sizes_reach_a_file(tmp_path):
    """Requests of the log have their sizes, stay inside, and workers agree on the hottest block."""
    from loadstone.bundle import table

    options = {"size": 1 << 20, "requests": 20_000, "cache": "none", "backend": "sync", "depth": 4}
    plan = plan_uniform(
        "randread",
        tmp_path / "file",
        RunOptions(bs="4k:3,16k:1", skew="zipf:1.2", log=tmp_path / "log.parquet", **options),
    )
    plan["workers"].append(plan["workers"][0])
    summary = execute(plan)["summary"]
    assert (summary["requests"], summary["errors"]) == (40_000, 0)
    log = table.read(tmp_path / "log.parquet", ["offset", "size"])
    offsets, sizes = log["offset"], log["size"]
    assert set(sizes.tolist()) == {4096, 16384} and (offsets % 4096 == 0).all()
    assert (offsets + sizes).max() == 1 << 20
    assert abs((sizes == 4096).mean() - 0.75) < 0.02
    # The hottest of 256 blocks gets 1 / sum(i^-1.2) of the requests, in both halves alike.
    share = 1 / sum(i**-1.2 for i in range(1, 257))
    blocks = np.bincount(offsets // 4096, minlength=256) / len(offsets)
    assert abs(blocks.max() - share) < 0.02


def test_options_that_there_are_not(tmp_path):
    with pytest.raises(TypeError, match="drop_caches"):
        plan_uniform("read", tmp_path / "x", RunOptions(size=4096, drop_caches=False))
