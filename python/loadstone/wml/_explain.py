"""What the parser stumbled over, in the terms of the language."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from loadstone._text import meant
from loadstone.wml._errors import Source, Span, WmlError, character, listed, shown
from loadstone.wml._words import COMMANDS, FLOWOPS, NUMBERS, SYNONYMS, TYPES, flowop_type

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n\f\v]+|\#[^\r\n]*)
    |(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<variable>\$(?:[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?|\{[A-Za-z_][A-Za-z0-9_.]*\}|\([A-Za-z_][A-Za-z0-9_.]*\)))
    |(?P<word>[A-Za-z0-9_/.~+@%\-][A-Za-z0-9_/.:;~+@%\-]*)
    |(?P<sign>[{}(),=*])
    |(?P<other>.)""",
    re.S | re.X,
)

_PHRASES = {
    "NAME": "an attribute",
    "VALUE": "a value",
    "WORD": "a value",
    "TYPE": "the type of a flowop",
    "NUMBER": "a number",
    "VARIABLE": "a variable",
    "STRING": "a string in quotes",
    "MODE": "'mode'",
    "QUIT": "'quit'",
    "NOUSESTATS": "'nousestats'",
    "MODE_QUIT": "'timeout', 'alldone', 'firstdone'",
    "FILE": "'file'",
    "FILESET": "'fileset'",
    "PROCESS": "'process'",
    "RANDVAR": "'randvar'",
    "POSSET": "'posset'",
    "LATHIST": "'lathist'",
    "MULTI": "'multi'",
    "IN": "'in'",
    "SNAP": "'snap'",
    "CLEAR": "'clear'",
    "DIRECTORY": "'directory'",
    "COMMAND": "'command'",
    "DUMP": "'dump', 'xmldump', 'multidump'",
    "_IS": "'='",
    "_COMMA": "','",
    "PLUS": "an operator",
    "LPAR": "'('",
    "_LPAR_SUM": "'('",
    "RPAR": "')'",
    "_RPAR_SUM": "')'",
    "LBRACE": "'{'",
    "THREAD": "a thread",
    "FLOWOP": "a flowop",
    "MACHINE": "a VM",
    "SET": "a command",
    "RBRACE": "'}'",
    "$END": "the end of the script",
}
_VALUES = frozenset(
    {
        "STRING",
        "JOINED",
        "JOINED_SET",
        "VARIABLE",
        "NUMBER",
        "LBRACE",
        "RANDVAR_CALL",
        "CVAR_CALL",
        "_LPAR_SUM",
    }
)
# Words that must stand where only they can: what a wrong one may have been meant to be.
_FIXED = {
    "MODE": ("mode",), "QUIT": ("quit",), "NOUSESTATS": ("nousestats",), "IN": ("in",), "FILE": ("file",),
    "MODE_QUIT": ("timeout", "alldone", "firstdone"), "FILESET": ("fileset",), "PROCESS": ("process",),
    "RANDVAR": ("randvar",), "POSSET": ("posset",), "LATHIST": ("lathist",), "MULTI": ("multi",),
    "SNAP": ("snap",), "CLEAR": ("clear",), "DIRECTORY": ("directory",), "COMMAND": ("command",),
    "DUMP": ("dump", "xmldump", "multidump"), "THREAD": ("thread",), "FLOWOP": ("flowop",),
    "MACHINE": ("VM",),
}  # fmt: skip
_ATTRIBUTES = {*SYNONYMS} | {
    name for type_ in (*TYPES.values(), flowop_type("")) for name in type_.attributes
}
_IS = re.compile(r"\s*=")
_SUFFIX = re.compile(r"[kmgt]b?", re.I)
_TIMED = ("run", "psrun", "sleep", "warmup")
_SECONDS = "times are numbers of seconds"
_NOTHING = "commands need nothing at their end"
_BEGINNINGS = frozenset({*COMMANDS, "thread", "flowop"})
_COMMAND_WORDS = frozenset(COMMANDS) - {"hypervisor"} | {"HYPERVISOR"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    at: Span
    text: str


@dataclass(slots=True)
class _Context:
    """The tokens around a place: the two before it, the braces open there, the last string over lines."""

    before: list[_Token] = field(default_factory=list)
    open: list[Span] = field(default_factory=list)
    long: Span | None = None
    found: _Token | None = None


def _context(text: str, offset: int) -> _Context:
    context = _Context()
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "skip":
            continue
        at = Span(match.start(), match.end())
        if at.end > offset:
            # Where an operator may follow at once, the parser stops within what is a word elsewhere.
            start = max(at.start, offset)
            context.found = _Token(kind, Span(start, at.end), text[start : at.end])
            break
        if kind == "sign" and match[0] == "{":
            context.open.append(at)
        elif kind == "sign" and match[0] == "}" and context.open:
            context.open.pop()
        elif kind == "string" and re.search(r"[\r\n]", match[0]):
            context.long = at
        context.before = [*context.before[-2:], _Token(kind, at, match[0])]
    return context


def explain(source: Source, offset: int, expected: Collection[str]) -> WmlError:
    """The error for what stands at ``offset`` (past the end: nothing), where one of some terminals should."""
    context = _context(source.text, offset)
    phrases = _phrases(expected)
    at, what, help = _Explainer(source, context, frozenset(expected), phrases).found()
    if context.long is not None and (not help or context.before[-1].at == context.long):
        line = source.place(context.long.start)[0]
        help = f"the string that begins in line {line} goes over the end of its line: is its quote missing?"
    return WmlError(source, at, what, expected=phrases, help=help)


def _phrases(expected: Collection[str]) -> list[str]:
    left = set(expected)
    if left & {"VALUE", "WORD"}:
        left -= _VALUES
    if "NAME" in left:
        left.discard("VARIABLE")
    if "SET" in left:
        left -= {"$END", "QUIT"}
    if len(left) > 1:
        left.discard("$END")
    said = {**_PHRASES, "FLOWOP": "'flowop'"} if "FILESET" in left else _PHRASES
    found = [phrase for name in _PHRASES if name in left for phrase in said[name].split(", ")]
    return list(dict.fromkeys(found))


Told = tuple[Span, str, str]
"""Place, message and hint."""


class _Explainer:
    """Says what is wrong with the token that was found."""

    def __init__(
        self, source: Source, context: _Context, expected: frozenset[str], phrases: list[str]
    ) -> None:
        self.source, self.context, self.expected = source, context, expected
        self.before = context.before
        self.last = context.before[-1] if context.before else _Token("", Span(0, 0), "")
        self.wanted = f"expected {listed(phrases, 'or')}" if phrases else "nothing can follow"
        self.could = listed(phrases, "or") if phrases else "nothing"

    def found(self) -> Told:
        found = self.context.found
        if found is None:
            return self.ended()
        if found.kind == "other":
            in_name = self.last.kind == "variable" and self.last.at.end == found.at.start
            return _illegal(found, in_name=in_name and found.text.isalnum())
        if self.swallowed("="):
            return self.no_value(self.before[:-1])
        if self.swallowed(","):
            return self.comma(self.before[-2])
        if self.last.text == "," and "NAME" in self.expected and found.text in ("{", "}"):
            return self.comma(self.last)
        if self.last.text == "=" and found.kind == "sign" and found.text != "{":
            return self.no_value(self.before)
        if self.last.text == "{" and len(self.before) == 3 and self.before[-2].text == "=":
            return self.table(found)
        if found.text == "}" and not self.context.open:
            return found.at, "this } closes nothing", ""
        what = f"{self.wanted}, not {_cited(found)}"
        if help := self.joined(found):
            return found.at, what, help
        if found.kind == "word":
            return self.word(found, what)
        if found.kind == "variable" and "STRING" in self.expected and "VALUE" not in self.expected:
            return found.at, what, f'write "{shown(found.text)}"'
        return found.at, what, self.still_open(found)

    def ended(self) -> Told:
        """The script is over."""
        if self.context.open:
            help = f"the script ends where {self.could} could stand"
            return self.context.open[-1], "this { is never closed", help
        if self.last.text == "=":
            return self.no_value(self.before)
        if self.last.text == "," and "NAME" in self.expected:
            return self.comma(self.last)
        end = self.last.at.end
        return Span(end, end), f"{self.wanted}, but the script ends here", ""

    def swallowed(self, sign: str) -> bool:
        """Whether the first word of the next line was read as what had to follow a sign."""
        if len(self.before) < 3 or self.before[-2].text != sign or self.last.text not in _BEGINNINGS:
            return False
        lines = [self.source.place(one.at.start)[0] for one in self.before[-2:]]
        return lines[0] != lines[1]

    def comma(self, comma: _Token) -> Told:
        return comma.at, "an attribute must follow this comma", "is the comma left over?"

    def table(self, found: _Token) -> Told:
        """What stands after ``= {`` is no table: that of randtable is wrong, or a value is missing."""
        if self.before[0].text == "randtable":
            return found.at, f"{self.wanted}, not {_cited(found)}", "write randtable={{percent,min,max},...}"
        return self.no_value(self.before[:-1])

    def no_value(self, before: list[_Token]) -> Told:
        named, sign = before[-2] if len(before) > 1 else before[-1], before[-1]
        return Span(named.at.start, sign.at.end), f"{shown(named.text)} has no value", ""

    def joined(self, found: _Token) -> str:
        """The hint where something follows a variable or string without a space."""
        last = self.last
        between = self.source.text[last.at.end : found.at.start]
        if last.kind not in ("variable", "string") or between not in ("", "/", "-"):
            return ""
        if last.kind == "variable" and found.text.startswith("_"):
            return f"a name cannot end in _ without braces: ${{{last.text[1:]}{shown(found.text)}}}"
        if found.kind not in ("word", "variable", "string"):
            return ""
        text = self.source.text[last.at.start : found.at.end].replace('"', "")
        return f'to join text and variables, quote both: "{shown(text)}"'

    def word(self, found: _Token, what: str) -> Told:
        """A word where none, or another, can stand."""
        text, expected = found.text, self.expected
        fixed = [word for name in expected for word in _FIXED.get(name, ())]
        help = ""
        if "_COMMA" in expected and (_IS.match(self.source.text, found.at.end) or text in _ATTRIBUTES):
            help = f"is a comma missing before {shown(text)}?"
        elif "MODE" in expected:
            help = f"names of variables begin with $: set ${shown(text)}=..."
        elif "NUMBER" in expected and text[0].isdigit():
            help = _NOTHING if text.endswith(";") else _SECONDS if self.last.text in _TIMED else NUMBERS
        elif self.last.text in ("randvar", "cvar") and len(self.before) > 1 and self.before[-2].text == "=":
            help = f"its attributes stand in parentheses: {self.last.text}(type=...)"
        elif self.last.kind == "word" and self.last.text.isdigit() and _SUFFIX.fullmatch(text):
            help = f"write {self.last.text}{text}, without a space"
        elif "SET" in expected and not ("FILESET" in expected and meant(text, fixed)):
            return self.no_command(found, what)
        elif text in FLOWOPS and "FLOWOP" in expected:
            help = f"write flowop {text} ..."
        elif (text == "flowop" or text in FLOWOPS) and "THREAD" in expected:
            help = "flowops stand in the braces of a thread"
        elif text not in _BEGINNINGS and (near := meant(text, fixed)):
            help = near
        elif "STRING" in expected and "VALUE" not in expected:
            help = "texts are written in quotes"
        return found.at, what, help or self.still_open(found)

    def no_command(self, found: _Token, what: str) -> Told:
        text = found.text
        if text == "thread":
            return found.at, what, "threads stand in the braces of define process"
        if text == "flowop" or text in FLOWOPS:
            return found.at, what, "flowops stand in the braces of a thread"
        if text.lower() == "vm":
            return found.at, what, "VMs stand in the braces of HYPERVISOR"
        if text in TYPES:
            return found.at, what, f"did you mean define {text}?"
        near = meant(text, _COMMAND_WORDS)
        if not text[0].isalpha() or ("_COMMA" in self.expected and not near):
            return found.at, what, ""
        return (
            found.at,
            f"there is no command {shown(text)}",
            near or "docs/reference/filebench.md lists all commands",
        )

    def still_open(self, found: _Token) -> str:
        if not self.context.open or found.text not in _BEGINNINGS:
            return ""
        return f"the {{ in line {self.source.place(self.context.open[-1].start)[0]} is still open"


def _illegal(found: _Token, *, in_name: bool) -> Told:
    char = found.text[0]
    help = "text with such characters needs quotes"
    if char == '"':
        return found.at, "this string is never closed", ""
    if char == "$":
        return found.at, "a $ must be followed by a name", "names begin with a letter: $dir, ${dir}"
    if char in "'`\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}":
        help = 'strings are written in double quotes: "..."'
    elif char in "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}":
        help = 'write the plain quote: "'
    elif char == ";":
        help = _NOTHING
    elif in_name:
        help = "names have the letters a to z, digits and _"
    elif char.isspace():
        help = "write a plain space"
    return found.at, f"illegal character {character(char)}", help


def _cited(found: _Token) -> str:
    match found.kind:
        case "word":
            return f"the word {shown(found.text)}" if found.text[0].isalpha() else shown(found.text)
        case "string":
            return "a string"
        case "variable":
            return f"the variable {shown(found.text)}"
    return f"'{found.text}'"
