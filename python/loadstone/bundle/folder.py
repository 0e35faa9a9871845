"""Folders that are whole or absent: written aside, then renamed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadstone import Error

_ASIDE = re.compile(r"\.(?P<name>.+)\.(?P<kind>tmp|old)-(?P<pid>\d+)$")


def check_free(path: Path, force: bool) -> None:
    """Raises where ``path`` may not be written: it exists, or its folder does not.

    With ``force`` a bundle or an empty folder may be replaced, and nothing else ever.
    """
    if not path.name or path.name in (".", ".."):
        raise Error(f"{path}: is not a name for a bundle; give a folder that does not exist yet")
    if not path.absolute().parent.is_dir():
        raise Error(f"{path}: the folder {path.absolute().parent} does not exist; make it first")
    if not os.path.lexists(path):
        return
    if not force:
        raise Error(f"{path}: exists; give another name, or --force to replace it")
    if path.is_symlink() or not path.is_dir():
        raise Error(f"{path}: is not a folder; a bundle never replaces it, give another name")
    if any(path.iterdir()) and not (path / "summary.json").is_file():
        raise Error(f"{path}: is a folder that is not a bundle; it is never replaced, give another name")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def clean_up(path: Path) -> list[str]:
    """Removes what killed writers of ``path`` left aside; returns the names of what was removed.

    A bundle that was about to be replaced when its writer was killed is put back.
    """
    removed = []
    for entry in sorted(path.absolute().parent.iterdir()):
        match = _ASIDE.match(entry.name)
        if not match or match["name"] != path.name or _alive(int(match["pid"])):
            continue
        if match["kind"] == "old" and not path.exists():
            entry.rename(path)
            continue
        shutil.rmtree(entry, ignore_errors=True)
        removed.append(entry.name)
    return removed


@contextlib.contextmanager
def aside(path: Path, force: bool = False) -> Iterator[Path]:
    """A fresh folder ``.NAME.tmp-PID`` that becomes ``path`` when the block ends without an error.

    On an error it is removed; after a kill it stays under its hidden name until the next writer of
    the same name removes it. ``force`` is as in :func:`check_free`.
    """
    check_free(path, force)
    clean_up(path)
    folder = path.absolute().parent / f".{path.name}.tmp-{os.getpid()}"
    if folder.exists():
        raise Error(f"{path}: is being written by this process already")
    folder.mkdir()
    try:
        yield folder
        for file in folder.rglob("*"):
            if file.is_file():
                _sync(file)
        check_free(path, force)
        old = folder.with_name(f".{path.name}.old-{os.getpid()}")
        if path.exists():
            path.rename(old)
        folder.rename(path)
        _sync(path.absolute().parent)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def plain(value: Any) -> Any:
    """Numpy scalars and arrays, paths and NaN as what JSON has (NaN becomes null)."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def write_json(path: Path, value: Any) -> None:
    """Writes readable JSON."""
    path.write_text(json.dumps(plain(value), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Reads one JSON object; the error names file and line."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Error(f"{path}: is missing; the bundle is damaged") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Error(f"{path}{line}: is not JSON ({error}); the bundle is damaged") from None
    if not isinstance(value, dict):
        raise Error(f"{path}: holds no object; the bundle is damaged")
    return value
