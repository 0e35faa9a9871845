"""What the benchmarks share: naming the machine, running a command with its cost, tables."""

from __future__ import annotations

import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"


@dataclass
class Cost:
    """What one run of a command took."""

    seconds: float
    cpu: float
    """User and system time, seconds."""
    peak: int
    """Largest resident size, bytes."""
    out: str


def measure(command: Sequence[str | Path]) -> Cost:
    """Runs a command to its end and says what it cost; a failing one ends the benchmark."""
    words = [str(word) for word in command]
    read, write = os.pipe()
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.close(read)
        os.execvp(words[0], words)
    os.close(write)
    with os.fdopen(read) as stream:
        out = stream.read()
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"failed with status {status}: {' '.join(words)}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median and range: ``1.25 (1.20-1.31)``."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def machine() -> str:
    """One line that names this machine and its versions."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    kib = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
    fio = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False)
    return (
        f"{os.cpu_count()} cores of {cpu}, {kib / 2**20:.0f} GiB, Linux {platform.release()}, "
        f"Python {platform.python_version()}" + (f", {fio.stdout.strip()}" if fio.returncode == 0 else "")
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def loadstone() -> Path:
    """The built command; its absence ends the benchmark."""
    path = Path(sys.executable).parent / "loadstone"
    if not path.exists():
        sys.exit("no loadstone beside this Python; run `make build` and use .venv/bin/python")
    return path


def fit(trace: Path, model: Path, options: str = "") -> None:
    """Fits a model with options as of ``model fit``; what it says against them ends the benchmark."""
    command = [loadstone(), "model", "fit", trace, "-o", model, "--force", *shlex.split(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())


def compressed(path: Path) -> int:
    """Bytes after zstd -19."""
    return len(subprocess.run(["zstd", "-19", "-c", "-q", path], capture_output=True, check=True).stdout)


@contextmanager
def tmpfs(folder: Path) -> Iterator[Path]:
    """A tmpfs without a limit of inodes."""
    at = folder / "tmpfs"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=0,size=16g", "none", at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


@contextmanager
def ext4(folder: Path, size: int = 4 << 30, written: bool = False) -> Iterator[Path]:
    """ext4 on a loop device over a file of ``size`` bytes, which is written from end to end if asked."""
    image, at = folder / "image", folder / "ext4"
    at.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(size)
    kept = []
    if written:
        # Else the first to use a block pays for it.
        subprocess.run(["dd", "if=/dev/zero", f"of={image}", "bs=1M", f"count={size >> 20}"], check=True)
        kept = ["-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
    subprocess.run(["mkfs.ext4", "-q", "-F", *kept, image], check=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)
        image.unlink()
