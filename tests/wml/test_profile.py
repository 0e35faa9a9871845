"""Profiles of Filebench 1.4."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.wml import Integer, Text, Variable, WmlError, Word, parse_profile

MAIL = Path(__file__).parent / "fixtures" / "mail.prof"


def test_a_profile_with_missing_semicolons():
    profile = parse_profile(MAIL.read_bytes(), "mail.prof")
    assert [config.name for config in profile.configs] == ["small", "large"]
    assert [setting.key for setting in profile.defaults] == [
        "runtime", "dir", "stats", "description", "filesystems",
    ]  # fmt: skip
    assert profile.settings("small") == {
        "runtime": Integer(60),
        "dir": Word("/tmp/loadstone"),
        "stats": Word("/tmp/stats"),
        "description": Text(("mail, in short",)),
        "filesystems": Text(("ext4, xfs",)),
        "function": Word("generic"),
        "personality": Word("mail"),
        "nfiles": Integer(1000),
        "meansize": Integer(16384),
        "nthreads": Integer(4),
    }
    large = profile.settings("large")
    assert large["runtime"] == Integer(600)
    assert large["nshadows"] == Integer(200) and large["memperthread"] == Integer(512 << 10)
    assert [str(one).splitlines()[0] for one in profile.warnings] == [
        "mail.prof:20:11: warning: a semicolon is missing here",
        "mail.prof:21:15: warning: a semicolon is missing here",
    ]
    with pytest.raises(KeyError):
        profile.settings("medium")


def test_forms_of_profiles():
    profile = parse_profile('config a{b=$c;;b=2;d="x y"}Defaults{e=~/f}')
    assert profile.settings("a") == {"e": Word("~/f"), "b": Integer(2), "d": Text(("x y",))}
    assert profile.configs[0].settings[0].value == Variable("c")
    assert [one.what for one in profile.warnings] == ["b is given more than once; the last one counts"]
    assert parse_profile("# nothing\n").configs == ()
    error = profile.error(profile.configs[0].settings[0], "is wrong")
    assert str(error).startswith("<profile>:1:10: is wrong\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CONFG a { }", "1:1: expected DEFAULTS or CONFIG, not CONFG|did you mean CONFIG?"),
        ("x = 4;", "1:1: expected DEFAULTS or CONFIG, not x"),
        ("CONFIG { a = 1; }", "1:8: CONFIG needs a name"),
        ("CONFIG a a = 1; }", "1:10: expected '{' after a"),
        ("DEFAULTS {\n a = 1;", "1:10: this { is never closed"),
        ("DEFAULTS { a 1; }", "1:14: expected '=' after a, not 1"),
        ("DEFAULTS { 1 = 1; }", "1:12: expected a key, not 1"),
        ("DEFAULTS { a = ; }", "1:12: a has no value"),
        ("DEFAULTS { a = }", "1:12: a has no value"),
        ("DEFAULTS { a = b { }", "1:18: '{' cannot stand in a value"),
        ("DEFAULTS { a = = }", "1:12: a has no value"),
        ("DEFAULTS { a = b = = }", "1:18: expected a key, not ="),
        ('DEFAULTS { a = "x }', "1:16: this string is never closed"),
        ("DEFAULTS { a = 1e999; }", "1:16: 1e999 is too large a number"),
        ("CONFIG a { }\nCONFIG a { }", "2:8: there is already a CONFIG a|it is defined in line 1"),
        (b"DEFAULTS { a = \xff }", "byte 15 (0xff) is not UTF-8"),
    ],
)
def test_what_is_no_profile(text, said):
    with pytest.raises(WmlError) as caught:
        parse_profile(text)
    for part in said.split("|"):
        assert part in str(caught.value)
