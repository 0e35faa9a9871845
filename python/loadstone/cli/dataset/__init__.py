"""``loadstone dataset``: file trees with their chunks over generations."""

from __future__ import annotations

import click

from loadstone.cli._command import Group
from loadstone.cli.dataset import _begin, _make, _mutate, _scan, _verify, _write


@click.group(cls=Group, name="dataset")
def command() -> None:
    """Scan, model, evolve and write file trees as deduplicators and backup programs meet them.

    \b
    Example:
      loadstone dataset scan backups/mon backups/tue backups/wed -o site.fst
      loadstone dataset profile site.fst -o site.profile
      loadstone dataset create site.profile --generations 30 --seed 7 -o year.fst
      loadstone dataset write year.fst --all --to /mnt/target
      loadstone dataset verify /mnt/target --profile site.profile
    """


for _verb in (
    _scan.scan,
    _scan.describe,
    _make.profile,
    _make.create,
    _begin.populate,
    _begin.presets,
    _mutate.mutate,
    _write.write,
    _verify.verify,
):
    command.add_command(_verb)
