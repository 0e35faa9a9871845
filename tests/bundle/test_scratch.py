"""Folders for a while: removed at the end, by the next one after a kill, and nobody else's ever."""

import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from loadstone import Error
from loadstone._core import MARK, AsideFile, HeldFolder, sweep_folders
from loadstone._scratch import scratch

CHILD = """
import sys, time
from loadstone._scratch import scratch
with scratch("test") as folder:
    (folder / "file").write_text("x")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep").write_text("y")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def tmp(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def left(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_it_is_removed_at_the_end_and_after_an_error(tmp):
    with scratch("test") as folder:
        (folder / "file").write_text("x")
        assert folder.parent == tmp and folder.stat().st_mode & 0o077 == 0
    with pytest.raises(ValueError), scratch("test") as folder:
        raise ValueError
    assert left(tmp) == []


def test_a_killed_ones_goes_with_the_next_and_a_living_ones_stays(tmp):
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    names = [os.path.basename(child.stdout.readline().strip()) for child in children]
    try:
        with scratch("test"):
            assert set(names) < set(left(tmp))
        children[0].kill()
        children[0].wait()
        assert left(tmp) == sorted(names)
        with scratch("other"):
            assert names[0] in left(tmp), "each purpose removes its own"
        with scratch("test"):
            pass
        assert left(tmp) == [names[1]]
    finally:
        for child in children:
            child.kill()
            child.wait()


def dead(parent, before="loadstone-test-"):
    """A folder as a killed process leaves it."""
    held = HeldFolder(parent, before)
    path = held.path
    (path / "file").write_text("x")
    held.release()
    return path


def test_only_the_very_folder_that_was_made_is_removed(tmp):
    made = dead(tmp)
    copy = tmp / "loadstone-test-0123456789abcdef0123456789abcdef"
    shutil.copytree(made, copy)
    mine = tmp / "loadstone-test-1123456789abcdef0123456789abcdef"
    mine.mkdir()
    (mine / "thesis.tex").write_text("all of it")
    renamed = tmp / "loadstone-test-2123456789abcdef0123456789abcdef"
    dead(tmp).rename(renamed)
    link = tmp / "loadstone-test-3123456789abcdef0123456789abcdef"
    aim = dead(tmp, "aim-")
    link.symlink_to(aim)
    assert sweep_folders(tmp, "loadstone-test-") == [made.name]
    assert left(tmp) == sorted([copy.name, mine.name, renamed.name, link.name, aim.name])
    assert (aim / "file").exists()


def test_without_locks_nobody_can_tell_who_lives(tmp, need_tools):
    need_tools("strace")
    dead(tmp)
    held, file = HeldFolder(tmp, "loadstone-test-"), AsideFile(tmp / "out", True)
    before = left(tmp)
    code = (
        "import sys; from loadstone._core import AsideFile, HeldFolder, sweep_folders\n"
        "assert sweep_folders(sys.argv[1], 'loadstone-test-') == []\n"
        "HeldFolder(sys.argv[1], 'loadstone-test-').remove()\n"
        "AsideFile(sys.argv[1] + '/out', True).drop()\n"
    )
    inject = ["strace", "-f", "-o", "/dev/null", "--inject=flock:error=ENOLCK"]
    done = subprocess.run([*inject, sys.executable, "-c", code, tmp], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert left(tmp) == before and held.there()
    file.keep()


def test_what_cannot_be_locked_leaves_nothing(tmp, need_tools):
    """A folder without a lock would be nobody's to remove."""
    need_tools("strace")
    code = "import sys; from loadstone._core import HeldFolder; HeldFolder(sys.argv[1], 'loadstone-test-')"
    inject = ["strace", "-f", "-o", "/dev/null", "--inject=flock:error=EIO"]
    done = subprocess.run([*inject, sys.executable, "-c", code, tmp], capture_output=True, text=True)
    assert done.returncode == 1 and "Input/output error" in done.stderr
    assert not left(tmp)


def test_links_in_it_are_removed_and_not_followed(tmp):
    (tmp / "home").mkdir()
    (tmp / "home" / "thesis.tex").write_text("all of it")
    with scratch("test") as folder:
        (folder / "folder").symlink_to(tmp / "home")
        (folder / "file").symlink_to(tmp / "home" / "thesis.tex")
    assert left(tmp) == ["home"] and (tmp / "home" / "thesis.tex").read_text() == "all of it"


@pytest.mark.root
def test_what_is_mounted_in_it_is_left_alone(tmp, need_root, need_tools):
    need_tools("mount", "umount")
    home = tmp / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("all of it")
    made = HeldFolder(tmp, "loadstone-test-")
    inside = made.path / "inside"
    inside.mkdir()
    # Of the same file system: the number of the device tells nothing.
    subprocess.run(["mount", "--bind", home, inside], check=True)
    try:
        with pytest.raises(Error, match="inside: something is mounted"):
            made.remove()
        path = made.path
        made.release()
        assert sweep_folders(tmp, "loadstone-test-") == []
        assert (home / "thesis.tex").read_text() == "all of it"
    finally:
        subprocess.run(["umount", inside], check=True)
    assert (path / MARK).exists() and sweep_folders(tmp, "loadstone-test-") == [path.name]


@pytest.mark.slow
def test_no_depth_is_too_deep(tmp):
    made = HeldFolder(tmp, "loadstone-test-")
    name = made.path.name
    at = os.open(made.path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    made.release()
    assert sweep_folders(tmp, "loadstone-test-") == [name] and left(tmp) == []


def test_where_there_is_no_room_an_error_says_so(tmp, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp / "none"))
    with pytest.raises(Error, match="set TMPDIR"), scratch("test"):
        pass
