"""Streams that are closed, full or know few characters, and a home that is not to be touched."""

from __future__ import annotations

import os
import subprocess

import pytest

# A table and a picture in characters, a run with its summary, and an error.
TRACE = "trace describe {root}/examples/loop0.parquet"
RUN = "run randread --on null: --size 1m --requests 100"
SHOW = "model show {model}"
WRONG = "trace nosuch"


@pytest.fixture(scope="module")
def program(request, tmp_path_factory):
    root = request.config.rootpath
    model = tmp_path_factory.mktemp("model") / "m.mdh"
    command = f"{root}/.venv/bin/loadstone"
    fit = [command, "model", "fit", f"{root}/examples/loop0.parquet", "-o", model, "--window", "9s"]
    subprocess.run(fit, check=True, capture_output=True)

    def run(words: str, around: str = "{}", **variables: str) -> subprocess.CompletedProcess[str]:
        line = around.format(f"{command} {words.format(root=root, model=model)}")
        environment = {**os.environ, **variables}
        done = subprocess.run(
            ["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
        return done

    return run


@pytest.mark.parametrize("words", [TRACE, RUN])
@pytest.mark.parametrize("closed", ["{} >&-", "{} <&-", "{} 2>&-", "{} <&- >&- 2>&-"])
def test_closed_streams_end_nothing(words, closed, program):
    done = program(words, closed)
    assert done.returncode == 0, done.stderr
    assert bool(done.stdout) == (">&- " not in closed + " " or closed == "{} 2>&-")
    assert all(line.startswith("note: ") for line in done.stderr.splitlines()), done.stderr


def test_the_number_of_a_closed_stream_is_given_to_no_file(program, tmp_path):
    """What is printed would end in that file."""
    plan = tmp_path / "seen"
    probe = f"--probe x='ls -l /proc/$PPID/fd > {plan}; echo a=1' --out {tmp_path}/b"
    words = f"run randread --on {tmp_path}/target --size 1m --duration 300ms {probe}"
    assert program(words, "{} <&- >&- 2>&-").returncode == 0
    for number in (0, 1, 2):
        assert f" {number} -> /dev/null" in plan.read_text()


@pytest.mark.parametrize("words", [TRACE, TRACE + " --json", RUN, "--help"])
def test_output_that_is_full_is_told(words, program):
    done = program(words, "{} >/dev/full")
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


def test_messages_that_nobody_can_take_end_no_run(program, tmp_path):
    script = tmp_path / "warned.fio"
    script.write_text("[a]\nfilename=f\nsize=64k\nrw=read\nnuma_cpu_nodes=0\n")
    words = f"run {script} --on {tmp_path} --json"
    told = program(words)
    assert "note:" in told.stderr and told.returncode == 0, told.stderr
    assert program(words, "{} 2>/dev/full").returncode == 0
    assert program(WRONG, "{} 2>/dev/full").returncode == program(WRONG).returncode == 2


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
@pytest.mark.parametrize("words", [TRACE, SHOW, RUN])
def test_few_characters_are_enough(words, variables, program):
    done = program(words, **variables)
    assert done.returncode == 0, done.stderr
    # What is shown is the same but for the characters that were replaced.
    assert "?" not in done.stdout or "?" in program(words).stdout


def test_what_has_no_near_character_is_an_escape(program, tmp_path):
    trace = tmp_path / "a.csv"
    trace.write_text("128166372003061629,名,0,Write,4096,512,100\n", encoding="utf-8")
    few = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = program(f"trace describe {trace}", **few)
    assert done.returncode == 0, done.stderr
    assert r"\u540d" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "trace describe {0}.spc",
        "run {0}.fio --on .",
        "run {0}.f --on .",
        "run {0}.mdh --on null:",
        "run {0}.json",
        "run randread --on {0} --size 1m --requests 1",
        "content examine {0}.d",
        "model fit {0} -o x.mdh",
        "dataset scan {0} -o x.fst",
        "verify --state {0}",
        "report {0} -o x.html",
    ],
)
def test_names_that_are_no_text(words, program, tmp_path):
    done = program(words.format(r"$'a\xff'"), f"cd {tmp_path} && {{}}")
    told = done.stdout + done.stderr
    assert done.returncode in (0, 1, 2) and "Traceback" not in told
    assert done.returncode == 0 or r"a\xff" in told or "a\ufffd" in told, told


@pytest.mark.slow
@pytest.mark.parametrize("home", ["missing", "read-only", "none"])
def test_pictures_make_nothing_at_home(home, program, tmp_path):
    place = tmp_path / "home"
    variables = {"HOME": "" if home == "none" else str(place), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}
    variables |= {"TMPDIR": str(tmp_path / "tmp"), "MPLCONFIGDIR": ""}
    (tmp_path / "tmp").mkdir()
    if home == "read-only":
        place.mkdir(mode=0o500)
    done = program(f"{TRACE} --plot {tmp_path}/a.svg", **variables)
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "a.svg").stat().st_size > 10_000
    assert not place.exists() or list(place.iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []
