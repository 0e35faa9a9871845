"""Loss of power: a file system forgets what was not synced, and an image goes back in time."""

import fcntl
import json
import os
import struct
import subprocess
import time

import pytest

from loadstone.bundle import Bundle
from loadstone.verification import verify_targets

# _IOR('X', 125, __u32) of ext4 and XFS: stops the file system at once; 2: its log is not flushed, either.
SHUTDOWN, WITHOUT_LOG = 0x8004587D, 2
SIZE = 64 << 20


class Machine:
    """A file system on a loop device whose power can be cut."""

    def __init__(self, kind: str, folder):
        self.image, self.place = folder / "image", folder / "mounted"
        self.image.write_bytes(b"")
        os.truncate(self.image, 512 << 20)
        self.place.mkdir()
        force = "-F" if kind == "ext4" else "-f"
        self.run(f"mkfs.{kind}", "-q", force, self.image)
        self.mount()

    @staticmethod
    def run(*words):
        subprocess.run([*map(str, words)], check=True)

    def mount(self):
        self.run("mount", "-o", "loop", self.image, self.place)

    def unmount(self):
        self.run("umount", self.place)

    def cut(self):
        """Cuts the power: whatever is not on the device is gone."""
        folder = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
        finally:
            os.close(folder)

    def restart(self):
        self.unmount()
        self.mount()


@pytest.fixture(params=["ext4", "xfs"])
def machine(request, tmp_path, need_root, need_tools):
    need_tools(f"mkfs.{request.param}", "mount")
    made = Machine(request.param, tmp_path)
    yield made
    made.unmount()


@pytest.mark.slow
def test_what_was_synced_survives_and_what_was_not_may_be_lost(machine, root, started, tmp_path, loadstone):
    target, state = machine.place / "f", tmp_path / "s"
    words = ("replay", root / "examples/loop0.parquet", "--on", target, "--size", SIZE, "--offsets", "wrap")
    run = started(*words, "--pace", "x4", "--backend", "sync", "--verify-state", state)
    time.sleep(3)
    machine.cut()
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 1, "requests fail once the power is gone"
    summary = json.loads(out)
    assert summary["errors"] > 0 and "Input/output error" in summary["verified"]["unread"]
    machine.restart()
    found = verify_targets(state, after_crash=True)
    assert found["wrong"] == {} and found["checked"] > 10000, found["damages"][:3]
    # The test would show nothing if nothing had been lost.
    assert found["unsynced"]["older"] > 0
    # As if nothing had happened it would be damage, unless all that was lost were writes that had failed.
    lost = json.loads(loadstone("verify", "--state", state, "--json", status=None).stdout)
    assert lost["wrong"].keys() <= {"stale", "torn", "lost"}


@pytest.mark.slow
def test_a_device_that_lies_about_syncs_is_found_out(machine, tmp_path, loadstone):
    target, state = machine.place / "f", tmp_path / "s"
    words = ("run", "randrw", "--on", target, "--size", SIZE, "--backend", "sync", "--requests", "3000")
    loadstone(*words, "--verify-state", state)
    machine.unmount()
    # Holes stay holes: the image has 512 MiB, of which little is written.
    machine.run("cp", "--sparse=always", machine.image, tmp_path / "older")
    machine.mount()
    goes_on = ("--verify-from", state, "--verify-state", state, "--allow-destroy", target, "--seed", "2")
    loadstone(*words, *goes_on, "--sync", "dsync")
    assert verify_targets(state, after_crash=True)["wrong"] == {}
    # All that was stable is gone: the device had only said so.
    machine.unmount()
    machine.run("cp", "--sparse=always", tmp_path / "older", machine.image)
    machine.mount()
    found = verify_targets(state, after_crash=True)
    assert found["wrong"].keys() == {"stale"} and found["wrong"]["stale"] > 1000
    assert "is stale: it holds generation" in found["damages"][0]["text"]


def test_a_run_that_has_ended_survives_a_cut_while_the_next_one_goes_on(
    machine, started, tmp_path, loadstone
):
    jobs, out = tmp_path / "l.fio", machine.place / "o"
    jobs.write_text(
        "[global]\nsize=1m\nrw=randread\n[a]\nnumber_ios=99\n[b]\nstonewall\ntime_based\nruntime=60\n"
    )
    run = started("run", jobs, "--on", "null:", "--out", out)
    while not list(machine.place.glob(".o.loadstone-*/02-*")) and run.poll() is None:
        # The second run has a folder when it has ended; the first one is there long before.
        if list(machine.place.glob(".o.loadstone-*/01-*/summary.json")):
            break
        time.sleep(0.01)
    time.sleep(1)
    machine.cut()
    run.kill()
    run.communicate(timeout=60)
    machine.restart()
    loadstone("run", "randread", "--on", "null:", "--size", "1m", "--requests", 9, "--out", out)
    (kept,) = machine.place.glob("o.unfinished/01-*")
    assert Bundle.read(kept).summary["requests"] == 99
