"""Cutting traces."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Unpack

from loadstone import _core
from loadstone._other import wanted
from loadstone._text import refuse_no_text
from loadstone.errors import Error
from loadstone.trace.options import Options, Path, Paths, Progress, options_json, paths_list


def select(
    paths: Paths,
    out: Path,
    *,
    start: float | None = None,
    end: float | None = None,
    objects: Sequence[str | int] = (),
    plateaus: float | None = None,
    valleys: float | None = None,
    sample: int | None = None,
    seed: int = 0,
    window: float = 1.0,
    rebase: bool = False,
    force: bool = False,
    level: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """Writes a part of a trace to Parquet and returns its ``requests``, ``dropped`` and ``spans_ns``.

    ``start`` and ``end`` are seconds, ``end`` excluded; ``objects`` are names or ids. At most one of
    ``plateaus``, ``valleys`` and ``sample`` chooses among windows of ``window`` seconds: those whose request
    rate is at or above the quantile ``plateaus`` (0 to 1) of all windows' rates, at or below the quantile
    ``valleys``, or ``sample`` windows at random. Adjacent windows are joined. Times stay as they are unless
    ``rebase``, which closes the gaps and starts at 0. Object ids stay. ``level`` is zstd's, 1 to 22 (9).
    Raises ``Error`` where more than one of these is given, ``TraceError`` where the trace cannot be read, and
    ``OptionError`` for an unknown format.
    """
    picks: list[Any] = []
    if plateaus is not None:
        picks.append({"plateaus": plateaus})
    if valleys is not None:
        picks.append({"valleys": valleys})
    if sample is not None:
        picks.append({"sample": {"windows": sample, "seed": seed}})
    if len(picks) > 1:
        raise Error("plateaus, valleys and a sample exclude each other; choose one")
    selection = {
        "from_ns": None if start is None else round(start * 1e9),
        "to_ns": None if end is None else round(end * 1e9),
        "objects": [str(o) for o in objects],
        "pick": picks[0] if picks else "all",
        "window_ns": round(window * 1e9),
        "rebase": rebase,
    }
    refuse_no_text(selection["objects"])
    names = paths_list(paths)
    with wanted("trace", *names):
        found: dict[str, Any] = json.loads(
            _core.trace_select(
                names,
                options_json(**options),
                json.dumps(selection),
                os.fspath(out),
                force,
                9 if level is None else level,
                progress,
            )
        )
    return found
