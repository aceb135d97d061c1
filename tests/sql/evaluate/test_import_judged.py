"""import_judged and export_judged: which span a judgement means, and what is refused, in its own words."""

from __future__ import annotations

import json
import random
from typing import Any

import psycopg
import pytest
from _pgrag import Database


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'{q}', '{what}', '{}', '{}', '{}', '{}'", "array of arrays of names, got {}"),
        ("'{q}', '{what}', null, '{}', '{}', '{}'", "array of arrays of names, got NULL"),
        ("'{q}', '{what}', '[\"p\"]', '{}', '{}', '{}'", 'array of arrays of names, got "p" for a query'),
        ("'{q}', '{what}', '[[1]]', '{}', '{}', '{}'", r"array of arrays of names, got \[1\] for a query"),
        (
            "'{q}', '{what}', '[[null]]', '{}', '{}', '{}'",
            r"array of arrays of names, got \[null\] for a query",
        ),
        ("'{null}', '{what}', '[[]]', '{}', '{}', '{}'", "query_ids must not hold NULL"),
        ("'{q}', '{null}', '[[]]', '{}', '{}', '{}'", "queries must not hold NULL"),
        ("'{q}', '{what}', '[[]]', '{null}', '{a}', '{1}'", "judged_ids must not hold NULL"),
        ("'{q}', '{what}', '[[]]', '{q}', '{null}', '{1}'", "uris must not hold NULL"),
        ("'{q}', '{what}', '[[]]', '{q}', '{a}', '{null}'", "grades must not hold NULL"),
    ],
)
def test_what_is_no_judged_query_is_refused(db: Database, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(f"select * from pgrag.import_judged('docs', {arguments})")
    assert caught.value.sqlstate == "RG001"


TEXT = "# One\n\nRotate the key.\n\n# Two\n\nStop the\npump. Wait, and wait."


def take(db: Database, *judgements: dict[str, Any], query_id: str = "q", uri: str = "a") -> Any:
    """Take in one query with these judgements, and return what the import says."""

    def column(name: str) -> list[Any]:
        return [one.get(name) for one in judgements]

    ((*counts,),) = db.execute(
        "select * from pgrag.import_judged('docs', %s, %s, '[[]]', %s, %s, %s, %s::int[], %s::int[], %s::int[], %s::text[])",
        (
            [query_id],
            ["what"],
            [query_id] * len(judgements),
            [one.get("uri", uri) for one in judgements],
            [one.get("grade", 1) for one in judgements],
            column("start"),
            column("end"),
            column("ordinal"),
            column("quote"),
        ),
    )
    return dict(zip(("imported", "judgements", "unknown", "changed"), counts, strict=True))


def kept(db: Database) -> list[Any]:
    return db.execute("select uri, char_start, char_end, grade, quote from pgrag.export_judged('docs')")


def span(text: str) -> tuple[int, int]:
    return TEXT.index(text), TEXT.index(text) + len(text)


def test_a_span_is_kept_with_what_it_reads(db: Database) -> None:
    db.put("a", TEXT)
    start, end = span("the key")
    take(db, {"start": start, "end": end, "grade": 2})
    assert kept(db) == [("a", start, end, 2, "the key")]


def test_a_passage_is_kept_as_its_span(db: Database) -> None:
    db.put("a", TEXT)
    take(db, {"ordinal": 1})
    start, end = db.execute("select char_start, char_end from pgrag.chunk where ordinal = 1")[0]
    assert kept(db) == [("a", start, end, 1, TEXT[start:end])]


def test_a_passage_stays_judged_when_the_document_is_cut_otherwise(db: Database) -> None:
    db.put("a", TEXT)
    take(db, {"ordinal": 1})
    before = kept(db)
    db.execute("update pgrag.collection set chunk_tokens = 16")
    db.put("a", TEXT, title="Anew")
    assert kept(db) == before


def test_a_quote_is_kept_as_the_span_where_the_text_holds_it(db: Database) -> None:
    db.put("a", TEXT)
    take(db, {"quote": "the key"})
    assert kept(db) == [("a", *span("the key"), 1, "the key")]


def test_a_quote_is_found_with_other_white_space_and_kept_as_the_text_has_it(db: Database) -> None:
    db.put("a", TEXT)
    take(db, {"quote": "Stop  the pump."})
    assert kept(db) == [("a", *span("Stop the\npump."), 1, "Stop the\npump.")]


def test_characters_beyond_ascii_count_as_one(db: Database) -> None:
    db.put("a", "Zażółć gęślą jaźń 北京大学 now.")
    take(db, {"quote": "北京大学"})
    assert kept(db) == [("a", 18, 22, 1, "北京大学")]


def test_of_several_grades_of_one_span_the_highest_counts(db: Database) -> None:
    db.put("a", TEXT)
    start, end = span("the key")
    done = take(
        db,
        {"start": start, "end": end, "grade": 1},
        {"quote": "the key", "grade": 3},
        {"start": start, "end": end, "grade": 2},
        {"start": start, "end": end - 1, "grade": 1},
        {"grade": -1},
        {"grade": 0},
    )
    assert done["judgements"] == 3
    assert [(row[1], row[2], row[3]) for row in kept(db)] == [
        (None, None, 0),
        (start, end - 1, 1),
        (start, end, 3),
    ]


def test_what_is_judged_of_an_unknown_document_is_kept_and_counted(db: Database) -> None:
    db.put("a", TEXT)
    done = take(db, {"start": 5, "end": 9}, {"ordinal": 3}, {"quote": "x", "uri": "c"}, {"uri": "a"}, uri="b")
    assert (done["judgements"], done["unknown"]) == (4, 2)
    assert [row for row in kept(db) if row[0] != "a"] == [
        ("b", None, None, 1, None),
        ("b", 5, 9, 1, None),
        ("c", None, None, 1, "x"),
    ]


def test_a_span_follows_its_quote_when_the_document_has_changed(db: Database) -> None:
    db.put("a", f"Preface. {TEXT}")
    start, end = span("the key")
    done = take(db, {"start": start, "end": end, "quote": "the key"})
    moved = len("Preface. ")
    assert done["changed"] == 0
    assert kept(db) == [("a", start + moved, end + moved, 1, "the key")]


@pytest.mark.parametrize("quote", ["the lock", "ait"])
def test_a_span_whose_quote_is_gone_or_stands_twice_stays_and_is_counted(db: Database, quote: str) -> None:
    db.put("a", TEXT)
    assert take(db, {"start": 0, "end": 900, "quote": quote})["changed"] == 1
    assert kept(db) == [("a", 0, 900, 1, quote)]


@pytest.mark.parametrize(
    ("judgement", "problem"),
    [
        (
            {"start": 0, "end": len(TEXT) + 1},
            f"the span ends at {len(TEXT) + 1}, its text has {len(TEXT)} characters",
        ),
        ({"start": 5, "end": 5}, "5 to 5 is no span"),
        ({"start": -1, "end": 5}, "-1 to 5 is no span"),
        ({"start": 5}, "a span has a start and an end"),
        ({"end": 5}, "a span has a start and an end"),
        ({"ordinal": 2}, "it has no passage 2"),
        ({"ordinal": 1, "quote": "the key"}, "an ordinal comes without a span and a quote"),
        ({"ordinal": 1, "start": 0, "end": 1}, "an ordinal comes without a span and a quote"),
        ({"quote": "the lock"}, 'its text does not hold the quote "the lock"'),
        ({"quote": "ait"}, 'its text holds the quote "ait" more than once'),
        ({"quote": " \n"}, "the quote is empty"),
        (
            {"start": 0, "end": 2**31 - 1},
            f"the span ends at {2**31 - 1}, its text has {len(TEXT)} characters",
        ),
        (
            {"start": 2**31 - 2, "end": 2**31 - 1},
            f"the span ends at {2**31 - 1}, its text has {len(TEXT)} characters",
        ),
    ],
)
def test_what_is_none_of_its_document_is_refused_by_name(
    db: Database, judgement: dict[str, Any], problem: str
) -> None:
    db.put("a", TEXT)
    with pytest.raises(psycopg.Error) as caught:
        take(db, {"quote": "the key"}, judgement)
    assert caught.value.diag.message_primary == f'query "q", document "a": {problem}'
    assert caught.value.sqlstate == "RG033"


def test_five_misfits_are_named_and_the_rest_is_counted(db: Database) -> None:
    db.put("a", TEXT)
    with pytest.raises(psycopg.Error) as caught:
        take(db, *({"ordinal": n} for n in range(9)))
    message = caught.value.diag.message_primary or ""
    # The document has two passages.
    assert [f"it has no passage {n}" in message for n in range(9)] == [False] * 2 + [True] * 5 + [False] * 2
    assert message.endswith("; and 2 more")


def test_a_refused_import_leaves_what_was_known(db: Database) -> None:
    db.put("a", TEXT)
    take(db, {"quote": "the key"})
    before = kept(db)
    with pytest.raises(psycopg.Error):
        take(db, {"ordinal": 9})
    assert kept(db) == before


def test_misfits_of_queries_that_are_not_taken_in_do_not_matter(db: Database) -> None:
    db.put("a", TEXT)
    db.execute(
        "select pgrag.import_judged('docs', '{q}', '{what}', '[[]]', '{other}', '{a}', '{1}', ordinals => '{9}')"
    )
    assert kept(db) == [(None, None, None, None, None)]


def test_answers_and_queries_that_nothing_answers_are_listed(db: Database) -> None:
    db.execute(
        "select pgrag.import_judged('docs', '{q,p}', '{what,who}', %s, '{q}', '{a}', '{1}', answers => '{yes,null}')",
        (json.dumps([["user:ana"], []]),),
    )
    assert db.execute("select * from pgrag.export_judged('docs')") == [
        ("p", "who", [], None, None, None, None, None, None),
        ("q", "what", ["user:ana"], "yes", "a", None, None, 1, None),
    ]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("char_starts => '{1,2}'", "got 2 char_starts, for 1 queries and 1 judgements"),
        ("char_ends => '{}'", "got 0 char_ends, for 1 queries and 1 judgements"),
        ("ordinals => '{1,2}'", "got 2 ordinals, for 1 queries and 1 judgements"),
        ("quotes => '{a,b}'", "got 2 quotes, for 1 queries and 1 judgements"),
        ("answers => '{a,b}'", "got 2 answers, for 1 queries and 1 judgements"),
    ],
)
def test_lists_of_another_length_are_refused(db: Database, argument: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(
            f"select * from pgrag.import_judged('docs', '{{q}}', '{{what}}', '[[]]', '{{q}}', '{{a}}', '{{1}}', {argument})"
        )
    assert caught.value.sqlstate == "RG030"


def test_an_unknown_collection_has_no_judged_queries(db: Database) -> None:
    with pytest.raises(psycopg.Error, match='collection "nowhere" does not exist'):
        db.execute("select * from pgrag.export_judged('nowhere')")


def test_a_caller_is_told_which_documents_are_visible_and_nothing_of_others(db: Database) -> None:
    db.put("a", TEXT, ["user:ana"])
    db.put("b", TEXT)
    db.put("d", TEXT)  # visible, and not asked for
    asked = "select pgrag.visible_uris('docs', '{b,a,c}')"
    assert db.rows_as("user:ana", asked) == [(["a", "b"],)]
    assert db.rows_as("user:bo", asked) == [(["b"],)]


def test_a_writer_can_insert_no_half_span(db: Database) -> None:
    db.execute("select pgrag.import_judged('docs', '{q}', '{why}', '[[]]', '{}', '{}', '{}')")
    half = """insert into pgrag.judgement (collection_id, query_id, uri, char_start, grade)
    select collection_id, 'q', 'a', 3, 1 from pgrag.collection where name = 'docs'"""
    with pytest.raises(psycopg.errors.CheckViolation, match="judgement_span_check"):
        db.execute(half)


@pytest.mark.parametrize(
    ("query_id", "uri", "message"),
    [
        ("q" * 501, "a", "a query_id of 501 bytes is too long"),
        ("q", "ä" * 1001, "a uri of 2002 bytes is too long"),
    ],
)
def test_a_name_that_no_index_holds_is_refused(db: Database, query_id: str, uri: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(
            "select pgrag.import_judged('docs', %s, '{why}', '[[]]', %s, %s, '{1}')",
            ([query_id], [query_id], [uri]),
        )
    assert caught.value.sqlstate == "RG001"


def test_names_of_the_greatest_length_are_taken(db: Database) -> None:
    random_ = random.Random(0)
    query_id, uri = (f"{random_.getrandbits(4 * length):0{length}x}" for length in (500, 2000))
    db.execute(
        "select pgrag.import_judged('docs', %s, '{why}', '[[]]', %s, %s, '{1}')",
        ([query_id], [query_id], [uri]),
    )
    assert db.execute("select query_id, uri from pgrag.export_judged('docs')") == [(query_id, uri)]
