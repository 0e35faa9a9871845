"""Scripts whose results are kept."""

from __future__ import annotations

import json

import pytest

from loadstone.bundle import Bundle, Series
from loadstone.workload import job, run

SCRIPT = """define fileset name=s,path=$dir,entries=4,dirwidth=3,prealloc,size=8k
define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=4k,random } }
"""


@pytest.mark.slow
def test_several_runs_make_one_bundle(loadstone, tmp_path):
    (tmp_path / "w.f").write_text(SCRIPT + 'echo "one" run 1 echo "two" psrun -1 2 echo "end"')
    given = ["--on", tmp_path / "d", "--out", tmp_path / "b", "--interval", "500ms"]
    done = loadstone("run", tmp_path / "w.f", *given)
    said = done.stdout.splitlines()
    assert (said[0], said[-2], said[-1]) == ("one", "end", f"bundle: {tmp_path / 'b'}")
    assert said.index("two") < next(i for i, line in enumerate(said) if line.startswith("window 2"))
    series = Series.read(tmp_path / "b")
    assert (series.kind, [one["name"] for one in series.runs]) == ("script", ["run1", "run2"])
    first, second = series.bundles()
    assert "windows" not in first.summary
    assert [one["to_ns"] for one in second.summary["windows"]] == [10**9, 2 * 10**9]
    # Both windows together are the run, but for what ended after it.
    parts = sum(one["requests"] for one in second.summary["windows"])
    assert 0.9 * second.summary["requests"] < parts <= second.summary["requests"]
    figures = series.summary["figures"]
    assert [one["requests"] for one in figures] == [
        first.summary["requests"],
        second.summary["requests"],
    ]
    loadstone("report", tmp_path / "b", "-o", tmp_path / "r.html")
    assert "exists" in loadstone("run", tmp_path / "w.f", *given, status=1).stderr


def test_a_bundle_of_one_run_has_its_windows(loadstone, tmp_path):
    (tmp_path / "w.f").write_text(SCRIPT + "psrun 1 2")
    loadstone("run", tmp_path / "w.f", "--on", tmp_path / "d", "--out", tmp_path / "b")
    windows = Bundle.read(tmp_path / "b").summary["windows"]
    assert [(one["name"], one["from_ns"], one["to_ns"]) for one in windows] == [
        ("1", 0, 10**9),
        ("2", 0, 2 * 10**9),
    ]
    assert windows[0]["requests"] > 0 and windows[0]["service_ns"]["count"] == windows[0]["requests"]


def test_the_list_ends_with_a_run_that_fails(loadstone, tmp_path):
    more = (
        "run 1\ndefine process name=q { thread name=u { flowop deletefile name=d,filesetname=s } }\n"
        'run 9\necho "never" run 9'
    )
    (tmp_path / "w.f").write_text(SCRIPT + more)
    given = ["--on", tmp_path / "d", "--out", tmp_path / "b", "--json"]
    done = loadstone("run", tmp_path / "w.f", *given, status=1)
    why = "found no file that it could use"
    assert why in done.stderr and "never" not in done.stderr
    told = json.loads(done.stdout)
    assert len(told["runs"]) == 2 and told["partial"] and why in told["failure"]
    series = Series.read(tmp_path / "b")
    assert series.summary["partial"] and [one["name"] for one in series.summary["figures"]] == ["run1"]
    assert why in series.bundles()[1].summary["failure"]


def test_results_that_a_script_writes_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.f").write_text(SCRIPT + 'run 1 run 1 stats dump "out.json"')
    found = job("w.f", tmp_path / "d")
    seen: list[int] = []
    run(found, "b", on_done=lambda summary: seen.append(summary["requests"]))
    assert len(seen) == 2 and json.loads((tmp_path / "d/out.json").read_text())["requests"] == seen[1]
