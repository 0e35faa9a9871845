"""A model as IOzone command lines (IOzone 3): one run for each piece of time.

IOzone tests one record size at a time and touches every record of its files about once, so a piece becomes
files of as many records as it has requests: one of sequential writes or reads where most go on from the one
before, else the random mix. In that each process either reads or writes, a file of its own, so the share of
reads is one of processes. A process ends where a page that it reads does not begin as IOzone writes pages, so
records are whole pages.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from loadstone.exporters._load import READ, WRITE, Job, Load, Piece, unmoved

KIB, MIB, PAGE = 1 << 10, 1 << 20, 4096
PROCESSES = 10
"""At most so many share a mix."""

REST = 6.0
"""Seconds that IOzone 3.489 sleeps before and after each test."""


def export(load: Load, target: str) -> dict[str, str]:
    """The script."""
    lines: list[str] = []
    # Beside a device there is no place for files.
    most = 1 if target.startswith("/dev/") else PROCESSES
    # What each file must hold, as reads need it; what is there stays.
    largest: dict[int, int] = {}
    now, tests = 0.0, 0
    for piece in load.pieces:
        if not piece.directions:
            lines.append(f"sleep {piece.seconds:.3f}")
            now += piece.seconds
            continue
        run = _run(piece, most, now)
        now += run.seconds + REST
        tests += 1
        load.jobs += run.jobs
        for file in range(run.processes):
            largest[file] = max(largest.get(file, 0), run.size)
        lines.append(f"iozone -w -+n -x -I {_files(target, run.processes)} {run.test}")
    first = [
        f"iozone -i 0 -w -+n -t 1 -F {_file(target, file)} -s {-(-size // MIB) * MIB // KIB}k -r 1024k"
        for file, size in largest.items()
    ]
    if len(largest) > 1:
        load.losses.append(f"one file: it takes {len(largest)}, beside each other;")
    _losses(load, tests)
    return {"": "\n".join(["set -e", *first, *lines]) + "\n"}


@dataclass
class _Run:
    """A piece as IOzone runs it."""

    processes: int
    size: int
    """Bytes of each process's file."""
    seconds: float
    """How long it takes."""
    test: str
    """Options."""
    jobs: list[Job]


def _file(target: str, number: int) -> str:
    return shlex.quote(f"{target}.{number + 1}" if number else target)


def _files(target: str, processes: int) -> str:
    return f"-t {processes} -F " + " ".join(_file(target, number) for number in range(processes))


def _run(piece: Piece, most: int, start: float) -> _Run:
    requests = sum(of.requests for of in piece.directions.values())
    record = record_of(piece)
    runs = sum(of.requests * of.sequential for of in piece.directions.values()) / requests
    reads = piece.directions[READ].requests / requests if READ in piece.directions else 0.0
    processes, readers = (1, round(reads)) if runs > 0.5 else share_of(reads, most)
    records = max(1, round(requests / processes))
    size = records * record
    # Delays are whole milliseconds before each request of a process.
    delay = round(1000 * piece.seconds / records)
    # Without one it is as fast as the storage, which nobody knows here.
    seconds = records * delay / 1000 if delay else piece.seconds
    pace = f" -J {delay}" if delay else ""
    at = f"-s {size // KIB}k -r {record // KIB}k{pace}"
    jobs = []
    for op, first, count in ((READ, 0, readers), (WRITE, readers, processes - readers)):
        if count:
            # Every record of its files once: from the start on, or in any order.
            zone = (0, record, 1) if runs > 0.5 else (first * size, (first + count) * size, 1)
            goes_on = float(runs > 0.5)
            jobs.append(Job(op, start, seconds, records * count, {record: 1}, [zone], goes_on, record))
    if runs > 0.5:
        return _Run(1, size, seconds, f"-i {1 if readers else 0} {at}", jobs)
    # It takes so many processes, rounded down.
    return _Run(processes, size, seconds, f"-i 8 -+p {-(-100 * readers // processes)} {at}", jobs)


def share_of(reads: float, most: int = PROCESSES) -> tuple[int, int]:
    """The fewest processes, and how many of them read, that come within a hundredth of the nearest share.

    ``reads`` is the share of requests, 0 to 1; there are at most ``most`` processes.
    """

    def off(processes: int) -> float:
        return abs(round(reads * processes) / processes - reads)

    least = min(off(processes) for processes in range(1, most + 1))
    processes = next(n for n in range(1, most + 1) if off(n) <= least + 0.01)
    return processes, round(reads * processes)


def record_of(piece: Piece) -> int:
    """The mean size in whole pages: so many requests move about as many bytes then."""
    requests = sum(of.requests for of in piece.directions.values())
    moved = sum(size * count for of in piece.directions.values() for size, count in of.sizes.items())
    return max(1, round(moved / requests / PAGE)) * PAGE


def _losses(load: Load, tests: int) -> None:
    load.losses += [
        "sizes: a piece has one, the mean, in whole pages of 4 KiB;",
        "where requests go: a piece's files have as many records as it has requests, each used about once;",
        "the share of reads where the mix is random: it is one of at most ten processes, of one on a device;",
        "reads beside writes where most of a piece is sequential: it is all the kind that is more;",
        "rates other than by whole milliseconds between requests, and how they come in bursts;",
        "when places are used again;",
        f"how long all takes: IOzone rests about {REST:g} s around each of {tests:,} tests;",
    ]
    load.losses += unmoved(load, flushes="it syncs at the end of a test", discards="it has none")
