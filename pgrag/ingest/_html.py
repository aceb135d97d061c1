"""HTML for the stage ``ingest``: what a reader would see, with headings, lists, tables and code."""

from __future__ import annotations

import re
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pgrag.errors import ParseError
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

__all__ = ["parse_html"]

_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)
_XML = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""", re.IGNORECASE)
_DROPPED = frozenset(
    "script style nav noscript template svg canvas iframe object embed audio video head"  # noqa: SIM905
    " select datalist button".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCK = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset"  # noqa: SIM905
    " figcaption figure footer form header hgroup hr html legend li main menu ol p pre section summary"
    " table tbody td tfoot th thead tr ul".split()
)
_LISTS = frozenset(("ul", "ol", "menu", "dl"))
_SPACE = re.compile(r"[ \t\n\r\f\v\u00a0]+")
_BLANK = re.compile(r"\n{2,}")
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
_SELF_CLOSING = frozenset(
    "area base br col hr img input link meta param source track wbr p li dt dd tr td th"  # noqa: SIM905
    " thead tbody tfoot option optgroup colgroup rt rp".split()
)
_MAX_TAGS = 1_000_000
_MAX_DEPTH = 4_000
_CELL_LIMIT = 2_000
_KEPT_META = frozenset(("description", "author", "keywords"))


def parse_html(data: bytes) -> ParsedDocument:
    """Read HTML, however broken.

    Args:
        data: The whole file.

    Returns:
        The document. Scripts, styles, navigation and hidden elements are left out; a table's row is a line
        ``a | b``, a list's item a line ``- a``, preformatted text is kept. A table that lays out a page is
        read as plain blocks. The title is ``<title>``, else the first ``<h1>``.

    Raises:
        ParseError: it isn't text.
    """
    declared = _META.search(data[:4096]) or _XML.search(data[:200])
    decoded = decode(data, declared.group(1).decode("ascii") if declared else None)
    _refuse_bombs(decoded.text)
    tree = LexborHTMLParser(decoded.text)
    title = _title(tree)
    tree.strip_tags(list(_DROPPED - {"head"}))
    root = tree.root
    writer = _Writer()
    if root is not None:
        _walk(root, writer)
    writer.flush()
    title = title or writer.first_heading
    language = language_tag(root.attributes.get("lang") if root is not None else None)
    text = "".join(writer.parts)
    return ParsedDocument(
        text, title, language, _metadata(tree) | decoded.metadata, checked_blocks(writer.blocks)
    )


def _refuse_bombs(source: str) -> None:
    """Refuse what would take a tree of gigabytes, or time that grows with the square of its depth."""
    if source.count("<") > _MAX_TAGS:
        raise ParseError(f"more than {_MAX_TAGS:,} tags", "Split it into smaller files.")
    depth = 0
    for match in _TAG.finditer(source) if source.count("<") > _MAX_DEPTH else ():
        if match.group(2).lower() not in _SELF_CLOSING:
            depth = max(0, depth - 1) if match.group(1) else depth + 1
        if depth > _MAX_DEPTH:
            raise ParseError(
                f"elements nested, or never closed, more than {_MAX_DEPTH:,} deep", "Repair the file."
            )


class _Writer:
    """Collects text and blocks; inline text gathers in ``pending`` until a block ends."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.blocks: list[Block] = []
        self.headings = HeadingStack()
        self.first_heading: str | None = None
        self.pending: list[str] = []
        self.list_items: list[str] | None = None
        self.marker = ""
        self._length = 0

    def flush(self) -> None:
        """End a block of inline text."""
        if not self.pending:
            return
        source = "\n".join(_SPACE.sub(" ", line).strip() for line in "".join(self.pending).split("\x0b"))
        self.pending.clear()
        for text in filter(None, _BLANK.split(source.strip())):
            if self.list_items is not None:
                self.item(text)
            else:
                self.write("paragraph", text)

    def item(self, text: str) -> None:
        """Add to the list: the item's first text goes behind its marker, what follows is indented."""
        if self.list_items is not None:
            self.list_items.append(self.marker + text.replace("\n", "\n" + " " * len(self.marker)))
            self.marker = " " * len(self.marker)

    def end_list(self) -> None:
        """End a list with all that is nested in it."""
        self.flush()
        items, self.list_items = self.list_items, None
        if items:
            self.write("list", "\n".join(items))

    def write(self, kind: BlockKind, text: str, *, level: int | None = None, header: str = "") -> None:
        """Append a block, a blank line after the one before."""
        if self.parts:
            self.parts.append("\n\n")
            self._length += 2
        start = self._length
        self.parts.append(text)
        self._length += len(text)
        if level is not None:
            path = self.headings.push(level, text)
            if level == 1:
                self.first_heading = self.first_heading or path[-1]
        self.blocks.append(Block(kind, start, self._length, self.headings.path, level, header=header))


