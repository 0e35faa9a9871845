"""Models through the public functions and the command."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arro3.io
import numpy as np
import pytest

import loadstone
from loadstone import model as models
from loadstone.trace import read


@pytest.fixture
def spc(tmp_path: Path) -> Path:
    """A small trace: calm with large sequential reads, then busy with small random writes."""
    draw, path = random.Random(1), tmp_path / "small.spc"
    now, end, lines = 0.0, 0, []
    while now < 60:
        if now < 30:
            size, op, block = 65536, "R", end
            now += draw.expovariate(50)
        else:
            size, op, block = 4096, "W", draw.randrange(1 << 20) * 8
            now += draw.expovariate(200)
        end = block + size // 512
        lines.append(f"0,{block},{size},{op},{now:.6f}\n")
    path.write_text("".join(lines))
    return path


def test_fit_save_load_and_look(spc: Path, tmp_path: Path) -> None:
    fitted = models.fit(spc)
    lines = len(spc.read_text().splitlines())
    assert fitted.requests == lines
    out = tmp_path / "a.mdh"
    fitted.save(out)
    again = models.Model.load(out)
    assert again.header == fitted.header
    phases = again.phases()
    assert phases[0]["windows"][0] == 0 and sum(p["requests"] for p in phases) == lines
    assert phases[0]["matrix"] != phases[-1]["matrix"], "the two halves differ"
    sizes = again.marginal("size")
    assert dict(zip(sizes.first.tolist(), sizes.counts.tolist(), strict=True)).keys() == {4096, 65536}
    assert again.marginal("op", matrix=phases[-1]["matrix"]).first.tolist() == [1]
    with pytest.raises(loadstone.Error, match="force"):
        fitted.save(out)
    with pytest.raises(loadstone.Error, match='no dimension "sizes"'):
        fitted.marginal("sizes")


def test_any_parquet_reader_opens_the_file(spc: Path, tmp_path: Path) -> None:
    fitted = models.fit(spc)
    fitted.save(tmp_path / "a.mdh")
    table = arro3.io.read_parquet(str(tmp_path / "a.mdh")).read_all()
    names = [field.name for field in table.schema]
    assert names == ["matrix", "table", *fitted.dimensions, "count"]
    counts = np.array(table["count"].combine_chunks().to_numpy())
    assert counts.sum() == fitted.requests
    cells = fitted.cells()
    assert cells.num_rows == table.num_rows


def test_sampling_keeps_what_the_model_says(spc: Path) -> None:
    fitted = models.fit(spc)
    table = fitted.sample(seed=3)
    assert table.num_rows == fitted.requests
    column = {name: table[name].combine_chunks().to_numpy() for name in table.column_names}
    assert (np.diff(column["time"]) >= 0).all()
    sizes = fitted.marginal("size")
    for size, count in zip(sizes.first, sizes.counts, strict=True):
        assert (column["size"] == size).sum() == count
    extent = fitted.header["objects"][0]["extent"]
    assert (column["offset"] >= 0).all() and (column["offset"] + column["size"] <= extent).all()
    # Sequential in the first half, hardly ever in the second.
    jump = column["offset"][1:] - (column["offset"] + column["size"])[:-1]
    early = column["time"][1:] < 28e9
    assert (jump[early] == 0).mean() > 0.95 and (jump[~early] == 0).mean() < 0.2
    assert fitted.sample(10, seed=3).num_rows == 10


def test_given_dimensions_are_kept_in_the_stream(tmp_path: Path) -> None:
    # Reads and writes alternate strictly; without the given dimension half would not.
    path = tmp_path / "alternate.spc"
    path.write_text("".join(f"0,{i * 8},4096,{'RW'[i % 2]},{i / 1000:.6f}\n" for i in range(4000)))
    fitted = models.fit(path, dimensions=["given:previous(op)"])
    ops = fitted.sample(seed=1)["op"].combine_chunks().to_numpy()
    assert (ops[1:] != ops[:-1]).mean() > 0.99


def test_a_newer_version_and_damage_are_said_so(spc: Path, tmp_path: Path) -> None:
    fitted = models.fit(spc)
    good, bad = tmp_path / "good.mdh", tmp_path / "bad.mdh"
    fitted.save(good)
    content = good.read_bytes()
    newer = content.replace(b'{"version":1,', b'{"version":9,')
    assert newer != content
    bad.write_bytes(newer)
    with pytest.raises(loadstone.Error, match=r"format version 9.*newer loadstone"):
        models.Model.load(bad)
    draw = random.Random(5)
    for _ in range(300):
        broken = bytearray(content)
        if draw.random() < 0.3:
            del broken[draw.randrange(len(broken)) :]
        else:
            for _ in range(draw.randrange(1, 6)):
                broken[draw.randrange(len(broken))] = draw.randrange(256)
        bad.write_bytes(broken)
        try:
            loaded = models.Model.load(bad)
        except loadstone.Error as error:
            assert str(bad) in str(error)
        else:
            loaded.sample(100)
    for content in (b"", b"PAR1", spc.read_bytes()):
        bad.write_bytes(content)
        with pytest.raises(loadstone.Error, match=r"bad\.mdh"):
            models.Model.load(bad)


@pytest.mark.slow
def test_the_command(loadstone: Callable[..., Any], spc: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.mdh"
    done = json.loads(loadstone("model", "fit", spc, "-o", out, "--json").stdout)
    assert done["requests"] == len(spc.read_text().splitlines())
    assert "--force" in loadstone("model", "fit", spc, "-o", out, status=1).stderr
    shown = json.loads(loadstone("model", "show", out, "--json").stdout)
    assert shown["requests"] == done["requests"]
    assert sum(row["count"] for row in shown["marginals"]["size"]) == done["requests"]
    picture = tmp_path / "a.png"
    text = loadstone("model", "show", out, "--plot", picture).stdout
    assert "Phases" in text and "64 KiB" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    sampled = tmp_path / "s.parquet"
    tally = json.loads(loadstone("model", "sample", out, "-o", sampled, "--json").stdout)
    assert tally["requests"] == done["requests"]
    for ending in ("csv", "spc", "mdh"):
        said = loadstone("model", "sample", out, "-o", tmp_path / f"s.{ending}", status=1).stderr
        assert f"s.{ending}: a sample is written as Parquet" in said
    again = tmp_path / "b.mdh"
    refit = json.loads(loadstone("model", "fit", sampled, "-o", again, "--json").stdout)
    assert refit["requests"] == done["requests"]


def test_only_the_dimensions_that_were_named(
    loadstone: Callable[..., Any], spc: Path, tmp_path: Path
) -> None:
    out, names = tmp_path / "a.mdh", ["op", "object", "size", "jump", "region", "gap"]
    loadstone("model", "fit", spc, "-o", out, "--only", *(w for n in names for w in ("--dimension", n)))
    fitted = models.Model.load(out)
    assert list(fitted.dimensions) == names
    assert fitted.sample(100).num_rows == 100


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--only", "--dimension", "op"], "no dimension sets the size"),
        (["--only", "--target-error", "0.1"], "--target-error chooses what --only would"),
        (["--dimension", "sizes"], "features are op"),
        (["--dimension", "given:size"], r"previous\(size\)"),
        (["--dimension", "size=log2:3"], "power of two"),
        (["--dimension", "observed:size"], "no dimension sets the size"),
        (
            ["--dimension", "size=linear:1", "--dimension", "gap=linear:1", "--dimension", "jump=linear:1"],
            "more than 64 bits",
        ),
    ],
)
def test_bad_options_say_what_to_do(
    loadstone: Callable[..., Any], spc: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    import re

    out = tmp_path / "a.mdh"
    done = loadstone("model", "fit", spc, "-o", out, *options, status=None)
    if done.returncode == 0:
        pytest.fail(done.stdout)
    assert re.search(says, done.stderr), done.stderr
    assert list(tmp_path.glob("*.mdh*")) == [] and list(tmp_path.glob(".*")) == []


Columns = dict[str, np.ndarray]


def _numbers(column: Any) -> np.ndarray:
    return np.array(column.to_pylist(), dtype=np.int64)


def _placed(table: Any) -> Columns:
    """Requests that have a place; flushes have none."""
    offset = table["offset"].to_pylist()
    rows = np.array([at is not None for at in offset])
    return {
        name: np.array([n if n is not None else 0 for n in table[name].to_pylist()], dtype=np.int64)[rows]
        for name in ("op", "object", "offset", "size")
    }


def _sequential(column: Columns) -> float:
    """Share of the requests that go on from the one before of their op."""
    found = 0
    for op in np.unique(column["op"]):
        mine = column["op"] == op
        found += (column["offset"][mine][1:] == (column["offset"] + column["size"])[mine][:-1]).sum()
    return float(found / len(column["op"]))


def _merged(column: Columns) -> float:
    """Share of the requests that go on from the one directly before, of the same op."""
    same = column["op"][1:] == column["op"][:-1]
    return float((same & (column["offset"][1:] == (column["offset"] + column["size"])[:-1])).mean())


def _touched(column: Columns) -> float:
    """Blocks of 64 KiB that requests begin in."""
    return float(len(np.unique(column["object"] * 2**40 + (column["offset"] >> 16))))


@pytest.mark.parametrize("path", ["loop0", "spc/dtrs.spc", "cloudphysics/cloudPhysicsIO.vscsi"])
def test_real_traces_keep_their_figures(request: pytest.FixtureRequest, root: Path, path: str) -> None:
    if path == "loop0":
        source = root / "examples/loop0.parquet"
    else:
        source = request.getfixturevalue("shared_traces") / path
    fitted = models.fit(source)
    table = fitted.sample(seed=1)
    assert table.num_rows == fitted.requests
    counts, _ = fitted.windows()
    length = fitted.header["windows"]["length_ns"]
    drawn = np.bincount(_numbers(table["time"]) // length, minlength=len(counts))
    # Coarse clocks may push a few requests over the edge of a window.
    assert np.abs(drawn - counts).sum() <= 0.002 * fitted.requests
    trace = read(source)
    got, asked = _placed(table), _placed(trace)
    # Long streams start at other places than in the trace, so more is touched: up to twice as much.
    for what, most in ((_sequential, 0.15), (_merged, 0.03), (_touched, 1.25)):
        assert abs(what(got) / what(asked) - 1) < most, what.__name__


def test_what_only_a_trace_has_is_observed(loadstone: Callable[..., Any], root: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mdh"
    names = ["run", "outstanding", "think", "latency", "flags", "actor"]
    asked = [word for name in names for word in ("--dimension", name)]
    loadstone("model", "fit", root / "examples/loop0.parquet", "-o", out, *asked)
    fitted = models.Model.load(out)
    roles = {d["feature"]: d["role"] for d in fitted.header["dimensions"]}
    assert {roles[name] for name in names} == {"observed"}
    table = read(root / "examples/loop0.parquet")
    # The trace's own numbers, counted by hand.
    time, latency = (table[name].to_numpy() for name in ("time", "latency"))
    marginal = fitted.marginal("outstanding")
    ends = np.sort(time + latency)
    waiting = np.arange(len(time)) - np.searchsorted(ends, time, side="right")
    # Requests submitted at the same time do not see those after them complete.
    idle = int((waiting == 0).sum())
    counted = int(marginal.counts[(marginal.first == 0) & ~marginal.none].sum())
    assert counted == idle
    text = loadstone("model", "show", out).stdout
    assert "Requests under way when it was submitted (observed)" in text
    assert "Think time of its actor (observed)" in text and "sync" in text
    # A model of what is only observed still runs.
    assert len(fitted.sample(seed=1)) == len(table)


def test_roles_that_cannot_be_are_refused(loadstone: Callable[..., Any], root: Path, tmp_path: Path) -> None:
    for spec, word in [("sets:latency", "not drawn"), ("given:previous(latency)", "only in the trace")]:
        done = loadstone(
            *("model", "fit", root / "examples/loop0.parquet", "-o", tmp_path / "m.mdh"),
            *("--dimension", spec),
            status=1,
        )
        assert word in done.stderr and "observed:" in done.stderr and "column" not in done.stderr
