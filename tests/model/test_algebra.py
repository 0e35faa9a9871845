"""Models changed, combined and read cell by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loadstone
from loadstone import Error, trace
from loadstone import model as models

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture(scope="module")
def fitted() -> models.Model:
    return models.fit(TRACE)


def drawn(model: models.Model) -> dict[str, np.ndarray[Any, Any]]:
    table = model.sample(seed=1)
    return {name: np.array(table[name].to_pylist(), dtype=float) for name in ("time", "op", "offset", "size")}


def test_twice_the_rate_is_twice_the_requests_in_the_same_time(fitted: models.Model) -> None:
    after = fitted.scaled(rate=2)
    old, new = models.shares(fitted), models.shares(after)
    assert new["requests"] == 2 * old["requests"] and new["seconds"] == old["seconds"]
    assert new["read_share"] == pytest.approx(old["read_share"], abs=1e-3)
    assert np.array_equal(after.windows()[0], 2 * fitted.windows()[0])
    assert np.median(np.diff(drawn(after)["time"])) < np.median(np.diff(drawn(fitted)["time"]))
    apart = models.histogram(fitted).distances(models.histogram(after))
    assert all(ks < 0.01 for name, (ks, _) in apart.items() if name != "gap")


def test_a_third_of_the_rate_has_every_property_left(fitted: models.Model) -> None:
    after = fitted.scaled(rate=1 / 3)
    assert after.requests == pytest.approx(fitted.requests / 3, rel=0.01)
    apart = models.histogram(fitted).distances(models.histogram(after))
    assert all(ks < 0.02 for name, (ks, _) in apart.items() if name != "gap")


def test_the_share_of_reads_is_what_was_asked_for(fitted: models.Model) -> None:
    for share in (0.05, 0.5, 0.9):
        after = fitted.scaled(read_share=share)
        assert models.shares(after)["read_share"] == pytest.approx(share, abs=0.005)
        assert after.requests == fitted.requests
        # No window has more than a few requests more or fewer.
        assert np.abs(after.windows()[0] - fitted.windows()[0]).max() <= 4
        ops = drawn(after)["op"]
        assert (ops == 0).sum() / np.isin(ops, (0, 1)).sum() == pytest.approx(share, abs=0.01)
    # What a write is like has not changed.
    before, now = (models.histogram(m).where(op=1) for m in (fitted, after))
    assert before.distances(now)["size"][0] < 0.1


def test_sizes_grow_together(fitted: models.Model) -> None:
    after = fitted.scaled(size=2)
    sizes, old = (np.sort(drawn(m)["size"][drawn(m)["size"] > 0]) for m in (after, fitted))
    assert np.median(sizes) == 2 * np.median(old)
    assert models.shares(after)["mean_size"] == pytest.approx(
        2 * models.shares(fitted)["mean_size"], rel=0.02
    )
    small = fitted.scaled(size=0.25)
    assert (drawn(small)["size"][drawn(small)["size"] > 0] % 512 == 0).all()


def test_a_larger_footprint_spreads_requests(fitted: models.Model) -> None:
    for factor in (4, 3, 0.5):
        after = fitted.scaled(footprint=factor)
        old, new = models.shares(fitted), models.shares(after)
        assert new["extent"] == pytest.approx(factor * old["extent"], rel=0.001)
        offsets = drawn(after)["offset"]
        offsets = offsets[~np.isnan(offsets)]
        assert offsets.max() < new["extent"]
        assert offsets.max() > 0.7 * new["extent"]


def test_the_same_change_is_the_same_model(fitted: models.Model, tmp_path: Path) -> None:
    for i in (0, 1):
        fitted.scaled(rate=1.7, read_share=0.4, size=1.3, footprint=2.5).save(tmp_path / f"{i}.mdh")
    assert (tmp_path / "0.mdh").read_bytes() == (tmp_path / "1.mdh").read_bytes()
    again = models.Model.load(tmp_path / "0.mdh")
    assert again.header["source"]["changes"] == ["read share 0.4", "size x1.3", "footprint x2.5", "rate x1.7"]
    assert again.header["source"]["requests"] == again.requests
    assert "changes" not in again.published().header["source"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "nothing to change"),
        ({"rate": 0}, "out of bounds"),
        ({"rate": -1}, "out of bounds"),
        ({"rate": float("nan")}, "no number to scale by"),
        ({"rate": 1e-6}, "no request would be left"),
        ({"read_share": 1.0}, "above 0 and below 1"),
        ({"footprint": 1e6, "size": 1e6}, "."),
    ],
)
def test_what_cannot_be_is_refused(fitted: models.Model, change: dict[str, float], says: str) -> None:
    if change == {"footprint": 1e6, "size": 1e6}:
        # Huge, but a model: what does not fit its object gets another size.
        assert fitted.scaled(**change).requests == fitted.requests
        return
    with pytest.raises(loadstone.Error, match=says):
        fitted.scaled(**change)


def test_reads_alone_have_no_share_to_change(tmp_path: Path) -> None:
    rows = [f"0,{8 * i},4096,r,{i / 100:.6f}" for i in range(500)]
    (tmp_path / "reads.spc").write_text("\n".join(rows) + "\n")
    with pytest.raises(loadstone.Error, match="no reads, or no writes"):
        models.fit(tmp_path / "reads.spc").scaled(read_share=0.5)


def test_two_loads_become_one(fitted: models.Model) -> None:
    other = fitted.scaled(read_share=0.9)
    both = models.merge([fitted, other], shifts=[0, 5])
    assert both.requests == fitted.requests + other.requests
    objects = both.header["objects"]
    assert len(objects) == 2 * len(fitted.header["objects"])
    names = [entry["name"] for entry in objects]
    assert names[0] == fitted.header["objects"][0]["name"] and len(set(names)) == len(names)
    counts, _ = both.windows()
    windows = round(5 / both.window)
    alone = fitted.windows()[0][: round(4 / fitted.window)].sum()
    assert counts[: round(4 / both.window)].sum() == pytest.approx(alone, rel=0.05) and windows > 0
    shares = [models.shares(m) for m in (fitted, other, both)]
    mean = (shares[0]["read_share"] + shares[1]["read_share"]) / 2
    assert shares[2]["read_share"] == pytest.approx(mean, abs=0.01)
    assert "after 5 s" in both.header["source"]["changes"][0]


def test_models_that_do_not_go_together_are_refused(fitted: models.Model) -> None:
    other = models.fit(TRACE, dimensions=["size=log2:4"])
    with pytest.raises(loadstone.Error, match=r"size is .* here and .* there"):
        models.merge([fitted, other])
    fewer = models.fit(TRACE, dimensions=["given:previous(size)"])
    with pytest.raises(loadstone.Error, match=r"only one of them has the dimension previous\(size\)"):
        models.merge([fitted, fewer])
    with pytest.raises(loadstone.Error, match="before the start"):
        models.merge([fitted, fitted], shifts=[0, -1])
    with pytest.raises(loadstone.Error, match="no model"):
        models.merge([])


def test_histograms_are_projected_conditioned_and_added(fitted: models.Model) -> None:
    whole = models.histogram(fitted)
    assert whole.total == fitted.requests
    reads = np.asarray(trace.read(TRACE)["op"].to_numpy()) == 0
    sliced = whole.where(op=0)
    assert sliced.total == reads.sum()
    by_op = whole.project("op", "size").given("op")
    assert by_op.project("op").counts == pytest.approx(1.0)
    parts = [models.histogram(fitted, m) for m in range(len(fitted.matrices()))]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.distance(whole) == pytest.approx(0, abs=1e-12)
    assert whole.normalised().total == pytest.approx(1)
    assert sliced.distance(whole.where(op=1)) == pytest.approx(1)
    assert whole.where(size=(4096, 8192)).total <= whole.where(size=(None, None)).total
    assert whole.where(size=None).total + whole.where(size=(None, None)).total == fitted.requests
    marginal = fitted.marginal("size")
    alone = whole.project("size")
    assert sorted(alone.counts.tolist()) == sorted(marginal.counts.tolist())
    assert alone.table().column_names == ["size", "size_last", "count"]
    with pytest.raises(loadstone.Error, match="no dimension 'sizes'"):
        whole.project("sizes")
    with pytest.raises(loadstone.Error, match="cannot be added"):
        whole + alone
    with pytest.raises(loadstone.Error, match="no matrix 999"):
        models.histogram(fitted, 999)


@pytest.mark.slow
def test_the_commands_do_it(loadstone: Callable[..., Any], fitted: models.Model, tmp_path: Path) -> None:
    a, b = tmp_path / "a.mdh", tmp_path / "b.mdh"
    fitted.save(a)
    out = loadstone("model", "scale", a, "-o", b, "--rate", 2).stdout
    assert "requests/s" in out and "a.mdh" in out and "b.mdh" in out
    assert "changed: rate x2" in loadstone("model", "show", b).stdout
    assert "exists" in loadstone("model", "scale", a, "-o", b, "--rate", 2, status=1).stderr
    assert "nothing to change" in loadstone("model", "scale", a, "-o", tmp_path / "c", status=2).stderr
    loadstone("model", "scale", a, "-o", tmp_path / "d", "--rate", "x2")
    assert (tmp_path / "d").read_bytes() == b.read_bytes(), "as paces are written"
    refused = loadstone("model", "scale", a, "-o", tmp_path / "e", "--size", "2k", status=2).stderr
    assert "'2k' is not a factor; write it like 2, x2 or 0.5" in refused
    both = tmp_path / "both.mdh"
    found = json.loads(loadstone("model", "merge", a, b, "-o", both, "--shift", "2s", "--json").stdout)
    assert found["is"]["requests"] == 3 * fitted.requests
    twice = json.loads(loadstone("model", "merge", a, a, "-o", both, "--force", "--json").stdout)
    assert twice["is"]["requests"] == 2 * fitted.requests and len(twice["from"]) == 2
    assert (
        "at most 1"
        in loadstone("model", "merge", a, b, "-o", both, "--shift", "2s", "--shift", "1s", status=2).stderr
    )
    shown = loadstone("model", "table", a, "op", "size", "--where", "size=..4k", "--given", "op").stdout
    assert "read" in shown and "share" in shown
    rows = json.loads(loadstone("model", "table", a, "size", "--where", "op=write", "--json").stdout)
    assert sum(cell["requests"] for cell in rows["cells"]) == rows["requests"] < rows["of"]
    for bad in ("op", "op=reads", "size=many", "outstanding=1"):
        assert loadstone("model", "table", a, "--where", bad, status=None).returncode != 0


def test_the_example_of_the_page_works_when_pasted(
    fitted: models.Model, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = re.search(r"```python\n(.*?)```", (root / "docs/explanation/models.md").read_text(), re.S)
    assert code
    fitted.save(tmp_path / "disk.mdh")
    monkeypatch.chdir(tmp_path)
    exec(compile(code[1], "docs/explanation/models.md", "exec"), {})  # the page's own lines


def test_numbers_with_buckets_of_their_own_are_in_no_range(
    loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    """4 KiB was also counted as 4 to 6 KiB, and 5 KiB within it as 4 to 6 KiB."""
    sizes = [4096] * 200 + [5120] * 150 + list(range(4200, 5100, 12)) + list(range(5200, 6100, 12))
    rows = [f"0,{i * 64},{size},{'RW'[i % 2]},{i / 100:.6f}" for i, size in enumerate(sizes)]
    (tmp_path / "a.spc").write_text("\n".join(rows) + "\n")
    fitted = models.fit(tmp_path / "a.spc", dimensions=["op", "gap", "jump", "size=exact+log2:1"])
    whole = models.histogram(fitted)
    assert whole.exact["size"].tolist() == [4096, 5120]
    assert whole.where(size=4096).total == 200 and whole.where(size=5120).total == 150
    assert whole.where(size=(4096, 5120)).total == whole.total, "4.5 KiB is in the range"
    assert whole.where(size=(5120, 5120)).total == 150 and whole.where(size=(5000, 5121)).total == 300
    alone = whole.project("size")
    assert [*zip(alone.first[:, 0], alone.last[:, 0], alone.counts, strict=True)] == [
        (4096, 4096, 200),
        (4097, 8191, 150),
        (5120, 5120, 150),
    ]
    assert whole.where(op=0).exact["size"].tolist() == [4096, 5120] and not whole.project("op").exact
    assert (whole + whole).where(size=4096).total == 400
    fitted.save(tmp_path / "a.mdh")
    shown = loadstone("model", "table", tmp_path / "a.mdh", "size", "--where", "size=4k").stdout
    assert "200 of 500 requests" in shown and "to" not in shown
    assert "above 4 KiB to 8 KiB" in loadstone("model", "table", tmp_path / "a.mdh", "size").stdout
    found = json.loads(loadstone("model", "table", tmp_path / "a.mdh", "size", "--json").stdout)
    assert [cell["size"] for cell in found["cells"]] == [[4096, 4096], [4097, 8191], [5120, 5120]]
    assert found["exact"] == {"size": [4096, 5120]}


def test_tables_and_checks_say_what_they_take(
    loadstone: Callable[..., Any], fitted: models.Model, tmp_path: Path
) -> None:
    """An observed dimension was said not to be there, and a model to have no column time."""
    model = tmp_path / "a.mdh"
    models.fit(TRACE, dimensions=["latency"]).save(model)
    for words in (("latency", "op"), ("op", "--where", "latency=1ms"), ("op", "--given", "latency")):
        said = loadstone("model", "table", model, *words, status=1).stderr
        assert "latency is only observed" in said and "without op" in said
    said = loadstone("model", "check", model, model, status=1).stderr
    assert "a.mdh: is a model; name the trace" in said and "column" not in said


@pytest.fixture(scope="module")
def observing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that only observes the latency."""
    path = tmp_path_factory.mktemp("observed") / "latency.mdh"
    models.fit(TRACE, dimensions=["observed:latency"]).save(path)
    return path


