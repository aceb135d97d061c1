"""Chunks: their spans tile the document, their size keeps the budget, their borders follow the structure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgrag.chunk import Chunk, approximate_tokens, chunk_document
from pgrag.errors import ParseError
from pgrag.ingest import Block, ParsedDocument
from pgrag.ingest._html import parse_html
from pgrag.ingest._markdown import parse_markdown
from pgrag.ingest._text import parse_text

_PARTS = st.sampled_from(
    [
        *(
            "# One\n",
            "## Two\n",
            "### Three\n",
            "word ",
            "Sentence one. ",
            "\n",
            "\n\n",
            "- item\n",
            "1. item\n",
        ),
        *(
            "```\n",
            "    code\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n",
            "漢字かな。",
            "x" * 300,
            " " * 50,
            "---\n",
        ),
        *("> quote\n", "\t", "e.g. this ", "<p>", "</p>"),
    ]
)
_SOURCES = st.lists(st.one_of(_PARTS, st.text(max_size=20)), max_size=40).map("".join)
_PARSERS = st.sampled_from([parse_markdown, parse_text, parse_html])


def _parsed(parse: object, source: str) -> ParsedDocument | None:
    data = source.encode("utf-8", "replace")
    try:
        return parse(data)  # type: ignore[operator, no-any-return]
    except ParseError:
        return None


@given(_PARSERS, _SOURCES, st.sampled_from([16, 40, 256]))
@settings(max_examples=150, deadline=None)
def test_chunks_tile_the_text_within_the_budget(parse: object, source: str, budget: int) -> None:
    document = _parsed(parse, source)
    if document is None:
        return
    position = 0
    for ordinal, chunk in enumerate(chunk_document(document, max_tokens=budget)):
        assert chunk.ordinal == ordinal
        assert chunk.content == document.text[chunk.char_start : chunk.char_end]
        assert not document.text[position : chunk.char_start].strip()
        assert chunk.content.strip()
        assert approximate_tokens(chunk.content) <= chunk.token_count
        assert chunk.token_count + approximate_tokens(chunk.context) <= budget or len(chunk.content) == 1
        position = chunk.char_end
    assert not document.text[position:].strip()


@given(_SOURCES)
@settings(max_examples=50, deadline=None)
def test_the_same_document_gives_the_same_chunks(source: str) -> None:
    document = _parsed(parse_markdown, source)
    assert document is None or chunk_document(document) == chunk_document(document)


def _chunks(source: str, max_tokens: int = 256) -> list[Chunk]:
    return chunk_document(parse_markdown(source.encode()), max_tokens=max_tokens)


_LONG = "word " * 60


def test_sections_are_kept_apart() -> None:
    chunks = _chunks(f"# Top\n\n## A\n\n{_LONG}\n\n## B\n\n{_LONG}\n")
    assert [chunk.heading_path for chunk in chunks] == [("Top", "A"), ("Top", "B")]


def test_tiny_neighbours_share_a_chunk_under_their_common_path() -> None:
    chunks = _chunks("# Top\n\nIntro.\n\n## A\n\none\n\n## B\n\ntwo\n")
    assert [chunk.heading_path for chunk in chunks] == [("Top",)]


def test_the_context_names_title_and_headings() -> None:
    chunks = _chunks(f"---\ntitle: Guide\n---\n# Top\n\n## A\n\n{_LONG}")
    assert chunks[0].context == "Guide › Top › A"


def test_a_title_that_is_the_first_heading_stands_once_in_the_context() -> None:
    assert _chunks(f"# Top\n\n{_LONG}")[0].context == "Top"


def test_a_split_table_keeps_its_column_names_in_the_context() -> None:
    rows = "".join(f"| part {number} | price {number} |\n" for number in range(100))
    chunks = _chunks(f"# Prices\n\n| Name | Cost |\n|---|---|\n{rows}", 64)
    assert len(chunks) > 1
    assert {chunk.context for chunk in chunks[1:]} == {"Prices › Name | Cost"}


def test_a_split_table_is_cut_between_rows() -> None:
    rows = "".join(f"| part {number} | price {number} |\n" for number in range(100))
    chunks = _chunks(f"| Name | Cost |\n|---|---|\n{rows}", 64)
    assert all(chunk.content.startswith("|") and chunk.content.endswith("|") for chunk in chunks)


def test_a_table_that_fits_is_whole() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"
    chunks = _chunks(f"# T\n\n{_LONG * 3}\n\n{table}\n\n{_LONG * 3}")
    assert sum(table in chunk.content for chunk in chunks) == 1


def test_a_long_paragraph_is_cut_at_sentences() -> None:
    chunks = _chunks("This is a sentence of some eight words. " * 40, 64)
    assert all(chunk.content.endswith(".") for chunk in chunks)


def test_an_abbreviation_ends_no_sentence() -> None:
    sentence = "We met Dr. Smith and Prof. Jones there. "
    chunks = _chunks(sentence * 40, 32)
    assert all(chunk.content.endswith("there.") for chunk in chunks)


def test_a_heading_does_not_stand_alone() -> None:
    chunks = _chunks(f"## A\n\n{'This is a sentence. ' * 12}", 64)
    assert all(chunk.content.strip() != "## A" for chunk in chunks)


def test_an_endless_word_is_cut() -> None:
    chunks = _chunks("x" * 10_000, 64)
    assert "".join(chunk.content for chunk in chunks) == "x" * 10_000


def test_each_character_is_counted_only_a_few_times() -> None:
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return approximate_tokens(text)

    document = parse_text(("This is a sentence. " * 40 + "\n\n").encode() * 50)
    chunk_document(document, count_tokens=count)
    assert counted <= 4 * len(document.text)


def test_page_is_that_of_the_start() -> None:
    document = ParsedDocument(
        "one\n\ntwo", blocks=(Block("paragraph", 0, 3, page=3), Block("paragraph", 5, 8, page=4))
    )
    assert [chunk.page for chunk in chunk_document(document)] == [3]


def test_a_budget_under_16_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16, got 15"):
        chunk_document(ParsedDocument("x"), max_tokens=15)


def test_an_empty_document_has_no_chunks() -> None:
    assert chunk_document(ParsedDocument(" \n ")) == []


def test_tokens_of_words_punctuation_and_cjk() -> None:
    assert approximate_tokens("key rotations, 漢字") == 1 + 2 + 1 + 2
