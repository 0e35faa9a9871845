"""Loadstone: turns real storage activity into load that anyone can run again.

Each noun is a package of its own (``loadstone.trace``, ``loadstone.model``, ...), and every verb of
the command line is a public function there that returns plain data or Arrow tables.
"""

from loadstone._core import Error, __version__

__all__ = ["Error", "__version__"]
