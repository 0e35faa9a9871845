"""The runner of studies: does the next run that is not done, until all are, or somebody wants to stop."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from loadstone._core import remove_tree
from loadstone._files import make_folders
from loadstone._signals import deferred
from loadstone.errors import Error, StudyError
from loadstone.study.file.kinds import Command
from loadstone.study.file.places import filled
from loadstone.study.file.spec import Cell, Study
from loadstone.study.host import commands, surroundings
from loadstone.study.host.making import Maker
from loadstone.study.host.systems import Instance, Systems, drop_caches
from loadstone.study.journal import Journal, Made, Run
from loadstone.study.loads import again_and_again, measure
from loadstone.study.order import next_run, seconds_left, standings

State = Literal["finished", "interrupted", "budget", "failed"]
"""How a study stands: ``budget``: its time was used up; ``failed``: it could not go on."""

_HOST = ("service", "swap", "sysctl")
"""Changes to the host, which last for the whole study."""


@dataclass(frozen=True)
class Progress:
    """What whoever watches is told."""

    text: str
    done: int
    """Runs that are over."""
    left: float
    """Seconds that are likely left; NaN before the first run."""


Watch = Callable[[Progress], object]


class Runner:
    """Performs a study in its folder, which must be locked."""

    def __init__(
        self,
        folder: Path,
        study: Study,
        journal: Journal,
        budget: float | None = None,
        watch: Watch | None = None,
    ) -> None:
        """``budget``: seconds that the runs may take in all."""
        self._folder, self._study, self._journal = folder, study, journal
        self._budget, self._watch = budget, watch or (lambda progress: None)
        self._mark = str(journal.get("study"))
        self._maker = Maker(folder, journal, self._mark)
        self._systems = Systems(self._maker)

    def go(self) -> State:
        """Runs what is not done. Nothing stays mounted, attached, stopped or changed after it."""
        state: State = "failed"
        try:
            self.recover()
            self._journal["state"] = "running"
            self._change_host()
            self._hooks("before_study", {}, self._folder, strict=True)
            state = self._loop()
            self._hooks("after_study", {}, self._folder)
        except KeyboardInterrupt:
            state = "interrupted"
        finally:
            with deferred():
                try:
                    self.recover()
                    if state == "finished":
                        self._end_all()
                    if state != "interrupted":
                        self._forget_unit()
                finally:
                    self._journal["state"] = state
                    self._notify(state)
        return state

    def _loop(self) -> State:
        while (following := next_run(self._study, runs := self._journal.runs())) is not None:
            cell, block = following
            if self._is_spent(runs, block):
                return "budget"
            self._watch(Progress(f"{cell.name} {block}", len(runs), seconds_left(self._study, runs)))
            if self._study.file.order == "scripted":
                self._end_others(cell)
            self._visit(cell, block, first=all(run.cell != cell.name for run in runs))
        for cell in self._study.cells:
            self._end(cell)
        return "finished"

    def _is_spent(self, runs: Sequence[Run], block: int) -> bool:
        """Whether the next run, or in order of blocks the next block, would exceed the budget."""
        if self._budget is None or not runs:
            return False
        spent = sum(run.ended - run.began for run in runs)
        last = max(run.block for run in runs)
        if self._study.file.order == "scripted":
            return spent + runs[-1].ended - runs[-1].began > self._budget
        if block == last:
            return False
        return spent + sum(run.ended - run.began for run in runs if run.block == last) > self._budget

    def _visit(self, cell: Cell, block: int, first: bool) -> None:
        """One run, with all that comes before and after it."""
        out = self._out(cell, block)
        began, instance = time.time(), None
        environment: dict[str, Any] = {}
        busy: Mapping[str, float] = {}
        try:
            with self._journal.step("make system", cell.name, block):
                instance = self._systems.take(cell, lambda made: self._prepare(made, cell, block, out))
            places = self._places(instance, cell, block, out)
            if first:
                self._hooks("before_cell", places, instance.mount_path, cell, block, strict=True)
            with self._journal.step("reset", cell.name, block):
                self._reset(instance)
            if self._study.file.settle:
                with self._journal.step("settle", cell.name, block):
                    time.sleep(self._study.file.settle)
            self._hooks("before_run", places, instance.mount_path, cell, block, strict=True)
            kind = cell.system.make
            with self._journal.step("environment before", cell.name, block):
                environment["before"] = surroundings.take(instance.mount_path, instance.device, kind)
            with (
                self._journal.step("run", cell.name, block),
                self._every(cell, block, places, instance.mount_path),
            ):
                cpu = surroundings.Cpu()
                figures = measure(cell, places, instance.mount_path, out, self._mark, None)
                busy = cpu.told()
            with self._journal.step("environment after", cell.name, block):
                environment["after"] = surroundings.take(instance.mount_path, instance.device, kind)
        except (Error, OSError) as error:
            self._keep(cell, block, began, out, str(error) or type(error).__name__, {}, environment, busy)
            with self._journal.step("take back", cell.name, block):
                self._recover(host=False)
            return
        self._keep(cell, block, began, out, None, figures, environment, busy)
        self._hooks("after_run", places, instance.mount_path, cell, block)
        self._hooks("after_system", places, instance.mount_path, cell, block)
        try:
            with self._journal.step("give back", cell.name, block):
                commands.end_left(self._mark)
                self._systems.give_back(instance)
        except (Error, OSError):
            # The step has what went wrong; what stays after this ends the study.
            self._recover(host=False)

    def _keep(
        self,
        cell: Cell,
        block: int,
        began: float,
        out: Path,
        failure: str | None,
        figures: Mapping[str, Any],
        environment: Mapping[str, Any],
        cpu: Mapping[str, float],
    ) -> None:
        values = {name: value for name, (_, value) in figures.items()}
        metrics = {name: metric for name, (metric, _) in figures.items()}
        folder = str(out.relative_to(self._folder))
        self._journal.add(
            Run(cell.name, block, began, time.time(), failure, values, metrics, environment, folder, cpu)
        )

    def _out(self, cell: Cell, block: int) -> Path:
        """The folder of a run's results; what a killed run left there is no result."""
        out = self._folder / "runs" / cell.name / f"{block:03}"
        if out.exists():
            remove_tree(out)
        make_folders(out)
        return out

    def _places(self, instance: Instance, cell: Cell, block: int, out: Path) -> dict[str, Any]:
        """What placeholders of a run stand for."""
        return {
            "mount": str(instance.mount_path),
            "disk": instance.device,
            "out": str(out),
            "cell": cell.name,
            "block": block,
            "seed": self._study.file.seed + block,
        }

    def _prepare(self, instance: Instance, cell: Cell, block: int, out: Path) -> None:
        places = self._places(instance, cell, block, out)
        self._hooks("before_system", places, instance.mount_path, cell, block, strict=True)
        for command in cell.workload.prepare:
            with self._journal.step(f"prepare: {commands.shown(command)}", cell.name, block):
                limit = cell.workload.time_limit
                commands.perform(filled(command, places, ()), self._mark, instance.mount_path, limit, out)

    def _reset(self, instance: Instance) -> None:
        match instance.cell.system.reset:
            case "drop-caches":
                drop_caches()
            case "remount":
                instance.remount()
            case _:
                # The others are how the system was made for this run.
                pass

    @contextlib.contextmanager
    def _every(self, cell: Cell, block: int, places: Mapping[str, Any], cwd: Path) -> Iterator[None]:
        failed: list[str] = []
        with again_and_again(self._study.every, places, self._mark, cwd, failed.append):
            yield
        for text in dict.fromkeys(failed):
            with contextlib.suppress(Error), self._journal.step("hook every", cell.name, block):
                raise Error(text)

    def _hooks(
        self,
        point: str,
        places: Mapping[str, Any],
        cwd: Path,
        cell: Cell | None = None,
        block: int | None = None,
        strict: bool = False,
    ) -> None:
        """Runs hooks. ``strict``: one that fails raises ``Error``; others are only kept in the journal."""
        for command in getattr(self._study.hooks, point):
            try:
                with self._journal.step(f"hook {point}", cell.name if cell else None, block):
                    commands.perform(filled(command, places, ()), self._mark, cwd, 3600.0)
            except Error:
                if strict:
                    raise

    def _end_others(self, cell: Cell) -> None:
        """In scripted order a cell is over when another one begins."""
        begun = {run.cell for run in self._journal.runs()}
        for other in self._study.cells:
            if other.name != cell.name and other.name in begun:
                self._end(other)

    def _end(self, cell: Cell) -> None:
        """A cell is over."""
        over = self._journal.get("over", [])
        if cell.name in over:
            return
        with self._journal.step("remove system", cell.name):
            self._systems.end(cell)
        self._hooks("after_cell", {}, self._folder, cell)
        self._journal["over"] = [*over, cell.name]

    def _end_all(self) -> None:
        for cell in self._study.cells:
            self._systems.end(cell)

    def _forget_unit(self) -> None:
        """Nothing is left to go on with after a reboot."""
        for one in self._journal.left():
            if one.kind == "unit":
                self._maker.take_back(one.id)

    def _change_host(self) -> None:
        host = self._study.host
        with self._journal.step("change host"):
            for name in host.stop:
                self._maker.stop_service(name)
            if host.swap == "off":
                self._maker.swap_off()
            for name, value in host.sysctl.items():
                self._maker.setting(f"/proc/sys/{name.replace('.', '/')}", str(value), "sysctl")

    def recover(self) -> None:
        """Ends what runs, and takes back all but systems that wait for their next run, and the unit.

        Raises ``StudyError`` where something stays: to go on would measure another system.
        """
        self._recover(host=True)

    def _recover(self, host: bool) -> None:
        """The same; ``host``: also changes to the host."""
        with deferred():
            commands.end_left(self._mark)
            self._systems.forget_lost()

            def keep(one: Made) -> bool:
                lasts = one.kind == "unit" or (not host and one.kind in _HOST)
                return lasts or self._systems.keeps(one)

            if faults := self._maker.take_all_back(keep):
                raise StudyError("; ".join(faults))

    def _notify(self, state: State) -> None:
        command: Command | None = self._study.file.notify
        if command is not None:
            with contextlib.suppress(Error), self._journal.step("notify"):
                more = {"LOADSTONE_STATE": state, "LOADSTONE_FOLDER": str(self._folder)}
                commands.perform(filled(command, {}, ()), self._mark, self._folder, 60.0, None, more)


def summary(study: Study, journal: Journal) -> dict[str, Any]:
    """How a study stands: ``state``, runs done and failed, seconds left, and each cell."""
    runs = journal.runs()
    left = seconds_left(study, runs)
    cells = [
        {
            "cell": one.cell.name,
            "runs": len(one.good),
            "failed": len(one.runs) - len(one.good),
            "given_up": one.given_up,
            "enough": one.over,
            "sure": one.assessment.sure and bool(one.good),
            "half_widths": dict(one.assessment.half_widths),
            "expected": one.assessment.expected,
            "failure": next((run.failure for run in reversed(one.runs) if run.failure), None),
        }
        for one in standings(study, runs)
    ]
    return {
        "name": study.file.name,
        "state": journal.get("state"),
        "repeat": vars(study.rule),
        "runs": sum(one["runs"] for one in cells),
        "failed": sum(one["failed"] for one in cells),
        "seconds_left": None if math.isnan(left) else left,
        "seconds": sum(run.ended - run.began for run in runs),
        "cells": cells,
        "left": [{"kind": one.kind, **one.what} for one in journal.left()],
    }
