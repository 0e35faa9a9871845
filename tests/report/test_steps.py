"""The report of a program: its steps in a table, their latency, and heat maps of those that matter."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from loadstone import report
from loadstone.bundle import aside, write_bundle
from loadstone.report import facts, spread, steps
from loadstone.report.figure import cell_text
from loadstone.report.view import group
from loadstone.stats import Histogram

sys.path.insert(0, str(Path(__file__).parent))
import bundles

PLAN = {
    **bundles.plan("trace", 1),
    "artefacts": [],
    "sets": [{"id": "spool", "target": "t", "entries": 1000, "present": 0.8}],
    "events_per_s": 250.0,
    "workers": [
        {
            "group": "mail",
            "source": {"kind": "program", "ops": [{"name": "fetch"}, {"name": "store"}, {"name": "pause"}]},
            "backend": "posix",
            "depth": 16,
        }
    ],
}


def outcome() -> dict:
    """Reads and writes of the usual outcome as two steps, and a third that waits."""
    made = bundles.outcome(10, failed=5)
    ops = made["ops"]
    waits = Histogram.of(np.full(7, 10**8))
    ops["name"] = np.concatenate([ops["op"].astype(np.uint16) + 1, [3]])
    ops["names"] = ["fetch", "store", "pause"]
    more = {"worker": 0, "op": 255, "errno": 0, "interval": 2, "count": 7, "bytes": 0}
    for column, value in more.items():
        ops[column] = np.append(ops[column], np.array([value], dtype=ops[column].dtype))
    for kind in ("service", "response"):
        bucket, count = (
            waits.sparse() if kind == "service" else (waits.sparse()[0][:0], waits.sparse()[1][:0])
        )
        ops[f"{kind}_offsets"] = np.append(ops[f"{kind}_offsets"], ops[f"{kind}_offsets"][-1] + len(bucket))
        ops[f"{kind}_bucket"] = np.append(ops[f"{kind}_bucket"], bucket)
        ops[f"{kind}_count"] = np.append(ops[f"{kind}_count"], count)
    return made


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "mail"
    with aside(folder) as inside:
        write_bundle(inside, PLAN, outcome(), bundles.ENVIRONMENT)
    return group(report.collect([folder]).runs)


def test_the_table_has_every_step_in_order(groups):
    table = steps.table(groups)
    assert [row.cells[0] for row in table.rows] == ["fetch", "store", "pause (waits)"]
    assert {len(row.cells) for row in table.rows} == {len(table.columns)}
    fetch, store, pause = (dict(zip(table.columns, row.cells, strict=True)) for row in table.rows)
    ops = outcome()["ops"]
    assert fetch["count"] == f"{ops['count'][ops['op'] == 0].sum():,}"
    assert store["failed"] == "5 ENOSPC" and table.rows[1].tone == "bad" and fetch["failed"] == "0"
    # Some 5,000 requests tell 99 % and not 99.9 %; seven tell nothing.
    assert fetch["99 %"] != "–" and fetch["99.9 %"] == "–"
    assert pause["median"] == "–" and pause["most"] != "–"
    # What waits is no kind of request.
    assert [row.cells[1] for row in facts.by_op(groups).rows] == ["read", "write"]


def test_rates_of_steps_are_of_the_time_that_the_run_took(tmp_path):
    made = outcome()
    made["summary"]["elapsed_ns"] = 250_000_000
    made["ops"]["interval"][:] = 0
    with aside(tmp_path / "b") as inside:
        write_bundle(inside, PLAN, made, bundles.ENVIRONMENT)
    (run,) = report.collect([tmp_path / "b"]).runs
    table = steps.table(group([run]))
    fetch = dict(zip(table.columns, table.rows[0].cells, strict=True))
    count, size = (made["ops"][key][made["ops"]["op"] == 0].sum() for key in ("count", "bytes"))
    assert fetch["count/s"] == cell_text(count / 0.25) and fetch["MB/s"] == cell_text(size / 0.25 / 1e6)


def test_each_step_has_a_heat_map_on_the_same_axes_and_colours(groups):
    every = spread.heat_map(groups)
    most = every.panels[0].traces[0]["zmax"]
    figure = steps.heat_maps(groups, most)
    assert [panel.title for panel in figure.panels] == ["fetch", "store"]
    ops = outcome()["ops"]
    good = ops["errno"] == 0
    for panel, op in zip(figure.panels, (0, 1), strict=True):
        assert panel.traces[0]["zmax"] == most and not panel.traces[0]["showscale"]
        assert panel.layout["yaxis"]["range"] == figure.panels[0].layout["yaxis"]["range"]
        drawn = sum(row[4] for row in figure.rows if row[0] == panel.title)
        assert drawn == pytest.approx(ops["count"][good & (ops["op"] == op)].sum(), rel=1e-3)
    assert sum(row[4] for row in every.rows) == pytest.approx(sum(row[4] for row in figure.rows), rel=1e-3)


def test_latency_by_step_draws_the_percentiles_that_are_told(groups):
    figure = steps.latencies(groups)
    drawn = {
        t["name"]: dict(zip(t["y"], t["x"], strict=True)) for t in figure.panels[0].traces if "name" in t
    }
    assert set(drawn) == {"median", "90 %", "99 %"}
    service = {kind.name: kind.service for kind in groups[0].runs[0].kinds}
    for title, q in (("median", 50), ("90 %", 90), ("99 %", 99)):
        assert drawn[title] == {
            name: pytest.approx(service[name].percentile(q), rel=1e-4) for name in ("fetch", "store")
        }


def test_what_was_asked_for_is_told_in_words(groups):
    told = dict(facts.load(groups[0].runs[0]))
    assert told["worker 0 mail"] == "16 threads: fetch, store, pause"
    assert told["set spool"] == "1,000 entries, 80 % of them there at the start"
    assert told["events"] == "250 per second" and told["backend"] == "posix"
    assert "pace" not in told and "load" not in told


def test_parts_that_were_asked_for_have_a_table(tmp_path, groups):
    assert steps.parts(groups) == []
    with aside(tmp_path / "b") as inside:
        write_bundle(inside, PLAN, outcome(), bundles.ENVIRONMENT, by="worker")
    (table,) = steps.parts(group(report.collect([tmp_path / "b"]).runs))
    (row,) = table.rows
    assert len(row.cells) == len(table.columns) and table.columns[table.toned] == "failed"
    told = dict(zip(table.columns, row.cells, strict=True))
    assert told["worker"] == "0" and told["failed"] == "5 ENOSPC"


def test_one_op_needs_no_figures_of_its_own(tmp_path):
    made = bundles.outcome(10)
    made["ops"]["op"][:] = 0
    with aside(tmp_path / "b") as inside:
        write_bundle(inside, bundles.plan("trace", 1), made, bundles.ENVIRONMENT)
    found = group(report.collect([tmp_path / "b"]).runs)
    assert (
        steps.table(found) is None and steps.latencies(found) is None and steps.heat_maps(found, 3.0) is None
    )
