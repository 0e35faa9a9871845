"""Values as people write them: one parser for each kind, which every option and ``NAME=VALUE`` uses.

All raise ``Error`` with what was written, what is wrong and how to write it, but not with whose value it is.
"""

from __future__ import annotations

import os
import re
from decimal import Decimal

from loadstone.errors import Error, OptionError

MOST = (1 << 63) - 1
"""Largest size, count and time in nanoseconds: what files and traces can have."""
MOST_SEED = (1 << 64) - 1
"""Largest seed."""

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
# Digits of other scripts are none, though Python reads them.
_SIZE = re.compile(r"(\d{1,40}(?:\.\d{1,20})?)\s*(?:([kmgtp])(?:i?b)?|b)?", re.A)
_DECIMAL = r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:e[+-]?\d{1,9})?"
_NUMBER = re.compile(_DECIMAL, re.A)
_SCALED = re.compile(rf"({_DECIMAL})([kmgt]?)", re.A)
_TIME = re.compile(r"(\d{1,40}(?:\.\d{1,20})?)\s*(ns|us|ms|s|m|h|d)?", re.A)
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_LEAST_RATE = 1e-9
"""One in 32 years."""
_OF_MEMORY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)x-ram", re.A)
_CPU = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.A)
MOST_CPUS = 1 << 13
"""As many as any kernel is built for."""


def size(text: str, least: int = 1) -> int:
    """Bytes of ``4096``, ``4k``, ``1.5g`` or ``4KiB``, in powers of 1024; parts of a byte are cut off."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise Error(f"{text!r} is not a size; write it like 4096, 4k or 1g")
    if "." in match[1] and not match[2]:
        raise Error(f"{text!r} is no whole number of bytes; write it like 4096, 1.5k or 1g")
    found = int(Decimal(match[1]) * (1 << 10 * _POWERS[match[2] or ""]))
    if found > MOST:
        raise Error(f"{text!r} is too large: a size is below 8192p (2 to the 63rd)")
    if found < least:
        raise Error(f"{text!r} is too small: at least {least} bytes are wanted")
    return found


def memory_share(text: str) -> float | None:
    """2.0 of ``2x-ram``; None where a text says no such thing."""
    match = _OF_MEMORY.fullmatch(text.strip().lower())
    return float(match[1]) if match else None


def target_size(text: str) -> int | str:
    """Bytes; or the text itself, of multiples of memory (``2x-ram``) and of several sizes (``64k-1m``)."""
    if text.strip().lower().endswith("x-ram"):
        if not memory_share(text):
            raise Error(f"{text!r} is not a multiple of memory; write it like 2x-ram")
        return text
    parts = re.split("[,-]", text)
    if len(parts) > 1 and all(parts):
        for part in parts:
            size(part)
        return text
    return size(text)


def block_sizes(text: str) -> str:
    """The text itself, once each size of ``4k``, ``4k-64k`` and ``4k:60,64k:40`` is one."""
    for part in re.split("[,-]", text):
        size(part.partition(":")[0])
    return text


def duration(text: str, zero: bool = False) -> float:
    """Seconds of ``90``, ``1.5s``, ``200ms``, ``10m``, ``1h`` or ``2d``; ``zero``: may it be none at all."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        raise Error(f"{text!r} is not a duration; write it like 30s, 200ms or 10m")
    nanoseconds = Decimal(match[1]) * _NANOSECONDS[match[2] or "s"]
    if nanoseconds > MOST:
        raise Error(f"{text!r} is too long: a duration is below 292 years")
    if nanoseconds < 1 and not (zero and nanoseconds == 0):
        raise Error(f"{text!r} is too short: at least 1ns is wanted")
    return float(nanoseconds / 10**9)


def number(text: str) -> float:
    """A finite number: ``2``, ``0.5``, ``1e3``."""
    if not _NUMBER.fullmatch(text.strip().lower()):
        raise Error(f"{text!r} is no number; write it like 2 or 0.5")
    return _finite(text, float(text.strip()))


