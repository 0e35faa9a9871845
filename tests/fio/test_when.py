"""When jobs begin, pause and end, where their last zone ends, and which directories are made first."""

from __future__ import annotations

import os

import pytest
from tests.fio.test_lower import lowered

from loadstone import Error
from loadstone.fio import FioError


def test_jobs_begin_pause_and_end_as_they_say(tmp_path):
    text = (
        "[global]\nsize=1m\nramp_time=1\n[a]\nruntime=5\ntime_based\nstartdelay=2s\nexitall\n"
        "[b]\nthinktime=250\nthinktime_blocks=8\n[c]\nwait_for=b\nruntime=500ms\n"
    )
    (plan,) = lowered(text, tmp_path).plans
    a, b, c = plan["workers"]
    second = 1_000_000_000
    assert a["schedule"] == {"delay_ns": 2 * second, "duration_ns": 6 * second, "ends_run": True}
    assert "schedule" not in b and b["pause"] == {"requests": 8, "ns": 250_000}
    assert c["schedule"] == {"after": ["b"], "duration_ns": 3 * second // 2}
    assert plan["steps"][-1] == {"step": "run", "duration_ns": 0, "ramp_ns": second}
    # One time for all is that of the run.
    (plan,) = lowered("[global]\nsize=1m\nruntime=5\n[a]\n[b]\n", tmp_path).plans
    assert plan["steps"][-1]["duration_ns"] == 5 * second
    assert not any("schedule" in worker for worker in plan["workers"])


def test_what_is_left_of_a_file_is_its_last_zone(tmp_path):
    text = "[a]\nsize=1m\nrw=randread\nrandom_distribution=zoned:50/5:30/15:20/\n"
    (plan,) = lowered(text, tmp_path).plans
    zones = plan["workers"][0]["source"]["skew"]["zones"]
    assert [zone["share"] for zone in zones] == [50, 30, 20]
    assert [zone["space"] for zone in zones] == pytest.approx([0.05, 0.15, 0.8])


def test_directories_are_made_before_the_first_job(tmp_path):
    text = "[global]\nsize=64k\nrw=write\n[a]\nnumjobs=3\ndirectory=x:y/z\n[b/c]\n[d]\nfilename=e/f:e/g\n"
    found = lowered(text + "file_service_type=sequential\n", tmp_path)
    names = [os.path.relpath(target["path"], tmp_path) for target in found.plans[0]["targets"]]
    assert names == ["x/a.0.0", "x/a.2.0", "y/z/a.1.0", "b/c.0.0", "e/f", "e/g"]
    assert not list(tmp_path.iterdir())
    found.begin()
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert made == ["b", "e", "x", "y", "y/z"]
    with pytest.raises(FioError, match="is a file and a directory"):
        lowered("[a]\nfilename=m\nsize=1m\n[b]\nfilename=m/n\nsize=1m\n", tmp_path)


def test_directories_are_not_made_through_links(tmp_path):
    found = lowered("[a]\nfilename=x/y/z\nsize=1m\nrw=write\n", tmp_path)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "x").symlink_to(outside)
    with pytest.raises(Error, match="cannot be made"):
        found.begin()
    assert not list(outside.iterdir())
