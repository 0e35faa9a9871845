"""Jobs become plans: those that run together are workers of one, stonewall begins the next."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeVar

from loadstone._files import absolute
from loadstone._values import is_null
from loadstone.content import Content
from loadstone.errors import Error
from loadstone.fio._beside import look
from loadstone.fio._calls import plan_of_calls
from loadstone.fio._extent import Part, amount_of, base_of, part_of, pieces_of
from loadstone.fio._job import read_jobs
from loadstone.fio._keys import BY_NAME, OF_SPACE
from loadstone.fio._load import Load
from loadstone.fio._paths import command, implied, make, missing, refuse_new
from loadstone.fio._read import Job
from loadstone.plan import targets as _target
from loadstone.plan.actions import Program
from loadstone.plan.options import NOTHING, RunOptions, backend_of
from loadstone.plan.parts import with_content
from loadstone.plan.steering import steady_of
from loadstone.plan.surroundings import steps_of

T = TypeVar("T")

# Bytes of a file on null:, where a job does not say.
_NOWHERE = 1 << 40
# What a plan can have.
_WORKERS = 65_535
_FILES = 65_535
_PLACES = 1 << 18
_MOST_ONCE = 1 << 33
_MOST_NAMED = 8
# Bytes of a block of content: at most, and at least.
_UNIT, _PAGE = 1 << 20, 4096


@dataclass(frozen=True)
class Settings:
    """How a job file is performed."""

    on: str | None
    """Directory, file, device, or ``null:``; None: files that jobs name by absolute paths and only read."""
    options: RunOptions = NOTHING
    """``seed``, ``duration``, ``cpus``, ``cache`` and what is asked of written data stand in place of what
    the jobs say."""


@dataclass(frozen=True)
class Plans:
    """What a job file becomes."""

    plans: list[dict[str, Any]]
    """One after the other."""
    names: list[list[str]]
    """Names of the jobs of each plan."""
    notes: list[str]
    """Where the meaning differs from fio's."""
    directories: list[str] = field(default_factory=list, kw_only=True)
    """Those that are made before, outermost first."""
    programs: list[list[Program]] = field(default_factory=list, kw_only=True)
    """Those that begin with each plan or before it, and last those that come after all."""

    def begin(self) -> None:
        """Makes the directories, which the first plan needs; raises ``Error`` where one cannot be made, or a
        program cannot be run."""
        look([one for several in self.programs for one in several])
        make(self.directories)


@dataclass
class _File:
    """A file or device as one of the plans has it."""

    found: _target.Found
    ident: str
    direct: bool
    sync: str
    owner: Load
    size: int = 0
    advice: str | None = None
    """What the kernel is told; None where jobs differ."""
    reads: bool = False
    writes: bool = False
    overwrite: bool = False
    moves: bool = False
    """Bytes are read or written."""
    cut: bool = False
    """It may be shorter in the end."""
    sparse: bool = True
    atomic: bool | None = None
    """Writes are stored whole or not at all; None: nothing writes it."""
    written: int = 0
    """Bytes from its beginning that requests which ascend write all of."""

    @property
    def whole(self) -> bool:
        """Whether that is all of it."""
        return self.written == self.size


@dataclass
class _Made:
    """A file that an earlier plan makes."""

    size: int
    whole: bool


def lower(jobs: Sequence[Job], settings: Settings) -> Plans:
    """The plans of a file's jobs; raises ``FioError``, or ``Error`` where a target cannot be used."""
    interval = settings.options.interval or 1.0
    return _Lowering(settings).plans(read_jobs(jobs, interval))


