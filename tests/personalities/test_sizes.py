"""--size: all files together hold as much as was asked for, in bytes or in multiples of memory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from loadstone import Error, personalities
from loadstone.personalities import check_room, check_times, find, held, names, sized
from loadstone.plan import memory_size
from loadstone.plan.surroundings import memory

SCALED = [name for name in names() if find(name).scale]
UNSCALED = [name for name in names() if not find(name).scale]


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("size", [64 << 20, 48 << 30])
def test_files_hold_what_was_asked_for(name, size):
    found = find(name)
    variables = sized(found, size)
    assert list(variables) == [found.scale]
    assert held(found, variables) == pytest.approx(size, rel=0.01)


@pytest.mark.parametrize("name", UNSCALED)
def test_what_holds_no_data_has_no_scale(name):
    assert held(find(name)) == 0
    with pytest.raises(Error, match="hold no data"):
        sized(find(name), 1 << 30)


def test_other_variables_count():
    fileserver = find("fileserver")
    small = sized(fileserver, 1 << 30, {"meanfilesize": "4k"})
    assert small["meanfilesize"] == "4k"
    assert int(small["nfiles"]) == 32 * int(sized(fileserver, 1 << 30)["nfiles"])


def test_errors_say_what_to_do():
    with pytest.raises(Error, match="leave one of them out"):
        sized(find("varmail"), 1 << 30, {"nfiles": "7"})
    with pytest.raises(Error, match=r"oltp holds 10 MiB at least, with \$filesize=1"):
        sized(find("oltp"), 1 << 20)
    with pytest.raises(Error, match="did you mean varmail"):
        find("varmial")
    with pytest.raises(Error, match="loadstone run --list"):
        find("nothing-like-it")


@pytest.mark.slow
def test_what_is_made_holds_what_was_asked_for(loadstone, tmp_path):
    """The files on disk, not only those of the plan; sizes are drawn, so they are so large on average."""
    where = tmp_path / "d"
    given = ["--size", "24m", "--duration", "1ms"]
    loadstone("run", "fileserver", "--on", where, "-D", "meanfilesize=8k", "-D", "nthreads=1", *given)
    files = [path.stat().st_size for path in where.rglob("*") if path.is_file() and path.name.isdecimal()]
    assert len(files) == pytest.approx(3072, rel=0.05)
    assert sum(files) == pytest.approx(24 << 20, rel=0.1)


def entries(text: str) -> int:
    return json.loads(text)["sets"][0]["entries"]


@pytest.mark.slow
def test_multiples_of_memory(loadstone):
    def plan(*words: str) -> int:
        return entries(loadstone("run", "varmail", "--on", "null:", "--dry-run", *words).stdout)

    # 80 % of the entries are there, of 16 KiB each.
    assert plan("--size", "2x-ram") == pytest.approx(2 * memory() / (0.8 * 16384), rel=1e-3)
    assert plan("--size", "0.5X-RAM") == pytest.approx(memory() / 2 / (0.8 * 16384), rel=1e-3)
    limited = plan("--size", "2x-ram", "--memory-limit", "64m", "--cache", "drop")
    assert limited == pytest.approx(2 * (64 << 20) / (0.8 * 16384), rel=1e-3)


def test_other_workloads_take_multiples_of_memory(loadstone):
    done = loadstone(
        *("run", "randread", "--on", "null:", "--size", "2x-ram", "--duration", "1s", "--dry-run")
    )
    assert json.loads(done.stdout)["targets"][0]["size"] == pytest.approx(2 * memory(), rel=1e-3)
    for text in ("0x-ram", "x-ram", "-1x-ram", "2x-rom"):
        done = loadstone("run", "randread", "--on", "null:", f"--size={text}", status=2)
        assert "write it like" in done.stderr


def machine(root: Path, total: int, cgroup: str, limits: dict[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal:       {total} kB\nMemFree: 1 kB\n")
    (root / "proc/self/cgroup").write_text(cgroup)
    for name, text in limits.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("cgroup", "limits", "wanted"),
    [
        ("0::/\n", {}, 1 << 20),
        ("0::/a/b\n", {"a/memory.max": "4096", "a/b/memory.max": "max"}, 4096),
        ("0::/a/b\n", {"a/memory.max": "9999", "a/b/memory.max": "8192"}, 8192),
        # A path of the host, of which a container sees only the top.
        ("0::/docker/1234\n", {"memory.max": "12288"}, 12288),
        ("5:cpu:/x\n4:memory:/x\n", {"memory/x/memory.limit_in_bytes": "16384"}, 16384),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, 1 << 20),
        # Another controller's file of that name is none of memory's.
        ("5:cpu:/x\n", {"x/memory.max": "1", "memory/x/memory.limit_in_bytes": "1"}, 1 << 20),
    ],
)
def test_limits_of_memory_cgroups_count(tmp_path, cgroup, limits, wanted):
    root = machine(tmp_path, 1024, cgroup, limits)
    assert memory(root=root) == wanted
    assert memory(100, root) == 100
    assert memory(1 << 40, root) == wanted


def test_a_machine_that_tells_nothing_is_an_error(tmp_path):
    with pytest.raises(Error, match="give a size in bytes"):
        memory(root=tmp_path)


def test_memory_size():
    assert memory_size("4k") is None
    assert memory_size("2x-ram") == 2 * memory()


@pytest.mark.slow
def test_too_large_or_small_is_said_before_anything_is_made(loadstone, tmp_path):
    where = tmp_path / "d"
    done = loadstone("run", "fileserver", "--on", where, "--size", "4000t", status=1)
    assert "are free there; ask for less with --size" in done.stderr and not where.exists()
    done = loadstone("run", "fileserver", "--on", where, "--size", "10m", status=1)
    assert "50 free names of homes at once" in done.stderr and not where.exists()
    done = loadstone("run", "varmail", "--on", where, "-D", "nfiles=10", status=1)
    assert "16 files of spool at once" in done.stderr and not where.exists()
    for name in names():
        personalities.check_names(find(name), {})


def few_inodes(_path):
    """A file system of much room and 181 free inodes."""
    return os.statvfs_result((1024, 1024, 1 << 40, 1 << 40, 1 << 40, 192, 181, 181, 0, 255))


def test_files_that_a_run_makes_need_inodes(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "statvfs", few_inodes)
    with pytest.raises(Error, match="micro-create needs 300 inodes, and 181 are free there"):
        check_room(find("micro-create"), tmp_path, {"nfiles": "300"})
    check_room(find("micro-create"), tmp_path, {"nfiles": "181"})
    # A link is one more name for a file that is there.
    check_room(find("micro-link"), tmp_path, {"nfiles": "1000"})
    with pytest.raises(Error, match="inodes"):
        check_room(find("micro-symlink"), tmp_path, {"nfiles": "1000"})


@pytest.mark.parametrize("name", names())
def test_every_op_is_done(name):
    check_times(find(name), {})


def test_files_smaller_than_a_request_are_refused(loadstone, tmp_path):
    words = ["run", "micro-write-seq", "-D", "filesize=1k", "--on", tmp_path / "on"]
    wanted = "the op write would never be done, 0 times a loop; ask for larger files or smaller requests"
    assert wanted in loadstone(*words, status=1).stderr
    assert not (tmp_path / "on").exists()
