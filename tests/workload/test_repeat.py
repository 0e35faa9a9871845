"""Repeating a job: how often, what is kept, what a target that is made is to the next repeat."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

import loadstone
from loadstone import Error, Kept, OptionError, RunOptions
from loadstone.bundle import Series
from loadstone.bundle.metrics import metrics_of
from loadstone.stats.repetition import Fixed, UntilSure
from loadstone.workload.repeating import repetition

MIB = 1 << 20
FEW = RunOptions(size=MIB, requests=50)


def never(least=2, most=3):
    """A rule that is met by no noise."""
    return UntilSure(least=least, most=most, half_width=1e-12)


@pytest.mark.parametrize("kept", [True, False])
def test_a_job_runs_so_many_times(kept, tmp_path):
    told = []
    out = tmp_path / "b" if kept else None
    series = loadstone.run(
        loadstone.job("randread", tmp_path / "t", FEW), out, repeat=3, on_repeat=told.append
    )
    if kept:
        series = Series.read(out)
        assert sorted(os.listdir(out))[:3] == ["01-run1", "02-run2", "03-run3"]
    assert series.kind == "repeats" and not series.partial
    assert [run["repeat"] for run in series.runs] == [1, 2, 3]
    assert [one.number for one in told] == [1, 2, 3] and told[0].sure == ["ops_per_s"]
    rates = [metrics_of(one)[1]["ops_per_s"] for one in series.repeats()]
    assert rates == [one.values["ops_per_s"] for one in told]
    assert series.summary["repetition"]["met"] and series.summary["repetition"]["half_width"] is None


def test_a_target_that_the_first_makes_is_used_by_the_others(tmp_path):
    series = loadstone.run(loadstone.job("randwrite", tmp_path / "t", FEW), tmp_path / "b", repeat=2)
    targets = [one.plan["targets"][0] for one in series.bundles()]
    assert [one["prepare"] for one in targets] == ["fill", "none"]
    again = RunOptions(size=MIB, requests=50, fill=True)
    series = loadstone.run(loadstone.job("randwrite", tmp_path / "u", again), tmp_path / "c", repeat=2)
    assert [one.plan["targets"][0]["prepare"] for one in series.bundles()] == ["fill", "fill"]


def test_a_target_of_others_is_not_written(tmp_path):
    (tmp_path / "t").write_bytes(bytes(range(256)) * 4096)
    with pytest.raises(Error, match="was there before"):
        loadstone.run(loadstone.job("randwrite", tmp_path / "t", FEW), tmp_path / "b", repeat=2)
    given = RunOptions(size=MIB, requests=50, allow_destroy=[tmp_path / "t"])
    series = loadstone.run(loadstone.job("randwrite", tmp_path / "t", given), tmp_path / "b", repeat=2)
    assert [one.plan["targets"][0]["prepare"] for one in series.bundles()] == ["fill", "fill"]


def test_the_cap_says_what_is_not_known(tmp_path):
    job = loadstone.job("randread", "null:", FEW)
    series = loadstone.run(job, tmp_path / "b", repeat=never(), sure=["service_mean"])
    told = series.summary["repetition"]
    assert len(series.runs) == 3 and not told["met"] and not series.partial
    assert told["missed"] == ["ops_per_s", "service_mean"]


def test_it_ends_when_it_is_sure():
    wide = UntilSure(least=2, most=30, half_width=1e6)
    series = loadstone.run(loadstone.job("randread", "null:", FEW), repeat=wide)
    assert len(series.runs) == 2 and series.summary["repetition"]["met"]


def test_a_metric_that_there_is_not_is_named_and_the_run_is_kept(tmp_path):
    with pytest.raises(Kept, match="did you mean service_p50") as raised:
        loadstone.run(loadstone.job("randread", "null:", FEW), tmp_path / "b", repeat=2, sure=["service_p5"])
    assert len(Series.read(raised.value.bundle).repeats()) == 1


@pytest.mark.parametrize("asked", ["often", "1", 1, 0, 2000, 2.5, True, "٣"])
def test_what_is_no_rule_is_refused(asked):
    with pytest.raises(OptionError, match="repeat"):
        loadstone.run(loadstone.job("randread", "null:", FEW), repeat=asked)


def test_rules_have_names():
    assert repetition("7") == repetition(7) == Fixed(7)
    assert repetition("nfs").least == 5 and repetition("until-sure") == UntilSure()
    with pytest.raises(OptionError, match="`sure`"):
        loadstone.run(loadstone.job("randread", "null:", FEW), sure=["service_p99"])


def test_what_would_be_written_twice_is_refused(tmp_path):
    logged = RunOptions(size=MIB, requests=9, log=tmp_path / "log.parquet")
    with pytest.raises(OptionError, match=r"log\.parquet"):
        loadstone.run(loadstone.job("randread", tmp_path / "t", logged), repeat=2)
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=s,path=$dir,entries=4,dirwidth=3,prealloc,size=8k\n"
        "define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=4k "
        'flowop finishoncount name=f,value=9 } }\nrun 1\nstats dump "x.txt"\n'
    )
    with pytest.raises(OptionError, match=r"x\.txt"):
        loadstone.run(loadstone.job(script, tmp_path / "d"), repeat=2)
    assert not (tmp_path / "d").exists()


def test_several_runs_are_repeated_as_a_whole(tmp_path):
    (tmp_path / "j.fio").write_text("[global]\nrw=write\nsize=64k\nbs=4k\n[one]\n[two]\nstonewall\n")
    (tmp_path / "d").mkdir()
    series = loadstone.run(loadstone.job(tmp_path / "j.fio", tmp_path / "d"), tmp_path / "b", repeat=3)
    assert len(series.runs) == 6 and [run["repeat"] for run in series.runs] == [1, 1, 2, 2, 3, 3]
    whole = series.repeats()
    assert [len(one.bundles()) for one in whole] == [2, 2, 2]
    _, values = metrics_of(whole[0])
    assert next(iter(values)) == "ops_per_s" and "2 two.ops_per_s" in values


def test_measurements_of_a_suite_are_repeated(tmp_path):
    job = loadstone.job("mkfile", tmp_path / "d", RunOptions(size="64k"))
    series = loadstone.run(job, tmp_path / "b", repeat=2)
    told = [metrics_of(one)[1] for one in Series.read(tmp_path / "b").repeats()]
    assert [next(iter(one)) for one in told] == ["mkfile.bytes_per_s"] * 2
    assert told[0] != told[1] and len(series.summary["repeats"]) == 2


def test_an_interrupt_keeps_whole_repeats_and_the_begun_one(tmp_path):
    job = loadstone.job("randread", tmp_path / "t", RunOptions(size=MIB, duration=0.4))

    def interrupt(one):
        if one.number == 2:
            threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()

    series = loadstone.run(job, tmp_path / "b", repeat=5, on_repeat=interrupt)
    assert series.partial and len(series.runs) == 3
    assert len(series.repeats()) == 2 and not any(one.partial for one in series.repeats())


def test_the_command_says_what_is_known(loadstone, tmp_path):
    words = ("run", "randread", "--on", "null:", "--size", "1m", "--requests", 50, "--repeat", 3)
    done = loadstone(*words, "--sure", "service_mean", "--out", tmp_path / "b")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("repeat 1 of about 3: ops_per_s ") and "service_mean" in lines[0]
    assert lines[2].startswith("repeat 3: ") and "known within" in lines[2]
    told = json.loads(loadstone(*words, "--json").stdout)
    assert told["repetition"]["repeats"] == 3 and len(told["runs"]) == 3
    assert "needs --repeat" in loadstone("run", "randread", "--on", "null:", "--sure", "x", status=2).stderr
    assert "--dry-run" in loadstone(*words, "--dry-run", status=2).stderr
    assert "--repeat often" in loadstone(*words[:-1], "often", status=2).stderr
