"""Jobs become plans: those that run together are workers of one, stonewall begins the next."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from loadstone import Error
from loadstone.content import Content
from loadstone.fio._job import Load, read_job
from loadstone.fio._read import Job
from loadstone.workload import _target
from loadstone.workload._offsets import mean_size
from loadstone.workload._options import Cache, backend_of, steps_of
from loadstone.workload._plan import with_content

T = TypeVar("T")

# Bytes of a file on null:, where a job does not say.
_NOWHERE = 1 << 40
# What a plan can have.
_WORKERS = 65_535
_FILES = 65_535
_PLACES = 1 << 18
# Bytes of a block of content: at most, and at least.
_UNIT, _PAGE = 1 << 20, 4096


@dataclass(frozen=True)
class Settings:
    """How a job file is performed, besides what it says itself."""

    on: str
    """Directory, file, device, or ``null:``."""
    seed: int | None = None
    """In place of ``randseed``."""
    duration: float | None = None
    """Seconds, in place of ``runtime``; jobs are then time_based."""
    allow_destroy: Sequence[str | os.PathLike[str]] = ()
    rebase: bool = False
    """Paths that lie elsewhere are put below ``on``."""
    interval: float = 1.0
    cpus: Sequence[int] = ()
    """In place of ``cpus_allowed``."""
    cache: Cache | None = None
    """In place of ``invalidate``."""
    memory_limit: int | None = None
    """Bytes the runs get, page cache included."""
    content: Content | None = None
    """In place of ``dedupe_percentage``, ``buffer_compress_percentage`` and ``refill_buffers``."""


@dataclass(frozen=True)
class Plans:
    """What a job file becomes."""

    plans: list[dict[str, Any]]
    """One after the other."""
    names: list[list[str]]
    """Names of the jobs of each plan."""
    notes: list[str]
    """Where the meaning differs from fio's."""


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
    return _Lowering(settings).plans([read_job(job) for job in jobs])


