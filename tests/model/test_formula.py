"""Distributions in place of histograms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadstone import Error
from loadstone import model as models
from loadstone.model._formula import chosen

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> models.Model:
    """Made-up requests whose gaps are of a two-phase hyper-exponential, in fine buckets."""
    rng = np.random.default_rng(7)
    n = 60_000
    means = np.where(rng.random(n) < 0.7, 2e4, 3e6)
    time = np.cumsum(rng.exponential(means)).astype(np.int64)
    path = tmp_path_factory.mktemp("formula") / "made.spc"
    with path.open("w") as out:
        for t, lba, read in zip(time, rng.integers(0, 1 << 20, n), rng.random(n) < 0.6, strict=True):
            out.write(f"0,{lba * 8},4096,{'r' if read else 'w'},{t / 1e9:.9f}\n")
    return models.fit(path, dimensions=["gap=log2:4"], merge="all", cell_bits=64)


def made(family: str, parameters: list[float], first: int, last: int, octave: int = 4) -> models.Slice:
    """A slice whose shares are those of a distribution, over buckets that widen."""
    edges = np.unique(np.geomspace(max(first, 1), last, 12 * octave).astype(np.int64))
    lower, upper = edges[:-1], edges[1:] - 1
    shares = models.bucket_shares(family, parameters, lower, upper)
    return models.Slice(0, {"given": []}, (1, len(lower)), lower, upper, shares / shares.sum(), len(lower))


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("expon", [0.0, 50_000.0]),
        ("gamma", [0.4, 0.0, 90_000.0]),
        ("erlang", [3.0, 0.0, 20_000.0]),
        ("weibull_min", [0.6, 0.0, 40_000.0]),
        ("lognorm", [1.4, 0.0, 20_000.0]),
        ("norm", [60_000.0, 9_000.0]),
        ("uniform", [1_000.0, 80_000.0]),
        ("triang", [0.3, 5_000.0, 90_000.0]),
        ("hyperexpon", [0.8, 2_000.0, 200_000.0]),
        ("fisk", [1.7, 0.0, 30_000.0]),
    ],
)
def test_every_family_is_found_again(family: str, parameters: list[float]) -> None:
    slice_ = made(family, parameters, 10, 1_000_000)
    (fit,) = models.fits(slice_, [family])
    assert fit.family == family and fit.error < 0.02, fit
    # Families that are shapes of each other aside, nothing else is nearer by much.
    assert models.fits(slice_)[0].error < max(0.05, fit.error + 0.05)


def test_a_polynomial_is_as_near_as_its_degree_allows() -> None:
    places = np.arange(1, 41)
    shares = 5 + 3 * np.linspace(0, 1, 40) - 7 * np.linspace(0, 1, 40) ** 2
    slice_ = models.Slice(0, {}, (1, 40), places, places, shares / shares.sum(), 40)
    found = models.fits(slice_, ["polynomial"])
    assert found[0].error < 1e-3
    errors = {len(fit.parameters): fit.error for fit in found}
    assert errors[2] > 0.02 > errors[3]


@pytest.mark.parametrize("family", ["expon", "gamma", "weibull_min", "lognorm", "norm", "uniform", "triang"])
def test_common_families_are_those_of_scipy(family: str) -> None:
    named = {"expon": [3.0, 50.0], "norm": [40.0, 9.0], "uniform": [5.0, 70.0], "triang": [0.25, 5.0, 60.0]}
    parameters = named.get(family, [1.3, 2.0, 30.0])
    first = np.arange(0, 200, 5)
    last = first + 4
    cdf = getattr(stats, family).cdf
    expected = cdf(last + 1.0, *parameters) - cdf(first.astype(float), *parameters)
    assert np.allclose(models.bucket_shares(family, parameters, first, last), expected, atol=1e-12)


def test_a_formula_takes_the_place_of_cells_and_is_loaded_as_counts(
    chain: models.Model, tmp_path: Path
) -> None:
    after = models.approximated(chain, error=0.1, distributions=["expon", "hyperexpon"])
    gap = next(link for link in after.chain if link["dimension"] == "gap")
    assert gap["formulas"], [link["dimension"] for link in after.chain if link["formulas"]]
    # Whoever waits in two ways is not one exponential.
    assert all(formula["family"] == "hyperexpon" for formula in gap["formulas"])
    share, *means = gap["formulas"][0]["parameters"]
    short, long = sorted(means)
    assert short == pytest.approx(2e4, rel=0.3) and long == pytest.approx(3e6, rel=0.3) and 0.2 < share < 0.8
    assert after.stored_cells < chain.stored_cells and after.requests == chain.requests
    for model, name in ((chain, "cells.mdh"), (after, "formulas.mdh")):
        model.save(tmp_path / name)
    assert (tmp_path / "formulas.mdh").stat().st_size < (tmp_path / "cells.mdh").stat().st_size
    again = models.Model.load(tmp_path / "formulas.mdh")
    assert again.sample(3000, seed=1) == after.sample(3000, seed=1)
    assert models.histogram(after).distances(models.histogram(chain))["gap"][0] < 0.1
    # A change counts anew, and what was approximated can be made cells again.
    assert not any(link["formulas"] for link in after.scaled(rate=2).chain)
    assert not any(link["formulas"] for link in after.factored().chain)


def test_histograms_stay_where_no_formula_is_near_or_small_enough(chain: models.Model) -> None:
    assert models.approximated(chain, error=1e-9).chain == chain.chain
    with pytest.raises(Error, match="not factored"):
        models.approximated(models.fit(TRACE), error=0.1)
    after = models.approximated(chain, error=0.1)
    with pytest.raises(Error, match="has formulas already"):
        after.with_formulas([])


@pytest.mark.slow
def test_formulas_make_the_file_smaller_or_are_left_out(
    loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    """22 formulas made a file of 24.0 KB one of 24.7 KB: each was smaller than its cells, by estimate."""
    fine = tmp_path / "fine.mdh"
    loadstone("model", "fit", TRACE, "-o", fine, "--dimension", "gap=log2:16", "--factored")
    few = [word for name in ("expon", "norm", "lognorm") for word in ("--distribution", name)]
    for error, name in (("0.1", "a.mdh"), ("0.3", "b.mdh")):
        out = loadstone("model", "factor", fine, "-o", tmp_path / name, "--approximate", error, *few).stdout
        size, before = ((tmp_path / name).stat().st_size, fine.stat().st_size)
        said = f"no distribution within {error} of a histogram makes the file smaller; all histograms stay"
        assert (size == before and said in out) or (size < before and "formula" in out), out
    none = loadstone("model", "factor", fine, "-o", tmp_path / "c.mdh", "--approximate", "1e-9", *few).stdout
    assert "makes the file smaller; all histograms stay" in none


@pytest.mark.slow
def test_a_larger_error_makes_no_larger_file(tmp_path: Path) -> None:
    """24,507 bytes with an error of 0.25 were 24,520 with 0.3: formulas were left out by estimates."""
    fine = models.fit(TRACE, dimensions=["gap=log2:16", "size=log2:16"]).factored()
    fitted = [
        (slice_, models.fits(slice_, ["expon", "uniform", "lognorm"])) for slice_ in models.slices(fine)
    ]
    sizes = []
    for error in (0.2, 0.25, 0.3):
        chosen(fine, fitted, error=error).save(tmp_path / "a.mdh", force=True)
        sizes.append((tmp_path / "a.mdh").stat().st_size)
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]


@pytest.mark.slow
def test_any_distribution_of_scipy_can_be_named(
    loadstone: Callable[..., Any], chain: models.Model, tmp_path: Path
) -> None:
    chain.save(tmp_path / "a.mdh")
    done = loadstone(
        "model", "factor", tmp_path / "a.mdh", "-o", tmp_path / "b.mdh", "--cell-bits", "64",
        "--approximate", "0.5", "--distribution", "fisk", "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    families = {formula["family"] for link in found["chain"] for formula in link["formulas"]}
    assert families == {"fisk"}
    shown = loadstone("model", "show", tmp_path / "b.mdh").stdout
    assert re.search(r" formulas? stand for", shown) and "fisk" in shown
    # Its values take minutes.
    wrong = loadstone(
        "model", "factor", tmp_path / "a.mdh", "-o", tmp_path / "c.mdh", "--approximate", "0.5",
        "--distribution", "studentized_range", status=1,
    )  # fmt: skip
    assert "no continuous distribution of scipy.stats that is quick to compute" in wrong.stderr
    wrong = loadstone(
        "model", "factor", tmp_path / "a.mdh", "-o", tmp_path / "c.mdh", "--approximate", "0.5",
        "--distribution", "poisson", status=1,
    )  # fmt: skip
    assert "'poisson' is no continuous distribution" in wrong.stderr and "hyperexpon" in wrong.stderr
    assert not (tmp_path / "c.mdh").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "os"}, "no continuous distribution"),
        ({"parameters": [1.0]}, "does not take 1 parameters"),
        ({"parameters": [0.5, -1.0, -1.0]}, "has no distribution over buckets"),
        ({"given": [9, 9, 9, 9]}, "what it is given"),
        ({"matrix": 7777}, "its matrix"),
        ({"codes": [0, 5]}, "the codes that it covers"),
        ({"codes": [5, 1]}, "the codes that it covers"),
        ({"codes": [100_000, 100_001]}, "a code that its bucket rule does not have"),
    ],
)
def test_formulas_that_make_no_sense_are_refused(
    chain: models.Model, change: dict[str, Any], message: str
) -> None:
    after = models.approximated(chain, error=0.1, distributions=["hyperexpon"])
    number, link = next((i, link) for i, link in enumerate(after.chain) if link["formulas"])
    wrong = {**link["formulas"][0], **change}
    with pytest.raises(Error, match=message):
        chain.with_formulas([(number, wrong)])
