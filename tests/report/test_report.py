"""The report: what is on the page, that it loads nothing, and that a browser draws it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from loadstone import Error, report
from loadstone._files import distinct
from loadstone.bundle import aside, write_bundle
from loadstone.model import Model, fit
from loadstone.report import distances
from loadstone.report.figure import Figure, cell_text, rounded, size_ticks, time_ticks
from loadstone.report.model import distributions, phases
from loadstone.stats.histogram import Histogram

sys.path.insert(0, str(Path(__file__).parent))
import bundles


@pytest.fixture(scope="module")
def fitted(request) -> Model:
    return fit(request.config.rootpath / "examples/loop0.parquet", window=1.0)


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory, fitted) -> Path:
    folder = tmp_path_factory.mktemp("report") / "loop0"
    return bundles.evaluation(folder, summary=bundles.SUMMARY, model=fitted)


@pytest.fixture(scope="module")
def page(evaluation) -> str:
    out = evaluation.parent / "report.html"
    report.write(evaluation, out)
    return out.read_text()


class Outline(HTMLParser):
    """Headings, table heads, figures and panels of a page, and everything it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.open: str | None = None
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        values = dict(attributes)
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            link = values.get(name)
            if link and not link.startswith(("#", "data:")):
                self.loads.append(f"{tag} {name}={link}")
        if tag in ("h1", "h2", "h3", "h4", "th", "figcaption"):
            self.open, self.text = tag, ""
        elif tag == "figure":
            self.lines.append(f"figure {values['id']}")
        elif values.get("class") == "plot":
            self.lines.append(f"  plot {values['style']}")

    def handle_data(self, data):
        if self.open:
            self.text += data

    def handle_endtag(self, tag):
        if tag == self.open:
            # Numbers follow the model and the figures' tests; here it is about the structure.
            text = re.sub(r"[\d,.]*\d", "#", self.text) if tag == "figcaption" else self.text
            self.lines.append(f"  {tag} {text.strip()}")
            self.open = None


def outline(page: str) -> Outline:
    found = Outline()
    # The drawing library is not ours to outline; its own text must not be taken for tags.
    found.feed(re.sub(r"<script>.*?</script>", "", page, flags=re.S))
    return found


def test_structure_is_golden(page, golden):
    golden("report/evaluation.txt", "\n".join(outline(page).lines) + "\n")


def test_page_loads_nothing(page):
    assert outline(page).loads == []
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert not re.findall(r"@import|url\(|https?://(?!www\.w3\.org)", own)
    assert "default-src 'none'" in page


def test_script_is_in_once(page):
    assert page.count("plotly.js v") == 1
    assert len(page) < 6_500_000


def test_conclusion_is_the_verdict(evaluation):
    found = report.build(report.collect([evaluation]))
    assert found.tone == "bad"
    assert found.conclusion.startswith("Not faithful in queue length; faithful in 4 of 6")


def test_what_is_open_is_neither_praised_nor_blamed():
    alike = bundles.finding("reads_per_s", "reads", "faithful", 0.02)
    open_ = bundles.finding("writes_per_s", "writes", "undecided", 3.0, "about 7 runs would decide")
    rows = distances.table([alike, open_]).rows
    assert [(row.tone, row.cells[1][0]) for row in rows] == [("good", "✓"), ("warn", "?")]
    assert rows[1].cells[2:4] == ["4.000", "2.500 to 7.000"]
    for faithful, tone in ((True, "good"), (None, "warn"), (False, "bad")):
        assert distances.conclude([], {"faithful": faithful, "verdict": "x"})[1] == tone
    # A load that is the trace's is no worse for a device that leaves it open.
    content = {"verdict": {"faithful": True, "text": "faithful: cache misses"}}
    told = {"faithful": None, "verdict": "undecided in writes", "content": content}
    text, tone = distances.conclude([], told)
    assert tone == "good" and text == "Content: faithful: cache misses. Device: undecided in writes."
    for passed, tone in ((6, "good"), (5, "warn")):
        few = {**told, "faithful": None, "usable": 11, "passed": passed}
        assert distances.conclude([], few)[1] == tone
    content["verdict"]["faithful"] = False
    assert distances.conclude([], told)[1] == "bad"


def figures(found: report.Page) -> dict[str, Figure]:
    return {figure.id: figure for section in found.sections for figure in section.figures}


