"""The bundle: everything one run measured, in one folder (``docs/reference/formats/bundle.md``)."""

from loadstone.bundle.folder import Making, aside, check_free, clean_up, keep, keep_elsewhere, keep_results
from loadstone.bundle.ops import Ops
from loadstone.bundle.read import Bundle, Series
from loadstone.bundle.write import Event, write_bundle, write_series

__all__ = [
    "Bundle",
    "Event",
    "Making",
    "Ops",
    "Series",
    "aside",
    "check_free",
    "clean_up",
    "keep",
    "keep_elsewhere",
    "keep_results",
    "write_bundle",
    "write_series",
]
