"""What can be done with a study: run, resume, show and clean it, or say what it would do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone._values import duration
from loadstone.errors import Error, StudyError
from loadstone.stats.repetition import Fixed
from loadstone.study import folder
from loadstone.study.file.expand import expand
from loadstone.study.file.sources import load
from loadstone.study.file.spec import Cell, Study
from loadstone.study.host import booting, commands
from loadstone.study.host.making import Maker
from loadstone.study.host.systems import KEPT
from loadstone.study.journal import Journal
from loadstone.study.order import order_of
from loadstone.study.permissions import Allowed, check
from loadstone.study.runner import Runner, Watch, summary

Place = str | os.PathLike[str]


def run(
    file: Place,
    out: Place | None = None,
    *,
    changes: Mapping[str, str] | None = None,
    budget: float | None = None,
    allow_commands: bool = False,
    allow_destroy: Sequence[str] = (),
    allow_host_changes: bool = False,
    install_resume: bool = False,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Performs a study file in a new folder; returns how it stands, as :func:`show` does.

    ``out``: the folder, by default the name of the study. ``changes``: values of variables, or of keys by
    their dotted names, as text. ``budget``: seconds that the runs may take. The others permit commands of the
    file, the loss of the content of devices, and changes to the host. ``install_resume`` makes a unit of
    systemd that goes on with the study after a reboot, until it is over. ``watch`` is told of each run
    before it begins. Raises ``StudyError`` with all faults of the file, and with everything that is lacking.
    An interrupt ends the study; what had finished is kept, and ``state`` says so.
    """
    source = load(file, changes or {})
    study = expand(source)
    allowed = Allowed(allow_commands, tuple(allow_destroy), allow_host_changes)
    check(study, allowed)
    place = Path(out if out is not None else study.file.name)
    if install_resume:
        booting.check(place.absolute().parent, booting.program())
    folder.make(place, source, allowed, budget)
    if install_resume:
        with folder.held(place), Journal(place) as journal:
            booting.install(Maker(place.absolute(), journal, str(journal.get("study"))), booting.program())
    return _go(place, study, budget, watch)


def resume(place: Place, *, budget: float | None = None, watch: Watch | None = None) -> dict[str, Any]:
    """Goes on with a study where it stopped, with what was permitted when it began.

    ``budget``: seconds that all runs may take, those before included; None: as it was given at the begin.
    """
    path = Path(place)
    study = folder.study_of(path)
    allowed, before = folder.allowed_of(path)
    with folder.held(path), Journal(path) as journal:
        # What a killed run still has mounted would stand against it.
        Runner(path.absolute(), study, journal).recover()
    check(study, allowed)
    return _go(path, study, before if budget is None else budget, watch)


def _go(place: Path, study: Study, budget: float | None, watch: Watch | None) -> dict[str, Any]:
    with folder.held(place), Journal(place) as journal:
        Runner(place.absolute(), study, journal, budget, watch).go()
        return summary(study, journal)


def show(place: Place) -> dict[str, Any]:
    """How a study stands: ``state``, runs, ``seconds_left``, each cell, and what is ``left`` on the host."""
    path = Path(place)
    study = folder.study_of(path)
    with Journal(path) as journal:
        return summary(study, journal)


def clean(place: Place) -> dict[str, Any]:
    """Takes back all that a study left on the host, its images too; results stay.

    Returns ``taken`` (what was taken back), ``processes`` that were ended, and ``faults`` (what could not
    be taken back).
    """
    path = Path(place)
    with folder.held(path), Journal(path) as journal:
        taken = [{"kind": one.kind, **one.what} for one in journal.left()]
        mark = str(journal.get("study"))
        processes = commands.end_left(mark)
        faults = Maker(path.absolute(), journal, mark).take_all_back()
        if not faults:
            journal["systems"] = {}
        return {"taken": taken, "processes": processes, "faults": faults}


def plan(file: Place, changes: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a study would do: ``steps`` of its first block, ``cells``, ``runs`` and the least ``seconds``.

    The time is that of runs which say how long they last.
    """
    study = expand(load(file, changes or {}))
    cells = order_of(study, 1) if study.file.order == "blocks" else list(study.cells)
    rule = study.rule
    least, most = (rule.runs, rule.runs) if isinstance(rule, Fixed) else (rule.least, rule.most)
    seconds = sum(_lasts(cell) + study.file.settle for cell in cells)
    return {
        "name": study.file.name,
        "cells": [cell.name for cell in study.cells],
        "order": study.file.order,
        "seed": study.file.seed,
        "runs": {"least": least * len(cells), "most": most * len(cells)},
        "seconds": {"least": least * seconds, "most": most * seconds},
        "steps": [step for cell in cells for step in _steps(study, cell)],
    }


def _lasts(cell: Cell) -> float:
    given = cell.workload.options.get("duration", 0)
    try:
        return duration(given) if isinstance(given, str) else float(given)
    except (Error, TypeError, ValueError):
        return 0.0


def _steps(study: Study, cell: Cell) -> Iterator[str]:
    """Steps of one run, in words."""
    system, load = cell.system, cell.workload

    def hooks(point: str) -> Iterator[str]:
        for command in getattr(study.hooks, point):
            yield f"{cell.name}: {point.replace('_', ' ')}: {commands.shown(command)}"

    if system.kind == "directory":
        yield f"{cell.name}: make a new folder in {system.directory}"
    else:
        where = system.device or f"a loop device on an image of {system.size:,} bytes"
        yield f"{cell.name}: {' '.join([f'mkfs.{system.make}', *system.options])} on {where}"
        yield f"{cell.name}: mount -t {system.make}{f' -o {system.mount}' if system.mount else ''}"
        for name, value in system.queue.items():
            yield f"{cell.name}: set queue {name} to {value}"
    yield from hooks("before_system")
    for command in load.prepare:
        yield f"{cell.name}: prepare: {commands.shown(command)}"
    yield from hooks("before_cell")
    if system.reset in KEPT:
        yield f"{cell.name}: before later runs: {system.reset}"
    yield from hooks("before_run")
    yield f"{cell.name}: record the environment"
    if load.run is not None:
        options = ", ".join(f"{name}={value}" for name, value in load.options.items())
        yield f"{cell.name}: loadstone run {load.run} on {load.target}{f' ({options})' if options else ''}"
    else:
        times = f"{load.copies} times at once: " if load.copies > 1 else ""
        yield f"{cell.name}: {times}{commands.shown(load.command or '')}"
        for command in load.beside:
            yield f"{cell.name}: beside it: {commands.shown(command)}"
    yield f"{cell.name}: record the environment"
    yield from hooks("after_run")
    yield from hooks("after_system")
    if system.kind != "directory":
        yield f"{cell.name}: unmount"


__all__ = ["StudyError", "clean", "plan", "resume", "run", "show"]
