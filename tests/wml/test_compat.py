"""What Filebench does wrong, brought back by --filebench-compat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadstone.bundle.write import summarise
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_filebench

PIECE = 4096


def script(entries: int, size: int, flowops: str) -> str:
    return (
        "set mode quit alldone\n"
        f"define fileset name=s,path=$dir,entries={entries},dirwidth=100,dirgamma=0,size={size},prealloc\n"
        f"define process name=p {{ thread name=t {{ {flowops} }} }}\nrun\n"
    )


def lowered(tmp_path: Path, text: str, compat: Any) -> dict[str, Any]:
    (tmp_path / "w.f").write_text(text)
    return plan_filebench(tmp_path / "w.f", tmp_path / "d", RunOptions(compat=compat)).plans[0]


def perform(plan: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """A summary, and what is in the files afterwards, in order."""
    summary = summarise(plan, execute(check(plan)))
    assert summary["failure"] is None and summary["errors"] + summary["short"] == 0
    root = Path(plan["targets"][0]["path"])
    return summary, [path.read_bytes() for path in sorted(root.rglob("0*")) if path.is_file()]


def ended(flowop: str, count: int) -> str:
    return f"{flowop} flowop finishoncount name=f,value={count}"


@pytest.mark.parametrize(
    ("size", "touched", "compatible"),
    [(4.0, {0, 1, 2, 3}, {0, 1, 2}), (2.0, {0, 1}, {0}), (1.0, {0}, {0}), (2.5, {0, 1}, {0, 1})],
)
def test_the_last_block_is_left_out(tmp_path, size, touched, compatible):
    flowop = f"flowop write name=w,filesetname=s,iosize={PIECE},random"
    text = script(1, int(size * PIECE), ended(flowop, 200))
    for compat, wanted in [(None, touched), ("1.5", compatible)]:
        plan = lowered(tmp_path, text, compat)
        # Of zeros that are written over zeros nothing would be seen.
        plan["sets"][0]["zeros"] = plan["workers"][0]["source"]["ops"][0]["zeros"] = False
        untouched = {**plan, "workers": lowered(tmp_path, script(1, 1, LOOK), None)["workers"]}
        (before,), (after,) = perform(untouched)[1], perform(plan)[1]
        blocks = range(int(size))
        at = [slice(i * PIECE, (i + 1) * PIECE) for i in blocks]
        assert {i for i in blocks if before[at[i]] != after[at[i]]} == wanted
        assert before[int(size) * PIECE :] == after[int(size) * PIECE :]


LOOK = ended("flowop statfile name=a,filesetname=s", 1)


def test_the_last_piece_is_written_whole(tmp_path):
    flowop = f"flowop writewholefile name=w,filesetname=s,iosize={PIECE}"
    text = script(1, 5 * PIECE // 2, ended(flowop, 1))
    summary, (content,) = perform(lowered(tmp_path, text, None))
    assert summary["bytes"] == len(content) == 5 * PIECE // 2
    summary, (content,) = perform(lowered(tmp_path, text, "1.5"))
    assert summary["bytes"] == len(content) == 3 * PIECE
    # A whole file of whole pieces, and an empty one, are as they were.
    for size in (2 * PIECE, 0):
        summary, (content,) = perform(lowered(tmp_path, script(1, size, ended(flowop, 1)), "1.5"))
        assert summary["bytes"] == len(content) == size


def test_files_and_writes_are_zeros(tmp_path):
    flowops = f"flowop appendfile name=a,filesetname=s,iosize={PIECE},fd=1"
    # Each end counts, too.
    text = script(3, PIECE, ended(flowops, 4))
    _, files = perform(lowered(tmp_path, text, "1.5"))
    assert len(files) == 3 and all(not any(content) for content in files)
    assert sum(map(len, files)) == 5 * PIECE
    _, files = perform(lowered(tmp_path, text, None))
    assert all(any(content) for content in files)


def test_files_are_taken_in_turn(tmp_path):
    # Each file that is opened gets a byte: after as many as there are, all have one.
    flowops = "flowop openfile name=o,filesetname=s,fd=1 flowop appendfile name=a,iosize=1,fd=1"
    flowops = f"{flowops} flowop closefile name=c,fd=1 flowop finishoncount name=f,value=20,target=c"
    _, files = perform(lowered(tmp_path, script(20, 0, flowops), "1.5"))
    assert [len(content) for content in files] == [1] * 20
    _, files = perform(lowered(tmp_path, script(20, 0, flowops), None))
    assert sum(map(len, files)) == 20 and max(map(len, files)) > 1


def test_files_are_made_and_removed_in_turn(tmp_path):
    flowops = (
        "flowop deletefile name=d,filesetname=s flowop deletefile name=d,filesetname=s"
        " flowop createfile name=c,filesetname=s,fd=1 flowop closefile name=e,fd=1"
    )
    plan = lowered(tmp_path, script(9, 0, ended(flowops, 12)), "1.4")
    perform(plan)
    names = sorted(path.name for path in (tmp_path / "d/s").rglob("0*") if path.is_file())
    # Of nine the first six have gone in order, and of these the first three came back.
    assert names == [f"{n:08}" for n in (1, 2, 3, 7, 8, 9)]


@pytest.mark.slow
def test_threads_in_turn_never_have_the_same_file(tmp_path):
    flowops = (
        "flowop deletefile name=d,filesetname=s flowop createfile name=c,filesetname=s,fd=1"
        " flowop closefile name=e,fd=1"
    )
    text = script(500, 0, ended(flowops, 20_000)).replace("name=t {", "name=t,instances=4 {")
    summary, files = perform(lowered(tmp_path, text, "1.5"))
    assert len(files) == 500
    assert summary["steps"]["d"]["count"] == summary["steps"]["c"]["count"]


def test_nothing_is_brought_back_unless_it_is_asked_for(tmp_path):
    flowops = f"flowop write name=w,filesetname=s,iosize={PIECE},random"
    flowops += " flowop writewholefile name=x,fd=2,filesetname=s"
    plan = lowered(tmp_path, script(1, PIECE, flowops), None)
    flags = {"in_turn", "zeros", "skip_last", "whole_pieces"}
    assert not flags & {key for one in (*plan["sets"], *plan["workers"][0]["source"]["ops"]) for key in one}
