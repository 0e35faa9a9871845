"""Several runs of one script or job file in one bundle: what is shown, and the status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli._load import LiveLine, conclude, viewer
from loadstone.cli._show import show_json
from loadstone.cli._summary import show

if TYPE_CHECKING:
    from loadstone.bundle import Series


def keep(workload: str, run: Callable[..., Series], given: Mapping[str, Any]) -> None:
    """Has ``run`` write the bundle of its runs, shows what came of each, and ends with the right status."""
    from loadstone.study.runner import ObserveOptions

    waiting: list[Mapping[str, Any]] = []

    def told(summary: Mapping[str, Any]) -> None:
        if given["as_json"]:
            show_json(summary)
        else:
            show(summary)

    with viewer(given) as live:

        def ended(summary: Mapping[str, Any]) -> None:
            # The whole screen is not left between two runs.
            if isinstance(live, LiveLine):
                live.clear()
                told(summary)
            else:
                waiting.append(summary)

        series = run(
            out=given["out"],
            name=workload,
            observe=ObserveOptions(given["sample"], given["probes"]),
            on_live=live,
            on_done=ended,
            force=given["force"],
            by=given["by"],
        )
    for summary in waiting:
        told(summary)
    summaries = [bundle.summary for bundle in series.bundles()]
    if series.summary["partial"] and summaries[-1]["partial"]:
        told(summaries[-1])
    if not given["as_json"]:
        click.echo(f"bundle: {given['out']}")
    conclude(summaries)
    if series.summary["partial"]:
        click.echo("interrupted: the results are partial", err=True)
        raise click.exceptions.Exit(130)
