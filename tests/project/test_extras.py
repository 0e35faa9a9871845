"""Without the libraries of an extra everything else works, and what needs one names it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from loadstone import Error
from loadstone._extras import EXTRAS, missing, need

HIDE = (
    "import sys; sys.modules.update(dict.fromkeys({modules}))\n"
    "from loadstone.cli import main\n"
    "sys.argv = ['loadstone', *{words}]\n"
    "main()"
)


def without(*words, modules=tuple(EXTRAS), cwd=None):
    """The command where these modules cannot be imported."""
    code = HIDE.format(modules=modules, words=[str(word) for word in words])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=cwd)


@pytest.fixture
def trace(root):
    return root / "examples/loop0.parquet"


@pytest.fixture
def bundle(tmp_path, loadstone):
    loadstone("run", "randread", "--on", "null:", "--size", "1m", "--requests", 9, "--out", tmp_path / "b")
    return tmp_path / "b"


def test_extras_are_those_of_the_package(root):
    told = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    optional = told["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert any(line.startswith(module) for line in optional[extra])
        assert not any(line.startswith(module) for line in told["dependencies"])
    # What is installed beside other packages takes ranges; exact versions are in the lock files.
    for line in [*told["dependencies"], *(one for extra in set(EXTRAS.values()) for one in optional[extra])]:
        assert ">=" in line and ",<" in line and "==" not in line


def test_what_needs_an_extra_names_it(trace, bundle, tmp_path):
    for extra, words in (
        ("plot", ("trace", "describe", trace, "--plot", tmp_path / "p.png")),
        ("report", ("report", bundle, "-o", tmp_path / "r.html")),
        ("formulas", ("evaluate", trace, "--on", "null:", "--pace", "max")),
    ):
        done = without(*words)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert f"pip install 'loadstone[{extra}]'" in done.stderr
    assert not (tmp_path / "p.png").exists() and not (tmp_path / "r.html").exists()


def test_all_else_works_without_extras(trace, tmp_path):
    for words in (
        ("trace", "describe", trace),
        ("model", "fit", trace, "-o", tmp_path / "m.mdh"),
        ("run", tmp_path / "m.mdh", "--on", "null:", "--pace", "max", "--out", tmp_path / "b"),
        ("model", "check", tmp_path / "m.mdh", trace),
        ("run", "micro-stat", "--on", "null:", "--duration", "100ms"),
        ("run", "mkfile", "--on", "null:", "--size", "1m"),
    ):
        done = without(*words)
        assert done.returncode == 0, (words, done.stderr)


def test_only_what_is_not_there_is_missed():
    need("json", "os.path")
    with pytest.raises(Error, match="the Python module nowhere_at_all is not installed"):
        need("nowhere_at_all")
    assert missing("plotly.offline") == missing("plotly") != missing(None)


@pytest.mark.parametrize(
    "verb", ["", "run", "replay", "evaluate", "compare", "verify", "model fit", "trace describe"]
)
def test_help_imports_nothing_heavier_than_click(verb):
    """It answers at once: libraries are imported inside the verbs that need them."""
    words = [*verb.split(), "--help"]
    code = (
        "import sys; from loadstone.cli import command\n"
        f"try: command.main({words}, standalone_mode=False)\n"
        "finally:\n"
        "    ours = {'click', 'loadstone', '_distutils_hack'}\n"
        "    print('beside:', sorted({name.partition('.')[0] for name, one in sys.modules.items()\n"
        "        if 'site-packages' in (getattr(one, '__file__', None) or '')} - ours))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "beside: []", done.stdout[-500:] + done.stderr
