"""``loadstone model scale``, ``merge`` and ``table``: models changed, combined, and read cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone import _values
from loadstone.cli._command import Command, in_options
from loadstone.cli._model_many import show_shares
from loadstone.cli._show import json_option, progress, show_json
from loadstone.cli._types import FACTOR, FILE, SEED, TIME, Count, Share
from loadstone.errors import Error, OptionError

if TYPE_CHECKING:
    from loadstone.model import Histogram, Model


def _wrote(
    output: str, before: dict[str, Model], after: Model, as_json: bool, left_out: Sequence[str] = ()
) -> None:
    """Says what a written model is like, beside what it comes from, and which dimensions it lacks."""
    from loadstone import model as models

    columns = {name: models.shares(fitted) for name, fitted in before.items()}
    known = {warning for fitted in before.values() for warning in fitted.warnings}
    warnings = [warning for warning in after.warnings if warning not in known]
    for warning in warnings:
        click.echo(f"warning: {in_options(warning)}", err=True)
    if as_json:
        changes, now = after.header["source"].get("changes", []), models.shares(after)
        told = {"model": output, "changes": changes, "from": columns, "is": now, "warnings": warnings}
        return show_json({**told, "left_out": list(left_out)} if left_out else told)
    show_shares({**columns, Path(output).name: models.shares(after)})
    if left_out:
        click.echo(
            f"note: left out, as it is observed and drawn requests do not have it: {', '.join(left_out)}"
        )


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The model file to write (.mdh).")
@click.option(
    "--rate",
    type=FACTOR,
    metavar="X",
    help="X times as many requests per second, at every time; gaps shrink.",
)
@click.option("--size", type=FACTOR, metavar="X", help="Requests X times as large, rounded to whole sectors.")
@click.option(
    "--footprint",
    type=FACTOR,
    metavar="X",
    help="Objects X times as large; requests to new places are spread wider.",
)
@click.option(
    "--read-share",
    type=Share(0, 1, min_open=True, max_open=True),
    metavar="S",
    help="Reads as a share of reads and writes, above 0 and below 1; one factor changes all odds.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def scale(model: str, output: str, force: bool, as_json: bool, **changes: float | None) -> None:
    """Write a model with one property of its load changed, the others left as they were.

    The length of the load stays the same. To run the same requests faster, run the model with --pace. The
    same change of the same model always gives the same model.

    \b
    Examples:
      loadstone model scale disk.mdh -o busier.mdh --rate 2
      loadstone model scale disk.mdh -o larger.mdh --footprint 4 --read-share 0.9
    """
    from loadstone.model import Model

    before = Model.load(model)
    after = before.scaled(**changes)
    after.save(output, force=force)
    _wrote(output, {Path(model).name: before}, after, as_json)


@click.command(cls=Command)
@click.argument("parts", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option("-o", "--output", required=True, type=FILE, help="The model file to write (.mdh).")
@click.option(
    "--shift",
    "shifts",
    type=TIME,
    multiple=True,
    metavar="TIME",
    help="Begin a model so much later: once for each but the first, in their order.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Another one, other draws.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def merge(
    parts: tuple[str, ...], output: str, shifts: tuple[float, ...], seed: int, force: bool, as_json: bool
) -> None:
    """Write a model of several loads together: applications that share one store.

    Each load keeps its own objects, which a run lays end to end, and its files in a directory of its own.
    Requests of all loads are drawn and fitted together, so they follow each other as they would then. The
    models must have the same dimensions. Observed ones may differ: what drawn requests do not have (latency,
    actor, features of your own) is left out and named.

    \b
    Example:
      loadstone model merge mail.mdh backup.mdh -o both.mdh --shift 2h
    """
    from loadstone import model as models

    if len(parts) < 2:
        raise click.UsageError("name at least two models")
    if len(shifts) >= len(parts):
        raise click.UsageError(f"{len(parts)} models take at most {len(parts) - 1} shifts")
    # The same model may be there twice: two such applications.
    loaded = [models.Model.load(path) for path in parts]
    total = sum(fitted.requests for fitted in loaded)
    with progress("merging", total, "requests") as update:
        after = models.merge(loaded, shifts=[0.0, *shifts], seed=seed, progress=lambda done, _: update(done))
    after.save(output, force=force)
    names = [f"{number}: {Path(path).name}" for number, path in enumerate(parts, 1)]
    before = dict(zip(names, loaded, strict=True))
    left = dict.fromkeys(d for fitted in loaded for d in fitted.dimensions if d not in after.dimensions)
    _wrote(output, before, after, as_json, left_out=list(left))


def _number(dimension: str, text: str) -> int:
    """A number as people write it, by the dimension's unit."""
    from loadstone.model import unit
    from loadstone.trace import OPS

    of = unit(dimension)
    sign, plain = (-1, text[1:]) if text.startswith("-") else (1, text)
    if of == "op code":
        codes = {name: code for code, name in OPS.items()}
        if text not in codes:
            raise OptionError(None, None, f"{text!r} is no op; ops are {', '.join(codes)}")
        return codes[text]
    if of == "byte":
        return sign * _values.size(plain, least=0)
    if of == "ns":
        return sign * round(_values.duration(plain, zero=True) * 1e9)
    return sign * _values.count(plain)


