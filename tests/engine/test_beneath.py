"""Nothing leads out of the directory of a load: no link that is put in the way, on old kernels neither."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error, _core, dataset
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_replay

SECOND = 1_000_000_000

# Exchanges two names over and over, as fast as one process can (renameat2(2), RENAME_EXCHANGE). The second is
# a link, and is made again where a load that was given all in its directory has removed it.
RACER = """
import contextlib, ctypes, os, sys
one, other, outside = map(os.fsencode, sys.argv[1:])
exchange = ctypes.CDLL(None).renameat2
print("ready", flush=True)
while True:
    if exchange(-100, one, -100, other, 2):
        with contextlib.suppress(OSError):
            os.symlink(outside, other)
"""

# Answers ENOSYS to openat2(2) and faccessat2(2) in this process (seccomp(2)): as Linux before 5.6 does.
OLD_KERNEL = """
import ctypes, os, struct
prctl = ctypes.CDLL(None, use_errno=True).prctl
def bpf(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)
steps = [bpf(0x20, 0, 0, 0), bpf(0x15, 2, 0, 437), bpf(0x15, 1, 0, 439), bpf(0x06, 0, 0, 0x7FFF0000),
         bpf(0x06, 0, 0, 0x00050000 | 38)]
code = ctypes.create_string_buffer(b"".join(steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.byref(program), 0, 0):
    raise SystemExit(f"no seccomp: {os.strerror(ctypes.get_errno())}")
how = ctypes.create_string_buffer(24)
ctypes.CDLL(None, use_errno=True).syscall(437, -100, b"/", how, 24)
"""


def op(act: str, **parts: Any) -> dict[str, Any]:
    return {"name": act, "act": act, "set": "s", **parts}


EVERY = [
    op("open", next=True),
    op("append", next=True, size=100),
    op("write", next=True, size=100),
    op("create", next=True),
    op("truncate", next=True, size=7),
    op("setxattr", next=True, size=7),
    *map(op, ["remove", "stat", "access", "readdir", "readdirplus", "mkdir", "rmdir", "rename", "link"]),
    op("symlink"),
    op("readlink"),
]


def plan(on: Path, acts: list[dict[str, Any]], *, ms: int = 300, **parts: Any) -> dict[str, Any]:
    """Each act by a worker of its own, in a set of one directory."""
    of = {"entries": 60, "present": 0.5, "size": 300, "width": 1000, "leaf_directories": 6, **parts}
    worker = {"backend": "posix", "depth": 1}
    return check(
        {
            "version": 1,
            "targets": [{"id": "t", "kind": "tree", "path": str(on)}],
            "sets": [{"id": "s", "target": "t", "path": "files", **of}],
            "workers": [
                {**worker, "group": act["act"], "source": {"kind": "program", "ops": [act]}} for act in acts
            ],
            "steps": [{"step": "prepare"}, {"step": "run", "duration_ns": ms * SECOND // 1000}],
        }
    )


def seen(folder: Path) -> dict[str, Any]:
    """All that is below a folder, and when it was changed last, which nobody can set."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        stat = path.lstat()
        text = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (stat.st_ino, stat.st_mode, stat.st_nlink, stat.st_ctime_ns, text)
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What a link leads to: names that loads use, and somebody's files."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for number in range(1, 31):
        (folder / f"{number:08}").write_text("mine")
        (folder / f"f{number}").write_text("mine")
    for number in (62, 64):
        (folder / f"{number:08}").mkdir()
        (folder / f"d{number}").mkdir()
    return folder


@contextmanager
def racing(place: Path, link: Path) -> Iterator[None]:
    """While this goes on, a directory and a link out take each other's place."""
    outside = link.readlink()
    words = [sys.executable, "-c", RACER, place, link, outside]
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    try:
        yield
    finally:
        child.kill()
        child.wait()
        if place.is_symlink():
            place.unlink()
        if link.is_dir() and not link.is_symlink():
            subprocess.run(["rm", "-rf", place], check=True)
            link.rename(place)
        if not link.is_symlink():
            link.symlink_to(outside)


def for_a_while(once: Callable[[], Any], seconds: float = 2.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # What meets a link is refused, and ends some of the loads.
        with contextlib.suppress(Error):
            once()


@pytest.fixture
def link(tmp_path: Path, outside: Path) -> Path:
    link = tmp_path / "link"
    link.symlink_to(outside)
    return link


@pytest.mark.slow
def test_a_program_and_its_set_stay_inside(tmp_path: Path, outside: Path, link: Path) -> None:
    on, before = tmp_path / "on", seen(outside)
    place = on / "files/00000001"
    for acts, parts in (
        (EVERY, {}),
        (EVERY[:-2], {}),
        ([op("stat")], {"reuse": True}),
        ([op("stat")], {"size": 0}),
    ):
        execute(plan(on, [op("stat")], ms=1))
        # Made, used and cleared again and again.
        with racing(place, link):
            for_a_while(partial(execute, plan(on, acts, **parts)), 1.5)
        subprocess.run(["rm", "-rf", on], check=True)
        # Only used: the race begins when the files are there.
        run = _core.start(json.dumps(plan(on, acts, ms=1500, **parts)))
        while run.live()["phase"] not in ("running", "done"):
            time.sleep(0.001)
        with racing(place, link), contextlib.suppress(Error):
            run.join()
        subprocess.run(["rm", "-rf", on], check=True)
        assert seen(outside) == before


def calls(rounds: int) -> str:
    """A trace of calls on names in one directory."""
    lines = [
        'openat(AT_FDCWD, "/d/f1", O_RDWR) = 3',
        'pwrite64(3, "x", 100, 0) = 100',
        "close(3) = 0",
        'openat(AT_FDCWD, "/d/new", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3',
        "close(3) = 0",
        'truncate("/d/f2", 50) = 0',
        'stat("/d/f3", 0x1) = 0',
        'access("/d/f4", F_OK) = 0',
        'utimensat(AT_FDCWD, "/d/f5", NULL, 0) = 0',
        'rename("/d/new", "/d/f6") = 0',
        'link("/d/f7", "/d/f8") = 0',
        'unlink("/d/f8") = 0',
        'mkdir("/d/d1", 0777) = 0',
        'rmdir("/d/d1") = 0',
        'symlink("f9", "/d/f10") = 0',
        'readlink("/d/f10", "f9", 100) = 2',
        'unlink("/d/f10") = 0',
        'mknod("/d/f11", S_IFREG|0644) = 0',
        'unlink("/d/f11") = 0',
        'rmdir("/d/d62") = 0',
        'mkdir("/d/d62", 0777) = 0',
    ]
    each = (line for _ in range(rounds) for line in lines)
    return "".join(f"7 {100 + i / 1000:.6f} {line} <0.000005>\n" for i, line in enumerate(each))


@pytest.mark.slow
@pytest.mark.parametrize("order", [{}, {"order": "none", "depth": 3}])
def test_a_trace_and_its_tree_stay_inside(
    tmp_path: Path, outside: Path, link: Path, order: dict[str, Any]
) -> None:
    on, before = tmp_path / "on", seen(outside)

    def replay(rounds: int) -> dict[str, Any]:
        (tmp_path / "a.strace").write_text(calls(rounds))
        return plan_replay(tmp_path / "a.strace", on, RunOptions(pace="max", allow_destroy=[on], **order))

    # Without a race it does all of it.
    summary = execute(replay(20))["summary"]
    if not order:
        assert (summary["requests"], summary["errors"]) == (20 * 21, 0)
    # Built, used and cleared again and again.
    with racing(on / "d", link):
        for_a_while(partial(execute, replay(20)), 2.0)
    assert seen(outside) == before
    # Only used: the race begins when the files are there.
    run = _core.start(json.dumps(replay(2000)))
    while run.live()["phase"] not in ("running", "done"):
        time.sleep(0.001)
    with racing(on / "d", link), contextlib.suppress(Error):
        run.join()
    assert seen(outside) == before


def test_a_dataset_stays_inside(tmp_path: Path, outside: Path, link: Path) -> None:
    source = tmp_path / "source"
    for number in range(1, 400):
        path = source / f"d/s{number % 7}/f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") * 500)
    (source / "d/l").symlink_to("s1/f1")
    os.link(source / "d/s1/f1", source / "d/s2/h1")
    dataset.scan(source, tmp_path / "a.fst")
    for number in range(7):
        (outside / f"s{number}").mkdir()
    out, before = tmp_path / "out", seen(outside)

    def write() -> None:
        subprocess.run(["rm", "-rf", out], check=False, stderr=subprocess.DEVNULL)
        dataset.write(tmp_path / "a.fst", out)

    write()
    with racing(out / "d", link):
        for_a_while(write, 3.0)
    assert seen(outside) == before


