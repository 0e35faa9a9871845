"""Experiments: one run, an ordered list of runs, and what they say together.

>>> from pathlib import Path
>>> from loadstone.study import Settings, evaluate
>>> found = evaluate(Settings(Path("disk.spc"), "/var/tmp/target", pace="max"), "disk.bundle")
>>> found.summary["verdict"]
'faithful in 8 of 8 parameters'
"""

from loadstone.study.budget import Schedule, fit_budget
from loadstone.study.evaluation import Evaluation, Settings, evaluate
from loadstone.study.faithful import Finding, compare, overall
from loadstone.study.lowering import Facts, Lowering, TraceLowering
from loadstone.study.performing import run
from loadstone.study.runner import NamedRun, ObserveOptions, run_plan, run_series

__all__ = [
    "Evaluation",
    "Facts",
    "Finding",
    "Lowering",
    "NamedRun",
    "ObserveOptions",
    "Schedule",
    "Settings",
    "TraceLowering",
    "compare",
    "evaluate",
    "fit_budget",
    "overall",
    "run",
    "run_plan",
    "run_series",
]
