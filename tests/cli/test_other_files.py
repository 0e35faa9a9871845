"""A file that belongs to another command: the error says what it is and which command takes it."""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path

import click
import pytest

import loadstone
from loadstone import RunOptions, dataset, model
from loadstone.cli import command

KINDS = {
    "t.parquet": ("is a trace (spc)", "loadstone replay"),
    "t.spc": ("is a trace (spc)", "loadstone model fit"),
    "m.mdh": ("is a model", "loadstone run"),
    "b.bundle": ("is a bundle", "loadstone report"),
    "p.json": ("is a plan", "loadstone run"),
    "j.fio": ("is a job file of fio", "loadstone run"),
    "w.f": ("is a script of Filebench", "loadstone run"),
    "d.profile": ("is a profile", "loadstone dataset create"),
    "d.fst": ("is a series", "loadstone dataset write"),
    "v.state": ("is the state of a verification", "loadstone verify"),
}
"""What each file is, and a command that its error names."""
TRACES, MODELS = {"t.parquet", "t.spc"}, {"m.mdh"}
RUN = {"m.mdh", "p.json", "j.fio", "w.f"}
COMMANDS: dict[str, set[str]] = {
    "trace convert X -o out": TRACES,
    "trace describe X": TRACES,
    "trace select X -o out --from 0s": TRACES,
    "model fit X -o out": TRACES,
    # Two models are compared by model diff, which its own error names.
    "model check m.mdh X": TRACES | MODELS,
    "model check X t.spc": MODELS,
    "model show X": MODELS,
    "model classify X m.mdh": MODELS,
    "model diff m.mdh X": MODELS,
    "model export X --to fio --on target -o out": MODELS,
    "model factor X -o out": MODELS,
    "model merge X m.mdh -o out": MODELS,
    "model plot X -o out.png": MODELS,
    "model publish X -o out": MODELS,
    "model sample X -o out": MODELS,
    "model scale X --rate 2 -o out": MODELS,
    "model table X op size": MODELS,
    "run X --on null: --dry-run": RUN,
    "replay X --on null: --dry-run": TRACES,
    "evaluate X --on null: --model m.mdh --out out": TRACES,
    "evaluate t.spc --on null: --model X --out out": MODELS,
    "verify --state X": {"v.state"},
    "dataset create X -o out": {"d.profile"},
    "dataset describe X": {"d.fst"},
    "dataset mutate X -o out --profile d.profile": {"d.fst"},
    "dataset mutate d.fst -o out --profile X": {"d.profile"},
    "dataset profile X -o out": {"d.fst"},
    "dataset verify tree --profile X": {"d.profile"},
    "dataset write X --to out": {"d.fst"},
    "report X -o out": {"b.bundle"},
    "compare X b.bundle": {"b.bundle"},
    "study run X --dry-run": set(),
    # A folder is a snapshot whatever is in it.
    "dataset scan X -o out": {"b.bundle"},
    "dataset verify tree --against X": {"b.bundle"},
}

READ_NONE_OR_ANY = {"trace formats", "model features", "dataset presets", "dataset populate"}
READ_NONE_OR_ANY |= {"content examine", "completion"}
# They take folders that study run makes.
READ_NONE_OR_ANY |= {"study resume", "study show", "study report", "study clean"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "t.spc").write_text("".join(f"0,{8 * i},4096,{'RW'[i % 2]},{i / 10}\n" for i in range(9)))
    loadstone.trace.convert(folder / "t.spc", folder / "t.parquet")
    model.fit(folder / "t.spc").save(folder / "m.mdh")
    options = RunOptions(size="1m", requests=50, verify_state=folder / "v.state")
    job = loadstone.job("randrw", folder / "target", options)
    loadstone.run(job, folder / "b.bundle")
    plan = loadstone.job("randread", "null:", RunOptions(requests=5, size="1m")).plans[0]
    (folder / "p.json").write_text(json.dumps(plan))
    (folder / "j.fio").write_text("; a job\n[a]\nrw=read\nsize=64k\n")
    (folder / "w.f").write_text("define file name=x,path=/tmp,size=4k,prealloc\nrun 1\n")
    (folder / "tree").mkdir()
    (folder / "tree/a").write_bytes(os.urandom(30_000))
    dataset.scan([folder / "tree"] * 2, folder / "d.fst")
    dataset.profile(folder / "d.fst", folder / "d.profile")
    return folder


@pytest.mark.parametrize(
    ("line", "file"), [(line, file) for line, own in COMMANDS.items() for file in KINDS if file not in own]
)
def test_what_belongs_to_another_command_is_named(line, file, files, monkeypatch):
    monkeypatch.chdir(files)
    with pytest.raises((loadstone.Error, click.ClickException)) as caught:
        command.main([file if word == "X" else word for word in line.split()], standalone_mode=False)
    error = caught.value
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    what, taker = KINDS[file]
    assert f"{file}: {what}" in text and taker in text
    assert not [path for path in files.iterdir() if path.name.startswith("out")]


def test_every_command_that_reads_a_file_is_walked(root):
    words = [line.split() for line in COMMANDS]
    groups = ("trace", "model", "dataset", "study")
    walked = {" ".join(line[:2]) if line[0] in groups else line[0] for line in words}
    commands = runpy.run_path(str(root / "scripts/reference.py"))["walk"]()
    leaves = {name.removeprefix("loadstone ") for name, one in commands if not hasattr(one, "commands")}
    assert leaves - READ_NONE_OR_ANY == walked
