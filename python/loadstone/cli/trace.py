"""``loadstone trace``: convert, describe and cut traces."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from loadstone.cli._command import Group, Of, in_options
from loadstone.cli._reading import reading_options
from loadstone.cli._show import console as _show_console
from loadstone.cli._show import human_bytes, human_time, json_option, plain_console, progress, show_json
from loadstone.cli._types import DURATION, FILE, SEED, TIME, Count, Share

_traces = click.argument("trace", nargs=-1, required=True, metavar="TRACE...")
_output = click.option("-o", "--output", required=True, type=FILE, help="The Parquet file to write.")
_force = click.option("--force", is_flag=True, help="Overwrite the output.")
_LEVELS = Count(1, 22)
_level = click.option("--level", type=_LEVELS, help="zstd's level, of Parquet; default 9.")


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Convert, describe and cut traces of storage requests.

    TRACE is a file of any known format, compressed or not (gzip, zstd, bzip2, xz), or the per-CPU
    files of a blktrace capture or their base (loop0 for loop0.blktrace.0, loop0.blktrace.1, ...).

    \b
    Example:
      loadstone trace describe examples/loop0.parquet
    """


def _bytes_of(traces: tuple[str, ...]) -> int:
    """Bytes on disk of the traces; the base of a blktrace capture stands for its files."""
    total = 0
    for trace in traces:
        path = Path(trace)
        files = [path] if path.exists() else path.parent.glob(f"{path.name}.*")
        total += sum(file.stat().st_size for file in files)
    return total


@contextmanager
def _progress(what: str, traces: tuple[str, ...]) -> Iterator[Callable[[int, int], None]]:
    with progress(what, _bytes_of(traces)) as update:
        yield lambda done, _: update(done)


def _counts(info: dict[str, Any]) -> list[str]:
    """What was counted while reading, in words; nothing when all went smoothly."""
    words = {
        "reordered": "put back into time order",
        "repaired": "repaired",
        "damaged": "damaged and passed over",
        "lost": "lost by the capture",
        "unfinished": "without a completion",
        "failed": "failed in the source",
        "other": "records that are no requests",
    }
    return [f"{info['counts'][key]:,} {text}" for key, text in words.items() if info["counts"][key]]


# What a written format cannot say.
_LOSSES = {
    "ops": "left out: the format does not have their op",
    "places": "left out: they have no offset or size the format can hold",
    "sectors": "rounded to sectors of 512 bytes",
    "times": "with times rounded down to the format's clock",
    "latencies": "whose latency the format cannot say, has as 0 where it is not known, or exchanges with "
    "that of another for the same sectors",
    "flags": "with flags the format does not have",
    "contents": "whose fingerprint of the content was left out",
    "dependencies": "of which was left out what they waited for",
    "actors": "of further processes, which the format does not have",
    "names": "objects that read back under another name",
}


def _show_notes(info: dict[str, Any]) -> None:
    """Counts and warnings on standard error."""
    for text in _counts(info):
        click.echo(f"note: {text}", err=True)
    for text in info["warnings"]:
        click.echo(f"warning: {in_options(text)}", err=True)


