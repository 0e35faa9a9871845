"""The commands that the pages show are run as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest

PAGES = ["README.md"]


def blocks(text: str) -> list[str]:
    """The commands after ``$`` in ```console blocks, in order; a backslash joins lines."""
    commands = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        joined = re.sub(r"\\\n\s*", "", block)
        commands += [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    return commands


@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page, root, tmp_path):
    commands = blocks((root / page).read_text())
    assert commands, f"{page} shows no command"
    (tmp_path / "examples").symlink_to(root / "examples")
    environment = {**os.environ, "PATH": f"{root}/.venv/bin{os.pathsep}{os.environ['PATH']}"}
    for command in commands:
        assert shlex.split(command)[0] == "loadstone", command
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"


def test_python_of_the_pages_compiles(root):
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    for page in pages:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            compile(block, str(page), "exec")
