"""What ``run`` and ``replay`` share: their options, the live line, and carrying out a plan."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loadstone import Error, _values
from loadstone._kept import Kept
from loadstone._signals import status
from loadstone._text import visible
from loadstone._values import Misused
from loadstone.cli._command import Of, is_given
from loadstone.cli._confirm import yes_option
from loadstone.cli._show import counted, human_time, is_live, json_option, show_json
from loadstone.cli._streams import drawn, results_go_elsewhere
from loadstone.cli._summary import show, stopped_early
from loadstone.cli._types import (
    CPUS,
    DURATION,
    SEED,
    SIZE,
    TARGET_SIZE,
    Count,
    Number,
    OfMemory,
    Several,
    once,
    pairs,
)

if TYPE_CHECKING:
    from types import TracebackType

    from loadstone.cli._live import LiveView
    from loadstone.content import Content
    from loadstone.observe import ProbeSpec
    from loadstone.plan import Options
    from loadstone.plan.kinds import Kind
    from loadstone.verification import Verify
    from loadstone.wml import Window

F = TypeVar("F", bound=Callable[..., Any])


def probes_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[ProbeSpec]:
    """``NAME=COMMAND`` options as probes."""
    from loadstone.observe import ProbeSpec

    try:
        found = [ProbeSpec.parse(text) for text in values]
    except Error as error:
        raise click.BadParameter(str(error), ctx, param) from None
    once("--probe", (one.name for one in found))
    return found


probe_option = click.option(
    "--probe",
    "probes",
    cls=Of,
    of=("--out",),
    metavar="NAME=COMMAND",
    multiple=True,
    callback=probes_of,
    help="A command that prints name=value, run every second beside the load (repeatable).",
)

by_option = click.option(
    "--by",
    type=click.Choice(["worker", "group", "thread"]),
    help="Tell rates and latency of each worker, group of workers, or thread of a worker, too.",
)
live_option = click.option(
    "--live", is_flag=True, help="Show rates, latency and every op on the whole terminal meanwhile; q stops."
)

SIZE_HELP = "Bytes of the target to use, or 2x-ram, in multiples of memory [all; new: what is needed]."

_OPTIONS = [
    click.option("--on", metavar="TARGET", help="File, block device, or null: (performs nothing)."),
    click.option("--size", type=TARGET_SIZE, help=SIZE_HELP),
    click.option("--depth", type=Count(1, 4096), help="Most requests in flight [32; open pace: 256]."),
    click.option(
        "--backend",
        type=click.Choice(["auto", "sync", "mmap", "io_uring", "null"]),
        default="auto",
        show_default=True,
        help="How requests are performed; auto: io_uring where permitted.",
    ),
    click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT)."),
    click.option(
        "--sync",
        type=click.Choice(["none", "sync", "dsync", "recorded"]),
        default="none",
        show_default=True,
        help="O_SYNC, O_DSYNC, or as each recorded write asked (RWF_DSYNC).",
    ),
    click.option("--duration", type=DURATION, help="End after this time, such as 30s."),
    click.option("--requests", type=Count(1), help="End after this many requests."),
    click.option("--seed", type=SEED, default=0, show_default=True, help="Of everything drawn at random."),
    click.option(
        "--map",
        "maps",
        metavar="OBJECT=TARGET",
        multiple=True,
        callback=pairs,
        help="Target of one object (repeatable).",
    ),
    click.option(
        "--offsets",
        type=click.Choice(["error", "wrap", "scale"]),
        default="error",
        show_default=True,
        help="What becomes of requests beyond the target's end.",
    ),
    click.option(
        "--interval", type=DURATION, default=1.0, show_default=True, help="Length of recorded intervals."
    ),
    click.option("--cpus", metavar="LIST", type=CPUS, help="Pin the load to CPUs, such as 0,2-3."),
    click.option(
        "--allow-destroy",
        metavar="TARGET",
        multiple=True,
        help="Give up what this existing target holds (repeatable). Of job files also a directory: what they "
        "write in it.",
    ),
    click.option(
        "--fill/--no-fill",
        default=None,
        help="Write the target from end to end first [when new or given up].",
    ),
    click.option(
        "--cache",
        type=click.Choice(["none", "drop", "drop-host", "remount"]),
        help="What becomes of the caches before the load. drop: pages of the target; drop-host: all clean "
        "caches of the host, too (root); remount: the target's file system, which must be one of its own, is "
        "unmounted and mounted again [drop; scripts: none].",
    ),
    click.option(
        "--memory-limit",
        type=SIZE,
        help="Memory the whole run gets, page cache included, by a memory cgroup [no limit].",
    ),
    click.option("--nice", type=Count(-20, 19), help="Niceness of the load's threads."),
    click.option(
        "--ioprio",
        metavar="CLASS",
        help="I/O priority of the load's threads: idle, best-effort:LEVEL or realtime:LEVEL, 0 to 7.",
    ),
    click.option(
        "--fadvise",
        type=click.Choice(["normal", "random", "sequential"]),
        default="normal",
        show_default=True,
        help="Tell the kernel how the target is read.",
    ),
]
_CONTENT = [
    click.option(
        "--content",
        metavar="KIND",
        help="What is written: unique: fresh incompressible data in every block; dataset:FILE[@SNAPSHOT]: "
        "the chunks of a series of file trees (.fst) [random data with a stamp].",
    ),
    click.option(
        "--dedupe",
        type=Number(1),
        metavar="RATIO",
        help="Write data that deduplicates to 1/RATIO, such as 2 [1: all blocks differ].",
    ),
    click.option(
        "--compress",
        type=Number(1),
        metavar="RATIO",
        help="Write data that codecs compress to 1/RATIO, 1.05 to 10 [1: not at all].",
    ),
    click.option(
        "--dedupe-unit",
        cls=Of,
        of=("--dedupe", "--compress", "--content"),
        type=SIZE,
        help="Bytes of blocks that are alike, and compressible by themselves [4k].",
    ),
]
_RESULTS = [
    click.option(
        "--verify",
        is_flag=True,
        help="Write blocks that tell where they belong and when they were written, compare whatever is read, "
        "and read everything at the end.",
    ),
    click.option("--verify-unit", type=SIZE, help="Bytes of what is told apart, 512 to 4k [4k]."),
    click.option(
        "--verify-state",
        metavar="FILE",
        help="Keep what is known here, on another file system than the target, for the verify command.",
    ),
    click.option(
        "--verify-from", metavar="FILE", help="Go on from what an earlier run kept; nothing is filled."
    ),
    click.option("--log", metavar="FILE", help="Log every request as a request table (Parquet)."),
    click.option("--out", metavar="BUNDLE", help="Keep the results in this new folder."),
    probe_option,
    click.option(
        "--sample",
        cls=Of,
        of=("--out",),
        type=DURATION,
        help="Time between samples of the host's counters [--interval].",
    ),
    click.option("--force", cls=Of, of=("--out",), is_flag=True, help="Replace an existing bundle."),
    yes_option,
    by_option,
    live_option,
    click.option(
        "--dry-run",
        is_flag=True,
        help="Print the plan and stop; of several runs an object with all `plans`.",
    ),
    json_option,
]


independent_option = click.option(
    "--independent",
    metavar="PACE",
    help="With dependencies, when requests go out that depend on none: recorded (default), xN or max.",
)
think_option = click.option(
    "--think",
    metavar="xN",
    help="With dependencies, divide think times by N; none: no think time. Default x1.",
)


def ordered(
    order: str | None, pace: str | None, independent: str | None, think: str | None
) -> dict[str, Any]:
    """``order``, ``pace`` and ``think`` of a plan, from what the options of both verbs say together."""
    if order == "dependency" and pace is not None:
        raise click.UsageError("with --order dependency, --independent says the pace of what depends on none")
    if order != "dependency" and (independent is not None or think is not None):
        raise click.UsageError("--independent and --think need --order dependency")
    return {"order": order, "pace": pace or independent or "recorded", "think": _think(think)}


def _think(text: str | None) -> float:
    """What think times are divided by; 0 for none."""
    if text is None or text == "none":
        return 1.0 if text is None else 0.0
    try:
        return _values.factor(text)
    except Error:
        raise click.UsageError(f"--think {text}: write x2, x0.5 or none") from None


def load_options(function: F) -> F:
    """Adds the options that both verbs take."""
    for option in reversed([*_OPTIONS, *_CONTENT, *_RESULTS]):
        function = option(function)
    return function


def content_options(function: F) -> F:
    """Adds those that say what is written."""
    for option in reversed(_CONTENT):
        function = option(function)
    return function


def target_size(size: int | OfMemory | Several | None, memory_limit: int | None = None) -> int | None:
    """Bytes of a target: multiples of memory are of that of the machine, or of the limit on it."""
    if isinstance(size, Several):
        raise click.UsageError(f"--size {size.text}: one size is wanted; suites such as iozone take several")
    if not isinstance(size, OfMemory):
        return size
    from loadstone.plan.surroundings import of_memory

    try:
        return of_memory(size.share, memory_limit)
    except Error as error:
        raise click.UsageError(f"--size: {error}") from None


def given_options() -> dict[str, str]:
    """The options of this command that were given, as they are written, by their names."""
    ctx = click.get_current_context()
    return {
        one.name or "": next((name for name in one.opts if name.startswith("--")), one.opts[0])
        for one in ctx.command.params
        if is_given(one, ctx)
    }


@contextlib.contextmanager
def options_of(workload: str, kind: Kind) -> Iterator[dict[str, str]]:
    """Refuses options that mean nothing to a workload; yields those that were given, as they are written.

    Some are known to mean nothing only when it is known what there is to be run on.
    """
    from loadstone.plan.kinds import refuse_others

    said = given_options()
    with misused_is_misunderstood():
        refuse_others(kind, workload, said)
        yield said


@contextlib.contextmanager
def misused_is_misunderstood() -> Iterator[None]:
    """An option that means nothing, or whose value cannot be, is an error of the command line."""
    try:
        yield
    except Misused as error:
        raise click.UsageError(getattr(error, "words", None) or str(error)) from None


def lowering_options(given: Mapping[str, Any], said: Collection[str] | None = None) -> Options:
    """The options of a lowering, from those of the command; ``said``: only these of them."""
    found: Options = {
        "size": target_size(given["size"], given["memory_limit"]),
        "backend": given["backend"],
        "depth": given["depth"],
        "direct": given["direct"],
        "sync": given["sync"],
        "duration": given["duration"],
        "requests": given["requests"] or 0,
        "seed": given["seed"],
        "maps": given["maps"],
        "offsets": given["offsets"],
        "interval": given["interval"],
        "cpus": given["cpus"] or [],
        "allow_destroy": given["allow_destroy"],
        "fill": given["fill"],
        "cache": given["cache"],
        "memory_limit": given["memory_limit"],
        "nice": given["nice"],
        "ioprio": given["ioprio"],
        "fadvise": given["fadvise"],
        "log": given["log"],
        "content": content_of(given),
        "verify": verify_of(given),
    }
    if said is None:
        return found
    # What of content and verification was said is told by their own names.
    kept = {"content", "verify", *said}
    return {name: value for name, value in found.items() if name in kept}  # type: ignore[return-value]


def content_of(given: Mapping[str, Any]) -> Content | None:
    """What the options ask of written data."""
    from loadstone.content import of_options

    return of_options(given["content"], given["dedupe"], given["compress"], given["dedupe_unit"])


def verify_of(given: Mapping[str, Any]) -> Verify | None:
    """What the options ask to be verified."""
    from loadstone.verification import of_options

    return of_options(given["verify"], given["verify_unit"], given["verify_state"], given["verify_from"])


class LiveLine:
    """One line on the terminal that says how the run goes."""

    def __init__(self) -> None:
        """Nothing is drawn before the first call, nor when standard error is no terminal."""
        self._drawn = False
        self.title = ""
        """What of several runs goes on."""

    def __call__(self, live: Mapping[str, Any]) -> None:
        """Draws what ``Run.live()`` told."""
        if is_live():
            title = f"{visible(self.title, lines=False)}: " if self.title else ""
            click.echo(f"\r\033[K{title}{line(live)}", file=drawn(err=True), nl=False)
            self._drawn = True

    def __enter__(self) -> LiveLine:
        """Draws nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the line."""
        self.clear()

    def clear(self) -> None:
        """Removes the line."""
        if self._drawn:
            click.echo("\r\033[K", file=drawn(err=True), nl=False)


def line(live: Mapping[str, Any]) -> str:
    """``running 12.0 s  81,234 ops/s  317.3 MB/s  p50 11.2 us  p99 80.1 us  errors 3  8.0 s left``."""
    parts = [f"{live['phase']} {live['elapsed_ns'] / 1e9:.1f} s"]
    if live["phase"] == "running":
        parts += [
            f"{live['ops_per_s']:,.0f} ops/s",
            f"{live['bytes_per_s'] / 1e6:,.1f} MB/s",
            *(f"{name} {human_time(ns)}" for name, ns in _recent(live) if ns is not None),
        ]
        if live["errors"]:
            parts.append(f"errors {live['errors']:,}")
    fraction = live["fraction"]
    if fraction:
        parts.append(f"{live['elapsed_ns'] * (1 - fraction) / fraction / 1e9:.1f} s left")
    return "  ".join(parts)


def _recent(live: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """Percentiles of the last second, where it had enough requests."""
    from loadstone.stats import Histogram

    found = Histogram.from_sparse(live["latency_bucket"], live["latency_count"])
    return [("p50", found.told(50)), ("p99", found.told(99))]


def viewer(given: Mapping[str, Any]) -> LiveLine | LiveView:
    """What shows how a run goes: a line, or the whole screen if asked."""
    if given.get("out"):
        results_go_elsewhere()
    if not given["live"]:
        return LiveLine()
    from loadstone.cli._live import LiveView, check_terminal

    check_terminal()
    params = click.get_current_context().params
    return LiveView(" on ".join(str(params[k]) for k in ("workload", "trace", "on") if params.get(k)))


def carry_out(
    plan: Mapping[str, Any],
    given: Mapping[str, Any],
    windows: Sequence[Window] = (),
    workload: str | None = None,
    tell: Callable[[Mapping[str, Any]], None] | None = None,
) -> Mapping[str, Any]:
    """Runs a plan (or prints it), shows what came of it and returns it; :func:`conclude` is for the caller.

    A run that stopped early ends the command. ``windows``: parts of the run that are told of besides;
    ``workload``: what it is called in its results; ``tell``: shows them, where it is one of several.
    """
    tell = tell or functools.partial(told, given)
    from loadstone.bundle.figures import divided

    plan = divided(plan, given["by"])
    if given["dry_run"]:
        show_json(plan)
        return {}
    if plan.get("log") is not None and os.path.lexists(plan["log"]):
        what = "exists, and logs are not overwritten"
        raise Error(f"--log {plan['log']}: {what}; choose another name, or remove it")
    _warn_of_state(plan)
    with viewer(given) as live:
        if given["out"]:
            from loadstone.study.runner import ObserveOptions, run_plan

            observe = ObserveOptions(given["sample"], given["probes"])
            try:
                summary = run_plan(
                    plan,
                    given["out"],
                    observe=observe,
                    on_live=live,
                    force=given["force"],
                    windows=windows,
                    by=given["by"],
                    workload=workload,
                ).summary
            except Kept as error:
                live.clear()
                if error.summary is not None:
                    tell(error.summary)
                raise
        else:
            from loadstone.bundle.write import summarise
            from loadstone.workload import execute

            outcome = execute(plan, live)
            summary = summarise(plan, outcome, given["by"], workload)
            if windows:
                from loadstone.workload.filebench import window_figures

                summary["windows"] = window_figures(plan, outcome, windows)
    tell(summary)
    if given["out"] and not given["as_json"]:
        click.echo(f"bundle: {given['out']}")
    if summary["partial"]:
        conclude([summary])
    return summary


def _warn_of_state(plan: Mapping[str, Any]) -> None:
    """Of several runs the first one says it."""
    from loadstone.verification import lost_with

    told = click.get_current_context().meta.setdefault("loadstone.warned", set())
    if (path := lost_with(plan)) and "state" not in told:
        told.add("state")
        state = plan["verify"]["state"]
        what = f"{state} lies on the file system of {path} and would be lost with it; use another one"
        click.echo(f"warning: --verify-state {what}", err=True)


def show_plans(workload: str, plans: Sequence[Mapping[str, Any]], kind: str = "script") -> None:
    """Prints a plan, which can be run as it is, or an object with several, as that of their summaries is."""
    show_json(plans[0] if len(plans) == 1 else {kind: workload, "plans": list(plans)})


def told(given: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Shows the summary of a run, for people or for machines."""
    if given["as_json"]:
        show_json(summary)
    else:
        show(summary)


