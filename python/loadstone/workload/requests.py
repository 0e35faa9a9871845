"""Lowering: a trace, a model or a name becomes a plan."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from loadstone import _core, _units, _values
from loadstone._files import absolute
from loadstone._values import MOST, is_null
from loadstone.errors import Error, OptionError
from loadstone.plan import targets
from loadstone.plan.facts import look, reading_of
from loadstone.plan.kinds import Unused
from loadstone.plan.offsets import sizes_of, skew_of
from loadstone.plan.options import (
    NOTHING,
    Place,
    RunOptions,
    arrival_of,
    backend_of,
    depth_of,
    pace_asked,
    pace_of,
)
from loadstone.plan.parts import artefact as artefact_of
from loadstone.plan.parts import check_made, with_content
from loadstone.plan.steering import latency_target_of, steady_of
from loadstone.plan.surroundings import priorities_of, size_of, steps_of

# Larger artefacts are named by path alone: hashing them would take longer than many a run.
_HASHED = 1 << 30


def plan_replay(trace: Place, on: Place | None, options: RunOptions = NOTHING) -> dict[str, Any]:
    """A plan that replays a trace (any known format) on a target.

    ``on`` is a path or ``null:``; it may be None when ``options.maps`` names a target for every object.
    Objects that share a target lie end to end on it, in order of their numbers, each rounded up to
    4 KiB. Raises ``Error`` where that cannot be run.

    A trace of file-level requests (strace, NFS) goes to a tree of files below the directory ``on``, which
    is built as the trace found it; its order is ``completion`` where it has latencies, unless said.
    """
    plan = _requests(trace, "trace", on, options, reading_of(options.reading))
    if options.order == "dependency":
        within = 1.0 if options.within is None else options.within
        if not 0 <= within < 9e9:
            raise OptionError("within", f"{within:g}", "must be 0 or more seconds")
        plan["workers"][0]["within_ns"] = round(within * 1e9)
    return _thinking(plan, options)


def plan_model(model: Place, on: Place | None, options: RunOptions = NOTHING) -> dict[str, Any]:
    """A plan that runs a model (``.mdh``) on a target; see :func:`plan_replay` for the target.

    An order of dependencies is for models that draw think times (``fit --think``): a request waits for the
    answer that its model says and then for its think time.
    """
    plan = _requests(model, "model", on, options)
    if options.draw_first is not None:
        plan["workers"][0]["source"]["draw"] = "first" if options.draw_first else "meanwhile"
    return _thinking(plan, options)


def _thinking(plan: dict[str, Any], options: RunOptions) -> dict[str, Any]:
    """The plan with think times divided by a number, 0 for none, where requests depend on others."""
    if options.order != "dependency":
        return plan
    think = 1.0 if options.think is None else options.think
    if not 0 <= think < math.inf:
        raise OptionError("think", f"{think:g}", "think times are divided by 0 or more")
    plan["workers"][0]["think"] = float(think)
    return check_made(plan)


UNIFORM = {
    "randread": (1.0, False),
    "randwrite": (0.0, False),
    "randrw": (0.5, False),
    "read": (1.0, True),
    "write": (0.0, True),
    "rw": (0.5, True),
    "readwrite": (0.5, True),
    "trim": (0.0, True),
    "randtrim": (0.0, False),
}
_TRIMS = ("trimwrite", "randtrimwrite")


def plan_uniform(name: str, on: Place | None, options: RunOptions = NOTHING) -> dict[str, Any]:
    """A plan of aligned requests, without end: give it a duration or a number.

    ``name``: ``randread``, ``randwrite``, ``randrw`` or ``randtrim``, which go anywhere; ``read``, ``write``,
    ``rw`` (also ``readwrite``) or ``trim``, which ascend. Trims discard. The variables are ``reads``, the
    share of reads where the name mixes both, ``bs`` and ``rate``.
    """
    if name in _TRIMS:
        raise Error(
            f"{name}: discards that are followed by writes of the same blocks cannot be drawn; use randtrim"
        )
    if name not in UNIFORM:
        raise Error(
            f"{name}: is not a workload; there are {', '.join(UNIFORM)}, models (.mdh) and plans (.json)"
        )
    if on is None:
        raise Error("no target; give `on` FILE, `on` DEVICE or `on` null:")
    share, sequential = UNIFORM[name]
    # Several sizes are for suites: that is told first.
    size_of(options)
    numbers = _variables(name, options)
    if "reads" in numbers:
        if share != 0.5:
            raise OptionError(
                "variables", f"reads={numbers['reads']:g}", f"{name} says it already; use randrw or rw"
            )
        share = numbers["reads"]
    rate = numbers.get("rate", options.rate or 0.0)
    unit, sizes = sizes_of(int(numbers["bs"]) if "bs" in numbers else options.bs or 4096)
    if not options.duration and not options.requests:
        raise Error(f"{name} has no end: give `duration` or `requests`")
    if options.direct and any(one % 512 for one in (unit, *(int(row["low"]) for row in sizes))):
        raise OptionError("bs", None, "with `direct`, requests are whole sectors: use a multiple of 512")
    if options.sync == "recorded":
        raise Unused("sync", "recorded", f"{name} has no requests of a trace or model; use sync or dsync")
    found = targets.find(on, options.allow_destroy)
    targets.check_allowed([found], options.allow_destroy)
    size = _size(found, options, None if found.kind != "null" else 1 << 40)
    lowered = targets.lower("t0", found, size, share > 0, options)
    source: dict[str, Any] = {
        "kind": "uniform",
        "reads": share,
        "size": unit,
        "sequential": sequential,
        "rate": rate,
    }
    if name.endswith("trim"):
        source["discards"] = True
    if sizes:
        source["sizes"] = sizes
    skew = options.skew or "uniform"
    if (hot := skew_of(skew))["kind"] != "uniform":
        if sequential:
            raise OptionError("skew", skew, f"{name} goes from block to block; use a rand one")
        source["skew"] = hot
    arrival = options.arrival or "constant"
    law = arrival_of(arrival)
    artefacts = []
    if law["kind"] == "trace":
        times = absolute(arrival.strip().partition(":")[2])
        check_exists(times, "trace")
        artefacts.append(artefact_of(times, "trace", "arrivals", _HASHED))
    elif law["kind"] != "constant" and rate <= 0:
        raise OptionError("arrival", arrival, "is for requests at a rate; give `rate`, too")
    if law["kind"] != "constant":
        source["arrival"] = law
    is_open = rate > 0 or law["kind"] == "trace"
    pace: dict[str, object] = {"kind": "open", "speed": 1.0} if is_open else {"kind": "closed"}
    extents = [{"object": 0, "target": "t0", "base": 0, "size": size}]
    map_ = {"objects": extents, "offsets": options.offsets or "error"}
    worker = _worker(source, pace, "none", map_, found.kind == "null", share >= 1.0, options)
    return _plan([lowered], artefacts, worker, options)


def _variables(name: str, options: RunOptions) -> dict[str, float]:
    """Numbers of the variables that a uniform load has."""
    found: dict[str, float] = {}
    for key, value in options.variables.items():
        if key not in ("bs", "reads", "rate"):
            raise OptionError("variables", key, f"{name} has the variables bs, reads and rate")
        if getattr(options, key, None) is not None:
            raise OptionError(key, None, f"and `variables` {key}= say the same; give one of them")
        read = {"bs": _values.size, "reads": _values.share, "rate": _values.rate}[key]
        try:
            found[key] = read(str(value))
        except Error as error:
            raise OptionError("variables", f"{key}={value}", str(error)) from None
    return found


def _requests(
    path: Place,
    kind: Literal["trace", "model"],
    on: Place | None,
    options: RunOptions,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The common part of replays and models: objects laid out on targets."""
    named = "independent" if options.order == "dependency" else "pace"
    pace = pace_of(pace_asked(options), named)
    artefact = absolute(path)
    check_exists(artefact, kind)
    # Only a target that was there before and is not given up must know whether it will be written.
    maps = options.maps
    names = [*([] if on is None or os.path.isdir(on) else [on]), *maps.values()]
    looked = [targets.find(name, options.allow_destroy) for name in names]
    kept = any(f.kind != "null" and not f.new and not f.allowed for f in looked)
    facts = look(kind, artefact, reading, ops=kept)
    of_files = facts["layer"] in _FILES
    if on is not None and (os.path.isdir(on) or (of_files and not maps and not is_null(on))):
        return _on_tree(path, artefact, kind, on, pace, facts, options, reading)
    if kind == "model" and of_files:
        raise Error(f"{path}: draws requests of files; name a directory with `on`")
    if kind == "trace" and of_files:
        _refuse_calls(path, artefact, reading)
    order = options.order or "none"
    _can_order(path, kind, order, facts)
    laid, extents, null = _layout(facts["objects"], on, maps, options)
    map_ = {"objects": extents, "offsets": options.offsets or "error"}
    source = {"kind": kind, "artefact": "source"}
    worker = _worker(source, pace, order, map_, null, bool(facts["reads_only"]), options)
    return _plan(laid, [artefact_of(artefact, kind, "source", _HASHED, reading)], worker, options)


