"""``loadstone study``: experiments that a file describes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from loadstone.cli import _show
from loadstone.cli._command import Command, Group
from loadstone.cli._types import DURATION, Folder, Share, pairs

FOLDER = Folder(path_type=Path)
BUDGET = click.option(
    "--budget", type=DURATION, help="Longest time of all runs; repeats are made as long as they fit."
)


@click.group(cls=Group, name="study")
def command() -> None:
    """Run experiments that a file describes: systems, workloads, factors, and repeats until it is sure.

    \b
    Example:
      loadstone study run mail.toml --dry-run
      loadstone study run mail.toml --out mail
      loadstone study show mail
      loadstone study resume mail
      loadstone study report mail
      loadstone study clean mail

    The format of the file is in docs/reference/formats/study.md.
    """


@command.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the study; made [its name].")
@click.option(
    "--set",
    "changes",
    metavar="NAME=VALUE",
    multiple=True,
    callback=pairs,
    help="Another value of a variable, or of a key by its dotted name (repeat.most=5). Repeatable.",
)
@BUDGET
@click.option("--allow-commands", is_flag=True, help="Let the file run commands, as you.")
@click.option(
    "--allow-destroy",
    metavar="DEVICE",
    multiple=True,
    type=click.Path(),
    help="A device that the study may make file systems on. Its content is lost. Repeatable.",
)
@click.option(
    "--allow-host-changes",
    is_flag=True,
    help="Let the file stop services, turn off swap, set parameters of the kernel, and drop caches.",
)
@click.option(
    "--install-resume",
    is_flag=True,
    help="Go on after a reboot, by a unit of systemd that removes itself when the study is over (root).",
)
@click.option("--dry-run", is_flag=True, help="Print every step of a block and the expected time, and stop.")
@_show.json_option
def run(
    file: Path,
    out: Path | None,
    changes: dict[str, str],
    budget: float | None,
    allow_commands: bool,
    allow_destroy: tuple[str, ...],
    allow_host_changes: bool,
    install_resume: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Perform a study file in a new folder.

    A file with faults is refused with all of them, before anything runs. Runs repeat until each listed
    metric is sure, or the cap is reached. The study survives Ctrl-C, kill -9 and a reboot: finished runs are
    kept, and loadstone study resume goes on. Nothing stays mounted or attached after any exit but kill -9,
    after which loadstone study clean or resume takes it back.

    A study file that runs commands is a program. Read it before you give --allow-commands.

    \b
    Example:
      loadstone study run mail.toml --dry-run
      loadstone study run mail.toml --out mail --budget 2h
      loadstone study run mkfs-matrix.toml --set device=/dev/vdb --allow-destroy /dev/vdb

    The exit status is 0 when all cells ran to their end, 1 when one was given up or the budget was used up.
    --json prints what loadstone.study.show returns.
    """
    from loadstone import study

    if dry_run:
        for name, given in (("--out", out), ("--budget", budget)):
            if given is not None:
                raise click.UsageError(f"{name}: means nothing with --dry-run, which makes nothing")
        told = study.plan(file, changes)
        _show.show_json(told) if as_json else _show_plan(told)
        return
    with _watch() as watch:
        told = study.run(
            file,
            out,
            changes=changes,
            budget=budget,
            allow_commands=allow_commands,
            allow_destroy=allow_destroy,
            allow_host_changes=allow_host_changes,
            install_resume=install_resume,
            watch=watch,
        )
    _end(told, out or Path(told["name"]), as_json)


