"""Several runs of one script in one bundle: what is shown, and the status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli._load import LiveLine, conclude, viewer
from loadstone.cli._show import show_json
from loadstone.cli._summary import show

if TYPE_CHECKING:
    from loadstone.wml import Interpretation


def keep(workload: str, found: Interpretation, given: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Performs a script and writes the bundle of its runs; ends with the right status."""
    from loadstone.study.runner import ObserveOptions
    from loadstone.study.script import run_script

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

        series = run_script(
            found,
            given["out"],
            name=workload,
            observe=ObserveOptions(given["sample"], given["probes"]),
            on_live=live,
            on_done=ended,
            force=given["force"],
            by=given["by"],
            say=say,
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
