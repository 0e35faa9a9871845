"""What benches share: figures and their file, running commands with their cost, places to run on."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"
RESULTS = Path(__file__).resolve().parent / "results"
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"
BUSY = 0.5
"""Load average from which a host counts as busy with something else."""
VERSIONS: dict[str, str] = {}
"""Of the programs that a bench needed."""


class Missing(Exception):
    """What a part needs is not here; the part is skipped and says so."""


@dataclass(frozen=True)
class Target:
    """What is wanted: of the median, of every value, or of the median ratio to the peer."""

    at_least: float | None = None
    at_most: float | None = None
    of: str = "median"

    def stored(self) -> dict[str, Any]:
        bounds = {"at_least": self.at_least, "at_most": self.at_most}
        return {name: value for name, value in bounds.items() if value is not None} | {"of": self.of}


@dataclass(frozen=True)
class Figure:
    """One figure of a bench, declared once."""

    metric: str
    unit: str
    target: Target | None = None
    peer: str | None = None


class Measured:
    """Values of a figure, all that were measured, and those of its peer in the same rounds."""

    def __init__(self, key: str, values: Sequence[float], peer: Sequence[float] | None = None) -> None:
        self.key, self.values, self.peer = key, list(values), peer and list(peer)


Part = Callable[[Path, argparse.Namespace], Iterator[Measured]]


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Median and range, to six digits."""
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{value:.6g}") for name, value in found.items()} | {"n": len(values)}


def reached(figure: Mapping[str, Any]) -> bool | None:
    """Whether a stored figure is what is wanted; None where nothing is."""
    target = figure["target"]
    if target is None:
        return None
    high = low = figure["median"]
    if target["of"] == "ratio":
        high = low = figure["peer"]["ratio"]
    elif target["of"] == "every":
        low, high = figure["min"], figure["max"]
    return bool(target.get("at_least", low) <= low and high <= target.get("at_most", high))


def host() -> dict[str, Any]:
    """This machine, its versions and its load."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    about = dict(reversed([[word.strip() for word in line.split(":", 1)] for line in lines if ":" in line]))
    cpu = f"{about.get('model name', platform.machine())}"
    if "cpu family" in about:
        cpu += f" (family {about['cpu family']}, model {about['model']})"
    kib = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1])  # type: ignore[index]
    load = round(os.getloadavg()[0], 1)
    python = {"python": platform.python_version()}
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(kib / 2**20),
        "kernel": platform.release(),
        "versions": python | VERSIONS,
        "load": load,
        "busy": load > BUSY,
    }


def commit() -> str:
    """The commit, with a + where the program differs from it."""
    ask = ["git", "-C", ROOT]
    name = call(*ask, "rev-parse", "--short=7", "HEAD")
    return name + "+" * bool(call(*ask, "status", "--porcelain", "--", "crates", "python", "Cargo.lock"))


def store(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Replaces figures of the same metric in a file of results, which is written aside and renamed."""
    kept = json.loads(path.read_text()) if path.exists() else []
    new = {entry["metric"]: entry for entry in entries}
    whole = [new.pop(one["metric"], one) for one in kept] + list(new.values())
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(whole, indent=1) + "\n")
    aside.replace(path)


def entry(figure: Figure, found: Measured, command: str, where: Mapping[str, Any]) -> dict[str, Any]:
    """A figure as it is stored."""
    peer = None
    if figure.peer is not None and found.peer is not None:
        ratio = statistics.median(a / b for a, b in zip(found.values, found.peer, strict=True))
        peer = {"name": figure.peer, **summary(found.peer), "ratio": float(f"{ratio:.6g}")}
    one = {
        "metric": figure.metric,
        "unit": figure.unit,
        **summary(found.values),
        "target": figure.target and figure.target.stored(),
        "peer": peer,
        "command": command,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "host": dict(where),
    }
    return {**one, "reached": reached(one)}


