"""Folders for a while: nobody can guess their names, a lock holds them, the next one removes dead ones."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone._core import Error

MARK = ".loadstone"
"""The file in a folder that says it is ours: its device, its inode, and the random part of its name."""

_ID = r"[0-9a-f]{16}"


@dataclass
class Held:
    """A folder of ours while it is held."""

    path: Path
    ident: str
    fd: int
    """Open on the folder, and locked: whoever finds it locked leaves it alone."""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return identity(self.fd)

    def there(self) -> bool:
        """Whether the name still leads to this folder."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self.identity

    def release(self) -> None:
        """Lets go of the lock; the folder stays."""
        os.close(self.fd)

    def unmark(self) -> None:
        """Makes it nobody's to remove: what is kept has no mark."""
        with contextlib.suppress(OSError):
            os.unlink(MARK, dir_fd=self.fd)


def identity(fd: int) -> tuple[int, int]:
    """Device and inode of an open file."""
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def make(parent: Path, before: str, after: str = "", first: str | None = None) -> Held:
    """A new folder ``BEFORE`` + 16 random digits + ``AFTER`` in ``parent``, locked and marked.

    Only its owner may look into it. ``first``: digits that are tried first. Raises ``OSError`` where that
    cannot be.
    """
    while True:
        ident, first = first or secrets.token_hex(8), None
        path = parent / f"{before}{ident}{after}"
        path.mkdir(0o700)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        held = Held(path, ident, fd)
        try:
            lock(fd)
            mark(fd, ident)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(MARK, dir_fd=fd)
            held.release()
            with contextlib.suppress(OSError):
                path.rmdir()
            raise
        if held.there():
            return held
        # Another process took it for one whose maker is dead, in the moment before it was locked.
        held.release()


def lock(fd: int, wait: bool = True) -> bool:
    """Locks an open folder; whether that was possible.

    Where a file system knows no locks it is not, and a folder counts as held by somebody.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def mark(fd: int, ident: str) -> None:
    """Writes the mark into an open folder."""
    device, inode = identity(fd)
    text = json.dumps({"format": "loadstone-folder", "device": device, "inode": inode, "id": ident})
    file = os.open(
        MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd
    )
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def marked(fd: int, ident: str) -> bool:
    """Whether an open folder has our mark, of that id, and no copy of it."""
    try:
        file = os.open(MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        told = json.loads(os.read(file, 4096))
    except (OSError, ValueError, RecursionError):
        return False
    finally:
        os.close(file)
    if not isinstance(told, dict):
        return False
    device, inode = identity(fd)
    return (told.get("device"), told.get("inode"), told.get("id")) == (device, inode, ident)


def sweep(parent: Path, before: str, after: str = "") -> list[str]:
    """Removes folders that :func:`make` made in ``parent`` and whose makers are dead; returns their names.

    A folder goes only if it belongs to this user, is no link, nobody holds its lock, and it is empty or holds
    the mark of that very folder. What cannot be looked at or removed is left.
    """
    pattern = re.compile(re.escape(before) + f"(?P<id>{_ID})" + re.escape(after))
    removed = []
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return []
    for name in names:
        if (match := pattern.fullmatch(name)) and _dead(parent / name, match["id"]):
            removed.append(name)
    return removed


def _dead(path: Path, ident: str) -> bool:
    """Removes one folder if its maker is dead; whether it did."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    held = Held(path, ident, fd)
    try:
        if os.fstat(fd).st_uid != os.geteuid() or not lock(fd, wait=False) or not held.there():
            return False
        if not marked(fd, ident):
            # Killed before it was marked: then nothing is in it, and if anything is, this fails.
            path.rmdir()
            return True
        remove(held)
        return True
    except (OSError, Error):
        return False
    finally:
        os.close(fd)


def remove(held: Held) -> None:
    """Removes a folder with all that is in it, by its descriptor; other file systems in it are left alone.

    Raises ``Error`` where something is mounted inside, and ``OSError`` where it cannot be removed.
    """
    empty(held.fd, held.path, MARK)
    # The mark goes last: what a kill leaves of it is ours as before.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(MARK, dir_fd=held.fd)
    if held.there():
        held.path.rmdir()


_DEEP = 100
"""Levels beyond which folders are moved up before they are emptied, so that no depth is too deep."""


def empty(fd: int, path: Path, keep: str = "") -> None:
    """Removes all that is in an open folder but the name ``keep``; errors call it ``path``."""
    while _emptied(fd, fd, path, mount_of(fd), keep, 0):
        pass


def _emptied(fd: int, top: int, path: Path, mount: tuple[int, int], keep: str, depth: int) -> bool:
    """Removes what is in an open folder; whether some of it was moved up to the folder ``top`` instead."""
    moved = False
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if name == keep:
            continue
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            continue
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            if mount_of(inner) != mount:
                told = "something is mounted there, which is left alone; unmount it first"
                raise Error(f"{path / name}: {told}")
            if depth >= _DEEP:
                os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=fd, dst_dir_fd=top)
                moved = True
                continue
            moved |= _emptied(inner, top, path / name, mount, "", depth + 1)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=fd)
    return moved


def mount_of(fd: int) -> tuple[int, int]:
    """The mount that an open file lies on, and its device: bind mounts of one file system differ."""
    number = -1
    with contextlib.suppress(OSError, ValueError), open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("mnt_id:"):
                number = int(line.split()[1])
    return number, os.fstat(fd).st_dev


def temporary() -> Path:
    """Where temporary files go: $TMPDIR, /tmp, ... Raises ``Error`` where nothing can be written to any."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise Error(f"{error.strerror}; set TMPDIR to a folder with room") from None


@contextlib.contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A folder ``loadstone-PURPOSE-...`` for temporary files ($TMPDIR), removed at the end.

    What killed processes left of the same purpose is removed first. Raises ``Error`` where there is no room.
    """
    parent = temporary()
    before = f"loadstone-{purpose}-"
    sweep(parent, before)
    try:
        held = make(parent, before)
    except OSError as error:
        raise Error(
            f"{parent}: no folder for temporary files can be made there: {error.strerror}; set TMPDIR to "
            "another one"
        ) from None
    try:
        yield held.path
    finally:
        try:
            remove(held)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        finally:
            held.release()
