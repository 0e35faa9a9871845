"""``loadstone compare``: which of several results is better, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli import _show
from loadstone.cli._command import Command, in_options
from loadstone.cli._streams import drawn
from loadstone.cli._types import Share

if TYPE_CHECKING:
    from loadstone.compare import Comparison

FAILED = 3
"""Status where a condition of --fail-if holds."""


@click.command(cls=Command)
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@click.option(
    "--margin",
    type=Share(0, 1, min_open=True, max_open=True),
    default=0.05,
    metavar="SHARE",
    help="Arms are the same where their ratio surely is within this [5%].",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Compare this alone, such as service_p99 (repeatable; the first is the primary one).",
)
@click.option("--all-metrics", is_flag=True, help="Compare metrics of each op and step, too.")
@click.option(
    "--confidence",
    type=Share(0.5, 1, max_open=True),
    default=0.95,
    metavar="SHARE",
    help="Confidence of intervals and tests [95%].",
)
@click.option("--accept-differences", is_flag=True, help="Compare arms of different kernels or loads, too.")
@click.option(
    "--self",
    "itself",
    is_flag=True,
    help="Compare two halves of the runs of one arm, split at random: what differs where nothing does.",
)
@click.option(
    "--floor",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="BUNDLE",
    help="Repeats of one thing, or two such bundles: what differs by less than they do is undecided.",
)
@click.option(
    "--fail-if",
    multiple=True,
    metavar="CONDITION",
    help="End with status 3 if this holds (repeatable): [METRIC] worse, better, different, undecided or not "
    'same, perhaps with a size: "service_p99 worse by 10%". METRIC: the primary one, or any.',
)
@click.option("--markdown", is_flag=True, help="Print Markdown, as for a pull request.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page.")
@click.option("--force", is_flag=True, help="Replace the page if it exists.")
@_show.json_option
def command(arms: tuple[str, ...], markdown: bool, as_json: bool, **given: Any) -> None:
    """Say which of several results is better, by how much, and how sure that is.

    Each ARM is a bundle, a bundle of repeats (run --repeat), or a folder of bundles; NAME=PATH names it. The
    first is what the others are compared with. What differs between their hosts, targets and loads is told
    first. Arms of different kernels or loads are refused, unless --accept-differences.

    The run is what counts: a percentile is that of each run, and compared over runs. A verdict is better,
    worse, the same within the margin, or undecided, with the runs that would decide. The primary metric is
    judged by itself, the others together: by Holm, or from 21 on by Benjamini and Hochberg.

    \b
    Example:
      loadstone run varmail --on /mnt/ext4/tree --repeat until-sure --out ext4.bundle
      loadstone run varmail --on /mnt/xfs/tree --repeat until-sure --out xfs.bundle
      loadstone compare ext4.bundle xfs.bundle
      loadstone compare old=main/ new=branch/ --fail-if "worse by 5%" --markdown
      loadstone compare ext4.bundle xfs.bundle --metric service_p99 --html ext4-xfs.html
      loadstone compare ext4.bundle --self

    The status is 3 if a condition of --fail-if holds.
    """
    from loadstone.compare import compare_bundles, compare_itself

    if markdown and as_json:
        raise click.UsageError("--markdown and --json: both print; give one of them")
    if given["force"] and not given["html"]:
        raise click.UsageError("--force: needs --html, of which it says more")
    common = {key: given[key] for key in ("margin", "all_metrics", "confidence")}
    if given["itself"]:
        if len(arms) != 1 or given["floor"]:
            raise click.UsageError("--self: takes one ARM and no --floor; it finds the floor of that arm")
        found = compare_itself(arms[0], metrics=given["metrics"], **common)
    else:
        if len(arms) == 1:
            raise click.UsageError(
                f"{arms[0]}: is alone; name another ARM to compare it with, or give --self"
            )
        found = compare_bundles(
            arms,
            metrics=given["metrics"],
            accept_differences=given["accept_differences"],
            floor=given["floor"],
            **common,
        )
    failing = found.failing(given["fail_if"])
    if given["html"]:
        found.report(given["html"], force=given["force"])
    if as_json:
        _show.show_json({**found.to_json(), "failing": [text for text, _ in failing]})
    elif markdown:
        click.echo(found.markdown(), nl=False)
    else:
        _tell(found)
        if given["html"]:
            click.echo(f"report: {given['html']}")
    for text, one in failing:
        click.echo(f"fails: {text}: {one.metric.name} of {one.arm} is {one.verdict}", err=True)
    if failing:
        raise click.exceptions.Exit(FAILED)


def _tell(found: Comparison) -> None:
    """Prints it; a terminal gets colour where a difference is real."""
    colour = _show.colours()
    click.echo(in_options(found.text(colour)), file=drawn() if colour else None)
