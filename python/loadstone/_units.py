"""Sizes, durations and numbers as people read them; the unit is chosen by what would be written."""

from __future__ import annotations

import math

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# Nanoseconds of a unit, and the length from which on the next is used, in the unit itself.
_TIMES = (("ns", 1.0, 1e3), ("us", 1e3, 1e3), ("ms", 1e6, 1e3), ("s", 1e9, 120.0), ("min", 60e9, 120.0))


def number(value: float, digits: int = 4) -> str:
    """``digits`` significant digits, thousands apart, never as a power of ten from 0.001 on; a dash for none.

    Whole from 1,000 on where there are at most four digits, else from 10,000 on.
    """
    if not math.isfinite(value):
        return "–"
    text = f"{value:.{digits}g}"
    if value == 0 or abs(value) < 0.001:
        return text
    # 9999.6 in four digits is 10,000, which is written as 1e+04.
    return f"{value:,.0f}" if abs(float(text)) >= (1000 if digits <= 4 else 10_000) else text


def size(count: float, digits: int = 4, decimals: int | None = None) -> str:
    """Bytes in powers of 1024: ``4 KiB``, ``1.5 GiB``; with ``decimals``, or significant ``digits``."""
    value = float(count)
    for unit in _SIZES:
        places = 0 if unit == "B" else decimals
        text = number(value, digits) if decimals is None else f"{value:.{places}f}"
        plain = text.replace(",", "")
        if abs(float(plain)) < 1024:
            return f"{plain} {unit}"
        if unit == _SIZES[-1]:
            return f"{text} {unit}"
        # What is written as 1024 of a unit is at least one of the next.
        value = math.copysign(max(abs(value) / 1024, 1.0), value)
    raise AssertionError


def duration(ns: float, seconds: int = 3, micro: str = "us") -> str:
    """Nanoseconds as ``820 ns``, ``12.3 us``, ``4.5 ms``, ``2 s``, ``3.1 h``; three significant digits.

    ``seconds``: significant digits of seconds; ``micro``: how microseconds are written.
    """
    for unit, scale, limit in _TIMES:
        text = number(_at_least_one(ns, scale), seconds if unit == "s" else 3)
        if abs(float(text.replace(",", ""))) < limit:
            return f"{text} {micro if unit == 'us' else unit}"
    return f"{number(ns / 3600e9, 3)} h"


def _at_least_one(ns: float, scale: float) -> float:
    """In a unit; what rounds up to it from the one before is one of it."""
    value = ns / scale
    return math.copysign(1.0, value) if scale > 1 and abs(value) < 1 else value
