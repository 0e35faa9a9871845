"""Scripts of Filebench with several runs, kept in one bundle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loadstone.bundle import Bundle, Series
from loadstone.bundle.figures import By
from loadstone.study.runner import NamedRun, ObserveOptions, OnLive, run_series
from loadstone.wml import Interpretation
from loadstone.workload._filebench import performing

FIGURES = ("elapsed_ns", "requests", "bytes", "ops_per_s", "bytes_per_s", "errors", "short", "failure")
"""What the summary of all runs tells of each."""


def run_script(
    found: Interpretation,
    out: str | os.PathLike[str],
    *,
    name: str,
    observe: ObserveOptions | None = None,
    on_live: OnLive | None = None,
    on_done: Callable[[Mapping[str, Any]], None] | None = None,
    force: bool = False,
    by: By | None = None,
    say: Callable[[str], None] = print,
) -> Series:
    """Performs what :func:`loadstone.workload.plan_filebench` found; writes a bundle of its runs to ``out``.

    ``name``: what the script is called in it; ``by``: what summaries are divided by besides ops. ``on_done``
    is given the summary of each run when it ended. The list ends with the first run that did not end of
    itself, which is kept.
    """
    results: list[Mapping[str, Any]] = []

    def runs() -> Iterator[NamedRun]:
        for number, action in enumerate(performing(found.actions, results, say), 1):
            yield NamedRun(f"run{number}", action.plan, windows=action.windows)

    def done(run: NamedRun, bundle: Bundle) -> None:
        results.append(bundle.summary)
        if on_done is not None:
            on_done(bundle.summary)

    def finish(ended: list[tuple[NamedRun, Bundle]], folder: Path) -> dict[str, Any]:
        figures = [
            {"name": run.name, **{key: bundle.summary.get(key) for key in FIGURES}} for run, bundle in ended
        ]
        return {"script": name, "figures": figures}

    return run_series(
        runs(),
        out,
        kind="script",
        finish=finish,
        observe=observe,
        on_live=on_live,
        on_done=done,
        force=force,
        by=by,
    )
