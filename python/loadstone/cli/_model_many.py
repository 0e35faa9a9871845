"""``loadstone model diff`` and ``classify``: models against models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from loadstone._files import distinct
from loadstone._units import number as shown
from loadstone.cli._command import Command
from loadstone.cli._model_check import show_distances
from loadstone.cli._show import human_bytes, human_time, json_option, show_json
from loadstone.cli._types import FILE, Count


def show_shares(models: dict[str, dict[str, Any]]) -> None:
    """What models are like, side by side."""
    width = max(10, *(len(name) for name in models))
    click.echo(f"{'':<12}" + "".join(f"  {name:>{width}}" for name in models))
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "requests": lambda m: f"{m['requests']:,}",
        "length": lambda m: human_time(m["seconds"] * 1e9),
        "requests/s": lambda m: shown(m["rate"]),
        "reads": lambda m: f"{m['read_share']:.1%}",
        "mean size": lambda m: human_bytes(m["mean_size"]),
        # Files have none that is kept.
        "extent": lambda m: human_bytes(m["extent"]) if m["extent"] else "-",
        "phases": lambda m: f"{m['phases']:,}",
    }
    for name, text in rows.items():
        click.echo(f"{name:<12}" + "".join(f"  {text(model):>{width}}" for model in models.values()))


@click.command(cls=Command)
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@json_option
def diff(first: str, second: str, as_json: bool) -> None:
    """Say how two models differ: rates and mixes, and how far each dimension is apart.

    All phases are taken together. Models with different dimensions or bucket rules are compared in what they
    have in common.

    \b
    Example:
      loadstone model diff monday.mdh sunday.mdh
    """
    from loadstone import model as models

    found = models.diff(models.Model.load(first), models.Model.load(second))
    if as_json:
        return show_json({"models": [first, second], **found})
    show_shares(dict(zip(distinct([first, second]), (found["first"], found["second"]), strict=True)))
    show_distances(found)
    if found["only"]:
        click.echo(f"only in one of them: {', '.join(found['only'])}")


@click.command(cls=Command)
@click.argument("known", nargs=-1, required=True, type=FILE, metavar="MODEL...")
@click.option("--classes", type=Count(1), metavar="N", help="Number of classes [follows from the distances].")
@click.option(
    "--like",
    type=FILE,
    metavar="MODEL",
    help="Say which of the models, and which class, this one resembles.",
)
@json_option
def classify(known: tuple[str, ...], classes: int | None, like: str | None, as_json: bool) -> None:
    """Put models into classes of those that are alike.

    The distance of two models is the mean Kolmogorov-Smirnov distance (0 to 1) over the dimensions that both
    have. The two nearest classes are joined, by the mean distance of their models, again and again.

    \b
    Example:
      loadstone model classify known/*.mdh --like new.mdh
    """
    from loadstone import model as models

    if len(known) < 2:
        raise click.UsageError("name at least two models")
    loaded = {path: models.Model.load(path) for path in known}
    apart = models.distances(list(loaded.values()))
    found = models.classes(apart, classes)
    near = models.nearest(models.Model.load(like), loaded) if like is not None else []
    if as_json:
        rows = [{"model": path, "class": number} for path, number in zip(loaded, found, strict=True)]
        resembles = [{"model": path, "distance": distance} for path, distance in near]
        return show_json({"models": rows, "distances": apart.tolist(), "like": like, "nearest": resembles})
    count = max(found) + 1
    click.echo(f"{len(loaded)} models in {count} class{'es' if count > 1 else ''}")
    paths = list(loaded)
    for number in range(count):
        members = [i for i, of in enumerate(found) if of == number]
        inside = max((apart[i, j] for i in members for j in members), default=0.0)
        outside = min(
            (apart[i, j] for i in members for j in range(len(paths)) if j not in members), default=None
        )
        beyond = "" if outside is None else f", {outside:.3f} to the nearest other class"
        click.echo(f"class {number + 1}: distances up to {inside:.3f}{beyond}")
        for i in members:
            click.echo(f"  {paths[i]}")
    if near:
        path, distance = near[0]
        click.echo(f"{like} resembles class {found[paths.index(path)] + 1}: {distance:.3f} from {path}")
