"""The wheel: built, installed into an empty environment, and used there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.network]


@pytest.fixture(scope="module")
def installed(tmp_path_factory, request):
    root = request.config.rootpath
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["make", "wheel"], cwd=root, check=True, capture_output=True, text=True, timeout=1500)
    (wheel,) = (root / "dist").glob("loadstone-*.whl")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=300)
    pip = [
        folder / "venv/bin/python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    lock = root / "requirements/runtime.lock"
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True, timeout=600)
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True, timeout=300)
    return wheel, folder


def test_name_says_abi3_and_manylinux(installed):
    wheel, _ = installed
    assert "cp311-abi3" in wheel.name
    assert "manylinux" in wheel.name


def test_holds_licences_and_types(installed):
    wheel, _ = installed
    names = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", wheel], check=True, capture_output=True, text=True
    ).stdout
    for name in (
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "NOTICE",
        "loadstone/py.typed",
        "loadstone/_core.pyi",
        "loadstone/wml/grammar.lark",
        "loadstone/personalities/varmail.f",
    ):
        assert name in names, name


def test_runs_from_an_empty_environment(installed, root):
    _, folder = installed
    program = folder / "venv/bin/loadstone"

    def run(*args: object) -> str:
        # Another folder, so that nothing of the source tree is imported by accident.
        return subprocess.run(
            [program, *map(str, args)],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    assert "version" in run("--version")
    described = json.loads(run("trace", "describe", root / "examples/loop0.parquet", "--json"))
    assert described["requests"] > 100_000
    where = subprocess.run(
        [folder / "venv/bin/python", "-c", "import loadstone; print(loadstone.__file__)"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert str(folder) in where
