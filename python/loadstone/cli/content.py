"""``loadstone content``: what is stored, as stores that deduplicate and compress see it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli import _show
from loadstone.cli._command import Group
from loadstone.cli._types import SIZE

if TYPE_CHECKING:
    from loadstone.content import Found


@click.group(cls=Group, name="content")
def command() -> None:
    """Tell how far data deduplicates and compresses."""


@command.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option("--unit", type=SIZE, default="4k", show_default=True, help="Bytes of blocks.")
@click.option(
    "--piece",
    type=SIZE,
    default="128k",
    show_default=True,
    help="Bytes of the larger pieces for codecs.",
)
@click.option("--sample", type=SIZE, help="Read about so many bytes, spread evenly [all].")
@click.option(
    "--compress",
    type=SIZE,
    default="64m",
    show_default=True,
    help="Give codecs about so many bytes, spread evenly.",
)
@_show.json_option
def examine(
    paths: tuple[Path, ...], unit: int, piece: int, sample: int | None, compress: int, as_json: bool
) -> None:
    """Examine files, devices, and directories with all in them.

    Duplicates are found by blocks of --unit and by chunks that FastCDC cuts, 8 KiB on average. Compression is
    that of lz4, zstd at level 1 and zlib at level 6, over blocks and over larger pieces. It takes some 80 MB
    of memory, however much is read. In a sample fewer duplicates are found, because their twins are not read.

    \b
    Example:
      loadstone content examine /srv/images
      loadstone content examine /dev/vdb --unit 64k --sample 20g --json

    --json prints what loadstone.content.examine returns. The exit status is 1 where something could not be
    read.
    """
    from loadstone import content

    with _show.progress("reading", None) as update:
        found = content.examine(
            list(paths),
            unit=unit,
            piece=piece,
            sample=sample,
            compress=compress,
            progress=update,
        )
    if as_json:
        _show.show_json(found)
    else:
        show(found)
    if found["unreadable"]:
        raise click.exceptions.Exit(1)


def show(found: Found) -> None:
    """Prints what was found as two small tables."""
    from rich.table import Table

    size = _show.human_bytes
    read = "" if found["read"] == found["bytes"] else f", {size(found['read'])} of them read"
    click.echo(
        f"{found['files']:,} files, {size(found['bytes'])}{read}; {found['zero_blocks']:,} zero blocks"
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("duplicates")
    for name in ("chunks", "unique", "unique bytes", "ratio"):
        table.add_column(name, justify="right")
    for title, one in ((f"blocks of {size(found['unit'])}", found["fixed"]), ("FastCDC", found["fastcdc"])):
        about = "about " if one["deviation"] else ""
        table.add_row(
            title,
            f"{one['chunks']:,}",
            f"{about}{one['unique_chunks']:,}",
            size(one["unique_bytes"]),
            f"{one['ratio']:.3f}",
        )
    click.echo()
    _show.console().print(table)
    table = Table(box=None, pad_edge=False)
    table.add_column("compression")
    for name in ("pieces", "lz4", "zstd -1", "zlib -6"):
        table.add_column(name, justify="right")
    for bytes_, codecs in ((found["unit"], found["by_unit"]), (found["piece"], found["by_piece"])):
        table.add_row(f"pieces of {size(bytes_)}", f"{codecs['pieces']:,}", *_ratios(codecs))
    click.echo()
    _show.console().print(table)
    if found["unreadable"]:
        click.echo(f"warning: {found['unreadable']:,} could not be read: {found['reason']}", err=True)


def _ratios(codecs: Mapping[str, Any]) -> list[str]:
    return [f"{codecs[name]:.3f}" if name in codecs else "-" for name in ("lz4", "zstd", "zlib")]