def rate(text: str) -> float:
    """So many per second: ``500``, ``20k``, ``1.5m``, in powers of 1000."""
    match = _SCALED.fullmatch(text.strip().lower())
    if match is None:
        raise Error(f"{text!r} is no rate; write it like 500, 2.5 or 20k (20,000 per second)")
    found = _finite(text, float(match[1]) * 1000 ** _POWERS[match[2]])
    if found < _LEAST_RATE:
        raise Error(f"{text!r} is no rate above 0; write it like 500, 2.5 or 20k (20,000 per second)")
    return found


def count(text: str, least: int = 0, most: int = MOST) -> int:
    """A whole number: ``100``, ``20k``, ``1.5m``, in powers of 1000."""
    match = _SCALED.fullmatch(text.strip().lower())
    # An exponent may make a number that takes for ever to write down.
    found = None if match is None or "e" in match[1] else Decimal(match[1]) * 1000 ** _POWERS[match[2]]
    if found is None or found != found.to_integral_value():
        raise Error(f"{text!r} is no whole number; write it like 100 or 20k")
    if not least <= found <= most:
        raise Error(f"{text!r} is out of range: use {least} to {_most(most)}")
    return int(found)


def _most(most: int) -> str:
    """A bound as people would write it."""
    return {MOST: "9223372036854775807 (2 to the 63rd, less 1)"}.get(most, str(most))


def seed(text: str) -> int:
    """What random draws begin from: a whole number below 2 to the 64th."""
    return count(text, 0, MOST_SEED)


def share(text: str) -> float:
    """A share: ``0.1`` or ``10%``."""
    plain = text.strip()
    try:
        return number(plain[:-1].rstrip()) / 100 if plain.endswith("%") else number(plain)
    except Error:
        raise Error(f"{text!r} is no share; write it like 0.1 or 10%") from None


def percentage(text: str) -> float:
    """Percent: ``10`` or ``10%``."""
    return number(text.strip().removesuffix("%"))


def factor(text: str) -> float:
    """A number above 0, also as paces are written: ``2``, ``x2``, ``x0.5``."""
    try:
        found = number(text.strip().lower().removeprefix("x"))
    except Error:
        found = 0.0
    if found <= 0:
        raise Error(f"{text!r} is not a factor; write it like 2, x2 or 0.5")
    return found


def divisor(text: str) -> float:
    """What times are divided by: a factor, or ``none``, which is 0."""
    return 0.0 if text.strip().lower() == "none" else factor(text)


def cpus(text: str) -> list[int]:
    """CPUs of ``0,2-3``, each once."""
    found: list[int] = []
    for part in text.split(","):
        match = _CPU.fullmatch(part.strip())
        if match is None:
            raise Error(f"{part!r}: write CPUs like 0,2-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise Error(f"{part!r} goes down; write {last}-{first}")
        if last >= MOST_CPUS:
            raise Error(f"{part!r}: no host has so many CPUs; write them like 0,2-3")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dict; a name that comes twice is an error."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name or not value:
            raise Error(f"{text!r}: write NAME=VALUE")
        if name in found:
            raise Error(f"{text!r}: {name} was given before, as {found[name]}; leave out one of them")
        found[name] = value
    return found


def _finite(text: str, found: float) -> float:
    if found in (float("inf"), float("-inf")):
        raise Error(f"{text!r} is too large a number")
    return found


def is_null(name: str | os.PathLike[str]) -> bool:
    """Whether a name stands for the target that performs nothing: ``null:`` alone does.

    Raises ``Error`` at ``null`` where nothing of that name is: the colon was forgotten, or it is a new file.
    """
    text = os.fspath(name)
    if text == "null" and not os.path.lexists(text):
        raise OptionError(
            None,
            None,
            "null: there is no such file; write null: (with a colon) to perform nothing, or ./null",
        )
    return text == "null:"
