"""Writes docs/reference/python.md and docs/reference/commands/README.md from docstrings and help texts.

`make golden` runs it by way of tests/docs/test_reference.py, which fails where the pages are stale.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from loadstone.cli import command

# In the order in which a user meets them.
PACKAGES = (
    "",
    "trace",
    "model",
    "evaluation",
    "bundle",
    "compare",
    "report",
    "observe",
    "stats",
    "dataset",
    "content",
    "verification",
    "plan",
    "workload",
    "exporters",
    "fio",
    "wml",
    "personalities",
    "suites",
)


# Their classes are told in a line each: what scripts and job files are read into, and what tables hold.
IN_SHORT = ("fio", "wml", "personalities", "suites", "exporters", "observe")


def walk(name: str = "loadstone", of: click.Command = command) -> Iterator[tuple[str, click.Command]]:
    """Every command below one, by its whole name."""
    yield name, of
    if isinstance(of, click.Group):
        context = click.Context(of)
        for verb in of.list_commands(context):
            below = of.get_command(context, verb)
            assert below is not None
            yield from walk(f"{name} {verb}", below)


def commands_page() -> str:
    """Every command in a line, with a link to its help text."""
    rows = []
    for name, of in walk():
        first = inspect.cleandoc(of.help or "").split("\n\n")[0]
        rows.append(f"| [`{name}`]({name.replace(' ', '-')}.txt) | {' '.join(first.split())} |")
    lines = [
        "# Commands",
        "",
        "Each link leads to what `--help` prints. `loadstone run NAME --help` also describes one benchmark.",
        "",
        "Exit status: 0 success; 1 the work failed, in part or whole, or a check found something; 2 the",
        "command line was not understood; 3 a condition of `compare --fail-if` holds; 128 and the number of a",
        "signal that ended the run.",
        "",
        "| command | does |",
        "| --- | --- |",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def summary(text: str | None) -> str:
    """The first paragraph of a docstring, without the markup of Sphinx."""
    first = inspect.cleandoc(text or "").split("\n\n")[0]
    first = re.sub(r":\w+:`~?(?:[\w.]*\.)?([\w]+(?:\(\))?)`", r"`\1`", " ".join(first.split()))
    return first.replace("``", "`")


def annotation(of: Any) -> str:
    """A type as text."""
    return of if isinstance(of, str) else getattr(of, "__name__", str(of))


def signature(name: str, of: Any) -> str:
    """A call as one would write it, with types and defaults."""
    parts, star = [], False
    for one in inspect.signature(of).parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
        star |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        text = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "") + one.name
        typed = one.annotation is not one.empty
        if typed:
            text += f": {annotation(one.annotation)}"
        if one.default is not one.empty:
            shown = repr(one.default)
            shown = "..." if shown.startswith("<") or len(shown) > 60 else shown
            text += f" = {shown}" if typed else f"={shown}"
        parts.append(text)
    answer = inspect.signature(of).return_annotation
    end = ")" if answer is inspect.Signature.empty else f") -> {annotation(answer)}"
    line = f"{name}({', '.join(parts)}{end}"
    shown = line if len(line) <= 90 else f"{name}(\n    " + ",\n    ".join(parts) + f",\n{end}"
    return shown.replace("'", '"')


def fields(of: type) -> list[str]:
    """The attributes of a class that have a docstring, as a list."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(of))).body[0]
    except (OSError, TypeError):
        return []
    found = []
    assert isinstance(body, ast.ClassDef)
    for one, after in zip(body.body, body.body[1:], strict=False):
        documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(one, ast.AnnAssign) and documented:
            found.append(f"- `{ast.unparse(one.target)}`: {summary(after.value.value)}")
    return found


def methods(of: type) -> dict[str, Any]:
    """The public methods and properties of a class that have a docstring."""
    found = {name: getattr(inner, "__func__", inner) for name, inner in vars(of).items() if name[0] != "_"}
    return {
        name: inner
        for name, inner in found.items()
        if (inspect.isfunction(inner) or isinstance(inner, property)) and inner.__doc__
    }


def described(name: str, of: Any) -> list[str]:
    """A function with its call, or a class with its attributes and methods."""
    if not inspect.isclass(of):
        return [
            f"### `{name}`",
            "",
            "```python",
            f"def {signature(name, of)}: ...",
            "```",
            "",
            summary(of.__doc__),
            "",
        ]
    lines = [f"### class `{name}`", "", summary(of.__doc__), ""]
    told = fields(of)
    lines += [*told, ""] if told else []
    for method, function in methods(of).items():
        call = " ".join(signature(method, function).split()) if inspect.isfunction(function) else method
        lines.append(f"- `.{call}`: {summary(function.__doc__)}")
    return [*lines, ""] if lines[-1] else lines


def python_page() -> str:
    """Every public name of the packages, from their docstrings."""
    lines = [
        "# Python API",
        "",
        "Every command is a function that returns plain data or Arrow tables. `help(NAME)` shows the rest of",
        "each text: units, shapes, errors. [examples/notebook.py](../../examples/notebook.py) uses most of it.",
        "Functions raise `loadstone.Error`, or one of its kinds, and name the field or file that is wrong.",
        "",
    ]
    shown: dict[type, str] = {}
    for package in PACKAGES:
        name = f"loadstone.{package}".rstrip(".")
        module = importlib.import_module(name)
        lines += [f"## {name}", "", summary(module.__doc__), ""]
        plain: list[str] = []
        for one in sorted(module.__all__, key=lambda one: (one[0].isupper(), one.lower())):
            of = getattr(module, one)
            if inspect.isclass(of):
                known = shown.setdefault(of, name)
                if package in IN_SHORT or known != name or not (fields(of) or methods(of)):
                    place = f" It is in [{known}](#{known.replace('.', '')})." if known != name else ""
                    plain.append(f"- class `{one}`: {summary(of.__doc__)}{place}")
                else:
                    lines += described(one, of)
            elif inspect.isfunction(of) or inspect.isbuiltin(of):
                lines += described(one, of)
        lines += [*plain, ""] if plain else []
    return "\n".join(lines).rstrip() + "\n"


PAGES = {
    "docs/reference/commands/README.md": commands_page,
    "docs/reference/python.md": python_page,
}
