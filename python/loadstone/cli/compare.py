"""``loadstone compare``: which of several results is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone._files import aside, refuse
from loadstone.cli import _show
from loadstone.cli._command import Command, Of, in_options, is_given, long_name
from loadstone.cli._streams import drawn
from loadstone.cli._types import Share

if TYPE_CHECKING:
    from loadstone.compare import Comparison, History

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
@click.option(
    "--history",
    "over_time",
    is_flag=True,
    help="Take all bundles of one folder in the order of time, and say where figures step.",
)
@click.option(
    "--csv",
    "table",
    cls=Of,
    of=("--history",),
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write that history as CSV, which Apache Otava reads.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw a picture (PNG, SVG).",
)
@click.option("--markdown", is_flag=True, help="Print Markdown, as for a pull request.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
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
      loadstone compare --history nightly/ --csv nightly.csv

    The status is 3 if a condition of --fail-if holds.
    """
    from loadstone.compare import compare_bundles, compare_itself

    if markdown and given["over_time"]:
        raise click.UsageError("--history: takes no --markdown; it looks for steps in one folder")
    if markdown and as_json:
        raise click.UsageError("--markdown and --json: both print; give one of them")
    if given["force"] and not (given["html"] or given["table"] or given["plot"]):
        raise click.UsageError("--force: needs --html, --csv or --plot, of which it says more")
    _check_outputs(given)
    if given["over_time"]:
        _history(arms, as_json, given)
        return
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
    if given["plot"]:
        _draw(found, given)
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


def _history(arms: tuple[str, ...], as_json: bool, given: Mapping[str, Any]) -> None:
    """Steps of a folder of bundles."""
    from loadstone.compare import history_of

    params = click.get_current_context().command.params
    for name in ("margin", "itself", "floor", "fail_if", "html"):
        one = next(one for one in params if one.name == name)
        if is_given(one, click.get_current_context()):
            raise click.UsageError(f"--history: takes no {long_name(one)}; it looks for steps in one folder")
    if len(arms) != 1:
        raise click.UsageError(f"--history: takes one folder of bundles, and {len(arms)} are given")
    found = history_of(
        arms[0],
        given["metrics"],
        all_metrics=given["all_metrics"],
        confidence=given["confidence"],
        accept_differences=given["accept_differences"],
    )
    if given["table"]:
        with aside(given["table"], given["force"]) as hidden:
            hidden.write_text(found.csv(), encoding="utf-8")
    if given["plot"]:
        _draw(found, given)
    if as_json:
        _show.show_json(found.to_json())
    else:
        click.echo(in_options(found.text()))


def _draw(found: Comparison | History, given: Mapping[str, Any]) -> None:
    from loadstone.model.description import save_figure

    save_figure(found.plot(), given["plot"], given["force"])


def _check_outputs(given: Mapping[str, Any]) -> None:
    """Files that are written take the place of no others, which is found out before the work is done."""
    from loadstone.model.description import picture_ending

    if given["plot"]:
        picture_ending(given["plot"])
    for name in ("plot", "html", "table"):
        if given[name]:
            refuse(given[name], given["force"])


def _tell(found: Comparison) -> None:
    """Prints it; a terminal gets colour where a difference is real."""
    colour = _show.colours()
    click.echo(in_options(found.text(colour)), file=drawn() if colour else None)
