"""The lexical arm: exact BM25 over what the caller may see, in arithmetic."""

from __future__ import annotations

import gzip
import json
from math import log
from pathlib import Path

import bm25s
import ir_measures
import numpy as np
import psycopg
import pytest
from _pgrag import Database

RANKED = "select d.uri, s.rank, s.score from pgrag.search_lexical({}) as s join pgrag.document as d using (document_id)"
SCIFACT = Path(__file__).parents[4] / "shared" / "data" / "judged" / "scifact"

K1, B = 1.2, 0.75


def bm25(tf: float, length: float, *, n: int, df: int, average: float) -> float:
    idf = log(1 + (n - df + 0.5) / (df + 0.5))
    return idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))


def found(db: Database, query: str, who: str = "public", **more: object) -> list[tuple[str, int, float]]:
    arguments = ", ".join(["%s", *(f"{name} => %s" for name in more)])
    rows = db.rows_as(who, RANKED.format(arguments) + " order by s.rank", (query, *more.values()))
    return [(str(uri), int(rank), float(score)) for uri, rank, score in rows]


def uris(db: Database, query: str, who: str = "public", **more: object) -> list[str]:
    return [uri for uri, _, _ in found(db, query, who, **more)]


def test_the_score_is_the_formula(db: Database) -> None:
    db.put("a", "valve valve pump")
    db.put("b", "valve gauge gauge gauge gauge")
    average = (3 + 5) / 2
    assert found(db, "valve") == [
        ("a", 1, pytest.approx(bm25(2, 3, n=2, df=2, average=average), rel=1e-12)),
        ("b", 2, pytest.approx(bm25(1, 5, n=2, df=2, average=average), rel=1e-12)),
    ]


def test_a_word_that_stands_twice_in_the_query_counts_twice(db: Database) -> None:
    db.put("a", "valve pump")
    once = found(db, "valve")[0][2]
    assert found(db, "valve valve")[0][2] == pytest.approx(2 * once, rel=1e-12)


def test_statistics_count_only_what_the_caller_sees(db: Database) -> None:
    db.put("a", "valve pump", ["user:ana"])
    for n in range(20):
        db.put(f"hidden{n}", "valve gauge spring washer bolt", ["user:bo"])
    assert found(db, "valve", "user:ana") == [
        ("a", 1, pytest.approx(bm25(1, 2, n=1, df=1, average=2), rel=1e-12))
    ]


def test_statistics_count_the_whole_collection_whatever_the_filter(db: Database) -> None:
    db.put("a", "valve pump", metadata='{"product": "vault"}')
    db.put("b", "valve gauge spring")
    filtered = found(db, "valve", filter='{"product": "vault"}')
    assert filtered == [("a", 1, pytest.approx(bm25(1, 2, n=2, df=2, average=2.5), rel=1e-12))]


def test_a_deleted_document_is_gone_with_its_statistics_at_once(db: Database) -> None:
    db.put("a", "valve pump")
    before = found(db, "valve")
    db.put("b", "valve gauge spring")
    db.execute("select pgrag.delete_document('docs', 'b')")
    assert found(db, "valve") == before


def test_an_edit_replaces_the_old_words_at_once(db: Database) -> None:
    db.put("a", "valve pump")
    db.put("a", "gauge spring")
    assert uris(db, "valve") == []
    assert uris(db, "gauge") == ["a"]


def test_history_changes_no_bit_of_a_score(db: Database) -> None:
    texts = {f"d{n}": f"valve {'pump ' * n}gauge {'spring ' * (7 - n)}" for n in range(1, 7)}
    for uri, text in texts.items():
        db.put(uri, text)
    straight = found(db, "valve pump gauge spring")
    for uri, text in texts.items():
        db.put(uri, "something else entirely")
        db.put(uri, text)
    db.execute("select pgrag.set_readers('docs', 'd3', array['user:ana'])")
    db.execute("select pgrag.set_readers('docs', 'd3', array['public'])")
    assert found(db, "valve pump gauge spring") == straight
    db.execute("select pgrag.compact()")
    assert found(db, "valve pump gauge spring") == straight


