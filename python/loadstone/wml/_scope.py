"""Variables and their values while a script is interpreted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadstone._kept import warn_of_environment
from loadstone._text import meant
from loadstone.wml import _ast as ast
from loadstone.wml._errors import NOWHERE, Refused, shown
from loadstone.wml._literals import literal
from loadstone.wml._parse import Script

Plain = int | float | bool | str
# As for numbers of scripts.
_MOST = 1 << 63
# Letters of a text. Each set may double one, and no script needs more.
_LONGEST = 1 << 20


@dataclass(eq=False)
class Drawn:
    """A variable that is drawn from at each use. Its attributes are looked at when a run is lowered."""

    name: str
    kind: str
    """``randvar`` or ``cvar``."""
    script: Script
    node: ast.Attributed
    attributes: dict[str, tuple[Script, ast.Value]] = field(default_factory=dict)


class Scope:
    """Names and values; those of composite flowops lie before those of the script."""

    def __init__(self, outer: Scope | None = None, fixed: Mapping[str, Plain] | None = None) -> None:
        """``fixed``: values that no ``set`` changes."""
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.fixed = dict(fixed or {})
        self.names: dict[str, Plain | Drawn] = dict(self.fixed)

    def set(self, name: str, value: Plain | Drawn) -> None:
        """Gives a variable a value, unless the user did."""
        if name not in self.fixed:
            self.names[name] = value

    def find(self, name: str) -> Plain | Drawn | None:
        """The value of a variable, if it has one."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def known(self) -> list[str]:
        """All names that have values."""
        return [*self.names, *(self.outer.known() if self.outer else ())]

    def look(self, script: Script, variable: ast.Variable) -> Plain | Drawn:
        """The value of a variable of a script. Raises where it has none."""
        if variable.environment:
            found: Plain | Drawn | None = os.environ.get(variable.name)
            if found is None:
                raise script.error(variable, f"the environment has no variable {shown(variable.name)}")
            warn_of_environment(script.name, [variable.name])
            return found
        found = self.find(variable.name)
        if found is None:
            near = meant(f"${variable.name}", [f"${name}" for name in self.known()])
            if variable.name.startswith("stats."):
                near = "results of runs are known in the texts of echo only"
            help = near or f"give it one: set ${variable.name}=..., or -D {variable.name}=..."
            raise script.error(variable, f"${variable.name} has no value", help=help)
        if variable.field is None:
            return found
        if not isinstance(found, Drawn):
            raise script.error(variable, f"${variable.name} is no random variable and has no fields")
        if variable.field not in found.attributes:
            raise script.error(variable, f"${variable.name} has no {variable.field}")
        return self.value(*found.attributes[variable.field])

    def value(self, script: Script, value: ast.Value) -> Plain | Drawn:
        """What a value of a script is at this moment."""
        match value:
            case ast.Integer(value=number) | ast.Number(value=number):
                return number
            case ast.Boolean(value=flag):
                return flag
            case ast.Word(text=text):
                return text
            case ast.Variable():
                return self.look(script, value)
            case ast.Text():
                return self.text(script, value)
        raise script.error(value, "a table is no value")

    def plain(self, script: Script, value: ast.Value) -> Plain:
        """A value that is not drawn."""
        found = self.value(script, value)
        if isinstance(found, Drawn):
            raise script.error(
                value, f"${found.name} is drawn anew at each use; a fixed value is wanted here"
            )
        return found

    def text(self, script: Script, value: ast.Value) -> str:
        """A value as text."""
        if not isinstance(value, ast.Text):
            return said(self.plain(script, value))
        found, room = [], _LONGEST
        for part in value.parts:
            found.append(part if isinstance(part, str) else said(self.plain(script, part)))
            room -= len(found[-1])
            if room < 0:
                raise script.error(value, f"the text is longer than {_LONGEST:,} letters")
        return "".join(found)

    def number(self, script: Script, value: ast.Value, name: str) -> float:
        """A value as a number."""
        found = self.plain(script, value)
        if isinstance(found, str):
            found = read(found)
        if isinstance(found, bool | str):
            raise script.error(value, f"{name} wants a number, not {shown(said(found))}")
        return found

    def whole(self, script: Script, value: ast.Value, name: str) -> int:
        """A value as a whole number that is not negative."""
        found = self.number(script, value, name)
        if found != int(found) or found < 0:
            raise script.error(value, f"{name} wants a whole number of 0 or more, not {found:g}")
        return int(found)

    def flag(self, script: Script, value: ast.Value, name: str) -> bool:
        """A value as true or false; 1 and 0 are read so too."""
        found = self.plain(script, value)
        if found in ("true", "false"):
            return found == "true"
        if isinstance(found, str) or found not in (0, 1):
            raise script.error(value, f"{name} wants true or false, not {shown(said(found))}")
        return bool(found)

    def computed(self, script: Script, node: ast.Node) -> float:
        """Arithmetic: of whole numbers as in Filebench, where division loses the rest."""
        if not isinstance(node, ast.Arithmetic):
            assert isinstance(node, ast.Integer | ast.Number | ast.Variable)
            return self.number(script, node, "arithmetic")
        total = self.computed(script, node.operands[0])
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            right = self.computed(script, operand)
            match operator:
                case "+":
                    total += right
                case "-":
                    total -= right
                case "*":
                    total *= right
                case _:
                    if right == 0:
                        raise script.error(operand, "division by zero")
                    exact = isinstance(total, int) and isinstance(right, int)
                    # Towards zero, as C does.
                    sign = -1 if (total < 0) != (right < 0) else 1
                    total = sign * (abs(total) // abs(right)) if exact else total / right
            if not abs(total) < _MOST:
                raise script.error(node, "the result is too large a number")
        return total


def read(text: str) -> Plain:
    """What a text from outside of a script says: -D, the environment."""
    try:
        found = literal(text, NOWHERE) if text else None
    except Refused:
        found = None
    return found.value if isinstance(found, ast.Integer | ast.Number | ast.Boolean) else text


def said(value: Plain) -> str:
    """A value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
