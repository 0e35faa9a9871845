"""``loadstone run`` and ``loadstone.workload`` with scripts: options, warnings, dry runs, order."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import loadstone
from loadstone.bundle.read import Bundle, Summary
from loadstone.cli.run import command
from loadstone.plan import parts as _plan
from loadstone.plan.kinds import title
from loadstone.wml import FIGURES, Beside, Dump, Print, RunPlan, Shell, Wait, Window
from loadstone.workload import filebench as _filebench
from loadstone.workload import performing as performing_module
from loadstone.workload import plan_filebench
from loadstone.workload.performing import performing, window_figures

SCRIPT = """set $n=4
define fileset name=fs,path=$dir,entries=$n,dirwidth=3
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str = "run 5") -> Path:
        path = tmp_path / "w.f"
        path.write_text(SCRIPT + text)
        return path

    return write


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    # What the engine says of plans is tested with it.
    monkeypatch.setattr(_plan, "check", lambda plan: {**plan, "checked": True})
    monkeypatch.setattr(_filebench, "rehearse", lambda plans, names: None)

    def call(*args: object) -> Result:
        return CliRunner().invoke(command, [*map(str, args)], catch_exceptions=True)

    return call


def message(result: Result) -> str:
    return str(result.exception) if isinstance(result.exception, loadstone.Error) else result.output


def test_dry_run_prints_the_plan(script, run, tmp_path):
    on = tmp_path / "tree"
    done = run(
        script(), "--on", on, "-D", "n=7", "--seed", 3, "--interval", "2s", "--cpus", "0-1", "--dry-run"
    )
    assert done.exit_code == 0, message(done)
    plan = json.loads(done.stdout)
    assert plan["checked"] is True
    assert plan["targets"][0] == {"id": "t0", "kind": "tree", "path": str(on), "allow_destroy": False}
    assert (plan["seed"], plan["interval_ns"], plan["sets"][0]["entries"]) == (3, 2_000_000_000, 7)
    assert plan["workers"][0]["cpus"] == [0, 1]
    assert not on.exists()


def test_surroundings_are_steps_and_limits_of_every_run(script, run, tmp_path):
    given = ["--memory-limit", "100m", "--layout", "flat"]
    done = run(script("run 1 run 2"), "--on", tmp_path / "tree", *given, "--dry-run")
    for plan in json.loads(done.stdout)["plans"]:
        assert [step["step"] for step in plan["steps"]] == ["prepare", "drop_caches", "run"]
        assert plan["memory_limit"] == 100 << 20 and plan["sets"][0]["layout"] == "flat"
    done = run(script(), "--on", tmp_path / "tree", "--cache", "remount", "--dry-run")
    assert [step["step"] for step in json.loads(done.stdout)["steps"]] == ["prepare", "remount", "run"]


def test_dry_run_of_several_runs_prints_an_object_as_their_results_do(script, run, tmp_path):
    path = script("run 1 run 2")
    done = run(path, "--on", tmp_path / "tree", "--dry-run", "--duration", "3s", "--json")
    told = json.loads(done.stdout)
    assert told.keys() == {"script", "plans"} and told["script"] == str(path)
    assert [plan["steps"][-1]["duration_ns"] for plan in told["plans"]] == [3_000_000_000] * 2


def test_options_of_scripts(script, run, tmp_path):
    path = script('system "true"\nrun 5')
    path.write_text(path.read_text().replace("$dir", "/mnt/x"))
    assert "runs shell commands" in message(run(path, "--on", tmp_path))
    assert "does not lie in" in message(run(path, "--on", tmp_path, "--dry-run"))
    given = ["--allow-system", "--rebase", "--filebench-compat", "1.4", "--allow-destroy", tmp_path]
    done = run(path, "--on", tmp_path, *given, "--dry-run")
    plan = json.loads(done.stdout)
    assert plan["sets"][0]["path"] == "mnt/x/fs"
    assert plan["sets"][0]["size"] == 0  # as in 1.4
    assert plan["targets"][0]["allow_destroy"] is True


