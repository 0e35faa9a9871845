"""What may be asked for: plans that are refused, options, and how findings are told."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadstone import Error
from loadstone.content import Content
from loadstone.plan import RunOptions, check
from loadstone.verification import Verified, Verify, lines, lost_with, of_options
from loadstone.workload import job, plan_uniform

SIZE = 1 << 20


@pytest.fixture
def plan(tmp_path):
    """A plan on a new file that is filled, verified as asked."""

    def make(verify: Verify, **more):
        return plan_uniform(
            "randrw", tmp_path / "f", RunOptions(size=SIZE, requests=10, verify=verify, **more)
        )

    return make


@pytest.mark.parametrize("unit", [512, 1024, 2048, 4096])
def test_units_that_can_be_had(plan, unit):
    assert check(plan({"unit": unit}))["verify"] == {"unit": unit}


@pytest.mark.parametrize("unit", [0, 1, 511, 1000, 1536, 8192])
def test_other_units_are_refused(plan, unit):
    with pytest.raises(Error, match=rf"`verify_unit`: is {unit}; use 512, 1024, 2048 or 4096"):
        check(plan({"unit": unit}))


def test_a_page_is_the_unit_unless_said_and_that_of_content_is_taken(plan, loadstone, tmp_path):
    assert check(plan({}))["verify"] == {"unit": 4096}
    unit = ("--dedupe", "2", "--dedupe-unit", "16k", "--verify-unit", "512")
    words = ("run", "randrw", "--on", tmp_path / "g", "--size", SIZE, "--requests", 500, *unit, "--json")
    assert json.loads(loadstone(*words).stdout)["verified"]["unit"] == 16384


def test_unknown_keys_are_refused(plan):
    made = plan({})
    made["verify"]["units"] = 512
    with pytest.raises(Error, match="units"):
        check(made)


def test_what_holds_nothing_is_refused(plan):
    made = plan({})
    made["targets"][0] |= {"kind": "null", "path": "", "prepare": "none"}
    with pytest.raises(Error, match=r"targets\[0\]: holds nothing that could be verified"):
        check(made)


def test_filling_and_going_on_exclude_each_other(plan, tmp_path):
    state = str(tmp_path / "s")
    made = plan({"from": state})
    assert made["targets"][0]["prepare"] == "none"
    assert check(made)["verify"]["from"] == state
    made["targets"][0]["prepare"] = "fill"
    with pytest.raises(Error, match=r"targets\[0\]: is to be filled, and the state says what it holds"):
        check(made)


def test_options_ask_for_what_they_imply(tmp_path):
    state = str(tmp_path / "s")
    assert of_options(False, None, None, None) is None
    assert of_options(True, None, None, None) == {}
    assert of_options(False, 512, state, state) == {"unit": 512, "state": state, "from": state}
    with pytest.raises(Error, match=r"`verify_state` .*: the folder .*/no is not there, or not writable"):
        of_options(True, None, tmp_path / "no" / "s", None)


def test_a_plan_says_itself_what_is_verified(plan, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan({})))
    with pytest.raises(Error, match=r"`verify`: .*plan\.json: a plan says itself whether"):
        job(str(path), None, RunOptions(verify={})).plans[0]


def test_content_and_verification_go_together(plan):
    content: Content = {"compress": 2.0, "dedupe": 2.0, "unit": 8192}
    made = check(plan({"unit": 512}, content=content))
    assert made["content"]["unit"] == 8192 and made["verify"]["unit"] == 512


def found(**more) -> Verified:
    """What a clean verification found, but for what is said."""
    clean: Verified = {"unit": 4096, "checked": 10, "raced": 0, "unknown": 0, "wrong": {}, "damages": []}
    return {**clean, "unread": None, **more}  # type: ignore[typeddict-item]


def test_nothing_compared_is_not_told_as_all_right():
    assert lines(found()) == ["verified: all as it should be; 10 blocks compared"]
    assert lines(found(checked=0, unknown=7)) == ["verified: nothing; 0 blocks compared, 7 unknown"]


def test_all_damage_is_counted_though_not_all_is_listed(loadstone, tmp_path):
    target, state = tmp_path / "t", tmp_path / "s"
    loadstone(
        "run",
        "randwrite",
        "--on",
        target,
        "--size",
        "8m",
        "--requests",
        20_000,
        "--verify-state",
        state,
        "--yes",
    )
    os.truncate(target, 0)
    done = loadstone("verify", "--state", state, "--on", target, status=1)
    lost = int(re.search(r"verified: ([\d,]+) lost", done.stdout)[1].replace(",", ""))
    assert lost > 1000 and f"and {lost - 10:,} more damaged blocks" in done.stdout
    assert "8 MiB of what was written lie beyond the end of their target" in done.stdout


def test_what_was_not_stable_is_told_where_it_is_known():
    unsynced = {"newest": 1, "older": 2, "mixed": 3}
    told = lines(found(unsynced=unsynced, running=False))
    assert told[1] == "of blocks whose last write was not stable 1 hold it, 2 an older one, 3 a mixture"
    assert len(lines(found(unsynced=unsynced, running=True))) == 1


@pytest.mark.slow
def test_a_state_of_a_load_that_may_give_space_back_allows_zeros(loadstone, root, started, tmp_path):
    """And nothing else that was not written."""
    target, state = tmp_path / "f", tmp_path / "s"
    run = started(
        "replay", root / "examples/loop0.parquet", "--on", target, "--size", 64 << 20, "--offsets", "wrap",
        "--pace", "x0.1", "--verify-state", state,
    )  # fmt: skip
    try:
        while not os.path.exists(state):
            assert run.poll() is None
    finally:
        run.kill()
        run.communicate()
    with open(target, "r+b") as file:
        file.seek(4096 * 100)
        file.write(bytes(4096))
        file.seek(4096 * 200)
        file.write(os.urandom(4096))
    told = loadstone("verify", "--state", state, "--after-crash", status=1).stdout
    assert "verified: 1 corrupt; 16,383 blocks compared, 1 unknown" in told
    assert "where generation 0 or a later one should be" in told
    told = loadstone("verify", "--state", state, "--on", tmp_path, status=1).stderr
    assert f"{tmp_path}: is a directory; name the file or device" in told


def test_a_target_that_cannot_be_read_at_the_end_is_no_success(started, tmp_path):
    target = tmp_path / "f"
    run = started("run", "randrw", "--on", target, "--size", SIZE, "--duration", "2s", "--verify")
    # The load's own descriptor still works.
    target.unlink()
    out, errors = run.communicate(timeout=60)
    summary = json.loads(out)
    assert summary["errors"] == 0 and summary["verified"]["wrong"] == {}
    assert "No such file" in summary["verified"]["unread"]
    assert run.returncode == 1 and "not all that was written was read from end to end" in errors


@pytest.mark.slow
@pytest.mark.parametrize("what", ["text", "empty", "folder", "link", "pipe", "dangling"])
def test_only_a_state_is_replaced_by_a_state(loadstone, tmp_path, what):
    state, aim = tmp_path / "precious", tmp_path / "aim"
    aim.write_bytes(b"LSVERIFY and more")
    if what in ("text", "empty"):
        state.write_text("all of it" if what == "text" else "")
    elif what == "folder":
        state.mkdir()
    elif what == "pipe":
        os.mkfifo(state)
    else:
        state.symlink_to(aim if what == "link" else "nowhere")
    before = os.lstat(state)
    words = ("run", "randrw", "--on", tmp_path / "f", "--size", SIZE, "--requests", 10)
    told = loadstone(*words, "--verify-state", state, status=1).stderr
    assert f"{state}: is there and no state" in told
    # Named in a plan it is no more replaced.
    plan = tmp_path / "plan.json"
    made = plan_uniform("randrw", tmp_path / "f", RunOptions(size=SIZE, requests=10, verify={}))
    made["verify"]["state"] = str(state)
    plan.write_text(json.dumps(made))
    assert f"--verify-state {state}" in loadstone("run", plan, status=1).stderr
    assert "no state" in loadstone("run", plan, "--verify-state", state, status=1).stderr
    after = os.lstat(state)
    assert (after.st_ino, after.st_size, after.st_mtime) == (before.st_ino, before.st_size, before.st_mtime)
    assert not (tmp_path / "f").exists(), "nothing was touched before it was found"


def test_a_state_is_replaced_by_the_next(loadstone, tmp_path):
    words = ("run", "randrw", "--on", tmp_path / "f", "--size", SIZE, "--requests", 10)
    state = tmp_path / "s"
    loadstone(*words, "--verify-state", state)
    first = state.read_bytes()
    more = ("--allow-destroy", tmp_path / "f", "--seed", 9)
    loadstone(*words, *more, "--verify-state", state)
    assert state.read_bytes() != first


def test_a_state_of_other_targets_is_not_replaced(loadstone, tmp_path):
    """Only with its state can a target be verified."""
    words, state = ("run", "randrw", "--size", SIZE, "--requests", 10), tmp_path / "s"
    loadstone(*words, "--on", tmp_path / "a", "--verify-state", state)
    before = state.read_bytes()
    refused = loadstone(*words, "--on", tmp_path / "b", "--verify-state", state, status=1)
    assert f"{state}: tells what {tmp_path / 'a'} holds" in refused.stderr
    assert state.read_bytes() == before and not (tmp_path / "b").exists()
    # What was moved away is another file than the one that is made in its place.
    (tmp_path / "a").rename(tmp_path / "moved")
    refused = loadstone(*words, "--on", tmp_path / "a", "--verify-state", state, status=1)
    assert f"{state}: tells what {tmp_path / 'a'} holds" in refused.stderr and state.read_bytes() == before
    (tmp_path / "moved").rename(tmp_path / "a")
    # By another name it is the same target.
    os.link(tmp_path / "a", tmp_path / "c")
    loadstone(*words, "--on", tmp_path / "c", "--allow-destroy", tmp_path / "c", "--verify-state", state)


def test_a_state_that_a_run_makes_untrue_is_told(loadstone, tmp_path):
    target, state = tmp_path / "a", tmp_path / "s"
    words = ("run", "randrw", "--size", SIZE, "--requests", 10, "--on", target)
    loadstone(*words, "--verify-state", state)
    more = ("--allow-destroy", target, "--verify-from", state)
    assert f"{state}: tells of the target as it was before" in loadstone(*words, *more).stderr
    loadstone(*words, "--allow-destroy", target, "--verify-state", state)
    again = loadstone(*words, *more, "--verify-state", state).stderr
    assert "as it was before" not in again


def test_of_two_runs_with_one_state_both_are_kept(loadstone, started, tmp_path):
    state = tmp_path / "s"
    words = ("run", "randrw", "--size", SIZE, "--verify-state", state)
    long = started(*words, "--on", tmp_path / "b", "--duration", "1500ms")
    loadstone(*words, "--on", tmp_path / "c", "--requests", 10)
    second = state.read_bytes()
    out, err = long.communicate(timeout=60)
    assert long.returncode == 1 and "is not where it was to be kept" in err
    assert f"the state is in {state}.2" in json.loads(out)["verified"]["unkept"]
    assert state.read_bytes() == second
    for kept, target in ((state, "c"), (f"{state}.2", "b")):
        assert str(tmp_path / target).encode() in Path(kept).read_bytes()
        assert "all as it should be" in loadstone("verify", "--state", kept).stdout


def test_a_state_whose_directory_goes_is_kept_elsewhere(loadstone, started, tmp_path, monkeypatch):
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    words = ("run", "randrw", "--size", SIZE, "--verify-state", place / "s")
    run = started(*words, "--on", tmp_path / "b", "--duration", "1500ms")
    while not (tmp_path / "b").exists():
        assert run.poll() is None
        time.sleep(0.01)
    shutil.rmtree(place)
    out, _ = run.communicate(timeout=60)
    (kept,) = other.glob("s.*")
    assert run.returncode == 1
    assert json.loads(out)["verified"]["unkept"].endswith(f"the state is in {kept}")
    assert "all as it should be" in loadstone("verify", "--state", kept).stdout


def test_a_state_beside_its_target_is_warned_of(loadstone, tmp_path):
    words = ("run", "randwrite", "--on", tmp_path / "t", "--size", "1m", "--requests", "5", "--verify-state")
    told = loadstone(*words, tmp_path / "state").stderr
    assert f"warning: --verify-state {tmp_path}/state lies on the file system of {tmp_path}/t" in told


def test_only_a_state_on_the_same_file_system_is_lost_with_a_target(tmp_path):
    made = {"targets": [{"kind": "file", "path": str(tmp_path / "new")}]}
    assert lost_with(made) is None
    assert lost_with({**made, "verify": {"state": str(tmp_path / "state")}}) == str(tmp_path / "new")
    assert lost_with({**made, "verify": {"state": "/proc/state"}}) is None


@pytest.mark.slow
def test_after_a_kill_content_of_many_generations_is_no_other_file(loadstone, started, tmp_path):
    """Without marks nothing tells one of thousands of generations, and that makes no other file."""
    target, state = tmp_path / "f", tmp_path / "s"
    words = ("--bs", "4k", "--on", target, "--size", "64k", "--verify-state", state)
    run = started("run", "write", *words, "--content", "unique", "--duration", "60s")
    try:
        while not os.path.exists(state):
            assert run.poll() is None
        # Until each block was written far more than 4,096 times.
        time.sleep(4)
        assert run.poll() is None
    finally:
        run.kill()
        run.communicate()
    told = loadstone("verify", "--state", state, "--after-crash").stdout
    assert "verified: all as it should be" in told


@pytest.mark.root
def test_a_device_of_a_state_is_looked_at_and_not_opened(loadstone, tmp_path, need_root, need_tools):
    """Opening some does something: a watchdog begins to count."""
    need_tools("strace")
    target, state = tmp_path / "target", tmp_path / "state"
    loadstone("run", "randwrite", "--on", target, "--size", "1m", "--requests", 9, "--verify-state", state)
    target.unlink()
    os.mknod(target, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    seen = tmp_path / "seen"
    words = ["strace", "-f", "-o", seen, "-e", "trace=openat,open,openat2", sys.executable, "-m", "loadstone"]
    done = subprocess.run([*words, "verify", "--state", state], capture_output=True, text=True)
    assert done.returncode == 1 and "neither a file nor a block device" in done.stderr
    assert str(target) not in seen.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("write", "--bs", "4k", "--size", "64m", "--requests", 10, "--compress", 2, "--dedupe-unit", "1m"),
        ("randwrite", "--bs", "4k", "--size", "8m", "--requests", 60, "--dedupe", 2, "--dedupe-unit", "64k"),
        ("randwrite", "--bs", "1k", "--size", "1m", "--requests", 50, "--dedupe", 2),
        ("randwrite", "--bs", 256, "--size", "64k", "--requests", 50),
    ],
)
def test_what_was_written_in_part_is_no_other_file(loadstone, tmp_path, words):
    """Of such blocks the beginning is known, and the rest says nothing."""
    state = tmp_path / "state"
    loadstone("run", *words, "--no-fill", "--on", tmp_path / "target", "--verify-state", state)
    assert "all as it should be" in loadstone("verify", "--state", state).stdout
    # Another file is one all the same.
    size = (tmp_path / "target").stat().st_size
    if words[0] == "write":
        (tmp_path / "target").write_bytes(b"x" * size)
        assert loadstone("verify", "--state", state, status=1)


@pytest.mark.slow
def test_a_run_that_is_ended_while_it_fills_leaves_no_untrue_state(loadstone, tmp_path):
    """The state of the run before stayed, and called what was filled damage."""
    target, state = tmp_path / "target", tmp_path / "state"
    words = ("run", "randwrite", "--on", target, "--requests", 9, "--verify-state", state, "--yes")
    loadstone(*words, "--size", "1m")
    assert state.exists()
    target.write_bytes(bytes(512 << 20))
    words = [sys.executable, "-m", "loadstone", *map(str, words), "--allow-destroy", str(target)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while state.exists() and child.poll() is None:
        time.sleep(0.001)
    ended = child.poll()
    child.kill()
    child.communicate()
    assert ended is None and not state.exists()
