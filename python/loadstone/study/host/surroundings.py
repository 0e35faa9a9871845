"""The host before and after each run of a study, and how it differed between arms."""

from __future__ import annotations

import os
import re
import resource
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.bundle.environment import snapshot
from loadstone.study.host import tools

_GEOMETRY = {
    "ext": ("dumpe2fs", "-h"),
    "xfs": ("xfs_info",),
    "btrfs": ("btrfs", "inspect-internal", "dump-super"),
}
_CHANGING = re.compile(
    r"uuid|hash seed|time|created|checked|checksum|csum(?! type)|count|free|generation|bytenr|root|used|"
    r"mounted|state|log start|transaction|sequence|journal (?:start|sequence)|fsid|label|dev_item|cache_gen|"
    r"sys_chunk|backup",
    re.I,
)
"""Keys of a geometry that differ each time a file system is made or used."""


def take(mount: Path, device: str, kind: str | None) -> dict[str, Any]:
    """What is known of the host and of the system that a run is to use.

    Beside what bundles have (``loadstone.bundle.environment``): ``geometry`` of the file system,
    ``services`` that run, ``processes`` (names and how many), ``temperature`` (degrees Celsius by sensor),
    and ``offset``, the first sector of the partition.
    """
    found = snapshot({"system": str(mount)})
    return {
        **found,
        "geometry": _geometry(device, mount, kind) if device and kind else {},
        "services": _services(),
        "processes": _processes(),
        "temperature": _temperatures(),
        "offset": _offset(device),
    }


def _geometry(device: str, mount: Path, kind: str) -> dict[str, str]:
    """How mkfs laid the file system out, without what differs each time."""
    words = next((words for name, words in _GEOMETRY.items() if kind.startswith(name)), None)
    if words is None:
        return {}
    text = tools.answer([*words, str(mount) if kind == "xfs" else device])
    if kind == "xfs":
        return {
            f"line {n}": re.sub(r"^meta-data=\S+", "", line).strip()
            for n, line in enumerate(text.splitlines())
        }
    pairs = re.findall(r"^([A-Za-z][\w .]*?):?[ \t]{2,}(.+)$", text, re.M)
    return {name.strip(): value.strip() for name, value in pairs if not _CHANGING.search(name)}


def _services() -> list[str]:
    words = ["systemctl", "list-units", "--type=service", "--state=running", "--plain", "--no-legend"]
    return sorted(line.split()[0] for line in tools.answer(words).splitlines() if line.strip())


def _processes() -> dict[str, int]:
    """How many processes of each name run, without threads of the kernel."""
    found: Counter[str] = Counter()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if Path(f"/proc/{name}/cmdline").read_bytes():
                    found[Path(f"/proc/{name}/comm").read_text(errors="replace").strip()] += 1
            except OSError:
                continue
    return dict(sorted(found.items()))


def _temperatures() -> dict[str, float]:
    found = {}
    for path in sorted(Path("/sys/class/hwmon").glob("hwmon*/temp*_input")):
        try:
            label = path.parent / "name"
            found[f"{label.read_text().strip()}/{path.name}"] = int(path.read_text()) / 1000
        except (OSError, ValueError):
            continue
    return found


def _offset(device: str) -> int | None:
    try:
        return int(Path(f"/sys/class/block/{os.path.basename(device)}/start").read_text())
    except (OSError, ValueError):
        return None


class Cpu:
    """How busy the CPUs are between two looks, and how far by this process and what it started."""

    def __init__(self) -> None:
        """Looks for the first time."""
        self._before = self._look()
        self._own, self._begun = self._used(), time.monotonic()

    @staticmethod
    def _used() -> float:
        """Seconds of CPU of this process, and of all others that it started and that have ended."""
        used = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in used)

    @staticmethod
    def _look() -> dict[str, tuple[int, int]]:
        """Busy and all ticks by CPU; waiting for I/O is not busy."""
        found = {}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *rest = line.split()
            if name.startswith("cpu"):
                ticks = [int(one) for one in rest[:8]]
                found[name] = sum(ticks) - ticks[3] - ticks[4], sum(ticks)
        return found

    def told(self) -> dict[str, float]:
        """``busy``: share of all CPUs; ``busiest``: that of the busiest one; ``own``: of all, by the load."""
        now = self._look()
        shares = {
            name: (now[name][0] - busy) / (now[name][1] - all_)
            for name, (busy, all_) in self._before.items()
            if name in now and now[name][1] > all_
        }
        each = [share for name, share in shares.items() if name != "cpu"]
        if "cpu" not in shares or not each:
            return {}
        own = (self._used() - self._own) / max(time.monotonic() - self._begun, 1e-9) / len(each)
        return {"busy": shares["cpu"], "busiest": max(each), "own": own}


OF_SYSTEMS = ("mount ", "file system ", "device ", "loop ", "queue ", "geometry ", "offset")
"""Begins of the names of settings that follow from a system."""


def settings_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """What of an environment should be the same in all arms, flat."""
    target = environment.get("targets", {}).get("system", {})
    mount = target.get("mount") or {}
    settings = ((target.get("device") or {}).get("settings")) or {}
    cpu = environment.get("cpu") or {}
    found: dict[str, Any] = {
        **{
            name: environment.get(name) for name in ("kernel", "machine", "cmdline", "clock_source", "offset")
        },
        "mount type": mount.get("type"),
        "mount options": mount.get("options"),
        "file system options": mount.get("super_options"),
        "device model": settings.get("model"),
        "loop device direct I/O": (settings.get("loop") or {}).get("direct_io"),
        **{f"queue {name}": value for name, value in (settings.get("queue") or {}).items()},
        **{f"geometry {name}": value for name, value in (environment.get("geometry") or {}).items()},
        **{f"vm {name}": value for name, value in (environment.get("dirty") or {}).items()},
        **{f"cpu {name}": cpu.get(name) for name in ("model", "count", "governor")},
        "services": ", ".join(environment.get("services") or ()),
        "loadstone": (environment.get("versions") or {}).get("loadstone"),
    }
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def differences(arms: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, list[str]]]:
    """Settings that are not the same in all runs: by name, and then by value the arms that had it.

    ``arms``: environments of all runs of each arm.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for arm, runs in arms.items():
        for environment in runs:
            for name, value in settings_of(environment).items():
                names = found.setdefault(name, {}).setdefault(value, [])
                if arm not in names:
                    names.append(arm)
    told = {arm: {name for one in runs for name in settings_of(one)} for arm, runs in arms.items()}
    for name, values in found.items():
        lacking = [arm for arm, names in told.items() if name not in names and arms[arm]]
        if lacking:
            values["(not there)"] = lacking
    return {name: values for name, values in found.items() if len(values) > 1}
