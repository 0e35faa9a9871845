"""Histories: bundles over time, their steps, and what Apache Otava reads."""

from __future__ import annotations

import csv
import io
import json
import shutil

import numpy as np
import pytest

import loadstone as library
from loadstone import Error, RunOptions
from loadstone.compare import history_of

DAY = 86400 * 10**9


def put(summary, day, rate):
    """Makes a run one of that day, with that rate."""
    told = json.loads(summary.read_text())
    told.update(ops_per_s=rate, bytes_per_s=4096 * rate, started_unix_ns=1_700_000_000 * 10**9 + day * DAY)
    summary.write_text(json.dumps(told))


@pytest.fixture(scope="module")
def run_once(tmp_path_factory):
    place = tmp_path_factory.mktemp("history") / "b"
    library.run(library.job("randread", "null:", RunOptions(size=1 << 20, requests=50)), place)
    return place


@pytest.fixture
def nightly(run_once, tmp_path):
    """Twenty-four nights; from the fifteenth on the kernel is another one, and the rate a fifth lower."""
    folder = tmp_path / "nightly"
    folder.mkdir()
    rng = np.random.default_rng(7)
    for day in range(24):
        # Names are in another order than times.
        place = folder / f"night-{(day * 7) % 24:02}"
        shutil.copytree(run_once, place)
        put(place / "summary.json", day, float((1000 if day < 14 else 800) * rng.normal(1, 0.02)))
        if day >= 14:
            (host,) = (place / "environment").iterdir()
            host.write_text(host.read_text().replace('"kernel": "Linux ', '"kernel": "Linux new '))
    return folder


def test_a_step_is_found_with_what_changed_there(nightly):
    found = history_of(nightly, ["ops_per_s"])
    (step,) = found.steps["ops_per_s"]
    assert step.index == 14 and step.change == pytest.approx(-0.2, abs=0.03)
    assert "ops_per_s: worse by" in found.text() and "changed there: kernel: Linux" in found.text()
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["metrics"][0]["steps"][0]["verdict"] == "worse" and len(told["points"]) == 24
    assert [one["time"] for one in told["points"]] == sorted(one["time"] for one in told["points"])
    assert "1 step of ops_per_s" in repr(found)


def test_the_table_has_a_row_for_each_result(nightly):
    found = history_of(nightly)
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert len(rows) == 24 and rows[0]["time"] == "2023-11-14T22:13:20+00:00"
    assert list(rows[0])[:3] == ["time", "bundle", "ops_per_s"]
    assert float(rows[20]["ops_per_s"]) == found.points[20].values["ops_per_s"]


def test_the_command(nightly, loadstone, tmp_path):
    table, picture = tmp_path / "n.csv", tmp_path / "n.png"
    done = loadstone("compare", "--history", nightly, "--csv", table, "--plot", picture)
    assert "ops_per_s: worse by" in done.stdout
    assert table.read_text().startswith("time,bundle,ops_per_s,") and picture.stat().st_size > 10_000
    assert "exist" in loadstone("compare", "--history", nightly, "--csv", table, status=1).stderr
    assert "--fail-if" in loadstone("compare", "--history", nightly, "--fail-if", "worse", status=2).stderr
    assert "--csv" in loadstone("compare", nightly, nightly, "--csv", table, status=2).stderr
    assert "png" in loadstone("compare", "--history", nightly, "--plot", tmp_path / "n.txt", status=1).stderr


def test_too_few_and_other_loads_are_refused(nightly, tmp_path):
    other = RunOptions(size=1 << 20, requests=50, bs="8k")
    library.run(library.job("randread", "null:", other), nightly / "other")
    with pytest.raises(Error, match="load: workers"):
        history_of(nightly)
    assert len(history_of(nightly, accept_differences=True).points) == 25
    few = tmp_path / "few"
    few.mkdir()
    library.run(library.job("randread", "null:", other), few / "one")
    with pytest.raises(Error, match="holds 1 results"):
        history_of(few)
    with pytest.raises(Error, match="no folder"):
        history_of(tmp_path / "nowhere")
