"""Profiles of Filebench 1.4 (``.prof``): which workload its driver script ran, and with which variables.

A profile has the section ``DEFAULTS { key = value; ... }`` and sections ``CONFIG name { key = value; ... }``.
Published ones lack semicolons here and there, so an entry also ends where the next begins; hence no grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from loadstone._text import meant
from loadstone.wml import _ast as ast
from loadstone.wml._errors import Refused, Remark, Source, Span, WmlError, shown
from loadstone.wml._literals import literal, quoted, variable
from loadstone.wml._parse import decoded

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\r\n]*)
    |(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<sign>[{};=])
    |(?P<chunk>[^\s{};="\#]+)
    |(?P<other>.)""",
    re.S | re.X,
)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_VARIABLE = re.compile(r"\$(?:[A-Za-z][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_.]*\}|\([A-Za-z_][A-Za-z0-9_.]*\))")


@dataclass(frozen=True, slots=True)
class Setting(ast.Node):
    """``key = value;``: a variable of the workload, or what the driver is told. Lists are one text."""

    key: str
    value: ast.Value


@dataclass(frozen=True, slots=True)
class Config(ast.Node):
    """``CONFIG name { ... }``."""

    name: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Profile:
    """A profile as it was read."""

    defaults: tuple[Setting, ...]
    configs: tuple[Config, ...]
    name: str = field(default="<profile>", compare=False)
    warnings: tuple[Remark, ...] = field(default=(), compare=False)
    source: Source = field(default=Source("<profile>", ""), compare=False, repr=False)

    def settings(self, config: str) -> dict[str, ast.Value]:
        """What holds for a configuration: its own values, and the defaults of the others."""
        for one in self.configs:
            if one.name == config:
                return {setting.key: setting.value for setting in (*self.defaults, *one.settings)}
        raise KeyError(config)

    def error(self, node: ast.Node, what: str, *, help: str = "") -> WmlError:
        """An error about a node, to raise."""
        return WmlError(self.source, node.at, what, help=help)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: Span


def parse_profile(text: str | bytes, name: str = "<profile>") -> Profile:
    """Reads a profile. Raises ``WmlError`` where it is none."""
    return _Reader(Source(name, decoded(text, name))).profile()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.warnings: list[Remark] = []
        self.tokens: list[_Token] = []
        for match in _TOKEN.finditer(source.text):
            kind = match.lastgroup or ""
            if kind == "other":
                raise self.error(Span(match.start(), match.end()), "this string is never closed")
            if kind != "skip":
                self.tokens.append(_Token(kind, match[0], Span(match.start(), match.end())))
        end = len(source.text.rstrip())
        self.tokens += [_Token("end", "", Span(end, end))] * 2
        self.next = 0

    def error(self, at: Span, what: str, help: str = "") -> WmlError:
        return WmlError(self.source, at, what, help=help)

    def warn(self, at: Span, what: str) -> None:
        self.warnings.append(Remark(self.source, at, what))

    def take(self) -> _Token:
        token = self.tokens[self.next]
        if token.kind != "end":
            self.next += 1
        return token

    def profile(self) -> Profile:
        defaults: list[Setting] = []
        configs: dict[str, Config] = {}
        while (word := self.take()).kind != "end":
            match word.text.upper():
                case "DEFAULTS":
                    defaults += self.section(word)[0]
                case "CONFIG":
                    named = self.take()
                    if named.kind not in ("chunk", "string"):
                        raise self.error(named.at, "CONFIG needs a name", "write CONFIG name { ... }")
                    name = named.text.strip('"')
                    if name in configs:
                        line = self.source.place(configs[name].at.start)[0]
                        raise self.error(
                            named.at,
                            f"there is already a CONFIG {shown(name)}",
                            f"it is defined in line {line}",
                        )
                    settings, end = self.section(named)
                    configs[name] = Config(name, tuple(settings), at=Span(word.at.start, end))
                case _:
                    near = meant(word.text.upper(), ("DEFAULTS", "CONFIG"))
                    raise self.error(word.at, f"expected DEFAULTS or CONFIG, not {shown(word.text)}", near)
        self._repeated(defaults)
        for config in configs.values():
            self._repeated(config.settings)
        warnings = tuple(sorted(self.warnings, key=lambda remark: remark.at))
        return Profile(tuple(defaults), tuple(configs.values()), self.source.name, warnings, self.source)

    def section(self, head: _Token) -> tuple[list[Setting], int]:
        """What stands in the braces, and where they end."""
        opening = self.take()
        if opening.text != "{":
            raise self.error(opening.at, f"expected '{{' after {shown(head.text)}")
        settings: list[Setting] = []
        while True:
            token = self.take()
            if token.text == "}":
                return settings, token.at.end
            if token.kind == "end":
                raise self.error(opening.at, "this { is never closed")
            if token.text != ";":
                settings.append(self.setting(token))

    def setting(self, key: _Token) -> Setting:
        sign = self.take()
        if key.kind != "chunk" or not _KEY.fullmatch(key.text) or sign.text != "=":
            found = key if key.kind != "chunk" or not _KEY.fullmatch(key.text) else sign
            wanted = "a key" if found is key else f"'=' after {shown(key.text)}"
            raise self.error(
                found.at, f"expected {wanted}, not {shown(found.text) or 'the end'}", "write key = value;"
            )
        values: list[_Token] = []
        while (token := self.tokens[self.next]).text not in (";", "}") and token.kind != "end":
            if values and self.tokens[self.next + 1].text == "=":
                break
            values.append(self.take())
        if not values or values[0].kind == "sign":
            raise self.error(Span(key.at.start, sign.at.end), f"{shown(key.text)} has no value")
        for value in values:
            if value.kind == "sign":
                raise self.error(
                    value.at, f"'{value.text}' cannot stand in a value", "put the value in quotes"
                )
        if token.text == ";":
            self.take()
        elif token.text != "}":
            self.warn(values[-1].at, "a semicolon is missing here")
        at = Span(key.at.start, values[-1].at.end)
        return Setting(key.text, self.value(values), at=at)

    def value(self, tokens: list[_Token]) -> ast.Value:
        first = tokens[0]
        at = Span(first.at.start, tokens[-1].at.end)
        if len(tokens) > 1:
            return ast.Text((self.source.text[at.start : at.end],), at=at)
        if first.kind == "string":
            return quoted(first.text, at)
        if _VARIABLE.fullmatch(first.text):
            return variable(first.text, at)
        try:
            return literal(first.text, at)
        except Refused as refused:
            raise self.error(refused.at, refused.what, refused.help) from None

    def _repeated(self, settings: list[Setting] | tuple[Setting, ...]) -> None:
        seen: set[str] = set()
        for setting in settings:
            if setting.key in seen:
                at = Span(setting.at.start, setting.at.start + len(setting.key))
                self.warn(at, f"{setting.key} is given more than once; the last one counts")
            seen.add(setting.key)
