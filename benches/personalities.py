"""Personalities (docs/workloads.md): their mixes as achieved, and dbench and fs_mark at the same work.

    python benches/personalities.py [--seconds 20] [--clients 4] [--files 50000] [--only mixes|dbench|fsmark]

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

from _common import ext4, loadstone, machine, measure, table

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
SYNCED = """
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


def dbench(folder: Path, args: argparse.Namespace) -> None:
    """The same clients, by dbench from its load file and by dbench-like."""
    with ext4(folder, 8 << 30) as disk:
        command = ["dbench", "-t", f"{args.seconds:.0f}", "-D", disk, str(args.clients)]
        cost = measure(command)
        files = ["-D", f"nclients={args.clients}", "-D", f"nfiles={170 * args.clients}"]
        found = run("dbench-like", disk / "d", "--duration", f"{args.seconds}s", *files)
    theirs = {name: int(n) for name, n in re.findall(r"^ +(\w+) +(\d+) +[\d.]+ +[\d.]+$", cost.out, re.M)}
    throughput = re.search(r"Throughput ([\d.]+) MB/sec", cost.out)
    if not theirs or throughput is None:
        sys.exit(f"dbench printed no table:\n{cost.out}")
    counted: Counter[str] = Counter()
    for name, n in theirs.items():
        counted[DBENCH.get(name, "other")] += n
    mine: Counter[str] = Counter()
    for steps in found["flowops"].values():
        for step, flowop in steps.items():
            mine[OURS.get(flowop, flowop)] += found["steps"][step]["count"]
    rate = sum(theirs.values()) / args.seconds
    rows = [["requests/s", f"{rate:,.0f}", f"{found['requests'] / found['elapsed_ns'] * 1e9:,.0f}"]]
    rows.append(["MB/s", throughput[1], f"{found['bytes'] / found['elapsed_ns'] * 1e3:.0f}"])
    rows.append(["CPU us per request", f"{cost.cpu / cost.seconds / rate * 1e6:.1f}", f"{cpu(found):.1f}"])
    for name in dict.fromkeys([*DBENCH.values(), "other"]):
        shares = [100 * one[name] / sum(one.values()) for one in (counted, mine)]
        rows.append([f"{name}, %", *(f"{share:.1f}" for share in shares)])
    print(f"\n### {args.clients} clients, {args.seconds:g} s\n\n{table(['', 'dbench', 'dbench-like'], rows)}")


def fsmark(folder: Path, args: argparse.Namespace) -> None:
    """Files made in one directory by one thread."""
    rows = []
    for what, size, sync, count in (
        ("empty", 0, False, args.files),
        ("16 KiB", 16384, False, args.files),
        ("16 KiB, fsync", 16384, True, args.files // 5),
    ):
        print(what, file=sys.stderr)
        with ext4(folder, 8 << 30) as disk:
            (disk / "f").mkdir()
            words = ["-d", disk / "f", "-n", str(count), "-s", str(size), "-S", "1" if sync else "0", "-k"]
            cost = measure(["fs_mark", *words, "-l", folder / "fs_mark.log"])
            line = re.search(r"^\s+\d+\s+\d+\s+\d+\s+([\d.]+)\s+\d+\s*$", cost.out, re.M)
            if line is None:
                sys.exit(f"fs_mark printed no line of results:\n{cost.out}")
            each = [cost.cpu / count * 1e6]
        with ext4(folder, 8 << 30) as disk:
            if size:
                script = folder / "files.f"
                script.write_text(SYNCED.format("flowop fsync name=fsync,fd=1" if sync else ""))
                found = run(script, disk / "d", "-D", f"nfiles={count}")
            else:
                given = ["-D", f"nfiles={count}", "-D", "meandirwidth=1000000"]
                found = run("micro-create", disk / "d", *given)
            made = found["steps"]["create"]["count"]
            each.append(cpu(found) * found["requests"] / made)
        rates = [float(line[1]), made / found["elapsed_ns"] * 1e9]
        rows.append([what, f"{count:,}", *(f"{r:,.0f}" for r in rates), *(f"{c:.1f}" for c in each)])
    head = ["files", "number", "fs_mark, files/s", "Loadstone", "fs_mark, CPU us a file", "Loadstone"]
    print(f"\n### Files made by one thread\n\n{table(head, rows)}")


def main() -> None:
    """Runs what was asked for, and says what cannot be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
