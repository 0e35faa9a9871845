"""What a bundle may hold: files of its own, and numbers with which memory and time stay bounded."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from loadstone.bundle.codes import OTHER, SHORT
from loadstone.errors import Error
from loadstone.stats.histogram import BUCKETS

LARGEST = 1 << 26
"""Bytes of a text: a summary with a thousand damages has less than a million. Plans beyond it are not run."""
INTERVALS = 1 << 26
"""Intervals of a run: 18 hours of milliseconds."""
_COUNT = 1 << 62


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file of a bundle, open. Raises ``Error`` where it is missing, or is a link, a pipe or the like."""
    try:
        # Looked at first, as opening some devices does something.
        regular = stat.S_ISREG(os.lstat(path).st_mode) or path.is_symlink()
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC) if regular else -1
    except FileNotFoundError:
        raise Error(f"{path}: is missing; the bundle is damaged") from None
    except OSError as error:
        if path.is_symlink():
            raise Error(f"{path}: is a link, which no bundle has; copy the file it leads to") from None
        raise Error(f"{path}: cannot be read: {error.strerror}") from None
    if fd < 0 or not stat.S_ISREG(os.fstat(fd).st_mode):
        if fd >= 0:
            os.close(fd)
        raise Error(f"{path}: is no file, as a part of a bundle is")
    with os.fdopen(fd, "rb") as file:
        yield file


def folder(path: Path) -> Path:
    """A folder inside a bundle. Raises ``Error`` where it is none, or a link."""
    if path.is_symlink() or not path.is_dir():
        raise Error(f"{path}: is missing or is no folder; the bundle is damaged")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """Reads one JSON object; the error names file and line."""
    with opened(path) as file:
        # As large as it is, as all that is asked for is allocated.
        data = file.read(min(os.fstat(file.fileno()).st_size, LARGEST) + 1)
    if len(data) > LARGEST:
        raise Error(f"{path}: has more than {LARGEST >> 20} MiB, which no bundle needs; it is damaged")
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_constant, parse_float=_finite)
    except RecursionError:
        raise Error(f"{path}: is nested too deep for a bundle; it is damaged") from None
    except ValueError as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Error(f"{path}{line}: is not JSON ({error}); the bundle is damaged") from None
    if not isinstance(value, dict):
        raise Error(f"{path}: holds no object; the bundle is damaged")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is too large a number")
    return value


def run_folder(path: Path, run: Any) -> str:
    """The folder of a run that ``path`` of a bundle lists; raises ``Error`` for what leads out of it."""
    name = run.get("path") if isinstance(run, dict) else None
    if not isinstance(name, str) or not isinstance(run.get("name"), str):
        raise Error(f"{path}: its list of runs is damaged")
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise Error(f"{path}: the run {run['name']!r} lies in {name!r}, which is no folder of this bundle")
    return name


_COUNTS = {
    "elapsed_ns": 1,
    "interval_ns": 1,
    "started_monotonic_ns": 0,
    "requests": 0,
    "bytes": 0,
    "errors": 0,
    "short": 0,
}
"""Whole numbers of a summary, and the least of each."""
_KINDS: dict[str, type | tuple[type, ...]] = {
    "partial": bool,
    "started": str,
    "ops": dict,
    "ops_per_s": (int, float),
    "bytes_per_s": (int, float),
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "steps": dict,
    "lateness": dict,
    "observation": dict,
    "verified": dict,
    "content": dict,
    "steady": dict,
    "depths": list,
    "log": dict,
    "failure": str,
    "workload": str,
    "warnings": list,
    "notes": list,
    "windows": list,
}


def check_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Raises ``Error`` where a run's summary lacks what it must have, or has what cannot be."""
    for key, least in _COUNTS.items():
        _count(path, summary, key, least)
    for key, kind in _KINDS.items():
        if not isinstance(summary.get(key), kind):
            raise Error(f"{path}: {key} is {_told(summary.get(key))}; the bundle is damaged")
    for key, kind in _OPTIONAL.items():
        if summary.get(key) is not None and not isinstance(summary[key], kind):
            raise Error(f"{path}: {key} is {_told(summary[key])}; the bundle is damaged")
    if summary["elapsed_ns"] // summary["interval_ns"] > INTERVALS:
        raise Error(
            f"{path}: interval_ns is {summary['interval_ns']}, too short for elapsed_ns; it is damaged"
        )
    if observation := summary.get("observation"):
        for key, least in (("interval_ns", 1), ("missed", 0), ("ticks_per_s", 1)):
            _count(path, observation, key, least, "observation.")
        if not isinstance(observation.get("device"), dict | None):
            raise Error(
                f"{path}: observation.device is {_told(observation['device'])}; the bundle is damaged"
            )


