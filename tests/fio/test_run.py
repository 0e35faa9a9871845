"""Jobs performed for real, by the command and by the library."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest

from loadstone import Error
from loadstone.bundle import Series
from loadstone.plan import RunOptions
from loadstone.workload import job as made
from loadstone.workload import plan_fio, run

TEXT = """
; written in order first, then read and overwritten by chance
[global]
size=${SIZE}
filename=data
invalidate=0

[fill]
rw=write
bs=64k

[readers]
stonewall
rw=randread
bs=4k
numjobs=2
random_distribution=zipf:1.1

[writer]
rw=randwrite
bssplit=4k/75:16k/25
rate_iops=2000
number_ios=200
"""


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("kind", ["link", "hard", "mount", "directory", "new"])
def test_a_directory_that_is_given_up_is_looked_at_when_each_plan_begins(tmp_path, root, need_root, kind):
    """What is put in a file's place while an earlier job runs was not given up."""
    on, mine, jobs = tmp_path / "on", tmp_path / "mine", tmp_path / "j.fio"
    (on / "sub").mkdir(parents=True)
    mine.mkdir()
    (mine / "fb").write_bytes(b"x" * (1 << 20))
    if kind != "new":
        (on / "sub/fb").write_bytes(bytes(1 << 20))
    else:
        (mine / "fb").unlink()
    jobs.write_text(
        "[global]\nsize=1m\nrw=randwrite\nruntime=1\ntime_based\n"
        "[one]\nfilename=fa\n[two]\nstonewall\nfilename=sub/fb\n"
    )
    words = [root / ".venv/bin/loadstone", "run", jobs, "--on", on]
    words += [] if kind == "new" else ["--allow-destroy", on]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (on / "fa").exists():
        assert run.poll() is None
        time.sleep(0.01)
    mounted = False
    if kind == "mount":
        mounted = True
        subprocess.run(["mount", "--bind", mine / "fb", on / "sub/fb"], check=True)
    elif kind in ("directory", "new"):
        shutil.rmtree(on / "sub")
        (on / "sub").symlink_to(mine)
    else:
        (on / "sub/fb").unlink()
        (on / "sub/fb").symlink_to(mine / "fb") if kind == "link" else (on / "sub/fb").hardlink_to(
            mine / "fb"
        )
    try:
        _, errors = run.communicate(timeout=60)
    finally:
        if mounted:
            subprocess.run(["umount", on / "sub/fb"], check=True)
    assert run.returncode == 1 and "somebody changed it meanwhile" in errors, errors
    if kind == "new":
        assert not list(mine.iterdir())
    else:
        assert (mine / "fb").read_bytes() == b"x" * (1 << 20)


@pytest.fixture
def job(tmp_path):
    (tmp_path / "on").mkdir()
    file = tmp_path / "job.fio"
    file.write_text(TEXT)
    return file


def test_a_file_is_written_and_then_read(job, tmp_path, loadstone):
    done = loadstone("run", job, "--on", tmp_path / "on", "-D", "SIZE=2m")
    lines = done.stdout.splitlines()
    assert lines[0] == "jobs: fill" and lines[1].startswith("32 requests, 2.0 MiB")
    second = lines.index("jobs: readers, writer")
    assert lines[second + 1].startswith("1,224 requests")
    assert "note: writer: requests at a rate are due at times of their own" in done.stderr
    [file] = (tmp_path / "on").iterdir()
    assert (file.name, file.stat().st_size) == ("data", 2 << 20)
    # What is there now is not overwritten, and nothing is touched before that is known.
    before = file.read_bytes()
    again = loadstone("run", job, "--on", tmp_path / "on", "-D", "SIZE=2m", status=1)
    assert "job.fio:5: filename=data:" in again.stderr and "--allow-destroy" in again.stderr
    assert again.stdout == "" and file.read_bytes() == before
    loadstone("run", job, "--on", tmp_path / "on", "-D", "SIZE=2m", "--allow-destroy", file)


def test_plans_are_printed_and_nothing_is_made(job, tmp_path, loadstone):
    done = loadstone("run", job, "--on", tmp_path / "on", "-D", "SIZE=2m", "--dry-run")
    plans = json.loads(done.stdout)["plans"]
    assert [len(plan["workers"]) for plan in plans] == [1, 3]
    assert not list((tmp_path / "on").iterdir())


