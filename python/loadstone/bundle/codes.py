"""Names of the frozen codes that a bundle's rows carry."""

from __future__ import annotations

import errno

from loadstone.trace import OPS

SHORT = -1
"""The ``errno`` of requests that moved fewer bytes than asked."""

VERSION = 1
"""Version of the bundle format written by this build."""

READ, WRITE = 0, 1
"""The two ``op`` that move data."""

OTHER = 255
"""The ``op`` of steps of programs that are no requests: waiting and thinking."""


def op_name(code: int) -> str:
    """``read`` for 0; ``op 77`` for a code this build does not know."""
    if code == OTHER:
        return "other"
    return OPS.get(int(code), f"op {int(code)}")


def errno_name(number: int) -> str:
    """``ok`` for 0, ``short`` for -1, ``EIO`` for 5."""
    if number == 0:
        return "ok"
    if number == SHORT:
        return "short"
    return errno.errorcode.get(int(number), f"errno {int(number)}")
