import subprocess
import time
from pathlib import Path

import pytest


def threads(pid: int) -> list[str]:
    """Names of a process's threads; none where it is gone."""
    try:
        return [(task / "comm").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


@pytest.fixture
def started(root):
    """Starts a run, and returns when it has begun to measure."""

    def start(*words) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            [root / ".venv/bin/loadstone", *map(str, words), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not any(name.startswith("loadstone-w") for name in threads(run.pid)):
            assert run.poll() is None and time.monotonic() < deadline, run.communicate()
            time.sleep(0.01)
        return run

    return start
