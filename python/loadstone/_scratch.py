"""Folders for temporary files, which the next command removes where a kill left them."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loadstone._core import HeldFolder, sweep_folders
from loadstone.errors import Error


def temporary() -> Path:
    """Where temporary files go: $TMPDIR, /tmp, ... Raises ``Error`` where nothing can be written to any."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise Error(f"{error.strerror}; set TMPDIR to a folder with room") from None


def make(purpose: str) -> HeldFolder:
    """A folder ``loadstone-PURPOSE-...`` for temporary files ($TMPDIR).

    What killed processes left of the same purpose is removed first. Raises ``Error`` where there is no room.
    """
    parent = temporary()
    before = f"loadstone-{purpose}-"
    try:
        sweep_folders(parent, before)
        return HeldFolder(parent, before)
    except OSError as error:
        raise Error(
            f"{parent}: no folder for temporary files can be made there: {error.strerror}; set TMPDIR to "
            "another one"
        ) from None


@contextlib.contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """The same, removed at the end."""
    held = make(purpose)
    try:
        yield held.path
    finally:
        try:
            held.remove()
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        finally:
            held.release()
