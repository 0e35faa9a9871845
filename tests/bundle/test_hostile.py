"""Bundles that somebody made up: an error that names file and place, in little memory and time."""

import contextlib
import copy
import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from outcome import PLAN, outcome

from loadstone import Error, report
from loadstone.bundle import Bundle, Series, aside, table, write_bundle, write_series


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "b"
    with aside(path) as folder:
        write_bundle(folder, PLAN, outcome()[0], {"host": "h"})
    return path


@pytest.fixture
def series(tmp_path):
    path = tmp_path / "s"
    with aside(path) as folder:
        (folder / "01-a").mkdir()
        write_bundle(folder / "01-a", PLAN, outcome()[0], {"host": "h"})
        write_series(folder, "script", [{"name": "a", "path": "01-a"}], {"partial": False})
    return path


def refused(path, *told):
    """The report of it is an error that tells so much."""
    with pytest.raises(Error) as error:
        report.build(report.collect([path]))
    for text in told:
        assert text in str(error.value)


def changed(file, **values):
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize("name", ["summary.json", "plan.json", "environment/h.json"])
@pytest.mark.parametrize(
    "text, told",
    [
        ("[" * 200_000, "nested too deep"),
        ('{"a":' * 200_000, "nested too deep"),
        ('{"format": "loadstone-run", "version": 1, "elapsed_ns": NaN}', "NaN"),
        ('{"format": "loadstone-run", "version": 1, "elapsed_ns": 1e999}', "1e999"),
        ('{"a": ' + "9" * 10_000 + "}", "is not JSON"),
        ("[1, 2]", "holds no object"),
        ('{"a"', "line 1"),
    ],
    ids=["deep-lists", "deep-objects", "nan", "infinite", "digits", "list", "cut"],
)
def test_texts(bundle, name, text, told):
    (bundle / name).write_text(text)
    refused(bundle, name, told)


@pytest.mark.parametrize("key", ["elapsed_ns", "interval_ns"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "1", None, True, 1 << 70])
def test_lengths_of_time(bundle, key, value):
    changed(bundle / "summary.json", **{key: value})
    refused(bundle, "summary.json", key)


@pytest.mark.parametrize(
    "values",
    [
        {"requests": -1}, {"bytes": "many"}, {"errors": None}, {"started_monotonic_ns": []},
        {"ops": []}, {"steps": 1}, {"warnings": "x"}, {"lateness": []}, {"partial": "no"},
        {"ops_per_s": "fast"}, {"interval_ns": 1, "elapsed_ns": 1 << 61}, {"started": 5},
        {"observation": {"interval_ns": 0, "missed": 0, "ticks_per_s": 100, "device": None}},
        {"observation": {"interval_ns": 1, "missed": 0, "ticks_per_s": 0, "device": None}},
    ],
    ids=str,
)  # fmt: skip
def test_summaries(bundle, values):
    changed(bundle / "summary.json", **values)
    refused(bundle, "summary.json", next(iter(values)))


@pytest.mark.parametrize(
    "name", ["summary.json", "plan.json", "ops.parquet", "events.parquet", "environment"]
)
@pytest.mark.parametrize("what", ["fifo", "link", "folder", "device"])
def test_files_that_are_none(bundle, tmp_path, name, what):
    file = bundle / name
    file.rename(tmp_path / "elsewhere")
    if what == "fifo":
        os.mkfifo(file)
    elif what == "link":
        file.symlink_to(tmp_path / "elsewhere")
    elif what == "device":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    refused(bundle, str(bundle))


@pytest.mark.parametrize(
    "path",
    ["/etc", "..", ".", "", "../b", "01-a/../../b", "01-a/", "x\0y", 5, None, ["01-a"], "link", "gone"],
)
def test_runs_that_lie_elsewhere(series, bundle, path):
    (series / "link").symlink_to(bundle)
    changed(series / "bundle.json", runs=[{"name": "a", "path": path}])
    with pytest.raises(Error, match=str(series)):
        Series.read(series)
    refused(series, str(series))


def columns(bundle):
    return dict(Bundle.read(bundle).ops.columns)


@pytest.mark.parametrize(
    "name, value",
    [
        ("interval", np.uint32(4_294_967_295)), ("count", np.uint64((1 << 64) - 1)),
        ("bytes", np.uint64((1 << 64) - 1)), ("op", "read"), ("count", np.float64("nan")),
        ("errno", np.float64("inf")), ("interval", np.int64(-5)),
    ],
)  # fmt: skip
def test_numbers_in_tables(bundle, name, value):
    made = columns(bundle)
    column = np.array([value] * len(made[name]))
    made[name] = column if column.dtype.kind != "U" else column.tolist()
    table.write(bundle / "ops.parquet", made, {})
    refused(bundle, "ops.parquet", name)


