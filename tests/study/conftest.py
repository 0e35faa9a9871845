from __future__ import annotations

import contextlib
import os
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """``write(text)``: a study file."""

    def made(text: str, name: str = "s.toml") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return made


@pytest.fixture
def tmp_path(tmp_path: Path):
    """Nothing of a study may be left on the host when a test has ended."""
    yield tmp_path
    left = left_on_host(tmp_path)
    for line in left:
        with contextlib.suppress(OSError):
            subprocess.run(
                ["umount", line.split()[-1]] if "mount" in line else ["losetup", "-d", line.split()[-1]]
            )
    assert not left


def left_on_host(folder: Path) -> list[str]:
    """What is mounted below a folder, and what loop devices have a file there."""
    below = os.path.realpath(folder)
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if (point := line.split()[4]).startswith(below):
            found.append(f"mount {point}")
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(below):
                found.append(f"loop /dev/{path.parents[1].name}")
    return found
