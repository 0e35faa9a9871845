"""From text to a script: the parser, and what it says of texts that are none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from loadstone.wml import _ast as ast
from loadstone.wml import _check
from loadstone.wml._errors import Refused, Remark, Source, Span, WmlError
from loadstone.wml._explain import explain
from loadstone.wml._names import Names
from loadstone.wml._review import Evidence, Review

if TYPE_CHECKING:
    from lark import Lark


@dataclass(frozen=True)
class Script:
    """A script as it was read. Scripts are equal when their commands are.

    ``warnings`` are in the order of the text. ``evidence`` has the constructs that only one dialect knows,
    each where it is first.
    """

    commands: tuple[ast.Command, ...]
    name: str = field(default="<script>", compare=False)
    warnings: tuple[Remark, ...] = field(default=(), compare=False)
    evidence: tuple[Evidence, ...] = field(default=(), compare=False, repr=False)
    source: Source = field(default=Source("<script>", ""), compare=False, repr=False)
    names: Names | None = field(default=None, compare=False, repr=False)

    @property
    def dialect(self) -> Literal["1.4", "1.5", "mixed", "V"] | None:
        """What the script is written in.

        ``mixed``: it has constructs that only 1.4 knows and such that only 1.5 knows. ``V``: it has virtual
        machines and nothing else that tells. None: both dialects read it.
        """
        told = {one.dialect for one in self.evidence}
        if {"1.4", "1.5"} <= told:
            return "mixed"
        for dialect in ("1.4", "1.5", "V"):
            if dialect in told:
                return dialect
        return None

    def place(self, node: ast.Node) -> tuple[int, int]:
        """Line and column of a node, both from 1."""
        return self.source.place(node.at.start)

    def error(self, node: ast.Node, what: str, *, help: str = "") -> WmlError:
        """An error about a node, to raise, in the layout of those of the reader."""
        return WmlError(self.source, node.at, what, help=help)

    def warning(self, node: ast.Node, what: str) -> Remark:
        """A warning about a node."""
        return Remark(self.source, node.at, what)


@dataclass(frozen=True)
class Definition:
    """A definition, and the script that it stands in."""

    script: Script
    node: Any


def parse(text: str | bytes, name: str = "<script>", *, whole: bool = True) -> Script:
    """Reads a script of either dialect and checks all that can be checked before it runs.

    ``name`` is what errors call it. Raises ``WmlError``, and nothing else, where the text is no script.
    ``whole=False`` is for a script that another loads: names may be defined there. Such scripts, and those
    that have ``load``, are not searched for names that are defined nowhere; ``check_names`` does that.
    """
    source = Source(name, decoded(text, name))
    review = Review(source)
    commands = syntax(source)
    names = _check.review(commands, review)
    if whole and not names.loads:
        names.check()
    warnings = sorted(review.warnings, key=lambda remark: remark.at)
    return Script(commands, name, tuple(warnings), tuple(review.evidence.values()), source, names)


def check_names(script: Script, loaded: Iterable[Script]) -> None:
    """Raises where a script refers to what neither it nor the scripts that it loads define."""
    if script.names is not None:
        script.names.check([other.names for other in loaded if other.names is not None])


@cache
def _parser() -> Lark:
    # Imported late: it takes longer than the rest of the package, and most verbs parse nothing.
    from importlib.resources import files

    from lark import Lark

    from loadstone.wml._build import Builder

    grammar = (files("loadstone.wml") / "grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=Builder())


def syntax(source: Source) -> tuple[ast.Command, ...]:
    """The commands of a text, before any of them is judged."""
    from lark.exceptions import UnexpectedInput, UnexpectedToken

    try:
        commands: tuple[ast.Command, ...] = _parser().parse(source.text)  # type: ignore[assignment]
    except Refused as refused:
        raise WmlError(source, refused.at, refused.what, help=refused.help) from None
    except UnexpectedInput as error:
        ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
        accepted: set[str] = error.interactive_parser.accepts()  # type: ignore[no-untyped-call]
        offset = len(source.text) if ended else error.pos_in_stream
        raise explain(source, offset or 0, accepted) from None
    return commands


def decoded(text: str | bytes, name: str) -> str:
    """The text of a script, or what is wrong with its characters."""
    if isinstance(text, bytes):
        try:
            whole = text.decode("utf-8")
        except UnicodeDecodeError as error:
            before = text[: error.start].decode("utf-8")
            around = Source(name, before + text[error.start :].decode("utf-8", errors="replace"))
            at = Span(len(before), len(before) + 1)
            wide = text.startswith((b"\xff\xfe", b"\xfe\xff"))
            help = "it seems to be UTF-16; save the script as UTF-8" if wide else "save the script as UTF-8"
            what = f"byte {error.start} (0x{text[error.start]:02x}) is not UTF-8"
            raise WmlError(around, at, what, help=help) from None
    else:
        whole = text
        try:
            whole.encode("utf-8")
        except UnicodeEncodeError as error:
            around = Source(name, whole.encode("utf-8", errors="replace").decode("utf-8"))
            what = f"character {error.start} is half a character (U+{ord(whole[error.start]):04X})"
            raise WmlError(around, Span(error.start, error.start + 1), what) from None
    whole = whole.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    nul = whole.find("\0")
    if nul >= 0:
        # UTF-16 has a zero in every other byte.
        help = (
            "it seems to be UTF-16; save the script as UTF-8" if whole.count("\0") > len(whole) // 4 else ""
        )
        raise WmlError(Source(name, whole), Span(nul, nul + 1), "the script has a zero byte", help=help)
    return whole
