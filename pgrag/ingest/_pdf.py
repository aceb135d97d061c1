"""PDF for the stage ``ingest``: text by page, with headings told by their size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium

from pgrag.errors import ParseError
from pgrag.ingest._document import Block, BlockKind, HeadingStack, ParsedDocument, brief, checked_blocks
from pgrag.ingest._text import scrub

__all__ = ["parse_pdf"]

_MAX_CHARACTERS = 32_000_000
_HEADING_RATIO = 1.15
_PARAGRAPH_GAP = 0.55
_LINE = re.compile(r"[^\r\n]+")
_HYPHEN = re.compile("[\x02\ufffe\u00ad]")
_JUNK_TITLE = re.compile(
    r"untitled.*|title|microsoft (word|powerpoint|excel)\b.*|.*\.(docx?|pages|tex|dvi|indd|pptx?|pdf|rtf)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Line:
    page: int
    text: str
    size: float  # height of the font's box in points, to a half; 0 where unknown
    gap: float  # white space above, in heights of this line; infinite at the top of a page


def parse_pdf(path: Path) -> ParsedDocument:
    """Read the text of a PDF.

    Args:
        path: A file that exists.

    Returns:
        The document: pages parted by blank lines, a paragraph where the gap between lines is wide, a heading
        where a short line is set larger than the body. ``metadata["pages"]`` counts pages,
        ``metadata["pages_without_text"]`` those that gave none.

    Raises:
        ParseError: encrypted, broken, without text on any page, or with too much of it.
    """
    with path.open("rb") as file:
        if b"%PDF-" not in file.read(1024):
            raise ParseError(
                "broken PDF: the file doesn't begin like one",
                "Export it again, or give it its own extension.",
            )
    try:
        document = pdfium.PdfDocument(str(path))
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.raw.FPDF_ERR_PASSWORD:
            raise ParseError(
                "encrypted PDF: it asks for a password", "Save a copy without a password."
            ) from error
        raise ParseError(f"broken PDF: {_said(error)}", "Export it again, or repair it.") from error
    try:
        return _read(document)
    except pdfium.PdfiumError as error:
        raise ParseError(f"broken PDF: {_said(error)}", "Export it again, or repair it.") from error
    finally:
        document.close()


def _said(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


def _read(document: Any) -> ParsedDocument:
    count = len(document)
    lines: list[_Line] = []
    with_text = characters = replaced = 0
    for number in range(count):
        before = len(lines)
        for line, dropped in _page_lines(document, number):
            lines.append(line)
            characters += len(line.text)
            replaced += dropped
        with_text += len(lines) > before
        if characters > _MAX_CHARACTERS:
            raise ParseError(f"more than {_MAX_CHARACTERS:,} characters of text", "Split the document.")
    if not with_text:
        raise ParseError("scanned PDF without text: run OCR first", "For example: ocrmypdf in.pdf out.pdf")
    metadata: dict[str, Any] = {"pages": count}
    if with_text < count:
        metadata["pages_without_text"] = count - with_text
    if replaced:
        metadata["replaced_characters"] = replaced
    text, blocks = _assemble(lines, _heading_levels(lines))
    information = document.get_metadata_dict()
    for key in ("Author", "Subject", "Keywords"):
        if value := _clean(information.get(key, "")):
            metadata[key.lower()] = value[:1000]
    title: str | None = brief(scrub(information.get("Title", ""))[0])
    if not title or _JUNK_TITLE.fullmatch(title):
        title = next(
            (block.heading_path[-1] for block in blocks if block.kind == "heading" and block.page == 1), None
        )
    return ParsedDocument(text, title, None, metadata, blocks)


def _clean(value: str) -> str:
    return " ".join(scrub(value)[0].split())


def _page_lines(document: Any, number: int) -> Iterator[tuple[_Line, int]]:
    try:
        page = document[number]
    except pdfium.PdfiumError:
        return  # one broken page: it counts as one without text
    try:
        textpage = page.get_textpage()
        raw = textpage.get_text_range()
        # Boxes are found by character index: the string's own, unless characters lie outside the BMP.
        exact = len(raw) == textpage.count_chars()
        above: float | None = None
        for match in _LINE.finditer(raw):
            source = match.group()
            stripped = source.lstrip()
            marked = stripped.rstrip().endswith(("\x02", "\ufffe"))
            text, dropped = scrub(_HYPHEN.sub("", stripped).rstrip())
            if not text.strip():
                continue
            size, gap = 0.0, float("inf") if above is None else 0.0
            if exact:
                _, bottom, _, top = textpage.get_charbox(
                    match.start() + len(source) - len(stripped), loose=True
                )
                height = top - bottom
                size = round(2 * height) / 2
                if above is not None and height > 0:
                    gap = (above - top) / height
                above = bottom
            else:
                above = 0.0
            yield _Line(number + 1, text + ("\x02" if marked else ""), size, gap), dropped
    finally:
        page.close()


def _heading_levels(lines: list[_Line]) -> dict[float, int]:
    """Heading level by size: what is clearly larger than most text, largest first, at most three levels."""
    weights: Counter[float] = Counter()
    for line in lines:
        weights[line.size] += len(line.text)
    body = max(weights, key=lambda size: (weights[size], -size))
    if body <= 0:
        return {}
    sizes = sorted((size for size in weights if size >= _HEADING_RATIO * body), reverse=True)
    candidates = sum(_may_head(line) and line.size in sizes for line in lines)
    if candidates * 3 > len(lines):
        return {}  # a form, a drawing, a slide: size says nothing here
    return {size: min(rank, 3) for rank, size in enumerate(sizes, 1)}


def _may_head(line: _Line) -> bool:
    return 2 <= len(line.text) <= 120 and any(character.isalpha() for character in line.text)


def _assemble(lines: list[_Line], levels: dict[float, int]) -> tuple[str, tuple[Block, ...]]:
    parts: list[str] = []
    blocks: list[Block] = []
    headings = HeadingStack()
    length = 0
    for group in _groups(lines, levels):
        text = "\n".join(line.text for line in group).replace("\x02\n", "").replace("\x02", "").strip()
        if not text:
            continue
        if parts:
            parts.append("\n\n")
            length += 2
        first = group[0]
        level = levels.get(first.size) if _may_head(first) else None
        if level is not None:
            headings.push(level, text)
        kind: BlockKind = "paragraph" if level is None else "heading"
        blocks.append(Block(kind, length, length + len(text), headings.path, level, first.page))
        parts.append(text)
        length += len(text)
    return "".join(parts), checked_blocks(blocks)


def _groups(lines: list[_Line], levels: dict[float, int]) -> Iterator[list[_Line]]:
    """Lines that make one block: one page, no wide gap, headings apart and of at most three lines."""
    group: list[_Line] = []
    for line in lines:
        if group:
            last = group[-1]
            heads, was = line.size in levels and _may_head(line), last.size in levels and _may_head(last)
            apart = line.page != last.page or line.gap > _PARAGRAPH_GAP or heads != was
            if apart or (heads and (line.size != last.size or len(group) == 3)):
                yield group
                group = []
        group.append(line)
    if group:
        yield group