@command.command(cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@BUDGET
@_show.json_option
def resume(folder: Path, budget: float | None, as_json: bool) -> None:
    """Go on with a study that was interrupted, with what was permitted when it began.

    \b
    Example:
      loadstone study resume mail
      loadstone study resume mail --budget 4h

    --budget counts the runs before, too. --json prints what loadstone.study.show returns.
    """
    from loadstone import study

    with _watch() as watch:
        told = study.resume(folder, budget=budget, watch=watch)
    _end(told, folder, as_json)


@command.command(cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@_show.json_option
def show(folder: Path, as_json: bool) -> None:
    """Tell how far a study is, and how long it is likely to take yet.

    \b
    Example:
      loadstone study show mail

    --json prints what loadstone.study.show returns.
    """
    from loadstone import study

    told = study.show(folder)
    _show.show_json(told) if as_json else _show_state(told)


@command.command(cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--margin",
    type=Share(0.0001, 0.9999),
    default="5%",
    show_default=True,
    help="Arms that differ by less are the same.",
)
@click.option("--force", is_flag=True, help="Report runs of different kernels or mount options all the same.")
@_show.json_option
def report(folder: Path, margin: float, force: bool, as_json: bool) -> None:
    """Tell what came of a study: first how the environments of its arms differed, then verdicts and figures.

    Arms of one workload are compared with the first one, by the metrics that the file lists.

    \b
    Example:
      loadstone study report mail
      loadstone study report mail --json > mail.json

    Intervals are 95 % t intervals of the mean over runs. --json prints what loadstone.study.report returns.
    """
    from loadstone import study

    told = study.report(folder, margin=margin, force=force)
    if as_json:
        _show.show_json(told)
    else:
        click.echo(study.text(told))


@command.command(cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@_show.json_option
def clean(folder: Path, as_json: bool) -> None:
    """Take back all that a study left on the host: processes, mounts, loop devices, images. Results stay.

    \b
    Example:
      loadstone study clean mail

    The exit status is 1 where something could not be taken back. --json prints what loadstone.study.clean
    returns.
    """
    from loadstone import study

    told = study.clean(folder)
    if as_json:
        _show.show_json(told)
    else:
        for one in told["taken"]:
            click.echo(f"taken back: {one['kind']} {one.get('path') or one.get('name')}")
        for fault in told["faults"]:
            click.echo(f"error: {fault}", err=True)
        if not told["taken"]:
            click.echo("nothing was left")
    if told["faults"]:
        raise click.exceptions.Exit(1)


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None or math.isnan(seconds) else _show.human_time(seconds * 1e9)


def _watch() -> Any:
    """A line for each run on standard error, where that is a terminal."""
    from contextlib import nullcontext

    from loadstone.study.runner import Progress

    def tell(progress: Progress) -> None:
        if _show.is_live():
            left = "" if math.isnan(progress.left) else f", some {_time(progress.left)} left"
            click.echo(f"run {progress.done + 1}: {progress.text}{left}", err=True)

    return nullcontext(tell)


def _show_plan(told: dict[str, Any]) -> None:
    runs, seconds = told["runs"], told["seconds"]
    click.echo(
        f"{told['name']}: {_show.counted(len(told['cells']), 'cell')}, {told['order']}, seed {told['seed']}"
    )
    click.echo(f"runs: {runs['least']:,} to {runs['most']:,}")
    click.echo(f"time that loads are asked to last: {_time(seconds['least'])} to {_time(seconds['most'])}")
    click.echo("steps of the first block:")
    for step in told["steps"]:
        click.echo(f"  {step}")


def _show_state(told: dict[str, Any]) -> None:
    failed = f", {told['failed']} failed" if told["failed"] else ""
    click.echo(f"{told['name']}: {told['state']}, {_show.counted(told['runs'], 'run')}{failed}")
    for one in told["cells"]:
        if one["given_up"]:
            state = f"given up: {one['failure']}"
        elif one["enough"]:
            state = "done" if "runs" in told["repeat"] else "sure" if one["sure"] else "not sure at the cap"
        else:
            state = f"some {one['expected']} are needed"
        click.echo(f"  {one['cell']}: {_show.counted(one['runs'], 'run')}, {state}")
    if told["state"] != "finished":
        click.echo(f"time left: {_time(told['seconds_left'])}")


def _end(told: dict[str, Any], folder: Path, as_json: bool) -> None:
    """Shows how a study ended, and ends with its status."""
    from loadstone import _signals

    if as_json:
        _show.show_json(told)
    else:
        _show_state(told)
        if told["state"] == "finished":
            click.echo(f"loadstone study report {folder} tells what came of it")
        else:
            click.echo(f"loadstone study resume {folder} goes on")
    if told["state"] == "interrupted":
        raise click.exceptions.Exit(_signals.status())
    if told["state"] != "finished" or any(one["given_up"] for one in told["cells"]):
        raise click.exceptions.Exit(1)
