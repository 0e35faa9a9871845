"""Trees of real files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NotRequired, TypedDict, cast

from loadstone import Error, _core
from loadstone._sizes import parse_size

Path = str | os.PathLike[str]
Progress = Callable[[int, int], object]


class Chunking(TypedDict, total=False):
    """How content is cut; sizes are in bytes."""

    kind: str
    """``fixed`` with ``size``, or ``fastcdc`` with the others (Xia et al., USENIX ATC 2016, as of 2020)."""
    size: int
    min: int
    average: int
    max: int


class Counts(TypedDict):
    """Chunks, and how often they occur."""

    files: int
    """Regular files."""
    bytes: int
    """Of chunks."""
    chunks: int
    distinct: int
    """Chunks that differ."""
    distinct_bytes: int
    compressed_bytes: float
    """What codecs would make of those."""
    unique: int
    """Chunks that occur once."""
    dup1: int
    """Twice."""
    dup2: int
    """Three times."""
    dedup_ratio: float
    """Bytes for each one of distinct chunks."""
    compress_ratio: float
    """How many times smaller codecs make the distinct chunks."""


class Snapshot(TypedDict):
    """One state of a file tree."""

    label: str
    directories: int
    depths: list[int]
    """Files by depth: in the root, in its directories, and so on."""
    sizes: list[int]
    """Files by size: empty ones, then of less than 2, 4, 8, ... bytes."""
    types: dict[str, int]
    """Files by extension, where it is widely known; ``none`` and ``other``."""
    alone: Counts
    together: Counts
    """All snapshots up to this one."""


class Report(TypedDict):
    """What the scan of one snapshot met."""

    path: str
    directories: int
    files: int
    symlinks: int
    hard_links: int
    """Further names of files; their content is told once."""
    others: int
    """Devices, pipes and sockets."""
    sparse: int
    hole_bytes: int
    bytes: int
    chunks: int
    unreadable: int
    vanished: int
    """Files that were listed and then not there."""
    changed: int
    """Files that changed while they were read."""
    troubles: list[tuple[str, str]]
    """Path and reason of the first thousand of those three."""


class Described(TypedDict):
    """What :func:`describe` and :func:`scan` return."""

    meta: dict[str, Any]
    chunks: int
    bits: int
    """Of fingerprints; 0 where chunks were made up."""
    snapshots: list[Snapshot]
    scanned: NotRequired[list[Report]]


def scan(
    path: Path | Sequence[Path],
    output: Path,
    *,
    chunking: str = "fastcdc",
    bits: int = 96,
    compress: bool = True,
    strip: int = 0,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Described:
    """Scans directories and tar archives, each as one snapshot, and writes the series to ``output``.

    ``chunking``: ``fastcdc`` (2 to 64 KiB, 8 KiB on average), ``fastcdc:4k,16k,128k`` (smallest, on average,
    largest) or ``fixed:4k``. ``bits``: of fingerprints, keyed BLAKE3 whose key is forgotten; the thesis has
    48. ``compress``: measure how far every new chunk compresses, whole, by zstd at level 1. ``strip``:
    directories that are left away from the beginning of paths in archives, so that files of successive
    releases have one name. ``threads``: that read; all CPUs unless said. Archives may be compressed by gzip,
    zstd, xz or bzip2.

    ``progress`` is told of bytes read, of how many. Raises ``Error`` where a path itself cannot be read; what
    cannot be read inside is in ``scanned``, with its name.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    options = {
        "chunking": parse_chunking(chunking),
        "bits": bits,
        "compress": compress,
        "strip": strip,
        "threads": threads or len(os.sched_getaffinity(0)),
    }
    found = _core.dataset_scan(
        [os.fspath(one) for one in paths], json.dumps(options), os.fspath(output), force, progress
    )
    return cast(Described, json.loads(found))


def describe(path: Path) -> Described:
    """What a series has, snapshot by snapshot; counts as in the figures 4.5 to 4.11 of the thesis."""
    return cast(Described, json.loads(_core.dataset_describe(os.fspath(path))))


def parse_chunking(text: str) -> Chunking:
    """``fastcdc``, ``fastcdc:2k,8k,64k`` or ``fixed:4k`` as the native module takes it."""
    kind, _, rest = text.partition(":")
    sizes = [parse_size(part) for part in rest.split(",")] if rest else []
    if kind == "fastcdc" and not sizes:
        sizes = [2 << 10, 8 << 10, 64 << 10]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        if kind == "fastcdc" and len(known) == 3:
            return {"kind": kind, "min": known[0], "average": known[1], "max": known[2]}
        if kind == "fixed" and len(known) == 1:
            return {"kind": kind, "size": known[0]}
    raise Error(f"{text!r} is not a chunking; write it like fastcdc, fastcdc:2k,8k,64k or fixed:4k")
