"""The ledger from Python: who is told what, sums, and settings that are shown to have kept what was lost."""

from __future__ import annotations

import math
from typing import Any

import pytest
from _evidence import fill_lists
from _pgrag import Database

from pgrag.errors import PgragError, Refused
from pgrag.evaluate import (
    STAGES,
    Counterfactual,
    JudgedQuery,
    Judgement,
    Trace,
    counterfactuals,
    ledger,
    trace,
)


def asked(query: str, *judgements: Judgement, who: str = "public") -> JudgedQuery:
    return JudgedQuery("q", query, (who,), None, judgements)


def tried(
    database: Database, query: JudgedQuery, *, embedding: list[float] | None = None, **settings: Any
) -> dict[tuple[str, Any], Counterfactual]:
    """Trace a query, and return what each other setting would do, by setting and value."""
    found = trace(database.admin, "docs", query, embedding=embedding, **settings)
    traces = [Trace(query, tuple(found), embedding)]
    others = counterfactuals(database.admin, "docs", traces, **settings)
    return {
        (one.setting, tuple(one.value.values()) if isinstance(one.value, dict) else one.value): one
        for one in others
    }


def at(degrees: float) -> list[float]:
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def test_the_owner_is_told_what_is_not_permitted(db: Database) -> None:
    db.put("a", "a pump", readers=["user:ana"])
    (piece,) = trace(db.admin, "docs", asked("pump", Judgement("a")))
    assert (piece.stage, piece.rank, piece.detail) == ("not_permitted", None, {})


def test_an_application_is_not_told_what_is_not_permitted(db: Database) -> None:
    db.put("a", "a pump", readers=["user:ana"])
    application = db.connect("pgrag_test_app")
    hidden, absent = trace(application, "docs", asked("pump", Judgement("a"), Judgement("b")))
    assert hidden.stage == absent.stage == "not_ingested"
    assert hidden.detail == absent.detail == {"reason": "no such document"}


def test_of_a_hidden_document_that_lost_the_quote_the_owner_is_told_that(db: Database) -> None:
    db.put("a", "a pump", readers=["user:ana"])
    (piece,) = trace(db.admin, "docs", asked("pump", Judgement("a", 0, 7, quote="a valve")))
    assert (piece.stage, piece.detail) == ("not_ingested", {"reason": "the document no longer holds it"})


def test_a_role_that_may_not_act_for_others_is_refused(db: Database) -> None:
    db.put("a", "a pump")
    with pytest.raises(PgragError, match="may not act for others"):
        trace(db.connect("pgrag_test_reader"), "docs", asked("pump", Judgement("a")))


def test_an_unknown_collection_is_refused(db: Database) -> None:
    with pytest.raises(Refused, match='collection "nowhere" does not exist'):
        trace(db.admin, "nowhere", asked("pump", Judgement("a")))


def test_what_is_judged_irrelevant_is_no_evidence(db: Database) -> None:
    db.put("a", "a pump")
    db.put("b", "a pump")
    pieces = trace(db.admin, "docs", asked("pump", Judgement("a", grade=0), Judgement("b", grade=2)))
    assert [(piece.uri, piece.grade) for piece in pieces] == [("b", 2)]


def test_a_query_without_evidence_is_not_searched(db: Database) -> None:
    assert trace(db.admin, "nowhere", asked("pump")) == []


def test_the_zero_vector_is_none(db: Database) -> None:
    db.put("a", "a pump")
    (piece,) = trace(db.admin, "docs", asked("pump", Judgement("a")), embedding=[0.0, 0.0])
    assert piece.stage == "kept"


def test_the_detail_says_which_passage_and_its_ranks(db: Database) -> None:
    db.put("a", "a pump")
    (piece,) = trace(db.admin, "docs", asked("pump", Judgement("a")), budget=100)
    chunk_id = db.value("select chunk_id from pgrag.chunk")
    assert (piece.rank, piece.detail) == (
        1,
        {"chunk_id": chunk_id, "lexical_rank": 1, "packed": True, "ordinal": 0},
    )


def test_the_sums_are_of_every_stage_and_of_all_evidence(db: Database) -> None:
    db.put("a", "a pump")
    db.put("b", "a valve")
    pieces = trace(db.admin, "docs", asked("pump", *map(Judgement, "aabc")))
    counts = ledger(pieces)
    assert tuple(counts) == STAGES
    assert counts == dict.fromkeys(STAGES, 0) | {"kept": 2, "representation": 1, "not_ingested": 1}


def test_nothing_is_tried_where_nothing_was_lost(db: Database) -> None:
    db.put("a", "a pump")
    assert tried(db, asked("pump", Judgement("a"))) == {}


def test_nothing_is_tried_for_what_is_not_there(db: Database) -> None:
    db.put("a", "a pump", readers=["user:ana"])
    assert tried(db, asked("pump", Judgement("a"), Judgement("b"))) == {}


def test_more_effort_of_the_index_keeps_what_it_passed_over(db: Database) -> None:
    fill_lists(db)
    others = tried(db, asked("nothing", Judgement("edge"), Judgement("b59")), embedding=at(43), depth=10)
    # The other was not near enough, and is another stage's loss.
    assert others["index_effort", 2] == Counterfactual("ann", "index_effort", 2, keeps=1, passes=1, of=1)
    assert others["exact", True] == Counterfactual("ann", "exact", True, keeps=1, passes=1, of=1)


