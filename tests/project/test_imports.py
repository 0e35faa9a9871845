"""What modules may import: their own package's private modules, and others' public ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "loadstone"
HELPERS = {
    *(
        "_arrow",
        "_continuous",
        "_core",
        "_entries",
        "_extras",
        "_files",
        "_json",
        "_kept",
        "_other",
        "_pictures",
        "_scratch",
        "_signals",
    ),
    *("_text", "_units", "_values", "__version__"),
}
"""Of the package itself, for all others."""


def packages() -> Iterator[tuple[str, ast.Module]]:
    """Every module, with the package that it belongs to."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        yield (parts[0] if len(parts) > 1 else "loadstone"), ast.parse(path.read_text(), str(path))


def imported(module: ast.Module) -> Iterator[str]:
    """Full names of all that a module imports, wherever it does."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{one.name}" for one in node.names)


def private(name: str) -> str | None:
    """The private part of a name within the project, if it has one."""
    parts = name.split(".")
    if parts[0] != "loadstone":
        return None
    at = next((i for i, part in enumerate(parts) if part.startswith("_")), None)
    return None if at is None else ".".join(parts[: at + 1])


def foreign() -> set[tuple[str, str]]:
    """Private modules and names that are imported into other packages, each with the one that does."""
    found = set()
    for package, module in packages():
        for name in imported(module):
            of = private(name)
            if of is None or (of.count(".") == 1 and of.removeprefix("loadstone.") in HELPERS):
                continue
            if of.split(".")[1] != package:
                found.add((package, of))
    return found


def test_no_package_imports_what_is_private_to_another():
    assert foreign() == set()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("loadstone.plan.options.Pace", None),
        ("loadstone.trace._columns.read", "loadstone.trace._columns"),
        ("loadstone.model.Model._load", "loadstone.model.Model._load"),
        ("os._exit", None),
    ],
)
def test_a_private_part_is_found(name, part):
    assert private(name) == part


HELP = {"fio/_keys.py"}
"""Modules that hold what pages of the documentation say of job files, where options are typed."""
CALLS = {f"study/{name}.py" for name in ("host/making", "host/commands", "host/surroundings", "readers/fio")}
"""Modules that call other programs, or tell how to call them, with options of theirs."""


def said(module: ast.Module) -> Iterator[str]:
    """Texts of a module that are no comments on it."""
    comments = {id(one.value) for one in ast.walk(module) if isinstance(one, ast.Expr)}
    for text in ast.walk(module):
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and id(text) not in comments:
            yield text.value


def dashed(text: str) -> bool:
    """Whether a text names an option with dashes, other than in a command that somebody should type."""
    plain = re.sub(r"loadstone( [a-z]+)* --[a-z-]+", "", text)
    # A variable of a style sheet is no option.
    return re.search(r"(?<![\w-])--[a-z]", plain.replace("var(--", "")) is not None


def test_the_library_names_no_option_of_the_command_line(root):
    own = root / "python/loadstone"
    for path in own.rglob("*.py"):
        name = path.relative_to(own).as_posix()
        if not name.startswith("cli/") and name not in HELP | CALLS:
            found = [text for text in said(ast.parse(path.read_text())) if dashed(text)]
            assert found == [], name
