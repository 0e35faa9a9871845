"""Any trace to the Parquet request table."""

from __future__ import annotations

import json
import os
from typing import Any, Unpack

from loadstone import _core
from loadstone.trace._options import Options, Path, Paths, Progress, options_json, paths_list


def convert(
    paths: Paths,
    out: Path,
    *,
    force: bool = False,
    level: int = 9,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """Converts a trace to Parquet and returns what reading it found.

    ``paths`` is one file, or the per-CPU files of a blktrace capture (or their base). ``level`` is
    zstd's, 1 to 22. The file appears only when it is whole; an existing one is kept unless
    ``force``. ``progress(done, total)`` is called with bytes from time to time.
    """
    info: dict[str, Any] = json.loads(
        _core.trace_convert(
            paths_list(paths), options_json(**options), os.fspath(out), force, level, progress
        )
    )
    return info
