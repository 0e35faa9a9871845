"""Archives unpacked in parallel, and archives to unpack where the user has none (VxFS study, section 4)."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
from pathlib import Path
from typing import Any

from loadstone import _core
from loadstone._files import absolute, aside, make_folders
from loadstone.errors import Error
from loadstone.suites._build import Builder, Files, Op, Phase, Settings, SuitePlans, fixed
from loadstone.suites._needs import Work
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Given, Variable

SIZES = (
    (1_990_612, 0, 4 << 10),
    (473_044, 4 << 10, 16 << 10),
    (242_107, 16 << 10, 64 << 10),
    (135_901, 64 << 10, 256 << 10),
    (28_063, 256 << 10, 1 << 20),
    (981, 1 << 20, 1_415_577),
)
"""Files, least and most bytes (VxFS study, table 1); 32 files to a directory as there."""

MEAN = sum(n * (low + 1 + high) / 2 for n, low, high in SIZES) / sum(n for n, _, _ in SIZES)
"""Bytes of a file on average."""

_WIDTH = 32


def make_archive(path: str, files: int, seed: int) -> None:
    """Writes a gzip'ed tar archive of so many files, as large as in table 1; half of each file compresses.

    The same ``files`` and ``seed`` give the same archive. Written aside and renamed, so that it is whole or
    absent. Raises ``Error`` where it cannot be written.
    """
    with aside(path, force=False) as hidden:
        _write_archive(hidden, files, seed)


def with_archive(plan: Any, path: str) -> Any:
    """A plan, or a part of one, with another archive in place of those that are not there."""
    if isinstance(plan, list):
        return [with_archive(one, path) for one in plan]
    if not isinstance(plan, dict):
        return plan
    found = {name: with_archive(one, path) for name, one in plan.items()}
    if "archive" in found and not os.path.exists(found["archive"]):
        found["archive"] = path
    return found


def _write_archive(path: Path, files: int, seed: int) -> None:
    draw = random.Random(seed)
    weights = [row[0] for row in SIZES]
    with (
        path.open("wb") as raw,
        # Neither a name nor a time in it: the same files make the same archive.
        gzip.GzipFile("", "wb", 1, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for number in range(files):
            _, low, high = draw.choices(SIZES, weights)[0]
            size = draw.randint(low + 1, high)
            # Runs of random bytes and of what is known, in turns, as texts and records have them.
            content = bytearray(draw.randbytes(size))
            for at in range(0, size, 512):
                half = min(256, size - at)
                content[at : at + half] = (b"loadstone " * 26)[:half]
            entry = tarfile.TarInfo(f"{number // _WIDTH:05}/{number:07}")
            entry.size = size
            archive.addfile(entry, io.BytesIO(content))


def _given_archives(given: Given) -> list[str]:
    if given.text("archives") == "made":
        return []
    paths = [absolute(path) for path in given.text("archives").split(",") if path.strip()]
    for path in paths:
        if not os.path.isfile(path):
            raise given.fail("archives", f"{path} is no file; name tar archives, with commas")
    return paths


def _own_archives(settings: Settings, given: Given, builder: Builder) -> list[str]:
    """Archives that are made before the first run, unless they are there from an earlier one."""
    seed = settings.options.seed or 0
    if settings.null:
        raise Error("tar-extract: on null: archives must be given, with `variables` archives=")
    count, files = given.number("count"), given.number("files")
    folder = os.path.join(absolute(settings.on), "archives")
    if os.path.islink(folder):
        raise Error(f"{folder}: is a link, and nothing is written through one; name another directory")
    paths = [os.path.join(folder, f"{files}-{seed}-{i}.tar.gz") for i in range(count)]
    if missing := sum(not os.path.exists(path) for path in paths):
        # Half of each file compresses.
        builder.beside.append(Files("archives", missing, files * MEAN / 2))
        builder.work += Work(bytes=missing * files * MEAN * 1.5)

    def make() -> None:
        make_folders(folder)
        for i, path in enumerate(paths):
            if not os.path.exists(path):
                make_archive(path, files, _core.derive_seed(seed, "archive", i))

    builder.first = make
    return paths


def _lower(settings: Settings, given: Given) -> SuitePlans:
    """A plan for each number of archives at once."""
    builder = Builder("tar-extract", settings)
    given_paths = _given_archives(given)
    paths = given_paths or _own_archives(settings, given, builder)
    for parallel in sorted({1, len(paths)} if given.flag("single") else {len(paths)}):
        timed: list[list[Op]] = [
            [fixed("extract", "extract", set="unpacked", index=i, archive=path)]
            for i, path in enumerate(paths[:parallel])
        ]
        title = f"{parallel} archive{'s' if parallel > 1 else ''}"
        phase = Phase(title, timed=timed, key={"archives": parallel}, count="requests", makes=True)
        if given_paths:
            # What they hold is known once they are read; they hardly hold less than what they are packed in.
            read = sum(map(os.path.getsize, paths[:parallel]))
            tree, moved = Files("unpacked", parallel, read / parallel, archives=parallel), 3.0 * read
        else:
            files = parallel * given.number("files")
            tree, moved = Files("unpacked", files, MEAN, _WIDTH, archives=parallel), 1.5 * files * MEAN
        builder.add(title, [tree], [phase], cache="drop")
        builder.work += Work(requests=3 * tree.count, bytes=moved)
    return builder.done()


SUITE = Suite(
    "tar-extract",
    "compressed archives uncompressed and unpacked in parallel, each by a process of its own",
    """\
Each process reads one archive, uncompresses it and makes its files. Reported are the time until all are
unpacked, the bytes written and the files per second; the bundle and its report have the rate over time. A
file counts from reading its header to closing it, so uncompressing is part of its time. Caches are dropped
before.
Links and devices in an archive are left out and counted, and no name leads out of the directory. What is
written is what archives hold: `dedupe`, `compress`, `content` and `verify` are refused.""",
    """\
Section 4.2.2 of the VxFS study: five and eleven .tar.gz files (figures 12 and 13) of files as in table 1
of section 1. Without -D archives= such archives are made, in the directory of the run: half of each
file compresses there, where the study's compressed to a five-hundredth.""",
    {
        "archives": Variable(
            "made", "tar archives of yours, with commas: plain, gzip or zstd; made: by itself"
        ),
        "count": Variable("5", "archives that are made where none are given"),
        "files": Variable("2000", "files in each of these, 25 KiB on average"),
        "single": Variable("yes", "unpack one alone, too"),
    },
    _lower,
    depth="count",
    unpacks=True,
)
