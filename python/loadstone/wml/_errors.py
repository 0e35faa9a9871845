"""Where things stand in a script, and errors and remarks that show it as a compiler does."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from loadstone.errors import Error

_LINE_END = re.compile(r"\r\n|\n|\r")
# Longer lines are shown around the place that matters.
_SHOWN = 120


class Span(NamedTuple):
    """Characters of a script, from ``start`` up to ``end``."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, eq=False)
class Source:
    """The text of a script and its lines. Lines end with LF, CR LF or CR."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """A line without its end."""
        starts = self._starts
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def pointing(self, at: Span) -> str:
        """The line of a place with the place marked below it."""
        number, column = self.place(at.start)
        line = self.line(number)
        width = max(1, min(at.end - at.start, len(line) - column + 1))
        first = 0
        if len(line) > _SHOWN:
            first = max(0, min(column - 1 - _SHOWN // 3, len(line) - _SHOWN))
            width = min(width, first + _SHOWN - column + 1)
        before, shown = line[first : column - 1], line[first : first + _SHOWN]
        cut = "..." if first else ""
        more = "..." if first + _SHOWN < len(line) else ""
        indent = " " * len(cut) + "".join("\t" if c == "\t" else " " for c in before)
        return f"{number:>5} | {cut}{_visible(shown)}{more}\n      | {indent}{'^' * max(1, width)}"


def _visible(text: str) -> str:
    """The text without characters that would move the mark below it."""
    return "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class WmlError(Error):
    """What is wrong with a script, where, and what to do.

    ``file``, ``line`` and ``column`` (from 1) tell the place, ``text`` is the line itself, ``at`` the
    characters. ``what`` is the message without all this, ``expected`` what could have stood there, ``help``
    what to do about it (may be empty).
    """

    def __init__(
        self, source: Source, at: Span, what: str, *, expected: Iterable[str] = (), help: str = ""
    ) -> None:
        """An error at a place of a script."""
        self.file = source.name
        self.at = at
        self.line, self.column = source.place(at.start)
        self.text = source.line(self.line)
        self.what = what
        self.expected = tuple(expected)
        self.help = help
        shown = f"{self.file}:{self.line}:{self.column}: {what}\n{source.pointing(at)}"
        super().__init__(shown + (f"\n{help}" if help else ""), path=self.file)


class Refused(Exception):
    """A literal that cannot be read, until the script that it is in is known."""

    def __init__(self, at: Span, what: str, help: str = "") -> None:
        """What is wrong with the characters of a place."""
        super().__init__(what)
        self.at, self.what, self.help = at, what, help


@dataclass(frozen=True, slots=True)
class Remark:
    """A warning: the script can be read, but this may not be what was meant."""

    source: Source = field(repr=False, compare=False)
    at: Span
    what: str

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.source.place(self.at.start)[0]

    @property
    def column(self) -> int:
        """The column, from 1."""
        return self.source.place(self.at.start)[1]

    def __str__(self) -> str:
        """The warning in the layout of errors."""
        place = f"{self.source.name}:{self.line}:{self.column}"
        return f"{place}: warning: {self.what}\n{self.source.pointing(self.at)}"


def shown(text: str) -> str:
    """Text of a script as messages cite it: on one line, and not too long."""
    short = text if len(text) <= 60 else text[:57] + "..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short)


def character(char: str) -> str:
    """A character as messages cite it."""
    name = unicodedata.name(char, "")
    if char.isascii() and char.isprintable():
        return f"'{char}'"
    return f"U+{ord(char):04X}" + (f" ({name.lower()})" if name else "")


def listed(words: Iterable[str], last: str = "and") -> str:
    """Words in a sentence: a, b and c."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"