@pytest.mark.parametrize(
    "option",
    [
        ["--bs", "4k"], ["--rate", "5"], ["--pace", "max"], ["--depth", "4"], ["--backend", "sync"],
        ["--direct"], ["--sync", "dsync"], ["--size", "1g"], ["--requests", "3"], ["--map", "a=b"],
        ["--offsets", "wrap"], ["--fill"], ["--no-fill"], ["--log", "x"],
        ["--order", "none"], ["--think", "none"], ["--independent", "max"], ["--fadvise", "random"],
    ],
    ids=lambda option: option[0],
)  # fmt: skip
def test_what_scripts_say_themselves_is_no_option(script, run, tmp_path, option):
    done = run(script(), "--on", tmp_path, *option, "--dry-run")
    assert done.exit_code == 2
    wanted = "--fill" if option[0] == "--no-fill" else option[0]
    why = f"is {title('script')}, which has no such option"
    if wanted in ("--pace", "--map", "--offsets", "--order", "--think", "--independent"):
        why = "has no requests of a trace or model"
    elif wanted == "--backend":
        why = "makes system calls one after the other, so there is no back end to choose"
    assert f"{wanted}: {script()} {why}" in done.output


@pytest.mark.parametrize(
    "option", [["--allow-system"], ["--rebase"], ["--filebench-compat", "1.5"], ["--layout", "flat"]]
)
def test_options_that_only_scripts_have(run, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.mdh", "a.json"):
        (tmp_path / name).write_bytes(b"")
    for workload in ("randread", "a.mdh", "a.json"):
        done = run(workload, "--on", "null:", "--duration", "1s", *option, "--dry-run")
        assert done.exit_code == 2
        assert f"{option[0]}: {workload} is no script of Filebench" in done.output


def test_warnings_and_notes_come_once(script, run, tmp_path):
    path = script('log "x"\nlog "y"')
    done = run(path, "--on", tmp_path / "tree", "--dry-run")
    assert done.stderr.splitlines() == [
        f"warning: {path}:4:1: log only prints its text",
        f"note: {path} has no run command; it is run for 60 s (--duration says otherwise)",
    ]


FAULTS = [
    ([], "no directory to run in; give --on DIR or --on null:"),
    (["--on", "{tmp}/at/all"], "cannot be made: the directory {tmp}/at does not exist"),
    (["--on", "/dev/null"], "is no directory, and a tree of files needs one"),
]


@pytest.mark.parametrize(("options", "what"), FAULTS)
def test_faults(script, run, options, what, tmp_path):
    options = [option.replace("{tmp}", str(tmp_path)) for option in options]
    done = run(script(), *options, "--dry-run")
    assert done.exit_code == 1
    assert what.replace("{tmp}", str(tmp_path)) in message(done)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--allow-destroy", "/x"], "--allow-destroy /x: is no target of this run"),
        (["--duration", "0s"], "'--runtime': '0s' is too short"),
        (["-D", "m=4"], "has no variable $m"),
    ],
)
def test_faults_of_options(script, run, options, what):
    done = run(script(), "--on", "null:", *options, "--dry-run")
    assert done.exit_code == 2
    assert what in done.stderr


def test_runs_are_carried_out_in_order(script, run, monkeypatch):
    begun: list[Any] = []

    def measured(action, workload, progress, by):
        assert workload.endswith(".f")
        seconds = action.plan["steps"][-1]["duration_ns"] / 1e9
        begun.append((seconds, [one.name for one in action.windows]))
        return Bundle(None, {}, Summary(partial=False, errors=0, short=0, log={}), {})

    monkeypatch.setattr("loadstone.workload.running._measured", measured)
    monkeypatch.setattr("loadstone.cli._shown.show", lambda summary: None)
    monkeypatch.setattr("loadstone.cli._shown.show_json", lambda summary: None)
    done = run(script('echo "a" run 1 echo "b" psrun -1 2'), "--on", "null:")
    assert done.exit_code == 0, message(done)
    assert begun == [(1, []), (2, ["1", "2"])]
    assert done.stdout.splitlines() == ["a", "b"]
    # What is printed for machines is nothing else.
    assert run(script('echo "a" run 1'), "--on", "null:", "--json").stdout == ""


