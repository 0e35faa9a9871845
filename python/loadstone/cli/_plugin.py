"""``--plugin`` and ``loadstone model features``: what can be measured of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from loadstone.cli._command import Command
from loadstone.cli._show import json_option, show_json
from loadstone.errors import Error


def plugin_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The option; the verb gets the files as ``plugins``."""
    return click.option(
        "--plugin",
        "plugins",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.py",
        help="Also observe the features of this Python file; repeatable (docs/howto/write-a-feature.md).",
    )(verb)


def own_features(plugins: tuple[str, ...]) -> list[str]:
    """Names of the features that the files define."""
    from loadstone import model as models

    known: dict[str, str] = {}
    # The same file named twice is one.
    for plugin in dict.fromkeys(plugins):
        for name in models.load_features(plugin):
            if name in known:
                raise Error(f"{plugin}: defines {name} as {known[name]} does; give one of them another name")
            known[name] = plugin
    return list(known)


@click.command(cls=Command)
@plugin_option
@json_option
def features(plugins: tuple[str, ...], as_json: bool) -> None:
    """List what can be measured of a request: unit, bucket rule, and whether it can be drawn.

    \b
    Examples:
      loadstone model features
      loadstone model features --plugin hot.py
    """
    from loadstone.model import features as known

    own_features(plugins)
    rows = known()
    if as_json:
        return show_json(rows)
    columns = [
        [row["name"], row["unit"], row["rule"], "drawn" if row["drawn"] else "observed"] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    for cells, row in zip(columns, rows, strict=True):
        words = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        click.echo(f"{words}  {row['text']}".rstrip())
    click.echo("\nprevious(FEATURE) is that of the request before; it can be given.")
