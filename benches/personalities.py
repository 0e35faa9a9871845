"""Personalities (docs/reference/workloads.md): their mixes, and dbench and fs_mark at the same work.

    python benches/personalities.py [--rounds 3] [--seconds 20] [--clients 4] [--files 50000]
        [--only mixes|dbench|fsmark]

All run on ext4 of a loop device, which is made anew for each part. The CPU time of a request is that of the
whole process: files made before a run are left out, dbench's warm-up is in its time as in its CPU time.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import ext4, loadstone, machine, measure, spread, table

from loadstone.personalities import find, names
from loadstone.wml._program import ACTS

# What would take more room or time than the mix needs.
SMALLER = {
    "videoserver": ["--size", "2g"],
    "oltp-sync": ["--size", "1g"],
    "mail-server-like": ["--size", "1g"],
    "postmark": ["-D", "nfiles=20000", "-D", "transactions=200000"],
}
DBENCH = {
    "NTCreateX": "open, create",
    "Close": "close",
    "ReadX": "read",
    "WriteX": "write",
    "Qpathinfo": "stat",
    "Qfileinfo": "stat",
    "Find": "listdir",
    "Unlink": "delete",
    "Flush": "fsync",
    "Rename": "rename",
}
OURS = {
    "openfile": "open, create",
    "createfile": "open, create",
    "closefile": "close",
    "statfile": "stat",
    "deletefile": "delete",
}
WRITTEN = """
set $nfiles=1000
define fileset name=files,path=$dir,size=16k,entries=$nfiles,dirwidth=1000000
define process name=p {{ thread name=t {{
  flowop createfile name=create,filesetname=files,fd=1
  flowop writewholefile name=write,fd=1,iosize=16k
  {0}
  flowop closefile name=close,fd=1 }} }}
set mode quit firstdone
run
"""


def run(workload: str | Path, on: Path, *words: str) -> dict[str, Any]:
    """The summary of a run, with the flowop of each step."""
    command = [loadstone(), "run", workload, "--on", on, *words]
    plan = json.loads(measure([*command, "--dry-run"]).out)
    found: dict[str, Any] = json.loads(measure([*command, "--json"]).out)
    found["flowops"] = {
        worker["group"]: dict(flowops(worker["source"]["ops"], found["steps"])) for worker in plan["workers"]
    }
    shutil.rmtree(on)
    return found


def flowops(ops: Sequence[Mapping[str, Any]], steps: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of steps and what flowops they are."""
    words = {act: word for word, act in ACTS.items()}
    for op in ops:
        if op["act"] == "group":
            yield from flowops(op["ops"], steps)
        elif op["name"] in steps:
            yield op["name"], words[op["act"]]


def cpu(found: Mapping[str, Any]) -> float:
    """Microseconds of CPU time of a request."""
    return (found["cpu"]["user_ns"] + found["cpu"]["system_ns"]) / found["requests"] / 1e3


def mixes(folder: Path, args: argparse.Namespace) -> None:
    """Each personality that models something."""
    rows = []
    with ext4(folder, 8 << 30) as disk:
        for name in names():
            if name.startswith("micro-"):
                continue
            print(name, file=sys.stderr)
            words = SMALLER.get(name, [])
            found = run(name, disk / "d", "--duration", f"{args.seconds}s", *words)
            rate = found["requests"] / found["elapsed_ns"] * 1e9
            for number, loop in enumerate(find(name).mix):
                steps = next(iter(found["flowops"].values()))
                steps = found["flowops"].get(loop.process, steps)
                done: Counter[str] = Counter()
                for step, flowop in steps.items():
                    done[flowop] += found["steps"][step]["count"]
                total = sum(done[flowop] for flowop, _ in loop.counts)
                shares = ", ".join(
                    f"{flowop} {100 * share:.1f}/{100 * done[flowop] / total:.1f}"
                    for flowop, share in loop.shares().items()
                )
                first = [f"{name} {' '.join(words)}".strip(), f"{rate:,.0f}", f"{cpu(found):.1f}"]
                rows.append([*(first if number == 0 else ["", "", ""]), loop.process, f"{total:,}", shares])
    head = ["personality", "requests/s", "CPU us", "process", "requests", "mix asked/achieved, %"]
    print(f"\n### Mixes, {args.seconds:g} s each\n\n{table(head, rows)}")


def theirs(disk: Path, args: argparse.Namespace) -> dict[str, Any]:
    """What dbench says of a run, in our words."""
    cost = measure(["dbench", "-t", f"{args.seconds:.0f}", "-D", disk, str(args.clients)])
    told = re.findall(r"^ +(\w+) +(\d+) +[\d.]+ +[\d.]+$", cost.out, re.M)
    throughput = re.search(r"Throughput ([\d.]+) MB/sec", cost.out)
    if not told or throughput is None:
        sys.exit(f"dbench printed no table:\n{cost.out}")
    counts: Counter[str] = Counter()
    for name, n in told:
        counts[DBENCH.get(name, "other")] += int(n)
    rate = counts.total() / args.seconds
    each = cost.cpu / cost.seconds / rate * 1e6
    return {"requests/s": rate, "MB/s": float(throughput[1]), "CPU us per request": each, "counts": counts}


