"""Series that go on: by presets, by mutators of one's own, and by the one that is installed."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from loadstone import Error, dataset


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    path = tmp_path_factory.mktemp("first") / "first.fst"
    dataset.populate(path, files=400, sizes="lognormal:10.5,1", extensions="c=1,=1", seed=4)
    return path


def unique_share(path) -> float:
    """Of the last snapshot's chunks, those that are nowhere else in the series."""
    snapshots = dataset.describe(path)["snapshots"]
    before, after = snapshots[-2]["together"], snapshots[-1]["together"]
    return (after["distinct"] - before["distinct"]) / snapshots[-1]["alone"]["chunks"]


@pytest.mark.parametrize(("share", "run"), [(0.0, 8), (0.1, 1), (0.3, 8), (1.0, 50)])
def test_the_share_of_unique_chunks_is_exact(share, run, first, tmp_path):
    made = dataset.mutate(
        first,
        tmp_path / "x.fst",
        mutator="unique",
        parameters={"share": share, "run": run},
        generations=2,
        seed=1,
    )
    chunks = made["snapshots"][-1]["alone"]["chunks"]
    assert unique_share(tmp_path / "x.fst") == round(share * chunks) / chunks
    assert made["snapshots"][-1]["alone"]["bytes"] == made["snapshots"][0]["alone"]["bytes"]
    if 0 < share < 1:
        runs = dataset.run_lengths(tmp_path / "x.fst")[-1]["fresh"]
        mean = sum(length * count for length, count in runs.items()) / sum(runs.values())
        assert (mean < 1.4) == (run == 1)


