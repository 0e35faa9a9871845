"""kill -9 at any moment: nothing that looks whole and is not, and what is left goes with the next run."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from loadstone.bundle import Bundle, Series

ROOT = Path(__file__).resolve().parents[2]


def killed(words, tmp_path, seconds, until=None):
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    built = ROOT / ".venv/bin/loadstone"
    program = str(built) if built.exists() else shutil.which("loadstone")
    child = subprocess.Popen(
        [program, *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert until is None or within(60, until)
    time.sleep(seconds)
    child.kill()
    child.wait()
    return temporary


@pytest.mark.parametrize("force", [False, True])
def test_runs(tmp_path, loadstone, force):
    out = tmp_path / "b"
    words = ["run", "randread", "--on", "null:", "--size", "1m", "--duration", "300ms", "--out", out]
    if force:
        loadstone(*words)
        words.append("--force")
    dice = random.Random(1)
    for _ in range(3):
        killed(words, tmp_path, dice.uniform(0.3, 1.2))
        if out.exists():
            assert Bundle.read(out).ops
            if not force:
                shutil.rmtree(out)
        assert force <= out.exists(), "one of the two is there at any time"
        assert len(list(tmp_path.glob(".b.*"))) <= 1, "each removes what the one before it left"
    loadstone(*words)
    # One that was replaced just then may be kept.
    kept = {"b.unfinished", "b.unfinished.2", "b.unfinished.3"} if force else set()
    assert {"b", "tmp"} <= {p.name for p in tmp_path.iterdir()} <= {"b", "tmp"} | kept


@pytest.mark.slow
def test_evaluations(tmp_path, loadstone, root):
    out = tmp_path / "e"
    words = (
        "evaluate", root / "examples/loop0.parquet", "--on", tmp_path / "t", "--size", "8m",
        "--offsets", "wrap", "--pace", "max", "--duration", "0.5s", "--repeat", 2, "--out", out,
    )  # fmt: skip
    dice = random.Random(2)
    for _ in range(2):
        temporary = killed(words, tmp_path, dice.uniform(1, 6))
        if out.exists():
            assert Series.read(out).bundles()
            shutil.rmtree(out)
        (tmp_path / "t").unlink(missing_ok=True)
        assert len(list(temporary.iterdir())) <= 1 and len(list(tmp_path.glob(".e.*"))) <= 1


@pytest.mark.parametrize("beside", ["probe", "system"])
def test_commands_beside_a_run_end_with_it(tmp_path, beside):
    script = tmp_path / "s.f"
    script.write_text(
        "define process name=p { thread name=t { flowop delay name=d, value=1 } }\n"
        'system "exec sleep 4321.5"\nrun 1\n'
    )
    words = {
        "probe": [
            "run",
            "randread",
            "--on",
            "null:",
            "--size",
            "1m",
            "--duration",
            "60s",
            "--out",
            tmp_path / "b",
            "--probe",
            "p=exec sleep 4321.5",
        ],
        "system": ["run", script, "--on", tmp_path / "d", "--allow-system"],
    }[beside]

    def sleeping():
        return subprocess.run(["pgrep", "-f", "^sleep 4321.5"], capture_output=True).returncode == 0

    killed(words, tmp_path, 0, until=sleeping)
    assert within(10, lambda: not sleeping())


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
