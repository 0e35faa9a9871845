"""The commands that the pages show are run, pasted one after the other into one fresh folder.

Places, sizes and times stand for the reader's own, so smaller ones take their place here. Whatever is not
run is listed with its reason.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# Begin of a command, and why it is not run.
ARCHIVES = "needs twelve archives from the network, or what came of them"
LOOP = "needs a file system of its own; test_power.py has one"
SKIPPED = {
    "README.md": {},
    "docs/explanation/content.md": {"loadstone content examine PATH...": "a synopsis"},
    "docs/explanation/datasets.md": {
        "loadstone dataset scan Django": ARCHIVES,
        "loadstone dataset profile django.fst": ARCHIVES,
        "loadstone dataset create django.profile": ARCHIVES,
        "loadstone dataset write made.fst": ARCHIVES,
        "loadstone dataset verify target": ARCHIVES,
        "loadstone dataset scan --snapshots": "needs snapshots of btrfs",
        "loadstone dataset scan --git": "needs two repositories",
        "loadstone dataset create preset:kernels": "takes a minute; test_make.py runs presets",
    },
    "docs/tutorial.md": {
        "loadstone evaluate": "takes minutes; test_evaluate_command.py has it",
        "loadstone report evaluation": "needs that",
    },
    "docs/howto/size-an-array.md": {},
    "docs/howto/compare-two-ssds.md": {
        "loadstone report": "needs all runs of three rounds",
        "for i": "takes minutes",
    },
    "docs/howto/compare-two-file-systems.md": {
        "loadstone compare main.bundle": "ends with a status of its own; test_texts.py has it",
        "loadstone compare --history": "needs results of weeks; test_history.py makes some",
    },
    "docs/howto/hand-a-load-to-fio.md": {
        "fio app.fio": "plays for as long as the trace was",
        "loadstone model check app.mdh run_lat": "needs the logs of that",
    },
    "docs/howto/test-a-deduplicating-store.md": {},
    "docs/howto/coming-from-fio.md": {},
    "docs/howto/coming-from-filebench.md": {},
    "docs/reference/exporters.md": {
        "fio loop0.fio": "plays for as long as the trace was; test_export.py runs short ones",
        "loadstone model check loop0.mdh run_lat": "needs the logs of that; test_export.py reads fio's",
        "sh loop0.sh": "needs Filebench",
    },
    "docs/howto/run-a-study.md": {},
    "docs/howto/write-a-feature.md": {},
    "docs/reference/filebench.md": {},
    "docs/reference/fio.md": {"cat job.fio": "shows what is run"},
    "docs/reference/formats/bundle.md": {},
    "docs/reference/formats/fstree.md": {},
    "docs/reference/formats/model.md": {},
    "docs/reference/formats/plan.md": {},
    "docs/reference/formats/plan-programs.md": {},
    "docs/reference/formats/profile.md": {},
    "docs/reference/formats/verify-state.md": {},
    "docs/explanation/models.md": {
        "strace": "stands for the reader's program",
        "loadstone model fit disk.spc -o near.mdh": "takes up to 24 fits; test_target.py has it",
    },
    "docs/reference/suites.md": {
        "loadstone run iozone --sweep": "takes minutes; test_suites.py runs small sweeps"
    },
    "docs/explanation/verification.md": {
        "umount": LOOP,
        "loadstone verify --state file.verify": LOOP,
    },
    "docs/reference/workloads.md": {},
}
# Commands of a page that end with status 1, as they are to find what the page damaged before.
FINDS = {"docs/explanation/verification.md": "loadstone verify --state store.verify"}

# What stands for the reader's own, in this order.
SMALLER = [
    (r"/mnt/", "$PWD/mnt/"),
    (r"--size (?:\d+g|\dx-ram)", "--size 32m"),
    (r"--size 256m", "--size 64m"),
    (r"--(duration|runtime) \d+s", r"--\1 500ms"),
    (r"-D size=1g,2g,4g", "-D size=1m,2m"),
    (r"-D processes=1-32", "-D processes=1-2"),
    (r"-D nfiles=20000", "-D nfiles=500"),
    (r"--repeat (?:until-sure|10)", "--repeat 4"),
    (r"--pace x2", "--pace max"),
    (r"--scale 10", "--scale 1"),
    (r"--size 360m", "--size 8m"),
    (r"--requests 360", "--requests 8"),
    (r"--files 100000", "--files 500"),
    (r"--generations (?:10|30)", "--generations 3"),
    (r"--order dependency$", "--order dependency --duration 1s"),
    (r"(evaluate app.strace .*)", r"\1 --repeat 2"),
    (r"(run app.mdh .*)", r"\1 --offsets wrap"),
    (r"(run touch-files .*)", r"\1 -D files=50 -D directories=5"),
    (r"(run bonnie .*)", r"\1 -D files=200 -D seeks=100"),
    (r"(run vxbench .*)", r"\1 --size 4m"),
    (r"--budget 30m", "--set workloads.mail.options.duration=200ms --set repeat.runs=2"),
    (r"\s+(?://|#) .*", ""),
]


def commands_of(text: str) -> list[str]:
    """The commands of a page, in order: after ``$``, or lines that begin with the program's name."""
    joined = re.sub(r"\\\n\s*", "", text)
    found = re.findall(r"^(?: {4})?(?:\$ (.*)|(loadstone (?!\.\.\.).*))$", joined, re.M)
    return [prompt or line for prompt, line in found]


