"""What the verbs of ``loadstone dataset`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from loadstone.cli._types import SEED, SIZE, Count, File, Folder


class Profile(click.ParamType["Path | str"]):
    """A file, or a preset by name."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """The path of a file that is there, or the name."""
        from loadstone.dataset.presets import PREFIX, PRESETS

        if not str(value).startswith(PREFIX):
            return Path(FILE.convert(value, param, ctx))
        if value.removeprefix(PREFIX) not in PRESETS:
            self.fail(f"{value!r} is no preset: there are {', '.join(PRESETS)}", param, ctx)
        return str(value)


FOLDER = Folder(path_type=Path)
FILE = File(exists=True, path_type=Path)
output_option = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.",
)
force_option = click.option("--force", is_flag=True, help="Overwrite the output.")
seed_option = click.option("--seed", type=SEED, default=0, show_default=True, help="Of all that is drawn.")
users_option = click.option(
    "--users",
    type=Count(1, 65_536),
    default=1,
    show_default=True,
    help="Copies of the first tree, side by side, that change by themselves.",
)
memory_option = click.option(
    "--memory", type=SIZE, help="What may be taken of memory [four fifths of what there is]."
)
PROFILE = Profile()
