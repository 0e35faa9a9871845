"""Scripts that are really performed: parsed, lowered, and run by the engine on a directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = ["mail.f", "oltp-sync.f", "oltp-sync-15.f", "randomwrite-oltp-ager.f", "randomwrite-ager.f"]
PROFILES = ["oltp.prof", "oltp-ager.prof", "iozone-ager.prof"]
SMALL = ["-D", "filesize=1m", "--duration", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES + PROFILES)
def test_the_examples_run(root, loadstone, tmp_path, name):
    small = SMALL if name != "mail.f" else SMALL[2:]
    done = loadstone("run", root / "examples/filebench" / name, "--on", tmp_path / "d", *small)
    assert "requests" in done.stdout and " 0 requests" not in done.stdout
    assert "failed:" not in done.stderr and "error" not in done.stderr


def test_both_spellings_are_the_same_load(root, loadstone):
    def plan(name: str) -> Any:
        script = root / "examples/filebench" / name
        found = json.loads(loadstone("run", script, "--on", "null:", *SMALL, "--dry-run").stdout)
        # Nothing is cached where nothing is, and only one dialect can say it.
        assert found.pop("own") == [str(script)]
        return {**found, "sets": [{k: v for k, v in s.items() if k != "uncached"} for s in found["sets"]]}

    assert plan("oltp-sync.f") == plan("oltp-sync-15.f")


def test_no_side_of_the_database_waits_for_ever(root, loadstone, tmp_path):
    script = root / "examples/filebench/oltp-sync.f"
    small = ["-D", "nshadows=8", "-D", "ndbwriters=2", "-D", "usermode=0", *SMALL]
    result = json.loads(loadstone("run", script, "--on", tmp_path / "d", "--json", *small).stdout)
    steps = result["steps"]
    # 3,200 posts let the log be written again, 1,000 the data.
    posts = steps["shadow-post-lg"]["count"]
    assert posts > 4_000
    assert 0 <= posts // 3200 - steps["lg-block"]["count"] <= 1
    # Those that post may be two writes and what they write now ahead.
    assert steps["dbwrite-a"]["count"] >= 100 * 2 * (posts // 1000 - 3)


MAIL = """
set $dir=/var/spool
set $size=cvar(type=cvar-gamma,parameters=mean:4096;gamma:1.5)
define fileset name=mail,path=$dir,entries=200,dirwidth=20,size=$size,prealloc=80
define process name=server,instances=2 {
  thread name=worker,instances=2 {
    flowop deletefile name=delete,filesetname=mail
    flowop createfile name=create,filesetname=mail,fd=1
    flowop appendfilerand name=append,iosize=16k,fd=1,filesetname=mail
    flowop fsync name=fsync,fd=1,filesetname=mail
    flowop closefile name=close,fd=1
    flowop openfile name=open,filesetname=mail,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m,filesetname=mail
    flowop closefile name=close2,fd=1
  }
}
run 1
"""


@pytest.mark.slow
def test_a_mail_server_works_on_its_files(loadstone, tmp_path):
    script = tmp_path / "mail.f"
    script.write_text(MAIL)
    result = json.loads(loadstone("run", script, "--on", tmp_path / "d", "--json").stdout)
    assert result["errors"] == 0 and not result["partial"]
    assert list(result["steps"]) == ["delete", "create", "append", "fsync", "close", "open", "read", "close2"]
    assert result["requests"] == sum(step["count"] for step in result["steps"].values())
    # What the script says of its directory does not count.
    files = [
        path for path in (tmp_path / "d/mail").rglob("*") if path.is_file() and path.name != ".loadstone"
    ]
    assert 100 <= len(files) <= 200
    again = json.loads(loadstone("run", script, "--on", tmp_path / "d", "--json").stdout)
    assert again["errors"] == 0


def test_a_bundle_knows_the_steps(loadstone, tmp_path):
    from loadstone.bundle import Bundle

    script = tmp_path / "s.f"
    script.write_text(
        "define file name=f,path=$dir,size=64k,prealloc\n"
        "define process name=p { thread name=t {\n"
        "flowop read name=r,filename=f,iosize=4k,random\n"
        "flowop hog name=think,value=100 } }\nrun 1\n"
    )
    loadstone("run", script, "--on", tmp_path / "d", "--out", tmp_path / "b")
    bundle = Bundle.read(tmp_path / "b")
    assert list(bundle.summary["steps"]) == ["r", "think"]
    assert set(bundle.ops.steps()) == {"r", "think"} and set(bundle.ops.columns["group"]) == {"p"}
    reads = bundle.ops.histogram()
    assert len(reads) == bundle.summary["requests"] == bundle.summary["steps"]["r"]["count"]
    assert len(bundle.ops.histogram("service", bundle.ops.where(step="think"))) > 0
    loadstone("report", tmp_path / "b", "-o", tmp_path / "r.html")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("flowop createfile name=c,filesetname=s,fd=1\nflowop closefile name=d,fd=1", "found no file"),
        ("flowop listdir name=l,filesetname=missing", "missing"),
        ("flowop closefile name=d,fd=1", "fd"),
    ],
)
def test_a_run_that_stops_early_says_why(loadstone, tmp_path, text, what):
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=s,path=$dir,entries=9,dirwidth=3\n"
        f"define process name=p {{ thread name=t {{ {text} }} }}\nrun 2\n"
    )
    done = loadstone("run", script, "--on", tmp_path / "d", status=1)
    assert what in done.stderr and done.stderr.count("error") == 1


def test_nothing_is_made_where_a_script_does_not_fit(loadstone, tmp_path):
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=s,path=$dir,entries=9,size=1000t,dirwidth=3,prealloc\n"
        "define process name=p { thread name=t { flowop statfile name=t,filesetname=s } }\nrun 2\n"
    )
    done = loadstone("run", script, "--on", tmp_path / "d", status=1)
    assert "are free there" in done.stderr and not (tmp_path / "d").exists()


def test_failed_requests_of_one_run_do_not_keep_the_next_from_running(loadstone, tmp_path):
    (tmp_path / "w.f").write_text(
        "define fileset name=fs,path=$dir,entries=4,dirwidth=4,filesize=4k,prealloc\n"
        "define process name=p { thread name=t {\n"
        "  flowop read name=r,filesetname=fs,iosize=64k,workingset=1m,random flowop closefile name=c } }\n"
        "run 1 run 1\n"
    )
    done = loadstone("run", tmp_path / "w.f", "--on", tmp_path / "d", "--duration", "0.2s", status=1)
    assert done.stdout.count("all requests ") == 4 and "requests failed" in done.stderr.splitlines()[-1]


@pytest.mark.root
def test_rates_are_kept_on_a_host_that_is_up_for_long(need_root, need_tools, loadstone, tmp_path):
    need_tools("unshare")
    script = tmp_path / "r.f"
    script.write_text(
        "eventgen rate=100\n"
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc\n"
        "define process name=p { thread name=t { flowop eventlimit name=l\n"
        "flowop statfile name=f,filesetname=s } }\nrun 1\n"
    )
    # 105 days: a 1024th of a nanosecond since the host was booted is no longer a number of 64 bits.
    since_boot = ["unshare", "--time", "--monotonic", "9100000", "--boottime", "9100000", "--fork"]
    program = Path(sys.executable).with_name("loadstone")
    done = subprocess.run(
        [*since_boot, program, "run", script, "--on", tmp_path / "d", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    summary = json.loads(done.stdout)
    assert summary["started_monotonic_ns"] > 9_100_000 * 10**9
    # One at the start and one each 10 ms, as many as there was time for.
    assert 10 < summary["ops"]["stat"]["count"] <= 101
