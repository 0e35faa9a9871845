"""Loadstone: turns real storage activity into load that anyone can run again.

>>> import loadstone
>>> job = loadstone.job("varmail", on="/mnt/tree", options=loadstone.RunOptions(duration=60))
>>> bundle = loadstone.run(job, out="run.bundle")
>>> bundle.summary["ops_per_s"]
5120.4

Each noun is a package of its own (``loadstone.trace``, ``loadstone.model``, ...), and every verb of
the command line is a public function there that returns plain data or Arrow tables.
"""

from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone._core import __version__
from loadstone.errors import (
    DatasetError,
    Error,
    Kept,
    ModelError,
    OptionError,
    PlanError,
    RunError,
    StudyError,
    TraceError,
)

if TYPE_CHECKING:
    from loadstone.bundle import Bundle
    from loadstone.plan import RunOptions
    from loadstone.workload import Job, job, run

__all__ = [
    "Bundle",
    "DatasetError",
    "Error",
    "Job",
    "Kept",
    "ModelError",
    "OptionError",
    "PlanError",
    "RunError",
    "RunOptions",
    "StudyError",
    "TraceError",
    "__version__",
    "job",
    "run",
]

_LATER = {
    "Bundle": "loadstone.bundle",
    "Job": "loadstone.workload",
    "RunOptions": "loadstone.plan",
    "job": "loadstone.workload",
    "run": "loadstone.workload",
}
"""Where names are that are imported when they are first used, so that ``--help`` answers at once."""


def __getattr__(name: str) -> Any:
    """One of them."""
    if name not in _LATER:
        raise AttributeError(f"module 'loadstone' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """All public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})


def _evaluate(family: str, parameters: list[float], first: Any, last: Any) -> Any:
    """How likely each bucket is; asked when a model with formulas is loaded."""
    from loadstone._extras import need
    from loadstone.model.families import shares

    need("scipy")
    return shares(family, parameters, first, last)


_core.model_register_distributions(_evaluate)
