"""Markdown for the stage ``ingest``: the source is the text, and blocks point into it."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pgrag.ingest._document import (
    Block,
    BlockKind,
    HeadingStack,
    ParsedDocument,
    brief,
    checked_blocks,
    language_tag,
)
from pgrag.ingest._text import decode, scrub

__all__ = ["front_matter", "parse_markdown"]

_FRONT = re.compile(r"\A(---|\+\+\+)[^\S\n]*\n(.*?)^(?:\1|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FRONT_LIMIT = 65_536
_KEY = re.compile(r"[A-Za-z_][\w .-]*")
_MARKUP = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|<[^<>]+>|(?<![\w])[*_]{1,3}|[*_]{1,3}(?![\w])|`+")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
_CONTINUES = frozenset(" \t\n-+*>0123456789")
_WHOLE = 65_536
_SOFT_CUT = 16_384
_HARD_CUT = 262_144
_KINDS: dict[str, BlockKind] = {
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "html_block": "paragraph",
}


def parse_markdown(data: bytes) -> ParsedDocument:
    """Read Markdown (CommonMark with tables).

    Args:
        data: The whole file.

    Returns:
        The document. Its text is the source after the front matter, unchanged, so that quotes are exact. The
        title is that of the front matter, else the first heading of level 1. Front matter becomes metadata;
        it never says who may read.

    Raises:
        ParseError: it isn't text.
    """
    decoded = decode(data)
    metadata, text = front_matter(decoded.text)
    headings = HeadingStack()
    blocks: list[Block] = []
    parser = _parser()
    for start, end, is_code in _segments(text):
        if is_code:
            blocks.append(Block("code", *_trimmed(text, start, end), headings.path))
        else:
            _read(parser, text, start, end, headings, blocks)
    first_heading = next((b.heading_path[0] for b in blocks if b.level == 1 and b.heading_path), None)
    title = _word(metadata.pop("title", None)) or first_heading
    language = _language(metadata)
    return ParsedDocument(text, title, language, metadata | decoded.metadata, checked_blocks(blocks))


def _parser() -> MarkdownIt:
    """Blocks only: what stands inside a line changes no position, and costs the most time."""
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


def _read(
    parser: MarkdownIt, text: str, start: int, end: int, headings: HeadingStack, blocks: list[Block]
) -> None:
    """Append the blocks of a segment."""
    source = text[start:end]
    starts = [start, *(start + match.end() for match in re.finditer("\n", source)), end]
    tokens = parser.parse(source)
    for index, token in enumerate(tokens):
        if token.level != 0 or token.map is None:
            continue
        first, last = _trimmed(text, starts[token.map[0]], starts[token.map[1]])
        if token.type == "heading_open":
            level = int(token.tag[1])
            path = headings.push(level, _plain(tokens[index + 1].content))
            blocks.append(Block("heading", first, last, path, level))
        elif token.type in _KINDS and first < last:
            kind = _KINDS[token.type]
            header = _table_header(tokens, index) if kind == "table" else ""
            blocks.append(Block(kind, first, last, headings.path, header=header))


def _segments(text: str) -> Iterator[tuple[int, int, bool]]:
    """Cut a long source into parts that can be parsed by themselves, so that the parser's memory stays small.

    It needs some hundred bytes a line, and time that grows with the square of the number of tables. A part
    ends before a heading, or after a blank line where no list or quotation goes on; a huge list or code block
    is cut at a line.

    Yields:
        Start, end, and whether it is the rest of a code block whose beginning was cut off.
    """
    begin, fence, is_code, after_blank = 0, "", False, False
    for match in _LINE.finditer(text) if len(text) > _WHOLE else ():
        size = match.start() - begin
        line = match.group()
        apart = not fence and (line[0] == "#" or (after_blank and line[0] not in _CONTINUES))
        if size >= _HARD_CUT or (apart and size >= _SOFT_CUT):
            yield begin, match.start(), is_code
            begin, is_code = match.start(), bool(fence)
        marks = _FENCE.match(line)
        if marks is not None and not fence:
            fence = marks.group(1)
        elif marks is not None and marks.group(1).startswith(fence) and not marks.group(2).strip():
            fence = ""
            if is_code:
                yield begin, match.end(), True
                begin, is_code = match.end(), False
        after_blank = line.isspace()
    if begin < len(text):
        yield begin, len(text), is_code


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Whole lines, without blank ones at either end; the first line's indentation stays (code needs it)."""
    end = start + len(text[start:end].rstrip())
    while start < end and text[start] == "\n":
        start += 1
    return start, end


def _plain(source: str) -> str:
    """A heading's words, without the commonest markup."""
    text = _MARKUP.sub(lambda match: match.group(1) or "", source)
    return " ".join(_ESCAPE.sub(r"\1", text).split())


def _table_header(tokens: list[Token], index: int) -> str:
    cells = []
    for token in tokens[index:]:
        if token.type == "thead_close":
            break
        if token.type == "inline":
            cells.append(_plain(token.content))
    return " | ".join(cells)


def _word(value: Any) -> str | None:
    return (brief(str(value)) or None) if isinstance(value, str | int | float) and value is not True else None


def _language(metadata: dict[str, Any]) -> str | None:
    """Take the language out of front matter; what is no tag, such as ``python``, stays there."""
    for name in ("language", "lang"):
        # YAML reads the tag of Norwegian as false.
        value = "no" if metadata.get(name) is False else metadata.get(name)
        if (tag := language_tag(_word(value))) is not None:
            del metadata[name]
            return tag
    return None


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split off front matter: YAML between ``---`` (flat pairs and lists only) or TOML between ``+++``.

    Args:
        text: A whole Markdown source, with line feeds.

    Returns:
        JSON-ready metadata, and the text behind it. What isn't closed or holds no pair is text.
    """
    match = _FRONT.match(text[:_FRONT_LIMIT])
    if match is None:
        return {}, text
    if match.group(1) == "+++":
        try:
            found = _json_ready(tomllib.loads(match.group(2)))
        except (ValueError, RecursionError):
            return {}, text
    else:
        found = _flat_yaml(match.group(2))
    return (found, text[match.end() :]) if found else ({}, text)


def _json_ready(value: Any) -> Any:
    """The value as jsonb can hold it: dates, NaN and the infinities as strings, no NUL."""
    if isinstance(value, dict):
        return {scrub(key)[0]: _json_ready(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, str):
        return scrub(value)[0]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _flat_yaml(source: str) -> dict[str, Any]:
    """``key: value``, ``key: [a, b]`` and ``key:`` with ``- item`` lines; deeper structure is left out."""
    found: dict[str, Any] = {}
    key = ""
    for line in source.split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, colon, value = stripped.partition(":")
        if colon and not line[0].isspace() and not value[:1].strip() and _KEY.fullmatch(name):
            key = name.rstrip()
            found[key] = _scalar(value)
        elif key and stripped.startswith("- ") and (found[key] is None or isinstance(found[key], list)):
            found[key] = [*(found[key] or []), _scalar(stripped[2:])]
        elif not line[0].isspace():
            return {}  # not front matter: a thematic break, prose, another
    return {key: value for key, value in found.items() if value is not None}


def _scalar(source: str) -> Any:
    value = source.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    value = re.split(r"\s#", value, maxsplit=1)[0].strip()
    if len(value) >= 2 and value[0] == "[" and value[-1] == "]":
        return [_scalar(item) for item in value[1:-1].split(",") if item.strip()]
    if value in ("", "~", "null", "|", ">"):
        return None
    if value in ("true", "false"):
        return value == "true"
    return int(value) if re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", value) else value
