"""What is planned is what PostgreSQL and pgvector then take, and goes by what was measured here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database

from pgrag.errors import PgragError, Refused
from pgrag.plan import (
    Plan,
    TextFigures,
    build_seconds,
    index_bytes,
    plan,
    table_bytes,
    text_bytes,
    usual_lists,
)

VECTORS = 1500


def planned(db: Database, chunks: int = 1_000_000, **given: Any) -> Plan:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        return plan(connection, chunks, **({"dimension": 384} | given))


def readers_known(db: Database, count: int) -> None:
    db.execute("select pgrag.create_principals(variadic %s)", ([f"group:g{n}" for n in range(count)],))


def filled(db: Database, dimension: int, precision: str, kind: str, options: Mapping[str, int]) -> int:
    """Make a space with random vectors and its index; return its id."""
    if not db.value("select count(*) from pgrag.chunk"):
        readers_known(db, 20)
        db.load([f"w{n}" for n in range(VECTORS)], readers=lambda n: [f"group:g{n % 20}"])
    space_id = db.value(
        "select pgrag.create_space('random', 'random', %s, index_kind => %s, \"precision\" => %s,"
        " index_options => %s, with_index => false)",
        (dimension, kind, precision, json.dumps(dict(options))),
    )
    db.execute("select pgrag.attach_space('docs', 'random')")
    keys = db.execute("select chunk_id, collection_id, acl_id from pgrag.chunk order by chunk_id")
    vectors = np.random.default_rng(0).standard_normal((VECTORS, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    call = f"copy pgrag.embedding_{space_id} (chunk_id, collection_id, acl_id, embedding) from stdin"
    with db.admin.cursor() as cursor, cursor.copy(call) as copy:
        for key, vector in zip(keys, vectors, strict=True):
            copy.write_row((*key, "[" + ",".join(f"{number:.4f}" for number in vector) + "]"))
    db.execute(f"vacuum analyze pgrag.embedding_{space_id}")
    if kind != "none":
        db.execute(db.value("select pgrag._space_index('random', false)"))
    return space_id


@pytest.mark.parametrize(
    ("dimension", "precision"),
    [(96, "halfvec"), (384, "halfvec"), (384, "vector"), (384, "bit"), (768, "vector"), (1024, "halfvec")],
)
def test_the_table_of_vectors_is_as_large_as_planned(db: Database, dimension: int, precision: str) -> None:
    space_id = filled(db, dimension, precision, "none", {})
    table = f"pgrag.embedding_{space_id}"

    measured = db.value(f"select pg_relation_size('{table}') + pg_indexes_size('{table}')")
    measured += db.value(
        f"select coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0) from pg_class where oid = '{table}'::regclass"
    )

    # 15 %: pages that aren't full yet count for much in a table this small.
    assert table_bytes(VECTORS, dimension, precision) == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize(
    ("dimension", "precision", "kind", "options"),
    [
        (96, "halfvec", "hnsw", {}),
        (384, "vector", "hnsw", {"m": 4, "ef_construction": 20}),
        (384, "bit", "hnsw", {"m": 32}),
        (1536, "halfvec", "hnsw", {"m": 8, "ef_construction": 16}),
        (384, "halfvec", "ivfflat", {"lists": 10}),
    ],
)
def test_an_index_is_as_large_as_planned(
    db: Database, dimension: int, precision: str, kind: str, options: Mapping[str, int]
) -> None:
    space_id = filled(db, dimension, precision, kind, options)

    measured = db.value(f"select pg_relation_size('pgrag.embedding_{space_id}_{kind}_idx')")

    assert index_bytes(VECTORS, dimension, precision, kind, options) == pytest.approx(measured, rel=0.05)


def test_seven_elements_of_384_halves_stand_on_a_page() -> None:
    # An element is 72 + 8 + 768, its neighbours 4 + 2 * 16 * 6 = 196, rounded to 200; two pointers of 4.
    of_one = 72 + 8 + 768 + 200 + 2 * 4

    assert (8192 - 24 - 8) // of_one == 7
    assert index_bytes(7_000_000, 384, "halfvec", "hnsw") == pytest.approx(8192 * 1_000_000, rel=0.03)


def test_there_is_no_index_to_plan_for_none() -> None:
    assert (index_bytes(1000, 384, "halfvec", "none"), build_seconds(1000, 384, "halfvec", "none")) == (0, 0)


def test_lists_are_those_that_a_build_makes() -> None:
    assert [usual_lists(n) for n in (1000, 250_000, 4_000_000)] == [10, 250, 2000]


def test_more_acls_make_a_larger_lexical_index() -> None:
    few, many = (text_bytes(100_000, 200, acls, 10_000, TextFigures())[2] for acls in (10, 1000))

    assert many > 2 * few


def test_postings_take_8_bytes_and_a_row_a_word_of_an_acl() -> None:
    figures = TextFigures(postings=1, heaps=1, heaps_power=0, run_bytes=100, lexeme_bytes=50)

    # 10 passages of 1 token, each with one posting, under 10 ACLs with one word each.
    assert text_bytes(10, 1, 10, 0, figures)[2] == 10 * 8 + 10 * (100 + 50)


def test_the_build_takes_the_memory_that_a_build_asks_for(db: Database) -> None:
    assert planned(db, index_options={"m": 8}).memory.build == db.value(
        "select pgrag._build_bytes(1000000, 384, 'halfvec', 'hnsw', '{\"m\": 8}')"
    )


def test_a_build_that_does_not_fit_is_told(db: Database) -> None:
    assert [planned(db, chunks).memory.build_fits for chunks in (100, 10_000_000)] == [True, False]


def test_the_corpus_says_what_its_texts_take(db: Database) -> None:
    readers_known(db, 5)
    db.load(
        [" ".join(f"word{(n * 7 + place * 13) % 4000}" for place in range(40)) for n in range(1200)],
        readers=lambda n: [f"group:g{n % 5}"],
    )
    db.execute("update pgrag.chunk set token_count = 100")
    measured = db.value(
        "select pg_total_relation_size('pgrag.posting') + pg_total_relation_size('pgrag.lexeme')"
    )

    made = planned(db, 1200, average_tokens=100, acls=5, chunks_per_document=1)

    assert made.texts_from == "measured of the 1,200 passages in this database"
    assert made.storage.postings == pytest.approx(measured, rel=0.1)


def test_few_passages_say_nothing_of_texts(db: Database) -> None:
    db.put("a.md", "one")

    assert planned(db).texts_from == "usual; this database has 1 passage, from 1,000 it goes by them"


def test_without_a_passage_texts_are_as_usual(db: Database) -> None:
    assert planned(db).texts_from == "usual for English documentation"


def test_why_a_space_says_nothing_of_searches_is_told(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 384)")
    uncalibrated = planned(db, dimension=None, space="s").searching[0].costs_from
    db.execute("""update pgrag.space set calibration = '{"exact_us": 2, "hidden_us": 0.5}'""")
    other = planned(db, dimension=96, space="s").searching[0].costs_from

    assert uncalibrated == "usual: space s is not calibrated"
    assert other == "usual: space s has another dimension"


def test_storage_is_the_sum_of_its_parts(db: Database) -> None:
    stored = planned(db).storage

    parts = stored.documents + stored.chunks + stored.postings + stored.vectors + stored.index
    assert stored.total == parts


def test_a_calibrated_space_says_what_comparing_costs(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 384)")
    db.execute(
        """update pgrag.space set calibration = '{"exact_us": 2, "hidden_us": 0.5, "index_us": 10, "effort": 100}'"""
    )

    all_, tenth = planned(db, 1_000_000, dimension=None, space="s", shares=(1.0, 0.1), k=10).searching

    assert all_.exact_ms == pytest.approx(2 + 1.2 * 2 * 1_000_000 / 1000)
    assert all_.index_ms == pytest.approx(2 + 10 * 100 / 1000)
    # By their ACLs, which takes 2.2 times as long for each.
    assert tenth.exact_ms == pytest.approx(2 + 2.2 * 2 * 100_000 / 1000)
    assert all_.costs_from == "space s measured here"


def test_another_precision_goes_by_what_was_measured_of_comparing_alone(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 384)")
    db.execute(
        """update pgrag.space set calibration = '{"exact_us": 2, "hidden_us": 0.5, "index_us": 10, "effort": 100}'"""
    )

    one = planned(db, dimension=None, space="s", precision="bit", shares=(1.0,)).searching[0]

    assert one.costs_from == "space s measured here, its index usual"


def test_few_passages_are_compared(db: Database) -> None:
    one = planned(db, 1000, shares=(1.0,)).searching[0]

    assert (one.index_ms, one.effort, one.reason) == (None, 0, "they are few")


def test_without_an_index_all_are_compared(db: Database) -> None:
    one = planned(db, 10_000_000, index="none", shares=(1.0,)).searching[0]

    assert (one.index_ms, one.reason) == (None, "the space has no index")


def test_the_last_build_says_how_long_the_next_takes(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 384)")
    db.execute(
        """select pgrag.note_figures('s', '{"build": {"seconds": 30, "vectors": 100000, "workers": 1}}')"""
    )

    again = planned(db, 100_000, dimension=None, space="s").building

    assert again.index == pytest.approx(30 * 2)
    assert again.index_from == "grown from the last build of space s, 100,000 vectors"


def test_a_prompt_by_retrieval_stands_beside_one_with_everything(db: Database) -> None:
    read = planned(
        db,
        1000,
        average_tokens=200,
        passages=10,
        context_tokens=100_000,
        price_per_million_tokens=3,
        prefill_tokens_per_second=5000,
    ).answering

    assert (read.retrieved_tokens, read.everything_tokens, read.fits) == (10 * 200, 1000 * 200, False)
    assert (read.retrieved_cost, read.everything_cost) == pytest.approx((2000 * 3e-6, 200_000 * 3e-6))
    assert (read.retrieved_seconds, read.everything_seconds) == (2000 / 5000, 200_000 / 5000)


def test_embedding_takes_as_long_as_its_rate_says(db: Database) -> None:
    assert planned(db, 1000, chunks_per_second=50).building.embed == 1000 / 50


def test_reranking_takes_its_pairs(db: Database) -> None:
    assert planned(db, rerank_pairs=100, rerank_ms=2).searching[0].rerank_ms == 100 * 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dimension": None}, "dimension"),
        ({"precision": "int8"}, "precision"),
        ({"index": "diskann"}, "index"),
        ({"precision": "vector", "dimension": 3000}, "2,000"),
        ({"average_tokens": 0}, "average_tokens"),
        ({"shares": (2.0,)}, "share"),
    ],
)
def test_what_cannot_be_planned_is_named(db: Database, given: dict[str, Any], words: str) -> None:
    with pytest.raises(PgragError, match=words):
        planned(db, **given)


def test_an_unknown_space_is_refused(db: Database) -> None:
    with pytest.raises(Refused, match="nowhere"):
        planned(db, space="nowhere")


def test_a_writer_may_plan(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'flat-model', 4)")
    db.execute(
        """update pgrag.space set calibration = '{"exact_us": 2, "hidden_us": 0.5, "index_us": 10, "effort": 100}'"""
    )
    made = plan(db.connect("pgrag_test_writer"), 1000, space="s")
    assert [one.costs_from for one in made.searching] == ["space s measured here"] * 3
