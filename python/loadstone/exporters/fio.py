"""A model as a fio job file (fio 3.x, HOWTO): for each piece of time one job for reads and one for writes.

Sizes are a ``bssplit``, places a ``random_distribution=zoned_abs`` of zones with equally many requests, runs
a ``percentage_random``, and the bytes and the time they take ``io_size`` and ``rate``. fio paces bytes: its
``rate_iops`` is a rate of bytes, too, of as many requests of the smallest size. ``stonewall`` starts a piece
when the one before has ended.
"""

from __future__ import annotations

import re
import shlex

from loadstone.errors import Error
from loadstone.exporters._load import READ, Direction, Job, Load, Piece, size_percents, unmoved
from loadstone.model.description import bytes_text

LEAST_ZONE = 1 << 20
"""Bytes of a zone at least: it must hold the largest request."""


def export(load: Load, target: str) -> dict[str, str]:
    """The job file."""
    _losses(load)
    reads = any(READ in piece.directions for piece in load.pieces)
    load.needs.append(f"The target {target} has {bytes_text(load.extent)} ({load.extent:,} bytes).")
    if reads:
        place, pieces = shlex.quote(target), -(-load.extent // (1 << 20))
        load.needs += [
            "fio writes all of it first (overwrite=1), unless it is there: reads of holes reach no device.",
            "One that is there and has holes is to be filled before: "
            f"dd if=/dev/urandom of={place} bs=1M count={pieces} conv=notrunc,fsync",
        ]
    lines = [
        "[global]",
        f"filename={_name(target)}",
        f"size={load.extent}",
        "ioengine=libaio",
        "direct=1",
        "iodepth=32",
    ]
    lines += ["overwrite=1"] if reads else []
    lines += ["norandommap=1", "randrepeat=1", "group_reporting=1"]
    for number, piece in enumerate(load.pieces, 1):
        for i, (op, direction) in enumerate(piece.directions.items()):
            word = "read" if op == READ else "write"
            lines += ["", f"[piece{number}-{word}]", *(["stonewall"] if i == 0 else []), f"rw=rand{word}"]
            lines += _job(load, piece, op, direction)
    return {"": "\n".join(lines) + "\n"}


def _name(target: str) -> str:
    """A name as fio reads it: a colon would begin another one."""
    # What begins a comment ends a value wherever it stands, and ${NAME} is a variable.
    if (bad := re.search(r"[;#\r\n]|\$\{", target)) or target != target.strip():
        what = repr(bad[0]) if bad else "a blank at an end"
        raise Error(f"{target!r}: a job file of fio cannot name it: {what}; choose another target")
    return target.replace(":", "\\:")


def _job(load: Load, piece: Piece, op: int, of: Direction) -> list[str]:
    sizes = size_percents(of)
    random = round(100 * (1 - of.sequential))
    zones = _zones(of, load.extent, max(max(sizes), LEAST_ZONE))
    # The first request goes out at once, so what is left takes the time of the piece.
    rate = of.bytes * max(of.requests - 1, 1) / of.requests / piece.seconds
    align = min(sizes)
    job = Job(
        op, piece.start, piece.seconds, of.requests, sizes, zones, 1 - random / 100, align, by_bytes=True
    )
    load.jobs.append(job)
    return [
        "bssplit=" + ":".join(f"{size}/{share}" for size, share in sizes.items()),
        "random_distribution=zoned_abs:"
        + ":".join(f"{share}/{last - first}" for first, last, share in zones),
        f"percentage_random={random}",
        f"io_size={of.bytes}",
        f"rate={max(1, round(rate))}",
    ]


def _zones(of: Direction, extent: int, least: int) -> list[tuple[int, int, int]]:
    """Neighbouring zones over all of the extent: first byte, one past the last, percent of the requests."""
    zones: list[tuple[int, int, int]] = []
    first, share = 0, 0
    for edge in of.edges[1:]:
        share += 1
        last = min(-(-edge // least) * least, extent)
        if last > first:
            zones.append((first, last, share))
            first, share = last, 0
    if share:
        # Those beyond the last edge.
        start, last, before = zones.pop()
        zones.append((start, last, before + share))
    return zones


def _losses(load: Load) -> None:
    load.losses += [
        "how requests come in bursts: within a piece bytes go at one rate;",
        "exactly how many requests there are: sizes are drawn until the bytes are moved;",
        "the order of reads and writes, which are two jobs;",
        "when places are used again, and runs that go on from other than the request before;",
        f"sizes and places finer than one percent of a piece, and zones below {LEAST_ZONE >> 20} MiB;",
    ]
    still = sum(piece.seconds for piece in load.pieces if not piece.directions)
    if still:
        load.losses.append(f"{still:,.3g} s of pieces without reads and writes, which fio does not wait for;")
    load.losses += unmoved(
        load,
        flushes="fio's fsync= counts writes, it does not follow the trace",
        discards="which fio does not mix with reads and writes of one file",
    )
