"""Takes a picture of the top of a report for the docs (needs chromium).

    scripts/picture.py REPORT.html docs/images/report.png [HEIGHT [STYLE]]

HEIGHT is in pixels of a page 1,100 wide; STYLE is CSS that hides what the picture should not show.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTH, SCALE = 1100, 0.75

source, out, height = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1650
style = f"<style>{sys.argv[4] if len(sys.argv) > 4 else ''}</style></head>"
with tempfile.TemporaryDirectory() as folder:
    page, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
    page.write_text(source.read_text().replace("</head>", style, 1))
    flags = "--headless --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += " --hide-scrollbars --disable-component-update --virtual-time-budget=10000"
    flags += " --no-sandbox" if os.geteuid() == 0 else ""
    command = ["chromium", *flags.split(), f"--user-data-dir={folder}/profile", f"--screenshot={shot}"]
    subprocess.run(
        [*command, f"--window-size={WIDTH},{height}", page.as_uri()], check=True, capture_output=True
    )
    picture = Image.open(shot).convert("RGB").crop((0, 0, WIDTH, height))
picture = picture.resize((int(WIDTH * SCALE), int(height * SCALE)), Image.Resampling.LANCZOS)
picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(out, optimize=True)
print(f"{out}: {out.stat().st_size:,} bytes")