def test_links_of_the_trace_lead_where_they_led(tmp_path: Path) -> None:
    """As long as that is in the tree; what somebody else puts there is no link of the trace."""
    lines = [
        'mkdir("/d", 0777) = 0',
        'mkdir("/e", 0777) = 0',
        'openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0644) = 3',
        'write(3, "x", 10) = 10',
        "close(3) = 0",
        'symlink("../d/f", "/e/l") = 0',
        'openat(AT_FDCWD, "/e/l", O_RDWR) = 3',
        'pwrite64(3, "x", 20, 0) = 20',
        "close(3) = 0",
        'rename("/e/l", "/e/m") = 0',
        'access("/e/m", F_OK) = 0',
        'readlink("/e/m", "../d/f", 100) = 6',
        'openat(AT_FDCWD, "/e/m", O_WRONLY|O_APPEND) = 3',
        'write(3, "x", 5) = 5',
        "close(3) = 0",
        'symlink("none", "/e/n") = 0',
        'access("/e/n", F_OK) = -1 ENOENT (No such file or directory)',
        'lstat("/e/n", 0x1) = 0',
        'readlink("/old", "x", 100) = 1',
        'openat(AT_FDCWD, "/old", O_RDONLY) = 3',
        'read(3, "x", 3000) = 3000',
        "close(3) = 0",
    ]
    text = "".join(f"7 {100 + i}.000001 {line} <0.000005>\n" for i, line in enumerate(lines))
    (tmp_path / "a.strace").write_text(text)
    on = tmp_path / "on"
    summary = execute(plan_replay(tmp_path / "a.strace", on, RunOptions(pace="max")))["summary"]
    assert (summary["requests"], summary["errors"], summary["short"]) == (len(lines), 0, 0)
    assert not any("succeeded" in note for note in summary["notes"])
    assert (on / "d/f").stat().st_size == 25 and os.readlink(on / "e/m") == "../d/f"
    assert (on / "old").resolve().is_relative_to(on) and (on / "old").stat().st_size == 3000
    # The tree may be moved.
    on.rename(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere/e/m").stat().st_size == 25


def test_links_of_a_program_lead_where_they_led(tmp_path: Path) -> None:
    on = tmp_path / "on"
    acts = [op("symlink"), op("open", next=True), op("stat"), op("access"), op("append", next=True, size=100)]
    found = plan(on, acts, ms=200)
    found["sets"][0]["present"] = 0.1
    found["workers"] = [
        {**found["workers"][0], "source": {"kind": "program", "ops": [*acts, op("stat", times=20)]}}
    ]
    found["steps"][1]["until"] = "first_done"
    outcome = execute(check(found))
    summary = outcome["summary"]
    assert (summary["errors"], summary["failure"]) == (0, None)
    links = [path for path in on.rglob("0*") if path.is_symlink()]
    assert len(links) > 20 and all(path.exists() and path.resolve().is_relative_to(on) for path in links)


def test_what_others_link_in_a_program_is_refused_and_counted(tmp_path: Path, outside: Path) -> None:
    on, before = tmp_path / "on", seen(outside)
    # Looked up once before the link is there, or not at all.
    for act, wait, refused in (("open", 0.0, True), ("stat", 1.0, False), ("stat", 0.0, True)):
        delay = {"name": "delay", "act": "delay", "value": 1.5}
        acts = [op(act, next=act == "open"), delay, op(act, next=act == "open", times=50)]
        found = plan(on, [op(act)], ms=2500, entries=1, present=1.0, leaf_directories=0)
        ops = acts if wait else acts[1:]
        found["workers"][0]["source"]["ops"] = ops
        run = _core.start(json.dumps(check(found)))
        while run.live()["phase"] not in ("running", "done"):
            time.sleep(0.001)
        time.sleep(wait / 2)
        (on / "files/00000001").rename(tmp_path / "aside")
        (on / "files/00000001").symlink_to(outside)
        summary = run.join()["summary"]
        assert (summary["errors"] > 0) == refused and summary["requests"] >= 50, act
        subprocess.run(["rm", "-rf", on, tmp_path / "aside"], check=True)
    assert seen(outside) == before


@pytest.fixture
def old_kernel(root: Path) -> Callable[..., str]:
    """Runs Python where the kernel has no openat2."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("system calls have other numbers here")

    def run(code: str, *words: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, "-c", OLD_KERNEL + code, *words],
            capture_output=True,
            text=True,
            cwd=root,
            check=False,
        )
        if "no seccomp" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


EXECUTE = """
import json, sys
from loadstone import Error
from loadstone.workload import execute
told = []
for text in sys.argv[1:]:
    try:
        summary = execute(json.loads(text))["summary"]
        told.append([summary["requests"], summary["errors"], summary["failure"]])
    except Error as e:
        told.append([0, 0, str(e)])
print(json.dumps(told))
"""


def test_without_openat2_all_is_as_with_it(
    tmp_path: Path, old_kernel: Callable[..., str], outside: Path, link: Path
) -> None:
    assert old_kernel("print(ctypes.get_errno())").strip() == str(38)
    on, tree = tmp_path / "on", tmp_path / "tree"
    (tmp_path / "a.strace").write_text(calls(20))
    load = plan(on, [op("stat"), op("open", next=True), op("access"), op("readdir")], ms=100)
    again = plan(on, EVERY[:5], ms=100, entries=100)
    replay = plan_replay(tmp_path / "a.strace", tree, RunOptions(pace="max"))
    told = json.loads(old_kernel(EXECUTE, *map(json.dumps, (load, again, replay))))
    assert told[0][0] > 100 and told[0][1:] == [0, None]
    assert told[1][0] > 50 and told[1][1] == 0
    assert told[2] == [20 * 21, 0, None]
    # And what is put in the way leads nowhere.
    before = seen(outside)
    place = on / "files/00000001"
    with racing(place, link):
        old_kernel(EXECUTE, *[json.dumps(plan(on, EVERY, ms=300))] * 4)
    with racing(tree / "d", link):
        replay = plan_replay(tmp_path / "a.strace", tree, RunOptions(pace="max", allow_destroy=[tree]))
        old_kernel(EXECUTE, *[json.dumps(replay)] * 10)
    assert seen(outside) == before
