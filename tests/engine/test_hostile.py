"""Plans and scripts in which one number asks for more than there is: an error before anything is taken."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NULL = {"id": "t", "kind": "null", "size": 1 << 20}
UNIFORM = {
    "source": {"kind": "uniform", "reads": 1.0, "size": 4096},
    "backend": "null",
    "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
}
SECOND = 10**9


def plan(**parts: Any) -> dict[str, Any]:
    steps = [{"step": "prepare"}, {"step": "run", "duration_ns": SECOND // 10}]
    return {"version": 1, "targets": [NULL], "workers": [UNIFORM], "steps": steps, **parts}


def program(memory: int = 0, **of_set: Any) -> dict[str, Any]:
    ops = [{"name": "r", "act": "read", "set": "s", "size": 4096}]
    worker = {"source": {"kind": "program", "memory": memory, "ops": ops}, "backend": "null", "depth": 2}
    sets = [{"id": "s", "target": "t", "path": "s", "entries": 9, "size": 4096, "present": 1.0, **of_set}]
    return plan(workers=[worker], sets=sets)


def little_memory() -> None:
    """2 GiB: what takes more is ended by it, and not the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


CASES = {
    "memory": (program(memory=900 << 30), r"takes 184\d{4} MiB of memory, and \d+ MiB are available"),
    "entries": (program(entries=2_000_000_000), r"sets\[0\] has 2000000000 files"),
    "interval": (plan(interval_ns=2**64 - 1), r"interval_ns: is 18446744073709551615; an interval has at"),
    "short": (plan(interval_ns=1), "interval_ns: is under a millisecond"),
    "none": (plan(interval_ns=0), "interval_ns: is under a millisecond"),
    "long": (plan(steps=[{"step": "run", "duration_ns": 2**64 - 1}]), r"steps\[0\].duration_ns: is 18446"),
    "many": (
        plan(interval_ns=1_000_000, steps=[{"step": "run", "duration_ns": 86_400 * SECOND}]),
        "has 86400000 intervals of 1000000 ns; at most 10000000",
    ),
    "depth": (plan(workers=[{**UNIFORM, "depth": 2**31}]), r"workers\[0\].depth: is 2147483648"),
    "request": (
        plan(workers=[{**UNIFORM, "source": {"kind": "uniform", "reads": 1.0, "size": 2**63}}]),
        r"workers\[0\].source.size: is 9223372036854775808; one request has 1 to 268435456",
    ),
    "target": (plan(targets=[{**NULL, "size": 2**64 - 1}]), r"targets\[0\]: has size 18446744073709551615"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_number_that_asks_for_too_much_is_refused(loadstone: Any, tmp_path: Path, case: str) -> None:
    given, wanted = CASES[case]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(given))
    done = loadstone("run", path, status=1, before=little_memory)
    (line,) = done.stderr.splitlines()
    assert re.search(wanted, line), line


def test_a_plan_nested_without_end_is_an_error(loadstone: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    whole = json.dumps(plan())[:-1]
    for deep in (
        "[" * 100_000 + "]" * 100_000,
        f'{whole}, "x": {"[" * 500}{"]" * 500}}}',
        f'{whole}, "x": {"1" * 10_000}}}',
    ):
        path.write_text(deep)
        done = loadstone("run", path, status=1)
        assert "Traceback" not in done.stderr and str(path) in done.stderr, done.stderr[-500:]


SCRIPT = """define fileset name=s,path=$dir,entries={entries},size=4k,dirwidth=20,prealloc
define process name=p {{ thread name=t,memsize={memsize},instances={instances} {{
flowop read name=r,filesetname=s,iosize={iosize} }} }}
run 1
"""
SMALL = {"entries": "9", "memsize": "1m", "instances": "1", "iosize": "4k"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"memsize": "900g"}, "921600"),
        ({"entries": "2000000000"}, "2000000000 files"),
        ({"instances": "2147483648"}, "2147483648"),
        ({"iosize": "1g"}, "one request has at most 268435456"),
    ],
)
def test_a_script_that_asks_for_too_much_is_refused(
    loadstone: Any, tmp_path: Path, given: dict[str, str], wanted: str
) -> None:
    path = tmp_path / "s.f"
    path.write_text(SCRIPT.format(**{**SMALL, **given}))
    done = loadstone("run", path, "--on", "null:", status=1, before=little_memory)
    assert wanted in done.stderr and "Traceback" not in done.stderr, done.stderr


