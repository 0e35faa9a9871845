"""What all commands do with their words before any option acts."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from loadstone._core import deny
from loadstone._files import is_part
from loadstone.cli import _show
from loadstone.errors import Error, OptionError, PlanError

WORDS = {
    "--numjobs": "--depth (requests in flight), or -D nthreads=N of a benchmark",
    "--threads": "--depth (requests in flight), or -D nthreads=N of a benchmark",
    "--thread": "--depth (requests in flight), or -D nthreads=N of a benchmark",
    "--queue-depth": "--depth",
    "--qd": "--depth",
    "--rw": "a workload's name, as in: loadstone run randread",
    "--readwrite": "a workload's name, as in: loadstone run randread",
    "--rwmixread": "-D reads=0.7",
    "--rwmixwrite": "-D reads=0.3",
    "--timeout": "--duration",
    "--time": "--duration",
    "--time-based": "--duration",
    "--warmup": "--duration; what is measured begins at once",
    "--filename": "--on",
    "--file": "--on",
    "--directory": "--on",
    "--dir": "--on",
    "--target": "--on",
    "--device": "--on",
    "--blocksize": "--bs",
    "--block-size": "--bs",
    "--bsrange": "--bs, as in 4k-64k",
    "--bssplit": "--bs, as in 4k:60,64k:40",
    "--record": "--bs",
    "--reclen": "--bs",
    "--record-size": "--bs",
    "--engine": "--backend",
    "--io-size": "--requests",
    "--number-ios": "--requests",
    "--count": "--requests",
    "--filesize": "--size",
    "--file-size": "--size",
    "--length": "--size",
    "--rate-iops": "--rate",
    "--iops": "--rate",
    "--speed": "--pace",
    "--speedup": "--pace",
    "--replay-time-scale": "--pace",
    "--random-distribution": "--skew",
    "--zipf": "--skew, as in zipf:1.1",
    "--randseed": "--seed",
    "--cpus-allowed": "--cpus",
    "--invalidate": "--cache",
    "--drop-caches": "--cache",
    "--buffered": "what is done without --direct",
    "--o-direct": "--direct",
    "--odirect": "--direct",
    "--dedupe-percentage": "--dedupe",
    "--buffer-compress-percentage": "--compress",
    "--write-iolog": "--log",
    "--output": "--out",
    "--output-dir": "--out",
    "--output-format": "--json",
    "--format": "--json",
    "--overwrite": "--force",
}
"""What users of fio, IOzone and Filebench write, and what does that here."""

GROUPS = (
    *("Target", "Load", "Pace", "Evaluation", "Content", "Verification", "Surroundings", "Results"),
    "Reading the trace",
)
"""Groups of options, in the order in which help shows them."""

_ALIKE = 0.75
"""Share of letters in common from which on a word may be a slip for another."""


class Of(click.Option):
    """An option that says more of others, and without one of them nothing."""

    def __init__(self, *args: Any, of: Sequence[str], **attributes: Any) -> None:
        """``of``: names of the others, as they are written."""
        super().__init__(*args, **attributes)
        self.of = of


class Command(click.Command):
    """A command that takes no option twice and none that is empty, and knows the words of other tools."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        """As any command, with ``--quiet``, which is told before the verb, understood after it, too."""
        super().__init__(*args, **attributes)
        self.params.append(
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                hidden=True,
                expose_value=False,
                callback=_be_quiet,
                help="No progress and no live lines.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the words, as any command does."""
        try:
            given, _, order = self.make_parser(ctx).parse_args(list(args))
            asks_help = any(one.name == "help" for one in order)
            if not (ctx.resilient_parsing or asks_help):
                _refuse_repeated(order, ctx)
                _refuse_empty(order, given, ctx)
            left = super().parse_args(ctx, args)
            _refuse_alone(self.get_params(ctx), ctx)
            _refuse_inputs(self.get_params(ctx), ctx)
            _refuse_targets(self.get_params(ctx), ctx)
            _allow_others(ctx)
        except click.NoSuchOption as error:
            raise self._meant(error.option_name, ctx) from None
        return left

    def invoke(self, ctx: click.Context) -> Any:
        """Does the work; what it says of options is told as they are written here."""
        try:
            return super().invoke(ctx)
        except PlanError:
            # It names keys of a file, which are no options.
            raise
        except Error as error:
            error.args = (in_options(str(error), ctx),)
            if isinstance(error, OptionError):
                raise click.UsageError(str(error), ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options in their groups, where the command has some."""
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        plain = []
        # What reads a trace and runs nothing has one group only, and needs none.
        has_groups = any(getattr(one, "group", None) == GROUPS[0] for one in self.params)
        for one in self.get_params(ctx):
            if not isinstance(one, click.Option) or (record := one.get_help_record(ctx)) is None:
                continue
            if not has_groups or (group := getattr(one, "group", None)) is None:
                plain.append(record)
            else:
                # Bounds are told in the text, or by the error: what stands in brackets is the default.
                groups[group].append(
                    (record[0], re.sub(r"  \[[^]]*<=?[^]]*\]$|  \[x>=?[^]]*\]$", "", record[1]))
                )
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)
        with formatter.section("Other options" if any(groups.values()) else "Options"):
            formatter.write_dl(plain)

    def _meant(self, written: str, ctx: click.Context) -> click.UsageError:
        """What somebody may have meant who wrote an option that there is not."""
        known = [name for one in self.get_params(ctx) for name in (*one.opts, *one.secondary_opts)]
        word = written.lower().replace("_", "-")
        hint = WORDS.get(word, "")
        named = [part.strip(",;") for part in hint.split() if part.startswith("-")]
        # What another tool calls so may be no matter of this command.
        if hint and (named[0] in known if named else ctx.info_name == "run"):
            return click.UsageError(f"No such option {written!r}. Here that is {hint}", ctx)
        near = difflib.get_close_matches(word, [one for one in known if one.startswith("--")], 1, _ALIKE)
        hint = f" Did you mean {near[0]!r}?" if near else f" {ctx.command_path} --help lists all"
        return click.UsageError(f"No such option {written!r}.{hint}", ctx)


_LOOKS = ("describe", "show", "info", "print", "inspect", "look")
"""Commands that say what is in a file."""


class Group(click.Group):
    """A group of such commands."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names what says the same here, as traces are described and models shown."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            same = [name for name in _LOOKS if name in self.commands] if args[0] in _LOOKS else []
            if not same:
                raise
            hint = f"It is {ctx.command_path} {same[0]}"
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx) from None


