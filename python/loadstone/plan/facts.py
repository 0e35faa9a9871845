"""Facts of a trace or model before it is run."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from loadstone import _core
from loadstone._files import absolute
from loadstone._other import wanted
from loadstone.errors import Error
from loadstone.trace import Options
from loadstone.trace.options import options_json


def reading_of(options: Options | None) -> dict[str, Any]:
    """Options of reading as a plan has them."""
    if not options:
        return {}
    for name in ("dependencies", "threads"):
        if options.get(name) is not None:
            raise Error(
                f"{name}: is not for replays; leave it out (`order` and `within` choose dependencies)"
            )
    reading: dict[str, Any] = json.loads(options_json(**options))
    if "temp_dir" in reading:
        reading["temp_dir"] = absolute(reading["temp_dir"])
    return reading


def look(
    kind: Literal["trace", "model"], path: str, reading: Mapping[str, Any] | None = None, *, ops: bool = False
) -> dict[str, Any]:
    """Facts of a trace or model; ``reading``: as a plan says how a trace is read."""
    try:
        stat = os.stat(path)
        version = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except OSError:
        version = None
    with wanted(kind, path):
        found: dict[str, Any] = json.loads(_looked(kind, path, json.dumps(reading or {}), ops, version))
    return found


@functools.lru_cache(maxsize=8)
def _looked(kind: str, path: str, reading: str, ops: bool, version: object) -> str:
    """As JSON; kept, as planning asks more than once and may have to read all of a trace."""
    return _core.look(kind, path, reading, ops)
