"""What single words and strings say: numbers with their suffixes, booleans, text with variables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from loadstone.wml._ast import Boolean, Integer, Number, Text, Variable, Word
from loadstone.wml._errors import Refused, Span, shown
from loadstone.wml._words import FIELDS

_INTEGER = re.compile(r"-?(?:(\d+)(?:([kmgt])b?)?|0x([0-9a-f]+))", re.I | re.A)
_NUMBER = re.compile(r"(-?(?:\d+\.\d+|\.\d+))(?:([kmgt])b?)?|-?(?:\d+(?:\.\d+)?|\.\d+)e[+-]?\d+", re.I | re.A)
_POWER = {None: 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# As far as offsets in files and counters go.
_MOST = 1 << 63

ORIGINAL_WORD = re.compile(r"[A-Za-z/\-][A-Za-z0-9/._:;\-]*")
"""What Filebench reads as text without quotes."""

PLAIN_VARIABLE = re.compile(r"[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
"""A name that needs no braces."""

_FIELD = rf"(?:{'|'.join(FIELDS)})"
_PART = re.compile(
    rf"""\\(?P<escape>.)
    |\$\((?P<environment>[A-Za-z_][A-Za-z0-9_.]*)\)
    |\$\{{(?P<braces>[A-Za-z_][A-Za-z0-9_.]*)\}}
    |\$(?P<plain>{PLAIN_VARIABLE.pattern}(?:\.{_FIELD}(?![A-Za-z0-9_]))?)
    |(?P<text>\$|[^\\$]+)""",
    re.S | re.X,
)
_ESCAPES = {"n": "\n", "$": "$", '"': '"', "\\": "\\"}


def literal(text: str, at: Span) -> Integer | Number | Boolean | Word:
    """A word as the number or boolean that it is, or as a word."""
    first = text[0]
    if first.isalpha() or first == "/":
        return Boolean(text == "true", at=at) if text in ("true", "false") else Word(text, at=at)
    if match := _INTEGER.fullmatch(text):
        digits, suffix, hexadecimal = match.groups()
        if len(text) > 40:
            raise _too_large(text, at)
        value = int(hexadecimal, 16) if hexadecimal else int(digits) * _POWER[suffix and suffix.lower()]
        if value >= _MOST:
            raise _too_large(text, at)
        return Integer(-value if first == "-" else value, text, at=at)
    if match := _NUMBER.fullmatch(text):
        mantissa, suffix = match.groups()
        number = float(mantissa) * _POWER[suffix and suffix.lower()] if mantissa else float(text)
        if not math.isfinite(number):
            raise _too_large(text, at)
        return Number(number, text, at=at)
    return Word(text, at=at)


def _too_large(text: str, at: Span) -> Refused:
    return Refused(at, f"{shown(text)} is too large a number", "numbers are below 8388608t (2 to the 63rd)")


def variable(text: str, at: Span) -> Variable:
    """``$name`` and its other forms."""
    if text[1] == "(":
        return Variable(text[2:-1], environment=True, at=at)
    name = text[2:-1] if text[1] == "{" else text[1:]
    before, dot, last = name.rpartition(".")
    return Variable(before, last, at=at) if dot and before and last in FIELDS else Variable(name, at=at)


def quoted(text: str, at: Span) -> Text:
    """A string with its quotes."""
    parts: list[str | Variable] = []
    run: list[str] = []
    for match in _PART.finditer(text, 1, len(text) - 1):
        kind, found = match.lastgroup, match[0]
        if kind == "text":
            run.append(found)
        elif kind == "escape":
            run.append(_ESCAPES.get(found[1], found))
        else:
            if run:
                parts.append("".join(run))
                run = []
            parts.append(variable(found, Span(at.start + match.start(), at.start + match.end())))
    if run:
        parts.append("".join(run))
    return Text(tuple(parts), at=at)


def joined(text: str, at: Span) -> Text:
    """Text and variables without quotes."""
    return Text(quoted(f'"{text}"', Span(at.start - 1, at.end + 1)).parts, at=at)


def oddities(text: str) -> Iterator[tuple[int, int, str]]:
    """What in a string with its quotes is read otherwise than it looks: its characters, and what is said."""
    for match in _PART.finditer(text, 1, len(text) - 1):
        start, found = match.start(), match[0]
        if match.lastgroup == "escape" and found[1] not in _ESCAPES:
            yield start, match.end(), f"{shown(found)} is no escape, so the backslash is kept; write \\\\"
        elif found == "$":
            yield start, match.end(), "this $ begins no variable and is kept as it is; write \\$"
    end = re.search(r"[\r\n]", text)
    if end:
        yield 0, end.start(), "the string goes over the end of its line"
