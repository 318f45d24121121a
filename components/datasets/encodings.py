"""Strict decoding: a file is read in its declared encoding or refused with the place and a better guess."""

from __future__ import annotations

import codecs
import functools
import gzip
import logging
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from components.errors import InputError

logger = logging.getLogger(__name__)

BOM = "\ufeff"
GUESSES = ("utf-8", "gb18030", "big5", "utf-16")
"""Encodings to propose, in this order, when the declared one fails."""
MOJIBAKE_MARGIN = 0.2
"""How much larger the share of rare characters must be before a reading is called wrong."""
RARE_HAN_LIMIT = 0.3
"""Share of rare Chinese characters from which a UTF-8 file is suspected to be mojibake; ordinary text has 1 to 5 %."""
_HAN = re.compile("[\u3400-\u9fff]+")


@dataclass(frozen=True)
class DecodedText:
    """A file's text without its byte-order mark."""

    text: str
    num_boms: int
    """1 when a byte-order mark was removed, else 0."""


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed when its name ends in ``.gz``.

    Raises:
        InputError: The file is missing, unreadable or damaged.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError as error:
        raise InputError(
            "no such file", file=path, remedy="check the path; it is relative to where you start"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error})", file=path, remedy="copy or compress it again") from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", file=path) from error


def read_text(path: Path, encoding: str) -> DecodedText:
    """Decode a file strictly in its declared encoding.

    Raises:
        InputError: Missing file, unknown encoding, bytes that do not decode (line, byte offset, bytes and the encoding
            that would decode the whole file), or a reading that is mojibake because the file is really UTF-8.
    """
    return decode(read_bytes(path), encoding, path)


def decode(data: bytes, encoding: str, path: Path) -> DecodedText:
    """Decode bytes strictly; ``path`` only names them in errors. See ``read_text``."""
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise InputError(f"unknown encoding {encoding!r}", file=path, remedy="use utf-8, gb18030 or big5") from error
    except UnicodeError as error:
        raise _decoding_error(data, encoding, path, error) from error
    _check_mojibake(data, text, encoding, path)
    return DecodedText(text.removeprefix(BOM), int(text.startswith(BOM)))


def _decoding_error(data: bytes, encoding: str, path: Path, error: UnicodeError) -> InputError:
    start, end = (error.start, error.end) if isinstance(error, UnicodeDecodeError) else (0, 0)
    line = data[:start].decode(encoding, errors="replace").count("\n") + 1
    fitting = [name for name in GUESSES if name != encoding.lower() and _is_plausible(data, name)]
    if fitting:
        remedy = f"encoding {fitting[0]} decodes the whole file: set encoding: {fitting[0]}"
    else:
        remedy = f"none of {', '.join(GUESSES)} gives readable text: repair the line or save the file as UTF-8"
    shown = data[start : max(end, start + 1)].hex(" ")
    return InputError(
        f"not valid {encoding} at byte offset {start} (bytes {shown})", file=path, line=line, remedy=remedy
    )


def _is_plausible(data: bytes, encoding: str) -> bool:
    """Whether an encoding fits and gives everyday text; GB18030 and UTF-16 also decode much that is neither."""
    if encoding == "utf-16" and data[:2] not in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
        return False
    return _decodes(data, encoding) and rare_share(data.decode(encoding)) <= RARE_HAN_LIMIT


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeError:
        return False
    return True


def _check_mojibake(data: bytes, text: str, encoding: str, path: Path) -> None:
    """Text in UTF-8 often decodes as GB18030 or Latin-1 without an error; compare how rare the characters are."""
    is_utf8 = encoding.lower().replace("_", "-") in {"utf-8", "utf8", "utf-8-sig"}
    if not is_utf8 and not data.isascii() and _decodes(data, "utf-8"):
        rare, rare_utf8 = rare_share(text), rare_share(data.decode("utf-8"))
        if rare > rare_utf8 + MOJIBAKE_MARGIN:
            raise InputError(
                f"read as {encoding}, {rare:.0%} of the non-ASCII characters are rare ones ({_excerpt(text)!r}); "
                f"read as utf-8, {rare_utf8:.0%}",
                file=path,
                remedy="the file is UTF-8: set encoding: utf-8",
            )
        logger.warning("%s is valid in %s and in utf-8; read as %s", path, encoding, encoding)
    if num_suspicious := count_suspicious(text):
        logger.warning("%s: %d characters are U+FFFD or private-use: decoded wrongly before?", path, num_suspicious)
    if is_utf8 and (rare := rare_share("".join(_HAN.findall(text)))) > RARE_HAN_LIMIT:
        logger.warning("%s: %.0f %% of the Chinese characters are rare: decoded wrongly before?", path, 100 * rare)


def _excerpt(text: str) -> str:
    return "".join(character for character in text if not character.isascii())[:10]


def rare_share(text: str) -> float:
    """Share of the non-ASCII characters that everyday Chinese text does not use, 0 to 1.

    Common are the symbols and the level-1 characters (the 3,755 most frequent) of GB 2312-80, and the level-1
    characters of Big5 for Traditional Chinese. Mojibake of Chinese is mostly outside of both.
    """
    num_rare = num_other = 0
    for character in text[:200_000]:
        if not character.isascii():
            num_other += 1
            num_rare += not _is_common(character)
    return num_rare / num_other if num_other else 0.0


@functools.cache
def _is_common(character: str) -> bool:
    for encoding, low, high in (("gb2312", 0xA1, 0xD7), ("big5", 0xA1, 0xC6)):
        try:
            if low <= character.encode(encoding)[0] <= high:
                return True
        except UnicodeEncodeError:
            continue
    return False


def count_suspicious(text: str) -> int:
    """Number of replacement (U+FFFD) and private-use (U+E000 to U+F8FF) characters."""
    return sum(character == "\ufffd" or "\ue000" <= character <= "\uf8ff" for character in text if character > "\udfff")
