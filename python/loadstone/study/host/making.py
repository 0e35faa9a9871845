"""What a study makes on the host, written to its journal first; and how each is taken back, in any state."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loadstone._core import remove_tree
from loadstone.errors import Error, StudyError
from loadstone.study.host import tools
from loadstone.study.journal import Journal, Made

_LOOP_GET_STATUS64 = 0x4C05
_PATIENCE = 10.0
"""Seconds that an unmount waits for others to let go."""


class Maker:
    """Makes things for a study and takes them back. Places are kept relative to the study's folder."""

    def __init__(self, folder: Path, journal: Journal, mark: str) -> None:
        """``mark``: the random id of the study."""
        self.folder, self.journal, self.mark = folder, journal, mark

    def call(self, *words: str | os.PathLike[str]) -> str:
        """A tool, in a folder of the study that has nothing in it."""
        return tools.call([os.fspath(one) for one in words], self.mark, str(self.folder / "systems"))

    def image(self, name: str, size: int) -> int:
        """A sparse file. Raises ``OSError``."""
        number = self.journal.will_make("file", {"path": f"systems/{name}"})
        with open(self.folder / "systems" / name, "xb") as file:
            os.truncate(file.fileno(), size)
        return number

    def copy(self, source: str, name: str) -> int:
        """A copy of an image that shares its blocks where the file system can."""
        number = self.journal.will_make("file", {"path": f"systems/{name}"})
        self.call("cp", "--reflink=auto", "--sparse=always", source, name)
        return number

    def loop(self, name: str, direct_io: bool) -> tuple[int, str]:
        """A loop device on an image; its number in the journal and its path."""
        number = self.journal.will_make("loop", {"path": f"systems/{name}"})
        image = self.folder / "systems" / name
        asked = ["--direct-io=on"] if direct_io else []
        device = self.call("losetup", "--find", "--show", *asked, image).strip()
        return number, device

    def point(self, name: str) -> int:
        """A directory to mount on."""
        number = self.journal.will_make("point", {"path": f"systems/{name}"})
        (self.folder / "systems" / name).mkdir(0o700)
        return number

    def mount(self, device: str, kind: str, options: str, name: str) -> int:
        """A mount."""
        number = self.journal.will_make("mount", {"path": f"systems/{name}"})
        asked = ["-o", options] if options else []
        self.call("mount", "-t", kind, *asked, device, self.folder / "systems" / name)
        return number

    def tree(self, directory: str, name: str) -> tuple[int, Path]:
        """A new folder in a directory of the user's."""
        path = Path(os.path.realpath(directory)) / f"loadstone-study-{name}"
        number = self.journal.will_make("tree", {"path": str(path)})
        path.mkdir(0o700)
        return number, path

    def setting(self, path: str, value: str, kind: str = "setting") -> int:
        """Another value in a file of /sys or /proc (``sysctl``), which is restored. Raises ``Error``."""
        try:
            old = _chosen(Path(path).read_text())
            number = self.journal.will_make(kind, {"path": path, "old": old})
            Path(path).write_text(value)
        except OSError as error:
            raise Error(f"{path}: cannot be set to {value}: {error.strerror}") from None
        return number

    def stop_service(self, name: str) -> None:
        """A service of systemd that is running is stopped."""
        if self.call("systemctl", "show", "-p", "ActiveState", "--value", name).strip() != "active":
            return
        self.journal.will_make("service", {"name": name})
        self.call("systemctl", "stop", name)

    def install_unit(self, name: str, text: str, root: Path) -> None:
        """A unit that starts at boot; ``root``: of the system that it is for."""
        path = root / "etc/systemd/system" / name
        if path.exists():
            return
        self.journal.will_make("unit", {"path": str(path), "root": str(root)})
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
            os.fsync(file.fileno())
        self.call("systemctl", f"--root={root}", "enable", name)

    def swap_off(self) -> None:
        """All swap is turned off."""
        lines = Path("/proc/swaps").read_text().splitlines()[1:]
        for fields in (line.split() for line in lines):
            path = fields[0].encode().decode("unicode_escape")
            self.journal.will_make("swap", {"path": path, "priority": fields[-1]})
            self.call("swapoff", path)

    def take_back(self, number: int) -> None:
        """Takes back one thing. Raises ``Error`` where it stays."""
        for one in self.journal.left():
            if one.id == number:
                self._undo(one)

    def take_all_back(self, keep: Callable[[Made], bool] = lambda one: False) -> list[str]:
        """Takes back all that is left, the last first, but what ``keep`` names; returns what could not be."""
        faults = []
        for one in self.journal.left():
            if keep(one):
                continue
            try:
                self._undo(one)
            except (Error, OSError) as error:
                faults.append(str(error))
        return faults

    def _undo(self, one: Made) -> None:
        _UNDO[one.kind](self, one.what)
        self.journal.is_gone(one.id)

    def _inside(self, what: Mapping[str, Any]) -> Path:
        """A place below ``systems``, of which it is sure that the study made it."""
        path = self.folder / str(what["path"])
        if os.path.dirname(os.path.normpath(what["path"])) != "systems":
            raise StudyError(f"{path}: is no place of this study's systems; it is left alone")
        return path

    def _undo_file(self, what: Mapping[str, Any]) -> None:
        self._inside(what).unlink(missing_ok=True)

    def _undo_loop(self, what: Mapping[str, Any]) -> None:
        image = self._inside(what)
        deadline = time.monotonic() + _PATIENCE
        while devices := loops_of(image):
            for device in devices:
                with contextlib.suppress(tools.Refused):
                    self.call("losetup", "-d", device)
            if time.monotonic() > deadline:
                raise StudyError(
                    f"{', '.join(devices)}: is still in use, and cannot be detached from {image}"
                )
            time.sleep(0.01)

    def _undo_point(self, what: Mapping[str, Any]) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._inside(what).rmdir()

    def _undo_mount(self, what: Mapping[str, Any]) -> None:
        point = self._inside(what)
        deadline = time.monotonic() + _PATIENCE
        while os.path.ismount(point):
            try:
                self.call("umount", point)
            except tools.Refused as error:
                if time.monotonic() > deadline:
                    raise StudyError(f"{point}: cannot be unmounted: {error}{_users(point)}") from None
                time.sleep(0.1)

    def _undo_tree(self, what: Mapping[str, Any]) -> None:
        path = Path(str(what["path"]))
        # The name has a random number that was in the journal before anything had it.
        if path.name.startswith("loadstone-study-") and os.path.lexists(path):
            remove_tree(path)

    def _undo_setting(self, what: Mapping[str, Any]) -> None:
        # A device that is gone has no settings any more.
        if os.path.exists(what["path"]):
            Path(what["path"]).write_text(what["old"])

    def _undo_service(self, what: Mapping[str, Any]) -> None:
        self.call("systemctl", "start", str(what["name"]))

    def _undo_swap(self, what: Mapping[str, Any]) -> None:
        if what["path"] not in Path("/proc/swaps").read_text():
            asked = ["-p", str(what["priority"])] if int(what["priority"]) >= 0 else []
            self.call("swapon", *asked, str(what["path"]))

    def _undo_unit(self, what: Mapping[str, Any]) -> None:
        path = Path(str(what["path"]))
        if path.name == f"loadstone-study-{self.mark}.service" and path.exists():
            self.call("systemctl", f"--root={what['root']}", "disable", path.name)
            path.unlink()


