"""The ledger on the whole handbook: every passage that a question needs is at one stage, however the texts are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import handbook
import pytest
from _pgrag import Database

from pgrag.access import add_groups, check_readers, load_readers_file
from pgrag.embed import StaticEncoder
from pgrag.evaluate import STAGES, Evidence, JudgedQuery, Judgement, ledger, trace
from pgrag.ingest import ingest_paths
from pgrag.spaces import embed_static

HANDBOOK = Path(handbook.__file__).parent
# In tokens; the second cuts the evidence anew.
CUTS = {"handbook": 256, "small": 48}


@pytest.fixture(scope="module")
def database(hybrid_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    """The handbook twice, cut into passages of two sizes."""
    made = Database(session_database(template=hybrid_template))
    rules = load_readers_file(HANDBOOK / "readers.toml")
    check_readers(made.admin, rules.principals, create=True)
    add_groups(made.admin, rules.groups)
    for name, tokens in CUTS.items():
        made.execute("select pgrag.create_collection(%s, chunk_tokens => %s)", (name, tokens))
        folder = [HANDBOOK / "documents"]
        report = ingest_paths(made.admin, folder, collection=name, readers=(), readers_for=rules.readers_of)
        assert report.failures == ()
        embed_static(made.admin, name, StaticEncoder.shipped())
    yield made
    made.close()


@pytest.fixture(scope="module")
def judged(database: Database) -> list[JudgedQuery]:
    """Each question for each who asks it: the spans that the quotes have in the first collection."""

    def span(one: Any) -> Judgement:
        ((start, end, quote),) = database.execute(
            "select q.char_start, q.char_end, substr(t.content, q.char_start + 1, q.char_end - q.char_start)"
            " from pgrag.document as d join pgrag.document_text as t using (document_id)"
            " join pgrag.collection as c on c.collection_id = d.collection_id and c.name = 'handbook'"
            " cross join lateral pgrag._find_quote(t.content, %s, null) as q where d.uri = %s",
            (one.quote, one.uri),
        )
        return Judgement(one.uri, start, end, one.grade, quote)

    return [
        JudgedQuery(
            f"{question.id} {person}",
            question.query,
            (person,),
            None,
            tuple(map(span, question.relevant + question.forbidden)),
        )
        for question in handbook.questions()
        for person in question.askers
    ]


@pytest.fixture(scope="module")
def traced(database: Database, judged: list[JudgedQuery]) -> dict[str, list[list[Evidence]]]:
    return {
        name: [trace(database.admin, name, one, k=5, depth=20, budget=600) for one in judged] for name in CUTS
    }


def test_there_are_all_questions(judged: list[JudgedQuery]) -> None:
    assert len({one.query_id.split()[0] for one in judged}) == len(handbook.questions()) == 101


@pytest.mark.parametrize("collection", CUTS)
def test_every_piece_of_evidence_is_at_one_stage(
    judged: list[JudgedQuery], traced: dict[str, list[list[Evidence]]], collection: str
) -> None:
    counts = ledger(piece for pieces in traced[collection] for piece in pieces)
    assert list(counts) == list(STAGES)
    assert sum(counts.values()) == sum(len(one.judgements) for one in judged)
    assert counts["not_ingested"] == 0


@pytest.mark.parametrize("collection", CUTS)
def test_not_permitted_is_what_the_rules_deny(
    judged: list[JudgedQuery], traced: dict[str, list[list[Evidence]]], collection: str
) -> None:
    for one, pieces in zip(judged, traced[collection], strict=True):
        (person,) = one.principals
        denied = [not handbook.may_read(person, piece.uri) for piece in pieces]
        assert denied == [piece.stage == "not_permitted" for piece in pieces]


def test_spans_survive_another_cut(traced: dict[str, list[list[Evidence]]]) -> None:
    whole, cut = (
        [(piece.uri, piece.char_start, piece.char_end) for pieces in traced[name] for piece in pieces]
        for name in CUTS
    )
    assert whole == cut
    # The passages are others, and smaller ones split more.
    splits = {name: Counter(p.stage for pieces in traced[name] for p in pieces)["split"] for name in CUTS}
    assert splits["handbook"] < splits["small"]
    assert not any("moved_to" in piece.detail for pieces in traced["small"] for piece in pieces)


ORACLE = """
select
    array(select chunk_id from pgrag.search_lexical(%(query)s, 20, '{handbook}')),
    array(select chunk_id from pgrag.search_dense(pgrag.embed_query(%(query)s), 20, '{handbook}', exact => true)),
    array(select chunk_id from pgrag.search(%(query)s, 5, '{handbook}', depth => 20)),
    array(select chunk_id from pgrag.pack_context(%(query)s, 600, 5, '{handbook}') where place is not null)
"""
HOLDING = """
select d.uri, array_agg(c.chunk_id) filter (where c.char_start <= %(start)s and c.char_end >= %(end)s)
from pgrag.document as d
inner join pgrag.collection as o on o.collection_id = d.collection_id and o.name = 'handbook'
inner join pgrag.chunk as c on c.document_id = d.document_id
where d.uri = %(uri)s
group by d.uri
"""


def test_a_stage_is_what_searches_of_the_asker_say(
    database: Database, judged: list[JudgedQuery], traced: dict[str, list[list[Evidence]]]
) -> None:
    # Packing goes by the collection's depth.
    database.execute("""select pgrag.set_search_settings('handbook', '{"depth": 20}')""")
    application = database.connect("pgrag_test_app")
    seen = set()
    for one, pieces in zip(judged, traced["handbook"], strict=True):
        with application.transaction():
            application.execute("select pgrag.act_as(variadic %s)", (list(one.principals),))
            ((lexical, dense, found, packed),) = application.execute(ORACLE, {"query": one.query}).fetchall()
            for piece in pieces:
                rows = application.execute(
                    HOLDING, {"uri": piece.uri, "start": piece.char_start, "end": piece.char_end}
                ).fetchall()
                holding = set(rows[0][1] or ()) if rows else set()
                expected = (
                    "not_permitted"
                    if not rows
                    else "split"
                    if not holding
                    else "kept"
                    if holding & set(packed)
                    else "pack"
                    if holding & set(found)
                    else "fusion"
                    if holding & set(lexical + dense)
                    else "representation"
                )
                assert (one.query_id, piece.uri, piece.stage) == (one.query_id, piece.uri, expected)
                seen.add(expected)
    assert seen >= {"not_permitted", "representation", "fusion", "pack", "kept"}


def test_an_application_is_told_no_more_than_the_asker_may_know(
    database: Database, judged: list[JudgedQuery], traced: dict[str, list[list[Evidence]]]
) -> None:
    application = database.connect("pgrag_test_app")
    hidden = {"not_permitted": "not_ingested"}
    for one, pieces in list(zip(judged, traced["handbook"], strict=True))[::7]:
        told = trace(application, "handbook", one, k=5, depth=20, budget=600)
        assert [piece.stage for piece in told] == [hidden.get(piece.stage, piece.stage) for piece in pieces]
