"""Models: multi-dimensional histograms of a trace, by phase, and the requests drawn from them.

>>> from loadstone import model
>>> fitted = model.fit("disk.spc")
>>> fitted.save("disk.mdh")
>>> [(phase["start"], phase["matrix"]) for phase in fitted.phases()]
[(0.0, 0), (1250.0, 1)]
>>> table = fitted.sample(1000, seed=1)
"""

from loadstone.model._check import Portrait, check, compare, picture, portrait, unit
from loadstone.model._compare import classes, diff, distances, nearest, shares
from loadstone.model._describe import features, plot
from loadstone.model._describe import summary as describe
from loadstone.model._feature import NONE, Feature, Requests, feature, load_features
from loadstone.model._histogram import Histogram, histogram
from loadstone.model._model import Marginal, Model, Phase, Tally, fit, merge
from loadstone.model._target import Step, refine

__all__ = [
    "NONE",
    "Feature",
    "Histogram",
    "Marginal",
    "Model",
    "Phase",
    "Portrait",
    "Requests",
    "Step",
    "Tally",
    "check",
    "classes",
    "compare",
    "describe",
    "diff",
    "distances",
    "feature",
    "features",
    "fit",
    "histogram",
    "load_features",
    "merge",
    "nearest",
    "picture",
    "plot",
    "portrait",
    "refine",
    "shares",
    "unit",
]
