"""What a load will write is said before it begins, and asked for where it is much."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone import Error
from loadstone.cli._show import human_bytes
from loadstone.dataset import describe
from loadstone.model import fit
from loadstone.plan import RunOptions
from loadstone.plan.writes import Part, devices, room_of, writes
from loadstone.workload import execute, plan_model, plan_replay, plan_uniform

MIB, GIB = 1 << 20, 1 << 30


def statvfs(free: int):
    return lambda _path: SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_files=0, f_favail=0)


def script(folder: Path, files: str) -> Path:
    path = folder / "w.f"
    path.write_text(
        "set $size=cvar(type=uniform,parameters=lower:0;upper:2m)\n"
        f"define fileset name=s,path=$dir,dirwidth=20,{files}\n"
        "define process name=p { thread name=t { flowop createfile name=c,filesetname=s\n"
        "flowop closefile name=d } }\nrun 1\n"
    )
    return path


def half_free(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize // 2 // 4096 * 4096


def test_targets_count_by_file_system(tmp_path, monkeypatch):
    (tmp_path / "old").write_bytes(bytes(MIB))
    plans = [
        plan_uniform("randread", tmp_path / "new", RunOptions(size=2 * MIB, requests=1)),
        # The same file again, and one that is given up: what it holds is free for it.
        plan_uniform("randread", tmp_path / "new", RunOptions(size=3 * MIB, requests=1)),
        plan_uniform(
            "write", tmp_path / "old", RunOptions(size=MIB, requests=1, allow_destroy=[tmp_path / "old"])
        ),
        # What is only read costs nothing.
        plan_uniform("read", tmp_path / "old", RunOptions(size=MIB, requests=1)),
        plan_uniform("randread", "null:", RunOptions(requests=1)),
    ]
    monkeypatch.setattr(os, "statvfs", statvfs(100 * MIB))
    (room,) = writes(plans)
    assert {path: (part.bytes, part.new) for path, part in room.parts.items()} == {
        str(tmp_path / "new"): (3 * MIB, 3 * MIB),
        str(tmp_path / "old"): (MIB, 0),
    }
    assert room.free == 100 * MIB and (room.bytes, room.new) == (4 * MIB, 3 * MIB)
    assert not room.is_much and not room.at_most and devices(plans) == {}


def test_what_is_written_over_takes_no_space(tmp_path, monkeypatch):
    old = tmp_path / "old"
    old.write_bytes(bytes(MIB))
    more = {"requests": 9, "allow_destroy": [old], "fill": False}
    monkeypatch.setattr(os, "statvfs", statvfs(MIB))
    (room,) = writes([plan_uniform("randwrite", old, RunOptions(**more))])
    assert room.parts == {str(old): Part(MIB, 0, at_most=True)} and not room.is_much
    assert writes([plan_uniform("randread", old, RunOptions(**more))]) == []
    # Space is reserved for a new one, filled or not.
    (room,) = writes(
        [plan_uniform("randwrite", tmp_path / "new", RunOptions(size=MIB, requests=9, fill=False))]
    )
    assert room.new == MIB


def test_devices_are_said_and_take_no_space(tmp_path):
    plan = plan_uniform("write", tmp_path / "t", RunOptions(size=MIB, requests=1))
    plan["targets"][0] |= {"kind": "device", "path": "/dev/x", "allow_destroy": True}
    assert devices([plan]) == {"/dev/x": Part(MIB, 0)} and writes([plan]) == []
    plan["targets"][0]["prepare"] = "none"
    assert devices([plan]) == {"/dev/x": Part(MIB, 0, at_most=True)}
    plan["workers"][0]["source"]["reads"] = 1.0
    assert devices([plan]) == {}


def test_files_that_programs_make_count(tmp_path, loadstone):
    drawn = "size=$size,entries=100,prealloc=50"
    done = loadstone("run", script(tmp_path, drawn), "--on", tmp_path / "d", "--dry-run")
    (room,) = writes([json.loads(done.stdout)])
    assert room.bytes == pytest.approx(100 * MIB, rel=0.1) and list(room.parts) == [str(tmp_path / "d/s")]
    assert not room.at_most and not room.grows


@pytest.mark.parametrize(
    "law",
    [
        {"kind": "gamma", "shape": 1.5, "scale": 10.0, "shift": -1e308},
        {"kind": "normal", "mean": -1e308, "sigma": 1e308},
        {"kind": "triangular", "low": -1e308, "mode": 0.0, "high": 1e308},
    ],
)
def test_sizes_of_no_mean_are_no_defect(tmp_path, loadstone, law):
    """A plan from elsewhere may have any law that its schema lets pass."""
    done = loadstone(
        "run", script(tmp_path, "size=$size,entries=9,prealloc=50"), "--on", tmp_path, "--dry-run"
    )
    plan = json.loads(done.stdout)
    plan["variables"] = [{"id": one["id"], "law": law} for one in plan["variables"]]
    assert all(room.bytes >= 0 for room in writes([plan]))
    # No files of a size without bounds are no bytes.
    plan["sets"][0]["entries"] = 0
    assert [room.bytes for room in writes([plan])] == [0]


@pytest.mark.slow
def test_what_programs_append_counts_where_it_ends(tmp_path, loadstone):
    path = tmp_path / "w.f"
    path.write_text(
        "define fileset name=s,path=$dir,size=1m,entries=4,prealloc\n"
        "define process name=p { thread name=t { flowop appendfile name=a,filesetname=s,iosize=64k } }\n"
    )
    done = loadstone("run", path, "--on", tmp_path / "d", "--duration", "1s", "--dry-run")
    plan = json.loads(done.stdout)
    (room,) = writes([plan])
    assert room.bytes == 4 * MIB and room.grows
    plan["workers"][0]["requests"] = 100
    (room,) = writes([plan])
    assert room.bytes == 4 * MIB + 100 * 65536 and room.at_most and not room.grows
    told = loadstone("run", path, "--on", tmp_path / "d", "--duration", "1s").stderr
    assert f"writes {tmp_path}/d/s: 4.0 MiB of " in told and "that are free, and what is appended" in told


@pytest.mark.parametrize(
    ("op", "each"),
    [
        ("fallocate name=a,fd=1,iosize=150m", 150 * MIB),
        ("write name=a,fd=1,iosize=1m,workingset=100m,random", 100 * MIB),
        ("aiowrite name=a,fd=1,iosize=1m,workingset=100m,random", 100 * MIB),
        ("write name=a,fd=1,iosize=1m", MIB),
        ("read name=a,fd=1,iosize=1m,workingset=100m,random", 4096),
    ],
)
def test_what_programs_make_longer_counts(tmp_path, loadstone, op, each):
    path = tmp_path / "w.f"
    path.write_text(
        "define fileset name=s,path=$dir,size=4k,entries=10,dirwidth=100,prealloc\n"
        "define process name=p { thread name=t { flowop openfile name=o,filesetname=s,fd=1\n"
        f"flowop {op}\nflowop closefile name=c,fd=1 }} }}\n"
    )
    done = loadstone("run", path, "--on", tmp_path / "d", "--duration", "1s", "--dry-run")
    (room,) = writes([json.loads(done.stdout)])
    assert room.bytes == 10 * each and room.at_most == (each > 4096)


def test_trees_of_traces_and_models_count(tmp_path, loadstone):
    trace, model = tmp_path / "a.strace", tmp_path / "a.mdh"
    trace.write_text(
        '1 1.000000 openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n'
        '1 1.000100 pwrite64(3, "x"..., 65536, 1048576) = 65536 <0.000010>\n'
        '1 1.000200 openat(AT_FDCWD, "/d/g", O_RDONLY) = 4 <0.000010>\n'
        '1 1.000300 pread64(4, "x"..., 4096, 0) = 4096 <0.000010>\n'
    )
    fit(trace).save(model)
    (room,) = writes([plan_replay(trace, tmp_path / "d")])
    assert list(room.parts) == [str(tmp_path / "d")] and room.at_most
    assert room.bytes == MIB + 65536 + 4096
    plan = plan_model(model, tmp_path / "d")
    (room,) = writes([plan])
    execute(plan)
    held = sum(path.stat().st_size for path in (tmp_path / "d").rglob("*") if path.is_file())
    assert room.at_most and 0 < held <= room.bytes
    shutil.rmtree(tmp_path / "d")
    told = loadstone("replay", trace, "--on", tmp_path / "d").stderr
    assert f"writes {tmp_path}/d: up to 1.1 MiB of " in told


@pytest.mark.parametrize(
    ("size", "free", "much"),
    [
        (64 * MIB, 80 * MIB, False),
        (64 * MIB + 4096, 80 * MIB, True),
        (5 * GIB, 50 * GIB, False),
        (5 * GIB + 4096, 50 * GIB, True),
    ],
)
def test_much_is_a_tenth_of_what_is_free(size, free, much, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "statvfs", statvfs(free))
    assert [room.is_much for room in room_of(str(tmp_path / "a"), size)] == [much]


def test_more_than_is_free_is_refused_and_what_may_be_more_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "statvfs", statvfs(GIB))
    with pytest.raises(
        Error, match=r"/a: 1,073,745,920 bytes are to be written there, and 1,073,741,824 are"
    ):
        writes([], {str(tmp_path / "a"): GIB, str(tmp_path / "b"): 4096})
    (room,) = room_of(str(tmp_path / "a"), 2 * GIB, at_most=True)
    assert room.is_much


def test_what_is_written_is_said(tmp_path, loadstone):
    options = ("--on", tmp_path / "t", "--size", "4m", "--requests", 1, "--json")
    done = loadstone("run", "randread", *options)
    assert f"writes {tmp_path}/t: 4.0 MiB of " in done.stderr and "that are free" in done.stderr
    assert "writes" not in loadstone("--quiet", "run", "randread", *options, "--no-fill").stderr
    assert "writes" not in loadstone("run", "randread", *options, "--no-fill").stderr


LOADS = {
    "run": ("run", "randread", "--on", "{at}/t", "--size", "{half}", "--requests", "1"),
    "replay": ("replay", "{at}/a.spc", "--on", "{at}/t", "--size", "{half}", "--offsets", "wrap"),
    "script": ("run", "{at}/w.f", "--on", "{at}/d", "--duration", "1s"),
    "personality": ("run", "varmail", "--on", "{at}/d", "--size", "{half}", "--duration", "1s"),
    "jobs": ("run", "{at}/j.fio", "--on", "{at}"),
    "suite": ("run", "mkfile", "--on", "{at}/d", "--size", "{half}"),
    "evaluate": ("evaluate", "{at}/a.spc", "--on", "{at}/t", "--size", "{half}", "--offsets", "wrap"),
}


@pytest.fixture
def load(tmp_path):
    """The words of a load that writes half of what is free."""
    half = half_free(tmp_path)
    if half < GIB:
        pytest.skip("needs 2 GiB of free space, of which nothing is used")
    rows = "".join(f"0,{i * 8},4096,{'RW'[i % 2]},{i / 1000}\n" for i in range(500))
    (tmp_path / "a.spc").write_text(rows)
    (tmp_path / "j.fio").write_text(f"[a]\nrw=randread\nfilename=f\nsize={half}\nio_size=4k\n")
    script(tmp_path, f"size={half // 4},entries=4,prealloc")

    def words(name: str) -> list[str]:
        return [word.format(at=tmp_path, half=half) for word in LOADS[name]]

    return words


def made(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")} - {"a.spc", "j.fio", "w.f"}


@pytest.mark.parametrize("name", LOADS)
def test_much_is_not_written_without_being_asked(name, load, loadstone, tmp_path):
    done = loadstone(*load(name), status=1)
    appends = ", and what is appended" if name == "personality" else ""
    assert f"that are free{appends}; give --yes to begin, or ask for less" in done.stderr, done.stderr
    assert made(tmp_path) == set()


def test_a_terminal_is_asked(load, root, tmp_path):
    ours, theirs = pty.openpty()
    try:
        program = [root / ".venv/bin/loadstone", *load("run")]
        with subprocess.Popen(program, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            os.write(ours, b"n\n")
            _, told = child.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"that are free. Begin? [y/N]" in told and b"nothing was done" in told
    assert child.returncode == 1 and made(tmp_path) == set()


def test_a_series_of_trees_is_said(tmp_path, loadstone):
    options = ("--files", "20", "--seed", "1", "-o", tmp_path / "a.fst")
    loadstone("dataset", "populate", *options)
    size = sum(one["alone"]["bytes"] for one in describe(tmp_path / "a.fst")["snapshots"])
    for name, more, most in (
        ("a", (), ""),
        ("b", ("--only-changed",), "up to "),
        ("c", ("--hashes",), "up to "),
    ):
        told = loadstone("dataset", "write", tmp_path / "a.fst", "--to", tmp_path / name, *more).stderr
        assert f"writes {tmp_path}/{name}: {most}" in told
        if name != "c":
            assert human_bytes(size) in told
    found = re.search(r"up to ([0-9.]+) KiB", told)
    assert (tmp_path / "c").stat().st_size <= float(found[1]) * 1024


def test_long_paths_count_in_what_an_archive_takes(tmp_path, loadstone):
    """Every header repeats the whole path."""
    deep = "/".join(["d" * 200] * 15)
    (tmp_path / "t" / deep).mkdir(parents=True)
    (tmp_path / "t" / deep / "f").write_text("x")
    (tmp_path / "t" / deep / "g").hardlink_to(tmp_path / "t" / deep / "f")
    loadstone("dataset", "scan", tmp_path / "t", "-o", tmp_path / "t.fst")
    for most, more in (("t.tar", "--tar"), ("t.hashes", "--hashes")):
        told = loadstone("dataset", "write", tmp_path / "t.fst", "--to", tmp_path / most, more).stderr
        found = re.search(r"up to ([0-9.]+) (KiB|MiB)", told)
        said = float(found[1]) * {"KiB": 1 << 10, "MiB": 1 << 20}[found[2]]
        assert (tmp_path / most).stat().st_size <= said * 1.01


def test_what_a_link_leads_to_holds_its_room_already(tmp_path):
    (tmp_path / "real").write_bytes(b"x" * (4 << 20))
    os.symlink(tmp_path / "real", tmp_path / "link")
    link = tmp_path / "link"
    plan = plan_uniform("write", link, RunOptions(size=4 * MIB, requests=1, allow_destroy=[link]))
    (room,) = writes([plan])
    assert room.new == 0 and room.bytes > 0
