"""What every lowering takes besides its source and target."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from loadstone import Error, _core, _values
from loadstone._values import Misused
from loadstone.content import Content
from loadstone.verification import Verify

Pace = float | str
"""``"recorded"``, an acceleration (2.0 or ``"x2"``), or ``"max"``: as fast as possible."""

Path = str | os.PathLike[str]


Cache = Literal["none", "drop", "drop-host", "remount"]
"""What becomes of the caches before a load."""


class Options(TypedDict, total=False):
    """Options of :func:`plan_replay`, :func:`plan_model` and :func:`plan_uniform`."""

    size: int | None
    """Bytes of the target that are used; by default all it has, or for a new one what is needed."""
    backend: Literal["auto", "sync", "mmap", "io_uring", "files", "null"]
    """``auto``: io_uring where it is permitted, else sync; null for the target ``null:``."""
    depth: int | None
    """Most requests in flight; by default 32, and with io_uring at an open pace 256."""
    direct: bool
    """Bypass the page cache (O_DIRECT)."""
    sync: Literal["none", "sync", "dsync", "recorded"]
    """O_SYNC, O_DSYNC, or RWF_DSYNC on the requests that carried it in the trace."""
    duration: float | None
    """Longest run, seconds; by default until the source ends."""
    requests: int
    """Most requests; 0: no limit."""
    seed: int
    """Of everything drawn at random."""
    maps: Mapping[str, str]
    """Target of single objects, by the object's name or number."""
    offsets: Literal["error", "wrap", "scale"]
    """What becomes of requests beyond the end of the target."""
    interval: float
    """Seconds of the recorder's intervals."""
    cpus: Sequence[int]
    """CPUs the load is pinned to."""
    allow_destroy: Sequence[Path]
    """Existing targets whose content may be overwritten, named exactly."""
    fill: bool | None
    """Write the target from end to end first; by default when it is new or may be overwritten."""
    cache: Cache | None
    """What becomes of the caches before the load: ``drop``, the default, those of the target's pages;
    ``drop-host`` all clean caches of the host, too, as root. ``remount`` unmounts the file system of the
    target and mounts it again; it must be one of its own that nobody else uses."""
    memory_limit: int | None
    """Bytes of memory the run gets, page cache included, by a memory cgroup."""
    nice: int | None
    """Niceness of the load's threads, -20 to 19."""
    ioprio: str | None
    """I/O priority of the load's threads: ``idle``, ``best-effort:LEVEL`` or ``realtime:LEVEL``, 0 to 7."""
    fadvise: Literal["normal", "random", "sequential"]
    """What the kernel is told of how targets are read (posix_fadvise); only through the page cache."""
    log: Path | None
    """Where every request is logged (Parquet)."""
    content: Content | None
    """What everything written is like; by default random, with a stamp in every 4 KiB."""
    verify: Verify | None
    """Compare every block that is read with what it should hold, and all of them at the end."""
    group: str
    """Name of the group (VM, client, host) the load belongs to."""


def refuse_unknown(options: Options) -> None:
    """Raises where an option is none, which a dict of keywords would not tell."""
    if unknown := sorted(set(options) - set(Options.__annotations__)):
        raise TypeError(
            f"there is no option {', '.join(unknown)}; there are {', '.join(Options.__annotations__)}"
        )


def pace_of(pace: Pace) -> dict[str, object]:
    """The pace as a plan has it."""
    speed: float | None
    if isinstance(pace, str):
        text = pace.strip().lower()
        if text == "max":
            return {"kind": "closed"}
        if text == "recorded":
            speed = 1.0
        else:
            try:
                speed = _values.factor(text)
            except Error:
                speed = None
    else:
        speed = float(pace)
    if speed is None or not 0 < speed < float("inf"):
        raise Misused(f"pace {pace!r}: write recorded, max, or an acceleration such as x2 or x0.5")
    return {"kind": "open", "speed": speed}


_ARRIVALS: Mapping[str, Sequence[str]] = {
    "constant": (),
    "poisson": (),
    "gamma": ("shape",),
    "hyper": ("variation",),
    "onoff": ("on_s", "off_s"),
}


def arrival_of(text: str) -> dict[str, object]:
    """A law of arrivals as a plan has it, from ``NAME``, ``NAME:NUMBER,NUMBER`` or ``trace:FILE``."""
    name, _, numbers = text.strip().partition(":")
    if name == "trace":
        if not numbers:
            raise Misused(f"--arrival {text}: write trace:FILE")
        return {"kind": name, "artefact": "arrivals"}
    parameters = _ARRIVALS.get(name)
    if parameters is None:
        raise Misused(f"--arrival {text}: is none of {', '.join(_ARRIVALS)}, trace:FILE")
    try:
        values = [_values.number(number) for number in numbers.split(",")] if numbers else []
    except Error:
        values = []
    if len(values) != len(parameters):
        wanted = f"{name}:{','.join(p.removesuffix('_s').upper() for p in parameters)}".rstrip(":")
        raise Misused(f"--arrival {text}: write {wanted}")
    return {"kind": name, **dict(zip(parameters, values, strict=True))}


def backend_of(options: Options, null: bool) -> str:
    """The backend: the one asked for, or the best there is."""
    asked = options.get("backend", "auto")
    if null:
        if asked not in ("auto", "null"):
            raise Misused(f"--backend {asked}: the target null: performs nothing; name a file or a device")
        return "null"
    if asked == "auto":
        return "sync" if _core.uring_refused() else "io_uring"
    return asked


def depth_of(options: Options, backend: str, is_open: bool) -> int:
    """Most requests in flight."""
    depth = options.get("depth")
    if depth is not None:
        return depth
    return 256 if is_open and backend == "io_uring" else 32
