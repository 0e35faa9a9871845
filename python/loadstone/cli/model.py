"""``loadstone model``: fit a model to a trace, look at it, sample it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import click

from loadstone import _values
from loadstone._text import one_line
from loadstone.cli import _model_algebra, _model_check, _model_many, _model_share
from loadstone.cli._command import Command, Group, Of, in_options
from loadstone.cli._model_check import compare_with, show_aspects, show_check
from loadstone.cli._model_share import show_chain
from loadstone.cli._plugin import features, own_features, plugin_option
from loadstone.cli._reading import reading_options
from loadstone.cli._show import counted, human_bytes, human_time, json_option, progress, show_json
from loadstone.cli._types import DURATION, FILE, SEED, SIZE, Count, Number, Share, once
from loadstone.errors import Error


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Fit a model to a trace, look at it, and draw requests from it.

    A model is a set of multi-dimensional histograms: how often each combination of op, size, jump,
    inter-arrival time and so on occurs in each phase of the trace. It is a small fraction of the
    trace and generates requests like the trace's for as long as the trace is.

    \b
    Example:
      loadstone model fit disk.spc -o disk.mdh
      loadstone model show disk.mdh
    """


def _trace_bytes(traces: tuple[str, ...]) -> int:
    """Bytes on disk; the base of a blktrace capture stands for its files."""
    total = 0
    for trace in traces:
        path = Path(trace)
        files = [path] if path.exists() else path.parent.glob(f"{path.name}.*")
        total += sum(file.stat().st_size for file in files)
    return total


_ADVANCED = (
    *("in_window", "group", "merge", "distance", "threshold", "max_matrices"),
    *("offset_rule", "far", "regions", "cell_bits"),
)
"""Options of fit whose defaults are right for nearly all traces."""


class _Fit(Command):
    """The command fit, whose help lists the advanced options last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options in two groups."""
        usual: list[tuple[str, str]] = []
        advanced: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            if (told := param.get_help_record(ctx)) is not None:
                (advanced if param.name in _ADVANCED else usual).append(told)
        for title, rows in (("Options", usual), ("Advanced", advanced)):
            with formatter.section(title):
                formatter.write_dl(rows)


