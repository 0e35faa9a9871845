"""Readers of other tools' output, each on what the installed tool prints, or on lines of its manual."""

from __future__ import annotations

import math
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import missing

import loadstone
from loadstone.study import outputs
from loadstone.study.file.spec import Figure
from loadstone.study.readers import READERS


def told(reader: str, text: str) -> dict[str, float]:
    found = READERS[reader].read(text)
    assert len({metric.name for metric, _ in found}) == len(found)
    return {metric.name: value for metric, value in found}


def printed(*words: object, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(one) for one in words], check=True, capture_output=True, text=True, **more)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "text", ["", "{}", "nothing of it\n" * 3, '{"jobs": [1]}', '{"jobs": []}', "1.98,2.00a\n"]
)
def test_what_is_no_output_of_the_tool_is_refused(reader, text):
    with pytest.raises(loadstone.Error):
        READERS[reader].read(text)


def test_fio(need_tools, tmp_path):
    need_tools("fio")
    words = ("fio", "--output-format=json", "--size=1m", f"--directory={tmp_path}")
    found = told("fio", printed(*words, "--name=a", "--rw=randrw", "--bs=4k").stdout)
    ios = 256
    assert found.keys() >= {"read.iops", "write.iops", "read.latency_mean", "read.latency_p50"}
    assert "read.latency_p99.9" not in found, "too few requests"
    assert found["read.bw"] == pytest.approx(found["read.iops"] * 4096, rel=0.01)
    both = told("fio", printed(*words, "--rw=write", "--bs=4k", "--name=one", "--name=two").stdout)
    assert both["write.iops"] == pytest.approx(both["one.write.iops"] + both["two.write.iops"])
    assert both["write.bw"] > 0 and ios


def test_a_job_of_fio_that_failed_is_an_error(need_tools, tmp_path):
    need_tools("fio")
    done = subprocess.run(
        ["fio", "--output-format=json", "--name=a", "--rw=read", f"--filename={tmp_path}", "--size=1m"],
        capture_output=True,
        text=True,
    )
    with pytest.raises(loadstone.Error, match="fio"):
        READERS["fio"].read(done.stdout)


def test_sysbench(need_tools, tmp_path):
    need_tools("sysbench")
    words = ("sysbench", "fileio", "--file-num=2", "--file-total-size=2M")
    printed(*words, "prepare", cwd=tmp_path)
    text = printed(*words, "--file-test-mode=rndrw", "--time=0", "--events=400", "run", cwd=tmp_path).stdout
    found = told("sysbench", text)
    events, seconds = (
        float(re.search(rf"{what}: +([0-9.]+)", text)[1]) for what in ("number of events", "total time")
    )
    assert events >= 400
    assert found["events_per_s"] == pytest.approx(events / seconds)
    assert found["read_bytes_per_s"] == pytest.approx(found["reads_per_s"] * 16384, rel=0.02)
    assert found["latency_max"] >= found["latency_mean"] >= 0
    assert "events_per_s" in told(
        "sysbench", printed("sysbench", "cpu", "--time=0", "--events=20", "run").stdout
    )


@pytest.mark.slow
def test_bonnie(need_tools, tmp_path):
    need_tools("bonnie++")
    user = pwd.getpwuid(os.geteuid()).pw_name
    words = (
        "bonnie++",
        "-d",
        tmp_path,
        "-s",
        "32m",
        "-r",
        "16m",
        "-n",
        "20:1024",
        "-u",
        user,
        "-q",
        "-m",
        "h",
    )
    found = told("bonnie++", printed(*words).stdout)
    assert found["write_char"] > 1000, "bytes per second"
    assert found["write_char.latency_max"] > 0
    assert {"create", "seeks", "rewrite"} <= {name.partition(".")[0] for name in found}


BONNIE = (
    "1.98,2.00a,vm,1,1795916453,64M,,8192,5,614,32,200000,12,+++++,+++,965,31,,,321.5,3,1,,,,,"
    "1001,9,+++++,+++,3003,9,+++++,+++,+++++,+++,+++++,+++,"
    "44419us,16049us,4040us,130ms,8206us,2s,13589us,51us,10846us,4633us,5us,40303us"
)


def test_fields_of_bonnie():
    found = told("bonnie++", f"some words\n{BONNIE}\n")
    assert found["write_char"] == 614 * 1024
    assert found["write_block"] == 200000 * 1024
    assert found["seeks"] == 321.5
    assert (found["create"], found["delete"]) == (1001, 3003)
    assert (found["read_char.latency_max"], found["seeks.latency_max"]) == (130e6, 2e9)
    assert found["create.latency_max"] == 13589e3
    assert "rewrite" not in found and "read_block" not in found


