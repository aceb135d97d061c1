"""The ledger: each stage loses evidence on purpose, and every piece of it is at exactly one stage."""

from __future__ import annotations

from typing import Any

import pytest
from _evidence import direction, fill_lists
from _pgrag import Database

STAGES = ("not_ingested", "split", "representation", "ann", "fusion", "pack", "kept")
TRACE = """
select place, stage, lexical_rank, dense_rank_exact, dense_rank, fused_rank, packed, detail
from pgrag.trace_evidence(%(query)s, %(uris)s, %(starts)s, %(ends)s, %(quotes)s, collection => 'docs'{})
"""


def trace(
    database: Database,
    query: str,
    *evidence: tuple[str, int | None, int | None] | tuple[str, int | None, int | None, str | None],
    who: str = "public",
    more: str = "",
    before: str = "select",
    **named: Any,
) -> list[dict[str, Any]]:
    """Return a row a piece of evidence; ``more`` holds arguments of the SQL function, ``named`` their values."""
    names = (
        "place",
        "stage",
        "lexical_rank",
        "dense_rank_exact",
        "dense_rank",
        "fused_rank",
        "packed",
        "detail",
    )
    given = {
        "query": query,
        "uris": [one[0] for one in evidence],
        "starts": [one[1] for one in evidence],
        "ends": [one[2] for one in evidence],
        "quotes": [one[3] if len(one) > 3 else None for one in evidence],
    }
    with database.acting(who) as connection:
        connection.execute(before)
        rows = connection.execute(TRACE.format(more), given | named).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]


def span(text: str, part: str) -> tuple[int, int]:
    start = text.index(part)
    return start, start + len(part)


def test_a_hit_is_kept(db: Database) -> None:
    db.put("a", "a pump and a valve")
    (row,) = trace(db, "pump", ("a", None, None))
    assert row == {
        "place": 1,
        "stage": "kept",
        "lexical_rank": 1,
        "dense_rank_exact": None,
        "dense_rank": None,
        "fused_rank": 1,
        "packed": None,
        "detail": {"ordinal": 0},
    }


def test_a_document_that_is_not_there_is_not_ingested(db: Database) -> None:
    db.put("a", "a pump")
    (row,) = trace(db, "pump", ("b", None, None))
    assert (row["stage"], row["detail"]) == ("not_ingested", {"reason": "no such document"})


def test_a_document_that_is_hidden_is_one_that_is_not_there(db: Database) -> None:
    db.put("a", "a pump")
    db.put("b", "a pump", readers=["user:ana"])
    absent, hidden = trace(db, "pump", ("c", None, None), ("b", None, None))
    assert hidden == absent | {"place": 2}


def test_a_quote_that_the_text_lost_is_not_ingested(db: Database) -> None:
    db.put("a", "a pump")
    (row,) = trace(db, "pump", ("a", 2, 6, "vent"))
    assert (row["stage"], row["detail"]) == ("not_ingested", {"reason": "the text does not hold the quote"})


def test_a_span_beyond_the_text_is_not_ingested(db: Database) -> None:
    db.put("a", "a pump")
    (row,) = trace(db, "pump", ("a", 2, 7))
    assert (row["stage"], row["detail"]) == ("not_ingested", {"reason": "the text ends before the span does"})


def test_a_quote_that_moved_is_found_where_it_is_now(db: Database) -> None:
    text = "First a long preface.\n\nNow the pump   is old."
    db.put("a", text)
    (row,) = trace(db, "pump", ("a", 0, 11, "the pump is old"))
    assert row["stage"] == "kept"
    assert row["detail"]["moved_to"] == list(span(text, "the pump   is old"))


def test_of_several_places_of_a_quote_the_nearest_counts(db: Database) -> None:
    text = "pump. one two three four pump. five six seven pump."
    db.put("a", text)
    (row,) = trace(db, "pump", ("a", 29, 33, "pump"))
    assert row["detail"]["moved_to"] == [25, 29]


def test_white_space_at_the_ends_of_a_span_does_not_split_it(db: Database) -> None:
    text = "# One\n\nalpha pump\n\n# Two\n\nbeta valve"
    db.put("a", text)
    start, end = span(text, "\n\nalpha pump\n\n")
    assert [row["stage"] for row in trace(db, "pump", ("a", start, end))] == ["kept"]


def test_a_span_over_two_passages_is_split_and_both_are_named(db: Database) -> None:
    text = "# One\n\nalpha pump\n\n# Two\n\nbeta valve"
    db.put("a", text)
    start, end = span(text, "pump\n\n# Two\n\nbeta")
    (row,) = trace(db, "pump", ("a", start, end))
    assert row["stage"] == "split"
    assert [(one["ordinal"], one["char_start"], one["char_end"]) for one in row["detail"]["chunks"]] == [
        (0, *span(text, "# One\n\nalpha pump")),
        (1, *span(text, "# Two\n\nbeta valve")),
    ]


