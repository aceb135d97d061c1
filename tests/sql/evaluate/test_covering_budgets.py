"""What a piece of evidence would need to stand in one passage, and where a quote stands."""

from __future__ import annotations

import pytest
from _pgrag import Database

# 24 words a paragraph.
TEXT = "\n\n".join(f"Paragraph {n} " + "says a few words. " * 5 + "It ends." for n in range(8))


def test_a_larger_budget_covers_what_a_small_one_splits(db: Database) -> None:
    db.put("a", TEXT)
    start, end = TEXT.index("Paragraph 1"), TEXT.index("Paragraph 4") - 2
    rows = db.rows_as(
        "public", "select * from pgrag.covering_budgets('docs', 'a', %s, %s, '{16, 512}')", (start, end)
    )
    assert rows == [(16, False), (512, True)]


def test_a_hidden_document_has_no_budgets(db: Database) -> None:
    db.put("a", TEXT, readers=["user:ana"])
    assert db.rows_as("public", "select * from pgrag.covering_budgets('docs', 'a', 0, 9, '{512}')") == []


@pytest.mark.parametrize("tokens", [24, 64, 200])
def test_it_covers_what_a_collection_of_that_budget_covers(db: Database, tokens: int) -> None:
    db.put("a", TEXT)
    spans = [(start, start + length) for start in range(0, len(TEXT) - 200, 97) for length in (20, 90, 200)]
    foretold = [
        db.value("select covered from pgrag.covering_budgets('docs', 'a', %s, %s, %s)", (*span, [tokens]))
        for span in spans
    ]
    db.execute("update pgrag.collection set chunk_tokens = %s", (tokens,))
    db.put("a", TEXT + "\n")
    found = db.execute(
        "select chunk_ids <> '{}' from pgrag.evidence_presence('docs', %s, %s, %s) order by place",
        (["a"] * len(spans), [start for start, _ in spans], [end for _, end in spans]),
    )
    assert foretold == [covered for (covered,) in found]


def test_no_budgets_are_none_covered(db: Database) -> None:
    db.put("a", "a pump")
    assert db.execute("select * from pgrag.covering_budgets('docs', 'a', 0, 1, null)") == []


@pytest.mark.parametrize(
    ("content", "quote", "near", "span"),
    [
        ("one two three", "two", None, (4, 7)),
        ("one two three", "two", 4, (4, 7)),
        ("one  two\n three", "one two three", None, (0, 15)),
        (" one two", "one two", None, (1, 8)),
        ("one two", "  one\ttwo ", None, (0, 7)),
        ("one\u00a0two", "one two", None, (0, 7)),
        ("one two", "two three", None, (None, None)),
        ("one two", " ", 0, (None, None)),
        ("one two", "", 0, (None, None)),
        ("two two two two", "two", 9, (8, 11)),
        ("a.b axb", "a.b", 4, (0, 3)),
        ("ä ö ü", "ö ü", None, (2, 5)),
    ],
)
def test_a_quote_is_found_white_space_aside(
    db: Database, content: str, quote: str, near: int | None, span: tuple[int | None, int | None]
) -> None:
    assert db.execute("select * from pgrag._find_quote(%s, %s, %s)", (content, quote, near)) == [span]
