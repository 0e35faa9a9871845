"""Tables of facts: what was run, what came of it, and on what machine."""

from __future__ import annotations

from typing import Any

from loadstone import _units
from loadstone.report.figure import cell_text
from loadstone.report.page import Pairs, Row, Table
from loadstone.report.view import Group, Run
from loadstone.stats.histogram import supported

QUANTILES = {
    "p50": "median",
    "p90": "90 %",
    "p95": "95 %",
    "p99": "99 %",
    "p999": "99.9 %",
    "p9999": "99.99 %",
}
"""Percentiles that tables have, and what stands above them."""


def duration(ns: float | None) -> str:
    """Nanoseconds as people say them: ``820 ns``, ``12.3 µs``, ``4.5 ms``, ``2 s``; a dash for none."""
    return "–" if ns is None or ns != ns else _units.duration(ns, seconds=4, micro="µs")


def size(count: float | None) -> str:
    """Bytes in powers of 1024: ``4 KiB``, ``1.5 GiB``; a dash for none."""
    return "–" if count is None else _units.size(count)


def results(runs: list[Run]) -> Table:
    """One row per run: how much, how fast, how late, how many failed."""
    columns = ["run", "requests", "duration", "requests/s", "MB/s", *QUANTILES.values()]
    late = any(run.response is not None for run in runs)
    columns += ["99 % from intended time", "lateness 99 %"] if late else []
    rows = []
    for run in runs:
        s = run.summary
        # Not those of summary.json: a build of before told them whatever the count.
        service = run.service.summary()
        cells = [run.name, f"{s['requests']:,}", duration(s["elapsed_ns"])]
        cells += [cell_text(s["ops_per_s"]), cell_text(s["bytes_per_s"] / 1e6)]
        cells += [duration(service.get(q)) for q in QUANTILES]
        if late:
            response, lateness = run.response, s.get("lateness") or {}
            enough = response is not None and supported(len(response), 99)
            cells += [duration(response.told(99)) if response is not None else "–"]
            cells += [duration(lateness.get("p99", lateness.get("p99_ns")) if enough else None)]
        failed = int(s.get("errors", 0)) + int(s.get("short", 0))
        rows.append(Row([*cells, f"{failed:,}" if failed else "0"], "bad" if failed else ""))
    note = (
        "Latency is from issue to completion unless said otherwise; failed requests are counted separately. "
    )
    note += "A percentile is shown if at least ten requests are expected beyond it."
    return Table([*columns, "failed"], rows, note=note, toned=len(columns))


def by_op(groups: list[Group]) -> Table:
    """One row per group and kind of request."""
    rows = []
    for group in groups:
        for run in group.runs:
            for op in run.ops:
                service = op.service
                failed = ", ".join(f"{n:,} {name}" for name, n in op.failed.items()) or "0"
                rows.append(
                    Row(
                        [
                            run.name,
                            op.op,
                            f"{op.count:,}",
                            size(op.bytes / op.count) if op.count and op.bytes else "–",
                            *(duration(service.get(q)) for q in ("mean", *QUANTILES, "max")),
                            failed,
                        ],
                        "bad" if op.failed else "",
                    )
                )
    columns = ["run", "request", "count", "mean size", "mean", *QUANTILES.values(), "most"]
    return Table([*columns, "failed"], rows, title="By kind of request", text=(0, 1), toned=len(columns))


