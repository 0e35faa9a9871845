"""Scripts of Filebench and job files of fio with several runs, kept in one bundle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from loadstone.bundle import Bundle, Series
from loadstone.bundle.figures import By, of_run
from loadstone.fio import Plans
from loadstone.study.runner import NamedRun, ObserveOptions, OnLive, run_series
from loadstone.suites import SuitePlans, measured
from loadstone.wml import Interpretation
from loadstone.workload.filebench import performing


class Kept(TypedDict, total=False):
    """How runs are kept, as in :func:`loadstone.study.runner.run_series`."""

    observe: ObserveOptions | None
    on_live: OnLive | None
    on_done: Callable[[Mapping[str, Any]], None] | None
    """Given the summary of each run when it ended."""
    force: bool
    by: By | None


def run_script(
    found: Interpretation,
    out: str | os.PathLike[str],
    *,
    name: str,
    say: Callable[[str], None] = print,
    **kept: Unpack[Kept],
) -> Series:
    """Performs what :func:`loadstone.workload.plan_filebench` found; writes a bundle of its runs to ``out``.

    ``name``: what the script is called in it. The list ends with the first run that did not end of itself,
    which is kept.
    """
    results: list[Mapping[str, Any]] = []

    def runs() -> Iterator[NamedRun]:
        for number, action in enumerate(performing(found.actions, results, say), 1):
            yield NamedRun(f"run{number}", action.plan, windows=action.windows)

    return _kept(runs(), out, name, results, kept)


def run_jobs(found: Plans, out: str | os.PathLike[str], *, name: str, **kept: Unpack[Kept]) -> Series:
    """Performs what :func:`loadstone.workload.plan_fio` found, likewise."""

    def each() -> Iterator[NamedRun]:
        found.make_directories()
        for number, (plan, names) in enumerate(zip(found.plans, found.names, strict=True), 1):
            yield NamedRun(f"run{number}", plan, {"role": f"{number} {', '.join(names)}"})

    return _kept(each(), out, name, [], kept)


def run_suite_kept(
    found: SuitePlans, out: str | os.PathLike[str], *, name: str, **kept: Unpack[Kept]
) -> Series:
    """Performs what :func:`loadstone.suites.plan_suite` found, likewise; its summary has the measurements."""

    def each() -> Iterator[NamedRun]:
        if found.first is not None:
            found.first()
        for number, (plan, names) in enumerate(zip(found.plans, found.names, strict=True), 1):
            yield NamedRun(f"run{number}", plan, {"role": ", ".join(names)})

    results: list[Mapping[str, Any]] = []
    return _kept(
        each(),
        out,
        name,
        results,
        kept,
        lambda: {"suite": found.suite, "measurements": measured(found, results)},
    )


def _kept(
    runs: Iterator[NamedRun],
    out: str | os.PathLike[str],
    name: str,
    results: list[Mapping[str, Any]],
    kept: Kept,
    more: Callable[[], Mapping[str, Any]] = dict,
) -> Series:
    """Performs runs and keeps them; ``results`` is added to as they end.

    ``more``: what the summary has besides.
    """
    on_done = kept.get("on_done")

    def done(run: NamedRun, bundle: Bundle) -> None:
        results.append(bundle.summary)
        if on_done is not None:
            on_done(bundle.summary)

    def finish(ended: list[tuple[NamedRun, Bundle]], folder: Path) -> dict[str, Any]:
        figures = [of_run(run.name, bundle.summary) for run, bundle in ended]
        return {"script": name, "figures": figures, **more()}

    return run_series(
        runs,
        out,
        kind="script",
        finish=finish,
        observe=kept.get("observe"),
        on_live=kept.get("on_live"),
        on_done=done,
        force=kept.get("force", False),
        by=kept.get("by"),
    )
