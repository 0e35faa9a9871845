"""Position sets of 1.4: lowered, and run on files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadstone import wml, workload
from loadstone.bundle.write import summarise
from loadstone.plan import RunOptions, check

SCRIPT = """define posset name=ps,type=rnd,entries=8,seed=3,max=256k
define file name=f,path=$dir,size=%s,prealloc
define process name=p { thread name=t { flowop %s name=o,filesetname=f,fd=1,%spossetname=ps } }
run 1
"""


def lowered(text: str, **more: Any) -> wml.Interpretation:
    return wml.interpret(wml.parse(text, "w.f"), wml.Settings("/run/here", RunOptions(**more)))


def positions(found: wml.Interpretation) -> list[int]:
    (variable,) = found.plans[0]["variables"]
    rows = variable["law"]["rows"]
    assert {row["share"] for row in rows} == {1} and all(row["low"] == row["high"] for row in rows)
    return [row["low"] for row in rows]


def test_a_set_is_drawn_once():
    found = lowered(SCRIPT % ("1m", "read", "iosize=4k,random,"))
    (op,) = found.plans[0]["workers"][0]["source"]["ops"]
    assert op["position"] == {"variable": "ps"} and "random" not in op
    at = positions(found)
    assert len(at) == 8 and len(set(at)) > 4
    assert all(0 <= one < 256 << 10 and one % 512 == 0 for one in at)
    assert at == positions(lowered(SCRIPT % ("1m", "read", "iosize=4k,"), seed=7)), "has a seed of its own"
    text = (SCRIPT % ("1m", "read", "iosize=4k,")).replace(",seed=3", "").replace(",entries=8", "")
    assert positions(lowered(text, seed=1)) != positions(lowered(text, seed=2))
    assert len(positions(lowered(text))) == 512


def test_reads_beyond_the_end_are_warned_of():
    found = lowered(SCRIPT % ("64k", "read", "iosize=4k,"))
    end = max(positions(found)) + 4096
    what = f"files of f have 65536 bytes, and ps goes to byte {end}: reads beyond the end count as short"
    assert [one.what for one in found.warnings if "short" in one.what] == [what]
    assert not lowered(SCRIPT % ("64k", "write", "iosize=4k,")).warnings


def test_sets_that_cannot_be_drawn():
    for old, new, what in [
        ("entries=8", "entries=0", "a position set has 1 to 65,536 entries, not 0"),
        ("entries=8", "entries=1m", "a position set has 1 to 65,536 entries, not 1,048,576"),
        ("max=256k", "max=0", "position set ps needs max= above 0"),
        ("possetname=ps", "possetname=$p", "there is no position set pt"),
    ]:
        with pytest.raises(wml.WmlError) as caught:
            lowered("set $p=pt\n" + (SCRIPT % ("1m", "read", "iosize=4k,")).replace(old, new))
        assert caught.value.what == what


def run(tmp_path: Path, text: str) -> tuple[dict[str, Any], list[int]]:
    found = wml.interpret(wml.parse(text, "w.f"), wml.Settings(str(tmp_path / "d")))
    plan = check(found.plans[0])
    return summarise(plan, workload.execute(plan)), positions(found)


def test_writes_go_to_the_positions_and_nowhere_else(tmp_path):
    # The same seed makes the same file; a run that only looks at it leaves it as it was.
    stat = (SCRIPT % ("1m", "statfile", "")).replace(",possetname=ps", "")
    found = wml.interpret(wml.parse(stat, "w.f"), wml.Settings(str(tmp_path / "d")))
    workload.execute(check(found.plans[0]))
    (file,) = [path for path in (tmp_path / "d/f").rglob("*") if path.is_file() and path.name != ".loadstone"]
    before = file.read_bytes()
    summary, at = run(tmp_path, (SCRIPT % ("1m", "write", "iosize=512,")).replace("run 1", "run 1"))
    assert summary["steps"]["o"]["count"] > 100 and summary["errors"] + summary["short"] == 0
    after = file.read_bytes()
    assert len(after) == len(before) == 1 << 20
    changed = {i for i in range(0, len(before), 512) if before[i : i + 512] != after[i : i + 512]}
    assert changed == set(at)


def test_reads_within_the_file_are_whole_and_those_beyond_are_short(tmp_path):
    summary, _ = run(tmp_path, SCRIPT % ("1m", "read", "iosize=4k,"))
    assert summary["bytes"] == 4096 * summary["requests"] > 0 and summary["short"] == 0
    summary, at = run(tmp_path, SCRIPT % ("128k", "read", "iosize=4k,"))
    beyond = sum(one + 4096 > 128 << 10 for one in at) / len(at)
    assert 0 < beyond < 1
    assert summary["short"] / summary["requests"] == pytest.approx(beyond, abs=0.1)


def test_direct_transfers_begin_at_whole_blocks(tmp_path):
    text = (SCRIPT % ("1m", "read", "iosize=4k,directio,")).replace("fd=1,", "")
    summary, at = run(tmp_path, text)
    assert any(one % 4096 for one in at)
    if "EINVAL" in summary["steps"]["o"]["errors"]:
        pytest.skip("this file system knows no direct I/O")
    assert summary["errors"] + summary["short"] == 0
