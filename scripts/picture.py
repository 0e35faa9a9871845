"""Takes the README's picture of a report: scripts/picture.py REPORT.html (needs chromium)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

OUT = Path(__file__).resolve().parent.parent / "docs/images/report.png"
SIZE = (1100, 1180)

with tempfile.TemporaryDirectory() as scratch:
    shot = Path(scratch) / "shot.png"
    flags = "--headless --disable-gpu --no-first-run --disable-background-networking --disable-sync --hide-scrollbars"
    flags += " --disable-component-update --virtual-time-budget=10000" + (
        " --no-sandbox" if os.geteuid() == 0 else ""
    )
    command = ["chromium", *flags.split(), f"--user-data-dir={scratch}/profile", f"--screenshot={shot}"]
    command += [f"--window-size={SIZE[0]},{SIZE[1]}", Path(sys.argv[1]).resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    picture = (
        Image.open(shot)
        .convert("RGB")
        .resize((SIZE[0] * 9 // 10, SIZE[1] * 9 // 10), Image.Resampling.LANCZOS)
    )
    picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        OUT, optimize=True
    )
print(f"{OUT}: {OUT.stat().st_size:,} bytes")
