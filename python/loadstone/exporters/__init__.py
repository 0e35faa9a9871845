"""Exporters: a model as input of another load generator.

An exporter is one function, ``export(load, target) -> dict[name, text]``, found by the entry point group
``loadstone.exporters``. It gets the load as :class:`Load`, taken from one drawn stream of the model and cut
into pieces of time, and answers the files to write. What it could not express it appends to ``load.losses``;
what of the model is left is measured afterwards: the exporter's :class:`Job` list is played through and
compared with a stream of the model.
"""

from loadstone.exporters._load import Direction, Job, Load, Piece, digest, percents, size_percents, unmoved
from loadstone.exporters._write import UNMEASURED, Exported, export, exporters, moved_text

__all__ = [
    "UNMEASURED",
    "Direction",
    "Exported",
    "Job",
    "Load",
    "Piece",
    "digest",
    "export",
    "exporters",
    "moved_text",
    "percents",
    "size_percents",
    "unmoved",
]
