"""The stub of the native module says what the module has."""

from __future__ import annotations

import ast
import subprocess

from loadstone import _core


def described(root) -> dict[str, list[str] | None]:
    """``name`` or ``Class.name`` to its parameters; None for what is no function."""
    out: dict[str, list[str] | None] = {}

    def visit(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                out[prefix + node.name] = None
                visit(node.body, f"{node.name}.")
            elif isinstance(node, ast.FunctionDef) and node.name != "__new__":
                is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
                names = [argument.arg for argument in node.args.args if argument.arg != "self"]
                out[prefix + node.name] = None if is_property else names
            elif isinstance(node, ast.AnnAssign) and not (name := ast.unparse(node.target)).startswith("_"):
                out[name] = None

    visit(ast.parse((root / "python/loadstone/_core.pyi").read_text()).body, "")
    return out


def present() -> dict[str, list[str] | None]:
    def parameters(value: object) -> list[str] | None:
        signature = getattr(value, "__text_signature__", None)
        if signature is None:
            return None
        names = [part.split("=")[0].strip() for part in signature.strip("()").split(",")]
        return [name for name in names if name and name not in ("$self", "/")]

    out: dict[str, list[str] | None] = {}
    for name, value in vars(_core).items():
        if name.startswith("_"):
            continue
        out[name] = None if isinstance(value, type) else parameters(value)
        if isinstance(value, type) and not issubclass(value, Exception):
            for member, inner in vars(value).items():
                if not member.startswith("_"):
                    out[f"{name}.{member}"] = (
                        parameters(getattr(value, member))
                        if callable(inner) or isinstance(inner, staticmethod)
                        else None
                    )
    return out


def test_stub_is_the_module(root):
    assert described(root) == present()


def test_the_module_shares_nothing_with_others_of_rust(need_tools):
    """Its panics, and the hook that is told of them, are its own only while its runtime is no one else's."""
    need_tools("nm")
    told = subprocess.run(
        ["nm", "--dynamic", "--defined-only", _core.__file__], capture_output=True, text=True, check=True
    )
    assert [line.split()[-1] for line in told.stdout.splitlines()] == ["PyInit__core"]
