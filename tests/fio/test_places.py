"""Job files without a target: what runs as it is, and which command everything else needs."""

from __future__ import annotations

import pytest

import loadstone as library
from loadstone.bundle import Bundle


@pytest.fixture
def run(tmp_path, loadstone):
    """Runs a job file of this text."""

    def running(text, *words, status=0):
        (tmp_path / "j.fio").write_text(text)
        return loadstone("run", tmp_path / "j.fio", *words, status=status)

    return running


def test_files_that_are_there_and_only_read_need_no_target(tmp_path, run):
    (tmp_path / "a").write_bytes(b"x" * 65536)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b").write_bytes(b"y" * 16384)
    jobs = f"[one]\nfilename={tmp_path}/a\n[two]\ndirectory={tmp_path}/sub\nfilename=b\nbs=8k\n"
    run(jobs, "--out", tmp_path / "bundle")
    summary = Bundle.read(tmp_path / "bundle").summary
    assert (summary["requests"], summary["errors"], summary["ops"]["read"]["bytes"]) == (18, 0, 81920)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "bundle", "j.fio", "sub"]


def test_without_a_target_nothing_is_made_or_written(tmp_path, run):
    """Each error says which command to write, and that command runs."""
    (tmp_path / "there").write_bytes(b"x" * 65536)
    (tmp_path / "many").mkdir()
    job = tmp_path / "j.fio"
    cases = [
        (
            f"[a]\nrw=write\nfilename={tmp_path}/there\n",
            f"--on {tmp_path}/there --allow-destroy {tmp_path}/there",
        ),
        (f"[a]\nsize=64k\nfilename={tmp_path}/new\n", f"--on {tmp_path}/new"),
        (f"[a]\nrw=write\nsize=${{S}}\nfilename={tmp_path}/new2\n", f"--on {tmp_path}/new2 -D S=64k"),
        (f"[g]\nsize=64k\ndirectory={tmp_path}/many\nnumjobs=2\n", f"--on {tmp_path}/many"),
        (f"[h]\nsize=64k\nfilename={tmp_path}/no/dir/new3\n", f"--on {tmp_path}"),
    ]
    for text, words in cases:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != job}
        given = ["-D", "S=64k"] if "${S}" in text else []
        said = run(text, *given, status=1).stderr
        assert said.rstrip().endswith(f": loadstone run {job} {words}"), said
        after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != job}
        assert after == before
        run(text, *words.split(" "))
    # Who gives up a file has named it.
    run(cases[0][0], "--allow-destroy", tmp_path / "there")


@pytest.mark.parametrize(
    "names", ["size=64k", "filename=data\nsize=64k", "ioengine=filestat\nnrfiles=2\nfilesize=4k"]
)
def test_relative_names_and_none_need_a_directory(tmp_path, run, names):
    said = run(f"[a]\n{names}\n", status=1).stderr
    assert "j.fio:1: [a]: no target: its files have no absolute names; " in said
    assert f"loadstone run {tmp_path}/j.fio --on DIR" in said
    assert [path.name for path in tmp_path.iterdir()] == ["j.fio"]


def test_jobs_that_touch_nothing_need_no_target(run):
    assert "ops/s" in run("[a]\nioengine=null\nsize=1m\n").stdout


def test_a_directory_to_put_files_in_must_be_named(tmp_path, run):
    (tmp_path / "a").write_bytes(b"x" * 65536)
    assert "--rebase needs --on DIR" in run(f"[a]\nfilename={tmp_path}/a\n", "--rebase", status=1).stderr


@pytest.mark.parametrize(
    "name", ["nosuch.fio", "nosuch.f", "nosuch.json", "nosuch.mdh", "nosuch.parquet", "a/nosuch.prof"]
)
def test_a_workload_that_is_not_there_is_told_first(tmp_path, loadstone, name):
    """Whatever else is missing or wrong, as a target is here."""
    for words in ([], ["--on", tmp_path / "missing/x"], ["--cache", "remount"]):
        said = loadstone("run", tmp_path / name, *words, status=1).stderr.lower()
        assert "no such file" in said and name in said, said
    with pytest.raises(library.Error, match=r"(?i)no such file"):
        library.job(tmp_path / name)
