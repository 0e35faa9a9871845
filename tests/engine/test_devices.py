"""Devices and full or damaged storage: everything that needs root."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadstone import Error
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_uniform

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("need_root")]


def sh(*words):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def loop(image, *options):
    device = sh("losetup", "--find", "--show", *options, image)
    try:
        yield device
    finally:
        sh("losetup", "-d", device)
        # Another test's run may look at it just now: then it goes when that closes it.
        attached, end = Path("/sys/block", Path(device).name, "loop"), time.monotonic() + 10
        while attached.exists() and time.monotonic() < end:
            time.sleep(0.01)


@pytest.fixture
def image(tmp_path, need_tools):
    need_tools("losetup")
    path = tmp_path / "image"
    path.write_bytes(b"\xa5" * (16 << 20))
    return path


def randwrite(target, **options):
    return plan_uniform(
        "randwrite", target, RunOptions(requests=200, cache="none", backend="sync", depth=1, **options)
    )


def test_a_device_is_written_only_when_it_is_named(image):
    with loop(image) as device:
        with pytest.raises(Error, match=f"`allow_destroy` {device}"):
            execute(randwrite(device))
        plan = randwrite(device, allow_destroy=[device])
        assert plan["targets"][0]["kind"] == "device" and plan["targets"][0]["size"] == 16 << 20
        assert execute(plan)["summary"]["errors"] == 0
        sh("sync", device)
    assert image.read_bytes() != b"\xa5" * (16 << 20)


def test_a_mounted_device_is_refused_even_then(image, tmp_path, need_tools):
    need_tools("mkfs.ext4")
    sh("mkfs.ext4", "-q", "-F", image)
    before = image.read_bytes()
    mount = tmp_path / "mnt"
    mount.mkdir()
    with loop(image) as device:
        sh("mount", "-o", "ro", device, mount)
        try:
            for plan in (
                randwrite(device, allow_destroy=[device]),
                plan_uniform("randread", device, RunOptions(requests=5, cache="none")),
            ):
                with pytest.raises(Error, match=f"is mounted at {mount}"):
                    execute(plan)
        finally:
            sh("umount", mount)
    assert image.read_bytes() == before


def test_a_partitioned_device_is_refused_even_then(image, need_tools):
    need_tools("addpart", "delpart")
    before = image.read_bytes()
    with loop(image) as device:
        # Told to the kernel directly: not every kernel reads every kind of partition table.
        sh("addpart", device, 1, 2048, 4096)
        try:
            with pytest.raises(Error, match=r"has 1 partitions .*refused even with `allow_destroy`"):
                execute(randwrite(device, allow_destroy=[device]))
        finally:
            sh("delpart", device, 1)
    assert image.read_bytes() == before


def test_the_file_behind_a_loop_device_is_refused(image):
    with loop(image) as device, pytest.raises(Error, match=f"is in use by {device}"):
        execute(randwrite(image, allow_destroy=[image]))


def test_the_file_behind_a_device_is_locked_with_it(image):
    """A run on the image goes on, or a virtual machine has it open, when somebody attaches it."""
    before = image.read_bytes()
    with open(image, "r+b") as file, loop(image) as device:
        plan = randwrite(device, allow_destroy=[device])
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Error, match=f"is made of {image}, which is in use by another run"):
            execute(plan)
        fcntl.flock(file, fcntl.LOCK_UN)
        child = subprocess.Popen(
            [sys.executable, "-c", LOCKS, image], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout.readline() == "locked\n"
            with pytest.raises(Error, match=f"is made of {image}, which is locked by process {child.pid}"):
                execute(plan)
        finally:
            child.communicate()
        assert image.read_bytes() == before
        assert execute(plan)["summary"]["errors"] == 0


def test_a_device_whose_bytes_are_locked_is_not_written(image):
    """As a virtual machine locks its disk; only files and images of loop devices were looked at."""
    before = image.read_bytes()
    with loop(image) as device:
        child = subprocess.Popen(
            [sys.executable, "-c", LOCKS, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout.readline() == "locked\n"
            with pytest.raises(Error, match=f"is locked by process {child.pid}"):
                execute(randwrite(device, allow_destroy=[device]))
        finally:
            child.communicate()
    assert image.read_bytes() == before


LOCKS = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 100, 4096)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_read_only_device_is_not_writable(image):
    with loop(image, "--read-only") as device, pytest.raises(Error, match="is not writable"):
        execute(randwrite(device, allow_destroy=[device]))


def test_enospc_is_counted(tmp_path):
    sh("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path)
    try:
        with pytest.raises(Error, match="cannot hold 16777216 bytes: No space left on device"):
            execute(randwrite(tmp_path / "new", size=16 << 20))
        assert not (tmp_path / "new").exists()
        # A hole-y file promises more than there is: each write finds out for itself.
        target = tmp_path / "sparse"
        with target.open("wb") as file:
            file.truncate(16 << 20)
        plan = plan_uniform(
            "write", target, RunOptions(requests=4000, cache="none", fill=False, allow_destroy=[target])
        )
        outcome = execute(plan)
        ops = outcome["ops"]
        failed = ops["count"][ops["errno"] == 28].sum()
        assert outcome["summary"]["requests"] == 4000 and outcome["summary"]["errors"] == failed
        assert 4000 - 256 <= failed < 4000
    finally:
        sh("umount", tmp_path)


def test_eio_is_counted(image, tmp_path):
    # A loop device whose file is cut off: the device fails what lies beyond.
    with loop(image, "--direct-io=on") as device:
        with image.open("r+b") as file:
            file.truncate(8 << 20)
        plan = plan_uniform(
            "randread", device, RunOptions(requests=500, direct=True, backend="sync", depth=4, cache="none")
        )
        outcome = execute(plan)
    ops = outcome["ops"]
    failed = ops["count"][ops["errno"] == 5].sum()
    assert 0 < failed == outcome["summary"]["errors"] < 500
    assert outcome["summary"]["requests"] == 500


def dirty_pages(path):
    """Pages of a file that wait to be written, by cachestat(2)."""
    found = (ctypes.c_uint64 * 5)()
    with open(path, "rb") as file:
        whole = (ctypes.c_uint64 * 2)(0, 0)
        if ctypes.CDLL(None, use_errno=True).syscall(451, file.fileno(), whole, found, 0):
            pytest.skip(f"cachestat: {os.strerror(ctypes.get_errno())}")
    return found[1]


@pytest.mark.root
@pytest.mark.alone
def test_caches_of_the_host_are_dropped_when_nothing_is_dirty(tmp_path, need_root):
    other = tmp_path / "other"
    other.write_bytes(bytes(8 << 20))
    assert dirty_pages(other) > 0, "or this tests nothing"
    plan = plan_uniform(
        "randread", tmp_path / "target", RunOptions(size=1 << 20, requests=10, cache="drop-host")
    )
    outcome = execute(plan)
    assert any("all clean caches" in note for note in outcome["summary"]["notes"])
    assert dirty_pages(other) == 0


@contextmanager
def too_small(tmp_path):
    """A device of 16 MiB with 4 MiB behind it: writing back fails, and nothing else does."""
    room = tmp_path / "room"
    room.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=4m", "none", room)
    try:
        image = room / "image"
        with image.open("wb") as file:
            file.truncate(16 << 20)
        with loop(image) as device:
            yield device
    finally:
        sh("umount", room)


def test_writes_that_are_lost_on_their_way_to_the_store_are_told(tmp_path, need_tools, loadstone):
    need_tools("losetup", "mkfs.ext4")
    with too_small(tmp_path) as device:
        done = loadstone(
            *("run", "write", "--on", device, "--allow-destroy", device, "--backend", "sync"),
            *("--requests", 3000, "--cache", "none", "--no-fill", "--json"),
            status=1,
        )
        summary = json.loads(done.stdout)
        # The page cache took them all.
        assert (summary["requests"], summary["errors"], summary["short"]) == (3000, 0, 0)
        (lost,) = summary["written_back"]["errors"]
        assert device in lost and "Input/output error" in lost
        assert "not all that was written reached the store" in done.stderr


def test_files_of_scripts_that_are_lost_are_told(tmp_path, need_tools, loadstone):
    need_tools("losetup", "mkfs.ext4", "mount")
    script = tmp_path / "w.f"
    script.write_text(
        "define fileset name=s,path=$dir,entries=8,size=1m,dirwidth=8\n"
        "define process name=p { thread name=t {\n"
        "  flowop createfile name=c,filesetname=s,fd=1\n"
        "  flowop writewholefile name=w,filesetname=s,fd=1,iosize=64k\n"
        "  flowop closefile name=x,fd=1\n"
        "  flowop finishoncount name=f,value=8,target=w\n"
        "} }\nrun 60\n"
    )
    with too_small(tmp_path) as device:
        sh("mkfs.ext4", "-q", "-O", "^has_journal", device)
        mount = tmp_path / "mnt"
        mount.mkdir()
        sh("mount", device, mount)
        try:
            done = loadstone("run", script, "--on", mount / "d", "--cache", "none", status=1)
        finally:
            sh("umount", mount)
    assert "not all that was written reached the store" in done.stderr
    assert "did not all become stable" in done.stderr and "writing back what was written: " in done.stdout
