"""The column map of delimited text, from a line of text or a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.errors import Error, OptionError
from loadstone.trace.options import Path

_NAMES = ("time", "offset", "size", "latency", "op", "object", "actor")
_LARGEST = 1 << 20
"""Bytes that no column map has."""
_EXAMPLE = "for instance time=3:us,offset=0:sector,size=1:byte,op=2"


def columns_from_text(
    text: str,
    values: Mapping[str, Sequence[str]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The column map written as ``NAME=COLUMN[:UNIT],...``.

    ``COLUMN`` is a position from 0 or a name in the header line. ``values`` gives for every op its
    values in the op column, such as ``{"read": ["R"], "write": ["W"]}``; ``more`` are the other keys
    of the map (``separator``, ``skip``, ``comment``, ``origin``, ``every``).

    Raises ``OptionError`` where a part is no column, or one is named twice.

    >>> columns_from_text("time=0:us,op=1", {"read": ["0"], "write": ["1"]})["time"]
    {'at': 0, 'unit': 'us'}
    """
    columns: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, place = part.strip().partition("=")
        if not equals or name not in _NAMES:
            raise OptionError(
                None,
                None,
                f"the column map has {part.strip()!r}, which is not one of "
                f"{', '.join(_NAMES)} with a column; {_EXAMPLE}",
            )
        if name in columns:
            raise OptionError(None, None, f"the column map names {name} twice; {_EXAMPLE}")
        at, _, unit = place.partition(":")
        columns[name] = {"at": int(at) if re.fullmatch("[0-9]{1,9}", at) else at, "unit": unit}
    if values:
        columns["values"] = {op: list(found) for op, found in values.items() if found}
    columns.update({key: value for key, value in more.items() if value is not None})
    return columns


_MOST_DOTS = 1000
"""Dots of a column map: those of keys, of numbers, of names."""


def columns_from_file(path: Path) -> dict[str, Any]:
    """The column map in a TOML or JSON file, with the keys of ``docs/reference/formats/trace.md``.

    Raises ``OSError`` where it cannot be read, and ``Error`` where it is no column map.
    """
    import tomllib

    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise Error(
            f"{os.fspath(path)}: is no column map: it has more than {_LARGEST >> 10} KiB; name another"
        )
    if data.count(b".") > _MOST_DOTS:
        # tomllib takes memory by the square of the parts of a key.
        raise Error(f"{os.fspath(path)}: is no column map: it has more than {_MOST_DOTS} dots; name another")
    try:
        found = json.loads(data) if os.fspath(path).endswith(".json") else tomllib.loads(data.decode())
        # TOML has dates and times, which no column is.
        json.dumps(found)
    except RecursionError:
        raise Error(f"{os.fspath(path)}: is no column map: it is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise Error(
            f"{os.fspath(path)}: is no column map: {error}; it is TOML, or JSON in a .json file"
        ) from error
    if not isinstance(found, dict):
        raise Error(f"{os.fspath(path)}: is no column map; it must be an object")
    return found
