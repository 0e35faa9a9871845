"""Evaluations of traces of files, in trees below a directory, and in order of dependencies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from loadstone import Error
from loadstone._kept import LeftBehind
from loadstone.bundle import Series
from loadstone.evaluation import Settings, evaluate
from loadstone.observe import ENGINE, PARAMETERS
from loadstone.plan import RunOptions

NAMES = [m.name for m in (*PARAMETERS, *ENGINE)]


@pytest.fixture
def trace(tmp_path):
    """A program that makes, reads and removes files, over a second."""
    calls = []
    for i in range(120):
        name = f"/data/d{i % 3}/f{i}"
        calls.append(f'openat(AT_FDCWD, "{name}", O_RDWR|O_CREAT, 0644) = 3')
        calls += [
            f'pwrite64(3, "x", {4096 * (1 + i % 2)}, {8192 * j}) = {4096 * (1 + i % 2)}' for j in range(4)
        ]
        calls += ["fsync(3) = 0", 'pread64(3, "x", 4096, 0) = 4096', "close(3) = 0"]
        calls.append(f'stat("{name}", {{st_mode=S_IFREG}}) = 0')
        if i >= 6:
            calls.append(f'unlink("/data/d{i % 3}/f{i - 6}") = 0')
    step = 1.2 / len(calls)
    lines = [f"7 {100 + i * step:.6f} {call} <0.000020>\n" for i, call in enumerate(calls)]
    path = tmp_path / "app.strace"
    path.write_text("".join(lines))
    return path


def below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.mark.slow
@pytest.mark.root
def test_replay_and_model_each_in_a_tree_of_its_own(trace, mounted, tmp_path, loadstone):
    (mounted / "mine").mkdir()
    (mounted / "mine" / "precious").write_text("precious")
    before = below(mounted)
    out = tmp_path / "out"
    done = loadstone("evaluate", trace, "--on", mounted, "--repeat", 2, "--out", out, "--json")
    answer = json.loads(done.stdout)
    assert below(mounted) == before and (mounted / "mine" / "precious").read_text() == "precious"
    assert [line for line in done.stderr.splitlines() if line.startswith("model-1")] == [
        "model-1: new tree, caches dropped"
    ]
    rows = {row["parameter"]: row for row in answer["distances"]}
    assert list(rows) == NAMES and answer["errors"] == 0
    for name in ("engine_ops_per_s", "engine_latency_ms", "writes_per_s", "latency_ms"):
        assert rows[name]["usable"], rows[name]
    series = Series.read(out)
    bundles = series.bundles()
    replays = [b.summary for b in bundles if b.plan["workers"][0]["source"]["kind"] == "trace"]
    rates = [summary["requests"] / (summary["elapsed_ns"] / 1e9) for summary in replays]
    assert rows["engine_ops_per_s"]["scale"] == pytest.approx(sum(rates) / len(rates), rel=0.3)
    mean = [b.summary["service_ns"]["mean"] for b in bundles if b.plan["workers"][0]["order"] == "completion"]
    assert 0.3 < rows["engine_latency_ms"]["scale"] / (sum(mean) / len(mean) / 1e6) < 3
    assert answer["reset"] == "new tree" and answer["alignment"] == "time"
    assert answer["order"] == {"replay": "completion", "model": "none"}
    assert any("order of completions" in note for note in answer["notes"])
    trees = [b.plan["targets"][0]["path"] for b in bundles]
    assert len(set(trees)) == 4 and {os.path.dirname(os.path.dirname(t)) for t in trees} == {str(mounted)}
    assert [b.plan["workers"][0]["source"]["kind"] for b in bundles] == ["trace", "model"] * 2
    assert all(b.observation.device["name"].startswith("loop") for b in bundles)
    page = tmp_path / "page.html"
    loadstone("report", out, "-o", page)
    text = page.read_text()
    assert "Latency (engine)" in text and "order of completions" in text and "replay: completion" in text


def test_what_cannot_be_told_without_a_device_is_listed(trace, loadstone):
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm, a file system without a device")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        done = loadstone("evaluate", trace, "--on", place, "--repeat", 2, "--pace", "x2", "--json")
        assert os.listdir(place) == []
    answer = json.loads(done.stdout)
    rows = {row["parameter"]: row for row in answer["distances"]}
    assert rows["reads_per_s"]["reason"] == "its counters cannot be read on this host"
    assert any(note.startswith("no block counters") for note in answer["notes"])
    assert rows["engine_ops_per_s"]["usable"] and "request size" not in answer["verdict"]


def test_an_interruption_leaves_no_tree(trace, tmp_path, root):
    place = tmp_path / "place"
    place.mkdir()
    (place / "precious").write_text("precious")
    program = root / ".venv" / "bin" / "loadstone"
    words = ["evaluate", trace, "--on", place, "--pace", "x0.2", "--repeat", "2", "--out", tmp_path / "out"]
    # A group of its own, as of a terminal; SIGINT is ignored by what a shell starts in the background.
    child = subprocess.Popen(
        [program, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not list(place.glob("loadstone-evaluate-*/replay-1/data")):
        assert child.poll() is None and time.monotonic() < deadline, "no tree appeared"
        time.sleep(0.02)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130 and "interrupted" in said
    assert below(place) == ["precious"]
    assert Series.read(tmp_path / "out").summary["partial"]


class Broken(BaseException):
    """What a test raises in the middle of a run; what is no ``Exception`` is not kept from ending it."""


def test_a_failure_leaves_no_tree_even_while_the_engine_runs(trace, tmp_path):
    place = tmp_path / "place"
    seen = []

    def on_live(live):
        if live["phase"] == "running" and live["requests"] > 50:
            seen.extend(place.glob("*/*/data"))
            raise Broken

    with pytest.raises(Broken):
        evaluate(
            Settings(trace, str(place), repeat=2, options=RunOptions(pace=0.5)),
            tmp_path / "out",
            on_live=on_live,
        )
    assert seen, "there was a tree"
    assert os.listdir(tmp_path) == ["app.strace"], "the place was made for this, and is gone too"


def test_nothing_that_was_there_is_removed_with_a_tree(trace, tmp_path):
    place = tmp_path / "place"
    for name in ("loadstone-evaluate-0123456789abcdef", f"loadstone-evaluate-{os.getpid()}"):
        (place / name).mkdir(parents=True)
        (place / name / "precious").write_text("precious")
    before = below(place)
    evaluate(Settings(trace, str(place), repeat=2, options=RunOptions(pace=4)), tmp_path / "out")
    assert below(place) == before


KILLED = """
import os, signal, sys
from pathlib import Path
from loadstone.plan import RunOptions
from loadstone.evaluation import Settings, evaluate
def on_live(live):
    if live["phase"] == "running":
        os.kill(os.getpid(), signal.SIGKILL)
