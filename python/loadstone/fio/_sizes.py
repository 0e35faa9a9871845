"""Sizes of requests, and what their offsets are multiples of."""

from __future__ import annotations

import math
from typing import Any

from loadstone.fio import _values
from loadstone.fio._load import Load
from loadstone.fio._read import Entry, Job
from loadstone.plan.offsets import rows_of_range

# One request can move no more, see crates/plan.
_MOST = 1 << 28
_MOST_SIZES = 4096

Rows = list[dict[str, Any]]
"""Share, smallest and largest size of each row."""


def read_sizes(job: Job, way: _values.Direction) -> tuple[int, Rows, Rows]:
    """Bytes of a block, and the rows of a plan's ``sizes`` and ``write_sizes``."""
    entries = job.entries
    split, span, one = (entries.get(key) for key in ("bssplit", "bsrange", "bs"))
    about: Entry | None = None
    rows: tuple[Rows, Rows] = [_row(100, 4096, 4096)], [_row(100, 4096, 4096)]
    if split is not None:
        keys = list(entries)
        for other in (one, span):
            # bssplit counts in fio whatever comes after it, which is hardly what was meant.
            if other is not None and keys.index(other.key) > keys.index("bssplit"):
                other.refuse(f"bssplit in line {split.line} says the sizes already; leave one out")
        about, rows = split, _values.each_way(split, _split, rows[0])
    elif span is not None and (one is None or list(entries).index("bsrange") > list(entries).index("bs")):
        about, rows = span, _values.each_way(span, _range, rows[0])
    elif one is not None:
        about, rows = one, _values.each_way(one, _one, rows[0])
    reads, writes = rows if way != "write" else rows[::-1]
    if about is None or way != "both" or reads == writes:
        unit = int(min(row["low"] for row in reads))
        alone = len(reads) == 1 and reads[0]["low"] == reads[0]["high"]
        return unit, [] if alone else reads, []
    unit = math.gcd(*(int(row[key]) for row in [*reads, *writes] for key in ("low", "high")))
    return unit, _singly(about, reads), _singly(about, writes)


def _singly(entry: Entry, rows: Rows, step: int | None = None) -> Rows:
    """The same sizes, each in a row of its own."""
    found: Rows = []
    for row in rows:
        stride = step or int(min(one["low"] for one in rows))
        sizes = range(int(row["low"]), int(row["high"]) + 1, stride)
        if len(found) + len(sizes) > _MOST_SIZES:
            entry.refuse(f"goes with at most {_MOST_SIZES:,} different sizes; use fewer")
        found += [_row(row["share"] / len(sizes), size, size) for size in sizes]
    return found


def _one(entry: Entry, text: str) -> Rows:
    size = _possible(entry, _values.size(entry, text))
    return [_row(100, size, size)]


def _row(share: float, low: int, high: int) -> dict[str, Any]:
    return {"share": share, "low": low, "high": high}


def _possible(entry: Entry, size: int) -> int:
    if not 1 <= size <= _MOST:
        entry.refuse(f"a request can have 1 to {_MOST} bytes, and not {size}")
    return size


def _range(entry: Entry, text: str) -> Rows:
    """Multiples of the smaller size, all alike; a larger one that is none is rarer."""
    first, dash, last = text.partition("-")
    if not dash:
        entry.refuse("write two sizes with - between")
    low, high = (_possible(entry, _values.size(entry, part)) for part in (first, last))
    if low > high:
        low, high = high, low
    return rows_of_range(low, high, low)


def _split(entry: Entry, text: str) -> Rows:
    rows, open_ = [], []
    for part in text.split(":"):
        size, _, percent = part.partition("/")
        row = _row(0, *[_possible(entry, _values.size(entry, size))] * 2)
        if percent.strip():
            row["share"] = _values.number(entry, percent, most=100)
        else:
            open_.append(row)
        rows.append(row)
    left = 100 - sum(row["share"] for row in rows)
    if left < 0 or (left and not open_):
        entry.refuse(f"the percentages add up to {100 - left}, and not to 100")
    for row in open_:
        row["share"] = left / len(open_)
    # fio rounds each down to a multiple of the smallest, be that drawn or not.
    least = min(row["low"] for row in rows)
    for row in rows:
        row["low"] = row["high"] = row["low"] // least * least
    return [row for row in rows if row["share"]]


def align(load: Load, way: _values.Direction) -> None:
    """What random offsets are multiples of, and whether blocks come once."""
    entries = load.job.entries
    free = "norandommap" in entries and _values.flag(entries["norandommap"])
    if load.sequential:
        return
    load.once = not free and load.skew is None and not load.write_sizes
    if load.write_sizes and not free:
        load.notes.append(
            "sizes of reads and writes differ, so blocks are drawn with repetition, as with norandommap"
        )
    entry = entries.get("ba")
    if entry is None:
        return
    if load.write_sizes:
        entry.refuse("needs reads and writes of the same sizes; write a job for each")
    unit = _values.directed(entry, way, _values.size, load.least, "alignments")
    _possible(entry, unit)
    if unit == load.least:
        return
    # Blocks of another size than requests are not kept account of, in fio either.
    load.once = False
    load.sizes = _singly(entry, load.sizes or [_row(1, load.unit, load.unit)], load.unit)
    load.unit = unit
