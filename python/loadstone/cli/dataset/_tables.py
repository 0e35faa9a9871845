"""Series, profiles and comparisons as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loadstone.cli import _show

if TYPE_CHECKING:
    from loadstone.dataset import Created, Described, Profiled, Snapshot, Verified


def show(found: Described) -> None:
    """Prints a series as a small table."""
    show_snapshots(found["snapshots"])


def show_snapshots(snapshots: list[Snapshot]) -> None:
    """Prints what deduplicators see of snapshots."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("snapshot")
    heads = ("directories", "files", "bytes", "all files", "chunks", "unique", "1 dup.", "2 dup.")
    for name in (*heads, "dedup", "compress"):
        table.add_column(name, justify="right")
    for number, one in enumerate(snapshots):
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
    warn_of_unread(snapshots)


def warn_of_unread(snapshots: list[Snapshot]) -> None:
    """Says of a series, or a profile of one, that lacks what its scan could not read."""
    if unread := sum(one.get("unreadable", 0) for one in snapshots):
        files = _show.counted(unread, "file")
        click.echo(f"warning: {files} could not be read when it was scanned", err=True)


def show_made(made: Created, as_json: bool) -> None:
    """Prints a series that was made, and how."""
    if as_json:
        _show.show_json(made)
        return
    show_snapshots(made["snapshots"])
    wanted, best, missing, again = (
        sum(one[key] for one in made["generations"]) for key in ("wanted", "best_match", "missing", "again")
    )
    if wanted:
        click.echo(
            f"\n{wanted:,} files deleted or modified; {best:,} of them match the profile only in part"
            + (f"; {missing:,} more had no file left" if missing else "")
            + (f"; {again:,} were created again under an old name" if again else "")
        )


def show_troubles(found: Described | Verified) -> bool:
    """Prints what could not be read as it stood; tells whether there was any."""
    troubled = False
    for one in found.get("scanned", ()):
        for note in one["notes"]:
            click.echo(f"note: {note}", err=True)
        if one["submodules"]:
            click.echo(f"note: {one['path']}: {one['submodules']:,} submodules left out", err=True)
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


def show_profile(found: Profiled) -> None:
    """Prints the transitions and patterns of a profile as tables 4.2 and 4.3 of the thesis have them."""
    from rich.table import Table

    from loadstone.dataset import PATTERNS, TRANSITIONS

    later = found["steps"][1:]
    click.echo(
        f"{len(found['steps'])} snapshots, {found['steps'][0]['new']:,} files in the first; since then "
        f"{sum(step['new'] for step in later):,} new, {sum(step['modified'] for step in later):,} modified, "
        f"{sum(step['deleted'] for step in later):,} deleted"
    )
    markov = found["markov"]
    rows = [("transition", markov and {name: markov[name] for name in TRANSITIONS})]
    if found["patterns"]:
        rows.append(("pattern", dict(zip(PATTERNS, found["patterns"], strict=True))))
    for title, shares in rows:
        if shares:
            table = Table(box=None, pad_edge=False)
            table.add_column(title)
            for name in shares:
                table.add_column(name.upper(), justify="right")
            table.add_row("percent", *(f"{percent:.2f}" for percent in shares.values()))
            click.echo()
            _show.console().print(table)
    warn_of_unread(found["snapshots"])


def show_verified(found: Verified) -> None:
    """Prints the parameters after the last snapshot, those of the series, and whatever is off before."""
    from rich.table import Table

    from loadstone.dataset import VERDICTS

    last = found["snapshots"]["compared"] - 1
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for name in ("snapshot", "expected", "found", "difference %"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for one in found["parameters"]:
        if one["snapshot"] in (None, last) or not one["ok"]:
            asked, error = one["asked"], one["error_percent"]
            whole = all(value is None or value == int(value) for value in (asked, one["achieved"]))
            table.add_row(
                one["name"],
                "" if one["snapshot"] is None else str(one["snapshot"]),
                *(
                    "-" if value is None else f"{value:,.0f}" if whole else f"{value:,.3f}"
                    for value in (asked, one["achieved"])
                ),
                "-" if error is None else f"{error:.2f}",
                VERDICTS[(one["judged"], one["ok"])],
            )
    _show.console().print(table)
    click.echo(
        f"\ndifference of ratios and of counts of 1,000 or more: {found['worst_percent']:.2f} % at most; "
        f"of counts after the last snapshot: {found['mean_percent']:.2f} % on average"
    )
    told = found["snapshots"]
    if told["asked"] != told["achieved"]:
        click.echo(
            f"{told['asked']} snapshots were expected and {told['achieved']} found: the first "
            f"{told['compared']} were compared, without transitions and patterns"
        )


def show_presets() -> None:
    """Prints what tables 4.1 to 4.3 of the thesis have, and what is assumed beyond them."""
    from rich.table import Table

    from loadstone import dataset

    known = list(dataset.PRESETS.values())
    general = Table(box=None, pad_edge=False)
    for title in ("preset", "what"):
        general.add_column(title)
    for title in ("snapshots", "GB each", "files each", "mean size", "deviation"):
        general.add_column(title, justify="right")
    for one in known:
        size = _show.human_bytes(round(one.mean_size))
        numbers = (
            str(one.snapshots),
            f"{one.gigabytes:g}",
            f"{round(one.thousands * 1000):,}",
            size,
            f"{one.sigma:g}",
        )
        general.add_row(one.name, one.what, *numbers)
    moves = Table(box=None, pad_edge=False)
    patterns = Table(box=None, pad_edge=False)
    for table, names in ((moves, dataset.TRANSITIONS[:-1]), (patterns, dataset.PATTERNS)):
        table.add_column("percent")
        for name in names:
            table.add_column(name.upper(), justify="right")
    for one in known:
        nm, nu, nd = one.new
        mu, md, mm = one.modified
        um, ud, _ = one.unmodified
        row = (one.n, nm, nu, nd, mu, md, mm, um, ud, 100 - um - ud, one.dn)
        moves.add_row(one.name, *(f"{percent:.2f}" for percent in row))
        patterns.add_row(one.name, *(f"{percent:g}" for percent in one.patterns))
    for table in (general, moves, patterns):
        _show.console().print(table)
        click.echo()
    for text in (*dataset.ASSUMED, *(f"{one.name}: {one.note}" for one in known if one.note)):
        click.echo(click.wrap_text(text, 100, "- ", "  "))
