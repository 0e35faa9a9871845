"""matplotlib, kept from writing into the user's home."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from pathlib import Path

from loadstone import _scratch
from loadstone._core import HeldFolder
from loadstone._extras import need
from loadstone._text import visible
from loadstone.errors import Error


def ready() -> None:
    """To be called before matplotlib is imported.

    It makes its folders of settings and of fonts in the home where they are missing, and even the home. So
    it is given a temporary folder instead, unless both are there or ``MPLCONFIGDIR`` says where they are.
    Raises ``Error`` where matplotlib is not installed.
    """
    need("matplotlib")
    first = "matplotlib" not in sys.modules
    _settle()
    if first and os.path.lexists("matplotlibrc"):
        # It obeys the settings of the working directory, which may be a stranger's, and run programs.
        import matplotlib

        matplotlib.rcdefaults()


def plain(text: str) -> str:
    """A text as a picture shows it as it is: matplotlib takes what stands between two ``$`` for a formula."""
    return visible(text).replace("$", r"\$")


def _settle() -> None:
    """Gives it a folder of settings."""
    if "matplotlib" in sys.modules or os.environ.get("MPLCONFIGDIR") or all(map(_usable, _folders())):
        return
    made = _scratch.make("fonts")
    atexit.register(_remove, made)
    os.environ["MPLCONFIGDIR"] = str(made.path)


def _remove(made: HeldFolder) -> None:
    with contextlib.suppress(OSError, Error):
        made.remove()


def _folders() -> list[Path]:
    """Where matplotlib keeps settings and fonts of its own accord."""
    home = os.environ.get("HOME")
    bases = [
        (os.environ.get("XDG_CONFIG_HOME"), ".config"),
        (os.environ.get("XDG_CACHE_HOME"), ".cache"),
    ]
    return [Path(base or os.path.join(home or "/", below), "matplotlib") for base, below in bases]


def _usable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