def in_options(text: str, ctx: click.Context | None = None) -> str:
    """A text of the library with options as they are written here: `` `verify_state` `` is --verify-state."""
    ctx = ctx or click.get_current_context(silent=True)
    params = ctx.command.params if ctx is not None else []
    named = {one.name: one for one in params if isinstance(one, click.Option)}

    def written(match: re.Match[str]) -> str:
        one = named.get(match[1])
        return match[0] if one is None else long_name(one)

    return re.sub(r"`(\w+)`", written, text)


def long_name(one: click.Parameter) -> str:
    """An option as it is written, in full."""
    return next((name for name in one.opts if name.startswith("--")), one.opts[0])


def _be_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        _show.set_quiet(True)


def is_given(one: click.Parameter, ctx: click.Context) -> bool:
    """Whether an option was given, and not only has its default."""
    return ctx.get_parameter_source(one.name or "") not in (ParameterSource.DEFAULT, None)


def _refuse_alone(params: Sequence[click.Parameter], ctx: click.Context) -> None:
    """Raises where an option is given without those that it says more of."""
    given = {name for one in params if is_given(one, ctx) for name in one.opts}
    for one in params:
        if isinstance(one, Of) and is_given(one, ctx) and not given.intersection(one.of):
            others = " or ".join(one.of)
            raise click.UsageError(f"{one.opts[0]}: needs {others}, of which it says more", ctx)


