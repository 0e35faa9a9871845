"""The examples run as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_notebook_runs_and_uses_only_public_names(root, tmp_path):
    source = (root / "examples/notebook.py").read_text()
    assert not re.findall(r"(?:import|from|\.)\s*_\w+", source)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, root / "examples/notebook.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "106,099 requests drawn" in done.stdout
    assert "requests/s with a 99th percentile latency of" in done.stdout
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


@pytest.fixture(scope="module")
def demo(request, tmp_path_factory):
    """The demo, faster than its users see it."""
    out = tmp_path_factory.mktemp("demo") / "out"
    environment = {**os.environ, "DEMO_OUT": str(out), "DEMO_PACE": "x8"}
    root = request.config.rootpath
    done = subprocess.run(
        ["bash", root / "examples/demo.sh"], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


def test_the_demo_removes_nothing_of_others(root, tmp_path):
    (tmp_path / "report.html").write_text("mine")
    environment = {**os.environ, "DEMO_OUT": str(tmp_path), "LOADSTONE": "false"}
    done = subprocess.run(
        ["bash", root / "examples/demo.sh"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1 and "holds files that the demo did not make" in done.stderr
    assert (tmp_path / "report.html").read_text() == "mine"


@pytest.mark.slow
def test_demo_tells_where_the_report_is(demo):
    out, said = demo
    assert str(out / "report.html") in said.splitlines()[-1]
    assert (out / "report.html").stat().st_size > 1_000_000
    assert not list(out.glob("*.img")), "the target is taken away"


@pytest.mark.slow
def test_demo_goes_the_whole_way(demo):
    """Trace to model to load to verdict: every run is whole, and what was measured is in the bundle."""
    out, said = demo
    series = json.loads((out / "evaluation/bundle.json").read_text())
    assert [run["role"] for run in series["runs"]] == ["replay", "model"] * 3
    summary = json.loads((out / "evaluation/summary.json").read_text())
    assert summary["usable"] >= 6, summary["distances"]
    requests = set()
    for run in series["runs"]:
        told = json.loads((out / "evaluation" / run["path"] / "summary.json").read_text())
        assert not told["partial"]
        assert told["errors"] == told["short"] == 0
        requests.add(told["requests"])
    # A model keeps the number of requests of every window, so all runs have as many as the trace.
    assert requests == {106_099}
    for heading in ("How faithful is the model?", "Trace and generated load", "Phases of the model"):
        assert heading in (out / "report.html").read_text()
    assert "reads" in said
