"""Runs of scripts lowered to plans: what of a script is where in its plan."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import loadstone
from loadstone import wml
from loadstone.plan import RunOptions

ROOT = "/run/here"
FILES = "define fileset name=fs,path=$dir,entries=100,dirwidth=10,size=8k,prealloc\n"
LOOP = "define process name=p { thread name=t { flowop %s } }\nrun 5"


def lowered(text: str, on: str = ROOT, **more: Any) -> wml.Interpretation:
    return wml.interpret(wml.parse(text, "w.f"), wml.Settings(on, RunOptions(**more)))


def plan(text: str, on: str = ROOT, **more: Any) -> dict[str, Any]:
    plans = lowered(text, on, **more).plans
    assert len(plans) == 1
    return plans[0]


def ops(text: str, files: str = FILES, **more: Any) -> list[dict[str, Any]]:
    return plan(files + LOOP % text, **more)["workers"][0]["source"]["ops"]


def files(attributes: str, before: str = "", **more: Any) -> dict[str, Any]:
    script = f"{before}\ndefine fileset name=fs,path=$dir,dirwidth=10,{attributes}\n"
    return plan(script + LOOP % "statfile name=s,filesetname=fs", **more)


def test_a_whole_plan():
    text = """
        set $n=3
        set $size=cvar(type=normal,parameters=mean:100;sigma:2)
        define fileset name=fs,path=$dir/a,entries=100,dirwidth=10,size=$size,prealloc=80,reuse
        define process name=filereader,instances=2 {
          thread name=t,instances=$n,memsize=1m {
            flowop openfile name=open,filesetname=fs,fd=1
            flowop readwholefile name=read,fd=1,iosize=1m
            flowop closefile name=close,fd=1
            flowop opslimit name=limit
          }
        }
        eventgen rate=50
        set mode quit firstdone
        run 30
    """
    assert plan(text, seed=7, interval=0.5, cpus=[1, 2]) == {
        "version": 1,
        "seed": 7,
        "interval_ns": 500_000_000,
        "targets": [{"id": "t0", "kind": "tree", "path": ROOT, "allow_destroy": False}],
        "sets": [
            {
                "id": "fs",
                "target": "t0",
                "path": "a/fs",
                "entries": 100,
                "size": {"variable": "size"},
                "width": 10,
                "shape": 1.5,
                "present": 0.8,
                "reuse": True,
            }
        ],
        "variables": [{"id": "size", "law": {"kind": "normal", "mean": 100, "sigma": 2}, "min": 0}],
        "events_per_s": 50,
        "workers": [
            {
                "group": "filereader",
                "source": {
                    "kind": "program",
                    "ops": [
                        {"name": "open", "act": "open", "set": "fs", "slot": 1},
                        {"name": "read", "act": "read_whole", "set": "fs", "slot": 1, "size": 1 << 20},
                        {"name": "close", "act": "close", "slot": 1},
                        {"name": "limit", "act": "ops_limit"},
                    ],
                    "memory": 1 << 20,
                },
                "backend": "posix",
                "depth": 6,
                "cpus": [1, 2],
            }
        ],
        "steps": [
            {"step": "prepare"},
            {"step": "run", "duration_ns": 30_000_000_000, "until": "first_done"},
        ],
    }


def test_null_performs_nothing_and_takes_any_path():
    found = plan(FILES.replace("$dir", "/mnt/x") + LOOP % "statfile name=s,filesetname=fs", on="null:")
    assert found["targets"] == [{"id": "t0", "kind": "null", "size": 1 << 40}]
    assert found["workers"][0]["backend"] == "null"
    assert found["sets"][0]["path"] == "mnt/x/fs"


OPS = [
    ("read name=o,filesetname=fs,iosize=8k,random", {"act": "read", "size": 8192, "random": True}),
    ("write name=o,filesetname=fs,iosize=1,dsync", {"act": "write", "size": 1, "sync": True}),
    ("read name=o,filesetname=fs,iosize=1,directio=1", {"act": "read", "size": 1, "direct": True}),
    ("read name=o,filesetname=fs,iosize=1,workingset=1m", {"act": "read", "size": 1, "working_set": 1 << 20}),
    ("read name=o,filesetname=fs,iosize=1,opennext", {"act": "read", "size": 1, "next": True}),
    ("read name=o,filesetname=fs,iosize=1,noreadahead", {"act": "read", "size": 1, "no_readahead": True}),
    ("read name=o,filesetname=fs,iosize=1,indexed=3", {"act": "read", "size": 1, "index": 3}),
    ("read name=o,filesetname=fs,iosize=1,iters=4", {"act": "read", "size": 1, "times": 4}),
    ("readwholefile name=o,filesetname=fs", {"act": "read_whole"}),
    ("writewholefile name=o,filesetname=fs,fd=2,srcfd=1", {"act": "write_whole", "slot": 2, "other_slot": 1}),
    ("appendfile name=o,filesetname=fs,iosize=1", {"act": "append", "size": 1}),
    ("appendfilerand name=o,filesetname=fs,iosize=1", {"act": "append_random", "size": 1}),
    ("deletefile name=o,filesetname=fs", {"act": "remove"}),
    ("statfile name=o,filesetname=fs", {"act": "stat"}),
    ("fsyncset name=o,filesetname=fs", {"act": "sync_set"}),
    ("makedir name=o,filesetname=fs", {"act": "mkdir"}),
    ("removedir name=o,filesetname=fs", {"act": "rmdir"}),
    ("listdir name=o,filesetname=fs", {"act": "readdir"}),
    ("readdirplus name=o,filesetname=fs", {"act": "readdirplus"}),
    ("rename name=o,filesetname=fs", {"act": "rename"}),
    ("link name=o,filesetname=fs", {"act": "link"}),
    ("symlink name=o,filesetname=fs", {"act": "symlink"}),
    ("readlink name=o,filesetname=fs", {"act": "readlink"}),
    ("access name=o,filesetname=fs,value=4", {"act": "access", "value": 4}),
    ("truncate name=o,filesetname=fs,value=1k", {"act": "truncate", "size": 1024}),
    ("fallocate name=o,filesetname=fs,iosize=1m", {"act": "fallocate", "size": 1 << 20}),
    ("setxattr name=o,filesetname=fs,iosize=64,value=1", {"act": "setxattr", "size": 64, "value": 1}),
    ("getxattr name=o,filesetname=fs,iosize=64,value=1", {"act": "getxattr", "size": 64, "value": 1}),
    ("hog name=o,value=50", {"act": "hog", "value": 50}),
    ("delay name=o,value=.25", {"act": "delay", "value": 0.25}),
    ("eventlimit name=o", {"act": "event_limit"}),
    ("iopslimit name=o", {"act": "iops_limit"}),
    ("bwlimit name=o", {"act": "bandwidth_limit"}),
    ("finishoncount name=o,value=9", {"act": "finish_on_count", "value": 9}),
    ("finishonbytes name=o,value=1m", {"act": "finish_on_bytes", "value": 1 << 20}),
    ("block name=o", {"act": "block"}),
    ("semblock name=o,value=9,highwater=3", {"act": "sem_block", "value": 9, "high_water": 3}),
]


@pytest.mark.parametrize(("text", "wanted"), OPS, ids=[text.split()[0] for text, _ in OPS])
def test_flowops(text, wanted):
    found = ops(text)[0]
    named = {"set": "fs"} if "filesetname" in text else {}
    assert found == {"name": "o", **named, **wanted}


def test_flowops_of_slots():
    text = """openfile name=a,filesetname=fs,fd=1 flowop createfile name=b,filesetname=fs,fd=2
        flowop copyfilerange name=c,srcfd=1,fd=2,iosize=4k flowop fsync name=d,fd=2
        flowop fdatasync name=e,fd=2 flowop closefile name=f,fd=1 flowop closefile name=g,fd=2"""
    acts = ["open", "create", "copy_range", "sync", "datasync", "close", "close"]
    assert [op["act"] for op in ops(text)] == acts
    assert ops(text)[2] == {
        "name": "c", "act": "copy_range", "set": "fs", "slot": 2, "other_slot": 1, "size": 4096
    }  # fmt: skip


def test_posts_and_wakeups():
    text = """block name=w flowop semblock name=s,value=2 flowop wakeup name=x,target=w
        flowop sempost name=y,target=s,value=1,blocking"""
    assert ops(text)[2:] == [
        {"name": "x", "act": "wakeup", "target": "w"},
        {"name": "y", "act": "sem_post", "target": "s", "value": 1, "blocking": True, "high_water": 1},
    ]


SETS = [
    ("entries=5", {"entries": 5, "size": 1024, "shape": 1.5, "width": 10}),
    ("entries=5,size=2k,dirgamma=0", {"size": 2048, "shape": 0}),
    ("entries=5,dirgamma=500", {"shape": 0.5}),
    ("entries=5,prealloc", {"present": 1}),
    ("entries=5,prealloc=true", {"present": 1}),
    ("entries=5,prealloc=75", {"present": 0.75}),
    ("entries=5,prealloc=12.5", {"present": 0.125}),
    ("entries=0,leafdirs=7", {"entries": 0, "leaf_directories": 7}),
    ("entries=5,reuse", {"reuse": True}),
    ("entries=5,trusttree", {"reuse": True}),
    ("entries=5,size=4k,cached=false,filesizegamma=0", {"uncached": True, "size": 4096}),
]


@pytest.mark.parametrize(("attributes", "wanted"), SETS, ids=[text for text, _ in SETS])
def test_file_sets(attributes, wanted):
    found = files(attributes)["sets"][0]
    assert {key: found.get(key) for key in wanted} == wanted


def test_no_more_than_was_asked_for():
    found = files("entries=5,prealloc=false,reuse=false,cached=true,filesizegamma=0", compat="1.5")["sets"][0]
    assert not {"present", "reuse", "uncached", "leaf_directories", "depth"} & found.keys()


def test_one_file_is_a_set_of_one():
    text = "define file name=f,path=$dir,size=1g,prealloc\n" + LOOP % "read name=o,filename=f,iosize=1k"
    assert plan(text)["sets"] == [
        {"id": "f", "target": "t0", "path": "f", "entries": 1, "size": 1 << 30, "width": 1, "shape": 0}
        | {"present": 1.0}
    ]


def test_sizes_of_1_4_are_drawn():
    gamma = {"kind": "gamma", "shape": 1.5, "scale": 8192 / 1.5}
    found = files("entries=5,size=8k", compat="1.4")
    assert found["sets"][0]["size"] == {"variable": "fs.size"}
    assert found["variables"] == [{"id": "fs.size", "law": gamma}]
    assert files("entries=5,size=8k,cached=true")["variables"][0]["law"] == gamma
    assert files("entries=5,size=8k,filesizegamma=500")["variables"][0]["law"]["shape"] == 0.5
    assert files("entries=5,size=8k")["sets"][0]["size"] == 8192
    assert files("entries=5,size=8k,cached=true", compat="1.5")["sets"][0]["size"] == 8192
    assert files("entries=5", compat="1.4")["sets"][0]["size"] == 0
    drawn = "define randvar name=$s,type=uniform,min=1,mean=3"
    assert files("entries=5,size=$s", drawn)["sets"][0]["size"] == {"variable": "s"}


def test_indexed_is_in_halves_of_the_set_in_1_4():
    text = FILES + LOOP % "read name=o,filesetname=fs,iosize=1,indexed=$i"
    old = "define randvar name=$i,type=gamma,min=0,gamma=100\n"
    assert plan(old + text)["variables"][-1]["law"] == {"kind": "gamma", "shape": 0.1, "scale": 50.0}
    new = "set $i=randvar(type=gamma,min=0,gamma=100)\n"
    assert plan(new + text)["variables"][-1]["law"] == {"kind": "gamma", "shape": 0.1, "scale": 1.0}
    assert plan(new + text, compat="1.4")["variables"][-1]["law"]["scale"] == 50
    assert ops("read name=o,filesetname=fs,iosize=1,indexed=1", compat="1.4")[0]["index"] == 50


SPREAD = (
    "flowops without fd= name several file sets in a thread: each set has a descriptor of its own; "
    "in Filebench all of them use the file that the first one opens"
)


def slots(text: str) -> tuple[list[int], list[str]]:
    """Slots of the flowops of a thread that has sets fs, gs and hs, and what is warned of."""
    more = "".join(f"define file name={name},path=$dir,size=1m,prealloc\n" for name in ("gs", "hs"))
    found = lowered(FILES + more + LOOP % text)
    (worker,) = found.plans[0]["workers"]
    return [op.get("slot", 0) for op in worker["source"]["ops"]], [one.what for one in found.warnings]


def test_sets_without_fd_have_a_descriptor_each():
    flowop = " flowop {} name={},filesetname={},iosize=4k{}"
    three = "read name=a,filesetname=fs,iosize=4k"
    three += flowop.format("write", "b", "gs", "") + flowop.format("aiowrite", "c", "hs", ",random")
    assert slots(three) == ([0, 1, 2], [SPREAD])
    again = three + flowop.format("read", "d", "gs", "") + flowop.format("read", "e", "fs", "")
    assert slots(again) == ([0, 1, 2, 1, 0], [SPREAD])
    # A flowop that flushes goes with the set that it names, wherever it stands.
    flushes = f"{three} flowop fsync name=d,filesetname=gs flowop fsync name=e,filesetname=fs"
    assert slots(flushes) == ([0, 1, 2, 1, 0], [SPREAD])
    # Descriptors that the script numbers stay its own.
    numbered = "read name=a,filesetname=fs,iosize=4k,fd=2" + flowop.format("read", "b", "gs", "")
    assert slots(numbered + flowop.format("read", "c", "hs", "")) == ([2, 0, 3], [SPREAD])
    one = "read name=a,filesetname=fs,iosize=4k" + flowop.format("read", "b", "fs", "")
    assert slots(one) == ([0, 0], [])


def test_a_working_set_beyond_the_file_is_told():
    def told(attributes: str, size: str = "1m") -> list[str]:
        text = f"define file name=gs,path=$dir,size={size},prealloc\n"
        text += LOOP % f"read name=a,filesetname=gs,iosize=4k,{attributes}"
        return [one.what for one in lowered(text).warnings]

    said = (
        "workingset reaches beyond the end of files: random reads there find nothing and are counted as "
        "short, random writes make the files longer"
    )
    assert told("random,workingset=2m") == [said]
    assert told("random,workingset=1m") == told("workingset=2m") == told("random") == []


def test_depths_are_about_what_follows_from_the_width():
    before = "set $d=randvar(type=uniform,min=1,mean=40)"
    found = files("entries=1000,dirdepthrv=$d", before)
    assert found["sets"][0]["depth"] == {"variable": "d"}
    high = 2 * math.log(1000) / math.log(10) - 1
    assert found["variables"] == [
        {"id": "d", "law": {"kind": "uniform", "low": 1, "high": pytest.approx(high)}}
    ]


def test_what_filebench_draws_once_is_its_mean():
    found = lowered(
        "set $n=randvar(type=uniform,min=10,mean=30)\n"
        "define fileset name=fs,path=$dir,entries=$n,dirwidth=$n\n" + LOOP % "statfile name=o,filesetname=fs"
    )
    assert found.plans[0]["sets"][0]["entries"] == found.plans[0]["sets"][0]["width"] == 30
    assert [one.what for one in found.warnings] == [
        "entries is not drawn: the mean of $n is taken",
        "dirwidth is not drawn: the mean of $n is taken",
    ]


def test_values_are_those_at_the_time_of_the_run():
    text = """
        define fileset name=fs,path=$dir,entries=$n,dirwidth=10
        define process name=p,instances=$n { thread name=t { flowop read name=r,filesetname=fs,iosize=$io } }
        set $n=4
        set $io=2k
        run $time
        set $n=6
        set $time=9
        run $time
    """
    found = lowered("set $time=3\n" + text).plans
    assert [p["sets"][0]["entries"] for p in found] == [4, 6]
    assert [p["workers"][0]["depth"] for p in found] == [4, 6]
    assert [p["steps"][1]["duration_ns"] for p in found] == [3_000_000_000, 9_000_000_000]


def test_arithmetic_is_that_of_whole_numbers():
    text = "set $a=7\nset $b=$a/2\nset $c = ($a + 1) * 3 - 10/4\nset $d=0-$a/2\nset $e=1.0\nset $f=$e/4\n"
    said = lowered(text + 'echo "$b $c $d $f"\n' + FILES + LOOP % "statfile name=o,filesetname=fs")
    assert said.actions[0] == wml.Print("3 22 -3 0.25")


def test_variables_of_the_user_stand_above_the_script(monkeypatch):
    monkeypatch.setenv("COUNT", "8")
    text = (
        """set $n=4
        set $n=$m*2
        set $k=$(COUNT)
        define fileset name=fs,path=$dir,entries=$n,dirwidth=$k
        """
        + LOOP % "statfile name=o,filesetname=fs"
    )
    found = plan("set $m=50\n" + text)["sets"][0]
    assert (found["entries"], found["width"]) == (100, 8)
    found = plan("set $m=50\n" + text, variables={"n": "2k", "k": "3"})["sets"][0]
    assert (found["entries"], found["width"]) == (2048, 3)


PATHS = [
    ("$dir", {}, "fs"),
    ("$dir/sub", {}, "sub/fs"),
    ('"$dir/a/../b"', {}, "b/fs"),
    (f"{ROOT}/x", {}, "x/fs"),
    ("/mnt/x", {"rebase": True}, "mnt/x/fs"),
    (f"{ROOT}/x", {"rebase": True}, "x/fs"),
    ("../../x", {"rebase": True}, "x/fs"),
    ("$dir", {"variables": {"dir": f"{ROOT}/deep"}}, "deep/fs"),
]


@pytest.mark.parametrize(("path", "more", "wanted"), PATHS)
def test_paths(path, more, wanted):
    text = f"set $dir=/elsewhere\ndefine fileset name=fs,path={path},entries=1,dirwidth=2\n"
    assert plan(text + LOOP % "statfile name=o,filesetname=fs", **more)["sets"][0]["path"] == wanted


COMPOSITE = """
    define fileset name=a,path=$dir,entries=50,dirwidth=10,prealloc
    define fileset name=b,path=$dir,entries=50,dirwidth=10
    set $size=1m
    define flowop name=copy, $from, $to=b, $size=16k {
      flowop openfile name=src,filesetname=$from,fd=1
      flowop createfile name=dst,filesetname=$to,fd=2
      flowop readwholefile name=load,fd=1,iosize=$size
      flowop closefile name=c1,fd=1
      flowop closefile name=c2,fd=2
    }
    define flowop name=twice, iters=2, $what { flowop copy name=inner, $from=$what }
    define process name=p { thread name=t { %s } }
    run 1
