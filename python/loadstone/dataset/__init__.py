"""Datasets: file trees with their chunks over generations, for deduplication, compression and backup.

>>> from loadstone import dataset
>>> found = dataset.scan(["backups/mon", "backups/tue"], "site.fst")
>>> found["snapshots"][-1]["together"]["dedup_ratio"]
1.97

After chapter 4 of V. Tarasov, *Multi-dimensional Workload Analysis and Synthesis for Modern Storage Systems*
(PhD thesis, Stony Brook University, 2013); ``docs/datasets.md`` is the guide.
"""

from loadstone.dataset._scan import Chunking, Counts, Described, Report, Snapshot, describe, scan

__all__ = ["Chunking", "Counts", "Described", "Report", "Snapshot", "describe", "scan"]