def test_figures_show_the_bundle_numbers(evaluation):
    drawn = figures(report.build(report.collect([evaluation])))
    first = bundles.outcome(10)
    ops = first["ops"]
    second = bundles.outcome(20)["ops"]
    wanted = [
        np.mean([o["count"][o["interval"] == i].sum() for o in (ops, second)]) for i in range(bundles.SECONDS)
    ]
    line = next(t for t in drawn["throughput"].panels[0].traces if t.get("name") == "replay")
    assert line["y"] == pytest.approx(wanted, rel=1e-4)
    assert line["x"][:2] == [0.5, 1.5]
    # All requests are in the histogram and in the heat map.
    histogram = drawn["histogram-service"]
    at = histogram.columns.index("replay: requests")
    total = int(ops["count"].sum() + second["count"].sum())
    assert sum(row[at] for row in histogram.rows) == pytest.approx(total)
    heat = [row for row in drawn["heat"].rows if row[0] == "replay"]
    assert 2 * sum(row[4] for row in heat) == pytest.approx(total, rel=1e-3)


def test_percentiles_over_time_are_those_of_the_interval(evaluation):
    found = report.collect([evaluation])
    ops = bundles.outcome(10)["ops"]
    mine = np.flatnonzero(ops["interval"] == 12)
    merged = Histogram()
    for row in mine:
        part = slice(ops["service_offsets"][row], ops["service_offsets"][row + 1])
        merged += Histogram.from_sparse(ops["service_bucket"][part], ops["service_count"][part])
    run = found.runs[0]
    assert run.p99[12] == merged.percentile(99)
    # 400 requests tell their 90th percentile and not their 99th.
    assert 100 < run.requests[5] < 1000 and np.isfinite(run.p90[5]) and np.isnan(run.p99[5])


def test_distributions_compare_the_trace_with_what_is_drawn(fitted):
    figure = distributions(fitted)
    by_name: dict[str, list] = {}
    for row in figure.rows:
        by_name.setdefault(row[0], []).append(row)
    for name, rows in by_name.items():
        trace, generated = sum(r[3] for r in rows), sum(r[4] for r in rows)
        assert trace == fitted.requests
        # Nearly every generated value falls in a bucket that the trace used; some runs break off.
        assert generated == pytest.approx(fitted.requests, rel=0.015 if name == "region" else 0.002), name
    sizes = {(r[1], r[2]): (r[3], r[4]) for r in by_name["size"]}
    assert sizes[(4096, 4096)][0] == sizes[(4096, 4096)][1] > 60_000
    assert set(by_name) >= {"op", "size", "gap", "op_jump", "region", "resume", "reuse_distance"}


def test_phases_hold_every_request(fitted):
    figure = phases(fitted)
    assert sum(row[3] for row in figure.rows) == fitted.requests
    bars = [(y, trace["width"]) for trace in figure.panels[0].traces for y in trace["y"]]
    assert len(bars) == len(figure.rows)
    assert sum(y * width for y, width in bars) == pytest.approx(fitted.requests, rel=1e-3)


def test_csv_holds_every_number_of_its_figure(page, evaluation):
    for figure in figures(report.build(report.collect([evaluation]))).values():
        text = re.search(f'id="csv-{figure.id}">(.*?)</script>', page, re.S)[1]
        rows = list(csv.reader(io.StringIO(json.loads(text))))
        assert rows[0] == figure.columns
        assert len(rows) == len(figure.rows) + 1
        assert all(len(row) == len(rows[0]) for row in rows)


def test_panels_are_json_with_units_on_their_axes(page):
    panels = re.findall(r'<script type="application/json">(.*?)</script>', page, re.S)
    assert len(panels) > 15
    for text in panels:
        panel = json.loads(text)
        assert panel["data"]
        assert panel["layout"]["xaxis"]["title"]["text"]


def test_partial_and_failed_runs_are_told(tmp_path, loadstone):
    bundles.run(tmp_path / "broken.bundle", "trace", 3, failed=7, partial=True)
    done = loadstone("report", tmp_path / "broken.bundle", "-o", tmp_path / "r.html")
    assert "7 requests failed" in done.stdout
    assert "interrupted" in done.stderr
    text = (tmp_path / "r.html").read_text()
    assert "broken: interrupted" in text
    assert "7 ENOSPC" in text


def test_two_bundles_are_drawn_against_each_other(tmp_path):
    bundles.run(tmp_path / "a.bundle", "trace", 1)
    bundles.run(tmp_path / "b.bundle", "model", 2, slow=1.5)
    found = report.build(report.collect([tmp_path / "a.bundle", tmp_path / "b.bundle"]))
    assert found.title == "Replay and model of loop0.parquet"
    assert re.search(r"99th percentile latency of .* \(\+\d", found.conclusion)


def test_two_replays_keep_their_names(tmp_path):
    for name in ("old", "new"):
        bundles.run(tmp_path / f"{name}.bundle", "trace", 1)
    found = report.build(report.collect([tmp_path / "old.bundle", tmp_path / "new.bundle"]))
    names = {t["name"] for t in figures(found)["throughput"].panels[0].traces}
    assert names == {"old", "new"}


