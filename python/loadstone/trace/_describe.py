"""What a trace looks like."""

from __future__ import annotations

import json
from typing import Any, Unpack

from loadstone import _core
from loadstone._other import wanted
from loadstone.trace.options import Options, Paths, Progress, options_json, paths_list


def describe(paths: Paths, *, progress: Progress | None = None, **options: Unpack[Options]) -> dict[str, Any]:
    """Reads a trace once and says what is in it, in bounded memory.

    The result has ``requests``, ``span_ns``, ``requests_per_s``, ``bytes``, ``read_share``,
    ``read_bytes_share``, ``ops``, ``size``, ``common_sizes``, ``interarrival_ns``, ``jump``, ``latency_ns``,
    ``footprint``, ``popularity``, ``objects``, ``busiest``, ``flags``, ``rate`` and ``info``;
    ``docs/reference/formats/trace.md`` says what each means. Raises ``TraceError`` where it cannot be read,
    and ``OptionError`` for an unknown format.
    """
    names = paths_list(paths)
    with wanted("trace", *names):
        found: dict[str, Any] = json.loads(_core.trace_describe(names, options_json(**options), progress))
    return found


def summary(paths: Paths, *, progress: Progress | None = None, **options: Unpack[Options]) -> dict[str, Any]:
    """Requests, span and the extent of every object.

    Loadstone's own files carry it in their metadata; other traces are read once. Raises ``TraceError`` where
    it cannot be read, and ``OptionError`` for an unknown format.
    """
    names = paths_list(paths)
    with wanted("trace", *names):
        found: dict[str, Any] = json.loads(_core.trace_summary(names, options_json(**options), progress))
    return found