@pytest.mark.slow
def test_pgbench(need_root, need_tools, public):
    need_tools("pgbench")
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not homes or shutil.which("setpriv") is None:
        missing("no server of PostgreSQL")
    tools = homes[-1].parent
    shutil.chown(public, "postgres")
    user = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
    where = ("-h", public, "-p", "5439")

    def as_user(*words: object) -> str:
        log = public / "out"
        with open(log, "w") as out:
            subprocess.run([*map(str, (*user, *words))], check=True, cwd=public, stdout=out, stderr=out)
        return log.read_text()

    as_user(tools / "initdb", "-D", public / "d")
    options = f"-k {public} -h '' -p 5439 -F"
    as_user(tools / "pg_ctl", "-D", public / "d", "-w", "-o", options, "-l", public / "log", "start")
    try:
        as_user("pgbench", *where, "-i", "-q", "postgres")
        found = told("pgbench", as_user("pgbench", *where, "-t", "50", "-c", "2", "postgres"))
        paced = told("pgbench", as_user("pgbench", *where, "-t", "20", "-R", "500", "postgres"))
    finally:
        as_user(tools / "pg_ctl", "-D", public / "d", "-m", "immediate", "stop")
    assert found["tps"] > 0 and found["failed"] == 0
    # Two clients: each transaction takes as long as both together need for two.
    assert found["latency_mean"] == pytest.approx(2e9 / found["tps"], rel=0.2)
    assert "lag_mean" in paced


def test_time(need_tools, tmp_path):
    need_tools("time", "bash")
    for words in (
        ("bash", "-c", "time sleep 0.05"),
        ("bash", "-c", "time -p sleep 0.05"),
        ("time", "sleep", "0.05"),
        ("time", "-p", "sleep", "0.05"),
        ("time", "-v", "sleep", "0.05"),
    ):
        found = told("time", printed(*words).stderr)
        assert found["real"] >= 0.05, words
        assert found.keys() == {"real", "user", "sys"}
    assert told("time", "real\t1m2.500s\nuser\t0m0.1s\nsys\t0m0.2s\n")["real"] == 62.5
    assert told("time", "0.5user 0.25system 1:02:03.5elapsed 3%CPU")["real"] == 3723.5


def test_filebench_of_both_versions():
    new = "22.073: Run took 20 seconds...\n"
    new += "22.074: append1    1234ops     61ops/s   1.5mb/s      0.1ms/op [0.0ms - 9ms]\n"
    new += "22.075: IO Summary: 24680 ops 1233.8 ops/s 617/616 rd/wr  12.5mb/s 0.25ms/op\n"
    found = told("filebench", new)
    assert found["ops_per_s"] == 1233.8
    assert found["bytes_per_s"] == 12.5 * 1024 * 1024
    assert found["latency_mean"] == 250_000
    assert found["append1.ops_per_s"] == 61
    old = "IO Summary:  5000 ops, 250.5 ops/s, (125/125 r/w), 3.1mb/s, 231us cpu/op, 1.2ms latency\n"
    assert told("filebench", old) == {
        "ops_per_s": 250.5,
        "bytes_per_s": 3.1 * (1 << 20),
        "latency_mean": 1.2e6,
    }


IOZONE = """\
                                                              random    random     bkwd    record    stride
              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read
           10240      64   153666   143223   857153   897948
           10240     128   163666                      887948
"""


def test_iozone():
    found = told("iozone", IOZONE)
    assert found["10240.64.write"] == 153666 * 1024
    assert found["10240.64.reread"] == 897948 * 1024
    assert found["10240.128.reread"] == 887948 * 1024
    assert "10240.128.read" not in found
    text = "\tChildren see throughput for  4 initial writers \t=  812345.50 kB/sec\n"
    assert told("iozone", text) == {"initial_writers": 812345.5 * 1024}


def test_figures_of_your_own():
    figures = {
        "took": Figure(regex=r"took ([\d.,]+) s", unit="s", better="lower"),
        "deep": Figure(json="a[1].b", better="higher"),
        "none": Figure(regex=r"never ([\d.]+)", better="higher"),
        "word": Figure(regex=r"(took)", better="higher"),
    }
    found = outputs.read('took 3 s\ntook 1,234.5 s\n{"a": [0, {"b": 7}]}', None, figures)
    assert found["took"][1] == 1234.5, "the last one, with thousands"
    assert found["deep"][1] == 7
    assert "none" not in found
    assert math.isnan(found["word"][1])


def test_copies_are_put_together():
    figures = {
        "rate": Figure(regex=r"r=(\d+)", unit="ops/s", better="higher"),
        "n": Figure(regex=r"n=(\d+)", better="lower"),
    }
    one, two = (outputs.read(text, None, figures) for text in ("r=5 n=2", "r=7 n=4"))
    both = outputs.together([one, two])
    assert (both["rate"][1], both["n"][1]) == (12, 3)
    assert outputs.together([one, {"n": two["n"]}]).keys() == {"n"}
