"""Lowering: a trace, a model or a name becomes a plan."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from loadstone import Error, _core, _units
from loadstone._values import MOST, Misused, is_null
from loadstone.plan import targets
from loadstone.plan.facts import look, reading_of
from loadstone.plan.kinds import Unused
from loadstone.plan.offsets import sizes_of, skew_of
from loadstone.plan.options import (
    Options,
    Pace,
    Path,
    arrival_of,
    backend_of,
    depth_of,
    pace_of,
    refuse_unknown,
)
from loadstone.plan.parts import artefact as artefact_of
from loadstone.plan.parts import check_made, with_content
from loadstone.plan.surroundings import priorities_of, steps_of
from loadstone.trace import Options as Reading

# Larger artefacts are named by path alone: hashing them would take longer than many a run.
_HASHED = 1 << 30


def plan_replay(
    trace: Path,
    target: Path | None,
    *,
    pace: Pace = "recorded",
    order: Literal["none", "completion", "dependency"] | None = None,
    think: float = 1.0,
    within: float = 1.0,
    reading: Reading | None = None,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """A plan that replays a trace (any known format) on a target.

    ``target`` is a path or ``null:``; it may be None when ``maps`` names a target for every object.
    Objects that share a target lie end to end on it, in order of their numbers, each rounded up to
    4 KiB. ``order="completion"``: a request goes out only when everything that had completed before
    its submission in the trace has completed again. ``order="dependency"``: a request waits for the
    completion of its actor that came last before its submission, if that was at most ``within`` seconds
    before, and then for the time between them divided by ``think`` (0: no time); ``pace`` is that of
    requests that depend on none. ``reading`` says how the trace is read, and the plan keeps it: options of
    :class:`loadstone.trace.Options` but ``dependencies`` and ``threads``. Raises ``Error`` where that cannot
    be run.

    A trace of file-level requests (strace, NFS) goes to a tree of files below the directory ``target``, which
    is built as the trace found it; its order is ``completion`` where it has latencies, unless said.
    """
    source = {"kind": "trace", "artefact": "source"}
    plan = _requests(trace, "trace", source, target, pace, order, options, reading_of(reading))
    if order == "dependency":
        if not 0 <= within < 9e9:
            raise Misused(f"completions within {within:g} s: must be 0 or more")
        plan["workers"][0]["within_ns"] = round(within * 1e9)
        plan = _thinking(plan, think)
    return plan


def plan_model(
    model: Path,
    target: Path | None,
    *,
    pace: Pace = "recorded",
    order: Literal["none", "dependency"] | None = None,
    think: float = 1.0,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """A plan that runs a model (``.mdh``) on a target; see :func:`plan_replay` for the target.

    ``order="dependency"``, for models that draw think times (``fit --think``): a request waits for the answer
    that its model says and then for its think time divided by ``think``; ``pace`` is that of the others.
    """
    source = {"kind": "model", "artefact": "source"}
    plan = _requests(model, "model", source, target, pace, order, options)
    return _thinking(plan, think) if order == "dependency" else plan


def _thinking(plan: dict[str, Any], think: float) -> dict[str, Any]:
    """The plan with think times divided by a number, 0 for none."""
    if not 0 <= think < math.inf:
        raise Misused(f"think times divided by {think:g}: must be 0 or more")
    plan["workers"][0]["think"] = float(think)
    return check_made(plan)


_UNIFORM = {
    "randread": (1.0, False),
    "randwrite": (0.0, False),
    "randrw": (0.5, False),
    "read": (1.0, True),
    "write": (0.0, True),
    "rw": (0.5, True),
    "readwrite": (0.5, True),
}
_TRIMS = ("trim", "randtrim", "trimwrite", "randtrimwrite")


def plan_uniform(
    name: str,
    target: Path,
    *,
    bs: int | str = 4096,
    reads: float | None = None,
    rate: float = 0.0,
    arrival: str = "constant",
    skew: str = "uniform",
    **options: Unpack[Options],
) -> dict[str, Any]:
    """A plan of aligned requests of ``bs`` bytes, without end: give it a duration or a number.

    ``name``: ``randread``, ``randwrite``, ``randrw``, ``read``, ``write`` or ``rw`` (the last three
    ascend; ``readwrite`` is ``rw``). ``bs``: one size, a range ``4k-64k`` of multiples of its smallest, and
    its largest, or shares ``4k:60,64k:40``. ``reads``: share of reads where the name mixes both. ``skew``:
    how random requests are shared out among blocks: ``uniform``, ``zipf:EXPONENT``, ``pareto:SHARE`` (that
    share of the blocks gets the rest of the requests) or ``hotcold:ACCESSES,SPACE`` (shares of requests
    and of blocks); hot blocks are spread over the target, by ``seed``. ``rate``: requests per second at an
    open pace; 0: as fast as ``depth`` in flight allow. ``arrival``: how they are spread over time at that
    rate: ``constant``, ``poisson``, ``gamma:SHAPE``, ``hyper:VARIATION`` (the squared coefficient of
    variation), ``onoff:ON,OFF`` (mean seconds of both, without memory while on) or ``trace:FILE``: at the
    times of a trace's requests, over and over, stretched to the rate if there is one.
    """
    refuse_unknown(options)
    if name in _TRIMS:
        raise Error(f"{name}: discards cannot be drawn yet; traces with discards are replayed")
    if name not in _UNIFORM:
        raise Error(
            f"{name}: is no workload; there are {', '.join(_UNIFORM)}, models (.mdh) and plans (.json)"
        )
    share, sequential = _UNIFORM[name]
    if reads is not None:
        if share != 0.5:
            raise Error(f"reads={reads}: {name} says it already; use randrw or rw for a mix")
        share = reads
    unit, sizes = sizes_of(bs)
    if not options.get("duration") and not options.get("requests"):
        raise Error(f"{name} has no end: give --duration or --requests")
    if options.get("sync") == "recorded":
        raise Unused(f"--sync recorded: {name} has no requests of a trace or model; use sync or dsync")
    found = targets.find(target, options)
    targets.check_allowed([found], options)
    size = _size(found, options, None if found.kind != "null" else 1 << 40)
    lowered = targets.lower("t0", found, size, share > 0, options)
    source: dict[str, Any] = {
        "kind": "uniform",
        "reads": share,
        "size": unit,
        "sequential": sequential,
        "rate": rate,
    }
    if sizes:
        source["sizes"] = sizes
    if (hot := skew_of(skew))["kind"] != "uniform":
        if sequential:
            raise Misused(f"--skew {skew}: {name} goes from block to block; use a rand one")
        source["skew"] = hot
    law = arrival_of(arrival)
    artefacts = []
    if law["kind"] == "trace":
        times = os.path.abspath(arrival.strip().partition(":")[2])
        check_exists(times, "trace")
        artefacts.append(artefact_of(times, "trace", "arrivals", _HASHED))
    elif law["kind"] != "constant" and rate <= 0:
        raise Misused(f"--arrival {arrival}: is for requests at a rate; give --rate, too")
    if law["kind"] != "constant":
        source["arrival"] = law
    is_open = rate > 0 or law["kind"] == "trace"
    pace: dict[str, object] = {"kind": "open", "speed": 1.0} if is_open else {"kind": "closed"}
    extents = [{"object": 0, "target": "t0", "base": 0, "size": size}]
    map_ = {"objects": extents, "offsets": options.get("offsets", "error")}
    worker = _worker(source, pace, "none", map_, found.kind == "null", share >= 1.0, options)
    return _plan([lowered], artefacts, worker, options)


def _requests(
    path: Path,
    kind: Literal["trace", "model"],
    source: dict[str, str],
    target: Path | None,
    pace: Pace,
    order: str | None,
    options: Options,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The common part of replays and models: objects laid out on targets."""
    refuse_unknown(options)
    lowered_pace = pace_of(pace)
    artefact = os.path.abspath(path)
    check_exists(artefact, kind)
    if target is not None and os.path.isdir(target):
        facts = look(kind, artefact, reading)
        return _on_tree(path, artefact, source, target, lowered_pace, order, facts, options, reading)
    # Only a target that was there before and is not given up must know whether it will be written.
    maps = dict(options.get("maps", {}))
    names = ([] if target is None else [target]) + list(maps.values())
    kept = any(
        f.kind != "null" and not f.new and not f.allowed for f in (targets.find(n, options) for n in names)
    )
    facts = look(kind, artefact, reading, ops=kept)
    if facts["layer"] in _FILES and target is not None and not maps and not is_null(target):
        return _on_tree(path, artefact, source, target, lowered_pace, order, facts, options, reading)
    if kind == "model" and facts["layer"] in _FILES:
        raise Error(f"{path}: draws requests of files; name a directory with --on")
    if kind == "trace" and facts["layer"] in _FILES:
        _refuse_calls(path, artefact, reading)
    order = order or "none"
    _can_order(path, kind, order, facts)
    laid, extents, null = _layout(facts["objects"], target, maps, options)
    map_ = {"objects": extents, "offsets": options.get("offsets", "error")}
    worker = _worker(source, lowered_pace, order, map_, null, bool(facts["reads_only"]), options)
    return _plan(laid, [artefact_of(artefact, kind, "source", _HASHED, reading)], worker, options)


