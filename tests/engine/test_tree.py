"""Traces of system calls, replayed on files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadstone import Error, _core, trace
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_replay

SCRIPT = """
set -e
cd "$1"
mkdir -p a/b
printf hello > a/one
cp base a/two
mv a/one a/three
ln a/three a/four
ln -s three a/link
rm base2
truncate -s 12345 existing
cat existing > copy
dd if=copy of=a/b/out bs=4k conv=fsync 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9; do echo "$i" >> log; cat log > a/b/last; rm a/b/last; mkdir d$i; done
rmdir d1 d2
mv d3 moved
echo in > moved/it
printf first > p1
printf second > p2
cat p1 p2 base p1 > joined
cat joined >> p2
mv -f p1 p2
cp joined a/two
ls -la a > /dev/null
test ! -e nothing
"""


@pytest.fixture
def recorded(tmp_path: Path, need_tools: Callable[..., None]) -> tuple[Path, Path]:
    """A trace of a shell script, and the folder that it worked in."""
    need_tools("strace")
    work = tmp_path / "work"
    work.mkdir()
    (work / "base").write_bytes(b"b" * 8192)
    (work / "base2").write_bytes(b"")
    (work / "existing").write_bytes(bytes(range(256)) * 100)
    out = tmp_path / "script.strace"
    command = ["strace", "-f", "-ttt", "-T", "-o", str(out), "sh", "-c", SCRIPT, "sh", str(work)]
    subprocess.run(command, check=True, cwd=tmp_path)
    return out, work


def listing(folder: Path) -> dict[str, tuple[str, int]]:
    """Kind and size of all that is below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        found[str(path.relative_to(folder))] = (kind, path.stat().st_size if kind == "file" else 0)
    return found


@pytest.mark.parametrize("options", [["--pace", "max"], ["--pace", "x50"], ["--pace", "max", "--depth", "3"]])
def test_a_program_leaves_the_files_it_left(
    recorded: tuple[Path, Path], loadstone: Callable[..., Any], tmp_path: Path, options: list[str]
) -> None:
    out, work = recorded
    tree = tmp_path / "tree"
    before = listing(work)
    done = loadstone("replay", out, "--on", tree, *options, "--json")
    assert listing(work) == before, "nothing outside of the tree is touched"
    assert listing(tree / str(work).lstrip("/")) == before
    summary = json.loads(done.stdout)
    assert summary["requests"] > 500 and summary["errors"] == 0
    # Hard links are still links of one file.
    inside = tree / str(work).lstrip("/") / "a"
    assert (inside / "three").stat().st_ino == (inside / "four").stat().st_ino
    assert (inside / "link").resolve() == (inside / "three").resolve()