def test_more_depth_keeps_what_both_arms_had_a_little_farther(db: Database) -> None:
    # By words and by meaning the third, and neither has another's first two: 2 / (60 + 3) is more than 1 / (60 + 1).
    texts = {"a": "pump pump pump", "b": "pump pump", "x": "pump so", "c": "so", "d": "so"}
    angles = {"a": 80, "b": 85, "x": 10, "c": 1, "d": 2}
    for uri, text in texts.items():
        db.put(uri, text)
    db.execute("select pgrag.create_space('toy', 'toy', 2)")
    db.execute("select pgrag.attach_space('docs', 'toy')")
    jobs = db.execute(
        "select j.chunk_id, j.hash, d.uri from pgrag.claim_chunks('toy', 9) as j"
        " join pgrag.chunk as c using (chunk_id) join pgrag.document as d using (document_id)"
    )
    vectors = [str(at(angles[uri])) for _, _, uri in jobs]
    db.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)",
        ([job[0] for job in jobs], [job[1] for job in jobs], vectors),
    )
    db.execute("select pgrag.activate_space('docs', 'toy')")
    others = tried(db, asked("pump", Judgement("x")), embedding=at(0), k=2, depth=2)
    assert others["depth", 200] == Counterfactual("representation", "depth", 200, keeps=1, passes=1, of=1)


def test_what_is_found_deeper_and_lost_later_passes_and_is_not_kept(db: Database) -> None:
    for n in range(3):
        db.put(f"d{n}", "pump " * (3 - n) + "so " * n)
    others = tried(db, asked("pump", Judgement("d2")), k=1, depth=2)
    assert others["depth", 200] == Counterfactual("representation", "depth", 200, keeps=0, passes=1, of=1)


def test_a_larger_k_keeps_what_fusion_lost(db: Database) -> None:
    for n in range(30):
        db.put(f"d{n:02}", "pump " * (40 - n) + "so " * n)
    others = tried(db, asked("pump", Judgement("d15"), Judgement("d25"), Judgement("d00")))
    assert others["k", 20] == Counterfactual("fusion", "k", 20, keeps=1, passes=1, of=2)
    assert others["k", 50] == Counterfactual("fusion", "k", 50, keeps=2, passes=2, of=2)


def test_other_weights_are_tried_and_do_not_help_where_there_is_one_arm(db: Database) -> None:
    db.put("a", "pump pump")
    db.put("b", "a pump")
    others = tried(db, asked("pump", Judgement("b")), k=1)
    assert others["weights", (2, 1)] == Counterfactual(
        "fusion", "weights", {"lexical": 2, "dense": 1}, keeps=0, passes=0, of=1
    )


def test_a_larger_budget_keeps_what_packing_lost(db: Database) -> None:
    db.put("a", "pump pump pump")
    db.put("b", "a pump beside other words that make it longer")
    others = tried(db, asked("pump", Judgement("b")), budget=40)
    assert others["budget", 160] == Counterfactual("pack", "budget", 4 * 40, keeps=1, passes=1, of=1)


def test_a_larger_chunk_covers_what_was_split(db: Database) -> None:
    db.execute("update pgrag.collection set chunk_tokens = 16")
    text = "\n\n".join(f"Paragraph {n} says a few words about a pump, and then it ends." for n in range(20))
    db.put("a", text)
    start, end = text.index("Paragraph 2"), text.index("Paragraph 5") - 2
    others = tried(db, asked("pump", Judgement("a", start, end), Judgement("a")))
    assert others["chunk_tokens", 512] == Counterfactual(
        "split", "chunk_tokens", 512, keeps=1, passes=1, of=1
    )


def test_an_application_cuts_anew_what_the_asker_may_read(db: Database) -> None:
    db.execute("update pgrag.collection set chunk_tokens = 16")
    text = "\n\n".join(f"Paragraph {n} says a few words about a pump, and then it ends." for n in range(20))
    db.put("a", text, readers=["user:ana"])
    query = asked("pump", Judgement("a", 0, text.index("Paragraph 3") - 2), who="user:ana")
    application = db.connect("pgrag_test_app")
    found = trace(application, "docs", query)
    others = counterfactuals(application, "docs", [Trace(query, tuple(found))])
    assert [one.keeps for one in others if one.value == 512] == [1]


def test_what_spans_two_sections_is_split_by_any_chunk(db: Database) -> None:
    text = "# One\n\nalpha pump\n\n# Two\n\nbeta valve"
    db.put("a", text)
    others = tried(db, asked("pump", Judgement("a", 0, len(text))))
    assert {one.keeps for one in others.values()} == {0}


def test_it_is_told_how_many_searches_are_done(db: Database) -> None:
    db.put("a", "pump pump")
    db.put("b", "a pump")
    query = asked("pump", Judgement("b"))
    found = trace(db.admin, "docs", query, k=1)
    steps: list[tuple[int, int]] = []
    others = counterfactuals(
        db.admin, "docs", [Trace(query, tuple(found))], k=1, on_search=lambda *step: steps.append(step)
    )
    assert steps == [(n, len(others)) for n in range(1, len(others) + 1)]
