"""Fitting until the error is met."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loadstone
from loadstone import model as models

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kinds of hours, with sizes that no power of two tells."""
    path = tmp_path_factory.mktemp("target") / "two.spc"
    rows = []
    for i in range(20_000):
        busy = (i // 2000) % 2
        size = (12288 if i % 3 else 20480) if busy else 4096
        rows.append(f"0,{(i * 7919 % 100_003) * 8},{size},{'rw'[busy]},{i * 0.01:.3f}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_it_refines_until_the_error_is_met(trace: Path) -> None:
    seen: list[models.Step] = []
    fitted, steps = models.refine(trace, 0.05, progress=seen.append)
    assert seen == steps and steps[-1].error <= 0.05 < steps[0].error
    assert steps[0].rule("size") == "linear:1048576" and steps[-1].rule("size") != "linear:1048576"
    assert steps[-1].window < steps[0].window and steps[-1].group < steps[0].group
    # What is said is what a check of the model says.
    found = models.check(fitted, trace)
    assert max(row["ks"] for row in found["dimensions"] if row["dimension"] in ("op", "size")) <= 0.05
    assert all(rms is None or rms <= 0.05 for rms in found["over_time"].values())


@pytest.mark.slow
def test_a_coarse_error_is_met_by_a_smaller_model(trace: Path) -> None:
    _, coarse = models.refine(trace, 0.9)
    _, fine = models.refine(trace, 0.05)
    assert len(coarse) < len(fine) and coarse[-1].bytes < fine[-1].bytes


@pytest.mark.slow
def test_what_cannot_be_met_says_so_and_writes_the_best(
    loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "a.mdh"
    done = loadstone("model", "fit", TRACE, "-o", out, "--target-error", "0.001", "--json", status=1)
    found = json.loads(done.stdout)
    assert "an error of 0.1% was not met" in done.stderr and out.exists()
    finer = loadstone("model", "fit", TRACE, "-o", tmp_path / "b", "--target-error", "0.01%", status=1)
    assert "an error of 0.01% was not met" in finer.stderr
    assert found["error"] == min(step["error"] for step in found["steps"]) > 0.001


def test_other_choices_and_it_do_not_go_together(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    done = loadstone(
        "model", "fit", TRACE, "-o", tmp_path / "a", "--target-error", "0.1", "--window", "1s", status=2
    )
    assert "--window" in done.stderr


def test_an_error_is_a_share() -> None:
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(loadstone.Error, match="makes no sense"):
            models.refine(TRACE, wrong)