def _program(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """The workers of a program and the sets they share."""
    out = []
    for i, worker in enumerate(plan["workers"]):
        ops = (worker.get("source") or {}).get("ops") or []
        threads = int(worker.get("depth") or 1)
        names = ", ".join(str(op.get("name")) for op in ops[:20]) + (", ..." if len(ops) > 20 else "")
        how = "1 thread" if threads == 1 else f"{threads:,} threads"
        out.append((f"worker {i} {worker.get('group', '')}".rstrip(), f"{how}: {names}"))
    for one in plan.get("sets") or []:
        present = float(one.get("present", 1))
        there = "" if present == 1 else f", {100 * present:g} % of them there at the start"
        out.append((f"set {one.get('id')}", f"{int(one.get('entries', 0)):,} entries{there}"))
    if rate := plan.get("events_per_s"):
        out.append(("events", f"{cell_text(float(rate))} per second"))
    return out


def load(run: Run) -> list[tuple[str, str]]:
    """What a run's plan asked for, in words."""
    plan = run.plan
    worker = (plan.get("workers") or [{}])[0]
    source, pace = worker.get("source") or {}, worker.get("pace") or {}
    artefacts = {a.get("id"): a for a in plan.get("artefacts") or []}
    out: list[tuple[str, str]] = []
    artefact = artefacts.get(source.get("artefact"))
    if artefact:
        out.append((str(source.get("kind")), str(artefact.get("path"))))
    elif source.get("kind") == "program":
        out += _program(plan)
    elif source:
        parameters = ", ".join(f"{k} {v}" for k, v in source.items() if k != "kind")
        out.append(("load", f"{source.get('kind')} ({parameters})" if parameters else str(source["kind"])))
    program = source.get("kind") == "program"
    if pace.get("kind") == "open":
        speed = float(pace.get("speed", 1))
        out.append(("pace", "as recorded" if speed == 1 else f"{speed:g} times as recorded"))
    elif (pace or worker) and not program:
        out.append(("pace", "as fast as possible"))
    if worker.get("order") == "dependency":
        think = float(worker.get("think", 1))
        thought = "no think time" if think == 0 else f"think times divided by {think:g}"
        out.append(("order", f"after what it depended on in the trace, {thought}"))
    if worker.get("order") == "completion":
        out.append(("order", "after the completions of the trace"))
    if program:
        out.append(("backend", str(worker.get("backend"))))
    elif worker:
        out.append(("backend", f"{worker.get('backend', 'sync')}, at most {worker.get('depth')} in flight"))
    for target in plan.get("targets") or []:
        how = [str(target.get("kind"))]
        how += [size(target.get("size"))] if target.get("size") else []
        how += ["direct I/O"] if target.get("direct") else []
        how += [f"sync: {target['sync']}"] if target.get("sync") not in (None, "none") else []
        out.append((f"target {target.get('id')}", f"{target.get('path') or '–'} ({', '.join(how)})"))
    offsets = (worker.get("map") or {}).get("offsets")
    if offsets and not program:
        out.append(("offsets beyond the target", str(offsets)))
    out.append(("seed", str(plan.get("seed", 0))))
    return out


def environment(run: Run) -> list[Pairs]:
    """The machine: one block for the host, one per target."""
    env = run.environment
    cpu = env.get("cpu") or {}
    memory = env.get("memory") or {}
    host: list[tuple[str, str]] = []

    def add(name: str, value: Any, into: list[tuple[str, str]] = host) -> None:
        if value not in (None, "", {}, []):
            into.append((name, str(value)))

    add("host", env.get("host"))
    add("kernel", " ".join(str(env.get("kernel") or "").split()[:2]))
    add("machine", env.get("machine"))
    add("CPU", cpu.get("model"))
    add("CPUs", cpu.get("count") or cpu.get("cpus"))
    add("governor", cpu.get("governor"))
    add("memory", size(memory.get("MemTotal") or memory.get("total_bytes")) if memory else None)
    add("clock source", env.get("clock_source"))
    add("load when started", ", ".join(f"{x:.2f}" for x in env.get("load") or []))
    for name, version in (env.get("versions") or {}).items():
        add(name, version)
    blocks = [Pairs("Host", host)]
    for name, target in (env.get("targets") or {}).items():
        facts: list[tuple[str, str]] = []
        mount, device = target.get("mount") or {}, target.get("device") or {}
        add("path", target.get("path"), facts)
        if mount:
            add("file system", f"{mount.get('type')} on {mount.get('source')}", facts)
            add("mount options", mount.get("options"), facts)
        settings = device.get("settings") or {}
        queue = settings.get("queue") or {}
        add("device", device.get("name"), facts)
        add("on top of", ", ".join(map(str, device.get("below") or [])), facts)
        add("device model", settings.get("model"), facts)
        add("device size", size(settings["size_bytes"]) if settings.get("size_bytes") else None, facts)
        for key, title in (
            ("scheduler", "scheduler"),
            ("rotational", "rotational"),
            ("write_cache", "write cache"),
            ("nr_requests", "queue requests"),
            ("logical_block_size", "logical block, bytes"),
        ):
            add(title, queue.get(key), facts)
        add("no device", target.get("no_device"), facts)
        if facts:
            blocks.append(Pairs(f"Target {name}", facts))
    return blocks
