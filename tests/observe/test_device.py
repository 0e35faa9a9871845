"""Counts at a real block device: what was written is counted. Needs root and loop devices."""

import ctypes
import fcntl
import mmap
import os
import shutil
import struct
import subprocess
import time

import numpy as np
import pytest

from loadstone import Error, _core
from loadstone.observe import Observer, device_of, response_parameters

N, SIZE = 300, 8192
BLKPG, BLKPG_ADD_PARTITION = 0x1269, 1


def refuse_to_run():
    if os.geteuid() != 0:
        return "needs root for a loop device"
    if not shutil.which("losetup"):
        return "needs losetup"
    return None


@pytest.fixture
def loop(tmp_path):
    if reason := refuse_to_run():
        pytest.skip(reason)
    image = tmp_path / "image"
    image.write_bytes(bytes(64 << 20))
    made = subprocess.run(["losetup", "-P", "-f", "--show", image], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    device = made.stdout.strip()
    yield device, image
    subprocess.run(["losetup", "-d", device], check=True)


def direct_writes(path, progress):
    data = mmap.mmap(-1, SIZE)
    fd = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        for i in range(N):
            os.pwrite(fd, data, i * SIZE)
            progress.add(1)
    finally:
        os.close(fd)


@pytest.mark.root
def test_n_direct_writes_are_n_writes_at_the_device(loop):
    device, image = loop
    progress = _core.Progress()
    with Observer(device, 0.005) as observer:
        observer.attach(progress)
        time.sleep(0.02)
        direct_writes(device, progress)
        time.sleep(0.02)
    seen = observer.result
    assert seen.device["name"] == os.path.basename(device)
    assert any(str(image) in below for below in seen.device["below"]), "what a loop device rests on is told"
    gained = {k: v[-1] - v[0] for k, v in seen.columns.items() if k.startswith("disk_")}
    assert gained["disk_writes"] + gained["disk_writes_merged"] == N
    assert gained["disk_write_sectors"] * 512 == N * SIZE
    time_of = seen.columns["time"]
    whole = response_parameters(seen.columns, [time_of[0], time_of[-1]], seen.ticks_per_s)
    assert whole.counts["writes_per_s"] == pytest.approx([gained["disk_writes"]])
    assert whole.values["request_size"] == pytest.approx([N * SIZE / gained["disk_writes"]])
    assert 0 <= whole.values["utilisation"][0] <= 1.2
    # The progress is sampled in step with the counters: where all was issued, all was counted.
    assert seen.columns["progress"][-1] == N
    written = seen.columns["disk_writes"] - seen.columns["disk_writes"][0]
    assert np.all(np.abs(written - seen.columns["progress"]) <= N / 4)


@pytest.mark.root
def test_partitions_are_themselves_and_iostats_0_is_told(loop):
    device, _ = loop
    name = os.path.basename(device)
    found, reason = device_of(device)
    assert reason is None and found["iostats"] is True
    switch = f"/sys/block/{name}/queue/iostats"
    with open(switch, "w") as file:
        file.write("0")
    try:
        found, _ = device_of(device)
        assert found["iostats"] is False
        assert any("iostats is 0" in w and f"{name}/queue/iostats" in w for w in found["warnings"])
    finally:
        with open(switch, "w") as file:
            file.write("1")
    # Added by ioctl (linux/blkpg.h), because a kernel may be built without any table format.
    entry = ctypes.create_string_buffer(struct.pack("<qqi128x4x", 1 << 20, 2 << 20, 1))
    request = struct.pack("<iii4xQ", BLKPG_ADD_PARTITION, 0, len(entry.raw) - 1, ctypes.addressof(entry))
    with open(device, "rb") as file:
        fcntl.ioctl(file, BLKPG, request)
    part = f"{device}p1"
    if not os.path.exists(part):
        pytest.skip("no node appeared for the partition")
    found, _ = device_of(part)
    assert found["name"] == f"{name}p1"
    assert f"{name} (whole disk)" in found["below"]


def test_where_no_device_lies_behind_a_path_the_reason_is_told():
    found, reason = device_of("/proc/self/maps")
    assert found is None and "proc" in reason
    with pytest.raises(Error, match="character device"):
        _core.resolve_device("/dev/null")
    with Observer("/dev/null", 0.005) as observer:
        time.sleep(0.02)
    assert any("character device" in text for _, kind, text in observer.result.events if kind == "warning")


def test_a_mounted_tmpfs_has_no_device(tmp_path):
    if reason := refuse_to_run():
        pytest.skip(reason)
    if subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], capture_output=True).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        found, reason = device_of(tmp_path / "file")
        assert found is None and "tmpfs" in reason
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_an_overlay_is_where_its_upper_folder_is(tmp_path):
    if reason := refuse_to_run():
        pytest.skip(reason)
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    options = ",".join(f"{k}dir={tmp_path / k}" for k in ("lower", "upper", "work"))
    made = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, tmp_path / "merged"],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip(f"no overlay can be mounted here: {made.stderr.decode().strip()}")
    try:
        assert device_of(tmp_path / "merged" / "x") == device_of(tmp_path / "upper")
    finally:
        subprocess.run(["umount", tmp_path / "merged"], check=True)


def test_btrfs_is_found_through_its_mount(loop, tmp_path):
    device, _ = loop
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("needs mkfs.btrfs")
    subprocess.run(["losetup", "-d", device], check=False)
    image = tmp_path / "large"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["losetup", device, image], check=True)
    subprocess.run(["mkfs.btrfs", "-q", "-f", device], check=True)
    point = tmp_path / "point"
    point.mkdir()
    if subprocess.run(["mount", device, point], capture_output=True).returncode:
        pytest.skip("btrfs cannot be mounted here")
    try:
        found, reason = device_of(point / "file")
        assert found is not None and found["name"] == os.path.basename(device), reason
    finally:
        subprocess.run(["umount", point], check=True)
