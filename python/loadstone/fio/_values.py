"""Values of fio's keys: sizes, times, numbers, and what differs between reads and writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeVar

from loadstone.fio._read import Entry

T = TypeVar("T")

# With kb_base=1024 fio takes k, kb and ki for 1024 and kib for 1000, the other way round than the standard.
_SIZE = re.compile(r"(0x[0-9a-f]{1,15}|\d{1,18})(?:([kmgtp])(ib?|b)?|b)?", re.ASCII)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIME = re.compile(r"(\d{1,15})(d|h|m|s|ms|msec|us|usec)?", re.ASCII)
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6}
# Beyond it no file and no target reaches.
_LARGEST = (1 << 63) - 1


def size(entry: Entry, text: str | None = None) -> int:
    """Bytes: ``4096``, ``4k``, ``1m``; ``kib`` and its like are powers of 1000, as in fio."""
    shown = entry.value if text is None else text
    match = _SIZE.fullmatch(shown.strip().lower())
    if match is None or (match[1].startswith("0x") and match[2]):
        hint = "; arithmetic is not done" if re.search(r"[*()+/]", shown) else ""
        entry.refuse(f"{shown.strip()!r} is no size; write it like 4096, 4k or 1g{hint}")
    base = 1000 if match[3] == "ib" else 1024
    found = int(match[1], 16) if match[1].startswith("0x") else int(match[1])
    for _ in range(_POWER.get(match[2] or "", 0)):
        found *= base
    if found > _LARGEST:
        entry.refuse(f"{shown.strip()} is more than any file has")
    return found


def portion(entry: Entry) -> tuple[int, bool]:
    """Bytes, or percent and True."""
    text = entry.value.strip()
    if text.endswith("%"):
        percent = number(entry, text[:-1])
        if percent > 100:
            entry.refuse(f"{text} is more than the whole")
        return percent, True
    return size(entry), False


def seconds(entry: Entry) -> float:
    """A time whose unit is seconds unless it says another: ``30``, ``5m``, ``500ms``."""
    match = _TIME.fullmatch(entry.value.strip().lower())
    if match is None:
        entry.refuse("is no time; write a whole number with d, h, m, s, ms or us, such as 30s")
    time = int(match[1]) * _SECONDS[match[2] or "s"]
    if time > 1e9:
        entry.refuse("is more than 30 years")
    return time


def microseconds(entry: Entry) -> float:
    """A time whose unit is microseconds unless it says another, in seconds."""
    text = entry.value.strip()
    if not text.isascii() or not text.isdigit():
        return seconds(entry)
    return number(entry, text, most=10**15) / 1e6


def number(entry: Entry, text: str | None = None, least: int = 0, most: int = _LARGEST) -> int:
    """A whole number."""
    shown = (entry.value if text is None else text).strip().lower()
    if not re.fullmatch(r"-?\d{1,19}|0x[0-9a-f]{1,16}", shown, re.ASCII):
        entry.refuse(f"{shown!r} is no whole number")
    found = int(shown, 16) if shown.startswith("0x") else int(shown)
    if not least <= found <= most:
        entry.refuse(f"{found} must be from {least} to {most}")
    return found


def decimal(entry: Entry, text: str) -> float:
    """A number with or without a point."""
    if not re.fullmatch(r"\d{1,15}(\.\d{0,15})?|\.\d{1,15}", text.strip(), re.ASCII):
        entry.refuse(f"{text.strip()!r} is no number")
    return float(text)


def flag(entry: Entry) -> bool:
    """1 or 0, and nothing else, as in fio."""
    if entry.value not in ("0", "1"):
        entry.refuse("write 1 or 0")
    return entry.value == "1"


def choice(entry: Entry, *names: str) -> str:
    """One of these words."""
    if entry.value not in names:
        entry.refuse(f"must be one of: {', '.join(names)}")
    return entry.value


Direction = Literal["read", "write", "both"]


def directed(entry: Entry, direction: Direction, parse: Callable[[Entry, str], T], usual: T, what: str) -> T:
    """A value that may be told for reads, writes and trims apart: ``4k``, ``4k,8k``, ``,8k``.

    A missing one is that before it, or the usual one where an empty one was written.
    """
    read, write = each_way(entry, parse, usual)
    if direction == "read":
        return read
    if direction == "write":
        return write
    if read != write:
        entry.refuse(f"{what} of reads and writes cannot differ within a job; write a job for each")
    return read


def each_way(entry: Entry, parse: Callable[[Entry, str], T], usual: T) -> tuple[T, T]:
    """Values of reads and of writes: a missing one is that before it, an empty one the usual one."""
    parts = entry.value.split(",")
    if len(parts) > 3:
        entry.refuse("has more than three values; they are those of reads, writes and trims")
    values = [parse(entry, part) if part.strip() else usual for part in parts]
    return values[0], values[1] if len(values) > 1 else values[0]


def cpus(entry: Entry) -> list[int]:
    """CPUs such as ``0,2-3``."""
    found: list[int] = []
    for part in entry.value.split(","):
        first, dash, last = part.partition("-")
        low = number(entry, first, most=65_535)
        high = number(entry, last, most=65_535) if dash else low
        if high < low:
            entry.refuse(f"{part.strip()} goes down; exchange the numbers")
        found += range(low, high + 1)
    return list(dict.fromkeys(found))
