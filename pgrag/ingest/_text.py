"""Bytes to clean text, for every kind of file that the stage ``ingest`` reads; and plain text itself."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from charset_normalizer import from_bytes

from pgrag.errors import ParseError
from pgrag.ingest._document import Block, ParsedDocument

__all__ = ["Decoded", "decode", "paragraphs", "parse_text", "scrub"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Labels by which the web means a superset of what they name, https://encoding.spec.whatwg.org/#names-and-labels
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}
_CHARSETS = re.compile(
    r"utf-8|cp\d{3,4}|iso8859-\d+|iso2022_\w+|koi8-[rtu]|mac-\w+|big5(hkscs)?|gb18030|euc_\w+|shift_jis\w*|johab|tis-620|ptcp154|kz1048"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?|\x0c")
_PARAGRAPH = re.compile(r"\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*")
_HIGH = re.compile(rb"[\x80-\xff]")
_CONTROL_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_SAMPLE = 65_536
_MOST_PARAGRAPHS = 100_000


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text made from bytes.

    Attributes:
        text: Clean, with line feeds only.
        encoding: Python's name of the encoding it was read by.
        replaced: How many characters were undecodable, controls or lone surrogates.
    """

    text: str
    encoding: str
    replaced: int

    @property
    def metadata(self) -> dict[str, str | int]:
        """What is worth keeping about how the text was read."""
        found: dict[str, str | int] = {} if self.encoding == "utf-8" else {"encoding": self.encoding}
        return found | ({"replaced_characters": self.replaced} if self.replaced else {})


def scrub(text: str) -> tuple[str, int]:
    """Make text that PostgreSQL can hold.

    Args:
        text: Any string.

    Returns:
        The text with line feeds for every line end and form feed, without other C0 controls, U+FFFD for each
        lone surrogate; and how many controls and surrogates there were.
    """
    text = _NEWLINE.sub("\n", text)
    text, controls = _CONTROL.subn("", text)
    text, surrogates = _SURROGATE.subn("\ufffd", text)
    return text, controls + surrogates


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Read bytes as text, in the encoding that they show or declare.

    Tried are: a byte order mark, the shape of UTF-16, UTF-8, what the file declares, detection.

    Valid UTF-8 goes before a declaration: bytes of another encoding are hardly ever valid UTF-8, and
    declarations are often wrong.

    Args:
        data: The whole file.
        declared: The encoding that the file names, if any; an unknown name counts as none.

    Returns:
        Clean text; what can't be decoded is U+FFFD.

    Raises:
        ParseError: it isn't text.
    """
    data, encoding = _encoding(data, declared)
    text = data.decode(encoding, errors="replace")
    undecodable = 0 if encoding == "utf-8" else text.count("\ufffd")
    clean, replaced = scrub(text)
    if replaced > 0.3 * len(text) and clean.strip():
        raise ParseError("binary data, not text", "Give the file the extension of what it is.")
    return Decoded(clean, encoding, replaced + undecodable)


def _encoding(data: bytes, declared: str | None) -> tuple[bytes, str]:
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :], name
    wide = _utf16_by_shape(data[:4096])
    if wide is not None:
        return data, wide
    named = _known(declared)
    if named is not None and named.startswith("iso2022"):
        return data, named  # seven-bit: valid UTF-8 whatever it means
    if _decodes(data, "utf-8"):
        return data, "utf-8"
    if len(_CONTROL_BYTE.findall(data[:_SAMPLE])) > 0.05 * min(len(data), _SAMPLE):
        raise ParseError("binary data, not text", "Give the file the extension of what it is.")
    if named is not None and _decodes(data, named):
        return data, named
    return data, _detected(data)


def _known(label: str | None) -> str | None:
    """Python's name for a charset label; None for what is unknown or no charset (``base64``)."""
    try:
        name = codecs.lookup((label or "").strip()).name
    except (LookupError, ValueError):
        return None
    name = _SUPERSETS.get(name, name)
    return name if _CHARSETS.fullmatch(name) else None


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeError:
        return False
    return True


def _utf16_by_shape(sample: bytes) -> str | None:
    """UTF-16 without a mark: in most scripts one byte of two is mostly zero, and always the same one."""
    if len(sample) < 4:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) < 0.4 * (len(sample) // 2) or min(even, odd) > 0.05 * (len(sample) // 2):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _detected(data: bytes) -> str:
    first = _HIGH.search(data)
    start = max(0, first.start() - 1024) if first else 0
    sample = data[start : start + _SAMPLE]
    # Few foreign bytes: a western language, where detectors guess wildly. A Cyrillic or Asian text has many.
    if len(_HIGH.findall(sample)) < 0.05 * len(sample):
        return "cp1252"
    best = from_bytes(sample).best()
    return (_known(best.encoding) if best is not None else None) or "cp1252"


def paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Spans of text between blank lines, without the white space around them."""
    for match in _PARAGRAPH.finditer(text):
        yield match.start(), match.start() + len(match.group().rstrip())


def parse_text(data: bytes) -> ParsedDocument:
    """Plain text: paragraphs between blank lines; no title, no headings.

    In a text of many megabytes short paragraphs share a block, so that there are at most 100,000.

    Args:
        data: The whole file.

    Returns:
        The document; its text is the file's.

    Raises:
        ParseError: it isn't text.
    """
    decoded = decode(data)
    blocks: list[Block] = []
    least = len(decoded.text) // _MOST_PARAGRAPHS
    begin = None
    for start, end in paragraphs(decoded.text):
        begin = start if begin is None else begin
        if end - begin >= least:
            blocks.append(Block("paragraph", begin, end))
            begin = None
    if begin is not None:
        blocks.append(Block("paragraph", begin, len(decoded.text.rstrip())))
    return ParsedDocument(decoded.text, metadata=dict(decoded.metadata), blocks=tuple(blocks))
