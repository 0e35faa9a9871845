"""What plans will write before anything is measured, and whether it fits where it is to go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone import _core
from loadstone.errors import Error
from loadstone.plan.facts import look
from loadstone.plan.targets import used
from loadstone.plan.variables import draw

SHARE = 0.1
"""Share of the free space beyond which a user is asked."""
LEAST = 64 << 20
"""Bytes up to which nobody is asked, so that small file systems can be used."""
_DRAWN = 4096
"""Values a mean size is taken of."""


@dataclass(frozen=True)
class Part:
    """What is written below one path."""

    bytes: int
    new: int
    """Bytes of it for which nothing is given up."""
    at_most: bool = False
    """It may be less, which is known only when it was done."""
    grows: bool = False
    """Programs append to it besides, and nobody knows how much."""


@dataclass
class Room:
    """What goes to one file system."""

    free: int
    """Bytes that are free there for this user."""
    parts: dict[str, Part] = field(default_factory=dict)
    """By the path of what is filled, made or written over."""

    @property
    def bytes(self) -> int:
        """All bytes."""
        return sum(part.bytes for part in self.parts.values())

    @property
    def new(self) -> int:
        """Those that take free space."""
        return sum(part.new for part in self.parts.values())

    @property
    def at_most(self) -> bool:
        """Whether it may be less."""
        return any(part.at_most for part in self.parts.values())

    @property
    def grows(self) -> bool:
        """Whether programs append besides."""
        return any(part.grows for part in self.parts.values())

    @property
    def is_little(self) -> bool:
        """Nobody is asked for so little, however small the file system."""
        return self.new <= LEAST

    @property
    def is_much(self) -> bool:
        """More than a tenth of what is free, and than 64 MiB; what cannot fit is refused elsewhere."""
        return self.new > max(self.free * SHARE, LEAST) and (self.at_most or self.new <= self.free)


def writes(plans: Iterable[Mapping[str, Any]], more: Mapping[str, int] | None = None) -> list[Room]:
    """What plans that run one after the other fill, make and write over, by file system.

    Files that programs make later count with the size that their set says, what they append where their
    requests are limited, and the files of a trace or model with all that is ever in them. ``more``: bytes by
    path that are known to whoever made the plans. Raises ``Error`` where more is to be written than is free.
    """
    parts = {path: _part(path, size) for path, size in (more or {}).items()}
    plans = list(plans)
    # Whether sets fit is asked by the engine, which knows each of their files.
    refuse = not any(plan.get("sets") for plan in plans)
    for plan in plans:
        for path, part in _of_plan(plan):
            if path not in parts or part.bytes > parts[path].bytes:
                parts[path] = part
    return _rooms(parts, refuse)


def room_of(path: str, size: int, at_most: bool = False) -> list[Room]:
    """What goes to one path; whether it fits is asked elsewhere."""
    return _rooms({path: _part(path, size, at_most)}, refuse=False)


def _rooms(parts: Mapping[str, Part], refuse: bool) -> list[Room]:
    """The file systems that parts go to. Raises ``Error`` where they cannot fit, if ``refuse``."""
    found: dict[int, Room] = {}
    for path, part in parts.items():
        there = _there(path)
        try:
            status, space = os.stat(there), os.statvfs(there)
        except OSError as error:
            raise Error(f"{there}: {error.strerror}") from None
        room = found.setdefault(status.st_dev, Room(space.f_bavail * space.f_frsize))
        room.parts[path] = part
    for room in found.values():
        needed = sum(part.new for part in room.parts.values() if not part.at_most)
        if refuse and needed > room.free:
            raise Error(
                f"{next(iter(room.parts))}: {needed:,} bytes are to be written there, and {room.free:,} "
                "are free; free some, ask for less (`size`), or name another place with `on`"
            )
    return list(found.values())


def devices(plans: Iterable[Mapping[str, Any]]) -> dict[str, Part]:
    """What plans write to devices, by path; none of it takes free space."""
    found: dict[str, Part] = {}
    for plan in plans:
        for target in plan["targets"]:
            if target["kind"] != "device":
                continue
            if target.get("prepare") == "fill":
                found[target["path"]] = Part(int(target["size"]), 0)
            elif _is_written(plan, target):
                found.setdefault(target["path"], Part(int(target["size"]), 0, at_most=True))
    return found


def _part(path: str, size: int, at_most: bool = False, grows: bool = False) -> Part:
    return Part(size, max(0, size - _held(path)), at_most, grows)


def _of_plan(plan: Mapping[str, Any]) -> Iterable[tuple[str, Part]]:
    targets = {target["id"]: target for target in plan["targets"]}
    for target in targets.values():
        path, size = target.get("path", ""), int(target.get("size", 0))
        if target["kind"] == "tree" and (files := _files(plan)):
            yield path, _part(path, files, at_most=True)
        if target["kind"] != "file":
            continue
        # Space is reserved for a new file, whatever becomes of it.
        if target.get("prepare") == "fill" or not os.path.exists(path):
            yield path, _part(path, size)
        elif _is_written(plan, target):
            yield path, _part(path, size, at_most=True)
    for one in plan.get("sets", ()):
        target = targets[one["target"]]
        if target["kind"] == "tree":
            path = os.path.normpath(os.path.join(target["path"], one["path"]))
            share = 1.0 if _does(plan["workers"], one["id"], ("create",)) else float(one.get("present", 0.0))
            made, reached = _mean(one.get("size", 0), plan), _reach(plan, one["id"])
            if reached > made:
                # What grows need not be made by the program.
                share = max(share, float(one.get("present", 0.0)))
            size = round(min(one.get("entries", 0) * share * max(made, reached), 2.0**63))
            appended = _appended(plan, one["id"])
            at_most, grows = bool(appended) or reached > made, appended is None
            yield path, _part(path, size + (appended or 0), at_most=at_most, grows=grows)


def _is_written(plan: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    """Whether a target that is there may be written to: only where it was given up."""
    if not (target.get("allow_destroy") or target.get("made_before")):
        return False
    return any(
        not worker.get("reads_only") and worker["source"].get("reads", 0.0) < 1.0
        for worker in plan["workers"]
    )


def _files(plan: Mapping[str, Any]) -> int:
    """Bytes of the files of traces and models, as far as any request reaches, as if none were removed."""
    artefacts = {one["id"]: one for one in plan.get("artefacts", ())}
    size = 0
    for worker in plan["workers"]:
        one = artefacts.get(worker["source"].get("artefact"))
        if one is not None and one["kind"] == "trace":
            objects = look("trace", one["path"], one.get("reading"))["objects"]
            size += sum(int(file["end"]) for file in objects)
        elif one is not None:
            size += _drawn(one["path"], plan.get("seed", 0))
    return size


def _drawn(path: str, seed: int) -> int:
    """Bytes of the files of a model: it tells of them only by what it draws, as the run will."""
    import numpy as np

    sampler = _core.Model.load(path).sampler(seed)
    ends = np.zeros(0, np.int64)
    while (batch := sampler.next()) is not None:
        of = (batch["offset"] >= 0) & (batch["size"] > 0)
        objects = batch["object"][of].astype(np.int64)
        if objects.size:
            ends = np.concatenate((ends, np.zeros(max(0, int(objects.max()) + 1 - ends.size), np.int64)))
            np.maximum.at(ends, objects, batch["offset"][of] + batch["size"][of])
    return int(ends.sum())


def _appended(plan: Mapping[str, Any], ident: str) -> int | None:
    """Bytes that programs append to files of a set; None where nothing says when they end."""
    size = 0
    for worker in plan["workers"]:
        ops = _ops(worker["source"].get("ops", ()))
        sizes = [
            _mean(op.get("size", 0), plan)
            for op in ops
            if op.get("set") == ident and op["act"] in ("append", "append_random")
        ]
        if sizes and not worker.get("requests"):
            return None
        size += round(min(max(sizes, default=0) * worker.get("requests", 0), 2.0**63))
    return size


_LENGTHENS = ("write", "aio_write", "mmap_write", "fwrite", "fallocate")
"""Ops that make a file longer by where and how much they write."""


def _reach(plan: Mapping[str, Any], ident: str) -> float:
    """How long single requests of programs make files of a set, bytes, as far as is told."""
    most = 0.0
    for worker in plan["workers"]:
        for op in _ops(worker["source"].get("ops", ())):
            if op.get("set") != ident or op["act"] not in _LENGTHENS:
                continue
            size, end = _mean(op.get("size", 0), plan), 0.0
            if op["act"] != "fallocate":
                end = _mean(op.get("working_set", 0), plan)
            if (place := op.get("position")) is not None:
                end = max(end, _mean(place, plan) + size)
            most = max(most, size, end)
    return most


def _ops(ops: Sequence[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """All ops of a program, those of groups too."""
    for op in ops:
        yield op
        yield from _ops(op.get("ops", ()))


def _does(workers: Sequence[Mapping[str, Any]], ident: str, acts: Sequence[str]) -> bool:
    """Whether programs do something with files of a set."""
    return any(
        op.get("set") == ident and op["act"] in acts
        for worker in workers
        for op in _ops(worker["source"].get("ops", ()))
    )


def _mean(value: Any, plan: Mapping[str, Any]) -> float:
    """The mean of a size that may be drawn, bytes, from 0 to 2^63."""
    if isinstance(value, int | float):
        return float(value)
    named = {one["id"]: one for one in plan.get("variables", ())}
    variable = named.get(value.get("variable")) if isinstance(value, Mapping) else None
    if variable is None:
        return 0.0
    import numpy as np

    with np.errstate(all="ignore"):
        mean = float(draw({k: v for k, v in variable.items() if k != "id"}, _DRAWN).mean())
    # A law of a plan from elsewhere may have no mean, or one below 0.
    return min(mean, 2.0**63) if mean > 0 else 0.0


def _there(path: str) -> str:
    """The nearest directory or file that is there already."""
    while not os.path.exists(path):
        path = os.path.dirname(path) or "."
    return path


def _held(path: str) -> int:
    """Bytes that a file or tree of an earlier run holds, whose place is taken."""
    try:
        status = os.stat(path)
    except OSError:
        return 0
    if not os.path.isdir(path):
        return status.st_blocks * 512
    return used(path)[0]
