"""Profiles, and files that are written from series."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Literal, TypedDict, cast

from loadstone import _core
from loadstone._files import is_part
from loadstone._other import wanted
from loadstone.dataset._scan import Chunking, Path, Progress, Snapshot, describe
from loadstone.errors import Error, OptionError


class Step(TypedDict):
    """One snapshot as a change of the one before; numbers of files."""

    before: int
    new: int
    deleted: int
    modified: int
    rows: int
    """Rows of the histograms."""


class Resemblance(TypedDict):
    """How much less codecs make of larger pieces of files than of their chunks one by one; shares."""

    near: float
    """In pieces of 128 KiB, by zstd at level 1."""
    far: float
    """In pieces of 1 MiB, by zstd at level 3."""


class Profiled(TypedDict):
    """What a profile has but its histograms."""

    chunking: Chunking
    chunker: str
    codec: str | None
    """What compressibility was measured by."""
    resemblance: Resemblance | None
    """None where not every chunk was measured."""
    stays: float | None
    """Of new chunks in files that changed, how much was at their place before (0 to 1).

    None where it was not looked at."""
    extensions: int
    markov: dict[str, float] | None
    """Transitions of files in percent, as table 4.2 of the thesis has them; None of a single snapshot."""
    patterns: list[float] | None
    """Of modified files, in percent: B, E, M, BE, BM, ME, BEM (table 4.3)."""
    steps: list[Step]
    snapshots: list[Snapshot]


class RunLengths(TypedDict):
    """Runs of one snapshot: lengths in chunks, and how many runs there are of each."""

    fresh: dict[int, int]
    """Of chunks that no snapshot before had, nor what was read of this one."""
    repeated: dict[int, int]
    """Of chunks that were stored before, each right after the one before it."""


class Written(TypedDict):
    """One snapshot that was written."""

    snapshot: int
    path: str
    written: dict[str, int]
    """``directories``, ``files``, ``links``, ``bytes``, ``left_out`` (devices and what could not be read) and
    ``broken_links`` (hard links whose file is not written)."""


def profile(series: Path, output: Path | None = None, *, runs: bool = True, force: bool = False) -> Profiled:
    """Profiles a series: histograms of new, deleted and modified files, sizes and compressibility of chunks.

    Nothing of names or content is in it: extensions that are not widely known are numbered. Written to
    ``output`` if given. ``runs``: also how long runs of new chunks and of others are (section 4.5.1); what is
    made by it has such runs. Without, the profile is a little smaller. Raises ``DatasetError`` where the
    series cannot be read, or ``output`` exists and ``force`` is not set.
    """
    out = None if output is None else os.fspath(output)
    with wanted("series", series):
        return cast(Profiled, json.loads(_core.dataset_profile(os.fspath(series), out, runs, force)))


def run_lengths(series: Path) -> list[RunLengths]:
    """How long the runs are that a deduplicator meets in each snapshot, read in the order of paths.

    What is stored in containers or extents is found in such runs (section 4.5.1). Raises ``DatasetError``
    where the series cannot be read.
    """
    with wanted("series", series):
        told = json.loads(_core.dataset_runs(os.fspath(series)))
    return [
        {
            "fresh": {int(length): runs for length, runs in one["fresh"].items()},
            "repeated": {int(length): runs for length, runs in one["repeated"].items()},
        }
        for one in told
    ]


def describe_profile(path: Path) -> Profiled:
    """What a profile in a file has. Raises ``DatasetError`` where it cannot be read or is damaged."""
    with wanted("profile", path):
        return cast(Profiled, json.loads(_core.dataset_load_profile(os.fspath(path))))


def write(
    series: Path,
    to: Path,
    *,
    snapshots: int | Sequence[int] | Literal["all", "last"] = "last",
    tar: bool = False,
    hashes: bool = False,
    only_changed: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Written]:
    """Writes snapshots of a series as files, or as tar archives; content is made from the numbers of chunks.

    One snapshot goes to ``to`` itself, a new or empty directory (or an archive, ``-`` for standard output),
    several to ``to/000``, ``to/001`` (or ``to/000.tar``) and so on. ``hashes``: no content, but the
    fingerprints, sizes and ratios of chunks, as an FSL hash file of version 7 (``to/000.hash``). Whether
    there is room for all of it is asked before anything is written. A directory that is being written has a
    file ``.loadstone-unfinished`` until all is there: it stays where that was ended, and such a directory is
    neither scanned nor verified. An archive or hash file gets its name when it is whole. ``only_changed``:
    only files that are new or modified since the snapshot before. ``seed``: of the content, where the series
    was scanned (0); a made one has its own. ``progress`` is told of bytes of the snapshot at hand, of how
    many. Raises ``DatasetError`` where the series cannot be read, there is no room, or something is in the
    way, and ``OptionError`` or ``Error`` where there is no such snapshot or parameters exclude each other.
    """
    if hashes and (tar or os.fspath(to) == "-"):
        raise Error("hash files have no archive and need a file: leave tar out, and name one")
    form = "tar" if tar else "hashes" if hashes else "files"
    described = describe(series)
    if seed is not None and described["meta"].get("seed") is not None:
        raise OptionError(
            "seed", None, "the series was made, and its content has a seed of its own; leave it out"
        )
    count = len(described["snapshots"])
    single = snapshots == "last" or isinstance(snapshots, int)
    if isinstance(snapshots, str):
        numbers = [count - 1] if snapshots == "last" else list(range(count))
    else:
        numbers = [snapshots] if isinstance(snapshots, int) else list(snapshots)
    if single:
        paths = [os.fspath(to)]
    elif os.fspath(to) == "-":
        raise Error("standard output takes one archive: name a directory, or one snapshot")
    else:
        ending = {"files": "", "tar": ".tar", "hashes": ".hash"}[form]
        paths = [os.path.join(to, f"{number:03}{ending}") for number in numbers]
        if inside := next((path for path in paths if os.path.exists(path) and is_part(path, series)), None):
            raise Error(f"{inside}: is the series that is read; name another directory")
        if form != "files" and (taken := next((path for path in paths if os.path.isdir(path)), None)):
            raise Error(f"{taken}: is a directory; move it away, or name another one with `to`")
        if link := next((path for path in paths if os.path.islink(path)), None):
            raise Error(f"{link}: is a link, and nothing is written through one; name another directory")
        if snapshots == "all" and (other := _beyond(os.fspath(to), count, ending)):
            raise Error(
                f"{other}: belongs to a longer series; remove it, or name another directory with `to`"
            )
    options = {
        "snapshots": numbers,
        "form": form,
        "only_changed": only_changed,
        "seed": seed or 0,
        "threads": threads or len(os.sched_getaffinity(0)),
    }
    within = None if single else os.fspath(to)
    done = _core.dataset_write(os.fspath(series), json.dumps(options), paths, within, force, progress)
    return cast("list[Written]", json.loads(done))


def _beyond(folder: str, count: int, ending: str) -> str | None:
    """A snapshot in a folder that a series of so many does not have: it would look like a part of it."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    pattern = re.compile(rf"(\d{{3,}}){re.escape(ending)}")
    found = (match for match in map(pattern.fullmatch, names) if match and int(match[1]) >= count)
    return next((os.path.join(folder, match[0]) for match in found), None)
