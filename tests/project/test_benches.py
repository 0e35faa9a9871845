"""Results of benches: their schema, their verdicts, and the page that is made of them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import jsonschema
import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
RESULTS = sorted((BENCHES / "results").glob("*.json"))
SCRIPTS = sorted(path.stem for path in BENCHES.glob("[a-z]*.py") if path.stem != "page")


@pytest.fixture(scope="module")
def bench():
    """``bench("engine")``: a script as a module; they import each other by name."""
    sys.path.insert(0, str(BENCHES))
    yield importlib.import_module
    sys.path.remove(str(BENCHES))


@pytest.fixture(scope="module")
def schema():
    read = json.loads((BENCHES / "results.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(read)
    return jsonschema.Draft202012Validator(read)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_results_are_as_the_schema_says(path, schema):
    errors = [
        f"{error.json_path}: {error.message}" for error in schema.iter_errors(json.loads(path.read_text()))
    ]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_verdicts_follow_from_figures_and_every_figure_is_declared(path, bench):
    declared = {one.metric: one for one in bench(path.stem).FIGURES.values()}
    for figure in json.loads(path.read_text()):
        assert figure["min"] <= figure["median"] <= figure["max"], figure["metric"]
        assert figure["reached"] is bench("_common").reached(figure), figure["metric"]
        of = declared[figure["metric"]]
        assert figure["unit"] == of.unit
        assert figure["target"] == (of.target and of.target.stored()), figure["metric"]


def test_figures_have_room_on_the_page_and_names_of_their_own(bench):
    metrics = [one.metric for name in SCRIPTS for one in bench(name).FIGURES.values()]
    assert len(metrics) == len(set(metrics)) <= bench("page").MOST


def test_the_page_is_made_of_the_results(bench):
    text = (BENCHES / "README.md").read_text()
    assert text == bench("page").page(text, BENCHES / "results"), "make bench-page"


def test_what_is_stored_fits_the_schema_and_replaces_what_was_measured_again(bench, schema, tmp_path):
    common = bench("_common")
    figures = [
        common.Figure("reads", "requests/s", common.Target(at_least=2, of="ratio"), "fio"),
        common.Figure("error", "%", common.Target(at_most=5, of="every")),
    ]
    where = common.host()

    def store(reads, fio, errors):
        measured = [common.Measured("reads", reads, fio), common.Measured("error", errors)]
        pairs = zip(figures, measured, strict=True)
        common.store(tmp_path / "a.json", [common.entry(one, found, "a", where) for one, found in pairs])
        stored = json.loads((tmp_path / "a.json").read_text())
        schema.validate(stored)
        return stored

    reads, error = store([10.0, 30.0, 20.0], [5.0, 10.0, 12.0], [1.0, 6.0])
    assert (reads["median"], reads["min"], reads["max"], reads["n"]) == (20.0, 10.0, 30.0, 3)
    # The ratios of the rounds are 2, 3 and 1.67.
    assert reads["peer"]["ratio"] == 2.0 and reads["reached"] is True
    assert error["reached"] is False
    reads, error = store([10.0], [5.1], [5.0])
    assert (reads["n"], reads["reached"], error["reached"]) == (1, False, True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_the_page_refuses_more_rows_than_it_has_room_for(bench):
    page = bench("page")
    one = json.loads(RESULTS[0].read_text())[0]
    assert page.table([one] * page.MOST).count("\n| ") == page.MOST + 2
    with pytest.raises(SystemExit, match=f"{page.MOST + 1} figures"):
        page.table([one] * (page.MOST + 1))
