"""Evaluation of a model: replay, emulate, replay, emulate, ... and the distance between the two."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from loadstone import _core
from loadstone._extras import load
from loadstone._files import write_private
from loadstone._scratch import scratch
from loadstone.bundle import Bundle, Series, check_free
from loadstone.bundle.figures import not_written_back
from loadstone.errors import Error, Kept, OptionError
from loadstone.evaluation import quiet
from loadstone.evaluation.budget import FASTEST_FILL, FILL_RATE, Schedule, fit_budget
from loadstone.evaluation.faithful import compare, overall
from loadstone.evaluation.lowering import Facts, Lowering, Pace, Role, TraceLowering
from loadstone.evaluation.place import Place
from loadstone.model import verdict as content_verdict
from loadstone.observe.metrics import ENGINE, PARAMETERS, Metric
from loadstone.observe.observer import ProbeSpec
from loadstone.observe.response import Response
from loadstone.plan.kinds import EVALUATED, Unused
from loadstone.plan.options import NOTHING, RunOptions, pace_asked, pace_of
from loadstone.plan.rehearsal import rehearse
from loadstone.stats.equivalence import MOST_RUNS
from loadstone.workload.requests import check_exists
from loadstone.workload.runner import NamedRun, ObserveOptions, OnLive, refuse_within, run_plan, run_series

DISCARD = 3
"""The op after whose runs a target has holes again."""
INTERVALS = 20
"""Intervals a run is cut into, unless told otherwise; also the least."""
SAMPLES = 10
"""Samples per interval that are aimed at."""
SHORTEST_SAMPLE = 0.01
"""Least seconds between samples."""
ROLES: tuple[Role, Role] = ("replay", "model")
"""In the order of a turn."""
PILOT = 5.0
"""Longest pilot run, seconds, where no budget says otherwise."""


@dataclass(frozen=True)
class Settings:
    """What an evaluation does; everything has a default but the trace and the target."""

    trace: Path
    """Any trace that can be read."""
    on: str | None
    """Target: a file, a block device, ``null:``, or of a trace of files a directory, old or new, in which
    every run builds a tree of its own; None where ``options["maps"]`` names targets."""
    model: Path | None = None
    """A fitted model; without one it is fitted first, with the defaults of ``model fit``, and with think
    times where the order needs them."""
    repeat: int = 3
    """Replays, and as many emulations; at least 2, or there is no noise floor."""
    reset: Literal["refill", "once"] = "refill"
    """``refill``: the target is written from end to end before every run, so that none finds what another
    has left, in caches below the file system either; ``once``: before the first, and again after one that
    discarded something. Trees are built anew for every run."""
    budget: float | None = None
    """Seconds all of it may take."""
    intervals: int = INTERVALS
    """Parts every run is cut into; at least 20."""
    until_decided: bool = False
    """Goes on in turns until every parameter is decided that more runs can decide, or each kind has had
    ``MOST_RUNS`` runs. Takes no ``budget``."""
    probes: Sequence[ProbeSpec] = ()
    """User probes that run beside."""
    options: RunOptions = NOTHING
    """Of replays and runs of the model alike: those in ``loadstone.plan.kinds.EVALUATED``. ``pace`` is as
    recorded, or what the budget needs; ``duration`` ends each run, at full speed and in order of dependencies
    after the requests that the pilot does in that time; ``interval`` is the length of an interval in place of
    ``intervals``, where the load is paced; ``seed`` is that of the first run of the model (1), and each
    further one takes the next; ``order`` and ``think`` are of both; ``reading`` is how the trace is read,
    also to fit."""

    @property
    def pace(self) -> float | Literal["max"] | None:
        """Acceleration (1 as recorded), ``max``, or None where none was asked for."""
        name = "independent" if self.dependent else "pace"
        asked = getattr(self.options, name)
        if asked is None:
            return None
        lowered = pace_of(pace_asked(self.options), name)
        return "max" if lowered["kind"] == "closed" else float(str(lowered["speed"]))

    @property
    def seed(self) -> int:
        """Of the first run of the model."""
        return 1 if self.options.seed is None else self.options.seed

    @property
    def dependent(self) -> bool:
        """Whether requests go out when those that they depend on have completed."""
        return self.options.order == "dependency"


@dataclass
class Evaluation:
    """What an evaluation found; all of it is in the bundle too."""

    series: Series
    """The bundle of bundles."""

    @property
    def summary(self) -> dict[str, Any]:
        """``summary.json``: ``distances``, ``verdict``, ``faithful``, ``settings``, ..."""
        return self.series.summary

    @property
    def distances(self) -> list[dict[str, Any]]:
        """One object per response parameter, see :meth:`loadstone.evaluation.faithful.Finding.as_dict`."""
        found: list[dict[str, Any]] = self.summary["distances"]
        return found


def evaluate(
    settings: Settings,
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    lowering: Lowering | None = None,
    on_plans: Callable[[Sequence[Mapping[str, Any]]], None] | None = None,
    on_schedule: Callable[[Schedule], None] | None = None,
    on_run: Callable[[NamedRun], None] | None = None,
    on_live: OnLive | None = None,
    dry_run: bool = False,
) -> Evaluation | list[NamedRun]:
    """Replays a trace and runs its model in turns, and measures how far apart they are.

    Every run is preceded by filling the target, where it may be written to, and dropping the caches; of a
    trace of files, by building a tree in a new directory, which is removed after the run. Runs
    are cut into equal intervals of time where they are paced (as long as the shortest run), and of
    request progress at full speed and in order of dependencies. For every response parameter the distance
    and its floor are as :mod:`loadstone.stats.distance` defines them, and judged by
    :mod:`loadstone.evaluation.faithful`.

    ``on_plans`` is given the plans of one run of each kind before anything is written. ``on_schedule`` is
    told what will be done and how long it will take before the first measured run: a
    pilot finds out how long the target takes to fill, and without a pace replays for some seconds. With
    ``dry_run`` nothing runs and the runs are returned instead, without their pilot. The bundle appears
    at ``out``, whole or not at all; an interruption or an error keeps the runs so far and marks it partial.
    Raises ``Error`` for what cannot be used, and ``Kept`` where runs that are kept ended in failure.
    """
    path = Path(out)
    begun = time.monotonic()
    _check(settings)
    check_free(path, force)
    series: Series | None = None
    try:
        with scratch("evaluate") as folder, contextlib.ExitStack() as held:
            lower = lowering or TraceLowering(settings.trace, settings.on, settings.options)
            facts = lower.facts()
            model = settings.model
            if model is None:
                model = folder / "model.mdh"
                lower.fit(model)
            fill = _fill_bytes(lower.plan("replay", model, "max" if settings.pace == "max" else 1.0, 0))
            refill = fill if settings.reset == "refill" else 0
            work = _Work(settings, lower, model, facts, refill / (FILL_RATE if dry_run else FASTEST_FILL))
            for role in ROLES:
                plan = work.plan(role, 0, fill=True, name=role)
                refuse_within(plan, path)
                rehearse([plan], [role])
            if dry_run:
                return list(work.runs([]))
            if on_plans is not None:
                on_plans(list(work.lowered.values()))
            if not work.by_progress:
                # What is wrong with the intervals is told before anything is written.
                work.sampling()
            if work.place is not None:
                held.enter_context(work.place)
            if not work.nowhere:
                work.others = quiet.others(_watched(settings))
            if work.by_progress or work.place is not None or fill:
                work.pilot(folder / "pilot", begun, on_live)
                work.check_length()
            if on_schedule is not None:
                on_schedule(work.schedule)
            series = _performed(work, path, force, on_run, on_live)
    except Error as error:
        # What cannot be removed at the end is told, and takes nothing from the results.
        if not isinstance(error, Kept) and isinstance(earlier := error.__context__, Kept):
            raise Kept(f"{earlier}; {error}", earlier.summary, earlier.bundle) from None
        if series is not None and not isinstance(error, Kept):
            raise Kept(f"{error}; the results are in {series.path}", series.summary, series.path) from None
        raise
    return Evaluation(series)


def _performed(
    work: _Work,
    path: Path,
    force: bool,
    on_run: Callable[[NamedRun], None] | None,
    on_live: OnLive | None,
) -> Series:
    """All runs of an evaluation, kept in one bundle."""
    done: list[Bundle] = []

    def begin(folder: Path) -> None:
        write_private(folder / "model.mdh", Path(work.model).read_bytes())

    def finish(runs: list[tuple[NamedRun, Bundle]], folder: Path) -> Mapping[str, Any]:
        return work.findings(runs)

    def ended(_: NamedRun, bundle: Bundle) -> None:
        done.append(bundle)
        work.clear()

    return run_series(
        work.runs(done),
        path,
        kind="evaluate",
        begin=begin,
        finish=finish,
        observe=ObserveOptions(work.sampling(), work.settings.probes),
        on_live=on_live,
        on_run=on_run,
        on_done=ended,
        force=force,
    )


def _check(s: Settings) -> None:
    # The distances are judged when all has run.
    load("scipy.stats")
    for name in s.options.given():
        if name not in EVALUATED:
            raise Unused(name, None, "evaluations have no such option; leave it out")
    # What contradicts the order is told before anything is looked at.
    pace_asked(s.options)
    if s.repeat < 2:
        raise OptionError(
            "repeat", s.repeat, "at least 2 are needed, or there is no noise floor to compare with"
        )
    if s.intervals < INTERVALS:
        raise OptionError("intervals", s.intervals, f"at least {INTERVALS} are needed")
    if s.until_decided and s.budget is not None:
        raise OptionError(
            "until_decided", None, "takes as long as it takes; leave out `budget`, or give `repeat`"
        )
    if s.options.interval is not None and (s.pace == "max" or s.dependent):
        how = "in order of dependencies" if s.dependent else "at full speed"
        raise OptionError("interval", None, f"{how} intervals are parts of the requests; leave it out")
    content = s.options.asked_content or {}
    if s.reset == "once" and "dataset" in content:
        raise OptionError(
            "reset", "once", "runs write the same chunks, so `content` dataset:FILE needs refill"
        )
    if s.reset == "once" and content.get("dedupe", 1.0) > 1:
        what = "blocks of one run are no duplicates of another's, so `dedupe` needs refill"
        raise OptionError("reset", "once", what)
    check_exists(str(s.trace), "trace")


def _fill_bytes(plan: Mapping[str, Any]) -> int:
    return sum(int(t["size"]) for t in plan["targets"] if t.get("prepare", "none") == "fill")


class _Work:
    """The runs of one evaluation and what is made of them."""

    def __init__(
        self, settings: Settings, lowering: Lowering, model: Path, facts: Facts, fill_seconds: float
    ) -> None:
        self.settings, self.lowering, self.model, self.facts = settings, lowering, model, facts
        self.schedule = self.fitted(fill_seconds)
        # How long a run takes is known afterwards only, so intervals are parts of the requests.
        self.by_progress = isinstance(self.schedule.pace, str)
        # Whether the target is full, and as it was when it had been filled.
        self.filled = self.fresh = self.began = False
        pace: Pace = settings.pace or 1.0 if settings.dependent else _plain(self.schedule.pace)
        self.lowered = {role: lowering.plan(role, model, pace, 0) for role in ROLES}
        # What the first run makes, later runs may write to.
        targets = [t for plan in self.lowered.values() for t in plan["targets"] if t.get("path")]
        self.ours = {t["path"] for t in targets if not os.path.lexists(t["path"])}
        self.fills = {t["path"] for t in targets if t.get("prepare") == "fill"}
        trees = [t for t in targets if t["kind"] == "tree"]
        if any(t["allow_destroy"] for t in trees):
            raise OptionError(
                "allow_destroy", None, "every run makes a directory, so nothing is given up; leave it out"
            )
        self.place = Place(trees[0]["path"]) if trees else None
        # Whether requests go to null targets alone, which answer at once.
        self.nowhere = not targets
        if self.nowhere and settings.until_decided:
            raise OptionError("until_decided", None, "a null target has no response to decide; leave it out")
        # What others did to the host before the first run.
        self.others: list[str] = []

    def plan(self, role: Role, seed: int, fill: bool, name: str) -> dict[str, Any]:
        """The plan of one run: lowered, then limited to the schedule and prepared as needed."""
        schedule = self.schedule
        plan = copy.deepcopy(self.lowered[role])
        plan["seed"] = seed
        # Some 60 points over time, so that short runs can be drawn too.
        plan["interval_ns"] = round(min(max(schedule.run_seconds / 60, 0.05), 1.0) * 1e9)
        if self.place is not None:
            # What the engine saw is compared too, by intervals of the run that these must resolve.
            plan["interval_ns"] = round(self.sampling() * 1e9)
        for target in plan["targets"]:
            if self.place is not None:
                target["path"] = self.place.tree(name)
                continue
            target["prepare"] = "fill" if fill and target.get("path") in self.fills else "none"
            if self.began and target.get("path") in self.ours:
                target["made_before"] = True
        for worker in plan["workers"]:
            worker["requests"] = schedule.requests
            if worker["pace"]["kind"] == "open" and not isinstance(schedule.pace, str):
                worker["pace"]["speed"] = schedule.pace
        duration = 0 if schedule.seconds is None else round(schedule.seconds * 1e9)
        dropped = [step for step in plan["steps"] if step["step"] == "drop_caches"]
        plan["steps"] = [
            *([{"step": "prepare"}] if fill or self.place is not None else []),
            *(dropped or [{"step": "drop_caches"}]),
            {"step": "run", "duration_ns": duration},
        ]
        return plan

    def fitted(self, fill_seconds: float, spent: float = 0.0) -> Schedule:
        """The schedule for a target that takes so long to fill, after some of the budget was spent."""
        s = self.settings
        pace = "dependency" if s.dependent else s.pace
        return fit_budget(self.facts, s.repeat, pace, s.budget, fill_seconds, s.options.duration, spent)

    def clear(self) -> None:
        """Removes the tree of the last run, if there is one."""
        if self.place is not None:
            self.place.clear()

    def pilot(self, scratch: Path, begun: float, on_live: OnLive | None) -> None:
        """Fills the target and tells how long that takes; without a pace replays for some seconds, too."""
        s = self.settings
        replays = self.by_progress
        longest = PILOT if s.budget is None else max(s.budget / (2 * s.repeat + 1), 1.0)
        # A request is the least that a run can do.
        self.schedule = replace(self.schedule, seconds=longest, requests=0 if replays else 1)
        asked = time.monotonic()
        bundle = run_plan(self.plan("replay", 0, fill=True, name="pilot"), scratch, on_live=on_live)
        self.clear()
        ended = time.monotonic()
        requests, seconds = int(bundle.summary["requests"]), bundle.summary["elapsed_ns"] / 1e9
        if reason := bundle.summary.get("failure"):
            raise Error(str(reason))
        if bundle.partial and seconds < 0.9 * longest:
            raise KeyboardInterrupt
        self.filled, self.began = not _discards(bundle), True
        self.fresh = self.filled and not replays
        if replays and requests == 0:
            raise Error(f"{s.on}: the pilot replay completed no request; look at the target and the trace")
        refills = self.place is not None or (s.reset == "refill" and bool(self.fills))
        spent = ended - begun
        self.schedule = self.fitted(ended - asked - seconds if refills else 0.0, spent)
        if replays:
            left = None if s.budget is None else s.budget - spent
            self.schedule = self.schedule.after_pilot(self.facts, requests, seconds, left, s.options.duration)

    def runs(self, done: list[Bundle]) -> Iterator[NamedRun]:
        """Replay and emulation in turns; ``done`` grows while they are asked for."""
        s = self.settings
        for i in itertools.count():
            if i >= self.schedule.repeat and not (i < MOST_RUNS and self.undecided(done)):
                return
            for role in ROLES:
                if done and _discards(done[-1]):
                    self.filled = False
                fill = not self.filled or (s.reset == "refill" and not self.fresh)
                # The first is that of `model sample --seed`.
                seed = s.seed if i == 0 else _core.derive_seed(s.seed, "repeat", i)
                seed = seed if role == "model" else 0
                filled = "filled, " if fill and self.fills else ""
                made = "new tree, " if self.place is not None else filled
                about = {
                    "role": role,
                    "repeat": i + 1,
                    "seed": seed if role == "model" else None,
                    "reset": f"{made}caches dropped",
                }
                name = f"{role}-{i + 1}"
                yield NamedRun(name, self.plan(role, seed, fill, name), about)
                self.filled = self.began = True
                self.fresh = False

    def undecided(self, done: Sequence[Bundle]) -> bool:
        """Whether a parameter is left open by the runs so far, and more are wanted."""
        if not self.settings.until_decided:
            return False
        groups: dict[str, list[Bundle]] = {"replay": list(done[::2]), "model": list(done[1::2])}
        responses = self.responses(groups)
        found = compare(responses["replay"], responses["model"], self.metrics())
        # What ``MOST_RUNS`` would not decide is not waited for.
        return any(finding.verdict == "undecided" and finding.runs is not None for finding in found)

    def metrics(self) -> Sequence[Metric]:
        """The response parameters that are compared."""
        return PARAMETERS if self.place is None else (*PARAMETERS, *ENGINE)

    def sampling(self) -> float:
        """Seconds between samples: about ten per interval, from 10 ms to 1 s."""
        seconds = self.schedule.run_seconds
        if self.settings.dependent:
            # Where think times make the rate, that of a pilot says little of the rest.
            seconds /= 4
        return min(max(seconds / self.intervals(seconds) / SAMPLES, SHORTEST_SAMPLE), 1.0)

    def check_length(self) -> None:
        """Raises where runs are too short for samples in every interval, by their pilot."""
        seconds, parts = self.schedule.run_seconds, self.settings.intervals
        if self.by_progress and seconds < parts * SHORTEST_SAMPLE:
            slower = "`think` x0.5, or a longer trace" if self.settings.dependent else "`pace` recorded"
            raise Error(
                f"{self.settings.trace}: a run takes about {seconds:.2g} s, too short for {parts} intervals; "
                f"let it take longer, as with {slower}"
            )

    def intervals(self, seconds: float) -> int:
        """Parts a run of this length is cut into."""
        s = self.settings
        if s.options.interval is None:
            return s.intervals
        parts = int(seconds / s.options.interval)
        if parts < INTERVALS:
            raise OptionError(
                "interval",
                f"{s.options.interval:g}",
                f"gives {parts} intervals in {seconds:.3g} s, at least "
                f"{INTERVALS} are needed; use {seconds / INTERVALS:.3g} s or less",
            )
        return parts

    def findings(self, runs: list[tuple[NamedRun, Bundle]]) -> dict[str, Any]:
        """Distances, verdict and settings, as ``summary.json`` holds them."""
        s = self.settings
        out: dict[str, Any] = {
            "trace": os.fspath(s.trace),
            "target": s.on,
            "model": {
                "path": os.fspath(s.model) if s.model else None,
                "file": "model.mdh",
                "sha256": hashlib.sha256(self.model.read_bytes()).hexdigest(),
                "fitted_here": s.model is None,
            },
            "schedule": self.schedule.as_dict(),
            "order": {role: plan["workers"][0].get("order", "none") for role, plan in self.lowered.items()},
            "think": self.lowered["model"]["workers"][0].get("think", 1.0) if s.dependent else None,
            "reset": s.reset if self.place is None else "new tree",
            "alignment": "progress" if self.by_progress else "time",
            "errors": sum(int(b.summary["errors"]) + int(b.summary["short"]) for _, b in runs),
            "not_written_back": not_written_back(bundle.summary for _, bundle in runs),
            "distances": [],
        }
        groups: dict[str, list[Bundle]] = {"replay": [], "model": []}
        for run, bundle in runs:
            groups[run.about["role"]].append(bundle)
        out["written"] = self.written(groups)
        if min(len(g) for g in groups.values()) < 2:
            text = "fewer than two replays and two emulations ended; nothing can be said"
            return {**out, "faithful": None, "usable": 0, "passed": 0, "undecided": 0, "verdict": text}
        everything = [bundle for _, bundle in runs]
        responses = self.responses(groups)
        found = [] if self.nowhere else compare(responses["replay"], responses["model"], self.metrics())
        verdict = overall(found, busy=bool(self.others))
        if self.nowhere:
            verdict["text"] = "a null target has no response to compare"
        content = self.lowering.content(self.model, s.seed)
        lengths = {role: [b.summary["elapsed_ns"] / 1e9 for b in group] for role, group in groups.items()}
        return {
            **out,
            "notes": [
                *self.others,
                *self.behind(everything, len(responses["replay"][0].edges) - 1),
                *([] if self.nowhere else _no_device(everything)),
                *_passed_over(everything),
                *self.orders(),
            ],
            "intervals": len(responses["replay"][0].edges) - 1,
            "seconds": lengths,
            "distances": [f.as_dict() for f in found],
            "content": content and {**content, "verdict": content_verdict(content)},
            "faithful": verdict["faithful"],
            "usable": verdict["usable"],
            "passed": verdict["passed"],
            "undecided": verdict["undecided"],
            "runs_to_decide": verdict["runs_to_decide"],
            "verdict": verdict["text"],
        }

    def written(self, groups: Mapping[str, Sequence[Bundle]]) -> dict[str, Any] | None:
        """What was asked of written data and what each run left, by role, where anything was."""
        if self.lowered["replay"].get("content") is None:
            return None
        asked = next(bundle.summary["content"]["asked"] for group in groups.values() for bundle in group)
        found = {role: [b.summary["content"]["found"] for b in group] for role, group in groups.items()}
        kept = ("dedupe", "dedupe_expected", "compress", "compress_expected")
        told = {
            role: [None if one is None else {key: one[key] for key in kept if key in one} for one in ones]
            for role, ones in found.items()
        }
        return {"asked": asked, **told}

    def behind(self, bundles: Sequence[Bundle], parts: int) -> list[str]:
        """Says so where paced runs could not keep to their times, which blurs the intervals."""
        shortest = min(b.summary["elapsed_ns"] for b in bundles)
        late = [b.summary["lateness"].get("p99_ns") or 0 for b in bundles]
        slow = sum(ns > shortest / parts / 4 for ns in late)
        if not slow or self.by_progress:
            return []
        return [
            f"{slow} of {len(bundles)} runs fell behind their times: the 99th percentile of their lateness "
            f"reached {max(late) / 1e9:.3g} s, and an interval is {shortest / parts / 1e9:.3g} s; "
            "at a lower `pace` the target keeps up"
        ]

    def orders(self) -> list[str]:
        """Says so where requests of the two go out by different rules."""
        workers = {role: plan["workers"][0] for role, plan in self.lowered.items()}
        if self.place is None or workers["replay"]["order"] == workers["model"]["order"]:
            return []
        return [
            f"the replays kept the trace's order of completions, with up to {workers['replay']['depth']} "
            f"requests at a time; the model knows none and had {workers['model']['depth']} at a time"
        ]

    def responses(self, groups: Mapping[str, Sequence[Bundle]]) -> dict[str, list[Response]]:
        """Response parameters of every run over aligned intervals."""
        everything = [b for group in groups.values() for b in group]
        shortest = min(b.summary["elapsed_ns"] for b in everything) / 1e9
        if self.by_progress:
            return {
                role: [b.response(self.settings.intervals, by="progress") for b in group]
                for role, group in groups.items()
            }
        parts, seconds = self.grid(shortest)
        return {role: [b.response(parts, seconds=seconds) for b in group] for role, group in groups.items()}

    def grid(self, seconds: float) -> tuple[int, float]:
        """Intervals of paced runs of this length, and the time they cover."""
        parts, pace = self.intervals(seconds), self.schedule.pace
        if self.settings.options.interval is not None or isinstance(pace, str):
            return parts, seconds
        return aligned(parts, seconds, self.lowering.window(self.model) / pace)


def aligned(parts: int, seconds: float, window: float) -> tuple[int, float]:
    """At least ``parts`` intervals of whole windows, and the time they cover; all in seconds.

    Inside a window a model keeps no order, so a boundary in the middle of one would blame it for
    that. What is left beyond the last whole interval is not compared. Where windows are longer than
    the intervals, the time is simply divided.
    """
    # A run ends with its last request, a little before the end of the last window.
    windows = int(seconds / window + 0.05)
    if windows < parts:
        return parts, seconds
    together = windows // parts
    parts = windows // together
    return parts, parts * together * window


def _plain(pace: float | Literal["max", "dependency"]) -> Pace:
    """A pace to lower with; the one of the schedule is put in later."""
    return "max" if isinstance(pace, str) else 1.0


def _watched(s: Settings) -> str | None:
    """Where to look for the load of others: the target, or the nearest that is there of its path."""
    named = s.on or next(iter(s.options.maps.values()), None)
    path = None if named is None else os.fspath(named)
    if path is None or path == "null:":
        return None
    while not os.path.exists(path):
        path = os.path.dirname(path) or "."
    return path


def _no_device(bundles: Sequence[Bundle]) -> list[str]:
    """Why the counters of a block device are missing, where they are."""
    told = [str(text) for bundle in bundles for text in bundle.summary["warnings"]]
    return sorted({text for text in told if text.startswith("no block counters")})


def _passed_over(bundles: Sequence[Bundle]) -> list[str]:
    """What was damaged of the trace, where leave was given to go on without it."""
    told = [str(text) for bundle in bundles for text in bundle.summary["notes"]]
    return sorted({text for text in told if text.startswith("passed over ")})


def _discards(bundle: Bundle) -> bool:
    return DISCARD in bundle.ops.names()
