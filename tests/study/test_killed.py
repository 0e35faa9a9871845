"""Studies whose runner is killed at any moment: no finished run is lost or repeated, and nothing stays."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.study.conftest import left_on_host

from loadstone import study
from loadstone.study.journal import Journal

KILLS = 50
FILE = '''\
name = "killed"
[repeat]
runs = 4
[systems.anew]
make = "ext4"
size = "8m"
[systems.kept]
make = "ext4"
size = "8m"
reset = "remount"
[systems.copied]
make = "ext4"
size = "8m"
reset = "image"
[systems.folder]
directory = "{folder}/on"
[workloads.load]
prepare = ["echo prepared > {{mount}}/prepared"]
command = """
test -s {{mount}}/prepared && echo {{out}} >> {folder}/log && sleep 0.0{{block}} && setsid sleep 1240 &
"""
'''


def resumed(out: Path) -> None:
    study.resume(out)
    os._exit(0)


def finished(out: Path) -> dict[tuple[str, int], float]:
    """Finished runs, and when they ended."""
    with Journal(out) as journal:
        return {(run.cell, run.block): run.ended for run in journal.runs()}


def executed(tmp_path: Path) -> Counter[str]:
    log = tmp_path / "log"
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def begun(write, tmp_path: Path, number: int) -> Path:
    """A study that ended after its first block."""
    out = tmp_path / f"s{number}"
    study.run(write(FILE.format(folder=tmp_path)), out, allow_commands=True, budget=1e-9)
    return out


@pytest.mark.slow
def test_a_runner_that_is_killed_loses_and_repeats_nothing(write, tmp_path, need_root, need_tools):
    need_tools("mkfs.ext4", "losetup")
    (tmp_path / "on").mkdir()
    chance = random.Random(48)
    kills, number, out = 0, 0, begun(write, tmp_path, 0)
    while kills < KILLS:
        before, times = finished(out), executed(tmp_path)
        child = multiprocessing.get_context("fork").Process(target=resumed, args=(out,))
        child.start()
        child.join(chance.uniform(0, 1.5))
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.join()
        after, later = finished(out), executed(tmp_path)
        assert before.items() <= after.items(), "a finished run is lost or another"
        for cell, block in before:
            name = str(out / "runs" / cell / f"{block:03}")
            assert later[name] == times[name], "a finished run is repeated"
            assert (Path(name) / "stdout").exists()
        if kills % 10 == 0:
            told = study.clean(out)
            assert told["faults"] == []
            assert left_on_host(tmp_path) == []
            assert list((tmp_path / "on").iterdir()) == []
        if study.show(out)["state"] == "finished":
            number += 1
            out = begun(write, tmp_path, number)
    told = study.resume(out, budget=3600)
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 16, 0), told
    assert sorted(finished(out)) == sorted(
        (f"{system}+load", block) for system in ("anew", "kept", "copied", "folder") for block in range(1, 5)
    )
    study.clean(out)
    assert left_on_host(tmp_path) == []
    assert list((out / "systems").iterdir()) == [] and list((tmp_path / "on").iterdir()) == []
    assert subprocess.run(["pgrep", "-f", "^sleep 1240$"]).returncode == 1
    with contextlib.closing(sqlite3.connect(out / "journal.sqlite")) as data:
        assert data.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_after_a_kill_clean_takes_back_what_the_study_made_and_nothing_else(
    write, tmp_path, need_root, need_tools, mounted
):
    need_tools("mkfs.ext4", "losetup")
    (tmp_path / "on").mkdir()
    path = write(FILE.format(folder=tmp_path).replace("sleep 0.0{block}", "sleep 60"))
    out = tmp_path / "s"

    def perform() -> None:
        study.run(path, out, allow_commands=True)

    child = multiprocessing.get_context("fork").Process(target=perform)
    child.start()
    while not (tmp_path / "log").exists():
        child.join(0.05)
        assert child.is_alive()
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    others = left_on_host(tmp_path)
    told = study.clean(out)
    assert told["faults"] == [] and told["taken"]
    # The device and mount of the test itself are somebody else's.
    assert len(left_on_host(tmp_path)) == 2 and set(left_on_host(tmp_path)) <= set(others)
    assert study.clean(out) == {"taken": [], "processes": 0, "faults": []}


STAND_IN = """\
#!/bin/sh
{tool} "$@"
status=$?
if test -e {flag}; then rm {flag}; kill -9 $PPID; sleep 1; fi
exit $status
"""


@pytest.mark.parametrize("name", ["losetup", "wipefs", "mkfs.ext4", "mount", "umount", "cp"])
def test_a_kill_right_after_something_was_made_leaves_nothing(name, write, tmp_path, need_root, need_tools):
    """A stand-in for a tool does its work and kills the runner, which cannot have noted that any more."""
    need_tools(name, "mkfs.ext4", "losetup")
    (tmp_path / "on").mkdir()
    path, out = write(FILE.format(folder=tmp_path)), tmp_path / "s"
    stand_in, flag = tmp_path / "bin" / name, tmp_path / "flag"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN.format(tool=shutil.which(name), flag=flag))
    stand_in.chmod(0o755)
    flag.touch()

    def perform() -> None:
        os.environ["PATH"] = f"{stand_in.parent}:{os.environ['PATH']}"
        study.run(path, out, allow_commands=True)

    child = multiprocessing.get_context("fork").Process(target=perform)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL and not flag.exists()
    assert study.clean(out)["faults"] == []
    assert left_on_host(tmp_path) == []
    assert list((out / "systems").iterdir()) == [] and list((tmp_path / "on").iterdir()) == []
    told = study.resume(out)
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 16, 0), told
