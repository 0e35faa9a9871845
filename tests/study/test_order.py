"""Which run is next: complete blocks in random order, cells one by one, until all are sure or given up."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from loadstone.stats.metric import Metric
from loadstone.study.file import expand
from loadstone.study.journal import Run
from loadstone.study.order import next_run, order_of, runs_left, seconds_left, standings

RATE = Metric("rate", "ops/s", "higher")


@pytest.fixture
def make(write, tmp_path):
    def made(repeat: str, order: str = "blocks", seed: int = 3):
        return expand.read(
            write(
                f"""\
                name = "o"
                seed = {seed}
                order = "{order}"
                [repeat]
                {repeat}
                [factors]
                level = [1, 2, 3]
                [systems.s]
                directory = "{tmp_path}"
                [workloads.w]
                command = ["true", "{{level}}"]
                figures = {{ rate = {{ regex = "(x)", better = "higher" }} }}
                """
            )
        )

    return made


def performed(study, value, most=200) -> list[Run]:
    """All runs of a study whose loads tell ``value(cell, block)``; None: the run fails."""
    runs: list[Run] = []
    while (following := next_run(study, runs)) is not None:
        cell, block = following
        assert len(runs) < most
        found = value(cell.name, block)
        failure = "broken" if found is None else None
        values = {} if found is None else {"rate": found}
        runs.append(Run(cell.name, block, len(runs), len(runs) + 1, failure, values, {"rate": RATE}))
    return runs


def test_blocks_are_complete_and_in_random_order(make):
    study = make("runs = 20")
    runs = performed(study, lambda cell, block: 1.0)
    assert len(runs) == 60
    orders = [tuple(run.cell for run in runs[i : i + 3]) for i in range(0, 60, 3)]
    assert all(len(set(order)) == 3 for order in orders)
    assert [run.block for run in runs] == [block for block in range(1, 21) for _ in range(3)]
    first = Counter(order[0] for order in orders)
    assert len(first) == 3 and max(first.values()) < 15
    again = performed(make("runs = 20"), lambda cell, block: 1.0)
    assert [run.cell for run in again] == [run.cell for run in runs]
    other = performed(make("runs = 20", seed=4), lambda cell, block: 1.0)
    assert [run.cell for run in other] != [run.cell for run in runs]


def test_all_cells_go_on_until_the_last_is_sure(make):
    study = make("least = 3\nmost = 30\nhalf_width = 0.05")
    noisy = lambda cell, block: 100.0 + (20 * (-1) ** block if cell.endswith("=2") else 0)  # noqa: E731
    runs = performed(study, noisy)
    assert len({run.block for run in runs}) == len(runs) / 3
    # 20 % of deviation needs 30 runs for 7.6 %: the cap ends it.
    assert len(runs) == 90
    found = {one.cell.name: one.assessment.sure for one in standings(study, runs)}
    assert found == {"s+w+level=1": True, "s+w+level=2": False, "s+w+level=3": True}
    calm = performed(study, lambda cell, block: 100.0 + 0.1 * (-1) ** block)
    assert len(calm) == 9


def test_scripted_cells_come_one_after_the_other_and_end_for_themselves(make):
    study = make("least = 3\nmost = 6\nhalf_width = 0.05", order="scripted")
    runs = performed(study, lambda cell, block: 100.0 + (50 * (-1) ** block if cell.endswith("=2") else 0))
    names = [run.cell[-1] for run in runs]
    assert names == ["1"] * 3 + ["2"] * 6 + ["3"] * 3


def test_a_cell_that_fails_twice_in_a_row_is_given_up_and_the_rest_goes_on(make):
    study = make("runs = 4")
    runs = performed(study, lambda cell, block: None if cell.endswith("=1") else 1.0)
    count = Counter(run.cell[-1] for run in runs)
    assert count == {"1": 2, "2": 4, "3": 4}
    assert next(one for one in standings(study, runs) if one.given_up).cell.name == "s+w+level=1"


def test_a_run_that_failed_once_is_made_up_for(make):
    study = make("runs = 4")
    runs = performed(study, lambda cell, block: None if cell.endswith("=1") and block == 2 else 1.0)
    assert Counter(run.cell[-1] for run in runs) == {"1": 5, "2": 5, "3": 5}
    # One that fails every other time does not go on for ever.
    runs = performed(study, lambda cell, block: None if cell.endswith("=1") and block % 2 else 1.0)
    assert len(runs) <= 3 * 6


def test_resuming_goes_on_in_the_same_order(make):
    study = make("runs = 5")
    runs = performed(study, lambda cell, block: 1.0)
    for done in range(len(runs)):
        cell, block = next_run(study, runs[:done])
        assert (cell.name, block) == (runs[done].cell, runs[done].block)
    assert [cell.name for cell in order_of(study, 2)] == [run.cell for run in runs[3:6]]


def test_what_is_left_is_foretold(make):
    study = make("runs = 5")
    runs = performed(study, lambda cell, block: 1.0)
    assert math.isnan(seconds_left(study, []))
    assert sum(runs_left(study, []).values()) == 15
    assert seconds_left(study, runs[:3]) == 12
    assert seconds_left(study, runs) == 0
