"""The Bonnie and IOzone sets beside bonnie++ and fio, doing the same work on the same file system.

    sudo .venv/bin/python benches/suites.py [--rounds 5] [--size BYTES] [--files 64] [--only bonnie iozone]
        [--scratch DIR]

ext4 on a loop device over an image in DIR, such as a tmpfs; rounds are interleaved. Needs root, bonnie++
and fio. Prints Markdown tables of medians and ranges.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from _common import ext4, loadstone, machine, spread, table


class Figure(NamedTuple):
    """What one side measured of one test."""

    rate: float
    """MB/s, or per second."""
    cpu: float
    """Microseconds of CPU time per request, file or seek."""


Side = dict[str, Figure]
Run = Callable[[Path], Side]
BLOCK = 8192
RECORDS = {"4k": 4096, "64k": 65536}
# Positions in bonnie++'s line of results: of the rate; the one after is CPU in percent.
COLUMNS = {"write": 11, "rewrite": 13, "read": 17, "seeks": 19}
FILES = ["create in order", "stat in order", "delete in order", "create by chance", "stat by chance"]
FILES += ["delete by chance"]
COLUMNS |= {name: 26 + 2 * i for i, name in enumerate(FILES)}


def output(command: list[str | Path]) -> str:
    """What a command prints; a failure ends the benchmark."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def suite(name: str, at: Path, **variables: object) -> Side:
    """A suite of Loadstone."""
    words: list[str | Path] = [loadstone(), "run", name, "--on", at / name, "--json", "--yes"]
    for key, value in variables.items():
        words += ["-D", f"{key}={value}"]
    rows = json.loads(output(words))["measurements"]
    shutil.rmtree(at / name)
    found = {}
    for row in rows:
        unit = row.get("record") or row.get("block") or 1
        count = row.get("count") or row["bytes"] / unit
        rate = row.get("per_s") or row["bytes_per_s"] / 1e6
        key = row["test"] if "record" not in row else f"{row['test']}, {row['record'] >> 10} KiB"
        found[key] = Figure(rate, row["cpu_s"] / count * 1e6)
    return found


@functools.cache
def startup() -> float:
    """Seconds that our command takes before it does anything, the least of five."""

    def once() -> float:
        begun = time.monotonic()
        output([loadstone(), "run", "--list"])
        return time.monotonic() - begun

    return min(once() for _ in range(5))


def bonnie(at: Path, size: int, files: int) -> Side:
    """bonnie++, by blocks only."""
    folder = at / "theirs"
    folder.mkdir()
    # Memory was let go of for both; whoever writes later finds more of it given back to the host.
    time.sleep(startup())
    words = ["bonnie++", "-d", folder, "-s", f"{size >> 20}:8k", "-r", str(size >> 21), "-n", str(files)]
    line = output([*words, "-u", "root", "-f", "-q", "-m", "x"]).strip().splitlines()[-1].split(",")
    shutil.rmtree(folder)
    found = {}
    for name, column in COLUMNS.items():
        try:
            rate, percent = float(line[column]), float(line[column + 1])
        except ValueError:
            # It does not tell what took less than half a second.
            continue
        blocks = name in ("write", "rewrite", "read")
        per_second = rate * 1024 / BLOCK if blocks else rate
        found[name] = Figure(rate * 1024 / 1e6 if blocks else rate, percent / 100 / per_second * 1e6)
    return found


def fio(at: Path, size: int, text: str) -> Side:
    """The same passes by fio, one after the other on one file, in records of such a size."""
    passes = {
        # A file that was made long before is not what IOzone writes.
        "write": ["--rw=write", "--fallocate=none"],
        "rewrite": ["--rw=write"],
        "read": ["--rw=read"],
        "reread": ["--rw=read"],
        "random read": ["--rw=randread"],
        "random write": ["--rw=randwrite"],
    }
    found = {}
    time.sleep(startup())
    for name, words in passes.items():
        command = ["fio", "--name=x", f"--filename={at / 'theirs'}", f"--size={size}", f"--bs={text}"]
        command += ["--ioengine=psync", "--invalidate=0", "--output-format=json", *words]
        # As IOzone's -e: the time to make it stable counts.
        command += ["--end_fsync=1"] if "write" in name else []
        out = output(command)
        job = json.loads(out[out.index("{") :])["jobs"][0]
        way = job["write" if "write" in name else "read"]
        spent = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e3
        found[f"{name}, {RECORDS[text] >> 10} KiB"] = Figure(way["bw_bytes"] / 1e6, spent / way["total_ios"])
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


def iozone(size: int, text: str) -> tuple[Run, Run]:
    """IOzone's passes in records of such a size: ours, and fio's."""
    tests = "write,rewrite,read,reread,random read,random write"
    return (
        lambda at: suite("iozone", at, size=size, record=text, every="yes", fsync="yes", tests=tests),
        lambda at: fio(at, size, text),
    )


def rows(ours: list[Side], theirs: list[Side]) -> list[list[str]]:
    """A row for each test: rates, and CPU time of a request, of both."""
    found = []
    for name in ours[0]:
        mine = [side[name] for side in ours]
        peer = [side[name] for side in theirs if name in side]
        cells = [name, spread([one.rate for one in mine], 0), spread([one.cpu for one in mine])]
        if len(peer) < len(mine):
            found.append([*cells, "not told", "", "", ""])
            continue
        cells += [spread([one.rate for one in peer], 0), spread([one.cpu for one in peer])]
        pairs = list(zip(mine, peer, strict=True))
        cells += [spread([a.rate / b.rate for a, b in pairs]), spread([b.cpu / a.cpu for a, b in pairs])]
        found.append(cells)
    return found


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes of the file")
    parser.add_argument("--files", type=int, default=64, help="of these, times 1,024")
    parser.add_argument("--only", nargs="*", choices=["bonnie", "iozone"], default=["bonnie", "iozone"])
    parser.add_argument("--scratch", type=Path, help="where the image of the loop device is")
    args = parser.parse_args()
    for tool in ("bonnie++", "fio"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed; apt-get install {tool}")
    print(f"{machine()}; {args.rounds} interleaved rounds; our command begins after {startup():.2f} s")
    parts: dict[str, tuple[str, list[tuple[Run, Run]]]] = {
        "bonnie": (
            "bonnie++",
            [
                (
                    lambda at: suite(
                        "bonnie",
                        at,
                        size=args.size,
                        processes=5,
                        files=args.files * 1024,
                        tests="write,rewrite,read,seeks,files in order,files by chance",
                    ),
                    lambda at: bonnie(at, args.size, args.files),
                )
            ],
        ),
        "iozone": ("fio", [iozone(args.size, text) for text in RECORDS]),
    }
    with (
        tempfile.TemporaryDirectory(dir=args.scratch or os.environ.get("TMPDIR", "/var/tmp")) as folder,
        ext4(Path(folder), args.size + (4 << 30), written=True) as at,
    ):
        for name in args.only:
            peer, pairs = parts[name]
            sides: tuple[list[Side], list[Side]] = ([], [])
            for turn in range(args.rounds):
                for side in sides:
                    side.append({})
                for runs in pairs:
                    for side, run in zip(sides, runs, strict=True):
                        output(["sync"])
                        with warm(args.size + (1 << 30)):
                            side[-1].update(run(at))
                print(f"{name}: round {turn + 1}", file=sys.stderr)
            heads = [
                "test",
                "MB/s, or per second",
                "CPU us",
                peer,
                "its CPU us",
                "rate / its",
                "its CPU / ours",
            ]
            print(f"\n### {name}\n\n{table(heads, rows(*sides))}")


if __name__ == "__main__":
    main()
