"""What a run has around it: memory, caches, priorities."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loadstone import _values
from loadstone.errors import Error, OptionError
from loadstone.plan.options import Cache, RunOptions, ioprio_of


def memory(limit: int | None = None, root: Path = Path("/")) -> int:
    """Bytes of memory there are: MemTotal of /proc/meminfo (proc(5)), or less by a limit.

    ``limit``: that of the run, in bytes. Those of the memory cgroups of this process count too, in version 2
    (``memory.max``) and 1 (``memory.limit_in_bytes``). ``root``: where /proc and /sys are.
    """
    try:
        found = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.M)
    except OSError as error:
        raise Error(f"/proc/meminfo: {error.strerror}; give a size in bytes in place of x-ram") from None
    if found is None:
        raise Error("/proc/meminfo: has no MemTotal; give a size in bytes in place of x-ram")
    return min([int(found[1]) * 1024, *_limits(root), *([] if limit is None else [limit])])


def address_space() -> int | None:
    """Bytes that this process may still map by its limits (``ulimit -v``, ``-d``); None without one."""
    left = []
    for name, limit in (("VmSize", resource.RLIMIT_AS), ("VmData", resource.RLIMIT_DATA)):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
            left.append(max(soft - int(found[1] if found else 0) * 1024, 0))
    return min(left, default=None)


def memory_size(text: str, limit: int | None = None) -> int | None:
    """Bytes of ``2x-ram``, of the memory that :func:`memory` finds; None where a text says no such thing.

    Raises ``Error`` where the memory cannot be found out, or the size is 2^63 bytes and more.
    """
    share = _values.memory_share(text)
    return None if share is None else of_memory(share, limit)


def of_memory(share: float, limit: int | None = None) -> int:
    """Bytes of a multiple of what :func:`memory` finds; raises ``Error`` beyond the size of any file."""
    found = round(share * memory(limit))
    if found > _values.MOST:
        raise Error(f"{share:g}x-ram is too large: a size is below 8192p (2 to the 63rd)")
    return found


def _limits(root: Path) -> Iterator[int]:
    """Limits of the memory cgroups that hold this process (cgroups(7)), from its own outwards."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = base / path.strip("/")
        # In a container the path may be the host's, of which only the top is there.
        for place in (group, *(one for one in group.parents if one.is_relative_to(base))):
            try:
                text = (place / name).read_text().strip()
            except OSError:
                continue
            if text.isdigit():
                yield int(text)


def steps_of(cache: Cache | None, memory_limit: int | None, usual: Cache) -> list[dict[str, object]]:
    """The steps between making targets ready and the load."""
    if cache == "none" and memory_limit is not None:
        raise OptionError(
            "cache",
            "none",
            "with `memory_limit`, pages that are cached already would not count; use drop or remount",
        )
    if cache is None:
        cache = "drop" if memory_limit is not None else usual
    steps: dict[Cache, list[dict[str, object]]] = {
        "none": [],
        "drop": [{"step": "drop_caches"}],
        "drop-host": [{"step": "drop_caches", "host": True}],
        "remount": [{"step": "remount"}],
    }
    return steps[cache]


def taken_from_others(worker: Mapping[str, Any], options: RunOptions) -> str | None:
    """What a worker takes from other processes that no option names: its file may be a stranger's."""
    if (worker.get("nice") or 0) < 0 and options.nice is None:
        nice = worker["nice"]
        return f"takes CPU time from others, with niceness {nice}; name it, too: `nice` {nice}"
    wish = worker.get("ioprio") or {}
    if wish.get("class") == "realtime" and options.ioprio is None:
        text = f"realtime:{wish.get('level', 4)}"
        return f"takes the disk from others, with I/O priority {text}; name it, too: `ioprio` {text}"
    levels = [row["ioprio"].get("level", 0) for row in _realtime(worker)]
    if levels and options.ioprio is None:
        text = f"realtime:{min(levels)}"
        return (
            f"takes the disk from others, with I/O priority {text} of some requests; name it, too: "
            f"`ioprio` {text}"
        )
    return None


def _realtime(worker: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Rows of a worker's priorities that are of the class realtime."""
    return [row for row in worker.get("priorities", ()) if row["ioprio"]["class"] == "realtime"]


def prioritise(path: str, workers: Iterable[dict[str, Any]], options: RunOptions) -> None:
    """Gives workers of a file the priorities that are asked for; ``Error`` for what they take unnamed."""
    for worker in workers:
        if what := taken_from_others(worker, options):
            raise Error(f"{path}: {what}")
        worker |= priorities_over(worker, options)


def priorities_over(worker: Mapping[str, Any], options: RunOptions) -> dict[str, object]:
    """What stands above a worker's own priorities; `ioprio` only permits those of single requests."""
    found = priorities_of(options)
    if _realtime(worker):
        found.pop("ioprio", None)
    return found


def priorities_of(options: RunOptions) -> dict[str, object]:
    """Niceness and I/O priority as a worker has them."""
    found: dict[str, object] = {}
    if options.nice is not None:
        found["nice"] = options.nice
    if options.ioprio is not None:
        found["ioprio"] = ioprio_of(options.ioprio)
    return found


def size_of(options: RunOptions) -> int | None:
    """Bytes that ``size`` asks for: multiples of memory are of that of the machine, or of the limit on it."""
    if not isinstance(text := options.size, str):
        return text
    if len(parts := re.split("[,-]", text)) > 1 and all(parts) and _values.memory_share(text) is None:
        raise OptionError("size", text, "one size is wanted; suites such as iozone take several")
    try:
        if (share := _values.memory_share(text)) is not None:
            return of_memory(share, options.memory_limit)
        return _values.size(text)
    except Error as error:
        raise OptionError("size", None, str(error)) from None