options = RunOptions(pace=0.5)
evaluate(Settings(Path({trace!r}), {place!r}, repeat=2, options=options), {out!r}, on_live=on_live)
"""


@pytest.mark.slow
def test_the_tree_of_a_killed_evaluation_is_kept_by_the_next(trace, tmp_path):
    """Somebody may have put something into it since."""
    place, out = tmp_path / "place", tmp_path / "out"
    code = KILLED.format(trace=str(trace), place=str(place), out=str(out))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    for number in range(2):
        subprocess.run([sys.executable, "-c", code], env=environment, check=False)
        assert not out.exists() and len(list(place.iterdir())) == 1 + number
        assert len(list(temporary.iterdir())) == 1
        (tree,) = place.glob("loadstone-evaluate-*")
        (tree / "mine").write_text(str(number))
    with pytest.warns(
        LeftBehind, match=r"evaluate\.unfinished\.2: has the trees of an evaluation that was killed"
    ):
        evaluate(Settings(trace, str(place), repeat=2, options=RunOptions(pace=4)), out)
    kept = [place / f"loadstone-evaluate.unfinished{end}" for end in ("", ".2")]
    assert sorted(place.iterdir()) == kept and Series.read(out)
    assert [(folder / "mine").read_text() for folder in kept] == ["0", "1"]


@pytest.mark.root
def test_what_is_mounted_into_a_tree_meanwhile_is_left_alone(trace, tmp_path, need_root, need_tools):
    need_tools("mount", "umount")
    place, home = tmp_path / "place", tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("all of it")
    mounted = []

    def on_live(live):
        if live["phase"] == "running" and not mounted:
            (tree,) = place.glob("loadstone-evaluate-*/*/data")
            inside = tree.parent / "inside"
            inside.mkdir()
            # Of the same file system, so that the number of the device tells nothing.
            subprocess.run(["mount", "--bind", home, inside], check=True)
            mounted.append(inside)

    try:
        with pytest.raises(Error, match="inside: something is mounted"):
            evaluate(
                Settings(trace, str(place), repeat=2, options=RunOptions(pace=4)),
                tmp_path / "out",
                on_live=on_live,
            )
        assert (home / "thesis.tex").read_text() == "all of it"
    finally:
        for inside in mounted:
            subprocess.run(["umount", inside], check=True)


def test_a_dry_run_makes_nothing(trace, tmp_path, loadstone):
    done = loadstone("evaluate", trace, "--on", tmp_path / "new", "--dry-run")
    runs = json.loads(done.stdout)["runs"]
    assert [r["plan"]["targets"][0]["kind"] for r in runs] == ["tree"] * 6
    assert len({r["plan"]["targets"][0]["path"] for r in runs}) == 6
    assert os.listdir(tmp_path) == ["app.strace"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words,text",
    [
        (("--on", "{tmp}/app.strace"), "needs one"),
        (("--on", "{tmp}/no/where"), "cannot be made"),
        (("--on", "{tmp}/p", "--allow-destroy", "{tmp}/p"), "nothing is given up"),
        (("--on", "{tmp}/p", "--order", "dependency"), "--think"),
        (("--on", "{tmp}/p", "--size", "1g"), "--size: is for block targets"),
        (("--on", "null:"), "name a directory"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_left(trace, tmp_path, loadstone, words, text):
    given = [word.replace("{tmp}", str(tmp_path)) for word in words]
    misused = {"--size", "--allow-destroy", "--order"} & {*words}
    done = loadstone("evaluate", trace, *given, status=2 if misused else 1)
    assert text in done.stderr and "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["app.strace"]


@pytest.mark.slow
@pytest.mark.root
def test_in_order_of_dependencies(alone, tmp_path, root, loadstone):
    out = tmp_path / "out"
    done = loadstone(
        "evaluate", root / "examples" / "loop0.parquet", "--on", alone, "--allow-destroy", alone,
        "--offsets", "wrap", "--order", "dependency", "--think", "x20", "--independent", "x20",
        "--duration", "1s", "--repeat", 2, "--out", out, "--json",
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert "in order of dependencies" in done.stderr
    assert answer["order"] == {"replay": "dependency", "model": "dependency"} and answer["think"] == 20
    assert answer["alignment"] == "progress" and answer["schedule"]["pace"] == "dependency"
    assert [row["parameter"] for row in answer["distances"]] == [m.name for m in PARAMETERS]
    bundles = Series.read(out).bundles()
    assert len({b.summary["requests"] for b in bundles}) == 1 and bundles[0].summary["requests"] > 1000
    for bundle in bundles:
        worker = bundle.plan["workers"][0]
        assert (worker["order"], worker["think"], worker["pace"]["speed"]) == ("dependency", 20.0, 20.0)
    plain = loadstone(
        "evaluate", root / "examples" / "loop0.parquet", "--on", "null:", "--order", "dependency",
        "--pace", "x2", status=2,
    )  # fmt: skip
    assert "--independent" in plain.stderr


def test_a_model_without_think_times_is_refused_before_anything_is_written(root, tmp_path, loadstone):
    source = root / "examples" / "loop0.parquet"
    loadstone("model", "fit", source, "-o", tmp_path / "plain.mdh")
    done = loadstone(
        "evaluate", source, "--model", tmp_path / "plain.mdh", "--on", tmp_path / "target", "--size", "64m",
        "--offsets", "wrap", "--order", "dependency", status=1,
    )  # fmt: skip
    assert "fit it with loadstone model fit --think" in done.stderr
    assert os.listdir(tmp_path) == ["plain.mdh"]
