"""Every option of every command is obeyed or refused.

Each is given alone, and with those it says more of, a value that is not its default. Either the public
function is called otherwise (with another plan, for what runs plans), or the command ends with status 2 and
names the option. Options and kinds of workloads are found, not listed: a new one is walked by itself.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import fields
from typing import NamedTuple
from unittest import mock

import click
import pytest
from click.testing import CliRunner

from loadstone.cli import command as root_command
from loadstone.cli._command import Of
from loadstone.plan import RunOptions
from loadstone.workload import Job

ONLY_SHOWN = {
    "json": "how results are printed",
    "live": "what is drawn on the terminal meanwhile; it needs one",
    "help": "prints help",
    "rows": "how much of a table is printed",
    "quiet": "what is printed",
    "version": "prints the version",
    "yes": "answers a question that is asked only before hours of work",
}
"""Options that change nothing but what is printed, and why."""

SAMPLES: Mapping[str, tuple[str, ...]] = {
    # What is text. A new option of text fails the walk until it has a value here.
    "--on": ("{dir}/other",),
    "--pace": ("x2", "max"),
    "--independent": ("x2", "max"),
    "--think": ("x2", "none"),
    "--bs": ("8k", "4k:60,64k:40"),
    "--skew": ("zipf:1.1", "hotcold:0.9,0.1"),
    "--arrival": ("poisson", "trace:{trace}"),
    "-D": ("reads=0.3", "nthreads=3", "test=write", "SIZE=3m"),
    "--map": ("0={dir}/mapped",),
    "--ioprio": ("idle", "best-effort:7"),
    "--until-steady": ("iops:10%,60s", "lat_slope:5ms"),
    "--latency-target": ("2ms:99.9,5s",),
    "--content": ("unique",),
    "--verify-state": ("{dir}/state",),
    "--verify-from": ("{dir}/before",),
    "--log": ("{dir}/log",),
    "--out": ("{dir}/out",),
    "--repeat": ("3", "until-sure"),
    "--sure": ("service_p99",),
    "--metric": ("service_p99",),
    "--fail-if": ("worse by 5%",),
    "--probe": ("power=echo watts=3",),
    "--allow-destroy": ("{dir}/nowhere",),
    "--format": ("spc",),
    "--columns": ("time=0:us,offset=1:byte,size=2:byte,op=3",),
    "--read": ("R",),
    "--write": ("W",),
    "--flush": ("F",),
    "--discard": ("D",),
    "--ignore": ("X",),
    "--every": ("read",),
    "--separator": (";",),
    "--comment": ("//",),
    "--to": ("{dir}/to", "fio", "3s"),
    "--object": ("0",),
    "--dimension": ("size=log2:4",),
    "--without": ("gap",),
    "--over": ("gap",),
    "--joint": ("op,size",),
    "--boundaries": ("1s,2s", "auto"),
    "--where": ("op=read",),
    "--given": ("op",),
    "--plugin": ("{dir}/plugin.py",),
    "--distribution": ("gamma",),
    "--title": ("Another",),
    "--plot": ("{dir}/picture.png",),
    "--tags": ("v*",),
    "--revisions": ("a..b",),
    "--chunking": ("fixed:8k",),
    "--chunk-sizes": ("8k",),
    "--sizes": ("lognormal:9,1",),
    "--depths": ("poisson:3",),
    "--extensions": ("c=30,=70",),
    "--duplicates": ("1=50,2=50",),
    "--mutator": ("unique",),
    "--profile": ("preset:home",),
    "--set": ("share=0.3",),
    "--shift": ("2h",),
}

WITH: Mapping[str, Mapping[str, str | None]] = {
    "--independent": {"--order": "dependency"},
    "--think": {"--order": "dependency"},
    "--within": {"--order": "dependency"},
    "--arrival": {"--rate": "100"},
}
"""What options go with that need a certain value of others; those declared as ``Of`` tell it themselves."""

VALUES = {
    "cpus": ("0",),
    "size": ("512", "8k", "64k", "128m"),
    "duration": ("7s", "20ms", "0s"),
    "rate": ("123",),
    "factor": ("x3",),
    "time": ("7s",),
}


def usual(one: click.Option) -> str | None:
    """What help tells in brackets that is done without an option."""
    told = re.search(r"\[([^];:]*)[^]]*\]\.?$", one.help or "")
    return told[1] if told else None


def values(one: click.Option, command: click.Command, places: Mapping[str, str]) -> list[str | None]:
    """Values that are not the default; None: the option is a flag."""
    if one.is_flag:
        return [None]
    if isinstance(one.type, click.Choice):
        return [str(choice) for choice in one.type.choices if choice not in (one.default, usual(one))]
    if isinstance(one.type, click.IntRange | click.FloatRange):
        tried = ["0", "3", "5", "0.3", "0.9", "1.5", "64", "4097"]
    elif isinstance(one.type, click.Path) and one.opts[0] not in SAMPLES:
        tried = [places["dir"] if one.type.dir_okay and not one.type.file_okay else places["file"]]
    elif one.opts[0] not in SAMPLES and type(one.type).__module__ == "loadstone.cli._types":
        tried = list(VALUES[one.type.name])
    else:
        assert one.opts[0] in SAMPLES, f"{command.name} {one.opts[0]}: give it a value in SAMPLES"
        tried = [text.format(**places) for text in SAMPLES[one.opts[0]]]
    found: list[str | None] = []
    for text in tried:
        try:
            value = one.type.convert(text, one, click.Context(command))
        except click.BadParameter:
            continue
        if value != one.default and text != usual(one):
            found.append(text)
    assert found, f"{command.name} {one.opts[0]}: no value is one"
    return found


def options(command: click.Command) -> Iterator[tuple[click.Option, str]]:
    """Options as they are written; one with two spellings that say the opposite is two."""
    for one in command.params:
        if not isinstance(one, click.Option):
            continue
        written = next((name for name in one.opts if name.startswith("--")), one.opts[0])
        if written.lstrip("-") in ONLY_SHOWN:
            continue
        if not one.secondary_opts or one.default is not True:
            yield one, written
        if one.default is not False:
            yield from ((one, name) for name in one.secondary_opts)


COLUMNS = "time=0:s,offset=1:byte,size=2:byte,op=3,latency=4:s"


class Told(Exception):
    """A public function was called."""


def told(*args: object, **named: object) -> None:
    raise Told(repr(([vars(one) if isinstance(one, Job) else one for one in args], named)))


RUNS = ("loadstone.run", "loadstone.evaluation.evaluate")
"""What ``run``, ``replay`` and ``evaluate`` call once they know what is to be done."""


def plain(text: str) -> str:
    """Without what differs each time: addresses, temporary names, and what mocks are called."""
    return re.sub(r"0x[0-9a-f]+|id='\d+'|loadstone-\w+", "-", text)


class Outcome(NamedTuple):
    refused: bool
    """With status 2: the command was not understood."""
    called: str
    """What was called with what, or what was printed or went wrong before."""
    said: str
    whole: bool
    """It came to the call that matters."""


def performed(words: list[str]) -> Outcome:
    """What a command does up to where requests would be made."""
    with ExitStack() as stack:
        for name in RUNS:
            stack.enter_context(mock.patch(name, told))
        done = CliRunner().invoke(root_command, words)
    whole = isinstance(done.exception, Told) or done.exit_code == 0
    called = str(done.exception) if done.exception is not None else done.stdout
    return Outcome(done.exit_code == 2, plain(called), done.output, whole)


def asked(words: list[str], name: str) -> Outcome:
    """The same of a command that calls functions of a package: all its calls, up to where it can go."""
    package = importlib.import_module(PACKAGES[name.split()[0]])
    everything = mock.MagicMock()
    with ExitStack() as stack:
        for public in package.__all__:
            if callable(getattr(package, public)) and not isinstance(getattr(package, public), dict):
                whose = getattr(everything, public)
                stack.enter_context(mock.patch.object(package, public, whose))
        for other in BESIDES.get(name, ()):
            stack.enter_context(mock.patch(other, everything.beside))
        # Outputs are not there, and are looked at last.
        stack.enter_context(mock.patch("os.path.getsize", lambda path: 1))
        done = CliRunner().invoke(root_command, words)
    refused = done.exit_code == 2
    return Outcome(refused, plain(repr(everything.mock_calls)), done.output, not refused)


BESIDES = {
    "model export": ("loadstone.exporters.export",),
    "model table": ("loadstone.model.histograms.together",),
}
PACKAGES = {
    "trace": "loadstone.trace",
    "model": "loadstone.model",
    "content": "loadstone.content",
    "dataset": "loadstone.dataset",
    "verify": "loadstone.verification",
    "report": "loadstone.report",
    "study": "loadstone.study",
    "compare": "loadstone.compare",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory, loadstone_once) -> dict[str, str]:
    """Inputs of all kinds, small."""
    folder = tmp_path_factory.mktemp("walk")
    rows = [f"{i * 1e-3:.6f},{i % 7 * 8192},{4096 << i % 2},{'RW'[i % 3 == 0]},0.0005" for i in range(400)]
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    words = ("--columns", COLUMNS, "--read", "R", "--write", "W")
    loadstone_once("trace", "convert", folder / "rows.csv", "-o", folder / "t.parquet", *words)
    loadstone_once("model", "fit", folder / "t.parquet", "-o", folder / "m.mdh", "--think")
    calls = []
    for i in range(60):
        at, name = 1e9 + i * 1e-3, f"/w/f{i % 5}"
        calls += [
            f'7 {at:.6f} openat(AT_FDCWD, "{name}", O_RDWR|O_CREAT, 0644) = 3 <0.000010>',
            f'7 {at + 1e-4:.6f} write(3, "x"..., 4096) = 4096 <0.000010>',
            f"7 {at + 2e-4:.6f} close(3) = 0 <0.000010>",
        ]
    (folder / "f.strace").write_text("\n".join(calls) + "\n")
    loadstone_once("model", "fit", folder / "f.strace", "-o", folder / "f.mdh")
    (folder / "w.f").write_text(
        "set $nthreads=2\ndefine fileset name=s,path=$dir,entries=5,dirwidth=20,size=4k,prealloc\n"
        "define process name=p,instances=1{thread name=t,memsize=1m,instances=$nthreads{"
        "flowop openfile name=o,filesetname=s flowop closefile name=c}}\nrun 1\n"
    )
    (folder / "j.fio").write_text("[one]\nrw=randwrite\nsize=${SIZE}\nnumber_ios=3\n")
    plan = loadstone_once(
        *("run", "randrw", "--on", folder / "of-plan", "--size", "1m", "--requests", "9", "--dry-run")
    )
    told = json.loads(plan)
    told["verify"] = {"state": str(folder / "state-of-plan")}
    (folder / "p.json").write_text(plan)
    (folder / "verified.json").write_text(json.dumps(told))
    (folder / "plugin.py").write_text("")
    (folder / "key").write_bytes(b"k" * 32)
    return {
        "dir": str(folder),
        "trace": str(folder / "t.parquet"),
        "model": str(folder / "m.mdh"),
        "calls": str(folder / "f.strace"),
        "files": str(folder / "f.mdh"),
        "script": str(folder / "w.f"),
        "jobs": str(folder / "j.fio"),
        "plan": str(folder / "p.json"),
        "file": str(folder / "key"),
    }


@pytest.fixture(scope="module")
def loadstone_once():
    """The command within this process, for what is made once."""

    def run(*words: object) -> str:
        done = CliRunner().invoke(root_command, [str(word) for word in words])
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout

    return run


KINDS: Mapping[str, tuple[list[str], dict[str, str | None]]] = {
    "trace": (["replay", "{trace}"], {"--on": "{dir}/new", "--size": "1m"}),
    "trace of files": (["replay", "{calls}"], {"--on": "{dir}/tree"}),
    "model": (["run", "{model}"], {"--on": "{dir}/new", "--size": "1m"}),
    "model of files": (["run", "{files}"], {"--on": "{dir}/tree"}),
    "plan": (["run", "{plan}"], {"--on": "{dir}"}),
    "script": (["run", "{script}"], {"--on": "{dir}/tree"}),
    "jobs": (["run", "{jobs}"], {"--on": "{dir}/files", "-D": "SIZE=1m"}),
    "benchmark": (["run", "varmail"], {"--on": "{dir}/tree"}),
    "suite": (["run", "iozone"], {"--on": "{dir}/tree"}),
    "name": (["run", "randrw"], {"--on": "{dir}/new", "--size": "1m", "--requests": "9"}),
    "trace on null:": (["replay", "{trace}"], {"--on": "null:"}),
    "name on null:": (["run", "randrw"], {"--on": "null:", "--requests": "9"}),
    "script on null:": (["run", "{script}"], {"--on": "null:"}),
    "jobs on null:": (["run", "{jobs}"], {"--on": "null:", "-D": "SIZE=1m"}),
    "table": (
        ["replay", "{dir}/rows.csv"],
        {"--on": "{dir}/new", "--size": "1m", "--columns": COLUMNS, "--read": "R", "--write": "W"},
    ),
    "evaluation": (["evaluate", "{trace}"], {"--on": "{dir}/new", "--size": "1m", "--pace": "max"}),
}

USUAL = {
    "--backend io_uring": "what auto chooses where it is permitted",
    "--backend sync": "what auto chooses where io_uring is not permitted",
    "--backend null": "what the target null: always has",
    "--fill": "new targets are filled anyway",
    "--no-fill": "null: is not filled anyway",
    "--cache drop": "what is done anyway",
    "--cache none": "what scripts, and null:, have anyway",
    "--order none": "what is done anyway",
    "--max-damaged 0": "what is done anyway",
    "--order completion": "what replays of files have anyway",
    "--layout gamma": "how trees are made anyway",
    "--pace recorded": "what is done anyway",
    "--allow-system": "what calls no commands needs no leave; test_run_script.py has one that does",
    "--rebase": "what has no paths elsewhere has none to move; test_run_script.py has one with such",
}
"""Values that some workloads have anyway, so that saying them changes nothing; others of theirs must."""


def command_of(name: str) -> click.Command:
    found: click.Command = root_command
    for verb in name.split():
        assert isinstance(found, click.Group)
        below = found.get_command(click.Context(found), verb)
        assert below is not None
        found = below
    return found


def line(words: list[str], given: Mapping[str, str | None], places: Mapping[str, str]) -> list[str]:
    found = [word.format(**places) for word in words]
    for option, value in given.items():
        found += [option] if value is None else [option, value.format(**places)]
    return found


def walk(name, words, given, places, look, only=None) -> list[str]:
    """Options that were taken and changed nothing; ``only``: of those whose parameters are called so."""
    command = command_of(name)
    base = look(line(words, given, places))
    assert base.whole, base
    faults = []
    for one, written in options(command):
        if only is not None and one.name not in only:
            continue
        known = {name for name in (*one.opts, *one.secondary_opts)}
        more = WITH.get(written, {})
        others = [{}, dict(more) if more.keys() <= {name for p in command.params for name in p.opts} else {}]
        if isinstance(one, Of):
            companions = [p for p in command.params if p.opts[0] in one.of and isinstance(p, click.Option)]
            others += [{p.opts[0]: values(p, command, places)[0]} for p in companions]
        rest = {option: value for option, value in given.items() if option not in known}
        for more in others[:1] + [one for one in others[1:] if one]:
            before = look(line(words, {**given, **more}, places)) if more else base
            if not before.whole:
                continue
            for value in values(one, command, places):
                if given.get(written, ...) == value:
                    continue
                after = look(line(words, {**rest, **more, written: value}, places))
                text = f"{written} {value}" if value else written
                if after.refused and any(option in after.said for option in known):
                    continue
                if not after.refused and (after.called != before.called or text in USUAL):
                    continue
                faults.append(f"{text} {more or ''}: {after.said[-300:]}")
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_option_changes_what_is_done_or_is_refused(kind, places):
    words, given = KINDS[kind]
    given = {option: value and value.format(**places) for option, value in given.items()}
    faults = walk(words[0], words, given, places, performed)
    assert not faults, "\n" + "\n".join(faults)


def lowered(words: list[str]) -> Outcome:
    """The plans that a command would run."""
    done = CliRunner().invoke(root_command, [*words, "--dry-run"])
    return Outcome(done.exit_code == 2, plain(done.stdout), done.output, done.exit_code == 0)


@pytest.mark.parametrize(
    ("trace", "given"),
    [
        ("{trace}", {"--on": "{dir}/new", "--size": "1m", "--pace": "x2"}),
        ("{calls}", {"--on": "{dir}/tree", "--pace": "x2"}),
    ],
)
def test_every_option_of_a_run_reaches_the_plans_of_an_evaluation(trace, given, places):
    given = {option: value.format(**places) for option, value in given.items()}
    # How results are cut is no matter of plans.
    names = {one.name for one in fields(RunOptions)} - {"interval"}
    faults = walk("evaluate", ["evaluate", trace], given, places, lowered, names)
    assert not faults, "\n" + "\n".join(faults)


OTHERS = {
    "trace convert": (["trace", "convert", "{trace}"], {"--output": "{dir}/made"}),
    "trace describe": (["trace", "describe", "{trace}"], {}),
    "trace select": (["trace", "select", "{trace}"], {"--output": "{dir}/made"}),
    "model fit": (["model", "fit", "{trace}"], {"--output": "{dir}/made"}),
    "model show": (["model", "show", "{model}"], {}),
    "model plot": (["model", "plot", "{model}"], {"--output": "{dir}/made.png"}),
    "model sample": (["model", "sample", "{model}"], {"--output": "{dir}/made"}),
    "model check": (["model", "check", "{model}", "{trace}"], {}),
    "model diff": (["model", "diff", "{model}", "{model}"], {}),
    "model classify": (["model", "classify", "{model}", "{files}"], {}),
    "model scale": (["model", "scale", "{model}"], {"--output": "{dir}/made"}),
    "model merge": (["model", "merge", "{model}", "{model}"], {"--output": "{dir}/made"}),
    "model table": (["model", "table", "{model}"], {}),
    "model export": (
        ["model", "export", "{model}"],
        {"--output": "{dir}/made", "--to": "iozone", "--on": "/mnt/file"},
    ),
    "model publish": (["model", "publish", "{model}"], {"--output": "{dir}/made"}),
    "model factor": (["model", "factor", "{model}"], {"--output": "{dir}/made"}),
    "content examine": (["content", "examine", "{file}"], {}),
    "dataset scan": (["dataset", "scan", "{dir}"], {"--output": "{dir}/made"}),
    "dataset describe": (["dataset", "describe", "{file}"], {}),
    "dataset profile": (["dataset", "profile", "{file}"], {"--output": "{dir}/made"}),
    "dataset create": (["dataset", "create", "preset:home"], {"--output": "{dir}/made"}),
    "dataset populate": (["dataset", "populate"], {"--output": "{dir}/made"}),
    "dataset mutate": (
        ["dataset", "mutate", "{file}"],
        {"--output": "{dir}/made", "--profile": "preset:macos"},
    ),
    "dataset write": (["dataset", "write", "{file}"], {"--to": "{dir}/written"}),
    "dataset verify": (["dataset", "verify", "{dir}"], {"--profile": "preset:kernels"}),
    "verify": (["verify"], {"--state": "{dir}/state"}),
    "report": (["report", "{dir}"], {"--output": "{dir}/made.html"}),
    "compare": (["compare", "{dir}", "{dir}"], {}),
    "study run": (["study", "run", "{file}"], {}),
    "study resume": (["study", "resume", "{dir}"], {}),
    "study show": (["study", "show", "{dir}"], {}),
    "study report": (["study", "report", "{dir}"], {}),
    "study clean": (["study", "clean", "{dir}"], {}),
}
"""The least that other commands need."""

NOTHING_TO_WALK = {"completion", "trace formats", "model features", "dataset presets"}
RUN = {words[0] for words, _ in KINDS.values()}


def names(command: click.Command = root_command, above: str = "") -> Iterator[str]:
    """Every command that does something."""
    if not isinstance(command, click.Group):
        yield above
        return
    context = click.Context(command)
    for verb in command.list_commands(context):
        below = command.get_command(context, verb)
        assert below is not None
        yield from names(below, f"{above} {verb}".strip())


def test_no_command_is_left_out():
    assert {*OTHERS, *RUN, *NOTHING_TO_WALK} == set(names())


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_option_reaches_its_function_or_is_refused(name, places):
    words, given = OTHERS[name]
    given = {option: value and value.format(**places) for option, value in given.items()}
    faults = walk(name, words, given, places, lambda words: asked(words, name))
    assert not faults, "\n" + "\n".join(faults)
