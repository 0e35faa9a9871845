"""What installed packages add: entry points, of which only what is asked for by name is loaded."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from loadstone.errors import Error


def named(group: str) -> list[str]:
    """Names of a group's entry points, in their order."""
    return sorted({entry.name for entry in entry_points(group=group)})


def load(group: str, name: str) -> Any:
    """What the entry point of that name stands for, or ``None`` where there is none.

    Raises ``Error`` where it cannot be loaded, or two packages have one of that name.
    """
    found = list(entry_points(group=group, name=name))
    if not found:
        return None
    if len({entry.value for entry in found}) > 1:
        packages = " and ".join(sorted(map(_package, found)))
        raise Error(f"{name} is an entry point {group} of {packages}; uninstall all but one of them")
    entry = found[0]
    try:
        return entry.load()
    # SystemExit, too: a plugin may end the program for reasons of its own.
    except (Exception, SystemExit) as error:
        raise Error(
            f"{name}, an entry point {group} of {_package(entry)}, cannot be loaded from {entry.value}: "
            f"{type(error).__name__}: {error}; repair that package, or uninstall it"
        ) from error


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist else "an unnamed package"
