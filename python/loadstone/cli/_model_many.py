"""``loadstone model diff`` and ``classify``: models against models."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli._model_check import show_distances
from loadstone.cli._show import human_bytes, human_time, json_option, show_json

_FILE = click.Path(dir_okay=False)


@click.command()
@click.argument("first", type=_FILE)
@click.argument("second", type=_FILE)
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
    a, b = found["first"], found["second"]
    width = max(len(Path(first).name), len(Path(second).name), 10)
    click.echo(f"{'':<12}  {Path(first).name:>{width}}  {Path(second).name:>{width}}")
    rows = [
        ("requests", *(f"{m['requests']:,}" for m in (a, b))),
        ("length", *(human_time(m["seconds"] * 1e9) for m in (a, b))),
        ("requests/s", *(f"{m['rate']:,.4g}" for m in (a, b))),
        ("reads", *(f"{m['read_share']:.1%}" for m in (a, b))),
        ("extent", *(human_bytes(m["extent"]) for m in (a, b))),
        ("phases", *(f"{m['phases']:,}" for m in (a, b))),
    ]
    for name, left, right in rows:
        click.echo(f"{name:<12}  {left:>{width}}  {right:>{width}}")
    show_distances(found)
    if found["only"]:
        click.echo(f"only in one of them: {', '.join(found['only'])}")


@click.command()
@click.argument("known", nargs=-1, required=True, type=_FILE, metavar="MODEL...")
@click.option(
    "--classes", type=click.IntRange(1), metavar="N", help="As many classes; default: as the distances tell."
)
@click.option(
    "--like",
    type=_FILE,
    metavar="MODEL",
    help="Say which of the models, and which class, this one resembles.",
)
@json_option
def classify(known: tuple[str, ...], classes: int | None, like: str | None, as_json: bool) -> None:
    """Put models into classes of those that are alike.

    The distance of two models is the mean Kolmogorov-Smirnov distance over the dimensions both have, 0 to 1;
    models are joined to classes while they are nearest on average.

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
        beyond = "" if outside is None else f", the nearest other at {outside:.3f}"
        click.echo(f"class {number + 1}: at most {inside:.3f} apart{beyond}")
        for i in members:
            click.echo(f"  {paths[i]}")
    if near:
        path, distance = near[0]
        click.echo(f"{like} resembles class {found[paths.index(path)] + 1}: {distance:.3f} from {path}")
