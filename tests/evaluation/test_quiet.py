"""Whether others use the host before runs that are compared."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from loadstone.evaluation.quiet import others


@pytest.mark.root
@pytest.mark.alone
def test_the_load_of_others_is_told(alone):
    assert not any("requests/s" in text for text in others(alone))
    stop = threading.Event()

    def write() -> None:
        fd = os.open(alone, os.O_WRONLY | os.O_DSYNC)
        while not stop.is_set():
            os.pwrite(fd, bytes(65536), 0)
        os.close(fd)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        (told,) = others(alone)
    finally:
        stop.set()
        thread.join()
    assert os.path.basename(os.path.realpath(alone)) in told and "requests/s" in told
    assert "before the first run" in told


@pytest.mark.alone
def test_busy_cpus_are_told():
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        assert any("CPUs were" in text for text in others(None))
    finally:
        for one in busy:
            one.kill()
            one.wait()