def test_a_mutator_of_a_file_is_asked(first, tmp_path, loadstone):
    """The example of the guide, as it is there."""
    page = open_page("docs/explanation/datasets.md")
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "logs.py").write_text(next(block for block in blocks if "def append" in block))
    options = ("--mutator", "logs.py:append", "--set", "share=0.5", "--generations", "3", "--seed", "9")
    done = loadstone("dataset", "mutate", first, *options, "-o", "out.fst", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert len(told["snapshots"]) == 4
    assert all(one["wanted"] == 200 for one in told["generations"])
    found = dataset.profile(tmp_path / "out.fst")["patterns"]
    patterns = dict(zip(dataset.PATTERNS, found, strict=True))
    # Of a file of one chunk the only one is its first.
    assert patterns["E"] > 60
    assert patterns["E"] + patterns["B"] == pytest.approx(100)
    again = loadstone("dataset", "mutate", first, *options, "-o", "again.fst", "--json", cwd=tmp_path)
    assert again.stdout == done.stdout
    assert (tmp_path / "again.fst").read_bytes() == (tmp_path / "out.fst").read_bytes()


def open_page(name: str) -> str:
    from pathlib import Path

    return (Path(__file__).resolve().parents[2] / name).read_text()


def test_series_go_on_and_on(first, tmp_path):
    """By a preset, then by a mutator, then by a profile of all that."""
    dataset.mutate(first, tmp_path / "a.fst", profile="preset:kernels", generations=3)
    dataset.mutate(tmp_path / "a.fst", tmp_path / "b.fst", mutator="unique", parameters={"share": 0.05})
    dataset.profile(tmp_path / "b.fst", tmp_path / "b.profile")
    made = dataset.mutate(
        tmp_path / "b.fst", tmp_path / "c.fst", profile=tmp_path / "b.profile", generations=2
    )
    assert len(made["snapshots"]) == 7
    dataset.write(tmp_path / "c.fst", tmp_path / "out")
    found = dataset.scan(tmp_path / "out", tmp_path / "found.fst")["snapshots"][0]["alone"]
    assert found["distinct"] == made["snapshots"][-1]["alone"]["distinct"]


def test_what_a_mutator_does_wrong_is_told(first, tmp_path):
    def returns(changes):
        return lambda tree, rng: changes(tree) if callable(changes) else changes

    def changed(*steps):
        def make(tree):
            changes = dataset.Changes()
            for step in steps:
                step(tree, changes)
            return changes

        return make

    cases = [
        (None, "returned NoneType: return loadstone.dataset.Changes"),
        (lambda tree: 1 / 0, "failed: ZeroDivisionError"),
        (lambda tree: tree.size.fill(0), "failed: ValueError"),
        (changed(lambda t, c: c.modify(0, [1.5])), "use whole numbers"),
        (changed(lambda t, c: c.modify(0, [[1], [2]])), "one dimension"),
        (changed(lambda t, c: c.modify(0, [-1])), "-1 to -1: use 0 to"),
        (changed(lambda t, c: c.modify(0, [len(t.chunk_size)])), "is unknown: there are"),
        (changed(lambda t, c: c.modify(400, [1])), "file 400 is unknown"),
        (
            changed(lambda t, c: c.delete(3), lambda t, c: c.modify(3, [0])),
            "file 3 is deleted or modified twice",
        ),
        (changed(lambda t, c: c.modify(3, [0]), lambda t, c: c.modify(3, [0])), "modified twice"),
        (changed(lambda t, c: c.create(0, t.fresh([100, 100], c))), "is followed by another"),
        (changed(lambda t, c: c.create(0, t.fresh([1 << 20], c))), "use 1 to 65536"),
        (changed(lambda t, c: c.create(10_000, [])), "directory 10000"),
        (changed(lambda t, c: c.create(0, [], 77)), "extension 77"),
        (changed(lambda t, c: c.sizes.append(5000)), "0 ratios of 1 new chunks"),
    ]
    for changes, what in cases:
        with pytest.raises(Error, match=what):
            dataset.mutate(first, tmp_path / "x.fst", mutator=returns(changes))
    assert not (tmp_path / "x.fst").exists()
    with pytest.raises(Error, match="unexpected keyword argument 'speed'"):
        dataset.mutate(first, tmp_path / "x.fst", mutator="unique", parameters={"speed": 1})
    with pytest.raises(Error, match="a share of 2"):
        dataset.mutate(first, tmp_path / "x.fst", mutator="unique", parameters={"share": 2})


def test_mutators_that_are_not_there_are_told(first, tmp_path, loadstone):
    (tmp_path / "empty.py").write_text("x = 1\n")
    for name, what in (
        ("uniqe", "is no mutator: use .*unique"),
        (f"{tmp_path}/empty.py:y", "defines no function y"),
        (f"{tmp_path}/none.py:y", "No such file"),
    ):
        with pytest.raises(Error, match=what):
            dataset.mutate(first, tmp_path / "x.fst", mutator=name)
    with pytest.raises(Error, match="either a profile or a mutator"):
        dataset.mutate(first, tmp_path / "x.fst")
    done = loadstone("dataset", "mutate", first, "-o", tmp_path / "x.fst", status=2)
    assert "either --profile or --mutator" in done.stderr
    done = loadstone("dataset", "create", "preset:windows", "-o", tmp_path / "x.fst", status=2)
    assert "there are kernels, centos" in done.stderr


def test_columns_are_those_of_the_tree(first, tmp_path):
    seen = []

    def look(tree, rng):
        seen.append(tree)
        changes = dataset.Changes()
        changes.delete(tree.regular()[0])
        return changes

    made = dataset.mutate(first, tmp_path / "x.fst", mutator=look, generations=2)
    one, two = seen
    assert (len(one), len(two)) == (400, 399)
    assert set(one.state) == {dataset.NEW} and set(two.state) == {dataset.UNMODIFIED}
    assert np.array_equal(two.size, one.size[1:])
    assert made["snapshots"][1]["alone"]["bytes"] == int(one.size[1:].sum())
    assert int(one.start[-1]) == len(one.chunks)


@pytest.mark.slow
def test_runs_are_kept_by_profiles_that_tell_them(first, tmp_path):
    dataset.mutate(
        first, tmp_path / "real.fst", mutator="unique", parameters={"share": 0.05, "run": 1}, generations=4
    )
    means = {}
    for runs in (False, True):
        dataset.profile(tmp_path / "real.fst", tmp_path / "x.profile", runs=runs, force=True)
        dataset.create(tmp_path / "x.profile", tmp_path / "made.fst", seed=3, force=True)
        means[runs] = mean_run(tmp_path / "made.fst")
    real = mean_run(tmp_path / "real.fst")
    assert abs(means[True] / real - 1) < 0.15, (real, means)
    assert means[False] / real > 1.15


def mean_run(path) -> float:
    """Chunks of a run of fresh ones, over all snapshots but the first."""
    runs = [one["fresh"] for one in dataset.run_lengths(path)[1:]]
    chunks = sum(length * count for one in runs for length, count in one.items())
    return chunks / sum(sum(one.values()) for one in runs)
