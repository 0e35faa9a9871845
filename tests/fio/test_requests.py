"""What single requests have: priorities, atomic writes, and sizes of their own for reads and writes."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from tests.fio.test_lower import lowered, source

import loadstone as library
from loadstone import Error, _core
from loadstone.fio import FioError
from loadstone.plan import check
from loadstone.workload import plan_fio

URING = "[a]\nioengine=io_uring\nsize=1m\n"


@pytest.fixture
def uring():
    if why := _core.uring_refused():
        pytest.skip(str(why))


def priorities(keys, tmp_path):
    [plan] = lowered(URING + keys, tmp_path).plans
    return [
        (
            "read" if row["reads"] else "write",
            row["size"],
            row["share"],
            f"{row['ioprio']['class']}:{row['ioprio']['level']}",
            row.get("hint", 0),
        )
        for row in plan["workers"][0].get("priorities", [])
    ]


@pytest.mark.parametrize(
    ("keys", "rows"),
    [
        ("cmdprio_percentage=20\n", [("read", 0, 0.2, "realtime:0", 0)]),
        ("cmdprio_percentage=20\ncmdprio_class=2\ncmdprio=7\n", [("read", 0, 0.2, "best_effort:7", 0)]),
        ("rw=write\ncmdprio_percentage=20,5\ncmdprio_class=2\n", [("write", 0, 0.05, "best_effort:0", 0)]),
        (
            "rw=randrw\ncmdprio_percentage=20,5\ncmdprio_class=2,3\ncmdprio=1,2\n",
            [("read", 0, 0.2, "best_effort:1", 0), ("write", 0, 0.05, "idle:0", 0)],
        ),
        ("rw=randrw\ncmdprio_percentage=0,5\n", [("write", 0, 0.05, "realtime:0", 0)]),
        ("cmdprio_percentage=0\ncmdprio_class=1\n", []),
        (
            "bssplit=4k/50:8k/50\ncmdprio_bssplit=4k/25/1/1:4k/75/3/2:8k/0\n",
            [("read", 4096, 0.25, "realtime:1", 0), ("read", 4096, 0.75, "idle:0", 0)],
        ),
        ("cmdprio_class=2\ncmdprio_bssplit=4k/50\n", [("read", 4096, 0.5, "best_effort:0", 0)]),
        ("cmdprio_bssplit=4k/10/2/0/3:4k/90/2/0/0\n", [("read", 4096, 0.1, "best_effort:0", 3),
                                                      ("read", 4096, 0.9, "best_effort:0", 0)]),
        ("cmdprio_bssplit=4k/10/0/0\n", []),
    ],
)  # fmt: skip
def test_shares_of_requests_have_priorities(keys, rows, tmp_path, uring):
    assert priorities(keys, tmp_path) == rows


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ("cmdprio_percentage=101", "101 must be from 0 to 100"),
        ("cmdprio_percentage=20\ncmdprio_class=4", "cmdprio_class=4: 4 must be from 0 to 3"),
        ("cmdprio_percentage=20\ncmdprio=8", "cmdprio=8: 8 must be from 0 to 7"),
        ("cmdprio_percentage=20\ncmdprio_bssplit=4k/10", "cmdprio_percentage in line 5 says the shares"),
        ("cmdprio_bssplit=4k/60:4k/60", "the percentages of 4096 bytes add up to 120"),
        ("cmdprio_bssplit=4k/60/1", "write SIZE/PERCENT, SIZE/PERCENT/CLASS/LEVEL"),
        ("cmdprio_percentage=20\nioengine=psync", "cmdprio_percentage=20: needs ioengine=io_uring or libaio"),
        ("cmdprio_percentage=20\ncmdprio_hint=1", "write the hint in cmdprio_bssplit"),
        ("atomic=1", "atomic=1: needs direct=1"),
        ("atomic=1\ndirect=1\nioengine=mmap\nrw=write", "needs one of the engines pvsync2, libaio, io_uring"),
    ],
)
def test_what_cannot_be_had_is_refused(keys, what):
    with pytest.raises(FioError, match=re.escape(what)):
        lowered(f"{URING}rw=write\n{keys}\n")


def test_what_has_no_effect_is_said():
    assert "without cmdprio_percentage" in "\n".join(lowered(URING + "cmdprio_class=1\n").notes)
    assert "cmdprio has no effect on null:" in "\n".join(lowered(URING + "cmdprio_percentage=9\n").notes)
    assert "writes nothing" in "\n".join(lowered(URING + "atomic=1\n").notes)


def test_realtime_takes_the_disk_from_others_and_is_named(tmp_path, loadstone, uring):
    """--ioprio permits it, and the other requests keep the priority of their job."""
    text = URING + "prioclass=3\ncmdprio_percentage=20\ncmdprio=2\n[b]\nstonewall\nsize=1m\n"
    (tmp_path / "j.fio").write_text(text)
    words = ("run", tmp_path / "j.fio", "--on", tmp_path, "--dry-run")
    said = loadstone(*words, status=1).stderr
    assert "I/O priority realtime:2 of some requests; name it, too: --ioprio realtime:2" in said
    first, second = json.loads(loadstone(*words, "--ioprio", "realtime:2").stdout)["plans"]
    assert first["workers"][0]["ioprio"] == {"class": "idle", "level": 0}
    assert second["workers"][0]["ioprio"] == {"class": "realtime", "level": 2}
    # A plan file is no more trusted than a job file.
    (tmp_path / "p.json").write_text(json.dumps(first))
    said = loadstone("run", tmp_path / "p.json", "--on", tmp_path, "--dry-run", status=1).stderr
    assert "name it, too: --ioprio realtime:2" in said


@pytest.mark.root
def test_a_share_of_requests_reaches_the_kernel_with_its_priority(
    tmp_path, root, need_root, need_tools, uring
):
    """Without the capability the class realtime is refused, and before the run begins."""
    need_tools("setpriv")
    (tmp_path / "j.fio").write_text(URING + "cmdprio_percentage=20\n")
    words = [
        root / ".venv/bin/loadstone",
        "run",
        tmp_path / "j.fio",
        "--on",
        tmp_path,
        "--ioprio",
        "realtime:0",
        "--json",
    ]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0 and json.loads(ran.stdout)["errors"] == 0, ran.stderr
    without = ["setpriv", "--bounding-set=-sys_admin,-sys_nice", "--inh-caps=-sys_admin,-sys_nice"]
    ran = subprocess.run([*without, *words], capture_output=True, text=True)
    assert ran.returncode == 1 and "the class realtime needs root" in ran.stderr


def test_atomic_writes_are_refused_where_the_file_system_has_none(tmp_path):
    job = tmp_path / "j.fio"
    job.write_text("[a]\nioengine=pvsync2\nrw=randwrite\nbs=4k\nsize=1m\ndirect=1\natomic=1\n")
    found = plan_fio(job, tmp_path)
    assert found.plans[0]["targets"][0]["atomic"] and check(found.plans[0])["targets"][0]["atomic"]
    try:
        result = library.run(library.job(job, tmp_path))
    except Error as error:
        if "direct I/O" in str(error):
            pytest.skip("the file system knows no direct I/O")
        assert re.search(
            r"a\.0\.0: (offers no atomic writes \(statx says 0 bytes\)|cannot write 4096)", str(error)
        )
        assert not (tmp_path / "a.0.0").exists(), "what was made for nothing is removed"
    else:
        assert result.summary["errors"] == 0


def test_jobs_that_write_a_file_agree_on_atomic(tmp_path):
    jobs = "[global]\nfilename=f\nsize=1m\ndirect=1\nioengine=pvsync2\nrw=write\n[a]\natomic=1\n[b]\n"
    with pytest.raises(FioError, match="with another atomic; put stonewall between them"):
        lowered(jobs, tmp_path)
    lowered(jobs + "rw=read\n", tmp_path)


def test_reads_and_writes_have_sizes_of_their_own():
    row = {"share": 100, "low": 4096, "high": 4096}
    found = source("rw=randrw\nbs=4k,64k")
    assert (found["size"], found["sizes"]) == (4096, [row])
    assert found["write_sizes"] == [{"share": 100, "low": 65536, "high": 65536}]
    assert "once" not in found and found["bytes"] == 1 << 20
    # The steps of both are multiples of what they have in common.
    assert source("rw=randrw\nbs=6k,4k\nsize=120k")["size"] == 2048
    ranges = source("rw=rw\nbsrange=4k-12k,8k-16k")
    assert [one["low"] for one in ranges["sizes"]] == [4096, 8192, 12288]
    assert [one["low"] for one in ranges["write_sizes"]] == [8192, 16384]
    # Where they are alike, or a job does only one of them, they are one.
    for keys in ("rw=randrw\nbs=4k,4k", "rw=randread\nbs=4k,64k", "rw=randwrite\nbs=64k,4k"):
        assert "write_sizes" not in source(keys) and source(keys)["size"] == 4096
    with pytest.raises(FioError, match="at most 4,096 different sizes"):
        source("rw=rw\nbsrange=1-1m,4k-8k\nsize=4m")