def _count(path: Path, told: Mapping[str, Any], key: str, least: int, where: str = "") -> None:
    value = told.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _COUNT:
        raise Error(f"{path}: {where}{key} is {_told(value)}; the bundle is damaged")


def _told(value: Any) -> str:
    text = repr(value) if isinstance(value, bool | int | float | str | None) else type(value).__name__
    return text if len(text) < 60 else f"{text[:57]}..."


def check_ops(path: Path, columns: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Raises ``Error`` where ``ops.parquet`` holds what cannot be counted."""
    most = {"op": 255, "worker": 65535, "thread": 65535, "count": 1 << 53, "bytes": _COUNT}
    # Steps that are no requests may end later than the last request.
    most["interval"] = min(2 * (summary["elapsed_ns"] // summary["interval_ns"]) + 1000, INTERVALS)
    for name in ("errno", *most):
        if name not in columns:
            continue
        column = columns[name]
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
            raise Error(f"{path}: its column {name} holds no whole numbers; the bundle is damaged")
        if name in most and len(column) and not 0 <= (worst := _worst(column, most[name])) <= most[name]:
            raise Error(f"{path}: its column {name} has {worst}; the bundle is damaged")
    for kind in ("response", "service"):
        buckets, counts = columns[f"{kind}_bucket"], columns[f"{kind}_count"]
        lists = all(hasattr(one, "offsets") and one.values.dtype.kind in "iu" for one in (buckets, counts))
        if not lists or not np.array_equal(buckets.offsets, counts.offsets):
            raise Error(f"{path}: its columns {kind}_bucket and {kind}_count do not match; it is damaged")
        for values, limit in ((buckets.values, BUCKETS - 1), (counts.values, 1 << 53)):
            if len(values) and not 0 <= (worst := _worst(values, limit)) <= limit:
                raise Error(f"{path}: its histograms of {kind} have {worst}; the bundle is damaged")
    _check_sums(path, columns, summary)


def _check_sums(path: Path, columns: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Raises ``Error`` where the totals of a summary are not those of its table."""
    if not {"op", "errno", "count", "bytes", "interval"} <= set(columns):
        return
    rows = columns["op"] != OTHER
    count, errno = columns["count"].astype(np.int64) * rows, columns["errno"]
    found = {
        "requests": count.sum(),
        "bytes": (columns["bytes"].astype(np.int64) * rows).sum(),
        "errors": count[errno > 0].sum(),
        "short": count[errno == SHORT].sum(),
    }
    seconds = summary["elapsed_ns"] / 1e9
    told = {name: summary[name] for name in found if name in summary}
    rates = {"ops_per_s": count[errno == 0].sum(), "bytes_per_s": found["bytes"]}
    for name, of in rates.items():
        if name in summary and seconds > 0:
            found[name], told[name] = of / seconds, summary[name]
    for name, value in told.items():
        if not math.isclose(value, found[name], rel_tol=1e-6):
            raise Error(
                f"{path}: summary.json beside it says {value:,} {name} and it has {found[name]:,}: one of "
                "both was changed, so the bundle is damaged"
            )
    last = int(columns["interval"][rows].max(initial=0))
    if last * summary["interval_ns"] > summary["elapsed_ns"]:
        raise Error(
            f"{path}: it goes on behind the {seconds:g} s of summary.json beside it: one of both was "
            "changed, so the bundle is damaged"
        )


def _worst(values: Any, most: int) -> int:
    low, high = int(values.min()), int(values.max())
    return low if low < 0 else high


@contextlib.contextmanager
def damaged(what: str) -> Iterator[None]:
    """What numbers and names that contradict each other lead to is an ``Error`` about the bundle ``what``."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        at, trace = "", error.__traceback__
        while trace is not None:
            at, trace = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}", trace.tb_next
        raise Error(
            f"{what}: holds what no bundle has, so it is damaged ({type(error).__name__} at {at}: {error})"
        ) from error
