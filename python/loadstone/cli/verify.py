"""``loadstone verify``: whether targets still hold what a run wrote."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli._command import Command


@click.command(cls=Command)
@click.option(
    "--on",
    "targets",
    metavar="TARGET",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Where a target of the run is now; of several all, in their order [where the run had them].",
)
@click.option(
    "--state",
    required=True,
    type=click.Path(path_type=Path),
    help="What the run kept with --verify-state.",
)
@click.option(
    "--after-crash",
    is_flag=True,
    help="Power was lost: synced data must be there; of other data any written generation is accepted.",
)
@_show.json_option
def command(targets: tuple[Path, ...], state: Path, after_crash: bool, as_json: bool) -> None:
    """Read targets from end to end and compare them with what a run wrote.

    Each block is right, torn (of several writes), stale (an older write), lost (zeros), misplaced (of another
    place), foreign (of another run), unwritten (a write that was not made), or corrupt.

    \b
    Example:
      loadstone run randrw --on /mnt/new/file --size 1g --duration 30s --verify-state s.verify
      loadstone verify --state s.verify
      loadstone verify --state s.verify --after-crash --on /mnt/again/file

    The exit status is 1 where anything is wrong, or where nothing could be compared. --json prints what
    loadstone.verification.verify_targets returns (docs/explanation/verification.md).
    """
    from loadstone.verification import is_damaged, lines, verify_targets

    with _show.progress("verifying", None) as update:
        found = verify_targets(state, targets, after_crash=after_crash, progress=update)
    if as_json:
        _show.show_json(found)
    else:
        if found["running"]:
            click.echo("the state was kept while its run went on: later writes are taken for right")
        for line in lines(found):
            click.echo(line)
    if is_damaged(found) or found["unread"] or not found["checked"]:
        raise click.exceptions.Exit(1)
