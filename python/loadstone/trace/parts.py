"""Captures that are several files, of which one was named."""

from __future__ import annotations

import os
import re

_PART = re.compile(r"(?P<base>.+)\.blktrace\.\d+(\.(gz|zst|bz2|xz))?")


def left_out(path: str | os.PathLike[str]) -> str | None:
    """What is left out where one CPU's file of a blktrace capture is named; ``None``: nothing."""
    folder, name = os.path.split(os.fspath(path))
    if not (mine := _PART.fullmatch(name)):
        return None
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    found = [other for other in names if (of := _PART.fullmatch(other)) and of["base"] == mine["base"]]
    others = sorted(other for other in found if other != name)
    if not others:
        return None
    whole = os.path.join(folder, mine["base"])
    told = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return (
        f"{name} has the requests of one CPU only, and {told} lie beside it: name {whole} to have all of them"
    )
