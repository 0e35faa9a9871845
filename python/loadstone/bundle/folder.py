"""Folders that are whole or absent: written aside, then renamed. What was measured is never removed."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from loadstone import _scratch
from loadstone._core import HeldFolder, keep_folder, remove_tree, sweep_folders
from loadstone._files import make_folder, write_private
from loadstone._json import plain, readable
from loadstone._kept import LeftBehind
from loadstone.bundle import owned
from loadstone.bundle.check import LARGEST
from loadstone.errors import Error, Kept

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Bytes set aside for the summary of several runs, for when the disk is full.
_RESERVE = 1 << 20


def check_name(path: Path) -> None:
    """Raises ``Error`` where no bundle can have that path: it has no name, or its folder does not exist."""
    if not path.name or path.name in (".", ".."):
        raise Error(f"{path}: is not a name for a bundle; give a folder that does not exist yet")
    if not path.absolute().parent.is_dir():
        raise Error(f"{path}: the folder {path.absolute().parent} does not exist; make it first")


def check_free(path: Path, force: bool) -> tuple[int, int] | None:
    """Raises where ``path`` may not be written: it exists, or its folder does not.

    With ``force`` a bundle or an empty folder may be replaced, and nothing else ever. Returns its device and
    inode, None where there is nothing.
    """
    check_name(path)
    if not os.path.lexists(path):
        return None
    if not force:
        raise Error(f"{path}: exists; give another name, or `force` to replace it")
    if path.is_symlink() or not path.is_dir():
        raise Error(f"{path}: is not a folder; a bundle never replaces it, give another name")
    fd = os.open(path, _FOLDER)
    try:
        _refuse_planted(fd, path)
        owned.check(fd, path)
        return identity(fd)
    finally:
        os.close(fd)


def _refuse_planted(fd: int, path: Path) -> None:
    """Raises ``Error`` for a folder that somebody else put into a directory like /tmp.

    A bundle keeps the owner of what it replaces, who would read it then (``protected_regular``, proc(5)).
    """
    parent, folder = os.stat(path.absolute().parent), os.fstat(fd)
    shared = parent.st_mode & stat.S_ISVTX and parent.st_mode & stat.S_IWOTH
    if shared and folder.st_uid not in (os.geteuid(), parent.st_uid):
        what = "is a folder of another user in a directory that all may write to"
        raise Error(f"{path}: {what}; give another name")


def identity(fd: int) -> tuple[int, int]:
    """Device and inode of an open file."""
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _hidden(path: Path) -> str:
    """``.NAME.loadstone-``, before the random part; of a long name the begin."""
    return f".{os.fsdecode(os.fsencode(path.name)[:200])}.loadstone-"


def keep_results(path: Path) -> list[Path]:
    """Keeps what killed writers of ``path`` had finished, and returns where that is: ``NAME.unfinished``.

    A run is finished that has its ``summary.json``. Folders with files that no bundle has are kept, too.
    Raises ``OSError`` where a folder cannot be renamed.
    """
    kept = []
    parent, before = path.absolute().parent, _hidden(path)
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(parent)):
            if not name.startswith(before) or not _is_worth(parent / name):
                continue
            for to in _names(path.with_name(f"{path.name}.unfinished")):
                try:
                    if keep_folder(parent, name, before, to):
                        kept.append(path.with_name(to))
                except FileExistsError:
                    continue
                except (OSError, Error):
                    pass
                break
    return kept


def _is_worth(folder: Path) -> bool:
    """Whether there is a finished run in it, or something of somebody else."""
    for at, _, files in os.walk(folder):
        known = at.endswith("/environment")
        if "summary.json" in files or not (known or owned.NAMES.issuperset(files)):
            return True
    return False


def clean_up(path: Path) -> list[str]:
    """Removes what killed writers of ``path`` left aside; returns the names of what was removed.

    A bundle that was about to be replaced when its writer was killed is put back.
    """
    with contextlib.suppress(OSError):
        return sweep_folders(path.absolute().parent, _hidden(path), path.name)
    return []


class Making:
    """A bundle that is being written, in a folder of its own beside ``path`` until it is whole.

    A context manager. What is in ``folder`` becomes the bundle by :meth:`place`, or stays where it is by
    :meth:`leave`; left without either it is removed. After a kill it stays under its hidden name
    ``.NAME.loadstone-...`` until the next writer of that name removes it; finished runs are kept by
    :func:`keep_results`. The folder it lies in is opened once: who may rename things on the way there sends
    nothing elsewhere. ``force`` is as in :func:`check_free`.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        """Nothing is made yet."""
        self.path = path
        """Where it lies, once it is placed."""
        self._force = force
        self._old: tuple[int, int] | None = None
        self._held: HeldFolder | None = None
        self._taken: str | None = None

    def __enter__(self) -> Making:
        """Makes the folder; raises ``Error`` where that cannot be."""
        check_name(self.path)
        for left in keep_results(self.path):
            text = f"{left}: has what a run left that was killed before it could give it the name {self.path}"
            warnings.warn(text, LeftBehind, stacklevel=2)
        clean_up(self.path)
        self._old = check_free(self.path, self._force)
        try:
            self._held = HeldFolder(self.path.absolute().parent, _hidden(self.path))
        except OSError as error:
            raise Error(f"{self.path}: cannot be made: {error.strerror}; nothing was run") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes what was neither placed nor left."""
        if self._held is not None:
            held, self._held = self._held, None
            with contextlib.suppress(OSError, Error):
                held.remove()
            held.release()

    @property
    def folder(self) -> Path:
        """Where to write."""
        assert self._held is not None, "the block has ended"
        by_number = Path(f"/proc/self/fd/{self._held.fileno()}")
        # On a file system that has shut down nothing can be asked of the folder.
        return by_number if os.path.isdir(by_number) else self._held.path

    @property
    def hidden(self) -> Path:
        """The name it has until then, for messages and comparisons."""
        assert self._held is not None, "the block has ended"
        return self._held.path

    def reserve(self) -> None:
        """Sets some room aside, which :meth:`unreserve` gives back when the disk is full."""
        with contextlib.suppress(OSError), open(self.folder / ".reserve", "xb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVE)

    def unreserve(self) -> None:
        """Gives back what was set aside."""
        (self.folder / ".reserve").unlink(missing_ok=True)

    def place(self, partial: bool = False) -> Path:
        """Gives the folder its name and returns that; synced, and whole or absent.

        ``partial``: the results are not whole, and do not replace some that are. Where the name was taken
        meanwhile, by whatever, or is not replaced, it becomes ``NAME.2`` and so on: then ``Kept`` is raised,
        which says so. Raises ``OSError`` where no name can be given.
        """
        held = self._held
        assert held is not None, "the block has ended"
        self.unreserve()
        _sync_all(self.folder)
        os.fsync(held.fileno())
        wanted = self.path
        # It was made with these permissions; some file systems cannot change any.
        with contextlib.suppress(OSError):
            os.fchmod(held.fileno(), self._mode(held))
        if self._old is None or not self._replace(held, partial):
            for name in _names(wanted):
                try:
                    held.rename(name)
                except FileExistsError:
                    continue
                self.path = wanted.with_name(name)
                break
        mine = identity(held.fileno())
        if not _is_at(self.path, mine):
            self.path = Path(f"/proc/self/fd/{held.parent_fileno()}").resolve() / self.path.name
            self._taken = "its folder was moved during the run,"
            if not _is_at(self.path, mine):
                self.path = wanted
                raise OSError(errno.ESTALE, "its file system was unmounted during the run", str(wanted))
        self._held = None
        with contextlib.suppress(OSError, Error):
            held.unmark()
        with contextlib.suppress(OSError):
            os.fsync(held.parent_fileno())
        held.release()
        if self.path != wanted:
            why = self._taken or "appeared during the run"
            text = f"{wanted}: {why} and is left as it is; the results are in {self.path}"
            raise Kept(text, None, self.path, interrupted=partial)
        return self.path

    def sync(self, folder: Path) -> None:
        """Makes one of several runs stable: a crash while the next one goes on loses nothing of it."""
        held = self._held
        assert held is not None, "the block has ended"
        _sync_all(folder)
        for path in (folder, self.folder):
            # The second may be a link of /proc.
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        os.fsync(held.parent_fileno())

    def leave(self) -> Path:
        """Keeps the folder as it is, and returns the path that it has: ``NAME.unfinished``, or its own.

        Raises ``OSError`` where all names are taken.
        """
        held, self._held = self._held, None
        assert held is not None, "the block has ended"
        with contextlib.suppress(OSError, Error):
            held.unmark()
        for name in _names(self.path.with_name(f"{self.path.name}.unfinished")):
            try:
                held.rename(name)
                break
            except FileExistsError:
                continue
            except OSError:
                break
        left = self.path.with_name(held.path.name)
        held.release()
        return left

    def _mode(self, held: HeldFolder) -> int:
        """Permissions: the owner's alone, and of the bundle that is replaced, whose owner it gets."""
        if self._old is not None:
            with contextlib.suppress(OSError):
                there = os.stat(self.path.name, dir_fd=held.parent_fileno(), follow_symlinks=False)
                if (there.st_dev, there.st_ino) == self._old:
                    with contextlib.suppress(OSError):
                        os.fchown(held.fileno(), there.st_uid, there.st_gid)
                    return stat.S_IMODE(there.st_mode) & 0o700
        return 0o700

    def _replace(self, held: HeldFolder, partial: bool) -> bool:
        """Exchanges it for the bundle that was there at the start; False where that stays, or is gone."""
        try:
            fd = os.open(self.path.name, _FOLDER, dir_fd=held.parent_fileno())
        except OSError:
            return False
        try:
            if identity(fd) == self._old:
                owned.check(fd, self.path)
                if partial and os.listdir(fd):
                    self._taken = "has results, which partial ones do not replace,"
                    return False
                hidden = self.hidden
                if held.replace(self.path.name, fd):
                    if os.path.lexists(hidden):
                        text = f"{hidden}: is left of the bundle that was replaced; it could not be removed"
                        warnings.warn(text, LeftBehind, stacklevel=3)
                    return True
            self._taken = "was replaced by something else during the run"
        except (Error, OSError) as error:
            self._taken = f"cannot be replaced any more ({error})"
        finally:
            os.close(fd)
        return False


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
            make_folder(folder)
        write(folder)
        if name is None:
            return making.place(bool(summary.get("partial")))
        making.sync(folder)
        return folder
    except Kept as error:
        interrupted = error.interrupted and not summary.get("failure")
        raise Kept(str(error), summary, error.bundle, interrupted) from None
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


