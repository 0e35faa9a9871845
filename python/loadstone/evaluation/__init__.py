"""Evaluations: runs of a trace and of its model in turns, and how far the model is faithful.

>>> from pathlib import Path
>>> from loadstone.evaluation import Settings, evaluate
>>> found = evaluate(Settings(Path("disk.spc"), "/var/tmp/target", pace="max"), "disk.bundle")
>>> found.summary["verdict"]
'faithful in 8 of 8 parameters'
"""

from loadstone.evaluation.budget import Schedule, fit_budget
from loadstone.evaluation.evaluation import Evaluation, Settings, evaluate
from loadstone.evaluation.faithful import Finding, compare, overall
from loadstone.evaluation.lowering import Facts, Lowering, TraceLowering

__all__ = [
    "Evaluation",
    "Facts",
    "Finding",
    "Lowering",
    "Schedule",
    "Settings",
    "TraceLowering",
    "compare",
    "evaluate",
    "fit_budget",
    "overall",
]
