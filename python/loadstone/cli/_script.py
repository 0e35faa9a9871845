"""Several runs of one script or job file in one bundle: what is shown, and the status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from loadstone._kept import Kept
from loadstone._signals import status
from loadstone.cli._load import LiveLine, Together, conclude, viewer

if TYPE_CHECKING:
    from loadstone.bundle import Series


def keep(workload: str, run: Callable[..., Series], given: Mapping[str, Any]) -> None:
    """Has ``run`` write the bundle of its runs, shows what came of each, and ends with the right status."""
    from loadstone.study.runner import ObserveOptions

    with Together(workload, given) as told:
        waiting: list[Mapping[str, Any]] = []
        failure: Kept | None = None
        with viewer(given) as live:

            def ended(summary: Mapping[str, Any]) -> None:
                # The whole screen is not left between two runs.
                if isinstance(live, LiveLine):
                    live.clear()
                    told(summary)
                else:
                    waiting.append(summary)

            try:
                series = run(
                    out=given["out"],
                    name=workload,
                    observe=ObserveOptions(given["sample"], given["probes"]),
                    on_live=live,
                    on_done=ended,
                    force=given["force"],
                    by=given["by"],
                )
            except Kept as error:
                failure = error
        for summary in waiting:
            told(summary)
        if failure is not None:
            for summary in untold(failure, len(told.runs)):
                told(summary)
            raise failure
        summaries = [bundle.summary for bundle in series.bundles()]
        for summary in summaries[len(told.runs) :]:
            told(summary)
        if not given["as_json"]:
            click.echo(f"bundle: {given['out']}")
        conclude(summaries)
        if series.summary["partial"]:
            click.echo("interrupted: the results are partial", err=True)
            raise click.exceptions.Exit(status())


def untold(error: Kept, told: int) -> list[Mapping[str, Any]]:
    """Summaries of runs that were kept and not told of, with one that could not be put beside the others."""
    from loadstone.bundle import Series

    if error.summary is not None and error.summary.get("format") == "loadstone-run":
        # It was the first, so there are no others.
        return [error.summary]
    found: list[Mapping[str, Any]] = []
    if error.path is not None:
        found += [bundle.summary for bundle in Series.read(error.path).bundles()][told:]
    if isinstance(cause := error.__cause__, Kept) and cause.summary is not None:
        found.append(cause.summary)
    return found
