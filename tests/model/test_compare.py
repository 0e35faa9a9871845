"""Models against models."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loadstone
from loadstone import model as models

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


def trace(path: Path, seed: int, *, reads: float, size: int, sequential: float, rate: float = 100) -> Path:
    """A minute of requests of one size."""
    draw, now, end, lines = random.Random(seed), 0.0, 0, []
    while now < 60:
        block = end if draw.random() < sequential else draw.randrange(1 << 20) * 8
        end = block + size // 512
        lines.append(f"0,{block},{size},{'R' if draw.random() < reads else 'W'},{now:.6f}\n")
        now += draw.expovariate(rate)
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, models.Model]:
    folder = tmp_path_factory.mktemp("models")
    kinds: dict[str, dict[str, Any]] = {
        "scan": {"reads": 1.0, "size": 65536, "sequential": 0.95},
        "oltp": {"reads": 0.7, "size": 4096, "sequential": 0.05},
        "log": {"reads": 0.0, "size": 16384, "sequential": 0.99},
    }
    out = {}
    for name, kind in kinds.items():
        for seed in (1, 2):
            out[f"{name}{seed}"] = models.fit(trace(folder / f"{name}{seed}.spc", seed, **kind))
    return out


def test_a_model_does_not_differ_from_itself(fitted: dict[str, models.Model]) -> None:
    same = models.diff(fitted["oltp1"], fitted["oltp1"])
    assert same["joint"] == 0 and same["only"] == [] and same["first"] == same["second"]
    assert all(row["ks"] == 0 and not row["wasserstein"] for row in same["dimensions"])


def test_the_mean_size_is_that_of_what_is_drawn(tmp_path: Path) -> None:
    """Buckets were taken to hold numbers beyond the largest one, and between those on the grain."""
    (tmp_path / "one.spc").write_text("0,100,4096,R,0.1\n")
    assert models.shares(models.fit(tmp_path / "one.spc"))["mean_size"] == 4096
    for dimensions in ([], ["size=log2:1"], ["size=linear:65536"]):
        fitted = models.fit(TRACE, dimensions=dimensions)
        sizes = [size for size in fitted.sample(seed=1)["size"].to_pylist() if size is not None]
        assert models.shares(fitted)["mean_size"] == pytest.approx(np.mean(sizes), rel=0.01)


def test_what_differs_is_told_by_dimension(fitted: dict[str, models.Model]) -> None:
    found = models.diff(fitted["scan1"], fitted["oltp1"])
    by_name = {row["dimension"]: row for row in found["dimensions"]}
    assert by_name["op"]["ks"] == pytest.approx(0.3, abs=0.02) and by_name["op"]["wasserstein"] is None
    assert (by_name["size"]["ks"], by_name["size"]["wasserstein"]) == (1.0, 65536 - 4096)
    assert by_name["gap"]["ks"] < 0.03
    assert found["first"]["read_share"] == 1.0 and found["second"]["read_share"] == pytest.approx(
        0.7, abs=0.02
    )


def test_other_dimensions_are_named_and_the_joint_is_left_out(
    fitted: dict[str, models.Model], tmp_path: Path
) -> None:
    path = trace(tmp_path / "a.spc", 1, reads=0.7, size=4096, sequential=0.05)
    finer = models.fit(path, dimensions=["size=log2:16", "observed:outstanding"])
    found = models.diff(fitted["oltp1"], finer)
    assert found["only"] == ["outstanding"] and found["joint"] is None
    assert {row["dimension"]: row for row in found["dimensions"]}["op"]["ks"] == 0


def test_models_of_one_kind_are_one_class(fitted: dict[str, models.Model]) -> None:
    apart = models.distances(list(fitted.values()))
    assert (apart == apart.T).all() and (np.diag(apart) == 0).all() and apart.max() <= 1
    assert models.classes(apart) == [0, 0, 1, 1, 2, 2]
    assert models.classes(apart, 6) == [0, 1, 2, 3, 4, 5]
    assert models.classes(apart, 1) == [0] * 6
    with pytest.raises(loadstone.Error, match="6 models cannot be put into 7 classes"):
        models.classes(apart, 7)
    known = {name: model for name, model in fitted.items() if name.endswith("1")}
    assert models.nearest(fitted["log2"], known)[0][0] == "log1"


def test_the_commands(loadstone: Callable[..., Any], fitted: dict[str, models.Model], tmp_path: Path) -> None:
    paths = []
    for name, model in fitted.items():
        paths.append(tmp_path / f"{name}.mdh")
        model.save(paths[-1])
    said = loadstone("model", "diff", paths[0], paths[2]).stdout
    assert "size" in said and "joint total variation" in said
    found = json.loads(loadstone("model", "diff", paths[0], paths[2], "--json").stdout)
    assert found["dimensions"] == models.diff(fitted["scan1"], fitted["oltp1"])["dimensions"]
    said = loadstone("model", "classify", *paths[1:], "--like", paths[0]).stdout
    assert "3 classes" in said and "scan2.mdh" in said.splitlines()[-1]
    found = json.loads(loadstone("model", "classify", *paths, "--classes", "3", "--json").stdout)
    assert [row["class"] for row in found["models"]] == [0, 0, 1, 1, 2, 2]
    assert "at least two" in loadstone("model", "classify", paths[0], status=2).stderr
