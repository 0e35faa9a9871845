"""Descriptions against the same things counted another way."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import loadstone
from loadstone import trace


@pytest.fixture(scope="module")
def loop0():
    from pathlib import Path

    return Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture(scope="module")
def found(loop0):
    return trace.describe(loop0)


@pytest.fixture(scope="module")
def table(loop0):
    read = trace.read(loop0)
    return {name: np.array(read[name].to_pylist(), dtype=float) for name in read.column_names}


def test_counts_and_mix(found, table):
    assert found["requests"] == 106_099
    assert found["span_ns"] == table["time"][-1] - table["time"][0]
    reads, writes = table["op"] == 0, table["op"] == 1
    assert found["read_share"] == pytest.approx(reads.sum() / (reads.sum() + writes.sum()))
    assert found["bytes"] == table["size"][reads | writes].sum()
    by_op = {op["op"]: op["requests"] for op in found["ops"]}
    assert by_op == {"read": 29_823, "write": 72_179, "flush": 4_097}
    assert dict(map(tuple, found["flags"]))["preflush"] == 161


def test_distributions(found, table):
    sizes = table["size"][~np.isnan(table["size"])]
    for dist, values in (
        (found["size"], sizes),
        (found["interarrival_ns"], np.diff(table["time"])),
        (found["latency_ns"], table["latency"]),
    ):
        assert (dist["count"], dist["min"], dist["max"]) == (len(values), values.min(), values.max())
        assert dist["mean"] == pytest.approx(values.mean())
        for percent, value in dist["quantiles"]:
            exact = np.quantile(values, percent / 100, method="inverted_cdf")
            assert value == pytest.approx(exact, rel=1 / 64, abs=1)
        shares = [share for _, share in dist["cdf"]]
        assert shares == sorted(shares) and shares[-1] == 1
    sizes, counts = np.unique(sizes, return_counts=True)
    assert found["common_sizes"][0] == [sizes[counts.argmax()], counts.max()]


def test_jumps_and_footprint(found, table):
    placed = ~np.isnan(table["offset"])
    offset, size = table["offset"][placed], table["size"][placed]
    jumps = offset[1:] - (offset + size)[:-1]
    assert found["jump"]["count"] == len(jumps)
    assert found["jump"]["sequential_share"] == pytest.approx((jumps == 0).mean())
    assert found["jump"]["forward"]["count"] == (jumps > 0).sum()
    assert found["jump"]["backward"]["max"] == -jumps.min()
    blocks = set()
    for first, length in zip(offset, size, strict=True):
        blocks.update(range(int(first) // 4096, int(first + length - 1) // 4096 + 1))
    assert found["footprint"]["exact"]
    assert found["footprint"]["blocks"] == len(blocks)


def test_popularity_and_rate(found, table):
    placed = ~np.isnan(table["offset"])
    _, counts = np.unique(table["offset"][placed] // 2**20, return_counts=True)
    counts = np.sort(counts)[::-1]
    assert found["popularity"]["regions"] == len(counts)
    top = counts[: int(np.ceil(len(counts) * 0.1))].sum() / counts.sum()
    assert found["popularity"]["top_10_percent"] == pytest.approx(top)
    rate = found["rate"]
    bins = ((table["time"] - table["time"][0]) // rate["interval_ns"]).astype(int)
    assert rate["requests"] == np.bincount(bins).tolist()


@pytest.mark.slow
def test_pictures(found, tmp_path):
    for ending, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        out = tmp_path / f"p.{ending}"
        trace.plot(found, out, title="loop0")
        assert out.read_bytes().startswith(magic)
        with pytest.raises(loadstone.Error, match="exists"):
            trace.plot(found, out)
        before = out.read_bytes()
        trace.plot(found, out, title="loop0", force=True)
        assert out.read_bytes() == before, "the same trace gives the same file"
    with pytest.raises(loadstone.Error, match="ending"):
        trace.plot(found, tmp_path / "p.gif")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_picture_of_hardly_anything(tmp_path):
    path = tmp_path / "t.spc"
    path.write_text("0,1,512,R,0.0\n")
    found = trace.describe(path)
    assert (found["requests"], found["span_ns"], found["interarrival_ns"]) == (1, 0, None)
    trace.plot(found, tmp_path / "p.png")


@pytest.mark.slow
def test_more_bytes_than_can_be_counted_are_the_most_that_can(tmp_path, loadstone):
    """As of a column in another unit: the sum of legal sizes was an overflow, which is a panic."""
    path = tmp_path / "t.spc"
    path.write_text("".join(f"0,{8 * i},{1 << 59},{'RW'[i % 2]},{i / 1000:.6f}\n" for i in range(80)))
    found = json.loads(loadstone("trace", "describe", path, "--json").stdout)
    assert found["bytes"] == (1 << 64) - 1 and found["requests"] == 80
    assert "16.0 EiB" in loadstone("trace", "describe", path).stdout
    loadstone("model", "fit", path, "-o", tmp_path / "m.mdh")
    words = ("model", "export", tmp_path / "m.mdh", "--to", "fio", "-o", tmp_path / "m.fio", "--on", "/mnt/x")
    assert "which no load generator can make" in loadstone(*words, status=1).stderr


def test_objects_that_reach_over_more_than_there_is_are_refused(tmp_path, loadstone):
    path, model = tmp_path / "t.spc", tmp_path / "m.mdh"
    path.write_text("".join(f"{i},{(1 << 51) - 1},512,R,{i / 1000:.6f}\n" for i in range(16)))
    loadstone("model", "fit", path, "-o", model)
    words = ("model", "export", model, "--to", "fio", "-o", tmp_path / "m.fio", "--on", "/mnt/x")
    assert "16 EiB together, which no target has" in loadstone(*words, status=1).stderr
    for verb in (("run", model), ("replay", path)):
        assert "no target has" in loadstone(*verb, "--on", "null:", status=1).stderr


def test_settings_of_the_working_directory_draw_no_picture(tmp_path, loop0, loadstone, monkeypatch):
    """matplotlib obeys ./matplotlibrc, and with usetex runs latex, which may read any file."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\ntext.latex.preamble: \\input{/etc/hostname}\n")
    (tmp_path / "latex").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "latex").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    loadstone("trace", "describe", loop0, "--plot", tmp_path / "x.png")
    assert (tmp_path / "x.png").exists() and not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_name_in_a_picture_is_no_formula(tmp_path, loop0, loadstone):
    named = tmp_path / r"a$\frac{$.parquet"
    named.write_bytes(loop0.read_bytes())
    loadstone("trace", "describe", named, "--plot", tmp_path / "x.png")
    loadstone("model", "fit", named, "-o", tmp_path / "$m.$x^.mdh")
    loadstone("model", "plot", tmp_path / "$m.$x^.mdh", "-o", tmp_path / "y.png")
