"""Comparisons: which of several arms is better, by how much, and how sure that is.

>>> from loadstone.compare import compare_bundles
>>> compare_bundles(["ext4.bundle", "xfs.bundle"])
<Comparison xfs against ext4: ops_per_s is better: 1.213 times (1.18 to 1.25)>
"""

from loadstone.compare.arm import Arm, RunValues
from loadstone.compare.comparison import Comparison, compare, compare_bundles, compare_itself
from loadstone.compare.differences import Difference
from loadstone.compare.floor import floors
from loadstone.compare.history import History, history_of
from loadstone.compare.reading import read_arm, read_arms
from loadstone.compare.verdicts import Finding

__all__ = [
    "Arm",
    "Comparison",
    "Difference",
    "Finding",
    "History",
    "RunValues",
    "compare",
    "compare_bundles",
    "compare_itself",
    "floors",
    "history_of",
    "read_arm",
    "read_arms",
]