LIMITED = """
import json, resource, sys, numpy
from loadstone.plan import check
from loadstone.workload import execute
plan = check(json.loads(sys.argv[1]))
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[0])
most = pages * resource.getpagesize() + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
ops = execute(plan)["ops"]
print(json.dumps([ops["errno"].tolist(), int(ops["count"].sum()) > 0]))
"""


@pytest.mark.parametrize("op", ["getc", "putc", "fread", "fwrite"])
def test_streams_without_memory_fail_and_nothing_else(tmp_path: Path, op: str) -> None:
    """The C library would touch what could not be had."""
    given = program(size=1 << 16)
    given["targets"] = [{"id": "t", "kind": "tree", "path": str(tmp_path / "d")}]
    given["workers"][0]["backend"] = "posix"
    given["workers"][0]["source"]["ops"] = [{"name": op, "act": op, "set": "s", "size": 256 << 20}]
    given["steps"][1] = {"step": "run", "duration_ns": SECOND}
    done = subprocess.run([sys.executable, "-c", LIMITED, json.dumps(given)], capture_output=True, text=True)
    assert done.returncode == 1 and "MiB of memory" in done.stderr and "are available" in done.stderr
    # What fits where the run begins and not when a stream is opened fails alone: its threads are two.
    given["workers"][0]["source"]["ops"][0]["size"] = 120 << 20
    done = subprocess.run([sys.executable, "-c", LIMITED, json.dumps(given)], capture_output=True, text=True)
    assert "Segmentation" not in done.stderr and done.returncode in (0, 1), done.stderr
    assert done.returncode == 1 or json.loads(done.stdout)[1]


@pytest.mark.root
def test_more_files_than_inodes_is_told_before_memory_is_taken(
    loadstone: Any, tmp_path: Path, need_root: Any, need_tools: Any
) -> None:
    need_tools("mount", "umount")
    on = tmp_path / "on"
    on.mkdir()
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=s,path=$dir/deep/er,entries=50000000,dirwidth=1000,filesize=0,prealloc\n"
        "define process name=p { thread name=t { flowop statfile name=o,filesetname=s } }\nrun 1\n"
    )
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1000", "tmpfs", on], check=True)
    try:

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))

        done = loadstone("run", script, "--on", on, status=1, before=limit)
        assert 'the set "s" needs 50000000 inodes, and its file system has 1000' in done.stderr
    finally:
        subprocess.run(["umount", on], check=True)


@pytest.mark.slow
def test_many_objects_take_no_more_than_their_share(loadstone: Any, tmp_path: Path) -> None:
    """Each was looked for among all: a trace of some megabytes took minutes."""
    trace = tmp_path / "t.spc"
    trace.write_text("".join(f"{i},{i},4096,R,{i / 1000}\n" for i in range(150_000)))
    done = loadstone("replay", trace, "--on", "null:", "--pace", "max", "--json", timeout=60)
    assert json.loads(done.stdout)["requests"] == 150_000


def test_texts_of_scripts_do_not_double_without_end(loadstone: Any, tmp_path: Path) -> None:
    script = tmp_path / "s.f"
    doubled = 'set $a="$a$a"\n' * 40
    script.write_text(f'set $a="xxxxxxxx"\n{doubled}echo "$a"\n')
    done = loadstone("run", script, "--on", "null:", status=1)
    assert "s.f:19:" in done.stderr and "longer than 1,048,576 letters" in done.stderr


@pytest.mark.slow
def test_a_plan_makes_files_only_where_the_command_line_says(tmp_path, loadstone):
    mine, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    mine.mkdir(), elsewhere.mkdir()
    (elsewhere / "file").write_text("precious")
    plan = tmp_path / "p.json"
    file = ["run", "randrw", "--on", mine / "new", "--size", "1m", "--requests", 9, "--dry-run"]
    sets = [
        "run",
        "varmail",
        "--on",
        mine / "new",
        "-D",
        "nfiles=9",
        "-D",
        "nthreads=1",
        "--duration",
        "100ms",
    ]
    for words in (file, [*sets, "--dry-run"]):
        text = loadstone(*words).stdout
        plan.write_text(text.replace(str(mine / "new"), str(elsewhere / "evil")))
        for more in ([], ["--on", mine / "new"], ["--on", mine]):
            told = loadstone("run", plan, *more, status=2 if more else 1).stderr
            assert (
                "nothing on the command line names it" in told or "no target of the plan lies there" in told
            )
        assert sorted(os.listdir(elsewhere)) == ["file"] and os.listdir(mine) == []
        # No link makes it another place.
        plan.write_text(text.replace(str(mine / "new"), str(mine / "link" / "evil")))
        (mine / "link").symlink_to(elsewhere)
        assert "lies there" in loadstone("run", plan, "--on", mine, status=2).stderr
        (mine / "link").unlink()
        plan.write_text(text)
        loadstone("run", plan, "--on", mine)
        subprocess.run(["rm", "-rf", mine / "new"], check=True)


