import subprocess

import pytest

SIZE = 32 << 20


@pytest.fixture
def alone(tmp_path, need_root, need_tools):
    """A block device that nobody else uses, so that its counters are those of the load alone."""
    need_tools("losetup")
    image = tmp_path / "image"
    image.write_bytes(bytes(SIZE))
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "-d", made.stdout.strip()], check=True)


@pytest.fixture
def mounted(alone, tmp_path, need_tools):
    """A file system on a block device that nobody else uses."""
    need_tools("mkfs.ext4", "mount")
    subprocess.run(["mkfs.ext4", "-q", alone], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", alone, place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)
