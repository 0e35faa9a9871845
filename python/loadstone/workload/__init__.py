"""Workloads: traces, models, scripts of Filebench, jobs of fio and synthetic loads lowered to plans.

A plan is plain data (``docs/formats/plan.md``): it can be printed, saved, changed and run.

>>> from loadstone.workload import plan_uniform, execute
>>> plan = plan_uniform("randread", "/tmp/target", size=1 << 30, duration=10)
>>> outcome = execute(plan)
"""

from loadstone.workload.execution import execute
from loadstone.workload.filebench import Compat, plan_filebench, run_filebench
from loadstone.workload.fio import plan_fio, run_fio
from loadstone.workload.job import load_workload
from loadstone.workload.requests import plan_model, plan_replay, plan_uniform

__all__ = [
    "Compat",
    "execute",
    "load_workload",
    "plan_filebench",
    "plan_fio",
    "plan_model",
    "plan_replay",
    "plan_uniform",
    "run_filebench",
    "run_fio",
]
