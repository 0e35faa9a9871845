"""Nothing is sent anywhere."""

from __future__ import annotations

import subprocess

import pytest


@pytest.mark.slow
def test_no_verb_opens_a_connection(root, need_tools, tmp_path):
    need_tools("strace")
    program, trace = root / ".venv/bin/loadstone", root / "examples/loop0.parquet"
    verbs = [
        ["trace", "describe", trace, "--plot", "a.svg"],
        ["model", "fit", trace, "-o", "a.mdh", "--window", "9s"],
        ["run", "randread", "--on", "t", "--size", "1m", "--requests", "100", "--out", "a.bundle"],
        ["report", "a.bundle", "-o", "a.html"],
        ["dataset", "scan", root / "examples/filebench", "-o", "a.fst"],
    ]
    for number, words in enumerate(verbs):
        log = tmp_path / f"{number}.strace"
        traced = ["strace", "-f", "-o", log, "-e", "trace=socket,connect", program, *words]
        done = subprocess.run([*map(str, traced)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "exited with 0" in log.read_text()
        assert "AF_INET" not in log.read_text(), words
