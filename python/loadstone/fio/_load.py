"""A job of fio's, read but not yet placed on a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from loadstone.fio._read import Job
from loadstone.plan.actions import Program

Portion = tuple[int, bool]
"""Bytes, or percent of the file and True."""


@dataclass
class Load:
    """A job, read but not yet placed on a target."""

    job: Job
    name: str
    reads: float
    sequential: bool
    unit: int
    sizes: list[dict[str, Any]]
    write_sizes: list[dict[str, Any]] = field(default_factory=list)
    """Those of writes, where ``sizes`` are of reads only."""
    follow: float = 0.0
    skip: int = 0
    """Bytes between the end of a request that ascends and the begin of the next one."""
    discards: bool = False
    skew: dict[str, Any] | None = None
    least: int = 0
    """Bytes of the smallest request, which shares are rounded to; offsets are multiples of ``unit``."""
    most: int = 0
    """Bytes of the largest request."""
    once: bool = False
    """Random blocks come once each before any comes again."""
    rate: float = 0.0
    """Requests per second."""
    byte_rate: float = 0.0
    """Bytes per second, in its place."""
    poisson: bool = False
    backend: str = "sync"
    depth: int = 1
    direct: bool = False
    sync: Literal["none", "sync", "dsync"] = "none"
    workers: int = 1
    cpus: list[int] = field(default_factory=list)
    split: bool = False
    files: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    name_format: str = "$jobname.$jobnum.$filenum"
    many: int = 1
    offset: Portion = (0, False)
    increment: Portion = (0, False)
    size: Portion | None = None
    file_size: int | None = None
    moved: int | None = None
    """Bytes of all transfers, where it is told."""
    share: int = 100
    """Percentage of the bytes of its files that is moved."""
    loops: int = 1
    requests: int = 0
    runtime: float | None = None
    endless: bool = False
    nice: int | None = None
    ioprio: dict[str, Any] | None = None
    advice: Literal["normal", "random", "sequential"] = "normal"
    seed: int | None = None
    drop: bool = True
    overwrite: bool = False
    dedupe: float = 1.0
    compress: float = 1.0
    refilled: bool = False
    """Every block is made for its write."""
    verified: bool = False
    stonewall: bool = False
    delay: float = 0.0
    """Seconds before it begins."""
    ramp: float = 0.0
    """Seconds before its requests count."""
    think: float = 0.0
    """Seconds of a pause after every ``think_blocks`` requests."""
    think_blocks: int = 1
    ends_others: bool = False
    """Its end ends those that run with it, and with ``ends_later`` those that would come after."""
    ends_later: bool = False
    steady: dict[str, Any] | None = None
    """The steady state that ends it and those that run with it."""
    latency: dict[str, Any] | None = None
    """The latency that its depth is searched for."""
    flow: dict[str, Any] | None = None
    """Its share of the requests of several jobs."""
    strided: tuple[int, int] | None = None
    """Bytes of a zone, and from its begin to that of the next one."""
    sequence: tuple[list[int], int] | None = None
    """Blocks that come one after the other, and how far they move on each time."""
    sparse: bool = False
    """Space of new files is not reserved."""
    fills: bool = False
    """It goes on to the end of the space there is."""
    atomic: bool = False
    """Each write is stored whole or not at all."""
    priorities: list[dict[str, Any]] = field(default_factory=list)
    """I/O priorities of shares of its requests."""
    cpu: dict[str, Any] | None = None
    """It takes CPU time, and issues no requests."""
    program: Program | None = None
    """It runs this, and issues no requests."""
    waits_for: str | None = None
    """Name of the job that must have ended before it begins."""
    notes: list[str] = field(default_factory=list)

    @property
    def apart(self) -> bool:
        """Reads and writes ascend, each from a place of its own."""
        return self.sequential and 0 < self.reads < 1
