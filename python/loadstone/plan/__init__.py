"""Plans: what a run does, as plain data, and what all that make plans share.

``docs/reference/formats/plan.md`` has the format.

:mod:`~loadstone.plan.options` has what a user may ask for, :mod:`~loadstone.plan.targets` what it goes to,
:mod:`~loadstone.plan.offsets` sizes and places of requests, and :mod:`~loadstone.plan.surroundings` memory,
caches and priorities.
"""

from loadstone.plan.files import load_plan
from loadstone.plan.options import Pace, RunOptions
from loadstone.plan.parts import check, schema, verify
from loadstone.plan.surroundings import memory_size
from loadstone.plan.variables import draw

__all__ = ["Pace", "RunOptions", "check", "draw", "load_plan", "memory_size", "schema", "verify"]
