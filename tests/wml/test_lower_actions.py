"""What a script does besides its runs, and in which order: windows, loops, loads, profiles."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import loadstone
from loadstone import wml
from loadstone.plan import RunOptions
from loadstone.wml import Beside, Dump, Print, RunPlan, Shell, Wait, Window

BASE = """define fileset name=fs,path=$dir,entries=9,dirwidth=3
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
"""
S = 1_000_000_000
ROOT = "/run/here"


def performed(text: str, **more: Any) -> wml.Interpretation:
    return wml.interpret(wml.parse(text, "w.f"), wml.Settings(ROOT, RunOptions(**more)))


def short(text: str, **more: Any) -> list[Any]:
    """Actions, with runs as their seconds and windows."""
    found = []
    for action in performed(text, **more).actions:
        if isinstance(action, RunPlan):
            windows = [(one.name, one.from_ns / S, one.to_ns / S) for one in action.windows]
            found.append((action.plan["steps"][-1]["duration_ns"] / S, windows))
        else:
            found.append(action)
    return found


RUNS = [
    ("run 5", [(5, [])]),
    ("run .5", [(0.5, [])]),
    ("run", [(60, [])]),
    ("run 5 run 6", [(5, []), (6, [])]),
    ("set mode quit alldone run", [(0, [])]),
    ("set mode quit alldone run 7", [(7, [])]),
    ("run 5 quit run 6", [(5, [])]),
    ("psrun 10 25", [(25, [("1", 0, 10), ("2", 0, 20)])]),
    ("psrun -10 25", [(25, [("1", 0, 10), ("2", 10, 20), ("3", 20, 25)])]),
    ("psrun", [(60, [(str(i), 0, 10 * i) for i in range(1, 7)])]),
    ("create processes stats clear sleep 30 stats snap shutdown processes", [(30, [("1", 0, 30)])]),
    ("create processes warmup 5 stats clear sleep 30 stats snap shutdown processes", [(35, [("1", 5, 35)])]),
    (
        "create processes sleep 5 stats clear sleep 2 stats snap sleep 3 stats clear sleep 4 stats snap",
        [(14, [("1", 5, 7), ("2", 10, 14)])],
    ),
    ("create processes stats clear sleep 2 stats snap sleep 3 stats snap", [(5, [("1", 0, 2), ("2", 0, 5)])]),
    ("create processes sleep 4 stats clear sleep 6", [(10, [("1", 4, 10)])]),
    ("create processes sleep 4", [(4, [])]),
    ("create processes warmup 5 run 9", [(14, [("1", 5, 14)])]),
    ("sleep 3 run 5", [Wait(3), (5, [])]),
    ("create processes sleep 4 shutdown processes create processes sleep 6", [(4, []), (6, [])]),
    ('echo "a" run 5 echo "b"', [Print("a"), (5, []), Print("b")]),
    # A plan is run in one piece: what is said meanwhile comes after it.
    (
        'create processes echo "a" sleep 4 stats dump "f" shutdown processes echo "b"',
        [(4, []), Print("a"), Dump(f"{ROOT}/f"), Print("b")],
    ),
    (
        f"stats directory x run 5 stats xmldump a.xml stats multidump {ROOT}/b",
        [(5, []), Dump(f"{ROOT}/x/a.xml"), Dump(f"{ROOT}/b")],
    ),
]


@pytest.mark.parametrize(("text", "wanted"), RUNS, ids=[text for text, _ in RUNS])
def test_runs(text, wanted):
    assert short(BASE + text) == wanted


def test_what_a_script_writes_itself_lies_below_the_directory():
    text = BASE + 'run 5 stats dump "/var/log/f"'
    with pytest.raises(
        wml.WmlError, match=f"/var/log/f does not lie in {ROOT}\n.*\n.*\nwrite a relative path, or `rebase`"
    ):
        performed(text)
    assert performed(text, rebase=True).actions[-1] == Dump(f"{ROOT}/var/log/f")
    with pytest.raises(wml.WmlError, match="does not lie in"):
        performed(BASE + 'stats directory ".." run 5 stats dump "f"')


def test_commands_beside_a_run():
    one, two = 'stats command "vmstat 1"', 'stats command "/usr/bin/iostat -x"'
    with pytest.raises(wml.WmlError, match="this script runs shell commands"):
        performed(BASE + one + " run 5")
    beside = [
        Beside("vmstat 1", f"{ROOT}/x/vmstat.1.out"),
        Beside("/usr/bin/iostat -x", f"{ROOT}/x/iostat.2.out"),
    ]
    text = BASE + f"stats directory x {one} {two} run 5"
    assert performed(text, allow_system=True).actions[:2] == beside
    text = (
        BASE + f'stats directory x create processes {one} sleep 3 echo "a" {two} sleep 2 shutdown processes'
    )
    first, second, run, said = performed(text, allow_system=True).actions
    assert [first, second, said] == [*beside, Print("a")] and isinstance(run, RunPlan)


def test_a_script_without_a_run_is_run_for_a_minute():
    found = performed(BASE)
    assert found.plans[0]["steps"][-1] == {"step": "run", "duration_ns": 60 * S}
    assert found.notes == ["w.f has no run command; it is run for 60 s (`duration` says otherwise)"]
    found = performed(BASE, duration=3)
    assert found.plans[0]["steps"][-1]["duration_ns"] == 3 * S
    assert not found.notes


@pytest.mark.parametrize("mode", ["alldone", "firstdone"])
def test_a_script_without_a_run_that_ends_by_itself_is_run_to_its_end(mode):
    found = performed(BASE + f"set mode quit {mode}")
    assert found.plans[0]["steps"][-1]["duration_ns"] == 0
    assert found.notes == ["w.f has no run command; it is run until it is done (`duration` says otherwise)"]
    found = performed(BASE + f"set mode quit {mode}", duration=3)
    assert found.plans[0]["steps"][-1]["duration_ns"] == 3 * S
    assert not found.notes


def test_duration_stands_above_the_script():
    assert short(BASE + "run 5 run", duration=2) == [(2, []), (2, [])]
    assert short(BASE + "psrun -1 9", duration=2) == [(2, [("1", 0, 1), ("2", 1, 2)])]
    manual = "create processes warmup 5 stats clear sleep 30 stats snap"
    assert short(BASE + manual, duration=2) == [(7, [("1", 5, 7)])]
    assert short(BASE + "set mode quit firstdone run", duration=2) == [(2, [])]


@pytest.mark.parametrize(
    ("mode", "until"), [("timeout", None), ("alldone", "all_done"), ("firstdone", "first_done")]
)
def test_modes(mode, until):
    (plan,) = performed(BASE + f"set mode quit {mode}\nset mode nousestats\nrun 5").plans
    assert plan["steps"][-1].get("until") == until


def test_later_runs_keep_the_files_of_earlier_ones():
    plans = performed(BASE + "run 1 run 2 shutdown files run 3").plans
    assert [plan["sets"][0].get("reuse", False) for plan in plans] == [False, True, False]


def test_foreach_repeats_all_that_is_in_it():
    text = BASE.replace("entries=9", "entries=$n").replace("process name=p", "process name=p,instances=$k")
    text += """foreach $n in 2, 3k {
        foreach $word in "a", "b c" {
            set $k=$n/2
            set mode quit firstdone
            echo "$n $word"
            run 1
            set mode quit timeout
        }
    }"""
    found = performed(text)
    assert [a.text for a in found.actions if isinstance(a, Print)] == ["2 a", "2 b c", "3072 a", "3072 b c"]
    assert [p["sets"][0]["entries"] for p in found.plans] == [2, 2, 3072, 3072]
    assert [p["workers"][0]["depth"] for p in found.plans] == [1, 1, 1536, 1536]
    assert {p["steps"][-1]["until"] for p in found.plans} == {"first_done"}


def test_a_value_of_the_user_stands_for_all_of_a_loop():
    text = BASE.replace("entries=9", "entries=$n") + "foreach $n in 1, 2, 3 { run 1 }"
    assert [p["sets"][0]["entries"] for p in performed(text, variables={"n": "7"}).plans] == [7]


def test_definitions_within_foreach():
    text = """foreach $n in 1, 2 {
        define fileset name=fs$n,path=$dir,entries=$n,dirwidth=2
        define process name=p,instances=$n { thread name=t { flowop statfile name=s,filesetname=fs1 } }
        run 1 }"""
    plans = performed(text).plans
    assert [[one["id"] for one in plan["sets"]] for plan in plans] == [["fs1"], ["fs1", "fs2"]]
    assert [len(plan["workers"]) for plan in plans] == [1, 1]


def test_texts():
    text = """set $n=4k set $flag=true set $r=randvar(mean=3)
        echo "$n $flag $none ${stats.iocount} $r \\$n ${hostname} ${scriptname}" """
    host = socket.gethostname()
    said = performed(text + BASE).actions[0]
    assert said == Print(f"4096 true $none ${{stats.iocount}} $r $n {host} w.f")


def test_what_is_listed():
    listing = "version vars list list fileset list flowop help run 1"
    actions = performed(f"set $n=3\n{BASE}{listing}").actions
    texts = [action.text for action in actions if isinstance(action, Print)]
    assert texts[0] == f"Loadstone {loadstone.__version__}"
    assert texts[1] == "$dir = /run/here\n$n = 3"
    assert texts[2] == "file sets:\nfs\nprocesses:\np"
    assert texts[3:5] == ["file sets:\nfs", "composite flowops:"]
    assert "foreach: performs commands for each of several values" in texts[5].splitlines()


def test_shell_commands_only_where_they_are_allowed():
    text = BASE + 'set $n=3\nrun 1\nsystem "sync $n"'
    with pytest.raises(wml.WmlError, match="runs shell commands"):
        performed(text)
    assert performed(text, allow_system=True).actions[-1] == Shell("sync 3")
    assert performed(BASE + 'run 1 quit system "sync"').plans


def test_accepted_and_without_effect():
    text = "debug 3 enable lathist domultisync fsflush fstype=x enable multi master=a,client=b create files"
    assert short(f"{BASE}{text} run 1") == [(1, [])]


def test_events():
    assert "events_per_s" not in performed(BASE + "run 1").plans[0]
    assert "events_per_s" not in performed(BASE + "eventgen rate=0 run 1").plans[0]
    text = 'eventgen rate=$r set $r=40 run 1 set $r=50 run 1 echo "${rate}"'
    found = performed(BASE + text)
    assert [plan["events_per_s"] for plan in found.plans] == [40, 50]
    assert found.actions[-1] == Print("50")


def beside(tmp_path: Path, **texts: str) -> wml.Script:
    for name, text in texts.items():
        (tmp_path / f"{name}.f").write_text(text)
    path = tmp_path / "main.f"
    return wml.parse(path.read_bytes(), str(path))


def test_load(tmp_path):
    script = beside(tmp_path, main="set $n=5\nload files\nload procs\nrun $time", files=BASE.splitlines()[0],
                    procs=BASE.splitlines()[1] + "\nset $time=$n\nset $n=1")  # fmt: skip
    (plan,) = wml.interpret(script, wml.Settings("/run/here")).plans
    assert plan["steps"][-1]["duration_ns"] == 5 * S


def test_errors_and_names_of_loaded_scripts(tmp_path):
    script = beside(tmp_path, main="load procs\nrun 1", procs=BASE.splitlines()[1])
    with pytest.raises(wml.WmlError, match=r"procs\.f:1:\d+: there is no file or file set fs"):
        wml.interpret(script, wml.Settings("/run/here"))
    script = beside(tmp_path, main="load procs\nrun 1", procs="\n\neventgen rate=$r\n" + BASE)
    with pytest.raises(wml.WmlError, match=r"procs\.f:3:15: \$r has no value"):
        wml.interpret(script, wml.Settings("/run/here"))


def test_a_script_that_loads_itself(tmp_path):
    for script in (
        beside(tmp_path, main="load main"),
        beside(tmp_path, main="load other", other="load main"),
    ):
        with pytest.raises(wml.WmlError, match="loads itself"):
            wml.interpret(script, wml.Settings("/run/here"))


PROFILE = """DEFAULTS { runtime = 30; dir = /tmp/x; stats = /tmp/s; nfiles = 10; }
CONFIG one { personality = work; function = generic; }
CONFIG two { personality = work; nfiles = 2k; runtime = 9; }
"""


def test_profiles(tmp_path):
    (tmp_path / "work.f").write_text("set $nfiles=1\n" + BASE.replace("entries=9", "entries=$nfiles"))
    profile = wml.parse_profile(PROFILE, str(tmp_path / "a.prof"))
    found = wml.interpret_profile(profile, wml.Settings("/run/here"))
    assert [a.text for a in found.actions if isinstance(a, Print)] == ["CONFIG one", "CONFIG two"]
    assert [p["sets"][0]["entries"] for p in found.plans] == [10, 2048]
    assert [p["steps"][-1]["duration_ns"] for p in found.plans] == [30 * S, 9 * S]
    assert {p["targets"][0]["path"] for p in found.plans} == {"/run/here"}
    assert not found.notes
    found = wml.interpret_profile(
        profile, wml.Settings("/run/here", RunOptions(duration=2, variables={"nfiles": "5"}))
    )
    assert [p["sets"][0]["entries"] for p in found.plans] == [5, 5]
    assert [p["steps"][-1]["duration_ns"] for p in found.plans] == [2 * S, 2 * S]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("DEFAULTS { a = 1; }", "has no CONFIG"),
        ("CONFIG a { b = 1; }", "CONFIG a has no personality"),
        ("CONFIG a { personality = nothing; }", r"nothing\.f: No such file"),
    ],
)
def test_profiles_that_cannot_be_run(tmp_path, text, what):
    with pytest.raises(loadstone.Error, match=what):
        wml.interpret_profile(wml.parse_profile(text, str(tmp_path / "a.prof")), wml.Settings("/run/here"))


def test_windows_are_plain_data():
    (action,) = performed(BASE + "create processes sleep 1 stats snap").actions
    assert isinstance(action, RunPlan)
    assert action.windows == (Window("1", 0, S),)
