"""``loadstone run iozone`` and the like: a suite's table, and its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli._command import in_options
from loadstone.cli._show import show_json
from loadstone.cli._shown import Shown
from loadstone.cli._summary import content_lines, stopped_early
from loadstone.errors import Kept

if TYPE_CHECKING:
    from types import TracebackType

    from loadstone.suites import Suite, SuitePlans
    from loadstone.workload import Job


class ShownSuite(Shown):
    """What is shown of a suite: the table of all its runs."""

    def __init__(self, job: Job, given: Mapping[str, Any]) -> None:
        """Raises where there is nothing that could be divided."""
        super().__init__(job, given)
        if given["by"] and not given["out"]:
            raise click.UsageError(
                f"--by: only the bundle of {job.workload} has threads and workers apart; give --out"
            )

    def __call__(self, summary: Mapping[str, Any]) -> None:
        """A run is a part of the table."""
        self.runs.append(summary)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything was shown before."""

    def end(self, failure: Kept | None) -> None:
        """Prints the table of what was measured."""
        from loadstone.bundle.figures import of_run
        from loadstone.suites import measured, table

        found, runs = self.job.suite, self.runs
        if found is None or not runs:
            return
        rows, last = measured(found, runs), runs[-1]
        if self.given["as_json"]:
            figures = [of_run(f"run{number}", summary) for number, summary in enumerate(runs, 1)]
            partial = bool(last["partial"]) or failure is not None
            told = {"suite": found.suite, "partial": partial, "figures": figures, "measurements": rows}
            show_json(told)
        else:
            if reason := stopped_early(last):
                click.echo(f"stopped early: {reason}")
            _show(*table(found.suite, rows), unit=_UNITS.get(found.suite))
            for line in [*_contents(found, runs), *_verified(runs)]:
                click.echo(line)
        super().end(failure)
        for note in _remarks(rows, runs):
            click.echo(f"note: {in_options(note)}", err=True)


_UNITS = {
    "iozone": "KiB/s of each pass; file and record in KiB",
    "vxbench": "MB/s (10^6 bytes) of all processes together",
}


def _remarks(rows: Sequence[Mapping[str, Any]], summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """What should be known besides the table, each once."""
    told = [note for one in summaries for note in (*one.get("notes", ()), *one.get("warnings", ()))]
    told += [f"{row['test']}: not one file or seek succeeded" for row in rows if row.get("count") == 0]
    return list(dict.fromkeys(told))


def _contents(found: SuitePlans, summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was asked of written data, and what each run left of it, where it left any."""
    lines: list[str] = []
    for names, one in zip(found.names, summaries, strict=False):
        content = one.get("content")
        if content is None or (content["found"] and not content["found"]["examined"]["read"]):
            continue
        asked, *left = content_lines(content)
        lines += [asked] if asked not in lines else []
        lines += [f"{', '.join(names)}: {line}" if len(found.plans) > 1 else line for line in left]
    return lines


def _verified(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the verification of several runs found, where they were verified."""
    from loadstone.verification import lines, together

    found = [one["verified"] for one in summaries if one.get("verified")]
    return lines(together(found)) if found else []


def _show(heads: list[str], cells: list[list[str]], unit: str | None) -> None:
    """Prints a table whole: numbers are not cut off where the terminal is narrow."""
    if unit:
        click.echo(unit)
    words = [head.split() for head in heads]
    height = max(map(len, words))
    lines = [[""] * (height - len(head)) + head for head in words]
    widths = [max(map(len, (*head, *(line[i] for line in cells)))) for i, head in enumerate(words)]
    left = not cells[0][0].isdecimal()
    for row in (*zip(*lines, strict=True), *cells):
        padded = (
            cell.ljust(width) if left and i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(padded).rstrip())


def help_of(suite: Suite, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """What ``loadstone run NAME --help`` tells of a suite."""
    formatter.write_usage(f"{ctx.command_path} {suite.name}", "--on DIR [OPTIONS]")
    formatter.write_paragraph()
    with formatter.indentation():
        for paragraph in (
            suite.title[0].upper() + suite.title[1:] + ".",
            in_options(suite.about, ctx),
            f"From: {suite.source}",
        ):
            formatter.write_text(paragraph)
            formatter.write_paragraph()
    with formatter.section("Variables (-D NAME=VALUE)"):
        formatter.write_dl(
            [(name, f"{one.meaning} [{one.default}]") for name, one in suite.variables.items()]
        )
    names = {"--size": suite.size, "--bs": suite.block, "--depth": suite.depth}
    options = [(option, f"-D {variable}=") for option, variable in names.items() if variable]
    if suite.sweep:
        options.append(("--sweep", " ".join(f"-D {name}={value}" for name, value in suite.sweep.items())))
    if "direct" in suite.variables:
        options.append(("--direct", "-D direct=yes"))
    with formatter.section("The same as options"):
        formatter.write_dl(options)
    with formatter.section("Example"):
        example = f"loadstone run {suite.name} --on /mnt/tree --out {suite.name}.bundle"
        formatter.write(f"{'':{formatter.current_indent}}{example}\n")
    formatter.write_paragraph()
    formatter.write_text("Other options: loadstone run --help; docs/reference/suites.md.")
