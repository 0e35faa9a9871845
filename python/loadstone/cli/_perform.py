"""A job on the command line: what is said before, what is shown meanwhile and after, and the status."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import loadstone
from loadstone import Error
from loadstone._signals import status
from loadstone._text import visible
from loadstone.cli._command import in_options
from loadstone.cli._confirm import confirm_long, confirm_plans
from loadstone.cli._show import counted, human_time, is_live, show_json
from loadstone.cli._streams import drawn, results_go_elsewhere
from loadstone.cli._summary import show, stopped_early
from loadstone.errors import Kept

if TYPE_CHECKING:
    from types import TracebackType

    from loadstone.cli._live import LiveView
    from loadstone.plan.actions import RunPlan
    from loadstone.workload import Job
    from loadstone.workload.repeating import Repeated


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


class Shown:
    """What is shown of the runs of a job: each as it ends, or one JSON object at the end of all.

    A context manager, to be called with the summary of each run.
    """

    def __init__(self, job: Job, given: Mapping[str, Any]) -> None:
        """Nothing is shown yet."""
        self.job, self.given = job, given
        self.runs: list[Mapping[str, Any]] = []

    def __call__(self, summary: Mapping[str, Any]) -> None:
        """Shows a run."""
        self.runs.append(summary)
        if not self.given["as_json"]:
            show(summary)
        elif len(self.job.runs) == 1:
            show_json(summary)

    def __enter__(self) -> Shown:
        """Nothing is told yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Prints the object of several runs, however the command ends."""
        if not self.given["as_json"] or not self.runs or len(self.job.runs) == 1:
            return
        stopped = self.runs[-1].get("failure")
        failure = stopped or (str(error) if isinstance(error, Error | OSError) else None)
        kept = error.summary or {} if isinstance(error, Kept) else {}
        if isinstance(kept.get("runs"), int):
            # All were done, and only their place is another one.
            partial = bool(kept["partial"])
        else:
            partial = failure is not None or error is not None or bool(self.runs[-1]["partial"])
        told = {"script": self.job.workload, "partial": partial, "failure": failure, "runs": self.runs}
        show_json(told)

    def title(self, run: RunPlan) -> str:
        """What is shown beside a run that goes on."""
        return run.name

    def repeated(self, one: Repeated) -> None:
        """A repeat has ended."""

    def tell(self) -> None:
        """Says what is known by a repeat that has ended."""

    def end(self, failure: Kept | None) -> None:
        """All runs have ended."""
        if self.given["out"] and failure is None and not self.given["as_json"]:
            click.echo(f"bundle: {self.given['out']}")


def perform(job: Job, given: Mapping[str, Any]) -> None:
    """Runs a job, shows what came of it and ends with the right status; or prints its plans."""
    for text in job.warnings:
        click.echo(f"warning: {in_options(text)}", err=True)
    for text in job.notes:
        click.echo(f"note: {in_options(text)}", err=True)
    if given["dry_run"]:
        if given.get("repeat"):
            raise click.UsageError("--repeat: --dry-run prints the plan, which is the same for each repeat")
        show_plans(job, given)
        return
    shown = _shown(job, given)
    if job.suite is None:
        confirm_plans(job.plans, given["yes"])
    else:
        confirm_long(job.suite, given["yes"])
        confirm_plans([], given["yes"], job.suite.room)
    _check_log(job)
    _warn_of_state(job)
    with shown:
        summaries, partial, failure = _performed(job, given, shown)
        for summary in summaries[len(shown.runs) :]:
            shown(summary)
        shown.end(failure)
        if failure is not None:
            raise failure
        conclude(summaries)
    if partial:
        click.echo("interrupted: the results are partial", err=True)
        raise click.exceptions.Exit(status())


def _shown(job: Job, given: Mapping[str, Any]) -> Shown:
    """What shows the results of this job."""
    if given.get("repeat"):
        from loadstone.cli._repeat import ShownRepeats

        return ShownRepeats(job, given)
    if job.suite is not None:
        from loadstone.cli._suite import ShownSuite

        return ShownSuite(job, given)
    return Shown(job, given)


def _performed(
    job: Job, given: Mapping[str, Any], shown: Shown
) -> tuple[list[Mapping[str, Any]], bool, Kept | None]:
    """Summaries of all runs, whether there should be more of them, and why; what can be shown at once is."""
    with viewer(given) as live:

        def say(text: str) -> None:
            if isinstance(live, LiveLine):
                live.clear()
            click.echo(text, err=given["as_json"])

        def begun(run: RunPlan) -> None:
            if isinstance(live, LiveLine):
                live.clear()
                live.title = shown.title(run)
            if job.kind == "jobs" and len(job.runs) > 1:
                say(f"jobs: {run.name}")

        def ended(summary: Mapping[str, Any]) -> None:
            # The whole screen is not left between two runs. What is said where nothing follows can wait.
            if isinstance(live, LiveLine) and (len(job.actions) > 1 or given.get("repeat")):
                live.clear()
                shown(summary)

        def repeated(one: Repeated) -> None:
            shown.repeated(one)
            # The whole screen is not left between two runs.
            if isinstance(live, LiveLine):
                live.clear()
                shown.tell()

        try:
            bundle = loadstone.run(
                job,
                given["out"],
                progress=live,
                sample=given["sample"],
                probes=given["probes"],
                by=given["by"],
                force=given["force"],
                repeat=given.get("repeat"),
                sure=given.get("sure") or (),
                say=say,
                on_run=begun,
                on_done=ended,
                on_repeat=repeated,
            )
        except Kept as error:
            return [*shown.runs, *_untold(error, len(shown.runs))], True, error
    return [one.summary for one in bundle.bundles()], bundle.partial, None


def _untold(error: Kept, told: int) -> list[Mapping[str, Any]]:
    """Summaries of runs that were kept and not told of, with one that could not be put beside the others."""
    from loadstone.bundle import Series

    found: list[Mapping[str, Any]] = []
    if error.summary is not None and error.summary.get("format") == "loadstone-run":
        # It was the first, so there are no others.
        found = [error.summary]
    elif error.bundle is not None:
        found = [bundle.summary for bundle in Series.read(error.bundle).bundles()]
    elif error.summary is not None and isinstance(error.summary.get("runs"), list):
        found = error.summary["runs"]
    if isinstance(cause := error.__cause__, Kept) and cause.summary is not None:
        # It could not be put beside the others.
        return [*found[told:], cause.summary]
    return found[told:]


def _check_log(job: Job) -> None:
    """A log takes the place of no file, which is found out before the load begins."""
    for plan in job.plans:
        if plan.get("log") is not None and os.path.lexists(plan["log"]):
            what = "exists, and logs are not overwritten; choose another name, or remove it"
            raise Error(f"`log` {plan['log']}: {what}")


def _warn_of_state(job: Job) -> None:
    """The state of a verification is lost with the file system of what it is about."""
    from loadstone.verification import lost_with

    for plan in job.plans[:1]:
        if path := lost_with(plan):
            state = plan["verify"]["state"]
            what = f"{state} lies on the file system of {path} and would be lost with it; use another one"
            click.echo(f"warning: --verify-state {what}", err=True)


def show_plans(job: Job, given: Mapping[str, Any]) -> None:
    """Prints a plan, which can be run as it is, or an object with several, as that of their summaries is."""
    from loadstone.bundle.figures import divided

    plans = [divided(plan, given["by"]) for plan in job.plans]
    kind = "suite" if job.suite is not None else "script"
    show_json(plans[0] if len(plans) == 1 else {kind: job.workload, "plans": plans})


def conclude(summaries: Sequence[Mapping[str, Any]]) -> None:
    """The right status after runs; only the last may have stopped early."""
    from loadstone.bundle.figures import not_written_back

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
