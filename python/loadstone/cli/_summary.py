"""The summary of a run on the terminal: why it stopped early, rates, latency, what else is to be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from loadstone.cli._command import in_options
from loadstone.cli._show import console, human_bytes, human_time

# Names in summaries and above columns; the last is told only where a row has it.
_COLUMNS = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9", "p9999": "p99.99"}
_RARE = {"p99999": "p99.999"}


def stopped_early(summary: Mapping[str, Any]) -> str | None:
    """Why a run ended before its time, or None."""
    if failure := summary.get("failure"):
        return str(failure)
    if not summary["partial"]:
        return None
    told = [note for note in summary.get("notes", []) if note.startswith("stopped ")]
    return "interrupted" + (f", {told[0]}" if told else "")


def show(summary: Mapping[str, Any]) -> None:
    """Prints the summary of a run; the first line says so where it ended early."""
    seconds = summary["elapsed_ns"] / 1e9
    if reason := stopped_early(summary):
        click.echo(f"stopped early: {reason}")
    partial = " (partial)" if summary["partial"] else ""
    click.echo(
        f"{summary['requests']:,} requests, {human_bytes(summary['bytes'])} in {seconds:.3f} s{partial}: "
        f"{summary['ops_per_s']:,.0f} ops/s, {summary['bytes_per_s'] / 1e6:,.1f} MB/s"
        + (f"; {failed:,} failed, not in ops/s" if (failed := summary["errors"] + summary["short"]) else "")
    )
    if len(summary["ops"]) > 1:
        click.echo(_mix(summary["ops"]))
    for line in _reached(summary):
        click.echo(line)
    # A program's steps say more than what calls they make.
    rows = {step_name(name, op): op for name, op in (summary.get("steps") or summary["ops"]).items()}
    whole = _whole(summary) if len(rows) > 1 else {}
    _tables("step" if "steps" in summary else "op", {**rows, **whole})
    for by in ("worker", "group", "thread"):
        if parts := summary.get(f"{by}s"):
            _tables(by, {part_name(part, by): part for part in parts})
    late = summary["lateness"]
    if late or summary.get("windows"):
        click.echo()
    if "p50_ns" in late:
        click.echo(
            f"lateness (issued minus intended): p50 {_time(late['p50_ns'])}, "
            f"p99 {_time(late['p99_ns'])}, {slope_text(late['slope_ns_per_s'])}"
        )
    for name, drawn in summary.get("values", {}).items():
        first = ", ".join(f"{value:g}" for value in drawn["first"])
        more = ", ..." if drawn["count"] > len(drawn["first"]) else ""
        click.echo(
            f"value {name}: {drawn['count']:,} times, mean {drawn['mean']:g}, deviation "
            f"{drawn['deviation']:g}, {drawn['least']:g} to {drawn['most']:g}: {first}{more}"
        )
    for one in summary.get("windows", ()):
        figures = one["service_ns"]
        times = ", ".join(f"{p} {_time(figures.get(p))}" for p in ("p50", "p99"))
        click.echo(
            f"window {one['name']}, {one['from_ns'] / 1e9:g} s to {one['to_ns'] / 1e9:g} s: "
            f"{one['requests']:,} requests, {one['ops_per_s']:,.0f} ops/s, "
            f"{one['bytes_per_s'] / 1e6:,.1f} MB/s, service {times}"
        )
    if back := summary.get("written_back"):
        click.echo()
        click.echo(f"writing back what was written: {human_time(back['elapsed_ns'])}, not part of the rates")
        for error in back["errors"]:
            click.echo(f"failed: {error}", err=True)
    if content := summary.get("content"):
        click.echo()
        for line in content_lines(content):
            click.echo(line)
    if verified := summary.get("verified"):
        from loadstone.verification import lines

        click.echo()
        for line in lines(verified):
            click.echo(line)
    for name, op in rows.items():
        for errno, count in op["errors"].items():
            click.echo(f"failed: {count:,} {name} requests: {errno}", err=True)
    if failure := summary["log"].get("failure"):
        click.echo(f"warning: the log is lost: {failure}", err=True)
    elif summary["log"]["logged"] or summary["log"]["dropped"]:
        logged, dropped = summary["log"]["logged"], summary["log"]["dropped"]
        click.echo(f"log: {logged:,} rows, {dropped:,} dropped")
        if dropped:
            share = f"{dropped / (logged + dropped):.1%}"
            click.echo(
                f"warning: the log lacks {share} of the requests, which came too fast for it", err=True
            )
    for note in [*summary.get("notes", []), *summary.get("warnings", [])]:
        click.echo(f"note: {in_options(note)}", err=True)


def content_lines(content: Mapping[str, Any]) -> list[str]:
    """What was asked of written data, and what was found on the targets."""
    asked, found = content["asked"], content["found"]
    if found is None:
        return [f"content asked: {content_asked(asked)}; found: nothing, {content['reason']}"]
    seen = found["examined"]
    if not seen["read"]:
        return [f"content asked: {content_asked(asked)}; found: nothing, as no data is left"]
    parts = f"{human_bytes(seen['read'])} of {human_bytes(seen['bytes'])}"
    pieces, by_piece = human_bytes(seen["piece"]), seen["by_piece"]
    ratios = ", ".join(f"{codec} {ratio:.3f}" for codec, ratio in found["compress"].items())
    more = ", ".join(f"{codec} {by_piece[codec]:.3f}" for codec in found["compress"])
    by_blocks, by_content = seen["fixed"]["ratio"], seen["fastcdc"]["ratio"]
    cut = asked.get("chunking") == "fastcdc"
    other = f"by blocks {by_blocks:.3f}" if cut else f"FastCDC {by_content:.3f}"
    return [
        f"content asked: {content_asked(asked, found)}",
        f"content found in {parts}: dedupe {found['dedupe']:.3f} ({other}), "
        f"compress {ratios}; in pieces of {pieces} {more}",
        *([cut_text(found["cut"])] if "cut" in found else []),
    ]


def cut_text(cut: Mapping[str, float]) -> str:
    """Why less deduplicates than the dataset does, and what to do."""
    request, chunk = (human_bytes(round(cut[name])) for name in ("request", "chunk"))
    return (
        f"content is cut: writes of {request} are smaller than the dataset's chunks of {chunk} (means); "
        "write more at once (--bs 1m), or a series in blocks of that size (dataset scan --chunking fixed:4k)"
    )


def content_asked(asked: Mapping[str, Any], found: Mapping[str, Any] | None = None) -> str:
    """What was asked of written data, in words; ``found``: and of as much as there is, where that differs."""
    expected = {
        ratio: (found or {}).get(f"{ratio}_expected", asked[ratio]) for ratio in ("dedupe", "compress")
    }
    # Of a sample, or where files grew, as many blocks should have another ratio; and of part of a dataset.
    differs = any(abs(expected[ratio] / asked[ratio] - 1) > 0.005 for ratio in expected)
    if "dataset" in asked:
        snapshot = "" if asked.get("snapshot") is None else f", snapshot {asked['snapshot']}"
        of_part = (
            f" ({expected['dedupe']:.3f} and {expected['compress']:.3f} in as many bytes)" if differs else ""
        )
        ratios = f"dedupe {asked['dedupe']:.3f}, compress {asked['compress']:.3f}{of_part}"
        return f"chunks of {asked['dataset']}{snapshot}, {human_bytes(asked['bytes'])}: {ratios}"
    of_part = f" ({expected['dedupe']:.3f} in as many blocks)" if differs else ""
    return (
        f"dedupe {asked['dedupe']:g}{of_part}, compress {asked['compress']:g}, in blocks of "
        f"{human_bytes(asked['unit'])}"
    )


def step_name(name: str, figures: Mapping[str, Any]) -> str:
    """``pace (waits)`` for a step that is no request."""
    return f"{name} (waits)" if figures.get("op") == "other" else name


def part_name(part: Mapping[str, Any], by: str) -> str:
    """``0 server`` for a worker, ``0.3 server`` for a thread of it, ``server`` for a group."""
    group = part["group"]
    if by == "group":
        return group or "(none)"
    number = str(part["worker"]) + (f".{part['thread']}" if by == "thread" else "")
    return f"{number} {group}".rstrip()


def slope_text(slope: float) -> str:
    """How lateness changes, from nanoseconds a second; a hundredth of the time or more is a load too much."""
    text = f"slope {'-' if slope < 0 else '+'}{_time(abs(slope))} a second"
    return f"{text}: the load falls further and further behind" if slope >= 1e7 else text


def _steady(steady: Mapping[str, Any]) -> str:
    """Whether and when a run became steady, and how steady it was."""
    head = f"reached after {steady['at_ns'] / 1e9:g} s" if steady["attained"] else "not reached"
    if steady["found"] is None:
        return f"steady state: {head}; the run ended before the first window was full"

    def of(value: float) -> str:
        return f"{value:.2%} of the mean" if steady.get("relative") else f"{value:,.4g}"

    what = {"requests": "requests/s", "bytes": "bytes/s", "latency": "mean latency in ns"}[steady["of"]]
    judged = "slope per sample" if steady.get("by") == "slope" else "largest deviation"
    return (
        f"steady state: {head}; {judged} of {what} over {steady['window_ns'] / 1e9:g} s: "
        f"{of(steady['found'])}, below {of(steady['limit'])} asked"
        if steady["attained"]
        else f"steady state: {head}; {judged} of {what} over {steady['window_ns'] / 1e9:g} s: "
        f"{of(steady['found'])} at the end, and less than {of(steady['limit'])} was asked"
    )


def _reached(summary: Mapping[str, Any]) -> list[str]:
    """What came of waiting for a steady state, and of searching a depth."""
    lines = []
    if steady := summary.get("steady"):
        lines.append(_steady(steady))
    for one in summary.get("depths", ()):
        share = one["fast"] / one["requests"] if one["requests"] else 0.0
        rate = one["requests"] / (one["window_ns"] / 1e9) if one["window_ns"] else 0.0
        lines.append(
            f"latency target (worker {one['worker']}): {'met' if one['found'] else 'not met'} at depth "
            f"{one['depth']}, by {share:.2%} of the last {one['requests']:,} requests, {rate:,.0f} ops/s"
        )
    return lines


def _mix(ops: Mapping[str, Any]) -> str:
    """``reads 400/s 12.3 MB/s, writes 800/s 4.4 MB/s, others 1,234/s``."""
    parts = []
    for name, title in (("read", "reads"), ("write", "writes")):
        if op := ops.get(name):
            parts.append(f"{title} {op['ops_per_s']:,.0f}/s {op['bytes_per_s'] / 1e6:,.1f} MB/s")
    others = sum(op["ops_per_s"] for name, op in ops.items() if name not in ("read", "write"))
    return ", ".join([*parts, f"others {others:,.0f}/s"] if others else parts)


def _whole(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The row of all requests; steps that wait are none."""
    errors: dict[str, int] = {}
    for op in summary["ops"].values():
        for name, count in op["errors"].items():
            errors[name] = errors.get(name, 0) + count
    keys = ("ops_per_s", "bytes_per_s", "service_ns", "response_ns")
    whole = {"count": summary["requests"], "bytes": summary["bytes"], "errors": errors}
    return {"all requests": {**whole, **{key: summary[key] for key in keys}}}


