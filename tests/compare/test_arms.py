"""Arms from bundles: what counts as a run, what is left out, and what no bundle may do."""

from __future__ import annotations

import json
import os
import shutil

import pytest

import loadstone
from loadstone import Error, RunOptions
from loadstone.compare import compare_bundles, compare_itself, read_arm, read_arms
from loadstone.errors import OptionError

FEW = RunOptions(size=1 << 20, requests=300)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Repeats of one load, of another, and a single run of the first."""
    top = tmp_path_factory.mktemp("arms")
    loadstone.run(loadstone.job("randread", "null:", FEW), top / "a.bundle", repeat=5)
    loadstone.run(loadstone.job("randread", "null:", FEW), top / "b.bundle", repeat=5)
    other = RunOptions(size=1 << 20, requests=300, bs="8k")
    loadstone.run(loadstone.job("randread", "null:", other), top / "other.bundle", repeat=3)
    loadstone.run(loadstone.job("randread", "null:", FEW), top / "one.bundle")
    return top


@pytest.fixture
def made(kept, tmp_path):
    shutil.copytree(kept, tmp_path / "made")
    return tmp_path / "made"


def changed(file, **keys):
    found = json.loads(file.read_text())
    found.update(keys)
    file.write_text(json.dumps(found))


def test_repeats_a_run_and_a_folder_are_arms(made):
    assert [len(arm.runs) for arm in read_arms([made / "a.bundle", made / "one.bundle"])] == [5, 1]
    folder = made / "many"
    folder.mkdir()
    for name in ("a.bundle", "one.bundle"):
        shutil.move(made / name, folder / name)
    (folder / "notes.txt").write_text("not a bundle")
    (folder / "sub").mkdir()
    assert len(read_arm(folder).runs) == 6
    starts = [run.started for run in read_arm(folder).runs]
    assert all(starts)


def test_runs_of_a_study_are_an_arm(made, tmp_path):
    """``runs/CELL/NUMBER/bundle`` of a study's folder; a link there leads nowhere."""
    cell = tmp_path / "ext4+mail"
    for number in ("1", "2"):
        shutil.copytree(made / "one.bundle", cell / number / "bundle")
    (cell / "3").mkdir()
    (cell / "3/bundle").symlink_to(made / "one.bundle")
    arm = read_arm(cell)
    assert (arm.name, len(arm.runs)) == ("ext4+mail", 2)


def test_names(made):
    os.rename(made / "other.bundle", made / "x=y")
    names = [arm.name for arm in read_arms([f"old={made / 'a.bundle'}", made / "b.bundle", made / "x=y"])]
    assert names == ["old", "b", "x=y"]
    shutil.copytree(made / "a.bundle", made / "sub" / "a.bundle")
    assert [arm.name for arm in read_arms([made / "a.bundle", made / "sub/a.bundle"])] == ["made/a", "sub/a"]
    with pytest.raises(OptionError, match="two arms"):
        read_arms([f"n={made / 'a.bundle'}", f"n={made / 'b.bundle'}"])
    with pytest.raises(Error, match="given twice"):
        read_arms([made / "a.bundle", made / "." / "a.bundle"])
    with pytest.raises(OptionError, match="NAME=PATH"):
        read_arms(["=x"])


def test_other_loads_are_refused_unless_accepted(made):
    with pytest.raises(Error, match=r"load: workers.0.source.size \(4096 \| 8192\)"):
        compare_bundles([made / "a.bundle", made / "other.bundle"])
    found = compare_bundles([made / "a.bundle", made / "other.bundle"], accept_differences=True)
    assert any(one.refused for one in found.differences) and "(!)" in found.text()


def test_partial_runs_are_left_out(made):
    changed(made / "a.bundle/05-run5/summary.json", partial=True)
    arm = read_arm(made / "a.bundle")
    assert len(arm.runs) == 4
    changed(made / "one.bundle/summary.json", partial=True)
    with pytest.raises(Error, match=r"no run that ended of itself.*ended early"):
        read_arm(made / "one.bundle")


