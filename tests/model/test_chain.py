"""Models stored as chains of small tables."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error
from loadstone import model as models

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture(scope="module")
def fitted() -> models.Model:
    return models.fit(TRACE)


def test_a_chain_is_smaller_and_keeps_the_tables(fitted: models.Model, tmp_path: Path) -> None:
    small = fitted.factored(cell_bits=32)
    assert small.stored_cells * 3 < fitted.stored_cells
    assert sum(link["cells"] for link in small.chain) == small.stored_cells
    assert fitted.chain == [] and fitted.stored_cells == len(fitted.cells())
    for path, model in ((tmp_path / "joint.mdh", fitted), (tmp_path / "small.mdh", small)):
        model.save(path)
    assert (tmp_path / "small.mdh").stat().st_size < 0.7 * (tmp_path / "joint.mdh").stat().st_size
    apart = models.histogram(fitted).distances(models.histogram(small))
    assert all(ks < 0.01 for ks, _ in apart.values()), apart
    # What is loaded draws what the one that was saved draws.
    again = models.Model.load(tmp_path / "small.mdh")
    assert again.sample(5000, seed=2) == small.sample(5000, seed=2)


def test_a_dearer_cell_makes_a_smaller_and_coarser_model(fitted: models.Model) -> None:
    chains = [fitted.factored(cell_bits=bits) for bits in (4, 16, 64, 1000)]
    cells = [chain.stored_cells for chain in chains]
    lost = [chain.header["chain"]["lost_bits"] for chain in chains]
    assert cells == sorted(cells, reverse=True) and lost == sorted(lost)
    # What needs what: every link is given only what was set before it.
    for chain in chains:
        known: list[str] = []
        for link in chain.chain:
            assert set(link["given"]) <= set(known)
            known.append(link["dimension"])
        assert sorted(known) == sorted(chain.dimensions)


def test_fitting_and_factoring_are_the_same_as_fitting_factored(
    fitted: models.Model, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    loadstone("model", "fit", TRACE, "-o", tmp_path / "a.mdh", "--factored", "--cell-bits", "24")
    loadstone("model", "fit", TRACE, "-o", tmp_path / "joint.mdh")
    said = loadstone(
        "model", "factor", tmp_path / "joint.mdh", "-o", tmp_path / "b.mdh", "--cell-bits", "24"
    ).stdout
    assert "stand for" in said and "given" in said
    a, b = (models.Model.load(tmp_path / name) for name in ("a.mdh", "b.mdh"))
    assert a.chain == b.chain
    assert a.columns().keys() == b.columns().keys()
    assert all((a.columns()[name] == b.columns()[name]).all() for name in a.columns())
    assert models.fit(TRACE, cell_bits=24).chain == a.chain
    shown = json.loads(loadstone("model", "show", tmp_path / "b.mdh", "--json").stdout)
    assert shown["stored_cells"] == b.stored_cells < shown["cells"]
    assert shown["chain"] == b.chain


def test_changes_and_exports_work_on_a_chain(fitted: models.Model) -> None:
    small = fitted.factored(cell_bits=24)
    twice = small.scaled(rate=2)
    assert twice.requests == 2 * fitted.requests and len(twice.chain) == len(small.chain)

    def links(of: models.Model) -> list[dict[str, Any]]:
        # Ties are of codes, which publishing may number anew; shares are rounded anew.
        told = {"tie": None, "continues": None}
        return [{**link, **told} for link in of.header["chain"]["links"]]

    assert links(small.published()) == links(small) != small.header["chain"]["links"]
    assert models.merge([small, small]).requests == 2 * fitted.requests
    assert abs(models.shares(twice)["read_share"] - models.shares(fitted)["read_share"]) < 0.001


@pytest.mark.parametrize("bits", [0.0, -3.0, float("nan"), float("inf")])
def test_bits_that_nothing_can_save_are_refused(fitted: models.Model, bits: float) -> None:
    with pytest.raises(Error, match="nothing that a cell can save"):
        fitted.factored(cell_bits=bits)


def test_a_fit_is_factored_once(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    asked, told = tmp_path / "asked.mdh", tmp_path / "told.mdh"
    models.fit(TRACE, cell_bits=24).save(asked)
    loadstone("model", "fit", TRACE, "-o", told, "--cell-bits", 24)
    assert told.read_bytes() == asked.read_bytes()


def test_small_models_of_traces_with_flushes_can_be_run(
    loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    loadstone("model", "fit", TRACE, "-o", tmp_path / "small.mdh", "--small")
    ran = loadstone("run", tmp_path / "small.mdh", "--on", "null:", "--pace", "max", "--json")
    found = json.loads(ran.stdout)
    assert found["requests"] == models.Model.load(tmp_path / "small.mdh").requests
    assert not found["partial"]


def test_factoring_costs_memory_by_cells_and_not_by_the_largest_code(loadstone, tmp_path: Path) -> None:
    """Buckets of one number each have codes up to the largest number, of which a small trace has few."""
    trace, model = tmp_path / "t.spc", tmp_path / "m.mdh"
    rows = "".join(f"0,{i * 7919 % (1 << 20)},4096,{'rw'[i % 2]},{i * i / 1000:.6f}\n" for i in range(500))
    trace.write_text(rows)

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    loadstone(
        "model", "fit", trace, "-o", model, "--dimension", "gap=linear:1", "--cell-bits", 2, before=small
    )
    loadstone("model", "factor", model, "-o", tmp_path / "f.mdh", "--cell-bits", 2, before=small)
    whole = ["--dimension", "gap=linear:1", "--regions", (1 << 32) - 1, "--force"]
    loadstone("model", "fit", trace, "-o", model, *whole, before=small)
