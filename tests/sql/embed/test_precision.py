"""How a space keeps its vectors: in full, in half, by a bit a number, rotated, or their trained prefix."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database
from numpy.typing import NDArray


def text(vector: NDArray[np.float64]) -> str:
    return "[" + ",".join(repr(float(number)) for number in vector) + "]"


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def fill(db: Database, vectors: NDArray[np.float64], **space: Any) -> list[int]:
    """Make a space ``toy`` and store a vector for each of as many documents; returns their chunk_ids in order."""
    options = "".join(f', "{name}" => %({name})s' for name in space)
    db.execute(
        f"select pgrag.create_space('toy', 'toy', %(kept)s{options})",
        {"kept": vectors.shape[1]} | space,
    )
    db.execute("select pgrag.attach_space('docs', 'toy')")
    db.load([f"{n}" for n in range(len(vectors))])
    jobs = db.execute("select chunk_id, hash, content from pgrag.claim_chunks('toy', 10000)")
    stored = db.value(
        "select pgrag.store_vectors('toy', %s, %s, %s)",
        ([j[0] for j in jobs], [j[1] for j in jobs], [text(vectors[int(j[2])]) for j in jobs]),
    )
    assert stored == len(vectors)
    db.execute("select pgrag.activate_space('docs', 'toy')")
    return [chunk_id for chunk_id, _, _ in sorted(jobs, key=lambda job: int(job[2]))]


def agreement(db: Database, vectors: NDArray[np.float64], queries: NDArray[np.float64]) -> float:
    """Return the share of the ten nearest that are among the hundred nearest by their codes."""
    hits = 0
    for query in queries:
        by_code = db.execute(
            "select e.chunk_id - min(e.chunk_id) over () from pgrag.embedding_1 as e"
            " order by e.code <~> pgrag._code(1, %s)::bit(64), 1 limit 100",
            (text(query),),
        )
        hits += len({row[0] for row in by_code} & set(np.argsort(-(vectors @ query))[:10].tolist()))
    return hits / (10 * len(queries))


def test_full_precision_tells_apart_what_half_does_not(db: Database) -> None:
    angles = np.array([0.5, 0.5001])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    fill(db, vectors, precision="vector", index_kind="none")
    kept = db.execute("select embedding::real[] from pgrag.embedding_1 order by chunk_id")
    assert np.array([row[0] for row in kept]) == pytest.approx(vectors, abs=1e-7)


@pytest.mark.parametrize("index_kind", ["hnsw", "ivfflat", "none"])
@pytest.mark.parametrize("precision", ["vector", "halfvec", "bit"])
def test_every_precision_finds_the_nearest_with_every_index(
    db: Database, precision: str, index_kind: str
) -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(50, 16)))
    ids = fill(db, vectors, precision=precision, index_kind=index_kind)
    rows = db.rows_as(
        "public", "select chunk_id, distance from pgrag.search_dense(%s::halfvec, 5)", (text(vectors[7]),)
    )
    order = np.argsort(-(vectors @ vectors[7]))[:5]
    assert [row[0] for row in rows] == [ids[n] for n in order]
    assert [row[1] for row in rows] == pytest.approx(1 - vectors[order] @ vectors[7], abs=2e-3)


def test_a_rotation_keeps_lengths_and_angles(db: Database) -> None:
    rows = db.execute("select axis::real[] from pgrag._rotation(24, 7) order by place")
    matrix = np.array([row[0] for row in rows])
    assert matrix @ matrix.T == pytest.approx(np.eye(24), abs=1e-5)
    assert db.execute("select axis::real[] from pgrag._rotation(24, 8) order by place") != rows


def test_codes_are_signs_after_the_rotation(db: Database) -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(5, 24)))
    fill(db, vectors, precision="bit", rotate=True, index_kind="none")
    matrix = np.array(
        [row[0] for row in db.execute("select axis::real[] from pgrag.space_axis order by place")]
    )
    codes = [row[0] for row in db.execute("select code::text from pgrag.embedding_1 order by chunk_id")]
    assert codes == ["".join("01"[int(x > 0)] for x in matrix @ vector) for vector in vectors]


def test_a_rotation_helps_where_few_numbers_say_nearly_everything(db: Database, dsn: str) -> None:
    random_ = np.random.default_rng(0)
    weights = np.where(np.arange(64) < 8, 8.0, 0.5)
    vectors = unit(random_.normal(size=(2000, 64)) * weights)
    queries = unit(vectors[:20] + 0.02 * random_.normal(size=(20, 64)))
    fill(db, vectors, precision="bit", rotate=False, index_kind="none")
    plain = agreement(db, vectors, queries)
    db.execute("update pgrag.space set rotate = true")
    db.execute(
        "insert into pgrag.space_axis (space_id, place, axis) select 1, place, axis from pgrag._rotation(64, 1)"
    )
    db.execute("update pgrag.embedding_1 set embedding = embedding")
    assert agreement(db, vectors, queries) > plain + 0.1


def test_a_centre_helps_where_all_vectors_point_the_same_way(db: Database) -> None:
    random_ = np.random.default_rng(0)
    vectors = unit(random_.normal(size=(1000, 64)) + 3)
    queries = unit(vectors[:20] + 0.01 * random_.normal(size=(20, 64)))
    fill(db, vectors, precision="bit", index_kind="none")
    before = agreement(db, vectors, queries)
    assert db.value("select pgrag.center_codes('toy')") == 1000
    assert np.array(db.value("select center::real[] from pgrag.space")) == pytest.approx(
        vectors.mean(axis=0), abs=1e-3
    )
    assert agreement(db, vectors, queries) > before + 0.1


def test_a_centre_tells_nothing_of_what_somebody_may_not_read(db: Database) -> None:
    fill(db, np.eye(4), precision="bit", index_kind="none")
    for uri, readers in (("000001", ["user:ana"]), ("000002", ["public", "!user:kofi"])):
        db.execute("select pgrag.set_readers('docs', %s, %s)", (uri, readers))
    db.execute("select pgrag.center_codes('toy')")
    assert db.value("select center::real[] from pgrag.space") == [0.5, 0, 0, 0.5]


def test_an_edited_text_gets_a_code_of_its_own(db: Database) -> None:
    fill(db, unit(np.eye(4) + 0.1), precision="bit", index_kind="none")
    db.execute("update pgrag.embedding_1 set embedding = '[-0.5,0.5,-0.5,0.5]'")
    assert db.execute("select distinct code::text from pgrag.embedding_1") == [("0101",)]


def test_centring_leaves_other_precisions_alone(db: Database) -> None:
    fill(db, np.eye(3), index_kind="none")
    assert db.value("select pgrag.center_codes('toy')") == 0


@pytest.fixture
def prefix(db: Database) -> Database:
    """A space that keeps the first 2 of 4 numbers of two documents' vectors."""
    db.execute(
        "select pgrag.create_space('toy', 'toy', 2, model_dimension => 4, index_kind => 'none',"
        " passport => '{\"matryoshka_dims\": [2, 4]}')"
    )
    db.execute("select pgrag.attach_space('docs', 'toy')")
    for n, vector in enumerate(["[0.6,0,0.8,0]", "[0,0.6,0,0.8]"]):
        db.put(f"{n}", f"text {n}")
        ((chunk_id, digest, _),) = db.execute("select * from pgrag.claim_chunks('toy')")
        db.execute("select pgrag.store_vectors('toy', %s, %s, %s)", ([chunk_id], [digest], [vector]))
    db.execute("select pgrag.activate_space('docs', 'toy')")
    return db


