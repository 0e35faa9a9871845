"""The studies that are shipped: each is read, and its smoke size is run."""

from __future__ import annotations

import pytest

from loadstone import study
from loadstone.study.file import expand

SIZES = {"mkfs-matrix": 12}
"""Cells of each study."""


def test_all_examples_are_here(root):
    names = {path.stem.removesuffix("-smoke") for path in (root / "examples/studies").glob("*.toml")}
    assert names == SIZES.keys()


@pytest.mark.parametrize("name", SIZES)
def test_studies_and_their_smoke_sizes_have_the_same_cells(name, root):
    whole, smoke = (expand.read(root / f"examples/studies/{name}{end}.toml") for end in ("", "-smoke"))
    assert [cell.name for cell in whole.cells] == [cell.name for cell in smoke.cells]
    assert len(whole.cells) == SIZES[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_smoke_sizes_run(name, root, tmp_path, need_root, need_tools):
    need_tools("mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "losetup")
    told = study.run(root / f"examples/studies/{name}-smoke.toml", tmp_path / "s")
    assert (told["state"], told["failed"]) == ("finished", 0), told
    assert told["runs"] == 2 * SIZES[name]
    report = study.report(tmp_path / "s")
    assert not [setting for setting, one in report["differences"].items() if not one["asked"]]
    assert report["verdicts"].keys() == {cell["workload"] for cell in report["arms"]}


def test_a_device_of_the_users_takes_the_place_of_images(root):
    found = expand.read(root / "examples/studies/mkfs-matrix.toml", {"device": "/dev/vdb"})
    assert {cell.system.kind for cell in found.cells} == {"device"}
