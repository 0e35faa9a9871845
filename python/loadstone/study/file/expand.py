"""From the table of a study file to its cells, with all faults that the file has."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadstone._text import meant, one_line
from loadstone.errors import Error, OptionError, StudyError
from loadstone.plan.kinds import refuse_others
from loadstone.plan.options import RunOptions
from loadstone.stats.repetition import Fixed, Repetition
from loadstone.study import outputs
from loadstone.study.file import kinds
from loadstone.study.file.places import LATER, filled, names_in
from loadstone.study.file.sources import Source, load
from loadstone.study.file.spec import Cell, Every, Figure, File, Hooks, Host, Repeat, Study, System, Workload
from loadstone.workload.jobs import known_kind

MOST_CELLS = 10_000
"""Cells of a study."""
_OPTION_WORDS = r"(?:^|,)\s*(bind|rbind|move|remount|loop|x-[^,]*|X-[^,]*|ro)(?:=[^,]*)?(?=,|$)"
"""Mount options that mean another mount than that of the system."""

_WITHOUT_SYSTEM = ("before_study", "after_study", "after_cell")
"""Hooks at whose points no system is mounted."""

Level = tuple[str, Mapping[str, Any]]
"""Name of a level, and the values of its placeholders."""


class _Faults:
    """Faults of a file, each once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: dict[str, None] = {}

    def tell(self, where: str, text: str) -> None:
        place = self.source.place(where)
        self.found[f"{place}: {text}" if place else text] = None

    def refuse(self) -> None:
        if not self.found:
            return
        faults = list(self.found)
        many = f"{len(faults)} faults, and nothing was run:\n  " if len(faults) > 1 else ""
        raise StudyError(many + "\n  ".join(faults), faults=tuple(faults))


def read(path: str | os.PathLike[str], changes: Mapping[str, str] | None = None) -> Study:
    """Reads a study file and checks all of it. Raises ``StudyError`` with all faults."""
    return expand(load(path, changes or {}))


def expand(source: Source) -> Study:
    """Checks a merged file and makes its cells."""
    faults = _Faults(source)
    tell = faults.tell
    file = kinds.read(File, source.table, "", tell)
    repeat = kinds.read(Repeat, source.table.get("repeat", {}), "repeat", tell)
    rule: Repetition = Fixed(1)
    if repeat is not None:
        try:
            rule = repeat.rule()
        except Error as error:
            tell("repeat", f"repeat: {error}")
    variables = _variables(source.table.get("variables", {}), tell)
    levels = _levels(source.table.get("factors", {}), tell)
    for name in {*variables} & {*levels}:
        tell(f"factors.{name}", f"{name}: is a variable and a factor; give one of them another name")
    for name in {*variables, *levels} & {*LATER}:
        tell(name, f"{name}: is the name of a placeholder of every study; choose another")
    hooks_table = _fill(source.table.get("hooks", {}), variables, "hooks", tell)
    hooks = kinds.read(Hooks, hooks_table, "hooks", tell)
    for name in _WITHOUT_SYSTEM:
        told = hooks_table.get(name) if isinstance(hooks_table, dict) else None
        for place in sorted(names_in(told) & {*LATER}):
            tell(f"hooks.{name}", f"{name}: there is no {{{place}}} then, as no system is mounted")
    every = [kinds.read(Every, one, "hooks.every", tell) for one in (hooks.every if hooks else ())]
    for one in every:
        if one is not None and one.seconds <= 0:
            tell("hooks.every", "hooks.every: seconds must be above 0")
    host = kinds.read(Host, source.table.get("host", {}), "host", tell)
    cells: list[Cell] = []
    if file is not None:
        cells = list(_cells(file, source, variables, levels, tell))
        _together(file, cells, tell)
    if file is not None and not cells and not faults.found:
        tell("workloads", "there is no cell: no workload runs on any system")
    faults.refuse()
    assert file is not None and hooks is not None and host is not None
    told = [one for one in every if one is not None]
    return Study(file, source.table, source.base, rule, hooks, told, host, cells)


def _variables(table: Any, tell: kinds.Tell) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items() if isinstance(table, dict) else ():
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            tell(f"variables.{name}", f"{one_line(name)}: names of variables are letters, digits, - and _")
        elif isinstance(value, dict | list):
            tell(f"variables.{name}", f"{name}: must be a text or a number")
        else:
            found[name] = value
    return found


