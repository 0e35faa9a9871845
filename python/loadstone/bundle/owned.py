"""What is a bundle and holds nothing else: only that may be replaced."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadstone._core import MARK
from loadstone.bundle.codes import VERSION
from loadstone.errors import Error

RUN, SERIES = "loadstone-run", "loadstone-series"
"""Formats of ``summary.json``."""

_TABLES = ("ops.parquet", "events.parquet", "series.parquet")
_MORE_TABLES = ("response.parquet", "probes.parquet")
_TEXTS = ("plan.json", "summary.json")
NAMES = frozenset({*_TABLES, *_MORE_TABLES, *_TEXTS, "bundle.json", "model.mdh", ".reserve", MARK})
"""Files of bundles, and of those that are being written."""
_LARGEST = 1 << 28
"""Bytes of a text beyond which it is not read to find out what it is."""


class _Foreign(Exception):
    """Something that no bundle has."""


def check(fd: int, path: Path) -> None:
    """Raises ``Error`` unless the open folder is a whole bundle with nothing in it but what Loadstone writes.

    An empty folder passes. ``path`` is what it is called.
    """
    try:
        names = set(os.listdir(fd))
        if MARK in names:
            _read(fd, MARK, "", 0)
        if names - {MARK}:
            _bundle(fd, _mount_of(fd), "")
    except _Foreign as error:
        raise Error(
            f"{path}: is never replaced, as it is not only a bundle: {error}; give another name, or "
            "look what is in it and remove it yourself"
        ) from None
    except OSError as error:
        raise Error(f"{path}: cannot be looked at: {error.strerror}; give another name") from None


def _bundle(fd: int, mount: tuple[int, int], where: str, inside: bool = False) -> None:
    """One bundle, or one of several runs where ``inside`` is false."""
    names = set(os.listdir(fd)) - {MARK}
    if "summary.json" not in names:
        raise _Foreign(f"it has no {where}summary.json")
    told = _object(fd, "summary.json", where).get("format")
    if told == RUN:
        _run(fd, names, mount, where)
    elif told == SERIES and not inside:
        _series(fd, names, mount)
    else:
        raise _Foreign(f"{where}summary.json is of format {told!r}")


def _run(fd: int, names: set[str], mount: tuple[int, int], where: str) -> None:
    _known(names, {*_TABLES, *_MORE_TABLES, *_TEXTS, "environment"}, where)
    for name in (*_TABLES, "plan.json", "environment"):
        if name not in names:
            raise _Foreign(f"it has no {where}{name}")
    _object(fd, "plan.json", where)
    for name in names & {*_TABLES, *_MORE_TABLES}:
        if _read(fd, name, where, 4) != b"PAR1":
            raise _Foreign(f"{where}{name} is no Parquet file")
    with _folder(fd, "environment", mount, f"{where}environment") as inner:
        for name in os.listdir(inner):
            told = f"{where}environment/{name}"
            if "host" not in _object(inner, name, f"{where}environment/") or not name.endswith(".json"):
                raise _Foreign(f"{told} names no host")


def _series(fd: int, names: set[str], mount: tuple[int, int]) -> None:
    if "bundle.json" not in names:
        raise _Foreign("it has no bundle.json")
    listed = _object(fd, "bundle.json", "")
    runs, files = listed.get("runs"), listed.get("files", [])
    if listed.get("format") != SERIES or not isinstance(runs, list) or not isinstance(files, list):
        raise _Foreign("bundle.json lists no runs")
    paths = {run.get("path") for run in runs if isinstance(run, dict)}
    more = {name for name in files if isinstance(name, str)} | {"model.mdh"}
    _known(names, {"bundle.json", "summary.json", *more, *paths}, "")
    for name in names & more:
        _read(fd, name, "", 0)
    for name in sorted(names & paths):
        with _folder(fd, name, mount, name) as inner:
            _bundle(inner, mount, f"{name}/", inside=True)


def _known(names: set[str], known: set[Any], where: str) -> None:
    if foreign := sorted(names - known):
        told = ", ".join(f"{where}{name}" for name in foreign[:5])
        more = f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""
        raise _Foreign(f"it holds {told}{more}")


def _is_folder(fd: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)


@contextlib.contextmanager
def _folder(fd: int, name: str, mount: tuple[int, int], what: str) -> Iterator[int]:
    """A folder inside, opened; a link is none, nor is what is mounted there."""
    if not _is_folder(fd, name):
        raise _Foreign(f"{what} is no folder")
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        if _mount_of(inner) != mount:
            raise _Foreign(f"something is mounted on {what}")
        yield inner
    finally:
        os.close(inner)


def _mount_of(fd: int) -> tuple[int, int]:
    """The mount that an open file lies on, and its device: bind mounts of one file system differ."""
    number = -1
    with contextlib.suppress(OSError, ValueError), open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("mnt_id:"):
                number = int(line.split()[1])
    return number, os.fstat(fd).st_dev


def _read(fd: int, name: str, where: str, most: int) -> bytes:
    """The first bytes of a regular file."""
    if not stat.S_ISREG(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
        raise _Foreign(f"{where}{name} is no file")
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    with open(file, "rb") as opened:
        return opened.read(most)


def _object(fd: int, name: str, where: str) -> dict[str, Any]:
    text = _read(fd, name, where, _LARGEST)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _Foreign(f"{where}{name} holds no JSON object")
    version = value.get("version")
    if value.get("format") in (RUN, SERIES) and not (isinstance(version, int) and version <= VERSION):
        raise _Foreign(f"{where}{name} is of version {version}, and this build knows {VERSION}")
    return value
