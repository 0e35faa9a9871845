"""Study files as tables: merged with what they include, changed by ``set``; and where each key stands."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone._core import open_regular
from loadstone._other import wanted
from loadstone._text import one_line
from loadstone.errors import Error, StudyError

_LARGEST = 1 << 20
"""Bytes of a study file."""
_DEEPEST = 8
"""Files that include each other."""
_PART = r'(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|\'[^\']*\')'
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
_HEAD = re.compile(rf"\s*\[\[?\s*({_PART}(?:\s*\.\s*{_PART})*)\s*\]\]?")


@dataclass
class Source:
    """A merged study file."""

    table: dict[str, Any]
    base: str
    """Folder of the file that was named; its relative paths start there."""
    lines: dict[str, str] = field(default_factory=dict)
    """``FILE:LINE`` of keys by their dotted names."""

    def place(self, where: str) -> str:
        """Where a key stands: its own line, or that of the nearest table around it."""
        name = where
        while name not in self.lines:
            if not name:
                return self.lines.get("", "")
            name = name.rpartition(".")[0]
        return self.lines[name]


def load(path: str | os.PathLike[str], changes: Mapping[str, str]) -> Source:
    """Reads a file. ``changes``: texts by variable or dotted key. Raises ``StudyError``."""
    source = _load(Path(path), ())
    for name, text in changes.items():
        value = _value(text)
        variables = source.table.get("variables")
        if isinstance(variables, dict) and name in variables:
            variables[name] = value
            source.lines[f"variables.{name}"] = f"`changes` {name}"
            continue
        if "." not in name and name not in ("seed", "order", "name", "failures", "settle"):
            known = ", ".join(variables) if isinstance(variables, dict) and variables else "none"
            raise StudyError(
                f"`changes` {one_line(name)}: is no variable of the file, whose variables are: {known}; "
                "write keys of tables in full, such as repeat.most"
            )
        _put(source, name.split("."), value)
        source.lines[name] = f"`changes` {name}"
    return source


def _put(source: Source, parts: list[str], value: Any) -> None:
    table = source.table
    for number, part in enumerate(parts[:-1], 1):
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise StudyError(f"`changes` {'.'.join(parts)}: {'.'.join(parts[:number])} is no table")
        table = inner
    table[parts[-1]] = value


def _value(text: str) -> Any:
    """As TOML has it, else the text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _load(path: Path, above: tuple[Path, ...]) -> Source:
    with wanted("study file", path):
        return _read(path, above)


def _read(path: Path, above: tuple[Path, ...]) -> Source:
    try:
        # Another file may be included, and a stranger may have written which.
        os.stat(path)
        with open(open_regular(path), "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}", path=str(path)) from None
    except Error as error:
        raise StudyError(str(error), path=str(path)) from None
    if len(data) > _LARGEST:
        raise StudyError(f"{path}: is larger than a study file may be (1 MiB)", path=str(path))
    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is no text in UTF-8, as TOML is", path=str(path)) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyError(f"{path}: {error}", path=str(path)) from None
    source = Source(table, str(path.absolute().parent), _lines(text, str(path)))
    name = table.pop("include", None)
    if name is None:
        return source
    if not isinstance(name, str) or not name:
        raise StudyError(f"{source.place('include')}: include: must be the path of a study file")
    other = path.absolute().parent / name
    if len(above) >= _DEEPEST or any(
        os.path.realpath(one) == os.path.realpath(other) for one in (*above, path)
    ):
        raise StudyError(f"{source.place('include')}: include: the files include each other")
    below = _load(other, (*above, path))
    _absolute(below)
    return Source(_merged(below.table, table), source.base, {**below.lines, **source.lines})


def _absolute(source: Source) -> None:
    """Paths of workloads of an included file start from its own folder."""
    for workload in _tables(source.table.get("workloads")):
        name = workload.get("run")
        if (
            isinstance(name, str)
            and not os.path.isabs(name)
            and os.path.exists(os.path.join(source.base, name))
        ):
            workload["run"] = os.path.join(source.base, name)


def _tables(value: Any) -> list[dict[str, Any]]:
    return [one for one in value.values() if isinstance(one, dict)] if isinstance(value, dict) else []


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for name, value in above.items():
        old = found.get(name)
        found[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def _lines(text: str, path: str) -> dict[str, str]:
    """Lines of keys and tables. tomllib tells none, so keys are looked for at the begins of lines."""
    found, table = {"": path}, ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEAD.match(line):
            table = _dotted(match[1])
            found.setdefault(table, f"{path}:{number}")
        elif match := _KEY.match(line):
            name = _dotted(match[1])
            found.setdefault(f"{table}.{name}" if table else name, f"{path}:{number}")
    return found


def _dotted(name: str) -> str:
    return ".".join(part.strip("\"'") for part in re.findall(_PART, name))
