"""What the native module offers; written by crates/python."""

from typing import Any

__version__: str

class Error(Exception):
    """What went wrong, where, and what to do."""

def __getattr__(name: str) -> Any: ...