def _walk(root: LexborNode, writer: _Writer) -> None:
    """Visit in document order with a stack of our own: pages nest deeper than Python recurses."""
    lists: list[tuple[str, int]] = []  # open lists: tag, items so far
    node: LexborNode | None = root
    while node is not None:
        if _enter(node, writer, lists) and (child := node.child) is not None:
            node = child
            continue
        while node is not None:
            _leave(node, writer, lists)
            if node.mem_id == root.mem_id:
                return
            if (sibling := node.next) is not None:
                node = sibling
                break
            node = node.parent


def _enter(node: LexborNode, writer: _Writer, lists: list[tuple[str, int]]) -> bool:
    """Take what is at a node; True if its children are still to be visited."""
    tag = node.tag or ""
    if tag == "-text":
        writer.pending.append((node.text_content or "").replace("\x0b", " "))
        return False
    if tag == "br":
        writer.pending.append("\x0b")
        return False
    if tag == "img":
        writer.pending.append(f" {node.attributes.get('alt') or ''} ")
        return False
    if tag.startswith(("-", "!")) or tag in _DROPPED or _is_hidden(node):
        return False
    if tag not in _BLOCK and tag not in _HEADINGS:
        return True
    writer.flush()
    if tag in _HEADINGS and not lists:
        text = _flat(node)
        if text:
            writer.write("heading", text, level=_HEADINGS[tag])
        return False
    if tag == "pre":
        text = scrub(_text_of(node))[0].strip("\n").rstrip()
        if text and lists:
            writer.item(text)
        elif text:
            writer.write("code", text)
        return False
    if tag == "table" and not lists and (rows := _rows(node)) is not None:
        if rows:
            writer.write("table", "\n".join(rows), header=rows[0] if len(rows) > 1 else "")
        return False
    if tag in _LISTS:
        lists.append((tag, 0))
        if len(lists) == 1:
            writer.list_items = []
            writer.marker = ""
    elif tag in ("li", "dt", "dd") and lists:
        kind, count = lists[-1]
        lists[-1] = (kind, count + 1)
        indent = "  " * min(len(lists) - 1, 8)
        writer.marker = indent + {"ol": f"{count + 1}. ", "dl": "" if tag == "dt" else "  "}.get(kind, "- ")
    return True


def _leave(node: LexborNode, writer: _Writer, lists: list[tuple[str, int]]) -> None:
    tag = node.tag or ""
    if tag not in _BLOCK:
        return
    writer.flush()
    if tag in _LISTS and lists and lists[-1][0] == tag and not _is_hidden(node):
        lists.pop()
        if not lists:
            writer.end_list()


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    style = attributes.get("style")
    return "hidden" in attributes or (style is not None and _HIDDEN_STYLE.search(style) is not None)


def _text_of(node: LexborNode) -> str:
    return node.text(deep=True)


def _flat(node: LexborNode) -> str:
    return " ".join(scrub(_text_of(node))[0].split())


def _rows(table: LexborNode) -> list[str] | None:
    """The rows of a table of data; None for a table that lays out a page."""
    if table.css_first("table table, h1, h2, h3, pre, ul, ol, form, p + p") is not None:
        return None
    rows = []
    for row in table.css("tr"):
        cells = [_flat(cell) for cell in row.css("td, th")]
        if any(len(cell) > _CELL_LIMIT for cell in cells):
            return None
        if any(cells):
            rows.append(" | ".join(cells))
    return rows


def _title(tree: LexborHTMLParser) -> str | None:
    node = tree.css_first("head > title") or tree.css_first("title")
    return (brief(_flat(node)) or None) if node is not None else None


def _metadata(tree: LexborHTMLParser) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in tree.css("meta[name][content]"):
        name = (node.attributes.get("name") or "").lower()
        content = " ".join(scrub(node.attributes.get("content") or "")[0].split())
        if name in _KEPT_META and content:
            found.setdefault(name, content[:1000])
    return found