class Together:
    """What is told of several runs of one command: each as it ends, or one JSON object at the end of all.

    A context manager, to be called with the summary of each run.
    """

    def __init__(self, workload: str, given: Mapping[str, Any]) -> None:
        """``workload``: what was run."""
        self._workload, self._given = workload, given
        self.runs: list[Mapping[str, Any]] = []

    def __call__(self, summary: Mapping[str, Any]) -> None:
        """Tells of a run."""
        self.runs.append(summary)
        if not self._given["as_json"]:
            show(summary)

    def __enter__(self) -> Together:
        """Nothing is told yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Prints the object, however the command ends."""
        if not self._given["as_json"] or not self.runs:
            return
        stopped = self.runs[-1].get("failure")
        failure = stopped or (str(error) if isinstance(error, Error | OSError) else None)
        kept = error.summary or {} if isinstance(error, Kept) else {}
        if isinstance(kept.get("runs"), int):
            # All were done, and only their place is another one.
            partial = bool(kept["partial"])
        else:
            partial = failure is not None or error is not None or bool(self.runs[-1]["partial"])
        show_json({"script": self._workload, "partial": partial, "failure": failure, "runs": self.runs})


def several(
    workload: str, given: Mapping[str, Any], runs: int
) -> contextlib.AbstractContextManager[Together | None]:
    """What tells of the runs of a command: None where it is one, which is told of by itself."""
    return Together(workload, given) if runs > 1 else contextlib.nullcontext()


