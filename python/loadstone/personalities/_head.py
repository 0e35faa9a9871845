"""Heads of personalities: the comment that says what a script models and where its numbers come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import Error

_TITLE = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*): (\S.*)")
_FIELD = re.compile(r"(From|Mix|Scale): (\S.*)")
_VARIABLE = re.compile(r"\$([a-z]+): (\S.*)")
_SET = re.compile(r"set \$([a-z]+)=(.*)")
_LOOP = re.compile(r"(?:([a-z]+): )?(\S.*)")
_COUNT = re.compile(r"([a-z]+) (\d+(?:\.\d+)?)")
NO_SCALE = "none"
"""What ``Scale:`` says of a script whose files hold no data."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that ``-D`` may set. ``default``: as the script writes it."""

    name: str
    default: str
    about: str


@dataclass(frozen=True, slots=True)
class Loop:
    """What a thread does in one pass over its flowops, on average."""

    process: str
    """Name of the process; empty where there is only one."""
    counts: tuple[tuple[str, float], ...]
    """Flowops that are requests, in the order of the text, and how often each is done."""

    def shares(self) -> dict[str, float]:
        """Share of each flowop in all requests of the loop, 0 to 1."""
        total = sum(count for _, count in self.counts)
        return {flowop: count / total for flowop, count in self.counts}


@dataclass(frozen=True, slots=True)
class Personality:
    """A benchmark that can be run by its name."""

    name: str
    title: str
    """What it models, in a line."""
    about: tuple[str, ...]
    """The same in paragraphs."""
    source: str
    """Where its numbers come from, and what was changed and why."""
    mix: tuple[Loop, ...]
    scale: str | None
    """The variable that makes its files hold more; None where they hold no data."""
    variables: tuple[Variable, ...]
    path: Path
    text: str
    """The script as it is."""


def read_head(path: Path) -> Personality:
    """Reads a script with a head. Raises ``Error`` where the head has another form."""
    text = path.read_text(encoding="utf-8")
    paragraphs = list(_paragraphs(text))
    if len(paragraphs) < 3:
        raise Error(f"{path}: has no head: a title, paragraphs, then From, Mix, Scale and variables")
    (first,), *middle, last = paragraphs
    title = _matched(_TITLE, first, path, "NAME: what it models")
    if title[1] != path.stem:
        raise Error(f"{path}: its head is that of {title[1]}")
    fields: dict[str, str] = {}
    told: dict[str, str] = {}
    for entry in _entries(last):
        if entry.startswith("$"):
            match = _matched(_VARIABLE, entry, path, "$NAME: meaning")
            told[match[1]] = match[2]
        else:
            match = _matched(_FIELD, entry, path, "From, Mix or Scale")
            fields[match[1]] = match[2]
    if missing := [name for name in ("From", "Mix", "Scale") if name not in fields]:
        raise Error(f"{path}: its head has no {missing[0]}")
    defaults = {match[1]: match[2] for match in map(_SET.fullmatch, text.splitlines()) if match}
    if unknown := told.keys() - defaults:
        raise Error(f"{path}: its head names ${sorted(unknown)[0]}, which the script does not set")
    return Personality(
        name=title[1],
        title=title[2],
        about=tuple(" ".join(lines) for lines in middle),
        source=fields["From"],
        mix=tuple(_loop(part, path) for part in fields["Mix"].split("; ")),
        scale=None if fields["Scale"] == NO_SCALE else fields["Scale"],
        variables=tuple(Variable(name, defaults[name], about) for name, about in told.items()),
        path=path,
        text=text,
    )


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Runs of lines of the first comment, without their ``# ``."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if content := line[1:].removeprefix(" "):
            lines.append(content)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _entries(lines: list[str]) -> list[str]:
    """Fields and variables; a line that begins with blanks goes on with the one before."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found


def _loop(text: str, path: Path) -> Loop:
    match = _matched(_LOOP, text, path, "PROCESS: flowop COUNT, ...")
    counts = [_matched(_COUNT, part, path, "flowop COUNT") for part in match[2].split(", ")]
    return Loop(match[1] or "", tuple((one[1], float(one[2])) for one in counts))


def _matched(pattern: re.Pattern[str], text: str, path: Path, wanted: str) -> re.Match[str]:
    if (match := pattern.fullmatch(text)) is None:
        raise Error(f"{path}: its head has {text!r} where {wanted} is wanted")
    return match
