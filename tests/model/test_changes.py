"""Phases by boundaries: found by PELT, or set by hand; and the pictures that show them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loadstone
from loadstone import model as models

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


def histograms(seed: int, lengths: list[int], requests: int = 200) -> Any:
    """A sequence of histograms of two dimensions that changes after each of these lengths."""
    rng = np.random.default_rng(seed)
    rows = []
    for length in lengths:
        one, two = rng.dirichlet([0.5] * 6), rng.dirichlet([0.5] * 9)
        rows += [
            np.concatenate([rng.multinomial(requests, one), rng.multinomial(requests, two)])
            for _ in range(length)
        ]
    return np.array(rows, dtype=float)


def test_changes_are_found_where_they_are() -> None:
    for seed in range(8):
        found = models.pelt(histograms(seed, [30, 50, 20, 60]), 2)
        assert len(found) == 3 and np.abs(np.array(found) - [30, 80, 100]).max() <= 1, seed


def test_where_nothing_changes_nothing_is_found() -> None:
    for seed in range(8):
        assert models.pelt(histograms(seed, [150]), 2) == []
    assert models.pelt(histograms(0, [1]), 2) == []


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.floats(0.05, 3),
    st.integers(1, 3),
)
def test_the_cut_is_the_best_there_is(seed: int, lengths: list[int], penalty: float, least: int) -> None:
    counts = histograms(seed, lengths, requests=30)
    steps = len(counts)

    def cost(a: int, b: int) -> float:
        inside = counts[a:b].sum(axis=0)
        total = inside.sum() / 2
        return float(2 * total * np.log(total) - (inside[inside > 0] * np.log(inside[inside > 0])).sum())

    free = max(1, int((counts.sum(axis=0) > 0).sum()) - 2)
    price = penalty * 0.5 * (free + 1) * np.log(max(counts.sum() / 2, 2))

    def whole(cuts: list[int]) -> float:
        edges = [0, *cuts, steps]
        return sum(cost(a, b) for a, b in itertools.pairwise(edges)) + price * len(cuts)

    least = min(least, steps)
    best = [0.0] + [np.inf] * steps
    for end in range(least, steps + 1):
        best[end] = min(best[a] + cost(a, end) + (price if a else 0) for a in range(end - least + 1))
    found = models.pelt(counts, 2, penalty, least)
    assert whole(found) == pytest.approx(best[steps], rel=1e-9, abs=1e-6)
    assert all(b - a >= least for a, b in itertools.pairwise([0, *found, steps]))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small reads, large writes from 200 s on, and small reads again from 350 s on."""
    path = tmp_path_factory.mktemp("changes") / "two.spc"
    rows = []
    for i in range(20_000):
        at = i * 0.025
        busy = 200 <= at < 350
        rows.append(f"0,{(i * 7919 % 100_003) * 8},{65536 if busy else 4096},{'rw'[busy]},{at:.3f}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_boundaries_are_phases(two: Path) -> None:
    fitted = models.fit(two, window=1.0, boundaries=[100, 200, 350.5])
    assert [phase["start"] for phase in fitted.phases()] == [0, 100, 200, 350]
    assert len(fitted.matrices()) == 4 and fitted.requests == 20_000
    # Beyond the end, twice in a window, at the start: no phase without requests.
    odd = models.fit(two, window=1.0, boundaries=[0, 10.2, 10.7, 9999])
    assert [phase["start"] for phase in odd.phases()] == [0, 10]
    for wrong in ([5.0, 3.0], [-1.0]):
        with pytest.raises(loadstone.Error, match="in their order"):
            models.fit(two, boundaries=wrong)


def test_changes_of_a_trace_are_found(two: Path, loadstone: Callable[..., Any], tmp_path: Path) -> None:
    # The group of requests in which a change lies is like neither side, and may stand alone.
    found = models.find_boundaries(two, window=1.0)
    assert len(found) <= 4
    assert all(min(abs(at - change) for at in found) <= 4 for change in (200, 350))
    assert all(min(abs(at - change) for change in (200, 350)) <= 14 for at in found)
    out = tmp_path / "a.mdh"
    loadstone("model", "fit", two, "-o", out, "--window", "1s", "--boundaries", "auto")
    assert [p["start"] for p in models.Model.load(out).phases()] == [0, *found]
    loadstone("model", "fit", two, "-o", out, "--window", "1s", "--boundaries", "10s,2m", "--force")
    assert [p["start"] for p in models.Model.load(out).phases()] == [0, 10, 120]
    done = loadstone(
        "model", "fit", two, "-o", out, "--window", "1s", "--boundaries", "10s,900h,1000h", "--force"
    )
    assert "warning: --boundaries: nothing begins at 900 h or later: the trace ends" in done.stderr
    for options in (
        ("--boundaries", "2m,10s"),
        ("--boundaries", "10s,10s"),
        ("--boundaries", "1s", "--merge", "all"),
        ("--boundaries", "1s", "--max-matrices", "1"),
        ("--boundaries", "soon"),
    ):
        loadstone("model", "fit", two, "-o", out, "--force", *options, status=2)
    with pytest.raises(Exception, match="above 0"):
        models.find_boundaries(two, penalty=0)


@pytest.mark.slow
def test_pictures_over_time(two: Path, loadstone: Callable[..., Any], tmp_path: Path) -> None:
    model, picture = tmp_path / "a.mdh", tmp_path / "a.png"
    models.fit(TRACE).save(model)
    loadstone(
        "model", "plot", model, "-o", picture, "--over", "size", "--over", "resume", "--joint", "op,size"
    )
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000
    assert "exists" in loadstone("model", "plot", model, "-o", picture, status=1).stderr
    assert (
        "no dimension"
        in loadstone("model", "plot", model, "-o", tmp_path / "b.png", "--over", "x", status=1).stderr
    )
    loadstone("model", "plot", model, "-o", tmp_path / "b.png", "--joint", "op", status=2)
    for name in ("b.xyz", "b.gif", "b"):
        said = loadstone("model", "plot", model, "-o", tmp_path / name, status=1).stderr
        assert f"{name}: a picture is a .png, .svg or .pdf file" in said and not (tmp_path / name).exists()
    said = loadstone("model", "check", model, TRACE, "--plot", tmp_path / "b.gif", status=1).stderr
    assert "a picture is a .png" in said
