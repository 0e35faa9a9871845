"""What ends or steers jobs by what they have reached: steady states, latencies, shares of several jobs."""

from __future__ import annotations

import re
from typing import Any

from loadstone.fio import _values
from loadstone.fio._read import Entry, Job
from loadstone.plan.steering import steady

_CRITERIA = ("iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope")


def read_steady(job: Job, interval: float, notes: list[str]) -> dict[str, Any] | None:
    """The steady state that ends a job; None where it asks for none."""
    entries = job.entries
    entry, lasts = entries.get("steadystate"), entries.get("steadystate_duration")
    window = 0.0 if lasts is None else _values.seconds(lasts)
    if entry is None:
        return None
    what, colon, text = entry.value.partition(":")
    if what not in _CRITERIA or not colon:
        entry.refuse(f"write one of {', '.join(_CRITERIA)}, and a limit behind, as in iops:10%")
    if not window:
        # fio asks for none then, either.
        notes.append("steadystate has no effect without steadystate_duration, in fio either")
        return None
    relative = text.strip().endswith("%")
    if relative:
        limit = _values.decimal(entry, text.strip()[:-1]) / 100
    elif what.startswith("bw"):
        limit = float(_values.size(entry, text))
    else:
        limit = _values.decimal(entry, text)
    if not limit:
        entry.refuse("a limit of 0 is never kept; write more")
    ramp, check = entries.get("steadystate_ramp_time"), entries.get("steadystate_check_interval")
    sample = 1.0 if check is None else _values.seconds(check)
    if sample < 1:
        assert check is not None
        check.refuse("must be 1 s or more")
    found = steady(
        what, limit, relative, window, 0.0 if ramp is None else _values.seconds(ramp), interval, sample
    )
    if found["window_ns"] % found["sample_ns"] or found["window_ns"] < 2 * found["sample_ns"]:
        assert lasts is not None
        told = f"{found['sample_ns'] / 1e9:g} s"
        lasts.refuse(f"must be two samples or more, and whole ones; a sample is {told}")
    notes.append("steadystate is judged of all jobs that run together, and ends them all")
    return found


def read_latency(job: Job) -> dict[str, Any] | None:
    """The latency that a job's depth is searched for; None where it asks for none."""
    entries = job.entries
    entry = entries.get("latency_target")
    if entry is None or not (target := _values.microseconds(entry)):
        return None
    window, percent, follow = (
        entries.get(key) for key in ("latency_window", "latency_percentile", "latency_run")
    )
    share = 1.0 if percent is None else _values.decimal(percent, percent.value) / 100
    if not 0 < share <= 1:
        assert percent is not None
        percent.refuse("must be above 0 and at most 100")
    found: dict[str, Any] = {
        "ns": round(target * 1e9),
        "share": share,
        "window_ns": 0 if window is None else round(_values.microseconds(window) * 1e9),
    }
    if follow is not None and _values.flag(follow):
        found["follow"] = True
    return found


def read_flow(job: Job) -> dict[str, Any] | None:
    """A job's share of the requests of all jobs of its flow; None where it has none."""
    entries = job.entries
    weight, ident, sleep = (entries.get(key) for key in ("flow", "flow_id", "flow_sleep"))
    if weight is None or not (part := _values.number(weight, most=1000)):
        return None
    found = {"weight": part}
    if ident is not None:
        found["id"] = _values.number(ident, most=(1 << 32) - 1)
    if sleep is not None:
        found["wait_ns"] = round(_values.microseconds(sleep) * 1e9)
    return found


def read_zones(job: Job) -> tuple[int, int] | None:
    """Bytes of a zone that is read or written in a row, and from its begin to that of the next one."""
    entries = job.entries
    keys = ("zonesize", "zonerange", "zoneskip")
    mode = entries.get("zonemode")
    if mode is None or mode.value == "none":
        for key in keys:
            if key in entries and _values.size(entries[key]):
                entries[key].refuse("needs zonemode=strided")
        return None
    if mode.value != "strided":
        mode.refuse("fio knows it, Loadstone does not: zoned devices are not known here; write strided")
    length, reach, skip = (_values.size(entries[key]) if key in entries else 0 for key in keys)
    if not length:
        mode.refuse("needs zonesize")
    if reach and reach < length:
        entries["zonerange"].refuse("is less than zonesize, of which it is the reach")
    return length, (reach or length) + skip


def read_sequence(entry: Entry, job: Job) -> tuple[list[int], int]:
    """Numbers of blocks that come one after the other, and how far they move on each time."""
    _, _, text = entry.value.partition(":")
    if not re.fullmatch(r"\s*\d{1,12}\s*(,\s*\d{1,12}\s*)*", text, re.ASCII):
        entry.refuse("write the numbers of blocks, as in sequence:2,0,1")
    stride = job.entries.get("random_sequence_stride")
    return [int(part) for part in text.split(",")], 0 if stride is None else _values.number(stride)
