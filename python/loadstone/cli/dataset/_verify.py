"""``loadstone dataset verify``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli._command import Command, Of
from loadstone.cli._types import Count, Percent
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import PROFILE

LEAST_CHUNK = 1 << 10


@click.command(cls=Command)
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option("--profile", type=PROFILE, help="What was asked for.")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="The real snapshots, in order, or a directory with 000, 001, ...; repeatable.",
)
@click.option(
    "--chunk-sizes",
    default="4k,8k,16k,32k,64k,128k",
    show_default=True,
    help="Sizes of chunks for dedup ratios, or none.",
)
@click.option(
    "--tolerance", type=Percent(0), default=10.0, show_default=True, help="Percent that counts may be off."
)
@click.option("--threads", type=Count(1, 4096), help="Threads that read [all CPUs].")
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="Also write an HTML page with plots."
)
@click.option("--force", cls=Of, of=("--report",), is_flag=True, help="Overwrite the report.")
@_show.json_option
def verify(
    paths: tuple[Path, ...],
    profile: Path | str | None,
    against: tuple[Path, ...],
    chunk_sizes: str,
    tolerance: float,
    threads: int | None,
    report: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare the statistics of what was written with a profile, or with real data: asked against achieved.

    Bytes are not checked, so damaged files may pass. A series has each byte: write it again and compare.

    \b
      loadstone dataset write year.fst --snapshot 1 --to again
      diff -r again /mnt/target/001

    PATH is a snapshot (directory or tar archive), several in order, or a directory with 000, 001 and so
    on and nothing else. Counts of all snapshots up to each one are compared, dedup and compress ratio,
    transitions and change patterns, and the distributions of sizes, depths and types. Classes of less
    than 1,000 chunks may be off by three standard deviations. Dedup ratios for fixed blocks and FastCDC
    of several sizes, and ratios of codecs, are compared with those of the real data if --against names
    it. Otherwise they are only shown. The exit status is 1 if something is off by more than --tolerance, or
    could not be read.

    \b
    Examples:
      loadstone dataset verify /mnt/target --profile site.profile --report verified.html
      loadstone dataset verify /mnt/target --against backups/mon --against backups/tue

    --json prints what loadstone.dataset.verify returns.
    """
    from loadstone import _values, dataset
    from loadstone.errors import Error

    if profile is None and not against:
        raise click.UsageError("nothing to compare with: give --profile, or --against the real snapshots")
    parts = [] if chunk_sizes == "none" else chunk_sizes.split(",")
    try:
        known = [_values.size(part, LEAST_CHUNK) for part in parts]
    except Error as error:
        what = "write it like 4k,64k, of 1k or more, or none"
        raise click.UsageError(f"--chunk-sizes {chunk_sizes}: {error}; {what}") from None
    if report is not None and report.exists() and not force:
        raise click.UsageError(f"--report {report}: exists; give another name, or --force to replace it")
    with _show.progress("scanning", None) as update:
        found = dataset.verify(
            paths[0] if len(paths) == 1 else list(paths),
            profile,
            against=list(against) or None,
            chunk_sizes=known,
            tolerance=tolerance,
            threads=threads,
            progress=update,
        )
    if report is not None:
        dataset.write_report(found, report, source=", ".join(path.name for path in paths), force=force)
    if as_json:
        _show.show_json(found)
    else:
        _tables.show_verified(found)
    _tables.show_troubles(found)
    if not found["ok"]:
        raise click.exceptions.Exit(1)
