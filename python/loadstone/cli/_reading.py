"""The options of every verb that reads a trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from loadstone.cli._command import Of
from loadstone.cli._types import TIME, Count, Folder

READING = "Reading the trace"
"""The group of these in the help of what runs something."""
_of_map = functools.partial(click.option, cls=Of, of=("--columns",))
_OPTIONS = [
    click.option("--format", metavar="NAME", help="The format, one of trace formats [detected]."),
    click.option(
        "--columns",
        metavar="MAP",
        help="Columns of delimited text: NAME=COLUMN[:UNIT],... or @FILE (TOML or JSON).",
    ),
    _of_map("--read", "reads", metavar="VALUES", help="Values of the op column that are reads."),
    _of_map(
        "--write",
        "writes",
        metavar="VALUES",
        help="Values of the op column that are writes.",
    ),
    _of_map("--flush", "flushes", metavar="VALUES", help="Values that are flushes."),
    _of_map("--discard", "discards", metavar="VALUES", help="Values that are discards."),
    _of_map("--ignore", metavar="VALUES", help="Values that are not requests."),
    _of_map("--every", metavar="OP", help="The op of a table without an op column."),
    _of_map("--rate", type=Count(1), metavar="N", help="Requests/s of a table without times."),
    _of_map(
        "--separator",
        metavar="CHAR",
        help="Separator of fields: a character, tab or blank [a comma].",
    ),
    _of_map("--skip", type=Count(0), help="Lines to skip at the start."),
    _of_map("--comment", metavar="TEXT", help="Skip lines that begin with this text."),
    _of_map(
        "--origin",
        type=click.Choice(["first", "start", "epoch"]),
        help="Time 0 of the column: anything (first), the trace's start, or 1970; default first.",
    ),
    click.option("--reorder", type=TIME, help="Longest time a record may be out of order; default 1s."),
    click.option("--sort", is_flag=True, help="Sort the whole trace by time, in temporary files."),
    click.option(
        "--temp-dir",
        cls=Of,
        of=("--sort",),
        type=Folder(),
        help="Directory of these files [the system's].",
    ),
    click.option(
        "--spread-ties", is_flag=True, help="Spread requests of one time over a tick of the source's clock."
    ),
    click.option("--salvage", is_flag=True, help="Skip all damage and count what is lost."),
    click.option("--max-damaged", type=Count(0), metavar="N", help="Skip up to N damaged records."),
]

_NAMES = (
    *("format", "columns", "reads", "writes", "flushes", "discards", "ignore", "every", "rate"),
    *("separator", "skip", "comment", "origin", "reorder", "sort", "temp_dir"),
    *("spread_ties", "salvage", "max_damaged"),
)


def _columns(given: dict[str, Any]) -> dict[str, Any] | None:
    from loadstone.trace import columns_from_file, columns_from_text

    ops = {"read": "reads", "write": "writes", "flush": "flushes", "discard": "discards", "ignore": "ignore"}
    values = {op: given.pop(name) for op, name in ops.items()}
    values = {op: text.split(",") for op, text in values.items() if text is not None}
    more = {key: given.pop(key) for key in ("every", "rate", "separator", "skip", "comment", "origin")}
    text = given.pop("columns")
    if text is None:
        return None
    if text.startswith("@"):
        columns = columns_from_file(text[1:])
        if values:
            columns["values"] = {**columns.get("values", {}), **values}
        columns.update({key: value for key, value in more.items() if value is not None})
        return columns
    return columns_from_text(text, values, **more)


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options and hands them on as one argument, ``reading``, a dict of trace.Options."""

    @functools.wraps(function)
    def wrapper(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in _NAMES}
        columns = _columns(given)
        # A flag that is not given is left out too, so that the defaults are the library's.
        reading = {key: value for key, value in given.items() if value is not None and value is not False}
        if columns is not None:
            reading["columns"] = columns
        return function(reading=reading, **arguments)

    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
        wrapper.__click_params__[-1].group = READING  # type: ignore[attr-defined]
    return wrapper
