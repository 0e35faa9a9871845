"""The bundle: everything one run measured, in one folder (``docs/formats/bundle.md``)."""

from loadstone.bundle.folder import aside, check_free, clean_up
from loadstone.bundle.read import Bundle, Ops, Series
from loadstone.bundle.write import Event, write_bundle, write_series

__all__ = [
    "Bundle",
    "Event",
    "Ops",
    "Series",
    "aside",
    "check_free",
    "clean_up",
    "write_bundle",
    "write_series",
]
