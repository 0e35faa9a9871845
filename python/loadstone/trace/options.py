"""How a trace is opened, as every function here takes it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from loadstone import _core
from loadstone._text import refuse_no_text
from loadstone.errors import OptionError

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]
Progress = Callable[[int, int], object]


class Options(TypedDict, total=False):
    """Options of reading; leave out what need not differ from its default."""

    format: str | None
    """Name of the format; default: detected from the content, `delimited` with columns."""
    columns: Mapping[str, Any] | None
    """Column map of delimited text, as :func:`columns_from_text` makes it."""
    reorder: float
    """Seconds by which a record may be out of time order and still be put right; 1."""
    sort: bool
    """Sort the whole trace in temporary files instead; false."""
    temp_dir: Path | None
    """Where those files go; the system's place by default."""
    max_damaged: int
    """Damaged records that are passed over and counted before it is an error; 0."""
    spread_ties: bool
    """Spread requests of one time evenly over a tick of the source's clock; false."""
    dependencies: float | None
    """Tell what each request waited for: the last completion of its actor, at most so many seconds before;
    what the trace says itself is kept. Off by default."""
    salvage: bool
    """Pass over all damage and count what is lost; false."""
    threads: int
    """Parsing threads of text formats; one per CPU, at most 8."""


def paths_list(paths: Paths) -> list[str]:
    """One path or several as a list of strings."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(p) for p in paths]


def options_json(**options: Unpack[Options]) -> str:
    """The options as the core takes them."""
    plain: dict[str, object] = {k: v for k, v in options.items() if v is not None}
    reorder = plain.pop("reorder", None)
    if isinstance(reorder, (int, float)):
        plain["reorder_ns"] = round(reorder * 1e9)
    within = plain.pop("dependencies", None)
    if isinstance(within, (int, float)):
        plain["dependencies_ns"] = round(within * 1e9)
    temp_dir = options.get("temp_dir")
    if temp_dir is not None:
        plain["temp_dir"] = os.fspath(temp_dir)
    known = [name for name, _ in _core.trace_formats()]
    if options.get("format") not in (None, *known):
        raise OptionError(
            "format", None, f"no format is called {options['format']}; known: {', '.join(known)}"
        )
    if "columns" in plain:
        plain.setdefault("format", "delimited")
    refuse_no_text(plain)
    return json.dumps(plain)