def test_what_a_call_came_to_and_its_second_name_are_kept(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    out, work = recorded
    stored = tmp_path / "a.parquet"
    trace.convert(out, stored)

    def read(path: Path) -> tuple[dict[str, Any], dict[int, str]]:
        reader = _core.TraceReader([str(path)], "{}")
        parts = []
        while (columns := reader.next()) is not None:
            parts.append(columns)
        names = {o["id"]: o["name"] for o in json.loads(reader.info())["objects"]}
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, names

    (text, names), (parquet, same) = read(out), read(stored)
    assert names == same
    assert all((text[name] == parquet[name]).all() for name in text)
    codes = {name: code for code, name in trace.OPS.items()}
    rename = np.flatnonzero(text["op"] == codes["rename"])
    pairs = {(names[text["object"][i]], names[text["other"][i]]) for i in rename}
    assert (f"{work}/a/one", f"{work}/a/three") in pairs and (f"{work}/d3", f"{work}/moved") in pairs
    missing = [i for i in range(len(text["op"])) if names[text["object"][i]] == f"{work}/nothing"]
    assert missing and all(text["result"][i] == -2 for i in missing)
    cut = text["op"] == codes["truncate"]
    assert 12345 in text["size"][cut]
    # From the stored trace as from the text.
    plan = plan_replay(stored, tmp_path / "tree", RunOptions(pace="max"))
    assert plan["workers"][0]["order"] == "completion"
    outcome = execute(plan)
    assert outcome["summary"]["errors"] == 0
    assert listing(tmp_path / "tree" / str(work).lstrip("/")) == listing(work)


@pytest.mark.slow
def test_a_tree_needs_a_place_of_its_own(
    recorded: tuple[Path, Path], loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    out, work = recorded
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "mine").write_text("mine")
    refused = loadstone("replay", out, "--on", tree, "--pace", "max", status=1)
    assert "is not empty" in refused.stderr and f"--allow-destroy {tree}" in refused.stderr
    assert (tree / "mine").read_text() == "mine" and listing(tree).keys() == {"mine"}
    loadstone("replay", out, "--on", tree, "--pace", "max", "--allow-destroy", tree)
    assert not (tree / "mine").exists()
    # Again, over what the first left.
    loadstone("replay", out, "--on", tree, "--pace", "max", "--allow-destroy", tree)
    assert listing(tree / str(work).lstrip("/")) == listing(work)
    (tmp_path / "file").write_text("")
    assert "is no directory" in loadstone("replay", out, "--on", tmp_path / "file", status=1).stderr
    assert "cannot be made" in loadstone("replay", out, "--on", tmp_path / "no/where", status=1).stderr


def test_what_does_not_apply_is_refused(recorded: tuple[Path, Path], tmp_path: Path, root: Path) -> None:
    out, _ = recorded
    for name, value in {"size": 4096, "direct": True, "offsets": "wrap", "backend": "sync"}.items():
        with pytest.raises(Error, match=f"`{name}`"):
            plan_replay(out, tmp_path / "tree", RunOptions(**{name: value}))  # type: ignore[arg-type]
    (tmp_path / "folder").mkdir()
    with pytest.raises(Error, match=r"is a directory, and .* has no requests of files"):
        plan_replay(root / "examples" / "loop0.parquet", tmp_path / "folder")
    plan = plan_replay(out, tmp_path / "tree")
    with pytest.raises(Error, match="one tree is built for one"):
        execute({**plan, "workers": plan["workers"] * 2})
    assert not (tmp_path / "tree").exists()


def test_no_trace_gets_out_of_its_tree(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    up = "../" * 20
    lines = [
        f'openat(AT_FDCWD, "{up}{outside}", O_RDWR|O_CREAT|O_TRUNC) = 3',
        f'symlink("{up}{outside}", "/tmp/link") = 0',
        'openat(AT_FDCWD, "/tmp/link", O_RDWR|O_CREAT|O_TRUNC) = 4',
        'write(4, "x", 1) = 1',
        f'unlink("/../../..{outside}") = 0',
        f'rename("/tmp/link", "{up}{outside}2") = 0',
        f'mkdir("{"n" * 300}") = 0',
    ]
    text = "".join(f"7 {100 + i}.000001 {line} <0.000005>\n" for i, line in enumerate(lines))
    (tmp_path / "a.strace").write_text(text)
    done = loadstone("replay", tmp_path / "a.strace", "--on", tmp_path / "tree", "--pace", "max", status=1)
    assert "ENAMETOOLONG" in done.stdout + done.stderr
    assert outside.read_text() == "untouched"
    assert {path.name for path in tmp_path.iterdir()} == {"a.strace", "outside", "tree"}


def test_what_is_appended_to_is_as_long_as_it_was(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    """Each append's place counted as what the file had at the start, earlier appends and all."""
    lines = [
        'openat(AT_FDCWD, "/log", O_WRONLY|O_APPEND) = 3',
        "fstat(3, {st_mode=S_IFREG|0644, st_size=5000, ...}) = 0",
    ]
    lines += ['write(3, "x"..., 100) = 100'] * 5 + ["close(3) = 0"]
    text = "".join(f"7 {100 + i}.000001 {line} <0.000010>\n" for i, line in enumerate(lines))
    (tmp_path / "a.strace").write_text(text)
    loadstone("replay", tmp_path / "a.strace", "--on", tmp_path / "tree", "--pace", "max")
    assert listing(tmp_path / "tree") == {"log": ("file", 5500)}


def test_processes_take_turns_at_what_they_share(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    # One process makes what another uses and takes away; the others come long after their last call.
    rounds = [
        (7, 'mkdir("/d", 0777) = 0'),
        (7, 'openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3'),
        (7, 'write(3, "x", 4096) = 4096'),
        (8, 'openat(AT_FDCWD, "/d/f", O_RDONLY) = 3'),
        (8, 'read(3, "x", 4096) = 4096'),
        (9, 'rename("/d", "/e") = 0'),
        (8, 'unlink("/e/f") = 0'),
        (7, "close(3) = 0"),
        (9, 'rmdir("/e") = 0'),
        (8, "close(3) = 0"),
        (9, 'stat("/d/f", 0x1) = -1 ENOENT (No such file or directory)'),
    ]
    lines = []
    for pid, line in rounds * 300:
        lines.append(f"{pid} {100 + 2 * len(lines)}.000001 {line} <0.000005>\n")
    (tmp_path / "a.strace").write_text("".join(lines))
    for i in range(3):
        order = ["--order", "dependency", "--independent", "max", "--depth", "8"]
        done = loadstone("replay", tmp_path / "a.strace", "--on", tmp_path / f"tree{i}", *order, "--json")
        summary = json.loads(done.stdout)
        assert (summary["requests"], summary["errors"], summary["short"]) == (3300, 0, 0)
        assert listing(tmp_path / f"tree{i}") == {}
        assert not any("succeeded" in note for note in summary["notes"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", [["--pace", "max"], ["--order", "dependency", "--independent", "max", "--think", "none"]]
)
def test_a_real_application(
    order: list[str], loadstone: Callable[..., Any], applications: Path, tmp_path: Path
) -> None:
    done = loadstone("replay", applications, "--on", tmp_path / "tree", *order, "--json")
    summary = json.loads(done.stdout)
    # A database, a copy of a folder tree, finds and removals, by up to a dozen processes at a time.
    wanted = 180_000 if applications.suffix == ".gz" else 35_000
    assert summary["requests"] > wanted and (summary["errors"], summary["short"]) == (0, 0)


def test_a_trace_of_files_needs_a_directory_and_is_told_so_at_once(tmp_path, loadstone):
    (tmp_path / "a.strace").write_text(
        '7 100.000001 openat(AT_FDCWD, "f", O_RDWR|O_CREAT, 0644) = 3 <0.000005>\n'
        '7 101.000001 write(3, "x"..., 4096) = 4096 <0.000005>\n'
    )
    trace = tmp_path / "a.strace"
    for words in (("replay", trace, "--on", "null:", "--dry-run"), ("evaluate", trace, "--on", "null:")):
        told = loadstone(*words, status=1).stderr
        assert (
            f"{trace}: has requests of files, such as open" in told and "name a directory with --on" in told
        )
