"""``loadstone run iozone`` and the like: a suite's runs, its table, and its help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from loadstone import Error
from loadstone._kept import Kept
from loadstone._values import Misused
from loadstone.cli._confirm import confirm_plans
from loadstone.cli._load import LiveLine, conclude, content_of, show_plans, target_size, verify_of, viewer
from loadstone.cli._show import counted, human_bytes, show_json
from loadstone.cli._summary import content_lines, stopped_early
from loadstone.cli._types import Several

if TYPE_CHECKING:
    from loadstone.suites import Suite, SuitePlans

_LONG = 3600.0
"""Seconds beyond which a suite is not begun without being asked."""


def perform(name: str, variables: Mapping[str, str], sweep: bool, given: Mapping[str, Any]) -> None:
    """Runs a suite, prints its table and ends with the right status; or prints its plans."""
    from loadstone.bundle.figures import of_run
    from loadstone.suites import SUITES, measured, plan_suite, table

    suite = SUITES[name]
    if given["by"] and not given["out"]:
        raise click.UsageError(
            f"--by: the table of {name} tells nobody apart, but the bundle does; give --out"
        )
    try:
        found = plan_suite(
            name,
            _where(name, given["on"]),
            variables=_said(suite, variables, given),
            sweep=sweep,
            seed=given["seed"],
            interval=given["interval"],
            cpus=given["cpus"] or (),
            cache=given["cache"],
            memory_limit=given["memory_limit"],
            allow_destroy=given["allow_destroy"],
            content=content_of(given),
            verify=verify_of(given),
        )
    except Misused as error:
        error.args = (_as_written(str(error), suite, variables),)
        raise
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if given["dry_run"]:
        show_plans(name, found.plans, "suite")
        return
    if not _confirmed(found, given["yes"]):
        click.echo("nothing was done", err=True)
        raise click.exceptions.Exit(1)
    confirm_plans([], given["yes"], found.room)
    with viewer(given) as live:

        def say(text: str) -> None:
            if isinstance(live, LiveLine):
                live.clear()
                live.title = text

        summaries, failure = _performed(name, found, live, say, given)
    if failure is not None and not summaries:
        raise failure
    rows = measured(found, summaries)
    last = summaries[-1]
    if given["as_json"]:
        figures = [of_run(f"run{number}", summary) for number, summary in enumerate(summaries, 1)]
        partial = bool(last["partial"]) or failure is not None
        show_json({"suite": name, "partial": partial, "figures": figures, "measurements": rows})
    else:
        if reason := stopped_early(last):
            click.echo(f"stopped early: {reason}")
        _show(*table(name, rows), unit=_UNITS.get(name))
        for line in [*_contents(found, summaries), *_verified(summaries)]:
            click.echo(line)
        if given["out"] and failure is None:
            click.echo(f"bundle: {given['out']}")
    for note in _remarks(rows, summaries):
        click.echo(f"note: {note}", err=True)
    if failure is not None:
        raise failure
    conclude(summaries)


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


def _where(name: str, on: str | None) -> str:
    if on is None:
        raise Error(f"{name}: no directory to run in; give --on DIR or --on null:")
    return on


def _said(suite: Suite, variables: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Variables, of which some are options too."""
    said = dict(variables)
    ctx = click.get_current_context()
    for option, (variable, key) in _options(suite).items():
        if ctx.get_parameter_source(key) is ParameterSource.DEFAULT:
            continue
        if variable is None:
            raise click.UsageError(f"{option}: {suite.name} has no such size; its variables are set with -D")
        if variable in variables:
            raise click.UsageError(f"{option} and -D {variable}= say the same; give one of them")
        value = given[key]
        if isinstance(value, Several):
            value = value.text
        elif key == "size":
            value = target_size(value, given["memory_limit"])
        said[variable] = str(value)
    if given.get("direct"):
        if "direct" not in suite.variables:
            raise click.UsageError(f"--direct: {suite.name} goes through the page cache")
        said["direct"] = "yes"
    return said


def _options(suite: Suite) -> dict[str, tuple[str | None, str]]:
    """The options that set a variable: this, and their names in what is given."""
    return {"--size": (suite.size, "size"), "--bs": (suite.block, "bs"), "--depth": (suite.depth, "depth")}


def _as_written(text: str, suite: Suite, variables: Mapping[str, str]) -> str:
    """What is wrong with a variable, by the option that set it."""
    for option, (variable, _) in _options(suite).items():
        if variable not in variables and text.startswith(begin := f"-D {variable}="):
            return f"{option} {text.removeprefix(begin)}"
    return text


def _confirmed(found: SuitePlans, yes: bool) -> bool:
    """Asks before something that may take hours."""
    work = found.work
    if yes or work.seconds < _LONG:
        return True
    requests = work.requests + work.skipped
    what = f"{counted(len(found.plans), 'run')} of about {requests:,.0f} requests"
    if work.flushes:
        what += f", {work.flushes:,.0f} of which wait for the device,"
    if work.bytes:
        what += f" and {human_bytes(work.bytes)}"
    what += f" in all: about {work.seconds / 3600:,.1f} hours (docs/suites.md tells at which speeds)"
    if not sys.stdin.isatty():
        raise Error(f"{what}; give --yes to begin, or ask for less with -D")
    return click.confirm(f"{what}. Begin?", err=True)


def _performed(
    name: str, found: SuitePlans, live: Any, say: Callable[[str], None], given: Mapping[str, Any]
) -> tuple[Sequence[Mapping[str, Any]], Kept | None]:
    """Summaries of the runs, and why there are no more of them."""
    from loadstone.cli._script import untold
    from loadstone.suites import run_suite

    try:
        return (_kept(name, found, live, given) if given["out"] else run_suite(found, live, say)), None
    except Kept as error:
        return (untold(error, 0) if given["out"] else (error.summary or {}).get("runs", [])), error


def _kept(name: str, found: SuitePlans, live: Any, given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    from loadstone.study.runner import ObserveOptions
    from loadstone.study.script import run_suite_kept

    series = run_suite_kept(
        found,
        given["out"],
        name=name,
        observe=ObserveOptions(given["sample"], given["probes"]),
        on_live=live,
        force=given["force"],
        by=given["by"],
    )
    return [bundle.summary for bundle in series.bundles()]


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
            suite.about,
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
    formatter.write_text("Other options: loadstone run --help; docs/suites.md.")
