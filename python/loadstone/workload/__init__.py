"""Workloads: traces, models, scripts of Filebench, jobs of fio and synthetic loads lowered to plans.

A plan is plain data (``docs/formats/plan.md``): it can be printed, saved, changed and run.

>>> from loadstone.workload import plan_uniform, execute
>>> plan = plan_uniform("randread", "/tmp/target", size=1 << 30, duration=10)
>>> outcome = execute(plan)
"""

from loadstone.workload._draw import draw
from loadstone.workload._execute import execute
from loadstone.workload._filebench import Compat, plan_filebench, run_filebench
from loadstone.workload._fio import plan_fio, run_fio
from loadstone.workload._lower import plan_model, plan_replay, plan_uniform
from loadstone.workload._memory import memory_size
from loadstone.workload._options import Options, Pace
from loadstone.workload._plan import check, load_plan, load_workload, schema, verify

__all__ = [
    "Compat",
    "Options",
    "Pace",
    "check",
    "draw",
    "execute",
    "load_plan",
    "load_workload",
    "memory_size",
    "plan_filebench",
    "plan_fio",
    "plan_model",
    "plan_replay",
    "plan_uniform",
    "run_filebench",
    "run_fio",
    "schema",
    "verify",
]
