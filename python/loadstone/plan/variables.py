"""Variables of plans drawn from without a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loadstone import _core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def draw(variable: Mapping[str, Any], count: int, *, seed: int = 0, at: float = 0.0) -> NDArray[np.float64]:
    """``count`` values of a variable of a plan, as the engine draws them.

    ``docs/reference/formats/plan.md`` describes variables.

    ``at``: seconds after the start of the run, which counts where the variable has later laws. Raises
    ``Error`` where the variable holds what no plan may.
    """
    return _core.draw_values(json.dumps({"id": "", **variable}), count, seed, round(at * 1e9))
