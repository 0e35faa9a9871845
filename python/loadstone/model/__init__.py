"""Models: multi-dimensional histograms of a trace, by phase, and the requests drawn from them.

>>> from loadstone import model
>>> fitted = model.fit("disk.spc")
>>> fitted.save("disk.mdh")
>>> [(phase["start"], phase["matrix"]) for phase in fitted.phases()]
[(0.0, 0), (1250.0, 1)]
>>> table = fitted.sample(1000, seed=1)
"""

from loadstone.model._check import Portrait, check, compare, picture, portrait
from loadstone.model._compare import classes, diff, distances, nearest
from loadstone.model._describe import plot
from loadstone.model._describe import summary as describe
from loadstone.model._model import Marginal, Model, Phase, Tally, fit

__all__ = [
    "Marginal",
    "Model",
    "Phase",
    "Portrait",
    "Tally",
    "check",
    "classes",
    "compare",
    "describe",
    "diff",
    "distances",
    "fit",
    "nearest",
    "picture",
    "plot",
    "portrait",
]
