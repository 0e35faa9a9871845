"""Values as people write them: the same for every option, and never read as something else."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from tests.cli.test_commands import commands

from loadstone import Error, _values
from loadstone.cli import command as root_command

NO_NUMBERS = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "5\N{ARABIC-INDIC DIGIT FIVE}",
    "\uff15",
    "1_000",
    "x",
    "²",
)
"""What Python or a careless pattern takes for a number."""


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (_values.size, "4096", 4096),
        (_values.size, "4k", 4096),
        (_values.size, "1.5g", 3 << 29),
        (_values.size, "4KiB", 4096),
        (_values.size, "9223372036854775807", (1 << 63) - 1),
        (_values.duration, "90", 90.0),
        (_values.duration, "200ms", 0.2),
        (_values.duration, "1.5h", 5400.0),
        (_values.duration, "1ns", 1e-9),
        (_values.rate, "1k", 1000.0),
        (_values.rate, "2.5", 2.5),
        (_values.rate, "1.5m", 1.5e6),
        (_values.count, "20k", 20_000),
        (_values.count, "1.5k", 1500),
        (_values.seed, "18446744073709551615", (1 << 64) - 1),
        (_values.share, "10%", 0.1),
        (_values.share, "0.1", 0.1),
        (_values.percentage, "10", 10.0),
        (_values.percentage, "10%", 10.0),
        (_values.factor, "x0.5", 0.5),
        (_values.number, "1e3", 1000.0),
        (_values.cpus, "0,2-3,2", [0, 2, 3]),
    ],
)
def test_values_are_read(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (_values.size, "1.5", "no whole number of bytes"),
        (_values.size, "0", "at least 1 bytes"),
        (_values.size, "-1", "not a size"),
        (_values.size, "9223372036854775808", "below 8192p"),
        (_values.size, "9" * 39 + "p", "below 8192p"),
        (_values.duration, "0s", "at least 1ns"),
        (_values.duration, "0.1ns", "at least 1ns"),
        (_values.duration, "300000d", "below 292 years"),
        (_values.duration, "-1s", "not a duration"),
        (_values.rate, "-1", "no rate above 0"),
        (_values.rate, "0", "no rate above 0"),
        (_values.rate, "1e308k", "too large"),
        (_values.count, "1.5", "no whole number"),
        (_values.count, "9223372036854775808", "out of range"),
        (_values.count, "1e3", "no whole number"),
        (_values.seed, "-1", "out of range"),
        (_values.seed, "18446744073709551616", "out of range"),
        (_values.cpus, "3-1", "goes down; write 1-3"),
        (_values.cpus, "0,,1", "write CPUs like"),
        (_values.cpus, "0-99999", "no host has so many"),
        (_values.factor, "0", "not a factor"),
        (_values.pairs, ("a=1", "a=2"), "was given before"),
    ],
)
def test_what_is_no_value_is_refused_with_its_reason(parse, text, says):
    with pytest.raises(Error, match=says):
        parse(text)


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(
    "parse",
    [
        *(_values.size, _values.duration, _values.rate, _values.count, _values.seed, _values.share),
        *(_values.percentage, _values.factor, _values.number, _values.cpus),
    ],
)
def test_no_parser_takes_what_is_no_number(parse, text):
    with pytest.raises(Error):
        parse(text)


COMMANDS = {name.removeprefix("loadstone").strip(): command for name, command in commands()}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_has_a_parser_of_its_own(name):
    for one in COMMANDS[name].params:
        if isinstance(one, click.Option) and not one.is_flag:
            kind = type(one.type)
            plain = issubclass(kind, click.types.IntParamType | click.types.FloatParamType)
            assert not plain or kind.__module__ == "loadstone.cli._types", f"{name} {one.opts[0]}: {kind}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_with_a_number_refuses_what_is_none(name):
    command = COMMANDS[name]
    for one in command.params:
        kind = type(one.type)
        if not isinstance(one, click.Option) or kind.__module__ != "loadstone.cli._types":
            continue
        if issubclass(kind, click.Path):
            continue
        for text in NO_NUMBERS:
            with pytest.raises(click.BadParameter):
                one.type.convert(text, one, click.Context(command))
        for text in ("-1", "1" + "0" * 40):
            try:
                found = one.type.convert(text, one, click.Context(command))
            except click.BadParameter as error:
                assert text in str(error)
            else:
                assert found in (-1, float(text)), f"{name} {one.opts[0]} {text}: {found}"


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_given_twice_is_refused(name):
    command = COMMANDS[name]
    for one in command.params:
        if not isinstance(one, click.Option) or one.multiple or not name:
            continue
        again = [one.opts[0]] if one.is_flag else [one.opts[0], "1"]
        with pytest.raises(click.UsageError) as refused:
            command.make_context(name.rpartition(" ")[2], [*again, *again])
        assert one.opts[0] in refused.value.format_message() and "2 times" in refused.value.format_message()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "randread", "--numjobs", "4"), "Here that is --depth"),
        (("run", "randread", "--qd=4"), "Here that is --depth"),
        (("run", "randread", "--time_based"), "Here that is --duration"),
        (("run", "--rw", "randread"), "loadstone run randread"),
        (("run", "randread", "--timeout", "5"), "Here that is --duration"),
        (("replay", "x", "--filename", "y"), "Here that is --on"),
        (("replay", "x", "--numbjobs", "y"), "loadstone replay --help"),
        (("trace", "describe", "x", "--runtime", "5"), "loadstone trace describe --help"),
        (("run", "randread", "--durtion", "5"), "Did you mean '--duration'?"),
    ],
)
def test_words_of_other_tools_are_known_and_others_not_guessed(words, says, loadstone):
    assert says in loadstone(*words, status=2).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "randread", "--on", "null:", "-D", "reads=1", "-D", "reads=0"), "reads was given before"),
        (("replay", "t", "--map", "0=a", "--map", "0=b"), "0 was given before"),
        (("replay", "t", "--out", "o", "--probe", "a=x", "--probe", "a=y"), "--probe: a is given 2 times"),
        (
            ("model", "fit", "t", "-o", "m", "--dimension", "size", "--dimension", "given:size=log2:4"),
            "size is",
        ),
        (("model", "fit", "t", "-o", "m", "--without", "gap", "--without", "gap"), "--without: gap is given"),
        (
            ("dataset", "write", __file__, "--to", "x", "--snapshot", "0", "--snapshot", "0"),
            "--snapshot: 0 is",
        ),
        (("dataset", "mutate", __file__, "-o", "x", "--set", "a=1", "--set", "a=2"), "a was given before"),
    ],
    ids=lambda one: one[-2] if isinstance(one, tuple) else "",
)
def test_what_is_said_of_one_thing_is_said_once(words, says, loadstone):
    assert says in loadstone(*words, status=2).stderr


def test_what_options_say_together_is_within_bounds_too(loadstone):
    words = ("run", "randread", "--on", "null:", "--requests", "5")
    assert "x-ram is too large" in loadstone(*words, "--size", "999999999x-ram", status=2).stderr
    largest = str(_values.MOST_SEED)
    assert f'"seed": {largest}' in loadstone(*words, "--seed", largest, "--dry-run").stdout
    assert "there is no such file" in loadstone("run", "nosuch.xyz", "--on", "null:", status=1).stderr


def test_zero_is_not_unset_and_a_second_bound_is_not_lost(loadstone):
    words = ("run", "randread", "--on", "null:", "--requests", "5")
    assert "--duration" in loadstone(*words, "--duration", "0s", status=2).stderr
    assert "--size" in loadstone(*words, "--size", "0", status=2).stderr
    done = loadstone("model", "table", "x.mdh", "--where", "size=4k..", "--where", "size=..64k", status=2)
    assert "size was given before" in done.stderr
    assert '"rate": 1000.0' in loadstone(*words, "--rate", "1k", "--dry-run").stdout


def with_values() -> Iterator[tuple[str, click.Parameter]]:
    """What takes a value, of every command."""
    for name, command in COMMANDS.items():
        if not isinstance(command, click.Group):
            for one in command.params:
                if not (isinstance(one, click.Option) and (one.is_flag or one.count)):
                    yield name, one


@pytest.mark.parametrize(
    ("name", "one"), [pytest.param(*case, id=f"{case[0]} {case[1].opts[0]}") for case in with_values()]
)
def test_an_empty_value_is_refused(name, one):
    command = COMMANDS[name]
    needed = [other for other in command.params if isinstance(other, click.Argument) and other.required]
    words = ["" if other is one else "something" for other in needed]
    if isinstance(one, click.Option):
        words += [one.opts[0], *[""] * one.nargs]
    elif one not in needed:
        words.append("")
    done = CliRunner().invoke(root_command, [*name.split(), *words])
    assert done.exit_code == 2 and "is empty; give it a value, or leave it out" in done.output, done.output


@pytest.mark.parametrize(
    "words", [("trace", "describe", "t", "--sort", "--temp-dir"), ("dataset", "scan", "--git")]
)
def test_a_device_is_no_directory(words):
    done = CliRunner().invoke(root_command, [*words, "/dev/null"])
    assert done.exit_code == 2 and "'/dev/null' is no directory" in done.output
