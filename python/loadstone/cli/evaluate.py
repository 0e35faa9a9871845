"""``loadstone evaluate``: how faithful a model is to its trace."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone._scratch import scratch
from loadstone._signals import status
from loadstone._units import number
from loadstone.cli import _show
from loadstone.cli._command import Command, in_options
from loadstone.cli._confirm import confirm_plans
from loadstone.cli._model_check import show_aspects
from loadstone.cli._options import BACKENDS, grouped, options, run_options
from loadstone.cli._reading import reading_options
from loadstone.cli._show import console, counted, human_bytes, human_time, show_json
from loadstone.cli._summary import content_asked
from loadstone.cli._types import DURATION, Alike, Count
from loadstone.errors import Error, Kept

if TYPE_CHECKING:
    from loadstone.evaluation import Schedule
    from loadstone.workload import NamedRun

JUDGED = "Evaluation"
_TAKES = (
    *("on", "size", "maps", "offsets", "backend", "direct", "allow_destroy", "depth", "duration", "seed"),
    *(
        "pace",
        "order",
        "independent",
        "think",
        "draw_first",
        "content",
        "dedupe",
        "compress",
        "dedupe_unit",
        "cpus",
        "cache",
    ),
    *("out", "force", "interval", "probes", "yes", "dry_run", "as_json"),
)
_CHANGED: dict[str, dict[str, Any]] = {
    "on": {
        "help": "File, block device, or null: (performs nothing); of files, a directory in which trees are "
        "made."
    },
    "backend": {
        "type": Alike(
            [one for one in BACKENDS.choices if one != "mmap"], {"psync": "sync", "libaio": "io_uring"}
        )
    },
    "cache": {
        "type": click.Choice(["drop", "drop-host"]),
        "help": "Caches dropped before each run: pages of the target, or all clean caches of the host, too "
        "(root) [drop].",
    },
    "allow_destroy": {"help": "Give up what this existing target holds (repeatable)."},
    "duration": {"help": "End each run after this time [when the trace ends]."},
    "seed": {"help": "Of the model's first run; then one more each [1]."},
    "pace": {"help": "recorded, an acceleration such as x2, or max [recorded, or what --budget needs]."},
    "order": {
        "type": click.Choice(["none", "dependency"]),
        "help": "dependency: requests of both wait for the answers they waited for, and then as long as "
        "their actor thought; a model is fitted with --think [none; replays of files: completion].",
    },
    "interval": {"help": "Length of the parts each run is cut into, at an open pace [by --intervals]."},
    "dry_run": {"help": "Print the plans and stop."},
}


@click.command(cls=Command)
@click.argument("trace", type=click.Path(path_type=Path))
@grouped(JUDGED, "--model", type=click.Path(path_type=Path), help="A fitted model [fitted first].")
@grouped(
    JUDGED, "--repeat", type=Count(1, 10_000), metavar="N", help="Replays, and as many runs of the model [3]."
)
@grouped(JUDGED, "--budget", type=DURATION, help="Time all of it may take, such as 10m [no limit].")
@grouped(
    JUDGED, "--intervals", type=Count(1, 1_000_000), metavar="N", help="Parts each run is cut into [20]."
)
@grouped(
    JUDGED,
    "--reset",
    type=click.Choice(["refill", "once"]),
    help="Fill the target before every run, or once and after runs that discard [refill].",
)
@grouped(
    JUDGED,
    "--until-decided",
    is_flag=True,
    help="Repeat until every parameter is decided that runs can decide; --repeat is the least then, 30 the "
    "most.",
)
@options(*_TAKES, **_CHANGED)
@reading_options
def command(trace: Path, reading: dict[str, Any], **given: Any) -> None:
    """Measure how faithful a model is to its trace: replay and model in turns on a target.

    The first part needs no device: whether the model draws the trace's load (loadstone model check). The
    second part compares each response parameter of the device and host. It shows the model's mean over whole
    runs as a share of the replays', with its 90 % interval; within 5 % the two are the same. It also shows
    the distance over time (RMS over the intervals of a run, relative to the replays' mean) and its floor, the
    distance between runs of one kind. A parameter is faithful, not faithful, or undecided. More runs decide
    then (--until-decided).

    For a trace of system calls or of NFS, --on names a directory, old or new. Each run builds a tree in a new
    directory inside, which it removes after the run. It touches nothing else there. Requests per second and
    latency as the engine saw them are compared too.

    With --dedupe, --compress or --content replays and runs of the model write such data, and fill the target
    with it. After each run up to 2 GiB of it are read and examined.

    \b
    Example:
      loadstone evaluate trace.spc --on /mnt/target --size 8g --offsets wrap --direct --pace max
      loadstone evaluate trace.spc --on /dev/loop0 --offsets wrap --budget 10m \\
        --allow-destroy /dev/loop0 --out faithful.bundle
      loadstone evaluate app.strace --on /mnt/place --pace max
      loadstone evaluate trace.parquet --on /mnt/target --size 8g --order dependency --think x2
      loadstone evaluate t.trace --on /mnt/target --size 8g --format mqsim --pace max
    """
    from loadstone.cli._perform import LiveLine
    from loadstone.evaluation import Evaluation, Settings, evaluate
    from loadstone.trace.parts import left_out

    names = ("model", "repeat", "reset", "budget", "intervals", "until_decided", "probes")
    settings = Settings(
        trace,
        given["on"],
        options=run_options(given, reading=reading),
        **{name: given[name] for name in names if given[name] is not None},
    )
    if warning := left_out(trace):
        click.echo(f"warning: {warning}", err=True)
    live = LiveLine()

    later: list[str] = []

    def on_plans(plans: Sequence[Mapping[str, Any]]) -> None:
        later.extend(confirm_plans(plans, given["yes"], say_little=False))

    def on_schedule(schedule: Schedule) -> None:
        live.clear()
        if not _show._quiet:
            click.echo("; ".join((describe(schedule), *later)), err=True)

    def on_run(run: NamedRun) -> None:
        live.clear()
        if not _show._quiet:
            click.echo(f"{run.name}: {run.about['reset']}", err=True)

    with contextlib.ExitStack() as held:
        out = given["out"] or held.enter_context(scratch("bundle")) / "bundle"
        try:
            found = evaluate(
                settings,
                out,
                force=given["force"],
                on_plans=on_plans,
                on_schedule=on_schedule,
                on_run=on_run,
                on_live=live,
                dry_run=given["dry_run"],
            )
        except Kept as error:
            live.clear()
            if error.summary is not None:
                told(error.summary, given)
            if given["out"] or error.summary is None:
                raise
            # The folder is none that was asked for, and goes.
            raise Error(str(error.summary["failure"] or error)) from None
        finally:
            live.clear()
        if not isinstance(found, Evaluation):
            show_json({"runs": [{"name": run.name, **run.about, "plan": run.plan} for run in found]})
            return
        summary = found.summary
    told(summary, given)
    if given["out"] and not given["as_json"]:
        click.echo(f"bundle: {given['out']}")
    if summary.get("errors"):
        click.echo(f"error: {counted(summary['errors'], 'request')} failed; the bundle says which", err=True)
        raise click.exceptions.Exit(1)
    for lost in summary.get("not_written_back", ()):
        click.echo(f"failed: {lost}", err=True)
    if summary.get("not_written_back"):
        click.echo("error: not all that was written reached the store; the bundle says which run's", err=True)
        raise click.exceptions.Exit(1)
    if summary["partial"]:
        click.echo("interrupted: the results are partial", err=True)
        raise click.exceptions.Exit(status())


def told(summary: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Shows what was found, for people or for machines."""
    if given["as_json"]:
        show_json(summary)
    else:
        show(summary)


def describe(schedule: Schedule) -> str:
    """``6 runs of about 12.3 s at x400, 1.4 min in all; 2 repeats instead of 3``."""
    pace = {"max": "at full speed", "dependency": "in order of dependencies"}.get(str(schedule.pace))
    pace = pace or f"at x{schedule.pace:g}"
    fills = schedule.fill_seconds > 0
    text = (
        f"{2 * schedule.repeat} runs of about {human_time(schedule.run_seconds * 1e9)} {pace}, "
        + (f"each after preparing the target in {human_time(schedule.fill_seconds * 1e9)}, " if fills else "")
        + f"{human_time(schedule.total * 1e9)} in all"
    )
    return "; ".join((text, *schedule.chosen))


def show(summary: Mapping[str, Any]) -> None:
    """Prints what was found of the content, the table of parameters, and the verdicts."""
    from rich.table import Table

    content = (summary.get("content") or {}).get("verdict")
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for name in ("replay mean", "model / replay", "90 % interval", "RMS over time", "floor"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    # Of an evaluation that ended early some of it may be missing.
    distances = summary.get("distances") or []
    for row in distances:
        if not row["usable"]:
            table.add_row(row["title"], *["-"] * 5, "not usable")
            continue
        whole = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        figures = [f"{_percent(row[name])} %" for name in ("rms", "floor_rms")]
        mean = _value(row["scale"], row["unit"])
        table.add_row(row["title"], mean, whole, _interval(row), *figures, str(row["verdict"]))
    if distances:
        console().print(table)
    # A column of them would be wider than a terminal.
    for row in distances:
        if why := _why(row):
            click.echo(f"{row['verdict'] if row['usable'] else 'not usable'}: {row['title']}: {why}")
    for line in written_lines(summary.get("written")):
        click.echo(line)
    for row in distances:
        if row["note"]:
            click.echo(f"note: {row['title']}: {row['note']}")
    for note in summary.get("notes", []):
        click.echo(f"note: {in_options(note)}")
    if content:
        show_aspects(content)
    if verdict := in_options(summary.get("verdict") or ""):
        click.echo(f"device: {verdict}")


def _interval(row: Mapping[str, Any]) -> str:
    if row["ratio"] is None:
        return "-"
    low, high = row["ratio_low"], row["ratio_high"]
    return f"{low:.3f} to {high:.3f}" if low is not None and high is not None else "not known"


def _value(value: float, unit: str) -> str:
    """A value with its unit, as people read it."""
    match unit:
        case "byte":
            return human_bytes(value)
        case "1/s":
            return f"{number(value)}/s"
        case "share":
            return f"{number(100 * value)} %"
        case _:
            return f"{number(value)} {unit}"


def _why(row: Mapping[str, Any]) -> str:
    """Why a parameter is not faithful, not usable or undecided; empty where its figures tell."""
    if row["usable"] and row["verdict"] == "not faithful" and row["over_time"] == "differs":
        return f"over time it differs, and chance alone would do that in {row['chance']:.2g} of the cases"
    return str(row["reason"] or "")


def written_lines(written: Mapping[str, Any] | None) -> list[str]:
    """What was asked of written data, and between which ratios it was found after runs of either kind."""
    if written is None:
        return []
    lines = [f"content asked: {content_asked(written['asked'])}"]
    for role, title in (("replay", "replays"), ("model", "runs of the model")):
        found = [one for one in written[role] if one is not None]
        if not found:
            lines.append(f"content found after {title}: nothing")
            continue
        kinds = {"dedupe": [one["dedupe"] for one in found]}
        kinds |= {codec: [one["compress"][codec] for one in found] for codec in found[0]["compress"]}
        ratios = ", ".join(f"{kind} {min(of):.3f} to {max(of):.3f}" for kind, of in kinds.items())
        lines.append(f"content found after {title}: {ratios}")
    return lines


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