def test_what_no_arm_finds_is_lost_by_representation(db: Database) -> None:
    db.put("a", "a pump")
    db.put("b", "a valve")
    (row,) = trace(db, "pump", ("b", None, None))
    assert (row["stage"], row["detail"]) == (
        "representation",
        {"ordinal": 0, "depth": 100, "arms": ["lexical"]},
    )


@pytest.mark.parametrize(
    ("query", "more", "reason"),
    [
        ('"old pump"', "", "it lacks a phrase of the query"),
        ("pump -new", "", "it holds what the query excludes"),
        ("pump", """, filter => '{"kind": "manual"}'""", "the metadata does not contain the filter"),
    ],
)
def test_what_the_query_forbids_is_said(db: Database, query: str, more: str, reason: str) -> None:
    db.put("a", "a new pump")
    (row,) = trace(db, query, ("a", None, None), more=more)
    assert (row["stage"], row["detail"]["reason"]) == ("representation", reason)


def test_what_is_beyond_depth_is_lost_by_representation(db: Database) -> None:
    db.put("a", "pump pump pump")
    db.put("b", "a pump beside other words that make it longer")
    deep = trace(db, "pump", ("b", None, None), more=", k => 1, depth => 2")
    flat = trace(db, "pump", ("b", None, None), more=", k => 1, depth => 1")
    assert [(row["stage"], row["fused_rank"]) for row in deep + flat] == [
        ("fusion", 2),
        ("representation", None),
    ]


def test_what_is_beyond_k_is_lost_by_fusion(db: Database) -> None:
    db.put("a", "pump pump pump")
    db.put("b", "a pump beside other words that make it longer")
    (row,) = trace(db, "pump", ("b", None, None), more=", k => 1")
    assert (row["stage"], row["fused_rank"], row["detail"]) == (
        "fusion",
        2,
        {"ordinal": 0, "k": 1, "depth": 100},
    )


def test_what_the_budget_does_not_hold_is_lost_by_packing(db: Database) -> None:
    db.put("a", "pump pump pump")
    db.put("b", "a pump beside other words that make it longer")
    first, second = trace(db, "pump", ("a", None, None), ("b", None, None), more=", budget => 40")
    assert (first["stage"], first["packed"]) == ("kept", True)
    assert (second["stage"], second["packed"]) == ("pack", False)
    assert second["detail"] == {"ordinal": 0, "reason": "over the budget", "budget": 40}


def test_of_a_document_the_passage_that_comes_farthest_counts(db: Database) -> None:
    db.put("a", "# One\n\nvalve\n\n# Two\n\npump")
    assert [row["stage"] for row in trace(db, "pump", ("a", None, None), ("a", 0, 5))] == [
        "kept",
        "representation",
    ]


@pytest.fixture
def listed(db: Database) -> Database:
    """Vectors in two lists; ``edge`` stands beside the query, but in the list that isn't looked into."""
    fill_lists(db)
    return db


NEAR = ", embedding => %(vector)s::halfvec, depth => 10"


def test_what_the_index_passes_over_is_lost_by_ann(listed: Database) -> None:
    (row,) = trace(listed, "nothing", ("edge", None, None), more=NEAR, vector=direction(43))
    assert (row["stage"], row["dense_rank_exact"], row["dense_rank"]) == ("ann", 1, None)
    assert row["detail"]["plan"].startswith("ivfflat: ")


def test_what_words_find_is_not_lost_by_ann(listed: Database) -> None:
    (row,) = trace(listed, "46", ("edge", None, None), more=NEAR, vector=direction(43))
    assert (row["stage"], row["lexical_rank"], row["dense_rank"]) == ("kept", 1, None)


def test_an_exact_search_loses_nothing_by_ann(listed: Database) -> None:
    (row,) = trace(
        listed, "nothing", ("edge", None, None), more=NEAR + ", exact => true", vector=direction(43)
    )
    assert (row["stage"], row["dense_rank_exact"], row["dense_rank"]) == ("kept", 1, 1)


def test_more_effort_keeps_what_was_lost_by_ann(listed: Database) -> None:
    (row,) = trace(
        listed,
        "nothing",
        ("edge", None, None),
        more=NEAR,
        vector=direction(43),
        before="select set_config('pgrag.index_effort', '2', true)",
    )
    assert (row["stage"], row["dense_rank_exact"], row["dense_rank"]) == ("kept", 1, 1)


