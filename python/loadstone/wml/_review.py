"""What the checks of a script find: errors, warnings, and what tells its dialect."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from loadstone.wml import _ast as ast
from loadstone.wml._errors import Remark, Source, Span, WmlError, shown
from loadstone.wml._literals import ORIGINAL_WORD, oddities
from loadstone.wml._words import NOTES, SYSTEM_VARIABLES, Dialect

_HEAD = re.compile(r"(?:(?:define|enable|flowop|set|stats)[ \t]+)?[A-Za-z_]+", re.I)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A construct that only one dialect has, and where the script has it first."""

    dialect: Dialect
    construct: str
    at: Span


class Review:
    """Collects what is found in one script."""

    def __init__(self, source: Source) -> None:
        """Nothing is found yet."""
        self.source = source
        self.warnings: list[Remark] = []
        self.evidence: dict[tuple[Dialect, str], Evidence] = {}
        self._noted: set[str] = set()
        self._words: set[str] = set()

    def error(self, at: Span, what: str, help: str = "") -> WmlError:
        """The error to raise."""
        return WmlError(self.source, at, what, help=help)

    def warn(self, at: Span, what: str) -> None:
        """Keeps a warning."""
        self.warnings.append(Remark(self.source, at, what))

    def note(self, word: str, at: Span) -> None:
        """Says once of a word of ``NOTES`` what it does not do."""
        if word in NOTES and word not in self._noted:
            self._noted.add(word)
            self.warn(at, NOTES[word])

    def tell(self, dialect: Dialect | None, construct: str, at: Span) -> None:
        """Keeps that a construct speaks for a dialect; None: for neither."""
        if dialect is not None and (dialect, construct) not in self.evidence:
            self.evidence[dialect, construct] = Evidence(dialect, construct, at)

    def head(self, node: ast.Node) -> Span:
        """The words that a command or flowop begins with."""
        match = _HEAD.match(self.source.text, node.at.start)
        return Span(match.start(), match.end()) if match else node.at

    def value(self, value: ast.Value) -> None:
        """Warns of what is read otherwise than it looks, and notes what tells the dialect."""
        judge = _OF_VALUE.get(type(value))
        if judge is not None:
            judge(self, value)

    def word(self, text: str, at: Span) -> None:
        """Warns, once, of a word that Filebench would not have read as one."""
        if text in self._words:
            return
        self._words.add(text)
        if text.endswith(";"):
            self.warn(at, f"the semicolon is part of the word {shown(text)}: commands need none at their end")
        elif not ORIGINAL_WORD.fullmatch(text):
            self.warn(at, f"{shown(text)} is read as a word; Filebench wants it in quotes")

    def _text(self, value: ast.Text) -> None:
        raw = self.source.text[value.at.start : value.at.end]
        if raw.startswith('"'):
            for start, end, what in oddities(raw):
                self.warn(Span(value.at.start + start, value.at.start + end), what)
        else:
            self.warn(value.at, f'{shown(raw)} is read as "{shown(raw)}"; write it so')
        for part in value.parts:
            if isinstance(part, ast.Variable):
                self.variable(part)

    def variable(self, value: ast.Variable) -> None:
        """Fields, the environment and Filebench's own variables are of 1.4."""
        if value.environment:
            self.tell("1.4", "$(NAME)", value.at)
        elif value.field:
            self.tell("1.4", "$name.field", value.at)
        elif value.name in SYSTEM_VARIABLES and self.source.text.startswith("${", value.at.start):
            self.tell("1.4", f"${{{value.name}}}", value.at)
        elif value.name.startswith("stats."):
            self.tell("1.4", "${stats...}", value.at)

    def _table(self, value: ast.Table) -> None:
        for row in value.rows:
            for cell in row.cells:
                self.value(cell)


_OF_VALUE: dict[type, Callable[..., None]] = {
    ast.Word: lambda review, value: review.word(value.text, value.at),
    ast.Text: Review._text,
    ast.Variable: Review.variable,
    ast.Table: Review._table,
}