def _can_order(path: Path, kind: str, order: str, facts: dict[str, Any]) -> None:
    """Refuses an order that the source knows too little for."""
    if order == "none" or facts["latencies"] or (order == "dependency" and facts["dependent"]):
        return
    if kind == "model":
        raise Error(f"{path}: draws no think times, which --order {order} needs; fit it with --think")
    raise Error(f"{path}: has no latencies, which --order {order} needs; use --order none")


_OF_BLOCKS = ("read", "write", "flush", "discard", "sync", "datasync", "commit")


def _refuse_calls(path: Path, artefact: str, reading: Mapping[str, Any] | None) -> None:
    """Refuses a trace of files where it goes to no directory and has requests that blocks cannot have."""
    names = dict(_core.trace_ops())
    reader = _core.TraceReader([artefact], json.dumps(reading or {}))
    while (batch := reader.next()) is not None:
        for code in set(batch["op"].tolist()):
            if (name := names.get(code, str(code))) not in _OF_BLOCKS:
                raise Error(
                    f"{path}: has requests of files, such as {name}, which only a tree of files can have; "
                    "name a directory with --on"
                )


# Layers whose objects are paths.
_FILES = ("file", "nfs")
_BLOCK_ONLY = ("size", "maps", "offsets", "direct", "sync", "fill", "log", "fadvise")


