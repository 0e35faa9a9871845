"""fio's job files, read and turned into plans: a stated subset, everything else an error.

``loadstone.workload.plan_fio`` does both; ``docs/reference/fio.md`` lists the keys.

>>> from loadstone import fio
>>> [job] = fio.parse("[job]\\nrw=randread\\nbs=8k\\nsize=1m\\n")
>>> fio.lower([job], fio.Settings(on="null:")).plans[0]["workers"][0]["source"]["size"]
8192
"""

from loadstone.fio._job import parse
from loadstone.fio._keys import ACCEPTED, ALIASES, ENGINES, OTHER_ENGINES, REFUSED, USED
from loadstone.fio._lower import Plans, Settings, is_job_file, lower
from loadstone.fio._read import Entry, FioError, Job

__all__ = [
    "ACCEPTED",
    "ALIASES",
    "ENGINES",
    "OTHER_ENGINES",
    "REFUSED",
    "USED",
    "Entry",
    "FioError",
    "Job",
    "Plans",
    "Settings",
    "is_job_file",
    "lower",
    "parse",
]
