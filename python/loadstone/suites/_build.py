"""Plans of phases: what each process does, one timed part after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from loadstone._values import is_null
from loadstone.errors import Error
from loadstone.fio import Plans
from loadstone.plan import targets
from loadstone.plan.options import NOTHING, Cache, Place, RunOptions
from loadstone.plan.surroundings import steps_of
from loadstone.suites import _needs
from loadstone.suites._needs import Work

Op = dict[str, Any]
"""An op as a plan has it."""


@dataclass(frozen=True)
class Settings:
    """How a suite is run, whichever it is."""

    on: Place
    """Directory, or ``null:``."""
    options: RunOptions = NOTHING
    """With ``cache`` every phase is a run of its own, before which it is done; left out, phases follow each
    other at once, as in the original, or caches are dropped where the suite says so."""

    @property
    def null(self) -> bool:
        """Nothing is performed."""
        return is_null(self.on)

    def target(self) -> dict[str, Any]:
        """The directory as a plan has it."""
        if self.null:
            return {"id": "t0", "kind": "null", "size": 1 << 40}
        return targets.tree(self.on, self.options.allow_destroy)


@dataclass(frozen=True)
class Files:
    """A set of files that phases work on."""

    ident: str
    count: int
    size: float = 0
    """Bytes of each as it is made before the first phase, and as later phases find it."""
    width: int | None = None
    """Files of a directory; None: all are in one."""
    digits: tuple[int, int] = (8, 8)
    """Of files' names, fewest and most."""
    archives: int = 0
    """What is unpacked of so many archives: a directory of each, and files of any names in them, about as
    many and as large."""
    there: bool | None = None
    """Whether they are there before the first phase; None: as the run says of all its files."""

    def room(self, block: int) -> tuple[float, int]:
        """Bytes that they take in blocks of so many, and inodes; those of directories and the mark, too."""
        directories = -(-self.count // (self.width or self.count)) + 1
        blocks = self.count * -(-self.size // block) + directories + 1
        return blocks * block, self.count + directories + 1

    def lower(self, present: bool, reuse: bool) -> dict[str, Any]:
        """As a plan has it; ``present``: the files are there at the start."""
        if self.archives:
            # The extract ops make the directories; their numbers are the set's.
            own = {"leaf_directories": self.archives, "width": self.archives, "any_names": True}
            return {"id": self.ident, "target": "t0", "path": self.ident, **own}
        made: dict[str, Any] = {
            "id": self.ident,
            "target": "t0",
            "path": self.ident,
            "entries": self.count,
            "size": self.size,
            "layout": "flat",
            "width": self.width or self.count,
            "shape": 0,
            "present": float(present if self.there is None else self.there),
        }
        if self.digits != (8, 8):
            made["digits"] = list(self.digits)
        if reuse:
            made["reuse"] = True
        return made


@dataclass(frozen=True)
class Phase:
    """A part of a run that is timed, for each process."""

    name: str
    """Name of the test; unique within its run."""
    timed: Sequence[Sequence[Op]]
    """Ops of each process that count."""
    before: Sequence[Sequence[Op]] = ()
    """Ops of each process before, such as opening its file."""
    after: Sequence[Sequence[Op]] = ()
    """Ops of each process after, such as closing it."""
    key: Mapping[str, Any] = field(default_factory=dict)
    """What its measurement is known by, besides the test."""
    count: Sequence[str] | Literal["requests"] | None = None
    """What is counted where it is not bytes: files, seeks. Names of the ops that each consists of, once each;
    ``requests``: all requests."""
    each: int | None = None
    """Bytes of each that is counted."""
    moved: Sequence[str] = ()
    """Names of the ops whose bytes are told, where others move some that do not count."""
    makes: bool = False
    """Files are not there before it, and are after it."""


@dataclass(frozen=True)
class Measure:
    """Where a measurement comes from."""

    run: int
    """Position of the run in the plans."""
    span: str
    """Name of the timed group."""
    key: Mapping[str, Any]
    count: Sequence[str] | Literal["requests"] | None = None
    """What is counted, where it is not bytes: as for :class:`Phase`."""
    each: int | None = None
    """Bytes of each that is counted."""
    moved: Sequence[str] = ()
    """Steps whose bytes are told, where it is not all."""


@dataclass(frozen=True)
class SuitePlans(Plans):
    """What a suite does, and where its measurements are."""

    suite: str = ""
    measures: list[Measure] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    """What there is to do in all, files that are made before included."""
    first: Callable[[], None] | None = None
    """What is done before the first run: archives are made."""
    room: dict[str, int] = field(default_factory=dict)
    """Bytes that all runs together write to files, by the directory they lie in."""


class Builder:
    """Collects the runs of a suite."""

    def __init__(self, suite: str, settings: Settings) -> None:
        """Nothing is looked at but the directory."""
        self.suite, self.settings = suite, settings
        self.target = settings.target()
        self.plans: list[dict[str, Any]] = []
        self.names: list[list[str]] = []
        self.notes: list[str] = []
        self.measures: list[Measure] = []
        self.work = Work()
        """What there is to do in all runs together."""
        self.beside: list[Files] = []
        """What is made besides the files of runs, and stays."""
        self._files: list[Files] = []
        self.first: Callable[[], None] | None = None
        self.room: dict[str, int] = {}
        """What is done before the first run."""

    def add(
        self,
        name: str,
        files: Sequence[Files],
        phases: Sequence[Phase],
        variables: Sequence[Mapping[str, Any]] = (),
        there: bool = False,
        kept: bool = False,
        cache: Cache | None = None,
    ) -> None:
        """Phases of the same processes on the same files.

        They are one run, unless the caches are to be looked after before each. ``there``: the files are
        there before the first phase. ``kept``: as an earlier run has left them, as far as they fit.
        ``cache``: what becomes of the caches where the user did not say.
        """
        chosen = self.settings.options.cache or cache
        if chosen is None:
            self._run(name, files, phases, variables, there, kept, None)
            return
        for i, phase in enumerate(phases):
            found = there or any(earlier.makes for earlier in phases[:i])
            title = name if len(phases) == 1 else f"{name}: {phase.name}"
            self._run(title, files, [phase], variables, found, kept or i > 0, chosen)

    def whole(self, size: int, unit: int, what: str) -> int:
        """How many ``unit`` there are in a file of ``size`` bytes; notes where that makes it smaller."""
        count = size // unit
        if count and size % unit:
            note = f"a file of {size:,} bytes has {count * unit:,}: whole {what}s of {unit:,}"
            if note not in self.notes:
                self.notes.append(note)
        return count

    def _run(
        self,
        name: str,
        files: Sequence[Files],
        phases: Sequence[Phase],
        variables: Sequence[Mapping[str, Any]],
        there: bool,
        kept: bool,
        cache: Cache | None,
    ) -> None:
        options = self.settings.options
        workers = []
        for number in range(len(phases[0].timed)):
            ops: list[Op] = []
            for phase in phases:
                ops += phase.before[number] if phase.before else ()
                if len(phase.timed) > 1:
                    ops.append({"name": "all begin", "act": "barrier"})
                timed = list(phase.timed[number])
                ops.append({"name": phase.name, "act": "group", "timed": True, "ops": timed})
                ops += phase.after[number] if phase.after else ()
            # Everything is done once.
            ops.append({"name": "end", "act": "finish_on_count", "value": 0})
            worker: dict[str, Any] = {
                "source": {"kind": "program", "ops": ops},
                "backend": "null" if self.settings.null else "posix",
                "depth": 1,
            }
            if options.cpus:
                worker["cpus"] = list(options.cpus)
            workers.append(worker)
        for phase in phases:
            key = {"test": phase.name, "processes": len(phase.timed), **phase.key}
            told = phase.count, phase.each, phase.moved
            self.measures.append(Measure(len(self.plans), phase.name, key, *told))
        plan: dict[str, Any] = {
            "version": 1,
            "seed": options.seed or 0,
            "interval_ns": round((options.interval or 1.0) * 1e9),
            "targets": [self.target],
            "sets": [one.lower(there, kept) for one in files],
            "variables": [dict(one) for one in variables],
            "workers": workers,
            "steps": [
                {"step": "prepare"},
                *steps_of(cache, options.memory_limit, "none"),
                {"step": "run", "until": "all_done"},
            ],
        }
        if options.memory_limit is not None:
            plan["memory_limit"] = options.memory_limit
        self.plans.append(plan)
        self.names.append([name])
        self._files += files
        self.work += _needs.work(plan)

    def done(self) -> SuitePlans:
        """What was collected."""
        if not self.plans:
            raise Error(f"{self.suite}: nothing is left to run; ask for other tests or sizes")
        self._check_room()
        told = self.measures, self.work, self.first, self.room
        return SuitePlans(self.plans, self.names, self.notes, self.suite, *told)

    def _check_room(self) -> None:
        """Refuses what does not fit, before the first of many runs: the last may be the largest."""
        root = self.target.get("path")
        if root is None:
            return
        there = root if os.path.isdir(root) else os.path.dirname(root)
        try:
            status = os.statvfs(there)
        except OSError as error:
            raise Error(f"{there}: {error.strerror}") from None

        # Files of one run stay while others are made, and make place only for those of their own set.
        rooms: dict[str, tuple[float, int]] = {}
        for one in (*self._files, *self.beside):
            size, inodes = one.room(status.f_frsize)
            most = rooms.get(one.ident, (0, 0))
            rooms[one.ident] = max(size, most[0]), max(inodes, most[1])
        used = [
            targets.used(os.path.join(root, path))
            for path in {one["path"] for plan in self.plans for one in plan["sets"]}
        ]
        held = sum(size for size, _ in used)
        self.room = {root: max(round(sum(size for size, _ in rooms.values())) - held, 0)}
        free = status.f_bavail * status.f_frsize + held
        self._refuse(root, sum(size for size, _ in rooms.values()), free, "bytes", "smaller or fewer files")
        # A file system without a table of inodes says that it has none.
        if status.f_files:
            free = status.f_favail + sum(inodes for _, inodes in used)
            self._refuse(root, sum(inodes for _, inodes in rooms.values()), free, "inodes", "fewer files")

    def _refuse(self, root: str, needed: float, free: int, what: str, less: str) -> None:
        if needed > free:
            raise Error(
                f"{root}: {self.suite} needs {needed:,.0f} {what} there, and {free:,} are free; "
                f"ask for {less}, or name another directory with `on`"
            )


def fixed(name: str, act: str, **parts: Any) -> Op:
    """An op."""
    return {"name": name, "act": act, **{key: value for key, value in parts.items() if value is not None}}


def drawn(ident: str) -> dict[str, str]:
    """A value that is drawn from a variable."""
    return {"variable": ident}
