"""Every command: documented, with an example, a golden help text, and errors that help."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from loadstone.cli import VERBS, _show
from loadstone.cli import command as root_command


def commands() -> Iterator[tuple[str, click.Command]]:
    def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for verb in command.list_commands(context):
                below = command.get_command(context, verb)
                assert below is not None
                yield from walk(f"{name} {verb}", below)

    yield from walk("loadstone", root_command)


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_help_has_text_and_example(name, loadstone):
    text = loadstone(*name.split()[1:], "--help").stdout
    assert "Usage:" in text
    # A group shows what it holds; a verb shows how it is used.
    assert "Commands:" in text or "Example" in text, f"{name} --help has no worked example"
    assert name.split()[-1] in text
    for parameter in ALL[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", ALL)
def test_help_is_golden(name, loadstone, golden, root):
    text = loadstone(*name.split()[1:], "--help").stdout
    golden(str(root / f"docs/reference/commands/{name.replace(' ', '-')}.txt"), text)


@pytest.mark.parametrize("name", ALL)
def test_verbs_print_json(name):
    command = ALL[name]
    if isinstance(command, click.Group) or name == "loadstone completion":
        return
    options = {option for p in command.params for option in p.opts}
    assert "--json" in options, f"{name} has no --json"


@pytest.mark.parametrize("verb", VERBS)
def test_verb_is_documented(verb, root):
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    assert any(f"loadstone {verb}" in page.read_text() for page in pages), f"{verb} is in no page"


def test_unknown_verb_names_the_nearest(loadstone):
    done = loadstone("modle", status=2)
    assert "Did you mean 'model'?" in done.stderr
    assert done.stdout == ""
    assert "Did you mean 'describe'?" in loadstone("trace", "descibe", status=2).stderr


def test_unknown_option_names_the_nearest(loadstone):
    assert "--json" in loadstone("trace", "describe", "--jsn", "x", status=2).stderr


def test_missing_file_is_one_line(loadstone, tmp_path):
    done = loadstone("trace", "describe", tmp_path / "none.spc", status=None)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    assert "none.spc" in done.stderr
    assert "Traceback" not in done.stderr


def test_closed_pipe_is_quiet(loadstone, root):
    program = root / ".venv/bin/loadstone"
    script = f"{program} trace describe {root}/examples/loop0.parquet --json | head -c 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr


def test_status_of_a_verb_is_the_status_of_the_program(loadstone):
    assert loadstone("--version").stdout.startswith("loadstone, version ")
    assert loadstone("completion", "tcsh", status=2).stdout == ""


def test_quiet_and_not_a_terminal_draw_nothing(loadstone, root):
    done = loadstone("--quiet", "trace", "describe", root / "examples/loop0.parquet", "--json")
    assert json.loads(done.stdout)["requests"] > 0
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("-q", "run"), ("run", "-q"), ("run", "--quiet")])
def test_quiet_is_understood_before_and_after_the_verb(words, monkeypatch):
    monkeypatch.setattr(_show, "_quiet", False)
    done = CliRunner().invoke(
        root_command, [*words, "randread", "--on", "null:", "--requests", "3", "--size", "1m"]
    )
    assert done.exit_code == 0 and _show.is_quiet()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell, loadstone):
    assert "_LOADSTONE_COMPLETE" in loadstone("completion", shell).stdout


def test_completion_offers_verbs(loadstone, root):
    """The script calls the program back with the words typed so far."""
    environment = {
        **os.environ,
        "_LOADSTONE_COMPLETE": "bash_complete",
        "COMP_WORDS": "loadstone m",
        "COMP_CWORD": "1",
    }
    program = root / ".venv/bin/loadstone"
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["plain,model"]


def test_help_imports_no_plotting():
    """--help answers at once: heavy libraries are imported inside the verbs that need them."""
    heavy = ("matplotlib", "plotly", "numpy", "rich", "jinja2", "arro3.core")
    script = f"import sys, loadstone.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_fitting_imports_no_arrays(root, tmp_path):
    """Fitting needs none: importing numpy takes as long as counting a million requests."""
    heavy = ("matplotlib", "numpy", "jinja2", "arro3.core")
    arguments = ["model", "fit", str(root / "examples/loop0.parquet"), "-o", str(tmp_path / "m.mdh")]
    script = (
        f"import sys; from loadstone.cli import command; command.main({arguments}, standalone_mode=False); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_libraries_load_ends_without_a_word(number, tmp_path):
    (tmp_path / "click.py").write_text(
        f"import os\nos.kill(os.getpid(), {int(number)})\nimport time\ntime.sleep(9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


@pytest.mark.slow
def test_an_output_takes_the_place_of_no_input(tmp_path, loadstone, root):
    trace, link = tmp_path / "t.parquet", tmp_path / "l.parquet"
    trace.write_bytes((root / "examples/loop0.parquet").read_bytes())
    link.symlink_to(trace)
    whole = trace.read_bytes()
    for verb in (("model", "fit"), ("trace", "convert")):
        for one, other in ((trace, trace), (trace, link), (link, trace)):
            done = loadstone(*verb, one, "-o", other, "--force", status=2)
            assert f"-o {other}: is what is read" in done.stderr and trace.read_bytes() == whole
    # Files of a capture are named by what they share.
    loadstone("trace", "convert", trace, "-o", tmp_path / "c", "--to", "blktrace")
    part = tmp_path / "c.blktrace.0"
    whole = part.read_bytes()
    for verb in (("model", "fit"), ("trace", "convert", "--to", "spc")):
        done = loadstone(*verb, tmp_path / "c", "-o", part, "--force", status=2)
        assert "is what is read" in done.stderr and part.read_bytes() == whole
    done = loadstone(
        "trace", "convert", tmp_path / "c", "-o", tmp_path / "c", "--to", "blktrace", "--force", status=2
    )
    assert f"{part}: is what is read" in done.stderr and part.read_bytes() == whole
    bundle = tmp_path / "b"
    loadstone("run", "randread", "--on", "null:", "--size", "1m", "--requests", 9, "--out", bundle)
    done = loadstone("report", bundle, "-o", bundle / "summary.json", "--force", status=2)
    assert "or a part of it" in done.stderr and json.loads((bundle / "summary.json").read_text())
    loadstone("report", bundle, "-o", tmp_path / "r.html")
    loadstone("report", bundle, "-o", tmp_path / "r.html", "--force")


@pytest.mark.slow
def test_an_output_replaces_no_part_of_what_is_scanned_or_verified(tmp_path, loadstone, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loadstone("dataset", "populate", "--files", 9, "-o", "a.fst")
    loadstone("dataset", "profile", "a.fst", "-o", "a.prof")
    loadstone("dataset", "write", "a.fst", "--to", "wr")
    loadstone("dataset", "write", "a.fst", "--tar", "--to", "a.tar")
    os.makedirs("many")
    os.link("a.fst", "many/000.tar")
    subprocess.run(["git", "init", "-q", "g"], check=True)
    one = next(os.path.join(at, name) for at, _, names in os.walk("wr") for name in names)
    verify, write = ("dataset", "verify", "--profile", "a.prof"), ("dataset", "write", "--force", "--tar")
    for words, lost in (
        ((*verify, "wr", "--report", "a.prof", "--force"), "a.prof"),
        ((*verify, "wr", "--report", one, "--force"), one),
        ((*verify, "a.tar", "--against", "wr", "--report", one, "--force"), one),
        ((*verify, "a.tar", "--report", "a.tar", "--force"), "a.tar"),
        ((*write, "a.fst", "--to", "a.fst"), "a.fst"),
        ((*write, "many/000.tar", "--all", "--to", "many"), "many/000.tar"),
        (("dataset", "scan", "wr", "-o", one, "--force"), one),
        (("dataset", "scan", "--git", "g", "-o", "g/.git/HEAD", "--force"), "g/.git/HEAD"),
        (("dataset", "scan", "--snapshots", ".", "-o", one, "--force"), one),
    ):
        before = Path(lost).read_bytes()
        done = loadstone(*words, status=1 if "many" in words else 2)
        assert f"{lost}: is " in done.stderr and "that is read" in done.stderr.replace("what", "that")
        assert Path(lost).read_bytes() == before
    # A directory that is scanned or verified is read with all its files, also where it is a repository's.
    for words in (("dataset", "scan", "g", "-o"), ("dataset", "verify", "g", "--against", "g", "--report")):
        Path("g/a").write_text("precious")
        assert "is what is read" in loadstone(*words, "g/a", "--force", status=2).stderr
        assert Path("g/a").read_text() == "precious"
    # Objects that a clone shares are read from the other repository.
    other = Path("g/.git/objects/info/x")
    other.write_text("an object")
    subprocess.run(["git", "clone", "-q", "--shared", "g", "shared"], check=True, capture_output=True)
    done = loadstone("dataset", "scan", "--git", "shared", "-o", other, "--force", status=2)
    assert "is what is read" in done.stderr and other.read_text() == "an object"
    # Of a repository that is one's own workplace the commits are read.
    Path("g/old.fst").write_text("an older one")
    done = loadstone("dataset", "scan", "--git", "g", "-o", "g/old.fst", "--force", status=1)
    assert "is what is read" not in done.stderr


def test_an_output_replaces_no_part_of_the_repository_of_a_linked_tree(tmp_path, loadstone):
    git = ["git", "-C", tmp_path / "g", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", tmp_path / "g"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", tmp_path / "w"], check=True, capture_output=True)
    for lost in ("g/.git/HEAD", "g/.git/worktrees/w/HEAD"):
        before = (tmp_path / lost).read_bytes()
        words = ("dataset", "scan", "--git", tmp_path / "w", "-o", tmp_path / lost, "--force")
        assert "is what is read" in loadstone(*words, status=2).stderr
        assert (tmp_path / lost).read_bytes() == before


def test_an_output_names_a_file_and_none_of_a_standard_stream(tmp_path, root):
    words = [sys.executable, "-m", "loadstone", "trace", "convert", root / "examples/loop0.parquet"]
    done = subprocess.run([*words, "-o", f"{tmp_path}/y/", "--to", "spc"], capture_output=True, text=True)
    assert done.returncode == 1 and "ends with a slash; name a file" in done.stderr
    said = tmp_path / "said"
    said.write_text("before\n")
    for name in ("/dev/stdout", "/proc/self/fd/1", said):
        with said.open("a") as out:
            told = [*words, "-o", name, "--to", "spc", "--force"]
            done = subprocess.run(told, stdout=out, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "is the file of a standard stream" in done.stderr
        assert said.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [said]


@pytest.mark.root
@pytest.mark.parametrize("kind", ["bind", "overlay"])
def test_an_output_replaces_no_part_of_a_bundle_behind_a_mount(tmp_path, loadstone, need_root, kind):
    bundle, at, low = tmp_path / "b", tmp_path / "at", tmp_path / "low"
    loadstone("run", "randread", "--on", "null:", "--size", "1m", "--requests", 9, "--out", bundle)
    for folder in (at, low, tmp_path / "work"):
        folder.mkdir()
    layers = f"lowerdir={low},upperdir={bundle},workdir={tmp_path / 'work'}"
    words = ["--bind", bundle, at] if kind == "bind" else ["-t", "overlay", "none", "-o", layers, at]
    subprocess.run(["mount", *words], check=True)
    try:
        done = loadstone("report", bundle, "-o", at / "summary.json", "--force", status=2)
        assert "is what is read, or a part of it" in done.stderr
    finally:
        subprocess.run(["umount", at], check=True)
    assert json.loads((bundle / "summary.json").read_text())


@pytest.mark.slow
def test_only_the_owner_may_read_what_is_written(public, loadstone, root):
    """Outputs hold what inputs hold. Lists of what may be an input were never whole."""
    os.umask(0o022)
    trace, tree = public / "t.parquet", public / "tree"
    shutil.copy(root / "examples/loop0.parquet", trace)
    trace.chmod(0o644)
    tree.mkdir()
    (tree / "f").write_text("x")
    for made, mode, words in (
        ("t.spc", 0o600, ("trace", "convert", trace)),
        ("s.parquet", 0o600, ("trace", "select", trace)),
        ("m.mdh", 0o600, ("model", "fit", trace)),
        ("p.mdh", 0o644, ("model", "publish", public / "m.mdh")),
        ("q.mdh", 0o644, ("model", "fit", trace, "--public")),
        ("d.fst", 0o600, ("dataset", "scan", tree)),
        ("d.prof", 0o600, ("dataset", "profile", public / "d.fst")),
    ):
        loadstone(*words, "-o", public / made)
        assert (public / made).stat().st_mode & 0o777 == mode, made
    load = ("--on", public / "t", "--size", "8m", "--offsets", "wrap", "--pace", "max", "--yes")
    kept = (
        "--log",
        public / "log",
        "--out",
        public / "out",
        "--verify-state",
        public / "state",
    )
    for words, made in (
        (
            ("dataset", "write", public / "d.fst", "--tar", "--to", public / "d.tar"),
            {"d.tar": 0o600},
        ),
        (("dataset", "write", public / "d.fst", "--to", public / "d"), {"d": 0o700, "d/f": 0o600}),
        (("trace", "describe", trace, "--plot", public / "p.png"), {"p.png": 0o600}),
        (("replay", trace, *load, *kept), {"log": 0o600, "out": 0o700, "state": 0o600}),
        (("run", "micro-listdir", "--on", public / "l", "--duration", "100ms", "--out", public / "o"), {}),
        (("report", public / "out", "-o", public / "r.html"), {"r.html": 0o600}),
    ):
        loadstone(*words)
        found = {name: (public / name).stat().st_mode & 0o777 for name in made}
        assert found == made
    for bundle in ("out", "o"):
        for path in (public / bundle).rglob("*"):
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_what_is_in_a_bundle_of_several_runs_is_the_owners_alone(public, loadstone, root):
    """Also where the directory gives all rights to everybody, and the user's umask takes none."""
    os.umask(0)
    model = public / "m.mdh"
    loadstone("model", "fit", root / "examples/loop0.parquet", "-o", model)
    words = ("--on", "null:", "--pace", "x20", "--size", "8m", "--offsets", "wrap", "--repeat", 2)
    loadstone("evaluate", root / "examples/loop0.parquet", "--model", model, *words, "--out", public / "e")
    inside = list((public / "e").rglob("*"))
    assert public / "e/model.mdh" in inside and any(path.name == "environment" for path in inside)
    for path in inside:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.slow
