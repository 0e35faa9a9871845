"""Workloads: traces, models, scripts of Filebench, jobs of fio and synthetic loads lowered to plans, and run.

A plan is plain data (``docs/reference/formats/plan.md``): it can be printed, saved, changed and run.

>>> from loadstone.plan import RunOptions
>>> from loadstone.workload import execute, plan_uniform
>>> plan = plan_uniform("randread", "/tmp/target", RunOptions(size=1 << 30, duration=10))
>>> outcome = execute(plan)
"""

from loadstone.workload.execution import execute
from loadstone.workload.filebench import plan_filebench
from loadstone.workload.fio import plan_fio
from loadstone.workload.jobs import Job, job
from loadstone.workload.requests import plan_model, plan_replay, plan_uniform
from loadstone.workload.runner import NamedRun, ObserveOptions, run_plan, run_series
from loadstone.workload.running import run

__all__ = [
    "Job",
    "NamedRun",
    "ObserveOptions",
    "execute",
    "job",
    "plan_filebench",
    "plan_fio",
    "plan_model",
    "plan_replay",
    "plan_uniform",
    "run",
    "run_plan",
    "run_series",
]