def test_two_evaluations_stay_apart(tmp_path, fitted):
    for name in ("disk", "ssd"):
        bundles.evaluation(tmp_path / name, summary=bundles.SUMMARY, model=fitted)
    found = report.build(report.collect([tmp_path / "disk", tmp_path / "ssd"]))
    drawn = [figure.id for section in found.sections for figure in section.figures]
    assert len(drawn) == len(set(drawn))
    assert {"distances", "distances-2"} <= set(drawn)
    names = {t["name"] for t in figures(found)["throughput"].panels[0].traces if "name" in t}
    assert names == {"replay (disk)", "model (disk)", "replay (ssd)", "model (ssd)"}


def test_runs_of_one_name_are_told_apart_by_the_rest_of_their_paths(tmp_path):
    """The report named both ``run``, and drew them as repetitions of one run."""
    paths = [tmp_path / f"{place}/2026/run.bundle" for place in ("ssd", "disk")]
    for path in paths:
        path.parent.mkdir(parents=True)
        bundles.run(path, "model", 1)
    found = report.build(report.collect([*paths, bundles.run(tmp_path / "other.bundle", "model", 3)]))
    names = [t["name"] for t in figures(found)["throughput"].panels[0].traces if "name" in t]
    assert names == ["ssd/2026/run", "disk/2026/run", "other"]


def test_evaluations_of_one_name_are_told_apart(tmp_path, fitted):
    """Their runs were taken for repetitions of one evaluation."""
    for place in ("disk", "ssd"):
        (tmp_path / place).mkdir()
        bundles.evaluation(tmp_path / place / "evaluation", summary=bundles.SUMMARY, model=fitted)
    found = report.build(report.collect([tmp_path / "disk/evaluation", tmp_path / "ssd/evaluation"]))
    names = {t["name"] for t in figures(found)["throughput"].panels[0].traces if "name" in t}
    places = ("disk/evaluation", "ssd/evaluation")
    assert names == {f"{kind} ({place})" for kind in ("replay", "model") for place in places}
    headings = [section.title for section in found.sections if "faithful" in section.title]
    assert headings == [f"How faithful is the model? ({place})" for place in places]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/x.bundle", "/b/y.bundle"], ["x", "y"]),
        (["/a/run.bundle", "/b/run.bundle"], ["a/run", "b/run"]),
        (["/run.bundle", "/b/run.bundle"], ["/run", "b/run"]),
        (["/a/x.bundle", "/a/x"], ["x.bundle", "x"]),
        (["/a/x.bundle", "/a/x.bundle", "/a/y"], ["x (1)", "x (2)", "y"]),
        (["/a/c/x", "/b/c/x", "/b/d/x"], ["a/c/x", "b/c/x", "d/x"]),
    ],
)
def test_names_are_the_shortest_ends_that_differ(paths, names):
    assert distinct(paths, ".bundle") == names


def test_models_of_one_name_are_compared_side_by_side(tmp_path, fitted, loadstone):
    paths = [tmp_path / f"{day}/disk.mdh" for day in ("mon", "tue")]
    for path, rate in zip(paths, (1, 2), strict=True):
        path.parent.mkdir()
        fitted.scaled(rate=rate).save(path)
    head, requests, *_ = loadstone("model", "diff", *paths).stdout.splitlines()
    assert head.split() == ["mon/disk.mdh", "tue/disk.mdh"]
    assert requests.split() == ["requests", f"{fitted.requests:,}", f"{2 * fitted.requests:,}"]


def test_last_step_is_as_long_as_it_lasted(tmp_path):
    """A run that ends inside an interval keeps its rate; the rest of a step is not taken for silence."""
    whole = bundles.outcome(1, 10)
    whole["summary"]["elapsed_ns"] = 9_600_000_000
    with aside(tmp_path / "r.bundle") as inside:
        write_bundle(inside, bundles.plan("trace", 1), whole, bundles.ENVIRONMENT)
    run = report.collect([tmp_path / "r.bundle"]).runs[0]
    assert run.widths.tolist() == pytest.approx([1.0] * 9 + [0.6])
    assert run.requests.sum() == whole["summary"]["requests"]
    whole["summary"]["elapsed_ns"] = 9_100_000_000
    with aside(tmp_path / "s.bundle") as inside:
        write_bundle(inside, bundles.plan("trace", 1), whole, bundles.ENVIRONMENT)
    run = report.collect([tmp_path / "s.bundle"]).runs[0]
    assert run.widths.tolist() == pytest.approx([1.0] * 8 + [1.1])
    assert run.requests.sum() == whole["summary"]["requests"]
    assert run.cells[2].sum() == whole["summary"]["requests"]