def main(
    doc: str,
    figures: Mapping[str, Figure],
    parts: Mapping[str, Part],
    rounds: int = 5,
    options: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> None:
    """Runs the parts of a bench; each stores its figures once it is whole."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), help="parts [all]")
    parser.add_argument("--rounds", type=int, default=rounds, help="of each measurement [%(default)s]")
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"), help="for files [%(default)s]")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures are kept")
    options(parser)
    args = parser.parse_args()
    # Whoever ends it with a signal expects nothing to stay mounted or attached.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = Path(sys.argv[0]).stem
    own = {"only", "rounds", "scratch", "results"}
    changed = {key: value for key, value in vars(args).items() if value != parser.get_default(key)}
    given = [f"--{key} {value}".removesuffix(" True") for key, value in changed.items() if key not in own]
    where = host()
    for part in args.only:
        command = " ".join([f"benches/{name}.py --only {part} --rounds {args.rounds}", *given])
        try:
            with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
                found = list(parts[part](Path(folder), args))
        except Missing as missing:
            print(f"{name} {part}: skipped: {missing}")
            continue
        where["versions"] |= VERSIONS
        entries = [entry(figures[one.key], one, command, where) for one in found]
        store(args.results / f"{name}.json", entries)
        for one in entries:
            peer = one["peer"]
            beside = f", {peer['name']} {peer['median']:g}, ratio {peer['ratio']:g}" if peer else ""
            print(
                f"{one['metric']} = {one['median']:g} ({one['min']:g}-{one['max']:g}) {one['unit']}{beside}"
            )


def need(*programs: str, root: bool = False) -> None:
    """Skips the part unless programs are there, and root where it must be; their versions are kept."""
    if root and os.geteuid():
        raise Missing("it attaches loop devices or mounts, for which one must be root")
    for program in programs:
        path = shutil.which(program)
        if path is None:
            raise Missing(f"{program} is not installed")
        for flag in ("--version", "-V", "version"):
            done = subprocess.run([path, flag], capture_output=True, text=True, check=False)
            number = re.search(r"\d+\.\d[\w.]*", done.stdout + done.stderr)
            if number:
                VERSIONS[program] = number[0]
                break


def trace_file(name: str) -> Path:
    """A real trace, of the project or beside it."""
    path = ROOT / name if name.startswith("examples/") else TRACES / name
    if not path.exists():
        raise Missing(f"no {name} in ../shared/traces")
    return path


@dataclass
class Cost:
    """What one run of a command took."""

    seconds: float
    cpu: float
    """User and system time, seconds."""
    peak: int
    """Largest resident size, bytes."""
    out: str


def measure(*command: object) -> Cost:
    """Runs a command to its end and says what it cost; a failing one ends the bench."""
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


def call(*command: object, cpu: int | None = None, **how: Any) -> str:
    """Output of a command, on one CPU if asked; a failure ends the bench."""
    words = ["taskset", "-c", str(cpu)] * (cpu is not None) + [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **how)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def loadstone() -> Path:
    """The built command; its absence ends the bench."""
    path = Path(sys.executable).parent / "loadstone"
    if not path.exists():
        sys.exit("no loadstone beside this Python; run `make build` and use .venv/bin/python")
    return path


def ours(*words: object, cpu: int | None = None, **how: Any) -> dict[str, Any]:
    """The summary of a command of ours, which is given ``--json``."""
    found: dict[str, Any] = json.loads(call(loadstone(), *words, "--json", cpu=cpu, **how))
    return found


def fio(*words: object, cpu: int | None = None) -> dict[str, Any]:
    """The first job of fio's report."""
    out = call("fio", "--name=x", "--output-format=json", *words, cpu=cpu)
    job: dict[str, Any] = json.loads(out[out.index("{") :])["jobs"][0]
    return job


def cpu_ns(found: Mapping[str, Any]) -> float:
    """CPU time of a request, nanoseconds, as a summary of ours tells it."""
    return float((found["cpu"]["user_ns"] + found["cpu"]["system_ns"]) / found["requests"])


def rounds(n: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Every side once a round; the order turns from round to round. Every run counts."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(n):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            found[name].append(sides[name]())
            print(f"round {turn + 1} {name}: {found[name][-1]:.6g}", file=sys.stderr)
    return found


def compressed(path: Path) -> int:
    """Bytes after zstd -19."""
    return len(subprocess.run(["zstd", "-19", "-c", "-q", path], capture_output=True, check=True).stdout)


@contextmanager
def loop(image: Path, size: int) -> Iterator[str]:
    """A loop device with direct I/O over a new image."""
    call("fallocate", "-l", size, image)
    device = call("losetup", "--find", "--show", "--direct-io=on", image)
    try:
        yield device
    finally:
        call("losetup", "-d", device)
        image.unlink()


@contextmanager
def mounted(at: Path, *mount: object) -> Iterator[Path]:
    """What ``mount`` mounts at a new directory, until it is left."""
    at.mkdir(exist_ok=True)
    call("mount", *mount, at)
    try:
        yield at
    finally:
        # Where a run was killed, the kernel lets go of its files a moment later.
        for _ in range(50):
            if subprocess.run(["umount", at], check=False, capture_output=True).returncode == 0:
                break
            time.sleep(0.2)
        else:
            sys.exit(f"{at} is in use; unmount it by hand")


@contextmanager
def tmpfs(folder: Path) -> Iterator[Path]:
    """A tmpfs without a limit of inodes."""
    need(root=True)
    with mounted(folder / "tmpfs", "-t", "tmpfs", "-o", "nr_inodes=0,size=16g", "none") as at:
        yield at


@contextmanager
def ext4(folder: Path, size: int = 4 << 30, written: bool = False) -> Iterator[Path]:
    """ext4 on a loop device over a file of ``size`` bytes, which is written from end to end if asked."""
    need(root=True)
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(size)
    kept = []
    if written:
        # Else the first to use a block pays for it.
        call("dd", "if=/dev/zero", f"of={image}", "bs=1M", f"count={size >> 20}", "conv=notrunc")
        kept = ["-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
    call("mkfs.ext4", "-q", "-F", *kept, image)
    try:
        with mounted(folder / "ext4", "-o", "loop", image) as at:
            yield at
    finally:
        image.unlink()
