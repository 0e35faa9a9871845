"""What a program costs: the engine's own share of a mail server's load, and ten million files.

    .venv/bin/python benches/program.py [--only mail files] [--rounds 5] [--seconds 5]

The mail server (examples/filebench/mail.f) runs on null:, where only the engine works, and on ext4 of a loop
device, in turn. Its own share of a run is the CPU time that as many steps take on null:. The files are
empty, on a tmpfs of their own; memory is that of the process beyond a run on null:.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _common import (
    ROOT,
    Figure,
    Measured,
    Target,
    cpu_ns,
    ext4,
    loadstone,
    main,
    measure,
    ours,
    rounds,
    tmpfs,
)

FIGURES = {
    "step": Figure("a program's step on null:", "ns of CPU", Target(at_most=150)),
    "share": Figure("a mail server on ext4: the engine's own share", "% of a CPU", Target(at_most=3)),
    "entry": Figure("ten million files: memory of an entry", "bytes", Target(at_most=64, of="every")),
}
MAIL = ROOT / "examples/filebench/mail.f"
SCRIPT = """
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


def mail(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """The mail server on nothing and on a file system."""
    with ext4(folder) as disk:
        runs: dict[str, list[dict[str, Any]]] = {"null:": [], "ext4": []}

        def once(name: str, on: object) -> float:
            runs[name].append(ours("run", MAIL, "--on", on, "--duration", args.seconds, "-D", "nthreads=16"))
            return cpu_ns(runs[name][-1])

        own = rounds(
            args.rounds, {"null:": lambda: once("null:", "null:"), "ext4": lambda: once("ext4", disk / "d")}
        )
    yield Measured("step", own["null:"])
    rates = [one["requests"] / one["elapsed_ns"] for one in runs["ext4"]]
    yield Measured("share", [100 * ns * rate for ns, rate in zip(own["null:"], rates, strict=True)])


def files(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Ten million empty files made, looked at and removed."""
    script = folder / "files.f"
    base = measure(loadstone(), "run", MAIL, "--on", "null:", "--duration", "1", "--json").peak
    each = []
    for name, steps in STEPS.items():
        with tempfile.TemporaryDirectory() as place, tmpfs(Path(place)) as memory:
            script.write_text(SCRIPT.format(steps))
            given = ["-D", f"n={args.files}", "-D", f"present={0 if name == 'create' else 100}"]
            cost = measure(loadstone(), "run", script, "--on", memory / "d", *given, "--json")
        found = json.loads(cost.out)
        each.append((cost.peak - base) / args.files)
        print(f"{name}: {found['elapsed_ns'] / 1e9:.0f} s, {each[-1]:.1f} bytes", file=sys.stderr)
    yield Measured("entry", each)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5, help="of a run [%(default)s]")
    parser.add_argument("--files", type=int, default=10_000_000)


if __name__ == "__main__":
    main(__doc__, FIGURES, {"mail": mail, "files": files}, options=options)
