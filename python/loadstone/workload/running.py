"""Jobs performed: their runs one after the other, in memory or kept in a bundle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from loadstone._kept import keeping
from loadstone.bundle import Bundle, Series
from loadstone.bundle.figures import By, divided
from loadstone.bundle.write import summarise
from loadstone.errors import OptionError
from loadstone.observe import ProbeSpec
from loadstone.plan.actions import RunPlan
from loadstone.plan.options import Place
from loadstone.stats.repetition import Repetition
from loadstone.workload.execution import OnLive, execute
from loadstone.workload.jobs import Job
from loadstone.workload.performing import performing, window_figures
from loadstone.workload.repeating import Repeated, Repeats, about, repetition, told_of
from loadstone.workload.runner import NamedRun, ObserveOptions, run_plan, run_series


def run(
    job: Job,
    out: Place | None = None,
    *,
    progress: OnLive | None = None,
    sample: float | None = None,
    probes: Sequence[ProbeSpec] = (),
    by: By | None = None,
    force: bool = False,
    repeat: Repetition | str | int | None = None,
    sure: Sequence[str] = (),
    say: Callable[[str], None] | None = None,
    on_run: Callable[[RunPlan], None] | None = None,
    on_done: Callable[[Mapping[str, Any]], None] | None = None,
    on_repeat: Callable[[Repeated], None] | None = None,
) -> Bundle:
    """Runs a job and returns its results; of several runs a :class:`loadstone.bundle.Series` of bundles.

    ``out``: the folder that the bundle is kept in, whole or not at all; None keeps it in memory only, and
    then the host is not observed. ``progress`` is called about four times a second with what the run does
    (``phase``, ``ops_per_s``, ...). ``sample``: seconds between samples of the host's counters, by default
    the plan's interval; ``probes``: commands that run beside. ``by``: what summaries are divided by besides
    ops: ``worker``, ``group`` or ``thread``. ``force``: replaces a bundle at ``out``. ``say`` is told what a
    script prints, ``on_run`` of each run before it begins, ``on_done`` of its summary.

    ``repeat``: how often the whole job runs: a number, a rule of :mod:`loadstone.stats.repetition`, or the
    name of one (``until-sure``). ``sure``: metrics that must be known besides the primary one; ``on_repeat``
    is told after each repeat what is known by then. The answer is a ``Series`` of kind ``repeats``.

    A KeyboardInterrupt ends the run that goes on, and no other begins: the results are marked partial. Raises
    ``Error`` where the job cannot be run, and ``Kept`` where it fails after something was measured, with what
    was and where it is.
    """
    if not isinstance(job, Job):
        raise OptionError("job", None, f"{job!r} is no job; make one with loadstone.job(...)")
    if by is not None and by not in get_args(By):
        raise OptionError("by", None, f"{by!r} must be one of: {', '.join(get_args(By))}")
    for name, asked in (("sample", sample), ("probes", probes), ("force", force)):
        if asked and out is None:
            raise OptionError(name, None, "needs `out`, of which it says more")
    if sure and repeat is None:
        raise OptionError("sure", None, "needs `repeat`, of which it says more")
    results: list[Mapping[str, Any]] = []
    observe = ObserveOptions(sample, probes)
    if repeat is not None:
        repeats = Repeats(job, repetition(repeat), sure, say or _nothing, on_run, on_done, on_repeat)
        if out is None:
            return _repeated(repeats, progress, by)
        return run_series(
            repeats.runs(),
            out,
            kind="repeats",
            finish=lambda done, folder: repeats.told(),
            observe=observe,
            on_live=progress,
            on_done=repeats.ended,
            force=force,
            by=by,
        )

    def begun() -> Generator[RunPlan]:
        if job.first is not None:
            job.first()
        with contextlib.closing(performing(job.actions, results, say or _nothing)) as actions:
            for action in actions:
                if on_run is not None:
                    on_run(action)
                yield action

    def ended(summary: Mapping[str, Any]) -> None:
        results.append(summary)
        if on_done is not None:
            on_done(summary)

    # The measurements of a suite are those of all its runs, be it one.
    single = len(job.runs) == 1 and job.suite is None
    if out is not None and not single:
        return _kept(job, begun(), results, ended, out, observe, progress, force, by)
    bundles: list[Bundle] = []
    with keeping(results), contextlib.closing(begun()) as actions:
        for action in actions:
            if out is None:
                bundles.append(_measured(action, job.workload, progress, by))
            else:
                kept = run_plan(
                    action.plan,
                    out,
                    observe=observe,
                    on_live=progress,
                    force=force,
                    windows=action.windows,
                    by=by,
                    workload=job.workload,
                )
                bundles.append(kept)
            ended(bundles[-1].summary)
            if bundles[-1].partial:
                break
    return bundles[0] if single else Series.gathered(bundles, told_of(job, bundles, results))


def _repeated(repeats: Repeats, progress: OnLive | None, by: By | None) -> Series:
    """Repeats whose results are kept in memory."""
    listed: list[dict[str, Any]] = []
    bundles: list[Bundle] = []
    with keeping(repeats.summaries), contextlib.closing(repeats.runs()) as runs:
        for run in runs:
            action = RunPlan(dict(run.plan), tuple(run.windows), run.name)
            bundles.append(_measured(action, repeats.job.workload, progress, by))
            listed.append({"name": run.name, **run.about})
            if bundles[-1].partial:
                break
            repeats.ended(run, bundles[-1])
    failure = next((one.summary["failure"] for one in bundles if one.summary.get("failure")), None)
    partial = any(one.partial for one in bundles)
    told = {"partial": partial, "failure": failure, "runs": len(bundles), **repeats.told()}
    return Series(None, "repeats", listed, told, bundles)


def _nothing(text: str) -> None:
    """What a script prints is told to nobody."""


def _measured(action: RunPlan, workload: str, progress: OnLive | None, by: By | None) -> Bundle:
    """A run whose results are kept in memory."""
    plan = divided(action.plan, by)
    outcome = execute(plan, progress)
    summary = summarise(plan, outcome, by, workload)
    if action.windows:
        summary["windows"] = window_figures(plan, outcome, action.windows)
    return Bundle.of(plan, outcome, summary)


def _kept(
    job: Job,
    actions: Iterator[RunPlan],
    results: Sequence[Mapping[str, Any]],
    ended: Callable[[Mapping[str, Any]], None],
    out: Place,
    observe: ObserveOptions,
    progress: OnLive | None,
    force: bool,
    by: By | None,
) -> Series:
    """Several runs kept in one bundle."""

    def runs() -> Iterator[NamedRun]:
        for number, action in enumerate(actions, 1):
            yield NamedRun(f"run{number}", action.plan, about(job, number, action), action.windows)

    def done(run: NamedRun, bundle: Bundle) -> None:
        ended(bundle.summary)

    def finish(found: list[tuple[NamedRun, Bundle]], folder: Path) -> dict[str, Any]:
        return told_of(job, [bundle for _, bundle in found], results)

    return run_series(
        runs(),
        out,
        kind="script",
        finish=finish,
        observe=observe,
        on_live=progress,
        on_done=done,
        force=force,
        by=by,
    )