_OUTPUTS = ("-o", "--plot", "--report", "--to")
"""Options that name a file to write, where their values are paths."""


def _refuse_inputs(params: Sequence[click.Parameter], ctx: click.Context) -> None:
    """Raises where what is written would take the place of what is read, which ``--force`` does not mean."""
    for out in params:
        name = next((one for one in out.opts if one in _OUTPUTS), None)
        written = ctx.params.get(out.name or "") if name and isinstance(out.type, click.Path) else None
        if not isinstance(written, str | os.PathLike) or not os.path.exists(written):
            continue
        for one in params:
            given = ctx.params.get(one.name or "") if one is not out else None
            for read in given if isinstance(given, list | tuple) else [given]:
                commits = "--git" in one.opts
                if isinstance(read, str | os.PathLike) and any(
                    is_part(written, one, commits) for one in _named(read)
                ):
                    what = f"{name} {os.fspath(written)}: is what is read, or a part of it; give another name"
                    raise click.UsageError(what, ctx)


_WRITTEN = ("--on", "--map", "--log", "--verify-state")
"""Options that name what a load writes; its traces, models and jobs are no matter of theirs."""


def _allow_others(ctx: click.Context) -> None:
    """Lets others read what is made to be published; all other outputs are their owner's alone."""
    if ctx.params.get("public") or ctx.info_name == "publish":
        deny(0)
        ctx.call_on_close(lambda: deny(0o077))


def _texts(value: Any) -> list[str]:
    """Texts of a parameter, however many it has."""
    if isinstance(value, Mapping):
        return [str(one) for one in value.values()]
    given = value if isinstance(value, list | tuple) else [value]
    return [os.fspath(one) for one in given if isinstance(one, str | os.PathLike)]


def _refuse_targets(params: Sequence[click.Parameter], ctx: click.Context) -> None:
    """Raises where a load would write over a file that ``@FILE`` reads, or remove it with its directory."""
    values = [text for one in params for text in _texts(ctx.params.get(one.name or ""))]
    read = [text[1:] for text in values if text.startswith("@") and os.path.isfile(text[1:])]
    for one in params if read else ():
        if not set(one.opts).intersection(_WRITTEN):
            continue
        for target in _texts(ctx.params.get(one.name or "")):
            target = target.rpartition("=")[2] if "--map" in one.opts else target
            if any(is_part(target, file) or is_part(file, target) for file in read if os.path.exists(target)):
                raise click.UsageError(f"{one.opts[0]} {target}: is or holds what is read; name another", ctx)


def _named(value: str | os.PathLike[str]) -> list[str]:
    """Files that a value may name: itself, ``@FILE`` or ``FILE:NAME``."""
    text = os.fspath(value)
    return [text, text.removeprefix("@"), text.rpartition(":")[0] or text]


def _refuse_repeated(order: list[click.Parameter], ctx: click.Context) -> None:
    """Raises where an option is given twice that can only be meant once: the last would stand silently."""
    for one, times in Counter(order).items():
        if times > 1 and isinstance(one, click.Option) and not (one.multiple or one.count):
            raise click.UsageError(f"{one.opts[0]}: is given {times} times; give it once", ctx)


def _refuse_empty(order: list[click.Parameter], given: Mapping[str, Any], ctx: click.Context) -> None:
    """Raises where a value is empty, as a variable of a shell that is not set is: it would name nothing."""
    for one in order:
        if _has_empty(given.get(one.name or "")):
            name = one.opts[0] if isinstance(one, click.Option) else one.make_metavar(ctx)
            raise click.UsageError(f"{name}: is empty; give it a value, or leave it out", ctx)


def _has_empty(value: Any) -> bool:
    return any(map(_has_empty, value)) if isinstance(value, list | tuple) else value == ""
