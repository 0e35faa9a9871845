"""Personalities by their names."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from loadstone.errors import Error
from loadstone.personalities._head import Personality, read_head

_FOLDER = Path(__file__).parent
_MICRO = "micro-"


@cache
def _paths() -> dict[str, Path]:
    found = {path.stem: path for path in _FOLDER.glob("*.f")}
    return dict(sorted(found.items(), key=lambda one: (one[0].startswith(_MICRO), one[0])))


def names() -> list[str]:
    """Names of all, by letters; those of single operations (``micro-...``) come last."""
    return list(_paths())


def find(name: str) -> Personality:
    """The personality of that name. Raises ``Error`` where there is none, with the nearest that there is."""
    paths = _paths()
    if name not in paths:
        # Imported late: names alone are asked for by --help and by the shell's completion.
        from loadstone._text import meant

        hint = meant(name, paths, "loadstone run --list names all")
        raise Error(f"{name}: is no personality; {hint}")
    return read_head(paths[name])
