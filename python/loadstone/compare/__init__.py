"""Comparisons: which of several arms is better, by how much, and how sure that is."""

from loadstone.compare.arm import Arm, RunValues

__all__ = ["Arm", "RunValues"]
