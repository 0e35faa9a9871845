"""Scripts of the fixtures, and trees as texts that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from loadstone import wml

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.f"))


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def fixture(request: pytest.FixtureRequest) -> Path:
    """The path of each script in turn."""
    return request.param


@pytest.fixture
def tree() -> Callable[[wml.Script], str]:
    """A script's tree as text: place, class and plain fields of a node, its parts below."""

    def text(script: wml.Script) -> str:
        lines = [f"dialect {script.dialect}"]
        lines += [f"  {one.dialect}: {one.construct} {_place(script, one.at)}" for one in script.evidence]
        lines += [f"warning {one.line}:{one.column} {one.what}" for one in script.warnings]
        for command in script.commands:
            _node(script, command, "", "", lines)
        return "\n".join(lines) + "\n"

    return text


def _place(script: wml.Script, at: wml.Span) -> str:
    (line, column), (end, last) = script.source.place(at.start), script.source.place(at.end)
    return f"{line}:{column}-{last}" if line == end else f"{line}:{column}-{end}:{last}"


def _node(script: wml.Script, node: wml.Node, label: str, indent: str, lines: list[str]) -> None:
    plain, below = [], []
    for field in fields(node):
        value = getattr(node, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        if field.name == "at" or value is None or value is False:
            continue
        if any(isinstance(part, wml.Node) for part in parts):
            name = "" if isinstance(value, tuple) else f"{field.name}: "
            below += [(name, part) for part in parts]
        elif parts:
            plain.append(repr(value) if isinstance(node, wml.Text) else f"{field.name}={value!r}")
    said = " ".join([f"{label}{type(node).__name__}", *plain])
    lines.append(f"{indent}{said} {_place(script, node.at)}")
    for name, part in below:
        if isinstance(part, wml.Node):
            _node(script, part, name, indent + "  ", lines)
        else:
            lines.append(f"{indent}  {name}{part!r}")
