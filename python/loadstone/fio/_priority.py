"""I/O priorities: of a job's threads, and of shares of its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from loadstone._core import uring_refused
from loadstone.fio import _values
from loadstone.fio._read import Entry, Job

T = TypeVar("T")

_CLASSES = {1: "realtime", 2: "best_effort", 3: "idle"}
# The kernel has ten bits for a hint to the device.
_MOST_HINT = 1023


def read_ioprio(job: Job) -> dict[str, Any] | None:
    """Priority of all requests; without a class, a level is one of best effort."""
    level, kind = job.entries.get("prio"), job.entries.get("prioclass")
    if level is None and kind is None:
        return None
    name = "best_effort" if kind is None else _CLASSES[_values.number(kind, least=1, most=3)]
    found = {"class": name, "level": 0 if level is None else _values.number(level, most=7)}
    if name == "idle" and found["level"]:
        assert level is not None
        level.refuse("the idle class has no levels; leave it out")
    return found


def read_priorities(job: Job, reads: float, backend: str, notes: list[str]) -> list[dict[str, Any]]:
    """Rows of a plan's ``priorities``; ``reads``: the job's share of them."""
    entries = job.entries
    share, split = entries.get("cmdprio_percentage"), entries.get("cmdprio_bssplit")
    classes = _two(entries.get("cmdprio_class"), lambda e, t: _values.number(e, t, most=3), 1)
    levels = _two(entries.get("cmdprio"), lambda e, t: _values.number(e, t, most=7), 0)
    if share is not None and split is not None:
        split.refuse(f"cmdprio_percentage in line {share.line} says the shares already; leave one out")
    about = share or split
    if about is None:
        for key in ("cmdprio_class", "cmdprio"):
            if key in entries:
                what = "has no effect without cmdprio_percentage or cmdprio_bssplit, in fio either"
                notes.append(f"{key} {what}")
        return []
    # As in fio, what no class is written for has the highest one.
    usual = [(classes[way] or 1, levels[way]) for way in (0, 1)]
    rows: list[dict[str, Any]] = []
    for way, used in enumerate((reads > 0, reads < 1)):
        if used and share is not None:
            percent = _two(share, lambda e, t: _values.number(e, t, most=100), 0)[way]
            rows += _row(not way, 0, percent, *usual[way], 0)
        elif used and split is not None:
            nothing: list[_Part] = []
            for size, part, kind, level, hint in _two(split, _parts, nothing)[way]:
                priority = usual[way] if kind is None else (kind, level)
                rows += _row(not way, size, part, *priority, hint)
    if not rows:
        return []
    if backend != "io_uring" or uring_refused():
        about.refuse("needs ioengine=io_uring or libaio, and io_uring must be permitted here")
    return rows


def _two(entry: Entry | None, parse: Callable[[Entry, str], T], usual: T) -> tuple[T, T]:
    """Values of reads and of writes."""
    return (usual, usual) if entry is None else _values.each_way(entry, parse, usual)


_Part = tuple[int, int, int | None, int, int]


def _parts(entry: Entry, text: str) -> list[_Part]:
    """Size, percent, class, level and hint of each part of a ``cmdprio_bssplit``; None: the usual class."""
    found: list[_Part] = []
    for part in text.split(":"):
        words = part.split("/")
        if len(words) not in (2, 4, 5):
            entry.refuse(f"{part.strip()!r}: write SIZE/PERCENT, SIZE/PERCENT/CLASS/LEVEL, or a HINT behind")
        size, percent = _values.size(entry, words[0]), _values.number(entry, words[1], most=100)
        kind, level = None, 0
        if len(words) > 2:
            kind, level = _values.number(entry, words[2], most=3), _values.number(entry, words[3], most=7)
        hint = _values.number(entry, words[4], most=_MOST_HINT) if len(words) > 4 else 0
        found.append((size, percent, kind, level, hint))
    for size in {one[0] for one in found}:
        if (total := sum(one[1] for one in found if one[0] == size)) > 100:
            entry.refuse(f"the percentages of {size} bytes add up to {total}; write 100 at most")
    return found


def _row(
    reads: bool, size: int, percent: int, kind: int | None, level: int, hint: int
) -> list[dict[str, Any]]:
    """One row, or none where it changes nothing."""
    if not percent or not kind:
        return []
    name = _CLASSES[kind]
    # The kernel heeds no level of the idle class.
    ioprio = {"class": name, "level": 0 if name == "idle" else level}
    row = {"reads": reads, "size": size, "share": percent / 100, "ioprio": ioprio}
    return [{**row, "hint": hint} if hint else row]