def _on_tree(
    path: Path,
    artefact: str,
    source: dict[str, str],
    target: Path,
    pace: dict[str, object],
    order: str | None,
    facts: dict[str, Any],
    options: Options,
    reading: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """A plan of requests on names, in a tree of files below a directory."""
    if facts["layer"] not in _FILES:
        raise Error(
            f"{os.fspath(target)}: is a directory, and {path} has no requests of files (its layer is "
            f"{facts['layer'] or 'not known'}); name a file inside it"
        )
    usual = {"offsets": "error", "sync": "none", "fadvise": "normal"}
    for name in _BLOCK_ONLY:
        if options.get(name) not in (None, False, {}, usual.get(name)):
            written = "map" if name == "maps" else name
            raise Unused(f"--{written}: is for block targets, and {path} goes to files; leave it out")
    if options.get("backend", "auto") not in ("auto", "files"):
        raise Misused(
            f"--backend {options.get('backend')}: requests of files are performed by system calls only"
        )
    order = order or ("completion" if facts["latencies"] else "none")
    _can_order(path, source["kind"], order, facts)
    # Without latencies nothing tells what may overlap, and what is made must be there before it is used.
    ordered = facts["latencies"] or order == "dependency"
    depth = options.get("depth") or (32 if ordered else 1)
    root = targets.tree(target, options)
    worker = {
        "group": options.get("group", ""),
        "source": dict(source),
        "pace": pace,
        "order": order,
        "backend": "files",
        "depth": depth,
        "cpus": list(options.get("cpus", ())),
        **priorities_of(options),
        "requests": options.get("requests", 0),
    }
    named = artefact_of(artefact, source["kind"], "source", _HASHED, reading)
    return _plan([root], [named], worker, options)


def check_exists(path: str, kind: str) -> None:
    """Raises ``Error`` where there is no such file; a blktrace capture is named by what its files share."""
    if os.path.exists(path) or (kind == "trace" and _core.trace_files(path)):
        return
    raise Error(f"{path}: there is no such {kind}")


def _mapped(objects: Sequence[Mapping[str, Any]], maps: Mapping[str, str]) -> dict[int, str]:
    """Targets by id of the object: a key is a name, or an id where no object is called so."""
    found: dict[int, str] = {}
    for key, path in maps.items():
        named = [entry["object"] for entry in objects if entry["name"] == key]
        meant = named or [entry["object"] for entry in objects if str(entry["object"]) == key]
        if not meant:
            known = ", ".join(str(e["name"] or e["object"]) for e in objects[:8])
            raise Misused(f"--map {key}=...: there is no such object; there are {known}")
        if not found.keys().isdisjoint(meant):
            raise Misused(f"--map {key}=...: this object is mapped by another --map, too")
        found.update(dict.fromkeys(meant, path))
    return found


def _layout(
    objects: list[dict[str, Any]], target: Path | None, maps: Mapping[str, str], options: Options
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Targets, extents, and whether nothing is performed."""
    places: dict[str, list[dict[str, Any]]] = {}
    mapped = _mapped(objects, maps)
    for entry in objects:
        name = mapped.get(entry["object"], target)
        if name is None:
            label = entry["name"] or entry["object"]
            raise Error(f"object {label} has no target; give --on, or --map {label}=TARGET")
        places.setdefault(os.fspath(name), []).append(entry)
    found = {name: targets.find(name, options) for name in places}
    targets.check_allowed(list(found.values()), options)
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


def _size(found: targets.Found, options: Options, needed: int | None) -> int:
    """Usable bytes: what was asked for, what there is, or what is needed."""
    asked = options.get("size")
    if asked is not None:
        if found.size is not None and asked > found.size and not (found.kind == "file" and found.allowed):
            raise Error(f"{found.path}: is too small: it has {found.size} bytes and --size asks for {asked}")
        return asked
    if found.size is not None:
        return found.size
    if needed is None:
        raise Error(f"{found.path}: does not exist yet; give its size with --size")
    if found.kind != "null" and options.get("offsets", "error") != "error":
        raise Error(
            f"{found.path}: does not exist yet; give the size to {options.get('offsets')} to with --size"
        )
    return needed


def _worker(
    source: Mapping[str, Any],
    pace: dict[str, object],
    order: str,
    map_: dict[str, Any],
    null: bool,
    reads_only: bool,
    options: Options,
) -> dict[str, Any]:
    backend = backend_of(options, null)
    return {
        "group": options.get("group", ""),
        "source": dict(source),
        "pace": pace,
        "order": order,
        "backend": backend,
        "depth": depth_of(options, backend, pace["kind"] == "open"),
        "cpus": list(options.get("cpus", ())),
        **priorities_of(options),
        "map": map_,
        "requests": options.get("requests", 0),
        "reads_only": reads_only,
    }


def _plan(
    targets: list[dict[str, Any]],
    artefacts: list[dict[str, Any]],
    worker: dict[str, Any],
    options: Options,
) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    real = [t for t in targets if t["kind"] != "null"]
    if real:
        steps.append({"step": "prepare"})
    limit = options.get("memory_limit")
    # The target null: has no cache, but whoever asks for a policy shall hear of that.
    steps += steps_of(options.get("cache"), limit, "drop" if real else "none")
    duration = options.get("duration") or 0.0
    if duration < 0:
        raise Misused(f"--duration {duration}: must not be negative")
    steps.append({"step": "run", "duration_ns": round(duration * 1e9)})
    plan: dict[str, Any] = {
        "version": 1,
        "seed": options.get("seed", 0),
        "interval_ns": round(options.get("interval", 1.0) * 1e9),
        "targets": targets,
        "artefacts": artefacts,
        "workers": [worker],
        "steps": steps,
    }
    if limit is not None:
        plan["memory_limit"] = limit
    plan |= with_content(plan, options.get("content"))
    if (verify := options.get("verify")) is not None:
        plan["verify"] = dict(verify)
    log = options.get("log")
    if log is not None:
        plan["log"] = os.path.abspath(log)
    return check_made(plan)
