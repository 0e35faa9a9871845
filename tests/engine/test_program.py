"""Programs: steps on sets of files, run for real."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadstone import Error
from loadstone.bundle.write import summarise
from loadstone.plan import check
from loadstone.workload import execute

MS = 1_000_000


def op(act: str, name: str = "", **parts: Any) -> dict[str, Any]:
    files = act not in (
        "close",
        "sync",
        "delay",
        "hog",
        "group",
        "event_limit",
        "block",
        "wakeup",
        "sem_block",
    )
    files = files and not act.startswith(("finish", "sem_", "iops", "ops", "bandwidth"))
    return {"name": name or act, "act": act, **({"set": "s"} if files else {}), **parts}


def plan(
    on: Path | str,
    ops: list[dict[str, Any]] | dict[str, list[dict[str, Any]]],
    *,
    threads: int = 1,
    ms: int = 300,
    until: str = "time",
    **parts: Any,
) -> dict[str, Any]:
    """A plan of programs on one set; further keys are the set's, or the plan's."""
    null = on == "null:"
    target = (
        {"id": "t", "kind": "null", "size": 1 << 40} if null else {"id": "t", "kind": "tree", "path": str(on)}
    )
    whole = {key: parts.pop(key) for key in ("variables", "events_per_s", "seed") if key in parts}
    target |= {key: parts.pop(key) for key in ("allow_destroy",) if key in parts}
    programs = ops if isinstance(ops, dict) else {"w": ops}
    return {
        "version": 1,
        "targets": [target],
        "sets": [{"id": "s", "target": "t", "path": "files", "entries": 20, "present": 1.0, **parts}],
        "workers": [
            {
                "group": group,
                "source": {"kind": "program", "ops": steps},
                "backend": "null" if null else "posix",
                "depth": threads,
            }
            for group, steps in programs.items()
        ],
        "steps": [{"step": "prepare"}, {"step": "run", "duration_ns": ms * MS, "until": until}],
        **whole,
    }


def run(plan: dict[str, Any]) -> dict[str, Any]:
    checked = check(plan)
    return summarise(checked, execute(checked))


def files_of(root: Path) -> list[Path]:
    found = (p for p in (root / "files").rglob("*") if p.name != ".loadstone")
    return sorted(p for p in found if p.is_file() or p.is_symlink())


def test_a_set_is_made_as_it_is_said(tmp_path: Path) -> None:
    steps = [op("stat")]
    run(plan(tmp_path / "d", steps, ms=20, size=5000, entries=300, width=10, leaf_directories=7, shape=0))
    found = files_of(tmp_path / "d")
    assert len(found) == 300
    assert {p.stat().st_size for p in found} == {5000}
    assert all(
        len(part) == 8 and part.isdigit() for p in found for part in p.relative_to(tmp_path / "d/files").parts
    )
    contents = {p.read_bytes() for p in found}
    assert len(contents) == 300
    empty = [p for p in (tmp_path / "d/files").rglob("*") if p.is_dir() and not any(p.iterdir())]
    assert len(empty) == 7


def test_names_of_files_are_as_long_as_is_said(tmp_path: Path) -> None:
    steps = [op("create", slot=1), op("close", slot=1), op("stat")]
    whole = {"entries": 40, "width": 10, "layout": "flat", "present": 0.5, "digits": [250, 255]}
    summary = run(plan(tmp_path / "d", steps, ms=20, **whole))
    assert summary["errors"] == 0
    assert {len(path.name) for path in files_of(tmp_path / "d")} == set(range(250, 256))
    assert {len(path.parent.name) for path in files_of(tmp_path / "d")} == {8}
    # They are numbers still, so the set may be made anew.
    run(plan(tmp_path / "d", [op("stat")], ms=20, entries=3))
    assert {len(path.name) for path in files_of(tmp_path / "d")} == {8}
    for digits, what in (([7, 9], r"sets\[0\].digits: is \[7, 9\]"), ([9, 8], "digits"), ([8, 256], "u8")):
        with pytest.raises(Error, match=what):
            check(plan(tmp_path / "e", steps, digits=digits))


def test_no_two_blocks_of_a_set_are_alike(tmp_path: Path) -> None:
    run(plan(tmp_path / "d", [op("stat")], ms=20, size=(1 << 20) + 9000, entries=5, width=5, shape=0))
    blocks = [
        content[at : at + 4096]
        for content in (p.read_bytes() for p in files_of(tmp_path / "d"))
        for at in range(0, len(content), 4096)
    ]
    assert len(blocks) == 5 * 259 and len(set(blocks)) == len(blocks)


def test_every_act_does_what_its_name_says(tmp_path: Path) -> None:
    steps = [
        op("create", slot=1),
        op("write", slot=1, size=4096),
        op("append", slot=1, size=100),
        op("datasync", slot=1),
        op("sync", slot=1),
        op("setxattr", slot=1, size=16),
        op("getxattr", slot=1, size=16),
        op("stat", "fstat", slot=1),
        op("fallocate", slot=1, size=8192),
        op("truncate", slot=1, size=6000),
        op("close", slot=1),
        op("open", slot=2),
        op("read_whole", slot=2, size=1024),
        op("copy_range", slot=3, other_slot=2, size=512),
        op("write_whole", slot=2, size=1000),
        op("sync_set"),
        op("close", "close2", slot=2),
        op("close", "close3", slot=3),
        op("rename"),
        op("link"),
        op("access"),
        op("readdir"),
        op("readdirplus"),
        op("stat"),
        op("mkdir"),
        op("rmdir"),
        op("remove"),
        op("remove", "remove2"),
        op("finish_on_count", target="remove2", value=5),
    ]
    summary = run(
        plan(
            tmp_path / "d",
            steps,
            until="all_done",
            ms=60_000,
            size=2000,
            entries=40,
            present=0.5,
            leaf_directories=3,
        )
    )
    assert summary["failure"] is None and not summary["partial"]
    done = summary["steps"]
    missing = {step["name"] for step in steps} - set(done) - {"finish_on_count"}
    assert not missing
    assert {name: row["errors"] for name, row in done.items() if row["errors"]} == {}
    assert {row["count"] for name, row in done.items() if name != "sync_set"} == {5}
    assert done["sync_set"]["count"] == 10
    assert done["write"]["bytes"] == 5 * 4096 and done["append"]["bytes"] == 500
    assert done["write_whole"]["bytes"] == 5 * 2000
    assert done["read_whole"]["op"] == "read" and done["fstat"]["op"] == "stat"


def test_symbolic_links_lead_to_files_of_the_set(tmp_path: Path) -> None:
    steps = [op("symlink"), op("finish_on_count", target="symlink", value=30)]
    run(plan(tmp_path / "d", steps, until="all_done", ms=60_000, size=10, entries=100, present=0.5, width=4))
    links = [p for p in files_of(tmp_path / "d") if p.is_symlink()]
    assert len(links) == 30
    assert all(p.resolve().is_file() for p in links)


def test_links_are_read_and_files_that_are_none_say_so(tmp_path: Path) -> None:
    steps = [
        op("create", slot=1, index=0),
        op("close", slot=1),
        op("symlink", index=1),
        op("readlink", index=1, times=5),
        op("readlink", "readfile", index=0),
        op("finish_on_count", target="readlink", value=50),
        op("remove", index=1),
        op("remove", index=0),
    ]
    made = plan(tmp_path / "d", steps, until="all_done", ms=60_000, entries=2, present=0)
    summary = run(made)
    assert summary["failure"] is None
    done = summary["steps"]
    assert done["symlink"]["count"] == 10 and not done["symlink"]["errors"]
    assert done["readlink"]["count"] == 50 and not done["readlink"]["errors"]
    assert done["readfile"]["errors"] == {"EINVAL": 10}
    file, link = files_of(tmp_path / "d")
    assert link.is_symlink() and link.resolve() == file and not file.is_symlink()


def test_an_index_that_will_not_do_leads_to_the_next_file(tmp_path: Path) -> None:
    made = [op("create", slot=1, index=3), op("close", slot=1)]
    made.append(op("finish_on_count", target="create", value=10))
    summary = run(plan(tmp_path / "c", made, until="all_done", ms=60_000, entries=10, present=0))
    assert summary["failure"] is None and len(files_of(tmp_path / "c")) == 10
    removed = [op("remove", index=3), op("finish_on_count", target="remove", value=10)]
    summary = run(plan(tmp_path / "r", removed, until="all_done", ms=60_000, entries=10))
    assert summary["failure"] is None and summary["steps"]["remove"]["count"] == 10
    assert files_of(tmp_path / "r") == []


def test_a_slot_that_is_closed_still_names_the_file_to_remove(tmp_path: Path) -> None:
    steps = [
        op("open", slot=1),
        op("append", slot=1, size=1),
        op("close", slot=1),
        op("remove", slot=1),
        op("finish_on_count", target="remove", value=20),
    ]
    run(plan(tmp_path / "d", steps, until="all_done", ms=60_000, size=2000, entries=50))
    # Those that are left were never touched.
    assert [p.stat().st_size for p in files_of(tmp_path / "d")] == [2000] * 30


def test_threads_share_a_set_without_stepping_on_each_other(tmp_path: Path) -> None:
    steps = [
        op("create", slot=1),
        op("append", slot=1, size=512),
        op("close", slot=1),
        op("open", slot=1),
        op("read_whole", slot=1),
        op("close", "close2", slot=1),
        op("stat"),
        op("remove"),
    ]
    summary = run(plan(tmp_path / "d", steps, threads=8, entries=60, present=0.5, ms=1000))
    assert summary["errors"] == 0 and summary["failure"] is None
    left = 30 + summary["steps"]["create"]["count"] - summary["steps"]["remove"]["count"]
    assert abs(len(files_of(tmp_path / "d")) - left) <= 30


def test_random_reads_touch_every_block_the_last_included(tmp_path: Path) -> None:
    steps = [op("write", random=True, size=4096)]
    made = plan(tmp_path / "d", steps, entries=1, size=8 * 4096, ms=200)
    run(made | {"steps": [made["steps"][0], {"step": "run", "duration_ns": 1}]})
    before = files_of(tmp_path / "d")[0].read_bytes()
    run(made)
    after = files_of(tmp_path / "d")[0].read_bytes()
    assert len(after) == 8 * 4096
    assert all(before[i : i + 4096] != after[i : i + 4096] for i in range(0, len(after), 4096))


def test_sequential_reads_go_round_without_reading_nothing(tmp_path: Path) -> None:
    steps = [op("read", size=4096), op("finish_on_count", target="read", value=7)]
    summary = run(plan(tmp_path / "d", steps, entries=1, size=3 * 4096, until="all_done", ms=60_000))
    assert summary["steps"]["read"]["bytes"] == 7 * 4096


def test_events_limit_the_rate_and_say_when_a_request_was_due(tmp_path: Path) -> None:
    steps = [op("event_limit"), op("stat")]
    summary = run(plan(tmp_path / "d", steps, threads=4, events_per_s=2000.0, ms=1000))
    assert abs(summary["steps"]["stat"]["count"] - 2000) < 20
    assert summary["ops"]["stat"]["response_ns"]["count"] == summary["ops"]["stat"]["count"]
    assert summary["requests"] == summary["steps"]["stat"]["count"], "waiting is no request"
    limited = [op("stat"), op("ops_limit")]
    summary = run(plan(tmp_path / "d", limited, threads=4, events_per_s=2000.0, ms=1000))
    # Every operation counts, the limit itself, too.
    assert abs(summary["steps"]["stat"]["count"] - 1000) < 60
    by_target = [op("stat"), op("ops_limit", target="stat")]
    summary = run(plan(tmp_path / "d", by_target, threads=4, events_per_s=2000.0, ms=1000))
    assert abs(summary["steps"]["stat"]["count"] - 2000) < 60
    by_bytes = [op("read", random=True, size=65536), op("bandwidth_limit")]
    summary = run(plan(tmp_path / "d", by_bytes, threads=2, events_per_s=50.0, ms=1000, size=1 << 20))
    assert abs(summary["bytes"] / 2**20 - 50) < 5


def test_semaphores_and_wakeups_keep_step(tmp_path: Path) -> None:
    posts = {
        "reader": [op("stat"), op("sem_post", target="wait", value=1, blocking=True)],
        # What is waited for may be more than the high-water mark.
        "writer": [op("sem_block", "wait", value=30, high_water=20), op("access")],
    }
    steps = run(plan(tmp_path / "d", posts))["steps"]
    assert steps["access"]["count"] > 10
    assert 0 <= steps["stat"]["count"] - 30 * steps["access"]["count"] <= 30 + 20 + 2
    calls = {
        "caller": [op("delay", value=0.01), op("wakeup", target="asleep")],
        "sleeper": [op("block", "asleep"), op("access")],
    }
    steps = run(plan(tmp_path / "d", calls, threads=3))["steps"]
    assert 10 < steps["access"]["count"] <= 3 * steps["delay"]["count"]


def test_the_same_seed_gives_the_same_steps_on_null() -> None:
    steps = [op("open", slot=1), op("read", slot=1, size={"variable": "v"}), op("close", slot=1)]
    steps.append(op("finish_on_count", target="read", value=1000))
    variables = [{"id": "v", "law": {"kind": "gamma", "shape": 1.5, "scale": 4000}, "round": 512}]

    def bytes_of(seed: int) -> int:
        made = plan("null:", steps, until="all_done", ms=60_000, variables=variables, seed=seed)
        return int(run(made)["bytes"])

    assert bytes_of(1) == bytes_of(1) != bytes_of(2)
    assert abs(bytes_of(1) / 1000 - 6000) < 600


@pytest.mark.parametrize(
    ("until", "failure"), [("time", "found no file"), ("first_done", None), ("all_done", None)]
)
def test_running_out_of_files(tmp_path: Path, until: str, failure: str | None) -> None:
    both = {"ends": [op("create", slot=1), op("close", slot=1)], "goes on": [op("stat")]}
    summary = run(plan(tmp_path / "d", both, until=until, entries=30, present=0.5, ms=300))
    if failure is None:
        assert summary["failure"] is None and not summary["partial"]
    else:
        assert failure in summary["failure"] and summary["partial"]
    # Only with the first that ends, or an error, do the others end early.
    assert (summary["elapsed_ns"] > 250 * MS) == (until == "all_done")
    assert summary["steps"]["create"]["count"] == len(files_of(tmp_path / "d")) - (
        30 - summary["steps"]["create"]["count"]
    )


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([op("close", slot=4)], "descriptor 4, in which nothing is open"),
        ([op("open", slot=1)], "descriptor 1, which is open; close it first"),
        ([op("copy_range", slot=1, other_slot=2, size=1)], "copies from descriptor 2"),
    ],
)
def test_misused_descriptors_end_the_run_with_the_reason(
    tmp_path: Path, steps: list[dict[str, Any]], text: str
) -> None:
    summary = run(plan(tmp_path / "d", steps))
    assert text in summary["failure"] and summary["partial"]


@pytest.mark.root
@pytest.mark.usefixtures("need_root")
def test_a_descriptor_of_a_file_that_could_not_be_made_tells_why(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=25", "none", tmp_path], check=True)
    try:
        made = plan(tmp_path / "d", [op("create", slot=1), op("close", slot=1)], entries=40, present=0.3)
        summary = run(made)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert "the last open failed, No space left on device" in summary["failure"] and summary["partial"]


def test_what_was_there_is_kept_unless_it_is_ours(tmp_path: Path) -> None:
    home = tmp_path / "d"
    steps = [op("stat")]
    (home / "files").mkdir(parents=True)
    (home / "files/letter").write_text("mine")
    with pytest.raises(Error, match=r"was not made by Loadstone.*`allow_destroy`"):
        run(plan(home, steps, ms=20))
    assert (home / "files/letter").read_text() == "mine"
    run(plan(home, steps, ms=20, allow_destroy=True))
    assert len(files_of(home)) == 20
    # Now it is ours, and made anew, until something else lies in it.
    run(plan(home, steps, ms=20, entries=5))
    assert len(files_of(home)) == 5
    (home / "files/00000001/letter").write_text("mine")
    with pytest.raises(Error, match="letter: was not made by Loadstone"):
        run(plan(home, steps, ms=20))
    assert (home / "files/00000001/letter").read_text() == "mine"


def test_reuse_keeps_what_fits(tmp_path: Path) -> None:
    home = tmp_path / "d"
    made = plan(home, [op("stat")], ms=20, size=3000, reuse=True)
    run(made)
    found = files_of(home)
    first = {p: (p.stat().st_ino, p.read_bytes()) for p in found}
    found[2].unlink()
    # Nothing tells a directory from which something was taken from one that came from elsewhere.
    with pytest.raises(Error, match="changed after its last run"):
        run(made)
    given_up = plan(home, [op("stat")], ms=20, size=3000, reuse=True)
    given_up["targets"][0]["allow_destroy"] = True
    run(given_up)
    assert {p.stat().st_size for p in files_of(home)} == {3000} and len(files_of(home)) == 20
    assert all(first[p] == (p.stat().st_ino, p.read_bytes()) for p in found[3:])
    # Longer ones are cut off, shorter ones made anew.
    run(plan(home, [op("stat")], ms=20, size=2000, reuse=True))
    assert all(first[p] == (p.stat().st_ino, p.read_bytes() + first[p][1][2000:]) for p in found[3:])
    run(plan(home, [op("stat")], ms=20, size=5000, reuse=True))
    assert {p.stat().st_size for p in files_of(home)} == {5000}
    # Changed by somebody else, none is touched.
    found[0].write_bytes(b"x" * 9000)
    with pytest.raises(Error, match="changed after its last run"):
        run(made)
    assert found[0].read_bytes() == b"x" * 9000


def test_a_set_larger_than_what_is_free_is_refused(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path)
    size = free.f_bavail * free.f_frsize // 10
    with pytest.raises(Error, match=r"bytes, and .* are free there"):
        run(plan(tmp_path / "d", [op("stat")], size=size))
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sets": []}, "no set has id"),
        ({"steps": [{"step": "run", "duration_ns": 1}]}, "no prepare before the run"),
        ({"variables": [{"id": "v", "law": {"kind": "uniform", "low": 2, "high": 1}}]}, "exchange them"),
        ({"events_per_s": -1.0}, "events_per_s"),
    ],
)
def test_plans_that_cannot_be_run_are_refused(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    with pytest.raises(Error, match=text):
        check(plan(tmp_path / "d", [op("stat")]) | change)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([op("wakeup", target="nobody")], "no op is called"),
        ([op("sem_post")], "whom is it for"),
        ([{"name": "r", "act": "read"}], "uses files"),
        ([op("read", size={"variable": "x"})], "no variable has id"),
        ([op("read", size=-1)], "use 0 or more"),
        ([], "nothing would be done"),
        ([op("read", slot=5000)], "beyond the 4096"),
        ([op("append", size=1, position=0)], "is for read and write; others know where they begin"),
        ([{"name": "g", "act": "group"}], "nothing would be done"),
    ],
)
def test_programs_that_cannot_be_run_are_refused(tmp_path: Path, steps: list[Any], text: str) -> None:
    with pytest.raises(Error, match=text):
        check(plan(tmp_path / "d", steps))
    assert not (tmp_path / "d").exists()


def test_one_file_is_neither_made_nor_removed(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_bytes(bytes(8192))
    target = {"id": "t", "kind": "file", "path": str(file), "size": 8192, "allow_destroy": True}
    made = plan(tmp_path / "d", [op("read", size=4096)], ms=50, entries=1) | {"targets": [target]}
    assert run(made)["bytes"] > 0
    for step in (op("remove"), op("append", size=1), op("truncate", size=1), op("mkdir")):
        other = plan(tmp_path / "d", [step], entries=1) | {"targets": [target]}
        with pytest.raises(Error, match="which needs a tree: the set"):
            check(other)
    twice = made | {"sets": [made["sets"][0], made["sets"][0] | {"id": "again"}]}
    with pytest.raises(Error, match="is the file of another set already"):
        check(twice)
    # Without leave it is not written, whatever the plan's steps say.
    target["allow_destroy"] = False
    with pytest.raises(Error, match="`allow_destroy`"):
        run(plan(tmp_path / "d", [op("write", size=1)], entries=1) | {"targets": [target]})
    assert file.read_bytes() == bytes(8192)


def test_posts_to_what_waits_for_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Error, match="which waits for nothing"):
        run(plan(tmp_path / "d", [op("stat"), op("sem_post", target="stat", value=1)]))


@pytest.mark.parametrize("path", ["../out", "/tmp/out", "", "a/../../b"])
def test_sets_stay_below_their_target(tmp_path: Path, path: str) -> None:
    with pytest.raises(Error, match="name a directory below"):
        check(plan(tmp_path / "d", [op("stat")], path=path))


def test_a_program_that_does_nothing_ends_at_its_time(tmp_path: Path) -> None:
    summary = run(plan(tmp_path / "d", [op("stat", times=0)], ms=100))
    assert summary["requests"] == 0 and not summary["partial"]


def test_random_reads_beyond_the_end_are_short(tmp_path: Path) -> None:
    steps = [op("read", random=True, size=4096, working_set=1 << 20)]
    summary = run(plan(tmp_path / "d", steps, entries=1, size=4096, ms=100))
    assert summary["short"] > 0


def test_every_interval_knows_what_is_in_flight(tmp_path: Path) -> None:
    checked = check(plan(tmp_path / "d", [op("stat")], threads=3, ms=900) | {"interval_ns": 200 * MS})
    assert list(execute(checked)["flight"]["max"][:4]) == [3, 3, 3, 3]


def test_permissions_attributes_and_places_are_those_asked_for(tmp_path):
    def done(*ops):
        made = {"id": "f", "target": "t0", "path": "f", "entries": 1, "size": 65536, "present": 1.0}
        ops = [{"name": op["act"], "set": "f", **op} for op in ops]
        ops.append({"name": "end", "act": "finish_on_count", "value": 0})
        worker = {"source": {"kind": "program", "ops": ops}, "backend": "posix", "depth": 1}
        plan = {
            "version": 1,
            "targets": [{"id": "t0", "kind": "tree", "path": str(tmp_path / "on")}],
            "sets": [made],
            "workers": [worker],
            "steps": [{"step": "prepare"}, {"step": "run", "until": "all_done"}],
        }
        return summarise(plan, execute(plan))

    found = done({"act": "access"}, {"act": "access", "value": 6}, {"act": "access", "value": 1, "name": "x"})
    assert (found["steps"]["access"]["errors"], found["steps"]["x"]["errors"]) == ({}, {"EACCES": 1})
    found = done({"act": "setxattr", "size": 3, "value": 7}, {"act": "getxattr", "size": 3, "value": 8})
    (path,) = (one for one in (tmp_path / "on/f").rglob("0*") if one.is_file())
    assert os.listxattr(path) == ["user.loadstone.7"] and len(os.getxattr(path, "user.loadstone.7")) == 3
    assert found["steps"]["getxattr"]["errors"] == {"ENODATA": 1}
    done({"act": "truncate", "size": 0}, {"act": "fallocate", "size": 4096, "random": True})
    # At one of sixteen places, of which the first is but one.
    assert path.stat().st_size in range(4096, 65537, 4096)
