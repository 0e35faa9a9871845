"""Cutting traces, against the same cut made with numpy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loadstone
from loadstone import trace


def write(path, times, units=None):
    units = [0] * len(times) if units is None else units
    rows = zip(units, range(len(times)), times, strict=True)
    path.write_text("".join(f"{unit},{n},512,R,{t:.6f}\n" for unit, n, t in rows))


def kept(path):
    table = trace.read(path)
    times = np.array(table["time"].to_pylist()) / 1e9
    return (np.array(table["offset"].to_pylist()) // 512).tolist(), times.tolist()


@pytest.fixture
def bursts(tmp_path):
    """Ten seconds with 1, 9, 8, 0, 7, 1, 0, 0, 9, 1 requests."""
    rates = [1, 9, 8, 0, 7, 1, 0, 0, 9, 1]
    times = [second + i / 10 for second, rate in enumerate(rates) for i in range(rate)]
    path = tmp_path / "bursts.spc"
    write(path, times)
    return path, np.array(times)


def test_a_time_range(bursts, tmp_path):
    path, times = bursts
    out = tmp_path / "o.parquet"
    found = trace.select(path, out, start=1.5, end=4.2)
    rows = np.flatnonzero((times >= 1.5) & (times < 4.2))
    assert kept(out)[0] == rows.tolist()
    assert (found["requests"], found["dropped"]) == (len(rows), len(times) - len(rows))
    trace.select(path, out, start=1.5, end=4.2, rebase=True, force=True)
    assert kept(out)[1] == pytest.approx((times[rows] - 1.5).tolist())
    assert "selected" in trace.describe(out)["info"]["history"][0]


def test_plateaus_and_valleys(bursts, tmp_path):
    path, times = bursts
    out = tmp_path / "o.parquet"
    found = trace.select(path, out, plateaus=0.7)
    assert [[a / 1e9, b / 1e9] for a, b in found["spans_ns"]] == [[1, 3], [4, 5], [8, 9]]
    seconds = times.astype(int)
    assert kept(out)[0] == np.flatnonzero(np.isin(seconds, [1, 2, 4, 8])).tolist()
    trace.select(path, out, plateaus=0.7, rebase=True, force=True)
    starts = np.array([0, 0, 1, 0, 2, 0, 0, 0, 3, 0])
    rows = np.isin(seconds, [1, 2, 4, 8])
    assert kept(out)[1] == pytest.approx((times - seconds + starts[seconds])[rows].tolist())
    found = trace.select(path, out, valleys=0.6, force=True)
    assert [[a / 1e9, b / 1e9] for a, b in found["spans_ns"]] == [[0, 1], [3, 4], [5, 8], [9, 10]]


def test_objects_by_name_or_id(tmp_path):
    path, out = tmp_path / "t.spc", tmp_path / "o.parquet"
    write(path, [0, 1, 2, 3], units=[7, 9, 7, 8])
    trace.select(path, out, objects=["9", "8"])
    assert kept(out)[0] == [1, 3]
    # Ids stay as they were, so that a part can be laid beside the whole.
    assert trace.read(out)["object"].to_pylist() == [1, 2]
    with pytest.raises(loadstone.Error, match="no object sda"):
        trace.select(path, out, objects=["sda"], force=True)


def test_a_sample_follows_its_seed(bursts, tmp_path):
    path, _ = bursts
    spans = set()
    for seed in range(20):
        found = trace.select(path, tmp_path / "o.parquet", sample=3, seed=seed, force=True)
        again = trace.select(path, tmp_path / "o.parquet", sample=3, seed=seed, force=True)
        assert found["spans_ns"] == again["spans_ns"]
        assert sum(b - a for a, b in found["spans_ns"]) == 3e9
        spans.add(str(found["spans_ns"]))
    assert len(spans) > 10


def test_nothing_kept_is_an_error_and_leaves_nothing(bursts, tmp_path):
    path, _ = bursts
    with pytest.raises(loadstone.Error, match="no requests in the selection"):
        trace.select(path, tmp_path / "o.parquet", start=100)
    with pytest.raises(loadstone.Error, match="exclude each other"):
        trace.select(path, tmp_path / "o.parquet", plateaus=0.5, sample=1)
    assert [p.name for p in tmp_path.iterdir()] == ["bursts.spc"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    times=st.lists(st.integers(0, 20_000), min_size=1, max_size=200).map(sorted),
    quantile=st.floats(0, 1),
    window=st.integers(1, 5000),
)
def test_plateaus_are_their_definition(tmp_path, times, quantile, window):
    path, out = tmp_path / "t.spc", tmp_path / "o.parquet"
    write(path, [t / 1000 for t in times])
    trace.select(path, out, plateaus=quantile, window=window / 1000, force=True)
    windows = np.array(times) // window
    rates = np.bincount(windows)
    limit = np.quantile(rates, quantile, method="inverted_cdf")
    assert kept(out)[0] == np.flatnonzero(rates[windows] >= limit).tolist()


def test_numbers_that_are_names_are_no_ids(tmp_path, loadstone):
    rows, out = tmp_path / "a.spc", tmp_path / "o.parquet"
    rows.write_text("1,0,4096,r,0.0\n0,8,4096,w,0.1\n0,16,4096,w,0.2\n2,24,4096,r,0.3\n")
    for name, requests in (("1", 1), ("0", 2), ("2", 1)):
        loadstone("trace", "select", rows, "-o", out, "--object", name, "--force")
        described = json.loads(loadstone("trace", "describe", out, "--json").stdout)
        assert described["requests"] == requests


def table(path):
    """Three disks and three processes; the third of each makes no request after 2 s."""
    rows = [(0.0, 0), (0.5, 1), (1.5, 2), (2.0, 0), (2.5, 1), (4.0, 0)]
    path.write_text("".join(f"{int(at * 1e9)},{name},R,0,512,p{name}\n" for at, name in rows))
    text = "time=0:ns,object=1,op=2,offset=3:byte,size=4:byte,actor=5"
    return {"columns": trace.columns_from_text(text, {"read": ["R"], "write": ["W"]})}


def test_what_is_cut_away_leaves_no_name(tmp_path):
    made = tmp_path / "t.csv"
    reading = table(made)
    for name, options, kept in (
        ("a", {"objects": ["1"]}, {1}),
        ("b", {"start": 2.0}, {0, 1}),
        ("c", {}, {0, 1, 2}),
    ):
        trace.select(made, tmp_path / name, **options, **reading)
        info = trace.describe(tmp_path / name)["info"]
        for names, word in ((info["objects"], ""), (info["actors"], "p")):
            told = {one["name"] for one in names if one["name"]}
            assert told == {f"{word}{one}" for one in kept}, name
    # What an earlier selection kept is not told either.
    trace.select(made, tmp_path / "d", objects=["0", "1"], **reading)
    trace.select(tmp_path / "d", tmp_path / "e", objects=["1"])
    history = trace.describe(tmp_path / "e")["info"]["history"]
    assert len(history) == 2 and '"objects":["...","1"]' in history[0] and '"objects":["1"]' in history[1]
    # Nor is what a selection names and its times leave out.
    trace.select(made, tmp_path / "f", objects=["0", "2"], start=2.0, force=True, **reading)
    (line,) = trace.describe(tmp_path / "f")["info"]["history"]
    assert '"objects":["0","..."]' in line and '"from_ns":2000000000' in line


def test_the_wall_clock_follows_the_start(tmp_path):
    made = tmp_path / "t.msr"
    ticks = 116_444_736_000_000_000 + 1_600_000_000 * 10_000_000
    rows = [0, 5_000_000, 15_000_000, 20_000_000, 90_000_000]
    made.write_text("".join(f"{ticks + at},h,0,Read,{at},4096,10\n" for at in rows))
    begun = 1_600_000_000 * 10**9
    for options, start in (
        ({}, begun),
        ({"rebase": True}, begun),
        ({"start": 0.5}, begun),
        ({"start": 0.5, "rebase": True}, begun + 500_000_000),
        ({"plateaus": 0.0, "window": 1.0, "rebase": True}, None),
    ):
        trace.select(made, tmp_path / "s", force=True, **options)
        assert trace.describe(tmp_path / "s")["info"].get("start_unix_ns") == start, options


def numbered(path):
    """Disks that are called 5, 1 and 0, in this order: their ids are 0, 1 and 2."""
    path.write_text("".join(f"{at},{name},R,{4096 * at},4096\n" for at, name in enumerate("510510")))
    text = "time=0:ms,object=1,op=2,offset=3:byte,size=4:byte"
    return ("--columns", text, "--read", "R", "--write", "W")


def test_a_number_is_the_name_where_names_are_numbers(tmp_path, loadstone):
    reading = numbered(tmp_path / "t.csv")
    words = ("trace", "select", tmp_path / "t.csv", *reading, "-o", tmp_path / "s", "--force", "--object")
    assert loadstone(*words, 0).stdout.startswith("2 of 6 requests")
    told = loadstone(*words, 2, status=2).stderr
    assert "has no object 2" in told and "such as 5 1 0" in told


def test_each_map_is_of_one_object(tmp_path, loadstone):
    reading = numbered(tmp_path / "t.csv")
    words = ("replay", tmp_path / "t.csv", *reading, "--dry-run", "--json")
    maps = [word for name in "015" for word in ("--map", f"{name}={tmp_path}/{name}.img")]
    told = json.loads(loadstone(*words, *maps).stdout)
    plan = told.get("plan", told)
    paths = {target["id"]: target["path"] for target in plan["targets"]}
    found = {one["object"]: paths[one["target"]] for one in plan["workers"][0]["map"]["objects"]}
    assert found == {0: f"{tmp_path}/5.img", 1: f"{tmp_path}/1.img", 2: f"{tmp_path}/0.img"}
    twice = (*words, "--map", f"0={tmp_path}/a", "--map", f"2={tmp_path}/b")
    assert "--map 2=...: this object is mapped by another --map" in loadstone(*twice, status=2).stderr
