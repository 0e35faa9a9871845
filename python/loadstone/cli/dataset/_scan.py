"""``loadstone dataset scan`` and ``describe``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli._command import Command, Of
from loadstone.cli._types import Count
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import FILE, FOLDER, force_option, output_option


@click.command(cls=Command)
@click.argument("paths", metavar="[PATH...]", nargs=-1, type=click.Path(exists=True, path_type=Path))
@output_option
@click.option("--snapshots", type=FOLDER, help="In place of PATH: a directory whose children are snapshots.")
@click.option(
    "--order",
    cls=Of,
    of=("--snapshots",),
    type=click.Choice(["name", "reverse", "created"]),
    default="name",
    show_default=True,
    help="Order of --snapshots; reverse where 0 is the newest.",
)
@click.option("--git", type=FOLDER, help="In place of PATH: a git repository, each commit a snapshot.")
@click.option(
    "--revisions",
    cls=Of,
    of=("--git",),
    metavar="A..B",
    help="Which commits, by first parents [all before HEAD].",
)
@click.option(
    "--tags",
    cls=Of,
    of=("--git",),
    metavar="PATTERN",
    help="The commits of these tags, in order of versions.",
)
@click.option(
    "--every",
    cls=Of,
    of=("--git",),
    type=Count(1),
    default=1,
    show_default=True,
    help="Only every Nth commit.",
)
@click.option(
    "--chunking", default="fastcdc", show_default=True, help="fastcdc, fastcdc:2k,8k,64k or fixed:4k."
)
@click.option(
    "--bits", type=Count(48, 256), default=96, show_default=True, help="Bits of a fingerprint, 48 to 256."
)
@click.option(
    "--compress",
    type=click.Choice(["sample", "whole", "none"]),
    default="sample",
    show_default=True,
    help="Measure how far chunks compress: some, or every whole chunk.",
)
@click.option("--key", type=FILE, help="Key of fingerprints, 16 bytes and more [drawn and forgotten].")
@click.option(
    "--strip",
    type=Count(0),
    default=0,
    show_default=True,
    help="Leave so many directories away from paths in archives.",
)
@click.option("--reread", is_flag=True, help="Read files again that an earlier snapshot has unchanged.")
@click.option("--threads", type=Count(1, 4096), help="Threads that read [all CPUs].")
@force_option
@_show.json_option
def scan(
    paths: tuple[Path, ...],
    output: Path,
    snapshots: Path | None,
    order: str,
    git: Path | None,
    revisions: str | None,
    tags: str | None,
    every: int,
    chunking: str,
    bits: int,
    compress: str,
    key: Path | None,
    strip: int,
    reread: bool,
    threads: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Scan directories, archives, hash files or commits, each as one snapshot of a series.

    PATH is a directory (a live tree, a backup, a snapshot of a file system), a tar archive or an FSL hash
    file; files may be compressed (gzip, zstd, xz, bzip2). The output has names, sizes and keyed fingerprints
    of chunks, and how far each chunk compresses, measured on a sample by zstd at level 1. What cannot be read
    is counted and named; the exit status is then 1.

    Whoever has the key can look for known content in the output. Keep the key to yourself, or leave --key
    out.

    \b
    Example:
      loadstone dataset scan backups/mon backups/tue backups/wed -o site.fst
      loadstone dataset scan Django-*.tar.gz --strip 1 -o django.fst
      loadstone dataset scan --snapshots /srv/.snapshots --order created -o srv.fst
      loadstone dataset scan --git linux --tags 'v5.*' -o kernels.fst

    --json prints what loadstone.dataset.scan returns.
    """
    from loadstone import dataset

    if (len(paths) > 0) + (snapshots is not None) + (git is not None) != 1:
        raise click.UsageError("give PATH..., --snapshots or --git: one of them")
    if git is not None and (strip or reread):
        raise click.UsageError("--strip and --reread say nothing of commits: leave them out")
    if strip and all(path.is_dir() for path in paths):
        raise click.UsageError(
            "--strip says nothing of directories, only of archives and hash files: leave it out"
        )
    with _show.progress("scanning", None) as update:
        if git is not None:
            found = dataset.scan_git(
                git,
                output,
                revisions=revisions,
                tags=tags,
                every=every,
                chunking=chunking,
                bits=bits,
                compress=compress,
                key=key,
                threads=threads,
                force=force,
                progress=update,
            )
        else:
            found = dataset.scan(
                list(paths) if snapshots is None else dataset.snapshots(snapshots, order),
                output,
                chunking=chunking,
                bits=bits,
                compress=compress,
                key=key,
                strip=strip,
                settled=None if reread else 60.0,
                threads=threads,
                force=force,
                progress=update,
            )
    if as_json:
        _show.show_json(found)
    else:
        _tables.show(found)
    if _tables.show_troubles(found):
        raise click.exceptions.Exit(1)


@click.command(cls=Command)
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
