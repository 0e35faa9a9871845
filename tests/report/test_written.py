"""The report of content and verification: asked against found, and what was damaged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loadstone import report
from loadstone.bundle import aside, write_bundle, write_series
from loadstone.bundle.figures import of_run
from loadstone.bundle.folder import write_json
from loadstone.report import written
from loadstone.report.page import Table

sys.path.insert(0, str(Path(__file__).parent))
import bundles

ASKED = {"compress": 2.0, "dedupe": 2.0, "unit": 4096}


def content(dedupe: float = 1.95, expected: float = 2.0, asked: dict[str, Any] = ASKED) -> dict[str, Any]:
    fixed, fastcdc = (dedupe, 1.004) if asked.get("chunking") != "fastcdc" else (1.063, dedupe)
    return {
        "asked": asked,
        "found": {
            "dedupe": dedupe,
            "dedupe_expected": expected,
            "compress": {"lz4": 1.975, "zstd": 2.011, "zlib": 1.989},
            "examined": {
                "read": 2 << 30,
                "bytes": 8 << 30,
                "fixed": {"ratio": fixed},
                "fastcdc": {"ratio": fastcdc},
            },
        },
    }


def verified(**more: Any) -> dict[str, Any]:
    told = {"unit": 4096, "checked": 16384, "raced": 12, "unknown": 0, "wrong": {}, "damages": []}
    return {**told, "unread": None, "unreadable": 0, "unkept": None, **more}


def damage(number: int) -> dict[str, Any]:
    return {"wrong": "torn", "text": f"block {number} of target.img is torn: <half> of it"}


def bundle(folder: Path, **found: Any) -> Path:
    """A run whose summary has these besides."""
    made = bundles.outcome(1, 2)
    with aside(folder) as inside:
        write_bundle(inside, bundles.plan("trace", 1), made, bundles.ENVIRONMENT)
        summary = report.collect([inside]).runs[0].summary
        write_json(inside / "summary.json", {**summary, **found})
    return folder


def cells(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row.cells, strict=True)) for row in table.rows]


def test_nothing_is_said_where_nothing_was_asked(tmp_path):
    found = report.collect([bundle(tmp_path / "r.bundle")])
    assert not written.section(found.runs)
    assert "written" not in [section.id for section in report.build(found).sections]


def test_content_asked_stands_beside_what_was_found(tmp_path):
    near = bundle(tmp_path / "near.bundle", content=content())
    far = bundle(tmp_path / "far.bundle", content=content(1.47, 1.766))
    table = written.content(report.collect([near, far]).runs)
    one, other = cells(table)
    assert one["dedupe asked"] == "2" and one["by blocks"] == "1.950" and one["missed by"] == "-2.5 %"
    assert one["by FastCDC"] == "1.004" and one["made of"] == "blocks of 4 KiB"
    assert one["read"] == "2 GiB of 8 GiB"
    assert [one[codec] for codec in ("lz4", "zstd", "zlib")] == ["1.975", "2.011", "1.989"]
    assert other["dedupe asked"] == "2 (1.766)" and other["missed by"] == "-16.8 %"
    assert [row.tone for row in table.rows] == ["", "warn"]
    assert table.columns[table.toned] == "missed by"


def test_chunks_of_a_dataset_are_judged_by_their_chunker(tmp_path):
    asked = {"dataset": "/data/site.fst", "snapshot": 1, "dedupe": 1.46, "compress": 1.529, "unit": 4096}
    told = content(1.551, 1.572, {**asked, "chunking": "fastcdc"})
    told["found"]["compress_expected"] = 1.484
    (row,) = cells(written.content(report.collect([bundle(tmp_path / "r.bundle", content=told)]).runs))
    assert row["made of"] == "chunks of site.fst, snapshot 1"
    assert (row["by blocks"], row["by FastCDC"], row["missed by"]) == ("1.063", "1.551", "-1.3 %")
    assert row["compress asked"] == "1.529 (1.484)"


def test_content_that_could_not_be_read_says_why(tmp_path):
    told = {"asked": ASKED, "found": None, "reason": "x: Permission denied"}
    table = written.content(report.collect([bundle(tmp_path / "r.bundle", content=told)]).runs)
    (row,) = cells(table)
    assert row["read"] == "nothing: x: Permission denied" and row["lz4"] == "–"
    assert table.rows[0].tone == "warn"


def test_damage_is_on_the_page_by_kind_and_by_block(tmp_path):
    told = verified(wrong={"torn": 30, "stale": 2}, damages=[damage(i) for i in range(15)])
    out = tmp_path / "r.html"
    page = report.write(bundle(tmp_path / "r.bundle", verified=told), out)
    assert page.tone == "bad" and page.conclusion.endswith("Damage was found 32 times.")
    runs = report.collect([tmp_path / "r.bundle"]).runs
    table = written.verified(runs)
    (row,) = cells(table)
    assert row["found"] == "✗ 30 torn, 2 stale" and row["compared"] == "16,384"
    assert row["of several generations"] == "12" and table.rows[0].tone == "bad"
    named = written.damages(runs)
    assert len(named.rows) == written.NAMED and named.note.startswith("5 more")
    assert "block 0 of target.img is torn: &lt;half&gt; of it" in out.read_text()


def test_what_was_not_read_is_no_clean_bill(tmp_path):
    clean = bundle(tmp_path / "clean.bundle", verified=verified())
    part = bundle(tmp_path / "part.bundle", verified=verified(unread="t: interrupted", unreadable=3))
    found = report.collect([clean, part])
    table = written.verified(found.runs)
    assert [row.tone for row in table.rows] == ["good", "warn"]
    assert cells(table)[1]["unreadable"] == "3"
    assert "part: not all that was written was read from end to end: t: interrupted" in found.warnings
    page = report.build(found)
    assert "Damage" not in page.conclusion and page.tone == ""


def test_figures_of_several_runs_have_what_was_found_of_each():
    totals = {"elapsed_ns": 5, "requests": 1, "ops": {}}
    told = of_run("run1", {**totals, "content": content(), "verified": verified()})
    assert told["name"] == "run1" and told["elapsed_ns"] == 5 and "ops" not in told
    assert told["content"] == content() and told["verified"] == verified()
    assert not {"content", "verified"} & of_run("run2", totals).keys()


def test_the_title_is_the_name_of_what_was_run(tmp_path):
    one = bundle(tmp_path / "vm.bundle", workload="varmail")
    other = bundle(tmp_path / "old.bundle", workload="varmail")
    third = bundle(tmp_path / "w.bundle", workload="/scripts/web.f")

    def title(*paths: Path) -> str:
        return report.build(report.collect(paths)).title

    assert title(one) == "varmail" and title(third) == "web.f"
    assert title(one, other) == "varmail: vm and old"
    assert title(one, third).startswith("Vm (varmail) and w (web.f)")
    with aside(tmp_path / "s.bundle") as inside:
        bundle(inside / "run1")
        listed = [{"name": "run1", "path": "run1"}]
        write_series(inside, "script", listed, {"script": "/scripts/mail.f", "figures": []})
    assert title(tmp_path / "s.bundle") == "mail.f"


def test_what_did_not_reach_the_store_is_said_first(tmp_path: Path) -> None:
    lost = "target t: what was written did not all become stable: Input/output error (os error 5)"
    told = bundle(tmp_path / "r.bundle", written_back={"elapsed_ns": 5, "errors": [lost]})
    page = report.write(told, tmp_path / "r.html")
    assert page.tone == "bad" and page.conclusion.endswith(" Not all that was written reached the store.")
    assert lost in (tmp_path / "r.html").read_text()
    clean = bundle(tmp_path / "clean.bundle", written_back={"elapsed_ns": 5, "errors": []})
    assert written.trouble(report.collect([clean]).runs) == ""
