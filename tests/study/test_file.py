"""Study files: what they say, and all faults that they can have."""

from __future__ import annotations

import json
import re
import tomllib

import jsonschema
import pytest

import loadstone
from loadstone import study
from loadstone.stats.repetition import Fixed, UntilSure
from loadstone.study.file import expand, kinds, places, spec

SMALL = """\
name = "small"
[repeat]
runs = 2
[systems.here]
directory = "{folder}"
[workloads.true]
command = ["true"]
"""


def example(root) -> str:
    page = (root / "docs/reference/formats/study.md").read_text()
    return re.search(r"```toml\n(.*?)```", page, re.S)[1]


def faults(path, **changes) -> list[str]:
    with pytest.raises(loadstone.StudyError) as caught:
        expand.read(path, changes)
    return list(caught.value.faults) or [str(caught.value)]


def test_the_example_of_the_page_makes_its_cells(root, write):
    found = expand.read(write(example(root)))
    assert [cell.name for cell in found.cells] == [
        f"{system}+{load}+atime={atime}"
        for load in ("varmail", "copy")
        for system in ("ext4", "xfs")
        for atime in ("relatime", "noatime")
    ]
    assert found.cells[1].system.mount == "noatime"
    assert found.cells[0].system.size == 1 << 30
    assert found.rule == UntilSure(10, 30, 0.05, 0.95)


def test_keys_can_be_set_by_variable_and_by_name(root, write):
    path = write(example(root))
    found = expand.read(path, {"size": "2g", "repeat.most": "12", "systems.xfs.options": '["-m", "crc=1"]'})
    assert found.cells[0].system.size == 2 << 30
    assert found.rule == UntilSure(10, 12, 0.05, 0.95)
    assert found.cells[2].system.options == ("-m", "crc=1")
    assert "did you" not in faults(path, sise="2g")[0]
    assert "variables are: size" in faults(path, sise="2g")[0]


def test_all_faults_are_told_with_their_lines(write):
    path = write(
        """\
        name = "bad name"
        sed = 4
        [repeat]
        runs = 3
        most = 4
        [factors]
        unused = [1, 2]
        none = []
        [systems.a]
        make = "ext4"
        sise = "1g"
        [systems.b]
        mount = "{level}"
        make = "xfs"
        [workloads.w]
        run = "varmial"
        [workloads.v]
        run = "varmail"
        options = { duraton = "5s" }
        [workloads.u]
        on = ["c"]
        command = "true"
        [workloads.t]
        command = ["x"]
        run = "varmail"
        """
    )
    found = faults(path)
    expected = {
        1: "name: 'bad name' must be",
        2: "unknown key sed; did you mean seed?",
        3: "repeat: runs: is a fixed number, so leave out most",
        11: "unknown key sise; did you mean size?",
        13: "there is no placeholder {level}",
        # Cells are made once the file itself holds together.
    }
    text = "\n".join(found)
    for line, what in expected.items():
        if line in (11, 13):
            continue
        assert f"{path}:{line}: " in text and what in text, (line, text)
    path = write(re.sub(r'name = "bad name"\nsed = 4', 'name = "good"', path.read_text()))
    text = "\n".join(faults(path))
    for what in (
        ":2: repeat: runs: is a fixed number",
        ":6: unused: no system and no workload has {unused}",
        ":7: none: needs levels",
        ":10: unknown key sise; did you mean size?",
        ":12: systems.b.mount: there is no placeholder {level}",
        ":20: on: there is no system c; systems are a, b",
    ):
        assert what in text, (what, text)
    path = write(path.read_text().replace('sise = "1g"\n', "").replace('mount = "{level}"\n', ""))
    text = "\n".join(faults(path))
    for what in (
        "varmial: is not a workload; did you mean varmail?",
        "there is no option duraton; did you mean duration?",
        "needs either run or command",
    ):
        assert what in text, (what, text)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("systems.here.reset", '"mkfs"', "a directory has no mkfs"),
        ("systems.here.reset", '"remont"', "did you mean remount?"),
        ("systems.here.make", '"ext4"', "means nothing to a directory"),
        ("systems.here.size", '"much"', "is not a size"),
        ("workloads.true.copies", "0", "out of range"),
        ("workloads.true.options", "{ size = 1 }", "is for workloads with run"),
        ("workloads.true.reader", '"sysbnch"', "did you mean sysbench?"),
        ("workloads.true.figures", '{ x = { better = "higher" } }', "needs either regex or json"),
        ("workloads.true.figures", '{ x = { regex = "(", better = "higher" } }', "regex: "),
        ("workloads.true.figures", '{ x = { regex = "a", better = "higher" } }', "needs a group"),
        ("workloads.true.figures", '{ x = { json = "a..b", better = "higher" } }', "is no path in JSON"),
        ("workloads.true.figures", '{ x = { json = "a" } }', "needs the key better"),
        ("workloads.true.time_limit", '"soon"', "is not a duration"),
        ("repeat.half_width", "0", "out of range"),
        ("repeat.preset", '"until"', "must be one of"),
        ("hooks.before_study", '["ls {mount}"]', "there is no {mount} then"),
        ("hooks.before_rum", "[]", "did you mean before_run?"),
        ("hooks.every", '[{ command = "x", seconds = 0 }]', "must be above 0"),
        ("order", '"random"', "must be one of: blocks, scripted"),
        ("factors.mount", '["x"]', "is the name of a placeholder"),
    ],
)
def test_values_that_cannot_be_are_refused(key, value, said, write, tmp_path):
    path = write(SMALL.replace("{folder}", str(tmp_path)))
    assert said in "\n".join(faults(path, **{key: value}))


