"""Attributes read with their variables, and the variables of a plan that are drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadstone.wml import _ast as ast
from loadstone.wml import _laws
from loadstone.wml._errors import listed, shown
from loadstone.wml._parse import Script
from loadstone.wml._scope import Drawn, Scope
from loadstone.wml._stages import stages


class Variables:
    """The variables of one plan, in the order in which they are first used."""

    def __init__(self, scope: Scope) -> None:
        """``scope``: what attributes of random variables are read in."""
        self._scope = scope
        self._ids: dict[tuple[Any, ...], str] = {}
        self.made: list[dict[str, Any]] = []

    def use(self, drawn: Drawn, *, factor: float = 1.0, mean: float | None = None) -> str:
        """The id of a variable; its values times ``factor``, or with another mean."""
        key = (drawn, factor, mean)
        if key not in self._ids:
            self._ids[key] = self.add(drawn.name, self.parts(drawn, factor=factor, mean=mean))
        return self._ids[key]

    def add(self, name: str, parts: dict[str, Any]) -> str:
        """The id of a new variable."""
        taken = {one["id"] for one in self.made}
        ident, n = name, 1
        while ident in taken:
            n += 1
            ident = f"{name}.{n}"
        self.made.append({"id": ident, **parts})
        return ident

    def gamma(self, name: str, shape: float, mean: float) -> str:
        """The id of a variable that no script names."""
        parts = {"law": _laws.gamma(shape, mean)}
        key = (name, shape, mean)
        if key not in self._ids:
            self._ids[key] = self.add(name, parts)
        return self._ids[key]

    def mean(self, drawn: Drawn) -> float:
        """The mean of a variable."""
        return _laws.average(self.parts(drawn)["law"])

    def parts(self, drawn: Drawn, *, factor: float = 1.0, mean: float | None = None) -> dict[str, Any]:
        """A variable of a plan without its id."""
        try:
            parts = self._custom(drawn, {}) if drawn.kind == "cvar" else self._random(drawn, mean, {})
            parts["law"] = _usable(parts["law"], factor)
            if factor != 1.0:
                for key in ("round", "min", "max"):
                    if key in parts:
                        parts[key] *= factor
            if "later" in drawn.attributes:
                parts["later"] = self._later(drawn, factor)
        except _laws.Fault as fault:
            what = f"${drawn.name}: {fault.what}"
            raise drawn.script.error(drawn.node, what, help=fault.help) from None
        return parts

    def _later(self, drawn: Drawn, factor: float) -> list[dict[str, Any]]:
        """Laws of later parts of the run: what a stage does not change stays as it was."""
        found: list[dict[str, Any]] = []
        changes: dict[str, str] = {}
        for stage in stages(self._text(drawn, "later", "")):
            # Parameters of another distribution are others.
            changes = {**({} if "type" in stage.changes else changes), **stage.changes}
            try:
                made = self._custom if drawn.kind == "cvar" else self._random_later
                law = _usable(made(drawn, changes)["law"], factor)
            except _laws.Fault as fault:
                raise _laws.Fault(f"from {stage.written} on: {fault.what}", fault.help) from None
            found.append({"from_ns": stage.from_ns, "law": law})
        return found

    def _random_later(self, drawn: Drawn, changes: Mapping[str, str]) -> dict[str, Any]:
        tabular = self._text(drawn, "type", "gamma") == "tabular"
        known = ("mean",) if tabular else ("mean", "min", "gamma")
        for name, text in changes.items():
            if name not in known:
                raise _laws.Fault(f"{shown(name)} does not change", f"{listed(known)} may")
            if _laws.number(name, text) < 0:
                raise _laws.Fault(f"{name} must be 0 or more, not {shown(text)}")
        return self._random(drawn, None, changes)

    def _number(self, drawn: Drawn, name: str, changes: Mapping[str, str]) -> float | None:
        if name in changes:
            return _laws.number(name, changes[name])
        if name not in drawn.attributes:
            return None
        return self._scope.number(*drawn.attributes[name], name)

    def _text(self, drawn: Drawn, name: str, default: str) -> str:
        if name not in drawn.attributes:
            return default
        return self._scope.text(*drawn.attributes[name])

    def _random(self, drawn: Drawn, mean: float | None, changes: Mapping[str, str]) -> dict[str, Any]:
        kind = self._text(drawn, "type", "gamma")
        if kind not in ("gamma", "uniform", "tabular"):
            raise _laws.Fault(f"{shown(kind)} is no type", "there are uniform, gamma and tabular")
        rows = None
        if (found := drawn.attributes.get("randtable")) is not None and isinstance(found[1], ast.Table):
            script = found[0]
            rows = [
                [self._scope.number(script, cell, "a table") for cell in row.cells] for row in found[1].rows
            ]
        least = self._number(drawn, "min", changes) or 0
        shape = self._number(drawn, "gamma", changes)
        given = self._number(drawn, "mean", changes) if mean is None else max(mean, least)
        # Filebench cannot tell a mean of 0 from none.
        law = _laws.random_variable(
            kind, least, given or None, (1500 if shape is None else shape) / 1000, rows
        )
        parts: dict[str, Any] = {"law": law}
        if step := self._number(drawn, "round", changes):
            parts["round"] = step
        if least and kind == "tabular":
            parts["min"] = least
        source = self._text(drawn, "randsrc", "rand48")
        if "seed" in drawn.attributes and source != "urandom":
            parts["seed"] = self._scope.whole(*drawn.attributes["seed"], "seed")
        return parts

    def _custom(self, drawn: Drawn, changes: Mapping[str, str]) -> dict[str, Any]:
        given = [] if "type" in changes else ast.pairs(self._text(drawn, "parameters", ""))
        given += [change for change in changes.items() if change[0] != "type"]
        law = _laws.custom_variable(changes.get("type", self._text(drawn, "type", "")), given)
        # Filebench's least value is the least positive number unless it is given.
        least = self._number(drawn, "min", {})
        parts: dict[str, Any] = {"law": law, "min": 0 if least is None else least}
        for name in ("round", "max"):
            if (value := self._number(drawn, name, {})) is not None:
                parts[name] = value
        if parts["min"] > parts.get("max", math.inf):
            raise _laws.Fault(f"min {parts['min']:g} is above max {parts['max']:g}")
        return parts


def _usable(law: _laws.Law, factor: float) -> _laws.Law:
    """A law times a factor; refused where that is no law of finite numbers."""
    if factor != 1.0:
        law = _laws.scaled(law, factor)
    if not _laws.finite(law):
        raise _laws.Fault("its parameters are too far apart: one of its law's is no finite number")
    return law


class Reader:
    """The attributes of a node."""

    def __init__(self, script: Script, node: ast.Attributed, scope: Scope, variables: Variables) -> None:
        """``scope``: what its variables are looked up in."""
        self.script, self.node, self.scope, self.variables = script, node, scope, variables

    def has(self, name: str) -> bool:
        """Whether an attribute was written."""
        return self.node.attribute(name) is not None

    def text(self, name: str) -> str | None:
        """An attribute as text."""
        value = self.node.get(name)
        return None if value is None else self.scope.text(self.script, value)

    def number(self, name: str, default: float = 0) -> float:
        """An attribute as a number of 0 or more."""
        value = self.node.get(name)
        if value is None:
            return default
        found = self.scope.number(self.script, value, name)
        if found < 0:
            raise self.script.error(value, f"{name} must be 0 or more, not {found:g}")
        return found

    def whole(self, name: str, default: int = 0) -> int:
        """An attribute as a whole number."""
        value = self.node.get(name)
        return default if value is None else self.scope.whole(self.script, value, name)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute as true or false."""
        value = self.node.get(name)
        return default if value is None else self.scope.flag(self.script, value, name)

    def found(self, name: str) -> Drawn | None:
        """The variable that an attribute is drawn from, if it is."""
        value = self.node.get(name)
        if not isinstance(value, ast.Variable):
            return None
        found = self.scope.look(self.script, value)
        return found if isinstance(found, Drawn) else None

    def value(self, name: str, default: float = 0) -> Any:
        """An attribute as a plan has it: a number, or a variable to be drawn from."""
        drawn = self.found(name)
        return {"variable": self.variables.use(drawn)} if drawn else self.number(name, default)
