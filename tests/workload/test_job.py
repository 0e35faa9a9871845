"""One way to run something from Python: what is asked for becomes a job, and a job becomes a bundle."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields

import click
import pytest
from arro3.core import Table

import loadstone
from loadstone import Error, OptionError, RunOptions, trace
from loadstone.bundle import Bundle, Series
from loadstone.cli import command as root_command
from loadstone.cli._options import EVERY
from loadstone.plan.kinds import EVALUATED, TAKES
from loadstone.plan.options import NOTHING
from loadstone.workload.jobs import known_kind

MIB = 1 << 20
JOBS = "[global]\nrw=read\nsize=64k\nbs=4k\n[one]\n[two]\nstonewall\n"
SCRIPT = (
    "define fileset name=s,path=$dir,entries=4,dirwidth=3,prealloc,size=8k\n"
    "define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=4k "
    "flowop finishoncount name=f,value=9 } }\n"
)


@pytest.fixture
def made(tmp_path, root):
    """Workloads of every kind that run in a moment, with where they run."""
    (tmp_path / "j.fio").write_text(JOBS)
    (tmp_path / "s.f").write_text(SCRIPT + 'echo "between" run 1 run 1')
    spc = tmp_path / "t.spc"
    spc.write_text("".join(f"0,{8 * i},4096,R,0.{i}\n" for i in range(1, 8)))
    trace.convert(spc, tmp_path / "t.parquet")
    from loadstone.model import fit

    fit(tmp_path / "t.parquet").save(tmp_path / "m.mdh")
    few = RunOptions(requests=9, size=MIB)
    plan = loadstone.job("randread", "null:", few).plans[0]
    (tmp_path / "p.json").write_text(json.dumps(plan))
    fast = RunOptions(pace="max")
    return {
        "trace": (spc, "null:", fast),
        "parquet": (tmp_path / "t.parquet", "null:", fast),
        "model": (tmp_path / "m.mdh", "null:", fast),
        "plan": (tmp_path / "p.json", None, NOTHING),
        "script": (tmp_path / "s.f", "null:", NOTHING),
        "jobs": (tmp_path / "j.fio", "null:", NOTHING),
        "benchmark": ("micro-stat", "null:", RunOptions(duration=0.1)),
        "suite": ("mkfile", "null:", RunOptions(size="64k,1m")),
        "name": ("randread", "null:", few),
    }


KINDS = ["trace", "parquet", "model", "plan", "script", "jobs", "benchmark", "suite", "name"]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_workload_becomes_a_bundle(kind, kept, made, tmp_path):
    workload, on, options = made[kind]
    job = loadstone.job(workload, on, options)
    assert job.kind == ("trace" if kind == "parquet" else kind) and str(workload) in repr(job)
    out = tmp_path / "out" if kept else None
    bundle = loadstone.run(job, out)
    assert isinstance(bundle, Bundle) and not bundle.partial and bundle.path == out
    assert isinstance(bundle, Series) == (len(job.runs) > 1 or kind == "suite")
    assert len(bundle.bundles()) == len(job.plans)
    assert sum(one.summary["requests"] for one in bundle.bundles()) == bundle.ops.columns["count"].sum() > 0
    assert "requests in" in repr(bundle) and "<table>" in bundle._repr_html_()
    assert len(bundle.plot().axes) == 2 * len(job.plans)
    told = Table.from_arrow(bundle.summary)
    assert told.num_rows == len(bundle.bundles()) and "requests" in told.column_names
    ops = Table.from_arrow(bundle.ops)
    assert ops.num_rows == len(bundle.ops) and {"op", "count", "service_bucket"} <= set(ops.column_names)
    assert ("run" in ops.column_names) == isinstance(bundle, Series)
    if kept:
        assert len(type(bundle).read(tmp_path / "out").bundles()) == len(job.plans)


def test_what_a_run_measures_is_the_same_in_memory_and_in_a_folder(tmp_path):
    job = loadstone.job("randrw", "null:", RunOptions(requests=500, size=MIB, seed=3))
    memory, folder = loadstone.run(job), loadstone.run(job, tmp_path / "b")
    assert memory.ops.columns.keys() == folder.ops.columns.keys()
    assert memory.summary.keys() <= folder.summary.keys()
    for name in ("op", "count", "bytes"):
        assert list(memory.ops.columns[name]) == list(folder.ops.columns[name])
    with pytest.raises(Error, match="was not observed"):
        memory.response()
    with pytest.raises(Error, match="in memory only"):
        _ = memory.folder
    assert memory.observation is None and list(memory.series["time"]) == list(folder.series["time"])


def test_a_response_is_a_table_too(tmp_path):
    job = loadstone.job("randread", "null:", RunOptions(duration=0.4, rate=500, size=MIB, interval=0.05))
    found = Table.from_arrow(loadstone.run(job, tmp_path / "b", sample=0.02).response(4))
    assert found.num_rows == 4 and {"from_ns", "to_ns", "cpu"} <= set(found.column_names)


def test_what_goes_on_is_told(tmp_path, made):
    said, begun, done, live = [], [], [], []
    workload, on, options = made["script"]
    loadstone.run(
        loadstone.job(workload, on, options),
        progress=live.append,
        say=said.append,
        on_run=begun.append,
        on_done=done.append,
    )
    assert said == ["between"] and len(begun) == len(done) == 2 and done[0]["requests"] > 0
    assert {"phase", "ops_per_s"} <= live[0].keys()


def test_what_fails_to_show_a_run_does_not_end_it(tmp_path):
    job = loadstone.job("randread", "null:", RunOptions(duration=0.9, rate=500, size=MIB))
    with pytest.warns(RuntimeWarning, match="showing the run failed: ZeroDivisionError"):
        found = loadstone.run(job, tmp_path / "b", progress=lambda live: 1 / 0)
    assert not found.partial and found.summary["requests"] == 450


def test_options_that_mean_nothing_are_refused_by_their_field():
    with pytest.raises(OptionError, match="`bs`: varmail") as refused:
        loadstone.job("varmail", "null:", RunOptions(bs=4096))
    assert refused.value.option == "bs"
    with pytest.raises(OptionError, match="`rate`") as refused:
        loadstone.job("x.spc", "null:", RunOptions(rate=5), kind="trace")
    assert refused.value.option == "rate"
    with pytest.raises(OptionError, match="`arrival` often: must be one of") as refused:
        loadstone.job("randread", "null:", RunOptions(requests=1, arrival="often"))
    assert refused.value.option == "arrival"
    with pytest.raises(OptionError, match="`think`: needs `order` dependency"):
        loadstone.job("x.mdh", "null:", RunOptions(think=2.0))


def test_what_is_kept_nowhere_is_not_asked_for():
    job = loadstone.job("randread", "null:", RunOptions(requests=1, size=MIB))
    for more in ({"force": True}, {"sample": 0.1}, {"probes": [None]}):
        with pytest.raises(OptionError, match="needs `out`"):
            loadstone.run(job, **more)


def test_what_a_workload_is(tmp_path, monkeypatch, root):
    monkeypatch.chdir(tmp_path)
    trace.convert(root / "examples/loop0.parquet", "randread", to="blktrace")
    (tmp_path / "cap.blktrace.0").write_bytes((tmp_path / "randread.blktrace.0").read_bytes())
    kinds = {"randread": "name", "cap": "trace", "varmail": "benchmark", "iozone": "suite", "x.f": "script"}
    assert {one: known_kind(one) for one in kinds} == kinds
    for unknown, why in (("varmial", "did you mean varmail?"), ("a/b", "no such file"), (".", "is no file")):
        with pytest.raises(Error, match=why.replace("?", r"\?")):
            known_kind(unknown)


def test_what_is_given_and_what_is_not():
    assert RunOptions().given() == {}
    assert RunOptions(variables={}, allow_destroy=[], cpus=[], maps={}, direct=False).given() == {}
    given = RunOptions(fill=False, verify={}, seed=0, size="1g", nice=0).given()
    assert given == {"fill": False, "verify": {}, "seed": 0, "size": "1g", "nice": 0}


def test_every_option_is_a_field_of_some_kind_of_workload_and_written_once():
    names = {one.name for one in fields(RunOptions)}
    beside = {"on", "source"}
    assert frozenset().union(*TAKES.values()) | EVALUATED <= names | beside
    assert names <= frozenset().union(*TAKES.values())
    # Of the command line only the group is missing, which plans of several loads have; and traces read.
    assert names - set(EVERY) == {"group", "reading"}
    results = {
        "out",
        "force",
        "sample",
        "probes",
        "by",
        "live",
        "yes",
        "dry_run",
        "as_json",
        "repeat",
        "sure",
    }
    assert set(EVERY) - names - {"on"} == results


@pytest.mark.parametrize("verb", ["run", "replay", "evaluate"])
def test_options_are_in_groups_and_have_no_defaults_of_their_own(verb):
    command = root_command.get_command(click.Context(root_command), verb)
    for one in command.params:
        if isinstance(one, click.Option) and not one.hidden and one.name != "help":
            assert getattr(one, "group", None), f"{one.opts[0]} is in no group"
            told = one.help or ""
            assert "efault" not in told or one.group == "Reading the trace", told
            assert one.is_flag or one.multiple or one.to_info_dict()["default"] is None, one.opts[0]


def test_help_shows_real_keywords():
    for function in (loadstone.run, loadstone.job):
        kinds = {one.kind for one in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert {"out", "progress", "probes", "force"} <= inspect.signature(loadstone.run).parameters.keys()
    assert {"depth", "pace", "memory_limit"} <= inspect.signature(RunOptions).parameters.keys()


@pytest.mark.parametrize(
    ("words", "like"),
    [
        (("--iodepth", "3"), ("--depth", "3")),
        (("--runtime", "3"), ("--duration", "3s")),
        (("--ioengine", "io_uring", "--depth", "2"), ("--backend", "io_uring", "--depth", "2")),
        (("--ioengine", "psync"), ("--backend", "sync")),
    ],
)
def test_words_of_fio_mean_the_same(words, like, loadstone, tmp_path):
    run = ("run", "randread", "--on", tmp_path / "t", "--size", "1m", "--requests", "5", "--dry-run")
    assert loadstone(*run, *words).stdout == loadstone(*run, *like).stdout


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("duration", "soon", "is not a duration"),
        ("rate", True, "is no number"),
        ("cache", "hot", "must be one of: none, drop"),
        ("fadvise", "x", "must be one of: normal"),
        ("order", "x", "must be one of: none"),
        ("requests", -1, "out of range: use 0 or more"),
        ("interval", 0, "is no length of an interval"),
        ("verify", "yes", "must be True or False"),
    ],
)
def test_values_that_no_run_can_have_are_told_by_their_field(field, value, what):
    with pytest.raises(loadstone.OptionError, match=f"`{field}`: .*{what}") as caught:
        loadstone.RunOptions(**{field: value})
    assert caught.value.option == field


def test_texts_mean_what_they_mean_on_the_command_line():
    options = loadstone.RunOptions(
        duration="500ms", rate="20k", memory_limit="1g", cpus="0,2-3", requests="5k"
    )
    assert (options.duration, options.rate, options.memory_limit) == (0.5, 20_000, 1 << 30)
    assert (options.cpus, options.requests) == ([0, 2, 3], 5000)
    assert loadstone.RunOptions(allow_destroy="/x").allow_destroy == ("/x",)


def test_what_is_no_job_and_no_options_is_told(tmp_path):
    with pytest.raises(loadstone.OptionError, match=r"`options`: must be a loadstone\.RunOptions"):
        loadstone.job("randread", "null:", {"size": "1m"})
    with pytest.raises(loadstone.OptionError, match="`job`: 'randread' is no job"):
        loadstone.run("randread")
    job = loadstone.job("randread", "null:", loadstone.RunOptions(requests=5, size="1m"))
    with pytest.raises(loadstone.OptionError, match="`by`: 'foo' must be one of: worker"):
        loadstone.run(job, by="foo")
    with pytest.raises(loadstone.OptionError, match="`bs`: with `direct`, requests are whole sectors"):
        options = loadstone.RunOptions(requests=5, size="1m", bs="1000", direct=True)
        loadstone.job("randread", tmp_path / "x", options)


def test_discards_are_a_load_of_their_own(tmp_path):
    options = loadstone.RunOptions(requests=600, size="16m", bs="64k")
    bundle = loadstone.run(loadstone.job("randtrim", tmp_path / "x", options))
    assert list(bundle.summary["ops"]) == ["discard"] and bundle.summary["errors"] == 0
    assert (tmp_path / "x").stat().st_blocks * 512 < 16 << 20
