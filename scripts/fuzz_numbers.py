#!/usr/bin/env python3
"""Replaces numbers in valid files by the worst there are: scripts/fuzz_numbers.py SECONDS [SEED]

Takes a small trace of each format, Parquet traces and models, puts 0, 2^31, 2^64 - 1, 1e308 and the like in place of one to
three of their numbers, and describes, fits, replays and runs what comes of it, on null: or in an empty directory. Ends with status 1 and the
file where one takes memory or time beyond what a small file may, prints a traceback, or dies. Make each find a test.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

# Imported before there are any children, which would each take the time for it.
import loadstone.bundle
import loadstone.cli
import loadstone.cli.model
import loadstone.cli.replay
import loadstone.cli.run
import loadstone.cli.trace
import loadstone.model
import loadstone.observe
import loadstone.trace
import loadstone.workload

ROOT = Path(__file__).resolve().parent.parent
SEEDS = ROOT / "fuzz" / "seeds"

MEMORY = 2 << 30
"""Bytes that a step may take beyond what the program has when it starts."""

CPU = 10
"""Seconds of CPU time that a step may take; replays at most play so much of their time."""

WALL = 60
"""Seconds that a step may last, as other work may have the processors."""

BOUNDARY = [
    *(0, 1, -1, 127, 128, 255, 256, 65535, 65536),
    *(2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**53, 2**60, 2**62),
    *(2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**31), -(2**63), 10**30),
]
WORDS = [*map(str, BOUNDARY), "1e308", "-1e308", "nan", "inf", "0.5", "1e-320", "9" * 400]

TEXTS = ("blkparse", "fiu", "iolog", "msr", "nfsdump", "spc", "strace", "tables", "tracefs")
BINARIES = ("blktrace", "dataseries", "oracle_general", "pcap", "srt", "vscsi")

STRACE = "".join(
    f"300 1700000000.{n:06d} {call} <0.000010>\n"
    for n, call in enumerate(
        [
            'openat(AT_FDCWD, "/w/f", O_RDWR|O_CREAT, 0644) = 3',
            'write(3, "x"..., 4096) = 4096',
            'pwrite64(3, "x"..., 4096, 8192) = 4096',
            'pread64(3, "x"..., 4096, 0) = 4096',
            'rename("/w/f", "/w/g") = 0',
            "ftruncate(3, 100) = 0",
            "fallocate(3, 0, 0, 8192) = 0",
            "close(3) = 0",
        ],
        1,
    )
)

_NOT_JSON = "".join(chr(code) for code in range(256) if chr(code) != "{")

TABLES = ("mqsim", "disksim", "tencent")
"""Tables that are not told from their content."""


def texts() -> Iterator[tuple[str, str]]:
    """Name and content of each valid text."""
    yield "own.strace", STRACE
    for kind in TEXTS:
        for path in sorted((SEEDS / kind).iterdir()):
            if path.stem not in ("cut", "bad", "absurd", "odd"):
                content = path.read_text(errors="replace")
                yield f"{kind}-{path.name}", content[1:] if kind == "tables" else content


def replaced(dice: random.Random, text: str) -> str:
    """The text with one to three numbers, or one of them everywhere, replaced."""
    found = list(re.finditer(r"(?<![\w.])-?\d+(\.\d+)?", text))
    for match in sorted(dice.sample(found, min(len(found), dice.randint(1, 3))), key=lambda m: -m.start()):
        text = text[: match.start()] + dice.choice(WORDS) + text[match.end() :]
    return text


def of_text(dice: random.Random, folder: Path, all_texts: list[tuple[str, str]]) -> Path:
    """A text trace with other numbers."""
    name, text = dice.choice(all_texts)
    path = folder / name
    path.write_text(replaced(dice, text))
    return path


def of_binary(dice: random.Random, folder: Path, all_files: list[Path]) -> Path:
    """A binary trace with other numbers in some places."""
    source = dice.choice(all_files)
    content = bytearray(source.read_bytes())
    for _ in range(dice.randint(1, 3)):
        width = dice.choice([1, 2, 4, 4, 8, 8])
        at = dice.randrange(max(len(content) - width, 1)) // min(width, 4) * min(width, 4)
        number = dice.choice(BOUNDARY) % (1 << 8 * width)
        content[at : at + width] = number.to_bytes(width, dice.choice(["little", "big"]))
    path = folder / f"{source.parent.name}-{source.name}"
    path.write_bytes(content)
    return path


def in_json(dice: random.Random, value: Any) -> Any:
    """JSON with one to three numbers replaced, by numbers."""
    places: list[tuple[Any, Any]] = []

    def walk(at: Any) -> None:
        for key, inner in at.items() if isinstance(at, dict) else enumerate(at):
            if isinstance(inner, dict | list):
                walk(inner)
            elif isinstance(inner, int | float) and not isinstance(inner, bool):
                places.append((at, key))

    walk(value)
    for at, key in dice.sample(places, min(len(places), dice.randint(1, 3))):
        at[key] = dice.choice([*BOUNDARY[:-1], 1e308, -1.5, 0.5])
    return value


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol has it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def of_parquet(dice: random.Random, folder: Path, source: Path) -> Path:
    """A Parquet trace or model with other numbers in its metadata, and a footer that is right."""
    content = source.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    begin = next(m.end() for m in re.finditer(rb"loadstone\.(trace|model)\x18", content[start:])) + start
    value, after = json.JSONDecoder().raw_decode(content[begin:].decode("latin-1").lstrip(_NOT_JSON))
    text = content[begin:].decode("latin-1")
    skipped = len(text) - len(text.lstrip(_NOT_JSON))
    rest = content[begin + skipped + after : -8]
    changed = json.dumps(in_json(dice, value)).encode()
    footer = content[start:begin] + varint(len(changed)) + changed + rest
    path = folder / source.name
    path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


def steps(path: Path, folder: Path) -> Iterator[list[str]]:
    """What is done with a file."""
    name, model = path.name, folder / "m.mdh"
    format_ = next((["--format", f] for f in TABLES if name.startswith(f"tables-{f}")), [])
    target = folder / "tree"
    target.mkdir()

    def load(verb: str, what: Path, on: Path | str, *more: str) -> list[str]:
        usual = ["--pace", "max", "--cache", "none", "--depth", "4"]
        return [verb, str(what), "--on", str(on), *usual, *more]

    if name.endswith(".mdh"):
        yield ["model", "show", str(path), "--json"]
        yield load("run", path, "null:", "--requests", "1000", "--json")
        yield load("run", path, target, "--requests", "100", "--json")
        yield ["model", "sample", str(path), "-o", str(folder / "s.parquet"), "--json"]
        return
    yield ["trace", "describe", str(path), "--json", *format_]
    yield ["model", "fit", str(path), "-o", str(model), "--json", *format_]
    yield ["trace", "convert", str(path), "-o", str(folder / "t.parquet"), *format_]
    named = name.startswith(
        ("strace", "own.strace", "own-strace", "nfsdump", "own-nfs", "pcap", "dataseries-nfs")
    )
    yield load("replay", path, target if named else "null:", "--json", *format_)
    if model.exists():
        yield load("run", model, "null:", "--requests", "1000")


def size_of_self() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def perform(step: list[str], errors: Path) -> NoReturn:
    """Does a step in this process, which ends with it."""
    bound = size_of_self() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(WALL)
    os.environ["RUST_BACKTRACE"] = "0"
    quiet = os.open(os.devnull, os.O_RDWR)
    told = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, to in enumerate((quiet, quiet, told)):
        os.dup2(to, number)
    sys.argv = ["loadstone", *step]
    status = 0
    try:
        loadstone.cli.main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 99
    sys.stderr.flush()
    os._exit(status)


def outcome(step: list[str], folder: Path) -> tuple[int, str]:
    """The status of a step, and what it said."""
    errors = folder / "errors"
    child = os.fork()
    if child == 0:
        perform(step, errors)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, errors.read_text(errors="replace")


def is_fault(status: int, said: str) -> bool:
    """Whether a step ended as none may."""
    words = (
        "Traceback",
        "panicked",
        "defect",
        "MemoryError",
        "memory allocation",
        "Cannot allocate",
        "out of memory",
    )
    return status not in (0, 1, 2) or any(word in said for word in words)


def originals(folder: Path) -> list[Path]:
    """Parquet traces and models of the texts, which are made once."""
    packed = []
    sources = {"own.strace": STRACE, "own.spc": (SEEDS / "spc/plain.spc").read_text()}
    sources["own.nfs"] = (SEEDS / "nfsdump/plain.txt").read_text()
    for name, text in sources.items():
        source, stem = folder / name, name.replace(".", "-")
        source.write_text(text)
        for step, made in (
            (["trace", "convert", str(source), "-o", str(folder / f"{stem}.parquet")], f"{stem}.parquet"),
            (["model", "fit", str(source), "-o", str(folder / f"{stem}.mdh")], f"{stem}.mdh"),
        ):
            status, said = outcome(step, folder)
            assert status == 0, said
            packed.append(folder / made)
    packed += sorted(path for path in (SEEDS / "model").glob("*.mdh") if not path.name.startswith("endless"))
    return packed


def main() -> int:
    """Goes on until the time is over; the status."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    keep = Path(os.environ.get("LOADSTONE_FUZZ_KEEP", ROOT / "fuzz" / "artifacts" / "numbers"))
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        base = Path(name)
        (base / "originals").mkdir()
        packed = originals(base / "originals")
        all_texts = list(texts())
        files = [path for kind in BINARIES for path in sorted((SEEDS / kind).iterdir()) if path.stem != "cut"]
        kinds: list[Callable[[Path], Path]] = [
            lambda folder: of_text(dice, folder, all_texts),
            lambda folder: of_binary(dice, folder, files),
            lambda folder: of_parquet(dice, folder, dice.choice(packed)),
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            folder = base / "one"
            folder.mkdir()
            path = dice.choice(kinds)(folder)
            for step in steps(path, folder):
                status, said = outcome(step, folder)
                counts["did" if status == 0 else "refused"] += 1
                if is_fault(status, said):
                    keep.mkdir(parents=True, exist_ok=True)
                    kept = keep / f"{time.time_ns()}-{path.name}"
                    shutil.copy(path, kept)
                    found[path.name] += 1
                    shown = " ".join(step[:2])
                    print(f"{shown} {kept}: status {status}\n{said[-1500:]}", flush=True)
                    break
            shutil.rmtree(folder, ignore_errors=True)
    parts = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    print(f"{counts.total():,} steps ({parts}); {found.total() or 'nothing'} found (seed {seed})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
