"""What every test may use: the command, golden texts, real traces, and what a machine must have.

A test that needs a program, root or the real traces asks for it here. Where it is missing the test
is skipped with the reason; with ``CI=true`` it fails instead, so that CI cannot pass by skipping.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CI = os.environ.get("CI") == "true"
WRITE_GOLDEN = os.environ.get("LOADSTONE_WRITE_GOLDEN") == "1"
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"
# Wrapping, colours and the user's own settings must not change what a test sees.
os.environ.update(COLUMNS="100", NO_COLOR="1", MPLBACKEND="agg")
if "LOADSTONE_TESTS_FOLDER" not in os.environ:
    # Processes that run tests at once are started by this one, and share its folder.
    _folder = tempfile.TemporaryDirectory(prefix="loadstone-tests-")
    os.environ["LOADSTONE_TESTS_FOLDER"] = _folder.name
SHARED = Path(os.environ["LOADSTONE_TESTS_FOLDER"])
# Fonts are looked for once, not by each command that draws.
os.environ["MPLCONFIGDIR"] = str(SHARED / "fonts")
# Started in the background of a script, tests would have Ctrl-C ignored, and so would all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def missing(reason: str) -> None:
    """Ends a test that cannot run here: skipped on a person's machine, failed on CI."""
    if CI:
        pytest.fail(f"CI must have it: {reason}")
    pytest.skip(reason)


@pytest.fixture
def public():
    """A directory that everybody may enter, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="loadstone-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture
def need_tools() -> Callable[..., None]:
    """``need_tools("fio", "mkfs.xfs")``: the programs the test calls."""

    def need(*names: str) -> None:
        absent = [name for name in names if not shutil.which(name)]
        if absent:
            missing(f"not installed: {', '.join(absent)} (make test names the packages)")

    return need


@pytest.fixture
def need_root() -> None:
    """Skips unless the test runs as root."""
    if os.geteuid() != 0:
        missing("needs root (loop devices, mounts)")


@pytest.fixture
def shared_traces() -> Path:
    """The folder of real traces beside the project; most of them may not be shipped with it."""
    folder = ROOT.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip(f"no real traces at {folder}")
    return folder


@pytest.fixture(params=["part", "whole"])
def applications(request: pytest.FixtureRequest) -> Path:
    """The system calls of real programs: a part in the project, and the whole beside it (.gz)."""
    if request.param == "part":
        return ROOT / "tests/data/mixed.strace.xz"
    folder: Path = request.getfixturevalue("shared_traces")
    return folder / "strace/mixed.strace.gz"


@pytest.fixture
def loadstone() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed command: ``loadstone("trace", "describe", path)``.

    ``status`` is the exit status that is expected (None: any), ``cwd`` where it runs, ``before`` what the
    new process does first.
    """
    program = ROOT / ".venv" / "bin" / "loadstone"
    found = str(program) if program.exists() else shutil.which("loadstone")
    assert found, "build first: make build"

    def run(
        *args: object,
        status: int | None = 0,
        cwd: Path | None = None,
        timeout: float = 120,
        before: Callable[[], None] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [found, *map(str, args)],
            cwd=cwd,
            timeout=timeout,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=before,
        )
        if status is not None:
            assert done.returncode == status, f"{args}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """``golden("help-trace.txt", text)``: the text must be the one kept in ``tests/golden``.

    ``make golden`` rewrites them; look at the difference before committing it.
    """

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if WRITE_GOLDEN:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"no {path}; make golden writes it"
        assert text == path.read_text(), f"differs from {path}; if that is wanted: make golden"

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lets nothing else run beside a test that is marked ``alone``, where several run at once."""
    with (SHARED / "turn").open("a") as turn, (SHARED / "all").open("a") as all_:
        # Whoever waits for all others holds the turn, so that none of them begins another test.
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(all_, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that compares with a golden text, so that ``make golden`` finds it."""
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")


@pytest.fixture
def alone(tmp_path, need_root, need_tools):
    """A block device that nobody else uses, so that its counters are those of the load alone."""
    need_tools("losetup")
    image = tmp_path / "image"
    image.write_bytes(bytes(32 << 20))
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "-d", made.stdout.strip()], check=True)


@pytest.fixture
def mounted(alone, tmp_path, need_tools):
    """A file system on a block device that nobody else uses."""
    need_tools("mkfs.ext4", "mount")
    subprocess.run(["mkfs.ext4", "-q", alone], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", alone, place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)
