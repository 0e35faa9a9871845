"""Arms from bundles: a bundle, a bundle of repeats, or a folder of bundles.

What lies in them may be a stranger's: no link and no path of theirs is followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadstone._other import wanted
from loadstone.bundle import Bundle, Series
from loadstone.bundle.check import damaged
from loadstone.bundle.metrics import metrics_of
from loadstone.compare.arm import Arm, RunValues
from loadstone.compare.differences import load_of, mixed
from loadstone.errors import Error, OptionError
from loadstone.stats.metric import Metric

Place = str | os.PathLike[str]


def read_arms(places: Sequence[Place]) -> list[Arm]:
    """An arm for each place, ``PATH`` or ``NAME=PATH``; two of one name are told apart by their folders.

    Raises ``Error`` for what is no bundle, has no whole run, or is given twice.
    """
    named = [_named(place) for place in places]
    seen: dict[str, str] = {}
    for _, path in named:
        real = os.path.realpath(path)
        if real in seen:
            raise Error(
                f"{path}: is given twice, also as {seen[real]}; how its own runs differ is told by `itself`"
            )
        seen[real] = os.fspath(path)
    short = [name or _name_of(path) for name, path in named]
    names = [
        os.path.join(path.resolve().parent.name, name) if short.count(name) > 1 and given is None else name
        for name, (given, path) in zip(short, named, strict=True)
    ]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(None, None, f"{twice}: two arms have this name; write NAME=PATH to tell them apart")
    return [read_arm(path, name) for name, (_, path) in zip(names, named, strict=True)]


def _named(place: Place) -> tuple[str | None, Path]:
    text = os.fspath(place)
    name, sign, path = text.partition("=")
    if not sign or os.path.lexists(text) or "/" in name:
        return None, Path(text)
    if not name or not path:
        raise OptionError(None, None, f"{text}: write NAME=PATH, or a path alone")
    return name, Path(path)


def _name_of(path: Path) -> str:
    return path.resolve().name.removesuffix(".bundle") or str(path)


def read_arm(path: Place, name: str | None = None) -> Arm:
    """An arm: the runs of a bundle, of a bundle of repeats, or of all bundles in a folder.

    Runs that ended early are left out, which its notes tell. Raises ``Error`` where no run is left.
    """
    with wanted("bundle", path):
        return _read_arm(Path(path), name)


def _read_arm(folder: Path, name: str | None) -> Arm:
    name = name or _name_of(folder)
    if not folder.is_dir():
        what = "is not a folder; a bundle is the folder in which a run kept its results"
        raise Error(f"{folder}: {what if os.path.lexists(folder) else 'does not exist'}")
    places = [folder] if _is_bundle(folder) else bundles_in(folder)
    runs: list[Bundle] = []
    notes: list[str] = []
    for place in places:
        found, early = _runs(place)
        runs += found
        notes += early
    if not runs:
        why = f": {notes[0]}" if notes else ""
        raise Error(f"{folder}: has no run that ended of itself, so there is nothing to compare{why}")
    return _arm(name, runs, notes)


def _is_bundle(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in ("bundle.json", "summary.json"))


def bundles_in(folder: Path) -> list[Path]:
    """The bundles in a folder, by name; raises ``Error`` where there is none, or a link may lead to one."""
    found = []
    for one in sorted(folder.iterdir()):
        if one.name.startswith("."):
            continue
        if one.is_symlink() and one.is_dir():
            raise Error(f"{one}: is a link, which is not followed; name the bundle it leads to")
        # A study has the bundle of each run in a folder of its own.
        inner = one / "bundle"
        if one.is_dir() and (_is_bundle(one) or (not inner.is_symlink() and _is_bundle(inner))):
            found.append(one if _is_bundle(one) else inner)
    if not found:
        raise Error(f"{folder}: is no bundle and holds none; loadstone run --out makes one")
    return found


def _runs(place: Path) -> tuple[list[Bundle], list[str]]:
    """Whole runs of a bundle, and what is said of those that are not."""
    if not os.path.lexists(place / "bundle.json"):
        one = Bundle.read(place)
        return ([], [f"{place.name} ended early and is left out"]) if one.partial else ([one], [])
    series = Series.read(place)
    if series.kind == "repeats":
        found = [one for one in series.repeats() if not one.partial]
        notes = ["a repeat that ended early is left out"] if series.partial else []
        repetition = series.summary.get("repetition")
        missed = repetition.get("missed") if isinstance(repetition, Mapping) else None
        if missed:
            notes.append(f"runs ended at their cap before {', '.join(map(str, missed))} was known as asked")
        return found, notes
    if series.kind != "script":
        what = f"is of kind {series.kind}, which has arms of its own"
        raise Error(f"{place}: {what}; its summary says how they compare")
    return ([], [f"{place.name} ended early and is left out"]) if series.partial else ([series], [])


def _arm(name: str, runs: Sequence[Bundle], notes: list[str]) -> Arm:
    metrics: dict[str, Metric] = {}
    found: list[RunValues] = []
    environments: list[Mapping[str, Any]] = []
    loads: list[Any] = []
    failed = 0
    for run in runs:
        own, values = metrics_of(run)
        for key, metric in own.items():
            metrics.setdefault(key, metric)
        parts = run.bundles()
        with damaged(str(run.path or name)):
            started = parts[0].summary.get("started_unix_ns")
            seconds = int(started) / 1e9 if started is not None else None
            failed += any(one.summary["errors"] + one.summary["short"] for one in parts)
            environments.append(next(iter(parts[0].environment.values()), {}))
            loads.append(load_of([one.plan for one in parts]))
        found.append(RunValues(values, None, seconds, run.path))
    if failed:
        notes.append(f"requests failed in {failed} of {len(runs)} runs; failed ones are in no rate")
    differ = mixed(environments, loads)
    return Arm(name, metrics, found, environments[0], {}, loads[0], differ, tuple(notes))


def renamed(arm: Arm, name: str, runs: Sequence[RunValues]) -> Arm:
    """The same arm by another name, with some of its runs."""
    return replace(arm, name=name, runs=list(runs))
