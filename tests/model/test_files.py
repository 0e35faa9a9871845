"""Models of system calls: fitted to a program, run on files that are made up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error, model
from loadstone.plan import RunOptions
from loadstone.trace import OPS
from loadstone.workload import execute, plan_model

SCRIPT = """
set -e
cd "$1"
for d in 1 2 3 4 5 6; do
    mkdir secret$d
    for i in 1 2 3 4 5 6 7 8; do
        cat base > secret$d/part
        mv secret$d/part secret$d/$i
        test ! -e secret$d/none$i
    done
    rm secret$d/1
done
mkdir gone && rmdir gone
ls -la secret1 > listing
"""


@pytest.fixture
def recorded(tmp_path_factory: pytest.TempPathFactory, need_tools: Callable[..., None]) -> Path:
    """A trace of a shell script."""
    need_tools("strace")
    folder = tmp_path_factory.mktemp("recorded")
    work = folder / "work"
    work.mkdir()
    (work / "base").write_bytes(b"b" * 50_000)
    out = folder / "script.strace"
    command = ["strace", "-f", "-ttt", "-T", "-o", str(out), "sh", "-c", SCRIPT, "sh", str(work)]
    subprocess.run(command, check=True, cwd=folder)
    return out


def mix(fitted: model.Model) -> dict[str, int]:
    """Requests by op."""
    marginal = fitted.marginal("op")
    return {OPS[op]: n for op, n in zip(marginal.first.tolist(), marginal.counts.tolist(), strict=True)}


def issued(summary: dict[str, Any]) -> dict[str, int]:
    """The same of a run."""
    return {name: op["count"] for name, op in summary["ops"].items()}


def few_failed(summary: dict[str, Any]) -> bool:
    """Whether at most one request in a hundred failed that should not have."""
    failed: int = summary["errors"] + summary["short"]
    return failed <= summary["requests"] / 100


@pytest.fixture
def fitted(recorded: Path, tmp_path: Path) -> Path:
    """A model of it."""
    path = tmp_path / "a.mdh"
    model.fit(recorded).save(path)
    return path


@pytest.mark.slow
def test_a_program_becomes_a_load_on_files_of_its_own(
    fitted: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    assert b"secret" not in fitted.read_bytes()
    shown = loadstone("model", "show", fitted).stdout
    assert "made up" in shown and "new file" in shown and "ENOENT" in shown
    done = json.loads(loadstone("run", fitted, "--on", tree, "--pace", "max", "--json", status=None).stdout)
    assert few_failed(done)
    assert issued(done) == mix(model.Model.load(fitted))
    assert {path.name for path in tmp_path.iterdir()} == {"a.mdh", "tree"}, "only the tree is touched"
    made = {str(path.relative_to(tree)) for path in tree.rglob("*") if ".linked" not in path.parts}
    assert made and all(set(path) <= set("dfl0123456789/") for path in made)


@pytest.mark.slow
def test_what_is_drawn_is_a_trace_to_replay(
    fitted: Path, recorded: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    drawn = tmp_path / "drawn.parquet"
    loadstone("model", "sample", fitted, "-o", drawn)
    assert b"secret" not in drawn.read_bytes()
    options = ("--on", tmp_path / "tree", "--pace", "max", "--json")
    done = json.loads(loadstone("replay", drawn, *options, status=None).stdout)
    assert few_failed(done) and issued(done) == mix(model.Model.load(fitted))
    found = json.loads(loadstone("model", "check", fitted, recorded, "--json").stdout)
    apart = {row["dimension"]: row["ks"] for row in found["dimensions"]}
    assert apart["op"] == 0 and apart["result"] < 0.01


@pytest.mark.slow
def test_requests_find_what_those_before_them_left(
    recorded: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    fitted = tmp_path / "script.mdh"
    model.fit(recorded).save(fitted)
    found = json.loads(loadstone("model", "check", fitted, recorded, "--json").stdout)
    apart = {row["dimension"]: row["ks"] for row in found["dimensions"]}
    assert apart["state"] < 0.05 and apart["near"] < 0.02


@pytest.mark.slow
def test_a_tree_needs_a_place_and_blocks_have_none_in_it(
    fitted: Path, loadstone: Callable[..., Any], tmp_path: Path, root: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    assert "is not empty" in loadstone("run", fitted, "--on", taken, status=1).stderr
    assert (taken / "mine").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    assert "is no directory" in loadstone("run", fitted, "--on", tmp_path / "file", status=1).stderr
    assert "name a directory" in loadstone("run", fitted, "--on", "null:", status=1).stderr
    with pytest.raises(Error, match="`direct`"):
        plan_model(fitted, tmp_path / "tree", RunOptions(direct=True))
    blocks = tmp_path / "blocks.mdh"
    model.fit(root / "examples" / "loop0.parquet").save(blocks)
    refused = loadstone("run", blocks, "--on", tmp_path, status=1)
    assert "is a directory" in refused.stderr and "has no requests of files" in refused.stderr
    plan = plan_model(fitted, tmp_path / "tree")
    plan["artefacts"] = plan_model(blocks, "null:")["artefacts"]
    with pytest.raises(Error, match="draws requests of blocks"):
        execute(plan)
    plan = plan_model(blocks, "null:")
    plan["artefacts"] = plan_model(fitted, tmp_path / "tree")["artefacts"]
    with pytest.raises(Error, match="draws requests of files"):
        execute(plan)
    assert not (tmp_path / "tree").exists()


def test_where_keys_have_no_room_usual_dimensions_are_only_observed(recorded: Path) -> None:
    def roles(fitted: model.Model) -> dict[str, str]:
        return {d["feature"]: d["role"] for d in fitted.header["dimensions"]}

    usual = model.fit(recorded)
    assert roles(usual)["reuse"] == "sets" and not usual.warnings
    given_way = []
    # A bit more each time.
    for sub in (8, 16, 32, 64, 128, 256, 512):
        wide = model.fit(recorded, dimensions=(f"gap=log2:{sub}", "size=log2:64"))
        lost = [name for name, role in roles(wide).items() if role != roles(usual)[name]]
        assert {roles(wide)[name] for name in lost} <= {"observed"}
        assert [f"{name} is only observed" in " ".join(wide.warnings) for name in lost] == [True] * len(lost)
        given_way.append(set(lost))
    assert {"reuse"} in given_way and {"reuse", "previous(op)"} in given_way
    assert given_way == sorted(given_way, key=len)
    with pytest.raises(Error, match="more than 64 bits"):
        model.fit(recorded, dimensions=("gap=log2:512", "size=log2:64", "reuse", "given:previous(op)"))


@pytest.mark.slow
def test_two_programs_run_on_one_store(fitted: Path, loadstone: Callable[..., Any], tmp_path: Path) -> None:
    both = tmp_path / "both.mdh"
    told = json.loads(
        loadstone("model", "merge", fitted, fitted, "-o", both, "--shift", "1s", "--json").stdout
    )
    assert told["is"]["requests"] == 2 * model.Model.load(fitted).requests
    done = json.loads(
        loadstone("run", both, "--on", tmp_path / "tree", "--pace", "max", "--json", status=None).stdout
    )
    assert few_failed(done)
    assert issued(done) == {op: 2 * n for op, n in mix(model.Model.load(fitted)).items()}


@pytest.mark.slow
def test_what_files_cannot_be_used_for_is_refused(
    fitted: Path, recorded: Path, loadstone: Callable[..., Any], tmp_path: Path, root: Path
) -> None:
    exported = loadstone(
        "model", "export", fitted, "--to", "fio", "-o", tmp_path / "a.fio", "--on", "x", status=1
    )
    assert "no exporter can express" in exported.stderr
    blocks = tmp_path / "blocks.mdh"
    model.fit(root / "examples" / "loop0.parquet").save(blocks)
    merged = loadstone("model", "merge", fitted, blocks, "-o", tmp_path / "m.mdh", status=2)
    assert (
        "the layer file, the other of block" in merged.stderr
        and "merge models of blocks with" in merged.stderr
    )
    with pytest.raises(Error, match="no think times"):
        model.fit(recorded, think=True)
    small = tmp_path / "small.mdh"
    model.Model.load(fitted).published().factored().save(small)
    run = loadstone("run", small, "--on", tmp_path / "tree", "--pace", "max", "--json", status=None)
    assert few_failed(json.loads(run.stdout))


def test_files_and_blocks_are_not_compared(
    fitted: Path, recorded: Path, loadstone: Callable[..., Any], root: Path, tmp_path: Path
) -> None:
    """They were, without a word."""
    blocks, disk = root / "examples/loop0.parquet", tmp_path / "disk.mdh"
    model.fit(blocks, window=5.0).save(disk)
    said = loadstone("model", "check", fitted, blocks, status=1).stderr
    assert "the trace has requests of blocks, the model draws those of files" in said
    said = loadstone("model", "check", disk, recorded, status=1).stderr
    assert "the trace has requests of files, the model draws those of blocks" in said
    # What was fitted to it is compared, whatever it draws.
    objects = model.fit(recorded, only=True, dimensions=["op", "object", "size", "jump", "region", "gap"])
    assert model.check(objects, recorded)["dimensions"] and not objects.of_files


def test_clients_of_nfs_can_be_modelled(loadstone: Callable[..., Any], root: Path, tmp_path: Path) -> None:
    fitted = tmp_path / "clients.mdh"
    model.fit(root / "tests/data/nfs-session.pcap.gz").save(fitted)
    tree = tmp_path / "tree"
    done = json.loads(loadstone("run", fitted, "--on", tree, "--pace", "max", "--json", status=None).stdout)
    assert issued(done) == mix(model.Model.load(fitted)) and few_failed(done)
    assert not (tree / "export").exists()


def test_who_asks_for_objects_gets_a_model_of_them(root: Path) -> None:
    session = root / "tests/data/nfs-session.pcap.gz"
    assert model.fit(session).of_files
    fitted = model.fit(session, dimensions=["sets:object"])
    assert not fitted.of_files
    assert "/export/home/notes" in [o["name"] for o in fitted.header["objects"]]


@pytest.mark.slow
def test_a_real_application_can_be_modelled(
    loadstone: Callable[..., Any], applications: Path, tmp_path: Path
) -> None:
    fitted = tmp_path / "mixed.mdh"
    model.fit(applications).save(fitted)
    options = ("--pace", "max", "--cache", "none", "--requests", 30_000, "--json")
    summary = json.loads(loadstone("run", fitted, "--on", tmp_path / "tree", *options, status=None).stdout)
    assert summary["requests"] == 30_000
    assert few_failed(summary)


@pytest.mark.slow
def test_a_model_of_an_application_is_like_it(
    loadstone: Callable[..., Any], applications: Path, tmp_path: Path
) -> None:
    trace, fitted = applications, tmp_path / "mixed.mdh"
    model.fit(trace).save(fitted)
    assert fitted.stat().st_size < trace.stat().st_size * (0.025 if trace.suffix == ".gz" else 0.13)
    found = json.loads(loadstone("model", "check", fitted, trace, "--json").stdout)
    apart = {row["dimension"]: row["ks"] for row in found["dimensions"]}
    assert apart["state"] < 0.05 and apart["length"] < 0.05 and apart["file"] < 0.06
    assert found["footprint"]["drawn"] == pytest.approx(found["footprint"]["trace"], rel=0.2)
    assert found["miss_ratio"]["mean"] < 0.06
    drawn = json.loads(loadstone("model", "sample", fitted, "-o", tmp_path / "a.parquet", "--json").stdout)
    assert drawn["displaced"] < drawn["requests"] * 0.2


def test_a_model_of_clients_is_like_them(
    loadstone: Callable[..., Any], shared_traces: Path, tmp_path: Path
) -> None:
    trace, fitted = shared_traces / "dataseries/nfs.set6.20k.ds", tmp_path / "nfs.mdh"
    model.fit(trace).save(fitted)
    found = json.loads(loadstone("model", "check", fitted, trace, "--json").stdout)
    apart = {row["dimension"]: row["ks"] for row in found["dimensions"]}
    assert apart["file"] < 0.08 and apart["length"] < 0.1 and apart["state"] < 0.05
    assert found["miss_ratio"]["mean"] < 0.15


@pytest.mark.parametrize("options", [("--regions", 4), ("--offset-rule", "region"), ("--far", "4k")])
def test_what_says_where_blocks_go_is_refused_of_files(loadstone, tmp_path, options):
    """It was taken and ignored."""
    (tmp_path / "t.strace").write_text(
        '1 1.000000 openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n'
        '1 1.000100 pwrite64(3, "x"..., 4096, 0) = 4096 <0.000010>\n'
    )
    words = ("model", "fit", tmp_path / "t.strace", "-o", tmp_path / "m.mdh")
    refused = loadstone(*words, *options, status=1)
    assert "this trace is of files; leave it out" in refused.stderr and not (tmp_path / "m.mdh").exists()
    loadstone(*words, "--offset-rule", "jump")
