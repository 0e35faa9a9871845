"""Random variables whose parameters change while the load runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loadstone import wml, workload
from loadstone.plan import RunOptions, check

LOOP = "\ndefine process name=p { thread name=t { flowop hog name=h,value=$x } }\nrun 1"


def variable(definition: str, before: str = "") -> dict[str, Any]:
    """The only variable of a script that draws $x."""
    script = wml.parse(f"{before}set $x={definition}{LOOP}", "w.f")
    # Printed and read again it is the same.
    assert wml.print_script(wml.parse(wml.print_script(script), "w.f")) == wml.print_script(script)
    (found,) = wml.interpret(script, wml.Settings("/run/here")).plans[0]["variables"]
    return found


def laws(definition: str, before: str = "") -> list[tuple[int, dict[str, Any]]]:
    return [(one["from_ns"], one["law"]) for one in variable(definition, before)["later"]]


def test_what_a_stage_does_not_name_stays():
    found = laws('randvar(type=uniform,min=1k,mean=4k,later="500ms: mean=8k; 2min: min=2k; 1h: mean=3k")')
    assert found == [
        (5 * 10**8, {"kind": "uniform", "low": 1024, "high": 15 * 1024}),
        (120 * 10**9, {"kind": "uniform", "low": 2048, "high": 14 * 1024}),
        (3600 * 10**9, {"kind": "uniform", "low": 2048, "high": 4096}),
    ]


def test_gamma_and_tables():
    assert laws('randvar(mean=3k,later="1.5s: mean=6k, gamma=1000")') == [
        (1_500_000_000, {"kind": "gamma", "shape": 1, "scale": 6144})
    ]
    ((at, law),) = laws('randvar(type=tabular,randtable={{50,0,4},{50,4,8}},later="7: mean=8")')
    assert (at, [row["high"] for row in law["rows"]]) == (7 * 10**9, [8, 16])


def test_custom_variables_may_become_others():
    text = (
        'cvar(type=normal,parameters=mean:9;sigma:2,later="1s: mean=5; 2s: type=sequence, values=1k 2k; 3s: '
        'values=7; 4s: type=normal, sigma=3")'
    )
    assert laws(text) == [
        (10**9, {"kind": "normal", "mean": 5, "sigma": 2}),
        (2 * 10**9, {"kind": "sequence", "values": [1024, 2048]}),
        (3 * 10**9, {"kind": "sequence", "values": [7]}),
        (4 * 10**9, {"kind": "normal", "mean": 0, "sigma": 3}),
    ]


def test_values_of_other_variables():
    ((_, law),) = laws('cvar(type=exponential,later="5s: mean=$big")', "set $big=64k\n")
    assert law == {"kind": "exponential", "mean": 65536}


FAULTS = [
    ('randvar(mean=1,later="")', "later holds nothing"),
    ('randvar(mean=1,later="mean=5")', "later wants a time and a colon, not mean=5"),
    ('randvar(mean=1,later="5m: mean=5")', "later wants a time and a colon, not 5m: mean=5"),
    ('randvar(mean=1,later="5s:")', "later wants name=value, not nothing"),
    ('randvar(mean=1,later="5s: mean")', "later wants name=value, not mean"),
    ('randvar(mean=1,later="0s: mean=4")', "0s is no moment after the begin of a run"),
    ('randvar(mean=1,later="99999999999h: mean=4")', "99999999999h is no moment after the begin of a run"),
    (
        'randvar(mean=1,later="5s: mean=4; 5000ms: mean=3")',
        "5000ms comes after 5s in later, and is no later time",
    ),
    ("randvar(mean=1,later=60)", "later wants a string of times and parameters, not 60"),
    ("randvar(mean=1,later)", "later needs a value"),
    ('randvar(mean=1,later="5s: round=4")', "$x: from 5s on: round does not change"),
    ('randvar(mean=1,later="5s: mean=-4")', "$x: from 5s on: mean must be 0 or more, not -4"),
    ('randvar(mean=9,min=5,later="5s: mean=4")', "$x: from 5s on: the mean 4 is below min 5"),
    ('randvar(mean=9,later="5s: mean=a")', "$x: from 5s on: parameter mean wants a number, not a"),
    ('cvar(type=zipf,parameters=count:9,later="5s: mean=1")', "$x: from 5s on: zipf has no parameter mean"),
    ('cvar(type=normal,later="5s: type=zipf")', "$x: from 5s on: zipf needs the parameter count"),
]


@pytest.mark.parametrize(("definition", "what"), FAULTS, ids=[text for text, _ in FAULTS])
def test_faults(definition, what):
    with pytest.raises(wml.WmlError) as caught:
        variable(definition)
    assert caught.value.what == what


def test_a_run_draws_what_it_should_at_each_time():
    script = wml.parse(
        'set $n=cvar(type=uniform,parameters=lower:1k;upper:3k,later="1s: lower=64k, upper=96k")\n'
        "define file name=f,path=$dir,size=1m,prealloc\n"
        "define process name=p { thread name=t { flowop read name=r,filesetname=f,iosize=$n,random\n"
        "  flowop delay name=d,value=0.001 } }\nrun 2",
        "w.f",
    )
    (plan,) = wml.interpret(script, wml.Settings("null:", RunOptions(interval=0.5))).plans
    ops = workload.execute(check(plan))["ops"]
    reads = np.asarray(ops["op"]) == 0
    size = {
        int(i): int(b) / int(n)
        for i, b, n in zip(ops["interval"][reads], ops["bytes"][reads], ops["count"][reads], strict=True)
    }
    assert size.keys() >= {0, 1, 2, 3}
    for interval in range(4):
        low, high = (1 << 10, 3 << 10) if interval < 2 else (64 << 10, 96 << 10)
        # Hundreds of draws: far from either end, and the law of the other half is farther.
        assert low < size[interval] < high
