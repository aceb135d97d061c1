"""What the stage ``ingest`` makes of a file: its text, and where the structure lies in that text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from pgrag.errors import ParseError

__all__ = ["Block", "BlockKind", "HeadingStack", "ParsedDocument", "brief", "checked_blocks", "language_tag"]

_MAX_BLOCKS = 250_000
# Language, and then script, region and variants, as in BCP 47; or what is private or was registered before it.
_TAG = re.compile(r"(?:[a-z]{2,3}|[ix](?=-))(?:-[a-z0-9]{1,8})*", re.IGNORECASE)

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a document's text that belongs together.

    Attributes:
        kind: What it is.
        char_start: First character in ``ParsedDocument.text``, from 0.
        char_end: One past its last character.
        heading_path: The headings above it, outermost first; a heading's own path ends with itself.
        level: 1 (outermost) to 6 for a heading, else None.
        page: The page it starts on, from 1; None where the kind of file has no pages.
        header: The column names of a table as ``a | b``, else empty.
    """

    kind: BlockKind
    char_start: int
    char_end: int
    heading_path: tuple[str, ...] = ()
    level: int | None = None
    page: int | None = None
    header: str = ""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file as text with structure; which URI it gets is the caller's business.

    Attributes:
        text: The whole plain text that is stored. No NUL, no other C0 control but tab and line feed, no lone
            surrogate.
        title: What the file calls itself, or None.
        language: BCP 47 tag that the file declares, or None; nothing is guessed.
        metadata: JSON-ready values: front matter, the encoding where it isn't UTF-8, ``replaced_characters``
            where some were.
        blocks: In order and without overlap. What lies between them is white space, or text without
            structure.
    """

    text: str
    title: str | None = None
    language: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()


def brief(text: str, length: int = 200) -> str:
    """Text as a name: one line, not longer than ``length`` characters; it is repeated with every chunk."""
    text = " ".join(text[: 4 * length].split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def language_tag(declared: str | None) -> str | None:
    """Return what a file declares as its language if that is a BCP 47 tag, else None; ``en_US`` is ``en-US``."""
    tag = (declared or "").strip().replace("_", "-")
    return tag if _TAG.fullmatch(tag) else None


def checked_blocks(blocks: list[Block]) -> tuple[Block, ...]:
    """Refuse a document of so many blocks that memory would not be bounded.

    Raises:
        ParseError: there are over 250,000, which is a fifth of a gigabyte.
    """
    if len(blocks) > _MAX_BLOCKS:
        raise ParseError(
            f"more than {_MAX_BLOCKS:,} headings, paragraphs and lists", "Split it into smaller files."
        )
    return tuple(blocks)


class HeadingStack:
    """The headings open at a point of the document."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []
        self.path: tuple[str, ...] = ()

    def push(self, level: int, text: str) -> tuple[str, ...]:
        """Close what is at ``level`` or deeper, open a heading there, and give its path."""
        text = brief(text)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, text))
        self.path = tuple(name for _, name in self._open if name)
        return self.path
