"""Any trace to the Parquet request table, or to the format of another tool."""

from __future__ import annotations

import json
import os
from typing import Any, Unpack

from loadstone import _core
from loadstone._other import wanted
from loadstone.errors import OptionError
from loadstone.trace.options import Options, Path, Paths, Progress, options_json, paths_list


def convert(
    paths: Paths,
    out: Path,
    *,
    force: bool = False,
    level: int | None = None,
    to: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """Converts a trace and returns what reading it found.

    ``paths`` is one file, or the per-CPU files of a blktrace capture (or their base). ``to`` names the
    format to write, one of :func:`exports` or ``parquet``; without it the ending of ``out`` decides, and
    Parquet is what all others are. ``level`` is zstd's, 1 to 22 (9), and of Parquet alone. The file appears
    only when it is whole; an existing one is kept unless ``force``. ``progress(done, total)`` is called with
    bytes from time to time.

    What another tool's format cannot express is counted under ``losses`` of the answer, and ``output`` is the
    file that was written: blktrace's has the number of a CPU at its end. Raises ``TraceError`` where the
    trace cannot be read or ``out`` exists and ``force`` is not set, and ``OptionError`` for an unknown format
    or a level of one that is not compressed.
    """
    if to is None:
        ending = os.path.splitext(os.fspath(out))[1].removeprefix(".").lower()
        to = next((name for name, endings in exports().items() if ending in endings), "parquet")
    if to not in (known := ["parquet", *exports()]):
        raise OptionError("to", None, f"no format called {to} can be written; known: {', '.join(known)}")
    names = paths_list(paths)
    if to != "parquet":
        if level is not None:
            raise OptionError("level", None, f"only Parquet is compressed; leave it out for {to}")
        with wanted("trace", *names):
            found, path, losses = json.loads(
                _core.trace_export(names, options_json(**options), os.fspath(out), to, force, progress)
            )
        return {**found, "output": path, "losses": losses}
    level = 9 if level is None else level
    with wanted("trace", *names):
        info: dict[str, Any] = json.loads(
            _core.trace_convert(names, options_json(**options), os.fspath(out), force, level, progress)
        )
    return {**info, "output": os.fspath(out)}


def exports() -> dict[str, list[str]]:
    """The formats a trace can be written in besides Parquet, and the file endings that ask for each."""
    return dict(_core.trace_exports())
