"""Benchmarks by name on the command line: their help, their list, their names to complete, their size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from loadstone.cli._command import Command
from loadstone.cli._show import human_bytes, show_json

if TYPE_CHECKING:
    from loadstone.personalities import Personality
    from loadstone.suites import Suite

NAMED = ("randread", "randwrite", "randrw", "read", "write", "rw", "trim", "randtrim")
"""Loads by name that are no personalities."""


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that begin so, and then files."""
    from loadstone.personalities import find, names
    from loadstone.suites import SUITES

    found = [CompletionItem(name) for name in NAMED if name.startswith(incomplete)]
    found += [
        CompletionItem(name, help=suite.title)
        for name, suite in SUITES.items()
        if name.startswith(incomplete)
    ]
    found += [CompletionItem(name, help=find(name).title) for name in names() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


class RunCommand(Command):
    """``loadstone run NAME --help`` is about that name, wherever the words stand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Looks which workload is meant before any option acts."""
        try:
            words, _, _ = self.make_parser(ctx).parse_args(list(args))
        except click.UsageError:
            # The base class knows more to say of it.
            words = {}
        # Where none is named there is a mark of click's in its place.
        name = words.get("workload")
        ctx.meta[__name__] = name if isinstance(name, str) else ""
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of a personality or suite where one is named, else that of the command."""
        name = ctx.meta.get(__name__) or ""
        from loadstone.personalities import find, names
        from loadstone.suites import SUITES

        if name in names():
            _help(find(name), ctx, formatter)
        elif name in SUITES:
            from loadstone.cli._suite import help_of

            help_of(SUITES[name], ctx, formatter)
        else:
            if name and "." not in name and "/" not in name:
                from loadstone.errors import Error
                from loadstone.workload.jobs import known_kind

                try:
                    known_kind(name)
                except Error as error:
                    raise click.UsageError(str(error), ctx) from None
            super().format_help(ctx, formatter)


def _help(found: Personality, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    from loadstone.personalities import held

    formatter.write_usage(f"{ctx.command_path} {found.name}", "--on DIR [OPTIONS]")
    formatter.write_paragraph()
    with formatter.indentation():
        for paragraph in (found.title[0].upper() + found.title[1:] + ".", *found.about):
            formatter.write_text(paragraph)
            formatter.write_paragraph()
        formatter.write_text(f"From: {found.source}")
    for loop in found.mix:
        whose = f", {loop.process}" if loop.process else ""
        with formatter.section(f"Mix of one loop{whose}"):
            shares = loop.shares()
            formatter.write_dl([(flowop, f"{n:g} ({shares[flowop]:.1%})") for flowop, n in loop.counts])
    with formatter.section("Variables (-D NAME=VALUE)"):
        formatter.write_dl([(one.name, f"{one.about} [{one.default}]") for one in found.variables])
    if found.scale is not None:
        with formatter.section("Size"):
            formatter.write_text(
                f"Its files hold {human_bytes(held(found))} at the start. --size 8g or --size 2x-ram changes "
                f"${found.scale} so that they hold as much."
            )
    with formatter.section("Example"):
        size = " --size 2x-ram" if found.scale else ""
        formatter.write(f"{'':{formatter.current_indent}}{_example(found, size)}\n")
    formatter.write_paragraph()
    formatter.write_text(
        f"loadstone run {found.name} --source prints the script, to be copied and changed; all other options "
        "are those of scripts: loadstone run --help, docs/reference/filebench.md and workloads.md."
    )


def _example(found: Personality, size: str) -> str:
    return f"loadstone run {found.name} --on /mnt/tree{size} --duration 30s --out {found.name}.bundle"


def show_list(as_json: bool) -> None:
    """Every load that has a name."""
    from loadstone.personalities import find, names
    from loadstone.suites import SUITES

    found = [find(name) for name in names()]
    suites = list(SUITES.values())
    if as_json:
        told = [_told_suite(one) for one in suites]
        show_json({"personalities": [_told(one) for one in found], "suites": told, "requests": list(NAMED)})
        return
    titles = [(one.name, one.title) for one in suites] + [(one.name, one.title) for one in found]
    width = max(len(name) for name, _ in titles)
    for name, title in titles:
        click.echo(f"{name:<{width}}  {title}")
    click.echo(f"{', '.join(NAMED)}: requests to one file or device (loadstone run --help)")


def _told(one: Personality) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "about": list(one.about),
        "source": one.source,
        "mix": [{"process": loop.process, "counts": dict(loop.counts)} for loop in one.mix],
        "scale": one.scale,
        "variables": [{"name": v.name, "default": v.default, "about": v.about} for v in one.variables],
    }


def _told_suite(one: Suite) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "about": one.about,
        "source": one.source,
        "variables": [
            {"name": name, "default": v.default, "about": v.meaning} for name, v in one.variables.items()
        ],
    }


def source_of(workload: str) -> str:
    """The script of a personality."""
    from loadstone.personalities import find

    return find(workload).text
