"""The Bonnie and IOzone sets beside bonnie++ and fio, doing the same work on the same file system.

    sudo .venv/bin/python benches/suites.py [--only bonnie iozone] [--rounds 5] [--size BYTES] [--files 96]

ext4 on a loop device over an image in the scratch folder, which is best a tmpfs; rounds are interleaved. All
tests of both sides are run; figures are those that differ most. bonnie++ tells nothing of what takes less
than half a second.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import mmap
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from _common import Figure, Measured, Target, call, ext4, fio, loadstone, main, need, ours

ALIKE = Target(at_least=0.97, of="ratio")
FIGURES = {
    "write": Figure("bonnie: write, blocks of 8 KiB", "MB/s", ALIKE, "bonnie++"),
    "create in order": Figure("bonnie: create files in order", "files/s", ALIKE, "bonnie++"),
    "write, 4 KiB": Figure("iozone: write, 4 KiB", "MB/s", ALIKE, "fio"),
    "write, 64 KiB": Figure("iozone: write, 64 KiB", "MB/s", ALIKE, "fio"),
}
Side = dict[str, float]
"""MB/s, or per second, by test."""
Run = Callable[[Path], Side]
BLOCK = 8192
RECORDS = {"4k": 4096, "64k": 65536}
# Positions in bonnie++'s line of results.
COLUMNS = {"write": 11, "rewrite": 13, "read": 17, "seeks": 19}
FILES = ["create in order", "stat in order", "delete in order", "create by chance", "stat by chance"]
FILES += ["delete by chance"]
COLUMNS |= {name: 26 + 2 * i for i, name in enumerate(FILES)}


def suite(name: str, at: Path, **variables: object) -> Side:
    """A suite of Loadstone."""
    given = [word for key, value in variables.items() for word in ("-D", f"{key}={value}")]
    found = {}
    for row in ours("run", name, "--on", at / name, "--yes", *given)["measurements"]:
        key = row["test"] if "record" not in row else f"{row['test']}, {row['record'] >> 10} KiB"
        found[key] = row.get("per_s") or row["bytes_per_s"] / 1e6
    shutil.rmtree(at / name)
    return found


@functools.cache
def startup() -> float:
    """Seconds that our command takes before it does anything, the least of five."""

    def once() -> float:
        begun = time.monotonic()
        call(loadstone(), "run", "--list")
        return time.monotonic() - begun

    return min(once() for _ in range(5))


def bonnie(at: Path, size: int, files: int) -> Side:
    """bonnie++, by blocks only."""
    folder = at / "theirs"
    folder.mkdir()
    # Memory was let go of for both; whoever writes later finds more of it given back to the host.
    time.sleep(startup())
    words = ["bonnie++", "-d", folder, "-s", f"{size >> 20}:8k", "-r", size >> 21, "-n", files]
    line = call(*words, "-u", "root", "-f", "-q", "-m", "x").splitlines()[-1].split(",")
    shutil.rmtree(folder)
    found = {}
    for name, column in COLUMNS.items():
        # Plus signs stand for what took less than half a second.
        with contextlib.suppress(ValueError):
            found[name] = float(line[column]) * (1024 / 1e6 if name in ("write", "rewrite", "read") else 1)
    return found


def passes(at: Path, size: int, text: str) -> Side:
    """IOzone's passes by fio, one after the other on one file, in records of such a size."""
    words = {
        # A file that was made long before is not what IOzone writes.
        "write": ["--rw=write", "--fallocate=none"],
        "rewrite": ["--rw=write"],
        "read": ["--rw=read"],
        "reread": ["--rw=read"],
        "random read": ["--rw=randread"],
        "random write": ["--rw=randwrite"],
    }
    base = [f"--filename={at / 'theirs'}", f"--size={size}", f"--bs={text}", "--ioengine=psync"]
    found = {}
    time.sleep(startup())
    for name, more in words.items():
        # As IOzone's -e: the time to make it stable counts.
        end = ["--end_fsync=1"] if "write" in name else []
        way = fio(*base, "--invalidate=0", *more, *end)["write" if "write" in name else "read"]
        found[f"{name}, {RECORDS[text] >> 10} KiB"] = way["bw_bytes"] / 1e6
    (at / "theirs").unlink()
    return found


@contextlib.contextmanager
def warm(size: int) -> Iterator[None]:
    """Has the host give so much memory to this machine, and lets go of it just before.

    A guest whose balloon reports free pages loses them up to two seconds after any became free, and whoever
    needs them next pays for it: writing into the page cache is then a third as fast. So what was freed before
    is reported while the memory is held, for twice as long, as what becomes free meanwhile is reported two
    seconds later. It is not kept until the first write: letting go takes 0.15 s, half as long as writing.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    with mmap.mmap(-1, size, flags=flags):
        time.sleep(4.6)
    yield


def beside(folder: Path, args: argparse.Namespace, pairs: list[tuple[Run, Run]]) -> Iterator[Measured]:
    """The runs of both sides in turn, and the figures that come of them."""
    sides: tuple[list[Side], list[Side]] = ([], [])
    with ext4(folder, args.size + (4 << 30), written=True) as at:
        for turn in range(args.rounds):
            for side in sides:
                side.append({})
            for runs in pairs:
                for side, run in zip(sides, runs, strict=True):
                    call("sync")
                    with warm(args.size + (1 << 30)):
                        side[-1].update(run(at))
            print(f"round {turn + 1}", file=sys.stderr)
    for name in sides[0][0]:
        mine, peer = ([side[name] for side in each if name in side] for each in sides)
        print(name, *(f"{value:.0f}" for value in mine), "beside", *(f"{value:.0f}" for value in peer))
        if name in FIGURES:
            if len(peer) != len(mine):
                sys.exit(f"{name}: the peer tells no time of it; ask for more files or a larger size")
            yield Measured(name, mine, peer)


def bonnie_set(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Bonnie's tests."""
    need("bonnie++", root=True)
    tests = "write,rewrite,read,seeks,files in order,files by chance"
    given = {"size": args.size, "processes": 5, "files": args.files * 1024, "tests": tests}
    yield from beside(
        folder,
        args,
        [(lambda at: suite("bonnie", at, **given), lambda at: bonnie(at, args.size, args.files))],
    )


def iozone_set(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """IOzone's passes, in records of 4 and of 64 KiB."""
    need("fio", root=True)
    given = {"size": args.size, "every": "yes", "fsync": "yes"}
    given["tests"] = "write,rewrite,read,reread,random read,random write"
    yield from beside(
        folder,
        args,
        [
            (
                lambda at, text=text: suite("iozone", at, record=text, **given),  # type: ignore[misc]
                lambda at, text=text: passes(at, args.size, text),  # type: ignore[misc]
            )
            for text in RECORDS
        ],
    )


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes of the file [%(default)s]")
    parser.add_argument("--files", type=int, default=96, help="of these, times 1,024 [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"bonnie": bonnie_set, "iozone": iozone_set}, options=options)
