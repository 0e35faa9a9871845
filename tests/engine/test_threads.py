"""Few threads allowed: the work is done with fewer, or the error says which thread could not be started."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("need_root")]

GROUPS = Path("/sys/fs/cgroup")
SCRIPT = """define fileset name=s,path=$dir,entries=90,size=4k,dirwidth=20,prealloc
define process name=p { thread name=t,instances=2 {
flowop read name=r,filesetname=s,iosize=4k
flowop finishoncount name=f,value=40 } }
run 60
"""


@pytest.fixture
def allow(tmp_path: Path) -> Iterator[Callable[[int], Callable[[], None]]]:
    """``allow(n)``: what a new process does first so that it may have ``n`` threads, itself included."""
    above = GROUPS / "pids" if (GROUPS / "pids").is_dir() else GROUPS
    group = above / f"loadstone-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as e:
        pytest.skip(f"no cgroup can be made here: {e}")
    try:
        if not (group / "pids.max").exists():
            pytest.skip("no cgroup here counts threads")

        def allowed(n: int) -> Callable[[], None]:
            (group / "pids.max").write_text(str(n))

            def enter() -> None:
                (group / "cgroup.procs").write_text("0")

            return enter

        yield allowed
    finally:
        group.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_that_cannot_be_had_are_no_defect(
    loadstone: Any, allow: Callable[[int], Callable[[], None]], tmp_path: Path, threads: int
) -> None:
    script, trace = tmp_path / "s.f", tmp_path / "t.spc"
    script.write_text(SCRIPT)
    trace.write_text("".join(f"0,{8 * i},4096,w,{i / 1000}\n" for i in range(500)))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "f").write_bytes(bytes(100_000))
    state = ("--requests", 100, "--size", "1m", "--verify-state", tmp_path / "state", "--backend", "sync")
    for words in (
        ("run", script, "--on", tmp_path / "d"),
        ("run", "randwrite", "--on", tmp_path / "file", *state, "--nice", 5),
        ("model", "fit", trace, "-o", tmp_path / "m.mdh"),
        ("dataset", "scan", tmp_path / "tree", "-o", tmp_path / "x.fst"),
    ):
        done = loadstone(*words, status=None, before=allow(threads))
        said = done.stdout + done.stderr
        assert "defect" not in said and "panicked" not in said and "Traceback" not in said, said
        assert done.returncode == 0 or "thread" in done.stderr, (words, said)
    done = loadstone("trace", "describe", trace, "--json", status=None, before=allow(threads))
    # Never as if it were empty.
    if done.returncode == 0:
        assert json.loads(done.stdout)["requests"] == 500
    else:
        assert "no thread could be started" in done.stderr