def backups(folder: Path) -> None:
    """Three days of 300 files, of which each day some are appended to, deleted and added."""
    draw = random.Random(1)

    def content() -> bytes:
        return draw.randbytes(int(draw.lognormvariate(9.5, 1)))

    files = {f"{'abcdef'[i % 6]}/{i}.txt": content() for i in range(300)}
    for day in ("mon", "tue", "wed"):
        for name, data in files.items():
            path = folder / day / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            # Young files are left out: they may still be written.
            os.utime(path, (1e9, 1e9))
        for name in draw.sample(sorted(files), 20):
            files[name] += draw.randbytes(3000)
        for name in draw.sample(sorted(files), 10):
            del files[name]
        files |= {f"a/{day}{i}.txt": content() for i in range(12)}


def spc(path: Path, seed: int) -> None:
    rows = (f"{i % 2},{(i * 7919 + seed) % 2**16 * 8},4096,{'RRW'[i % 3]},{i * 2.2:.3f}" for i in range(5000))
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture
def reader(root: Path, tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Pastes a command into a shell in a folder with what readers have of their own."""
    program = root / ".venv/bin"
    environment = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / "examples").symlink_to(root / "examples")
    for place in ("store", "scratch", "ext4", "xfs"):
        (tmp_path / "mnt" / place).mkdir(parents=True)
    backups(tmp_path / "backups")
    for number, name in enumerate(("disk.spc", "mail.spc", "backup.spc")):
        spc(tmp_path / name, number)
    (tmp_path / "trace.parquet").symlink_to(root / "examples/loop0.parquet")
    (tmp_path / "app.blktrace").symlink_to(root / "examples/loop0.parquet")
    (tmp_path / "app.strace").symlink_to(root / "tests/data/mixed.strace.xz")

    def paste(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )

    return paste


# What a page takes for granted.
BEFORE = {
    "docs/reference/exporters.md": ["loadstone model fit examples/loop0.parquet -o loop0.mdh"],
    "docs/reference/filebench.md": ["loadstone run varmail --source > varmail.f"],
    "docs/reference/fio.md": ["mkdir mnt/files"],
    "docs/explanation/models.md": [
        f"loadstone model fit {name}.spc -o {name}.mdh" for name in ("mail", "backup", "disk")
    ],
    "docs/reference/suites.md": ["tar czf a.tar.gz backups && tar czf b.tar.gz backups"],
}
# What a page says to save: its name, and where it is in the page.
SAVED = {
    "docs/explanation/datasets.md": ("logs.py", r"```python\n(.*?)```"),
    "docs/reference/exporters.md": ("plain.py", r"```python\n(.*?)```"),
    "docs/howto/run-a-study.md": ("mail.toml", r"```toml\n(.*?)```"),
    "docs/howto/write-a-feature.md": ("hot.py", r"```python\n(.*?)```"),
    "docs/reference/formats/plan-programs.md": ("program.json", r"```json\n(.*?)```"),
    "docs/reference/fio.md": ("job.fio", r"\$ cat job.fio\n(.*?)\$ "),
}


ROOTED = {"docs/howto/run-a-study.md"}
"""Pages whose commands make and mount file systems."""


def left_in(root: Path) -> list[str]:
    """What lies in the checkout that git does not track, but for what builds and other tests make."""
    ours = (":!*.pyc", ":!.*_cache", ":!dist", ":!target")
    told = subprocess.run(
        ["git", "status", "--porcelain", "--ignored", "--", ".", *ours],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in told.stdout.splitlines() if line.startswith(("??", "!!"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", SKIPPED)
def test_commands_run_one_after_the_other(page, root, reader, tmp_path, request):
    if page in ROOTED:
        request.getfixturevalue("need_root")
    text = (root / page).read_text()
    commands = commands_of(text)
    assert commands, f"{page} shows no command"
    if page in SAVED:
        name, where = SAVED[page]
        (tmp_path / name).write_text(re.search(where, text, re.S)[1])
    before, skipped = left_in(root), set()
    for command in BEFORE.get(page, []):
        done = reader(command)
        assert done.returncode == 0, done.stderr
    for command in commands:
        if why := [start for start in SKIPPED[page] if command.startswith(start)]:
            skipped |= set(why)
            continue
        for pattern, smaller in SMALLER:
            command = re.sub(pattern, smaller, command)
        done = reader(command)
        wanted = 1 if command.startswith(FINDS.get(page, "-")) else 0
        assert done.returncode == wanted, f"$ {command}\n{done.stdout}\n{done.stderr}"
    assert skipped == SKIPPED[page].keys(), "what is skipped is no longer there"
    assert left_in(root) == before, "the checkout is left as it was"


# Commands whose output follows from the examples alone.
SAME = ("loadstone trace describe", "loadstone model fit", "loadstone model check", "loadstone model scale")
SAME = (*SAME, "loadstone model show", "loadstone model export", "loadstone model factor")
SHOWN = ("tutorial", "howto/size-an-array", "howto/hand-a-load-to-fio")


def shown_by(text: str) -> list[tuple[str, list[str]]]:
    """Commands of the page's terminal sessions, each with the lines that are shown below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page}.md" for page in SHOWN)])
def test_pages_show_what_the_commands_print(page, root, reader):
    checked = 0
    for command, lines in shown_by((root / page).read_text()):
        if not command.startswith(SAME):
            continue
        done = reader(command)
        assert done.returncode == 0, done.stderr
        printed = iter([line.rstrip() for line in done.stdout.splitlines()])
        for line in lines:
            assert line == "..." or line.rstrip() in printed, f"$ {command}\n{line}\n\n{done.stdout}"
        checked += bool(lines)
    assert checked


def test_every_page_with_commands_is_run(root):
    pages = {
        str(page.relative_to(root))
        for page in [root / "README.md", *(root / "docs").rglob("*.md")]
        if commands_of(page.read_text())
    }
    assert pages <= SKIPPED.keys()


def test_python_of_the_pages_compiles(root):
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    for page in pages:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            compile(block, str(page), "exec")
