"""Lines of large files in bounded memory: plain or gzip, any encoding, decoded strictly.

A line ends at ``\\n`` only. A line longer than the limit arrives in pieces, cut after a sentence where one ends in the
second half of the piece; nothing is lost.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from components.errors import InputError

BLOCK_BYTES = 1 << 18
BYTE_ORDER_MARK = "\ufeff"
_OTHER_ENCODINGS = ("utf-8", "gb18030", "big5", "utf-16", "cp1252")
_CUT = re.compile(r"[。！？!?…\n][”’」』）)\"']*|\s")


@dataclass(frozen=True)
class Line:
    """A line, or a piece of one that is too long."""

    number: int
    """1-based line number in the file."""
    part: int
    """0, or the 0-based position of this piece in its line."""
    text: str


@dataclass
class FileFacts:
    """What was met while reading one file."""

    num_byte_order_marks: int = 0
    num_long_lines: int = 0
    num_chars: int = 0
    sample: str = ""
    """The first block, for the check whether the encoding was the right one."""


def read_lines(
    path: Path, encoding: str, *, max_chars: int, facts: FileFacts, advance: Callable[[int], None] = lambda _: None
) -> Iterator[Line]:
    """Yield the lines of a file.

    Args:
        path: A file; a name ending in ``.gz`` is unpacked.
        encoding: Its encoding.
        max_chars: Longest piece of a line.
        facts: Filled while reading.
        advance: Told how many bytes of the file were read since the last call.

    Raises:
        InputError: A byte that does not fit the encoding, with line, byte offset and an encoding that would fit; or a
            damaged gzip file.
    """
    number, part, buffer = 1, 0, ""
    for block in _decoded_blocks(path, encoding, facts, advance):
        buffer += block
        *complete, buffer = buffer.split("\n")
        for text in complete:
            facts.num_long_lines += part == 0 and len(text) > max_chars
            for piece in split_text(text, max_chars):
                # Nothing may be left of a line whose pieces were yielded before.
                if piece or part == 0:
                    yield Line(number, part, piece)
                part += 1
            number, part = number + 1, 0
        while len(buffer) > max_chars:
            end = _cut_position(buffer, max_chars)
            facts.num_long_lines += part == 0
            yield Line(number, part, buffer[:end])
            part, buffer = part + 1, buffer[end:]
    if buffer:
        yield Line(number, part, buffer)


def split_text(text: str, max_chars: int) -> Iterator[str]:
    """Pieces of at most ``max_chars`` characters, cut after a sentence or at white space where possible."""
    while len(text) > max_chars:
        end = _cut_position(text, max_chars)
        yield text[:end]
        text = text[end:]
    yield text


def _cut_position(text: str, max_chars: int) -> int:
    ends = [match.end() for match in _CUT.finditer(text, max_chars // 2, max_chars)]
    return ends[-1] if ends else max_chars


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file as stored, for the progress, and as content."""
    with path.open("rb") as stored:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(fileobj=stored) as content:
                yield stored, content  # type: ignore[misc]
        else:
            yield stored, stored


def _decoded_blocks(path: Path, encoding: str, facts: FileFacts, advance: Callable[[int], None]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    num_bytes = num_lines = position = 0
    try:
        with _opened(path) as (stored, content):
            while True:
                data = content.read(BLOCK_BYTES)
                text = _decode(decoder, data, path, encoding, num_bytes, num_lines)
                if facts.num_chars == 0 and text.startswith(BYTE_ORDER_MARK):
                    text, facts.num_byte_order_marks = text[1:], 1
                facts.sample = facts.sample or text
                facts.num_chars += len(text)
                num_bytes, num_lines = num_bytes + len(data), num_lines + text.count("\n")
                advance(stored.tell() - position)
                position = stored.tell()
                yield text
                if not data:
                    return
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file: {error}", file=path, remedy="copy the file again") from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error


def _decode(
    decoder: codecs.IncrementalDecoder, data: bytes, path: Path, encoding: str, num_bytes: int, num_lines: int
) -> str:
    try:
        return decoder.decode(data, final=not data)
    except UnicodeDecodeError as error:
        # The error's bytes begin with what the decoder had kept from the block before.
        first = num_bytes - (len(error.object) - len(data))
        line = num_lines + error.object[: error.start].decode(encoding, "replace").count("\n") + 1
        bad = error.object[error.start : max(error.end, error.start + 4)]
        fitting = [name for name in _OTHER_ENCODINGS if _fits(path, name)]
        raise InputError(
            f"bytes {bad.hex(' ')} at byte offset {first + error.start} are not {encoding}",
            file=path,
            line=line,
            remedy=f"the whole file decodes as {fitting[0]}: declare encoding {fitting[0]}"
            if fitting
            else "declare the right encoding, or repair the file",
        ) from error


def _fits(path: Path, encoding: str) -> bool:
    """Whether the whole file decodes; utf-16 only with its byte-order mark, as almost any bytes pass without."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    with _opened(path) as (_, content):
        first = True
        while data := content.read(BLOCK_BYTES):
            if first and encoding == "utf-16" and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return False
            first = False
            try:
                decoder.decode(data)
            except UnicodeDecodeError:
                return False
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True
