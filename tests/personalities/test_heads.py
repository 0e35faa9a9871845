"""Every personality: its head has the form, and says what its script does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error, personalities, wml
from loadstone.plan import RunOptions
from loadstone.wml._laws import average
from loadstone.wml._program import ACTS
from loadstone.workload import plan_filebench

NAMES = personalities.names()
# What waits, thinks or ends is no request.
REQUESTS = {word.name for word in wml.FLOWOPS.values() if word.group in ("io", "aio")}


def plan(name: str, **variables: str) -> dict[str, Any]:
    found = plan_filebench(personalities.find(name).path, "null:", RunOptions(variables=variables))
    assert not found.warnings, [remark.what for remark in found.warnings]
    assert not found.notes, found.notes
    (one,) = found.plans
    return one


def often(value: Any, laws: Mapping[str, Any]) -> float:
    return average(laws[value["variable"]]) if isinstance(value, Mapping) else float(value)


def counted(ops: Sequence[Mapping[str, Any]], laws: Mapping[str, Any], factor: float = 1) -> Iterator[Any]:
    words = {act: word for word, act in ACTS.items()}
    for op in ops:
        times = factor * often(op.get("times", 1), laws)
        if op["act"] == "group":
            yield from counted(op["ops"], laws, times)
        elif words[op["act"]] in REQUESTS:
            yield words[op["act"]], times


def test_all_that_were_asked_for_are_there():
    wanted = {
        *("fileserver", "varmail", "webserver", "webproxy", "videoserver", "oltp", "oltp-sync", "mongo-like"),
        *("postmark", "dbench-like", "mail-server-like"),
    }
    assert wanted == {name for name in NAMES if not name.startswith("micro-")}
    assert sorted(NAMES, key=lambda name: (name.startswith("micro-"), name)) == NAMES


def test_every_flowop_that_is_a_request_has_a_micro():
    micros = [personalities.find(name) for name in NAMES if name.startswith("micro-")]
    assert len(micros) >= 30
    done = {flowop for one in micros for loop in one.mix for flowop, _ in loop.counts}
    assert done == REQUESTS


@pytest.mark.parametrize("name", NAMES)
def test_head(name):
    found = personalities.find(name)
    assert found.name == name and found.about and all(found.about)
    assert len(found.title) < 100 and not found.title.endswith(".")
    assert len(found.source) > 20
    for line in found.text.splitlines():
        if line.startswith("#"):
            assert len(line) <= 125, line
    # A source is told by name; where the numbers are ours that is said.
    assert re.search(r"Filebench|Tarasov|Katcher|thesis|dbench|Mongo|our own", found.source)


@pytest.mark.parametrize("name", NAMES)
def test_variables_are_those_of_the_script(name):
    found = personalities.find(name)
    script = wml.parse(found.text, name)
    assert not script.warnings
    sets = {c.variable.name: c for c in script.commands if isinstance(c, wml.Set) and not c.variable.field}
    assert sets.keys() - {"dir"} == {one.name for one in found.variables}
    for one in found.variables:
        assert f"set ${one.name}={one.default}" in wml.print_script(script).replace(", ", ",") or (
            # Arithmetic and strings are printed with other blanks.
            re.sub(r"\s", "", f"set${one.name}={one.default}") in re.sub(r"\s", "", wml.print_script(script))
        )
    used = {node.name for node in wml.walk(*script.commands) if isinstance(node, wml.Variable)}
    texts = re.findall(r"\$([a-z]+)", found.text.split("\nset ", 1)[1])
    for one in found.variables:
        assert one.name in used and texts.count(one.name) > 1, f"${one.name} is used nowhere"


@pytest.mark.parametrize("name", NAMES)
def test_mix_is_what_a_loop_does(name):
    found, made = personalities.find(name), plan(name)
    laws = {one["id"]: one["law"] for one in made.get("variables", ())}
    claimed = {loop.process: loop.counts for loop in found.mix}
    done: dict[str, Counter[str]] = {}
    for worker in made["workers"]:
        group = worker["group"] if len(claimed) > 1 else ""
        done.setdefault(group, Counter())
        for flowop, times in counted(worker["source"]["ops"], laws):
            done[group][flowop] += times
    assert list(claimed) == list(done)
    for process, counts in claimed.items():
        assert dict(counts) == pytest.approx(dict(done[process]))
        assert [flowop for flowop, _ in counts] == list(done[process]), "in the order of the text"
        assert sum(found.mix[list(claimed).index(process)].shares().values()) == pytest.approx(1)


@pytest.mark.parametrize("name", NAMES)
def test_variables_change_the_plan(name):
    """No variable is dead: each one changes what is done, or how much."""
    usual = plan(name)
    for one in personalities.find(name).variables:
        # Those that follow from others are changed with them.
        if re.fullmatch(r"[\w$*/-]*\$[\w$*/-]*", one.default):
            continue
        number = re.fullmatch(r"(\d+)([kmg]?)", one.default)
        other = f"{int(number[1]) + 1}{number[2]}" if number else "3k"
        other = {"true": "false", "false": "true"}.get(one.default, other)
        if one.name == "directio":
            other = str(1 - int(one.default))
        found = plan_filebench(
            personalities.find(name).path, "null:", RunOptions(variables={one.name: other})
        )
        assert found.plans[0] != usual, f"${one.name}={other} changes nothing"


HEAD = """# {name}: a title
#
# What it is.
#
# From: somewhere
# Mix: {mix}
# Scale: none
# $n: {about}

set $n=1
"""


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"name": "other"}, "that of other"),
        ({"mix": "read"}, "flowop COUNT"),
        ({"about": "files\n# $missing: not there"}, "$missing"),
        ({"mix": "read 1\n# Unknown: field"}, "From, Mix or Scale"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, change, what):
    path = tmp_path / "one.f"
    path.write_text(HEAD.format(**{"name": "one", "mix": "read 1", "about": "files"}))
    assert personalities.read_head(path).mix[0].counts == (("read", 1.0),)
    path.write_text(HEAD.format(**{"name": "one", "mix": "read 1", "about": "files", **change}))
    with pytest.raises(Error, match=re.escape(what)) as raised:
        personalities.read_head(path)
    assert str(path) in str(raised.value)


def test_no_head_is_refused(tmp_path: Path):
    path = tmp_path / "one.f"
    path.write_text("set $n=1\n")
    with pytest.raises(Error, match="has no head"):
        personalities.read_head(path)
    path.write_text(HEAD.format(name="one", mix="read 1", about="files").replace("# From: somewhere\n", ""))
    with pytest.raises(Error, match="has no From"):
        personalities.read_head(path)