def ours(disk: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The same of dbench-like, with as many files for each client."""
    files = ["-D", f"nclients={args.clients}", "-D", f"nfiles={170 * args.clients}"]
    found = run("dbench-like", disk / "d", "--duration", f"{args.seconds}s", *files)
    counts: Counter[str] = Counter()
    for steps in found["flowops"].values():
        for step, flowop in steps.items():
            counts[OURS.get(flowop, flowop)] += found["steps"][step]["count"]
    rate, moved = (found[name] / found["elapsed_ns"] * 1e9 for name in ("requests", "bytes"))
    return {"requests/s": rate, "MB/s": moved / 1e6, "CPU us per request": cpu(found), "counts": counts}


def dbench(folder: Path, args: argparse.Namespace) -> None:
    """The same clients, by dbench from its load file and by dbench-like."""
    sides: dict[str, list[dict[str, Any]]] = {"dbench": [], "dbench-like": []}
    for number in range(args.rounds):
        for name, side in (("dbench", theirs), ("dbench-like", ours)):
            with ext4(folder, 8 << 30) as disk:
                sides[name].append(side(disk, args))
            print(f"round {number + 1} {name}: {sides[name][-1]['requests/s']:,.0f}/s", file=sys.stderr)
    rows = [
        [name, *(spread([one[name] for one in side], digits) for side in sides.values())]
        for name, digits in (("requests/s", 0), ("MB/s", 0), ("CPU us per request", 1))
    ]
    for name in dict.fromkeys([*DBENCH.values(), "other"]):
        sums = [sum((one["counts"] for one in side), Counter()) for side in sides.values()]
        rows.append([f"{name}, %", *(f"{100 * counts[name] / counts.total():.1f}" for counts in sums)])
    title = f"{args.clients} clients, {args.rounds} times {args.seconds:g} s"
    print(f"\n### {title}\n\n{table(['', *sides], rows)}")


def made_by_fs_mark(folder: Path, count: int, size: int, sync: bool) -> tuple[float, float]:
    """Files per second, and microseconds of CPU time of a file."""
    with ext4(folder, 8 << 30) as disk:
        (disk / "f").mkdir()
        words = ["-d", disk / "f", "-n", str(count), "-s", str(size), "-S", "1" if sync else "0", "-k"]
        cost = measure(["fs_mark", *words, "-l", folder / "fs_mark.log"])
    line = re.search(r"^\s+\d+\s+\d+\s+\d+\s+([\d.]+)\s+\d+\s*$", cost.out, re.M)
    if line is None:
        sys.exit(f"fs_mark printed no line of results:\n{cost.out}")
    return float(line[1]), cost.cpu / count * 1e6


def made_by_us(folder: Path, count: int, size: int, sync: bool) -> tuple[float, float]:
    """The same of micro-create, or of a script that writes and flushes, too."""
    script: str | Path = "micro-create"
    given = ["-D", f"nfiles={count}"]
    if size:
        script = folder / "files.f"
        script.write_text(WRITTEN.format("flowop fsync name=fsync,fd=1" if sync else ""))
    else:
        given += ["-D", "meandirwidth=1000000"]
    with ext4(folder, 8 << 30) as disk:
        found = run(script, disk / "d", *given)
    made = found["steps"]["create"]["count"]
    return made / found["elapsed_ns"] * 1e9, cpu(found) * found["requests"] / made


def fsmark(folder: Path, args: argparse.Namespace) -> None:
    """Files made in one directory by one thread."""
    rows = []
    for what, size, sync, count in (
        ("empty", 0, False, args.files),
        ("16 KiB", 16384, False, args.files),
        ("16 KiB, fsync", 16384, True, args.files // 10),
    ):
        sides: list[list[tuple[float, float]]] = [[], []]
        for number in range(args.rounds):
            for side, make in zip(sides, (made_by_fs_mark, made_by_us), strict=True):
                side.append(make(folder, count, size, sync))
            print(f"round {number + 1} {what}", file=sys.stderr)
        cells = [spread([one[i] for one in side], i) for i in (0, 1) for side in sides]
        rows.append([what, f"{count:,}", *cells])
    head = ["files", "number", "fs_mark, files/s", "Loadstone", "fs_mark, CPU us a file", "Loadstone"]
    print(f"\n### Files made by one thread, {args.rounds} times\n\n{table(head, rows)}")


def main() -> None:
    """Runs what was asked for, and says what cannot be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="of what is compared")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--only", choices=["mixes", "dbench", "fsmark"])
    args = parser.parse_args()
    print(machine())
    parts = {"mixes": (mixes, None), "dbench": (dbench, "dbench"), "fsmark": (fsmark, "fs_mark")}
    for name, (part, program) in parts.items():
        if args.only not in (None, name):
            continue
        if program is not None and shutil.which(program) is None:
            print(f"\n{program} is not installed, so it is not compared with (Debian: dbench, fsmark)")
            continue
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder), args)


if __name__ == "__main__":
    main()
