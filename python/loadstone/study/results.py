"""Results of a study: its cells as arms, how their environments differed, and what is said of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from loadstone.compare import Arm, RunValues, compare
from loadstone.compare.texts import sentence
from loadstone.compare.words import percent, value
from loadstone.errors import Error, StudyError
from loadstone.stats.metric import Metric
from loadstone.stats.repetition import half_width
from loadstone.study.file.spec import Cell, Study
from loadstone.study.folder import study_of
from loadstone.study.host import surroundings
from loadstone.study.journal import Journal, Run
from loadstone.study.order import listed, standings
from loadstone.study.runner import summary

SATURATED = 0.9
"""Share of all CPUs from which on they, and not the storage, were the limit."""
_ONE_CPU = 0.98
"""Share of one CPU from which on a single thread may have been."""
_FATAL = ("kernel", "mount options", "file system options")
"""Settings whose difference makes arms incomparable, where no factor says that they differ."""


def arms(folder: str | os.PathLike[str]) -> list[Arm]:
    """The cells of a study's folder as arms, in the order of the file; each with its good runs."""
    path = Path(folder)
    study = study_of(path)
    with Journal(path) as journal:
        return _arms(path, study, journal.runs())


def _arms(folder: Path, study: Study, runs: Sequence[Run]) -> list[Arm]:
    found = []
    for one in standings(study, runs):
        if not one.good:
            continue
        names = listed(one.cell, one.runs)
        metrics = _ordered(one.good[0].metrics, names)
        values = [
            RunValues(run.values, run.block, run.began, _bundle(folder / run.folder)) for run in one.good
        ]
        factors = {"system": one.cell.system_name, **one.cell.levels}
        found.append(Arm(one.cell.name, metrics, values, one.good[-1].environment.get("before", {}), factors))
    return found


def _ordered(metrics: Mapping[str, Metric], first: Sequence[str]) -> dict[str, Metric]:
    """Metrics with those of the file before the others."""
    return {name: metrics[name] for name in [*first, *metrics] if name in metrics}


def _bundle(folder: Path) -> Path | None:
    return folder / "bundle" if (folder / "bundle").is_dir() else None


def report(folder: str | os.PathLike[str], *, margin: float = 0.05, force: bool = False) -> dict[str, Any]:
    """What came of a study, as plain data: environments, verdicts of each workload, figures of each cell.

    ``margin``: within which arms are the same, as a share.

    Raises ``StudyError`` where runs were made on different kernels, or cells of the same system had
    other mount options; ``force`` reports them all the same.
    """
    path = Path(folder)
    study = study_of(path)
    with Journal(path) as journal:
        runs = journal.runs()
        told = summary(study, journal)
        steps = journal.steps()
    differ = _differences(study, runs)
    fatal = _incomparable(study, runs)
    if fatal and not force:
        raise StudyError(
            f"{path}: the runs cannot be compared: {'; '.join(fatal)}; `force` reports them all the same",
            path=str(path),
        )
    return {
        **told,
        "description": study.file.description,
        "differences": differ,
        "incomparable": fatal,
        "verdicts": {name: found for name, found in _verdicts(path, study, runs, margin)},
        "arms": [_arm(one, runs) for one in study.cells],
        "steps": _times(steps),
    }


def _environments(cells: Sequence[Cell], runs: Sequence[Run]) -> dict[str, list[Mapping[str, Any]]]:
    told = [run for run in runs if "before" in run.environment]
    return {cell.name: [run.environment["before"] for run in told if run.cell == cell.name] for cell in cells}


