"""Every kind of model is run: what it draws is all performed, and is as much as its trace has."""

import json
from pathlib import Path

import pytest

from loadstone import trace

KINDS = {
    "usual": "",
    "plain": "--only --dimension op --dimension object --dimension size --dimension jump --dimension region "
    "--dimension gap",
    "each window alone": "--merge none --window 1s",
    "one matrix": "--max-matrices 1",
    "factored": "--factored",
    "small": "--small",
    "small for anybody": "--small --public",
    "stack distances": "--dimension reuse_distance",
    "stack distances, factored": "--dimension reuse_distance --factored",
    "jumps only": "--offset-rule jump --without region",
    "regions only": "--offset-rule region --without jump",
    "phases": "--boundaries auto",
    "think times": "--think",
}


@pytest.fixture(scope="module")
def recorded():
    """The demo trace, which has reads, writes and flushes, and what there is to know of it."""
    path = Path(__file__).resolve().parents[2] / "examples/loop0.parquet"
    return path, trace.describe(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_a_model_draws_is_performed(kind, recorded, loadstone, tmp_path):
    path, info = recorded
    model, log = tmp_path / "it.mdh", tmp_path / "log.parquet"
    loadstone("model", "fit", path, "-o", model, *KINDS[kind].split())
    words = ["--on", "null:", "--size", "8g", "--offsets", "wrap", "--seed", "3", "--json"]
    told = json.loads(loadstone("run", model, *words, "--pace", "max", "--log", log).stdout)
    requests = info["requests"]
    assert (told["requests"], told["errors"], told["short"]) == (requests, 0, 0)
    # Ops are exchanged for others only where nothing else fits.
    for one in info["ops"]:
        drawn = told["ops"].get(one["op"], {}).get("count", 0)
        assert abs(drawn - one["requests"]) <= 0.02 * requests, (one["op"], drawn)
    moved = sum(one["bytes"] for one in info["ops"] if one["op"] in ("read", "write"))
    assert told["bytes"] == pytest.approx(moved, rel=0.1)
    assert told["log"]["dropped"] == 0
