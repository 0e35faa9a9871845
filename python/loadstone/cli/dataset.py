"""``loadstone dataset``: file trees with their chunks over generations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from loadstone.cli import _show

if TYPE_CHECKING:
    from loadstone.dataset import Described, Profiled, Snapshot, Verified

# In the order of table 4.2.
_TRANSITIONS = ("n", "nm", "nu", "nd", "mu", "md", "mm", "um", "ud", "uu", "dn", "d")
_FILE = click.Path(dir_okay=False, path_type=Path)
_output = click.option("-o", "--output", required=True, type=_FILE, help="The file to write.")
_force = click.option("--force", is_flag=True, help="Overwrite the output.")


@click.group(name="dataset")
def command() -> None:
    """Scan, model, evolve and write file trees as deduplicators and backup programs meet them.

    \b
    Example:
      loadstone dataset scan backups/mon backups/tue backups/wed -o site.fst
      loadstone dataset profile site.fst -o site.profile
      loadstone dataset create site.profile --generations 30 --seed 7 -o year.fst
      loadstone dataset write year.fst --all --to /mnt/target
      loadstone dataset verify /mnt/target --profile site.profile
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


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_output
@_force
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
        show_profile(found)
        click.echo(f"\n{output}: {_show.human_bytes(output.stat().st_size)}")


@command.command()
@click.argument("profile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_output
@click.option("--generations", type=click.IntRange(1), help="Snapshots to make [as many as the profile has].")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="So many times as many files as the profile has.",
)
@_force
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
    show_snapshots(made["snapshots"])
    wanted = sum(one["wanted"] for one in made["generations"])
    best = sum(one["best_match"] for one in made["generations"])
    missing = sum(one["missing"] for one in made["generations"])
    click.echo(
        f"\n{wanted:,} files deleted and modified, {best:,} of them best matches"
        + (f"; {missing:,} were not there" if missing else "")
    )


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--to", required=True, type=click.Path(path_type=Path), help="A new or empty directory; - with --tar."
)
@click.option(
    "--snapshot", type=click.IntRange(0), multiple=True, help="Which one, from 0; repeatable [last]."
)
@click.option("--all", "every", is_flag=True, help="All snapshots, in TO/000, TO/001, ...")
@click.option("--tar", is_flag=True, help="Write tar archives.")
@click.option("--only-changed", is_flag=True, help="Only files that are new or modified.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the content of a scanned series."
)
@click.option("--threads", type=click.IntRange(1), help="Threads that write [all CPUs].")
@_force
@_show.json_option
def write(
    file: Path,
    to: Path,
    snapshot: tuple[int, ...],
    every: bool,
    tar: bool,
    only_changed: bool,
    seed: int,
    threads: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write snapshots of a series as files, or as tar archives.

    Content is made from the numbers of chunks: the same number has the same bytes, others differ, each
    compresses as far as it was seen to, and FastCDC cuts them where they end. The same series gives the
    same files whatever the number of threads. One snapshot goes to --to itself, several to directories in
    it. --force overwrites archives only.

    \b
    Example:
      loadstone dataset write year.fst --all --to /mnt/target
      loadstone dataset write year.fst --snapshot 3 --only-changed --tar --to - | restic backup --stdin

    --json prints what loadstone.dataset.write returns.
    """
    from loadstone import dataset

    if every and snapshot:
        raise click.UsageError("--all and --snapshot: give one of them")
    if str(to) == "-" and (not tar or as_json):
        raise click.UsageError("--to -: standard output takes an archive (--tar), and then no --json")
    which: int | list[int] | Literal["all", "last"] = "all" if every else "last"
    if snapshot:
        which = snapshot[0] if len(snapshot) == 1 else list(snapshot)
    with _show.progress("writing", None) as update:
        written = dataset.write(
            file,
            to,
            snapshots=which,
            tar=tar,
            only_changed=only_changed,
            seed=seed,
            threads=threads,
            force=force,
            progress=lambda done, of: update(done),
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


@command.command()
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--profile",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
        show_verified(found)
    if not found["ok"]:
        raise click.exceptions.Exit(1)


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


def show_profile(found: Profiled) -> None:
    """Prints the transitions and patterns of a profile as tables 4.2 and 4.3 of the thesis have them."""
    from rich.table import Table

    from loadstone.dataset import PATTERNS

    later = found["steps"][1:]
    click.echo(
        f"{len(found['steps'])} snapshots, {found['steps'][0]['new']:,} files in the first; since then "
        f"{sum(step['new'] for step in later):,} new, {sum(step['modified'] for step in later):,} modified, "
        f"{sum(step['deleted'] for step in later):,} deleted"
    )
    markov = found["markov"]
    rows = [("transition", markov and {name: markov[name] for name in _TRANSITIONS})]
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


def show_verified(found: Verified) -> None:
    """Prints the parameters after the last snapshot, those of the series, and whatever is off before."""
    from rich.table import Table

    last = max((one["snapshot"] for one in found["parameters"] if one["snapshot"] is not None), default=None)
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for name in ("snapshot", "asked", "achieved", "off", ""):
        table.add_column(name, justify="right")
    for one in found["parameters"]:
        if one["snapshot"] in (None, last) or not one["ok"]:
            whole = one["asked"] == int(one["asked"]) and one["achieved"] == int(one["achieved"])
            table.add_row(
                one["name"],
                "" if one["snapshot"] is None else str(one["snapshot"]),
                *(f"{value:,.0f}" if whole else f"{value:,.3f}" for value in (one["asked"], one["achieved"])),
                f"{one['error_percent']:.2f}",
                "" if one["ok"] else "too far",
            )
    _show.console().print(table)
    click.echo(
        f"\ncounts of 1,000 and more, and ratios: {found['worst_percent']:.2f} % off at most; "
        f"counts after the last snapshot {found['mean_percent']:.2f} % on average"
    )
