"""Position sets of 1.4: places in files that are drawn once and then come back."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from loadstone import _core
from loadstone.wml._errors import shown
from loadstone.wml._parse import Definition
from loadstone.wml._scope import Scope
from loadstone.wml._vary import Reader, Variables

ALIGNED = 512
"""Positions are multiples of it, as in Filebench."""

USUAL = 512
"""How many there are unless a set says so: the most that Filebench has."""

MOST = 65536
"""How many there may be: each is a row of the plan."""


class Positions:
    """The position sets of a plan, each a variable that positions are drawn from, all alike."""

    def __init__(
        self, definitions: Mapping[str, Definition], scope: Scope, variables: Variables, seed: int
    ) -> None:
        """``seed``: of sets that have none of their own."""
        self.names = tuple(definitions)
        self._definitions = definitions
        self._scope, self._variables, self._seed = scope, variables, seed
        self._used: dict[str, tuple[str, int]] = {}

    def use(self, name: str) -> tuple[str, int]:
        """The id of the variable of a position set, and its last position."""
        if name not in self._used:
            last, law = self._drawn(name)
            self._used[name] = (self._variables.add(name, {"law": law}), last)
        return self._used[name]

    def _drawn(self, name: str) -> tuple[int, dict[str, Any]]:
        script, node = self._definitions[name].script, self._definitions[name].node
        read = Reader(script, node, self._scope, self._variables)
        entries, most = read.whole("entries", USUAL), read.whole("max")
        if not 0 < entries <= MOST:
            at = node.attribute("entries") or node
            raise script.error(at, f"a position set has 1 to {MOST:,} entries, not {entries:,}")
        if not most:
            at = node.attribute("max") or node
            raise script.error(at, f"position set {shown(name)} needs max= above 0")
        chance = random.Random(read.whole("seed", _core.derive_seed(self._seed, name, 0)))
        found = [chance.randrange(-(-most // ALIGNED)) * ALIGNED for _ in range(entries)]
        return max(found), {"kind": "table", "rows": [{"share": 1, "low": at, "high": at} for at in found]}
