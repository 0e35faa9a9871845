"""Systems of a study while they exist: made, mounted for a run, kept between runs or taken back."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone.errors import StudyError
from loadstone.study.file.spec import Cell
from loadstone.study.host.making import Maker, refuse_device
from loadstone.study.journal import Made

KEPT = ("none", "drop-caches", "remount")
"""Resets after which runs find what earlier ones left."""


@dataclass
class Instance:
    """A system that exists for one cell."""

    cell: Cell
    maker: Maker
    token: str
    fresh: bool
    """Whether it was just made, so that it has to be prepared."""
    mount_path: Path = Path()
    device: str = ""
    _held: list[int] = field(default_factory=list)
    """Numbers in the journal of what exists while it is mounted, in the order of making."""
    _lasting: list[int] = field(default_factory=list)
    """The same of what lasts until it is torn down."""

    @property
    def image(self) -> str:
        """Name of its image."""
        return f"{self.token}.image"

    def attach(self) -> None:
        """Makes its device and mounts it."""
        system = self.cell.system
        if system.kind == "directory":
            return
        if system.kind == "device":
            self.device = os.path.realpath(system.device)
        else:
            number, self.device = self.maker.loop(self.image, system.direct_io)
            self._held.append(number)
        for name, value in system.queue.items():
            path = f"/sys/block/{os.path.basename(self.device)}/queue/{name}"
            self._held.append(self.maker.setting(path, str(value)))

    def mount(self) -> None:
        """Mounts it."""
        system = self.cell.system
        if system.kind == "directory":
            return
        self._held.append(self.maker.point(self.token))
        self._held.append(self.maker.mount(self.device, str(system.make), system.mount, self.token))
        self.mount_path = self.maker.folder / "systems" / self.token

    def format(self) -> None:
        """Makes the file system."""
        system = self.cell.system
        if system.kind == "device":
            refuse_device(self.device)
        if system.kind != "directory":
            self.maker.call("wipefs", "-a", self.device)
            self.maker.call(f"mkfs.{system.make}", *system.options, self.device)

    def remount(self) -> None:
        """Unmounts it and mounts it again."""
        for _ in range(2):
            self.maker.take_back(self._held.pop())
        self.mount()

    def leave(self) -> None:
        """Unmounts and detaches it. Raises ``Error`` where something stays."""
        while self._held:
            self.maker.take_back(self._held[-1])
            self._held.pop()

    def tear_down(self) -> None:
        """Removes it."""
        self.leave()
        while self._lasting:
            self.maker.take_back(self._lasting[-1])
            self._lasting.pop()


Prepare = Callable[[Instance], None]
"""Prepares a system that was just made and is mounted."""


class Systems:
    """All systems of a study. What is kept between runs is a fact of the journal, with its state."""

    def __init__(self, maker: Maker) -> None:
        """Nothing is made yet."""
        self._maker = maker

    def keeps(self, one: Made) -> bool:
        """Whether something that was made belongs to a system that is whole and waits for its next run."""
        ready = [fact for fact in self._facts().values() if fact["state"] == "ready"]
        return any(one.id in fact["lasting"] for fact in ready)

    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = self._maker.journal.get("systems", {})
        return found

    def _keep(self, cell: Cell, fact: dict[str, Any] | None) -> None:
        facts = self._facts()
        if fact is None:
            facts.pop(cell.name, None)
        else:
            facts[cell.name] = fact
        self._maker.journal["systems"] = facts

    def forget_lost(self) -> list[str]:
        """Forgets systems that a killed run was using; they are made anew. Returns their cells."""
        facts = self._facts()
        lost = [name for name, fact in facts.items() if fact["state"] != "ready"]
        self._maker.journal["systems"] = {name: fact for name, fact in facts.items() if name not in lost}
        return lost

    def take(self, cell: Cell, prepare: Prepare) -> Instance:
        """The system of a cell, mounted for its next run, in the state that its reset asks for."""
        reset = cell.system.reset
        if reset == "image":
            return self._copied(cell, prepare)
        fact = self._facts().get(cell.name) if reset in KEPT else None
        if fact is None:
            instance = self._made(cell)
            self._mark_used(instance)
            prepare(instance)
        else:
            instance = Instance(cell, self._maker, fact["token"], False)
            instance._lasting = list(fact["lasting"])
            instance.mount_path = Path(fact["path"])
            self._mark_used(instance)
            instance.attach()
            instance.mount()
        return instance

    def _mark_used(self, instance: Instance) -> None:
        if instance.cell.system.reset in KEPT:
            self._keep(instance.cell, self._fact(instance, "used"))

    def _fact(self, instance: Instance, state: str) -> dict[str, Any]:
        path = str(instance.mount_path)
        return {"token": instance.token, "state": state, "lasting": instance._lasting, "path": path}

    def _made(self, cell: Cell) -> Instance:
        """A new one, mounted."""
        instance = Instance(cell, self._maker, secrets.token_hex(8), True)
        system = cell.system
        if system.kind == "directory":
            number, instance.mount_path = self._maker.tree(system.directory, instance.token)
            instance._lasting.append(number)
            return instance
        if system.kind == "image":
            instance._lasting.append(self._maker.image(instance.image, system.size))
        try:
            instance.attach()
            instance.format()
            instance.mount()
        except BaseException:
            # What cannot be taken back now is in the journal.
            self._maker.take_all_back(self.keeps)
            raise
        return instance

    def _copied(self, cell: Cell, prepare: Prepare) -> Instance:
        """A copy of the prepared image, which is made before the first."""
        fact = self._facts().get(cell.name)
        if fact is None:
            first = self._made(cell)
            prepare(first)
            first.leave()
            fact = self._fact(first, "ready")
            self._keep(cell, fact)
        instance = Instance(cell, self._maker, secrets.token_hex(8), False)
        instance._lasting.append(self._maker.copy(f"{fact['token']}.image", instance.image))
        instance.attach()
        instance.mount()
        return instance

    def give_back(self, instance: Instance) -> None:
        """A run has ended well or not: what is kept is unmounted, all else removed."""
        if instance.cell.system.reset in KEPT:
            instance.leave()
            self._keep(instance.cell, self._fact(instance, "ready"))
        else:
            instance.tear_down()

    def end(self, cell: Cell) -> None:
        """The last run of a cell is over: what was kept of its system is removed."""
        fact = self._facts().get(cell.name)
        if fact is not None:
            self._keep(cell, None)
            for number in reversed(fact["lasting"]):
                self._maker.take_back(number)


def drop_caches() -> None:
    """Writes back and drops all clean caches of the host."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError as error:
        raise StudyError(f"/proc/sys/vm/drop_caches: {error.strerror}; dropping caches needs root") from None
