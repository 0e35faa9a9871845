"""Writing a bundle's files from what the engine and the observer hand over."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loadstone._core import MARK, __version__
from loadstone._files import make_folder
from loadstone._text import without_quotes
from loadstone.bundle import table
from loadstone.bundle.codes import OTHER, SHORT, VERSION
from loadstone.bundle.figures import By, by_op, by_step, lateness, merged, parts, step_names
from loadstone.bundle.folder import write_json
from loadstone.observe.observer import Observation
from loadstone.verification import of_outcome


@dataclass(frozen=True)
class Event:
    """Something that happened during a run."""

    time: int
    """CLOCK_MONOTONIC, nanoseconds."""
    kind: str
    """``started``, ``ended``, ``interrupted``, ``failure``, ``note``, ``warning``, ``reset``, ``missed`` or
    ``probe``."""
    text: str
    """In plain words."""


def _meta() -> dict[str, str]:
    return {"loadstone.bundle.version": str(VERSION), "loadstone.version": __version__}


def write_bundle(
    folder: Path,
    plan: Mapping[str, Any],
    outcome: Mapping[str, Any],
    environment: Mapping[str, Any],
    observation: Observation | None = None,
    events: Sequence[Event] = (),
    windows: Sequence[Mapping[str, Any]] = (),
    by: By | None = None,
    workload: str | None = None,
) -> None:
    """Fills an existing folder with the files of one run; see ``docs/reference/formats/bundle.md``.

    ``outcome`` is what ``Run.join()`` of the engine returns, ``environment`` what
    :func:`loadstone.bundle.environment.snapshot` does, ``windows`` the figures of windows of measurement;
    ``by`` and ``workload`` as in :func:`summarise`. Callers make it whole or absent with
    :func:`loadstone.bundle.aside`. Raises ``Error`` where figures by thread are asked for and were not
    recorded, and ``OSError`` where a file cannot be written.
    """
    host = str(environment.get("host") or "host")
    write_json(folder / "plan.json", plan)
    make_folder(folder / "environment")
    write_json(folder / "environment" / f"{host.replace('/', '_')}.json", environment)
    table.write(folder / "ops.parquet", ops_columns(outcome, host), _meta())
    table.write(folder / "series.parquet", series_columns(plan, outcome), _meta())
    all_events = list(events)
    device: Mapping[str, Any] | None = None
    if observation is not None:
        device = observation.device
        metadata = {**_meta(), "ticks_per_s": str(observation.ticks_per_s)}
        table.write(folder / "response.parquet", observation.columns, metadata)
        all_events += [Event(*event) for event in observation.events]
        if observation.readings:
            time, name, value = zip(*observation.readings, strict=True)
            table.write(
                folder / "probes.parquet",
                {
                    "time": np.array(time, dtype=np.int64),
                    "name": list(name),
                    "value": np.array(value, dtype=np.float64),
                },
                _meta(),
            )
    all_events.sort(key=lambda e: e.time)
    # A trace stays private where its bundle does not.
    of_trace = any(artefact["kind"] == "trace" for artefact in plan.get("artefacts", ()))
    told = without_quotes if of_trace else str
    table.write(
        folder / "events.parquet",
        {
            "time": np.array([e.time for e in all_events], dtype=np.int64),
            "kind": [e.kind for e in all_events],
            "text": [told(e.text) for e in all_events],
        },
        _meta(),
    )
    summary = summarise(plan, outcome, by, workload)
    summary["host"] = host
    if windows:
        summary["windows"] = list(windows)
    summary["warnings"] = [e.text for e in all_events if e.kind in ("warning", "reset", "missed", "probe")]
    if unissued := summary["lateness"].get("unissued"):
        least = "at least " if summary["lateness"]["more_unissued"] else ""
        summary["warnings"].append(
            f"{least}{unissued:,} requests were due before the end and did not go out: the load fell behind; "
            "at a lower pace or rate, or with more depth, it may keep up"
        )
    if observation is not None:
        summary["observation"] = {
            "interval_ns": round(observation.interval * 1e9),
            "samples": len(observation.columns["time"]),
            "missed": observation.missed,
            "ticks_per_s": observation.ticks_per_s,
            "device": device and {key: device[key] for key in ("name", "major", "minor", "below", "iostats")},
        }
    summary["failure"] = summary["failure"] and told(summary["failure"])
    summary["notes"] = [told(note) for note in summary["notes"]]
    write_json(folder / "summary.json", summary)


def ops_columns(outcome: Mapping[str, Any], host: str) -> dict[str, Any]:
    """The columns of ``ops.parquet``."""
    ops = outcome["ops"]
    groups = list(ops["group"])
    return {
        "host": [host] * len(ops["op"]),
        "worker": np.asarray(ops["worker"], dtype=np.uint16),
        **({"thread": np.asarray(ops["thread"], dtype=np.uint16)} if "thread" in ops else {}),
        "group": [groups[int(w)] for w in ops["worker"]],
        "op": np.asarray(ops["op"], dtype=np.uint8),
        "name": step_names(ops),
        "errno": np.asarray(ops["errno"], dtype=np.int32),
        "interval": np.asarray(ops["interval"], dtype=np.uint32),
        "count": np.asarray(ops["count"], dtype=np.uint64),
        "bytes": np.asarray(ops["bytes"], dtype=np.uint64),
        **_lists(ops, "response"),
        **_lists(ops, "service"),
    }


def _lists(ops: Mapping[str, Any], kind: str) -> dict[str, table.Lists]:
    offsets = np.asarray(ops[f"{kind}_offsets"], dtype=np.int64)
    return {
        f"{kind}_bucket": table.Lists(offsets, np.asarray(ops[f"{kind}_bucket"], dtype=np.uint16)),
        f"{kind}_count": table.Lists(offsets, np.asarray(ops[f"{kind}_count"], dtype=np.uint64)),
    }


def series_columns(plan: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Per recorder interval: requests in flight and lateness, padded to the longest with NaN."""
    parts = {
        f"{prefix}_{name}": np.asarray(value, dtype=np.float64)
        for prefix in ("flight", "lateness")
        for name, value in (outcome.get(prefix) or {}).items()
        if isinstance(value, np.ndarray)
    }
    longest = max((len(p) for p in parts.values()), default=0)
    interval = int(plan.get("interval_ns", 1_000_000_000))
    out: dict[str, Any] = {"time": np.arange(longest, dtype=np.int64) * interval}
    for name, part in parts.items():
        out[name] = np.concatenate((part, np.full(longest - len(part), np.nan)))
    return out


