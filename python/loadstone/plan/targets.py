"""Targets: what a name on the command line stands for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from loadstone._core import MARK
from loadstone._files import absolute
from loadstone._values import is_null
from loadstone.errors import Error
from loadstone.plan.kinds import Unused
from loadstone.plan.options import Place, RunOptions

BLOCK = 4096


@dataclass
class Found:
    """What there is at a target's place."""

    path: str
    """Absolute path, or empty for ``null:``."""
    kind: str
    """``null``, ``file`` or ``device``."""
    size: int | None
    """Bytes, None where there is nothing yet or no limit."""
    allowed: bool
    """The user gave up what it holds."""

    @property
    def new(self) -> bool:
        """The run will make it."""
        return self.kind == "file" and self.size is None


def find(name: Place, allow_destroy: Iterable[Place]) -> Found:
    """Looks at a target; ``null:`` stands for none."""
    text = os.fspath(name)
    if is_null(text):
        return Found("", "null", None, False)
    path = absolute(text)
    allowed = any(absolute(p) == path for p in allow_destroy)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if _is_of_devices(parent):
            raise Error(f"{path}: does not exist; check the device's name (lsblk lists them)") from None
        if not os.path.isdir(parent):
            raise Error(f"{path}: cannot be made: the directory {parent} does not exist") from None
        return Found(path, "file", None, allowed)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise Error(f"{path}: is a directory; name a file inside it")
    if stat.S_ISBLK(status.st_mode):
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise Error(f"{path}: cannot be opened: {error.strerror}") from None
        try:
            return Found(path, "device", os.lseek(fd, 0, os.SEEK_END), allowed)
        finally:
            os.close(fd)
    if not stat.S_ISREG(status.st_mode):
        raise Error(f"{path}: is neither a regular file nor a block device")
    return Found(path, "file", status.st_size, allowed)


def lies_in(path: str, directory: str) -> bool:
    """Whether a file below a directory is part of it: no mount lies between, and it has no other name."""
    try:
        return os.stat(path).st_nlink == 1 and _mount(path) == _mount(directory)
    except OSError:
        return False


def _mount(path: str) -> str:
    """The mount that a path is reached by, as the kernel numbers them."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
            return next(line for line in lines if line.startswith("mnt_id:"))
    finally:
        os.close(fd)


def tree(name: Place, allow_destroy: Iterable[Place]) -> dict[str, Any]:
    """A directory as the place of a tree: new, empty, or given up."""
    path = absolute(name)
    allowed = [absolute(p) for p in allow_destroy]
    if unknown := [p for p in allowed if p != path]:
        raise Unused("allow_destroy", unknown[0], "is no target of this run")
    parent = os.path.dirname(path)
    if not os.path.exists(path) and not os.path.isdir(parent):
        raise Error(f"{path}: cannot be made: the directory {parent} does not exist")
    if os.path.exists(path) and not os.path.isdir(path):
        raise Error(f"{path}: is no directory, and a tree of files needs one")
    if path == "/" or (os.path.ismount(path) and path in ("/home", "/usr", "/var", "/boot", "/etc")):
        raise Error(f"{path}: is no place to build a tree in; name a directory of its own")
    return {"id": "t0", "kind": "tree", "path": path, "allow_destroy": path in allowed}


def lower(ident: str, found: Found, size: int, reads: bool, options: RunOptions) -> dict[str, Any]:
    """A target as a plan has it. ``reads``: whether the load reads at all."""
    if size <= 0:
        raise Error(f"{found.path or 'null:'}: has no bytes to use; give its size with `size`")
    if found.kind == "null":
        refuse_on_null(options)
        return {"id": ident, "kind": "null", "size": size}
    fill = options.fill
    if fill is None:
        # What an earlier run left is what this one goes on with.
        fill = (found.new or found.allowed) and "from" not in (options.asked_verify or {})
    lowered = {
        "id": ident,
        "kind": found.kind,
        "path": found.path,
        "size": size,
        "prepare": "fill" if fill else "none",
        "direct": options.direct,
        "sync": options.sync or "none",
        "allow_destroy": found.allowed,
    }
    if options.fadvise not in (None, "normal"):
        lowered["advice"] = options.fadvise
    return lowered


def _is_of_devices(folder: str) -> bool:
    """Whether a directory is for device nodes: /dev and what is below, but for what else is mounted there.

    /dev/shm is for files, even where it is a directory of /dev's own.
    """
    place = os.path.realpath(folder)
    if place == "/dev/shm" or place.startswith("/dev/shm/") or not f"{place}/".startswith("/dev/"):
        return False
    try:
        return os.stat(place).st_dev == os.stat("/dev").st_dev
    except OSError:
        return True


def refuse_on_null(options: RunOptions) -> None:
    """Raises ``Unused`` for options that are of what is kept somewhere, which ``null:`` keeps nowhere."""
    verify = options.asked_verify
    of_verify = next((f"verify_{name}" for name in ("state", "from", "unit") if name in (verify or {})), "")
    asked = {
        "direct": options.direct,
        "sync": options.sync not in (None, "none"),
        "fadvise": options.fadvise not in (None, "normal"),
        "fill": options.fill,
        "cache": options.cache in ("remount", "drop-host"),
        of_verify or "verify": verify is not None,
    }
    for name, wanted in asked.items():
        if wanted:
            raise Unused(name, None, "the target null: performs and keeps nothing; name a file or a device")


def check_allowed(found: Iterable[Found], allow_destroy: Iterable[Place]) -> None:
    """What is given up must be a target of this run, or it is a slip."""
    known = {f.path for f in found}
    for path in allow_destroy:
        if absolute(path) not in known:
            raise Unused("allow_destroy", os.fspath(path), "is no target of this run")


def blocks(size: int) -> int:
    """Rounded up to whole 4 KiB blocks."""
    return -(-size // BLOCK) * BLOCK


def used(path: str) -> tuple[int, int]:
    """Bytes and inodes of an earlier run's files, which a new one takes the place of."""
    if not os.path.exists(os.path.join(path, MARK)):
        return 0, 0
    size = inodes = 0
    for folder, _, names in os.walk(path):
        inodes += 1 + len(names)
        size += sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in names)
    return size, inodes
