"""Block devices and single files in place of trees of files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import loadstone
from loadstone.bundle.write import summarise
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_filebench

SIZE = 4 << 20
LOOP = "define process name=p { thread name=t { %s } }\nrun 1\n"
READ = LOOP % "flowop read name=r,filesetname=%s,iosize=4k,random"
WRITE = LOOP % "flowop write name=w,filesetname=%s,iosize=64k"


def perform(path: Path, on: object, **more: object) -> dict[str, object]:
    found = plan_filebench(path, on, RunOptions(**more))
    (plan,) = found.plans
    return summarise(plan, execute(plan))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(b"\xa5" * SIZE)
    return path


@pytest.fixture
def device(image: Path, need_root: None, need_tools) -> Iterator[str]:
    need_tools("losetup")
    words = ["losetup", "--find", "--show", str(image)]
    name = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["losetup", "-d", name], check=True)


def script(tmp_path: Path, path: str, text: str) -> Path:
    home, name = os.path.split(path)
    (tmp_path / "w.f").write_text(f"define file name={name},path={home},size=9g,prealloc\n{text % name}")
    return tmp_path / "w.f"


@pytest.mark.root
def test_a_device_is_read_as_it_is(device, image, tmp_path):
    summary = perform(script(tmp_path, device, READ), tmp_path / "d")
    assert summary["requests"] > 10 and summary["errors"] + summary["short"] == 0
    assert image.read_bytes() == b"\xa5" * SIZE and not (tmp_path / "d").exists()


@pytest.mark.root
def test_a_device_is_written_only_where_it_is_named(device, image, tmp_path):
    path = script(tmp_path, device, WRITE)
    for allowed in ([], [tmp_path / "d"]):
        with pytest.raises(loadstone.Error) as caught:
            plan_filebench(path, tmp_path / "d", RunOptions(allow_destroy=allowed))
        assert f"flowop write would overwrite {device}, which was there before" in str(caught.value)
        assert f"`allow_destroy` {device}" in str(caught.value)
    assert image.read_bytes() == b"\xa5" * SIZE
    summary = perform(path, tmp_path / "d", allow_destroy=[device])
    # Sequential writes go round: many times the device, and none fails for want of room.
    assert summary["bytes"] > 2 * SIZE and summary["errors"] + summary["short"] == 0
    subprocess.run(["sync", device], check=True)
    content = image.read_bytes()
    assert len(content) == SIZE and b"\xa5" * 4096 not in content


@pytest.mark.root
def test_a_device_that_is_mounted_is_refused_even_then(device, tmp_path, need_tools):
    need_tools("mkfs.ext4")
    subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
    mount = tmp_path / "mnt"
    mount.mkdir()
    subprocess.run(["mount", device, mount], check=True)
    try:
        for text in (READ, WRITE):
            with pytest.raises(loadstone.Error, match=f"is mounted at {mount}"):
                perform(script(tmp_path, device, text), tmp_path / "d", allow_destroy=[device])
    finally:
        subprocess.run(["umount", mount], check=True)


@pytest.mark.root
def test_a_device_in_place_of_the_one_file(device, image, tmp_path):
    path = tmp_path / "w.f"
    path.write_text("define file name=big,path=$dir,size=9g,prealloc\n" + READ % "big")
    assert perform(path, device)["requests"] > 10
    path.write_text("define file name=big,path=$dir,size=9g,prealloc\n" + WRITE % "big")
    with pytest.raises(loadstone.Error, match="would overwrite"):
        plan_filebench(path, device)
    assert perform(path, device, allow_destroy=[device])["errors"] == 0
    path.write_text("define file name=a,path=$dir\ndefine file name=b,path=$dir\n" + READ % "a")
    with pytest.raises(loadstone.Error, match="is that of another file of this script already"):
        plan_filebench(path, device)
    path.write_text("define fileset name=a,path=$dir,entries=5,dirwidth=2\n" + READ % "a")
    with pytest.raises(loadstone.Error, match="is a device, and file set a is a tree"):
        plan_filebench(path, device)


def test_a_single_file_is_used_as_it_is(image, tmp_path):
    path = script(tmp_path, str(image), READ)
    summary = perform(path, tmp_path)
    assert summary["requests"] > 10 and summary["errors"] + summary["short"] == 0
    path = script(tmp_path, str(image), WRITE)
    with pytest.raises(loadstone.Error, match=f"`allow_destroy` {image}"):
        plan_filebench(path, tmp_path)
    assert image.read_bytes() == b"\xa5" * SIZE
    assert perform(path, tmp_path, allow_destroy=[image])["errors"] == 0
    assert len(image.read_bytes()) == SIZE and image.read_bytes() != b"\xa5" * SIZE


FAULTS = [
    ("flowop appendfile name=a,filesetname=%s,iosize=4k", "flowop appendfile cannot be done with"),
    ("flowop deletefile name=a,filesetname=%s", "flowop deletefile cannot be done with"),
    ("flowop listdir name=a,filesetname=%s", "flowop listdir cannot be done with"),
]


@pytest.mark.parametrize(("flowop", "what"), FAULTS)
def test_what_cannot_be_done_with_one_file(image, tmp_path, flowop, what):
    with pytest.raises(loadstone.Error) as caught:
        plan_filebench(
            script(tmp_path, str(image), LOOP % flowop), tmp_path, RunOptions(allow_destroy=[image])
        )
    assert what in str(caught.value) and "which is a file" in str(caught.value)
    assert "openfile, read, readwholefile, statfile, write and writewholefile can" in str(caught.value)


def test_files_elsewhere_are_not_touched(image, tmp_path):
    (tmp_path / "other").mkdir()
    path = script(tmp_path, str(image), READ)
    with pytest.raises(loadstone.Error, match="does not lie in"):
        plan_filebench(path, tmp_path / "other")
    with pytest.raises(loadstone.Error, match=f"`allow_destroy` {image}: is no target of this run"):
        plan_filebench(path, tmp_path / "other", RunOptions(rebase=True, allow_destroy=[image]))
    # Moved below the directory it is a tree, like any other.
    found = plan_filebench(path, tmp_path / "other", RunOptions(rebase=True))
    assert found.plans[0]["targets"][0]["kind"] == "tree"


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "none").write_bytes(b"")
    with pytest.raises(loadstone.Error, match="is empty; there is nothing to read or write"):
        plan_filebench(script(tmp_path, str(tmp_path / "none"), READ), tmp_path)