def test_a_load_does_not_write_over_what_says_how_its_trace_is_read(tmp_path, loadstone, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("0,0,R,512\n")
    columns = '[columns]\ntime = "0:ns"\noffset = "1:byte"\nop = "2"\nsize = "3:byte"\n'
    for on in ("map.toml", "d/map.toml"):
        os.makedirs("d", exist_ok=True)
        Path(on).write_text(columns)
        os.link(on, f"{on}.link")
        for target in (on, f"{on}.link", os.path.dirname(on) or on):
            words = ("--columns", f"@{on}", "--on", target, "--allow-destroy", target, "--yes")
            for verb in ("replay", "evaluate"):
                done = loadstone(verb, "t.csv", *words, status=2)
                assert "is or holds what is read" in done.stderr, done.stderr
        assert Path(on).read_text() == columns


def _mode(path):
    return path.stat().st_mode & 0o777


def test_a_default_list_of_access_control_gives_nothing_away(tmp_path, loadstone):
    os.umask(0o022)
    trace, tree, open_to_all = tmp_path / "t.spc", tmp_path / "tree", tmp_path / "open"
    trace.write_text("0,8,4096,R,0.1\n0,16,4096,R,0.2\n")
    trace.chmod(0o600)
    tree.mkdir()
    (tree / "f").write_text("x")
    open_to_all.mkdir()
    # What setfacl -d -m u::rwx,u:1234:rwx,g::rx,m::rwx,o::rx makes (acl(5)).
    entries = [(1, 7, -1), (2, 7, 1234), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(open_to_all, "system.posix_acl_default", acl)
    except OSError as error:
        pytest.skip(f"no lists of access control here: {error.strerror}")
    (open_to_all / "usual").touch()
    assert _mode(open_to_all / "usual") == 0o664
    load = ("--on", tmp_path / "on", "--size", "1m", "--yes", "--offsets", "wrap", "--pace", "max")
    for words, made in (
        (("trace", "convert", trace, "-o", open_to_all / "t.parquet"), ["t.parquet"]),
        (("dataset", "scan", tree, "-o", open_to_all / "s.fst"), ["s.fst"]),
        (("dataset", "write", open_to_all / "s.fst", "--to", open_to_all / "d"), ["d"]),
        (("replay", trace, *load, "--out", open_to_all / "b", "--log", open_to_all / "l"), ["b", "l"]),
    ):
        loadstone(*words)
        for name in made:
            path = open_to_all / name
            assert _mode(path) == (0o700 if path.is_dir() else 0o600), name


@pytest.mark.root
def test_a_directory_of_another_group_gives_nothing_away(tmp_path, loadstone, need_root):
    os.umask(0o022)
    trace, shared = tmp_path / "t.spc", tmp_path / "shared"
    trace.write_text("0,8,4096,R,0.1\n0,16,4096,R,0.2\n")
    trace.chmod(0o640)
    shared.mkdir()
    os.chown(shared, 0, 1234)
    shared.chmod(0o2775)
    loadstone("trace", "convert", trace, "-o", shared / "new.parquet")
    old = tmp_path / "old.parquet"
    old.touch()
    os.chown(old, 0, 1234)
    old.chmod(0o640)
    loadstone("trace", "convert", trace, "-o", old, "--force")
    assert (_mode(shared / "new.parquet"), _mode(old)) == (0o600, 0o600)


@pytest.mark.parametrize("verb", [("run",), ("model", "show"), ("trace", "describe"), ("verify", "--state")])
def test_what_is_nested_without_end_is_an_error(public, loadstone, verb):
    (public / "deep.json").write_text("[" * 200_000)
    done = loadstone(*verb, public / "deep.json", status=None)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("help", "It is loadstone --help"),
        ("varmail", "loadstone run varmail performs it"),
        ("x.fio", "loadstone run x.fio performs it"),
        ("examples/loop0.parquet", "loadstone replay examples/loop0.parquet performs it"),
        ("modle", "Did you mean 'model'?"),
        ("describe", "loadstone model show"),
        ("model describe", "It is loadstone model show"),
        ("dataset info", "It is loadstone dataset describe"),
    ],
)
def test_a_command_that_there_is_not_names_the_one_that_is_meant(loadstone, root, monkeypatch, word, hint):
    monkeypatch.chdir(root)
    told = loadstone(*word.split(), status=2).stderr
    assert f"No such command {word.split()[-1]!r}" in told and hint in told


def test_keys_of_a_plan_are_no_options(loadstone, tmp_path):
    (tmp_path / "p.json").write_text('{"version": 1, "sed": 5}')
    told = loadstone("run", tmp_path / "p.json", status=1).stderr
    assert "`sed`" in told and "`seed`" in told and "--seed" not in told
