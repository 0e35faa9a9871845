"""Datasets: file trees with their chunks over generations, for deduplication, compression and backup.

>>> from loadstone import dataset
>>> found = dataset.scan(["backups/mon", "backups/tue", "backups/wed"], "site.fst")
>>> found["snapshots"][-1]["together"]["dedup_ratio"]
2.91
>>> dataset.profile("site.fst", "site.profile")["markov"]["uu"]
99.4
>>> made = dataset.create("site.profile", "year.fst", generations=30, seed=7)
>>> dataset.write("year.fst", "/mnt/target", snapshots="all")
>>> dataset.verify("/mnt/target", "site.profile")["worst_percent"]
3.2

After chapter 4 of V. Tarasov, *Multi-dimensional Workload Analysis and Synthesis for Modern Storage Systems*
(PhD thesis, Stony Brook University, 2013); ``docs/explanation/datasets.md`` is the guide.
"""

from loadstone.dataset._create import Created, Generation, create, mutate, populate
from loadstone.dataset._laws import SIZES
from loadstone.dataset._make import (
    Profiled,
    RunLengths,
    Step,
    Written,
    describe_profile,
    profile,
    run_lengths,
    write,
)
from loadstone.dataset._mutate import MODIFIED, NEW, REGULAR, UNMODIFIED, Changes, Mutator, Tree
from loadstone.dataset._report import write_report
from loadstone.dataset._scan import (
    Chunking,
    Counts,
    Described,
    Report,
    Snapshot,
    describe,
    scan,
    scan_git,
    snapshots,
)
from loadstone.dataset._verify import (
    CHUNK_SIZES,
    PATTERNS,
    TRANSITIONS,
    VERDICTS,
    Compared,
    Parameter,
    Verified,
    compare,
    verify,
)
from loadstone.dataset.presets import ASSUMED, PRESETS, Preset

__all__ = [
    "ASSUMED",
    "CHUNK_SIZES",
    "MODIFIED",
    "NEW",
    "PATTERNS",
    "PRESETS",
    "REGULAR",
    "SIZES",
    "TRANSITIONS",
    "UNMODIFIED",
    "VERDICTS",
    "Changes",
    "Chunking",
    "Compared",
    "Counts",
    "Created",
    "Described",
    "Generation",
    "Mutator",
    "Parameter",
    "Preset",
    "Profiled",
    "Report",
    "RunLengths",
    "Snapshot",
    "Step",
    "Tree",
    "Verified",
    "Written",
    "compare",
    "create",
    "describe",
    "describe_profile",
    "mutate",
    "populate",
    "profile",
    "run_lengths",
    "scan",
    "scan_git",
    "snapshots",
    "verify",
    "write",
    "write_report",
]
