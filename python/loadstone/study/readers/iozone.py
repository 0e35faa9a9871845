"""IOzone's report: the table of single streams (KiB/s), or the lines of throughput mode (``-t``)."""

from __future__ import annotations

import re

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_TESTS = (
    *("write", "rewrite", "read", "reread", "random_read", "random_write", "backward_read"),
    *("record_rewrite", "stride_read", "fwrite", "frewrite", "fread", "freread"),
)
"""Columns of the table, in their order."""
_CHILDREN = re.compile(r"Children see throughput for\s+\d+ (.+?)\s*=\s*([\d.]+) [kK]B/sec")
_KIB = 1024


def read(text: str) -> list[tuple[Metric, float]]:
    """One figure a test in bytes per second, such as ``write`` or ``random_read``.

    Of several sizes of files or records each is a figure of its own, as ``64.4.write`` (both in KiB).
    """
    children = [
        (name.strip().replace(" ", "_").replace("-", "_"), float(value))
        for name, value in _CHILDREN.findall(text)
    ]
    if children:
        return [(_metric(name), value * _KIB) for name, value in children]
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if re.match(r"\s+kB\s+reclen\s", line, re.I)), None)
    if head is None:
        raise Error("has no table of IOzone, and no line of its throughput mode")
    # Tests that were left out are blanks, so columns are told by where they end.
    ends = [match.end() for match in re.finditer(r"\S+", lines[head])][2:]
    rows = [line for line in lines[head + 1 :] if re.fullmatch(r"\s*\d+\s+\d+(?:\s+\d+)+\s*", line)]
    found: list[tuple[Metric, float]] = []
    for line in rows:
        size, record, *values = re.finditer(r"\d+", line)
        before = f"{size[0]}.{record[0]}." if len(rows) > 1 else ""
        for value in values:
            column = min(range(len(ends)), key=lambda i: abs(ends[i] - value.end()))
            found.append((_metric(before + _TESTS[column]), float(value[0]) * _KIB))
    if not found:
        raise Error("the table of IOzone has no row")
    return found


def _metric(name: str) -> Metric:
    return Metric(name, "bytes/s", "higher", "harmonic")
