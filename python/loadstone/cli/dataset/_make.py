"""``loadstone dataset profile`` and ``create``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli._command import Command
from loadstone.cli._types import Count, Number
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


@click.command(cls=Command)
@click.argument("file", type=FILE)
@output_option
@click.option(
    "--runs/--no-runs", default=True, help="Also keep the lengths of runs of new chunks and of others."
)
@force_option
@_show.json_option
def profile(file: Path, output: Path, runs: bool, force: bool, as_json: bool) -> None:
    """Write what a series is like, without names and content.

    A profile has histograms of new, deleted and modified files for every snapshot, with states, change
    patterns, duplicates, sizes and compressibility. It is small and can be published: names are not in it,
    extensions that are not widely known are numbered, and fingerprints are left out. What is made by it has
    runs of new chunks as long as real ones, which deduplicators that store runs of chunks feel, unless
    --no-runs leaves them out.

    \b
    Example:
      loadstone dataset profile site.fst -o site.profile

    --json prints what loadstone.dataset.profile returns.
    """
    from loadstone import dataset

    found = dataset.profile(file, output, runs=runs, force=force)
    if as_json:
        _show.show_json(found)
    else:
        _tables.show_profile(found)
        click.echo(f"\n{output}: {_show.human_bytes(output.stat().st_size)}")


@click.command(cls=Command)
@click.argument("profile", type=PROFILE)
@output_option
@click.option("--generations", type=Count(1), help="Snapshots to make [as many as the profile has].")
@seed_option
@click.option(
    "--scale",
    type=Number(0, min_open=True),
    default=1.0,
    show_default=True,
    help="So many times as many files as the profile has.",
)
@users_option
@click.option("--duplicates", help="Of a preset: 1=90,2=7,4=3, or a file of DEDISgen or zdb -S [none].")
@click.option(
    "--compress", type=Number(1), help="Of a preset: how many times smaller codecs make chunks [1]."
)
@memory_option
@force_option
@_show.json_option
def create(
    profile: Path | str,
    output: Path,
    generations: int | None,
    seed: int,
    scale: float,
    users: int,
    duplicates: str | None,
    compress: float | None,
    memory: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make a series that is like a profile; no real data is needed.

    The first snapshot is the profile's change of an empty tree; each further one is the next change. Beyond
    the changes of the profile, one of them is drawn at random. Files to delete and modify have the
    characteristics of the profile; where no file has all, the best match. The output counts these.

    preset:NAME in place of a file is one of the six datasets of Tarasov's thesis, as far as its tables go:
    kernels, centos, home, macos, system-logs and sources. loadstone dataset presets lists what is assumed
    beyond them.

    \b
    Example:
      loadstone dataset create site.profile --generations 30 --seed 7 -o year.fst
      loadstone dataset create preset:kernels --generations 10 --scale 0.1 -o kernels.fst

    --json prints what loadstone.dataset.create returns.
    """
    from loadstone import dataset

    with _show.progress("making", None, "files") as update:
        made = dataset.create(
            profile,
            output,
            generations=generations,
            seed=seed,
            scale=scale,
            users=users,
            duplicates=duplicates,
            compress=compress,
            memory_limit=memory,
            force=force,
            progress=update,
        )
    _tables.show_made(made, as_json)
