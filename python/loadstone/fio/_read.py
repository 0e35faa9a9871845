"""Reads fio's job files: sections, keys, comments and variables."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from loadstone._kept import warn_of_environment
from loadstone.errors import Error
from loadstone.fio._keys import ALIASES, BARE, KEYS, OF_ENGINES, REFUSED, USED

# Jobs of one file; more than a plan has workers.
_MOST = 65_535
_SHOWN = 120
# Faults of a file that are told at once.
_MOST_FAULTS = 50


class FioError(Error):
    """What is wrong with a job file, where, and what to do.

    ``file`` and ``line`` (from 1) tell the place, ``what`` is the message without it.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        """``file`` as the user named it."""
        super().__init__(f"{file}:{line}: {what}", path=file)
        self.file, self.line, self.what = file, line, what


def together(faults: Sequence[FioError]) -> None:
    """Raises one error of all of these, each told once, by their lines; none where there are none."""
    known = {(fault.line, fault.what): fault for fault in faults}
    ordered = [known[key] for key in sorted(known)]
    if not ordered:
        return
    first, *others = ordered
    raise FioError(first.file, first.line or 1, "\n".join([first.what, *map(str, others[:_MOST_FAULTS])]))


@dataclass(frozen=True)
class Entry:
    """One line of a section."""

    file: str
    line: int
    key: str
    """The key's first name, whatever alias was written."""
    value: str
    """Text after ``=``, ``1`` where nothing was."""
    written: str
    """The line as it stands there, without its comment."""

    def refuse(self, what: str) -> NoReturn:
        """Raises an error about this line."""
        raise FioError(self.file, self.line, f"{_cut(self.written)}: {what}")


def refused(entry: Entry) -> FioError | None:
    """The error of a key that no plan can say, unless its value asks for nothing."""
    found = REFUSED.get(entry.key)
    if found is None or entry.value.strip().lower() in found.nothing:
        return None
    what = f"{_cut(entry.written)}: fio knows it, Loadstone does not: {found.why}"
    return FioError(entry.file, entry.line, what)


@dataclass(frozen=True)
class Job:
    """A section that is no ``[global]``: its keys, and those of all global ones before it."""

    file: str
    line: int
    name: str
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By key; the last one counts, and comes last."""

    def refuse(self, what: str) -> NoReturn:
        """Raises an error about the job as a whole."""
        raise FioError(self.file, self.line, f"[{_cut(self.name)}]: {what}")


def _visible(text: str) -> bool:
    """Whether it can be shown on a line: no control characters but tabs, no spaces of other kinds."""
    return text.replace("\t", " ").isprintable()


def _cut(text: str) -> str:
    """No longer than fits on a line, and nothing that would move a terminal's cursor."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def sections(
    text: str | bytes,
    name: str,
    variables: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[list[Job], list[FioError]]:
    """The jobs of a file without lines that are wrong, and what is wrong with those.

    Keys that are refused are in the jobs. Raises ``FioError`` where nothing can be read.
    """
    lines = _lines(text, name)
    given = dict(variables or {})
    known = {**(os.environ if environment is None else environment), **given}
    used: set[str] = set()
    shared: dict[str, Entry] = {}
    jobs: list[Job] = []
    section: dict[str, Entry] | None = None
    faults: list[FioError] = []
    for number, raw in enumerate(lines, 1):
        line = re.split(r"[;#]", raw, maxsplit=1)[0].strip()
        if not line:
            continue
        if not _visible(line):
            what = f"{_cut(line)}: has a character that cannot be seen; type it anew"
            faults.append(FioError(name, number, what))
            continue
        if line.startswith("["):
            try:
                title = _title(line, name, number)
            except FioError as fault:
                faults.append(fault)
                section = {}
                continue
            if title == "global":
                section = shared
            else:
                if len(jobs) == _MOST:
                    raise FioError(name, number, f"is the {_MOST + 1:,}th job; a file may have {_MOST:,}")
                section = dict(shared)
                jobs.append(Job(name, number, title, section))
            continue
        if section is None:
            what = f"{_cut(line)}: stands before any section; write [global] above it"
            faults.append(FioError(name, number, what))
            # One section lacks its name, and not each of its lines.
            section = {}
            continue
        try:
            entry = _entry(line, name, number, known, used)
        except FioError as fault:
            faults.append(fault)
            other = _stand_in(line, name, number)
            if other is None:
                continue
            entry = other
        # In place of an earlier one, but at the end: of keys that exclude each other the last one counts.
        section.pop(entry.key, None)
        section[entry.key] = entry
    if not faults:
        if not jobs:
            raise FioError(name, max(len(lines), 1), "has no job; write a section such as [job]")
        warn_of_environment(name, used - given.keys())
        if unused := given.keys() - used:
            raise FioError(name, 1, f"-D {min(unused)}: the file has no ${{{min(unused)}}}")
    return jobs, faults