def test_a_set_of_more_bytes_than_there_are_is_refused(tmp_path, loadstone):
    plan = tmp_path / "p.json"
    words = ["run", "varmail", "--on", tmp_path / "v", "-D", "nfiles=9", "-D", "nthreads=1", "--dry-run"]
    made = json.loads(loadstone(*words).stdout)
    for size in (1e308, 2.0**64):
        made["sets"][0]["size"] = size
        plan.write_text(json.dumps(made))
        assert "use 0 or more, up to 2^63" in loadstone("run", plan, "--on", tmp_path, status=1).stderr


def test_a_bundle_quotes_nothing_of_what_a_plan_reads(tmp_path, loadstone):
    trace, shadow, plan = tmp_path / "s.spc", tmp_path / "shadow", tmp_path / "p.json"
    trace.write_text("0,1,4096,r,0.1\n")
    shadow.write_text("root:$6$SECRET:19000:0:99999:7:::\n" * 3)
    words = ["replay", trace, "--on", "null:", "--pace", "max", "--salvage", "--format", "spc", "--dry-run"]
    made = json.loads(loadstone(*words).stdout)
    made["artefacts"][0] |= {"path": str(shadow), "digest": None}
    plan.write_text(json.dumps(made))
    bundle = tmp_path / "b"
    loadstone("run", plan, "--out", bundle, status=None)
    for path in bundle.rglob("*"):
        assert path.is_dir() or b"SECRET" not in path.read_bytes(), path
    assert '"..."' in (bundle / "summary.json").read_text().replace('\\"', '"')


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_plan_file_reads_no_pipe_and_no_device(tmp_path, loadstone, what):
    trace, plan, other = tmp_path / "s.spc", tmp_path / "p.json", tmp_path / "other"
    trace.write_text("0,1,4096,r,0.1\n")
    made = json.loads(loadstone("replay", trace, "--on", "null:", "--pace", "max", "--dry-run").stdout)
    other = Path("/dev/urandom") if what == "device" else other
    if what == "pipe":
        os.mkfifo(other)
    for digest in (None, made["artefacts"][0].get("digest")):
        made["artefacts"][0] |= {"path": str(other), "digest": digest}
        plan.write_text(json.dumps(made))
        assert f"{other}: is a pipe, a device" in loadstone("run", plan, status=1, timeout=20).stderr


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_an_archive_of_a_plan_is_no_pipe_and_no_device(tmp_path, loadstone, what):
    """Opening a pipe waits for a writer, and opening some devices does something."""
    (tmp_path / "s").write_text("x")
    subprocess.run(["tar", "-cf", "a.tar", "s"], cwd=tmp_path, check=True)
    words = ["tar-extract", "--on", tmp_path / "on", "-D", f"archives={tmp_path / 'a.tar'}", "--dry-run"]
    text = loadstone("run", *words).stdout
    other = Path("/dev/urandom") if what == "device" else tmp_path / "other"
    if what == "pipe":
        os.mkfifo(other)
    plan = tmp_path / "p.json"
    plan.write_text(text.replace(str(tmp_path / "a.tar"), str(other)))
    told = loadstone("run", plan, "--on", tmp_path / "on", status=1, timeout=20).stderr
    assert f"is a {what}, and a file is wanted" in told


@pytest.mark.slow
def test_names_of_a_small_compressed_trace_are_bounded(tmp_path, loadstone):
    trace, name = tmp_path / "m.csv.gz", "h" * 200_000
    with gzip.open(trace, "wt", compresslevel=9) as file:
        for i in range(2000):
            file.write(f"{128166372003061629 + i * 1000},{name}{i},0,Read,0,4096,100\n")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    told = loadstone("trace", "describe", trace, "--format", "msr", status=1, before=small).stderr
    assert "names of objects have more than 256 MiB together" in told
