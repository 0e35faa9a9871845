"""Dependencies and think times: kept in traces, drawn by models, followed by runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadstone import Error, model, trace
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_model, plan_replay

MS = 1_000_000
MAP = {
    "columns": {
        "time": {"at": 0, "unit": "ns"},
        "latency": {"at": 1, "unit": "ns"},
        "offset": {"at": 2, "unit": "byte"},
        "size": {"at": 3, "unit": "byte"},
        "actor": {"at": 4},
        "every": "read",
        "origin": "start",
    }
}


def chains(actors: int, requests: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Actors that each ask again 1 ms after an answer that takes 10 ms."""
    for number in range(requests):
        for actor in range(actors):
            time = (actor * 3 + number * 11) * MS
            yield time, 10 * MS, (number * actors + actor) * 4096, 4096, actor


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A trace of three such actors with its dependencies."""
    rows = sorted(chains(3, 400))
    source = tmp_path / "chains.csv"
    source.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    out = tmp_path / "chains.parquet"
    info = trace.convert(source, out, dependencies=1.0, **MAP)  # type: ignore[typeddict-item]
    assert "1197 requests waited for a completion of their actor" in info["history"][0]
    return out


def column(path: Path, name: str) -> np.ndarray[Any, Any]:
    """A column of a trace, -1 for null."""
    values = trace.read(path)[name].to_pylist()
    return np.array([-1 if value is None else value for value in values])


def test_a_trace_keeps_what_its_requests_waited_for(recorded: Path, tmp_path: Path) -> None:
    assert column(recorded, "after").tolist() == [0] * 3 + [3] * 1197
    assert column(recorded, "think").tolist() == [-1] * 3 + [MS] * 1197
    # Of what is cut out of it, only those whose cause is there still wait.
    cut = tmp_path / "cut.parquet"
    trace.select(recorded, cut, start=0.5, end=1.0)
    after, think = column(cut, "after"), column(cut, "think")
    assert after.tolist() == [0] * 3 + [3] * (len(after) - 3)
    assert ((think < 0) == (after == 0)).all()


def test_what_a_trace_says_is_followed(recorded: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    plan = plan_replay(
        recorded,
        tmp_path / "target",
        RunOptions(order="dependency", within=0.0, depth=8, independent="max", log=log),
    )
    # Found anew, nothing would follow anything so soon.
    assert execute(plan)["summary"]["errors"] == 0
    follows(log, MS)


def follows(log: Path, least: int) -> None:
    """No actor of a log has two requests under way, and each thinks so long at least, ns."""
    actor, time = column(log, "actor"), column(log, "time")
    latency = column(log, "latency")
    assert len(actor) == 1200
    for who in np.unique(actor):
        mine = actor == who
        thought = time[mine][1:] - (time[mine] + latency[mine])[:-1]
        assert (thought >= least).all()


def test_a_model_asks_after_answers(recorded: Path, loadstone: Callable[..., Any], tmp_path: Path) -> None:
    mdh, drawn = tmp_path / "m.mdh", tmp_path / "drawn.parquet"
    loadstone("model", "fit", recorded, "-o", mdh, "--think")
    loadstone("model", "sample", mdh, "-o", drawn)
    think, after, actor = (column(drawn, name) for name in ("think", "after", "actor"))
    assert np.bincount(actor).tolist() == [400] * 3
    waits = after > 0
    assert (~waits).sum() == 3
    # Every request waits for its actor's one before, a time of the bucket of 1 ms.
    rows = np.arange(1200)
    assert (actor[rows[waits] - after[waits]] == actor[waits]).all()
    assert (think[waits] >= 1 << 19).all() and (think[waits] < 1 << 20).all()
    found = model.check(model.Model.load(mdh), recorded)
    distances = {d["dimension"]: d["ks"] for d in found["dimensions"]}
    assert max(distances[name] for name in ("actor", "after")) == 0.0
    # Drawn requests have no latencies, and need none.
    for number, words in enumerate((["run", mdh], ["replay", drawn])):
        log, target = tmp_path / f"{number}.parquet", tmp_path / f"target{number}"
        loadstone(*words, "--on", target, "--order", "dependency", "--independent", "max", "--log", log)
        follows(log, 1 << 19)
    shown = loadstone("model", "show", mdh).stdout
    assert "Requests of its actor since the one it waited for" in shown


def longest(path: Path) -> int:
    """The longest chain of think times, ns: what a run takes where every answer comes at once."""
    after, think = column(path, "after"), column(path, "think")
    at = np.zeros(len(after), dtype=np.int64)
    for row in np.flatnonzero(after):
        at[row] = at[row - after[row]] + think[row]
    return int(at.max())


@pytest.mark.parametrize(("start", "end"), [(0, 5), (5, 10)])
def test_a_part_of_a_trace_takes_its_time(root: Path, start: int, end: int, tmp_path: Path) -> None:
    """What was drawn of parts took 1.9 and 0.6 times as long.

    In the first, long think times of an actor that has many requests under way led on from each other beyond
    the time of the trace. In the second, that a chain's first request waits for nothing was drawn for one in
    its middle, so that both halves went side by side.
    """
    part, drawn = tmp_path / "part.parquet", tmp_path / "drawn.parquet"
    trace.select(root / "examples/loop0.parquet", part, start=start, end=end, rebase=True, dependencies=1.0)
    fitted = model.fit(part, think=True)
    for seed in (1, 2):
        fitted.write_sample(drawn, seed=seed, force=True)
        assert 0.9 < longest(drawn) / longest(part) < 1.25


def test_what_cannot_be_ordered_is_said(
    recorded: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    plain = tmp_path / "plain.mdh"
    model.fit(recorded).save(plain)
    with pytest.raises(Error, match="draws no think times"):
        plan_model(plain, "null:", RunOptions(order="dependency"))
    refused = loadstone(
        "run", "randread", "--on", "null:", "--order", "dependency", "--requests", 9, status=2
    )
    assert "says nothing of what waits for what" in refused.stderr
    assert "needs --order" in loadstone("run", plain, "--on", "null:", "--think", "x2", status=2).stderr
    source = tmp_path / "t.spc"
    source.write_text("0,0,4096,r,0.0\n0,8,4096,r,0.1\n")
    for status, command in ((2, ["trace", "convert", "--dependencies"]), (1, ["model", "fit", "--think"])):
        failed = loadstone(*command, source, "-o", tmp_path / "out", status=status)
        assert "latencies" in failed.stderr and not (tmp_path / "out").exists()
    assert (
        "needs --dependencies"
        in loadstone("trace", "convert", source, "-o", tmp_path / "out", "--within", "1s", status=2).stderr
    )
    with pytest.raises(Error, match="think times are drawn by"):
        model.fit(recorded, dimensions=["sets:think"])
    with pytest.raises(Error, match="only one of them has the dimension"):
        model.merge([model.fit(recorded), model.fit(recorded, think=True)])


def test_merged_applications_wait_for_their_own(
    recorded: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    # Two more actors, who think for 16 ms after answers that take 4.
    rows = sorted(
        (n * 20 * MS + a * MS, 4 * MS, (n * 2 + a) * 8192, 8192, a) for n in range(200) for a in (0, 1)
    )
    source, other = tmp_path / "slow.csv", tmp_path / "slow.parquet"
    source.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    trace.convert(source, other, dependencies=1.0, **MAP)  # type: ignore[typeddict-item]
    both = model.merge([model.fit(recorded, think=True), model.fit(other, think=True)], shifts=[0, 1])
    assert both.requests == 1600
    mdh, drawn = tmp_path / "both.mdh", tmp_path / "drawn.parquet"
    both.save(mdh)
    loadstone("model", "sample", mdh, "-o", drawn, "--seed", 3)
    after, think, actor, size = (column(drawn, name) for name in ("after", "think", "actor", "size"))
    assert sorted(set(actor.tolist())) == [0, 1, 2, 3, 4]
    waits = np.flatnonzero(after > 0)
    assert abs(len(waits) - (1197 + 398)) < 8
    assert (actor[waits] == actor[waits - after[waits]]).all(), "of another application"
    slow = size[waits] == 8192
    assert abs(int(slow.sum()) - 398) < 5
    # Think times are even in their bucket, between two powers of two.
    assert (think[waits][~slow] < 1.5 * MS).all() and (think[waits][slow] > 8 * MS).all()
    fast_actors, slow_actors = (set(actor[waits][where].tolist()) for where in (~slow, slow))
    assert not fast_actors & slow_actors and (len(fast_actors), len(slow_actors)) == (3, 2)
    outcome = execute(plan_model(mdh, "null:", RunOptions(order="dependency", independent="max", think=4)))
    assert (outcome["summary"]["requests"], outcome["summary"]["errors"]) == (1600, 0)


def test_a_plan_says_how_long_is_thought(recorded: Path, tmp_path: Path) -> None:
    mdh = tmp_path / "m.mdh"
    fitted = model.fit(recorded, think=True)
    fitted.save(mdh)
    (worker,) = plan_model(mdh, "null:", RunOptions(order="dependency", independent="max", think=0))[
        "workers"
    ]
    assert (worker["order"], worker["think"], worker["pace"]) == ("dependency", 0, {"kind": "closed"})
    assert json.dumps(worker)
    faster = fitted.scaled(rate=4)
    assert faster.marginal("think").first[~faster.marginal("think").none].max() < MS / 2


def test_rules_of_what_think_times_need_are_used(recorded: Path) -> None:
    def rules(dimensions: Sequence[str]) -> dict[str, tuple[str, str]]:
        fitted = model.fit(recorded, think=True, dimensions=dimensions)
        return {d["feature"]: (d["role"], json.dumps(d["rule"])) for d in fitted.header["dimensions"]}

    usual = rules(())
    fine = rules(("think=log2:8", "sets:after=log2:1"))
    assert fine["think"][0] == usual["think"][0]
    assert fine["think"][1] != usual["think"][1]
    assert fine["after"][1] != usual["after"][1]
    assert {name: fine[name] for name in usual if name not in ("think", "after")} == {
        name: usual[name] for name in usual if name not in ("think", "after")
    }
    with pytest.raises(Error, match="observed:think: with think times think is set; use sets:think"):
        rules(("observed:think",))
    with pytest.raises(Error, match="without actor: with think times it is needed"):
        model.fit(recorded, think=True, without=("actor",))


def test_where_keys_have_no_room_usual_dimensions_give_way_to_think_times(root: Path, tmp_path: Path) -> None:
    def roles(fitted: model.Model) -> dict[str, str]:
        return {d["feature"]: d["role"] for d in fitted.header["dimensions"]}

    source, usual = root / "examples" / "loop0.parquet", None
    given_way = []
    # A bit more each time.
    for sub in (1, 4, 8, 16, 32, 64, 128, 256, 512):
        fitted = model.fit(source, think=True, dimensions=(f"gap=log2:{sub}", "size=log2:4"))
        usual = usual or roles(fitted)
        lost = {name for name, role in roles(fitted).items() if role != usual[name]}
        assert {roles(fitted)[name] for name in lost} <= {"observed"}
        assert len(fitted.warnings) == len(lost)
        assert all(f"{name} is only observed" in " ".join(fitted.warnings) for name in lost)
        given_way.append(lost)
    assert given_way == sorted(given_way, key=len) and given_way[0] == set()
    assert {"previous(op)"} in given_way and {"previous(op)", "previous(run)"} in given_way
    fitted.save(tmp_path / "m.mdh")
    plan = plan_model(tmp_path / "m.mdh", "null:", RunOptions(order="dependency", independent="max", think=0))
    assert execute(plan)["summary"]["requests"] == 106099
    # What was asked for does not give way.
    with pytest.raises(Error, match="more than 64 bits"):
        model.fit(source, think=True, dimensions=("gap=log2:4096", "size=log2:4096", "op_jump=log2:4096"))
