"""Scripts that ask for what cannot be: told before anything is made, wherever it can be known."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FILES = "define fileset name=s,path=$dir,entries=%d,dirwidth=3%s\n"
THREAD = "define process name=p { thread name=t,instances=%d { %s } }\n"
STAT = THREAD % (1, "flowop statfile name=a,filesetname=s")


def refused(loadstone, tmp_path: Path, text: str) -> str:
    """What is said of a script that is not run, on one error line; nothing was made."""
    (tmp_path / "w.f").write_text(text)
    done = loadstone("run", tmp_path / "w.f", "--on", tmp_path / "d", status=1)
    assert not (tmp_path / "d").exists() and done.stdout == ""
    assert done.stderr.count("error: ") == 1
    return str(done.stderr)


def test_an_undefined_variable(loadstone, tmp_path):
    said = refused(loadstone, tmp_path, FILES % (9, ",size=$nothing") + STAT + "run 1")
    assert "w.f:1:59: $nothing has no value" in said and "set $nothing=..., or -D nothing=..." in said


def test_a_flowop_on_a_closed_descriptor(loadstone, tmp_path):
    flowops = (
        "flowop openfile name=o,filesetname=s,fd=1 flowop closefile name=c,fd=1 flowop fsync name=f,fd=1"
    )
    said = refused(loadstone, tmp_path, FILES % (9, ",prealloc") + THREAD % (1, flowops) + "run 1")
    assert "flowop fsync f is for slot 1, which nothing has opened at this point" in said


def test_a_file_set_larger_than_the_disk(loadstone, tmp_path):
    said = refused(loadstone, tmp_path, FILES % (9, ",size=900t,prealloc") + STAT + "run 1")
    assert 'the set "s" needs 8906044184985600 bytes, and ' in said
    assert "are free there; make fewer or smaller files" in said


def test_file_sets_that_fit_one_by_one_but_not_together(loadstone, tmp_path):
    free = os.statvfs(tmp_path)
    size = free.f_bavail * free.f_frsize * 2 // 3
    text = f"define file name=b,path=$dir,size={size},prealloc\n" + FILES % (1, f",size={size},prealloc")
    said = refused(loadstone, tmp_path, text + STAT + "run 1")
    assert 'the 2 sets "b" and so on need' in said and "are free there" in said


def test_a_script_without_a_run_is_told(loadstone, tmp_path):
    (tmp_path / "w.f").write_text(FILES % (9, "") + STAT)
    done = loadstone("run", tmp_path / "w.f", "--on", "null:", "--dry-run")
    assert "w.f has no run command; it is run for 60 s (--duration says otherwise)" in done.stderr
    assert json.loads(done.stdout)["steps"][-1]["duration_ns"] == 60 * 10**9


def test_more_threads_than_files(loadstone, tmp_path):
    # How long a file is held is not known before, so there is a warning, and the run says what was missing.
    flowops = (
        "flowop createfile name=c,filesetname=s,fd=1 flowop delay name=d,value=1 flowop closefile name=e,fd=1"
        " flowop deletefile name=f,filesetname=s"
    )
    (tmp_path / "w.f").write_text(FILES % (3, "") + THREAD % (5, flowops) + "run 9")
    done = loadstone("run", tmp_path / "w.f", "--on", tmp_path / "d", status=1)
    assert "5 threads each take a file of s, which has 3; some may find none" in done.stderr
    why = 'the op "c" found no file that it could use; give its set more entries, fewer threads'
    assert done.stdout.startswith(f"stopped early: {why}") and "(partial)" in done.stdout.splitlines()[1]
    assert f"error: stopped early, and the results are partial: {why}" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("text", ["run", "define", "flowop read name=a", "set $x=", "}{", 'echo "'])
def test_pieces_of_scripts(loadstone, tmp_path, text):
    assert "w.f" in refused(loadstone, tmp_path, text)


def test_loops_in_loops_end(loadstone, tmp_path):
    """700 bytes asked for 10^12 lines."""
    loops = "".join(f"foreach $i{at} in 1,2,3,4,5,6,7,8,9,10 {{\n" for at in range(12))
    said = refused(loadstone, tmp_path, f'{loops}echo "x"\n{"}" * 12}\n')
    assert "loops lead to more than 100,000 commands" in said