def _levels(table: Any, tell: kinds.Tell) -> dict[str, list[Level]]:
    """Levels of each factor, in the order of the file."""
    found: dict[str, list[Level]] = {}
    for name, given in table.items() if isinstance(table, dict) else ():
        where = f"factors.{name}"
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            tell(where, f"{one_line(name)}: names of factors are letters, digits, - and _")
        elif not given or not isinstance(given, list | dict):
            tell(where, f"{name}: needs levels: a list of them, or a table of levels with their settings")
        elif isinstance(given, list):
            if any(isinstance(one, dict | list) for one in given):
                tell(
                    where,
                    f"{name}: levels of a list are texts or numbers; give levels with settings as tables",
                )
                continue
            texts = [filled("{v}", {"v": one}, ()) for one in given]
            if len(set(map(str, texts))) < len(texts):
                tell(where, f"{name}: has a level twice")
            found[name] = [(_label(one), {name: one}) for one in given]
        else:
            known = {setting for one in given.values() if isinstance(one, dict) for setting in one}
            for level, settings in given.items():
                if not isinstance(settings, dict):
                    tell(f"{where}.{level}", f"{name}.{level}: must be a table of settings")
                elif lacking := sorted(known - settings.keys()):
                    tell(f"{where}.{level}", f"{name}.{level}: lacks {lacking[0]}, which other levels set")
            found[name] = [
                (_label(level), {name: level, **{f"{name}.{one}": value for one, value in settings.items()}})
                for level, settings in given.items()
                if isinstance(settings, dict)
            ]
    return found


def _label(level: Any) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _fill(table: Any, known: Mapping[str, Any], where: str, tell: kinds.Tell) -> Any:
    """A table with placeholders replaced, key by key, so that faults have their lines."""
    if not isinstance(table, dict):
        return table
    found = {}
    for name, value in table.items():
        try:
            found[name] = filled(value, known)
        except Error as error:
            tell(f"{where}.{name}", f"{where}.{name}: {error}")
    return found


def _cells(
    file: File,
    source: Source,
    variables: Mapping[str, Any],
    levels: Mapping[str, list[Level]],
    tell: kinds.Tell,
) -> Iterator[Cell]:
    used: set[str] = set()
    made = 0
    for workload_name, workload_table in file.workloads.items():
        where = f"workloads.{workload_name}"
        if not re.fullmatch(kinds.NAME, workload_name):
            tell(where, f"{one_line(workload_name)}: names are letters, digits, - _ and dots, up to 64")
            continue
        for system_name in _systems_of(workload_table, file, where, tell):
            system_table = file.systems[system_name]
            asked = {name.partition(".")[0] for name in names_in(system_table) | names_in(workload_table)}
            factors = [name for name in levels if name in asked]
            used |= {*factors}
            for combination in itertools.product(*(levels[name] for name in factors)):
                made += 1
                if made > MOST_CELLS:
                    tell("factors", f"there are more than {MOST_CELLS:,} cells; use fewer levels")
                    return
                known = dict(variables)
                for _, values in combination:
                    known |= values
                told = dict(zip(factors, (level for level, _ in combination), strict=True))
                cell = _cell(
                    source, system_name, workload_name, system_table, workload_table, known, told, tell
                )
                if cell is not None:
                    yield cell
    for name in file.systems:
        if not re.fullmatch(kinds.NAME, name):
            tell(f"systems.{name}", f"{one_line(name)}: names are letters, digits, - _ and dots, up to 64")
    for name in levels.keys() - used:
        tell(f"factors.{name}", f"{name}: no system and no workload has {{{name}}}, so it changes nothing")


def _systems_of(table: Any, file: File, where: str, tell: kinds.Tell) -> Sequence[str]:
    given = table.get("on") if isinstance(table, dict) else None
    if given is None or not isinstance(given, list):
        return list(file.systems)
    found = []
    for name in given:
        if name in file.systems:
            found.append(name)
        else:
            hint = meant(str(name), file.systems, f"systems are {', '.join(file.systems)}")
            tell(f"{where}.on", f"on: there is no system {one_line(str(name))}; {hint}")
    return found


