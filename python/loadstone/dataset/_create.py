"""Series that are made up, and series that go on."""

from __future__ import annotations

import json
import os
from typing import Any, TypedDict, cast

from loadstone import _core
from loadstone._other import wanted
from loadstone._text import refuse_no_text
from loadstone.dataset._laws import DEPTHS, Laws, laws, within
from loadstone.dataset._mutate import Mutator, asked, find_mutator
from loadstone.dataset._scan import Path, Progress, Snapshot, parse_chunking
from loadstone.dataset.presets import PREFIX, preset
from loadstone.errors import Error
from loadstone.plan.surroundings import address_space, memory

SHARE_OF_MEMORY = 0.8
"""Of the memory there is, what making a series may take unless told otherwise."""


class Generation(TypedDict):
    """How one generation came about."""

    step: int
    """Which of the profile's steps it is."""
    new: int
    again: int
    """Of these, files that were deleted a generation before and are there again under their name."""
    wanted: int
    """Files asked to be deleted or modified."""
    best_match: int
    """Of these, files for which only a best match was found; by a preset, that were too small for their
    pattern."""
    missing: int
    """And those for which there was none left."""
    fresh: int
    """Chunks made."""


class Created(TypedDict):
    """What :func:`create`, :func:`populate` and :func:`mutate` return."""

    meta: dict[str, Any]
    chunks: int
    bits: int
    snapshots: list[Snapshot]
    generations: list[Generation]
    """Those that were made."""


