"""Errors as a tree of classes with attributes, which callers choose by and no text needs to be read for."""

from __future__ import annotations

import ast
import errno
import json
import pickle

import pytest

import loadstone
from loadstone import OptionError, RunOptions, errors, model, trace
from loadstone.plan import parts
from loadstone.plan.files import load_plan

TREE = {
    "OptionError": ("Error", "ValueError"),
    "TraceError": ("Error",),
    "ModelError": ("Error",),
    "DatasetError": ("Error",),
    "PlanError": ("Error",),
    "StudyError": ("Error",),
    "RunError": ("Error",),
    "Kept": ("RunError",),
}


@pytest.mark.parametrize("name", TREE)
def test_the_tree_is_public_and_documented(name):
    found = getattr(loadstone, name)
    assert tuple(base.__name__ for base in found.__bases__) == TREE[name]
    assert name in loadstone.__all__
    assert name in errors.__doc__
    assert found.__doc__


def test_a_trace_says_kind_file_and_line(tmp_path):
    path = tmp_path / "t.spc"
    path.write_text("0,1,512,R,0\n0,x,512,R,1\n")
    with pytest.raises(loadstone.TraceError) as caught:
        trace.describe(path, format="spc")
    error = caught.value
    assert (error.kind, error.path, error.line, error.byte) == ("malformed", str(path), 2, None)
    path.write_bytes(b"\x07tae" + bytes(36))
    with pytest.raises(loadstone.TraceError) as caught:
        trace.describe(path, format="blktrace")
    assert (caught.value.kind, caught.value.byte) == ("truncated", 0)


def test_a_file_that_is_not_there_has_the_systems_number(tmp_path):
    with pytest.raises(loadstone.TraceError) as caught:
        trace.describe(tmp_path / "none.spc")
    assert (caught.value.kind, caught.value.errno) == ("io", errno.ENOENT)


def test_a_model_says_its_kind(tmp_path):
    path = tmp_path / "m.mdh"
    path.write_bytes(b"no model at all")
    with pytest.raises(loadstone.ModelError) as caught:
        model.Model.load(path)
    assert caught.value.kind == "damaged"
    assert str(path) in str(caught.value)


def test_an_option_says_its_name_and_value():
    with pytest.raises(OptionError) as caught:
        loadstone.job("randread", "null:", RunOptions(requests=1, arrival="often"))
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.option, error.value) == ("arrival", "often")
    assert str(error) == f"`arrival` often: {error.what}"
    again = pickle.loads(pickle.dumps(error))
    assert (again.option, again.value, str(again)) == (error.option, error.value, str(error))


def test_a_plan_says_its_place(tmp_path):
    with pytest.raises(loadstone.PlanError) as caught:
        parts.check({"version": 0})
    assert caught.value.place is None
    assert caught.value.column
    plan = loadstone.job("randread", on="null:", options=RunOptions(size="1m", requests=5)).plans[0]
    path = tmp_path / "p.json"
    path.write_text(json.dumps({**plan, "interval_ns": 1}))
    with pytest.raises(loadstone.PlanError) as caught:
        load_plan(path)
    assert (caught.value.place, caught.value.path) == ("interval_ns", str(path))
    path.write_text("{\n,}")
    with pytest.raises(loadstone.PlanError) as caught:
        load_plan(path)
    assert caught.value.line == 2


def test_a_run_that_cannot_start_says_its_target(tmp_path):
    path = tmp_path / "there"
    path.write_bytes(bytes(1 << 20))
    job = loadstone.job("randwrite", on=path, options=RunOptions(requests=1))
    with pytest.raises(loadstone.RunError) as caught:
        loadstone.run(job)
    assert caught.value.path == str(path)
    assert "`allow_destroy`" in str(caught.value)


def test_attributes_are_those_of_the_class():
    with pytest.raises(TypeError, match="no attribute 'colour'"):
        loadstone.TraceError("x", colour="red")


def test_no_text_of_an_error_is_searched(root):
    """What is done follows from classes and attributes, and not from ``"x" in str(error)``."""
    texts = ("startswith", "endswith", "removeprefix", "partition", "find", "index")
    for path in (root / "python/loadstone").rglob("*.py"):
        module = ast.parse(path.read_text())
        for handler in (node for node in ast.walk(module) if isinstance(node, ast.ExceptHandler)):
            for node in ast.walk(handler) if handler.name else ():
                told = f"str({handler.name})"
                if isinstance(node, ast.Compare):
                    sides = [ast.unparse(one) for one in (node.left, *node.comparators)]
                    assert told not in sides, f"{path}:{node.lineno}"
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    method = node.func
                    assert not (method.attr in texts and ast.unparse(method.value) == told), (
                        f"{path}:{node.lineno}"
                    )
