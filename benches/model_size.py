"""Size of models against their traces, both files passed through ``zstd -19``.

    .venv/bin/python benches/model_size.py [TRACE ...] [--fit="--small --threshold 0.1"]

Without traces: dtrs and cloudPhysicsIO. The trace is our Parquet with time, op, object, offset and
size; the models are what ``model fit`` makes by default, ``--factored``, ``--small``, and what else is
asked for. Beside each stands how far what it draws is from the trace (``model check``).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

from _common import TRACES, compressed, fit, loadstone, machine, table


def main() -> None:
    """Fits each trace and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="*")
    parser.add_argument("--fit", action="append", default=[], help="options of model fit, in one argument")
    args = parser.parse_args()
    traces = args.traces or [TRACES / "spc/dtrs.spc", TRACES / "cloudphysics/cloudPhysicsIO.vscsi"]
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            plain, model = Path(folder) / "trace.parquet", Path(folder) / "model.mdh"
            subprocess.run([loadstone(), "trace", "convert", trace, "-o", plain, "--force"], check=True)
            big = compressed(plain)
            for options in ["", "--factored", "--small", *args.fit]:
                fit(trace, model, options)
                small = compressed(model)
                digest = hashlib.sha256(model.read_bytes()).hexdigest()[:12]
                rows.append(
                    [
                        f"{trace.name}, {big:,} bytes" if not options else "",
                        f"`{options}`" if options else "",
                        f"{model.stat().st_size:,}",
                        f"{small:,}",
                        f"{100 * small / big:.2f} %",
                        *distances(model, plain),
                        f"`{digest}`",
                    ]
                )
    print(machine() + "\n")
    head = ["trace, after zstd -19", "options", "model, bytes", "after zstd -19", "share"]
    print(table([*head, *DISTANCES, "sha256"], rows))


DISTANCES = [
    *("KS of size", "gap", "run", "reuse"),
    "sequential",
    *("over time: reads", "writes", "bytes read", "written"),
    *("LRU mean", "LRU most"),
]
"""What stands beside a size: distances of what the model draws from the trace."""


def distances(model: Path, trace: Path) -> list[str]:
    """How far what a model draws is from the trace."""
    done = subprocess.run(
        [loadstone(), "model", "check", model, trace, "--json"], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    ks = {row["dimension"]: row["ks"] for row in found["dimensions"]}
    apart = [ks["size"], ks["gap"], ks["previous(run)"], ks.get("reuse")]
    drawn, seen = (found["sequential"][side] for side in ("drawn", "trace"))
    over = [found["over_time"][name] for name in ("reads", "writes", "bytes read", "bytes written")]
    return [
        *("-" if value is None else f"{100 * value:.1f} %" for value in apart),
        f"{100 * drawn:.1f} of {100 * seen:.1f} %",
        *(f"{100 * value:.1f} %" for value in over),
        f"{found['miss_ratio']['mean']:.3f}",
        f"{found['miss_ratio']['max']:.3f}",
    ]


if __name__ == "__main__":
    main()
