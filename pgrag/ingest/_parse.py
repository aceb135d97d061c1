"""The door of parsing in the stage ``ingest``: which parser reads a file, and what is refused before."""

from __future__ import annotations

import stat
from pathlib import Path

from pgrag.errors import ParseError
from pgrag.ingest._document import ParsedDocument
from pgrag.ingest._html import parse_html
from pgrag.ingest._markdown import parse_markdown
from pgrag.ingest._pdf import parse_pdf
from pgrag.ingest._text import parse_text

__all__ = ["KINDS", "PARSER_VERSION", "check_file", "kind_of", "parse_file", "unreadable"]

PARSER_VERSION = "1"
"""Part of every content hash: a new value makes the next ingest parse everything again."""

KINDS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
_MEGABYTE = 1_000_000
# A syntax tree takes about twenty times its file; a PDF is mostly pictures and is never held whole.
_LIMITS = {"markdown": 16 * _MEGABYTE, "html": 16 * _MEGABYTE, "text": 64 * _MEGABYTE, "pdf": 512 * _MEGABYTE}


def kind_of(path: Path) -> str:
    """Which kind of document a file is, by its extension.

    Args:
        path: Any path; the file isn't touched.

    Returns:
        ``markdown``, ``text``, ``html`` or ``pdf``.

    Raises:
        ParseError: none of them.
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(extension.removeprefix(".") for extension in KINDS)
        raise ParseError(
            f"{path.suffix or 'no extension'}: not a kind pgrag reads ({known})",
            "Convert it, or leave it out.",
        )
    return kind


def check_file(path: Path, *, max_bytes: int | None = None) -> str:
    """Refuse a file by its name and size alone, without opening it.

    Args:
        path: Any path.
        max_bytes: As for :func:`parse_file`.

    Returns:
        Its kind, as :func:`kind_of` says.

    Raises:
        ParseError: missing, not a regular file, not a kind pgrag reads, empty, or too large.
    """
    kind = kind_of(path)
    limit = _LIMITS[kind] if max_bytes is None else max_bytes
    try:
        status = path.stat()
    except OSError as error:
        raise unreadable(error) from error
    if not stat.S_ISREG(status.st_mode):
        raise ParseError("not a regular file", "Leave it out.")
    if status.st_size == 0:
        raise ParseError("empty file", "Leave it out.")
    if status.st_size > limit:
        raise ParseError(
            f"{status.st_size / _MEGABYTE:,.1f} MB is over the limit for {kind}, {limit / _MEGABYTE:,.4g} MB",
            "Split it into smaller files.",
        )
    return kind


def unreadable(error: OSError) -> ParseError:
    """Say in one way that the system refused to let a file be read."""
    reason = (
        "no permission to read it" if isinstance(error, PermissionError) else error.strerror or str(error)
    )
    return ParseError(f"can't be read: {reason}", "Check that it exists, and its permissions.")


def parse_file(path: Path, *, max_bytes: int | None = None) -> ParsedDocument:
    """Read a file as a document.

    Args:
        path: A regular file, or a link to one.
        max_bytes: Largest file that is read; None for the limit of its kind: 16 MB for Markdown and HTML,
            64 MB for plain text, 512 MB for PDF. Peak memory stays under 1 GB within these.

    Returns:
        Its text, title and structure; at least one character of the text isn't white space.

    Raises:
        ParseError: what :func:`check_file` refuses, no permission, or broken, encrypted, or without text.
    """
    kind = check_file(path, max_bytes=max_bytes)
    try:
        document = parse_pdf(path) if kind == "pdf" else _PARSERS[kind](path.read_bytes())
    except OSError as error:
        raise unreadable(error) from error
    if not document.text or document.text.isspace():
        raise ParseError("no text in the file", "Leave it out.")
    return document


_PARSERS = {"markdown": parse_markdown, "text": parse_text, "html": parse_html}