"""


def test_composite_flowops_are_groups():
    found = plan(COMPOSITE % "flowop copy name=x,$from=a,$size=2k,iters=3")["workers"][0]["source"]["ops"]
    assert found == [
        {
            "name": "x",
            "act": "group",
            "times": 3,
            "ops": [
                {"name": "x.src", "act": "open", "set": "a", "slot": 1},
                {"name": "x.dst", "act": "create", "set": "b", "slot": 2},
                {"name": "x.load", "act": "read_whole", "set": "a", "slot": 1, "size": 2048},
                {"name": "x.c1", "act": "close", "slot": 1},
                {"name": "x.c2", "act": "close", "slot": 2},
            ],
        }
    ]


def test_composite_flowops_in_composite_flowops():
    (outer,) = plan(COMPOSITE % "flowop twice name=y,$what=b")["workers"][0]["source"]["ops"]
    assert (outer["name"], outer["times"]) == ("y", 2)
    (inner,) = outer["ops"]
    assert "times" not in inner
    assert [(op["name"], op.get("size")) for op in inner["ops"]][:3] == [
        ("y.inner.src", None),
        ("y.inner.dst", None),
        # The default of the flowop stands before the variable of the script.
        ("y.inner.load", 16384),
    ]
    assert inner["ops"][0]["set"] == "b"


def test_iters_of_a_call_stand_above_those_of_the_definition():
    (outer,) = plan(COMPOSITE % "flowop twice name=y,$what=b,iters=5")["workers"][0]["source"]["ops"]
    assert outer["times"] == 5


TARGETS = [
    ("flowop copy name=x,$from=a flowop opslimit name=l,target=x", "x"),
    ("flowop copy name=x,$from=a flowop opslimit name=l,target=x.load", "x.load"),
    ("flowop copy name=x,$from=a flowop opslimit name=l,target=load", "x.load"),
]


@pytest.mark.parametrize(("text", "wanted"), TARGETS)
def test_targets_within_composite_flowops(text, wanted):
    assert plan(COMPOSITE % text)["workers"][0]["source"]["ops"][-1]["target"] == wanted


def test_targets_within_the_same_composite_flowop():
    text = FILES + (
        "define flowop name=c { flowop statfile name=r,filesetname=fs flowop opslimit name=l,target=r }\n"
        "define process name=p { thread name=t { flowop c name=x flowop c name=y } }\nrun 1"
    )
    x, y = plan(text)["workers"][0]["source"]["ops"]
    assert (x["ops"][1]["target"], y["ops"][1]["target"]) == ("x.r", "y.r")


def test_targets_in_other_processes():
    text = (
        FILES
        + """define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
        define process name=q { thread name=t { flowop opslimit name=l,target=s } }
        run 1"""
    )
    assert plan(text)["workers"][1]["source"]["ops"] == [{"name": "l", "act": "ops_limit", "target": "s"}]


def test_threads_without_instances_are_left_out():
    text = (
        FILES
        + """define process name=p { thread name=t,instances=0 { flowop delay name=d }
        thread name=u { flowop delay name=e,value=1 } }
        define process name=q,instances=0 { thread name=t { flowop delay name=f } }
        run 1"""
    )
    assert [w["source"]["ops"][0]["name"] for w in plan(text)["workers"]] == ["e"]


def test_priorities_are_those_of_workers():
    text = """define process name=p,nice=-5 { thread name=t,ioprio=4 { flowop delay name=d } }
        define process name=q,nice=0 { thread name=t,ioprio=8 { flowop delay name=e } }
        run 1"""
    found = lowered(text)
    assert not found.warnings
    first, second = found.plans[0]["workers"]
    assert (first["nice"], first["ioprio"]) == (-5, {"class": "best_effort", "level": 4})
    assert "nice" not in second and "ioprio" not in second


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("nice=$n", "nice wants a whole number from -20 to 19, not 20"),
        ("nice=2.5", "nice wants"),
    ],
)
def test_priorities_that_there_are_not(given, what):
    text = f"set $n=20\ndefine process name=p,{given} {{ thread name=t {{ flowop delay name=d }} }} run 1"
    with pytest.raises(loadstone.Error, match=what):
        lowered(text)


def test_flat_sets():
    text = FILES + "define file name=one,path=$dir,size=1k\n" + LOOP % "delay name=d"
    sets = lowered(text, layout="flat").plans[0]["sets"]
    assert [one.get("layout") for one in sets] == ["flat", None]
    assert not any("layout" in one for one in lowered(text).plans[0]["sets"])


def test_more_threads_than_files():
    text = (
        FILES + "define process name=p,instances=101 { thread name=t { flowop deletefile name=d,%s } }\nrun 1"
    )
    found = lowered(text % "filesetname=fs")
    assert [one.what for one in found.warnings] == [
        "101 threads each take a file of fs, which has 100; some may find none"
    ]
    assert not lowered(text.replace("101", "100") % "filesetname=fs").warnings


def test_fixtures(fixture: Path):
    """Each is lowered, or says why not."""
    script = wml.parse(fixture.read_bytes(), fixture.name)
    settings = wml.Settings(ROOT, RunOptions(rebase=True, variables=GIVEN.get(fixture.stem, {})))
    if (why := REFUSED.get(fixture.stem)) is not None:
        with pytest.raises(loadstone.Error, match=why):
            wml.interpret(script, settings)
    else:
        assert wml.interpret(script, settings).plans


GIVEN = {"session": {"time": "20"}}
REFUSED = {
    "draws": "defines no process",
    "lines": "flowop read needs iosize= above 0",
    "session": "this script runs shell commands",
    "wider": "is no random variable",
}
