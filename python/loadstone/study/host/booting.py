"""A unit of systemd that goes on with a study after a reboot, and goes away when the study is over."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

from loadstone.errors import StudyError
from loadstone.study.host import tools
from loadstone.study.host.making import Maker

_PLAIN = re.compile(r"[\w/.+-]+")

_UNIT = """\
[Unit]
Description=Goes on with the Loadstone study {folder}
RequiresMountsFor={folder}
After=local-fs.target

[Service]
Type=simple
ExecStart={program} study resume {folder}
TimeoutStopSec=120

[Install]
WantedBy=multi-user.target
"""


def program() -> Path:
    """The command that runs now, as a path from the root."""
    return Path(sys.argv[0]).resolve() if Path(sys.argv[0]).name == "loadstone" else _beside()


def _beside() -> Path:
    return Path(sys.executable).with_name("loadstone")


def check(folder: Path, command: Path) -> None:
    """Raises ``StudyError`` where somebody else could change what root would do at the next boot."""
    if os.geteuid() != 0:
        raise StudyError("a unit that goes on after boot needs root")
    if absent := tools.lacking(["systemctl"]):
        raise StudyError(absent[0])
    for path in (folder, command):
        if not _PLAIN.fullmatch(str(path)):
            raise StudyError(
                f"{path}: a unit needs a path of letters, digits and /.+-_; choose another folder"
            )
        if not path.exists():
            raise StudyError(f"{path}: is not there, so a unit could not start it")
        for one in (path.resolve(), *path.resolve().parents):
            found = one.stat()
            # In a sticky directory nobody else can put something in its place.
            open_ = found.st_mode & 0o022 and not (one != path and found.st_mode & stat.S_ISVTX)
            if found.st_uid != 0 or open_:
                raise StudyError(
                    f"{path}: {one} belongs to somebody else or others can write to it, and root would do at "
                    "the next boot what lies there; use a folder of root's"
                )


def install(maker: Maker, command: Path, root: Path = Path("/")) -> None:
    """Writes and enables the unit; ``root``: of the system that it is for. Raises ``StudyError``."""
    check(maker.folder, command)
    text = _UNIT.format(folder=maker.folder, program=command)
    maker.install_unit(f"loadstone-study-{maker.mark}.service", text, root)
