"""Verification through the command: clean runs, damage done under it, states, and what is refused."""

import json
import os
import signal
import subprocess
import time

import pytest

from loadstone import Error
from loadstone.verification import lines, verify_targets

SIZE = 16 << 20
RUN = ("run", "randrw", "--size", SIZE, "--seed", 3)


def told(loadstone, *words, status=0):
    return json.loads(loadstone(*words, "--json", status=status).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", "io_uring", "mmap"])
@pytest.mark.parametrize("content", [(), ("--dedupe", "2", "--compress", "2")])
def test_all_is_as_it_should_be(loadstone, tmp_path, backend, content):
    summary = told(
        loadstone,
        *RUN,
        "--on",
        tmp_path / "f",
        "--backend",
        backend,
        "--requests",
        20000,
        "--verify",
        *content,
    )
    verified = summary["verified"]
    assert verified["wrong"] == {} and verified["unread"] is None and verified["unit"] == 4096
    # Every read, and every block at the end.
    reads = summary["ops"]["read"]["count"]
    assert verified["checked"] + verified["unknown"] == reads + SIZE // 4096
    assert verified["raced"] < 0.02 * verified["checked"]


def test_requests_of_parts_of_blocks_are_verified(loadstone, tmp_path):
    words = (*RUN, "--on", tmp_path / "f", "--bs", "512:40,3k:30,12k:30", "--requests", 20000)
    verified = told(loadstone, *words, "--verify", "--verify-state", tmp_path / "s")["verified"]
    assert verified["wrong"] == {} and verified["checked"] > 10000
    assert verify_targets(tmp_path / "s")["wrong"] == {}
    # By smaller blocks more of it is told apart.
    os.remove(tmp_path / "f")
    assert told(loadstone, *words, "--verify-unit", "512")["verified"]["unit"] == 512


def test_a_trace_with_syncs_and_trims_is_verified(loadstone, root, tmp_path):
    words = ("replay", root / "examples/loop0.parquet", "--on", tmp_path / "f", "--size", "64m")
    verified = told(loadstone, *words, "--offsets", "wrap", "--pace", "max", "--verify")["verified"]
    assert verified["wrong"] == {} and verified["checked"] > 16384


@pytest.mark.slow
def test_a_state_tells_what_was_done_to_the_target_since(loadstone, tmp_path):
    target, state = tmp_path / "f", tmp_path / "s"
    loadstone(*RUN, "--on", target, "--requests", 20000, "--verify-state", state)
    assert verify_targets(state)["checked"] == SIZE // 4096
    with open(target, "r+b") as file:
        blocks = [file.seek(n * 4096) * 0 or file.read(4096) for n in range(8)]
        for n, damage in {
            1: bytes(4096),
            3: blocks[5],
            4: blocks[4][:100] + bytes([blocks[4][100] ^ 1]) + blocks[4][101:],
            6: blocks[6][:1024] + bytes(512) + blocks[6][1536:],
        }.items():
            file.seek(n * 4096)
            file.write(damage)
    found = told(loadstone, "verify", "--state", state, status=1)
    assert found["wrong"] == {"torn": 1, "lost": 1, "misplaced": 1, "corrupt": 1}
    by_place = {damage["at"] // 4096: damage for damage in found["damages"]}
    assert {n: damage["wrong"] for n, damage in by_place.items()} == {
        1: "lost",
        3: "misplaced",
        4: "corrupt",
        6: "torn",
    }
    assert by_place[3]["belongs"] == [0, 5 * 4096] and by_place[4]["differs"] == [4 * 4096 + 100, 1]
    text = loadstone("verify", "--state", state, status=1).stdout
    assert (
        f"{target}: the block at byte 12288 (4096 bytes) is misplaced: it holds what belongs to byte" in text
    )
    assert lines(found)[0] in text
    # An older image of it: writes were lost.
    os.rename(target, tmp_path / "damaged")
    (tmp_path / "t").mkdir()
    loadstone(*RUN, "--on", target, "--requests", 4000, "--verify-state", tmp_path / "t/s")
    older = target.read_bytes()
    loadstone(
        *RUN[:-2], "--on", target, "--allow-destroy", target, "--requests", 4000,
        "--verify-from", tmp_path / "t/s", "--verify-state", tmp_path / "t/s", "--seed", 8,
    )  # fmt: skip
    assert verify_targets(tmp_path / "t/s")["wrong"] == {}
    target.write_bytes(older)
    found = verify_targets(tmp_path / "t/s")
    assert found["wrong"].keys() == {"stale"} and found["wrong"]["stale"] > 1000
    # Another name of the same.
    os.rename(target, tmp_path / "g")
    assert verify_targets(tmp_path / "t/s", [tmp_path / "g"])["wrong"] == found["wrong"]


def test_damage_is_found_while_the_load_goes_on(started, tmp_path):
    target = tmp_path / "f"
    run = started(
        "run", "randread", "--on", target, "--size", SIZE, "--backend", "sync", "--duration", "3s", "--verify"
    )
    with open(target, "r+b") as file:
        file.seek(40960 + 512)
        file.write(bytes(512))
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 1
    verified = json.loads(out)["verified"]
    # Read again and again, and once more at the end.
    assert verified["wrong"].keys() == {"torn"} and verified["wrong"]["torn"] > 10
    (damage,) = verified["damages"]
    assert (damage["at"], damage["times"]) == (40960, verified["wrong"]["torn"])


@pytest.mark.slow
def test_a_run_that_was_killed_left_a_state(loadstone, started, tmp_path):
    state = tmp_path / "s"
    run = started(*RUN, "--on", tmp_path / "f", "--duration", "60s", "--verify-state", state)
    deadline = time.monotonic() + 30
    while not state.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    with pytest.raises(Error, match="`after_crash`"):
        verify_targets(state)
    found = told(loadstone, "verify", "--state", state, "--after-crash")
    assert found["running"] and found["wrong"] == {} and found["checked"] == SIZE // 4096


def test_what_cannot_be_verified_is_refused_before_anything_is_done(loadstone, tmp_path):
    mine, other, state = tmp_path / "mine", tmp_path / "other", tmp_path / "s"
    loadstone(*RUN, "--on", mine, "--requests", 100, "--verify-state", state)
    other.write_bytes(os.urandom(SIZE))
    before = other.read_bytes()

    def refused(*words, status=1):
        return loadstone(*words, status=status).stderr

    read = ("run", "randread", "--on", other, "--requests", 10, "--verify")
    assert "nothing tells what it should hold" in refused(*read)
    text = refused("verify", "--state", state, "--on", other)
    assert f"{other} holds nothing of what it tells" in text
    again = (
        "run",
        "randrw",
        "--on",
        other,
        "--size",
        SIZE,
        "--allow-destroy",
        other,
        "--verify-from",
        state,
        "--requests",
        1,
    )
    assert f"{mine}, and this run uses {SIZE} of {other}" in refused(*again)
    # The name of one, and the content of another.
    os.replace(other, mine)
    again = (
        "run",
        "randrw",
        "--on",
        mine,
        "--size",
        SIZE,
        "--allow-destroy",
        mine,
        "--verify-from",
        state,
        "--requests",
        1,
    )
    assert "somebody else has written it since" in refused(*again)
    assert mine.read_bytes() == before
    assert "leave out one or the other" in refused(*again, "--fill")
    for name, content, why in (
        ("none", None, "cannot be opened"),
        ("text", b"no state at all, but some text", "no state of a verification"),
        ("cut", state.read_bytes()[:-20], "cut short or damaged"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        assert why in refused("verify", "--state", tmp_path / name, "--on", mine)
    assert "name as many" in refused("verify", "--state", state, "--on", mine, "--on", mine)
    nothing = ("run", "randrw", "--on", "null:", "--requests", 1, "--verify")
    assert "performs and keeps nothing" in refused(*nothing, status=2)
    assert "is not there" in refused(*RUN, "--on", tmp_path / "n", "--verify-state", tmp_path / "no/s")
    assert not (tmp_path / "n").exists()


def test_unreadable_blocks_are_counted_and_the_others_compared(loadstone, tmp_path, need_root, need_tools):
    """A loop device gives errors where its image has been cut off."""
    need_tools("losetup")
    image, state = tmp_path / "image", tmp_path / "s"
    image.write_bytes(bytes(16 << 20))
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=True)
    device = made.stdout.strip()
    try:
        words = (
            "run",
            "randwrite",
            "--on",
            device,
            "--allow-destroy",
            device,
            "--requests",
            500,
            "--depth",
            1,
        )
        loadstone(*words, "--size", SIZE, "--verify-state", state)
        os.sync()
        os.truncate(image, 10 << 20)
        with open("/proc/sys/vm/drop_caches", "w") as caches:
            caches.write("3")
        found = told(loadstone, "verify", "--state", state, status=1)
        assert (found["checked"], found["unreadable"], found["wrong"]) == (2560, 1536, {})
        where = f"target {device}: 1536 blocks cannot be read, at bytes 10485760, 10489856, "
        assert found["unread"].startswith(where) and found["unread"].endswith(
            "Input/output error (os error 5)"
        )
        shown = loadstone("verify", "--state", state, status=1).stdout
        assert "verified: all as it should be; 2,560 blocks compared, 1,536 unreadable" in shown
        # What can be read is compared wherever it lies.
        with open(image, "r+b") as file:
            file.seek(9 << 20)
            file.write(bytes(4096))
        assert told(loadstone, "verify", "--state", state, status=1)["wrong"] == {"lost": 1}
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.parametrize("what", ["s", "f"])
def test_pipes_are_refused_and_not_waited_for(loadstone, tmp_path, what):
    loadstone(*RUN, "--on", tmp_path / "f", "--requests", 100, "--verify-state", tmp_path / "s")
    os.remove(tmp_path / what)
    os.mkfifo(tmp_path / what)
    done = loadstone("verify", "--state", tmp_path / "s", status=1, timeout=20)
    assert str(tmp_path / what) in done.stderr


@pytest.mark.parametrize("go_on", [True, False])
def test_a_run_that_is_killed_soon_does_not_make_damage_of_its_writes(loadstone, started, tmp_path, go_on):
    """What is known of the run before is marked at once as older than what is written now."""
    words = ("run", "randrw", "--on", tmp_path / "t", "--size", "4m")
    state = tmp_path / "s"
    loadstone(*words, "--requests", 500, "--verify-state", state)
    more = ("--verify-from", state) if go_on else ()
    run = started(
        *words,
        "--duration",
        "60s",
        "--seed",
        2,
        "--allow-destroy",
        tmp_path / "t",
        *more,
        "--verify-state",
        state,
    )
    time.sleep(0.3)
    run.kill()
    run.communicate()
    assert "going on" in loadstone("verify", "--state", state, status=1).stderr
    told = loadstone("verify", "--state", state, "--after-crash").stdout
    assert "all as it should be" in told
