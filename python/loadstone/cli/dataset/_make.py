"""``loadstone dataset profile`` and ``create``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import FILE, force_option, output_option


@click.command()
@click.argument("file", type=FILE)
@output_option
@force_option
@_show.json_option
def profile(file: Path, output: Path, force: bool, as_json: bool) -> None:
    """Write what a series is like, without names and content.

    A profile has histograms of new, deleted and modified files for every snapshot, with states, change
    patterns, duplicates, sizes and compressibility. It is small and can be published: names are not in it,
    extensions that are not widely known are numbered, and fingerprints are left out.

    \b
    Example:
      loadstone dataset profile site.fst -o site.profile

    --json prints what loadstone.dataset.profile returns.
    """
    from loadstone import dataset

    found = dataset.profile(file, output, force=force)
    if as_json:
        _show.show_json(found)
    else:
        _tables.show_profile(found)
        click.echo(f"\n{output}: {_show.human_bytes(output.stat().st_size)}")


@click.command()
@click.argument("profile", type=FILE)
@output_option
@click.option("--generations", type=click.IntRange(1), help="Snapshots to make [as many as the profile has].")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="So many times as many files as the profile has.",
)
@force_option
@_show.json_option
def create(
    profile: Path,
    output: Path,
    generations: int | None,
    seed: int,
    scale: float,
    force: bool,
    as_json: bool,
) -> None:
    """Make a series that is like a profile; no real data is needed.

    The first snapshot is the profile's change of an empty tree, every further one the next change; beyond
    those of the profile they are drawn among them. Files to delete and modify have the characteristics that
    the profile asks for, or match most of them; how many such best matches there were is told.

    \b
    Example:
      loadstone dataset create site.profile --generations 30 --seed 7 -o year.fst

    --json prints what loadstone.dataset.create returns.
    """
    from loadstone import dataset

    with _show.progress("making", generations, "generations") as update:
        made = dataset.create(
            profile,
            output,
            generations=generations,
            seed=seed,
            scale=scale,
            force=force,
            progress=lambda done, of: update(done),
        )
    if as_json:
        _show.show_json(made)
        return
    _tables.show_snapshots(made["snapshots"])
    wanted = sum(one["wanted"] for one in made["generations"])
    best = sum(one["best_match"] for one in made["generations"])
    missing = sum(one["missing"] for one in made["generations"])
    click.echo(
        f"\n{wanted:,} files deleted and modified, {best:,} of them best matches"
        + (f"; {missing:,} were not there" if missing else "")
    )