def possible(entry: Entry) -> Entry | None:
    """An entry of the same key that other keys of the job can go with, in place of one that is wrong."""
    value = entry.value.lower()
    match entry.key:
        case "rw":
            value = ("rand" if "rand" in value else "") + ("read" if "read" in value else "write")
        case "ioengine":
            value = "io_uring"
        case "zonemode":
            value = "strided"
        case _:
            return None
    return None if value == entry.value else replace(entry, value=value)


def _stand_in(line: str, name: str, number: int) -> Entry | None:
    """What :func:`possible` says of a line that is no entry."""
    key, _, value = (part.strip() for part in line.partition("="))
    return possible(Entry(name, number, ALIASES.get(key, key), value, line))


def _lines(text: str | bytes, name: str) -> list[str]:
    try:
        whole = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        at = error.object.count(b"\n", 0, error.start) + 1
        raise FioError(name, at, "is no text in UTF-8") from None
    return re.split(r"\r\n|\n|\r", whole.removeprefix("\ufeff"))


def _title(line: str, name: str, number: int) -> str:
    if not line.endswith("]"):
        raise FioError(name, number, f"{_cut(line)}: a section is a name in brackets alone on its line")
    title = line[1:-1].strip()
    if not title:
        raise FioError(name, number, "[]: the section has no name")
    if title != "global" and title.lower().startswith("global"):
        # fio looks at the first six letters only, and takes other spellings for jobs.
        raise FioError(name, number, f"{_cut(line)}: write [global], or give the job another name")
    return title


def _entry(line: str, name: str, number: int, known: Mapping[str, str], used: set[str]) -> Entry:
    written, sign, value = line.partition("=")
    written = written.strip()
    key = ALIASES.get(written, written)
    if written.split()[:1] == ["include"]:
        raise FioError(name, number, f"{_cut(line)}: other files are not read; put what it says here")
    if key in OF_ENGINES:
        what = "is a key of an engine of fio's that is refused; docs/reference/fio.md lists the engines"
        raise FioError(name, number, f"{_cut(line)}: {what}")
    if key not in KEYS:
        raise FioError(name, number, f"{_cut(line)}: {_unknown(written)}")
    if not sign:
        if key not in BARE:
            raise FioError(name, number, f"{_cut(line)}: needs a value; write {written}=...")
        return Entry(name, number, key, "1", line)
    value = _expanded(value.strip(), line, name, number, known, used)
    if not value and key in USED:
        raise FioError(name, number, f"{_cut(line)}: has no value; write one, or leave the key out")
    return Entry(name, number, key, value, line)


def _unknown(written: str) -> str:
    """What to do about a key that neither fio nor Loadstone knows."""
    if not written:
        return "has no key before its ="
    lower = written.lower()
    if lower in KEYS or lower in ALIASES:
        return f"keys are written in small letters: {lower}"
    first, _, rest = written.partition(" ")
    if first in KEYS or first in ALIASES:
        return f"write {first}={_cut(rest.strip())}"
    near = difflib.get_close_matches(lower[:_SHOWN], [*KEYS, *ALIASES], 1, 0.75)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else "remove it, or see docs/reference/fio.md for the keys there are"
    )
    return f"{_cut(written)} is no key of a job; {hint}"


_VARIABLE = re.compile(r"\$\{([^}]*)\}?|\$(pagesize|ncpus|mb_memory)")


def _expanded(value: str, line: str, name: str, number: int, known: Mapping[str, str], used: set[str]) -> str:
    def put(match: re.Match[str]) -> str:
        if match[2]:
            return str(_facts(match[2]))
        variable = match[1]
        if not match[0].endswith("}") or not variable:
            raise FioError(name, number, f"{_cut(line)}: a variable is written ${{NAME}}")
        if variable not in known:
            what = f"the variable {_cut(variable)} is not set; set it in the environment"
            hint = f", or give -D {variable}=VALUE" if re.fullmatch(r"\w{1,40}", variable) else ""
            raise FioError(name, number, f"{_cut(line)}: {what}{hint}")
        used.add(variable)
        return known[variable]

    found = _VARIABLE.sub(put, value)
    if not _visible(found):
        raise FioError(name, number, f"{_cut(line)}: a variable's value is no line of text")
    return found


def _facts(what: str) -> int:
    """Numbers of this host that fio has names for."""
    page = os.sysconf("SC_PAGE_SIZE")
    match what:
        case "pagesize":
            return page
        case "ncpus":
            return os.cpu_count() or 1
        case _:
            return os.sysconf("SC_PHYS_PAGES") * page >> 20
