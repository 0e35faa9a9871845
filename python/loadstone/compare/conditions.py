"""Conditions on which a comparison fails, such as ``worse by 5%`` or ``response_p99 different``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadstone import Error, _values
from loadstone.compare.verdicts import Finding
from loadstone.errors import OptionError

HOW = "write worse, better, different, undecided or not same, perhaps with a metric before and `by 5%` behind"
_WORDS = ("worse", "better", "different", "undecided", "not same")


@dataclass(frozen=True)
class Condition:
    """A condition on findings."""

    text: str
    """As it was written."""
    metric: str | None
    """The metric that it is about; None: the primary one. ``any`` is every metric that is compared."""
    word: str
    """What the verdict must be."""
    by: float
    """By how much at least, as a share of the base; 0: by anything."""

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Reads ``[METRIC] WORD [by SHARE]``; raises ``OptionError`` for what is none."""
        before, sign, share = text.strip().rpartition(" by ")
        rest = before if sign else text.strip()
        word = next((one for one in _WORDS if rest == one or rest.endswith(f" {one}")), None)
        if word is None:
            raise OptionError("fail_if", text, HOW)
        if sign and word in ("undecided", "not same"):
            raise OptionError("fail_if", text, f"{word} has no `by`; leave it out")
        try:
            by = _values.share(share) if sign else 0.0
        except Error as error:
            raise OptionError("fail_if", text, str(error)) from None
        if by < 0:
            raise OptionError("fail_if", text, "is by less than nothing; write it like worse by 5%")
        return cls(text, rest.removesuffix(word).strip() or None, word, by)

    def about(self, found: Finding) -> bool:
        """Whether it is about that metric."""
        return found.primary if self.metric is None else self.metric in ("any", found.metric.name)

    def holds(self, found: Finding) -> bool:
        """Whether it holds: the verdict is that, and the ratio of the arms is so far off."""
        if self.word == "not same":
            return found.verdict != "same"
        if self.word == "undecided":
            return found.verdict in ("undecided", "no verdict")
        if found.verdict not in (_DIFFER if self.word == "different" else (self.word,)):
            return False
        return found.change is None or abs(found.change) >= self.by


_DIFFER = ("better", "worse", "higher", "lower")


def failing(conditions: Sequence[str], findings: Sequence[Finding]) -> list[tuple[str, Finding]]:
    """Conditions that hold, each with the finding; ``OptionError`` for one about no compared metric."""
    out = []
    for text in conditions:
        one = Condition.parse(text)
        about = [found for found in findings if one.about(found)]
        if not about:
            known = ", ".join(dict.fromkeys(found.metric.name for found in findings))
            raise OptionError("fail_if", text, f"{one.metric} is not compared; those that are: {known}")
        out += [(text, found) for found in about if one.holds(found)]
    return out
