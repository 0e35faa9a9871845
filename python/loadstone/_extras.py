"""Libraries that come with an extra of the package, and may not be installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from loadstone.errors import Error

EXTRAS: Mapping[str, str] = {
    "jinja2": "report",
    "plotly": "report",
    "matplotlib": "plot",
    "scipy": "formulas",
}
"""The extra that each is part of (``pyproject.toml``)."""


def need(*modules: str) -> None:
    """Raises ``Error`` with the extra to install where one of these is not there; imports none of them."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise Error(missing(module))


def missing(module: str | None) -> str:
    """What to do where a module is not there."""
    name = (module or "").partition(".")[0]
    if name not in EXTRAS:
        return f"the Python module {module} is not installed; install Loadstone anew, with its dependencies"
    return f"{name} is not installed, which this needs: pip install 'loadstone[{EXTRAS[name]}]'"