def test_a_bundle_holds_the_only_run_or_all(job, tmp_path, loadstone):
    words = ["--on", tmp_path / "on", "-D", "SIZE=1m", "--out", tmp_path / "bundle"]
    loadstone("run", job, *words)
    series = Series.read(tmp_path / "bundle")
    assert (series.kind, len(series.runs)) == ("script", 2)
    assert [run["role"][:2] for run in series.runs] == ["1 ", "2 "]
    loadstone("report", tmp_path / "bundle", "-o", tmp_path / "all.html")
    assert series.runs[1]["role"] in (tmp_path / "all.html").read_text()
    job.write_text("[one]\nrw=randwrite\nsize=${SIZE}\n")
    loadstone("run", job, *words, "--force")
    plan = json.loads((tmp_path / "bundle/plan.json").read_text())
    assert plan["workers"][0]["group"] == "one"


def test_options_that_jobs_say_themselves_are_refused(job, loadstone):
    for words, text in [
        (["--bs", "4k"], "--bs: "),
        (["--depth", "4"], "--depth: "),
        (["--compat", "1.4"], "No such option"),
        (["--filebench-compat", "1.4"], "is no script of Filebench"),
    ]:
        refused = loadstone("run", job, "--on", "null:", *words, status=2)
        assert text in refused.stderr
    said = loadstone("run", job, "-D", "SIZE=2m", status=1).stderr
    assert f"loadstone run {job} --on DIR -D SIZE=2m" in said
    assert "is not set" in loadstone("run", job, "--on", "null:", status=1).stderr


def test_the_library_performs_jobs(job, tmp_path):
    said = []
    found = made(job, tmp_path / "on", RunOptions(variables={"SIZE": "2m"}, seed=3))
    assert {plan["seed"] for plan in found.plans} == {3}
    done = run(found, on_run=lambda one: said.append(one.name))
    first, second = (one.summary for one in done.bundles())
    assert (first["requests"], first["errors"], first["partial"]) == (32, 0, False)
    assert (second["requests"], second["errors"]) == (2 * 512 + 200, 0)
    assert said == ["fill", "readers, writer"]
    # A file that came in between is not taken for the run's own.
    with pytest.raises(Error, match="was there before"):
        run(found)


@pytest.mark.slow
def test_what_a_model_was_exported_to_is_run(root, tmp_path, loadstone):
    loadstone("model", "fit", root / "examples/loop0.parquet", "-o", tmp_path / "m.mdh", "--window", "1s")
    job, target = tmp_path / "m.fio", tmp_path / "target"
    loadstone("model", "export", tmp_path / "m.mdh", "--to", "fio", "-o", job, "--on", target)
    found = plan_fio(job, target)
    assert {w["source"]["skew"]["kind"] for plan in found.plans for w in plan["workers"]} == {"zones"}
    on_nothing = made(job, "null:", RunOptions(duration=0.05))
    done = [one.summary for one in run(on_nothing).bundles()]
    assert len(done) == len(found.plans) and sum(one["requests"] for one in done) > 100


@pytest.mark.slow
def test_all_jobs_are_checked_before_the_first_one_runs(tmp_path, loadstone):
    on, job = tmp_path / "on", tmp_path / "job.fio"
    on.mkdir()
    first = "[a]\nrw=write\nbs=4k\nsize=1m\n{}\n[b]\nstonewall\n{}\n"
    cases = {
        # What a wrote is known to a only.
        first.format(
            "verify=crc32c", "filename=a.0.0\nrw=read\nsize=1m\nverify=crc32c"
        ): "give --verify-state FILE",
        # A hole is found before, too.
        first.format("", "filename=sparse\nrw=read\nsize=1m"): "hole",
        first.format("", "filename=short\nrw=read\nsize=1m"): "reaches byte 1048576",
    }
    with (on / "sparse").open("wb") as file:
        file.truncate(1 << 20)
    (on / "short").write_bytes(bytes(4096))
    before = sorted(on.iterdir())
    for text, message in cases.items():
        job.write_text(text)
        for more in ([], ["--dry-run"]):
            done = loadstone("run", job, "--on", on, *more, status=1)
            assert message in done.stderr and "b" in done.stderr and done.stdout == ""
            assert "plan, " not in done.stderr
    assert sorted(on.iterdir()) == before


