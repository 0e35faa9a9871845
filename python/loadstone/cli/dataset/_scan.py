"""``loadstone dataset scan`` and ``describe``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import FILE, force_option, output_option


@click.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@output_option
@click.option(
    "--chunking", default="fastcdc", show_default=True, help="fastcdc, fastcdc:2k,8k,64k or fixed:4k."
)
@click.option("--bits", type=int, default=96, show_default=True, help="Bits of a fingerprint, 48 to 256.")
@click.option(
    "--compress/--no-compress", default=True, show_default=True, help="Measure how far chunks compress."
)
@click.option(
    "--strip",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Leave so many directories away from paths in archives.",
)
@click.option("--threads", type=click.IntRange(1), help="Threads that read [all CPUs].")
@force_option
@_show.json_option
def scan(
    paths: tuple[Path, ...],
    output: Path,
    chunking: str,
    bits: int,
    compress: bool,
    strip: int,
    threads: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Scan directories and tar archives, each as one snapshot of a series.

    A directory may be a live tree, a backup, or a snapshot of a file system. Archives may be compressed
    (gzip, zstd, xz, bzip2). The output has names, sizes and keyed fingerprints of chunks, and how far each
    chunk compresses (whole, by zstd at level 1). What could not be read is counted and named; then the exit
    status is 1.

    \b
    Example:
      loadstone dataset scan backups/mon backups/tue backups/wed -o site.fst
      loadstone dataset scan Django-*.tar.gz --strip 1 -o django.fst

    --json prints what loadstone.dataset.scan returns.
    """
    from loadstone import dataset

    with _show.progress("scanning", None) as update:
        found = dataset.scan(
            list(paths),
            output,
            chunking=chunking,
            bits=bits,
            compress=compress,
            strip=strip,
            threads=threads,
            force=force,
            progress=lambda done, of: update(done),
        )
    if as_json:
        _show.show_json(found)
    else:
        _tables.show(found)
    if _tables.show_troubles(found):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("file", type=FILE)
@_show.json_option
def describe(file: Path, as_json: bool) -> None:
    """Tell what a series has, snapshot by snapshot.

    Chunks that occur once, twice and three times are counted over all snapshots up to each one.

    \b
    Example:
      loadstone dataset describe site.fst

    --json prints what loadstone.dataset.describe returns, with the same counts of each snapshot alone.
    """
    from loadstone import dataset

    found = dataset.describe(file)
    if as_json:
        _show.show_json(found)
    else:
        _tables.show(found)
