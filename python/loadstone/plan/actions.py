"""What a job comes to: things to do, in order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a run that is reported for itself, in nanoseconds from the run's begin."""

    name: str
    from_ns: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A result of the run before, which takes its place in a text when that is printed."""

    name: str
    """One of ``FIGURES``."""
    written: str
    """How the script writes it; it stays where nothing has run."""


FIGURES = (
    "iocount",
    "iorate",
    "ioreadrate",
    "iowriterate",
    "iobandwidth",
    "iolatency",
    "iocpu",
    "iocpusys",
    "oheadcpu",
    "syscpu",
)
"""What ``${stats.NAME}`` tells of the run before."""


@dataclass(frozen=True, slots=True)
class Print:
    """Prints a text; one with figures is made of its parts."""

    text: str | tuple[str | Figure, ...]


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs a shell command; a script may do so only where the user allows it."""

    command: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Runs a shell command beside the next run, until that has ended, and keeps what it prints in a file."""

    command: str
    path: str
    base: str | None = field(default=None, compare=False)
    """The directory that no link on the way to it may lead out of."""


@dataclass(frozen=True, slots=True)
class Program:
    """Runs a program, and no shell: beside the next run, or by itself.

    A job file may do so only where the user allows it.
    """

    words: tuple[str, ...]
    """The program and its arguments."""
    name: str
    seconds: float | None
    """Time after which it is ended (SIGTERM); None: it ends by itself."""
    grace: float
    """Seconds from there on until it is killed."""
    prints: str | None
    """What it prints goes to files of this name with ``.stdout`` and ``.stderr`` behind; None: to standard
    error."""
    base: str = "."
    """The directory of these files; no link on the way to them may lead out of it."""
    alone: bool = False
    """By itself: the next run begins when it has ended."""
    place: str = field(default="", compare=False)
    """File and line that name it."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Paths of what it prints."""
        if self.prints is None:
            return ()
        return tuple(os.path.join(self.base, f"{self.prints}.{end}") for end in ("stdout", "stderr"))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Runs a plan. Without windows all of the run is reported."""

    plan: dict[str, Any]
    windows: tuple[Window, ...] = ()
    name: str = ""
    """What it is called where there are several: names of jobs, the pass of a suite."""


@dataclass(frozen=True, slots=True)
class Dump:
    """Writes the results of the run before it to a file."""

    path: str
    base: str | None = field(default=None, compare=False)
    """The directory that no link on the way to it may lead out of."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Waits, in seconds."""

    seconds: float


Action = Print | Shell | Beside | Program | RunPlan | Dump | Wait