def test_failed_requests_and_a_cap_are_told(made):
    changed(made / "b.bundle/summary.json", repetition={"missed": ["ops_per_s"]})
    notes = read_arm(made / "b.bundle").notes
    assert any("at their cap before ops_per_s" in note for note in notes)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda b: changed(b / "summary.json", version=99), "newer Loadstone"),
        (lambda b: changed(b / "01-run1/summary.json", version=99), "newer Loadstone"),
        (lambda b: changed(b / "bundle.json", version=99), "newer Loadstone"),
        (lambda b: changed(b / "bundle.json", runs=[{"name": "r", "path": "../a.bundle"}]), "no folder of"),
        (lambda b: changed(b / "bundle.json", kind="evaluate"), "arms of its own"),
        (lambda b: (b / "01-run1/plan.json").unlink(), "plan.json"),
        (lambda b: (b / "bundle.json").unlink(), "format"),
        (lambda b: changed(b / "summary.json", repeats=7), "damaged"),
        (lambda b: (b / "01-run1/summary.json").write_text('{"ops_per_s": NaN}'), "NaN"),
        (lambda b: changed(b / "01-run1/summary.json", ops_per_s=-4), "which no run has"),
        (lambda b: changed(b / "01-run1/plan.json", targets=5), "damaged"),
        (lambda b: changed(b / "01-run1/summary.json", started_unix_ns="soon"), "damaged"),
    ],
)
def test_damage_is_told_with_its_place(made, damage, text):
    damage(made / "b.bundle")
    with pytest.raises(Error, match=text):
        compare_bundles([made / "a.bundle", made / "b.bundle"])


def test_no_link_leads_out_of_a_bundle_or_a_folder(made):
    folder = made / "folder"
    folder.mkdir()
    (folder / "linked.bundle").symlink_to(made / "a.bundle")
    with pytest.raises(Error, match="is a link"):
        read_arm(folder)
    run = made / "b.bundle/01-run1"
    shutil.move(run, made / "elsewhere")
    run.symlink_to(made / "elsewhere")
    with pytest.raises(Error, match=r"01-run1.*damaged"):
        read_arm(made / "b.bundle")
    plan = made / "a.bundle/01-run1/plan.json"
    shutil.move(plan, made / "plan.json")
    plan.symlink_to(made / "plan.json")
    with pytest.raises(Error, match="is a link"):
        read_arm(made / "a.bundle")


def test_what_is_no_arm(made, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, text in (("empty", "holds none"), ("file", "not a folder"), ("nowhere", "does not exist")):
        with pytest.raises(Error, match=text):
            read_arm(tmp_path / name)


def test_names_give_no_orders(made):
    for name, values in (("a", "a.bundle"), ("b", "b.bundle")):
        os.rename(made / values, made / f"{name}\x1b[31m|@all<b>\u202e")
    found = compare_bundles([made / f"{name}\x1b[31m|@all<b>\u202e" for name in "ab"])
    for text in (found.text(), found.markdown(), found._repr_html_(), repr(found)):
        assert "\x1b" not in text and "\u202e" not in text
    assert "@all" not in found.markdown() and "<b>" not in found._repr_html_()


def test_an_arm_beside_itself(made):
    found = compare_itself(made / "a.bundle")
    assert [len(arm.runs) for arm in found.arms] == [2, 3]
    assert found.primary[0].floor > 0 and found.primary[0].verdict not in ("better", "worse")
    with pytest.raises(Error, match="1 runs"):
        compare_itself(made / "one.bundle")


def test_a_suite_is_compared_by_its_measurements(tmp_path):
    for name in "ab":
        job = loadstone.job("iozone", tmp_path / f"d{name}", RunOptions(size="64k", bs="4k"))
        loadstone.run(job, tmp_path / name, repeat=3)
    found = compare_bundles([tmp_path / "a", tmp_path / "b"])
    names = [one.metric.name for one in found.verdicts]
    assert len(names) > 3 and all(name.endswith("bytes_per_s") for name in names)
