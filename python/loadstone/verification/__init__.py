"""Verification: whether targets hold what was written to them.

A run asks for it with ``--verify`` (``verify`` of a plan); :func:`verify_targets` reads targets that an
earlier run wrote, also after a crash. ``docs/explanation/verification.md`` tells what is found.
"""

from loadstone.verification._asked import Verify, check_state, lost_with, of_options
from loadstone.verification._later import verify_targets
from loadstone.verification._told import Damage, Unsynced, Verified, is_damaged, lines, of_outcome, together

__all__ = [
    "Damage",
    "Unsynced",
    "Verified",
    "Verify",
    "check_state",
    "is_damaged",
    "lines",
    "lost_with",
    "of_options",
    "of_outcome",
    "together",
    "verify_targets",
]
