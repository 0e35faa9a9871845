"""``loadstone dataset populate`` and ``presets``."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli import _show
from loadstone.cli._command import Command
from loadstone.cli._types import Count, Number
from loadstone.cli.dataset import _tables
from loadstone.cli.dataset._options import (
    force_option,
    memory_option,
    output_option,
    seed_option,
    users_option,
)


@click.command(cls=Command)
@output_option
@click.option("--files", type=Count(1), default=10_000, show_default=True, help="How many.")
@click.option(
    "--directories",
    type=Count(1),
    help="How many, and more where files lie deeper than these go [a tenth of the files].",
)
@click.option(
    "--sizes",
    default="impressions",
    show_default=True,
    help="Of files: impressions, specsfs-69g, specsfs-768g, lognormal:MU,SIGMA, or a table in a file.",
)
@click.option(
    "--depths",
    default="poisson:6.49",
    show_default=True,
    help="Of files: poisson:MEAN, or shares from the root on, 1,5,20,10.",
)
@click.option("--extensions", default="", help="Of files, with their shares: c=30,h=20,=50 [none].")
@click.option(
    "--duplicates",
    default="1=1",
    show_default=True,
    help="Shares of distinct chunks by how often they are there, or a file of DEDISgen or zdb -S.",
)
@click.option(
    "--compress",
    type=Number(1),
    default=1.0,
    show_default=True,
    help="How many times smaller codecs make chunks.",
)
@click.option("--chunking", default="fastcdc", show_default=True, help="As scan has it.")
@users_option
@seed_option
@memory_option
@force_option
@_show.json_option
def populate(
    output: Path,
    files: int,
    directories: int | None,
    sizes: str,
    depths: str,
    extensions: str,
    duplicates: str,
    compress: float,
    chunking: str,
    users: int,
    seed: int,
    memory: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make a first snapshot from distributions alone, as Impressions does.

    By default sizes and depths are those that Impressions found in real file systems (FAST 2009), and
    directories grow as it grows them. specsfs-69g and specsfs-768g are the two file sets of the VERITAS File
    System paper. A file with a table has lines of three numbers: a lower bound of sizes in bytes (exclusive),
    an upper bound, and the number of files. Duplicates come in runs of eight chunks on average.

    \b
    Example:
      loadstone dataset populate --files 100000 --duplicates 1=90,2=7,4=3 --compress 2 -o first.fst
      loadstone dataset mutate first.fst --profile site.profile --generations 10 -o series.fst

    --json prints what loadstone.dataset.populate returns.
    """
    from loadstone import dataset

    with _show.progress("making", files, "files") as update:
        made = dataset.populate(
            output,
            files=files,
            directories=directories,
            sizes=sizes,
            depths=depths,
            extensions=extensions,
            duplicates=duplicates,
            compress=compress,
            chunking=chunking,
            users=users,
            seed=seed,
            memory_limit=memory,
            force=force,
            progress=update,
        )
    _tables.show_made(made, as_json)


@click.command(cls=Command)
@_show.json_option
def presets(as_json: bool) -> None:
    """List the presets that create and mutate take, and what is assumed of them.

    They are the six datasets of Tarasov's thesis; its tables 4.1 to 4.3 have all that is known of them.

    \b
    Example:
      loadstone dataset presets
      loadstone dataset create preset:home --scale 0.01 -o home.fst

    --json prints one object with the presets by name, as loadstone.dataset.PRESETS has them, and what is
    assumed.
    """
    from dataclasses import asdict

    from loadstone import dataset

    if as_json:
        known = {name: asdict(one) for name, one in dataset.PRESETS.items()}
        _show.show_json({"presets": known, "assumed": list(dataset.ASSUMED)})
    else:
        _tables.show_presets()
