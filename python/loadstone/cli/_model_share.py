"""``loadstone model export`` and ``publish``: models for others."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli._model_check import show_check
from loadstone.cli._show import json_option, show_json

_FILE = click.Path(dir_okay=False)


@click.command()
@click.argument("model", type=_FILE)
@click.option(
    "--to",
    "to",
    required=True,
    metavar="TOOL",
    help="For which load generator: fio, filebench, iozone, that of a plugin, or FILE.py.",
)
@click.option("-o", "--output", required=True, type=_FILE, help="The file to write.")
@click.option(
    "--on", "target", required=True, metavar="TARGET", help="File or device the exported load is to run on."
)
@click.option(
    "--pieces",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Cut the time into at most N pieces, each with its own rates, sizes and places.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def export(model: str, to: str, output: str, target: str, pieces: int, force: bool, as_json: bool) -> None:
    """Write a model as input of another load generator.

    What that tool cannot express is said, here and on top of the file, with how far what is left is from the
    model.

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
    if as_json:
        files = [str(file) for file in done.files]
        return show_json(
            {"model": model, "to": to, "files": files, "losses": done.losses, "content": done.content}
        )
    click.echo(f"{', '.join(map(str, done.files))}: {Path(model).name} for {to}")
    click.echo("what it cannot express:")
    for loss in done.losses:
        click.echo(f"  - {loss}")
    if done.content is not None:
        click.echo("what is left, against what the model draws:")
        show_check(done.content, ("model", to))


@click.command()
@click.argument("model", type=_FILE)
@click.option("-o", "--output", required=True, type=_FILE, help="The model file to write (.mdh).")
@click.option(
    "--least",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="K",
    help="Exact values seen fewer than K times join the bucket around them.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@json_option
def publish(model: str, output: str, least: int, force: bool, as_json: bool) -> None:
    """Write a model without what could tell where it comes from.

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

    def exact(fitted: Model) -> int:
        rules = (d["rule"] for d in fitted.header["dimensions"])
        return sum(len(rule["values"]) for rule in rules if rule["kind"] == "exact")

    names = sum(bool(o["name"]) for o in before.header["objects"])
    dropped = exact(before) - exact(after)
    if as_json:
        return show_json({"model": output, "least": least, "names": names, "values": dropped})
    click.echo(
        f"{output}: {names:,} name{'s' if names != 1 else ''} left out, {dropped:,} of {exact(before):,} "
        f"exact values were seen fewer than {least:,} times"
    )