def _slice(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """``--where`` options: one of each dimension."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equal, value = text.partition("=")
        if not equal or not value:
            wanted = "DIMENSION=VALUE, DIMENSION=FROM..TO or DIMENSION=none"
            raise click.BadParameter(f"{text!r} is not {wanted}", ctx, param)
        if name in found:
            what = f"{text!r}: {name} was given before; write one range, as in size=4k..64k"
            raise click.BadParameter(what, ctx, param)
        low, dots, high = value.partition("..")
        try:
            if value == "none":
                found[name] = None
            elif not dots:
                found[name] = _number(name, value)
            else:
                found[name] = (_number(name, low) if low else None, _number(name, high) if high else None)
        except Error as error:
            raise click.BadParameter(f"{text!r}: {error}", ctx, param) from None
    return found


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.argument("dimensions", nargs=-1, metavar="[DIMENSION]...")
@click.option(
    "--where",
    "bounds",
    multiple=True,
    callback=_slice,
    metavar="DIM=VALUE",
    help="Only requests in these buckets: op=read, size=4k, size=..64k, "
    "gap=1ms..10ms, resume=none; repeatable.",
)
@click.option(
    "--given",
    multiple=True,
    metavar="DIM",
    help="Shares within each bucket of this dimension instead of all requests; repeatable.",
)
@click.option("--matrix", type=Count(0), metavar="N", help="Of one matrix (see model show).")
@click.option("--rows", type=Count(1), default=20, show_default=True, help="Most rows to show.")
@json_option
def table(
    model: str,
    dimensions: tuple[str, ...],
    bounds: dict[str, Any],
    given: tuple[str, ...],
    matrix: int | None,
    rows: int,
    as_json: bool,
) -> None:
    """Show how often combinations of some dimensions occur: a projection of the model.

    All other dimensions are summed over. Without a dimension, it says how many requests there are. One that
    is only observed has a table of its own: ask for it alone.

    \b
    Examples:
      loadstone model table disk.mdh op size
      loadstone model table disk.mdh size --where op=write --where "previous(op)=read"
      loadstone model table disk.mdh op size --given op
    """
    from loadstone.model import Model
    from loadstone.model.histograms import together

    fitted = Model.load(model)
    wanted = (*dimensions, *(name for name in given if name not in dimensions))
    whole = together(fitted, [*wanted, *bounds], matrix)
    slice_ = whole.where(**bounds)
    found = slice_.project(*wanted)
    shares = found.given(*given).counts if len(found) else found.counts
    if as_json:
        return show_json(_plain(found, shares, slice_.total, whole.total))
    click.echo(f"{slice_.total:,.0f} of {whole.total:,.0f} requests ({slice_.total / whole.total:.1%})")
    if not wanted or not len(found):
        return
    order = sorted(range(len(found)), key=lambda i: -found.counts[i])[:rows]
    words = [[_words(fitted, found, i, d) for d in range(len(wanted))] for i in order]
    widths = [max(len(row[d]) for row in [wanted, *words]) for d in range(len(wanted))]
    heads = "  ".join(f"{name:>{width}}" for name, width in zip(wanted, widths, strict=True))
    click.echo(f"{heads}  {'requests':>12}   share")
    top = max(float(shares[i]) for i in order)
    for i, row in zip(order, words, strict=True):
        cells = "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        bar = "█" * round(20 * float(shares[i]) / top)
        click.echo(f"{cells}  {found.counts[i]:12,.0f}  {shares[i]:6.1%}  {bar}")
    if len(found) > rows:
        left = found.total - sum(float(found.counts[i]) for i in order)
        click.echo(f"{len(found) - rows:,} more with {left:,.0f} requests (--rows)")


def _words(model: Model, found: Histogram, cell: int, dimension: int) -> str:
    from loadstone.model import description as words

    first, last = int(found.first[cell, dimension]), int(found.last[cell, dimension])
    name = found.dimensions[dimension]
    if first == -(2**63):
        return "-"
    if first < last and first - 1 in found.exact.get(name, ()):
        # That number has a bucket of its own.
        return f"above {words.bucket_text(model, name, first - 1, last)}"
    return words.bucket_text(model, name, first, last)


def _plain(found: Histogram, shares: Any, total: float, whole: float) -> dict[str, Any]:
    none = -(2**63)
    cells = []
    for i in range(len(found)):
        cell: dict[str, Any] = {}
        for d, name in enumerate(found.dimensions):
            first, last = int(found.first[i, d]), int(found.last[i, d])
            cell[name] = None if first == none else [first, last]
        cells.append({**cell, "requests": int(found.counts[i]), "share": float(shares[i])})
    exact = {name: values.tolist() for name, values in found.exact.items()}
    return {"requests": int(total), "of": int(whole), "exact": exact, "cells": cells}
