"""Folders that are whole or absent: written aside, then renamed. What was measured is never removed."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from loadstone import Error, _scratch
from loadstone._json import readable
from loadstone._kept import Kept
from loadstone._scratch import Held, identity
from loadstone.bundle import owned

_NOREPLACE, _EXCHANGE = 1, 2
_AT_FDCWD = -100
# Bytes set aside for the summary of several runs, for when the disk is full.
_RESERVE = 1 << 20


def check_free(path: Path, force: bool) -> tuple[int, int] | None:
    """Raises where ``path`` may not be written: it exists, or its folder does not.

    With ``force`` a bundle or an empty folder may be replaced, and nothing else ever. Returns its device and
    inode, None where there is nothing.
    """
    if not path.name or path.name in (".", ".."):
        raise Error(f"{path}: is not a name for a bundle; give a folder that does not exist yet")
    if not path.absolute().parent.is_dir():
        raise Error(f"{path}: the folder {path.absolute().parent} does not exist; make it first")
    if not os.path.lexists(path):
        return None
    if not force:
        raise Error(f"{path}: exists; give another name, or --force to replace it")
    if path.is_symlink() or not path.is_dir():
        raise Error(f"{path}: is not a folder; a bundle never replaces it, give another name")
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        owned.check(fd, path)
        return identity(fd)
    finally:
        os.close(fd)


def _hidden(path: Path, kind: str) -> str:
    """``.NAME.tmp-``, before the random part; of a long name the begin."""
    return f".{os.fsdecode(os.fsencode(path.name)[:200])}.{kind}-"


def clean_up(path: Path) -> list[str]:
    """Removes what killed writers of ``path`` left aside; returns the names of what was removed.

    A bundle that was about to be replaced when its writer was killed is put back.
    """
    parent = path.absolute().parent
    old = re.compile(re.escape(_hidden(path, "old")) + "[0-9a-f]{16}")
    for entry in sorted(parent.iterdir()) if os.access(parent, os.R_OK) else ():
        if old.fullmatch(entry.name) and not os.path.lexists(path):
            _put_back(entry, path)
    return _scratch.sweep(parent, _hidden(path, "tmp")) + _scratch.sweep(parent, _hidden(path, "old"))


def _put_back(entry: Path, path: Path) -> None:
    try:
        fd = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    held = Held(entry, entry.name[-16:], fd)
    try:
        if _scratch.lock(fd, wait=False) and _scratch.marked(fd, held.ident):
            rename_new(entry, path)
            held.unmark()
    except OSError:
        pass
    finally:
        held.release()


class Making:
    """A bundle that is being written, in a folder of its own beside ``path`` until it is whole.

    A context manager. What is in ``folder`` becomes the bundle by :meth:`place`, or stays where it is by
    :meth:`leave`; left without either it is removed. After a kill it stays under its hidden name
    ``.NAME.tmp-...`` until the next writer of that name removes it. The folder it lies in is opened once: who
    may rename things on the way there sends nothing elsewhere. ``force`` is as in :func:`check_free`.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        """Nothing is made yet."""
        self.path = path
        """Where it lies, once it is placed."""
        self._force = force
        self._old: tuple[int, int] | None = None
        self._held: Held | None = None
        self._taken: str | None = None
        # The folder that it lies in, and a path that leads there whatever becomes of names.
        self._parent = -1
        self._base = path.absolute().parent

    def __enter__(self) -> Making:
        """Makes the folder; raises ``Error`` where that cannot be."""
        self._old = check_free(self.path, self._force)
        clean_up(self.path)
        try:
            self._parent = os.open(self._base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if os.path.isdir(opened := _by_number(self._parent)):
                self._base = opened
            self._held = _scratch.make(self._base, _hidden(self.path, "tmp"))
        except OSError as error:
            self._close()
            raise Error(f"{self.path}: cannot be made: {error.strerror}; nothing was run") from None
        return self

    def _close(self) -> None:
        if self._parent >= 0:
            os.close(self._parent)
            self._parent = -1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes what was neither placed nor left."""
        if self._held is not None:
            held, self._held = self._held, None
            with contextlib.suppress(OSError, Error):
                _scratch.remove(held)
            held.release()
        self._close()

    @property
    def folder(self) -> Path:
        """Where to write."""
        assert self._held is not None, "the block has ended"
        by_number = self._base == _by_number(self._parent)
        return _by_number(self._held.fd) if by_number else self._held.path

    def reserve(self) -> None:
        """Sets some room aside, which :meth:`unreserve` gives back when the disk is full."""
        with contextlib.suppress(OSError), open(self.folder / ".reserve", "xb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVE)

    def unreserve(self) -> None:
        """Gives back what was set aside."""
        (self.folder / ".reserve").unlink(missing_ok=True)

    def place(self) -> Path:
        """Gives the folder its name and returns that; synced, and whole or absent.

        Where the name was taken meanwhile, by whatever, it becomes ``NAME.2`` and so on: then ``Kept`` is
        raised, which says so. Raises ``OSError`` where no name can be given.
        """
        held = self._held
        assert held is not None, "the block has ended"
        self.unreserve()
        _sync_all(held.path)
        os.fchmod(held.fd, 0o777 & ~_umask())
        wanted = self.path
        if self._old is None or not self._replace(held):
            for name in _names(wanted):
                if not held.there():
                    raise OSError(errno.ENOENT, "the folder it was written to is gone", str(held.path))
                try:
                    rename_new(held.path, self._base / name)
                except FileExistsError:
                    continue
                self.path = wanted.with_name(name)
                break
        self._held = None
        held.unmark()
        placed = identity(held.fd)
        held.release()
        with contextlib.suppress(OSError):
            os.fsync(self._parent)
        if not _is_at(self.path, placed):
            self.path = Path(os.path.realpath(self._base), self.path.name)
            self._taken = "its folder was moved during the run,"
        if self.path != wanted:
            why = self._taken or "appeared during the run"
            raise Kept(
                f"{wanted}: {why} and is left as it is; the results are in {self.path}", None, self.path
            )
        return self.path

    def leave(self) -> Path:
        """Keeps the folder as it is, and returns the path that it has: ``NAME.unfinished``, or its own."""
        held, self._held = self._held, None
        assert held is not None, "the block has ended"
        held.unmark()
        found = held.path
        with contextlib.suppress(OSError):
            os.fchmod(held.fd, 0o777 & ~_umask())
        for name in _names(self.path.with_name(f"{self.path.name}.unfinished")):
            try:
                rename_new(found, self._base / name)
                found = self._base / name
                break
            except FileExistsError:
                continue
            except OSError:
                break
        held.release()
        return self.path.with_name(found.name)

    def _replace(self, held: Held) -> bool:
        """Exchanges it for the bundle that was there at the start; False where another is there now."""
        here = self._base / self.path.name
        try:
            fd = os.open(here, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        old = Held(here, held.ident, fd)
        try:
            if old.identity != self._old:
                self._taken = "was replaced by something else during the run"
                return False
            owned.check(fd, self.path)
            # With the mark, what a kill leaves of it under the hidden name is removed by the next writer.
            with contextlib.suppress(OSError):
                _scratch.lock(fd, wait=False)
                _scratch.mark(fd, held.ident)
            spare = self._base / (_hidden(self.path, "old") + held.ident)
            old.path = exchange(held.path, here, spare)
            if not old.there():
                # Somebody was quicker than the look before: theirs goes back to its place.
                exchange(old.path, here, held.path)
                self._taken = "was replaced by something else during the run"
                return False
            with contextlib.suppress(OSError, Error):
                _scratch.remove(old)
            return True
        except (Error, OSError) as error:
            old.unmark()
            self._taken = f"cannot be replaced any more ({error})"
            return False
        finally:
            old.release()


def _by_number(fd: int) -> Path:
    """A path to what is open."""
    return Path(f"/proc/self/fd/{fd}")


def _is_at(path: Path, wanted: tuple[int, int]) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == wanted


def _names(path: Path) -> Iterator[str]:
    """``NAME``, ``NAME.2``, ``NAME.3``, ..."""
    yield path.name
    for number in range(2, 10_000):
        yield f"{path.name}.{number}"
    raise OSError(errno.EEXIST, "all names are taken", str(path))


def _renameat2(old: Path, new: Path, flags: int) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(old))
    if function(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(old), None, str(new))


_UNKNOWN = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""What file systems say that cannot do it."""


def rename_new(old: Path, new: Path) -> None:
    """Renames a folder to a name that is free. Raises ``FileExistsError`` where it is not."""
    try:
        _renameat2(old, new, _NOREPLACE)
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        # An empty folder of our own is what a folder may replace; nobody else gets the name meanwhile.
        new.mkdir()
        try:
            old.rename(new)
        except BaseException:
            with contextlib.suppress(OSError):
                new.rmdir()
            raise


def exchange(new: Path, path: Path, spare: Path) -> Path:
    """Puts the folder ``new`` in the place of the folder ``path``; returns where that one is now.

    That is ``new``, or ``spare`` where the file system cannot exchange two; a failure leaves both in place.
    """
    try:
        _renameat2(new, path, _EXCHANGE)
        return new
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
    rename_new(path, spare)
    try:
        rename_new(new, path)
    except BaseException:
        rename_new(spare, path)
        raise
    return spare


@contextlib.contextmanager
def aside(path: Path, force: bool = False) -> Iterator[Path]:
    """A fresh folder that becomes ``path`` when the block ends without an error, by :class:`Making`.

    On an error it is removed. Raises ``Kept`` where it had to become ``NAME.2``.
    """
    with Making(path, force) as making:
        yield making.folder
        making.place()


def keep(
    making: Making, write: Callable[[Path], None], summary: Mapping[str, Any], name: str | None = None
) -> Path:
    """Has ``write`` fill the folder of ``making``, or a new one in it, ``name``; a bundle is placed then.

    Where that cannot be, it is written to another file system: to $TMPDIR, to the working directory. Raises
    ``Kept``, which says where it is, or that it is nowhere whole and what is left.
    """
    folder = making.folder if name is None else making.folder / name
    try:
        if name is not None:
            folder.mkdir()
        write(folder)
        return making.place() if name is None else folder
    except Kept as error:
        raise Kept(str(error), summary, error.path) from None
    except Exception as error:
        why = _reason(error)
    wanted = making.path if name is None else making.path.with_name(f"{making.path.name}-{name}")
    for where in (_scratch.temporary, Path.cwd):
        there = _elsewhere(where, wanted.name, write)
        if there is not None:
            if name is not None:
                _drop(folder)
            raise Kept(f"{wanted}: cannot be written: {why}; the results are in {there}", summary, there)
    # Of several runs the folder is left when those that are whole have been listed.
    left = f"what could be written is left in {making.leave()}" if name is None else f"{name} is not whole"
    raise Kept(f"{wanted}: cannot be written: {why}; {left}", summary)


def _elsewhere(where: Callable[[], Path], name: str, write: Callable[[Path], None]) -> Path | None:
    """Writes a bundle to another folder than was asked for; None where that fails, too."""
    try:
        parent = where()
        free = next(one for one in _names(parent / name) if not os.path.lexists(parent / one))
        with Making(parent / free) as other:
            write(other.folder)
            return other.place()
    except Kept as error:
        return error.path
    except Exception:
        return None


def _drop(folder: Path) -> None:
    """Removes the begin of a bundle that is whole elsewhere."""
    with contextlib.suppress(OSError, Error):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _scratch.empty(fd, folder)
        finally:
            os.close(fd)
        folder.rmdir()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _umask() -> int:
    """The process's umask, without changing it for other threads."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022


def _sync_all(folder: Path) -> None:
    """All files and folders, so that a name never stands for what a crash loses."""
    for at, _, names in os.walk(folder):
        for name in names:
            _sync(Path(at, name))
        _sync(Path(at))


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(path: Path, value: Any) -> None:
    """Writes readable JSON."""
    path.write_text(readable(value) + "\n", encoding="utf-8")
