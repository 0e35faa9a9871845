"""Where the files of jobs lie, and the directories that are made for them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from loadstone.errors import Error


def missing(path: str, root: str) -> list[str]:
    """Directories above ``path`` that are not there, outermost first, none at or above ``root``."""
    found = []
    parent = os.path.dirname(path)
    while len(parent) > len(root) and not os.path.lexists(parent):
        found.append(parent)
        parent = os.path.dirname(parent)
    return found[::-1]


def make(directories: Sequence[str]) -> None:
    """Makes directories whose parents are there or come before them; links on the way are not followed.

    Raises ``Error`` where one cannot be made.
    """
    for path in directories:
        parent, name = os.path.split(path)
        try:
            # What is above the first one was looked at before; what was made since is no link.
            fd = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | _no_link(parent, directories))
            try:
                os.mkdir(name, 0o777, dir_fd=fd)
            except FileExistsError:
                pass
            finally:
                os.close(fd)
        except OSError as error:
            raise Error(f"{path}: cannot be made: {error.strerror}") from None


def _no_link(parent: str, directories: Sequence[str]) -> int:
    return os.O_NOFOLLOW if parent in directories else 0
