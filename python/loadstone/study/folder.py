"""The folder of a study: made, opened again, and held by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadstone._files import write_private
from loadstone._json import readable
from loadstone._other import wanted
from loadstone.errors import StudyError
from loadstone.study.file.expand import expand
from loadstone.study.file.sources import Source
from loadstone.study.file.spec import Study
from loadstone.study.journal import VERSION, Journal, refuse_others
from loadstone.study.permissions import Allowed

FORMAT = "loadstone.study"
_PATIENCE = 10.0
"""Seconds to wait for the lock of a process that is gone."""
_NEEDED = 64 << 20
"""Bytes that must be free in the file system of the folder."""


def make(folder: Path, source: Source, allowed: Allowed, budget: float | None) -> None:
    """Makes the folder of a study. Raises ``StudyError`` where it exists, or there is no room."""
    if os.path.lexists(folder):
        told = _told(folder)
        if told is None:
            raise StudyError(
                f"{folder}: exists and is no study's folder; give another name", path=str(folder)
            )
        same = told.get("table") == json.loads(json.dumps(source.table, default=str))
        what = "this study" if same else "another study"
        raise StudyError(
            f"{folder}: is the folder of {what}; loadstone study resume {folder} goes on with it, or give "
            "another name",
            path=str(folder),
        )
    if not folder.absolute().parent.is_dir():
        raise StudyError(f"{folder}: the folder {folder.absolute().parent} does not exist", path=str(folder))
    space = os.statvfs(folder.absolute().parent)
    if space.f_bavail * space.f_frsize < _NEEDED:
        raise StudyError(
            f"{folder}: less than 64 MiB are free there; give a folder with room", path=str(folder)
        )
    folder.mkdir(0o700)
    for name in ("runs", "systems"):
        (folder / name).mkdir(0o700)
    told = {
        "format": FORMAT,
        "version": VERSION,
        "base": source.base,
        "lines": source.lines,
        "table": source.table,
        "made": _made(folder),
        "allowed": asdict(allowed),
        "budget": budget,
    }
    write_private(folder / "study.json", f"{readable(told)}\n".encode())
    with Journal(folder, new=True) as journal:
        journal["study"] = secrets.token_hex(16)
        journal["state"] = "new"


def _made(folder: Path) -> dict[str, Any]:
    """Where a folder was made: a copy of it, or one that came from another host, has other numbers."""
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        machine = ""
    return {"inode": os.stat(folder).st_ino, "machine": machine}


def _refuse_elsewhere(folder: Path) -> None:
    """Raises ``StudyError`` for a folder that was made elsewhere.

    What it permits was permitted by somebody else, and what it would take back is of another host.
    """
    if _described(folder).get("made") != _made(folder):
        raise StudyError(
            f"{folder}: was made elsewhere or is a copy, so it can be shown and reported, and no more; "
            "perform its study file in a new folder: loadstone study run FILE",
            path=str(folder),
        )


def _told(folder: Path) -> dict[str, Any] | None:
    """What ``study.json`` says; None where there is none."""
    try:
        found = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def _described(folder: Path) -> Mapping[str, Any]:
    told = _told(folder)
    if told is None:
        with wanted("study", folder):
            raise StudyError(
                f"{folder}: is no study's folder; loadstone study run FILE makes one", path=str(folder)
            )
    if told.get("version") != VERSION:
        raise StudyError(
            f"{folder}: is of version {told.get('version')}, and this build knows {VERSION}", path=str(folder)
        )
    return told


def study_of(folder: Path) -> Study:
    """The study of a folder."""
    told = _described(folder)
    try:
        return expand(Source(told["table"], told["base"], told["lines"]))
    except (KeyError, TypeError) as error:
        raise StudyError(f"{folder}/study.json: is damaged: {error}", path=str(folder)) from None


def allowed_of(folder: Path) -> tuple[Allowed, float | None]:
    """What the command line permitted when the study began, and its budget in seconds."""
    told = _described(folder)
    try:
        return Allowed(**told["allowed"]), told["budget"]
    except (KeyError, TypeError) as error:
        raise StudyError(f"{folder}/study.json: is damaged: {error}", path=str(folder)) from None


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody else performs or cleans the study in this block. Raises ``StudyError`` where somebody does."""
    refuse_others(folder)
    _refuse_elsewhere(folder)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
                # What a killed process was about to start has its files until it becomes another program.
                if os.path.exists(f"/proc/{holder}") or time.monotonic() > deadline:
                    raise StudyError(
                        f"{folder}: process {holder or '?'} performs this study; wait for it, or end it",
                        path=str(folder),
                    ) from None
                time.sleep(0.02)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)
