"""What chunkers and codecs find in files."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from typing import TypedDict, cast

from loadstone import _core
from loadstone.errors import Error

Path = str | os.PathLike[str]
Progress = Callable[[int, int], object]


class Duplicates(TypedDict):
    """Chunks, and how many of them are unique."""

    ratio: float
    """Bytes for each unique one."""
    chunks: int
    bytes: int
    unique_chunks: int
    unique_bytes: int
    deviation: float
    """Standard deviation of the unique ones, relative to them; 0: they were counted. Above 1.8 million they
    are estimated from those whose fingerprints end in zeros (distinct sampling: Gibbons, VLDB 2001)."""


class Codecs(TypedDict, total=False):
    """What codecs made of pieces of one size."""

    pieces: int
    bytes: int
    """Of all pieces that codecs got."""
    lz4: float
    """Ratio of lz4's blocks; absent, as the others, where there was nothing."""
    zstd: float
    """Ratio of Zstandard at level 1."""
    zlib: float
    """Ratio of zlib at level 6."""


class Found(TypedDict):
    """What :func:`examine` returns; sizes are in bytes."""

    unit: int
    piece: int
    files: int
    """Files and devices; of hard links only one."""
    unreadable: int
    """Files and directories that could not be read, in whole or in part."""
    reason: str | None
    """Why not, of the first."""
    others: int
    """Links, further names of files, sockets and the like, which hold no data of their own."""
    bytes: int
    """Of all files."""
    read: int
    """Of those that were read."""
    zero_blocks: int
    """Blocks of zeros only."""
    fixed: Duplicates
    """By blocks of ``unit``; the last of a file may be smaller."""
    fastcdc: Duplicates
    """By chunks of 2 to 64 KiB, 8 KiB on average (FastCDC: Xia et al., USENIX ATC 2016, as of 2020)."""
    by_unit: Codecs
    by_piece: Codecs


def examine(
    path: Path | Sequence[Path | tuple[Path, int | None]],
    *,
    unit: int = 4096,
    piece: int = 128 << 10,
    sample: int | None = None,
    compress: int | None = 64 << 20,
    progress: Progress | None = None,
) -> Found:
    """Reads files, devices, or directories with all in them: how far they deduplicate and compress.

    ``unit`` and ``piece``: bytes of what codecs get one by one, and ``unit`` of blocks that are compared.
    ``sample``: read about so many bytes, in stretches of 8 MiB spread evenly; by default all, since
    duplicates whose twins are not read are not found. ``compress``: give codecs about so many of those, in
    pieces spread evenly; None: all. Of several paths each may come with how many bytes of it are looked at.
    At most some 80 MB of memory are needed, and what the names in the directories on the way take.
    ``progress`` is told of bytes read, of how many. Raises ``Error`` where a path itself cannot be read or
    holds no data (a pipe, a socket, a character device); what is so inside a directory is counted.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    starts = [
        (os.fspath(one[0]), one[1]) if isinstance(one, tuple) else (os.fspath(one), None) for one in paths
    ]
    for start, _ in starts:
        _refuse_without_data(start)
    options = {"unit": unit, "piece": piece, "sample": sample, "compress": compress}
    found = _core.examine_content(starts, json.dumps(options), progress)
    return cast(Found, {"unit": unit, "piece": piece, **found})


def _refuse_without_data(path: str) -> None:
    """Raises for a named pipe, socket or character device: inside a directory these are only counted."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # What is not there is told by whoever opens it.
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode)):
        raise Error(
            f"{path}: is a pipe, a socket or a character device, which holds no data of its own; "
            "name a file, a directory or a block device"
        )
