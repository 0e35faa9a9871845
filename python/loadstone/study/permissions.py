"""What a study needs before it may begin: permissions of the command line, programs, devices, rights."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone._scratch import scratch
from loadstone._text import one_line
from loadstone.errors import Error, StudyError
from loadstone.study.file.kinds import Command
from loadstone.study.file.spec import Cell, Study
from loadstone.study.host import commands, tools
from loadstone.study.host.making import refuse_device
from loadstone.study.loads import rehearse

_INSIDE = ("{mount}", "{out}")
"""Where loads of `run` may write."""


@dataclass(frozen=True)
class Allowed:
    """What the command line permits."""

    commands: bool = False
    """Commands of the file run as you."""
    destroy: Sequence[str] = ()
    """Devices whose content may be lost."""
    host_changes: bool = False
    """Services, swap, kernel parameters, queue settings and caches of the host."""

    def device(self, path: str) -> bool:
        """Whether a device is among them, by whatever name."""
        return any(_same(path, one) for one in self.destroy)


def _same(one: str, other: str) -> bool:
    try:
        a, b = os.stat(one), os.stat(other)
    except OSError:
        return False
    return stat.S_ISBLK(a.st_mode) and stat.S_ISBLK(b.st_mode) and a.st_rdev == b.st_rdev


def commands_of(study: Study) -> Iterator[tuple[str, Command]]:
    """All commands of a study, each with the key that has it."""
    for cell in study.cells:
        load, where = cell.workload, f"workloads.{cell.workload_name}"
        if load.command is not None:
            yield f"{where}.command", load.command
        yield from ((f"{where}.prepare", one) for one in load.prepare)
        yield from ((f"{where}.beside", one) for one in load.beside)
    for name in (one for one in vars(study.hooks) if one != "every"):
        yield from ((f"hooks.{name}", one) for one in getattr(study.hooks, name))
    yield from (("hooks.every", one.command) for one in study.every)
    if study.file.notify is not None:
        yield "notify", study.file.notify


def check(study: Study, allowed: Allowed) -> None:
    """Raises ``StudyError`` with everything that is lacking or not permitted."""
    faults = [*dict.fromkeys([*_permits(study, allowed), *_lacks(study)])]
    if faults:
        many = f"{len(faults)} things stand against it, and nothing was run:\n  " if len(faults) > 1 else ""
        raise StudyError(many + "\n  ".join(faults), faults=tuple(faults))


def _permits(study: Study, allowed: Allowed) -> Iterator[str]:
    if not allowed.commands:
        for where, command in commands_of(study):
            yield f"{where}: runs {commands.shown(command)}; `allow_commands` permits commands of the file"
    host = study.host
    if not allowed.host_changes and (host.stop or host.sysctl or host.swap == "off"):
        yield "host: changes services, swap or kernel parameters; `allow_host_changes` permits that"
    for cell in study.cells:
        yield from _of_system(cell, allowed)
        yield from _of_workload(cell, allowed)


def _of_system(cell: Cell, allowed: Allowed) -> Iterator[str]:
    system, where = cell.system, f"systems.{cell.system_name}"
    if system.device:
        if allowed.device(system.device):
            try:
                refuse_device(system.device)
            except StudyError as error:
                yield f"{where}.device: {error}"
        elif os.path.exists(system.device):
            yield f"{where}.device: {system.device} would lose its content; `allow_destroy` must name it"
        else:
            yield f"{where}.device: {system.device}: there is no such device"
    if system.directory and not os.path.isdir(system.directory):
        yield f"{where}.directory: {system.directory}: is no directory"
    for words, name in ((system.options, "options"), (system.mount.split(","), "mount")):
        for word in words:
            path = word.rpartition("=")[2]
            if path.startswith("/") and _is_device(path):
                if not allowed.device(path):
                    yield f"{where}.{name}: names {path}, which `allow_destroy` must name too"
            elif "/" in word and not allowed.commands:
                yield f"{where}.{name}: names the path {one_line(word)}; `allow_commands` permits that"
    if not allowed.host_changes:
        if system.queue:
            yield f"{where}.queue: changes settings of a device; `allow_host_changes` permits that"
        if system.reset == "drop-caches":
            yield f"{where}.reset: drops caches of the whole host; `allow_host_changes` permits that"
    for name in system.queue:
        if not name.replace("_", "").isalnum():
            yield f"{where}.queue: {one_line(name)} is no name of a setting"


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISBLK(os.stat(path).st_mode)
    except OSError:
        return False


def _of_workload(cell: Cell, allowed: Allowed) -> Iterator[str]:
    load, where = cell.workload, f"workloads.{cell.workload_name}"
    if load.run is None:
        return
    places: list[tuple[str, Any]] = [("target", load.target)]
    places += [(f"options.{name}", load.options.get(name)) for name in ("log", "verify_state")]
    places += [("options.maps", path) for path in dict(load.options.get("maps", {})).values()]
    given = load.options.get("allow_destroy", ())
    places += [("options.allow_destroy", one) for one in ([given] if isinstance(given, str) else given)]
    for name, path in places:
        inside = str(path).startswith(_INSIDE) and ".." not in str(path).split("/")
        if path is not None and path != "null:" and not inside:
            yield f"{where}.{name}: {path}: loads of a study write below {{mount}} or {{out}} only"
    if load.options.get("allow_system") and not allowed.commands:
        yield f"{where}.options.allow_system: runs commands of a script; `allow_commands` permits that"
    options = load.options
    taking = [name for name in ("nice", "ioprio") if _takes_from_others(name, options.get(name))]
    if taking and not allowed.host_changes:
        yield f"{where}.options.{taking[0]}: takes time from others; `allow_host_changes` permits that"
    if load.options.get("cache") in ("drop-host", "remount") and not allowed.host_changes:
        yield f"{where}.options.cache: is a change to the host; `allow_host_changes` permits that"


def _takes_from_others(name: str, value: Any) -> bool:
    """Whether a priority is above the usual one."""
    return str(value).startswith("-" if name == "nice" else "realtime")


def _lacks(study: Study) -> Iterator[str]:
    """Programs, rights and devices."""
    needed, loops, root = [], False, False
    for cell in study.cells:
        system = cell.system
        if system.kind != "directory":
            needed += [f"mkfs.{system.make}", "mount", "umount", "wipefs"]
            root = True
        if system.kind == "image":
            needed.append("losetup")
            loops = True
        root = root or system.reset == "drop-caches"
    host = study.host
    needed += ["systemctl"] if host.stop else []
    needed += ["swapoff", "swapon"] if host.swap == "off" else []
    root = root or bool(host.stop or host.sysctl or host.swap == "off")
    yield from tools.lacking(
        [*needed, *filter(None, (commands.program(one) for _, one in commands_of(study)))]
    )
    if root and os.geteuid() != 0:
        yield "making and mounting file systems, and changes to the host, need root; a directory does not"
    elif loops and not os.path.exists("/dev/loop-control"):
        yield (
            "/dev/loop-control: is not there, so images cannot be mounted; load the module loop, or name a "
            "device or a directory"
        )
    for name in host.sysctl:
        path = Path("/proc/sys") / name.replace(".", "/")
        if ".." in name or not path.is_file():
            yield f"host.sysctl: there is no kernel parameter {one_line(name)}"
    with scratch("study") as folder:
        for cell in study.cells:
            try:
                rehearse(cell, folder)
            except Error as error:
                yield f"workloads.{cell.workload_name}: {error}"
