"""What plans will write before anything is measured, and whether it fits where it is to go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone import Error
from loadstone.workload._draw import draw

SHARE = 0.1
"""Share of the free space beyond which a user is asked."""
LEAST = 1 << 30
"""Bytes up to which nobody is asked, however small the file system."""
_DRAWN = 4096
"""Values a mean size is taken of."""


@dataclass
class Room:
    """What goes to one file system."""

    free: int
    """Bytes that are free there for this user, counting those that are given up for what is written."""
    parts: dict[str, int] = field(default_factory=dict)
    """Bytes by the path of what is filled or made."""

    @property
    def bytes(self) -> int:
        """All bytes."""
        return sum(self.parts.values())

    @property
    def is_little(self) -> bool:
        """Nobody is asked for so little, however small the file system."""
        return self.bytes <= LEAST

    @property
    def is_much(self) -> bool:
        """More than a tenth of what is free, and than 1 GiB; what does not fit is refused elsewhere."""
        return self.free >= self.bytes > max(self.free * SHARE, LEAST)


def writes(plans: Iterable[Mapping[str, Any]], more: Mapping[str, int] | None = None) -> list[Room]:
    """What plans that run one after the other fill and make, by file system.

    Files that programs make later count with the size that their set says. What they append, and the tree
    of a trace or model of files, is known only when it is there. ``more``: bytes by path that are known to
    whoever made the plans. Raises ``Error`` where more is to be written than is free.
    """
    sizes: dict[str, int] = dict(more or {})
    plans = list(plans)
    # Whether sets fit is asked by the engine, which knows each of their files.
    refuse = not any(plan.get("sets") for plan in plans)
    for plan in plans:
        for path, size in _of_plan(plan):
            sizes[path] = max(size, sizes.get(path, 0))
    return rooms(sizes, refuse)


def rooms(sizes: Mapping[str, int], refuse: bool = True) -> list[Room]:
    """The file systems that bytes go to, by path. Raises ``Error`` where they do not fit, if ``refuse``."""
    found: dict[int, Room] = {}
    for path, size in sizes.items():
        there = _there(path)
        try:
            status, space = os.stat(there), os.statvfs(there)
        except OSError as error:
            raise Error(f"{there}: {error.strerror}") from None
        room = found.setdefault(status.st_dev, Room(space.f_bavail * space.f_frsize))
        room.free += _held(path)
        room.parts[path] = size
    for room in found.values():
        if refuse and room.bytes > room.free:
            raise Error(
                f"{next(iter(room.parts))}: {room.bytes:,} bytes are to be written there, and {room.free:,} "
                "are free; free some, ask for less (--size), or name another place with --on"
            )
    return list(found.values())


def devices(plans: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Bytes by path of the devices that plans fill."""
    return {
        target["path"]: int(target["size"])
        for plan in plans
        for target in plan["targets"]
        if target["kind"] == "device" and target.get("prepare") == "fill"
    }


def _of_plan(plan: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    targets = {target["id"]: target for target in plan["targets"]}
    for target in targets.values():
        if target["kind"] == "file" and target.get("prepare") == "fill":
            yield target["path"], int(target["size"])
    for one in plan.get("sets", ()):
        target = targets[one["target"]]
        if target["kind"] == "tree":
            path = os.path.normpath(os.path.join(target["path"], one["path"]))
            share = 1.0 if _makes(plan["workers"], one["id"]) else float(one.get("present", 0.0))
            yield path, round(one.get("entries", 0) * share * _mean(one.get("size", 0), plan))


def _makes(workers: Sequence[Mapping[str, Any]], ident: str) -> bool:
    """Whether programs make files of a set."""

    def in_ops(ops: Sequence[Mapping[str, Any]]) -> bool:
        return any(
            (op.get("set") == ident and op["act"] == "create") or in_ops(op.get("ops", ())) for op in ops
        )

    return any(in_ops(worker["source"].get("ops", ())) for worker in workers)


def _mean(value: Any, plan: Mapping[str, Any]) -> float:
    """The mean of a value that may be drawn."""
    if isinstance(value, int | float):
        return float(value)
    named = {one["id"]: one for one in plan.get("variables", ())}
    variable = named.get(value.get("variable")) if isinstance(value, Mapping) else None
    if variable is None:
        return 0.0
    return float(draw({k: v for k, v in variable.items() if k != "id"}, _DRAWN).mean())


def _there(path: str) -> str:
    """The nearest directory or file that is there already."""
    while not os.path.exists(path):
        path = os.path.dirname(path) or "."
    return path


def _held(path: str) -> int:
    """Bytes that a file or tree of an earlier run holds, whose place is taken."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    if not os.path.isdir(path) or os.path.islink(path):
        return status.st_blocks * 512
    from loadstone.suites._needs import used

    return used(path)[0]
