"""Plans from files: what they destroy or write beside their targets is named on the command line."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

import loadstone
from loadstone import Error
from loadstone._files import absolute
from loadstone.plan import RunOptions, load_plan
from loadstone.workload import execute, job, plan_uniform

MIB = 1 << 20


@pytest.fixture
def saved(tmp_path):
    """Saves a plan of 20 writes to a file, changed by a function, and tells where."""

    def save(change=lambda plan: None, name="plan.json", **options) -> Path:
        asked = {"size": MIB, "requests": 20, **options}
        plan = plan_uniform("randwrite", tmp_path / "target", RunOptions(**asked))
        change(plan)
        (tmp_path / name).write_text(json.dumps(plan))
        return tmp_path / name

    return save


def destroys(plan):
    plan["targets"][0].update(allow_destroy=True, prepare="fill")


def test_what_a_plan_destroys_is_named_on_the_command_line(saved, tmp_path, loadstone):
    plan, target = saved(destroys), tmp_path / "target"
    target.write_bytes(b"precious" * (MIB // 8))
    refused = loadstone("run", plan, status=1)
    assert f"--allow-destroy {target}" in refused.stderr
    refused = loadstone("run", plan, "--allow-destroy", tmp_path / "other", status=2)
    assert f"--allow-destroy {tmp_path / 'other'}: is no target of {plan}; it has {target}" in refused.stderr
    assert target.read_bytes() == b"precious" * (MIB // 8)
    # The library does not believe it either, nor does it with the file by another name.
    with pytest.raises(Error, match="`allow_destroy`"):
        execute(load_plan(plan))
    os.rename(plan, tmp_path / "plain")
    with pytest.raises(Error, match="`allow_destroy`"):
        execute(job(str(tmp_path / "plain"), None).plans[0])
    assert target.read_bytes() == b"precious" * (MIB // 8)
    loadstone("run", tmp_path / "plain", "--allow-destroy", target)
    assert target.read_bytes() != b"precious" * (MIB // 8)


def test_the_plan_of_a_bundle_runs_again_when_its_target_is_named(tmp_path, loadstone):
    target = tmp_path / "target"
    target.write_bytes(b"x" * MIB)
    words = ("--size", "1m", "--requests", "9", "--allow-destroy", target, "--out", tmp_path / "first")
    loadstone("run", "randwrite", "--on", target, *words)
    plan = tmp_path / "first/plan.json"
    assert json.loads(plan.read_text())["targets"][0]["allow_destroy"] is True
    loadstone("run", plan, status=1)
    loadstone("run", plan, "--allow-destroy", target, "--out", tmp_path / "again")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda plan, at: plan.update(log=f"{at}/log"), ("--log", "{at}/log")),
        (lambda plan, at: plan.update(verify={"state": f"{at}/state"}), ("--verify-state", "{at}/state")),
        (lambda plan, at: plan.update(memory_limit=256 * MIB), ("--memory-limit", "268435456")),
        (lambda plan, at: plan["steps"].insert(1, {"step": "remount"}), ("--cache", "remount")),
        (
            lambda plan, at: plan["steps"].insert(1, {"step": "drop_caches", "host": True}),
            ("--cache", "drop-host"),
        ),
        (lambda plan, at: plan["workers"][0].update(nice=-20), ("--nice", "-20")),
        (
            lambda plan, at: plan["workers"][0].update(ioprio={"class": "realtime", "level": 0}),
            ("--ioprio", "realtime:0"),
        ),
    ],
    ids=["log", "state", "memory", "remount", "host", "nice", "ioprio"],
)
def test_what_a_plan_does_beside_its_targets_is_named_too(saved, tmp_path, loadstone, change, names):
    plan = saved(lambda plan: change(plan, tmp_path))
    names = [name.format(at=tmp_path) for name in names]
    refused = loadstone("run", plan, "--on", tmp_path, status=1)
    assert " ".join(names) in refused.stderr
    assert not (tmp_path / "log").exists() and not (tmp_path / "state").exists()
    assert not (tmp_path / "target").exists()
    told = json.loads(loadstone("run", plan, "--on", tmp_path, *names, "--dry-run").stdout)
    assert told == {**json.loads(plan.read_text()), **told}


def test_a_plan_sorts_where_the_system_has_its_temporary_files(saved, tmp_path):
    trace = tmp_path / "t.spc"
    trace.write_text("0,0,4096,r,0.0\n0,8,4096,r,0.1\n")

    def sorts(plan):
        reading = {"sort": True, "temp_dir": str(tmp_path / "elsewhere")}
        plan["artefacts"] = [{"id": "source", "kind": "trace", "path": str(trace), "reading": reading}]
        plan["workers"][0]["source"] = {"kind": "trace", "artefact": "source"}

    plan = saved(sorts)
    with pytest.raises(Error, match=f"set TMPDIR={tmp_path}/elsewhere"):
        load_plan(plan, on=tmp_path)
    plan.write_text(plan.read_text().replace(str(tmp_path / "elsewhere"), tempfile.gettempdir()))
    assert load_plan(plan, on=tmp_path)["artefacts"][0]["reading"]["sort"]


def test_options_stand_above_what_a_plan_says(saved, loadstone, tmp_path):
    words = (
        "--on",
        tmp_path,
        "--seed",
        "7",
        "--duration",
        "3s",
        "--interval",
        "2s",
        "--cpus",
        "0",
        "--direct",
        "--depth",
        "5",
    )
    words += (
        "--requests",
        "11",
        "--nice",
        "3",
        "--ioprio",
        "idle",
        "--cache",
        "none",
        "--log",
        tmp_path / "log",
    )
    told = json.loads(loadstone("run", saved(), *words, "--dry-run").stdout)
    worker, step = told["workers"][0], told["steps"][-1]
    assert (told["seed"], told["interval_ns"], step["duration_ns"]) == (7, 2 * 10**9, 3 * 10**9)
    assert (worker["cpus"], worker["depth"], worker["requests"], worker["nice"]) == ([0], 5, 11, 3)
    assert worker["ioprio"]["class"] == "idle" and told["targets"][0]["direct"] is True
    assert [one["step"] for one in told["steps"]] == ["prepare", "run"]
    assert told["log"] == str(tmp_path / "log")
    # What is not given stays as the plan has it.
    plain = json.loads(loadstone("run", saved(seed=9, interval=0.5), "--on", tmp_path, "--dry-run").stdout)
    assert (plain["seed"], plain["interval_ns"]) == (9, 500_000_000)


def test_a_log_is_not_overwritten_and_no_option_is_advised_that_does_not_help(saved, loadstone, tmp_path):
    (tmp_path / "log").write_text("kept")
    words = ("run", saved(), "--on", tmp_path, "--log", tmp_path / "log")
    refused = loadstone(*words, "--force", "--out", tmp_path / "out", status=1)
    assert "choose another name, or remove it" in refused.stderr and "--force" not in refused.stderr
    assert "--force: needs --out" in loadstone(*words, "--force", status=2).stderr
    assert (tmp_path / "log").read_text() == "kept" and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_files_are_told_by_their_content(loadstone, tmp_path, root):
    trace = root / "examples/loop0.parquet"
    loadstone("model", "fit", trace, "-o", tmp_path / "mymodel")
    words = ("--on", "null:", "--pace", "max")
    told = json.loads(loadstone("run", tmp_path / "mymodel", *words, "--dry-run").stdout)
    assert told["artefacts"][0]["kind"] == "model"
    (tmp_path / "myplan").write_text(json.dumps(told))
    found = json.loads(loadstone("run", tmp_path / "myplan", "--dry-run").stdout)
    assert found == {**told, "own": [str(tmp_path / "myplan")]}
    (tmp_path / "myjob").write_text("; a job\n[one]\nrw=read\nsize=64k\n")
    done = json.loads(loadstone("run", tmp_path / "myjob", "--on", "null:", "--json").stdout)
    assert done["requests"] == 16
    refused = loadstone("run", trace, "--on", "null:", status=1)
    assert "is a trace (blktrace); loadstone replay runs it" in refused.stderr
    refused = loadstone("replay", tmp_path / "mymodel", "--on", "null:", status=1)
    assert "is a model; loadstone run runs it" in refused.stderr
    refused = loadstone("evaluate", tmp_path / "mymodel", "--on", "null:", status=1)
    assert "is a model" in refused.stderr
    (tmp_path / "text").write_text("hello\n")
    assert (
        "is neither a model, a plan" in loadstone("run", tmp_path / "text", "--on", "null:", status=1).stderr
    )


def test_files_are_made_in_dev_shm_and_not_among_devices(loadstone):
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for target in (f"{folder}/new", f"{folder}-new"):
            try:
                loadstone("run", "randread", "--on", target, "--size", "64k", "--requests", "5")
                assert os.path.getsize(target) == 65536
            finally:
                os.unlink(target)
    refused = loadstone(
        "run", "randread", "--on", "/dev/nvme99n9", "--size", "64k", "--requests", "5", status=1
    )
    assert "check the device's name" in refused.stderr
    assert not os.path.exists("/dev/nvme99n9")


def test_null_keeps_nothing(loadstone, tmp_path):
    (tmp_path / "j.fio").write_text("[one]\nrw=randwrite\nsize=64k\n")
    for workload in ("randread", "varmail", "iozone", tmp_path / "j.fio"):
        asked = ("--verify",) if workload in ("varmail", "iozone") else ("--verify-state", tmp_path / "state")
        more = ("--requests", "5") if workload == "randread" else ()
        refused = loadstone("run", workload, "--on", "null:", *more, *asked, status=2)
        assert f"{asked[0]}: the target null: performs and keeps nothing" in refused.stderr


@pytest.mark.slow
def test_a_dry_run_of_a_script_with_commands_needs_no_leave(loadstone, tmp_path):
    (tmp_path / "w.f").write_text(
        "define fileset name=s,path=$dir,entries=5,dirwidth=20,size=4k,prealloc\n"
        "define process name=p{thread name=t,memsize=1m{flowop openfile name=o,filesetname=s "
        f'flowop closefile name=c}}}}\nsystem "touch {tmp_path}/ran"\nrun 1\n'
    )
    words = ("run", tmp_path / "w.f", "--on", "null:")
    assert "workers" in json.loads(loadstone(*words, "--dry-run").stdout)
    assert "--allow-system" in loadstone(*words, status=1).stderr
    assert not (tmp_path / "ran").exists()
    loadstone(*words, "--allow-system")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["targets[0].path", "targets[0].id", "workers[0].group", "log"])
def test_a_byte_of_zero_is_in_no_name(saved, tmp_path, loadstone, place):
    plan = json.loads(saved().read_text())
    inner = plan
    for part in place.replace("[0]", "").split(".")[:-1]:
        inner = inner[part][0]
    inner[place.rpartition(".")[2]] = "a\0b"
    (tmp_path / "zero.json").write_text(json.dumps(plan))
    done = loadstone("run", tmp_path / "zero.json", "--on", tmp_path / "t", status=1)
    assert f"plan, {place}: has a byte of zero" in done.stderr and "Traceback" not in done.stderr


def test_a_plan_cannot_know_what_this_process_made(saved, tmp_path):
    """``made_before`` of a stranger's file was believed where an earlier run had made the path."""
    target = tmp_path / "target"
    execute(plan_uniform("randwrite", target, RunOptions(size=MIB, requests=20)))
    with target.open("r+b") as file:
        file.write(b"precious" * (MIB // 8))

    def change(plan):
        plan["targets"][0].update(made_before=True, prepare="none")

    with pytest.raises(Error, match="was there before"):
        loadstone.run(job(str(saved(change, size=MIB, allow_destroy=[target]))), out=tmp_path / "b")
    assert target.read_bytes() == b"precious" * (MIB // 8)


@pytest.fixture
def linked(tmp_path):
    """Behind ``data/link`` the kernel's ``..`` is ``home``, and that of the name is ``data``."""
    (tmp_path / "home/dir").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to("../home/dir")
    for place in ("home", "data"):
        (tmp_path / place / "file").write_bytes(place.encode() * (MIB // 4))
    return tmp_path


def test_a_path_leads_where_the_kernel_takes_it(linked, monkeypatch):
    monkeypatch.chdir(linked)
    assert absolute("data/link/../file") == f"{linked}/home/file"
    assert absolute("data/../data/./link//x") == f"{linked}/data/link/x"
    assert absolute("data/link") == f"{linked}/data/link"
    assert absolute("/") == "/" and absolute("/../x") == "/x"
    typed = "data/link/../file"
    execute(plan_uniform("randwrite", typed, RunOptions(requests=50, allow_destroy=[typed])))
    assert (linked / "data/file").read_bytes() == b"data" * (MIB // 4)
    assert (linked / "home/file").read_bytes() != b"home" * (MIB // 4)


def test_a_plan_means_the_file_that_is_named(saved, linked, loadstone):
    def change(plan):
        plan["targets"][0].update(path=f"{linked}/data/link/../file", prepare="none")

    plan = saved(change)
    refused = loadstone("run", plan, "--allow-destroy", linked / "data/file", status=2)
    assert f"is no target of {plan}; it has {linked}/home/file" in refused.stderr
    loadstone("run", plan, "--allow-destroy", linked / "home/file")
    assert (linked / "data/file").read_bytes() == b"data" * (MIB // 4)
    assert (linked / "home/file").read_bytes() != b"home" * (MIB // 4)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.fio", "[x]\nrw=randread\nsize=64k\nnice=-5\n"),
        ("a.fio", "[x]\nrw=randread\nsize=64k\nprioclass=1\nprio=2\n"),
        (
            "a.f",
            "define file name=f,path=/x,size=64k,prealloc\ndefine process name=p,nice=-5 {\n"
            "  thread name=t { flowop read name=r,filename=f,iosize=4k,iters=1\n flowop finishoncount "
            "name=e,value=9 }\n}\nrun 1\n",
        ),
    ],
)
def test_what_files_take_from_others_is_named(tmp_path, loadstone, name, text):
    (tmp_path / name).write_text(text)
    words = ("run", tmp_path / name, "--on", "null:")
    refused = loadstone(*words, status=1).stderr
    asked = ("--ioprio", "realtime:2") if "prio" in text else ("--nice", "-5")
    assert "from others" in refused and " ".join(asked) in refused
    loadstone(*words, *asked, "--dry-run")
