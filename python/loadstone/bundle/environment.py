"""The host a run ran on: what must be equal before two results may be compared."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from loadstone._core import __version__
from loadstone._files import absolute


def _text(path: str | Path) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


_QUEUE = [
    "scheduler",
    "nr_requests",
    "wbt_lat_usec",
    "nomerges",
    "iostats",
    "rotational",
    "write_cache",
    "fua",
    "max_sectors_kb",
    "read_ahead_kb",
    "io_poll",
    "logical_block_size",
    "physical_block_size",
    "discard_max_bytes",
]


def device_settings(sysfs: str | Path) -> dict[str, Any]:
    """Size, model and queue settings of a block device from its folder under /sys."""
    folder = Path(sysfs)
    queue = folder / "queue" if (folder / "queue").is_dir() else folder.parent / "queue"
    sectors = _text(folder / "size")
    out: dict[str, Any] = {
        "size_bytes": int(sectors) * 512 if sectors else None,
        "model": _text(folder / "device/model"),
        "firmware": _text(folder / "device/firmware_rev") or _text(folder / "device/rev"),
        "queue": {name: value for name in _QUEUE if (value := _text(queue / name)) is not None},
    }
    if (backing := _text(folder / "loop/backing_file")) is not None:
        out["loop"] = {"backing_file": backing, "direct_io": _text(folder / "loop/dio")}
    return out


def _unescape(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), field)


def mount_of(path: str | Path, table: str | None = None) -> dict[str, str] | None:
    """Mount point, type, source and options of the file system a path lies on."""
    table = table if table is not None else _text("/proc/self/mountinfo") or ""
    real = Path(os.path.realpath(path))
    best: tuple[int, dict[str, str]] | None = None
    for line in table.splitlines():
        left, dash, right = line.partition(" - ")
        fields, rest = left.split(" "), right.split(" ")
        if not dash or len(fields) < 6 or len(rest) < 3:
            continue
        point = Path(_unescape(fields[4]))
        depth = len(point.parts)
        if real.is_relative_to(point) and (best is None or depth >= best[0]):
            best = (
                depth,
                {
                    "point": str(point),
                    "type": rest[0],
                    "source": _unescape(rest[1]),
                    "options": fields[5],
                    "super_options": _unescape(rest[2]),
                },
            )
    return best[1] if best else None


def _cpu() -> dict[str, Any]:
    info = _text("/proc/cpuinfo") or ""
    model = re.search(r"^model name\s*:\s*(.+)$", info, re.M)
    base = Path("/sys/devices/system/cpu")
    flaws = sorted((base / "vulnerabilities").glob("*")) if (base / "vulnerabilities").is_dir() else []
    return {
        "model": model[1].strip() if model else platform.processor() or None,
        "count": os.cpu_count(),
        "usable": sorted(os.sched_getaffinity(0)),
        "governor": _text(base / "cpu0/cpufreq/scaling_governor"),
        "mitigations": {flaw.name: _text(flaw) for flaw in flaws},
    }


def _memory() -> dict[str, int]:
    text = _text("/proc/meminfo") or ""
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.M))
    keys = ("MemTotal", "MemFree", "MemAvailable", "Cached", "Dirty", "SwapTotal")
    return {key: int(found[key]) * 1024 for key in keys if key in found}


def snapshot(targets: dict[str, str | None]) -> dict[str, Any]:
    """What is known of this host; ``targets``: id and path (None where there is none) of the
    plan's.

    Keys: ``host``, ``kernel``, ``machine``, ``cmdline``, ``cpu``, ``memory``, ``clock_source``,
    ``dirty`` (write-back limits), ``load`` (1, 5, 15 minutes), ``versions``, ``targets`` (mount,
    device with its queue settings, free space). What a host does not tell is null or left out.
    """
    from loadstone.observe.observer import device_of

    uname = platform.uname()
    vm = (
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
        "swappiness",
    )
    out: dict[str, Any] = {
        "host": uname.node,
        "kernel": f"{uname.system} {uname.release} {uname.version}",
        "machine": uname.machine,
        "cmdline": _text("/proc/cmdline"),
        "cpu": _cpu(),
        "memory": _memory(),
        "clock_source": _text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "dirty": {name: _text(f"/proc/sys/vm/{name}") for name in vm},
        "load": list(os.getloadavg()),
        "cgroup": _text("/proc/self/cgroup"),
        "versions": {"loadstone": __version__, "python": platform.python_version()},
        "targets": {},
    }
    for name, path in targets.items():
        entry: dict[str, Any] = {"path": path}
        if path:
            device, reason = device_of(path)
            entry["mount"] = mount_of(path)
            entry["device"] = device and {**device, "settings": device_settings(device["sysfs"])}
            if reason:
                entry["no_device"] = reason
            try:
                space = os.statvfs(path if os.path.exists(path) else os.path.dirname(absolute(path)))
                entry["file_system"] = {
                    "bytes": space.f_frsize * space.f_blocks,
                    "free": space.f_frsize * space.f_bavail,
                }
            except OSError as error:
                entry["file_system"] = {"error": str(error)}
        out["targets"][name] = entry
    return out


def after() -> dict[str, Any]:
    """What may have changed by the end of a run: ``memory`` and ``load``."""
    return {"memory": _memory(), "load": list(os.getloadavg())}
