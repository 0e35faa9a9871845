"""What a program costs: the engine's own share of a mail server's load, and ten million files.

    python benches/program.py [--rounds 5] [--seconds 5] [--only mail|files]

The mail server (examples/filebench/mail.f) runs on null:, where only the engine works, on tmpfs and on ext4
of a loop device, in turn. Its own share of a run is the CPU time that as many steps take on null:.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from _common import ROOT, ext4, loadstone, machine, measure, spread, table, tmpfs

MAIL = ROOT / "examples/filebench/mail.f"

FILES = """
define fileset name=many,path=$dir,entries=$n,dirwidth=1000,size=0,prealloc=$present
define process name=p {{ thread name=t,instances=2 {{ {0} }} }}
set mode quit firstdone
run 3000
"""
STEPS = {
    "stat": "flowop statfile name=stat,filesetname=many,iters=1000 "
    "flowop finishoncount name=f,value=$n,target=stat",
    "create": "flowop createfile name=create,filesetname=many,fd=1 flowop closefile name=close,fd=1",
    "remove": "flowop deletefile name=remove,filesetname=many,iters=1000",
}


def run(script: Path, on: Path | str, *words: str) -> dict[str, float]:
    """Requests, seconds and CPU seconds of a run, and the peak of its memory."""
    cost = measure([loadstone(), "run", script, "--on", on, *words, "--json"])
    found = json.loads(cost.out)
    cpu = found["cpu"]["user_ns"] + found["cpu"]["system_ns"]
    return {
        "requests": found["requests"],
        "seconds": found["elapsed_ns"] / 1e9,
        "cpu": cpu / 1e9,
        "peak": cost.peak,
        **{name: step["count"] / found["elapsed_ns"] * 1e9 for name, step in found["steps"].items()},
    }


def mail(folder: Path, args: argparse.Namespace) -> None:
    """The mail server on nothing, on memory and on a file system."""
    sides: dict[str, list[dict[str, float]]] = {"null:": [], "tmpfs": [], "ext4": []}
    with tmpfs(folder) as memory, ext4(folder) as disk:
        places = {"null:": "null:", "tmpfs": memory / "d", "ext4": disk / "d"}
        for i in range(args.rounds):
            for name, on in places.items():
                one = run(MAIL, on, "--duration", str(args.seconds), "-D", f"nthreads={args.threads}")
                sides[name].append(one)
                per = one["cpu"] / one["requests"] * 1e9
                print(
                    f"round {i + 1} {name}: {one['requests'] / one['seconds']:,.0f}/s, CPU {per:.0f} ns",
                    file=sys.stderr,
                )
    own = [one["cpu"] / one["requests"] for one in sides["null:"]]
    rows = []
    for name, found in sides.items():
        rate = [one["requests"] / one["seconds"] for one in found]
        share = [100 * mine * one["requests"] / one["seconds"] for mine, one in zip(own, found, strict=True)]
        cpu = [one["cpu"] / one["requests"] * 1e9 for one in found]
        rows.append([name, spread(rate, 0), spread(cpu, 0), "" if name == "null:" else spread(share)])
    head = ["on", "requests/s", "CPU ns per request", "engine's own, % of a CPU"]
    print(f"\n### A mail server, {args.threads} threads\n\n{table(head, rows)}")


def files(folder: Path, args: argparse.Namespace) -> None:
    """Ten million empty files made, looked at and removed."""
    rows = []
    script = folder / "files.f"
    small = statistics.median(run(MAIL, "null:", "--duration", "1")["peak"] for _ in range(3))
    for name, steps in STEPS.items():
        with tempfile.TemporaryDirectory() as place, tmpfs(Path(place)) as memory:
            script.write_text(FILES.format(steps))
            present = "0" if name == "create" else "100"
            one = run(script, memory / "d", "-D", f"n={args.files}", "-D", f"present={present}")
            each = (one["peak"] - small) / args.files
            rows.append([name, f"{one['seconds']:.0f}", f"{one[name]:,.0f}", f"{each:.1f}"])
            print(f"{name}: {one['seconds']:.0f} s", file=sys.stderr)
    head = ["step", "seconds", "per second", "bytes of memory per entry"]
    print(f"\n### {args.files:,} empty files on tmpfs, two threads\n\n{table(head, rows)}")


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--files", type=int, default=10_000_000)
    parser.add_argument("--only", choices=["mail", "files"])
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        if args.only != "files":
            mail(Path(folder), args)
        if args.only != "mail":
            files(Path(folder), args)


if __name__ == "__main__":
    main()