def _can_order(path: Place, kind: str, order: str, facts: dict[str, Any]) -> None:
    """Refuses an order that the source knows too little for."""
    if order == "none" or facts["latencies"] or (order == "dependency" and facts["dependent"]):
        return
    if kind == "model":
        what = f"draws no think times, which `order` {order} needs"
        raise Error(f"{path}: {what}; fit it with loadstone model fit --think")
    raise Error(f"{path}: has no latencies, which `order` {order} needs; use `order` none")


_OF_BLOCKS = ("read", "write", "flush", "discard", "sync", "datasync", "commit")


def _refuse_calls(path: Place, artefact: str, reading: Mapping[str, Any] | None) -> None:
    """Refuses a trace of files where it goes to no directory and has requests that blocks cannot have."""
    names = dict(_core.trace_ops())
    reader = _core.TraceReader([artefact], json.dumps(reading or {}))
    while (batch := reader.next()) is not None:
        for code in set(batch["op"].tolist()):
            if (name := names.get(code, str(code))) not in _OF_BLOCKS:
                raise Error(
                    f"{path}: has requests of files, such as {name}, which only a tree of files can have; "
                    "name a directory with `on`"
                )


# Layers whose objects are paths.
_FILES = ("file", "nfs")
_BLOCK_ONLY = ("size", "maps", "offsets", "direct", "sync", "fill", "log", "fadvise")
_USUAL = {"offsets": "error", "sync": "none", "fadvise": "normal"}


