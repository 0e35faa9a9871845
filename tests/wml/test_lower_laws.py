"""Random and custom variables as laws of plans."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadstone import wml
from loadstone.wml import _laws

LOOP = "\ndefine process name=p { thread name=t { flowop hog name=h,value=$x } }\nrun 1"


def variable(definition: str) -> dict[str, Any]:
    """The only variable of a script that draws $x."""
    script = wml.parse(f"set $x={definition}{LOOP}", "w.f")
    (found,) = wml.interpret(script, wml.Settings("/run/here")).plans[0]["variables"]
    assert found.pop("id") == "x"
    return found


def fault(definition: str) -> str:
    with pytest.raises(wml.WmlError) as caught:
        variable(definition)
    return caught.value.what


RANDOM = [
    ("type=uniform,min=10,mean=30", {"law": {"kind": "uniform", "low": 10, "high": 50}}),
    (
        "type=uniform,mean=30,round=4,seed=9",
        {"law": {"kind": "uniform", "low": 0, "high": 60}, "round": 4, "seed": 9},
    ),
    ("mean=3k", {"law": {"kind": "gamma", "shape": 1.5, "scale": 2048}}),
    (
        "type=gamma,mean=100,min=40,gamma=500",
        {"law": {"kind": "gamma", "shape": 0.5, "scale": 120, "shift": 40}},
    ),
    # Without a mean the shape is the mean.
    ("gamma=100", {"law": {"kind": "gamma", "shape": 0.1, "scale": 1}}),
    ("gamma=0,mean=7", {"law": {"kind": "uniform", "low": 7, "high": 7}}),
    ("mean=7,min=7", {"law": {"kind": "uniform", "low": 7, "high": 7}}),
    ("mean=30,seed=3,randsrc=urandom", {"law": {"kind": "gamma", "shape": 1.5, "scale": 20}}),
]


@pytest.mark.parametrize(("attributes", "wanted"), RANDOM, ids=[text for text, _ in RANDOM])
def test_randvar(attributes, wanted):
    found = variable(f"randvar({attributes})")
    assert found.keys() == wanted.keys()
    assert found["law"] == pytest.approx(wanted["law"])
    assert {**found, "law": 0} == {**wanted, "law": 0}


def test_tables_keep_their_rows_or_get_the_mean():
    rows = "randtable={{25,0,4},{75,4,8}}"
    assert variable(f"randvar(type=tabular,{rows})") == {
        "law": {
            "kind": "table",
            "rows": [{"share": 25, "low": 0, "high": 4}, {"share": 75, "low": 4, "high": 8}],
        }
    }
    # The mean of the rows is 5; that above min shall be 10.
    found = variable(f"randvar(type=tabular,min=2,mean=12,{rows})")
    assert found["law"]["rows"] == [
        {"share": 25, "low": 2, "high": 10},
        {"share": 75, "low": 10, "high": 18},
    ]
    assert _laws.average(found["law"]) == pytest.approx(12)


def test_fields_of_1_4():
    text = (
        "define randvar name=$x,type=uniform,min=1,mean=5\nset $m=9\nset $x.mean=$m\nset $m=70\nset $x.seed=4"
    )
    (found,) = wml.interpret(wml.parse(text + LOOP), wml.Settings("/run/here")).plans[0]["variables"]
    assert found == {"id": "x", "law": {"kind": "uniform", "low": 1, "high": 17}, "seed": 4}


CUSTOM = [
    ("erlang,parameters=shape:2;rate:0.5", {"kind": "gamma", "shape": 2, "scale": 2}),
    ("cvar-exponential,parameters=mean:100", {"kind": "exponential", "mean": 100}),
    ("exponential", {"kind": "exponential", "mean": 1}),
    ("gamma", {"kind": "gamma", "shape": 1.5, "scale": 4096 / 1.5}),
    ("lognormal,parameters=shape:.5;scale:8", {"kind": "lognormal", "mu": 8, "sigma": 0.5}),
    ('normal,parameters="mean: -4; sigma: 2"', {"kind": "normal", "mean": -4, "sigma": 2}),
    ("triangular,parameters=upper:10;mode:3", {"kind": "triangular", "low": 0, "high": 10, "mode": 3}),
    ("uniform,parameters=lower:1k;upper:1m", {"kind": "uniform", "low": 1024, "high": 1 << 20}),
    ("weibull,parameters=scale:4k", {"kind": "weibull", "shape": 1, "scale": 4096}),
    ("zipf,parameters=count:10", {"kind": "zipf", "count": 10, "exponent": 1}),
    ("pareto,parameters=scale:4k;shape:2", {"kind": "pareto", "scale": 4096, "shape": 2}),
    ('sequence,parameters="values:1k,2 3"', {"kind": "sequence", "values": [1024, 2, 3]}),
    (
        'empirical,parameters="rows:25 0 4k, 75 4k 1m"',
        {
            "kind": "table",
            "rows": [{"share": 25, "low": 0, "high": 4096}, {"share": 75, "low": 4096, "high": 1 << 20}],
        },
    ),
    (
        "hotcold,parameters=upper:100;hot:.1;share:.9",
        {
            "kind": "table",
            "rows": [{"share": 90, "low": 0, "high": 10}, {"share": 10, "low": 10, "high": 100}],
        },
    ),
]


@pytest.mark.parametrize(("text", "law"), CUSTOM, ids=[text for text, _ in CUSTOM])
def test_cvar(text, law):
    found = variable(f"cvar(type={text})")
    assert found["min"] == 0
    assert list(found["law"]) == list(law)
    for key, value in law.items():
        if key == "rows":
            for row, wanted in zip(found["law"][key], value, strict=True):
                assert row == pytest.approx(wanted)
        else:
            assert found["law"][key] == (value if isinstance(value, str) else pytest.approx(value))


def test_cvar_is_rounded_and_clamped():
    found = variable("cvar(type=normal,min=-5,max=9,round=2)")
    assert {key: found[key] for key in ("min", "max", "round")} == {"min": -5, "max": 9, "round": 2}


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ('scipy.beta,parameters="a:2;b:5;scale:100"', stats.beta(2, 5, scale=100)),
        ("expon,parameters=scale:8k", stats.expon(scale=8192)),
        ("cauchy", stats.cauchy()),
    ],
)
def test_distributions_of_scipy(text, law):
    values = np.array(variable(f"cvar(type={text})")["law"]["values"])
    n = len(values)
    assert n == 4097
    inner = np.linspace(0, 1, n)[1:-1]
    assert law.cdf(values[1:-1]) == pytest.approx(inner)
    assert law.cdf(values[[0, -1]]) == pytest.approx([1 / (2 * n), 1 - 1 / (2 * n)])


def test_polynomials():
    # A density of 3x^2 on 0..1 has the distribution function x^3.
    values = np.array(variable('cvar(type=polynomial,parameters="coefficients:0,0,3")')["law"]["values"])
    assert values**3 == pytest.approx(np.linspace(0, 1, 4097), abs=1e-4)
    assert (values[0], values[-1]) == (0, 1)


def test_distributions_of_other_packages(monkeypatch):
    def quantiles(n: int, top: float) -> list[float]:
        return [top * i / (n - 1) for i in range(n)]

    ramp = {"ramp": SimpleNamespace(quantiles=quantiles)}
    entries = SimpleNamespace(named=lambda _: list(ramp), load=lambda _, name: ramp.get(name))
    monkeypatch.setattr(_laws, "_entries", entries)
    _laws._installed.cache_clear()
    values = variable("cvar(type=ramp,parameters=top:8)")["law"]["values"]
    assert (len(values), values[0], values[-1]) == (4097, 0, 8)
    assert "fails with these parameters" in fault("cvar(type=ramp)")
    assert "not two or more finite numbers in ascending order" in fault("cvar(type=ramp,parameters=top:-1)")


FAULTS = [
    ("randvar(type=uniform,min=4)", "$x: type uniform needs mean="),
    (
        "cvar(type=triangular,parameters=mode:3)",
        "$x: lower, mode and upper of triangular are not in this order",
    ),
    ("cvar(type=erlang,parameters=rate:0)", "$x: parameter rate must be above 0"),
    (
        "cvar(type=normal,parameters=sigma:0)",
        "$x: a parameter of normal is 0 or less where it must be above 0",
    ),
    ("cvar(type=gamma,parameters=gamma:0)", "$x: a parameter of gamma is 0 or less where it must be above 0"),
    ("cvar(type=normal,min=4,max=3)", "$x: min 4 is above max 3"),
    ("cvar(type=zipf)", "$x: zipf needs the parameter count"),
    (
        "cvar(type=zipf,parameters=count:1.5)",
        "$x: count must be a whole number above 0, and exponent 0 or more",
    ),
    (
        'cvar(type=tabular,parameters="rows:50 1 2")',
        "$x: the percentages of a table must total 100; these are 50",
    ),
    ('cvar(type=tabular,parameters="rows:100 1")', "$x: rows has 2 numbers, and a row has 3"),
    ('cvar(type=sequence,parameters="values:1,a")', "$x: parameter values wants a number, not a"),
    (
        'cvar(type=polynomial,parameters="coefficients:1,-4")',
        "$x: the polynomial is negative between lower and upper, and cannot be a density",
    ),
    (
        'cvar(type=polynomial,parameters="coefficients:0")',
        "$x: the polynomial is 0 between lower and upper, and cannot be a density",
    ),
    ("cvar(type=scipy.beta,parameters=a:2)", "$x: scipy.beta needs the parameter b"),
    ("cvar(type=scipy.beta,parameters=c:2)", "$x: scipy.beta has no parameter c"),
    (
        "cvar(type=scipy.expon,parameters=scale:-1)",
        "$x: scipy.expon has no such distribution: a parameter is out of its range",
    ),
    (
        "cvar(type=hotcold,parameters=upper:9;hot:2)",
        "$x: hot must lie between 0 and 1, share from 0 to 1, and lower below upper",
    ),
    ("cvar(type=scipy.nothing)", "scipy.nothing is no type"),
    # Its quantiles take minutes, in which nothing ends them.
    ("cvar(type=scipy.ksone,parameters=n:1000000)", "scipy.ksone is no type"),
]


@pytest.mark.parametrize(("definition", "what"), FAULTS, ids=[text for text, _ in FAULTS])
def test_faults(definition, what):
    assert fault(definition) == what


LAWS = [
    ({"kind": "uniform", "low": 2, "high": 6}, 4),
    ({"kind": "exponential", "mean": 3}, 3),
    ({"kind": "gamma", "shape": 2, "scale": 3, "shift": 1}, 7),
    ({"kind": "lognormal", "mu": 0, "sigma": 1}, math.exp(0.5)),
    ({"kind": "triangular", "low": 0, "high": 6, "mode": 3}, 3),
    ({"kind": "weibull", "shape": 1, "scale": 5}, 5),
    ({"kind": "pareto", "scale": 2, "shape": 3}, 3),
    ({"kind": "sequence", "values": [1, 2, 6]}, 3),
    ({"kind": "quantiles", "values": [0, 1, 4]}, 1.5),
    ({"kind": "table", "rows": [{"share": 1, "low": 0, "high": 2}, {"share": 3, "low": 4, "high": 6}]}, 4),
]


@pytest.mark.parametrize(("law", "mean"), LAWS, ids=[law["kind"] for law, _ in LAWS])
def test_means_and_multiples(law, mean):
    assert _laws.average(law) == pytest.approx(mean)
    assert _laws.average(_laws.scaled(law, 2.5)) == pytest.approx(2.5 * mean)


def test_documentation_has_all_types(root):
    page = (root / "docs/reference/filebench.md").read_text()
    for name, parameters in wml.CVARS.items():
        rows = page[page.index("### Variables") :].splitlines()
        (row,) = [line for line in rows if re.match(rf"- (`\w+`, )?`{name}`", line)]
        assert all(f"`{one}`" in row for one in parameters), name


def test_the_mean_of_zipf():
    assert _laws.average({"kind": "zipf", "count": 2, "exponent": 1}) == pytest.approx(1 / 3)