def test_profiles(script, run, tmp_path):
    script("")
    path = tmp_path / "a.prof"
    path.write_text("CONFIG one { personality = w; n = 9; runtime = 2; }")
    plan = json.loads(run(path, "--on", tmp_path / "tree", "--dry-run").stdout)
    assert (plan["sets"][0]["entries"], plan["steps"][-1]["duration_ns"]) == (9, 2_000_000_000)


def perform_all(actions, run, say=print):
    """What came of each run."""
    results: list[Any] = []
    for action in performing(actions, results, say):
        results.append(run(action))
    return results


def test_actions_are_done_in_order(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(performing_module.time, "sleep", lambda seconds: said.append(f"slept {seconds}"))
    out, mark = tmp_path / "out.json", tmp_path / "mark"
    actions = [Print("a"), Shell(f"echo x > {mark}"), Wait(3), RunPlan({"n": 1}), Dump(str(out)), Print("b")]

    def perform(action: RunPlan) -> dict[str, Any]:
        assert mark.exists()
        said.append("run")
        return {"plan": action.plan}

    assert perform_all(actions, perform, said.append) == [{"plan": {"n": 1}}]
    assert said == ["a", "slept 3", "run", "b"]
    assert json.loads(out.read_text()) == {"plan": {"n": 1}}
    with pytest.raises(loadstone.Error, match="is there already"):
        perform_all(actions, perform, said.append)
    with pytest.raises(loadstone.Error, match="nothing has run"):
        perform_all([Dump(str(tmp_path / "x"))], perform)
    with pytest.raises(loadstone.Error, match="false: ended with status 1"):
        perform_all([Shell("false")], perform)


def test_commands_beside_a_run_end_with_it_and_keep_what_they_print(tmp_path):
    said: list[str] = []
    out, failed = tmp_path / "new/echo.1.out", tmp_path / "new/false.2.out"
    actions = [
        Beside("echo begun; sleep 600 & sleep 600", str(out)),
        Beside("exit 3", str(failed)),
        RunPlan({}),
        RunPlan({}),
    ]

    def perform(_: RunPlan) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while "begun" not in out.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        said.append("run")
        return {}

    begin = time.monotonic()
    perform_all(actions, perform, said.append)
    assert time.monotonic() - begin < 300
    assert said == ["run", f"exit 3: ended with status 3; see {failed}", "run"]
    assert (out.read_text(), failed.read_text()) == ("begun\n", "")
    # The session of the command is gone, with all it had started.
    with pytest.raises(loadstone.Error, match="is there already"):
        perform_all(actions, perform, said.append)


def test_plans_are_checked(script, monkeypatch):
    monkeypatch.setattr(_plan, "check", lambda plan: {"checked": plan["version"]})
    monkeypatch.setattr(_filebench, "rehearse", lambda plans, names: None)
    assert plan_filebench(script("run 1 run 2"), "null:").plans == [{"checked": 1}] * 2


def test_a_script_that_is_not_there(script):
    with pytest.raises(loadstone.Error, match="No such file"):
        plan_filebench("nothing.f", "null:")


def test_windows_have_the_figures_of_their_intervals():
    # Intervals of half a second; what ended in the third failed; the last row is waiting, no request.
    counts = [2, 3, 5, 7, 11, 90]
    ops = {
        "interval": np.array([0, 1, 2, 3, 4, 1]),
        "op": np.array([0, 1, 0, 0, 0, 255]),
        "count": np.array(counts),
        "bytes": np.array([*counts[:5], 0]) * 10,
        "errno": np.array([0, 0, 5, 0, 0, 0]),
        "service_offsets": np.arange(7),
        "service_bucket": np.array([40, 41, 42, 43, 44, 45]),
        "service_count": np.array(counts),
    }
    windows = [Window("a", 500_000_000, 2_000_000_000), Window("b", 0, 1_000_000_000)]
    a, b = window_figures({"interval_ns": 500_000_000}, {"ops": ops}, windows)
    assert (a["name"], a["requests"], a["bytes"], a["errors"]) == ("a", 15, 150, 5)
    assert (a["ops_per_s"], a["bytes_per_s"], a["reads"], a["writes"]) == (10 / 1.5, 100, 12, 3)
    assert a["service_ns"]["count"] == 10
    assert (b["name"], b["requests"], b["errors"], b["ops_per_s"]) == ("b", 5, 0, 5)


SUMMARY = {
    "requests": 4000,
    "ops_per_s": 2000.4,
    "bytes_per_s": 3.5 * 2**20,
    "elapsed_ns": 2 * 10**9,
    "ops": {"read": {"count": 3000}, "stat": {"count": 1000}},
    "service_ns": {"mean": 12_340.0},
    "cpu": {"user_ns": 4_000_000, "system_ns": 8_000_000},
}
TOLD = "4000 2000 1500 0 3.5 12.3 3.0 2.0 1.0 8000"


def test_texts_tell_results_of_the_run_before(script):
    names = " ".join(f"${{stats.{name}}}" for name in FIGURES)
    found = plan_filebench(script(f'run 1 echo "<{names}>"'), "null:")
    said: list[str] = []
    perform_all(found.actions, lambda _: SUMMARY, said.append)
    assert said == [f"<{TOLD}>"] and found.warnings == []
    # Where there are windows, those of the last.
    window = {"requests": 10, "reads": 6, "writes": 4, "from_ns": 10**9, "to_ns": 3 * 10**9, "ops_per_s": 5.0}
    window |= {"bytes_per_s": 2.0**20, "service_ns": {"mean": 1000.0}}
    said.clear()
    perform_all(found.actions, lambda _: SUMMARY | {"windows": [{}, window]}, said.append)
    assert said == ["<10 5 3 2 1.0 1.0 3.0 2.0 1.0 8000>"]


def test_results_of_a_run_that_goes_on_are_those_at_its_end(script):
    text = 'create processes sleep 1 echo "${stats.iocount}" shutdown processes echo "$(HOME) ${rate}"'
    found = plan_filebench(script(text), "null:")
    said: list[str] = []
    perform_all(found.actions, lambda _: SUMMARY, said.append)
    assert said[0] == "4000" and said[1].endswith(" 0")


def test_texts_of_what_is_not_known_stay_and_are_warned_of(script):
    found = plan_filebench(script('echo "${stats.iorate} $q" run 1 echo "${stats.iowait}"'), "null:")
    assert [action.text for action in found.actions if isinstance(action, Print)] == [
        "${stats.iorate} $q",
        "${stats.iowait}",
    ]
    assert [one.what for one in found.warnings] == [
        "${stats.iorate} is known when something has run; it stays as it is written",
        "$q has no value; it stays as it is written",
        "$stats.iowait has no value; it stays as it is written",
    ]
    with pytest.raises(loadstone.Error, match="results of runs are known in the texts of echo only"):
        plan_filebench(script("run 1 set $n=${stats.iorate}"), "null:")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_of_a_script_ends_with_what_it_started(tmp_path, root, number):
    script, told = tmp_path / "s.f", tmp_path / "pid"
    script.write_text(
        "define fileset name=s,path=$dir,entries=5,dirwidth=20,size=4k,prealloc\n"
        "define process name=p{thread name=t,memsize=1m{flowop openfile name=o,filesetname=s "
        "flowop closefile name=c}}\n"
        f'system "sleep 600 & echo $! > {told}; wait"\nrun 1\n'
    )
    words = [root / ".venv/bin/loadstone", "run", script, "--on", tmp_path / "d", "--allow-system"]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (told.exists() and told.read_text().strip()):
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(number)
    assert run.wait(20) != 0
    state = Path(f"/proc/{told.read_text().strip()}/stat")
    # What was killed is gone a moment later.
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
