"""What ends and limits count, and sets of a single directory: the files of Filebench's own quick start."""

from __future__ import annotations

import pytest

from loadstone.workload import execute, plan_filebench

SETS = "define fileset name=fs1,path=$dir,entries=100,dirwidth=20,dirgamma=0,size=4k,prealloc\n"
PASS = """flowop openfile name=open1,filesetname=fs1,fd=1
flowop readwholefile name=read1,filesetname=fs1,iosize=4k,fd=1
flowop closefile name=close1,fd=1
"""


def run(tmp_path, flowops, head="set mode quit alldone\n", tail="run", sets=SETS):
    script = tmp_path / "a.f"
    thread = f"define process name=p {{ thread name=t,memsize=1m {{ {flowops} }} }}\n"
    script.write_text(f"{head}{sets}{thread}{tail}\n")
    found = plan_filebench(script, tmp_path / "on")
    return found, execute(found.plans[0])["summary"]


@pytest.mark.parametrize(
    ("flowops", "passes", "each"),
    [
        # 4 operations a pass: finishoncount is one of them.
        (PASS + "flowop finishoncount name=fin,value=1200", 300, 3),
        (PASS + "flowop finishoncount name=fin,value=1201", 301, 3),
        ("flowop statfile name=s,filesetname=fs1 flowop finishoncount name=fin,value=1200", 600, 1),
        # What only waits or works is an operation, too.
        (PASS + "flowop hog name=h,value=1 flowop finishoncount name=fin,value=1200", 240, 3),
        (PASS + "flowop opslimit name=l flowop finishoncount name=fin,value=1200", 240, 3),
        # So is another end that is not reached.
        (
            PASS + "flowop finishonbytes name=b,value=1g flowop finishoncount name=fin,value=1200",
            240,
            3,
        ),
        # A named one counts alone.
        (PASS + "flowop finishoncount name=fin,value=70,target=read1", 70, 3),
        # Bytes are those of reads and writes: the end comes once there are more.
        (PASS + "flowop finishonbytes name=fin,value=409600", 101, 3),
        (PASS + "flowop finishonbytes name=fin,value=409599", 100, 3),
    ],
)
def test_an_end_counts_every_operation_and_itself(tmp_path, flowops, passes, each):
    _, summary = run(tmp_path, flowops)
    assert summary["requests"] == passes * each


def test_a_set_without_dirwidth_is_one_directory_with_a_warning(tmp_path):
    sets = 'define fileset name="small",path=$dir,entries=500,filesize=8k,prealloc\n'
    found, summary = run(tmp_path, PASS.replace("fs1", "small"), "", "run 1", sets)
    assert [one.what for one in found.warnings] == [
        "file set small has no dirwidth, so all its files lie in one directory"
    ]
    assert summary["errors"] == 0 and summary["requests"] > 0
    files = [
        path for path in (tmp_path / "on" / "small").rglob("*") if path.is_file() and path.name[0] != "."
    ]
    assert len(files) == 500 and len({path.parent for path in files}) == 1


@pytest.mark.parametrize(
    "more", ["leafdirs=30", "entries=1", "entries=3,leafdirs=2,dirwidth=0", "entries=7,dirgamma=900"]
)
def test_all_of_it_lies_in_that_directory(tmp_path, more):
    sets = f"define fileset name=fs1,path=$dir,size=1k,{more},prealloc\n"
    flowop = "flowop listdir name=l,filesetname=fs1 flowop finishoncount name=f,value=2"
    found, _ = run(tmp_path, flowop, sets=sets)
    assert "no dirwidth" in found.warnings[0].what
    entries = [path for path in (tmp_path / "on" / "fs1").rglob("[!.]*") if path.name != "00000001"]
    assert len({path.parent for path in entries}) <= 1
