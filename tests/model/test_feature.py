"""Features of users: functions over numpy arrays."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loadstone
from loadstone import model as models
from loadstone import trace

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


def test_numbers_are_those_of_the_whole_stream() -> None:
    lengths: list[int] = []

    @models.feature(rule="category")
    def odd(requests: models.Requests, state: dict[str, int]) -> Any:
        """Whether as many requests went before."""
        lengths.append(len(requests))
        numbers = state.get("seen", 0) + np.arange(len(requests))
        state["seen"] = int(numbers[-1]) + 1
        return numbers % 2

    fitted = models.fit(TRACE, dimensions=["user.odd", "observed:previous(user.odd)"])
    counts = fitted.marginal("user.odd")
    half = fitted.requests / 2
    assert np.abs(counts.counts - half).max() <= 1 and counts.first.tolist() == [0, 1]
    before = fitted.marginal("previous(user.odd)")
    assert before.counts[before.none].sum() == 1 and sum(lengths) >= fitted.requests


def test_columns_are_those_of_the_trace() -> None:
    whole = trace.read(TRACE)
    sums: dict[str, int] = {}

    @models.feature(unit="byte")
    def rest(requests: models.Requests) -> Any:
        for name in ("time", "op", "object", "flags", "actor"):
            sums[name] = sums.get(name, 0) + int(getattr(requests, name).astype(np.int64).sum())
        return np.where(requests.size == models.NONE, models.NONE, -requests.size % 4096)

    fitted = models.fit(TRACE, dimensions=["user.rest=linear:512"])
    for name, sum_ in sums.items():
        assert sum_ == int(whole[name].to_numpy().astype(np.int64).sum()), name
    assert models.unit("user.rest") == "byte"
    assert fitted.marginal("user.rest").counts.sum() == fitted.requests


def test_what_a_feature_does_wrong_is_one_error() -> None:
    def bad(result: Callable[[models.Requests], Any], **options: Any) -> None:
        models.feature(name="bad", **options)(result)
        models.fit(TRACE, dimensions=["user.bad"])

    with pytest.raises(loadstone.Error, match="feature bad failed: ZeroDivisionError"):
        bad(lambda r: 1 // 0)
    with pytest.raises(loadstone.Error, match=r"shape \(7,\) for \d+ requests"):
        bad(lambda r: np.zeros(7, np.int64))
    with pytest.raises(loadstone.Error, match="NaN or infinity"):
        bad(lambda r: np.full(len(r), np.nan))
    with pytest.raises(loadstone.Error, match="returned <U1"):
        bad(lambda r: np.full(len(r), "x"))
    with pytest.raises(loadstone.Error, match="negative"):
        bad(lambda r: np.full(len(r), -5))
    with pytest.raises(loadstone.Error, match="feature bad failed: SystemExit: 0"):
        bad(lambda r: sys.exit(0))
    # The next one is none the worse for it.
    bad(lambda r: np.full(len(r), -5), signed=True)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint64])
@pytest.mark.parametrize("signed", [True, False])
def test_numbers_that_no_column_holds_are_one_error(kind: type, signed: bool) -> None:
    """1e30 was a warning of numpy's and no number."""

    def far(requests: models.Requests, state: dict[str, int]) -> Any:
        first = state.get("seen", 0)
        state["seen"] = first + len(requests)
        found = np.zeros(len(requests), kind)
        if first <= 20_000 < state["seen"]:
            found[20_000 - first] = 2**63 if kind is np.uint64 else 1e30
        return found

    models.feature(name="far", signed=signed)(far)
    number = "9.22337e\\+18" if kind is np.uint64 else r"1e\+30"
    says = f"feature far returned {number} for request 20,001 of the stream; numbers must be from"
    with pytest.raises(loadstone.Error, match=says):
        models.fit(TRACE, dimensions=["user.far"])


def test_the_largest_numbers_are_numbers() -> None:
    models.feature(name="edge")(lambda r: np.full(len(r), np.nextafter(2.0**63, 0)))
    fitted = models.fit(TRACE, dimensions=["user.edge"])
    assert not fitted.marginal("user.edge").none.any()