def test_options_of_mounts_that_lead_elsewhere_are_refused(write):
    path = write(
        'name = "m"\n[systems.a]\nmake = "ext4"\nmount = "noatime,bind"\n[workloads.w]\nrun = "varmail"\n'
    )
    assert "the option bind is not possible" in faults(path)[0]


def test_levels_with_settings(write, tmp_path):
    path = write(
        SMALL.replace("{folder}", str(tmp_path)).replace(
            '["true"]', '["echo", "{size.bytes}", "{size}", "{{size}}"]'
        )
        + "[factors.size]\nsmall = { bytes = 4 }\nlarge = { bytes = 8 }\n"
    )
    found = expand.read(path)
    assert [cell.levels for cell in found.cells] == [{"size": "small"}, {"size": "large"}]
    filled = places.filled(found.cells[1].workload.command, {}, ())
    assert filled == ("echo", "8", "large", "{size}")
    path = write(path.read_text().replace("large = { bytes = 8 }", "large = { byte = 8 }"))
    assert "large: lacks bytes" in "\n".join(faults(path))


def test_a_text_that_is_one_placeholder_keeps_its_type(write, tmp_path):
    path = write(
        SMALL.replace("{folder}", str(tmp_path)).replace(
            'command = ["true"]', 'run = "randread"\noptions = { depth = "{threads}", direct = "{direct}" }'
        )
        + "[factors]\nthreads = [1, 4]\ndirect = [true]\n"
    )
    options = [cell.workload.options for cell in expand.read(path).cells]
    assert options == [{"depth": 1, "direct": True}, {"depth": 4, "direct": True}]


def test_shell_variables_are_left_alone():
    assert places.filled("${HOME} {a} {{b}} {1}", {"a": 5}, ()) == "${HOME} 5 {b} {1}"
    with pytest.raises(loadstone.Error, match=r"no placeholder \{mout\}; did you mean mount"):
        places.filled("{mout}", {})


def test_a_file_includes_another_and_wins(write, tmp_path):
    (tmp_path / "sub").mkdir()
    below = SMALL.replace("{folder}", str(tmp_path))
    (tmp_path / "sub/base.toml").write_text(below)
    path = write('include = "sub/base.toml"\nseed = 9\n[repeat]\nruns = 5\n')
    found = expand.read(path)
    assert (found.file.name, found.file.seed, found.rule) == ("small", 9, Fixed(5))
    (tmp_path / "sub/base.toml").write_text('include = "../s.toml"\n')
    assert "include each other" in faults(path)[0]
    path = write('include = "none.toml"\n')
    assert "none.toml: No such file" in faults(path)[0]


def test_faults_of_an_included_file_name_that_file(write, tmp_path):
    (tmp_path / "base.toml").write_text(SMALL.replace("{folder}", str(tmp_path)) + "copis = 3\n")
    path = write('include = "base.toml"\n')
    assert f"{tmp_path}/base.toml:8: unknown key copis; did you mean copies?" in faults(path)[0]


@pytest.mark.parametrize("data", [b"name = ", b"\xff\xfe", b"a = 1\na = 2", b"[" * 5000])
def test_what_is_no_toml_is_refused(data, tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(data)
    assert str(path) in faults(path)[0]


def test_a_device_that_cells_share_is_made_anew(write):
    text = (
        'name = "d"\n[systems.a]\nmake = "ext4"\ndevice = "/dev/none"\nreset = "remount"\n'
        '[workloads.w]\nrun = "varmail"\n[workloads.v]\nrun = "fileserver"\n'
    )
    assert "several cells share /dev/none" in faults(write(text))[0]
    assert len(expand.read(write('order = "scripted"\n' + text)).cells) == 2


@pytest.mark.golden
def test_the_schema_is_published(golden, root):
    golden(
        str(root / "docs/reference/formats/study.schema.json"), json.dumps(study.schema(), indent=2) + "\n"
    )


def test_the_schema_agrees_with_the_reader(root, write, tmp_path):
    schema = study.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(tomllib.loads(example(root)))
    base = tomllib.loads(SMALL.replace("{folder}", str(tmp_path)))
    for cls, at in (
        (spec.File, ()),
        (spec.Repeat, ("repeat",)),
        (spec.System, ("systems", "here")),
        (spec.Workload, ("workloads", "true")),
        (spec.Hooks, ("hooks",)),
        (spec.Host, ("host",)),
    ):
        for name in [*kinds.names_of(cls), "unheard-of"]:
            # What no key of any kind may be: both refuse it, or neither does.
            for value in ([[1]], {"a": {"b": 1}}, True, -1, "x", 5, ["x"], "{out}"):
                table = json.loads(json.dumps(base))
                inner = table
                for step in at:
                    inner = inner.setdefault(step, {})
                inner[name] = value
                told: list[str] = []
                got = kinds.read(cls, inner, "", lambda where, text, told=told: told.append(text))
                if not validator.is_valid(table):
                    # Placeholders may become anything, and tables in tables are read later.
                    assert got is None or name in ("variables", "factors", "systems", "workloads", *LATER), (
                        name,
                        value,
                    )


LATER = ("repeat", "hooks", "host", "figures", "every")