def test_jobs_that_ask_for_verification_are_verified(tmp_path, loadstone):
    (tmp_path / "on").mkdir()
    job = tmp_path / "job.fio"
    job.write_text("[w]\nfilename=d\nrw=randwrite\nsize=2m\nnumber_ios=300\nverify=crc32c\ndo_verify=1\n")
    done = loadstone("run", job, "--on", tmp_path / "on")
    assert "verified: all as it should be; 512 blocks compared" in done.stdout
    assert "note: w: verify=crc32c: blocks carry marks of our own" in done.stderr
    job.write_text(job.read_text().replace("crc32c", "0"))
    again = loadstone("run", job, "--on", tmp_path / "on", "--allow-destroy", tmp_path / "on/d")
    assert "verified" not in again.stdout + again.stderr


@pytest.mark.slow
def test_a_state_goes_from_one_run_to_the_next(tmp_path, loadstone):
    (tmp_path / "on").mkdir()
    job, state = tmp_path / "job.fio", tmp_path / "state"
    job.write_text(
        "[global]\nfilename=data\nsize=2m\n[w]\nrw=write\nbs=64k\n[again]\nstonewall\nrw=randwrite\n"
        "number_ios=99\n[r]\nstonewall\nrw=read\n"
    )
    words = ["run", job, "--on", tmp_path / "on", "--verify-state", state]
    plans = json.loads(loadstone(*words, "--dry-run").stdout)["plans"]
    assert [plan["verify"].get("from") for plan in plans] == [None, str(state), str(state)]
    told = [line for line in loadstone(*words).stdout.splitlines() if line.startswith("verified")]
    # The last one reads each block, and all is read once more.
    assert told[-1].startswith("verified: all as it should be; 1,024 blocks compared")
    assert "512 blocks compared" in loadstone("verify", "--state", state).stdout
    data = tmp_path / "on/data"
    with data.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(bytes(4096))
    assert "verified: 1 lost; 512 blocks compared" in loadstone("verify", "--state", state, status=1).stdout
    job.write_text(job.read_text().replace("[r]", "[r]\nfilename=other"))
    refused = loadstone(*words, "--allow-destroy", data, status=1)
    assert "jobs before and after stonewall use different files" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["link", "hard", "moved", "copy", "name"])
def test_a_later_plan_writes_only_the_very_file_that_an_earlier_one_made(tmp_path, root, loadstone, kind):
    on, mine, jobs = tmp_path / "on", tmp_path / "mine", tmp_path / "j.fio"
    on.mkdir()
    mine.write_bytes(b"x" * (1 << 20))
    jobs.write_text(
        "[global]\nsize=1m\nrw=randwrite\nruntime=2\ntime_based\n"
        "[one]\nfilename=a\n[two]\nstonewall\nfilename=b\n[three]\nstonewall\nfilename=a\n"
    )
    words = [root / ".venv/bin/loadstone", "run", jobs, "--on", on]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (on / "b").exists():
        assert run.poll() is None
        time.sleep(0.01)
    if kind == "name":
        (tmp_path / "backup").hardlink_to(on / "a")
    else:
        (on / "a").unlink()
    if kind == "link":
        (on / "a").symlink_to(mine)
    elif kind == "copy":
        # It gets the very inode again, of file systems that give the last one out first.
        (on / "a").write_bytes(mine.read_bytes())
    elif kind == "name":
        before = (on / "a").read_bytes()
    elif kind == "hard":
        (on / "a").hardlink_to(mine)
    else:
        mine.rename(on / "a")
    _, errors = run.communicate(timeout=60)
    why = {"name": "has got another name since", "link": "is a link, and a file is wanted"}.get(
        kind, "another has taken its place since"
    )
    assert run.returncode == 1 and why in errors
    assert (on / "a").read_bytes() == (before if kind == "name" else b"x" * (1 << 20))
    # Where nobody does so all three are run.
    (on / "a").unlink(), (on / "b").unlink()
    loadstone("run", jobs, "--on", on)