@dataclass
class _Lowering:
    settings: Settings
    made: dict[str, _Made] = field(default_factory=dict)
    seen: dict[str, _target.Found] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    there: dict[str, int] = field(default_factory=dict)
    """Bytes of each file when a job is set up: fio sets up all, in turn, before it runs any."""
    directories: dict[str, Load] = field(default_factory=dict)
    taken: dict[str, Load] = field(default_factory=dict)
    """Files that were there before, are not given up, and would be overwritten, and by whom first."""
    covering: set[str] = field(default_factory=set)
    """Directories that were named to give up files in them."""
    once: int = 0
    """Blocks that come once, of all workers of a plan."""
    on: str = ""
    """What ``on`` of the settings names, or what follows from the jobs."""
    root: str | None = None
    """Directory all files lie in; None where there is one target for all."""
    only: str | None = None
    """The one target; None on ``null:`` or in a directory."""

    def plans(self, loads: Sequence[Load]) -> Plans:
        on = self.settings.on
        if on is None:
            on = implied(loads, self.settings.options)
        if not is_null(on):
            path = absolute(on)
            self.root, self.only = (path, None) if os.path.isdir(path) else (None, path)
        else:
            _target.refuse_on_null(self.settings.options)
        self.on = on
        rounds: list[list[Load]] = []
        for load in loads:
            if load.stonewall or not rounds:
                rounds.append([])
            rounds[-1].append(load)
        for at, together in enumerate(rounds):
            _refuse_order(together, at + 1 < len(rounds))
        programs: list[list[Program]] = [[]]
        plans: list[dict[str, Any]] = []
        jobs: list[list[str]] = []
        for together in rounds:
            performed = [load for load in together if load.program is None]
            programs[-1] += [self._program(load, not performed) for load in together if load.program]
            if performed:
                plans.append(self._plan(performed))
                jobs.append([load.name for load in performed])
                programs.append([])
        if not plans:
            loads[0].job.refuse("runs a program, and no job issues requests; call the program itself")
        self._refuse_taken()
        if self.settings.on is None:
            new = [path for path, found in self.seen.items() if found.new and not found.allowed]
            refuse_new(loads, self.settings.options, new)
        named = [one for one in self.settings.options.allow_destroy if absolute(one) not in self.covering]
        _target.check_allowed(self.seen.values(), named)
        for load in loads:
            for note in load.notes:
                names = self.notes.setdefault(note, [])
                if load.name not in names:
                    names.append(load.name)
        notes = [f"{', '.join(names)}: {note}" for note, names in self.notes.items()]
        for path in self.directories.keys() & self.there.keys():
            self.directories[path].job.refuse(f"{path} is a file and a directory; name one of them otherwise")
        return Plans(plans, jobs, notes, directories=list(self.directories), programs=programs)

    def _program(self, load: Load, alone: bool) -> Program:
        """The program of a job, which the user must have allowed."""
        found, entry = load.program, load.job.entries["program"]
        assert found is not None
        if not self.settings.options.allow_system:
            entry.refuse("runs a program; look at what it does, and allow it with `allow_system`")
        if load.runtime is not None and self.settings.options.duration:
            found = replace(found, seconds=self.settings.options.duration)
        return replace(found, base=self.root or os.getcwd(), alone=alone)

    def _plan(self, loads: Sequence[Load]) -> dict[str, Any]:
        """One plan of jobs that run together."""
        options = self.settings.options
        runtime = options.duration or _runtime(loads)
        issuing = [load for load in loads if load.cpu is None]
        ramp = _alike(issuing, "ramp_time", lambda load: load.ramp) or 0.0
        seed = options.seed
        if seed is None:
            seed = _alike(issuing, "randseed", lambda load: load.seed)
        if any(load.backend in BY_NAME for load in loads):
            return plan_of_calls(loads, self.on, options, seed or 0, runtime)
        moving = [load for load in issuing if load.backend != "null"]
        drop = _alike(moving, "invalidate", lambda load: load.drop)
        content = options.asked_content or _content(moving)
        files: dict[str, _File] = {}
        workers: list[dict[str, Any]] = []
        places = self.once = 0
        for load in loads:
            if load.cpu is not None:
                _refuse_endless(load, issuing, bool(options.duration))
                workers += [self._cpu(load, number, runtime) for number in range(load.workers)]
                continue
            places += load.workers * load.many
            if len(workers) + load.workers > _WORKERS:
                load.job.refuse(f"makes more than {_WORKERS:,} workers; use a smaller numjobs")
            if places > _PLACES:
                load.job.refuse(
                    f"uses more than {_PLACES:,} files over all workers; use fewer or smaller numjobs"
                )
            # fio's order, in which they find files that others make: the first, then from the last on.
            order = [0, *range(load.workers - 1, 0, -1)]
            made = {number: self._worker(load, number, runtime, files) for number in order}
            workers += [made[number] for number in range(load.workers)]
        targets = [self._target(path, file) for path, file in files.items()]
        for path, file in files.items():
            if file.found.kind == "file" and (file.found.new or path in self.made):
                # What is not written to its end has holes, which are filled before anything reads it.
                whole = file.whole or targets[list(files).index(path)]["prepare"] == "fill"
                before = self.made.get(path, _Made(0, False))
                size = 0 if file.cut else max(file.size, before.size)
                self.made[path] = _Made(size, (whole or before.whole) and not file.cut)
        steps: list[dict[str, Any]] = []
        if any(target["kind"] != "null" for target in targets):
            steps.append({"step": "prepare"})
            steps += steps_of(options.cache, options.memory_limit, "none" if drop is False else "drop")
        step: dict[str, Any] = {"step": "run", "duration_ns": round((runtime or 0.0) * 1e9)}
        if ramp:
            step["ramp_ns"] = round(ramp * 1e9)
        if options.until_steady is not None:
            step["steady"] = steady_of(options.until_steady, options.interval or 1.0)
        elif (steady := _alike(issuing, "steadystate", lambda load: load.steady)) is not None:
            step["steady"] = steady
        steps.append(step)
        limit = {} if options.memory_limit is None else {"memory_limit": options.memory_limit}
        plan = {
            **limit,
            "version": 1,
            "seed": seed or 0,
            "interval_ns": round((options.interval or 1.0) * 1e9),
            "targets": targets,
            "artefacts": [],
            "workers": workers,
            "steps": steps,
        }
        # What goes nowhere holds nothing to be verified.
        if any(load.verified for load in loads) and any(target["kind"] != "null" for target in targets):
            plan["verify"] = {}
        return {**plan, **with_content(plan, content)}

    def _cpu(self, load: Load, number: int, runtime: float | None) -> dict[str, Any]:
        """A worker that takes CPU time."""
        around = {"nice": load.nice, "schedule": self._schedule(load, runtime)}
        return {
            **{key: value for key, value in around.items() if value is not None},
            "group": load.name,
            "source": load.cpu,
            "backend": "null",
            "depth": 1,
            "cpus": self._cpus(load, number),
        }

    def _cpus(self, load: Load, number: int) -> list[int]:
        """CPUs of one of a job's workers."""
        cpus = list(self.settings.options.cpus) or load.cpus
        return [cpus[number % len(cpus)]] if cpus and load.split else cpus

    def _worker(
        self, load: Load, number: int, runtime: float | None, files: dict[str, _File]
    ) -> dict[str, Any]:
        """One of a job's workers."""
        names = self._names(load, number)
        found = [self._file(load, path, files) for path in names]
        parts = [
            self._part(load, number, path, file, len(names)) for path, file in zip(names, found, strict=True)
        ]
        endless = load.endless or bool(self.settings.options.duration)
        amount = amount_of(load, parts, endless)
        objects: list[dict[str, Any]] = []
        for file, part in zip(found, parts, strict=True):
            file.size = max(file.size, part.base + part.size, part.base + part.bytes)
            # What changes the space of a file reads nothing of it, and writes.
            file.reads |= load.reads > 0 and load.backend not in OF_SPACE
            file.writes |= load.reads < 1 or load.backend in OF_SPACE
            file.overwrite |= load.overwrite
            file.moves |= load.backend not in OF_SPACE
            file.cut |= load.backend == "truncate"
            file.sparse &= load.sparse
            if part.blocks:
                pieces = pieces_of(load, part, _PLACES) or load.job.refuse(
                    "has too many zones; use larger ones"
                )
                objects += [
                    {"object": len(objects) + i, "target": file.ident, "base": base, "size": size}
                    for i, (base, size) in enumerate(pieces)
                ]
        if not objects:
            most = max(part.size for part in parts)
            load.job.refuse(f"has {most} bytes of a file for requests of {load.least}")
        blocks = sum(part.blocks for part in parts)
        for file, part in zip(found, parts, strict=True):
            # Bytes at the end that fill no block stay unwritten.
            whole = (load.sequential or load.once) and not load.sizes and not runtime and load.follow == 0
            whole &= part.blocks * load.unit >= part.size and load.backend not in OF_SPACE
            whole &= load.strided is None and load.sequence is None and not load.discards
            if whole and load.reads == 0 and part.base == 0 and amount.requests >= blocks:
                file.written = max(file.written, part.size)
        if load.once:
            self.once += blocks
            if self.once > _MOST_ONCE:
                load.job.refuse(
                    f"keeps account of more than {_MOST_ONCE:,} blocks; write norandommap=1, or larger blocks"
                )
        source: dict[str, Any] = {
            "kind": "uniform",
            "reads": load.reads,
            "size": load.unit,
            "sequential": load.sequential,
            "rate": load.rate,
        }
        if load.sizes:
            source |= {"sizes": load.sizes, "fit": "redraw"}
        if load.write_sizes:
            source["write_sizes"] = load.write_sizes
        if load.once:
            source["once"] = True
        if load.apart:
            source["apart"] = True
        if load.skip:
            source["skip"] = load.skip
        if load.discards:
            source["discards"] = True
        if amount.bytes:
            source["bytes"] = amount.bytes
        if load.byte_rate:
            source["byte_rate"] = load.byte_rate
        if load.follow:
            source["follow"] = load.follow
        if load.skew:
            source["skew"] = _placed(load, parts[0].size)
        if load.poisson and load.rate:
            source["arrival"] = {"kind": "poisson"}
        null = files[names[0]].found.kind == "null"
        backend = "sync"
        if null or load.backend == "io_uring":
            backend = backend_of(None, null)
        elif load.backend in ("mmap", *OF_SPACE):
            backend = load.backend
        around = {"nice": load.nice, "ioprio": load.ioprio, "schedule": self._schedule(load, runtime)}
        if load.latency is not None:
            if null:
                load.job.entries["latency_target"].refuse("has no meaning on null:, where nothing takes time")
            around["latency_target"] = load.latency
        around["flow"] = load.flow
        if load.priorities and null:
            load.notes.append("requests that go nowhere have no priority: cmdprio has no effect on null:")
        priorities = [] if null else load.priorities
        if load.think:
            around["pause"] = {"requests": load.think_blocks, "ns": round(load.think * 1e9)}
        return {
            **{key: value for key, value in around.items() if value is not None},
            **({"priorities": priorities} if priorities else {}),
            "group": load.name,
            "source": source,
            "pace": {"kind": "open", "speed": 1.0} if load.rate or load.byte_rate else {"kind": "closed"},
            "backend": backend,
            "depth": load.depth,
            "cpus": self._cpus(load, number),
            "map": {"objects": objects},
            "requests": amount.requests,
            "reads_only": load.reads == 1,
        }

    def _schedule(self, load: Load, runtime: float | None) -> dict[str, Any] | None:
        """When a job begins and ends in its run; None: together with it."""
        found: dict[str, Any] = {}
        if load.waits_for is not None:
            found["after"] = [load.waits_for]
        if load.delay:
            found["delay_ns"] = round(load.delay * 1e9)
        if runtime is None and load.runtime is not None:
            found["duration_ns"] = round((load.ramp + load.runtime) * 1e9)
        if load.ends_others:
            found["ends_run"] = True
        return found or None

    def _names(self, load: Load, number: int) -> list[str]:
        """Keys of the files of a worker: paths, or made up on ``null:``."""
        names = load.files
        if not names:
            facts = {"jobname": load.job.name, "jobnum": str(number)}
            names = [_formed(load.name_format, {**facts, "filenum": str(i)}) for i in range(load.many)]
        if load.backend == "null" or (self.root is None and self.only is None):
            return [f"null:{name}" for name in names]
        if self.only is not None:
            return [self._single(load, number)]
        # With names of its own, each of numjobs has a directory in turn; others share the first.
        places = load.directories or [""]
        place = places[0 if load.files else number % len(places)]
        return [self._below(load, os.path.join(place, name)) for name in names]

    def _single(self, load: Load, number: int) -> str:
        """The one target there is, unless the job means another."""
        assert self.only is not None
        if load.many > 1:
            about = load.job.entries.get("filename") or load.job.entries["nrfiles"]
            about.refuse(f"are {load.many} files, and `on` {self.on} is one; name a directory")
        if load.files:
            named = absolute(os.path.join(*load.directories[:1], load.files[0]))
            if named != self.only:
                load.job.entries["filename"].refuse(
                    f"{named} is not what `on` names, {self.only}; name it, or a directory it lies in"
                )
        elif load.directories:
            load.job.entries["directory"].refuse(
                f"`on` {self.on} is no directory that this could lie in; name the directory"
            )
        return self.only

    def _below(self, load: Load, name: str) -> str:
        """A file's path, which lies below the directory of the run."""
        root = self.root
        assert root is not None
        entries = load.job.entries
        about = entries.get("filename") or entries.get("directory")
        path = absolute(os.path.join(root, name))
        if os.path.relpath(path, root).split("/")[0] == ".." and self.settings.options.rebase:
            path = os.path.join(root, os.path.normpath(f"/{name}").lstrip("/"))
        # Links may lead out of the directory as well.
        parent = os.path.realpath(os.path.dirname(path))
        outside = {os.path.relpath(path, root), os.path.relpath(parent, os.path.realpath(root))}
        if any(one.split("/")[0] == ".." for one in outside) or path == root:
            what = f"{path} does not lie below {root}; use a name below it, or `rebase` to put it there"
            if about is None:
                load.job.refuse(what)
            about.refuse(what)
        return path

    def _file(self, load: Load, path: str, files: dict[str, _File]) -> _File:
        """The file of this plan at a path; jobs that share it must open it alike."""
        null = path.startswith("null:") and not os.path.isabs(path)
        if path not in files:
            if path not in self.seen and not null:
                try:
                    made = missing(path, self.root) if self.root is not None else []
                    self.directories |= {one: load for one in made if one not in self.directories}
                    self.seen[path] = self._new(path) if made else self._found(path)
                except ValueError as error:
                    raise Error(f"{path!r}: is no path: {error}") from None
            if len(files) == _FILES:
                load.job.refuse(f"makes more than {_FILES:,} files; use a smaller numjobs or nrfiles")
            found = _target.Found("", "null", None, False) if null else self.seen[path]
            files[path] = _File(found, f"t{len(files)}", load.direct, load.sync, load, advice=load.advice)
        file = files[path]
        if load.reads < 1 and not load.discards and not null:
            if file.atomic not in (None, load.atomic):
                what = f"a job uses {path} with another atomic; put stonewall between them"
                (load.job.entries.get("atomic") or load.job).refuse(what)
            file.atomic = load.atomic
        if file.advice != load.advice:
            file.advice = None
        if load.discards:
            return file
        if file.owner.discards:
            # What is discarded passes by the page cache either way.
            file.direct, file.sync, file.owner = load.direct, load.sync, load
        for key, mine, others in (("direct", load.direct, file.direct), ("sync", load.sync, file.sync)):
            if mine != others and not null:
                about = load.job.entries.get(key) or load.job.entries.get("buffered")
                what = f"job {file.owner.name} uses {path} with another {key}; put stonewall between them"
                if about is None:
                    load.job.refuse(what)
                about.refuse(what)
        return file

    def _found(self, path: str) -> _target.Found:
        """What there is; a file is given up by its own name, or by that of a directory that it lies in."""
        found = _target.find(path, self.settings.options.allow_destroy)
        # Whoever names a directory means files that lie in it, no device, and nothing that a link leads to.
        plain = found.kind == "file" and not found.new and not os.path.islink(path)
        if any(plain and _target.lies_in(path, one) for one in self._covered(path)):
            found.allowed = True
        return found

    def _covered(self, path: str) -> list[str]:
        """Directories that are given up, the job's own or one in it, and have the file."""
        place = os.path.realpath(path)
        within = [absolute(one) for one in self.settings.options.allow_destroy if os.path.isdir(one)]
        within = [one for one in within if one == self.root or one.startswith(f"{self.root}/")]
        covers = [one for one in within if place.startswith(f"{os.path.realpath(one)}/")]
        self.covering.update(covers)
        return covers

    def _within(self, found: _target.Found) -> str | None:
        """The directory that a file must still lie in when its plan is run: given up, or there now."""
        named = [absolute(one) for one in self.settings.options.allow_destroy]
        if found.kind != "file" or absolute(found.path) in named:
            return None
        if found.allowed:
            covered = self._covered(found.path)
            return os.path.realpath(max(covered, key=len)) if covered else None
        place = os.path.dirname(absolute(found.path))
        while not os.path.isdir(place):
            place = os.path.dirname(place)
        return os.path.realpath(place)

    def _refuse_taken(self) -> None:
        """Raises where files were there before, all of them in one error, at the job of the first."""
        if not self.taken:
            return
        path, load = next(iter(self.taken.items()))
        several = len(self.taken) > 1
        what = f"{path} was there before, and the job would overwrite it; name a new file, or pass "
        what += f"`allow_destroy` {path} to give it up"
        if several:
            others = len(self.taken) - _MOST_NAMED
            told = ", ".join(list(self.taken)[:_MOST_NAMED]) + (
                f", and {others} others" if others > 0 else ""
            )
            what = (
                f"{len(self.taken)} files were there before, and the jobs would overwrite them: {told}; name "
            )
            if self.root in {absolute(one) for one in self.settings.options.allow_destroy}:
                what += "each with `allow_destroy`, as these are links or hard links, or lie on another mount"
            else:
                what += f"new ones, or pass `allow_destroy` {self.root} to give up what the jobs write there"
        if self.settings.on is None:
            what += f": {command(load, self.settings.options, list(self.taken), list(self.taken))}"
        about = load.job.entries.get("filename")
        if about is None or several:
            load.job.refuse(what)
        about.refuse(what)

    def _new(self, path: str) -> _target.Found:
        """A file in a directory that is not there yet."""
        self._covered(path)
        allowed = any(absolute(one) == path for one in self.settings.options.allow_destroy)
        return _target.Found(path, "file", None, allowed)

    def _part(self, load: Load, number: int, path: str, file: _File, files: int) -> Part:
        """The part of a file that a worker uses."""
        entries, found = load.job.entries, file.found
        told = load.size[0] if load.size is not None and not load.size[1] else 0
        nowhere, bounded = found.kind == "null", bool(load.file_size or told)
        if nowhere:
            there = load.file_size or told // files
            if not bounded:
                if load.size is not None:
                    entries["size"].refuse("is a share of a file that is not there yet; write the bytes")
                there = _NOWHERE
                if not (load.endless or self.settings.options.duration or load.moved or load.requests):
                    load.job.refuse("has no end on null:; write size, or give `duration`")
        else:
            there = self.there.setdefault(path, found.size or 0)
            if load.fills and found.kind == "file":
                return self._filling(load, path, found, base_of(load, number, there))
            if not there and not bounded:
                if load.size is not None:
                    entries["size"].refuse("is a share of a file that is not there yet; write the bytes")
                load.job.refuse(f"{found.path} is not there yet; write its size")
        note = "a share of a file that is not there yet is 0 bytes, in fio, too"
        if (load.offset[1] or load.increment[1]) and not there and note not in load.notes:
            load.notes.append(note)
        base = base_of(load, number, there)
        device = found.kind == "device"
        part = part_of(load, base, there, files, device, load.job.refuse)
        end = base + max(part.size, part.bytes)
        if end >= 1 << 63:
            load.job.refuse("reaches beyond the end of any file")
        if part.size <= 0:
            load.job.refuse(f"begins at byte {base} of {found.path or 'its file'}, where that has ended")
        own = path in self.made or found.new or found.allowed
        if not nowhere and end > there and (device or not own):
            load.job.refuse(f"reaches byte {end} of {found.path}, which has {there}")
        if not nowhere:
            self.there[path] = max(there, end)
        return part

    def _filling(self, load: Load, path: str, found: _target.Found, base: int) -> Part:
        """The part of a file that goes on until the file system has no more space."""
        place = os.path.dirname(path)
        while not os.path.isdir(place):
            place = os.path.dirname(place)
        space = os.statvfs(place)
        free = space.f_bavail * space.f_frsize + (found.size or 0)
        size = (free - base) // load.unit * load.unit
        if size <= 0:
            load.job.refuse(f"fills {path}, and its file system has no space left")
        load.notes.append(f"fill_device writes the {size} bytes that the file system of {path} has free now")
        self.there[path] = max(self.there.get(path, 0), base + size)
        return Part(base, size, size // load.unit, size)

    def _target(self, path: str, file: _File) -> dict[str, Any]:
        """A file as the plan has it."""
        found, before = file.found, self.made.get(path)
        if found.kind == "null":
            return {"id": file.ident, "kind": "null", "size": file.size}
        if file.writes and before is None and not found.new and not found.allowed:
            self.taken[path] = file.owner
        if before is not None:
            # Made by an earlier plan of the same file, so it is the run's own.
            fill = file.size > before.size or (file.reads and not before.whole) or file.overwrite
            fill &= file.moves
        elif found.new:
            fill = file.reads or file.overwrite
        else:
            grows = found.kind == "file" and file.size > (found.size or 0)
            fill = found.allowed and (grows or file.overwrite)
        advice = {} if file.advice in (None, "normal") else {"advice": file.advice}
        return {
            "id": file.ident,
            "kind": found.kind,
            "path": found.path,
            "size": file.size,
            "prepare": "fill" if fill else "none",
            "direct": file.direct,
            "sync": file.sync,
            "allow_destroy": found.allowed,
            **({"atomic": True} if file.atomic else {}),
            **({"sparse": True} if file.sparse and found.kind == "file" and found.new else {}),
            **({"made_before": True} if before is not None and not found.allowed else {}),
            **({} if (within := self._within(found)) is None else {"within": within}),
            **advice,
        }


def _formed(form: str, facts: dict[str, str]) -> str:
    """``filename_format`` with what its names stand for, which is not read again."""
    return re.sub(r"\$(jobname|jobnum|filenum)", lambda match: facts[match[1]], form)


def _placed(load: Load, size: int) -> dict[str, Any]:
    """The law of a job's offsets on a file of that size; zones told in bytes become shares of it."""
    skew = load.skew or {}
    if skew.get("kind") not in ("zoned", "zoned_abs"):
        return skew
    zones = skew["zones"]
    if skew["kind"] == "zoned_abs":
        if sum(zone["space"] for zone in zones) > size:
            load.job.entries["random_distribution"].refuse(
                f"the zones are more than the {size} bytes there are"
            )
        zones = [{**zone, "space": zone["space"] / size} for zone in zones]
    return {"kind": "zones", "zones": zones}


def _content(loads: Sequence[Load]) -> Content | None:
    """What jobs that run together ask of written data, if anything."""
    dedupe = _alike(loads, "dedupe_percentage", lambda load: load.dedupe)
    compress = _alike(loads, "buffer_compress_percentage", lambda load: load.compress)
    if not _alike(loads, "refill_buffers", lambda load: load.refilled):
        return None
    # The largest block that all requests are made of; of others parts are written.
    rows = [row for load in loads for row in [*load.sizes, *load.write_sizes]]
    sizes = [size for row in rows for size in (row["low"], row["high"])]
    unit = math.gcd(_UNIT, *sizes, *(load.unit for load in loads))
    return {"compress": compress or 1.0, "dedupe": dedupe or 1.0, "unit": max(unit, _PAGE)}


def _alike(loads: Sequence[Load], key: str, value: Callable[[Load], T]) -> T | None:
    """What all jobs that run together must have in common; None where there are none."""
    values = [value(load) for load in loads]
    for load, mine in zip(loads, values, strict=True):
        if mine != values[0]:
            _differ(load, loads[0], key)
    return values[0] if values else None


def _refuse_endless(load: Load, issuing: Sequence[Load], duration: bool) -> None:
    """Raises where nothing ends a job that takes CPU time."""
    entries, ends = load.job.entries, load.cpu is not None and load.cpu.get("with_others")
    if ends and not issuing:
        entries["exit_on_io_done"].refuse("no job that runs with this one issues requests; write runtime")
    if not ends and not load.runtime and not duration:
        load.job.refuse("takes CPU time without end; write runtime=30, or exit_on_io_done=1")


def _runtime(loads: Sequence[Load]) -> float | None:
    """Seconds that all jobs run together; None where each has a time of its own, or one has no end."""
    times = {load.runtime for load in loads}
    later = any(load.delay or load.waits_for is not None for load in loads)
    return times.pop() if len(times) == 1 and not later else None


def _refuse_order(loads: Sequence[Load], others_follow: bool) -> None:
    """Raises where jobs that run together wait for none of them, or are to end jobs that come later."""
    names = [load.name for load in loads]
    for number, load in enumerate(loads):
        entries = load.job.entries
        if load.waits_for is not None and load.waits_for not in names[:number]:
            entries["wait_for"].refuse("is no job that runs with this one and stands above it")
        if load.ends_others and load.ends_later and others_follow:
            entries["exit_what"].refuse("all: jobs that come later cannot be left out; write stonewall")


def _differ(load: Load, first: Load, key: str) -> NoReturn:
    what = f"its {key} is not that of [{first.name}], which runs with it; make both alike, or use stonewall"
    entry = load.job.entries.get(key)
    if entry is None:
        load.job.refuse(what)
    entry.refuse(what)


def is_job_file(name: str) -> bool:
    """Whether a workload's name is that of a job file."""
    return re.search(r"\.(fio|job|ini)$", name) is not None