def keep_elsewhere(making: Making, names: Sequence[str], finish: Callable[[Path], None]) -> Path | None:
    """Copies what is still there of ``names`` in the folder of ``making`` to another file system.

    For a bundle that cannot get its name any more. ``finish`` writes the rest into the copy. None where
    nothing is there or no other place takes it.
    """
    there = [name for name in names if os.path.isdir(making.folder / name)]
    if not there:
        return None

    def write(folder: Path) -> None:
        for name in there:
            shutil.copytree(making.folder / name, folder / name, symlinks=True)
        finish(folder)

    copies = (_elsewhere(where, making.path.name, write) for where in (_scratch.temporary, Path.cwd))
    return next((copy for copy in copies if copy is not None), None)


def _elsewhere(where: Callable[[], Path], name: str, write: Callable[[Path], None]) -> Path | None:
    """Writes a bundle to another folder than was asked for; None where that fails, too."""
    try:
        parent = where()
        free = next(one for one in _names(parent / name) if not os.path.lexists(parent / one))
        with Making(parent / free) as other:
            write(other.folder)
            return other.place()
    except Kept as error:
        return error.bundle
    except Exception:
        return None


def _drop(folder: Path) -> None:
    """Removes the begin of a bundle that is whole elsewhere."""
    with contextlib.suppress(OSError, Error):
        remove_tree(folder)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _sync_all(folder: Path) -> None:
    """All in a folder, so that a name never stands for what a crash loses."""
    for at, folders, files in os.walk(folder):
        for name in (*files, *folders):
            _sync(Path(at, name))


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(path: Path, value: Any) -> None:
    """Writes readable JSON; what would be too large to be read back has no indentation."""
    text = readable(value)
    if len(text) >= LARGEST:
        text = json.dumps(plain(value), allow_nan=False, default=str)
    write_private(path, f"{text}\n".encode())