def _on_tree(
    path: Place,
    artefact: str,
    kind: Literal["trace", "model"],
    on: Place,
    pace: dict[str, object],
    facts: dict[str, Any],
    options: RunOptions,
    reading: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """A plan of requests on names, in a tree of files below a directory."""
    if facts["layer"] not in _FILES:
        raise Error(
            f"{os.fspath(on)}: is a directory, and {path} has no requests of files; name a file inside it"
        )
    given = options.given()
    for name in _BLOCK_ONLY:
        if name in given and given[name] not in (False, _USUAL.get(name)):
            raise Unused(name, None, f"is for block targets, and {path} goes to files; leave it out")
    if options.backend not in (None, "auto", "files"):
        raise OptionError("backend", options.backend, "requests of files are performed by system calls only")
    order = options.order or ("completion" if facts["latencies"] else "none")
    _can_order(path, kind, order, facts)
    # Without latencies nothing tells what may overlap, and what is made must be there before it is used.
    ordered = facts["latencies"] or order == "dependency"
    root = targets.tree(on, options.allow_destroy)
    worker = {
        "group": options.group or "",
        "source": {"kind": kind, "artefact": "source"},
        "pace": pace,
        "order": order,
        "backend": "files",
        "depth": options.depth or (32 if ordered else 1),
        "cpus": list(options.cpus),
        **priorities_of(options),
        "requests": options.requests or 0,
    }
    return _plan([root], [artefact_of(artefact, kind, "source", _HASHED, reading)], worker, options)


def check_exists(path: str, kind: str) -> None:
    """Raises ``Error`` where there is no such file; a blktrace capture is named by what its files share."""
    if os.path.exists(path) or (kind == "trace" and _core.trace_files(path)):
        return
    raise Error(f"{path}: there is no such {kind}")


def _mapped(objects: Sequence[Mapping[str, Any]], maps: Mapping[str, Place]) -> dict[int, Place]:
    """Targets by id of the object: a key is a name, or an id where no object is called so."""
    found: dict[int, Place] = {}
    for key, path in maps.items():
        named = [entry["object"] for entry in objects if entry["name"] == key]
        meant = named or [entry["object"] for entry in objects if str(entry["object"]) == key]
        if not meant:
            known = ", ".join(str(e["name"] or e["object"]) for e in objects[:8])
            raise OptionError("maps", f"{key}=...", f"there is no such object; there are {known}")
        if not found.keys().isdisjoint(meant):
            raise OptionError("maps", f"{key}=...", "this object is mapped by another `maps`, too")
        found.update(dict.fromkeys(meant, path))
    return found


def _layout(
    objects: list[dict[str, Any]], target: Place | None, maps: Mapping[str, Place], options: RunOptions
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Targets, extents, and whether nothing is performed."""
    places: dict[str, list[dict[str, Any]]] = {}
    mapped = _mapped(objects, maps)
    for entry in objects:
        name = mapped.get(entry["object"], target)
        if name is None:
            label = entry["name"] or entry["object"]
            raise Error(f"object {label} has no target; give `on`, or `maps` {label}=TARGET")
        places.setdefault(os.fspath(name), []).append(entry)
    found = {name: targets.find(name, options.allow_destroy) for name in places}
    targets.check_allowed(found.values(), options.allow_destroy)
    kinds = {f.kind == "null" for f in found.values()}
    if len(kinds) > 1:
        raise Error("null: cannot be mixed with real targets; map every object to one kind")
    laid, extents = [], []
    for i, (name, entries) in enumerate(places.items()):
        base = 0
        for entry in entries:
            size = max(int(entry["end"]), 1)
            extents.append({"object": entry["object"], "target": f"t{i}", "base": base, "size": size})
            base += targets.blocks(size)
        if base > MOST:
            raise Error(f"the objects on {name} reach over {_units.size(base)} together, which no target has")
        size = _size(found[name], options, base)
        laid.append(targets.lower(f"t{i}", found[name], size, True, options))
    return laid, extents, True in kinds


def _size(found: targets.Found, options: RunOptions, needed: int | None) -> int:
    """Usable bytes: what was asked for, what there is, or what is needed."""
    asked = size_of(options)
    if asked is not None:
        if found.size is not None and asked > found.size and not (found.kind == "file" and found.allowed):
            raise Error(f"{found.path}: is too small: it has {found.size} bytes and `size` asks for {asked}")
        return asked
    if found.size is not None:
        return found.size
    if needed is None:
        raise Error(f"{found.path}: does not exist yet; give its size with `size`")
    if found.kind != "null" and options.offsets not in (None, "error"):
        raise Error(f"{found.path}: does not exist yet; give the size to {options.offsets} to with `size`")
    return needed


def _worker(
    source: Mapping[str, Any],
    pace: dict[str, object],
    order: str,
    map_: dict[str, Any],
    null: bool,
    reads_only: bool,
    options: RunOptions,
) -> dict[str, Any]:
    backend = backend_of(options.backend, null)
    return {
        "group": options.group or "",
        "source": dict(source),
        "pace": pace,
        "order": order,
        "backend": backend,
        "depth": depth_of(options.depth, backend, pace["kind"] == "open"),
        "cpus": list(options.cpus),
        **priorities_of(options),
        "map": map_,
        "requests": options.requests or 0,
        "reads_only": reads_only,
    }


def _plan(
    targets: list[dict[str, Any]],
    artefacts: list[dict[str, Any]],
    worker: dict[str, Any],
    options: RunOptions,
) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    real = [t for t in targets if t["kind"] != "null"]
    if real:
        steps.append({"step": "prepare"})
    limit = options.memory_limit
    # The target null: has no cache, but whoever asks for a policy shall hear of that.
    steps += steps_of(options.cache, limit, "drop" if real else "none")
    duration = options.duration or 0.0
    if duration < 0:
        raise OptionError("duration", duration, "must not be negative")
    interval = options.interval or 1.0
    steps.append({"step": "run", "duration_ns": round(duration * 1e9)})
    if options.until_steady is not None:
        steps[-1]["steady"] = steady_of(options.until_steady, interval)
    if options.latency_target is not None:
        worker = {**worker, "latency_target": latency_target_of(options.latency_target)}
    plan: dict[str, Any] = {
        "version": 1,
        "seed": options.seed or 0,
        "interval_ns": round(interval * 1e9),
        "targets": targets,
        "artefacts": artefacts,
        "workers": [worker],
        "steps": steps,
    }
    if limit is not None:
        plan["memory_limit"] = limit
    plan |= with_content(plan, options.asked_content)
    if (verify := options.asked_verify) is not None:
        plan["verify"] = dict(verify)
    if options.log is not None:
        plan["log"] = absolute(options.log)
    return check_made(plan)