@command.command()
@_traces
@click.option("-o", "--output", required=True, type=FILE, help="The file to write.")
@click.option("--to", metavar="NAME", help="Format to write; else the ending of the output decides.")
@_force
@_level
@click.option(
    "--dependencies",
    is_flag=True,
    help="Keep what each request waited for and how long its actor thought (columns after and think).",
)
@click.option(
    "--within",
    cls=Of,
    of=("--dependencies",),
    type=TIME,
    metavar="TIME",
    help="With them, a request later than this after a completion did not wait for it; default 1s.",
)
@reading_options
@json_option
def convert(
    trace: tuple[str, ...],
    output: str,
    to: str | None,
    force: bool,
    level: int | None,
    dependencies: bool,
    within: float | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Convert a trace of any known format to Loadstone's Parquet, or to that of another tool.

    `loadstone trace formats` lists what is read and what can be written. With --json, the object is
    what reading found: format, objects, counts, warnings; and losses, what the written format cannot say.

    \b
    Examples:
      loadstone trace convert disk.spc.gz -o disk.parquet
      loadstone trace convert loop0 -o loop0.parquet
      loadstone trace convert disk.parquet -o disk.iolog
      loadstone trace convert app.strace -o app.parquet --dependencies
      loadstone trace convert t.csv -o t.parquet \\
          --columns time=0:us,offset=2:sector,size=3:byte,op=1 --read R --write W
    """
    from loadstone import trace as traces

    if dependencies:
        reading["dependencies"] = 1.0 if within is None else within
    with _progress("converting", trace) as tick:
        info = traces.convert(trace, output, force=force, level=level, to=to, progress=tick, **reading)
    if as_json:
        return show_json(info)
    output = info["output"]
    before, after = _bytes_of(trace), os.path.getsize(output)
    losses = info.get("losses", {})
    requests = info["counts"]["requests"]
    told = f"{requests:,}"
    if (written := losses.get("written", requests)) != requests:
        told = f"{written:,} of {requests:,}"
    click.echo(
        f"{told} requests from {info['format']}, {human_bytes(before)} -> {human_bytes(after)}: {output}"
    )
    for key, text in _LOSSES.items():
        if lost := losses.get(key):
            click.echo(f"note: {lost:,} {text}", err=True)
    if lead := losses.get("lead_ns"):
        click.echo(
            f"note: the format begins with the first request: the {human_time(lead)} before it are left out",
            err=True,
        )
    _show_notes(info)


@command.command()
@json_option
def formats(as_json: bool) -> None:
    """List the formats that are read and those that can be written.

    Most are recognised by their content. Tables of numbers alone are not: several formats look the same and
    differ in units or in which number is a read. Name those with --format.

    \b
    Example:
      loadstone trace formats
    """
    from loadstone import trace as traces

    read, written = traces.formats(), {"parquet", *traces.exports()}
    if as_json:
        return show_json({"read": read, "written": sorted(written)})
    width = max(len(name) for name in read)
    for name, title in read.items():
        click.echo(f"{name:{width}}  {title}{', also written' if name in written else ''}")


@command.command()
@_traces
@click.option("--plot", type=FILE, metavar="FILE", help="Draw it: .png, .svg or .pdf.")
@click.option("--force", cls=Of, of=("--plot",), is_flag=True, help="Overwrite the picture.")
@reading_options
@json_option
def describe(
    trace: tuple[str, ...], plot: str | None, force: bool, reading: dict[str, Any], as_json: bool
) -> None:
    """Say what is in a trace: counts, mix, sizes, times, jumps, footprint, popularity, losses.

    One pass in bounded memory. The footprint counts distinct 4 KiB blocks exactly while they fit in
    memory, and says so when it is estimated. With --json, `requests` is at the top level.

    \b
    Examples:
      loadstone trace describe examples/loop0.parquet --plot loop0.png
      loadstone trace describe disk.spc --json
    """
    from loadstone import trace as traces

    with _progress("reading", trace) as tick:
        found = traces.describe(trace, progress=tick, **reading)
    if plot is not None:
        traces.plot(found, plot, title=Path(trace[0]).name, force=force)
    if as_json:
        return show_json(found)
    _show_description(found)
    if plot is not None:
        click.echo(f"\npicture: {plot}")


@command.command()
@_traces
@_output
@click.option("--from", "start", type=TIME, help="Keep requests from this time on.")
@click.option("--to", "end", type=TIME, help="Keep requests before this time.")
@click.option("--object", "objects", multiple=True, metavar="NAME|ID", help="Keep this object; repeatable.")
@click.option(
    "--plateaus",
    type=Share(0, 1),
    metavar="Q",
    help="Keep windows whose request rate is at or above this quantile.",
)
@click.option("--valleys", type=Share(0, 1), metavar="Q", help="Keep windows at or below this quantile.")
@click.option("--sample", type=Count(1), metavar="N", help="Keep N windows at random.")
@click.option(
    "--seed", cls=Of, of=("--sample",), type=SEED, default=0, show_default=True, help="Of the sample."
)
@click.option(
    "--window",
    cls=Of,
    of=("--plateaus", "--valleys", "--sample"),
    type=DURATION,
    default="1s",
    show_default=True,
    help="Length of a window.",
)
@click.option("--rebase", is_flag=True, help="Start at time 0 and close the gaps between kept windows.")
@_force
@_level
@reading_options
@json_option
def select(
    trace: tuple[str, ...],
    output: str,
    start: float | None,
    end: float | None,
    objects: tuple[str, ...],
    plateaus: float | None,
    valleys: float | None,
    sample: int | None,
    seed: int,
    window: float,
    rebase: bool,
    force: bool,
    level: int | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Cut a trace: a time range, objects, busy or quiet windows, or windows at random.

    Windows count from the start of the time range, and adjacent kept windows are joined. Times stay
    as they are unless --rebase. Object ids stay. With --json: requests, dropped, spans_ns, info.

    \b
    Examples:
      loadstone trace select examples/loop0.parquet -o head.parquet --to 5s
      loadstone trace select examples/loop0.parquet -o busy.parquet --plateaus 0.9 --rebase
    """
    from loadstone import trace as traces

    if sum(pick is not None for pick in (plateaus, valleys, sample)) > 1:
        raise click.UsageError("--plateaus, --valleys and --sample exclude each other; choose one")
    with _progress("selecting", trace) as tick:
        found = traces.select(
            trace,
            output,
            start=start,
            end=end,
            objects=objects,
            plateaus=plateaus,
            valleys=valleys,
            sample=sample,
            seed=seed,
            window=window,
            rebase=rebase,
            force=force,
            level=level,
            progress=tick,
            **reading,
        )
    if as_json:
        return show_json(found)
    total = found["requests"] + found["dropped"]
    click.echo(f"{found['requests']:,} of {total:,} requests: {output}")
    for begin, stop in found["spans_ns"][:20]:
        click.echo(f"  {begin / 1e9:.3f} s to {stop / 1e9:.3f} s")
    if len(found["spans_ns"]) > 20:
        click.echo(f"  and {len(found['spans_ns']) - 20} more spans")
    _show_notes(found["info"])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _spark(values: list[int], width: int) -> str:
    """A line of blocks whose heights are the means of neighbouring values."""
    if not values:
        return ""
    step = max(1, -(-len(values) // width))
    means = [sum(values[i : i + step]) / step for i in range(0, len(values), step)]
    top = max(means) or 1
    # Anything at all shows as the lowest block.
    return "".join(" ▁▂▃▄▅▆▇█"[math.ceil(8 * mean / top)] for mean in means)


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The description's head: name and text."""
    info, jump, footprint = found["info"], found["jump"], found["footprint"]
    mix = f"{_share(found['read_share'])} of both, {_share(found['read_bytes_share'])} of the bytes"
    blocks = f"{human_bytes(footprint['bytes'])} in {footprint['blocks']:,} blocks of 4 KiB"
    if not footprint["exact"]:
        blocks += f", estimated from one region in {footprint['sampled_one_in']}"
    if footprint["skipped"]:
        blocks += f"; {footprint['skipped']:,} requests above 64 GiB left out"
    rate = f"{found['requests_per_s']:,.1f} per second"
    facts = [
        ("format", f"{info['format']}, {info['layer']} requests, clock {human_time(info['clock_ns'])}"),
        ("requests", f"{found['requests']:,} in {human_time(found['span_ns'])}, {rate}"),
        ("read and written", f"{human_bytes(found['bytes'])}; reads are {mix}"),
        (
            "sequential",
            f"{jump['sequential_share']:.1%} of requests with an offset begin where the last one on their "
            "object ended",
        ),
        ("footprint", blocks),
    ]
    popularity = found["popularity"]
    if popularity:
        top, more = f"{popularity['top_1_percent']:.1%}", f"{popularity['top_10_percent']:.1%}"
        regions = f"{popularity['regions']:,} regions of {human_bytes(popularity['region_bytes'])}"
        facts.append(("popularity", f"{top} of the requests go to 1 %, {more} to 10 % of the {regions}"))
    if found["common_sizes"]:
        sizes = [f"{human_bytes(s)} {n / found['requests']:.1%}" for s, n in found["common_sizes"][:4]]
        facts.append(("common sizes", ", ".join(sizes)))
    if found["flags"]:
        facts.append(("flags", ", ".join(f"{name} {n:,}" for name, n in found["flags"])))
    facts.append(("also counted", "; ".join(_counts(info)) or "nothing lost, nothing out of order"))
    facts += [("done to it", text) for text in info["history"]]
    facts += [("warning", in_options(text)) for text in info["warnings"]]
    return facts


def _show_description(found: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = _show_console()

    def table(*columns: str) -> Table:
        made = Table(box=SIMPLE_HEAD, pad_edge=False)
        for index, column in enumerate(columns):
            made.add_column(column, justify="right" if index else "left", no_wrap=True)
        return made

    head = Table.grid(padding=(0, 2))
    head.add_column(style="bold", no_wrap=True)
    head.add_column()
    for name, text in _facts(found):
        head.add_row(name, text)
    console.print(head)

    rate = found["rate"]
    if len(rate["requests"]) > 1:
        peak = max(rate["requests"]) / rate["interval_ns"] * 1e9
        console.print()
        console.print(f"requests over time, at most {peak:,.0f}/s within {human_time(rate['interval_ns'])}")
        console.print(_spark(rate["requests"], max(20, min(plain_console().width - 2, 100))))
    console.print()

    ops = table("op", "requests", "share", "bytes", "mean size", "latency p50", "p99", "max")
    for op in found["ops"]:
        cells = ["-"] * 5
        if op["size"]:
            cells[:2] = human_bytes(op["bytes"]), human_bytes(op["size"]["mean"])
        if op["latency_ns"]:
            at = {percent: value for percent, value in op["latency_ns"]["quantiles"]}
            cells[2:] = map(human_time, (at[50.0], at[99.0], op["latency_ns"]["max"]))
        ops.add_row(op["op"], f"{op['requests']:,}", f"{op['requests'] / found['requests']:.1%}", *cells)
    console.print(ops)

    spread = table("distribution", "min", "p10", "p50", "p90", "p99", "max", "mean")
    for name, dist, show in (
        ("size", found["size"], human_bytes),
        ("time between", found["interarrival_ns"], human_time),
        ("jump ahead", found["jump"]["forward"], human_bytes),
        ("jump back", found["jump"]["backward"], human_bytes),
        ("latency", found["latency_ns"], human_time),
    ):
        if dist:
            at = {percent: value for percent, value in dist["quantiles"]}
            values = (dist["min"], at[10.0], at[50.0], at[90.0], at[99.0], dist["max"], dist["mean"])
            spread.add_row(name, *(show(value) for value in values))
    console.print(spread)

    title = f"busiest of {found['objects']:,} objects" if found["objects"] > 1 else "object"
    objects = table(title, "requests", "share", "reads", "bytes", "from", "to", "sequential")
    for each in found["busiest"][:10]:
        objects.add_row(
            each["name"],
            f"{each['requests']:,}",
            f"{each['requests'] / found['requests']:.1%}",
            f"{each['reads'] / each['requests']:.1%}",
            human_bytes(each["bytes"]),
            human_bytes(each["start"]),
            human_bytes(each["end"]),
            f"{each['sequential_share']:.1%}",
        )
    console.print(objects)
