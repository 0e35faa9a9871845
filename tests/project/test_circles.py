"""No circles of imports: between modules of Python, between packages, and within a crate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent.name for path in (TOP / "crates").glob("*/Cargo.toml"))

Graph = Mapping[str, set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """Sets of nodes that reach each other (Tarjan 1972), sorted."""
    found: list[list[str]] = []
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in numbers:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], numbers[other])
        if lowest[node] == numbers[node]:
            at = stack.index(node)
            if len(stack) - at > 1 or node in graph.get(node, ()):
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in numbers:
            visit(node)
    return sorted(found)


# Python


def python_modules(top: Path) -> dict[str, str]:
    """Text of each module below a folder, by its full name."""
    found = {}
    for path in sorted(top.rglob("*.py")):
        parts = path.relative_to(top).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


def python_graph(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """What each module imports at any depth: in functions, for types only, and by ``import_module``."""

    def names(text: str) -> Iterator[str]:
        by_name = "import_module" in text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    full = f"{node.module}.{one.name}"
                    # The native module has no source here, and imports nothing.
                    yield full if full in modules or full == "loadstone._core" else str(node.module)
            elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value

    return {of: {name for name in names(text) if name in modules} for of, text in modules.items()}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    return python_graph(python_modules(TOP / "python"))


def test_no_module_of_python_imports_itself_by_others(imports):
    assert len(imports) > 200
    assert circles(imports) == []


def package(module: str) -> str:
    """The package that a module is of; the helpers of all are one."""
    parts = module.split(".")
    if len(parts) == 1:
        return "loadstone"
    if parts[1] == "__main__":
        return "cli"
    return "helpers" if parts[1].startswith("_") or parts[1] == "errors" else parts[1]


def layers() -> list[list[str]]:
    """The layers that docs/design.md lists, the lowest first."""
    part = (TOP / "docs/design.md").read_text().partition("## Layers\n")[2].partition("\n## ")[0]
    return [re.findall(r"`(\w+)`", line) for line in part.splitlines() if re.match(r"\d+\. ", line)]


def test_packages_import_only_from_the_layers_before_theirs(imports):
    level = {name: at for at, names in enumerate(layers()) for name in names}
    assert set(level) == {package(module) for module in imports}
    wrong = {
        f"{module} -> {other}"
        for module, others in imports.items()
        for other in others
        if package(module) != package(other) and level[package(other)] >= level[package(module)]
    }
    assert wrong == set()


@pytest.mark.parametrize(
    "lazy",
    [
        "from p.a import f",
        "def g():\n    from p.a import f",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a",
        "from importlib import import_module\nimport_module('p.a')",
    ],
)
def test_a_circle_of_python_is_found_wherever_the_import_stands(lazy):
    modules = {"p": "", "p.a": "from p import b", "p.b": lazy}
    assert circles(python_graph(modules)) == [["p.a", "p.b"]]
    assert circles(python_graph({**modules, "p.b": "'p.a'"})) == []


# Rust

_NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^']+|[^'\\\n])'""",
    re.S,
)
_TEST_ONLY = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)?\]")
_USE = re.compile(r"(?:^|(?<=[;{}\]\s]))(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")


def without_tests(text: str) -> str:
    """Code alone: no comment, no literal, and no item that only tests have."""
    text = _NOISE.sub(" ", text)
    while found := _TEST_ONLY.search(text):
        at, depth = found.end(), 0
        while at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
            if depth == 0 and text[at - 1] in "};":
                break
        text = text[: found.start()] + text[at:]
    return text


def paths_of(tree: str) -> Iterator[tuple[list[str], str]]:
    """Each path that a ``use`` names, and the name that it gets here."""
    head, brace, inner = tree.strip().partition("{")
    if not brace:
        path, _, name = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::") if part.strip()]
        yield parts, name.strip() or parts[-1]
        return
    before = [part.strip() for part in head.split("::") if part.strip()]
    depth, part = 0, ""
    for letter in inner.rstrip().removesuffix("}") + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter != "," or depth:
            part += letter
            continue
        for parts, name in paths_of(part) if part.strip() else ():
            yield (before, before[-1]) if parts == ["self"] else (before + parts, name)
        part = ""


