"""Which run is next, and how many are left: pure functions of a study and of its finished runs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadstone.stats.repetition import Assessment, Fixed
from loadstone.study.file.spec import Cell, Study
from loadstone.study.journal import Run


@dataclass(frozen=True)
class Standing:
    """How far a cell is."""

    cell: Cell
    runs: Sequence[Run]
    assessment: Assessment
    given_up: bool
    """It failed too often in a row."""
    over: bool
    """It needs no more runs."""

    @property
    def good(self) -> list[Run]:
        """Runs that did not fail."""
        return [run for run in self.runs if run.failure is None]


def listed(cell: Cell, runs: Sequence[Run]) -> list[str]:
    """Metrics of a cell that must be sure; none before its first good run tells."""
    if cell.workload.metrics:
        return list(cell.workload.metrics)
    if cell.figures:
        return list(cell.figures)
    told = next((run.metrics for run in runs if run.failure is None), {})
    return list(told)[:1]


def standing(study: Study, cell: Cell, runs: Sequence[Run]) -> Standing:
    """How far a cell is, by its own runs in the order of their ends."""
    good = [run for run in runs if run.failure is None]
    names = listed(cell, runs)
    values = {name: [run.values[name] for run in good if name in run.values] for name in names}
    assessment = study.rule.assess(values)
    failed = 0
    for run in reversed(runs):
        if run.failure is None:
            break
        failed += 1
    given_up = failed >= study.file.failures
    most = study.rule.runs if isinstance(study.rule, Fixed) else study.rule.most
    over = given_up or assessment.enough or len(runs) >= most + study.file.failures
    return Standing(cell, runs, assessment, given_up, over)


def standings(study: Study, runs: Sequence[Run]) -> list[Standing]:
    """The same of all cells, in their order."""
    own: dict[str, list[Run]] = {cell.name: [] for cell in study.cells}
    for run in runs:
        own[run.cell].append(run)
    return [standing(study, cell, own[cell.name]) for cell in study.cells]


def order_of(study: Study, block: int) -> list[Cell]:
    """The order of cells in a block: it follows from the seed and the block's number alone."""
    cells = list(study.cells)
    random.Random(f"{study.file.seed} {block}").shuffle(cells)
    return cells


def next_run(study: Study, runs: Sequence[Run]) -> tuple[Cell, int] | None:
    """The next run's cell and block; None where all is done."""
    found = standings(study, runs)
    if study.file.order == "scripted":
        return next(((one.cell, len(one.runs) + 1) for one in found if not one.over), None)
    given_up = {one.cell.name for one in found if one.given_up}
    done = {(run.cell, run.block) for run in runs}
    last = max((run.block for run in runs), default=1)
    for cell in order_of(study, last):
        if cell.name not in given_up and (cell.name, last) not in done:
            return cell, last
    # Blocks stay complete: all cells go on until the last one is sure.
    if all(one.over for one in found):
        return None
    return next((cell, last + 1) for cell in order_of(study, last + 1) if cell.name not in given_up)


def runs_left(study: Study, runs: Sequence[Run]) -> Mapping[str, int]:
    """Runs that each cell is likely to need yet."""
    found = standings(study, runs)
    left = {one.cell.name: max(one.assessment.expected - len(one.good), 0) for one in found}
    left |= {one.cell.name: 0 for one in found if one.over and study.file.order == "scripted"}
    if study.file.order == "blocks":
        most = max((left[one.cell.name] for one in found if not one.over), default=0)
        blocks = max((run.block for run in runs), default=0)
        short = {one.cell.name: blocks - len(one.runs) for one in found}
        left = {name: most if most else max(short[name], 0) for name in left}
    return left | {one.cell.name: 0 for one in found if one.given_up}


def seconds_left(study: Study, runs: Sequence[Run]) -> float:
    """Time that the rest is likely to take, in seconds; NaN before the first run."""
    took: dict[str, list[float]] = {}
    for run in runs:
        took.setdefault(run.cell, []).append(run.ended - run.began)
    if not took:
        return math.nan
    means = {name: sum(times) / len(times) for name, times in took.items()}
    usual = sum(means.values()) / len(means)
    return sum(left * means.get(name, usual) for name, left in runs_left(study, runs).items())
