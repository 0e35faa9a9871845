"""Models: multi-dimensional histograms of a trace, by phase, and the requests drawn from them.

>>> from loadstone import model
>>> fitted = model.fit("disk.spc")
>>> fitted.save("disk.mdh")
>>> [(phase["start"], phase["matrix"]) for phase in fitted.phases()]
[(0.0, 0), (1250.0, 1)]
>>> table = fitted.sample(1000, seed=1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loadstone.model._model import CELL_BITS, Link, Marginal, Model, Phase, Tally, fit, merge

if TYPE_CHECKING:
    from loadstone.model._changes import change_points, find_boundaries, pelt
    from loadstone.model._check import Portrait, check, compare, portrait, unit, verdict
    from loadstone.model._compare import classes, diff, distances, nearest, shares
    from loadstone.model._feature import NONE, Feature, Requests, feature, load_features
    from loadstone.model._formula import Fit, Slice, approximated, fits, slices
    from loadstone.model._plot import picture, plot_over_time
    from loadstone.model._target import Step, refine
    from loadstone.model.description import features, plot
    from loadstone.model.description import summary as describe
    from loadstone.model.families import shares as bucket_shares
    from loadstone.model.histograms import Histogram, histogram

__all__ = [
    "CELL_BITS",
    "NONE",
    "Feature",
    "Fit",
    "Histogram",
    "Link",
    "Marginal",
    "Model",
    "Phase",
    "Portrait",
    "Requests",
    "Slice",
    "Step",
    "Tally",
    "approximated",
    "bucket_shares",
    "change_points",
    "check",
    "classes",
    "compare",
    "describe",
    "diff",
    "distances",
    "feature",
    "features",
    "find_boundaries",
    "fit",
    "fits",
    "histogram",
    "load_features",
    "merge",
    "nearest",
    "pelt",
    "picture",
    "plot",
    "plot_over_time",
    "portrait",
    "refine",
    "shares",
    "slices",
    "unit",
    "verdict",
]

# What fitting needs is there at once, the rest when it is asked for: it takes longer to load than many models
# to fit.
_HOMES = {
    "change_points": ("_changes", "change_points"),
    "find_boundaries": ("_changes", "find_boundaries"),
    "pelt": ("_changes", "pelt"),
    "plot_over_time": ("_plot", "plot_over_time"),
    "Feature": ("_feature", "Feature"),
    "Fit": ("_formula", "Fit"),
    "Slice": ("_formula", "Slice"),
    "approximated": ("_formula", "approximated"),
    "bucket_shares": ("families", "shares"),
    "fits": ("_formula", "fits"),
    "slices": ("_formula", "slices"),
    "Histogram": ("histograms", "Histogram"),
    "NONE": ("_feature", "NONE"),
    "Portrait": ("_check", "Portrait"),
    "Requests": ("_feature", "Requests"),
    "Step": ("_target", "Step"),
    "check": ("_check", "check"),
    "classes": ("_compare", "classes"),
    "compare": ("_check", "compare"),
    "describe": ("description", "summary"),
    "diff": ("_compare", "diff"),
    "distances": ("_compare", "distances"),
    "feature": ("_feature", "feature"),
    "features": ("description", "features"),
    "histogram": ("histograms", "histogram"),
    "load_features": ("_feature", "load_features"),
    "nearest": ("_compare", "nearest"),
    "picture": ("_plot", "picture"),
    "plot": ("description", "plot"),
    "portrait": ("_check", "portrait"),
    "refine": ("_target", "refine"),
    "shares": ("_compare", "shares"),
    "unit": ("_check", "unit"),
    "verdict": ("_check", "verdict"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, original = _HOMES[name]
    found = getattr(import_module(f"{__name__}.{home}"), original)
    globals()[name] = found
    return found
