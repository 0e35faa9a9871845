"""Whether plans that run one after the other would all start, found out before the first one does."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from loadstone import _core
from loadstone.errors import Error, PlanError
from loadstone.plan.words import in_words


def rehearse(plans: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> None:
    """Raises ``Error`` for the first of these plans that could not run after those before it.

    ``names``: what each is called for its user, where that is not plain. Nothing is made or written.
    """
    made: list[str] = []
    for plan, name in zip(plans, names or [""] * len(plans), strict=True):
        try:
            _core.rehearse(json.dumps(plan), made)
        except Error as error:
            found = in_words(error, plan) if isinstance(error, PlanError) else error
            raise Error(f"{name}{': ' if name else ''}{found}") from None
        made += [
            target["path"]
            for target in plan["targets"]
            if target["kind"] == "file"
            and (target.get("prepare") == "fill" or not os.path.exists(target["path"]))
        ]