@dataclass
class _Lowering:
    settings: Settings
    made: dict[str, _Made] = field(default_factory=dict)
    seen: dict[str, _target.Found] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    root: str | None = None
    """Directory all files lie in; None where there is one target for all."""
    only: str | None = None
    """The one target; None on ``null:`` or in a directory."""

    def plans(self, loads: Sequence[Load]) -> Plans:
        on = self.settings.on
        if on not in ("null:", "null"):
            path = os.path.abspath(on)
            self.root, self.only = (path, None) if os.path.isdir(path) else (None, path)
        rounds: list[list[Load]] = []
        for load in loads:
            if load.stonewall or not rounds:
                rounds.append([])
            rounds[-1].append(load)
        plans = [self._plan(together) for together in rounds]
        _target.check_allowed(list(self.seen.values()), {"allow_destroy": self.settings.allow_destroy})
        for load in loads:
            for note in load.notes:
                names = self.notes.setdefault(note, [])
                if load.name not in names:
                    names.append(load.name)
        notes = [f"{', '.join(names)}: {note}" for note, names in self.notes.items()]
        return Plans(plans, [[load.name for load in together] for together in rounds], notes)

    def _plan(self, loads: Sequence[Load]) -> dict[str, Any]:
        """One plan of jobs that run together."""
        settings = self.settings
        runtime = settings.duration or _alike(loads, "runtime", lambda load: load.runtime)
        seed = (
            settings.seed if settings.seed is not None else _alike(loads, "randseed", lambda load: load.seed)
        )
        drop = _alike(
            [load for load in loads if load.backend != "null"], "invalidate", lambda load: load.drop
        )
        content = settings.content or _content([load for load in loads if load.backend != "null"])
        files: dict[str, _File] = {}
        workers: list[dict[str, Any]] = []
        places = 0
        for load in loads:
            places += load.workers * load.many
            if len(workers) + load.workers > _WORKERS:
                load.job.refuse(f"makes more than {_WORKERS:,} workers; use a smaller numjobs")
            if places > _PLACES:
                load.job.refuse(
                    f"uses more than {_PLACES:,} files over all workers; use fewer or smaller numjobs"
                )
            for number in range(load.workers):
                workers.append(self._worker(load, number, runtime, files))
        targets = [self._target(path, file) for path, file in files.items()]
        for path, file in files.items():
            if file.found.kind == "file" and (file.found.new or path in self.made):
                # What is not written to its end has holes, which are filled before anything reads it.
                whole = file.whole or targets[list(files).index(path)]["prepare"] == "fill"
                before = self.made.get(path, _Made(0, False))
                self.made[path] = _Made(max(file.size, before.size), whole or before.whole)
        steps: list[dict[str, Any]] = []
        if any(target["kind"] != "null" for target in targets):
            steps.append({"step": "prepare"})
            steps += steps_of(settings.cache, settings.memory_limit, "none" if drop is False else "drop")
        steps.append({"step": "run", "duration_ns": round((runtime or 0.0) * 1e9)})
        limit = {} if settings.memory_limit is None else {"memory_limit": settings.memory_limit}
        plan = {
            **limit,
            "version": 1,
            "seed": seed or 0,
            "interval_ns": round(settings.interval * 1e9),
            "targets": targets,
            "artefacts": [],
            "workers": workers,
            "steps": steps,
        }
        # What goes nowhere holds nothing to be verified.
        if any(load.verified for load in loads) and any(target["kind"] != "null" for target in targets):
            plan["verify"] = {}
        return {**plan, **with_content(plan, content)}

    def _worker(
        self, load: Load, number: int, runtime: float | None, files: dict[str, _File]
    ) -> dict[str, Any]:
        """One of a job's workers."""
        objects, moved = list[dict[str, Any]](), 0
        names = self._names(load, number)
        for object_, path in enumerate(names):
            file = self._file(load, path, files)
            base, size = self._extent(load, number, file.found, len(names))
            objects.append({"object": object_, "target": file.ident, "base": base, "size": size})
            file.size = max(file.size, base + size)
            file.reads |= load.reads > 0
            file.writes |= load.reads < 1
            file.overwrite |= load.overwrite
            moved += size
        most = max([load.unit, *(row["high"] for row in load.sizes)])
        if objects[0]["size"] < most:
            load.job.refuse(f"has {objects[0]['size']} bytes of a file for requests of {most}")
        requests = self._requests(load, runtime, moved)
        for extent, path in zip(objects, names, strict=True):
            # Bytes at the end that fill no block stay unwritten.
            ascends = load.sequential and not load.sizes and not runtime and extent["size"] % load.unit == 0
            if ascends and load.reads == 0 and extent["base"] == 0 and requests * load.unit >= moved:
                files[path].written = max(files[path].written, extent["size"])
        source: dict[str, Any] = {
            "kind": "uniform",
            "reads": load.reads,
            "size": load.unit,
            "sequential": load.sequential,
            "rate": load.rate,
        }
        if load.sizes:
            source["sizes"] = load.sizes
        if load.follow:
            source["follow"] = load.follow
        if load.skew:
            source["skew"] = _placed(load, objects[0]["size"])
        if load.poisson and load.rate:
            source["arrival"] = {"kind": "poisson"}
        cpus = list(self.settings.cpus) or load.cpus
        null = files[names[0]].found.kind == "null"
        backend = "sync"
        if null or load.backend == "io_uring":
            backend = backend_of({}, null)
        elif load.backend == "mmap":
            backend = "mmap"
        around = {"nice": load.nice, "ioprio": load.ioprio}
        return {
            **{key: value for key, value in around.items() if value is not None},
            "group": load.name,
            "source": source,
            "pace": {"kind": "open", "speed": 1.0} if load.rate else {"kind": "closed"},
            "backend": backend,
            "depth": load.depth,
            "cpus": [cpus[number % len(cpus)]] if cpus and load.split else cpus,
            "map": {"objects": objects},
            "requests": requests,
            "reads_only": load.reads == 1,
        }

    def _requests(self, load: Load, runtime: float | None, moved: int) -> int:
        """Most requests; 0: until the run's end."""
        if load.endless or self.settings.duration:
            return load.requests
        mean = mean_size(load.unit, load.sizes)
        requests = max(1, math.ceil((load.moved or self._total(load, moved)) / mean))
        if load.sizes and not runtime:
            note = "ends after as many requests as make its bytes at their mean size"
            if note not in load.notes:
                load.notes.append(note)
        return min(requests, load.requests) if load.requests else requests

    def _total(self, load: Load, moved: int) -> int:
        """Bytes that a job moves: with ``filesize``, no more than ``size``."""
        if load.file_size is not None and load.size is not None:
            return min(load.size[0], moved)
        return moved

    def _names(self, load: Load, number: int) -> list[str]:
        """Keys of the files of a worker: paths, or made up on ``null:``."""
        names = load.files
        if not names:
            form = load.name_format.replace("$jobname", load.name.replace("/", "_"))
            form = form.replace("$jobnum", str(number))
            names = [form.replace("$filenum", str(i)) for i in range(load.many)]
        if load.backend == "null" or (self.root is None and self.only is None):
            return [f"null:{name}" for name in names]
        if self.only is not None:
            return [self._single(load, number)]
        return [self._below(load, name) for name in names]

    def _single(self, load: Load, number: int) -> str:
        """The one target there is, unless the job means another."""
        assert self.only is not None
        if load.many > 1:
            about = load.job.entries.get("filename") or load.job.entries["nrfiles"]
            about.refuse(f"are {load.many} files, and --on {self.settings.on} is one; name a directory")
        if load.files:
            named = os.path.abspath(os.path.join(load.directory, load.files[0]))
            if named != self.only:
                load.job.entries["filename"].refuse(
                    f"{named} is not what --on names, {self.only}; name it, or a directory it lies in"
                )
        elif load.directory:
            load.job.entries["directory"].refuse(
                f"--on {self.settings.on} is no directory that this could lie in; name the directory"
            )
        return self.only

    def _below(self, load: Load, name: str) -> str:
        """A file's path, which lies below the directory of the run."""
        root = self.root
        assert root is not None
        entries = load.job.entries
        about = entries.get("filename") or entries.get("directory")
        path = os.path.normpath(os.path.join(root, load.directory, name))
        if os.path.relpath(path, root).split("/")[0] == ".." and self.settings.rebase:
            below = os.path.normpath("/" + os.path.join(load.directory, name)).lstrip("/")
            path = os.path.join(root, below)
        # Links may lead out of the directory as well.
        parent = os.path.realpath(os.path.dirname(path))
        outside = {os.path.relpath(path, root), os.path.relpath(parent, os.path.realpath(root))}
        if any(one.split("/")[0] == ".." for one in outside) or path == root:
            what = f"{path} does not lie below {root}; use a name below it, or --rebase to put it there"
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
                    self.seen[path] = _target.find(path, {"allow_destroy": self.settings.allow_destroy})
                except ValueError as error:
                    raise Error(f"{path!r}: is no path: {error}") from None
            if len(files) == _FILES:
                load.job.refuse(f"makes more than {_FILES:,} files; use a smaller numjobs or nrfiles")
            found = _target.Found("", "null", None, False) if null else self.seen[path]
            files[path] = _File(found, f"t{len(files)}", load.direct, load.sync, load, advice=load.advice)
        file = files[path]
        if file.advice != load.advice:
            file.advice = None
        for key, mine, others in (("direct", load.direct, file.direct), ("sync", load.sync, file.sync)):
            if mine != others and not null:
                about = load.job.entries.get(key) or load.job.entries.get("buffered")
                what = f"job {file.owner.name} uses {path} with another {key}; put stonewall between them"
                if about is None:
                    load.job.refuse(what)
                about.refuse(what)
        return file

    def _extent(self, load: Load, number: int, found: _target.Found, files: int) -> tuple[int, int]:
        """First byte and number of bytes of a file that a worker uses."""
        entries = load.job.entries
        there = self.made[found.path].size if found.path in self.made else found.size

        def bytes_of(portion: tuple[int, bool], key: str) -> int:
            amount, percent = portion
            if not percent:
                return amount
            if there is None:
                entries[key].refuse("is a share of a file that is not there yet; write the bytes")
            return there * amount // 100

        base = bytes_of(load.offset, "offset") + number * bytes_of(load.increment, "offset_increment")
        if load.file_size is not None:
            size = load.file_size - base
        elif load.size is not None:
            size = bytes_of(load.size, "size")
            size = size if load.size[1] else size // files
        elif there is not None:
            size = there - base
        elif found.kind == "null":
            size = _NOWHERE
            if not (load.endless or self.settings.duration or load.moved or load.requests):
                load.job.refuse("has no end on null:; write size, or give --duration")
        else:
            load.job.refuse(f"{found.path} is not there yet; write its size")
        if base + size >= 1 << 63:
            load.job.refuse("reaches beyond the end of any file")
        fixed = found.size is not None and (found.kind == "device" or not found.allowed)
        if found.path not in self.made and fixed and base + size > (found.size or 0):
            load.job.refuse(f"reaches byte {base + size} of {found.path}, which has {found.size}")
        if size <= 0:
            load.job.refuse(f"begins at byte {base} of {found.path or 'its file'}, where that has ended")
        return base, size

    def _target(self, path: str, file: _File) -> dict[str, Any]:
        """A file as the plan has it."""
        found, before = file.found, self.made.get(path)
        if found.kind == "null":
            return {"id": file.ident, "kind": "null", "size": file.size}
        if file.writes and before is None and not found.new and not found.allowed:
            about = file.owner.job.entries.get("filename")
            what = f"{path} was there before, and the job would overwrite it; name a new file, or pass "
            what += f"--allow-destroy {path} to give it up"
            if about is None:
                file.owner.job.refuse(what)
            about.refuse(what)
        if before is not None:
            # Made by an earlier plan of the same file, so it is the run's own.
            fill = file.size > before.size or (file.reads and not before.whole) or file.overwrite
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
            "allow_destroy": found.allowed or before is not None,
            **advice,
        }


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
    sizes = [size for load in loads for row in load.sizes for size in (row["low"], row["high"])]
    unit = math.gcd(_UNIT, *sizes, *(load.unit for load in loads))
    return {"compress": compress or 1.0, "dedupe": dedupe or 1.0, "unit": max(unit, _PAGE)}


def _alike(loads: Sequence[Load], key: str, value: Callable[[Load], T]) -> T | None:
    """What all jobs that run together must have in common; None where there are none."""
    values = [value(load) for load in loads]
    for load, mine in zip(loads, values, strict=True):
        if mine != values[0]:
            _differ(load, loads[0], key)
    return values[0] if values else None


def _differ(load: Load, first: Load, key: str) -> NoReturn:
    what = f"its {key} is not that of [{first.name}], which runs with it; make both alike, or use stonewall"
    entry = load.job.entries.get(key)
    if entry is None:
        load.job.refuse(what)
    entry.refuse(what)


def is_job_file(name: str) -> bool:
    """Whether a workload's name is that of a job file."""
    return re.search(r"\.(fio|job|ini)$", name) is not None