def conclude(summaries: Sequence[Mapping[str, Any]]) -> None:
    """The right status after runs; only the last may have stopped early, and dry ones have no summary."""
    from loadstone.bundle.figures import not_written_back

    summaries = [one for one in summaries if one]
    if not summaries:
        return
    last = summaries[-1]
    if last.get("failure"):
        raise Error(f"stopped early, and the results are partial: {stopped_early(last)}")
    if failed := sum(one["errors"] + one["short"] for one in summaries):
        click.echo(f"error: {counted(failed, 'request')} failed", err=True)
        raise click.exceptions.Exit(1)
    if any((one.get("verified") or {}).get("wrong") for one in summaries):
        click.echo("error: not all that was read is what had been written", err=True)
        raise click.exceptions.Exit(1)
    if unlogged := [one["log"]["failure"] for one in summaries if one["log"].get("failure")]:
        raise Error(f"the log is not written, all else is as it should be: {unlogged[0]}")
    if last["partial"]:
        click.echo("interrupted: the results are partial", err=True)
        raise click.exceptions.Exit(status())
    if not_written_back(summaries):
        click.echo("error: not all that was written reached the store", err=True)
        raise click.exceptions.Exit(1)
    told = [one.get("verified") or {} for one in summaries]
    wrong = {
        "unread": "not all that was written was read from end to end",
        "unkept": "the state of the verification is not where it was to be kept",
    }
    if found := [text for key, text in wrong.items() if any(one.get(key) for one in told)]:
        click.echo(f"error: {found[0]}", err=True)
        raise click.exceptions.Exit(1)
