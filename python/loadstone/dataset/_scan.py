"""Trees of real files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NotRequired, TypedDict, cast

from loadstone import _core, _values
from loadstone._other import wanted
from loadstone.errors import Error, OptionError

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
    unreadable: NotRequired[int]
    """Files whose content could not be read; where there are any."""
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
    executables: int
    symlinks: int
    hard_links: int
    """Further names of files; their content counts once."""
    others: int
    """Devices, pipes and sockets."""
    submodules: int
    """Of a repository; they are left out."""
    sparse: int
    hole_bytes: int
    bytes: int
    chunks: int
    reused: int
    """Files that were not read, as their content is that of a file that was."""
    unreadable: int
    vanished: int
    """Files that were listed and then not there."""
    changed: int
    """Files that changed while they were read."""
    troubles: list[tuple[str, str]]
    """Path and reason of the first thousand of those three."""
    notes: list[str]
    """What is to be known of the source, though nothing is wrong with it."""


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
    compress: str | bool = "sample",
    key: Path | None = None,
    strip: int = 0,
    settled: float | None = 60.0,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Described:
    """Scans directories, tar archives and FSL hash files, each as one snapshot of the series ``output``.

    ``chunking``: ``fastcdc`` (2 to 64 KiB, 8 KiB on average), ``fastcdc:4k,16k,128k`` (smallest, on
    average, largest) or ``fixed:4k``. ``bits``: of fingerprints, keyed BLAKE3; the thesis has 48.
    ``compress``: how far new chunks compress is measured by zstd at level 1 of a ``sample``, of every
    ``whole`` chunk (also ``True``), or not at all (``none``, also ``False``). ``whole`` also tells how much
    less zstd makes of larger pieces than of their chunks one by one. ``key``: a file of 16 bytes
    and more that the key of fingerprints is made of, so that scans at other times and places find the same
    chunks; whoever has it can look for known content in the output. Without one the key is drawn and
    forgotten.

    ``strip``: directories that are left away from the beginning of paths in archives, so that files of
    successive releases have one name. Archives and hash files may be compressed by gzip, zstd, xz or bzip2.

    ``settled``: a file that an earlier snapshot has, too (a hard link, or the same inode of another
    snapshot of one btrfs subvolume) is not read again if its size and times are the same and it was left
    alone for so many seconds before the two could begin to differ; None: every file is read. ``threads``:
    that read; all CPUs unless said.

    ``progress`` is told of bytes read, of how many (0: not known). Raises ``Error`` where a path itself
    cannot be read; what cannot be read inside is in ``scanned``, with its name.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    options = _options(chunking, bits, compress, key, threads, strip=strip, settled=settled)
    names = [os.fspath(one) for one in paths]
    with wanted("snapshot", *names):
        found = _core.dataset_scan(names, options, os.fspath(output), force, progress)
    return cast(Described, json.loads(found))


def scan_git(
    repo: Path,
    output: Path,
    *,
    revisions: str | None = None,
    tags: str | None = None,
    every: int = 1,
    chunking: str = "fastcdc",
    bits: int = 96,
    compress: str | bool = "sample",
    key: Path | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Described:
    """Scans commits of a git repository, bare or not, each as one snapshot of the series ``output``.

    ``revisions``: which, as gitrevisions(7) has them (``v1..main``); all before HEAD unless said. Of merges
    the first parent is followed. ``tags``: instead, the tags that match a pattern (``v4.*``), in the order
    of their versions. ``every``: only every how manyth, counted back from the last.

    Objects are read by the program git; nothing is checked out or fetched. Content that was seen is not read
    again. Submodules are left out and counted. The other parameters are those of :func:`scan`. Raises
    ``DatasetError`` where git fails or finds no commit, or ``output`` exists and ``force`` is not set, and
    ``OptionError`` for what is no chunking.
    """
    commits = {"revisions": revisions, "tags": tags, "every": every}
    options = _options(chunking, bits, compress, key, threads, strip=0, settled=None)
    found = _core.dataset_scan_git(
        os.fspath(repo), json.dumps(commits), options, os.fspath(output), force, progress
    )
    return cast(Described, json.loads(found))


def snapshots(path: Path, order: str = "name") -> list[str]:
    """The snapshots in a directory: those of its children that are directories, hidden ones left out.

    ``order``: by ``name``, numbers in it by value; ``reverse``, as rotated backups are named (``daily.0`` is
    the newest); or ``created``, by when they were made (a subvolume of btrfs as it says, another directory as
    statx(2) does). Snapshots of snapper (``.snapshots/7/snapshot``) are found, too. Raises ``DatasetError``
    where the directory cannot be read or has none.
    """
    return _core.dataset_snapshots(os.fspath(path), json.dumps(order))


def _options(
    chunking: str, bits: int, compress: str | bool, key: Path | None, threads: int | None, **more: object
) -> str:
    if isinstance(compress, bool):
        compress = "whole" if compress else "none"
    return json.dumps(
        {
            "chunking": parse_chunking(chunking),
            "bits": bits,
            "compress": compress,
            "key": None if key is None else os.fspath(key),
            "threads": threads or len(os.sched_getaffinity(0)),
            **more,
        }
    )


def describe(path: Path) -> Described:
    """What a series has, snapshot by snapshot; counts as in the figures 4.5 to 4.11 of the thesis.

    Raises ``DatasetError`` where it cannot be read or is damaged.
    """
    with wanted("series", path):
        return cast(Described, json.loads(_core.dataset_describe(os.fspath(path))))


def parse_chunking(text: str) -> Chunking:
    """``fastcdc``, ``fastcdc:2k,8k,64k`` or ``fixed:4k`` as the native module takes it."""
    kind, _, rest = text.partition(":")
    try:
        sizes = [_values.size(part) for part in rest.split(",")] if rest else []
    except Error as error:
        raise OptionError(None, None, f"{text!r} is not a chunking: {error}") from None
    if kind == "fastcdc" and not sizes:
        sizes = [2 << 10, 8 << 10, 64 << 10]
    if kind == "fastcdc" and len(sizes) == 3:
        return {"kind": kind, "min": sizes[0], "average": sizes[1], "max": sizes[2]}
    if kind == "fixed" and len(sizes) == 1:
        return {"kind": kind, "size": sizes[0]}
    raise OptionError(
        None, None, f"{text!r} is not a chunking; write it like fastcdc, fastcdc:2k,8k,64k or fixed:4k"
    )