def test_a_trained_prefix_is_kept_with_length_one(prefix: Database) -> None:
    rows = prefix.execute("select embedding::real[] from pgrag.embedding_1 order by chunk_id")
    assert rows == [([1, 0],), ([0, 1],)]


@pytest.mark.parametrize("query", ["[0.6,0,0.8,0]", "[1,0]"])
def test_a_query_is_cut_as_the_vectors_were(prefix: Database, query: str) -> None:
    rows = prefix.rows_as("public", "select distance from pgrag.search_dense(%s::halfvec)", (query,))
    assert [row[0] for row in rows] == pytest.approx([0, 1])


def test_a_vector_whose_kept_numbers_are_zero_is_refused(prefix: Database) -> None:
    prefix.put("0", "new text")
    ((chunk_id, digest, _),) = prefix.execute("select * from pgrag.claim_chunks('toy')")
    with pytest.raises(
        psycopg.Error, match="keeps 2 numbers of a vector of toy, and those of chunk"
    ) as caught:
        prefix.execute(
            "select pgrag.store_vectors('toy', %s, %s, %s)", ([chunk_id], [digest], ["[0,0,0.6,0.8]"])
        )
    assert caught.value.sqlstate == "RG031"


def test_a_query_whose_kept_numbers_are_zero_is_refused(prefix: Database) -> None:
    with pytest.raises(psycopg.Error, match="the first 2 numbers of the query vector") as caught:
        prefix.rows_as("public", "select from pgrag.search_dense('[0,0,0.6,0.8]'::halfvec)")
    assert caught.value.sqlstate == "RG031"


