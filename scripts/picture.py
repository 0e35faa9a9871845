"""Takes the README's picture of a report: scripts/picture.py REPORT.html (needs chromium).

The top of the page and the figures that say most, as a reader sees them; the rest is left out.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

OUT = Path(__file__).resolve().parent.parent / "docs/images/report.png"
WIDTH, HEIGHT = 1100, 1530
STYLE = """<style>
nav, .warn:not(.verdict), #run, #system, #model, #about, section .card, details, #latency h2 { display: none; }
#faithful, #time > figure:not(#throughput), #latency > figure:not(#histogram-service) { display: none; }
#histogram-service .panel:nth-child(2) { display: none; }
</style></head>"""

with tempfile.TemporaryDirectory() as folder:
    page, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
    page.write_text(Path(sys.argv[1]).read_text().replace("</head>", STYLE, 1))
    flags = "--headless --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += " --hide-scrollbars --disable-component-update --virtual-time-budget=10000"
    flags += " --no-sandbox" if os.geteuid() == 0 else ""
    command = ["chromium", *flags.split(), f"--user-data-dir={folder}/profile", f"--screenshot={shot}"]
    subprocess.run(
        [*command, f"--window-size={WIDTH},{HEIGHT}", page.as_uri()], check=True, capture_output=True
    )
    picture = Image.open(shot).convert("RGB").crop((0, 0, WIDTH, HEIGHT))
picture = picture.resize((WIDTH * 8 // 10, HEIGHT * 8 // 10), Image.Resampling.LANCZOS)
picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(OUT, optimize=True)
print(f"{OUT}: {OUT.stat().st_size:,} bytes")
