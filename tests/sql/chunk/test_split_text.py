"""The SQL chunker: chunks follow the structure of Markdown and plain text, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Connection = psycopg.Connection[tuple[Any, ...]]
WHITE_SPACE = " \t\n\r\f\v"


@dataclass(frozen=True)
class Chunk:
    """A row of ``_split_text``."""

    ordinal: int
    heading_path: list[str]
    page: int | None
    char_start: int
    char_end: int
    content: str
    context: str
    token_count: int


@pytest.fixture(scope="module")
def database(installed_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """One database for the module: splitting reads and writes no table."""
    with psycopg.connect(session_database(template=installed_template), autocommit=True) as connection:
        yield connection


def split(
    database: Connection, text: str | None, max_tokens: int | None = 200, title: str | None = None
) -> list[Chunk]:
    rows = database.execute(
        "select * from pgrag._split_text(%s, %s, %s)", (text, title, max_tokens)
    ).fetchall()
    return [Chunk(*row) for row in rows]


def contents(database: Connection, text: str, max_tokens: int = 200) -> list[str]:
    return [chunk.content for chunk in split(database, text, max_tokens)]


def check(text: str, chunks: list[Chunk], max_tokens: int) -> None:
    """Assert what holds for every text: nothing is lost or doubled, the budget is kept."""
    end = 0
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.content == text[chunk.char_start : chunk.char_end]
        assert chunk.content.strip(WHITE_SPACE)
        assert text[end : chunk.char_start].strip(WHITE_SPACE) == ""
        assert chunk.char_start >= end
        assert 1 <= chunk.token_count <= max_tokens
        end = chunk.char_end
    assert text[end:].strip(WHITE_SPACE) == ""


def test_paragraphs_share_a_chunk_within_the_budget(database: Connection) -> None:
    assert contents(database, "One.\n\nTwo.\n\n\nThree.\n") == ["One.\n\nTwo.\n\n\nThree."]


def test_a_paragraph_that_does_not_fit_begins_a_new_chunk(database: Connection) -> None:
    paragraph = "one two three four five six seven eight nine."
    assert contents(database, f"{paragraph}\n\n{paragraph}", 16) == [paragraph, paragraph]


def test_a_section_begins_a_chunk_with_its_heading(database: Connection) -> None:
    chunks = split(database, "Before.\n\n# One\nText.\n\n## Two\n\nMore.\n# Three #\nLast.")
    assert [(chunk.heading_path, chunk.content) for chunk in chunks] == [
        ([], "Before."),
        (["One"], "# One\nText."),
        (["One", "Two"], "## Two\n\nMore."),
        (["Three"], "# Three #\nLast."),
    ]


def test_headings_without_text_go_with_the_first_text_under_them(database: Connection) -> None:
    chunks = split(database, "# One\n\n## Two\n\nText.")
    assert [(chunk.heading_path, chunk.content) for chunk in chunks] == [
        (["One", "Two"], "# One\n\n## Two\n\nText.")
    ]


def test_a_heading_without_text_before_its_sibling_stays_its_own(database: Connection) -> None:
    chunks = split(database, "## A\n## B\nText.")
    assert [(chunk.heading_path, chunk.content) for chunk in chunks] == [
        (["A"], "## A"),
        (["B"], "## B\nText."),
    ]


def test_underlined_headings_are_headings(database: Connection) -> None:
    chunks = split(database, "Guide\n=====\n\nText.\n\nPart\n---\nMore.")
    assert [chunk.heading_path for chunk in chunks] == [["Guide"], ["Guide", "Part"]]


@pytest.mark.parametrize("line", ["#hash", "#", "####### seven", "text # one", "#!/bin/sh"])
def test_a_number_sign_alone_makes_no_heading(database: Connection, line: str) -> None:
    assert [chunk.heading_path for chunk in split(database, f"{line}\n\nText.")] == [[]]


def test_context_is_the_title_and_the_headings(database: Connection) -> None:
    chunks = split(database, "# One\n## Two\nText.", title="Guide")
    assert [chunk.context for chunk in chunks] == ["Guide › One › Two"]


def test_a_title_that_the_first_heading_repeats_stands_once(database: Connection) -> None:
    assert [chunk.context for chunk in split(database, "# Guide\n## Two\nText.", title="Guide")] == [
        "Guide › Two"
    ]


@pytest.mark.parametrize("title", [None, ""])
def test_without_title_and_heading_the_context_is_empty(database: Connection, title: str | None) -> None:
    assert [chunk.context for chunk in split(database, "Text.", title=title)] == [""]


@pytest.mark.parametrize(
    "block",
    [
        "```sh\n# no heading\n\nrun --now\n```",
        "~~~\na\n```\n\nb\n~~~",
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
    ],
)
def test_code_and_tables_stay_whole_where_they_fit(database: Connection, block: str) -> None:
    before = "A paragraph with enough words to fill most of the budget, as paragraphs do."
    assert contents(database, f"{before}\n\n{block}\n\n{before}", 28) == [before, block, before]


def test_code_that_is_too_long_is_cut_at_line_ends(database: Connection) -> None:
    lines = ["```", *(f"call number {number}" for number in range(20)), "```"]
    parts = contents(database, "\n".join(lines), 16)
    assert len(parts) > 1
    assert "\n".join(parts).split("\n") == lines


def test_a_fence_that_is_never_closed_reaches_to_the_end(database: Connection) -> None:
    assert [chunk.heading_path for chunk in split(database, "```\ncode\n\n# not a heading\n")] == [[]]


def test_a_long_paragraph_is_cut_at_sentence_ends(database: Connection) -> None:
    sentence = "This sentence has seven words in it."
    assert contents(database, " ".join([sentence] * 5), 16) == [sentence] * 5


def test_a_long_sentence_is_cut_at_spaces(database: Connection) -> None:
    words = [f"word{number}" for number in range(50)]
    assert " ".join(contents(database, " ".join(words), 16)).split() == words


def test_a_long_word_is_cut_anywhere(database: Connection) -> None:
    assert "".join(contents(database, "x" * 3000, 16)) == "x" * 3000


def test_a_heading_is_not_left_alone_by_a_long_paragraph(database: Connection) -> None:
    chunks = split(database, "# One\n" + "A sentence of a few words. " * 20, 16)
    assert chunks[0].content == "# One\nA sentence of a few words."


def test_windows_line_ends_keep_their_places(database: Connection) -> None:
    text = "# One\r\n\r\nText.\r\n\r\n# Two\r\nMore.\r\n"
    chunks = split(database, text)
    check(text, chunks, 200)
    assert [chunk.heading_path for chunk in chunks] == [["One"], ["Two"]]


def test_a_heading_of_any_length_is_cut_in_the_path(database: Connection) -> None:
    chunks = split(database, f"# {'x' * 5000}\n\nText.", 64)
    assert chunks[-1].heading_path == ["x" * 200 + "…"]


@pytest.mark.parametrize("text", [None, "", " \n\t\r\n", "\n" * 1000])
def test_text_without_content_has_no_chunk(database: Connection, text: str | None) -> None:
    assert split(database, text) == []


@pytest.mark.parametrize("max_tokens", [None, -1, 0, 15, 8193])
def test_a_useless_budget_is_refused(database: Connection, max_tokens: int | None) -> None:
    with pytest.raises(psycopg.Error, match="between 16 and 8192 tokens") as caught:
        split(database, "Text.", max_tokens)
    assert caught.value.sqlstate == "RG012"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("one two three.", 5),  # ceil(1.1 * 4)
        ("x" * 40, 10),  # 40 / 4
        ("水" * 40, 40),  # 40 / 4 + 80 * 3 / 8
    ],
)
def test_tokens_are_estimated_from_words_characters_and_bytes(
    database: Connection, text: str, tokens: int
) -> None:
    assert database.execute("select pgrag._estimate_tokens(%s)", (text,)).fetchone() == (tokens,)


@pytest.mark.parametrize(
    "text",
    [
        "A sentence of plain words, with a comma. " * 4 + "\n\n",
        "# Heading é\n\nText.\n",
        "x",
        "水",
        "word ",
        "a\n",
        "```\ncode\n```\n",
    ],
    ids=["prose", "headings", "one word", "cjk", "one line", "short lines", "fences"],
)
def test_long_texts_of_any_shape_keep_the_invariants(database: Connection, text: str) -> None:
    long_text = text * (100_000 // len(text))
    check(long_text, split(database, long_text), 200)


def test_a_megabyte_of_prose_keeps_the_invariants(database: Connection) -> None:
    text = ("## Part\n\n" + "Words of a sentence that says little, naïvely. " * 30 + "\n\n") * 700
    assert len(text) > 2**20 * 0.9
    check(text, split(database, text), 200)


MARKUP = [
    "# One\n",
    "## Two\n",
    "###### Six ##\n",
    "Title\n===\n",
    "```\n",
    "~~~~\n",
    "| a |\n",
    "|---|\n",
    "- item\n",
    "---\n",
]
WORDS = [
    "word ",
    "A sentence. ",
    "x" * 90,
    "水" * 30,
    "é\u0301" * 20,
    "🙂" * 9,
    "    code\n",
    "!?;:" * 12,
    "\u0001",
]
SPACES = ["\n", "\n\n", "\r\n", "   ", "\t", "\u3000", "\f"]
PARTS = st.sampled_from([*MARKUP, *WORDS, *SPACES])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(PARTS, max_size=40).map("".join), max_tokens=st.integers(16, 60))
def test_any_text_keeps_the_invariants(database: Connection, text: str, max_tokens: int) -> None:
    check(text, split(database, text, max_tokens), max_tokens)
