"""context_from_rows: what Python makes of the rows of pgrag.pack_context."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from pgrag.client import connect
from pgrag.pack import Context, LeftOut, Passage, context_from_rows

FIRST = (
    *(1, "P1", 11, 5, "pumps.md", "Pumps", ["Hall four"], 3, 20, 24, "Rust", 40, 0.03, 2, True),
    '<passage-0a1b2c3d id="P1">\nRust\n</passage-0a1b2c3d>',
    None,
)
SECOND = (
    *(2, "P2", 12, 6, "roof.md", None, [], None, 0, 5, "Paint", 30, 0.02, 0, False),
    '<passage-0a1b2c3d id="P2">\nPaint\n</passage-0a1b2c3d>',
    None,
)
THIRD = (
    *(None, None, 13, 6, "roof.md", None, [], None, 5, 9, "Tiles", 99, 0.01, 0, False),
    None,
    "over the budget",
)


def test_rows_with_a_place_are_passages_in_that_order() -> None:
    context = context_from_rows("what rusts?", 80, [FIRST, SECOND, THIRD])
    assert context.passages == (
        Passage(
            place=1,
            passage_id="P1",
            chunk_id=11,
            document_id=5,
            uri="pumps.md",
            title="Pumps",
            heading_path=("Hall four",),
            page=3,
            char_start=20,
            char_end=24,
            content="Rust",
            token_count=40,
            score=0.03,
            removed_characters=2,
            flagged=True,
            text='<passage-0a1b2c3d id="P1">\nRust\n</passage-0a1b2c3d>',
        ),
        Passage(
            place=2,
            passage_id="P2",
            chunk_id=12,
            document_id=6,
            uri="roof.md",
            title=None,
            heading_path=(),
            page=None,
            char_start=0,
            char_end=5,
            content="Paint",
            token_count=30,
            score=0.02,
            removed_characters=0,
            flagged=False,
            text='<passage-0a1b2c3d id="P2">\nPaint\n</passage-0a1b2c3d>',
        ),
    )


def test_rows_without_a_place_are_left_out_with_the_reason() -> None:
    context = context_from_rows("what rusts?", 80, [FIRST, THIRD])
    assert context.left_out == (
        LeftOut(
            chunk_id=13,
            document_id=6,
            uri="roof.md",
            title=None,
            heading_path=(),
            page=None,
            char_start=5,
            char_end=9,
            token_count=99,
            score=0.01,
            flagged=False,
            reason="over the budget",
        ),
    )


def test_tokens_are_those_of_what_is_packed() -> None:
    context = context_from_rows("what rusts?", 80, [FIRST, SECOND, THIRD])
    assert (context.query, context.budget_tokens, context.tokens) == ("what rusts?", 80, 40 + 30)


def test_the_text_is_a_sentence_and_the_fenced_passages() -> None:
    sentence, *passages = context_from_rows("what rusts?", 80, [FIRST, SECOND, THIRD]).text.split("\n\n")
    assert passages == [FIRST[15], SECOND[15]]
    assert sentence.startswith("Each passage-0a1b2c3d element below is a passage quoted from a document")
    assert sentence.endswith("such as [P1].")
    assert "\n" not in sentence


def test_nothing_packed_is_no_text() -> None:
    context = context_from_rows("what rusts?", 80, [THIRD])
    assert (context.text, context.tokens, context.passages) == ("", 0, ())


def test_no_rows_are_an_empty_context() -> None:
    assert context_from_rows("what rusts?", 80, []) == Context("what rusts?", 80, 0, (), (), "")


def test_a_passage_without_its_fence_is_an_error() -> None:
    with pytest.raises(ValueError, match="passage P1 has no fence"):
        context_from_rows("what rusts?", 80, [(*FIRST[:15], "Rust", None)])


def test_a_store_packs_what_its_caller_may_read(db: Any) -> None:
    db.put("pumps.md", "The pump is checked every Tuesday.", readers=["user:ana"], title="Pumps")
    db.put("secret.md", "The pump is sold every Tuesday.", readers=["user:bo"])
    with connect(db.dsn) as store:
        context = store.as_principals("user:ana").pack("pump", budget_tokens=500)
    hashes = b"".join(row[0] for row in db.execute("select hash from pgrag.chunk order by chunk_id limit 1"))
    nonce = hashlib.sha256(b"pump" + hashes).hexdigest()[:8]
    assert context.text.split("\n\n", 1)[1] == (
        f'<passage-{nonce} id="P1" title="Pumps" uri="pumps.md">\n'
        f"The pump is checked every Tuesday.\n</passage-{nonce}>"
    )
