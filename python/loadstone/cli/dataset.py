"""``loadstone dataset``: file trees with their chunks over generations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.cli import _show

if TYPE_CHECKING:
    from loadstone.dataset import Described

_FILE = click.Path(dir_okay=False, path_type=Path)
_output = click.option("-o", "--output", required=True, type=_FILE, help="The file to write.")
_force = click.option("--force", is_flag=True, help="Overwrite the output.")


@click.group(name="dataset")
def command() -> None:
    """Scan, model, evolve and write file trees as deduplicators and backup programs meet them.

    \b
    Example:
      loadstone dataset scan backups/mon backups/tue backups/wed -o site.fst
      loadstone dataset describe site.fst
    """


@command.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@_output
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
@_force
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
        show(found)
    if show_troubles(found):
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
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
        show(found)


def show(found: Described) -> None:
    """Prints a series as a small table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("snapshot")
    heads = ("directories", "files", "bytes", "all files", "chunks", "unique", "1 dup.", "2 dup.")
    for name in (*heads, "dedup", "compress"):
        table.add_column(name, justify="right")
    for number, one in enumerate(found["snapshots"]):
        alone, all_ = one["alone"], one["together"]
        counts = (all_["files"], all_["chunks"], all_["unique"], all_["dup1"], all_["dup2"])
        table.add_row(
            one["label"] or str(number),
            f"{one['directories']:,}",
            f"{alone['files']:,}",
            _show.human_bytes(alone["bytes"]),
            *(f"{count:,}" for count in counts),
            f"{all_['dedup_ratio']:.3f}",
            f"{all_['compress_ratio']:.3f}",
        )
    _show.console().print(table)


def show_troubles(found: Described) -> bool:
    """Prints what could not be read as it stood; tells whether there was any."""
    troubled = False
    for one in found.get("scanned", ()):
        counts = [
            f"{count:,} {what}"
            for count, what in (
                (one["unreadable"], "could not be read"),
                (one["vanished"], "vanished"),
                (one["changed"], "changed meanwhile"),
            )
            if count
        ]
        if counts:
            troubled = True
            click.echo(f"warning: {one['path']}: {', '.join(counts)}", err=True)
            for path, reason in one["troubles"]:
                click.echo(f"  {path}: {reason}", err=True)
    return troubled
