"""Flowops that tell values: print and testrandvar."""

from __future__ import annotations

import pytest

SCRIPT = """set mode quit alldone
set $x=cvar(type=normal,parameters=mean:500;sigma:20)
define flowop name=twice { flowop print name=q,value=7,iters=2 }
define process name=p { thread name=t,instances=3 {
  flowop testrandvar name=v,value=$x
  flowop twice name=g
  flowop hog name=h,value=1
  flowop finishoncount name=f,value=30000,target=h
} }
run
"""


def test_values_are_told_when_the_run_has_ended(loadstone, tmp_path):
    (tmp_path / "w.f").write_text(SCRIPT)
    done = loadstone("run", tmp_path / "w.f", "--on", "null:", "--out", tmp_path / "b")
    from loadstone.bundle import Bundle

    values = Bundle.read(tmp_path / "b").summary["values"]
    assert list(values) == ["v", "g.q"]
    drawn, printed = values["v"], values["g.q"]
    assert 30_000 <= drawn["count"] <= 30_003 and printed["count"] == 2 * drawn["count"]
    # Six standard errors of 30,000 draws.
    assert drawn["mean"] == pytest.approx(500, abs=6 * 20 / 173)
    assert drawn["deviation"] == pytest.approx(20, abs=6 * 20 / 245)
    assert drawn["least"] < 460 < 540 < drawn["most"]
    assert (printed["mean"], printed["deviation"], printed["first"]) == (7, 0, [7] * 8)
    said = next(line for line in done.stdout.splitlines() if line.startswith("value v: "))
    assert said.startswith(f"value v: {drawn['count']:,} times, mean ") and said.endswith(", ...")
    assert "value g.q" in done.stdout
    # They are no requests and no steps with times.
    assert "passed over" not in done.stderr
    assert list(Bundle.read(tmp_path / "b").summary["steps"]) == ["h"]
