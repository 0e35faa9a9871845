"""What a load will write is said before it begins, and asked for where it is much."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli import _show
from loadstone.errors import Error

if TYPE_CHECKING:
    from loadstone.plan.writes import Room
    from loadstone.suites import SuitePlans

YES_HELP = (
    "Begin what may take hours, or takes more than a tenth of the free space (from 64 MiB on), without being "
    "asked."
)
yes_option = click.option("--yes", is_flag=True, help=YES_HELP)
LONG = 3600.0
"""Seconds beyond which a suite is not begun without being asked."""


def confirm_long(found: SuitePlans, yes: bool) -> None:
    """Asks before a suite that may take hours; ends the command where the answer is no."""
    work = found.work
    if yes or work.seconds < LONG:
        return
    requests = work.requests + work.skipped
    what = f"{_show.counted(len(found.plans), 'run')} of about {requests:,.0f} requests"
    if work.flushes:
        what += f", {work.flushes:,.0f} of which wait for the device,"
    if work.bytes:
        what += f" and {_show.human_bytes(work.bytes)}"
    what += (
        f" in all: about {work.seconds / 3600:,.1f} hours (docs/reference/suites.md tells at which speeds)"
    )
    if not sys.stdin.isatty():
        raise Error(f"{what}; give --yes to begin, or ask for less with -D")
    if not click.confirm(f"{what}. Begin?", err=True):
        click.echo("nothing was done", err=True)
        raise click.exceptions.Exit(1)


def confirm_plans(
    plans: Iterable[Mapping[str, Any]],
    yes: bool,
    more: Mapping[str, int] | None = None,
    say_little: bool = True,
) -> list[str]:
    """Says what plans fill, make and write over, and asks where it takes much of what is free.

    ``more``: bytes by path that are written besides. Returns what was not said yet: without ``say_little``,
    what is not even 64 MiB. Ends the command where the answer is no; raises ``Error`` where it cannot fit.
    """
    from loadstone.plan.rehearsal import rehearse
    from loadstone.plan.writes import devices, writes

    plans = list(plans)
    filled = devices(plans)
    if filled:
        # Whoever reads that a device is written should not read next that it may not be.
        rehearse(plans)
    for path, part in filled.items():
        how = "up to" if part.at_most else "from end to end:"
        _say(f"writes {path} {how} {_show.human_bytes(part.bytes)}")
    return confirm_rooms(writes(plans, more), yes, say_little)


def confirm_rooms(rooms: Sequence[Room], yes: bool, say_little: bool = True) -> list[str]:
    """The same for what goes to file systems."""
    later = []
    for room in rooms:
        if not room.bytes:
            continue
        what = _told(room)
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


def _told(room: Room) -> str:
    """``writes DIR/t: up to 2.0 GiB of 9.5 GiB that are free``."""
    names = [path for path, part in room.parts.items() if part.bytes]
    name = names[0]
    if further := len(names) - 1:
        name += f" and {further:,} other{'s' if further > 1 else ''}"
    most = "up to " if room.at_most else ""
    more = ", and what is appended" if room.grows else ""
    size, new, free = map(_show.human_bytes, (room.bytes, room.new, room.free))
    if not room.new:
        return f"writes {name}: {most}{size} over what is there{more}"
    part = "" if room.new == room.bytes else f", {new} of it new,"
    return f"writes {name}: {most}{size}{part} of {free} that are free{more}"


def _say(text: str) -> None:
    if not _show.is_quiet():
        click.echo(text, err=True)
