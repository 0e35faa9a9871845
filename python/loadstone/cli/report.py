"""``loadstone report``: an HTML page from bundles."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli._command import Command


@click.command(cls=Command)
@click.argument("bundles", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o", "--output", "out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page."
)
@click.option("--title", help="Title of the page; by default what was run.")
@click.option("--force", is_flag=True, help="Replace the page if it exists.")
@_show.json_option
def command(bundles: tuple[Path, ...], out: Path, title: str | None, force: bool, as_json: bool) -> None:
    """Write an HTML report from BUNDLES: what was run and on what, and what came of it.

    Replays and models are drawn against each other. The page is one file that loads nothing; every
    figure has its numbers beside it, as a table and as CSV.

    \b
    Example:
      loadstone report evaluation -o report.html
      loadstone report replay.bundle run.bundle -o report.html --title "Replay against model"

    --json prints report (path), title, conclusion, figures (ids) and warnings.
    """
    from loadstone import report

    page = report.write(list(bundles), out, title=title, force=force)
    if as_json:
        _show.show_json(
            {
                "report": str(out),
                "title": page.title,
                "conclusion": page.conclusion,
                "figures": [figure.id for section in page.sections for figure in section.figures],
                "warnings": page.warnings,
            }
        )
        return
    for warning in page.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(page.conclusion)
    click.echo(f"report: {out}")