class Crate:
    """The modules of a crate that are more than tests, and what each takes from others."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """``files``: text by path below ``src``, as ``run/mod.rs``."""
        texts = {}
        for path, text in files.items():
            parts = path.removesuffix(".rs").split("/")
            texts["::".join(parts[:-1] if parts[-1] in ("mod", "lib") else parts)] = without_tests(text)
        self.modules: dict[str, str] = {}
        waiting = [""]
        while waiting:
            module = waiting.pop()
            if module not in texts:
                continue
            self.modules[module] = texts[module]
            waiting += [self.below(module, m[1]) for m in re.finditer(r"\bmod\s+(\w+)\s*;", texts[module])]

    @staticmethod
    def below(module: str, name: str) -> str:
        return f"{module}::{name}" if module else name

    @cached_property
    def uses(self) -> dict[str, list[tuple[bool, list[str], str]]]:
        return {
            module: [
                (bool(use[1]), parts, name) for use in _USE.finditer(text) for parts, name in paths_of(use[2])
            ]
            for module, text in self.modules.items()
        }

    def home(
        self, module: str, path: list[str], seen: frozenset[tuple[str, str]] = frozenset()
    ) -> str | None:
        """The module that defines what a path means within a module; None of other crates."""
        rest = list(path)
        if rest[0] == "crate":
            module, rest = "", rest[1:]
        elif rest[0] == "self":
            rest = rest[1:]
        elif rest[0] == "super":
            while rest and rest[0] == "super":
                module, rest = module.rpartition("::")[0], rest[1:]
        elif self.below(module, rest[0]) not in self.modules:
            return None
        while rest and self.below(module, rest[0]) in self.modules:
            module, rest = self.below(module, rest[0]), rest[1:]
        if not rest or rest[0] == "*" or self.below(module, rest[0]) in seen or self.defines(module, rest[0]):
            return module
        seen |= {self.below(module, rest[0])}
        for _, parts, name in self.uses[module]:
            if name == rest[0]:
                return self.home(module, parts, seen)
        for _, parts, name in self.uses[module]:
            of = self.home(module, parts, seen) if name == "*" else None
            if of is not None and of != module and self.defines(of, rest[0]):
                return of
        return module

    def defines(self, module: str, name: str) -> bool:
        kinds = "fn|struct|enum|trait|const|static|type|union|macro_rules!"
        return re.search(rf"\b(?:{kinds})\s+{re.escape(name)}\b", self.modules[module]) is not None

    def graph(self) -> dict[str, set[str]]:
        """From each module to those it names. What is inside a module is part of it, and does not count."""
        found = {}
        for module, text in self.modules.items():
            body = _USE.sub("", text)
            named = [
                parts
                for public, parts, name in self.uses[module]
                if not public or re.search(rf"\b{re.escape(name)}\b", body)
            ]
            named += [m[1].split("::") for m in re.finditer(r"(?<![\w:])((?:crate|super)(?:::\w+)+)", body)]
            homes = {self.home(module, parts) for parts in named} - {None, module}
            inside = f"{module}::" if module else ""
            found[module] = {home for home in homes if home is not None and not home.startswith(inside)}
        return found


def crate(name: str) -> Crate:
    src = TOP / "crates" / name / "src"
    return Crate({path.relative_to(src).as_posix(): path.read_text() for path in src.rglob("*.rs")})


@pytest.mark.parametrize("name", CRATES)
def test_no_module_of_a_crate_uses_itself_by_others(name):
    graph = crate(name).graph()
    assert sum(map(len, graph.values())) > 0
    assert circles(graph) == []


@pytest.mark.parametrize(
    ("b", "circular"),
    [
        ("use crate::a::A;", True),
        ("use super::{a::{self, A}};", True),
        ("fn f() -> crate::a::A {}", True),
        ("use crate::A;", True),
        ("// use crate::a::A;\n#[cfg(test)]\nmod tests { use crate::a::A; }", False),
        ("use other::a::A;", False),
    ],
)
def test_a_circle_of_rust_is_found_however_it_is_written(b: str, circular: bool) -> None:
    files = {"lib.rs": "mod a; mod b; pub use a::A;", "a.rs": "use crate::b::B; struct A;"}
    graph = Crate({**files, "b.rs": f"{b} struct B;"}).graph()
    assert circles(graph) == ([["a", "b"]] if circular else [])
