"""The stage ``chunk``: a parsed document becomes chunks that follow its structure within a token budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # ingest calls this stage, so at run time only the shape counts
    from pgrag.ingest._document import BlockKind, ParsedDocument

__all__ = ["CHUNKER_VERSION", "Chunk", "approximate_tokens", "chunk_document"]

CHUNKER_VERSION = "1"
"""Part of every content hash: a new value makes the next ingest chunk everything again."""

_SEPARATOR = " › "
_CHARACTERS_PER_TOKEN = 32  # a chunk's hard limit, for text that a tokenizer takes for a few huge words
_WORDS_AT_ONCE = 16
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[A-Za-z]{{1,6}}|[0-9]{{1,3}}|[^\w\s]|_|[{_CJK}]|[^\W_A-Za-z0-9{_CJK}]{{1,2}}")
_ITEM = re.compile(r"\n(?= {0,3}(?:[-*+•]|\d{1,9}[.)])\s)")
_LINE = re.compile(r"\n(?=[^\S\n]*\S)")
_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*\s+|[。！？．]+[”’」』）]*\s*|\n\s*\n\s*")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Za-z]|\b(?:e\.g|i\.e|cf|vs|etc|mr|mrs|ms|dr|prof|st|no|nos|fig|figs|eq|sec|ch|vol|pp|al|inc|ltd|co|jr|sr|approx|ca|bzw|z\.b|nr|abs))\.$",
    re.IGNORECASE,
)
_GRAINS: dict[BlockKind, tuple[str, ...]] = {
    "heading": ("sentences", "words", "word", "characters"),
    "paragraph": ("sentences", "lines", "words", "word", "characters"),
    "list": ("items", "lines", "sentences", "words", "word", "characters"),
    "table": ("lines", "words", "word", "characters"),
    "code": ("lines", "words", "word", "characters"),
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: what is indexed, embedded and found.

    Attributes:
        ordinal: Place in the document, from 0.
        heading_path: The headings that all of it stands under, outermost first.
        page: Page of its first character, from 1; None where there are no pages.
        char_start: First character in the document's text, from 0.
        char_end: One past its last character.
        content: ``text[char_start:char_end]``.
        context: ``title › heading › heading``, and the column names where a table goes on: indexed and
            embedded with the content.
        token_count: Tokens of the content, as the sum over its pieces.
    """

    ordinal: int
    heading_path: tuple[str, ...]
    page: int | None
    char_start: int
    char_end: int
    content: str
    context: str
    token_count: int


@dataclass(slots=True)
class _Stretch:
    """A block of the document, or the text between two."""

    kind: BlockKind
    start: int
    end: int
    path: tuple[str, ...]
    page: int | None = None
    header: str = ""


@dataclass(slots=True)
class _Piece:
    """A stretch that goes into one chunk whole, unless it is split. ``reach`` is where the next begins."""

    start: int
    end: int
    reach: int
    tokens: int
    block: _Stretch
    grain: int = -1  # how finely it was cut: an index into _GRAINS[kind], -1 for a whole block


@dataclass(slots=True)
class _Section:
    """A heading with what stands under it up to the next heading, or several tiny ones."""

    path: tuple[str, ...]
    blocks: list[_Stretch]
    reach: int
    depth: int = 0  # of the first heading's parent
    tokens: int | None = None  # None: more than tiny
    bare: bool = field(default=False)  # nothing but headings


def approximate_tokens(text: str) -> int:
    """Estimate how many WordPiece tokens a text has, at millions of words a second.

    Args:
        text: Any string.

    Returns:
        ASCII words, counted again every six letters or three digits, other letters in twos, CJK characters
        and punctuation one by one. White space is free, so the counts of parts that are split at it add up.
    """
    return len(_TOKEN.findall(text))


def chunk_document(
    document: ParsedDocument,
    *,
    max_tokens: int = 256,
    count_tokens: Callable[[str], int] = approximate_tokens,
) -> list[Chunk]:
    """Cut a document into chunks.

    Sections are kept apart, but neighbours under one parent that are tiny (an eighth of the budget) share a
    chunk. Within a section, blocks are put together while they fit; one that doesn't fit is cut at items,
    rows or lines, at sentences, between words, and only then inside a word. Each piece is counted once a
    level of cutting, so time is linear.

    Args:
        document: Text with structure.
        max_tokens: Most tokens of context and content together, at least 16. Context takes at most a quarter.
        count_tokens: Tokens of a string, without the special ones a model adds; called on small pieces only.

    Returns:
        In order. Every character that isn't white space lies in exactly one chunk. The same document gives
        the same chunks.

    Raises:
        ValueError: ``max_tokens`` is under 16.
    """
    if max_tokens < 16:
        raise ValueError(f"max_tokens must be at least 16, got {max_tokens}")
    return _Chunker(document, max_tokens, count_tokens).run()


