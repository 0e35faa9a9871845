"""``loadstone model export``, ``publish`` and ``factor``: models for others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from loadstone.cli._command import Command
from loadstone.cli._model_check import show_check
from loadstone.cli._show import human_bytes, json_option, progress, show_json
from loadstone.cli._types import FILE, Count, Number, Share


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.option(
    "--to",
    "to",
    required=True,
    metavar="TOOL",
    help="For which load generator: fio, filebench, iozone, that of a plugin, or FILE.py.",
)
@click.option("-o", "--output", required=True, type=FILE, help="The file to write.")
@click.option(
    "--on", "target", required=True, metavar="TARGET", help="File or device the exported load is to run on."
)
@click.option(
    "--pieces",
    type=Count(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Cut the time into at most N pieces, each with its own rates, sizes and places.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def export(model: str, to: str, output: str, target: str, pieces: int, force: bool, as_json: bool) -> None:
    """Write a model as input of another load generator.

    The output, and a comment at the top of the file, list what the tool cannot express, and how far the
    exported load is from the model.

    \b
    Example:
      loadstone model export disk.mdh --to fio -o disk.fio --on /mnt/scratch/file
      fio disk.fio
    """
    from loadstone import exporters
    from loadstone.model import Model

    done = exporters.export(
        Model.load(model), to, output, target=target, name=Path(model).name, pieces=pieces, force=force
    )
    for old in done.stale:
        click.echo(f"warning: {old} is of an earlier export and no part of this one; remove it", err=True)
    if as_json:
        moved = {op: {"export": made, "model": asked} for op, (made, asked) in (done.moved or {}).items()}
        return show_json(
            {
                "model": model,
                "to": to,
                "files": [str(file) for file in done.files],
                "stale": [str(file) for file in done.stale],
                "needs": done.needs,
                "losses": done.losses,
                "bytes": moved or None,
                "content": done.content,
            }
        )
    click.echo(f"{', '.join(map(str, done.files))}: {Path(model).name} for {to}")
    for need in done.needs:
        click.echo(need)
    click.echo(f"what it cannot express:{'' if done.losses else ' the exporter does not say'}")
    for loss in done.losses:
        click.echo(f"  - {loss}")
    if done.moved is not None:
        click.echo(exporters.moved_text(done.moved))
    else:
        click.echo(exporters.UNMEASURED)
    if done.content is not None:
        click.echo("the exported jobs, compared with what the model draws:")
        show_check(done.content, ("model", to))


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The model file to write (.mdh).")
@click.option(
    "--least",
    type=Count(1),
    default=10,
    show_default=True,
    metavar="K",
    help="Exact values seen fewer than K times join the bucket around them.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def publish(model: str, output: str, least: int, force: bool, as_json: bool) -> None:
    """Write a model without what could identify its origin.

    Names of objects, dates, the reader's warnings and counts are left out; rare exact values join the bucket
    around them; largest numbers, extents and the length are rounded up. What is left is how often which
    buckets occur together, and how many requests each window has.

    \b
    Example:
      loadstone model publish disk.mdh -o public.mdh
    """
    from loadstone.model import Model

    before = Model.load(model)
    after = before.published(least=least)
    after.save(output, force=force)
    if exposed := after.exposed(least=least):
        click.echo(f"warning: {exposed}", err=True)

    names = sum(bool(o["name"]) for o in before.header["objects"])
    told, dropped, joined = _hidden(before.header["dimensions"], after.header["dimensions"])
    if as_json:
        return show_json(
            {"model": output, "least": least, "names": names, "values": dropped, "joined": joined}
        )
    click.echo(
        f"{output}: {names:,} name{'s' if names != 1 else ''} left out, {dropped:,} of {told:,} "
        f"exact values were seen fewer than {least:,} times"
    )
    if joined:
        click.echo(f"  buckets with fewer requests were joined: {', '.join(joined)}")


def _hidden(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> tuple[int, int, list[str]]:
    """Exact values of the dimensions, those that are none any more, and dimensions with buckets joined."""
    told, dropped, joined = 0, 0, []
    for name, old, new in ((a["feature"], a["rule"], b["rule"]) for a, b in zip(before, after, strict=True)):
        # Names of kinds, as those of ops, stay.
        if old == new and old["kind"] == "category":
            continue
        # The new rule may have more of them: what many requests have in place of a fine bucket.
        values = set(old.get("values", []))
        told += len(values)
        dropped += len(values - set(new.get("values", [])))
        if _inner(old) != _inner(new):
            joined.append(name)
    return told, dropped, joined


def _inner(rule: dict[str, Any]) -> dict[str, Any]:
    """The buckets around exact values."""
    return rule["rest"] if rule["kind"] == "exact" else rule


def show_chain(model: Any) -> None:
    """The tables of a factored model, and what they lost."""
    if not (links := model.chain):
        return
    told = model.header["chain"]
    formulas = sum(len(link["formulas"]) for link in links)
    what = f"{model.stored_cells:,} cells" + (
        f" and {formulas:,} formula{'s' * (formulas != 1)}" * bool(formulas)
    )
    click.echo(
        f"  factored: {what} stand for {told['joint_cells']:,}; coding a request "
        f"takes {told['lost_bits']:.2f} bits more"
    )
    for link in links:
        given = ", ".join([*(["matrix"] if link["by_matrix"] else []), *link["given"]])
        told = [f"given {given}"] * bool(given) + [f"tied to {tied}" for tied in [link["tied"]] if tied]
        told += ["what continues by matrix"] * bool(link["continues"])
        click.echo(f"    {link['dimension']:>14}  {link['cells']:7,} cells  {', '.join(told)}".rstrip())
        for family, number in Counter(formula["family"] for formula in link["formulas"]).most_common():
            click.echo(f"    {'':>14}  {number:7,} {family}")


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The model file to write (.mdh).")
@click.option(
    "--cell-bits",
    type=Number(0, min_open=True),
    default=16.0,
    show_default=True,
    metavar="BITS",
    help="What each cell of a table must save; more make a smaller and coarser model.",
)
@click.option(
    "--approximate",
    type=Share(0, 1, min_open=True),
    metavar="E",
    help="Put a distribution in place of a histogram where one makes the file smaller and differs from it by "
    "at most E (total variation).",
)
@click.option(
    "--distribution",
    "distributions",
    multiple=True,
    metavar="NAME",
    help="Only these distributions; repeatable. Default: expon, gamma, erlang, weibull_min, lognorm, norm, "
    "uniform, triang, hyperexpon (two-phase), polynomial. Continuous ones of scipy.stats can be named, if "
    "they are quick to compute.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def factor(
    model: str,
    output: str,
    cell_bits: float,
    approximate: float | None,
    distributions: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Store a model as a chain of small tables in place of joint ones.

    Each dimension has a table. It is given only those other dimensions, and the matrix, that say enough of it
    to be worth their cells. Drawn requests keep the histogram of every table; what a table is not given is
    independent of it. The output says how many more bits a request takes. A joint model stays as it is if no
    chain has fewer cells.

    \b
    Example:
      loadstone model factor disk.mdh -o small.mdh --cell-bits 32
      loadstone model factor disk.mdh -o formulas.mdh --approximate 0.1
    """
    from loadstone.model import Model, approximated, slices

    if distributions and approximate is None:
        raise click.UsageError("--distribution says what --approximate may use; give that, too")
    before = Model.load(model)
    chain = before.header.get("chain")
    same = chain is not None and chain["cell_bits"] == cell_bits
    # The joint cells of a chain are a draw from it: a chain of these would be another one.
    after = before if same else before.factored(cell_bits=cell_bits)
    if approximate is not None and after.chain:
        with progress("fitting distributions", len(slices(after)), "slices") as update:
            after = approximated(
                after,
                error=approximate,
                distributions=distributions,
                progress=lambda done, _: update(done),
            )
    after.save(output, force=force)
    sizes = Path(model).stat().st_size, Path(output).stat().st_size
    if as_json:
        lost = (after.header.get("chain") or {}).get("lost_bits", 0.0)
        return show_json(
            {
                "model": output,
                "bytes": sizes[1],
                "bytes_before": sizes[0],
                "cells": after.stored_cells,
                "cells_before": before.stored_cells,
                "lost_bits": lost,
                "chain": after.chain,
            }
        )
    click.echo(f"{output}: {human_bytes(sizes[1])}, {sizes[1] / sizes[0]:.0%} of {model}")
    if not after.chain:
        click.echo("  no chain has fewer cells than the joint tables, which stay")
    elif approximate is not None and not any(link["formulas"] for link in after.chain):
        click.echo(
            f"  no distribution within {approximate:g} of a histogram makes the file smaller; "
            "all histograms stay"
        )
    show_chain(after)
