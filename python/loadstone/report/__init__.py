"""Reports: one HTML page from bundles, which loads nothing and can be kept with a paper.

>>> from loadstone import report
>>> report.write(["replay.bundle", "run.bundle"], "report.html")
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path as _Path

from loadstone._files import refuse
from loadstone.bundle.check import damaged
from loadstone.report.build import build
from loadstone.report.collect import Collected, collect
from loadstone.report.page import Page, render, save

Path = str | os.PathLike[str]

__all__ = ["Collected", "Page", "build", "collect", "render", "save", "write"]


def write(
    bundles: Path | Sequence[Path], out: Path, *, title: str | None = None, force: bool = False
) -> Page:
    """Writes one HTML file about bundles, or bundles of several runs, and returns what is on it.

    Replays and models are drawn against each other; several runs of one kind are each drawn alone.
    The file appears only when it is whole; an existing one is kept unless ``force``. Raises
    ``Error`` for what is not a bundle.
    """
    paths = [bundles] if isinstance(bundles, (str, os.PathLike)) else list(bundles)
    refuse(out, force)
    source = ", ".join(_Path(p).resolve().name for p in paths)
    with damaged(", ".join(os.fspath(one) for one in paths)):
        page = build(collect(paths), title, source)
        save(page, out, force=force)
    return page
