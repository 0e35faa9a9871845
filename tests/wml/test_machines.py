"""Virtual machines: lowered, and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loadstone
from loadstone import wml, workload
from loadstone.plan import RunOptions, check

SCRIPT = """HYPERVISOR name=h {
  VM name=db,dsize=1m,instances=3 {
    flowop read name=r,iosize=4k,random
    flowop write name=w,iosize=8k,random,dsync
    flowop fsync name=s
  }
  VM name=web,dsize=512k { thread name=t,instances=2 { flowop read name=r,iosize=64k } }
}
run 1
"""


def lowered(text: str = SCRIPT, on: str = "/run/here", **more: Any) -> wml.Interpretation:
    return wml.interpret(wml.parse(text, "w.f"), wml.Settings(on, RunOptions(**more)))


def test_each_instance_has_a_disk_and_a_group():
    (plan,) = lowered().plans
    disks = [(one["path"], one["size"], one["entries"], one["present"]) for one in plan["sets"]]
    assert disks == [*((f"h/db-{n}", 1 << 20, 1, 1.0) for n in (1, 2, 3)), ("h/web-1", 512 << 10, 1, 1.0)]
    groups = [(one["group"], one["depth"]) for one in plan["workers"]]
    assert groups == [("h/db-1", 1), ("h/db-2", 1), ("h/db-3", 1), ("h/web-1", 2)]
    read, write, sync = plan["workers"][1]["source"]["ops"]
    # Past the page cache, and a descriptor for each way of opening.
    wanted = {"name": "db.r", "act": "read", "size": 4096, "random": True, "direct": True}
    assert read == wanted | {"set": "h/db-2", "slot": 1}
    assert (write["slot"], write["direct"], write["sync"], write["set"]) == (2, True, True, "h/db-2")
    assert (sync["act"], sync["slot"]) == ("sync", 2)
    # Both kinds read, and are told apart.
    assert plan["workers"][3]["source"]["ops"][0]["name"] == "web.r"


def test_machines_beside_processes():
    text = (
        "define fileset name=fs,path=$dir,entries=9,dirwidth=3\n"
        "define process name=p { thread name=t { flowop statfile name=a,filesetname=fs } }\n"
        "HYPERVISOR name=h { VM name=v,dsize=1g { flowop read name=r,iosize=4k,directio=false\n"
        "  flowop statfile name=b,filesetname=fs } }\nrun 1 run 1"
    )
    first, second = lowered(text).plans
    assert [one["group"] for one in first["workers"]] == ["p", "h/v-1"]
    ops = first["workers"][1]["source"]["ops"]
    assert [op["set"] for op in ops] == ["h/v-1", "fs"] and "direct" not in ops[0]
    # A later run finds the disks again.
    assert [one.get("reuse", False) for one in first["sets"]] == [False, False]
    assert [one["reuse"] for one in second["sets"]] == [True, True]


def test_machines_are_run(tmp_path):
    (plan,) = lowered(on=str(tmp_path / "d"), interval=0.5).plans
    outcome = workload.execute(check(plan))
    assert outcome["summary"]["failure"] is None
    ops = outcome["ops"]
    if (np.asarray(ops["errno"]) == 22).any():
        pytest.skip("this file system knows no direct I/O")
    assert outcome["summary"]["errors"] + outcome["summary"]["short"] == 0
    assert set(np.asarray(ops["worker"])) == {0, 1, 2, 3}
    files = sorted(path for path in (tmp_path / "d").rglob("0*") if path.is_file())
    assert [path.relative_to(tmp_path / "d").parts[:2] for path in files] == [
        ("h", "db-1"),
        ("h", "db-2"),
        ("h", "db-3"),
        ("h", "web-1"),
    ]
    assert [path.stat().st_size for path in files] == [1 << 20] * 3 + [512 << 10]


FAULTS = [
    ("dsize=1m,instances=3", "instances=3", "VM db needs dsize= above 0"),
    ("instances=3", "instances=20000", "there are more than 10,000 virtual machines"),
    ("name=web", "name=db", "there is already a VM h/db-1"),
    ("name=db", 'name="a/b"', "a/b is no name of a directory, which a disk image needs"),
    ("name=db", 'name=".."', ".. is no name of a directory, which a disk image needs"),
    (
        "flowop fsync name=s",
        "flowop createfile name=s",
        "flowop createfile is not for the disk image of VM db",
    ),
    (
        "flowop fsync name=s",
        "flowop appendfile name=s,iosize=1",
        "flowop appendfile is not for the disk image of VM db",
    ),
    (
        "HYPERVISOR",
        "define file name=h,path=$dir\nHYPERVISOR",
        "h/db-1 is the tree of, or around, that of h, which is defined in line 1",
    ),
]


@pytest.mark.parametrize(("old", "new", "what"), FAULTS, ids=[what for *_, what in FAULTS])
def test_faults(old, new, what):
    with pytest.raises(loadstone.Error) as caught:
        lowered(SCRIPT.replace(old, new, 1))
    assert isinstance(caught.value, wml.WmlError) and caught.value.what == what