def test_a_run_of_less_than_half_an_interval_keeps_its_rate(tmp_path):
    made = bundles.outcome(1, 1)
    made["summary"]["elapsed_ns"] = 37_000_000
    with aside(tmp_path / "r.bundle") as inside:
        write_bundle(inside, bundles.plan("trace", 1), made, bundles.ENVIRONMENT)
    found = report.collect([tmp_path / "r.bundle"])
    drawn = figures(report.build(found))
    summary = found.runs[0].summary
    for panel, rate in zip(
        drawn["throughput"].panels, (summary["ops_per_s"], summary["bytes_per_s"] / 1e6), strict=True
    ):
        (line,) = panel.traces
        assert line["y"] == pytest.approx([rate], rel=1e-3)
        assert line["x"] == [0.0185] and panel.layout["xaxis"]["range"] == [0, 0.037]
    assert drawn["flight"].panels[0].traces[0]["x"] == [0.0185]


def test_short_and_long_runs(tmp_path):
    bundles.run(tmp_path / "s.bundle", "trace", 1, seconds=1)
    bundles.run(tmp_path / "l.bundle", "trace", 1, seconds=1500)
    drawn = figures(report.build(report.collect([tmp_path / "s.bundle"])))
    assert "throughput" in drawn
    drawn = figures(report.build(report.collect([tmp_path / "l.bundle"])))
    line = drawn["throughput"].panels[0].traces[0]
    assert len(line["x"]) == 500
    total = bundles.outcome(1, 1500)["summary"]["requests"]
    assert np.mean(line["y"]) * 1500 == pytest.approx(total, rel=1e-3)


def test_names_of_files_are_escaped(tmp_path):
    bundles.run(tmp_path / "<b>&.bundle", "trace", 1)
    out = tmp_path / "r.html"
    report.write(tmp_path / "<b>&.bundle", out, title="</script><b>")
    text = re.sub(r"<script>.*?</script>", "", out.read_text(), flags=re.S)
    assert "b" not in outline(text).tags
    assert "&lt;/script&gt;&lt;b&gt;" in text


def test_refuses_what_it_must(tmp_path, evaluation, loadstone):
    out = tmp_path / "r.html"
    out.write_text("mine")
    with pytest.raises(Error, match="`force`"):
        report.write(evaluation, out)
    assert out.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    done = loadstone("report", tmp_path / "empty", "-o", tmp_path / "x.html", status=1)
    assert "not a bundle" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "r.html"]
    done = loadstone("report", evaluation, "-o", tmp_path / "no" / "x.html", status=1)
    assert "x.html" in done.stderr


def test_json_of_the_command(tmp_path, evaluation, loadstone):
    done = loadstone("report", evaluation, "-o", tmp_path / "r.html", "--json")
    told = json.loads(done.stdout)
    assert set(told) == {"report", "title", "conclusion", "figures", "warnings"}
    assert {"throughput", "latency", "histogram-service", "heat", "distances"} <= set(told["figures"])


@pytest.mark.slow
def test_browser_draws_it_without_errors(evaluation, page, tmp_path, need_tools):
    """In Chromium, with every host name unknown: all panels drawn, nothing on the console."""
    need_tools("chromium")
    out = evaluation.parent / "report.html"
    flags = "--headless --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += " --disable-component-update --virtual-time-budget=10000 --enable-logging=stderr --dump-dom"
    flags += " --no-sandbox" if os.geteuid() == 0 else ""
    done = subprocess.run(
        [
            "chromium",
            *flags.split(),
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={tmp_path}",
            out.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not console, "\n".join(console)
    panels = page.count('class="plot"')
    assert f'data-drawn="{panels}"' in done.stdout
    assert len(re.findall(r'class="plot[^"]*js-plotly-plot"', done.stdout)) == panels


def test_numbers_as_text():
    assert [cell_text(v) for v in (None, 0, 12, 1234567, 0.5, 1234.56, 123456.7, float("nan"))] == [
        "–",
        "0",
        "12",
        "1,234,567",
        "0.5",
        "1,235",
        "123,457",
        "–",
    ]
    assert rounded([1 / 3, float("inf")]) == [0.33333, None]
    assert time_ticks(50e3, 2e6)["ticktext"] == ["10 µs", "100 µs", "1 ms", "10 ms"]
    assert size_ticks(4096, 1 << 20)["ticktext"] == ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]


def test_failed_requests_are_a_share_of_all():
    from loadstone.report.collect import warnings_of

    # As the engine counts: failed ones are among the requests.
    run = SimpleNamespace(summary={"requests": 200, "errors": 40, "short": 10})
    assert warnings_of(run) == ["50 requests failed or were short (25 %)"]
    run = SimpleNamespace(summary={"requests": 1, "errors": 1, "short": 0})
    assert warnings_of(run) == ["1 request failed or was short (100 %)"]
