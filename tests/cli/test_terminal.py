"""What names and warnings from outside do to a terminal: nothing."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from loadstone._text import visible
from loadstone.cli._show import show_json

ROOT = Path(__file__).resolve().parents[2]
ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202eback\u2066"
NAMES = ["lun[old]", "a[/x]", "[bold]b[/bold]", ":smile:", f"d{ESCAPES}"]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"1281663720030{i:05},{name},0,Read,{4096 * i},4096,1331" for i, name in enumerate(NAMES)]
    path.write_text("\n".join(lines) + "\n")
    return path


def on_a_terminal(*words, **more):
    """What the command writes to a terminal."""
    control, terminal = pty.openpty()
    child = subprocess.Popen(
        [ROOT / ".venv/bin/loadstone", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm", **more},
    )
    os.close(terminal)
    out = b""
    while True:
        try:
            out += os.read(control, 65536)
        except OSError:
            break
    os.close(control)
    child.wait()
    return out.decode()


def check(out):
    for name in NAMES[:4]:
        assert f"{name}.0" in out
    assert "\\x1b[31mred\\x1b]0;title\\x07\\x9b2J\\u202eback\\u2066" in out
    # Colours of our own are all that is left of escapes.
    rest = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest)


def test_names_in_tables_are_neither_markup_nor_orders(loadstone, trace):
    done = loadstone("trace", "describe", trace, "--format", "msr")
    check(done.stdout)
    check(on_a_terminal("trace", "describe", trace, "--format", "msr"))
    told = json.loads(loadstone("trace", "describe", trace, "--format", "msr", "--json").stdout)
    assert {f"{name}.0" for name in NAMES} == {one["name"] for one in told["busiest"]}


def test_names_in_errors_are_shown_as_they_are(loadstone, tmp_path):
    path = tmp_path / f"no[/x]{ESCAPES}.csv"
    shown = visible(str(path))
    for words in (
        ("trace", "describe", path),
        ("run", f"{path}.fio", "--on", "null:"),
        ("report", path, "-o", "x"),
    ):
        done = loadstone(*words, status=None)
        assert done.returncode and shown in done.stderr and "\x1b" not in done.stderr
        assert shown in on_a_terminal(*words)


def test_names_are_shown_as_they_are_where_there_is_only_ascii(tmp_path):
    path = tmp_path / f"no{ESCAPES}.csv"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    out = on_a_terminal("trace", "describe", path, **plain)
    assert "\\x1b[31mred" in out and "\x1b[31mred" not in out and out.isascii()


@pytest.mark.slow
def test_names_of_workloads_and_steps_are_shown_as_they_are(loadstone, tmp_path):
    # The lines that go over the screen while it runs, and the tables after it.
    path = tmp_path / f"w{ESCAPES}.f"
    path.write_text(
        "define fileset name=s,path=$dir,entries=4,dirwidth=3,prealloc,size=8k\n"
        'define process name="p[/x]" { thread name=t {\n'
        'flowop read name="r[/x]",filesetname=s,iosize=4k } }\n'
        "run 1\n"
    )
    words = ("run", path, "--on", tmp_path / "d", "--by", "thread")
    done = loadstone(*words)
    assert "r[/x]" in done.stdout and "p[/x]" in done.stdout
    out = on_a_terminal(*words, "--live")
    assert "\x1b[31mred" not in out and "\x1b]0;" not in out and "\u202e" not in out
    assert "r[/x]" in out


def test_visible_leaves_text_alone():
    text = "Größe: 4 KiB – «名前» 🙂 \u200d\n\tend"
    assert visible(text) == text
    assert visible("a\nb\tc", lines=False) == "a\\nb\\tc"
    assert visible("a\rb\x85\u2028") == "a\\rb\\x85\\u2028"
    assert visible("a\U000e0041") == "a\\U000e0041"


def test_json_has_no_numbers_that_are_none(capsys):
    show_json({"a": float("nan"), "b": [np.float64("inf"), np.int64(3)], "c": np.array([1.0, np.nan])})
    text = capsys.readouterr().out
    assert json.loads(text, parse_constant=pytest.fail) == {"a": None, "b": [None, 3], "c": [1.0, None]}
