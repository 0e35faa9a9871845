"""Entry points of other packages: only those named are loaded, and one that fails is one error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error, exporters
from loadstone import model as models
from loadstone.dataset._mutate import find_mutator
from loadstone.wml import _laws

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"
GROUPS = ["exporters", "features", "mutators", "variables"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a package known whose entry points of all groups are the one given."""

    def make(name: str, point: str) -> None:
        about = tmp_path / name / f"{name}-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text("".join(f"[loadstone.{g}]\n{point}\n" for g in GROUPS))
        monkeypatch.syspath_prepend(tmp_path / name)

    return make


def test_another_package_s_broken_entry_point_breaks_no_export(
    package: Callable[..., None], tmp_path: Path
) -> None:
    """It gave a traceback for every exporter that was named."""
    package("torn", "broken = torn.nosuch:export")
    fitted = models.fit(TRACE, window=5.0)
    assert exporters.export(fitted, "fio", tmp_path / "out", target="/mnt/x").files
    assert "broken" in exporters.exporters()
    with pytest.raises(Error, match="there is no exporter 'fioo'; there are broken, filebench, fio"):
        exporters.export(fitted, "fioo", tmp_path / "out", target="/mnt/x")


@pytest.mark.parametrize(
    "ask",
    [
        lambda fitted, out: exporters.export(fitted, "broken", out, target="/mnt/x"),
        lambda fitted, out: models.fit(TRACE, dimensions=["user.broken"]),
        lambda fitted, out: find_mutator("broken"),
    ],
)
def test_what_cannot_be_loaded_is_one_error(
    ask: Callable[[models.Model, Path], Any], package: Callable[..., None], tmp_path: Path
) -> None:
    package("torn", "broken = torn_nosuch:export")
    with pytest.raises(Error, match="torn, cannot be loaded from torn_nosuch:export: ModuleNotFoundError"):
        ask(models.fit(TRACE, window=5.0), tmp_path / "out")


def test_a_distribution_that_cannot_be_loaded_is_not_said_to_have_wrong_parameters(
    package: Callable[..., None],
) -> None:
    package("torn", "broken = torn_nosuch:law")
    with pytest.raises(_laws.Fault, match="cannot be loaded from torn_nosuch:law"):
        _laws._elsewhere("broken", {})
    _laws._installed.cache_clear()


def test_one_name_of_two_packages_is_an_error(package: Callable[..., None], tmp_path: Path) -> None:
    """One of them was taken without a word."""
    package("first", "mine = first:export")
    package("other", "mine = other:export")
    with pytest.raises(Error, match="of the package first and the package other; uninstall all but one"):
        exporters.export(models.fit(TRACE, window=5.0), "mine", tmp_path / "out", target="/mnt/x")
