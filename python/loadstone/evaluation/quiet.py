"""Whether a host is at rest before runs that are compared: the load of others is in what both measure."""

from __future__ import annotations

import os
import time

import numpy as np

from loadstone.observe.observer import Observer
from loadstone.observe.response import response_parameters

WATCHED = 0.5
"""Seconds for which nothing of our own runs."""
BUSY_DEVICE = 0.02
"""Share of the time with a request in flight from which on others use the device."""
BUSY_CPU = 0.2
"""Share of all CPUs from which on others use them."""


def others(target: str | os.PathLike[str] | None) -> list[str]:
    """What others do to the target's device and the CPUs meanwhile, in words; takes half a second."""
    with Observer(target, interval=WATCHED / 10) as watched:
        time.sleep(WATCHED)
    seen = watched.result
    if seen is None or len(seen.columns["time"]) < 2:
        return []
    at = seen.columns["time"]
    found = response_parameters(seen.columns, np.array([at[0], at[-1]]), seen.ticks_per_s).values
    busy, cpu = float(found["utilisation"][0]), float(found["cpu"][0])
    told = []
    if busy > BUSY_DEVICE and watched.device is not None:
        requests = float(np.nan_to_num(found["reads_per_s"] + found["writes_per_s"])[0])
        told.append(f"{watched.device['name']} was {busy:.0%} busy with {requests:.0f} requests/s")
    if cpu > BUSY_CPU:
        told.append(f"the CPUs were {cpu:.0%} busy")
    if not told:
        return []
    return [f"{' and '.join(told)} before the first run: all runs include this other load"]
