"""``loadstone dataset write``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click

from loadstone.cli import _show
from loadstone.cli._command import Command
from loadstone.cli._confirm import confirm_rooms, yes_option
from loadstone.cli._types import SEED, Count, once
from loadstone.cli.dataset._options import FILE, force_option


@click.command(cls=Command)
@click.argument("file", type=FILE)
@click.option(
    "--to",
    required=True,
    type=click.Path(path_type=Path),
    help="A new or empty directory; of several snapshots, where they go; - with --tar.",
)
@click.option("--snapshot", type=Count(0), multiple=True, help="Which one, from 0; repeatable [last].")
@click.option("--all", "every", is_flag=True, help="All snapshots, in TO/000, TO/001, ...")
@click.option("--tar", is_flag=True, help="Write tar archives.")
@click.option("--hashes", is_flag=True, help="Write FSL hash files: chunks without content.")
@click.option("--only-changed", is_flag=True, help="Only files that are new or modified.")
@click.option("--seed", type=SEED, help="Of the content of a scanned series; default 0.")
@click.option("--threads", type=Count(1, 4096), help="Threads that write [all CPUs].")
@force_option
@yes_option
@_show.json_option
def write(
    file: Path,
    to: Path,
    snapshot: tuple[int, ...],
    every: bool,
    tar: bool,
    hashes: bool,
    only_changed: bool,
    seed: int | None,
    threads: int | None,
    force: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write snapshots of a series as files, or as tar archives.

    Content is made from the numbers of chunks. The same number gives the same bytes, other numbers give other
    bytes. Each chunk compresses as the scan measured, and FastCDC cuts chunks where they end. The same series
    gives the same files for any number of threads. One snapshot goes to --to itself, several go to
    directories in it. Holes stay holes, in archives too (GNU format). --force overwrites archives and hash
    files only. A directory has a file .loadstone-unfinished until it is complete; scan and verify refuse it
    until then.

    \b
    Example:
      loadstone dataset write year.fst --all --to /mnt/target
      loadstone dataset write year.fst --all --hashes --to year.hashes
      loadstone dataset write year.fst --snapshot 3 --only-changed --tar --to - | restic backup --stdin

    --json prints what loadstone.dataset.write returns.
    """
    from loadstone import dataset
    from loadstone.plan.writes import room_of

    if every and snapshot:
        raise click.UsageError("--all and --snapshot: give one of them")
    if tar and hashes:
        raise click.UsageError("--tar and --hashes: give one of them")
    if str(to) == "-" and (not tar or as_json):
        raise click.UsageError("--to -: standard output takes an archive (--tar), and then no --json")
    once("--snapshot", map(str, snapshot))
    which: int | list[int] | Literal["all", "last"] = "all" if every else "last"
    if snapshot:
        which = snapshot[0] if len(snapshot) == 1 else list(snapshot)
    if str(to) != "-":
        series = dataset.describe(file)
        chosen = series["snapshots"]
        if not every:
            chosen = [chosen[one] for one in snapshot or (len(chosen) - 1,) if 0 <= one < len(chosen)]
        size = sum(_most(one, series["bits"], tar, hashes) for one in chosen)
        # Holes are not written, so what does not fit may fit after all, which writing tells.
        confirm_rooms(room_of(str(to.absolute()), size, only_changed or tar or hashes), yes)
    with _show.progress("writing", None) as update:
        written = dataset.write(
            file,
            to,
            snapshots=which,
            tar=tar,
            hashes=hashes,
            only_changed=only_changed,
            seed=seed,
            threads=threads,
            force=force,
            progress=update,
        )
    if as_json:
        _show.show_json(written)
    elif str(to) != "-":
        for told in written:
            counts = told["written"]
            click.echo(
                f"{told['path']}: {counts['files']:,} files, {_show.human_bytes(counts['bytes'])}, "
                f"{counts['directories']:,} directories, {counts['links']:,} links"
            )
            if counts["left_out"] or counts["broken_links"]:
                click.echo(
                    f"warning: {counts['left_out']:,} left out (devices, and what could not be scanned), "
                    f"{counts['broken_links']:,} hard links to what is not written",
                    err=True,
                )


def _most(snapshot: Mapping[str, Any], bits: int, tar: bool, hashes: bool) -> int:
    """Bytes of a snapshot as it is written, at most."""
    alone = snapshot["alone"]
    entries = alone["files"] + snapshot["directories"]
    if hashes:
        # A head, 100 bytes and the path of each entry, 5 and the fingerprint of each chunk.
        return int(
            (1 << 14) + entries * 100 + snapshot["path_bytes"] + alone["chunks"] * (5 + max(12, bits // 8))
        )
    # Of each entry a header, one for a long name, that name, and what fills its blocks; links have two names.
    return int(alone["bytes"] + (entries * 2048 + 2 * snapshot["path_bytes"] if tar else 0))
