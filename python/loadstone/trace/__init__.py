"""Traces: time-ordered tables of requests, read from any known format.

>>> from loadstone import trace
>>> trace.convert("disk.spc", "disk.parquet")["counts"]["requests"]
127043
>>> table = trace.read("disk.parquet")
"""

from loadstone.trace._convert import convert
from loadstone.trace._options import Options, Path

__all__ = ["Options", "Path", "convert"]
