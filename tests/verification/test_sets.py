"""Verification of programs: files that come and go, grow and shrink, and are written by several threads."""

import json
import time

import pytest
from click.testing import CliRunner

from loadstone.cli import command
from loadstone.personalities import names
from loadstone.plan.parts import check
from loadstone.workload import execute

# What holds more than a machine's disk may have to spare.
LARGE = ["mail-server-like", "oltp-sync", "videoserver"]
LIKELY = ["fileserver", "varmail", "webserver", "oltp", "postmark"]


def program(folder, *ops, entries=40, depth=4, size=20000, duration=1.0, **more):
    """A plan of threads that do ``ops`` on one set over and over."""
    return check(
        {
            "version": 1,
            "targets": [{"id": "t", "kind": "tree", "path": str(folder)}],
            "sets": [
                {
                    "id": "s",
                    "target": "t",
                    "path": "s",
                    "entries": entries,
                    "size": size,
                    "present": 1.0,
                    **more,
                }
            ],
            "workers": [
                {
                    "backend": "posix",
                    "depth": depth,
                    "pace": {"kind": "closed"},
                    "map": {"objects": []},
                    "source": {"kind": "program", "ops": [{"set": "s", **op} for op in ops]},
                }
            ],
            "steps": [{"step": "prepare"}, {"step": "run", "duration_ns": round(duration * 1e9)}],
            "verify": {},
        }
    )


def verified(plan):
    return json.loads(execute(plan)["summary"]["verified"])


@pytest.mark.slow
@pytest.mark.parametrize("name", LIKELY)
def test_benchmarks_by_name_are_verified(loadstone, tmp_path, name):
    done = loadstone("run", name, "--on", tmp_path, "--duration", "1s", "--size", "96m", "--verify", "--json")
    found = json.loads(done.stdout)["verified"]
    assert found["wrong"] == {} and found["unread"] is None
    assert found["checked"] > 200 and found["unknown"] < 0.05 * found["checked"]


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["iozone", "bonnie"])
def test_suites_are_verified(loadstone, tmp_path, suite):
    text = loadstone("run", suite, "--on", tmp_path, "--size", "8m", "--verify").stdout
    assert "verified: all as it should be; " in text


def test_every_benchmark_takes_it(tmp_path):
    for name in names():
        small = ("--size", "1g") if name in LARGE else ()
        words = ["run", name, "--on", str(tmp_path / "on"), "--verify", "--dry-run", *small]
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0 and json.loads(done.stdout)["verify"] == {"unit": 4096}, done.output


@pytest.mark.parametrize("act", ["truncate", "write"])
def test_what_is_written_through_links_is_no_damage_of_others(loadstone, tmp_path, act):
    """The script opens its own links, and another file gets what is written then."""
    change = "truncate name=c,fd=1,value=4096" if act == "truncate" else "write name=c,fd=1,iosize=4096"
    script = tmp_path / "links.f"
    script.write_text(
        "set $dir=/tmp\n"
        "define fileset name=s,path=$dir,size=64k,entries=200,dirwidth=1000,prealloc=50\n"
        "define process name=p { thread name=t,memsize=1m,instances=1 {\n"
        "  flowop openfile name=o,filesetname=s,fd=1\n"
        f"  flowop {change}\n"
        "  flowop readwholefile name=r,fd=1,iosize=64k\n"
        "  flowop closefile name=l,fd=1\n"
        "  flowop symlink name=y,filesetname=s\n"
        "  flowop deletefile name=d,filesetname=s\n"
        "  flowop finishoncount name=e,value=300\n} }\nrun 1\n"
    )
    words = ("--on", tmp_path / "on", "--duration", "300ms", "--verify", "--yes", "--seed", 1, "--json")
    # Some links lead to what was removed.
    done = loadstone("run", script, *words, status=None)
    found = json.loads(done.stdout)
    assert found["verified"]["wrong"] == {} and found["requests"] > 200, done.stderr
    assert set(found["steps"]["o"]["errors"]) <= {"ENOENT"}