class _Chunker:
    def __init__(self, document: ParsedDocument, max_tokens: int, count_tokens: Callable[[str], int]) -> None:
        self.text = document.text
        self.title = document.title or ""
        self.blocks = document.blocks
        self.max_tokens = max_tokens
        self.max_characters = max_tokens * _CHARACTERS_PER_TOKEN
        self.count = count_tokens
        self.contexts: dict[tuple[tuple[str, ...], str], tuple[str, int]] = {}
        self.chunks: list[Chunk] = []

    def run(self) -> list[Chunk]:
        for section in self._merged():
            self._pack(section)
        return self.chunks

    # Sections

    def _whole(self) -> Iterator[_Stretch]:
        """The blocks, and paragraphs for text that lies in none."""
        last = _Stretch("paragraph", 0, 0, ())
        for block in self.blocks:
            yield from self._between(last, block.char_start)
            kind, path = block.kind, block.heading_path
            last = _Stretch(kind, block.char_start, block.char_end, path, block.page, block.header)
            yield last
        yield from self._between(last, len(self.text))

    def _between(self, last: _Stretch, end: int) -> Iterator[_Stretch]:
        found = self.text[last.end : end].strip()
        if found:
            start = self.text.index(found[0], last.end)
            yield _Stretch("paragraph", start, start + len(found), last.path, last.page)

    def _sections(self) -> Iterator[_Section]:
        blocks: list[_Stretch] = []
        for block in self._whole():
            if block.kind == "heading" and blocks:
                yield self._section(blocks, block.start)
                blocks = []
            blocks.append(block)
        if blocks:
            yield self._section(blocks, len(self.text))

    def _section(self, blocks: list[_Stretch], reach: int) -> _Section:
        first = blocks[0]
        path = first.path
        tiny = self.max_tokens // 8
        tokens: int | None = None
        if reach - first.start <= tiny * _CHARACTERS_PER_TOKEN:
            tokens = self.count(self.text[first.start : reach])
            tokens = tokens if tokens <= tiny else None
        bare = len(blocks) == 1 and first.kind == "heading"
        return _Section(path, blocks, reach, max(len(path) - 1, 0), tokens, bare)

    def _merged(self) -> Iterator[_Section]:
        """Sections, with tiny neighbours put together and a bare heading put to what stands under it."""
        held: _Section | None = None
        for section in self._sections():
            if held is None:
                held = section
            elif (
                held.bare
                and section.path[: len(held.path)] == held.path
                and len(section.path) > len(held.path)
            ):
                tokens = (
                    None if held.tokens is None or section.tokens is None else held.tokens + section.tokens
                )
                held = _Section(
                    section.path,
                    held.blocks + section.blocks,
                    section.reach,
                    section.depth,
                    tokens,
                    section.bare,
                )
            elif self._belong(held, section):
                path = _common(held.path, section.path)
                tokens = (held.tokens or 0) + (section.tokens or 0)
                held = _Section(path, held.blocks + section.blocks, section.reach, held.depth, tokens)
            else:
                yield held
                held = section
        if held is not None:
            yield held

    def _belong(self, held: _Section, section: _Section) -> bool:
        if held.tokens is None or section.tokens is None or section.bare:
            return False
        common = len(_common(held.path, section.path))
        near = common >= held.depth and len(section.path) - common <= 1
        return near and held.tokens + section.tokens <= self.max_tokens // 2

    # Pieces

    def _pieces(self, section: _Section) -> Iterator[_Piece]:
        for index, block in enumerate(section.blocks):
            following = section.blocks[index + 1].start if index + 1 < len(section.blocks) else section.reach
            yield self._piece(block.start, block.end, following, block, -1)

    def _piece(self, start: int, end: int, reach: int, block: _Stretch, grain: int) -> _Piece:
        # What is too long anyway is split without being counted.
        known = end - start <= self.max_characters
        tokens = (
            self.count(self.text[start : min(reach, end + self.max_characters)])
            if known
            else self.max_tokens + 1
        )
        return _Piece(start, end, reach, tokens, block, grain)

    def _split(self, piece: _Piece) -> Iterator[_Piece] | None:
        """The piece cut one grain finer, or None if it is a single character."""
        grains = _GRAINS[piece.block.kind]
        for grain in range(piece.grain + 1, len(grains)):
            if grains[grain] == "characters":
                break
            cuts = self._cuts(piece, grains[grain])
            if len(cuts) > 0:
                return self._cut(piece, cuts, grain)
        length = piece.end - piece.start
        if length == 1:
            return None
        step = max(1, min(2 * self.max_tokens, length // 2))
        return self._cut(piece, list(range(piece.start + step, piece.end, step)), len(grains) - 2)

    def _cut(self, piece: _Piece, cuts: list[int], grain: int) -> Iterator[_Piece]:
        start = piece.start
        for cut in [*cuts, piece.reach]:
            end = piece.end if cut == piece.reach else start + len(self.text[start:cut].rstrip())
            yield self._piece(start, end, cut, piece.block, grain)
            start = cut

    def _cuts(self, piece: _Piece, grain: str) -> list[int]:
        start, end = piece.start, piece.end
        if grain == "sentences":
            cuts = [
                match.end()
                for match in _SENTENCE.finditer(self.text, start, end)
                if self._ends_sentence(match)
            ]
        elif grain in ("items", "lines"):
            pattern = _ITEM if grain == "items" else _LINE
            cuts = [match.end() for match in pattern.finditer(self.text, start, end)]
        else:
            cuts = [match.end() for match in _SPACE.finditer(self.text, start, end) if match.start() > start]
            if grain == "words":
                cuts = cuts[_WORDS_AT_ONCE - 1 :: _WORDS_AT_ONCE]
        # A line of code may begin with white space; it must hold something else.
        return [cut for cut in cuts if start < cut < end and not self.text[start:cut][:64].isspace()]

    def _ends_sentence(self, match: re.Match[str]) -> bool:
        following = self.text[match.end() : match.end() + 1]
        if following.islower():
            return False
        return _ABBREVIATION.search(self.text[max(0, match.start() - 12) : match.start() + 1]) is None

    # Chunks

    def _pack(self, section: _Section) -> None:
        room = self.max_tokens - self._context(section.path)[1]
        current: list[_Piece] = []
        used = 0
        stack: list[Iterator[_Piece]] = [self._pieces(section)]
        while stack:
            piece = next(stack[-1], None)
            if piece is None:
                stack.pop()
                continue
            first = current[0] if current else piece
            limit = room - self._header_tokens(first, section.path)
            if used + piece.tokens <= limit and piece.end - first.start <= self.max_characters:
                current.append(piece)
                used += piece.tokens
                continue
            alone = room - self._header_tokens(piece, section.path)
            splits = piece.tokens > alone or piece.end - piece.start > self.max_characters
            if splits or (current and all(held.block.kind == "heading" for held in current)):
                parts = self._split(piece)
                if parts is not None:
                    stack.append(parts)
                    continue
            if current:
                self._emit(current, used, section.path)
            current, used = [piece], piece.tokens
        if current:
            self._emit(current, used, section.path)

    def _emit(self, pieces: list[_Piece], tokens: int, path: tuple[str, ...]) -> None:
        start, end = pieces[0].start, pieces[-1].end
        context = self._context(path, self._header(pieces[0]))[0]
        self.chunks.append(
            Chunk(
                len(self.chunks),
                path,
                pieces[0].block.page,
                start,
                end,
                self.text[start:end],
                context,
                tokens,
            )
        )

    def _header(self, first: _Piece) -> str:
        """The column names that a chunk needs which begins within a table."""
        return first.block.header if first.start > first.block.start else ""

    def _header_tokens(self, first: _Piece, path: tuple[str, ...]) -> int:
        header = self._header(first)
        return self._context(path, header)[1] - self._context(path)[1] if header else 0

    def _context(self, path: tuple[str, ...], header: str = "") -> tuple[str, int]:
        """The context line and its tokens: at most a quarter of the budget, half of it with column names."""
        found = self.contexts.get((path, header))
        if found is None:
            names = [*path, header] if header else list(path)
            if self.title and (not path or path[0].casefold() != self.title.casefold()):
                names.insert(0, self.title)
            found = self.contexts[path, header] = self._fitted(names, self.max_tokens // (2 if header else 4))
        return found

    def _fitted(self, names: list[str], budget: int) -> tuple[str, int]:
        """Names joined; where they are too long, first the middle ones go, then the ends of what is left."""
        names = [_shortened(name, 8 * budget) for name in names if name]
        context = _SEPARATOR.join(names)
        tokens = self.count(context) if context else 0
        while tokens > budget and len(names) > 2:
            del names[len(names) // 2]
            context = _SEPARATOR.join(names)
            tokens = self.count(context)
        while tokens > budget and context:
            context = _shortened(context, len(context) * 3 // 4)
            tokens = self.count(context) if context else 0
        return context, tokens


def _shortened(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return text[:length].rpartition(" ")[0].rstrip(" ›|") or text[:length].rstrip(" ›|")


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]
