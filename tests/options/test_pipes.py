"""A pipe in place of a file that is read as a whole is refused at once, and not waited for."""

import os

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
