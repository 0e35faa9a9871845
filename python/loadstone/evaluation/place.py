"""Where the trees of an evaluation lie: a directory of their own, below one that the user names."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
import warnings
from pathlib import Path
from types import TracebackType

from loadstone._core import HeldFolder, keep_folder
from loadstone._files import absolute
from loadstone._kept import LeftBehind
from loadstone.errors import Error

PATIENCE = 10.0
"""Seconds in which a run that was given up must have let go of its tree."""
_NAME = "loadstone-evaluate-"


class Place:
    """A directory for trees below ``on``, which is made too where it does not exist; a context manager.

    Nothing that was there before is used, written or removed: trees lie in a new directory with a random
    name, and only that is removed, with ``on`` if it was made here and is empty. What is mounted inside is
    left alone. A killed process's directory is kept under another name, as somebody may have put something
    into it since: ``loadstone-evaluate.unfinished``.
    """

    def __init__(self, on: str | os.PathLike[str]) -> None:
        """Nothing is made yet."""
        self.on = Path(absolute(on))
        self._digits = secrets.token_hex(16)
        self.folder = self.on / f"{_NAME}{self._digits}"
        self._made_on = False
        self._held: HeldFolder | None = None

    def tree(self, name: str) -> str:
        """The path of a tree; who builds it makes it."""
        return str(self.folder / name)

    def __enter__(self) -> Place:
        """Makes the directory; ``Error`` where that cannot be."""
        try:
            if not os.path.lexists(self.on):
                os.mkdir(self.on, 0o700)
                self._made_on = True
            self._keep_left()
            self._held = HeldFolder(self.on, _NAME, self._digits)
        except OSError as error:
            self._leave()
            raise Error(f"{self.folder}: cannot be made: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes what was made."""
        held, self._held = self._held, None
        if held is None:
            return
        try:
            _patiently(held)
            held.remove()
        finally:
            held.release()
            self._leave()

    def _keep_left(self) -> None:
        """Keeps what killed evaluations left, and warns of it."""
        for name in sorted(os.listdir(self.on)):
            if not name.startswith(_NAME):
                continue
            kept = None
            for number in range(1, 10_000):
                to = f"{_NAME.rstrip('-')}.unfinished{'' if number == 1 else f'.{number}'}"
                try:
                    kept = self.on / to if keep_folder(self.on, name, _NAME, to) else None
                except FileExistsError:
                    continue
                except (OSError, Error):
                    pass
                break
            if kept is not None:
                text = f"{kept}: has the trees of an evaluation that was killed; remove it if they are all"
                warnings.warn(text, LeftBehind, stacklevel=3)

    def _leave(self) -> None:
        """Removes ``on`` if it was made here, and nobody has put anything into it."""
        if self._made_on:
            with contextlib.suppress(OSError):
                os.rmdir(self.on)

    def clear(self) -> None:
        """Removes all trees; a Ctrl-C meanwhile counts when they are gone."""
        if self._held is None:
            return
        try:
            _patiently(self._held)
        except KeyboardInterrupt:
            _patiently(self._held)
            raise


def _patiently(held: HeldFolder) -> None:
    """Removes all in it but the mark."""
    deadline = time.monotonic() + PATIENCE
    while True:
        if not held.there():
            raise Error(f"{held.path}: was replaced by something else, which is left alone")
        try:
            held.clear()
            return
        except OSError as error:
            # A run that was given up may still finish a request.
            if time.monotonic() > deadline:
                text = f"{held.path}: cannot be removed ({error.strerror}); remove it by hand"
                raise Error(text) from None
            time.sleep(0.05)


__all__ = ["Place"]
