"""Placeholders: ``{name}`` in texts of a study file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from loadstone._text import meant, one_line
from loadstone.errors import Error

_PLACE = re.compile(r"\{\{([A-Za-z_][\w-]*)\}\}|(?<![\${])\{([A-Za-z_][\w-]*(?:\.[\w-]+)?)\}(?!\})")
LATER = ("mount", "disk", "out", "cell", "block", "seed", "copy")
"""Placeholders that get their value when a run begins."""


def names_in(value: Any) -> set[str]:
    """Names of the placeholders in all texts of a value."""
    if isinstance(value, str):
        return {match[2] for match in _PLACE.finditer(value) if match[2]}
    if isinstance(value, Mapping):
        return {name for one in value.values() for name in names_in(one)}
    if isinstance(value, list | tuple):
        return {name for one in value for name in names_in(one)}
    return set()


def filled(value: Any, known: Mapping[str, Any], later: Iterable[str] = LATER) -> Any:
    """``value`` with placeholders replaced; those of ``later`` stay, and so do doubled braces then.

    Raises ``Error`` at a placeholder that there is not.
    """
    if isinstance(value, Mapping):
        return {name: filled(one, known, later) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(filled(one, known, later) for one in value)
    if not isinstance(value, str):
        return value
    later = tuple(later)

    def put(match: re.Match[str]) -> str:
        if match[1]:
            return match[0] if later else "{" + match[1] + "}"
        return match[0] if match[2] in later else _text(_known(match[2], known, later))

    whole = _PLACE.fullmatch(value)
    # What is a placeholder and nothing else keeps its type.
    if whole and whole[2] and whole[2] not in later:
        return _known(whole[2], known, later)
    return _PLACE.sub(put, value)


def _known(name: str, known: Mapping[str, Any], later: tuple[str, ...]) -> Any:
    if name not in known:
        hint = meant(name, [*known, *later], f"write {{{{{name}}}}} for the text itself")
        raise Error(f"there is no placeholder {{{one_line(name)}}}; {hint}")
    return known[name]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
