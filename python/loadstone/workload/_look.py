"""Facts of a trace or model before it is run, and what to do where reading it takes options."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path as FilePath
from typing import Any, Literal

from loadstone import Error, _core

# Options of reading as errors name them, with their values.
_OPTION = re.compile(
    r"--(format \w[\w-]*|format\b|columns\b|max-damaged(?: \w+)?|(?:sort|salvage|reorder|spread-ties)\b)"
)
# What stands for a value where the error names none.
_VALUES = {"format": "format NAME", "columns": "columns MAP", "max-damaged": "max-damaged N"} | {
    "reorder": "reorder TIME"
}


def look(kind: Literal["trace", "model"], path: str, *, ops: bool = False) -> dict[str, Any]:
    """Facts of a trace or model; an error that asks for options of reading says which command takes them."""
    try:
        found: dict[str, Any] = json.loads(_core.look(kind, path, ops))
    except Error as error:
        if kind == "trace" and (told := converted(path, str(error))):
            raise Error(f"{error}; {told}") from None
        raise
    return found


def converted(path: str, error: str) -> str | None:
    """What to do where an error asks for options that a replay has not: the command that converts a trace."""
    asked = list(dict.fromkeys(_OPTION.findall(error.replace(path, ""))))
    if not asked:
        return None
    options = [f"--{_VALUES.get(option, option)}" for option in asked]
    name = FilePath(path)
    out = name.stem + ("-converted.parquet" if name.suffix == ".parquet" else ".parquet")
    either = f" (or {', '.join(options[1:])})" if len(options) > 1 else ""
    return (
        "options of reading go with a conversion, and what it makes needs none: "
        f"loadstone trace convert {shlex.quote(path)} -o {shlex.quote(out)} {options[0]}{either}"
    )
