"""Studies that are run: on directories, and as root on loop devices."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.study.conftest import left_on_host

import loadstone
from loadstone import study
from loadstone.compare import Arm
from loadstone.study.host import booting
from loadstone.study.host.making import Maker
from loadstone.study.journal import Journal
from loadstone.study.permissions import Allowed

HERE = """\
name = "here"
[repeat]
runs = {runs}
[systems.here]
directory = "{folder}"
[workloads.load]
command = {command}
"""


@pytest.fixture
def here(write, tmp_path):
    """A study of a command in a directory."""

    def made(command: str, runs: int = 2, more: str = "") -> Path:
        (tmp_path / "on").mkdir(exist_ok=True)
        text = HERE.format(runs=runs, folder=tmp_path / "on", command=json.dumps(command))
        return write(text + more)

    return made


def performed(path: Path, out: Path, **more) -> dict:
    return study.run(path, out, allow_commands=True, **more)


def test_a_command_in_a_directory(here, tmp_path):
    out = tmp_path / "s"
    told = performed(here("echo in $PWD; echo x > file; test ! -e other; touch other", 3), out)
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 3, 0)
    assert list((tmp_path / "on").iterdir()) == [], "each run had a folder of its own, which is gone"
    printed = [path.read_text() for path in sorted(out.rglob("stdout"))]
    assert len(set(printed)) == 3
    for one in (out, *out.rglob("*")):
        assert oct(one.stat().st_mode)[-3:] == ("700" if one.is_dir() else "600"), one
    [arm] = study.arms(out)
    assert isinstance(arm, Arm) and arm.name == "here+load"
    assert list(arm.metrics) == ["elapsed", "user", "system"]
    assert [run.block for run in arm.runs] == [1, 2, 3]
    assert all(run.values["elapsed"] > 0 for run in arm.runs)
    assert arm.factors == {"system": "here"}
    assert arm.environment["kernel"]


def test_loads_of_our_own(write, tmp_path):
    (tmp_path / "on").mkdir()
    path = write(
        f"""\
        name = "own"
        [repeat]
        runs = 2
        [systems.here]
        directory = "{tmp_path}/on"
        [factors]
        depth = [1, 4]
        [workloads.read]
        run = "randread"
        options = {{ size = "1m", requests = 500, depth = "{{depth}}", cache = "none" }}
        metrics = ["ops_per_s", "service_mean"]
        [workloads.mail]
        run = "varmail"
        options = {{ size = "4m", duration = "200ms" }}
        """
    )
    told = study.run(path, tmp_path / "s")
    assert told["state"] == "finished", told
    assert told["failed"] == 0, told
    arms = {arm.name: arm for arm in study.arms(tmp_path / "s")}
    assert list(arms) == ["here+read+depth=1", "here+read+depth=4", "here+mail"]
    read = arms["here+read+depth=4"]
    assert list(read.metrics)[:2] == ["ops_per_s", "service_mean"]
    assert read.factors == {"system": "here", "depth": "4"}
    bundles = [loadstone.Bundle.read(run.path) for run in read.runs]
    assert [bundle.plan["seed"] for bundle in bundles] == [1, 2], "each block draws anew"
    assert read.runs[0].values["ops_per_s"] == bundles[0].summary["ops_per_s"]
    text = study.text(study.report(tmp_path / "s"))
    assert "here+read+depth=4  ops_per_s" in text


def test_figures_of_a_command_decide(here, tmp_path):
    figures = '[workloads.load.figures.score]\nregex = "score (.*)"\nunit = "points"\nbetter = "higher"\n'
    told = performed(here("echo score 4{block}", 3, figures), tmp_path / "s")
    assert told["failed"] == 0
    [arm] = study.arms(tmp_path / "s")
    assert next(iter(arm.metrics)) == "score"
    assert [run.values["score"] for run in arm.runs] == [41, 42, 43]


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("score nan", "which is no finite number"),
        ("score word", "no finite number"),
        ("none", "score is missing"),
    ],
)
def test_a_metric_that_is_missing_or_no_number_fails_the_run(printed, said, here, tmp_path):
    figures = '[workloads.load.figures.score]\nregex = "score (.*)"\nbetter = "higher"\n'
    told = performed(here(f"echo {printed}", 5, figures), tmp_path / "s")
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 0, 2)
    assert told["cells"][0]["given_up"] and said in told["cells"][0]["failure"]
    assert "given up after 2 failed runs" in study.text(study.report(tmp_path / "s"))


def test_a_failing_cell_is_recorded_and_the_rest_goes_on(here, tmp_path):
    more = '[workloads.bad]\ncommand = "echo broken >&2; exit 3"\n'
    told = performed(here("true", 3, more), tmp_path / "s")
    assert (told["runs"], told["failed"]) == (3, 2)
    bad = next(one for one in told["cells"] if one["cell"] == "here+bad")
    assert bad["failure"] == "echo broken >&2; exit 3: ended with status 3: broken"


def test_a_command_that_hangs_is_ended_with_all_it_started(here, tmp_path):
    told = performed(
        here("sleep 1234 & setsid sleep 1235 & sleep 1236", 2, 'time_limit = "300ms"\n'), tmp_path / "s"
    )
    assert told["failed"] == 2
    assert "did not end within its time limit" in told["cells"][0]["failure"]
    assert subprocess.run(["pgrep", "-f", "^sleep 123[456]$"]).returncode == 1


def test_programs_are_released_together_and_others_run_beside(here, tmp_path):
    more = 'copies = 3\nbeside = ["while :; do touch {out}/beside; sleep 0.01; done"]\n'
    more += '[workloads.load.figures.rate]\nregex = "rate (.*)"\nunit = "ops/s"\nbetter = "higher"\n'
    # Each waits for all others: one after the other they would never end.
    wait = "touch {out}/c{copy}; while ! test -e {out}/c0 -a -e {out}/c1 -a -e {out}/c2; do sleep 0.01; done"
    told = performed(
        here(f"{wait}; test -e {{out}}/beside || sleep 1; echo rate 10", 1, more), tmp_path / "s"
    )
    assert told["failed"] == 0, [one["failure"] for one in told["cells"]]
    [arm] = study.arms(tmp_path / "s")
    assert arm.runs[0].values["rate"] == 30, "rates add up"
    assert (tmp_path / "s/runs/here+load/001/beside").exists()


def test_hooks_run_at_their_points(here, tmp_path):
    log = tmp_path / "log"
    points = ("study", "system", "cell", "run")
    hooks = "".join(
        f"{when}_{point} = ['echo {when} {point} >> {log}']\n"
        for point in points
        for when in ("before", "after")
    )
    every = f"every = [{{ command = 'echo tick >> {log}.every', seconds = 0.02 }}]\n"
    told = performed(here(f"sleep 0.2; echo run >> {log}", 2, f"[hooks]\n{hooks}{every}"), tmp_path / "s")
    assert told["failed"] == 0
    run = ["before run", "run", "after run", "after system"]
    first = ["before study", "before system", "before cell", *run]
    assert log.read_text().splitlines() == [*first, "before system", *run, "after cell", "after study"]
    assert 2 <= len(Path(f"{log}.every").read_text().splitlines()) <= 40


def test_a_hook_before_a_run_that_fails_fails_the_run(here, tmp_path):
    told = performed(
        here("true", 2, "[hooks]\nbefore_run = ['false']\nafter_run = ['false']\n"), tmp_path / "s"
    )
    assert told["failed"] == 2
    other = performed(here("true", 2, "[hooks]\nafter_run = ['false']\n"), tmp_path / "t")
    assert other["failed"] == 0
    with Journal(tmp_path / "t") as journal:
        noted = [step for step in journal.steps() if step["step"] == "hook after_run"]
    assert [step["failure"] is not None for step in noted] == [True, True]


def test_whoever_waits_is_notified(here, tmp_path):
    text = f"notify = 'echo $LOADSTONE_STATE > {tmp_path}/told'\n"
    path = here("true", 1)
    path.write_text(text + path.read_text())
    performed(path, tmp_path / "s")
    assert (tmp_path / "told").read_text() == "finished\n"


def test_commands_need_permission(here, tmp_path):
    path = here("true", 1, "prepare = ['echo p']\n[hooks]\nbefore_run = ['echo h']\n")
    with pytest.raises(loadstone.StudyError) as caught:
        study.run(path, tmp_path / "s")
    text = str(caught.value)
    assert "workloads.load.command: runs true; `allow_commands`" in text
    assert "hooks.before_run: runs echo h" in text and "prepare: runs echo p" in text
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("system", "load", "said"),
    [
        ('make = "ext4"\ndevice = "/dev/null"', "", "would lose its content; `allow_destroy` must name it"),
        ('make = "ext4"\ndevice = "/dev/not-there"', "", "there is no such device"),
        ('make = "nofs"', "", "mkfs.nofs: is not installed; install it"),
        ('make = "jfs"', "", "install Debian's package jfsutils"),
        ('make = "ext4"\noptions = "-J device=/dev/null"', "", "names the path device=/dev/null"),
        ('make = "ext4"\nmount = "journal_path=/tmp/x"', "", "names the path"),
        ('make = "ext4"\nreset = "drop-caches"', "", "drops caches of the whole host"),
        ('make = "ext4"\nqueue = { scheduler = "none" }', "", "changes settings of a device"),
        ('directory = "/not/there"', "", "is no directory"),
        ('directory = "/tmp"', "", "w: randread"),
        ('directory = "/tmp"', 'target = "/etc/x"', "write below {mount} or {out} only"),
        ('directory = "/tmp"', 'target = "{mount}/../x"', "write below {mount} or {out} only"),
        ('directory = "/tmp"', 'options = { allow_destroy = ["/dev/vda"] }', "write below"),
        ('directory = "/tmp"', 'options = { log = "/etc/log" }', "write below"),
        ('directory = "/tmp"', 'options = { cache = "drop-host" }', "is a change to the host"),
        ('directory = "/tmp"', "options = { nice = -5 }", "options.nice: takes time from others"),
        ('directory = "/tmp"', 'options = { ioprio = "realtime:0" }', "options.ioprio: takes time"),
    ],
)
def test_what_a_file_may_not_do_by_itself(system, load, said, write, tmp_path):
    path = write(f'name = "x"\n[systems.s]\n{system}\n[workloads.w]\nrun = "randread"\n{load}\n')
    with pytest.raises(loadstone.StudyError) as caught:
        study.run(path, tmp_path / "s")
    assert said in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_a_folder_of_another_host_is_shown_and_not_obeyed(here, tmp_path):
    """It says what is permitted, and what is taken back: files that are written, services that start."""
    performed(here("true", 2), tmp_path / "s")
    subprocess.run(["cp", "-a", tmp_path / "s", tmp_path / "copy"], check=True)
    assert study.show(tmp_path / "copy")["runs"] == 2
    assert study.report(tmp_path / "copy")["runs"] == 2
    for act in (study.resume, study.clean):
        with pytest.raises(loadstone.StudyError, match="was made elsewhere or is a copy"):
            act(tmp_path / "copy")
        act(tmp_path / "s")
    os.rename(tmp_path / "s", tmp_path / "renamed")
    study.resume(tmp_path / "renamed")


def test_changes_to_the_host_need_permission(here, tmp_path):
    path = here("true", 1, "[host]\nstop = ['cron.service']\nswap = 'off'\nsysctl = { 'vm.nothing' = 1 }\n")
    with pytest.raises(loadstone.StudyError) as caught:
        performed(path, tmp_path / "s")
    assert "changes services, swap or kernel parameters" in str(caught.value)
    assert "there is no kernel parameter vm.nothing" in str(caught.value)


def test_parameters_of_the_kernel_are_restored(here, tmp_path, need_root):
    parameter = Path("/proc/sys/vm/dirty_writeback_centisecs")
    before = parameter.read_text()
    told = performed(
        here(
            f"test $(cat {parameter}) = 1234 || exit 7",
            1,
            "[host.sysctl]\n'vm.dirty_writeback_centisecs' = 1234\n",
        ),
        tmp_path / "s",
        allow_host_changes=True,
    )
    assert told["failed"] == 0, [one["failure"] for one in told["cells"]]
    assert parameter.read_text() == before


def test_the_folder_of_another_study_is_left_alone(here, tmp_path):
    performed(here("true", 1), tmp_path / "s")
    with pytest.raises(loadstone.StudyError, match="is the folder of this study; loadstone study resume"):
        performed(here("true", 1), tmp_path / "s")
    with pytest.raises(loadstone.StudyError, match="is the folder of another study"):
        performed(here("false", 1), tmp_path / "s")
    (tmp_path / "other").mkdir()
    with pytest.raises(loadstone.StudyError, match="exists and is no study's folder"):
        performed(here("true", 1), tmp_path / "other")
    with pytest.raises(loadstone.StudyError, match="is no study's folder"):
        study.resume(tmp_path / "other")
    told = json.loads((tmp_path / "s/study.json").read_text())
    (tmp_path / "s/study.json").write_text(json.dumps({**told, "version": 99}))
    with pytest.raises(loadstone.StudyError, match="is of version 99"):
        study.resume(tmp_path / "s")


def test_a_folder_that_others_can_write_to_is_not_obeyed(here, tmp_path):
    performed(here("true", 1), tmp_path / "s")
    (tmp_path / "s/study.json").chmod(0o666)
    with pytest.raises(loadstone.StudyError, match="others can write to it"):
        study.resume(tmp_path / "s")


def started(path: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    program = Path(sys.executable).with_name("loadstone")
    words = [program, "study", "run", path, "--out", out, "--allow-commands", *more]
    return subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(what, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_process_at_a_time_performs_a_study(here, tmp_path):
    out = tmp_path / "s"
    process = started(here(f"while ! test -e {tmp_path}/go; do sleep 0.01; done", 1), out)
    until(lambda: list(out.rglob("stdout")))
    for act in (study.resume, study.clean):
        with pytest.raises(loadstone.StudyError, match=f"process {process.pid} performs this study"):
            act(out)
    (tmp_path / "go").touch()
    assert process.wait(60) == 0, process.stderr.read()
    assert study.show(out)["state"] == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_had_finished_and_resume_goes_on(number, here, tmp_path):
    out = tmp_path / "s"
    process = started(here(f"test -e {tmp_path}/go || test {{block}} = 1 || sleep 1237", 3), out)
    until(lambda: len(list(out.rglob("stdout"))) == 2)
    process.send_signal(number)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, printed
    assert subprocess.run(["pgrep", "-f", "^sleep 1237$"]).returncode == 1
    told = study.show(out)
    assert (told["state"], told["runs"], told["failed"], told["left"]) == ("interrupted", 1, 0, [])
    with Journal(out) as journal:
        [first] = journal.runs()
    (tmp_path / "go").touch()
    told = study.resume(out)
    assert (told["state"], told["runs"]) == ("finished", 3)
    with Journal(out) as journal:
        assert journal.runs()[0] == first
    assert list((tmp_path / "on").iterdir()) == []


def test_a_budget_ends_it_and_resume_with_more_goes_on(here, tmp_path):
    told = performed(here("sleep 0.2", 6), tmp_path / "s", budget=0.1)
    assert (told["state"], told["runs"]) == ("budget", 1)
    told = study.resume(tmp_path / "s", budget=3600)
    assert (told["state"], told["runs"]) == ("finished", 6)


def test_a_dry_run_names_every_step(root, loadstone, tmp_path):
    path = root / "docs/reference/formats/study.md"
    text = path.read_text().split("```toml\n")[1].split("```")[0]
    (tmp_path / "m.toml").write_text(text)
    printed = loadstone("study", "run", tmp_path / "m.toml", "--dry-run", cwd=tmp_path).stdout
    assert "mail: 8 cells, blocks, seed 7" in printed
    assert "runs: 80 to 240" in printed
    assert "ext4+copy+atime=noatime: mkfs.ext4 -E lazy_itable_init=0 on a loop device" in printed
    assert "sync -f {mount}" in printed
    assert [one.name for one in tmp_path.iterdir()] == ["m.toml"]


LOOP = """\
name = "loop"
[repeat]
runs = {runs}
[variables]
size = "{size}"
[systems.ext4]
make = "ext4"
size = "{{size}}"
reset = "{reset}"
[workloads.load]
prepare = ["cp /etc/passwd {{mount}}/prepared"]
command = {command}
"""


@pytest.fixture
def loop(write, need_root, need_tools):
    need_tools("mkfs.ext4", "losetup", "wipefs")

    def made(command: str, reset: str = "mkfs", runs: int = 3, size: str = "16m", more: str = "") -> Path:
        return write(LOOP.format(runs=runs, reset=reset, size=size, command=json.dumps(command)) + more)

    return made


COUNT = "test -s {mount}/prepared && echo x >> {mount}/count && wc -l < {mount}/count"


@pytest.mark.parametrize(
    ("reset", "expected"),
    [("mkfs", [1, 1, 1]), ("image", [1, 1, 1]), ("remount", [1, 2, 3]), ("none", [1, 2, 3])],
)
def test_resets(reset, expected, loop, tmp_path):
    out = tmp_path / "s"
    figures = '[workloads.load.figures.n]\nregex = "(.+)"\nbetter = "higher"\n'
    told = performed(loop(COUNT, reset, more=figures), out)
    assert told["failed"] == 0, [one["failure"] for one in told["cells"]]
    [arm] = study.arms(out)
    assert [run.values["n"] for run in arm.runs] == expected
    assert left_on_host(tmp_path) == []
    assert list((out / "systems").iterdir()) == []
    with Journal(out) as journal:
        prepared = [step for step in journal.steps() if step["step"].startswith("prepare")]
    assert len(prepared) == (3 if reset == "mkfs" else 1)
    assert arm.environment["geometry"]["Block size"] == "1024"
    assert arm.environment["targets"]["system"]["mount"]["type"] == "ext4"


@pytest.mark.parametrize("make", ["ext4", "xfs", "btrfs"])
def test_file_systems(make, write, tmp_path, need_root, need_tools):
    need_tools(f"mkfs.{make}")
    path = write(
        f"""\
        name = "fs"
        [repeat]
        runs = 1
        [systems.s]
        make = "{make}"
        size = "320m"
        mount = "noatime"
        [workloads.w]
        run = "varmail"
        options = {{ size = "4m", duration = "100ms" }}
        """
    )
    told = study.run(path, tmp_path / "s")
    assert (told["runs"], told["failed"]) == (1, 0), told["cells"][0]["failure"]
    [arm] = study.arms(tmp_path / "s")
    mount = arm.environment["targets"]["system"]["mount"]
    assert mount["type"] == make and "noatime" in mount["options"]
    assert arm.environment["geometry"]


def test_a_disk_that_fills_fails_the_run_and_nothing_else(loop, tmp_path):
    told = performed(loop("head -c 64m /dev/zero > {mount}/big", runs=2), tmp_path / "s")
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 0, 2)
    assert "No space left on device" in told["cells"][0]["failure"]
    assert left_on_host(tmp_path) == []


def test_a_system_that_is_still_in_use_is_let_go_of(loop, tmp_path):
    told = performed(
        loop("cd {mount}; setsid sleep 1238 < /etc/passwd > {mount}/open &", runs=2), tmp_path / "s"
    )
    assert (told["runs"], told["failed"]) == (2, 0), told["cells"][0]["failure"]
    assert left_on_host(tmp_path) == []


def test_a_device_of_the_users(loop, alone, tmp_path):
    path = loop("mount | grep '{mount} ' | cut -d' ' -f1", runs=2)
    text = (
        path.read_text()
        .replace('size = "{size}"', f'device = "{alone}"')
        .replace('[variables]\nsize = "16m"\n', "")
    )
    path.write_text(text)
    with pytest.raises(loadstone.StudyError, match="`allow_destroy` must name it"):
        performed(path, tmp_path / "s")
    told = performed(path, tmp_path / "s", allow_destroy=[alone])
    assert (told["runs"], told["failed"]) == (2, 0), told["cells"][0]["failure"]
    assert (tmp_path / "s/runs/ext4+load/001/stdout").read_text().strip() == alone


def test_a_device_that_is_mounted_is_refused(loop, mounted, alone, tmp_path):
    path = loop("true", runs=2)
    text = (
        path.read_text()
        .replace('size = "{size}"', f'device = "{alone}"')
        .replace('[variables]\nsize = "16m"\n', "")
    )
    path.write_text(text)
    with pytest.raises(loadstone.StudyError, match="is mounted, or something else holds it"):
        performed(path, tmp_path / "s", allow_destroy=[alone])


def test_settings_of_the_queue_are_made(loop, tmp_path):
    path = loop("cat /sys/block/$(basename {disk})/queue/read_ahead_kb", runs=1)
    path.write_text(path.read_text().replace('reset = "mkfs"', 'queue = { read_ahead_kb = "64" }'))
    told = performed(path, tmp_path / "s", allow_host_changes=True)
    assert told["failed"] == 0, [one["failure"] for one in told["cells"]]
    assert (tmp_path / "s/runs/ext4+load/001/stdout").read_text() == "64\n"


def test_clean_after_an_interrupt_removes_images_that_were_kept(loop, tmp_path):
    out = tmp_path / "s"
    process = started(loop("test {block} = 1 || sleep 1239", "none", 3), out)
    until(lambda: len(list(out.rglob("stdout"))) == 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert left_on_host(tmp_path) == []
    told = study.clean(out)
    assert told["faults"] == [] and list((out / "systems").iterdir()) == []
    assert study.show(out)["left"] == []
    assert Allowed().commands is False and os.path.isdir(out / "runs")


def test_without_loop_devices_nothing_is_begun(loop, tmp_path, root):
    path = loop("true")
    words = "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && "
    words += f"exec {root}/.venv/bin/loadstone study run {path} --out {tmp_path}/s --allow-commands"
    done = subprocess.run(["unshare", "-m", "sh", "-c", words], capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "/dev/loop-control: is not there, so images cannot be mounted" in done.stderr
    assert not (tmp_path / "s").exists()


def test_arms_that_differ_in_what_nobody_asked_for_are_not_compared(loop, tmp_path):
    """The first run of the same system finds other mount options than the second."""
    out = tmp_path / "s"
    remount = "[hooks]\nbefore_system = ['test {block} = 1 || mount -o remount,noatime {mount}']\n"
    told = performed(loop("true", runs=2, more=remount), out)
    assert told["failed"] == 0
    with pytest.raises(loadstone.StudyError, match="mount options of ext4 were rw,relatime and rw,noatime"):
        study.report(out)
    found = study.report(out, force=True)
    assert found["differences"]["mount options"]["asked"] is False
    assert "environments differ, and the file does not ask for it:\n  mount options" in study.text(found)


def test_a_client_that_is_the_limit_is_told(here, tmp_path):
    busy = "for i in $(seq $(nproc)); do timeout 1 sh -c 'while :; do :; done' & done; wait; true"
    performed(here(busy, 1), tmp_path / "s")
    text = study.text(study.report(tmp_path / "s"))
    assert "the client, not the storage, was the limit" in text or "others used the CPUs" in text


def test_a_unit_goes_on_after_boot_and_removes_itself(here, tmp_path, need_root, need_tools):
    """On the tree of another system: the unit is checked by systemd, and what it would start is started."""
    need_tools("systemctl", "systemd-analyze")
    place = Path(tempfile.mkdtemp(prefix="loadstone-test-", dir="/var/tmp"))
    try:
        units = place / "root/etc/systemd/system"
        units.mkdir(parents=True)
        out = place / "s"
        performed(here("true", 3), out, budget=1e-9)
        with Journal(out) as journal:
            maker = Maker(out, journal, str(journal.get("study")))
            booting.install(maker, booting.program(), place / "root")
        [unit] = units.glob("*.service")
        assert [path.name for path in units.rglob("*.wants/*")] == [unit.name]
        checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
        assert "Unknown" not in checked.stderr and unit.name not in checked.stderr, checked.stderr
        words = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.M)[1].split()
        subprocess.run([*words, "--budget", "1h"], check=True, capture_output=True)
        assert study.show(out)["state"] == "finished"
        assert not list(units.glob("*.service")) and not list(units.rglob("*.wants/*"))
        out.chmod(0o777)
        with Journal(out) as journal, pytest.raises(loadstone.StudyError, match="others can write to it"):
            booting.install(Maker(out, journal, "x"), booting.program(), place / "root")
        assert not list(units.glob("*.service"))
    finally:
        shutil.rmtree(place)


@pytest.fixture
def small(tmp_path, need_root):
    """A file system of 80 MiB that nobody else uses."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_fills_below_the_journal_loses_no_finished_run(here, small, tmp_path):
    out = small / "s"
    fill = f"test -e {tmp_path}/enough || test {{block}} = 1 || cat /dev/zero > {small}/fill; true"
    with pytest.raises(loadstone.StudyError, match="the journal cannot be written"):
        performed(here(fill, 3), out)
    (small / "fill").unlink()
    before = study.show(out)
    assert before["runs"] == 1
    (tmp_path / "enough").touch()
    told = study.resume(out)
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 3, 0)
    assert list((tmp_path / "on").iterdir()) == []
    (small / "fill").write_bytes(bytes(40 << 20))
    with pytest.raises(loadstone.StudyError, match="less than 64 MiB are free"):
        performed(here("true", 1), small / "t")