def test_what_waits_for_its_vector_is_said(listed: Database) -> None:
    listed.put("new", "a passage")
    waiting, other = trace(
        listed, "nothing", ("new", None, None), ("b59", None, None), more=NEAR, vector=direction(0)
    )
    assert (waiting["stage"], waiting["detail"]["reason"]) == (
        "representation",
        'it has no vector in space "toy" yet',
    )
    assert (other["stage"], "reason" in other["detail"]) == ("representation", False)


def test_all_stages_at_once_sum_to_all(listed: Database) -> None:
    long = "# One\n\n46 alpha\n\n# Two\n\nbeta"
    listed.put("long", long)
    uris = [f"a{n}" for n in range(60)] + [f"b{n}" for n in range(60)] + ["edge", "none"]
    rows = trace(
        listed,
        "nothing",
        *((uri, None, None) for uri in uris),
        ("long", *span(long, "alpha\n\n# Two\n\nbeta")),
        more=NEAR + ", k => 5, budget => 80",
        vector=direction(43),
    )
    counts = {stage: sum(row["stage"] == stage for row in rows) for stage in STAGES}
    assert sum(counts.values()) == len(uris) + 1
    # Of ten candidates five are in the k, of which a budget holds some; the exact ten are edge and nine of list a.
    assert counts["not_ingested"] == counts["split"] == counts["ann"] == 1
    assert counts["fusion"] == 10 - 5
    assert counts["pack"] + counts["kept"] == 5
    assert counts["pack"] > 0
    assert counts["representation"] == 121 - 1 - 10


def test_packing_is_that_of_pack_context(db: Database) -> None:
    for n in range(12):
        db.put(f"d{n}", f"pump number {n} " + "with words " * (n * 3))
    packed = db.rows_as(
        "public", "select uri from pgrag.pack_context('pump', 200, 10) where place is not null"
    )
    rows = trace(db, "pump", *((f"d{n}", None, None) for n in range(12)), more=", budget => 200")
    assert {f"d{row['place'] - 1}" for row in rows if row["stage"] == "kept"} == {uri for (uri,) in packed}


def test_arrays_of_other_lengths_are_refused(db: Database) -> None:
    with pytest.raises(Exception, match="got 1 uris, 2 char_starts") as caught:
        db.execute(
            "select * from pgrag.trace_evidence('x', array['a'], array[1, 2], array[2], null, collection => 'docs')"
        )
    assert caught.value.sqlstate == "RG030"  # type: ignore[attr-defined]


def test_half_a_span_is_refused(db: Database) -> None:
    with pytest.raises(Exception, match='got 3 to NULL of "a"') as caught:
        trace(db, "x", ("a", 3, None))
    assert caught.value.sqlstate == "RG001"  # type: ignore[attr-defined]


def test_it_goes_by_the_settings_of_the_collection(db: Database) -> None:
    db.put("a", "pump pump pump")
    db.put("b", "a pump beside other words that make it longer")
    db.execute("""select pgrag.set_search_settings('docs', '{"depth": 1}')""")
    (row,) = trace(db, "pump", ("b", None, None), more=", k => 1")
    (asked,) = trace(db, "pump", ("b", None, None), more=", k => 1, depth => 2")
    assert (row["stage"], row["detail"]["depth"]) == ("representation", 1)
    assert (asked["stage"], asked["detail"]["depth"]) == ("fusion", 2)


def test_an_arm_that_the_collection_leaves_out_has_no_rank(listed: Database) -> None:
    listed.execute("""select pgrag.set_search_settings('docs', '{"weights": {"dense": 0}}')""")
    (row,) = trace(listed, "nothing", ("edge", None, None), more=NEAR, vector=direction(43))
    assert (row["stage"], row["dense_rank_exact"], row["detail"]["arms"]) == (
        "representation",
        None,
        ["lexical"],
    )


@pytest.mark.parametrize("fusion", ["rrf", "minmax"])
def test_places_are_those_of_the_search(listed: Database, fusion: str) -> None:
    listed.put("words", "5 46")
    more = f", fusion => '{fusion}', weights => '{{\"lexical\": 3}}'" + NEAR
    search = f"select uri from pgrag.search('5 46', 10, embedding => %(vector)s::halfvec, depth => 10{more[: -len(NEAR)]})"
    found = [uri for (uri,) in listed.rows_as("public", search, {"vector": direction(43)})]
    rows = trace(listed, "5 46", *((uri, None, None) for uri in found), more=more, vector=direction(43))
    assert [(row["stage"], row["fused_rank"]) for row in rows] == [("kept", n) for n in range(1, 11)]
