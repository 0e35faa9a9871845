"""Traces: time-ordered tables of requests, read from any known format.

>>> from loadstone import trace
>>> trace.convert("disk.spc", "disk.parquet")["counts"]["requests"]
127043
>>> trace.describe("disk.parquet")["read_share"]
0.89
>>> trace.select("disk.parquet", "busy.parquet", plateaus=0.9)["spans_ns"]
[[12000000000, 14000000000]]
>>> table = trace.read("busy.parquet")  # an Arrow table

Every function takes one path, or the per-CPU files of a blktrace capture (or their common base),
and the keywords of :class:`Options`.
"""

from loadstone.trace._columns import columns_from_file, columns_from_text
from loadstone.trace._convert import convert, exports
from loadstone.trace._describe import describe, summary
from loadstone.trace._plot import plot
from loadstone.trace._read import FLAGS, OPS, Reader, formats, open, read
from loadstone.trace._select import select
from loadstone.trace.options import Options, Path, Paths, Progress

__all__ = [
    "FLAGS",
    "OPS",
    "Options",
    "Path",
    "Paths",
    "Progress",
    "Reader",
    "columns_from_file",
    "columns_from_text",
    "convert",
    "describe",
    "exports",
    "formats",
    "open",
    "plot",
    "read",
    "select",
    "summary",
]
