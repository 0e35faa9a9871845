"""Scripts that can be read but not run: what is said, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loadstone
from loadstone import wml
from loadstone.plan import RunOptions


def blocks(name: str) -> list[Any]:
    """The cases of a text file: after ``==== name`` a script, below ``----`` what is said of it."""
    found = []
    for case in (Path(__file__).parent / name).read_text().split("\n==== ")[1:]:
        title, _, rest = case.partition("\n")
        script, _, said = rest.partition("\n----\n")
        found.append(pytest.param(script, said.strip("\n"), id=title))
    return found


def fault(text: str, **more: Any) -> loadstone.Error:
    with pytest.raises(loadstone.Error) as caught:
        wml.interpret(wml.parse(text, "w.f"), wml.Settings("/run/here", RunOptions(**more)))
    return caught.value


@pytest.mark.parametrize(("script", "said"), blocks("unrunnable.txt"))
def test_unrunnable(script, said):
    assert str(fault(script)) == said


HEAD = """define fileset name=fs,path=$dir,entries=9,dirwidth=3,prealloc
define fileset name=gs,path=$dir,entries=9,dirwidth=3,prealloc
define process name=p { thread name=t {
"""
TAIL = "\n} }\nrun 1\n"
PROCESS = "define process name=p { thread name=t { flowop delay name=d } }\nrun 1\n"

FINE = [
    # What is not there again: the thread ends by itself.
    "flowop openfile name=a,filesetname=fs,fd=1 flowop finishoncount name=f,value=1",
    "flowop openfile name=a,filesetname=fs,opennext flowop closefile name=b,fd=7",
    "flowop openfile name=a,filesetname=fs,fd=1 flowop deletefile name=b,fd=1",
    "flowop openfile name=a,filesetname=fs,fd=1 flowop closefile name=c,fd=1 flowop deletefile name=b,fd=1",
    "flowop openfile name=a,filesetname=fs,fd=1 flowop deletefile name=b,fd=1 flowop closefile name=c,fd=1",
    "flowop write name=a,filesetname=fs,iosize=1,fd=1 flowop fsync name=b,fd=1 flowop closefile name=c,fd=1",
    "flowop openfile name=a,filesetname=fs,fd=1 flowop closefile name=b,fd=1"
    " flowop openfile name=c,filesetname=gs,fd=1 flowop read name=d,fd=1,iosize=1"
    " flowop closefile name=e,fd=1",
]


@pytest.mark.parametrize("text", FINE)
def test_loops_that_can_be_run(text):
    assert wml.interpret(wml.parse(HEAD + text + TAIL), wml.Settings("/run/here")).plans


def test_the_file_of_a_slot_is_that_of_the_set_it_was_opened_in():
    plan = wml.interpret(wml.parse(HEAD + FINE[-1] + TAIL), wml.Settings("/run/here")).plans[0]
    assert [op.get("set") for op in plan["workers"][0]["source"]["ops"]] == ["fs", None, "gs", "gs", None]


def test_variables_that_no_script_has():
    error = fault("set $rate=1\n" + PROCESS, variables={"rat": "2"})
    assert str(error) == "`variables` rat: w.f has no variable $rat; did you mean $rate?"


def test_readonly_and_writeonly():
    text = "define fileset name=fs,path=$dir,entries=9,dirwidth=3,%s\n" + HEAD[HEAD.index("define process") :]
    for flag, flowop, what in [
        ("readonly", "write", "flowop write writes to fs, which is readonly"),
        ("writeonly", "read", "flowop read reads from fs, which is writeonly"),
    ]:
        error = fault(text % flag + f"flowop {flowop} name=a,filesetname=fs,iosize=1" + TAIL)
        assert isinstance(error, wml.WmlError) and error.what == what
    for flag, flowop in [("readonly", "read"), ("writeonly", "write"), ("readonly=false", "write")]:
        loop = text % flag + f"flowop {flowop} name=a,filesetname=fs,iosize=1" + TAIL
        assert wml.interpret(wml.parse(loop), wml.Settings("/run/here")).plans


def test_a_flowop_of_several_composites_is_no_target():
    text = """define flowop name=c { flowop delay name=r }
        define process name=p { thread name=t { flowop c name=x flowop c name=y
          flowop opslimit name=l,target=r } }
        run 1"""
    error = fault(text)
    assert isinstance(error, wml.WmlError) and (error.what, error.help) == (
        "r may be x.r or y.r",
        "write one of these",
    )


def test_composites_that_multiply():
    lines = ["define flowop name=c0 { flowop delay name=d }"]
    lines += [
        f"define flowop name=c{i} {{ flowop c{i - 1} name=a flowop c{i - 1} name=b }}" for i in range(1, 40)
    ]
    text = "\n".join(lines) + "\ndefine process name=p { thread name=t { flowop c39 name=x } }\nrun 1"
    assert "composite flowops make more than 100,000 flowops of this script" in str(fault(text))


def chained(depth: int, attributes: str = "") -> str:
    lines = ["define flowop name=c0 { flowop delay name=d }"]
    lines += [f"define flowop name=c{i} {{ flowop c{i - 1} name=a{attributes} }}" for i in range(1, depth)]
    return (
        "\n".join(lines)
        + f"\ndefine process name=p {{ thread name=t {{ flowop c{depth - 1} name=x }} }}\nrun 1"
    )


def test_composites_that_are_deep():
    assert "composite flowops are nested more than 64 deep" in str(fault(chained(65)))
    # Each level repeats, which must not take twice as long for each.
    assert wml.interpret(wml.parse(chained(64, ",iters=2")), wml.Settings("/run/here")).plans


LARGE = [
    ("set $x=1e300 set $y=$x*$x\n" + PROCESS, "the result is too large a number"),
    ("set $x=4g set $y=$x*$x*$x\n" + PROCESS, "the result is too large a number"),
    (PROCESS.replace("run 1", "run 1e10"), "w.f: a run takes 9,000,000,000 s at most, not 10,000,000,000"),
    (
        PROCESS.replace("delay", "fsync").replace("name=d", "name=d,fd=4096"),
        "fd must be below 4096, not 4096",
    ),
    (
        "set $x=randvar(mean=1e308,gamma=1)\n" + PROCESS.replace("name=d", "name=d,value=$x"),
        "$x: its parameters are too far apart: one of its law's is no finite number",
    ),
    (
        "set $x=cvar(type=weibull,parameters=shape:0.001)\n"
        "define fileset name=a,path=$dir,dirwidth=2,entries=$x\n" + PROCESS,
        "$x has no mean",
    ),
]


@pytest.mark.parametrize(("text", "what"), LARGE, ids=[what for _, what in LARGE])
def test_numbers_that_are_too_large(text, what):
    assert what in str(fault(text))