def _verdicts(
    folder: Path, study: Study, runs: Sequence[Run], margin: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A comparison of the arms of each workload with its first one, by the listed metrics."""
    workload_of = {cell.name: cell for cell in study.cells}
    found = _arms(folder, study, runs)
    for name in dict.fromkeys(cell.workload_name for cell in study.cells):
        mine = [arm for arm in found if workload_of[arm.name].workload_name == name]
        if len(mine) < 2:
            continue
        listed_ = listed(workload_of[mine[0].name], [run for run in runs if run.cell == mine[0].name])
        try:
            # Whether they may be compared was looked at here, where it is known what the file asks for.
            comparison = compare(mine, margin, listed_, accept_differences=True)
        except Error as error:
            yield name, {"sentences": [], "failure": str(error)}
            continue
        said = [f"{one.arm} against {one.base}: {sentence(one, margin)}" for one in comparison.verdicts]
        yield name, {"sentences": said, "failure": None, **comparison.to_json()}


def _alike(study: Study) -> list[list[Cell]]:
    """Cells by the system that they ask for."""
    found: dict[str, list[Cell]] = {}
    for cell in study.cells:
        found.setdefault(repr(cell.system), []).append(cell)
    return list(found.values())


def _differences(study: Study, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Settings that differed between arms: ``values`` with their arms, and whether it was ``asked``.

    What follows from a system was asked for where all arms of the same system had the same.
    """
    within: set[str] = set()
    for cells in _alike(study):
        within |= {*surroundings.differences(_environments(cells, runs))}
    found = surroundings.differences(_environments(study.cells, runs))
    return {
        name: {"values": values, "asked": name.startswith(surroundings.OF_SYSTEMS) and name not in within}
        for name, values in found.items()
    }


def _incomparable(study: Study, runs: Sequence[Run]) -> list[str]:
    """Why runs may not be compared."""
    found = []
    kernels = surroundings.differences(_environments(study.cells, runs)).get("kernel")
    if kernels:
        found.append(f"the kernel was {' and '.join(kernels)}")
    for cells in _alike(study):
        differ = surroundings.differences(_environments(cells, runs))
        for name in _FATAL[1:]:
            if name in differ:
                values = " and ".join(differ[name])
                found.append(f"the {name} of {cells[0].system_name} were {values}, and no factor says so")
    return list(dict.fromkeys(found))


def _arm(cell: Cell, runs: Sequence[Run]) -> dict[str, Any]:
    own = [run for run in runs if run.cell == cell.name]
    good = [run for run in own if run.failure is None]
    names = listed(cell, own)
    metrics = _ordered(good[0].metrics, names) if good else {}
    figures = []
    for name, metric in metrics.items():
        values = [run.values[name] for run in good if name in run.values]
        width = half_width(values)
        mean = fmean(values)
        figures.append(
            {
                **vars(metric),
                "listed": name in names,
                "values": values,
                "mean": mean,
                "half_width": width,
                "low": mean - abs(mean) * width,
                "high": mean + abs(mean) * width,
                # An interval of what cannot be negative says by this that it is no good.
                "below_zero": metric.positive and mean - abs(mean) * width < 0,
            }
        )
    return {
        "arm": cell.name,
        "system": cell.system_name,
        "workload": cell.workload_name,
        "factors": dict(cell.levels),
        "runs": len(good),
        "figures": figures,
        "limit": _limit(good),
    }


def _limit(runs: Sequence[Run]) -> str | None:
    """What besides the storage was the limit, as far as CPUs tell."""
    told = [run.cpu for run in runs if run.cpu]
    if not told:
        return None
    busy, busiest, own = (fmean(one[name] for one in told) for name in ("busy", "busiest", "own"))
    if busy >= SATURATED and own < busy / 2:
        return f"others used the CPUs: {percent(busy)} were busy, {percent(own)} with the load"
    if busy >= SATURATED:
        return f"the client, not the storage, was the limit: its CPUs were {percent(busy)} busy"
    if busiest >= _ONE_CPU:
        return f"one CPU was {percent(busiest)} busy: a single thread may have been the limit"
    return None


def _times(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How often each kind of step was done, how long it took, and how often it failed."""
    found: dict[str, dict[str, Any]] = {}
    for step in steps:
        one = found.setdefault(step["step"], {"step": step["step"], "times": 0, "seconds": 0.0, "failed": 0})
        one["times"] += 1
        one["failed"] += step["failure"] is not None
        one["seconds"] += (step["ended"] or step["began"]) - step["began"]
    return list(found.values())


def text(told: Mapping[str, Any]) -> str:
    """A report as text: first how the environments of arms differed, then the figures."""
    out = [
        f"{told['name']}: {told['state']}, {told['runs']} runs"
        + (f", {told['failed']} failed" if told["failed"] else "")
    ]
    if told["description"]:
        out.append(told["description"])
    out += ["", *_difference_lines(told["differences"])]
    for why in told["incomparable"]:
        out.append(f"warning: {why}")
    for workload in dict.fromkeys(one["workload"] for one in told["arms"]):
        verdicts = told["verdicts"].get(workload, {"sentences": [], "failure": None})
        out += ["", workload, *(f"  {said}" for said in verdicts["sentences"])]
        out += [f"  no verdict: {verdicts['failure']}"] if verdicts["failure"] else []
        out += _table([one for one in told["arms"] if one["workload"] == workload])
    cells = {one["cell"]: one for one in told["cells"]}
    for one in told["arms"]:
        cell = cells[one["arm"]]
        if one["limit"]:
            out.append(f"{one['arm']}: {one['limit']}")
        if cell["given_up"]:
            out.append(f"{one['arm']}: given up after {cell['failed']} failed runs: {cell['failure']}")
        elif cell["failed"]:
            out.append(f"{one['arm']}: {cell['failed']} runs failed, the last: {cell['failure']}")
        if cell["enough"] and not cell["sure"] and not cell["given_up"]:
            out.append(f"{one['arm']}: not sure after {cell['runs']} runs, which is the cap")
    return "\n".join(out)


def _difference_lines(differ: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Differences that nobody asked for in full, the others by name."""
    asked = [name for name, one in differ.items() if one["asked"]]
    out = []
    if len(asked) == len(differ):
        out.append("environments: the same in all arms but for what the file asks for")
    else:
        out.append("environments differ, and the file does not ask for it:")
    for name, one in differ.items():
        if not one["asked"]:
            out.append(f"  {name}")
            out += [f"    {found}: {_some(names)}" for found, names in one["values"].items()]
    if asked:
        kinds = dict.fromkeys(
            name.partition(" ")[0] if name.startswith("geometry ") else name for name in asked
        )
        out.append(f"  asked for: {', '.join(kinds)}")
    return out


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _table(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The listed figures of arms, each with its interval."""
    rows = []
    for one in found:
        for figure in one["figures"]:
            if figure["listed"]:
                metric = Metric(figure["name"], figure["unit"], figure["better"])
                interval = f"{value(metric, figure['low'])} to {value(metric, figure['high'])}"
                flag = (
                    "  (reaches below zero: too few runs, or no usual distribution)"
                    if figure["below_zero"]
                    else ""
                )
                mean = value(metric, figure["mean"])
                rows.append([one["arm"], figure["name"], mean, interval, f"{one['runs']} runs{flag}"])
    if not rows:
        return ["  no good run"]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return [
        "  "
        + "  ".join(
            [
                row[0].ljust(widths[0]),
                row[1].ljust(widths[1]),
                row[2].rjust(widths[2]),
                row[3].rjust(widths[3]),
                row[4],
            ]
        )
        for row in rows
    ]