def create(
    profile: Path,
    output: Path,
    *,
    generations: int | None = None,
    seed: int = 0,
    scale: float = 1.0,
    users: int = 1,
    duplicates: Path | None = None,
    compress: float | None = None,
    memory_limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Created:
    """Makes a series of ``generations`` snapshots that are like those of a profile, and writes it to
    ``output``.

    ``profile``: a file, or ``preset:kernels`` and so on (:data:`PRESETS`): the datasets of the thesis, as far
    as its tables tell. ``generations``: as many as the profile has unless said; further ones are changes
    drawn among the profile's. ``seed``: of all that is drawn, and of the content. ``scale``: how many times
    as many files. ``users``: copies of the first snapshot, each in a directory of its own, that change by
    themselves (section 4.3.1). ``duplicates`` and ``compress``: of a preset, as :func:`populate` takes them.
    ``memory_limit``: bytes that may be taken; four fifths of what there is unless said. What would take more
    is refused before it is begun. ``progress`` is told of files of all snapshots, of how many if those to
    come have as many as the one at hand. Raises ``DatasetError`` where the profile cannot be read or
    ``output`` exists and ``force`` is not set, and ``OptionError`` or ``Error`` where memory would not
    suffice or a parameter cannot be used.
    """
    named = os.fspath(profile)
    if not named.startswith(PREFIX):
        if duplicates is not None or compress is not None:
            raise Error(
                "duplicates and compressibility are those of the profile: give them with a preset only"
            )
        given: dict[str, Any] = {"profile": named, "scale": within(scale, "a scale", 1e-9, 1e6)}
    else:
        within(scale, "a scale", 1e-9, 1e6)
        known = preset(named)
        of = known.laws("1=1" if duplicates is None else duplicates, 1.0 if compress is None else compress)
        files = max(1, round(known.first_files() * scale))
        initial = _initial(files, None, "fastcdc", of)
        generations = generations or known.snapshots
        chain = known.chain(of) if generations > 1 else None
        given = {"initial": initial, "chain": chain}
    return _made(
        output,
        {**given, "generations": generations, "seed": seed, "users": users},
        memory_limit,
        force,
        progress,
    )


def populate(
    output: Path,
    *,
    files: int = 10_000,
    directories: int | None = None,
    sizes: str = "impressions",
    depths: str = DEPTHS,
    extensions: str = "",
    duplicates: Path = "1=1",
    compress: float = 1.0,
    chunking: str = "fastcdc",
    users: int = 1,
    seed: int = 0,
    memory_limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Created:
    """Makes a first snapshot from distributions alone, and writes a series of it to ``output``.

    ``directories``: a tenth of the files unless said, and some more where a depth that files are to have has
    none. ``sizes``: of files; ``impressions`` (FAST 2009, table 2), ``specsfs-69g`` and ``specsfs-768g`` (the
    file sets of the VERITAS File System paper, section 1.3), ``lognormal:MU,SIGMA`` (of the logarithm of
    bytes), or a file with lines of three numbers: bytes that files are larger than, those they have at most,
    and how many there are. ``depths``: of files, ``poisson:MEAN`` or shares from the root on. ``extensions``:
    ``c=30,h=20,=50``, the last one of files without. ``duplicates``: shares of distinct chunks by how often
    they are there, ``1=90,2=7,4=3``, or a file of DEDISgen or ``zdb -S``. ``compress``: how many times
    smaller codecs make the chunks. The rest is as :func:`create` has it. Raises ``OptionError`` or ``Error``
    where memory would not suffice or a parameter cannot be used, and ``DatasetError`` where ``output`` exists
    and ``force`` is not set.
    """
    of = laws(sizes, depths, extensions, duplicates, compress)
    initial = _initial(files, directories, chunking, of)
    options = {"initial": initial, "generations": 1, "seed": seed, "users": users}
    return _made(output, options, memory_limit, force, progress)


def mutate(
    series: Path,
    output: Path,
    *,
    profile: Path | None = None,
    mutator: Mutator | str | None = None,
    parameters: dict[str, float] | None = None,
    generations: int = 1,
    users: int = 1,
    seed: int = 0,
    memory_limit: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Created:
    """Goes on with a series: ``generations`` further snapshots, each a change of the one before.

    Either a ``profile`` says how, a file or a preset, or a ``mutator``: a function of a :class:`Tree` and a
    numpy generator of random numbers that returns :class:`Changes`, ``file.py:function``, or the name of an
    installed one, called with ``parameters``. The output has all snapshots of the series and the new ones, so
    further changes can follow. Fingerprints of scanned chunks are left out, as new ones have none. Raises
    ``DatasetError`` where the series or the profile cannot be read or ``output`` exists and ``force`` is not
    set, ``OptionError`` where memory would not suffice, and ``Error`` where both or neither of ``profile``
    and ``mutator`` are given, or the mutator fails.
    """
    if (profile is None) == (mutator is None):
        raise Error("name either a profile or a mutator: one of them says how the series goes on")
    given: dict[str, Any] = {}
    ask = None
    if mutator is not None:
        ask = asked(find_mutator(mutator) if isinstance(mutator, str) else mutator, parameters or {})
    elif parameters:
        raise Error("parameters are those of a mutator: leave them out")
    elif profile is not None and os.fspath(profile).startswith(PREFIX):
        known = preset(os.fspath(profile))
        given["chain"] = known.chain(known.laws("1=1", 1.0))
    elif profile is not None:
        given["profile"] = os.fspath(profile)
    given |= {"series": os.fspath(series), "generations": generations, "seed": seed, "users": users}
    return _made(output, given, memory_limit, force, progress, ask)


def _initial(files: int, directories: int | None, chunking: str, of: Laws) -> dict[str, Any]:
    if not 1 <= files < 2**32 or not (directories is None or 1 <= directories < 2**32):
        raise Error(f"{files} files in {directories} directories: use 1 to {2**32 - 1} of both")
    return {
        "chunking": parse_chunking(chunking),
        "files": files,
        "directories": files // 10 + 1 if directories is None else directories,
        "laws": of,
    }


def _made(
    output: Path,
    given: dict[str, Any],
    memory_limit: int | None,
    force: bool,
    progress: Progress | None,
    ask: Any = None,
) -> Created:
    left = address_space()
    there = memory() if left is None else min(memory(), left)
    limit = int(SHARE_OF_MEMORY * there) if memory_limit is None else memory_limit
    options = {"scale": 1.0, "memory": limit, **given}
    refuse_no_text(options)
    read = {kind: [given[kind]] if kind in given else [] for kind in ("profile", "series")}
    with wanted("profile", *read["profile"]), wanted("series", *read["series"]):
        made = _core.dataset_create(json.dumps(options), os.fspath(output), force, ask, progress)
    return cast(Created, json.loads(made))