def _tables(head: str, rows: Mapping[str, Any]) -> None:
    """What was done, and then latency: two tables, as one would be wider than a terminal."""
    if not rows:
        return
    from rich.table import Table

    done = Table(box=None, pad_edge=False)
    done.add_column(head)
    # Times are those from when a request was issued, as open loads tell those from when it was due, too.
    for name in ("requests", "ops/s", "MB/s", "service mean", "min", "max", "failed"):
        done.add_column(name, justify="right")
    for name, row in rows.items():
        times = [_time(row["service_ns"].get(key)) for key in ("mean", "min", "max")]
        done.add_row(
            name,
            f"{row['count']:,}",
            f"{row['ops_per_s']:,.0f}",
            f"{row['bytes_per_s'] / 1e6:,.1f}",
            *times,
            f"{sum(row['errors'].values()):,}",
        )
    click.echo()
    console().print(done)
    for kind in ("service", "response"):
        # Response is told only where the pace was open: elsewhere it is the same as service.
        if kind == "service" or any(row["response_ns"]["count"] for row in rows.values()):
            click.echo()
            console().print(_percentiles(head, kind, rows))


def _percentiles(head: str, kind: str, rows: Mapping[str, Any]) -> Any:
    from rich.table import Table

    found = {name: row[f"{kind}_ns"] for name, row in rows.items()}
    if kind == "response":
        # Nothing is due where something waits.
        found = {name: figures for name, figures in found.items() if figures["count"]}
    columns = _COLUMNS | {p: t for p, t in _RARE.items() if any(f.get(p) is not None for f in found.values())}
    table = Table(box=None, pad_edge=False)
    table.add_column(head)
    for i, title in enumerate(columns.values()):
        table.add_column(title if i else f"{kind} {title}", justify="right")
    for name, figures in found.items():
        table.add_row(name, *(_time(figures.get(p)) for p in columns))
    return table


def _time(ns: float | None) -> str:
    """A time, or a dash where the count does not support it."""
    return "-" if ns is None else human_time(ns)
