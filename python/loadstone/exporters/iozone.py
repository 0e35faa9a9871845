"""A model as IOzone command lines (IOzone 3): one run for each piece of time.

IOzone tests one record size at a time and touches every record of its file about once, so a piece becomes a
file of as many records as it has requests: sequential writes or reads where most go on from the one before,
else the random mix with its share of reads.
"""

from __future__ import annotations

import shlex

from loadstone.exporters._load import READ, WRITE, Job, Load, Piece, unmoved

KIB, PAGE = 1024, 4096


def export(load: Load, target: str) -> dict[str, str]:
    """The script."""
    file = shlex.quote(target)
    lines, largest = [], 0
    for piece in load.pieces:
        if not piece.directions:
            lines.append(f"sleep {piece.seconds:.3f}")
            continue
        size, test, job = _run(piece)
        load.jobs += job
        largest = max(largest, size)
        lines.append(f"iozone -w -+n -I -t 1 -F {file} {test}")
    # Reads need a file; what is there stays.
    first = f"iozone -i 0 -w -+n -t 1 -F {file} -s {largest // KIB}k -r 1024k"
    _losses(load)
    return {"": "\n".join(["set -e", first, *lines]) + "\n"}


def _run(piece: Piece) -> tuple[int, str, list[Job]]:
    """Bytes of the file, the options of the test, and what it does."""
    requests = sum(of.requests for of in piece.directions.values())
    record = record_of(piece)
    size = -(-requests * record // (KIB * KIB)) * KIB * KIB
    runs = sum(of.requests * of.sequential for of in piece.directions.values()) / requests
    reads = piece.directions[READ].requests / requests if READ in piece.directions else 0.0
    # Delays are whole milliseconds before each request.
    delay = round(1000 * piece.seconds / requests)
    pace = f" -J {delay}" if delay else ""
    at = f"-s {size // KIB}k -r {record // KIB}k{pace}"
    if runs > 0.5:
        op = READ if reads > 0.5 else WRITE
        jobs = [Job(op, piece.start, piece.seconds, requests, {record: 1}, [(0, record, 1)], 1.0, record)]
        return size, f"-i {1 if op == READ else 0} {at}", jobs
    jobs = []
    for op, share in ((READ, round(100 * reads)), (WRITE, 100 - round(100 * reads))):
        if share:
            count = max(1, round(requests * share / 100))
            jobs.append(Job(op, piece.start, piece.seconds, count, {record: 1}, [(0, size, 1)], 0.0, record))
    return size, f"-i 8 -+p {round(100 * reads)} {at}", jobs


def record_of(piece: Piece) -> int:
    """The mean size, in whole pages or, below one, in whole KiB: so many requests move as many bytes then."""
    requests = sum(of.requests for of in piece.directions.values())
    moved = sum(size * count for of in piece.directions.values() for size, count in of.sizes.items())
    unit = PAGE if moved >= requests * PAGE else KIB
    return max(1, round(moved / requests / unit)) * unit


def _losses(load: Load) -> None:
    load.losses += [
        "sizes: a piece has one, the mean;",
        "where requests go: a piece's file has as many records as it has requests, each used about once;",
        "reads beside writes where most of a piece is sequential: it is all the kind that is more;",
        "rates other than by whole milliseconds between requests, and how they come in bursts;",
        "when places are used again;",
    ]
    load.losses += unmoved(load, flushes="it syncs at the end of a test", discards="it has none")
