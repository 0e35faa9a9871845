"""What was written: its content as asked for and as found, and what its verification found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadstone.bundle.figures import not_written_back
from loadstone.report.facts import size
from loadstone.report.page import Row, Section, Table
from loadstone.report.view import Run

# Share by which a dedupe ratio may miss what it should be before that is marked.
CLOSE = 0.05
# Damaged blocks that are named: of a run, and of all.
NAMED = 10
NAMED_IN_ALL = 40


def section(runs: list[Run]) -> Section:
    """The section; empty where nothing was asked for."""
    tables = [content(runs), verified(runs), damages(runs)]
    return Section("written", "What was written", tables=[table for table in tables if table.rows])


def content(runs: list[Run]) -> Table:
    """One row per run whose plan said what is written: asked, and found on its targets afterwards."""
    rows = [_content_row(run.name, run.summary["content"]) for run in runs if run.summary.get("content")]
    note = (
        "Asked of all that is written, and found on the targets after the run. In brackets: what as much as "
        "was read should have. Missed by: found dedupe against that. Codecs compress blocks one by one, or "
        "pieces of 128 KiB where there are no blocks."
    )
    columns = ["run", "read", "made of", "dedupe asked", "by blocks", "by FastCDC", "missed by"]
    columns += ["compress asked", "lz4", "zstd", "zlib"]
    return Table(columns, rows, title="Content", note=note, text=(0, 1, 2), toned=6)


def _content_row(name: str, told: Mapping[str, Any]) -> Row:
    asked, found = told["asked"], told["found"]
    made_of = f"blocks of {size(asked['unit'])}"
    if "dataset" in asked:
        snapshot = "" if asked.get("snapshot") is None else f", snapshot {asked['snapshot']}"
        made_of = f"chunks of {Path(str(asked['dataset'])).name}{snapshot}"
    if found is None or not found["compress"]:
        read = f"nothing: {told['reason']}" if told.get("reason") else "nothing"
        plain = (_asked(asked[ratio], None) for ratio in ("dedupe", "compress"))
        dedupe, compress = plain
        return Row([name, read, made_of, dedupe, "–", "–", "–", compress, "–", "–", "–"], "warn")
    seen = found["examined"]
    all_read = seen["read"] == seen["bytes"]
    missed = found["dedupe"] / found["dedupe_expected"] - 1
    return Row(
        [
            name,
            size(seen["bytes"]) if all_read else f"{size(seen['read'])} of {size(seen['bytes'])}",
            made_of,
            _asked(asked["dedupe"], found["dedupe_expected"]),
            f"{seen['fixed']['ratio']:.3f}",
            f"{seen['fastcdc']['ratio']:.3f}",
            f"{100 * missed:+.1f} %",
            _asked(asked["compress"], found.get("compress_expected")),
            *(f"{found['compress'][codec]:.3f}" for codec in ("lz4", "zstd", "zlib")),
        ],
        "warn" if abs(missed) > CLOSE else "",
    )


def _asked(ratio: float, expected: float | None) -> str:
    """``2``, or ``2 (1.766)`` where as much as was read should have another ratio."""
    differs = expected is not None and abs(expected / ratio - 1) > 0.005
    return f"{ratio:.4g} ({expected:.3f})" if differs else f"{ratio:.4g}"


def verified(runs: list[Run]) -> Table:
    """One row per run that was verified: how much was compared, and what was wrong."""
    rows = [_verified_row(run.name, run.summary["verified"]) for run in runs if run.summary.get("verified")]
    note = (
        "Blocks are compared with what was written to them each time they are read, and all of them after "
        "the run. While writes go on, have overlapped or have failed, a block may hold any of several "
        "generations."
    )
    columns = ["run", "found", "block", "compared", "of several generations", "unknown", "unreadable"]
    return Table(columns, rows, title="Verification", note=note, text=(0, 1), toned=1)


def _verified_row(name: str, told: Mapping[str, Any]) -> Row:
    if told["wrong"]:
        tone, found = "bad", "✗ " + ", ".join(f"{count:,} {kind}" for kind, count in told["wrong"].items())
    elif not told["checked"]:
        tone, found = "warn", "– nothing was compared"
    elif told["unread"] or told.get("unreadable"):
        tone, found = "warn", "≈ nothing wrong, but not all was read"
    else:
        tone, found = "good", "✓ all as it should be"
    counts = (told["checked"], told["raced"], told["unknown"], told.get("unreadable", 0))
    return Row([name, found, size(told["unit"]), *(f"{count:,}" for count in counts)], tone)


def damages(runs: list[Run]) -> Table:
    """The first damaged blocks of each run."""
    found = {run.name: (run.summary.get("verified") or {}).get("damages", []) for run in runs}
    rows = [Row([name, one["wrong"], one["text"]]) for name, of in found.items() for one in of[:NAMED]]
    rows = rows[:NAMED_IN_ALL]
    more = sum(map(len, found.values())) - len(rows)
    note = f"{more:,} more are in the bundle's summary.json." if more else ""
    return Table(["run", "kind", "block"], rows, title="Damaged blocks", note=note, text=(0, 1, 2))


def trouble(runs: list[Run]) -> str:
    """Sentences on what was lost and on damage, where there was any."""
    seen = sum(
        count for run in runs for count in (run.summary.get("verified") or {}).get("wrong", {}).values()
    )
    often = "once" if seen == 1 else f"{seen:,} times"
    lost = " Not all that was written reached the store." if not_written_back(r.summary for r in runs) else ""
    return lost + (f" Damage was found {often}." if seen else "")
