"""A load that cannot be run is refused in the user's words: his option, his target, his file."""

from __future__ import annotations

import json
import re

import pytest

from loadstone import Error
from loadstone.errors import PlanError
from loadstone.plan import RunOptions, check
from loadstone.plan.words import in_words
from loadstone.workload import plan_replay, plan_uniform

INSIDE = re.compile(r"\bplan, |the plan cannot|workers\[|targets\[|map\.objects|\bt0\b|line 1 column")


@pytest.fixture
def trace(tmp_path):
    rows = "".join(f"{i % 2},{i * 8},4096,{'RW'[i % 2]},{i / 1000}\n" for i in range(500))
    path = tmp_path / "a.spc"
    path.write_text(rows)
    return path


NEW = ("run", "randread", "--on", "{at}/t", "--size", "1m", "--requests", "1")
CASES = [
    (("replay", "{trace}", "--on", "{at}/t", "--size", "1m"), "{at}/t: object 0 needs bytes up to 204"),
    ((*NEW, "--depth", "9999999"), "--depth"),
    ((*NEW, "--bs", "2m"), "2097152 bytes do not fit on any target"),
    ((*NEW, "--interval", "1us"), "--interval"),
    ((*NEW, "--memory-limit", "1m"), "--memory-limit: is 1048576"),
    ((*NEW, "--seed", "-1"), "--seed"),
    ((*NEW, "-D", "x=1"), "has the variables"),
    (("run", "randread", "--cache", "remount", "--on", "null:", "--requests", "1"), "--cache: "),
]


@pytest.mark.parametrize(("words", "told"), CASES)
def test_options_and_targets_are_named(words, told, loadstone, trace, tmp_path):
    done = loadstone(*(word.format(trace=trace, at=tmp_path) for word in words), status=None)
    assert done.returncode in (1, 2)
    assert told.format(at=tmp_path) in done.stderr, done.stderr
    assert not INSIDE.search(done.stderr), done.stderr


def test_a_plan_of_the_user_is_told_of_in_its_own_words(trace, tmp_path):
    plan = plan_replay(trace, "null:")
    plan["workers"][0]["depth"] = 0
    with pytest.raises(Error, match=r"plan, workers\[0\]\.depth: is 0"):
        check(plan)


def test_every_part_of_a_plan_has_words():
    """Whatever a check may name is put in words, if only in general ones."""
    plan = plan_uniform("randread", "null:", RunOptions(requests=1))
    plan["sets"] = [{"id": "mail"}]
    for place, told in {
        "workers[0].depth": "`depth`: is 0",
        "targets[0]": "null:: is 0",
        "sets[0].size": "the files 'mail': is 0",
        "workers[0].map.objects[0]": "null:: is 0",
        "version": "the load that is asked for: is 0",
    }.items():
        error = PlanError(f"plan, {place}: is 0", place=place, what="is 0")
        assert str(in_words(error, json.loads(json.dumps(plan)))) == told


def test_null_without_its_colon_is_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Error, match=r"write null: \(with a colon\)"):
        plan_uniform("randread", "null", RunOptions(duration=1))
    (tmp_path / "null").write_bytes(bytes(1 << 20))
    (target,) = plan_uniform("randread", "null", RunOptions(duration=1))["targets"]
    assert (target["kind"], target["path"]) == ("file", str(tmp_path / "null"))
    (target,) = plan_uniform("randread", "null:", RunOptions(duration=1))["targets"]
    assert target["kind"] == "null"


@pytest.mark.parametrize("workload", ["varmail", "iozone", "j.fio", "s.f"])
def test_null_without_its_colon_is_one_for_programs_too(workload, tmp_path, monkeypatch, loadstone):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "j.fio").write_text("[one]\nrw=randwrite\nsize=1m\nnumber_ios=3\n")
    (tmp_path / "s.f").write_text(
        "define fileset name=s,path=$dir,entries=2,size=4k,prealloc\n"
        "define process name=p,instances=1{thread name=t,instances=1{flowop openfile name=o,filesetname=s "
        "flowop closefile name=c}}\nrun 1\n"
    )
    words = ("run", workload, "--on", "null", "--dry-run")
    assert "write null: (with a colon)" in loadstone(*words, status=2).stderr
    (tmp_path / "null").mkdir()
    assert str(tmp_path / "null") in loadstone(*words).stdout


def test_a_run_on_null_says_that_nothing_is_performed(tmp_path, loadstone):
    words = ("run", "randread", "--size", "1m", "--requests", "5", "--on")
    said = loadstone(*words, "null:").stderr
    assert said.count("note: nothing was performed on storage: null: keeps nothing") == 1
    assert "nothing was performed" not in loadstone(*words, tmp_path / "t").stderr
