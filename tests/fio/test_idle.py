"""Jobs that issue no requests: ``cpuio`` takes CPU time, ``exec`` runs a program."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
from tests.fio.test_lower import lowered

import loadstone as library
from loadstone import Error
from loadstone.fio import FioError
from loadstone.plan import RunOptions
from loadstone.plan.actions import Program


def test_cpu_time_is_a_source_of_its_own():
    text = "[a]\nioengine=cpuio\ncpuload=25\ncpuchunks=2000\ncpumode=qsort\nnumjobs=2\nruntime=3\nnice=5\n"
    [plan] = lowered(text).plans
    source = {"kind": "cpu", "load": 0.25, "chunk_ns": 2_000_000, "sorts": True}
    assert plan["workers"] == 2 * [
        {"nice": 5, "group": "a", "source": source, "backend": "null", "depth": 1, "cpus": []}
    ]
    assert (plan["targets"], plan["steps"]) == ([], [{"step": "run", "duration_ns": 3_000_000_000}])


def test_it_runs_beside_requests_and_ends_with_them(tmp_path):
    text = "[io]\nrw=write\nsize=64k\nbs=4k\n[cpu]\nioengine=cpuio\ncpuload=100\nexit_on_io_done=1\n"
    (tmp_path / "j.fio").write_text(text)
    found = library.run(library.job(tmp_path / "j.fio", tmp_path), by="group")
    groups = {one["group"]: one for one in found.summary["groups"]}
    assert (found.summary["requests"], found.summary["partial"], found.summary["errors"]) == (16, False, 0)
    assert (groups["io"]["count"], groups["cpu"]["count"]) == (16, 0)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ("ioengine=cpuio\nruntime=1", "[a]: has no cpuload; write the percentage"),
        ("ioengine=cpuio\ncpuload=0\nruntime=1", "0 must be from 1 to 100"),
        ("ioengine=cpuio\ncpuload=50", "takes CPU time without end; write runtime=30"),
        ("ioengine=cpuio\ncpuload=50\nexit_on_io_done=1", "no job that runs with this one issues requests"),
        ("ioengine=cpuio\ncpuload=50\nruntime=1\nbs=4k", "bs=4k: means nothing to a job that issues no"),
        ("ioengine=cpuio\ncpuload=50\nruntime=1\ncpumode=burn", "must be one of: noop, qsort"),
        ("ioengine=exec", "[a]: has no program; write program=NAME"),
        ("ioengine=exec\nprogram=true\nnumjobs=2", "runs one program; write a job for each"),
        ("ioengine=exec\nprogram=true\nstartdelay=1", "means nothing to a job that issues no requests"),
        ("ioengine=exec\nprogram=true", "no job issues requests; call the program itself"),
        ("size=1m\ncpuload=50", "cpuload=50: needs ioengine=cpuio"),
        ("size=1m\nprogram=true", "program=true: needs ioengine=exec"),
    ],
)
def test_what_means_nothing_is_refused(keys, what):
    with pytest.raises(FioError, match=re.escape(what)):
        lowered(f"[a]\n{keys}\n", allow_system=True)


def test_keys_of_a_global_section_are_for_the_other_jobs():
    text = "[global]\nbs=8k\nrw=randread\nsize=1m\nruntime=1\n"
    text += "[io]\nioengine=null\n[c]\nioengine=cpuio\ncpuload=9\n"
    assert [one["source"]["kind"] for one in lowered(text).plans[0]["workers"]] == ["uniform", "cpu"]


def test_programs_come_with_their_group_or_by_themselves(tmp_path):
    text = (
        "[global]\nioengine=exec\nruntime=9\n[mon]\nprogram=top\narguments=-b  -d %r %n\nstd_redirect=0\n"
        "[io]\nioengine=null\nsize=1m\n[cool]\nstonewall\nprogram=sleep\narguments=1\ngrace_time=0\n"
        "[last]\nstonewall\nioengine=null\nsize=1m\n"
    )
    found = lowered(text, tmp_path, allow_system=True)
    assert found.names == [["io"], ["last"]]
    base = str(tmp_path)
    assert found.programs == [
        [Program(("top", "-b", "-d", "9", "mon"), "mon", 9.0, 1.0, None, base)],
        [Program(("sleep", "1"), "cool", 9.0, 0.0, "cool", base, alone=True)],
        [],
    ]


def test_a_program_runs_only_with_leave(tmp_path, loadstone):
    job = tmp_path / "j.fio"
    job.write_text(
        f"[p]\nioengine=exec\nprogram=touch\narguments={tmp_path}/ran\n[io]\nioengine=null\nsize=1m\n"
    )
    said = loadstone("run", job, "--on", tmp_path, status=1).stderr
    assert (
        "j.fio:3: program=touch: runs a program; look at what it does, and allow it with --allow-system"
        in said
    )
    assert json.loads(loadstone("run", job, "--on", tmp_path, "--dry-run").stdout)["workers"]
    assert not (tmp_path / "ran").exists()
    loadstone("run", job, "--on", tmp_path, "--allow-system")
    assert (tmp_path / "ran").exists()
    # What it prints took no file's place, and takes none now.
    again = loadstone("run", job, "--on", tmp_path, "--allow-system", status=1).stderr
    assert "p.stdout is there already, and p would print to it; move it away" in again


def test_a_program_prints_to_files_and_ends_at_its_time(tmp_path):
    """It gets SIGTERM at its runtime, SIGKILL after its grace, and all it has started ends with it."""
    program = tmp_path / "stubborn"
    program.write_text(
        "#!/bin/sh\ntrap 'echo term >&2' TERM\necho $1 $2\nsleep 1000 &\necho $! > $0.pid\n"
        "while :; do wait; done\n"
    )
    program.chmod(0o755)
    job = tmp_path / "j.fio"
    job.write_text(
        f"[p]\nioengine=exec\nprogram={program}\narguments=%n %r\nruntime=1\ngrace_time=1\n"
        "[io]\nioengine=null\nsize=1m\n"
    )
    result = library.run(library.job(job, tmp_path, RunOptions(allow_system=True)))
    assert (result.summary["requests"], result.partial) == (256, False)
    assert (tmp_path / "p.stdout").read_text() == "p 1\n"
    assert (tmp_path / "p.stderr").read_text() == "term\n"
    pid = int((tmp_path / "stubborn.pid").read_text())
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    assert not state or state.startswith("Z")


def test_what_a_program_fails_with_is_told(tmp_path):
    job = tmp_path / "j.fio"
    text = "[p]\nioengine=exec\nprogram={}\nstd_redirect=0\n[io]\nioengine=null\nsize=1m\n"
    job.write_text(text.format("false"))
    told: list[str] = []
    library.run(library.job(job, tmp_path, RunOptions(allow_system=True)), say=told.append)
    assert told == ["p: false ended with status 1"]
    job.write_text(text.format("/nonexistent/program"))
    with pytest.raises(Error, match=r"j\.fio:3: program=/nonexistent/program: there is no such program"):
        library.run(library.job(job, tmp_path, RunOptions(allow_system=True)))


def test_fio_takes_the_same_programs(tmp_path, need_tools):
    """Words, variables and files of what is printed are those of fio."""
    need_tools("fio")
    job = tmp_path / "j.fio"
    job.write_text(
        "[p]\nioengine=exec\nprogram=echo\narguments=x  %n %r a'b\nruntime=7\n[io]\nioengine=null\nsize=1m\n"
    )
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
    subprocess.run(["fio", job], cwd=tmp_path / "theirs", check=True, capture_output=True, timeout=60)
    library.run(library.job(job, tmp_path / "ours", RunOptions(allow_system=True)))
    printed = [(tmp_path / name / "p.stdout").read_text() for name in ("theirs", "ours")]
    assert printed[0] == printed[1] and printed[1], os.listdir(tmp_path / "theirs")
