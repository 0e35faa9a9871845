"""Where the files of jobs lie, and the directories that are made for them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence

from loadstone._files import absolute
from loadstone.errors import Error
from loadstone.fio._keys import BY_NAME
from loadstone.fio._load import Load
from loadstone.plan.options import RunOptions


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


def implied(loads: Sequence[Load], options: RunOptions) -> str:
    """Where jobs run that nobody has named a target for: ``null:``, or the directory of the files they name.

    Raises ``FioError`` where a job names none by an absolute path. What they would make or overwrite is
    refused later.
    """
    moving = [load for load in loads if load.backend not in ("null", "cpu", "program")]
    if not moving:
        return "null:"
    places: list[str] = []
    for load in moving:
        first = load.directories[:1] if load.files else load.directories
        paths = [os.path.join(*load.directories[:1], name) for name in load.files] or first
        if not paths or load.backend in BY_NAME or not all(os.path.isabs(path) for path in paths):
            what = "its files have no absolute names; say where they lie, or `on` null: to perform nothing: "
            load.job.refuse(f"no target: {what}{command(load, options, ['DIR'])}")
        places += [os.path.dirname(path) for path in paths] if load.files else paths
    root = _there(os.path.commonpath([absolute(place) for place in places]))
    if options.rebase:
        moving[0].job.refuse("`rebase` needs `on` DIR, the directory that files are put in")
    return root


def _there(path: str) -> str:
    """The directory, or the nearest one above it that is there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def refuse_new(loads: Sequence[Load], options: RunOptions, new: Iterable[str]) -> None:
    """Raises where jobs that nobody has named a target for would make files."""
    paths = list(new)
    if not paths:
        return
    load = next((load for load in loads if load.files or load.directories), loads[0])
    others = f" is, like {len(paths) - 1} more," if len(paths) > 1 else " is"
    what = f"{paths[0]}{others} not there yet, and a job file makes files only where you say: "
    entry = load.job.entries.get("filename") or load.job.entries.get("directory") or load.job
    entry.refuse(what + command(load, options, paths))


def command(load: Load, options: RunOptions, paths: Sequence[str], destroyed: Sequence[str] = ()) -> str:
    """The command that runs the file of a job on these paths."""
    on = paths[0]
    if len(paths) > 1 or not os.path.isdir(os.path.dirname(on) or "."):
        on = _there(os.path.commonpath([os.path.dirname(path) for path in paths]))
    words = ["loadstone", "run", shlex.quote(load.job.file), "`on`", shlex.quote(on)]
    for path in destroyed:
        words += ["`allow_destroy`", shlex.quote(path)]
    for name, value in options.variables.items():
        words += ["-D", shlex.quote(f"{name}={value}")]
    return " ".join(words)