def test_ties_are_broken_by_chunk_id(db: Database) -> None:
    for uri in ("z", "m", "a"):
        db.put(uri, "valve pump")
    assert uris(db, "valve") == ["z", "m", "a"]


def test_k_of_one_gives_the_best(db: Database) -> None:
    db.put("a", "valve gauge")
    db.put("b", "valve valve")
    assert uris(db, "valve", k=1) == ["b"]


def test_a_phrase_must_occur(db: Database) -> None:
    db.put("a", "the pressure valve opens")
    db.put("b", "the valve keeps the pressure")
    assert uris(db, '"pressure valve"') == ["a"]


def test_an_exclusion_must_not_occur(db: Database) -> None:
    db.put("a", "valve pump")
    db.put("b", "valve gauge")
    assert uris(db, "valve -gauge") == ["a"]


def test_an_exclusion_alone_finds_nothing(db: Database) -> None:
    db.put("a", "valve pump")
    assert uris(db, "-gauge") == []


def test_a_prefix_finds_the_words_that_begin_so(db: Database) -> None:
    db.put("a", "barometer")
    db.put("b", "barograph")
    db.put("c", "thermometer")
    assert sorted(uris(db, "baro*")) == ["a", "b"]


def test_a_prefix_knows_no_words_of_hidden_documents(db: Database) -> None:
    db.put("a", "barometer", ["user:ana"])
    alone = found(db, "baro*", "user:ana")
    db.put("b", "barograph barostat", ["user:bo"])
    assert found(db, "baro*", "user:ana") == alone


@pytest.mark.parametrize("query", ["TS-999", "ts999", "TS 999", "999"])
def test_an_identifier_is_found_however_it_is_typed(db: Database, query: str) -> None:
    db.put("other", "the manual of the TS-998 and its 12 screws")
    db.put("a", "replace the TS-999 once a year")
    assert uris(db, query)[0] == "a"


@pytest.mark.parametrize("query", ["", "   ", "the of and", "?!,.;", '"', "-", "*", "\u202e\u202d"])
def test_a_query_without_a_word_finds_nothing(db: Database, query: str) -> None:
    db.put("a", "valve pump")
    assert uris(db, query) == []


def test_a_filter_that_few_documents_pass_is_exact(db: Database) -> None:
    for n in range(30):
        db.put(f"d{n}", f"valve {'valve ' * (n % 5)}pump", metadata=json.dumps({"even": n % 2 == 0}))
    passing = uris(db, "valve", k=100, filter='{"even": true}')
    assert passing == [uri for uri in uris(db, "valve", k=100) if int(uri[1:]) % 2 == 0]


@pytest.mark.parametrize("k", [0, -1, 10_001, None])
def test_k_out_of_range_is_refused_with_its_value(db: Database, k: int | None) -> None:
    shown = "NULL" if k is None else k
    with pytest.raises(psycopg.Error, match=f"k must be between 1 and 10000, got {shown}") as caught:
        found(db, "valve", k=k)
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize("filter_", ["[]", "3", '"x"', "null"])
def test_a_filter_that_is_no_object_is_refused(db: Database, filter_: str) -> None:
    with pytest.raises(psycopg.Error, match="filter must be a JSON object"):
        found(db, "valve", filter=filter_)


def test_an_unknown_collection_finds_nothing(db: Database) -> None:
    db.put("a", "valve pump")
    assert uris(db, "valve", collections=["nowhere"]) == []


def test_each_collection_has_its_own_statistics(db: Database) -> None:
    db.execute("select pgrag.create_collection('more')")
    db.put("a", "valve pump")
    for n in range(3):
        db.put(f"m{n}", "valve gauge spring", collection="more")
    scores = {uri: score for uri, _, score in found(db, "valve")}
    assert scores["a"] == pytest.approx(bm25(1, 2, n=1, df=1, average=2), rel=1e-12)
    assert scores["m0"] == pytest.approx(bm25(1, 3, n=3, df=3, average=3), rel=1e-12)