_UNDO: Mapping[str, Callable[[Maker, Mapping[str, Any]], None]] = {
    "file": Maker._undo_file,
    "loop": Maker._undo_loop,
    "point": Maker._undo_point,
    "mount": Maker._undo_mount,
    "tree": Maker._undo_tree,
    "setting": Maker._undo_setting,
    "sysctl": Maker._undo_setting,
    "service": Maker._undo_service,
    "swap": Maker._undo_swap,
    "unit": Maker._undo_unit,
}


def _chosen(text: str) -> str:
    """The value of a setting; of several words the one in brackets, as in ``none [mq-deadline]``."""
    before, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else before.strip()


def loops_of(image: Path) -> list[str]:
    """Loop devices on a file, told by its device and inode."""
    try:
        wanted = os.stat(image)
    except FileNotFoundError:
        return []
    found = []
    for name in os.listdir("/sys/block"):
        if not name.startswith("loop") or not os.path.isdir(f"/sys/block/{name}/loop"):
            continue
        with contextlib.suppress(OSError):
            fd = os.open(f"/dev/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                status = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(232))
            finally:
                os.close(fd)
            device, inode = struct.unpack_from("=QQ", status)
            if inode == wanted.st_ino and device == wanted.st_dev:
                found.append(f"/dev/{name}")
    return found


def _users(point: Path) -> str:
    """Who has files open below a mount, as far as it can be seen."""
    device, found = os.stat(point).st_dev, []
    for number in (name for name in os.listdir("/proc") if name.isdigit()):
        for link in ("cwd", "root"):
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{number}/{link}").st_dev == device:
                    found.append(number)
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{number}/fd"):
                with contextlib.suppress(OSError):
                    if os.stat(f"/proc/{number}/fd/{fd}").st_dev == device:
                        found.append(number)
    return f"; processes that use it: {', '.join(dict.fromkeys(found))}" if found else ""


def refuse_device(path: str) -> None:
    """Raises ``StudyError`` for what is no block device, is in use, or has partitions."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}", path=path) from None
    if not stat.S_ISBLK(found.st_mode):
        raise StudyError(f"{path}: is no block device", path=path)
    sysfs = f"/sys/dev/block/{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    with contextlib.suppress(OSError):
        if any(os.path.exists(f"{sysfs}/{name}/partition") for name in os.listdir(sysfs)):
            raise StudyError(f"{path}: has partitions; name one of them", path=path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        busy = error.errno == errno.EBUSY
        text = "is mounted, or something else holds it" if busy else str(error.strerror)
        raise StudyError(f"{path}: {text}", path=path) from None