@pytest.mark.slow
def test_what_is_only_observed_can_be_read_and_plotted_alone(
    loadstone: Callable[..., Any], observing: Path, tmp_path: Path
) -> None:
    """It was said to go with no other dimension where none was given, and plot did not know it."""
    done = loadstone("model", "table", observing, "latency", "--json")
    counts = [cell["requests"] for cell in json.loads(done.stdout)["cells"]]
    marginal = models.Model.load(observing).marginal("latency")
    assert counts == marginal.counts.tolist() and sum(counts) == 106_099
    assert " of 106,099 " in loadstone("model", "table", observing, "--where", "latency=1ms..").stdout
    picture = tmp_path / "latency.png"
    loadstone("model", "plot", observing, "-o", picture, "--over", "latency", "--over", "op")
    assert picture.exists()
    jointly = ("model", "plot", observing, "-o", tmp_path / "b.png", "--joint", "latency,op")
    assert "latency is only observed" in loadstone(*jointly, status=1).stderr
    with pytest.raises(Error, match="'op' is no dimension that this model only observes"):
        models.histogram(models.Model.load(observing), observed="op")


@pytest.mark.slow
def test_what_a_merge_leaves_out_is_named(
    loadstone: Callable[..., Any], observing: Path, fitted: models.Model, tmp_path: Path
) -> None:
    """It was dropped without a word, also where both models had it."""
    plain, out = tmp_path / "plain.mdh", tmp_path / "both.mdh"
    fitted.save(plain)
    for other in (observing, plain):
        said = loadstone("model", "merge", observing, other, "-o", out, "--force").stdout
        assert re.search("note: left out, .*: latency$", said.strip())
    told = loadstone("model", "merge", plain, observing, "-o", out, "--force", "--json").stdout
    assert json.loads(told)["left_out"] == ["latency"]
    assert "left out" not in loadstone("model", "merge", plain, plain, "-o", out, "--force").stdout


@pytest.mark.slow
def test_a_file_that_appears_while_a_picture_is_drawn_stays(tmp_path, root, monkeypatch):
    from matplotlib.figure import Figure

    fitted = models.fit(root / "examples/loop0.parquet")
    out, draw = tmp_path / "m.png", Figure.savefig

    def slow(figure, *words, **more):
        draw(figure, *words, **more)
        out.write_text("mine")

    monkeypatch.setattr(Figure, "savefig", slow)
    with pytest.raises(Error, match=r"somebody put a file there meanwhile.*m\.png\.2"):
        models.plot(fitted, out)
    assert out.read_text() == "mine" and (tmp_path / "m.png.2").read_bytes().startswith(b"\x89PNG")
