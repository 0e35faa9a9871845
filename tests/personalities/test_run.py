"""Every personality runs: no request fails, and all that its mix names is done."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from loadstone.cli import command as root_command
from loadstone.personalities import find, names
from loadstone.wml._program import ACTS

# Small enough for a second of a small machine; the mix stays as it is.
SMALL = {
    "fileserver": ["-D", "nthreads=4", "-D", "nfiles=200"],
    "varmail": ["-D", "nthreads=4", "-D", "nfiles=100"],
    "webserver": ["-D", "nthreads=4", "-D", "nfiles=100"],
    "webproxy": ["-D", "nthreads=4", "-D", "nfiles=200"],
    "videoserver": ["-D", "nthreads=4", "-D", "filesize=256k"],
    "oltp": ["-D", "nshadows=4", "-D", "ndbwriters=2", "-D", "usermode=10", "--size", "16m"],
    "oltp-sync": ["-D", "nshadows=4", "-D", "ndbwriters=2", "-D", "usermode=10", "--size", "16m"],
    "mongo-like": ["-D", "nfiles=200"],
    "postmark": [],
    "dbench-like": ["-D", "nfiles=200", "-D", "nclients=2"],
    "mail-server-like": ["--size", "32m", "-D", "nfiles=8", "-D", "directio=0"],
}
# Those that end by themselves, when nothing is left to be done.
ENDING = {"postmark", *(f"micro-{one}" for one in ("create", "delete", "link", "symlink", "mkdir", "rmdir"))}


def small(name: str) -> list[str]:
    if name in SMALL:
        return SMALL[name]
    variables = {one.name for one in find(name).variables}
    found = []
    for variable, value in (("filesize", "1m"), ("nfiles", "100"), ("ndirs", "100"), ("maxlength", "64k")):
        if variable in variables and (variable, find(name).scale) != ("nfiles", "filesize"):
            found += ["-D", f"{variable}={'4k' if find(name).scale == 'nfiles' and value == '1m' else value}"]
    return found


def flowops(ops: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Names of steps, and what flowops they are."""
    words = {act: word for word, act in ACTS.items()}
    for op in ops:
        if op["act"] == "group":
            yield from flowops(op["ops"])
        else:
            yield op["name"], words[op["act"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_runs(name, loadstone, tmp_path):
    duration = 60 if name in ENDING else 0.5
    given = ["--on", tmp_path / "d", "--duration", f"{duration}s", *small(name)]
    result = json.loads(loadstone("run", name, *given, "--json").stdout)
    assert result["errors"] == result["short"] == 0 and not result["partial"]
    words = ["run", name, *given[2:], "--on", "null:", "--dry-run"]
    plan = json.loads(CliRunner().invoke(root_command, words).stdout)
    done: Counter[str] = Counter()
    for worker in plan["workers"]:
        for step, flowop in dict(flowops(worker["source"]["ops"])).items():
            done[flowop] += result["steps"].get(step, {"count": 0})["count"]
    for loop in find(name).mix:
        for flowop, _ in loop.counts:
            assert done[flowop] > 0, f"no {flowop} was done"
    # What ends by itself does so long before its time is over, and what is steady never does.
    assert (result["elapsed_ns"] < 0.9e9 * duration) == (name in ENDING)


@pytest.mark.slow
def test_postmark_is_exact(loadstone, tmp_path):
    """A transaction reads or appends, and makes or removes; none does both or neither."""
    given = ["-D", "transactions=2000", "-D", "nfiles=2000", "-D", "readbias=7", "--json"]
    steps = json.loads(loadstone("run", "postmark", "--on", tmp_path / "d", *given).stdout)["steps"]
    counts = {name: told["count"] for name, told in steps.items()}
    assert counts["t.read.read"] + counts["t.append.append"] == 2000
    assert counts["t.create.create"] + counts["t.delete"] == 2000
    assert counts["t.read.read"] == pytest.approx(1400, abs=120)
    assert counts["t.delete"] == pytest.approx(1000, abs=120)
    assert counts["t.read.open"] == counts["t.read.close"] == counts["t.read.read"]


def test_mixes_are_achieved(loadstone, tmp_path):
    """What fileserver says of itself, within a loop of each thread."""
    given = ["-D", "nthreads=2", "-D", "nfiles=100", "-D", "meanfilesize=4k", "--duration", "1s", "--json"]
    result = json.loads(loadstone("run", "fileserver", "--on", tmp_path / "d", *given).stdout)
    counts = [told["count"] for told in result["steps"].values()]
    assert len(counts) == 11 and max(counts) - min(counts) <= 2 and min(counts) > 10


def test_a_rate_is_kept(loadstone, tmp_path):
    given = ["-D", "nthreads=2", "-D", "nfiles=100", "-D", "eventrate=2000", "--duration", "2s", "--json"]
    result = json.loads(loadstone("run", "webproxy", "--on", tmp_path / "d", *given).stdout)
    assert 0 < result["requests"] <= 2000 * 2.1


@pytest.mark.slow
def test_help_says_what_it_models(loadstone):
    text = loadstone("run", "varmail", "--help").stdout
    words = " ".join(text.split())
    found = find("varmail")
    for said in (*found.about, found.source):
        assert " ".join(said.split()) in words
    for one in found.variables:
        assert one.name in text and one.default in text
    assert "fsync 2 (15.4%)" in words and "loadstone run varmail --on /mnt/tree --size 2x-ram" in words
    assert loadstone("run", "--help", "varmail").stdout == text
    assert loadstone("run", "varmail", "--on", "x", "-h").stdout == text
    assert "--size" not in loadstone("run", "micro-stat", "--help").stdout
    # Another workload's help is that of the verb.
    assert "WORKLOAD is a model" in loadstone("run", "varmail.f", "--help").stdout


@pytest.mark.parametrize("name", names())
def test_every_help_is_whole(name):
    text = CliRunner().invoke(root_command, ["run", name, "--help"], prog_name="loadstone").output
    assert text.startswith(f"Usage: loadstone run {name} --on DIR")
    assert "From: " in text and "Mix of one loop" in text and "Example:" in text


def test_list(loadstone):
    text = loadstone("run", "--list").stdout
    for name in names():
        assert f"{name} " in text and find(name).title in text
    found = json.loads(loadstone("run", "--list", "--json").stdout)
    assert [one["name"] for one in found["personalities"]] == names()
    (varmail,) = [one for one in found["personalities"] if one["name"] == "varmail"]
    assert varmail["mix"][0]["counts"]["fsync"] == 2 and varmail["scale"] == "nfiles"
    assert {"name": "nthreads", "default": "16"}.items() <= varmail["variables"][4].items()
    assert "leave out varmail" in loadstone("run", "varmail", "--list", status=2).stderr


@pytest.mark.slow
def test_source_can_be_changed_and_run(loadstone, tmp_path):
    text = loadstone("run", "micro-stat", "--source").stdout
    assert text == find("micro-stat").text
    (tmp_path / "mine.f").write_text(text)
    plan = [
        json.loads(loadstone("run", workload, "--on", "null:", "--dry-run").stdout)
        for workload in ("micro-stat", tmp_path / "mine.f")
    ]
    assert plan[1] == {**plan[0], "own": [str(tmp_path / "mine.f")]}
    assert "is no benchmark" in loadstone("run", "randread", "--source", status=2).stderr


@pytest.mark.slow
def test_names_that_are_none(loadstone, tmp_path):
    assert "did you mean varmail?" in loadstone("run", "varmial", "--on", "null:", status=1).stderr
    assert "did you mean randread?" in loadstone("run", "randraed", "--on", "null:", status=1).stderr
    assert "--list names" in loadstone("run", "qqq", "--on", "null:", status=1).stderr
    assert "--list names" in loadstone("run", status=2).stderr
    # A file is meant where the word looks like one, even if it has the name of a personality.
    assert "No such file" in loadstone("run", "./varmail.f", "--on", tmp_path / "d", status=1).stderr
    assert "give --on DIR" in loadstone("run", "varmail", status=1).stderr


def test_options_of_requests_are_refused(loadstone):
    for option in ("--direct", "--allow-system", "--bs=8k", "--pace=max"):
        done = loadstone("run", "varmail", "--on", "null:", option, status=2)
        assert "varmail" in done.stderr and option.partition("=")[0] in done.stderr


def test_a_bundle_knows_its_name(loadstone, tmp_path):
    given = ["--duration", "1s", "-D", "nfiles=100", "--out", tmp_path / "b"]
    loadstone("run", "varmail", "--on", tmp_path / "d", *given)
    assert json.loads((tmp_path / "b/summary.json").read_text())["workload"] == "varmail"
    told = json.loads((tmp_path / "b/plan.json").read_text())
    assert told["sets"][0]["id"] == "spool" and told["sets"][0]["entries"] == 100


def test_completion_offers_names(root):
    def offered(word: str) -> list[str]:
        environment = {
            **os.environ,
            "_LOADSTONE_COMPLETE": "bash_complete",
            "COMP_WORDS": f"loadstone run {word}",
            "COMP_CWORD": "2",
        }
        program = root / ".venv/bin/loadstone"
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
        return done.stdout.split()

    assert offered("varm") == ["plain,varmail"]
    assert offered("rand") == ["plain,randread", "plain,randwrite", "plain,randrw", "plain,randtrim"]
    assert "plain,micro-read-random" in offered("micro-read")
    # What begins no name may be a file.
    assert offered("./some") == ["file,./some"]
