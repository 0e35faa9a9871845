"""Kinds of values in study files: how each is read, and what the JSON Schema says of it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from loadstone import _values
from loadstone._text import meant, one_line
from loadstone.errors import Error

T = TypeVar("T")
Command = str | tuple[str, ...]
"""A text for ``sh -c``, or a program and its arguments."""

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
"""What names of systems, workloads, factors and levels may be: they become names of folders."""


@dataclass(frozen=True)
class Kind:
    """One kind of value."""

    schema: Mapping[str, Any]
    """What the JSON Schema says of it."""
    read: Callable[[Any], Any]
    """The value as the study has it; raises ``Error`` that says how to write it."""


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Error("must be a text")
    return str(value)


def _parsed(parse: Callable[[str], T], what: str) -> Callable[[Any], T]:
    """A number, or a text that a parser of ``loadstone._values`` reads."""

    def read(value: Any) -> T:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Error(f"must be {what}")
        return parse(str(value))

    return read


def _flag(value: Any) -> bool:
    if value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise Error("must be true or false")
    return value


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise Error(f"{value!r} cannot be split into words: {error}") from None
    return _names(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Error("must be a list of texts")
    return tuple(_text(one) for one in value)


def _command(value: Any) -> Command:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and value[0]:
        return _names(value)
    raise Error('must be a command: a text for sh, or a list such as ["fio", "job.fio"]')


def _commands(value: Any) -> tuple[Command, ...]:
    if not isinstance(value, list):
        raise Error("must be a list of commands, each a text for sh or a list of words")
    return tuple(_command(one) for one in value)


def _scalars(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Error("must be a table")
    return value


_SCALAR = {"type": ["string", "number", "boolean"]}
_WORD = {"type": ["string", "number"]}
_COMMAND = {"type": ["string", "array"], "items": _WORD, "minItems": 1, "minLength": 1}
_NUMBER = {"type": ["number", "string"]}

TEXT = Kind({"type": ["string", "number"]}, _text)
FLAG = Kind({"type": ["boolean", "string"]}, _flag)
DURATION = Kind(_NUMBER, _parsed(lambda text: _values.duration(text, zero=True), "a time such as 30s"))
SIZE = Kind(_NUMBER, _parsed(_values.size, "a size such as 1g"))
WORDS = Kind({"type": ["string", "array"], "items": _WORD}, _words)
NAMES = Kind({"type": "array", "items": _WORD}, _names)
COMMAND = Kind(_COMMAND, _command)
COMMANDS = Kind({"type": "array", "items": _COMMAND}, _commands)
TABLE = Kind({"type": "object"}, _scalars)
SEED = Kind(_NUMBER, _parsed(_values.seed, "a whole number"))


def count(least: int, most: int = 1_000_000) -> Kind:
    """A whole number within bounds."""
    return Kind(_NUMBER, _parsed(lambda text: _values.count(text, least, most), "a whole number"))


def share(most: float) -> Kind:
    """A share above 0 and below ``most``."""

    def read(text: str) -> float:
        found = _values.share(text)
        if not (math.isfinite(found) and 0 < found < most):
            raise Error(f"{text!r} is out of range: use more than 0 and less than {most:g}")
        return found

    return Kind(_NUMBER, _parsed(read, "a share such as 0.05"))


def choice(*words: str) -> Kind:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in words:
            hint = meant(value, words) if isinstance(value, str) else ""
            raise Error(f"{value!r} must be one of: {', '.join(words)}{f'; {hint}' if hint else ''}")
        return str(value)

    # A text with a placeholder becomes one of them later.
    return Kind({"anyOf": [{"enum": list(words)}, {"type": "string", "pattern": r"\{"}]}, read)


def pattern(regex: str, what: str) -> Kind:
    """A text of some form."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(regex, value):
            raise Error(f"{value!r} must be {what}")
        return value

    return Kind({"type": "string"}, read)


def key(kind: Kind, doc: str, default: Any = MISSING, *, alias: str | None = None) -> Any:
    """A field of a dataclass that a study file may give; ``alias``: its name in the file."""
    more = {"kind": kind, "doc": doc, "name": alias}
    if default is MISSING:
        return field(metadata=more)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=more)
    return field(default=default, metadata=more)


def names_of(cls: type) -> dict[str, Any]:
    """Fields of a dataclass by their names in a file."""
    return {one.metadata.get("name") or one.name: one for one in fields(cls) if "kind" in one.metadata}


Tell = Callable[[str, str], None]
"""Takes the dotted place of a fault, and its text."""


def read(cls: type[T], table: Any, where: str, tell: Tell) -> T | None:
    """Reads a table into a dataclass; None where a fault was told."""
    if not isinstance(table, dict):
        tell(where, "must be a table")
        return None
    known = names_of(cls)
    found: dict[str, Any] = {}
    good = True
    for name, value in table.items():
        place = f"{where}.{name}" if where else name
        if name not in known:
            hint = meant(name, known, f"known are {', '.join(sorted(known))}")
            tell(place, f"unknown key {one_line(name)}; {hint}")
            good = False
            continue
        try:
            found[known[name].name] = known[name].metadata["kind"].read(value)
        except Error as error:
            tell(place, f"{name}: {error}")
            good = False
    for name, one in known.items():
        if one.default is MISSING and one.default_factory is MISSING and name not in table:
            tell(where, f"{where or 'the file'}: needs the key {name}")
            good = False
    return cls(**found) if good else None


def schema_of(cls: type) -> dict[str, Any]:
    """The JSON Schema of such a table."""
    known = names_of(cls)
    required = [n for n, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    found: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {"description": one.metadata["doc"], **one.metadata["kind"].schema}
            for name, one in known.items()
        },
    }
    return {**found, "required": required} if required else found


def table_of(cls: type) -> Kind:
    """Tables of a dataclass by name; they are read later, when placeholders have values."""
    return Kind(
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME}$"},
            "additionalProperties": schema_of(cls),
            "minProperties": 1,
        },
        _scalars,
    )


def one_of(cls: type) -> Kind:
    """A table of a dataclass, which is read later."""
    return Kind(schema_of(cls), _scalars)


def list_of(cls: type) -> Kind:
    """A list of tables of a dataclass, which are read later."""

    def read(value: Any) -> Sequence[Any]:
        if not isinstance(value, list):
            raise Error("must be a list of tables")
        return value

    return Kind({"type": "array", "items": schema_of(cls)}, read)
