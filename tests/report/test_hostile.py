"""Names from outside in a report: shown as they are, and never markup, script or formula."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from loadstone import report
from loadstone.bundle import Event, aside, write_bundle
from loadstone.model import fit
from loadstone.report.figure import embedded, plotted

sys.path.insert(0, str(Path(__file__).parent))
import bundles

# Each would end, change or swallow what it stands in.
NAMES = {
    "workload": "<!--<script>alert(1)",
    "file": "</script><script>document.title='gone'</script>",
    "host": "<img src=x onerror=\"document.title='gone'\">",
    "step": '=HYPERLINK("http://x","y")',
    "other": "]]>&lt;b&gt;<b>&amp;\u2028\u2029</textarea><!--",
    "warning": "\u202egnp.exe \x1b[31mred\x07 <svg onload=alert(1)>",
    "group": '" onmouseover="alert(1)',
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    made = bundles.outcome(10, failed=5)
    ops = made["ops"]
    ops["name"] = ops["op"].astype(np.uint16) + 1
    ops["names"] = [NAMES["step"], NAMES["other"]]
    ops["group"] = [NAMES["group"]]
    plan = bundles.plan("trace", 1)
    plan["targets"][0] |= {"id": NAMES["file"], "path": f"/x/{NAMES['file']}"}
    plan["artefacts"][0]["path"] = NAMES["file"]
    told = [Event(1, "warning", NAMES["warning"]), Event(2, "note", NAMES["workload"])]
    for number in (1, 2):
        with aside(folder / f"<!--<script> {number}") as inside:
            write_bundle(
                inside, plan, made, {"host": NAMES["host"], "kernel": NAMES["other"]},
                bundles.observation(1), told, workload=NAMES["workload"],
            )  # fmt: skip
    out = folder / "report.html"
    found = report.write(sorted(folder.glob("<*")), out)
    return out, out.read_text(), found


def test_everything_is_there_and_nothing_else_is_a_tag(page):
    _, text, found = page
    outside = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", text, flags=re.S)
    assert "<!--" not in outside and 'onerror="' not in outside and "<svg onload" not in outside
    assert not re.search(r"<b>|<img|</textarea>", outside)
    assert "\\u202egnp.exe \\x1b[31mred\\x07" in outside, "shown, and harmless"
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", outside)
    assert NAMES["host"] in html.unescape(outside) and "</footer>" in text
    assert len(found.sections) >= 4


def test_no_cell_of_the_csv_is_a_formula(page):
    _, text, _ = page
    cells = []
    for found in re.findall(r'id="csv-[^"]+">(.*?)</script>', text, re.S):
        assert not re.search("[<>&\u2028\u2029]", found)
        cells += [cell for row in csv.reader(io.StringIO(json.loads(found))) for cell in row]
    assert "'" + NAMES["step"] in cells and NAMES["other"] in cells
    for cell in cells:
        if cell[:1] in ("=", "+", "-", "@"):
            float(cell)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_what_is_embedded_is_read_back_and_holds_no_markup(name):
    text = embedded({"a": [name]})
    assert json.loads(text) == {"a": [name]} and not re.search("[<>&\u2028\u2029]", text)
    shown = plotted(name)
    assert not re.search("[<>\x1b\u202e]", shown)


@pytest.mark.slow
def test_a_browser_shows_the_names_and_draws_all(page, tmp_path, need_tools):
    """In Chromium: no script of theirs runs, every panel is drawn, the end of the page is there."""
    need_tools("chromium")
    out, text, _ = page
    flags = "--headless --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += " --disable-component-update --virtual-time-budget=10000 --enable-logging=stderr --dump-dom"
    flags += " --no-sandbox" if os.geteuid() == 0 else ""
    rules = "--host-resolver-rules=MAP * ~NOTFOUND"
    command = ["chromium", *flags.split(), rules, f"--user-data-dir={tmp_path}", out.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not console, "\n".join(console)
    panels = text.count('class="plot"')
    assert panels > 5 and f'data-drawn="{panels}"' in done.stdout
    assert "<title>gone" not in done.stdout and "Figures: drag to enlarge" in done.stdout
    # Labels of figures are text of an SVG: the name as it is, not what it would be as markup.
    labels = [html.unescape(found) for found in re.findall(r"<text[^>]*>([^<]*)</text>", done.stdout)]
    assert any("]]>&lt;b&gt;<b>&amp;" in label for label in labels), "the step's own characters"


@pytest.mark.slow
def test_a_report_shows_no_model_that_lies_elsewhere(tmp_path, root):
    """A stranger's bundle named a private one, and so did a link in place of its own."""
    private, fitted = tmp_path / "private.mdh", fit(root / "examples/loop0.parquet", window=1.0)
    fitted.save(private)
    plan = {**bundles.plan("model", 1)}
    digest = "sha256:" + hashlib.sha256(private.read_bytes()).hexdigest()
    for told, shown in ((None, False), ("sha256:" + "0" * 64, False), (digest, True)):
        plan["artefacts"] = [{"id": "m", "kind": "model", "path": str(private), "digest": told}]
        with aside(tmp_path / "b", force=True) as inside:
            write_bundle(inside, plan, bundles.outcome(10), {"host": "h"}, bundles.observation(1), [])
        out = tmp_path / "r.html"
        report.write([tmp_path / "b"], out, force=True)
        assert ('id="model"' in out.read_text()) == shown, told
    evaluation = bundles.evaluation(tmp_path / "e", summary=bundles.SUMMARY, model=fitted)
    report.write([evaluation], tmp_path / "e.html")
    assert 'id="model"' in (tmp_path / "e.html").read_text()
    (evaluation / "model.mdh").unlink()
    (evaluation / "model.mdh").symlink_to(private)
    report.write([evaluation], tmp_path / "f.html")
    assert 'id="model"' not in (tmp_path / "f.html").read_text()
