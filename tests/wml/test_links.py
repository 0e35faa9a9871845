"""What a script names stays below the directory of the run: no link on the way leads out."""

from __future__ import annotations

import pytest

from loadstone import Error
from loadstone.wml import Beside, Dump
from loadstone.workload import plan_filebench
from loadstone.workload.performing import _Command, performing

SCRIPT = """
define fileset name=f,path=$dir/sub,entries=3,dirwidth=3,size=4k,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }
run 1
"""


@pytest.fixture
def outside(tmp_path):
    """A directory with a file, to which ``sub`` in the directory of the run leads."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/mine").write_text("mine")
    (tmp_path / "on").mkdir()
    (tmp_path / "on/sub").symlink_to(tmp_path / "outside")
    return tmp_path / "outside"


def test_a_set_does_not_lie_behind_a_link(tmp_path, outside):
    script = tmp_path / "s.f"
    script.write_text(SCRIPT)
    with pytest.raises(Error, match=r"is a link, and f would lie behind it"):
        plan_filebench(script, tmp_path / "on")
    assert [path.name for path in outside.iterdir()] == ["mine"]
    (tmp_path / "on/sub").unlink()
    assert plan_filebench(script, tmp_path / "on").plans[0]["sets"][0]["path"] == "sub/f"


@pytest.mark.parametrize("name", ["sub/x", "sub/deeper/x", "file"])
def test_results_are_not_written_through_a_link(tmp_path, outside, name):
    on = tmp_path / "on"
    (on / "file").symlink_to(outside / "new")
    action = Dump(str(on / name), str(on))
    with pytest.raises(Error, match=r"link|is there already"):
        list(performing([action], [{"requests": 1}]))
    beside = _Command("echo x", str(on / name), str(on))
    with pytest.raises(Error, match=r"link|is there already"):
        beside.start()
    assert [path.name for path in outside.iterdir()] == ["mine"]


def test_results_are_written_below_the_directory(tmp_path):
    actions = [Dump(str(tmp_path / "new/a/x"), str(tmp_path / "new")), Beside("true", str(tmp_path / "y"))]
    list(performing(actions, [{"requests": 1}]))
    assert (tmp_path / "new/a/x").read_text().startswith("{")
