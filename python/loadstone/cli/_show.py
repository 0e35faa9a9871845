"""What the verbs share: JSON, sizes and times for people, tables, progress."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from loadstone._json import readable
from loadstone._text import visible
from loadstone._units import duration, size
from loadstone.cli._streams import drawn

if TYPE_CHECKING:
    from rich.console import Console

_quiet = False


def set_quiet(quiet: bool) -> None:
    """Turns progress and live lines off (``loadstone --quiet``)."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    """Whether ``--quiet`` was given."""
    return _quiet


def is_live() -> bool:
    """Whether progress may be drawn: standard error is a terminal and ``--quiet`` was not given."""
    return not _quiet and sys.stderr.isatty()


def colours() -> bool:
    """Whether results may be coloured: standard output is a terminal and ``NO_COLOR`` is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines.")


def show_json(value: Any) -> None:
    """Prints one JSON object; numpy scalars become plain numbers, and what is no number null."""
    click.echo(readable(value))


def human_bytes(n: float) -> str:
    """``4.0 KiB``, ``1.5 GiB``."""
    return size(n, decimals=1)


def human_time(ns: float) -> str:
    """Nanoseconds as ``12.3 us``, ``4.5 ms``, ``2.0 s``, ``3.1 h``."""
    return duration(ns)


def counted(n: int, what: str, many: str | None = None) -> str:
    """``1 request``, ``2,000 requests``."""
    return f"{n:,} {what if n == 1 else many or what + 's'}"


def console() -> Console:
    """Where tables are printed: wide enough that no number is cut, whatever the terminal's width."""
    plain = plain_console()
    return plain_console(width=max(plain.width, 110 if plain.is_terminal else 160))


def plain_console(err: bool = False, width: int | None = None) -> Console:
    """Draws on standard output or error; texts in tables are shown as they are, and are never markup."""
    from rich.console import Console
    from rich.text import Text

    class Plain(Console):
        def render_str(self, text: str, **how: Any) -> Text:
            return super().render_str(visible(text, lines=False), **how)

        def print(self, *objects: Any, **how: Any) -> None:
            with self.capture() as drawn:
                super().print(*objects, **how)
            # Tables fill their last column with blanks, which wrap in a narrow terminal.
            self.file.write(re.sub(r" +(?=(\x1b\[[0-9;]*m)*$)", "", drawn.get(), flags=re.MULTILINE))

    return Plain(file=drawn(err), width=width, highlight=False, markup=False, emoji=False)


class Update(Protocol):
    """Takes how much is done, and how much there is."""

    def __call__(self, done: float, of: float | None = None) -> None:
        """Draws it."""


@contextmanager
def progress(what: str, total: float | None, unit: str = "B") -> Iterator[Update]:
    """A bar with rate and time left on standard error, once the work takes longer than 2 s.

    Yields a function that takes how much is done so far, in ``unit`` (``B`` for bytes, or a word
    such as ``requests``), and how much there is in all where only the work tells (0: it does not know yet).
    Silent when standard error is not a terminal or ``--quiet`` was given.
    """
    if not is_live():
        yield lambda done, of=None: None
        return
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed or 0.0
            return Text(f"{human_bytes(speed)}/s" if unit == "B" else f"{speed:,.0f} {unit}/s")

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(""),
        TimeRemainingColumn(),
        console=plain_console(err=True),
        transient=True,
    )
    task = bar.add_task(visible(what, lines=False), total=total)
    begun = time.monotonic()

    def update(done: float, of: float | None = None) -> None:
        bar.update(task, completed=done, total=of or total)
        if not bar.live.is_started and time.monotonic() - begun > 2.0:
            bar.start()

    try:
        yield update
    finally:
        bar.stop()