def _cell(
    source: Source,
    system_name: str,
    workload_name: str,
    system_table: Any,
    workload_table: Any,
    known: Mapping[str, Any],
    levels: Mapping[str, str],
    tell: kinds.Tell,
) -> Cell | None:
    at, where = f"systems.{system_name}", f"workloads.{workload_name}"
    system = kinds.read(System, _fill(system_table, known, at, tell), at, tell)
    workload = kinds.read(Workload, _fill(workload_table, known, where, tell), where, tell)
    if system is None or workload is None:
        return None
    system = _checked(system, at, tell)
    figures = {}
    for name, table in workload.figures.items():
        figure = kinds.read(Figure, table, f"{where}.figures.{name}", tell)
        if figure is not None:
            try:
                outputs.check(figure)
                figures[name] = figure
            except Error as error:
                tell(f"{where}.figures.{name}", f"{name}: {error}")
    workload = _checked_workload(workload, source.base, where, tell)
    name = _name([system_name, workload_name, *(f"{one}={level}" for one, level in levels.items())])
    return Cell(name, system_name, workload_name, system, workload, levels, figures)


def _name(parts: Sequence[str]) -> str:
    """A name of a cell that can be that of a folder."""
    return "+".join(re.sub(r"[^\w.=-]", "_", part) for part in parts)[:200]


def _checked(system: System, where: str, tell: kinds.Tell) -> System:
    from dataclasses import replace

    if system.directory:
        for name in ("make", "device", "options", "mount", "queue"):
            if getattr(system, name):
                tell(f"{where}.{name}", f"{name}: means nothing to a directory, which is used as it is")
        if system.reset in ("mkfs", "image", "remount"):
            tell(
                f"{where}.reset", f"reset: a directory has no {system.reset}; use folder, none or drop-caches"
            )
    elif system.make is None:
        tell(where, f"{where}: needs make (a type of file system) or directory")
    elif system.reset == "folder":
        tell(f"{where}.reset", "reset: folder is for directories; mkfs makes a file system anew")
    if system.device and system.reset == "image":
        tell(f"{where}.reset", "reset: an image cannot be copied back to a device; use mkfs")
    if match := re.search(_OPTION_WORDS, system.mount):
        tell(f"{where}.mount", f"mount: the option {match[1]} is not possible here")
    return replace(system, reset=system.reset or ("folder" if system.directory else "mkfs"))


def _checked_workload(workload: Workload, base: str, where: str, tell: kinds.Tell) -> Workload:
    from dataclasses import replace

    if (workload.run is None) == (workload.command is None):
        tell(where, f"{where}: needs either run or command")
        return workload
    only = ("copies", "reader", "output", "figures") if workload.run is not None else ("target", "options")
    default = Workload(run="x")
    for name in only:
        if getattr(workload, name) != getattr(default, name):
            other = "command" if workload.run is not None else "run"
            tell(f"{where}.{name}", f"{name}: is for workloads with {other}")
    if workload.run is None:
        return workload
    path = os.path.join(base, workload.run)
    run = path if not os.path.isabs(workload.run) and os.path.exists(path) else workload.run
    try:
        options = RunOptions(**workload.options)
        refuse_others(known_kind(run), run, options.given())
        if "on" in workload.options:
            raise OptionError("on", None, "target says where it runs")
    except OptionError as error:
        place = f"{where}.options.{error.option}" if error.option else f"{where}.options"
        tell(place, f"options: {error}")
    except TypeError:
        import dataclasses

        known = [one.name for one in dataclasses.fields(RunOptions)]
        for name in workload.options.keys() - {*known}:
            hint = meant(name, known, "loadstone run --help lists all")
            tell(f"{where}.options.{name}", f"options: there is no option {one_line(name)}; {hint}")
    except Error as error:
        tell(f"{where}.run", f"run: {error}")
    return replace(workload, run=run)


def _together(file: File, cells: Sequence[Cell], tell: kinds.Tell) -> None:
    """What cells may not be beside each other."""
    names: dict[str, int] = {}
    devices: dict[str, set[str]] = {}
    for cell in cells:
        names[cell.name] = names.get(cell.name, 0) + 1
        if cell.system.device:
            devices.setdefault(os.path.realpath(cell.system.device), set()).add(cell.name)
    for name, times in names.items():
        if times > 1:
            tell("factors", f"{times} cells would be called {name}; give levels other names")
    for cell in cells:
        shared = cell.system.device and len(devices[os.path.realpath(cell.system.device)]) > 1
        if shared and file.order == "blocks" and cell.system.reset != "mkfs":
            tell(
                f"systems.{cell.system_name}.reset",
                f"reset: several cells share {cell.system.device}, so each run needs mkfs in order blocks; "
                "or use order scripted",
            )