@pytest.mark.parametrize("vector", ["[0,0]", "[1e-9,0]"])
def test_a_vector_that_is_zero_as_it_is_kept_is_refused(db: Database, vector: str) -> None:
    db.execute("select pgrag.create_space('toy', 'toy', 2, normalised => false)")
    with pytest.raises(psycopg.Error, match="are zero, and have no direction") as caught:
        db.execute("select pgrag.store_vectors('toy', '{1}', '{x}', %s)", ([vector],))
    assert caught.value.sqlstate == "RG031"


def test_a_vector_that_was_cut_already_is_refused(prefix: Database) -> None:
    prefix.put("0", "new text")
    ((chunk_id, digest, _),) = prefix.execute("select * from pgrag.claim_chunks('toy')")
    with pytest.raises(psycopg.Error, match="of toy of dimension 4, got dimension 2 for chunk"):
        prefix.execute("select pgrag.store_vectors('toy', %s, %s, %s)", ([chunk_id], [digest], ["[1,0]"]))


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ("[1,0,0]", 'space "toy" holds vectors of toy of dimension 2, got dimension 3'),
        ("[3,4]", 'space "toy" holds vectors of toy of length 1, got length 5'),
        ("[0,0]", "the query vector is zero"),
    ],
)
def test_the_vector_of_a_query_that_is_not_the_model_s_is_refused(
    db: Database, vector: str, message: str
) -> None:
    fill(db, np.eye(2), index_kind="none")
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.rows_as("public", "select from pgrag.search_dense(%s::halfvec)", (vector,))
    assert caught.value.sqlstate == "RG031"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "select pgrag.check_space('toy', 'other', 2)",
            "of toy of dimension 2, got those of other of dimension 2",
        ),
        (
            "select pgrag.check_space('toy', 'toy', 3)",
            "of toy of dimension 2, got those of toy of dimension 3",
        ),
        (
            "select pgrag.check_space('toy', 'toy', 2, 'bbbb')",
            "with weights of sha256 aaaa, got those of toy with weights of sha256 bbbb",
        ),
        ("select pgrag.store_vectors('toy', '{}', '{}', '{}', 'bbbb')", "weights of sha256 aaaa, got"),
        ("select pgrag.store_vectors('toy', '{1}', '{x}', '{\"[nan,1]\"}')", "got what is none: NaN"),
        ("select pgrag.store_vectors('toy', '{1}', '{x}', '{\"[inf,1]\"}')", "got what is none: infinite"),
        ("select pgrag.store_vectors('toy', '{1}', '{x}', '{word}')", "got what is none: invalid input"),
    ],
)
def test_another_model_is_refused_naming_both(db: Database, call: str, message: str) -> None:
    db.execute("select pgrag.create_space('toy', 'toy', 2, passport => '{\"sha256\": \"aaaa\"}')")
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(call)
    assert caught.value.sqlstate == "RG031"


@pytest.mark.parametrize("model", ["toy", "folder/toy"])
def test_the_same_weights_are_accepted_by_any_name(db: Database, model: str) -> None:
    db.execute("select pgrag.create_space('toy', 'toy', 2, passport => '{\"sha256\": \"aaaa\"}')")
    assert db.execute("select pgrag.check_space('toy', %s, 2, 'aaaa')", (model,)) == [("",)]
