"""Block devices and single files in place of trees of files: what is there, and what may be done with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadstone.errors import Error
from loadstone.wml._errors import listed, shown
from loadstone.wml._program import ACTS, FileSet
from loadstone.wml._slots import Made, every

RAW = frozenset(
    {"read", "write", "read_whole", "write_whole", "open", "close", "stat", "sync", "datasync", "sync_set"}
)
"""What can be done with a file that is neither made nor removed and keeps its size."""


@dataclass(frozen=True)
class Single:
    """A file or device that is there and is used as it is."""

    path: str
    kind: str
    """``file`` or ``device``."""
    size: int
    """Bytes."""


def single(path: str) -> Single | None:
    """The block device or regular file of that name; None where there is none."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return Single(path, "file", os.stat(path).st_size)
        if not stat.S_ISBLK(mode):
            return None
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Error(f"{path}: cannot be looked at: {error.strerror}") from None
    try:
        return Single(path, "device", os.lseek(fd, 0, os.SEEK_END))
    finally:
        os.close(fd)


def possible(made: Sequence[Made], sets: Mapping[str, FileSet], given_up: frozenset[str]) -> None:
    """Refuses what cannot be done with single files and devices, and writes to those that nobody gave up."""
    there = {found.plan["id"]: found.single for found in sets.values()}
    words = {act: word for word, act in ACTS.items()}
    for one in every(made):
        place = there.get(one.op.get("set", ""))
        if place is None:
            continue
        if one.act not in RAW:
            what = f"flowop {one.node.type} cannot be done with {shown(place.path)}, which is a {place.kind}"
            help = f"{listed(sorted(words[act] for act in RAW))} can"
            raise one.script.error(one.node, what, help=help)
        if one.act in ("write", "write_whole") and place.path not in given_up:
            what = f"flowop {one.node.type} would overwrite {shown(place.path)}, which was there before"
            help = f"pass `allow_destroy` {place.path} to give up what it holds"
            raise one.script.error(one.node, what, help=help)
