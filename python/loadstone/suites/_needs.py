"""What suites need: time, from requests and bytes, and room that earlier files leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BYTES_PER_S = 100e6
"""Bytes per second that times are told for."""
REQUEST_S = 2e-6
"""Seconds of a request to the page cache: a system call of a few microseconds at most."""
NULL_S = 2e-7
"""Seconds of a request that is not performed."""
FLUSH_S = 1e-3
"""Seconds until a device has flushed a write."""

_MOVED = {"read": 1, "write": 1, "fread": 1, "fwrite": 1, "getc": 1, "putc": 1, "copy_range": 2}
_SYNCS = ("sync", "datasync")


@dataclass(frozen=True)
class Work:
    """What there is to do."""

    requests: float = 0.0
    flushes: float = 0.0
    """Synchronous writes, and requests to flush."""
    bytes: float = 0.0
    """Bytes that are read and written."""
    skipped: float = 0.0
    """Requests that are not performed, as they go to ``null:``."""

    def __add__(self, other: Work) -> Work:
        """Both, one after the other."""
        return Work(
            self.requests + other.requests,
            self.flushes + other.flushes,
            self.bytes + other.bytes,
            self.skipped + other.skipped,
        )

    @property
    def seconds(self) -> float:
        """About how long it takes, one request after the other, at the speeds above."""
        return (
            self.bytes / BYTES_PER_S
            + self.requests * REQUEST_S
            + self.flushes * FLUSH_S
            + self.skipped * NULL_S
        )


def work(plan: Mapping[str, Any]) -> Work:
    """What a plan of phases has to do; files that are there before its first phase are written, too."""
    found = Work()
    for worker in plan["workers"]:
        found += _of_ops(worker["source"]["ops"], 1)
    if plan["targets"][0]["kind"] == "null":
        return Work(skipped=found.requests)
    for one in plan["sets"]:
        if one.get("present") and not one.get("reuse"):
            found += Work(requests=3 * one["entries"], bytes=one["entries"] * one["size"])
    return found


def _of_ops(ops: Sequence[Mapping[str, Any]], times: float) -> Work:
    found = Work()
    for op in ops:
        # What is drawn is done once at most.
        often = op.get("times", 1)
        count = times * (often if isinstance(often, int | float) else 1)
        if op["act"] == "group":
            found += _of_ops(op["ops"], count)
            continue
        flushes = op["act"] in _SYNCS or (op["act"] in ("write", "fwrite") and op.get("sync"))
        moved = _MOVED.get(op["act"], 0) * op.get("size", 0)
        found += Work(count, count if flushes else 0, count * moved)
    return found


def size_text(size: int) -> str:
    """``64 KiB``, ``1 GiB``: in the largest unit that it is a multiple of."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor:,} {unit}"
    return f"{size:,} B"
