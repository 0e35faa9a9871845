"""Mapped memory and writes that go on beside their thread: programs and the backend `mmap`, run for real."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadstone import Error
from loadstone.bundle.write import summarise
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_uniform

SIZE = 1 << 20


def run(on: Path | str, ops: list[dict[str, Any]], **of_set: Any) -> dict[str, Any]:
    """The summary of one thread's program on two files of 1 MiB, until it ends."""
    null = on == "null:"
    plan = check(
        {
            "version": 1,
            "targets": [
                {"id": "t", "kind": "null", "size": SIZE}
                if null
                else {"id": "t", "kind": "tree", "path": str(on)}
            ],
            "sets": [
                {"id": "s", "target": "t", "path": "f", "entries": 2, "size": SIZE, "present": 1.0, **of_set}
            ],
            "workers": [
                {
                    "source": {"kind": "program", "ops": ops},
                    "backend": "null" if null else "posix",
                    "depth": 1,
                }
            ],
            "steps": [
                {"step": "prepare"},
                {"step": "run", "duration_ns": 60_000_000_000, "until": "all_done"},
            ],
        }
    )
    return summarise(plan, execute(plan))


def op(act: str, **parts: Any) -> dict[str, Any]:
    files = {} if act in ("aio_wait", "close", "finish_on_count", "sync") else {"set": "s"}
    return {"name": act, "act": act, **files, **parts}


def end(of: str, count: int) -> dict[str, Any]:
    return op("finish_on_count", target=of, value=count)


def content(on: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((on / "f").rglob("[!.]*")) if path.is_file()]


def test_stores_to_a_mapped_file_reach_it(tmp_path: Path) -> None:
    on = tmp_path / "d"
    looked = run(on, [op("stat"), end("stat", 1)], reuse=True)
    assert looked["failure"] is None
    before = content(on)
    # One after the other, from the beginning again: 17 of 64 KiB write all 16 places of a file.
    ops = [op("mmap_write", size=65536, times=17, index=0), op("close"), end("mmap_write", 17)]
    summary = run(on, ops, reuse=True)
    assert summary["failure"] is None
    written = summary["steps"]["mmap_write"]
    assert (written["count"], written["bytes"], written["errors"]) == (17, 17 * 65536, {})
    after = content(on)
    assert after[1] == before[1]
    place = 4096
    changed = [after[0][at : at + place] != before[0][at : at + place] for at in range(0, SIZE, place)]
    assert all(changed)


@pytest.mark.parametrize("sync", [False, True])
def test_random_stores_keep_to_the_working_set(tmp_path: Path, sync: bool) -> None:
    on = tmp_path / "d"
    run(on, [op("stat"), end("stat", 1)], reuse=True)
    before = content(on)[0]
    store = op("mmap_write", size=4096, random=True, working_set=65536, times=400, index=0, sync=sync)
    run(on, [store, op("close"), end("mmap_write", 400)], reuse=True)
    after = content(on)[0]
    changed = np.frombuffer(after, "u1").reshape(-1, 4096) != np.frombuffer(before, "u1").reshape(-1, 4096)
    # 400 draws of 16 places leave one out once in ten thousand million times.
    assert changed.any(axis=1).tolist() == [True] * 16 + [False] * 240


def test_a_mapped_file_is_read_to_its_end_and_again(tmp_path: Path) -> None:
    ops = [op("mmap_read", size=300_000, times=5, index=0), op("close"), end("mmap_read", 5)]
    read = run(tmp_path / "d", ops)["steps"]["mmap_read"]
    # 300,000 three times and what is left, then from the beginning.
    assert (read["count"], read["bytes"], read["errors"]) == (5, SIZE + 300_000, {})


def test_a_mapped_file_that_is_cut_makes_transfers_short_and_no_signal(tmp_path: Path) -> None:
    ops = [
        op("mmap_read", size=4096, index=0),
        op("truncate", size=100),
        op("mmap_write", size=4096, working_set=SIZE, random=True, times=50),
        op("close"),
        end("truncate", 1),
    ]
    summary = run(tmp_path / "d", ops)
    written = summary["steps"]["mmap_write"]
    assert written["count"] == 50
    # The one place of 256 that is partly there is short, too.
    assert (summary["short"], written["bytes"]) == (50, 0)
    empty = [op("mmap_write", size=4096), op("mmap_read", size=4096), op("close"), end("mmap_read", 1)]
    summary = run(tmp_path / "e", empty, size=0)
    assert (summary["short"], summary["steps"]["mmap_read"]["errors"]) == (1, {})


