"""Profiles, series that are made from them, and files that are written from series."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, cast

from loadstone import Error, _core
from loadstone.dataset._scan import Chunking, Path, Progress, Snapshot, describe


class Step(TypedDict):
    """One snapshot as a change of the one before; numbers of files."""

    before: int
    new: int
    deleted: int
    modified: int
    rows: int
    """Rows of the histograms."""


class Profiled(TypedDict):
    """What a profile has but its histograms."""

    chunking: Chunking
    chunker: str
    codec: str | None
    """What compressibility was measured by."""
    extensions: int
    markov: dict[str, float] | None
    """Transitions of files in percent, as table 4.2 of the thesis has them; None of a single snapshot."""
    patterns: list[float] | None
    """Of modified files, in percent: B, E, M, BE, BM, ME, BEM (table 4.3)."""
    steps: list[Step]
    snapshots: list[Snapshot]


class Generation(TypedDict):
    """How one generation came about."""

    step: int
    """Which of the profile's steps it is."""
    new: int
    wanted: int
    """Files asked to be deleted or modified."""
    best_match: int
    """Of these, files for which only a best match was found."""
    missing: int
    """And those for which there was none left."""
    fresh: int
    """Chunks made."""


class Created(TypedDict):
    """What :func:`create` returns."""

    meta: dict[str, Any]
    chunks: int
    bits: int
    snapshots: list[Snapshot]
    generations: list[Generation]


class Written(TypedDict):
    """One snapshot that was written."""

    snapshot: int
    path: str
    written: dict[str, int]
    """``directories``, ``files``, ``links``, ``bytes``, ``left_out`` (devices and what could not be read) and
    ``broken_links`` (hard links whose file is not written)."""


def profile(series: Path, output: Path | None = None, *, force: bool = False) -> Profiled:
    """Profiles a series: histograms of new, deleted and modified files, sizes and compressibility of chunks.

    Nothing of names or content is in it: extensions that are not widely known are numbered. Written to
    ``output`` if given.
    """
    out = None if output is None else os.fspath(output)
    return cast(Profiled, json.loads(_core.dataset_profile(os.fspath(series), out, force)))


def describe_profile(path: Path) -> Profiled:
    """What a profile in a file has."""
    return cast(Profiled, json.loads(_core.dataset_load_profile(os.fspath(path))))


def create(
    profile: Path,
    output: Path,
    *,
    generations: int | None = None,
    seed: int = 0,
    scale: float = 1.0,
    force: bool = False,
    progress: Progress | None = None,
) -> Created:
    """Makes a series of ``generations`` snapshots that are like those of a profile, and writes it to
    ``output``.

    As many as the profile has unless said; further ones are changes drawn among the profile's. ``seed``:
    of all that is drawn, and of the content. ``scale``: how many times as many files. ``progress`` is
    told of generations.
    """
    options = {"generations": generations, "seed": seed, "scale": scale}
    made = _core.dataset_create(os.fspath(profile), json.dumps(options), os.fspath(output), force, progress)
    return cast(Created, json.loads(made))


def write(
    series: Path,
    to: Path,
    *,
    snapshots: int | Sequence[int] | Literal["all", "last"] = "last",
    tar: bool = False,
    hashes: bool = False,
    only_changed: bool = False,
    seed: int = 0,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Written]:
    """Writes snapshots of a series as files, or as tar archives; content is made from the numbers of chunks.

    One snapshot goes to ``to`` itself, a new or empty directory (or an archive, ``-`` for standard
    output), several to ``to/000``, ``to/001`` (or ``to/000.tar``) and so on. ``hashes``: no content, but
    the fingerprints, sizes and ratios of chunks, as an FSL hash file of version 7 (``to/000.hash``). Whether
    there is room for all of it is asked before anything is written. ``only_changed``: only files
    that are new or modified since the snapshot before. ``seed``: of the content, where the series was
    scanned; a made one has its own. ``progress`` is told of bytes of the snapshot at hand, of how many.
    """
    if hashes and (tar or os.fspath(to) == "-"):
        raise Error("hash files have no archive and need a file: leave tar out, and name one")
    form = "tar" if tar else "hashes" if hashes else "files"
    count = len(describe(series)["snapshots"])
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
        try:
            os.makedirs(to, exist_ok=True)
        except OSError as e:
            raise Error(f"{to}: cannot be made: {e.strerror}; name a new or an empty directory") from e
        ending = {"files": "", "tar": ".tar", "hashes": ".hash"}[form]
        paths = [os.path.join(to, f"{number:03}{ending}") for number in numbers]
    options = {
        "snapshots": numbers,
        "form": form,
        "only_changed": only_changed,
        "seed": seed,
        "threads": threads or len(os.sched_getaffinity(0)),
    }
    done = _core.dataset_write(os.fspath(series), json.dumps(options), paths, force, progress)
    return cast("list[Written]", json.loads(done))
