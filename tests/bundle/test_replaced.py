"""What ``--force`` replaces: a bundle that is nothing else, and the one that was there when the run began."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from outcome import PLAN, outcome

from loadstone import Error
from loadstone._core import HeldFolder
from loadstone._kept import LeftBehind
from loadstone.bundle import Bundle, Making, Series, aside, keep, write_bundle, write_series
from loadstone.errors import Kept


def write(path, force=False, seed=1):
    with aside(path, force) as folder:
        write_bundle(folder, PLAN, outcome(seed=seed)[0], {"host": "h"})


def write_runs(path, force=False):
    with aside(path, force) as folder:
        for name in ("01-a", "02-b"):
            (folder / name).mkdir()
            write_bundle(folder / name, PLAN, outcome()[0], {"host": "h"})
        (folder / "model.mdh").write_text("model")
        (folder / "more.txt").write_text("as the study says")
        runs = [{"name": name[3:], "path": name} for name in ("01-a", "02-b")]
        write_series(folder, "evaluate", runs, {"partial": False})


def everything(folder):
    return {str(p.relative_to(folder)): p.is_file() and p.read_bytes() for p in folder.rglob("*")}


def refused(path, match):
    before = everything(path)
    with pytest.raises(Error, match=match), aside(path, force=True):
        raise AssertionError("the block must not start")
    assert everything(path) == before


def test_whole_bundles_and_empty_folders_are_replaced_and_nothing_is_left(tmp_path):
    write(tmp_path / "b")
    write(tmp_path / "b", force=True, seed=2)
    write_runs(tmp_path / "s")
    write_runs(tmp_path / "s", force=True)
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "empty", "s"]
    assert Bundle.read(tmp_path / "b").ops.histogram() != Bundle.read(tmp_path / "empty").ops.histogram()
    assert len(Series.read(tmp_path / "s").bundles()) == 2
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o700
    # What was for its owner alone stays so.
    (tmp_path / "b").chmod(0o755)
    write(tmp_path / "b", force=True, seed=3)
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.root
def test_a_folder_of_another_user_in_a_shared_directory_is_not_replaced(tmp_path, need_root):
    """The bundle would be his, as it keeps the owner of what it replaces."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "b").mkdir()
    os.chown(shared / "b", 65_534, 65_534)
    with pytest.raises(Error, match="is a folder of another user in a directory that all may write to"):
        write(shared / "b", force=True)
    assert list((shared / "b").iterdir()) == []
    os.chown(shared / "b", 0, 0)
    write(shared / "b", force=True)


