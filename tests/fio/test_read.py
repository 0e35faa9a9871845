"""The reader of fio's job files: each rule, each refusal with its message."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loadstone.fio import ACCEPTED, ALIASES, REFUSED, USED, FioError, parse

NOTHING: dict[str, str] = {}


def values(text, **variables):
    """Keys and values of the only job."""
    [job] = parse(text, "x.fio", variables, NOTHING)
    return {key: entry.value for key, entry in job.entries.items()}


def test_sections_comments_spaces_and_ends_of_lines():
    text = "; one\n# two\n\n [ a b ]  ; three\r\n\tbs = 4k # four\r\nrw=read;five\rstonewall\n  size=1m"
    [job] = parse(text, "x.fio")
    assert (job.name, job.line) == ("a b", 4)
    assert {key: (entry.value, entry.line) for key, entry in job.entries.items()} == {
        "bs": ("4k", 5), "rw": ("read", 6), "stonewall": ("1", 7), "size": ("1m", 8),
    }  # fmt: skip


def test_bytes_with_a_mark_of_their_order_and_names_in_any_script():
    [job] = parse("\ufeff[Prüfung]\nsize=1m\n".encode(), "x.fio")
    assert job.name == "Prüfung"


def test_globals_apply_to_the_jobs_after_them_and_add_up():
    text = "[global]\nbs=4k\nrw=read\n[a]\nbs=8k\n[global]\nrw=write\nbs=16k\n[b]\n[c]\nrw=rw\n[c]\n"
    jobs = parse(text, "x.fio")
    found = [(job.name, job.entries["bs"].value, job.entries["rw"].value) for job in jobs]
    assert found == [("a", "8k", "read"), ("b", "16k", "write"), ("c", "16k", "rw"), ("c", "16k", "write")]


def test_aliases_are_one_key_and_the_last_one_counts():
    [job] = parse("[a]\nblocksize=4k\nsize=1m\nbs=8k\n", "x.fio")
    assert list(job.entries) == ["size", "bs"]
    assert job.entries["bs"].value == "8k"
    assert set(ALIASES.values()) <= {*USED, *ACCEPTED, *REFUSED}


def test_variables_of_the_environment_and_of_the_command():
    with pytest.warns(UserWarning, match="x.fio: takes SIZE from the environment"):
        job = parse("[a]\nsize=${SIZE}\nbs=${BS}k\n", "x.fio", {"BS": "8"}, {"SIZE": "1m", "BS": "4"})[0]
    assert (job.entries["size"].value, job.entries["bs"].value) == ("1m", "8k")


def test_facts_of_the_host():
    found = values("[a]\nbs=$pagesize\nnumjobs=$ncpus\nsize=$mb_memory\n")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    assert found == {
        "bs": str(os.sysconf("SC_PAGE_SIZE")), "numjobs": str(os.cpu_count()), "size": str(memory)
    }  # fmt: skip


# Text, line of the error, message.
ERRORS = [
    ("", 1, "has no job; write a section"),
    ("[global]\nbs=4k\n", 3, "has no job"),
    ("bs=4k\n[a]\n", 1, "bs=4k: stands before any section; write [global] above it"),
    ("[a]x\n", 1, "[a]x: a section is a name in brackets alone"),
    ("[a\n", 1, "[a: a section is a name in brackets alone"),
    ("[a ; x]\n", 1, "[a: a section is a name in brackets alone"),
    ("\n[]\n", 2, "[]: the section has no name"),
    ("[GLOBAL]\n", 1, "[GLOBAL]: write [global], or give the job another name"),
    ("[global-x]\n", 1, "[global-x]: write [global]"),
    (
        "[a]\nnonsense=4\n",
        2,
        "nonsense=4: nonsense is no key of a job; remove it, or see docs/reference/fio.md",
    ),
    ("[a]\niodepht=4\n", 2, "iodepht=4: iodepht is no key of a job; did you mean iodepth?"),
    ("[a]\nSIZE=4\n", 2, "SIZE=4: keys are written in small letters: size"),
    ("[a]\nbs 4k\n", 2, "bs 4k: write bs=4k"),
    ("[a]\n=4\n", 2, "=4: has no key before its ="),
    ("[a]\ninclude other.fio\n", 2, "include other.fio: other files are not read; put what it says here"),
    ("[a]\ndirect\n", 2, "direct: needs a value; write direct=..."),
    (
        "[a]\nsize=${NOT_SET}\n",
        2,
        "the variable NOT_SET is not set; set it in the environment, or give -D NOT",
    ),
    ("[a]\nsize=${SIZE\n", 2, "size=${SIZE: a variable is written ${NAME}"),
    ("[a]\nsize=${}\n", 2, "a variable is written ${NAME}"),
    (b"[a]\nsize=\xff\n", 2, "is no text in UTF-8"),
    ("[a]\nname=x\0y\n", 2, "has a character that cannot be seen"),
    ("[a]\n# \u00a0\nbs\u00a0=4k", 3, "has a character that cannot be seen; type it anew"),
]


@pytest.mark.parametrize(("text", "line", "message"), ERRORS)
def test_what_cannot_be_read_says_where_and_what_to_do(text, line, message):
    with pytest.raises(FioError, match=re.escape(message)) as caught:
        parse(text, "x.fio", None, NOTHING)
    assert (caught.value.file, caught.value.line) == ("x.fio", line)
    assert str(caught.value).startswith(f"x.fio:{line}: ")


def test_variables_that_nobody_asks_for_are_slips():
    with pytest.raises(FioError, match=r"-D SIZ: the file has no \$\{SIZ\}"):
        parse("[a]\nsize=${SIZE}\n", "x.fio", {"SIZ": "1m"}, {"SIZE": "2m"})
    with pytest.raises(FioError, match="no line of text"):
        parse("[a]\nsize=${X}\n", "x.fio", {"X": "1\n2"})


def test_long_lines_are_cut_and_nothing_moves_the_cursor():
    with pytest.raises(FioError) as caught:
        parse("[a]\n\x1b[31m" + "x" * 10_000 + "=1\n", "x.fio")
    assert len(str(caught.value)) < 500 and "\x1b" not in str(caught.value)


MARKS = "[]= ;#$}\0\r,:/-%01\n\n"
TEXTS = ["[global]", "[a]", "${", "$ncpus", "include", "4k", "-1", "9" * 20, "zipf:1.2", "a:b", "1e9"]
WORDS = st.sampled_from([*MARKS, *TEXTS, *sorted({*USED, *ALIASES})])


@given(st.one_of(st.text(), st.binary(), st.lists(WORDS, max_size=40).map("".join)))
@example("[a]\nsize=$mb_memory*2")
def test_any_text_is_read_or_refused(text):
    try:
        jobs = parse(text, "x.fio", None, {"a": "b"})
    except FioError as error:
        assert error.line >= 1
    else:
        assert jobs


def test_every_key_of_fio_is_known(tmp_path):
    """fio's own list, where it is installed: what Loadstone does not know is new in fio."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    help_ = subprocess.run(["fio", "--cmdhelp=all"], capture_output=True, text=True, check=True).stdout
    keys = {line.split(":")[0].strip() for line in help_.splitlines() if ":" in line}
    for engine in ("libaio", "io_uring", "pvsync2"):
        more = subprocess.run(
            ["fio", f"--enghelp={engine}"], capture_output=True, text=True, check=True
        ).stdout
        keys |= {line.split(":")[0].strip() for line in more.splitlines() if " : " in line or ": " in line}
    assert len(keys) > 150
    # Newer versions may know more; those that 3.33 lists must all be told apart.
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    unknown = keys - {*USED, *ACCEPTED, *REFUSED, *ALIASES}
    if version != "fio-3.33":
        pytest.skip(f"{version}, not fio-3.33, knows {len(unknown)} more: {sorted(unknown)}")
    assert not unknown


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_no_key_is_in_two_places(key):
    assert key not in USED and key not in ACCEPTED
    assert key not in ALIASES
