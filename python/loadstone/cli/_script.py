"""Several runs of one script in one bundle: what is shown, and the status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from loadstone import Error
from loadstone.cli._load import LiveLine, show
from loadstone.cli._show import show_json

if TYPE_CHECKING:
    from loadstone.wml import Interpretation


def keep(workload: str, found: Interpretation, given: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Performs a script and writes the bundle of its runs; ends with the right status."""
    from loadstone.study.runner import ObserveOptions
    from loadstone.study.script import run_script

    live = LiveLine()

    def told(summary: Mapping[str, Any]) -> None:
        live.clear()
        if given["as_json"]:
            show_json(summary)
        else:
            show(summary)

    try:
        series = run_script(
            found,
            given["out"],
            name=workload,
            observe=ObserveOptions(given["sample"], given["probes"]),
            on_live=live,
            on_done=told,
            force=given["force"],
            say=say,
        )
    finally:
        live.clear()
    bundles = series.bundles()
    last = bundles[-1].summary
    if series.summary["partial"] and last["partial"]:
        told(last)
    if not given["as_json"]:
        click.echo(f"bundle: {given['out']}")
    if failure := last.get("failure"):
        raise Error(failure)
    if failed := sum(one.summary["errors"] + one.summary["short"] for one in bundles):
        click.echo(f"error: {failed:,} requests failed", err=True)
        raise click.exceptions.Exit(1)
    if series.summary["partial"]:
        click.echo("interrupted: the results are partial", err=True)
        raise click.exceptions.Exit(130)
