"""Size of models against their traces, both files passed through ``zstd -19``.

    .venv/bin/python benches/model_size.py [TRACE ...]

Without arguments: dtrs and cloudPhysicsIO. The trace is our Parquet with time, op, object, offset
and size; the model is what ``model fit`` makes by default.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import TRACES, compressed, loadstone, machine, table


def main() -> None:
    """Fits each trace and prints a table."""
    traces = [Path(word) for word in sys.argv[1:]] or [
        TRACES / "spc/dtrs.spc",
        TRACES / "cloudphysics/cloudPhysicsIO.vscsi",
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            plain, model = Path(folder) / "trace.parquet", Path(folder) / "model.mdh"
            subprocess.run([loadstone(), "trace", "convert", trace, "-o", plain, "--force"], check=True)
            subprocess.run([loadstone(), "model", "fit", trace, "-o", model, "--force"], check=True)
            big, small = compressed(plain), compressed(model)
            digest = hashlib.sha256(model.read_bytes()).hexdigest()[:12]
            rows.append(
                [
                    trace.name,
                    f"{plain.stat().st_size:,}",
                    f"{big:,}",
                    f"{model.stat().st_size:,}",
                    f"{small:,}",
                    f"{100 * small / big:.2f} %",
                    f"`{digest}`",
                ]
            )
    print(machine() + "\n")
    print(
        table(
            [
                "trace",
                "Parquet, bytes",
                "after zstd -19",
                "model, bytes",
                "after zstd -19",
                "share",
                "sha256 of the model",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
