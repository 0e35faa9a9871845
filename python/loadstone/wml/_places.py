"""Block devices and single files in place of trees of files: what is there."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from loadstone.errors import Error

RAW = frozenset(
    {"read", "write", "read_whole", "write_whole", "open", "close", "stat", "sync", "datasync", "sync_set"}
)
"""What can be done with a file that is neither made nor removed and keeps its size."""


@dataclass(frozen=True)
class Single:
    """A file or device that is there and is used as it is."""

    path: str
    kind: str
    """``file`` or ``device``."""
    size: int
    """Bytes."""


def single(path: str) -> Single | None:
    """The block device or regular file of that name; None where there is none."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return Single(path, "file", os.stat(path).st_size)
        if not stat.S_ISBLK(mode):
            return None
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Error(f"{path}: cannot be looked at: {error.strerror}") from None
    try:
        return Single(path, "device", os.lseek(fd, 0, os.SEEK_END))
    finally:
        os.close(fd)