def summarise(
    plan: Mapping[str, Any],
    outcome: Mapping[str, Any],
    by: By | None = None,
    workload: str | None = None,
) -> dict[str, Any]:
    """The object of ``summary.json``, which ``run --json`` prints too.

    ``by``: what it is divided by besides ops and steps. ``workload``: what the load is called.
    """
    s, ops = outcome["summary"], outcome["ops"]
    elapsed = max(int(s["elapsed_ns"]), 1)
    started = int(s["started"])
    everything = np.ones(len(ops["op"]), dtype=bool)
    good = (np.asarray(ops["errno"]) == 0) & (np.asarray(ops["op"]) != OTHER)
    steps = by_step(ops, everything, elapsed / 1e9)
    return {
        "format": "loadstone-run",
        "version": VERSION,
        "loadstone": __version__,
        **({"workload": workload} if workload else {}),
        "partial": bool(s["partial"]),
        "failure": s.get("failure"),
        "started": datetime.datetime.fromtimestamp(started / 1e9, datetime.UTC).isoformat(
            timespec="milliseconds"
        ),
        "started_unix_ns": started,
        "started_monotonic_ns": int(s["monotonic_start_ns"]),
        "elapsed_ns": elapsed,
        "interval_ns": int(plan.get("interval_ns", 1_000_000_000)),
        "requests": int(s["requests"]),
        "bytes": int(s["bytes"]),
        "ops_per_s": (int(s["requests"]) - int(s["errors"]) - int(s["short"])) / (elapsed / 1e9),
        "bytes_per_s": int(s["bytes"]) / (elapsed / 1e9),
        "errors": int(s["errors"]),
        "short": int(s["short"]),
        **({"written_back": dict(back)} if (back := s.get("written_back")) else {}),
        "ops": by_op(ops, everything, elapsed / 1e9),
        **({"steps": steps} if steps else {}),
        **({f"{by}s": parts(ops, by, elapsed / 1e9)} if by else {}),
        **({"values": outcome["values"]} if outcome.get("values") else {}),
        **({"spans": outcome["spans"]} if outcome.get("spans") else {}),
        "response_ns": merged(ops, "response", good).summary(),
        "service_ns": merged(ops, "service", good).summary(),
        "lateness": lateness(outcome.get("lateness") or {}),
        "cpu": {"user_ns": int(s["cpu_user_ns"]), "system_ns": int(s["cpu_system_ns"])},
        "damaged": int(s.get("damaged", 0)),
        **({"left_out": left_out} if (left_out := int(s.get("left_out", 0))) else {}),
        **({"steady": {**_steady(plan), **steady}} if (steady := s.get("steady")) else {}),
        **({"depths": depths} if (depths := s.get("depths")) else {}),
        **({"ramp_requests": ramp} if (ramp := int(s.get("ramp_requests", 0))) else {}),
        **({"drawn_first": drawn} if (drawn := int(s.get("drawn_first", 0))) else {}),
        "notes": [*_performs_nothing(plan), *s.get("notes", [])],
        **({"content": outcome["content"]} if outcome.get("content") else {}),
        **({"verified": verified} if (verified := of_outcome(outcome)) else {}),
        "log": {
            "logged": int(s.get("logged", 0)),
            "dropped": int(s.get("dropped", 0)),
            **({"failure": s["unlogged"]} if s.get("unlogged") else {}),
        },
    }


def _steady(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The steady state that a plan asks for."""
    return next((dict(step["steady"]) for step in plan.get("steps", ()) if step.get("steady")), {})


def _performs_nothing(plan: Mapping[str, Any]) -> list[str]:
    """Rates of a run on ``null:`` look like those of storage."""
    kinds = {target.get("kind") for target in plan.get("targets", ())}
    return ["nothing was performed on storage: null: keeps nothing"] if kinds == {"null"} else []


def write_series(
    folder: Path, kind: str, runs: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]
) -> None:
    """Writes ``bundle.json`` and ``summary.json`` of a bundle of bundles.

    ``runs`` are in order, each with at least ``name`` and ``path`` (relative to the folder). Other files that
    are in the folder are listed, so that they are known as part of the bundle.
    """
    own = {"bundle.json", "summary.json", MARK, *(run["path"] for run in runs)}
    write_json(
        folder / "bundle.json",
        {
            "format": "loadstone-series",
            "version": VERSION,
            "loadstone": __version__,
            "kind": kind,
            "runs": list(runs),
            "files": sorted(
                file.name for file in folder.iterdir() if file.is_file() and file.name not in own
            ),
        },
    )
    write_json(
        folder / "summary.json",
        {
            "format": "loadstone-series",
            "version": VERSION,
            "loadstone": __version__,
            "kind": kind,
            **summary,
        },
    )


__all__ = ["SHORT", "Event", "merged", "summarise", "write_bundle", "write_series"]