def test_swap_is_off_during_the_study_and_on_again(here, public, tmp_path, need_root, need_tools):
    need_tools("mkswap", "swapon", "swapoff")
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        pytest.skip("this host has swap of its own, which is left alone")
    file = public / "swap"
    file.write_bytes(bytes(8 << 20))
    file.chmod(0o600)
    subprocess.run(["mkswap", file], check=True, capture_output=True)
    if subprocess.run(["swapon", "-p", "7", file], capture_output=True).returncode:
        pytest.skip("no swap on this file system")
    try:
        path = here("! grep -q ^/ /proc/swaps", 1, "[host]\nswap = 'off'\n")
        told = performed(path, tmp_path / "s", allow_host_changes=True)
        assert told["failed"] == 0, told["cells"][0]["failure"]
        assert re.search(rf"^{file}\s.*\s7$", Path("/proc/swaps").read_text(), re.M)
    finally:
        subprocess.run(["swapoff", file], check=True)


SYSTEMCTL = """\
#!/bin/sh
case "$1" in
show) test -e {folder}/$5.stopped && echo inactive || echo active ;;
stop) touch {folder}/$2.stopped ;;
start) rm {folder}/$2.stopped ;;
esac
"""


def test_services_are_stopped_and_started_again(here, tmp_path, need_root, monkeypatch):
    """systemd runs in few test machines: a stand-in keeps which services are stopped."""
    tool = tmp_path / "bin/systemctl"
    tool.parent.mkdir()
    tool.write_text(SYSTEMCTL.format(folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    (tmp_path / "two.service.stopped").touch()
    command = f"test -e {tmp_path}/one.service.stopped"
    path = here(command, 1, "[host]\nstop = ['one.service', 'two.service']\n")
    told = performed(path, tmp_path / "s", allow_host_changes=True)
    assert told["failed"] == 0, told["cells"][0]["failure"]
    left = sorted(path.name for path in tmp_path.glob("*.stopped"))
    assert left == ["two.service.stopped"], "what was not running is not started"


def test_a_killed_study_on_a_device_can_be_resumed(loop, alone, tmp_path):
    path = loop(f"test -e {tmp_path}/go || sleep 1241", runs=2)
    text = path.read_text().replace('size = "{size}"', f'device = "{alone}"')
    path.write_text(text.replace('[variables]\nsize = "16m"\n', ""))
    out = tmp_path / "s"
    process = started(path, out, "--allow-destroy", alone)
    until(lambda: list(out.rglob("stdout")))
    process.kill()
    process.communicate()
    assert any(line.startswith("mount") for line in left_on_host(tmp_path))
    (tmp_path / "go").touch()
    told = study.resume(out)
    assert (told["state"], told["runs"], told["failed"]) == ("finished", 2, 0)
    assert not any(line.startswith("mount") for line in left_on_host(tmp_path))


def test_an_interrupt_during_a_load_of_our_own(write, tmp_path):
    (tmp_path / "on").mkdir()
    options = '{ size = "1m", cache = "none", duration = "1h" }'
    load = f'[workloads.read]\nrun = "randread"\noptions = {options}\n'
    path = write(f'name = "own"\n[systems.here]\ndirectory = "{tmp_path}/on"\n{load}')
    out = tmp_path / "s"
    process = started(path, out)
    until(lambda: list((tmp_path / "on").rglob("load")))
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert f"loadstone study resume {out} goes on" in printed
    told = study.show(out)
    assert (told["state"], told["runs"], told["failed"]) == ("interrupted", 0, 0)
    assert list((tmp_path / "on").iterdir()) == []


def test_the_status_of_the_command_tells_of_cells_that_were_given_up(here, tmp_path, loadstone):
    more = '[workloads.bad]\ncommand = "exit 3"\n'
    words = ("study", "run", here("true", 2, more), "--allow-commands", "--json", "--out", tmp_path / "s")
    told = json.loads(loadstone(*words, status=1).stdout)
    assert [one["given_up"] for one in told["cells"]] == [False, True]
    printed = loadstone("study", "show", tmp_path / "s").stdout
    assert "here+bad: 0 runs, given up: exit 3: ended with status 3" in printed
    told = json.loads(loadstone("study", "report", tmp_path / "s", "--json").stdout)
    assert [one["runs"] for one in told["arms"]] == [2, 0]
    assert loadstone("study", "clean", tmp_path / "s").stdout == "nothing was left\n"
    text = loadstone("study", "run", here("true", 2), "--out", tmp_path / "t", status=1).stderr
    assert "--allow-commands permits commands of the file" in text
    assert (
        "--set nothing: is no variable"
        in loadstone("study", "run", here("true"), "--set", "nothing=1", "--dry-run", status=1).stderr
    )


def test_a_study_can_be_looked_at_while_it_goes_on(here, tmp_path, loadstone):
    out = tmp_path / "s"
    process = started(here(f"while ! test -e {tmp_path}/go; do sleep 0.01; done", 1), out)
    until(lambda: list(out.rglob("stdout")))
    assert "here: running, 0 runs" in loadstone("study", "show", out).stdout
    assert "no good run" in loadstone("study", "report", out).stdout
    (tmp_path / "go").touch()
    assert process.wait(60) == 0, process.stderr.read()
    assert "here: finished, 1 run\n" in loadstone("study", "show", out).stdout
