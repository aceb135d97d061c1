"""The lexical arm: exact BM25 over what the caller may see, in arithmetic. On whole corpora: ``test_bm25s.py``."""

from __future__ import annotations

import json
from math import log

import psycopg
import pytest
from _pgrag import Database

RANKED = "select d.uri, s.rank, s.score from pgrag.search_lexical({}) as s join pgrag.document as d using (document_id)"

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
