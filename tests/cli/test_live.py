"""``--live``: what it draws, that q and Ctrl-C keep the results, and that the terminal is given back."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import termios
import time
from functools import partial

import numpy as np
import pytest
from rich.console import Console

from loadstone.cli._live import LiveView, sparkline
from loadstone.stats import Histogram

ENTER, LEAVE, CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


class Terminal:
    """A process on a terminal of its own; ``said`` is all that it wrote there."""

    def __init__(self, words: list[str], **more) -> None:
        self.ours, theirs = pty.openpty()
        termios.tcsetwinsize(self.ours, (40, 100))
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, **more}
        environment = {**os.environ, "TERM": "xterm"}
        # Under nohup it is ignored, and children inherit that.
        hears = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
        self.process = subprocess.Popen(
            words, env=environment, start_new_session=True, preexec_fn=hears, **streams
        )
        self.said = b""

    def read(self, until: bytes = b"", seconds: float = 60) -> bytes:
        """Reads until a text came, or the process ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            over = self.process.poll() is not None
            while select.select([self.ours], [], [], 0.05)[0]:
                self.said += os.read(self.ours, 65536)
            if over or (until and until in self.said):
                return self.said
        raise AssertionError(f"{until!r} did not come: {self.said[-2000:]!r}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal(loadstone):
    program = loadstone("--version").args[0]
    opened: list[Terminal] = []

    def start(*words: object, **more) -> Terminal:
        opened.append(Terminal([program, *map(str, words)], **more))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


LOAD = ["run", "randread", "--on", "null:", "--rate", "5000", "--duration", "60s", "--live"]


@pytest.mark.parametrize("how", ["q", "Ctrl-C"])
def test_stopping_keeps_the_results_and_gives_the_terminal_back(terminal, tmp_path, how):
    one = terminal(*LOAD, "--out", tmp_path / "b")
    one.read(b"latency, last second")
    if how == "q":
        os.write(one.ours, b"q")
    else:
        one.process.send_signal(signal.SIGINT)
    said = one.read()
    assert one.process.returncode == 130
    assert said.count(ENTER) == said.count(LEAVE) == 1
    after = said.split(LEAVE)[1]
    assert CURSOR in said and b"stopped early: interrupted" in after and b"(partial)" in after
    assert termios.tcgetattr(one.theirs) == one.before
    assert json.loads((tmp_path / "b" / "summary.json").read_text())["partial"]


def test_a_run_to_its_end(terminal):
    one = terminal("run", "randread", "--on", "null:", "--requests", "1000", "--live")
    said = one.read()
    assert one.process.returncode == 0
    assert said.count(ENTER) == said.count(LEAVE) == 1 and b"1,000 requests" in said.split(LEAVE)[1]
    assert termios.tcgetattr(one.theirs) == one.before


@pytest.mark.parametrize(
    "number, status",
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
def test_a_deadly_signal_gives_the_terminal_back(terminal, number, status):
    one = terminal(*LOAD)
    one.read(b"latency, last second")
    one.process.send_signal(number)
    assert one.read().count(LEAVE) == 1
    assert one.process.returncode == status
    assert termios.tcgetattr(one.theirs) == one.before


def test_a_failure_gives_the_terminal_back(terminal, tmp_path):
    script = tmp_path / "out.f"
    script.write_text(
        "define fileset name=fs,path=$dir,entries=20,dirwidth=20,prealloc=100\n"
        "define process name=p { thread name=t { flowop deletefile name=rm,filesetname=fs } }\nrun 30\n"
    )
    one = terminal("run", script, "--on", tmp_path / "d", "--live")
    said = one.read()
    assert one.process.returncode == 1 and b"stopped early: " in said.split(LEAVE)[1]
    assert termios.tcgetattr(one.theirs) == one.before


def test_json_goes_to_standard_output_and_the_view_to_standard_error(terminal, tmp_path):
    with open(tmp_path / "out.json", "wb") as out:
        one = terminal("run", "randread", "--on", "null:", "--requests", "50", "--live", "--json", stdout=out)
    assert ENTER in one.read() and one.process.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["requests"] == 50


def test_without_a_terminal_it_is_refused_before_anything_is_done(loadstone, tmp_path):
    words = ["run", "randread", "--on", tmp_path / "t", "--size", "1m", "--requests", "5", "--live"]
    done = loadstone(*words, status=2)
    assert "--live" in done.stderr and "no terminal" in done.stderr
    assert not (tmp_path / "t").exists()
    assert "--quiet" in loadstone("--quiet", *words, status=2).stderr


def live(**more):
    found = Histogram.of(np.full(5000, 2000)).sparse()
    every = {
        "requests": 6000,
        "bytes": 4096 * 6000,
        "errors": 0,
        "ops_per_s": 5000.0,
        "bytes_per_s": 2e7,
        "latency_bucket": found[0],
        "latency_count": found[1],
    }
    kinds = [{"op": 0, "name": "look", **every}, {"op": 255, "name": "pause", **every, "errors": 3}]
    return {"phase": "running", "elapsed_ns": 4 * 10**9, "fraction": 0.25, **every, "kinds": kinds, **more}


def drawn(view: LiveView, now: dict) -> str:
    console = Console(width=100, height=40, record=True, file=io.StringIO())
    console.print(view.picture(now))
    return console.export_text()


def test_what_is_drawn():
    text = drawn(LiveView("mail.f on /mnt"), live())
    assert "mail.f on /mnt" in text and "25 %, 12.0 s left" in text and "5,000 ops/s" in text
    row = next(line for line in text.splitlines() if line.startswith("all requests"))
    # 5,000 requests tell p99, and neither p99.9 nor p99.99.
    assert row.split()[2:] == ["2.01", "us"] * 4 + ["-", "-"]
    rows = [line.split() for line in text.splitlines() if line.startswith(("look", "pause"))]
    assert [(row[0], row[1], row[-1]) for row in rows] == [("look", "6,000", "0"), ("pause", "(waits)", "3")]
    assert "latency" not in drawn(LiveView("x"), live(phase="filling", requests=0, kinds=[]))


def test_the_busiest_steps_stay_when_not_all_fit():
    base = live()["kinds"][0]
    kinds = [{**base, "name": f"s{i}", "requests": 1000 + i} for i in range(60)]
    text = drawn(LiveView("x"), live(kinds=kinds))
    assert "s59" in text and "s0 " not in text and "more" in text


def test_a_sparkline_reaches_from_zero_to_the_most():
    assert sparkline([], 0) == "" and sparkline([0, 0], 0) == ""
    assert sparkline([0, 1, 50, 100], 100) == " ▁▄█  most 100"
    assert sparkline([0, 100], 200, unicode=False) == " =  most 200"


def test_the_most_is_never_below_what_is_now():
    """A rate between two points of the history was now and not the most."""
    view = LiveView("x")
    for at, rate, most in ((1.0, 100, 100), (1.5, 300, 300), (2.0, 200, 300), (2.2, 5, 300)):
        text = drawn(view, live(elapsed_ns=int(at * 1e9), ops_per_s=float(rate)))
        assert f"now      {rate} ops/s" in text and f"most {most}\n" in text
    assert " ▃▅" in drawn(view, live(phase="reading"))


@pytest.mark.slow
def test_how_far_files_are_examined_is_drawn_with_a_percentage(terminal, tmp_path):
    (tmp_path / "file").write_bytes(random.Random(1).randbytes(64 << 20) * 4)
    # Codecs get all of it, twice, which takes much more than the 2 s before which nothing is drawn.
    one = terminal("content", "examine", tmp_path / "file", "--compress", "1g")
    said = one.read(seconds=120).decode()
    shares = [int(share) for share in re.findall(r"reading .*?(\d+)%", said)]
    assert shares == sorted(shares) and 0 < shares[0] <= shares[-1] <= 100
