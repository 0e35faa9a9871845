"""``loadstone model check``: what a model draws against a trace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from loadstone._units import number
from loadstone.cli._command import Command, Of
from loadstone.cli._plugin import own_features, plugin_option
from loadstone.cli._reading import reading_options
from loadstone.cli._show import human_bytes, human_time, json_option, progress, show_json
from loadstone.cli._types import FILE, SEED
from loadstone.errors import Error

_BAR = 20


def compare_with(model: Any, trace: tuple[str, ...], reading: dict[str, Any], seed: int) -> dict[str, Any]:
    from loadstone.model import compare, portrait

    with progress("looking at the trace", model.requests, "requests") as update:
        opened: Any = reading
        try:
            real = portrait(model, trace, options=opened, progress=lambda done, _: update(done))
        except Error as error:
            if models := [path for path in trace if _is_model(path)]:
                raise Error(
                    f"{models[0]}: is a model; name the trace it is to be compared with, or compare two "
                    "models by model diff"
                ) from error
            raise
    with progress("drawing", model.requests, "requests") as update:
        drawn = portrait(model, seed=seed, progress=lambda done, _: update(done))
    return compare(model, real, drawn)


def _is_model(path: str) -> bool:
    from loadstone.model import Model

    try:
        Model.load(path)
    except (Error, OSError):
        return False
    return True


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "ns":
        return human_time(value)
    return human_bytes(value) if unit == "byte" else f"{number(value, 3)} {unit}".rstrip()


_SEVERAL = {one: f"{one}s" for one in ("request", "block", "region", "rank", "object")}
_SEVERAL["directory"] = "directories"
"""Units that are counted, of several."""


def show_distances(found: dict[str, Any]) -> None:
    """How far each dimension is apart, and all together."""
    width = max(len(row["dimension"]) for row in found["dimensions"])
    click.echo(f"\n{'dimension':<{width}}  {'KS distance':>11}  {'Wasserstein':>13}  {'of the mean':>11}")
    for row in found["dimensions"]:
        of_mean = "-" if row["of_mean"] is None else f"{row['of_mean']:.1%}"
        moved = _number(row["wasserstein"], _SEVERAL.get(row["unit"], row["unit"]))
        click.echo(f"{row['dimension']:<{width}}  {row['ks']:>11.1%}  {moved:>13}  {of_mean:>11}")
    joint = "not known, the dimensions or rules differ" if found["joint"] is None else f"{found['joint']:.1%}"
    click.echo(f"joint total variation: {joint}")


def show_aspects(judged: Any) -> None:
    """The verdict first, with a line for each thing that was judged, and its limits."""
    click.echo(f"content: {judged['text']}")
    for aspect in judged["aspects"]:
        limits = f"limit{'s' * (',' in aspect['limit'])} {aspect['limit']}"
        click.echo(f"  {'✓' if aspect['ok'] else '✗'} {aspect['name']}: {aspect['text']} ({limits})")


def show_check(found: dict[str, Any], sides: tuple[str, str] = ("trace", "drawn")) -> None:
    """What ``model check`` says of two sides."""
    show_distances(found)
    rows: list[tuple[str, ...]] = [("", *sides)]
    rows.append(("sequential", *(f"{found['sequential'][who]:.1%}" for who in ("trace", "drawn"))))
    rows.append(("footprint", *(human_bytes(found["footprint"][who]) for who in ("trace", "drawn"))))
    for lag in found["correlation"]["trace"]:
        values = (f"{found['correlation'][who][lag]:.3f}" for who in ("trace", "drawn"))
        rows.append((f"autocorrelation of gaps, lag {lag}", *values))
    for scale in found["dispersion"]["trace"]:
        values = (f"{found['dispersion'][who][scale]:,.1f}" for who in ("trace", "drawn"))
        rows.append((f"index of dispersion, {scale:,} mean gaps", *values))
    left = max(len(row[0]) for row in rows)
    for name, real, drawn in rows:
        click.echo(f"{name:<{left}}  {real:>12}  {drawn:>12}")
    told = [f"{name} {rms:.1%}" for name, rms in found["over_time"].items() if rms is not None]
    click.echo(f"over time, RMS difference in 100 intervals: {', '.join(told) or 'too few requests'}")
    curves = found["miss_ratio"]
    how = "" if curves["exact"] else ", of sampled blocks"
    click.echo(
        f"LRU miss ratio differs by {curves['mean']:.3f} on average, {curves['max']:.3f} at most "
        f"({len(curves['sizes'])} cache sizes up to {human_bytes(curves['sizes'][-1])}{how})"
    )
    if found["policies"]:
        told = [f"{name} {one['mean']:.3f}, {one['max']:.3f}" for name, one in found["policies"].items()]
        click.echo(f"miss ratios of other caches, mean and largest difference: {'; '.join(told)} (8 sizes)")
    for size in (len(curves["sizes"]) * i // 8 for i in range(1, 8)):
        real, drawn = curves["trace"][size], curves["drawn"][size]
        bars = f"{'█' * round(_BAR * real):<{_BAR}}  {drawn:6.1%}  {'█' * round(_BAR * drawn)}"
        click.echo(f"  {human_bytes(curves['sizes'][size]):>10}  {real:6.1%}  {bars}")


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.argument("trace", nargs=-1, required=True, metavar="TRACE...")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Another one, other draws.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw the miss-ratio curves: .png, .svg or .pdf.")
@click.option("--force", cls=Of, of=("--plot",), is_flag=True, help="Overwrite the picture.")
@plugin_option
@reading_options
@json_option
def check(
    model: str,
    trace: tuple[str, ...],
    seed: int,
    plot: str | None,
    force: bool,
    plugins: tuple[str, ...],
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Compare what a model draws with a trace, before any device sees either.

    The check draws requests from the model and compares them with the trace: for each dimension the distance
    of the distributions (of the numbers, not of the model's buckets), bursts, sequential runs, reuse of
    places, and the miss ratio of LRU caches of all sizes.

    \b
    Example:
      loadstone model check disk.mdh disk.spc --plot disk.png
    """
    from loadstone.model import Model, picture, verdict
    from loadstone.model.description import picture_ending

    if plot is not None:
        # Before the work, which takes a while.
        picture_ending(Path(plot))
    if plot is not None and not force and os.path.lexists(plot):
        raise click.ClickException(f"{plot}: the file exists; choose another name, or use --force")
    own_features(plugins)
    fitted = Model.load(model)
    found = compare_with(fitted, trace, reading, seed)
    if plot is not None:
        picture(found, plot, force=force, title_text=Path(model).name)
    judged = verdict(found)
    if as_json:
        return show_json({"model": model, "seed": seed, **found, "verdict": judged})
    requests = found["requests"]
    click.echo(
        f"{model}: {requests['drawn']:,} requests drawn (seed {seed}), {requests['trace']:,} in the trace"
    )
    show_aspects(judged)
    show_check(found)
    if plot is not None:
        click.echo(f"\npicture: {plot}")