def test_writes_that_go_on_beside_reach_their_file_and_are_all_counted(tmp_path: Path) -> None:
    on = tmp_path / "d"
    run(on, [op("stat"), end("stat", 1)], reuse=True)
    before = content(on)[0]
    # 600 under way when the thread ends: they are waited for.
    ops = [op("aio_write", size=4096, random=True, times=600, index=0), op("close"), end("close", 1)]
    summary = run(on, ops, reuse=True)
    assert summary["failure"] is None
    written = summary["steps"]["aio_write"]
    assert (written["count"], written["bytes"], written["errors"]) == (600, 600 * 4096, {})
    after = content(on)[0]
    changed = np.frombuffer(after, "u1").reshape(-1, 4096) != np.frombuffer(before, "u1").reshape(-1, 4096)
    # 256 places, 600 draws: 90.4 % are drawn; five standard deviations below are 81 %.
    assert changed.any(axis=1).mean() > 0.81


def test_waiting_sees_half_of_what_is_under_way(tmp_path: Path) -> None:
    ops = [
        op("aio_write", size=4096, random=True, times=8),
        op("aio_wait", blocking=True),
        end("aio_wait", 50),
    ]
    summary = run(tmp_path / "d", ops)
    assert summary["failure"] is None
    steps = summary["steps"]
    assert (steps["aio_wait"]["count"], steps["aio_write"]["count"]) == (50, 400)
    assert "aio_wait" not in summary["ops"]
    looks = run("null:", [op("aio_write", size=4096, random=True), op("aio_wait"), end("aio_wait", 9)])
    assert looks["steps"]["aio_write"]["bytes"] == 9 * 4096


def test_an_aio_write_that_fails_is_counted_with_its_errno(tmp_path: Path) -> None:
    # Beyond the limit of a file's size.
    import resource
    import signal

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    on = tmp_path / "d"
    run(on, [op("stat"), end("stat", 1)], reuse=True)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, limits[1]))
        ops = [
            op("aio_write", size=4096, random=True, working_set=1 << 40, times=30),
            op("close"),
            end("close", 1),
        ]
        written = run(on, ops, reuse=True)["steps"]["aio_write"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert written["count"] == 30 and written["errors"] == {"EFBIG": 30}


def test_the_backend_mmap_reads_writes_and_flushes(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_bytes(bytes(SIZE))
    plan = plan_uniform(
        "randwrite",
        str(target),
        RunOptions(backend="mmap", requests=3000, allow_destroy=[str(target)], fill=False),
    )
    assert plan["workers"][0]["backend"] == "mmap"
    summary = summarise(plan, execute(plan))
    assert summary["ops"]["write"]["count"] == 3000 and not summary["errors"]
    content = np.frombuffer(target.read_bytes(), "u1").reshape(-1, 4096)
    assert content.any(axis=1).mean() > 0.99
    plan = plan_uniform("read", str(target), RunOptions(backend="mmap", requests=512, sync="dsync"))
    assert summarise(plan, execute(plan))["ops"]["read"]["bytes"] == 512 * 4096
    with pytest.raises(Error, match="uses the page cache; leave out direct"):
        execute(plan_uniform("read", str(target), RunOptions(backend="mmap", requests=1, direct=True)))


@pytest.mark.parametrize("act", ["aio_write", "mmap_write"])
def test_zeros_are_written_where_they_are_asked_for(tmp_path: Path, act: str) -> None:
    on = tmp_path / "d"
    run(on, [op("stat"), end("stat", 1)], reuse=True)
    write = op(act, size=4096, random=True, times=600, index=0, zeros=True)
    run(on, [write, op("close"), end("close", 1)], reuse=True)
    blocks = np.frombuffer(content(on)[0], "u1").reshape(-1, 4096)
    # 256 places, 600 draws, as above.
    assert (~blocks.any(axis=1)).mean() > 0.81


@pytest.mark.root
@pytest.mark.parametrize("kind", ["randread", "randwrite"])
def test_what_the_device_cannot_give_fails_for_every_thread(
    tmp_path: Path, kind: str, need_root: None, need_tools: Callable[..., None]
) -> None:
    need_tools("losetup")
    image = tmp_path / "image"
    image.write_bytes(bytes(SIZE))
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=True)
    device = made.stdout.strip()
    try:
        # Nothing is left behind the device, and no thread may take another's fault for success.
        image.write_bytes(b"")
        plan = plan_uniform(
            kind,
            device,
            RunOptions(backend="mmap", requests=4000, depth=4, allow_destroy=[device], fill=False),
        )
        summary = summarise(plan, execute(plan))
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    op = summary["ops"][kind[4:]]
    assert (op["count"], op["bytes"], op["errors"]) == (4000, 0, {"EIO": 4000})