def test_what_the_kernel_copies_into_a_new_file_is_unknown(loadstone, tmp_path):
    script = tmp_path / "copy.f"
    script.write_text(
        "set $dir=/tmp\n"
        "define fileset name=s,path=$dir,size=64k,entries=100,prealloc=50\n"
        "define process name=p { thread name=t,memsize=1m,instances=1 {\n"
        "  flowop createfile name=o1,filesetname=s,fd=1\n"
        "  flowop openfile name=o2,filesetname=s,fd=2\n"
        "  flowop copyfilerange name=o3,srcfd=2,fd=1,iosize=64k\n"
        "  flowop write name=o4,fd=1,iosize=10k,random\n"
        "  flowop read name=o5,fd=1,iosize=100,random\n"
        "  flowop closefile name=o6,fd=1\n"
        "  flowop closefile name=o7,fd=2\n"
        "  flowop deletefile name=o8,filesetname=s\n} }\nrun 1\n"
    )
    words = ("--on", tmp_path / "on", "--duration", "400ms", "--verify", "--yes", "--seed", 1, "--json")
    # Files that are still empty cannot be copied.
    found = json.loads(loadstone("run", script, *words, status=None).stdout)["verified"]
    assert found["wrong"] == {} and found["checked"] > 0 and found["unknown"] > 0


def test_what_two_threads_cut_and_lengthen_is_no_loss(loadstone, tmp_path):
    script = tmp_path / "cut.f"
    script.write_text(
        "set $dir=/tmp\n"
        "define fileset name=s,path=$dir,size=4k,entries=3,dirwidth=5,prealloc=100,reuse\n"
        "define process name=p { thread name=t,memsize=1m,instances=2 {\n"
        "  flowop openfile name=o2,filesetname=s,fd=1,dsync\n"
        "  flowop appendfile name=o3,fd=1,iosize=4k\n"
        "  flowop truncate name=o4,fd=1,value=5000\n"
        "  flowop readwholefile name=o5,fd=1,iosize=512\n"
        "  flowop closefile name=o7,fd=1\n"
        "  flowop openfile name=o8,filesetname=s,fd=1\n"
        "  flowop truncate name=o10,fd=1,value=4096\n"
        "  flowop closefile name=o12,fd=1\n} }\nrun 1\n"
    )
    for number in range(5):
        words = ("--on", tmp_path / f"on{number}", "--duration", "400ms", "--verify", "--yes", "--json")
        found = json.loads(loadstone("run", script, *words).stdout)["verified"]
        assert found["wrong"] == {} and found["checked"] > 0


OPEN = {"act": "open", "name": "open", "slot": 1}
CLOSE = {"act": "close", "name": "close", "slot": 1}


def act(what, slot=1, **more):
    return {"act": what, "name": what, "slot": slot, **more}


def test_names_change_and_content_stays(tmp_path):
    found = verified(
        program(
            tmp_path,
            act("create", name="made"),
            act("append", size=7000),
            act("append", size=900, name="more"),
            CLOSE,
            act("rename", slot=0),
            act("link", slot=0),
            OPEN,
            act("read_whole", size=4096),
            act("truncate", size=5000),
            act("append", size=3000, name="again"),
            act("read_whole", size=4096, name="back"),
            CLOSE,
            act("remove", slot=0),
            act("remove", slot=0, name="second"),
            entries=400,
            present=0.5,
        )
    )
    assert found["wrong"] == {} and found["checked"] > 1000


def test_streams_and_memory_are_verified(tmp_path):
    for writes, reads in (("fwrite", "fread"), ("putc", "getc"), ("mmap_write", "mmap_read")):
        plan = program(
            tmp_path, OPEN, act(writes, size=3000), act(reads, size=3000), CLOSE, duration=0.5, entries=8
        )
        found = verified(plan)
        assert found["wrong"] == {} and found["checked"] > 100, writes


def test_damage_in_a_file_is_named(tmp_path):
    import threading

    plan = program(tmp_path, OPEN, act("read_whole", size=65536), CLOSE, entries=4, duration=3.0)

    def damage():
        time.sleep(1.5)
        victim = next(
            path for path in (tmp_path / "s").rglob("*") if path.is_file() and path.name != ".loadstone"
        )
        with open(victim, "r+b") as file:
            file.seek(8192)
            file.write(bytes(4096))

    thread = threading.Thread(target=damage)
    thread.start()
    found = verified(plan)
    thread.join()
    assert found["wrong"].keys() == {"lost"}
    (one,) = found["damages"]
    assert one["at"] == 8192 and one["text"].startswith("s/")


def test_what_tells_nothing_is_refused(tmp_path):
    from loadstone import Error

    with pytest.raises(Error, match="zeros"):
        program(tmp_path, OPEN, act("write", size=4096), CLOSE, zeros=True)
    with pytest.raises(Error, match="of an earlier run"):
        program(tmp_path, OPEN, act("write", size=4096), CLOSE, reuse=True)
