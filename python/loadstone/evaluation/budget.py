"""How long an evaluation will take, and fitting it to a budget."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from loadstone._units import number
from loadstone.errors import Error
from loadstone.evaluation.lowering import Facts

OVERHEAD = 1.0
"""Seconds every run takes besides the load itself: opening, dropping caches, writing its bundle."""
FILL_RATE = 300e6
"""Bytes per second at which filling a target is expected where it is not found out."""
FASTEST_FILL = 10e9
"""Bytes per second that no target is filled at: a budget too small for this is too small for all."""
SHORTEST = 2.0
"""Seconds a run must last, or its intervals hold too few samples."""
FEWEST = 2
"""Runs of each kind that a budget never goes below."""


@dataclass(frozen=True)
class Schedule:
    """What will be run and how long it should take."""

    repeat: int
    """Replays, and as many emulations."""
    pace: float | Literal["max", "dependency"]
    """Acceleration, full speed, or in order of dependencies, where answers and think times make it."""
    seconds: float | None
    """Each run ends after this time; None: at the end of the trace."""
    requests: int
    """Each run ends after this many requests; 0: at the end of the trace."""
    run_seconds: float
    """How long one run should take; without a pace known after the pilot only."""
    fill_seconds: float
    """How long filling the target before a run should take; 0 where runs are not preceded by it."""
    chosen: tuple[str, ...] = ()
    """What was changed to fit the budget, in words."""

    @property
    def total(self) -> float:
        """Seconds of all runs together."""
        return 2 * self.repeat * (self.run_seconds + self.besides)

    @property
    def besides(self) -> float:
        """Seconds every run takes besides its load."""
        return self.fill_seconds + OVERHEAD

    def limited(self, seconds: float) -> Schedule:
        """The same, each run ending after some time."""
        return replace(self, seconds=seconds)

    def as_dict(self) -> dict[str, Any]:
        """As in ``summary.json``."""
        return {**asdict(self), "chosen": list(self.chosen), "total": self.total}

    def after_pilot(
        self,
        facts: Facts,
        requests: int,
        seconds: float,
        budget: float | None,
        duration: float | None = None,
    ) -> Schedule:
        """The schedule without a pace once a pilot completed ``requests`` in ``seconds``.

        Every run issues the same number of requests: all of them, or as many as the pilot's rate
        gives in ``duration`` or in what the budget leaves.
        """
        rate = requests / max(seconds, 1e-9)
        part = 0 if duration is None or rate * duration >= facts.requests else max(int(rate * duration), 1)
        whole = (part or facts.requests) / rate
        out = replace(self, seconds=None, requests=part, run_seconds=whole)
        if budget is None or out.total <= budget:
            return out
        chosen: list[str] = []
        if out.repeat > FEWEST and replace(out, repeat=FEWEST).total <= budget:
            repeat = int(budget / (2 * (whole + out.besides)))
            return replace(out, repeat=repeat, chosen=(f"{repeat} repeats instead of {out.repeat}",))
        if out.repeat > FEWEST:
            chosen.append(f"{FEWEST} repeats instead of {out.repeat}")
        each = budget / (2 * FEWEST) - out.besides
        if each < SHORTEST:
            raise Error(
                f"`budget` is too small: {max(budget, 0):.0f} s of it are left after the pilot, and the "
                f"least that says anything takes {math.ceil(2 * FEWEST * (SHORTEST + out.besides))} s more"
            )
        part = max(int(rate * each), 1)
        chosen.append(f"the first {part:,} of {facts.requests:,} requests")
        return replace(out, repeat=FEWEST, requests=part, run_seconds=each, chosen=tuple(chosen))


def _too_small(budget: float, least: float) -> str:
    return f"`budget` {budget:g}s is too small: the least that says anything takes {math.ceil(least)} s"


def fit_budget(
    facts: Facts,
    repeat: int,
    pace: float | Literal["max", "dependency"] | None,
    budget: float | None,
    fill_seconds: float,
    duration: float | None = None,
    spent: float = 0.0,
) -> Schedule:
    """The schedule that keeps to ``budget`` (seconds), and what was chosen for it.

    A pace that was not asked for (None) is recorded, or as fast as the budget needs; one that was asked
    for is kept: then there are fewer repeats, two at least, and if that is not enough each run is a
    leading part of the trace. ``duration`` (seconds) limits each run from the start; ``fill_seconds`` is
    what filling the target before each run takes, ``spent`` what is gone of the budget. Without a pace the
    time is not known before a pilot; see :meth:`Schedule.after_pilot`. Raises ``Error`` where the budget is
    too small for any result.
    """
    fill, besides = fill_seconds, fill_seconds + OVERHEAD
    left = None if budget is None else budget - spent
    if isinstance(pace, str):
        return Schedule(repeat, pace, None, 0, PILOT_UNKNOWN, fill)
    wanted = 1.0 if pace is None else float(pace)
    if facts.span <= 0:
        raise Error("the trace has no span of time to be paced by; use `pace` max")
    whole = facts.span / wanted
    if duration is not None and duration < whole:
        plain = Schedule(repeat, wanted, duration, 0, duration, fill)
    else:
        plain = Schedule(repeat, wanted, None, 0, whole, fill)
    if budget is None or left is None or plain.total <= left:
        return plain
    if pace is None and duration is None:
        each = left / (2 * repeat) - besides
        if each >= SHORTEST:
            # Two digits upwards: a factor that people can type, and never over the budget.
            factor = _round_up(facts.span / each)
            return replace(
                plain,
                pace=factor,
                run_seconds=facts.span / factor,
                chosen=(f"paced x{factor:g} instead of as recorded",),
            )
    chosen = []
    fewer = min(repeat, max(int(left / (2 * (plain.run_seconds + besides))), FEWEST))
    if fewer < repeat:
        chosen.append(f"{fewer} repeats instead of {repeat}")
    out = replace(plain, repeat=fewer)
    if out.total > left:
        each = left / (2 * fewer) - besides
        if each < SHORTEST:
            raise Error(_too_small(budget, spent + 2 * FEWEST * (SHORTEST + besides)))
        chosen.append(f"the first {number(each * wanted)} of {number(facts.span)} s of the trace")
        out = replace(out, seconds=each, run_seconds=each)
    return replace(out, chosen=tuple(chosen))


PILOT_UNKNOWN = 4.0
"""Seconds of a run without a pace that are assumed before the pilot."""


def _round_up(value: float) -> float:
    digits = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(round(value / digits, 9)) * digits
