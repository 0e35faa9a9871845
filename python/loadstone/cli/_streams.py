"""Standard input, output and error as a program finds them: closed, full, or of few characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from loadstone._text import visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NEAR = str.maketrans(
    {
        **dict.fromkeys("─━═╌┄┈", "-"),
        **dict.fromkeys("│┃║", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰╔╗╚╝╠╣╦╩╬╞╡╪", "+"),
        **dict.fromkeys("–—", "-"),
        **dict.fromkeys("•·", "*"),
        **dict.fromkeys("“”", '"'),
        "…": "...",
        "×": "x",
        "≈": "~",
        "≤": "<=",
        "≥": ">=",
        "±": "+-",
        "→": "->",
        "µ": "u",
        "μ": "u",
        "▏": ".",
        "▎": ".",
        "▍": ":",
        "▌": ":",
        "▋": "=",
        "▊": "=",
        "▉": "#",
        "█": "#",
        **dict(zip("▁▂▃▄▅▆▇", "_.:-=+*", strict=True)),
    }
)
"""What stands for a character that a terminal does not have. Other characters are written as escapes."""


def _near(error: UnicodeError) -> tuple[str, int]:
    """Replaces what an encoding lacks: by a near character, else by an escape that loses nothing."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wanted = error.object[error.start : error.end]
    told = []
    for one in wanted.translate(_NEAR):
        if one.isascii():
            told.append(one)
        elif "\udc80" <= one <= "\udcff":
            # A byte of a file's name that is no text.
            told.append(f"\\x{ord(one) - 0xDC00:02x}")
        else:
            told.append(one.encode("ascii", "backslashreplace").decode())
    return "".join(told), error.end


class _Output(io.FileIO):
    """Standard output: where it takes nothing, the error says so, at once or at the end."""

    waits = False
    """Whether the error waits for the end of the command, as the results go elsewhere."""
    failure: OSError | None = None
    """The error that waits."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes what can be written."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = NAME
            if not self.waits:
                raise
            self.failure = error
            return memoryview(data).nbytes


def results_go_elsewhere() -> None:
    """From now on standard output that takes nothing ends no work, and is an error only at its end."""
    if isinstance(raw := getattr(sys.stdout.buffer, "raw", None), _Output):
        raw.waits = True


def raise_what_waits() -> None:
    """Writes out what is printed, and raises the error that waited for the end of the command."""
    sys.stdout.flush()
    raw = getattr(sys.stdout.buffer, "raw", None)
    if isinstance(raw, _Output) and raw.failure is not None:
        raise raw.failure


class _Unfailing(io.FileIO):
    """Standard error: a message that nobody can take ends no run."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes what can be written, and says that all was."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


class _Shown(io.TextIOWrapper):
    """What is printed: no name in it can give orders to a terminal."""

    def write(self, text: str, /) -> int:
        """Writes text with its controls made visible."""
        super().write(visible(text))
        return len(text)

    def command(self, text: str) -> int:
        """Writes text as it is."""
        return super().write(text)


class _Commanding(io.TextIOBase):
    """The same stream for those who draw with escapes; they make names visible themselves."""

    def __init__(self, stream: _Shown) -> None:
        """``stream``: where it goes to."""
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Writes text as it is."""
        return self._stream.command(text)

    def flush(self) -> None:
        """As of the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """As of the stream."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """As of the stream."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the stream."""
        return self._stream.encoding


def drawn(err: bool = False) -> TextIO:
    """Standard output or error for what draws with escapes."""
    stream = sys.stderr if err else sys.stdout
    return _Commanding(stream) if isinstance(stream, _Shown) else stream  # type: ignore[return-value]


_ASCII = "loadstone-ascii"
"""ASCII by another name: streams of that one are passed over by click, which writes UTF-8 to them."""


def _codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != _ASCII:
        return None
    found = codecs.lookup("ascii")
    return codecs.CodecInfo(
        name=_ASCII,
        encode=found.encode,
        decode=found.decode,
        incrementalencoder=found.incrementalencoder,
        incrementaldecoder=found.incrementaldecoder,
        streamreader=found.streamreader,
        streamwriter=found.streamwriter,
    )


NAME = "standard output"
"""What errors call it."""


def steady() -> None:
    """Makes the three streams such that nothing written to them is a traceback.

    A closed one becomes /dev/null, since the next file that is opened would take its number and whatever is
    printed would end in it. Characters that a stream's encoding lacks are replaced, and controls of terminals
    are made visible: whatever has a name may be printed.
    """
    codecs.register_error("loadstone", _near)
    codecs.register(_codec)
    for number in range(3):
        if not _is_open(number):
            _to_nowhere(number)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Unfailing(2, "w", closefd=False), sys.stderr)


def _text(raw: io.FileIO, before: TextIO | None) -> TextIO:
    """What takes text for ``raw`` as ``before`` did."""
    lines = before is None or bool(before.line_buffering) or before is sys.stderr
    encoding = "utf-8" if before is None else before.encoding
    if codecs.lookup(encoding).name == "ascii":
        encoding = _ASCII
    return _Shown(io.BufferedWriter(raw), encoding=encoding, errors="loadstone", line_buffering=lines)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def give_up_output() -> None:
    """Nothing more goes to standard output, not even what the interpreter writes out when it ends."""
    _to_nowhere(1)
