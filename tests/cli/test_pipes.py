"""A pipe in place of a file that is read as a whole is refused at once, and not waited for."""

import json
import os
import signal
import subprocess
import threading
import time

import pytest

PIPE = "is a pipe, and a file is wanted; name a file"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "{tmp}/p.mdh", "--on", "null:"),
        ("run", "{tmp}/p.json"),
        ("evaluate", "{trace}", "--on", "null:", "--model", "{tmp}/p.mdh"),
        ("model", "show", "{tmp}/p.mdh"),
        ("model", "scale", "{tmp}/p.mdh", "--rate", "2", "-o", "{tmp}/o.mdh"),
        ("dataset", "describe", "{tmp}/p.fst"),
        ("dataset", "profile", "{tmp}/p.fst", "-o", "{tmp}/profile"),
        ("dataset", "write", "{tmp}/p.fst", "--to", "{tmp}/tree"),
        ("dataset", "create", "{tmp}/p", "-o", "{tmp}/o.fst"),
    ],
)
def test_a_pipe_is_refused_at_once(words, tmp_path, root, loadstone):
    for name in ("p", "p.mdh", "p.json", "p.fst"):
        os.mkfifo(tmp_path / name)
    given = [word.format(tmp=tmp_path, trace=root / "examples/loop0.parquet") for word in words]
    assert PIPE in loadstone(*given, status=1, timeout=30).stderr
    assert {path.name for path in tmp_path.iterdir()} == {"p", "p.mdh", "p.json", "p.fst"}


def test_a_pipe_is_no_bundle(tmp_path, loadstone):
    os.mkfifo(tmp_path / "b")
    done = loadstone("report", tmp_path / "b", "-o", tmp_path / "r.html", status=1, timeout=30)
    assert "b: is not a folder" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words",
    [
        ("trace", "describe", "{tmp}/t.spc"),
        ("model", "fit", "{tmp}/t.spc", "-o", "{tmp}/m.mdh"),
        ("replay", "{tmp}/t.spc", "--on", "null:"),
    ],
)
def test_a_signal_ends_the_wait_for_a_trace(words, number, tmp_path, root):
    os.mkfifo(tmp_path / "t.spc")
    given = [root / ".venv/bin/loadstone", *(word.format(tmp=tmp_path) for word in words)]
    child = subprocess.Popen(given, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    # It waits when it has the pipe open.
    while not any(os.path.realpath(fd) == str(tmp_path / "t.spc") for fd in descriptors(child.pid)):
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(number)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (128 + number, "\nerror: interrupted\n")


def descriptors(pid):
    folder = f"/proc/{pid}/fd"
    return [f"{folder}/{fd}" for fd in os.listdir(folder)]


def test_a_pipe_is_read_once_its_writer_comes(tmp_path, loadstone):
    pipe = tmp_path / "t"
    os.mkfifo(pipe)
    rows = "".join(f"0,{i * 8},4096,R,{i / 100:.6f}\n" for i in range(5000))
    writer = threading.Timer(0.5, lambda: pipe.write_text(rows))
    writer.start()
    done = loadstone("trace", "describe", pipe, "--format", "spc", "--json")
    assert json.loads(done.stdout)["info"]["counts"]["requests"] == 5000


def test_a_signal_ends_the_wait_for_a_key(tmp_path, root):
    os.mkfifo(tmp_path / "key")
    (tmp_path / "tree").mkdir()
    words = ("dataset", "scan", tmp_path / "tree", "--key", tmp_path / "key", "-o", tmp_path / "o.fst")
    child = subprocess.Popen([root / ".venv/bin/loadstone", *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not any(os.path.realpath(fd) == str(tmp_path / "key") for fd in descriptors(child.pid)):
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 143 and "interrupted" in err
    assert not (tmp_path / "o.fst").exists()
