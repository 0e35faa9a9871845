"""Libraries that come with an extra of the package, and may not be installed."""

from __future__ import annotations

import importlib.util
import resource
import sys
from collections.abc import Mapping

from loadstone._units import size
from loadstone.errors import Error

EXTRAS: Mapping[str, str] = {
    "jinja2": "report",
    "plotly": "report",
    "matplotlib": "plot",
    "scipy": "formulas",
}
"""The extra that each is part of (``pyproject.toml``)."""

_ROOM = 512 << 20
"""Bytes of address space that a large library and what is computed with it take, at least."""


def need(*modules: str) -> None:
    """Raises ``Error`` with the extra to install where one of these is not there; imports none of them."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise Error(missing(module))


def load(module: str) -> None:
    """Imports what is needed only after something was measured, before that, or raises ``Error``.

    Where a limit (ulimit -v) leaves no room, OpenBLAS asks for it again and again, without end.
    """
    need(module.partition(".")[0])
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and module not in sys.modules:
        with open("/proc/self/statm", encoding="ascii") as file:
            left = limit - int(file.read().split()[0]) * resource.getpagesize()
        if left < _ROOM:
            raise Error(
                f"a limit of memory (ulimit -v) leaves {size(max(left, 0))}, too little to load {module}; "
                f"raise it by {size(_ROOM - left)}"
            )
    importlib.import_module(module)


def missing(module: str | None) -> str:
    """What to do where a module is not there."""
    name = (module or "").partition(".")[0]
    if name not in EXTRAS:
        return f"the Python module {module} is not installed; install Loadstone anew, with its dependencies"
    return f"{name} is not installed, which this needs: pip install 'loadstone[{EXTRAS[name]}]'"
