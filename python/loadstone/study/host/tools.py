"""Programs of the system that a study calls: which package has them, and what they answer."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from loadstone._text import one_line
from loadstone.errors import Error, StudyError
from loadstone.study.host import commands

PACKAGES = {
    **dict.fromkeys(("mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "dumpe2fs"), "e2fsprogs"),
    **dict.fromkeys(("mkfs.xfs", "xfs_info"), "xfsprogs"),
    **dict.fromkeys(("mkfs.btrfs", "btrfs"), "btrfs-progs"),
    **{"mkfs.f2fs": "f2fs-tools", "mkfs.jfs": "jfsutils", "mkfs.nilfs2": "nilfs-tools"},
    **dict.fromkeys(("mkfs.vfat", "mkfs.fat"), "dosfstools"),
    **{"mkfs.exfat": "exfatprogs", "mkfs.udf": "udftools", "mkfs.bcachefs": "bcachefs-tools"},
    **dict.fromkeys(("mount", "umount", "losetup", "swapon", "swapoff"), "mount"),
    **{"wipefs": "util-linux", "systemctl": "systemd", "sysctl": "procps", "time": "time"},
    **{"fio": "fio", "sysbench": "sysbench", "bonnie++": "bonnie++", "filebench": "filebench"},
    **{"pgbench": "postgresql", "psql": "postgresql-client", "iozone": "iozone3", "git": "git"},
    **{"dbench": "dbench", "stress-ng": "stress-ng", "postmark": "postmark", "rsync": "rsync"},
}
"""Debian's package of each program."""
_ALSO = ("/usr/sbin", "/sbin")
"""Where programs of root are, which the path of others may lack."""
_LIMIT = 3600.0
"""Longest time of a tool, seconds; mkfs of a large device with bad blocks looked for is the longest."""


class Refused(Error):
    """A tool did not do what it should."""


def found(name: str) -> str | None:
    """The path of a program."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_ALSO]))


def lacking(names: Iterable[str]) -> list[str]:
    """What to say of each program that is not installed."""
    told = []
    for name in dict.fromkeys(names):
        if found(name) is None:
            package = PACKAGES.get(os.path.basename(name))
            how = f"install Debian's package {package}" if package else "install it, or correct the name"
            told.append(f"{one_line(name)}: is not installed; {how}")
    return told


def call(words: Sequence[str], mark: str, cwd: str = "/", limit: float = _LIMIT) -> str:
    """Runs a tool, and returns what it prints. Raises ``Refused``, or ``StudyError`` where it is missing."""
    program = found(words[0])
    if program is None:
        raise StudyError(lacking([words[0]])[0])
    try:
        done = subprocess.run(
            commands.tied([program, *words[1:]]),
            cwd=cwd,
            env={**os.environ, commands.MARK: mark, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"{commands.shown(tuple(words))}: did not end within {limit:g} s") from None
    except OSError as error:
        raise Refused(f"{words[0]}: cannot be started: {error.strerror}") from None
    if done.returncode:
        text = one_line((done.stderr or done.stdout).decode(errors="replace").strip()[-400:])
        raise Refused(f"{commands.shown(tuple(words))}: {text or f'status {done.returncode}'}")
    return done.stdout.decode(errors="replace")


def answer(words: Sequence[str], mark: str = "") -> str:
    """What a tool prints; nothing where it is missing or fails: for what is only nice to know."""
    with contextlib.suppress(Error):
        return call(words, mark, limit=20)
    return ""