def compare_with_bm25s(db: Database, queries: list[str], k: int) -> None:
    """Scores equal bm25s (method lucene) on the same tokens, in float32 there: so 1e-5 relative.

    Its method lucene leaves out the constant factor k1 + 1, as Lucene itself does since version 8.
    """
    tokens = [
        row[0]
        for row in db.execute(
            """select array(select l.lexeme from unnest(c.tsv) as l, generate_series(1, cardinality(l.positions)))
            from pgrag.chunk as c join pgrag.document as d using (collection_id, document_id) order by d.uri"""
        )
    ]
    retriever = bm25s.BM25(method="lucene", k1=K1, b=B)
    retriever.index(tokens, show_progress=False)
    compared = 0
    with db.acting("public") as connection:
        for query in queries:
            row = connection.execute(
                "select terms, counts from pgrag._parse_query('english', %s)", (query,)
            ).fetchone()
            assert row is not None
            asked = [term for term, n in zip(*row, strict=True) for _ in range(n)]
            if not asked:
                continue
            expected = (K1 + 1) * np.sort(retriever.get_scores(asked))[::-1][:k]
            rows = connection.execute("select score from pgrag.search_lexical(%s, %s)", (query, k)).fetchall()
            ours = np.array([score for (score,) in rows])
            assert ours == pytest.approx(expected[: len(ours)], rel=1e-5)
            assert not expected[len(ours) :].any()
            compared += len(ours)
    assert compared > 0


def test_scores_equal_bm25s_on_generated_text(db: Database) -> None:
    random_ = np.random.default_rng(0)
    words = [f"w{chr(97 + n % 26)}{chr(97 + n // 26)}q" for n in range(200)]
    texts = [
        " ".join(words[int(w)] for w in random_.zipf(1.3, random_.integers(1, 80)) % 200) for _ in range(500)
    ]
    db.load(texts)
    queries = [
        " ".join(words[int(w)] for w in random_.zipf(1.2, random_.integers(1, 9)) % 200) for _ in range(50)
    ]
    compare_with_bm25s(db, queries, k=50)


@pytest.fixture
def scifact(db: Database) -> Database:
    """The database with SciFact in it, a chunk a document; its uri is the line number."""
    if not SCIFACT.is_dir():
        pytest.skip("SciFact isn't beside the checkout, in ../shared/data")
    texts = [f"{document['title']}\n{document['text']}" for document in scifact_corpus()]
    db.load(texts)
    return db


def scifact_corpus() -> list[dict[str, str]]:
    with gzip.open(SCIFACT / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scifact_queries() -> dict[str, str]:
    lines = (SCIFACT / "queries.jsonl").read_text("utf-8").splitlines()
    return {query["_id"]: query["text"] for query in map(json.loads, lines)}


def test_scores_equal_bm25s_on_scifact(scifact: Database) -> None:
    compare_with_bm25s(scifact, list(scifact_queries().values())[:100], k=20)


def test_ndcg_on_scifact_is_that_of_bm25(scifact: Database) -> None:
    ids = {f"{n:06}": document["_id"] for n, document in enumerate(scifact_corpus())}
    judged = [line.split("\t") for line in (SCIFACT / "qrels.tsv").read_text("utf-8").splitlines()]
    qrels = [ir_measures.Qrel(q, d, int(grade)) for q, d, grade in judged if grade.isdigit()]
    run = []
    with scifact.acting("public") as connection:
        for query_id, query in scifact_queries().items():
            rows = connection.execute(RANKED.format("%s, 10"), (query,)).fetchall()
            run.extend(ir_measures.ScoredDoc(query_id, ids[uri], score) for uri, _, score in rows)
    assert ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)[ir_measures.nDCG @ 10] >= 0.685