@pytest.mark.parametrize(
    ("options", "says"), [({"name": "a b"}, "no name of a feature"), ({"rule": "log3"}, "not a bucket rule")]
)
def test_what_cannot_be_made_known_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(loadstone.Error, match=says):
        models.feature(**options)(lambda r: r.size)


def test_features_are_observed_only() -> None:
    models.feature(name="seen")(lambda r: r.size)
    for role in ("sets:user.seen", "given:previous(user.seen)"):
        with pytest.raises(loadstone.Error):
            models.fit(TRACE, dimensions=[role])
    with pytest.raises(loadstone.Error, match="`plugins`"):
        models.fit(TRACE, dimensions=["user.nobody_knows"])


@pytest.mark.slow
def test_the_example_of_the_page_works_when_pasted(
    loadstone: Callable[..., Any], root: Path, tmp_path: Path
) -> None:
    code = re.search(r"```python\n(.*?)```", (root / "docs/howto/write-a-feature.md").read_text(), re.S)
    assert code
    plugin, model = tmp_path / "hot.py", tmp_path / "a.mdh"
    plugin.write_text(code[1])
    loadstone("model", "fit", TRACE, "-o", model, "--plugin", plugin)
    # The model keeps the unit, which no other process knows of.
    shown = loadstone("model", "show", model).stdout.partition("user.from_mean")[2]
    assert re.match(r" \(observed\)\n +-[\d.]+ [MG]iB to ", shown), shown[:200]
    assert models.unit("user.from_mean", models.Model.load(model)) == "byte"
    assert "user.from_mean" in loadstone("model", "check", model, TRACE, "--plugin", plugin).stdout
    # Without the file the model is read and run, and what nobody can compute is not compared.
    assert "user.from_mean" not in loadstone("model", "check", model, TRACE).stdout
    assert "user.from_mean" in loadstone("model", "show", model, "--json").stdout
    # The numbers are what a few lines of numpy say.
    offset = np.array([at for at in trace.read(TRACE)["offset"].to_pylist() if at is not None])
    expected = np.rint(offset - np.cumsum(offset, dtype=float) / np.arange(1, len(offset) + 1))
    marginal = models.Model.load(model).marginal("user.from_mean")
    known = ~marginal.none
    below = marginal.counts[known][marginal.last[known] < 0].sum()
    assert below == (expected < 0).sum()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1", "defines no feature"),
        ("import not_there", "ModuleNotFound"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_files_that_are_no_plugins_are_refused(
    loadstone: Callable[..., Any], tmp_path: Path, code: str, says: str
) -> None:
    (tmp_path / "bad.py").write_text(code)
    done = loadstone("model", "fit", TRACE, "-o", tmp_path / "m", "--plugin", tmp_path / "bad.py", status=1)
    assert says in done.stderr and not (tmp_path / "m").exists()


def test_a_name_of_two_plugins_is_an_error(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    """The later one was taken without a word."""
    code = "from loadstone import model\n@model.feature()\ndef mine(requests):\n    return requests.size"
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(code)
    plugins = ("--plugin", tmp_path / "a.py", "--plugin", tmp_path / "b.py")
    said = loadstone("model", "fit", TRACE, "-o", tmp_path / "m", *plugins, status=1).stderr
    assert "b.py: defines user.mine as" in said and not (tmp_path / "m").exists()
    (tmp_path / "b.py").write_text(f"{code}\n@model.feature(name='mine')\ndef other(requests):\n    return 1")
    said = loadstone("model", "features", *plugins[2:], status=1).stderr
    assert "b.py: defines user.mine twice" in said


def test_every_feature_has_its_definition_and_source(root: Path) -> None:
    page = (root / "docs/reference/formats/model.md").read_text()
    table, sources = page.split("## Features")[1].split("## Bucket rules")[0].split("\nSources: ")
    for row in models.features():
        if not row["name"].startswith("user."):
            assert f"| `{row['name']}` |" in table and f"`{row['name']}`" in sources, row["name"]


def test_all_features_are_listed(loadstone: Callable[..., Any]) -> None:
    shown = loadstone("model", "features").stdout
    assert "reuse_distance" in shown and "observed" in shown
    assert shown.count("\n") >= 17
