"""Loadstone: turns real storage activity into load that anyone can run again.

Each noun is a package of its own (``loadstone.trace``, ``loadstone.model``, ...), and every verb of
the command line is a public function there that returns plain data or Arrow tables.
"""

from typing import Any

from loadstone import _core
from loadstone._core import Error, __version__

__all__ = ["Error", "__version__"]


def _evaluate(family: str, parameters: list[float], first: Any, last: Any) -> Any:
    """How likely each bucket is; asked when a model with formulas is loaded."""
    from loadstone.model._families import shares

    return shares(family, parameters, first, last)


_core.model_register_distributions(_evaluate)
