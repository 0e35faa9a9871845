"""What a load will write is said before it begins, and asked for where it is much."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone import Error
from loadstone.workload import plan_uniform
from loadstone.workload._writes import devices, rooms, writes

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


def test_targets_and_sets_count_by_file_system(tmp_path, monkeypatch):
    (tmp_path / "old").write_bytes(bytes(MIB))
    plans = [
        plan_uniform("randread", tmp_path / "new", size=2 * MIB, requests=1),
        # The same file again, and one that is given up: what it holds is free for it.
        plan_uniform("randread", tmp_path / "new", size=3 * MIB, requests=1),
        plan_uniform("write", tmp_path / "old", size=MIB, requests=1, allow_destroy=[tmp_path / "old"]),
        # What is only read costs nothing.
        plan_uniform("read", tmp_path / "old", size=MIB, requests=1),
        plan_uniform("randread", "null:", requests=1),
    ]
    monkeypatch.setattr(os, "statvfs", statvfs(100 * MIB))
    (room,) = writes(plans)
    assert room.parts == {str(tmp_path / "new"): 3 * MIB, str(tmp_path / "old"): MIB}
    assert room.free == 101 * MIB and room.bytes == 4 * MIB and not room.is_much
    assert devices(plans) == {}


def test_files_that_programs_make_count(tmp_path, loadstone):
    drawn = "size=$size,entries=100,prealloc=50"
    done = loadstone("run", script(tmp_path, drawn), "--on", tmp_path / "d", "--dry-run")
    (room,) = writes([json.loads(done.stdout)])
    assert room.parts == {str(tmp_path / "d/s"): pytest.approx(100 * MIB, rel=0.1)}


@pytest.mark.parametrize(
    ("size", "free", "much"),
    [
        (GIB, 2 * GIB, False),
        (GIB + 4096, 2 * GIB, True),
        (5 * GIB, 50 * GIB, False),
        (5 * GIB + 4096, 50 * GIB, True),
    ],
)
def test_much_is_a_tenth_of_what_is_free(size, free, much, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "statvfs", statvfs(free))
    assert [room.is_much for room in rooms({str(tmp_path / "a"): size})] == [much]


def test_more_than_is_free_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "statvfs", statvfs(GIB))
    with pytest.raises(
        Error, match=r"/a: 1,073,745,920 bytes are to be written there, and 1,073,741,824 are"
    ):
        rooms({str(tmp_path / "a"): GIB, str(tmp_path / "b"): 4096})


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
    if half < 2 * GIB:
        pytest.skip("needs 4 GiB of free space, of which nothing is used")
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
    assert "that are free; give --yes to begin, or ask for less" in done.stderr, done.stderr
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
    done = loadstone("dataset", "write", tmp_path / "a.fst", "--to", tmp_path / "tree")
    assert f"writes {tmp_path}/tree: " in done.stderr
