"""Where the trees of an evaluation lie: a directory of their own, below one that the user names."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from types import TracebackType

from loadstone import Error

PATIENCE = 10.0
"""Seconds in which a run that was given up must have let go of its tree."""


class Place:
    """A directory for trees below ``on``, which is made too where it does not exist; a context manager.

    Nothing that was there before is used, written or removed: trees lie in a new directory with the number
    of this process in its name, and only that is removed, with ``on`` if it was made here and is empty.
    """

    def __init__(self, on: str | os.PathLike[str]) -> None:
        """Nothing is made yet."""
        self.on = Path(os.path.abspath(on))
        self.folder = self.on / f"loadstone-evaluate-{os.getpid()}"
        self._made_on = False
        self._made: tuple[int, int] | None = None

    def tree(self, name: str) -> str:
        """The path of a tree; who builds it makes it."""
        return str(self.folder / name)

    def __enter__(self) -> Place:
        """Makes the directory; ``Error`` where that cannot be."""
        try:
            if not os.path.lexists(self.on):
                os.mkdir(self.on)
                self._made_on = True
            os.mkdir(self.folder, 0o700)
            self._made = self._identity()
        except OSError as error:
            self._leave()
            raise Error(f"{self.folder}: cannot be made: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes what was made."""
        try:
            self.clear()
            os.rmdir(self.folder)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Removes ``on`` if it was made here, and nobody has put anything into it."""
        if self._made_on:
            try:
                os.rmdir(self.on)
            except OSError:
                return

    def _identity(self) -> tuple[int, int]:
        found = os.lstat(self.folder)
        return found.st_dev, found.st_ino

    def clear(self) -> None:
        """Removes all trees; a Ctrl-C meanwhile counts when they are gone."""
        try:
            self._remove()
        except KeyboardInterrupt:
            self._remove()
            raise

    def _remove(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self._identity() != self._made:
                    raise Error(f"{self.folder}: was replaced by something else, which is left alone")
                for entry in os.scandir(self.folder):
                    _one_file_system(entry.path, self._made[0])
                    shutil.rmtree(entry.path)
                return
            except OSError as error:
                # A run that was given up may still finish a request.
                if time.monotonic() > deadline:
                    text = f"{self.folder}: cannot be removed ({error.strerror}); remove it by hand"
                    raise Error(text) from None
                time.sleep(0.05)


def _one_file_system(path: str, device: int) -> None:
    """Refuses a tree in which something else was mounted: what is there is not ours."""
    for at, _, _, fd in os.fwalk(path):
        if os.fstat(fd).st_dev != device:
            raise Error(
                f"{at}: is another file system mounted inside the tree; unmount it, and remove {path}"
            )


__all__ = ["Place"]
