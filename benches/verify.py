"""What verification costs, beside fio's: direct I/O to a loop device, with and without it, in turns.

    sudo .venv/bin/python benches/verify.py [--rounds 5] [--seconds 3] [--scratch DIR]

Throughput of a verified run relative to that of the same run without, round by round. fio writes blocks with
crc32c headers (``verify=crc32c``) and reads what it has written so; it keeps no order of generations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import loadstone, machine, spread, table
from faithfulness import loop

SIZE = 512 << 20
LOADS = {"read": 1.0, "write": 0.0, "both": 0.5}


def output(words: list[str | Path]) -> str:
    """Output of a command; a failure ends the benchmark."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def ours(device: str, block: int, reads: float, seconds: float, options: list[str]) -> tuple[float, float]:
    """Requests per second and CPU microseconds per request."""
    depth = 32 if block == 4096 else 8
    words = [loadstone(), "run", "randrw", "--on", device, "--size", str(SIZE), "-D", f"bs={block}"]
    words += [
        "-D",
        f"reads={reads}",
        "--direct",
        "--depth",
        str(depth),
        "--duration",
        f"{seconds}s",
        "--json",
    ]
    found = json.loads(output([*words, "--allow-destroy", device, *options]))
    if "--verify" in options and found["verified"]["wrong"]:
        sys.exit(f"{device}: {found['verified']}")
    cpu = found["cpu"]["user_ns"] + found["cpu"]["system_ns"]
    return found["ops_per_s"], cpu / found["requests"] / 1e3


def fio(device: str, block: int, reads: float, seconds: float, verify: bool) -> float:
    """Requests per second."""
    words = ["fio", "--name=x", f"--filename={device}", f"--size={SIZE}", f"--bs={block}", "--direct=1"]
    words += ["--ioengine=io_uring", f"--iodepth={32 if block == 4096 else 8}", "--output-format=json"]
    if verify:
        words += ["--verify=crc32c", "--do_verify=0", "--verify_fatal=1", "--verify_state_save=0"]
        if reads:
            output([*words, "--rw=write"])
    way = "randread" if reads else "randwrite"
    out = output([*words, f"--rw={way}", f"--runtime={seconds}", "--time_based"])
    job = json.loads(out[out.index("{") :])["jobs"][0]
    return float(job["read" if reads else "write"]["iops"])


def main() -> None:
    """Prints one table for images on the disk and in memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", action="append", help="marks, which tell CPU, or another column, too [all]")
    parser.add_argument("--scratch", type=Path, default=Path(os.environ.get("TMPDIR", "/var/tmp")))
    args = parser.parse_args()
    kinds = {
        "marks": ["--verify"],
        "made again": ["--verify", "--content", "unique"],
        "dedupe 2, compress 2": ["--verify", "--dedupe", "2", "--compress", "2"],
    }
    kinds = {name: options for name, options in kinds.items() if name in (args.only or kinds)}
    # Content alone has its cost, too.
    plain = {name: options[1:] for name, options in kinds.items()}
    rows = []
    for place in (args.scratch, Path("/dev/shm")):
        with tempfile.TemporaryDirectory(dir=place) as folder, loop(Path(folder) / "image", SIZE) as device:
            for block in (4096, 128 << 10):
                for load, reads in LOADS.items():
                    ratios: dict[str, list[float]] = {name: [] for name in kinds}
                    bare, cpu, peer = [], [], []
                    for _ in range(args.rounds):
                        for name, options in kinds.items():
                            without = ours(device, block, reads, args.seconds, plain[name])
                            verified = ours(device, block, reads, args.seconds, options)
                            ratios[name].append(verified[0] / without[0])
                            if name == "marks":
                                bare.append(without[0])
                                cpu.append(verified[1] - without[1])
                        if load != "both":
                            without = fio(device, block, reads, args.seconds, False)
                            peer.append(fio(device, block, reads, args.seconds, True) / without)
                    rows.append(
                        [
                            "memory" if place != args.scratch else "disk",
                            f"{block >> 10} KiB",
                            load,
                            spread(bare or [0.0], 0),
                            *(spread(ratios[name]) for name in kinds),
                            spread(cpu or [0.0]),
                            spread(peer) if peer else "-",
                        ]
                    )
                    print(rows[-1], file=sys.stderr)
    head = [
        "image",
        "requests",
        "load",
        "requests/s",
        *kinds,
        "CPU of marks, us a request",
        "fio with crc32c",
    ]
    print(machine() + "\n")
    print(table(head, rows))


if __name__ == "__main__":
    main()