def test_histograms_in_tables(bundle):
    whole = columns(bundle)
    for kind in ("bucket", "count"):
        made = dict(whole)
        lists = made[f"service_{kind}"]
        made[f"service_{kind}"] = table.Lists(
            lists.offsets, np.full(len(lists.values), 65_000, dtype=np.uint16)
        )
        if kind == "count":
            made["service_count"] = table.Lists(np.maximum(lists.offsets - 1, 0), lists.values)
        table.write(bundle / "ops.parquet", made, {})
        refused(bundle, "ops.parquet", "service")


def test_no_damage_of_a_table_is_more_than_an_error(bundle):
    """Each byte of the footer, and some of the rest: the library that wrote it panics on many."""
    code = (
        "import random, sys\nfrom pathlib import Path\nfrom loadstone import Error\n"
        "from loadstone.bundle import table\n"
        "path, chance, wrong = Path(sys.argv[1]), random.Random(7), 0\n"
        "whole = path.read_bytes()\n"
        "footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], 'little')\n"
        "for at in [*range(0, footer, 7), *range(footer, len(whole))]:\n"
        "    bad = bytearray(whole); bad[at] ^= chance.randrange(1, 256); path.write_bytes(bad)\n"
        "    try: table.read(path, ('time',))\n"
        "    except Error as error: wrong += 1; assert 'damaged' in str(error)\n"
        "print(wrong)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, bundle / "series.parquet"], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == "" and int(done.stdout) > 100


def test_a_table_that_unpacks_to_far_more_than_its_size_is_not_read(bundle):
    rows = 30_000_000
    made = {name: np.zeros(rows, dtype=np.int64) for name in ("time", "a", "b")}
    table.write(bundle / "series.parquet", made, {})
    assert (bundle / "series.parquet").stat().st_size < 1 << 20
    code = (
        "import sys; from loadstone import Error\nfrom loadstone.bundle import Bundle\n"
        "try: Bundle.read(sys.argv[1]).series\nexcept Error as error: print(error)"
    )

    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))

    done = subprocess.run(
        [sys.executable, "-c", code, bundle], capture_output=True, text=True, preexec_fn=limited
    )
    assert "series.parquet" in done.stdout and "damaged" in done.stdout, done.stderr[-500:]


def test_texts_that_repeat_are_not_unpacked_without_end(bundle):
    text = "x" * 10_000
    table.write(
        bundle / "events.parquet", {"time": np.zeros(8000, dtype=np.int64), "kind": [text] * 8000}, {}
    )
    assert (bundle / "events.parquet").stat().st_size < 10_000
    with pytest.raises(Error, match="far more than its size lets expect"):
        table.read(bundle / "events.parquet", ())


@pytest.mark.slow
def test_any_one_value_replaced_is_a_report_or_an_error(bundle):
    """What is nowhere looked at may be anything; nothing may be a traceback."""
    for name in ("summary.json", "plan.json"):
        whole = json.loads((bundle / name).read_text())
        for path in places(whole):
            for value in (None, -1, "x", [], {}, 1 << 64, 0.5):
                made = copy.deepcopy(whole)
                at = made
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = value
                (bundle / name).write_text(json.dumps(made))
                try:
                    report.build(report.collect([bundle]))
                except Error:
                    pass
                except Exception as error:
                    # `report.write` says which bundle it is.
                    with pytest.raises(Error, match=str(bundle)):
                        report.write(bundle, bundle.parent / "r.html", force=True)
                    assert not isinstance(error, MemoryError)
        (bundle / name).write_text(json.dumps(whole))


@pytest.mark.slow
def test_any_one_value_of_an_evaluation_replaced_is_a_report_or_an_error(series):
    """The report makes texts and tables of the distances."""
    summary = json.loads((series / "summary.json").read_text())
    distance = {
        "parameter": "latency", "title": "latency", "unit": "ms", "verdict": "differs", "rms": 0.2,
        "max": 0.4, "floor_rms": 0.1, "floor_max": 0.1, "chance": 0.05, "intervals": 8, "reason": None,
        "note": None,
    }  # fmt: skip
    for key in distance:
        for value in (None, -1, "x", [], {}, 1 << 64, 0.5):
            made = {**summary, "kind": "evaluate", "distances": [{**distance, key: value}]}
            (series / "summary.json").write_text(json.dumps(made))
            with contextlib.suppress(Error):
                report.write(series, series.parent / "r.html", force=True)


def places(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield (*path, number)
            yield from places(inner, (*path, number))


@pytest.mark.parametrize(
    "key, factor",
    [
        ("requests", 3), ("bytes", 3), ("ops_per_s", 3), ("bytes_per_s", 0.5), ("errors", 2),
        ("elapsed_ns", 3), ("elapsed_ns", 0.2),
    ],
)  # fmt: skip
def test_totals_that_are_not_those_of_the_table(bundle, key, factor):
    """Headlines took rates from the summary and latencies from the table, whatever they were."""
    told = json.loads((bundle / "summary.json").read_text())
    changed(bundle / "summary.json", **{key: type(told[key])((told[key] or 1) * factor)})
    with pytest.raises(Error, match=f"{key} and it has|_per_s and it has|goes on behind"):
        _ = Bundle.read(bundle).ops