def test_a_bundle_is_placed_where_no_permissions_can_be_changed(tmp_path, need_tools):
    """As on vfat."""
    need_tools("strace")
    words = [sys.executable, "-m", "loadstone", "run", "randread", "--on", "null:", "--requests", "9"]
    refused = ["strace", "-f", "-qq", "-o", tmp_path / "log", "-e", "inject=fchmod:error=EPERM"]
    done = subprocess.run([*refused, *words, "--out", tmp_path / "b"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Bundle.read(tmp_path / "b").summary["requests"] == 9


@pytest.mark.parametrize(
    "summary",
    ['{"a": 1}', "no json", '{"format": "loadstone-run", "version": 1}', '{"format": "x"}', "[" * 100_000],
)
def test_a_folder_with_a_summary_of_another_program_is_none(tmp_path, summary):
    # As many programs have one.
    home = tmp_path / "home"
    home.mkdir()
    (home / "summary.json").write_text(summary)
    (home / "thesis.tex").write_text("all of it")
    refused(home, "home: is never replaced")


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize(
    "where",
    ["thesis.tex", ".git", "{run}environment/notes", "{run}environment/n.json", "{run}ops.csv", "data/x"],
)
def test_a_bundle_with_something_else_in_it_is_never_replaced(tmp_path, runs, where):
    path = tmp_path / "b"
    (write_runs if runs else write)(path)
    foreign = path / where.format(run="02-b/" if runs else "")
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text('{"my": "notes"}')
    refused(path, foreign.name if where != "data/x" else "data")


def test_what_only_has_the_name_of_a_mark_is_never_removed(tmp_path):
    write(tmp_path / "b")
    (tmp_path / "b/.loadstone").mkdir()
    (tmp_path / "b/.loadstone/thesis.tex").write_text("all of it")
    refused(tmp_path / "b", r"\.loadstone is no file")


def test_a_bundle_that_was_put_back_is_replaced_when_asked(tmp_path):
    """As a kill left it between two renames: it is there again before the run begins."""
    held = HeldFolder(tmp_path, ".b.loadstone-")
    write_bundle(held.path, PLAN, outcome()[0], {"host": "h"})
    held.path.rename(f"{held.path}.old")
    held.release()
    write(tmp_path / "b", force=True, seed=2)
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    write(tmp_path / "c", seed=2)
    assert Bundle.read(tmp_path / "b").ops.histogram() == Bundle.read(tmp_path / "c").ops.histogram()


def test_links_and_pipes_are_no_part_of_a_bundle(tmp_path):
    path = tmp_path / "b"
    for name in ("summary.json", "environment", "environment/h.json", "ops.parquet"):
        write(path)
        (path / name).rename(tmp_path / "elsewhere")
        (path / name).symlink_to(tmp_path / "elsewhere")
        refused(path, "never replaced")
        shutil.rmtree(path)
        (shutil.rmtree if name == "environment" else os.unlink)(tmp_path / "elsewhere")
    write(path)
    (path / "plan.json").unlink()
    os.mkfifo(path / "plan.json")
    with pytest.raises(Error, match=r"plan\.json is no file"), aside(path, force=True):
        pass


@pytest.mark.root
def test_what_is_mounted_in_a_bundle_is_never_emptied(tmp_path, need_root, need_tools):
    need_tools("mount", "umount")
    write(tmp_path / "b")
    mine = tmp_path / "mine"
    shutil.copytree(tmp_path / "b" / "environment", mine)
    subprocess.run(["mount", "--bind", mine, tmp_path / "b" / "environment"], check=True)
    try:
        refused(tmp_path / "b", "something is mounted on environment")
    finally:
        subprocess.run(["umount", tmp_path / "b" / "environment"], check=True)
    assert [p.name for p in mine.iterdir()] == ["h.json"]


@pytest.mark.parametrize("force", [False, True])
def test_what_appears_during_a_run_stays_and_the_results_go_beside(tmp_path, force):
    path = tmp_path / "b"
    told = pytest.raises(Kept, match=r"b: appeared during the run .* results are in .*b\.2")
    with told as kept, aside(path, force) as folder:
        write_bundle(folder, PLAN, outcome()[0], {"host": "h"})
        path.mkdir()
        (path / "thesis.tex").write_text("all of it")
    assert (path / "thesis.tex").read_text() == "all of it"
    assert kept.value.bundle == tmp_path / "b.2" and Bundle.read(tmp_path / "b.2")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "b.2"]


@pytest.mark.parametrize("what", ["folder", "file", "link", "added"])
def test_force_replaces_only_the_bundle_that_was_there_at_the_start(tmp_path, what):
    path = tmp_path / "b"
    write(path)
    with pytest.raises(Kept, match=r"results are in .*b\.2"), aside(path, force=True) as folder:
        write_bundle(folder, PLAN, outcome()[0], {"host": "h"})
        if what == "added":
            (path / "notes.txt").write_text("mine")
        else:
            path.rename(tmp_path / "old")
        if what == "folder":
            write(path, seed=3)
        elif what == "file":
            path.write_text("mine")
        elif what == "link":
            path.symlink_to("old")
    if what == "folder":
        assert Bundle.read(path).ops.histogram() != Bundle.read(tmp_path / "b.2").ops.histogram()
    elif what == "added":
        assert (path / "notes.txt").read_text() == "mine" and Bundle.read(path)
    assert Bundle.read(tmp_path / "b.2")
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert not list(tmp_path.glob("*/.loadstone"))


CHILD = """
import sys
import time
sys.path.insert(0, {here!r})
from pathlib import Path
from test_replaced import write
write(Path({path!r}), force=True, seed=2)
"""


@pytest.mark.parametrize("error", ["EINVAL", "EIO", "between"])
def test_a_failing_rename_loses_neither_bundle(tmp_path, need_tools, error):
    """Where the file system cannot exchange folders (EINVAL), and where renaming fails."""
    need_tools("strace")
    path = tmp_path / "b"
    write(path)
    before = Bundle.read(path).ops.histogram()
    code = CHILD.format(here=os.path.dirname(__file__), path=str(path))
    between = "renameat2:error=EINVAL,renameat:error=EIO:when=2"
    faults = between.split(",") if error == "between" else [f"renameat2:error={error}"]
    inject = ["strace", "-f", "-o", "/dev/null", *(f"--inject={fault}" for fault in faults)]
    done = subprocess.run([*inject, sys.executable, "-c", code], capture_output=True, text=True)
    found = {p.name: Bundle.read(p).ops.histogram() for p in tmp_path.iterdir()}
    if error == "EINVAL":
        assert done.returncode == 0, done.stderr
        assert list(found) == ["b"] and found["b"] != before
    else:
        assert found["b"] == before, "the old one is there"
        assert sorted(found) == (["b", "b.2"] if error == "between" else ["b"])


def test_an_unwritable_name_is_told_before_anything_is_run(tmp_path):
    with pytest.raises(Error, match=r"the folder .* does not exist"), Making(tmp_path / "no" / "b"):
        raise AssertionError("the block must not start")


def test_several_runs_list_the_files_that_are_theirs(tmp_path):
    write_runs(tmp_path / "s")
    assert json.loads((tmp_path / "s/bundle.json").read_text())["files"] == ["model.mdh", "more.txt"]


def test_whoever_renames_folders_on_the_way_sends_nothing_elsewhere(tmp_path):
    """As a user can whose folder root writes to: the hidden folder is a link to theirs when it is written."""
    there, aim = tmp_path / "there", tmp_path / "aim"
    there.mkdir()
    aim.mkdir()
    told = pytest.raises(Kept, match=r"its folder was moved during the run, .* results are in .*moved/b")
    with told as kept, aside(there / "b") as folder:
        (name,) = os.listdir(there)
        there.rename(tmp_path / "moved")
        there.mkdir()
        (there / name).symlink_to(aim)
        write_bundle(folder, PLAN, outcome()[0], {"host": "h"})
    assert list(aim.iterdir()) == [] and os.listdir(there) == [name]
    assert kept.value.bundle == tmp_path / "moved" / "b" and Bundle.read(kept.value.bundle)


def test_a_folder_that_is_gone_loses_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    there = tmp_path / "there"
    there.mkdir()
    with Making(there / "b") as making:
        shutil.rmtree(there)

        def write(folder):
            write_bundle(folder, PLAN, outcome()[0], {"host": "h"})

        with pytest.raises(Kept, match="cannot be written") as kept:
            keep(making, write, {"requests": 5})
    assert kept.value.summary == {"requests": 5}
    assert kept.value.bundle == tmp_path / "b" and Bundle.read(tmp_path / "b")


def test_what_a_killed_run_had_finished_is_kept(tmp_path):
    """Runs of a study that was killed, and what somebody else put beside them."""
    code = (
        "import os, sys; from pathlib import Path\nfrom loadstone.bundle import Making\n"
        "sys.path.insert(0, sys.argv[2])\nfrom test_replaced import write\n"
        "with Making(Path(sys.argv[1]), True) as making:\n"
        "    if sys.argv[3] == 'run': write(making.folder / '01-a')\n"
        "    if sys.argv[3] == 'note': (making.folder / 'note').write_text('mine')\n"
        "    if sys.argv[3] == 'begun': (making.folder / '.reserve').write_text('')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    for number, what in enumerate(("begun", "run", "note")):
        here = str(Path(__file__).parent)
        subprocess.run([sys.executable, "-c", code, tmp_path / "b", here, what], check=False)
        assert len([p for p in tmp_path.iterdir() if p.name.startswith(".b.loadstone-")]) == 1
        with pytest.warns(LeftBehind, match="b.unfinished") if number else nullcontext():
            write(tmp_path / "b", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "b.unfinished", "b.unfinished.2"]
    assert Bundle.read(tmp_path / "b.unfinished/01-a").summary["requests"] > 0
    assert (tmp_path / "b.unfinished.2/note").read_text() == "mine"


def ended(path, *, force=False, number=None):
    """A run with ``--out``; ended by a signal while its target is filled."""
    words = [sys.executable, "-m", "loadstone", "run", "randrw", "--requests", "99", "--out", path, "--yes"]
    words += ["--on", path.with_name("t"), "--size", "4g"] if number else ["--on", "null:"]
    words += ["--force"] if force else []
    child = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if number:
        while not path.with_name("t").exists() and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(number)
    _, told = child.communicate(timeout=60)
    return child.returncode, told


@pytest.mark.slow
def test_a_run_that_is_ended_early_replaces_no_whole_one(tmp_path):
    out, beside = tmp_path / "b", tmp_path / "b.2"
    assert ended(out)[0] == 0
    before = everything(out)
    status, told = ended(out, force=True, number=signal.SIGTERM)
    assert status == 143 and f"the results are in {beside}" in told, told
    assert everything(out) == before and Bundle.read(beside).partial
    # Nor one that is partial itself, which may have more; a whole one replaces any.
    (tmp_path / "t").unlink(missing_ok=True)
    before = everything(beside)
    assert ended(beside, force=True, number=signal.SIGTERM)[0] == 143
    assert everything(beside) == before
    assert ended(beside, force=True)[0] == ended(out, force=True)[0] == 0
    assert not Bundle.read(out).partial and not Bundle.read(beside).partial
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "t") == ["b", "b.2", "b.2.2"]


@pytest.mark.parametrize("what", ["model", "plan", "evaluate"])
def test_a_bundle_that_holds_what_a_run_is_made_from_is_not_replaced(tmp_path, loadstone, root, what):
    out = tmp_path / "b"
    write_runs(out)
    if what == "plan":
        loadstone(
            "run", "randread", "--on", "null:", "--size", "1m", "--requests", 9, "--out", tmp_path / "p"
        )
        words = ("run", tmp_path / "p/plan.json", "--out", tmp_path / "p", "--force")
        out = tmp_path / "p"
    else:
        loadstone("model", "fit", root / "examples/loop0.parquet", "-o", out / "model.mdh", "--force")
        words = ("run", out / "model.mdh", "--on", "null:", "--out", out, "--force")
        if what == "evaluate":
            words = ("evaluate", root / "examples/loop0.parquet", "--model", out / "model.mdh", *words[2:])
    before = everything(out)
    done = loadstone(*words, status=1)
    assert "which the run is made from; give another name with --out" in done.stderr
    assert everything(out) == before


@pytest.mark.root
def test_a_bundle_that_cannot_be_replaced_is_as_it_was(tmp_path, need_root):
    """As the lower layer of an overlay: the directory cannot be renamed there."""
    low, up, work, at = (tmp_path / name for name in ("low", "up", "work", "at"))
    for folder in (low, up, work, at):
        folder.mkdir()
    write(low / "b")
    layers = f"lowerdir={low},upperdir={up},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "none", "-o", layers, at], check=True)
    try:
        before = everything(at / "b")
        with pytest.raises(Kept, match="cannot be replaced any more"):
            write(at / "b", force=True, seed=2)
        assert everything(at / "b") == before and Bundle.read(at / "b.2")
    finally:
        subprocess.run(["umount", at], check=True)


def test_a_list_whose_name_was_taken_is_not_called_interrupted(tmp_path, loadstone):
    out, jobs = tmp_path / "b", tmp_path / "j.fio"
    jobs.write_text("[global]\nsize=1m\nrw=randread\ntime_based\nruntime=1\n[a]\n[b]\nstonewall\n")
    words = [sys.executable, "-m", "loadstone", "run", jobs, "--on", "null:", "--out", out, "--json"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob(".b.loadstone-*")):
        time.sleep(0.01)
    out.mkdir()
    shown, told = child.communicate(timeout=60)
    assert child.returncode == 1 and f"the results are in {out}.2" in told
    assert json.loads(shown)["partial"] is False


def test_what_is_left_of_a_replaced_bundle_is_told(tmp_path, need_tools):
    """Its files cannot be removed; it stayed under a hidden name without a word."""
    need_tools("strace")
    path = tmp_path / "b"
    write(path)
    code = CHILD.format(here=os.path.dirname(__file__), path=str(path))
    inject = ["strace", "-f", "-o", "/dev/null", "--inject=unlinkat:error=EIO"]
    done = subprocess.run([*inject, sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (left,) = (one for one in os.listdir(tmp_path) if one != "b")
    assert f"{tmp_path / left}: is left of the bundle that was replaced" in done.stderr
