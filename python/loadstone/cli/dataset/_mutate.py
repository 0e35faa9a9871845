"""``loadstone dataset mutate``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone import _values
from loadstone.cli import _show
from loadstone.cli._command import Command
from loadstone.cli._types import Count, pairs
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import (
    FILE,
    PROFILE,
    force_option,
    memory_option,
    output_option,
    seed_option,
    users_option,
)
from loadstone.errors import Error


def _settings(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, text in pairs(ctx, param, texts).items():
        try:
            found[name] = _values.number(text)
        except Error as error:
            raise click.BadParameter(f"{name}={text}: {error}", ctx, param) from None
    return found


@click.command(cls=Command)
@click.argument("series", type=FILE)
@output_option
@click.option("--profile", type=PROFILE, help="What changes are like: a file, or preset:NAME.")
@click.option("--mutator", help="What decides on them: file.py:function, or the name of an installed one.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=NUMBER",
    callback=_settings,
    help="A parameter of the mutator.",
)
@click.option("--generations", type=Count(1), default=1, show_default=True, help="Snapshots to add.")
@users_option
@seed_option
@memory_option
@force_option
@_show.json_option
def mutate(
    series: Path,
    output: Path,
    profile: Path | str | None,
    mutator: str | None,
    settings: dict[str, float],
    generations: int,
    users: int,
    seed: int,
    memory: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Go on with a series: add snapshots, each a change of the one before.

    The series may come from a scan, from distributions, or from an earlier mutation. A profile or preset
    gives the changes, or a Python function decides them, over columns of files and chunks. One function is
    installed: unique replaces chunks so that a share of the new snapshot's chunks are in no other snapshot
    (--set share=0.3), in runs (--set run=8).

    \b
    Example:
      loadstone dataset mutate first.fst --profile preset:home --generations 10 -o home.fst
      loadstone dataset mutate first.fst --mutator unique --set share=0.3 -o next.fst
      loadstone dataset mutate first.fst --mutator mine.py:rotate --generations 5 -o next.fst

    --json prints what loadstone.dataset.mutate returns.
    """
    from loadstone import dataset

    if (profile is None) == (mutator is None):
        raise click.UsageError("name either --profile or --mutator: one of them says how the series goes on")
    if settings and mutator is None:
        raise click.UsageError("--set is for a --mutator")
    with _show.progress("making", None, "files") as update:
        made = dataset.mutate(
            series,
            output,
            profile=profile,
            mutator=mutator,
            parameters=settings,
            generations=generations,
            users=users,
            seed=seed,
            memory_limit=memory,
            force=force,
            progress=update,
        )
    _tables.show_made(made, as_json)