@command.command(cls=_Fit)
@click.argument("trace", nargs=-1, required=True, metavar="TRACE...")
@click.option("-o", "--output", required=True, type=FILE, help="The model file to write (.mdh).")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.option(
    "--window",
    type=DURATION,
    help="Length of a window; default: the smaller of 20s and a thirtieth of the trace, halved as "
    "long as windows hold many requests.",
)
@click.option(
    "--in-window",
    type=Number(0),
    metavar="N",
    help="Requests that a window should hold on average, where --window is not given; default 8.",
)
@click.option(
    "--group",
    type=Count(0),
    metavar="N",
    help="Compare neighbouring windows once they hold N requests together; default 256, 0: each alone.",
)
@click.option(
    "--merge",
    type=click.Choice(["none", "adjacent", "all"]),
    help="Which windows may share a matrix; default all.",
)
@click.option(
    "--distance",
    type=click.Choice(["marginals", "tv", "max-cell"]),
    help="How windows are compared: total variation of the marginal that differs most, or difference of the "
    "mean sizes (default); total variation of the joint histograms; their largest difference in a cell.",
)
@click.option(
    "--threshold",
    type=Share(0, 1),
    help="Largest distance, beyond what chance explains, that shares a matrix; default 0.05.",
)
@click.option("--max-matrices", type=Count(1), metavar="N", help="At most N matrices; default 256.")
@click.option(
    "--dimension",
    "dimensions",
    multiple=True,
    metavar="[ROLE:]FEATURE[=RULE]",
    help="Replace or add a dimension; repeatable. Roles: sets, given, observed. Rules: log2:SUB, "
    "linear:WIDTH, exact+log2:SUB, exact+linear:WIDTH, category.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="FEATURE",
    help="Leave out a usual dimension; repeatable.",
)
@click.option(
    "--only",
    is_flag=True,
    help="Take these dimensions alone, without the usual ones: a plainer model, and a faster fit.",
)
@plugin_option
@click.option(
    "--think",
    is_flag=True,
    help="Draw think times too: who asks, after which answer and how long. The model can then be run with "
    "--order dependency. Needs latencies; not for traces of files.",
)
@click.option(
    "--boundaries",
    metavar="T,T...|auto",
    help="Begin phases at these times and nowhere else (10s,5m), or where the load changes (auto). All "
    "windows between two share a matrix.",
)
@click.option(
    "--offset-rule",
    type=click.Choice(["near", "jump", "region"]),
    help="What sets offsets: jumps where they are near and regions where they are far (default), only "
    "jumps, or only regions.",
)
@click.option("--far", type=SIZE, help="Jumps up to this are near; default one region.")
@click.option("--regions", type=Count(1), metavar="N", help="Regions of an object; default 64.")
@click.option(
    "--factored",
    is_flag=True,
    help="Store a chain of small tables in place of joint ones: several times smaller (model factor).",
)
@click.option(
    "--cell-bits",
    type=Number(0, min_open=True),
    metavar="BITS",
    help="What each cell of such a table must save; default 16. More make a smaller and coarser model.",
)
@click.option(
    "--small",
    is_flag=True,
    help="A model of about a hundredth of the trace's size that keeps what caches miss: factored, with "
    "longer windows, wider regions and fewer matrices, wherever nothing else is asked for. See what it "
    "loses with --check.",
)
@click.option(
    "--public",
    is_flag=True,
    help="Leave out names, dates and rare exact values, so that the model can be published (model publish).",
)
@click.option(
    "--check", is_flag=True, help="Then draw from the model and compare that with the trace (model check)."
)
@click.option(
    "--target-error",
    type=Share(0, 1, min_open=True, max_open=True),
    metavar="E",
    help="Start coarse and refine windows, threshold and buckets until what is drawn differs from the trace "
    "by at most E, such as 10%: in ops, sizes, gaps, alignment, runs, and in reads, writes and bytes over "
    "time.",
)
@reading_options
@json_option
def fit(
    trace: tuple[str, ...],
    output: str,
    force: bool,
    public: bool,
    check: bool,
    target_error: float | None,
    boundaries: str | None,
    factored: bool,
    cell_bits: float | None,
    small: bool,
    think: bool,
    dimensions: tuple[str, ...],
    without: tuple[str, ...],
    only: bool,
    plugins: tuple[str, ...],
    reading: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Fit a model to a trace.

    Fitting takes one pass and bounded memory. The model has these features of each request: op, object,
    size, gap (inter-arrival time), align (offset modulo 4 KiB), resume (requests since the one that it goes
    on from), reuse_distance (LRU stack distance: decides what caches miss), op_jump (from the end of the
    last request of the same op), region, and op and run (length of the sequential run) of the request
    before. Models of files have, in place of offsets: file (other files used since this one), state (what
    happened to it), near (directory of a new file), length, other (second file of a rename and the like),
    result (errno), seek (from the position in the file) and reuse (requests since the place was used).
    Others can be observed: latency, actor, flags, outstanding (requests in flight), think (time of its actor
    since an answer), stream (requests of its sequential stream), reuse_time, age and popularity (rank) of
    its block, and features of your own (--plugin). loadstone model features lists all.

    \b
    Examples:
      loadstone model fit disk.spc -o disk.mdh
      loadstone model fit disk.spc -o disk.mdh --small --check
      loadstone model fit disk.spc -o disk.mdh --window 1s --dimension size=log2:4 \\
          --dimension "given:previous(size)"
      loadstone model fit disk.spc -o plain.mdh --only --dimension op --dimension object \\
          --dimension size --dimension jump --dimension region --dimension gap
    """
    from loadstone import model as models

    if not force and os.path.lexists(output):
        raise click.ClickException(f"{output}: the file exists; choose another name, or use --force")
    own = own_features(plugins)
    features = [name.partition("=")[0].rpartition(":")[2].strip() for name in dimensions]
    once("--dimension", features)
    once("--without", without)
    named = set(features)
    asked = [*dimensions, *(name for name in own if name not in named)]
    total = _trace_bytes(trace)
    # A small model is factored anyway, with bits of its own.
    bits = models.CELL_BITS if cell_bits is None and factored and not small else cell_bits
    if target_error is not None:
        chosen = {
            **options,
            "boundaries": boundaries,
            "think": think or None,
            "only": only or None,
            "small": small or None,
            "without": without or None,
        }
        if given := [f"--{name.replace('_', '-')}" for name, value in chosen.items() if value is not None]:
            raise click.UsageError(f"--target-error chooses what {', '.join(given)} would")
        begins: list[float] = []
        fitted, steps = _refined(trace, target_error, asked, reading, quiet=as_json)
        fitted = fitted if bits is None else fitted.factored(cell_bits=bits)
    else:
        steps = []
        begins = _boundaries(boundaries, trace, asked, reading, options, total)
        with progress("fitting", total) as update:
            fitted = models.fit(
                trace,
                dimensions=asked,
                without=without,
                only=only,
                think=think,
                boundaries=begins,
                small=small,
                cell_bits=bits,
                trace=reading,  # type: ignore[arg-type]  # a dict of trace.Options
                progress=lambda done, _: update(done),
                **options,
            )
    warnings = list(fitted.warnings)
    span = fitted.header["source"]["span_ns"]
    if beyond := [time for time in begins if time * 1e9 > span]:
        warnings.append(
            f"--boundaries: nothing begins at {human_time(beyond[0] * 1e9)} or later: the trace ends after "
            f"{human_time(span)}"
        )
    if public:
        fitted = fitted.published()
        if exposed := fitted.exposed():
            warnings.append(exposed)
    fitted.save(output, force=force)
    size = os.path.getsize(output)
    phases, matrices = fitted.phases(), fitted.matrices()
    found: dict[str, Any] = {
        "model": output,
        "requests": fitted.requests,
        "windows": phases[-1]["windows"][1],
        "window_s": fitted.window,
        "phases": len(phases),
        "matrices": len(matrices),
        "cells": fitted.stored_cells,
        "chain": fitted.chain,
        "bytes": size,
        "trace_bytes": total,
        "warnings": warnings,
    }
    for warning in warnings:
        click.echo(f"warning: {in_options(warning)}", err=True)
    if steps:
        found["steps"] = [dataclasses.asdict(step) for step in steps]
        found["error"] = min(step.error for step in steps)
    if check:
        compared = compare_with(fitted, trace, reading, 1)
        found["check"] = {**compared, "verdict": models.verdict(compared)}
    if as_json:
        show_json(found)
    else:
        click.echo(
            f"{output}: {found['requests']:,} requests in {found['windows']:,} windows of "
            f"{human_time(fitted.window * 1e9)}, {counted(found['phases'], 'phase')}, "
            f"{counted(found['matrices'], 'matrix', 'matrices')}, "
            f"{found['cells']:,} cells"
        )
        show_chain(fitted)
        click.echo(f"{human_bytes(size)}, {size / max(1, total):.1%} of the trace's {human_bytes(total)}")
        if check:
            show_aspects(found["check"]["verdict"])
            show_check(found["check"])
    if target_error is not None and found["error"] > target_error:
        raise click.ClickException(
            f"an error of {100 * target_error:.3g}% was not met: the best of "
            f"{counted(len(steps), 'model')}, which was written, has {100 * found['error']:.3g}%"
        )


def _boundaries(
    text: str | None,
    trace: tuple[str, ...],
    dimensions: list[str],
    reading: dict[str, Any],
    options: dict[str, Any],
    total: int,
) -> list[float]:
    """Times at which phases begin, as they were given or found."""
    if text is None:
        return []
    merging = ("merge", "distance", "threshold", "max_matrices")
    if wrong := [name for name in merging if options[name] is not None]:
        name = wrong[0].replace("_", "-")
        raise click.UsageError(f"--boundaries say which windows share a matrix; leave out --{name}")
    if text != "auto":
        try:
            times = [_values.duration(part, zero=True) for part in text.split(",")]
        except Error as error:
            raise click.UsageError(f"--boundaries {text}: {error}") from None
        if times != sorted(set(times)):
            raise click.UsageError(f"--boundaries {text}: name the times in their order, each once")
        return times
    from loadstone.model import find_boundaries

    opened: Any = reading
    with progress("looking for changes", total) as update:
        return find_boundaries(
            trace,
            window=options["window"],
            dimensions=tuple(dimensions),
            trace=opened,
            progress=lambda done, _: update(done),
        )


def _refined(
    trace: tuple[str, ...], error: float, dimensions: list[str], reading: dict[str, Any], *, quiet: bool
) -> tuple[Any, list[Any]]:
    """Fits until the error is met, with a line for each fit."""
    from loadstone.model import Step, refine

    def show(step: Step) -> None:
        if not quiet:
            click.echo(
                f"windows of {human_time(step.window * 1e9)}, groups of {step.group:,}: {step.error:.1%} in "
                f"{step.worst}, {human_bytes(step.bytes)}"
            )

    opened: Any = reading
    return refine(trace, error, trace=opened, dimensions=tuple(dimensions), progress=show)


_BAR = 40


def _bars(model: Any, name: str, rows: int) -> None:
    from loadstone.model import description as words

    marginal = model.marginal(name)
    bars = words.coarse(marginal, rows)
    total = max(1, int(marginal.counts.sum()))
    rule = next(d for d in model.header["dimensions"] if d["feature"] == name)
    role = "" if rule["role"] == "sets" else f" ({rule['role']})"
    click.echo(f"\n{words.title(name)}{role}")
    labels = [words.bucket_text(model, name, first, last) for first, last, _ in bars]
    width = max([len(label) for label in labels] + [8])
    most = max([count for _, _, count in bars] + [1])
    for label, (_, _, count) in zip(labels, bars, strict=True):
        bar = "█" * round(_BAR * count / most)
        click.echo(f"  {label:>{width}}  {count / total:6.1%}  {bar}")
    none = int(marginal.counts[marginal.none].sum())
    if none:
        click.echo(f"  {'-':>{width}}  {none / total:6.1%}  (no such number, or another dimension decides)")


def _show_phases(model: Any, most: int) -> None:
    phases = model.phases()
    click.echo(f"\nPhases ({len(phases):,})")
    if len(phases) > most:
        phases = sorted(sorted(phases, key=lambda p: -p["requests"])[:most], key=lambda p: p["start"])
        click.echo(f"  the {most} with the most requests:")
    total = max(1, model.requests)
    top = max([p["requests"] / max(1e-9, p["end"] - p["start"]) for p in phases] + [1e-9])
    click.echo(f"  {'from':>10} {'to':>10}  matrix {'requests':>12}  share      rate/s")
    for phase in phases:
        rate = phase["requests"] / max(1e-9, phase["end"] - phase["start"])
        click.echo(
            f"  {human_time(phase['start'] * 1e9):>10} {human_time(phase['end'] * 1e9):>10}  "
            f"{phase['matrix']:6} {phase['requests']:12,}  {phase['requests'] / total:5.1%} "
            f"{rate:11,.1f}  {'█' * round(20 * rate / top)}"
        )


@command.command()
@click.argument("model", type=FILE)
@click.option("--rows", type=Count(2), default=12, show_default=True, help="Most rows of a list.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw it: .png, .svg or .pdf.")
@click.option("--force", cls=Of, of=("--plot",), is_flag=True, help="Overwrite the picture.")
@json_option
def show(model: str, rows: int, plot: str | None, force: bool, as_json: bool) -> None:
    """Say what a model holds: where it comes from, its phases, and the distribution of each dimension.

    \b
    Examples:
      loadstone model show disk.mdh --plot disk.png
      loadstone model show disk.mdh --json
    """
    from loadstone.model import Model, describe
    from loadstone.model import plot as draw

    fitted = Model.load(model)
    if plot is not None:
        draw(fitted, plot, force=force, title_text=Path(model).name)
    if as_json:
        return show_json(describe(fitted))
    header = fitted.header
    source, merging = header["source"], header["merging"]
    counts, _ = fitted.windows()
    cells = sum(m["cells"] for m in fitted.matrices())
    click.echo(f"{model}: {human_bytes(os.path.getsize(model))}, by {one_line(source['tool'])}")
    click.echo(
        f"  {fitted.requests:,} requests over {human_time(source['span_ns'])}"
        + (f", from {one_line(source['format'])}" if source["format"] else "")
    )
    objects = header["objects"]
    extent = human_bytes(sum(o["extent"] for o in objects))
    if fitted.of_files:
        click.echo("  requests of files, whose names and tree are made up when they are drawn")
    else:
        click.echo(f"  {len(objects):,} object{'s' if len(objects) != 1 else ''}, {extent} altogether")
    click.echo(
        f"  {len(counts):,} windows of {human_time(fitted.window * 1e9)}, "
        f"{len(fitted.matrices()):,} matrices, {cells:,} cells"
    )
    show_chain(fitted)
    click.echo(
        f"  merged: {merging['mode']}, by {merging['distance']} up to {merging['threshold']:g} beyond "
        f"chance, groups of {merging['group']:,} requests"
    )
    for change in source.get("changes", []):
        click.echo(f"  changed: {one_line(change)}")
    for warning in source["warnings"]:
        click.echo(f"  warning: {in_options(one_line(warning))}")
    _show_phases(fitted, rows)
    for name in fitted.dimensions:
        _bars(fitted, name, rows)
    if plot is not None:
        click.echo(f"\npicture: {plot}")


@command.command()
@click.argument("model", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The picture: .png, .svg or .pdf.")
@click.option(
    "--over",
    "dimensions",
    multiple=True,
    metavar="DIM",
    help="Show a dimension over time; repeatable, default size.",
)
@click.option(
    "--joint", metavar="DIM,DIM", help="Show two dimensions jointly, for each of the largest matrices."
)
@click.option("--force", is_flag=True, help="Overwrite the picture.")
@json_option
def plot(
    model: str, output: str, dimensions: tuple[str, ...], joint: str | None, force: bool, as_json: bool
) -> None:
    """Draw a model over time: its phases, dimensions as they change, two of them jointly.

    Where a phase should begin elsewhere, fit again with --boundaries.

    \b
    Examples:
      loadstone model plot disk.mdh -o disk.png --over size --over gap
      loadstone model plot disk.mdh -o disk.png --joint op,size
    """
    from loadstone.model import Model, plot_over_time

    pair = tuple(part.strip() for part in joint.split(",")) if joint else None
    if pair is not None and len(pair) != 2:
        raise click.UsageError(f"--joint {joint}: name two dimensions, as in op,size")
    fitted = Model.load(model)
    plot_over_time(
        fitted,
        output,
        dimensions=dimensions or ("size",),
        joint=(pair[0], pair[1]) if pair else None,
        force=force,
        title_text=Path(model).name,
    )
    if as_json:
        return show_json({"model": model, "picture": output, "phases": fitted.phases()})
    click.echo(f"picture: {output}")


@command.command()
@click.argument("model", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The trace to write (Parquet).")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Another one, other draws.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def sample(model: str, output: str, seed: int, force: bool, as_json: bool) -> None:
    """Write the requests a model generates as a trace.

    There are as many requests as in the model's trace, over the same time. The same seed gives the same
    requests.

    \b
    Example:
      loadstone model sample disk.mdh -o generated.parquet
      loadstone trace describe generated.parquet
    """
    from loadstone.model import Model

    fitted = Model.load(model)
    with progress("sampling", fitted.requests, "requests") as update:
        tally = fitted.write_sample(output, seed=seed, force=force, progress=lambda done, _: update(done))
    if as_json:
        return show_json({"trace": output, "seed": seed, **tally})
    click.echo(f"{output}: {tally['requests']:,} requests, {human_bytes(os.path.getsize(output))}")
    total = max(1, tally["requests"])
    if tally["displaced"]:
        click.echo(
            f"note: {tally['displaced']:,} ({tally['displaced'] / total:.2%}) did not fit as they were drawn "
            "and went elsewhere or got another size"
        )
    if tally["backed_off"]:
        click.echo(
            f"note: {tally['backed_off']:,} ({tally['backed_off'] / total:.2%}) follow another request "
            "than in the trace, because none of the right kind was left"
        )


for verb in (
    _model_check.check,
    _model_many.diff,
    _model_many.classify,
    _model_algebra.scale,
    _model_algebra.merge,
    _model_algebra.table,
    features,
    _model_share.export,
    _model_share.publish,
    _model_share.factor,
):
    command.add_command(verb)
