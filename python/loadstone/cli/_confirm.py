"""What a load will write is said before it begins, and asked for where it is much."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from loadstone import Error
from loadstone.cli import _show

if TYPE_CHECKING:
    from loadstone.workload._writes import Room

yes_option = click.option(
    "--yes",
    is_flag=True,
    help="Begin what may take hours, or writes more than a tenth of what is free (from 1 GiB on), without "
    "being asked.",
)


def confirm_plans(
    plans: Iterable[Mapping[str, Any]],
    yes: bool,
    more: Mapping[str, int] | None = None,
    say_little: bool = True,
) -> list[str]:
    """Says what plans fill and make, and asks where it is much; ends the command where the answer is no.

    ``more``: bytes by path that are written besides. Returns what was not said yet: without ``say_little``,
    what is not even 1 GiB. Raises ``Error`` where it is more than is free.
    """
    from loadstone.workload._writes import devices, writes

    plans = list(plans)
    for path, size in devices(plans).items():
        _say(f"writes {path} from end to end: {_show.human_bytes(size)}")
    return confirm_rooms(writes(plans, more), yes, say_little)


def confirm_rooms(rooms: Sequence[Room], yes: bool, say_little: bool = True) -> list[str]:
    """The same for what goes to file systems."""
    later = []
    for room in rooms:
        if not room.bytes:
            continue
        names = [path for path, size in room.parts.items() if size]
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} others"
        what = (
            f"writes {name}: {_show.human_bytes(room.bytes)} of {_show.human_bytes(room.free)} that are free"
        )
        if not say_little and room.is_little:
            later.append(what)
        elif yes or not room.is_much:
            _say(what)
        elif not sys.stdin.isatty():
            raise Error(f"{what}; give --yes to begin, or ask for less")
        elif not click.confirm(f"{what}. Begin?", err=True):
            click.echo("nothing was done", err=True)
            raise click.exceptions.Exit(1)
    return later


def _say(text: str) -> None:
    if not _show.is_quiet():
        click.echo(text, err=True)
