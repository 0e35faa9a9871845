"""Variables of scripts as the engine draws them, against their own distribution functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadstone import Error, wml
from loadstone.plan import draw
from loadstone.wml import _laws

ALPHA = 0.001
"""Share of right laws that a test would refuse, if its seed were drawn anew."""

DRAWS, CELLS, SEED = 200_000, 50, 20_260

LOOP = "\ndefine process name=p { thread name=t { flowop hog name=h,value=$x } }\nrun 1"


def variable(definition: str) -> dict[str, Any]:
    """The only variable of a script that draws $x."""
    script = wml.parse(f"set $x={definition}{LOOP}", "w.f")
    (found,) = wml.interpret(script, wml.Settings("/run/here")).plans[0]["variables"]
    return found


def follows(definition: str, cdf: Callable[[Any], Any]) -> None:
    """Draws fall evenly between the quantiles of their law (chi-square)."""
    share = cdf(draw(variable(definition), DRAWS, seed=SEED))
    counts = np.bincount(np.minimum((share * CELLS).astype(int), CELLS - 1), minlength=CELLS)
    p = stats.chisquare(counts).pvalue
    assert p > ALPHA, f"{definition}: p {p:.2g}, {counts}"


def chance(definition: str, probabilities: Any) -> None:
    """Whole numbers from 0 on come as often as they should (chi-square)."""
    drawn = draw(variable(definition), DRAWS, seed=SEED)
    counts = np.bincount(drawn.astype(int), minlength=len(probabilities))
    assert (drawn == drawn.astype(int)).all() and len(counts) == len(probabilities)
    p = stats.chisquare(counts, DRAWS * np.asarray(probabilities)).pvalue
    assert p > ALPHA, f"{definition}: p {p:.2g}, {counts}"


def steps(*rows: tuple[float, float, float]) -> Callable[[Any], Any]:
    """The distribution function of a table: share, least and greatest value of each row."""
    return lambda x: sum(share * np.clip((x - low) / (high - low), 0, 1) for share, low, high in rows)


LAWS: list[tuple[str, Callable[[Any], Any]]] = [
    ("randvar(type=uniform,min=10,mean=30)", stats.uniform(10, 40).cdf),
    ("randvar(type=gamma,mean=100,min=40,gamma=500)", stats.gamma(0.5, 40, 120).cdf),
    ("randvar(type=tabular,randtable={{30,0,4},{70,8,64}})", steps((0.3, 0, 4), (0.7, 8, 64))),
    ("cvar(type=erlang,parameters=shape:3;rate:0.5)", stats.erlang(3, scale=2).cdf),
    ("cvar(type=exponential,parameters=mean:100)", stats.expon(scale=100).cdf),
    ("cvar(type=gamma,parameters=mean:30;gamma:1.5)", stats.gamma(1.5, scale=20).cdf),
    ("cvar(type=lognormal,parameters=shape:.5;scale:8)", stats.lognorm(0.5, scale=np.exp(8)).cdf),
    ("cvar(type=normal,parameters=mean:50;sigma:4,min=-1k)", stats.norm(50, 4).cdf),
    ("cvar(type=triangular,parameters=upper:10;mode:3)", stats.triang(0.3, 0, 10).cdf),
    ("cvar(type=uniform,parameters=lower:1k;upper:1m)", stats.uniform(1024, (1 << 20) - 1024).cdf),
    ("cvar(type=weibull,parameters=shape:1.5;scale:4k)", stats.weibull_min(1.5, scale=4096).cdf),
    ('cvar(type=tabular,parameters="rows:25 0 4k, 75 8k 1m")', steps((0.25, 0, 4096), (0.75, 8192, 1 << 20))),
    ('cvar(type=polynomial,parameters="coefficients:0,0,3")', lambda x: x**3),
    ('cvar(type=polynomial,parameters="coefficients:1,2;upper:2")', lambda x: (x + x**2) / 6),
    ("cvar(type=pareto,parameters=scale:4k;shape:1.2)", stats.pareto(1.2, scale=4096).cdf),
    ("cvar(type=hotcold,parameters=upper:100;hot:.1;share:.9)", steps((0.9, 0, 10), (0.1, 10, 100))),
    ('cvar(type=scipy.beta,parameters="a:2;b:5;scale:100")', stats.beta(2, 5, scale=100).cdf),
    ("cvar(type=expon,parameters=scale:8k)", stats.expon(scale=8192).cdf),
    ("cvar(type=cauchy,min=-1t)", stats.cauchy().cdf),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "cdf"), LAWS, ids=[text for text, _ in LAWS])
def test_draws_follow_their_law(definition, cdf):
    follows(definition, cdf)


def test_a_law_that_is_slightly_wrong_is_found():
    with pytest.raises(AssertionError, match="p "):
        follows("cvar(type=exponential,parameters=mean:100)", stats.expon(scale=102).cdf)


def test_whole_numbers_come_as_often_as_they_should():
    weights = np.arange(1, 41) ** -0.9
    chance("cvar(type=zipf,parameters=count:40;exponent:.9)", weights / weights.sum())
    # Rounded to multiples of 1, the halves at both ends have half of the others.
    chance("cvar(type=uniform,parameters=lower:0;upper:4,round=1)", [1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8])


def test_a_sequence_comes_in_its_order():
    found = draw(variable('cvar(type=sequence,parameters="values:1k,2 3")'), 7)
    assert found.tolist() == [1024, 2, 3, 1024, 2, 3, 1024]


def test_a_distribution_of_another_package(tmp_path: Path, monkeypatch):
    (tmp_path / "slopes.py").write_text(
        "class Slope:\n"
        "    @staticmethod\n"
        "    def quantiles(n, top):\n"
        "        return [top * (i / (n - 1)) ** 0.5 for i in range(n)]\n"
    )
    about = tmp_path / "slopes-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slopes\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[loadstone.variables]\nslope = slopes:Slope\n")
    monkeypatch.syspath_prepend(tmp_path)
    _laws._installed.cache_clear()
    try:
        follows("cvar(type=slope,parameters=top:64k)", lambda x: (x / 65536) ** 2)
    finally:
        _laws._installed.cache_clear()
        sys.modules.pop("slopes", None)


def test_later_laws_are_drawn_at_their_time():
    laws = [{"kind": "sequence", "values": [one]} for one in (1, 2, 3)]
    later = [{"from_ns": 10**9, "law": laws[1]}, {"from_ns": 2 * 10**9, "law": laws[2]}]
    one = {"law": laws[0], "later": later}
    assert [draw(one, 1, at=at)[0] for at in (0, 0.99, 1, 1.5, 2, 99)] == [1, 1, 2, 2, 3, 3]


def test_what_no_plan_may_hold_is_not_drawn():
    with pytest.raises(Error, match="mean is -1; use a number above 0"):
        draw({"law": {"kind": "exponential", "mean": -1}}, 1)
    with pytest.raises(Error, match="unknown variant `cube`"):
        draw({"law": {"kind": "cube"}}, 1)
