"""``loadstone dataset verify``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import FILE


@click.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--profile",
    required=True,
    type=FILE,
    help="What was asked for.",
)
@click.option(
    "--tolerance", type=float, default=10.0, show_default=True, help="Percent that counts may be off."
)
@click.option("--threads", type=click.IntRange(1), help="Threads that read [all CPUs].")
@_show.json_option
def verify(
    paths: tuple[Path, ...], profile: Path, tolerance: float, threads: int | None, as_json: bool
) -> None:
    """Scan what was written and compare it with a profile: asked against achieved.

    PATH is a snapshot (directory or tar archive), several in order, or a directory with 000, 001 and so
    on. Counts of all snapshots up to each one are compared, dedup and compress ratio, transitions and
    change patterns, and the distributions of sizes, depths and types. Classes of less than 1,000 chunks
    may be off by three standard deviations. The exit status is 1 when something is off by more than
    --tolerance.

    \b
    Example:
      loadstone dataset verify /mnt/target --profile site.profile

    --json prints what loadstone.dataset.verify returns.
    """
    from loadstone import dataset

    with _show.progress("scanning", None) as update:
        found = dataset.verify(
            paths[0] if len(paths) == 1 else list(paths),
            profile,
            tolerance=tolerance,
            threads=threads,
            progress=lambda done, of: update(done),
        )
    if as_json:
        _show.show_json(found)
    else:
        _tables.show_verified(found)
    if not found["ok"]:
        raise click.exceptions.Exit(1)
