"""The dense arm: the nearest visible vectors, exactly where that is cheaper, and whose settings it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import psycopg
import pytest
from _pgrag import Database

RANKED = """
select d.uri, s.rank, s.distance from pgrag.search_dense(%s::halfvec, {}) as s
join pgrag.document as d using (document_id) order by s.rank
"""


def make_space(db: Database, name: str = "toy", dimension: int = 3, index_kind: str = "none") -> None:
    db.execute(
        "select pgrag.create_space(%s, 'toy-model', %s, index_kind => %s)", (name, dimension, index_kind)
    )
    db.execute("select pgrag.attach_space('docs', %s)", (name,))


def text(vector: Sequence[float]) -> str:
    return "[" + ",".join(str(round(float(number), 6)) for number in vector) + "]"


def embed(db: Database, vectors: dict[str, Sequence[float]], space: str = "toy") -> None:
    """Store a vector for the only chunk of each document, then let the space answer."""
    for uri, vector in vectors.items():
        chunk_id, hash_ = db.execute(
            "select c.chunk_id, c.hash from pgrag.chunk as c join pgrag.document as d using (document_id) where d.uri = %s",
            (uri,),
        )[0]
        stored = db.value(
            "select pgrag.store_vectors(%s, %s, %s, %s)", (space, [chunk_id], [hash_], [text(vector)])
        )
        assert stored == 1
    db.execute("select pgrag.activate_space('docs', %s)", (space,))


def found(
    db: Database, vector: Sequence[float], who: str = "public", **more: object
) -> list[tuple[str, int, float]]:
    arguments = ", ".join(f"{name} => %s" for name in ({"k": 10} | more))
    return db.rows_as(who, RANKED.format(arguments), (text(vector), *({"k": 10} | more).values()))  # type: ignore[return-value]


@pytest.fixture
def three(db: Database) -> Database:
    """Documents whose vectors are the axes: `x` and `y` public, `z` for Ana."""
    for uri, readers in (("x", ["public"]), ("y", ["public"]), ("z", ["user:ana"])):
        db.put(uri, f"about {uri}", readers)
    make_space(db)
    embed(db, {"x": [1, 0, 0], "y": [0, 1, 0], "z": [0, 0, 1]})
    return db


def test_the_nearest_comes_first_with_its_cosine_distance(three: Database) -> None:
    assert found(three, [0.8, 0.6, 0], "user:ana") == [
        ("x", 1, pytest.approx(1 - 0.8, abs=1e-3)),
        ("y", 2, pytest.approx(1 - 0.6, abs=1e-3)),
        ("z", 3, pytest.approx(1, abs=1e-3)),
    ]


def test_a_stranger_s_vector_is_absent(three: Database) -> None:
    assert [uri for uri, _, _ in found(three, [0, 0, 1])] == ["x", "y"]


def test_ties_are_broken_by_chunk_id(three: Database) -> None:
    assert [uri for uri, _, _ in found(three, [1 / sqrt(2), 1 / sqrt(2), 0])] == ["x", "y"]


def test_an_edit_takes_the_old_vector_away_in_its_transaction(three: Database) -> None:
    three.put("x", "about something else")
    assert [uri for uri, _, _ in found(three, [1, 0, 0])] == ["y"]


def test_a_text_that_did_not_change_keeps_its_vector(three: Database) -> None:
    three.put("x", "about x", title=None, metadata='{"seen": true}')
    assert [uri for uri, _, _ in found(three, [1, 0, 0])] == ["x", "y"]


def test_moving_a_document_moves_its_vector(three: Database) -> None:
    three.execute("select pgrag.set_readers('docs', 'x', array['user:ana'])")
    assert [uri for uri, _, _ in found(three, [1, 0, 0])] == ["y"]
    assert found(three, [1, 0, 0], "user:ana")[0][0] == "x"


def test_a_vector_of_another_dimension_is_refused_naming_both(three: Database) -> None:
    with pytest.raises(
        psycopg.Error, match='space "toy" holds vectors of toy-model of dimension 3, got dimension 2'
    ) as e:
        found(three, [1, 0])
    assert e.value.sqlstate == "RG031"


def test_a_query_vector_of_zeros_is_refused(three: Database) -> None:
    with pytest.raises(psycopg.Error, match="the query vector is zero"):
        found(three, [0, 0, 0])


def test_no_vector_finds_nothing(three: Database) -> None:
    assert three.rows_as("public", "select * from pgrag.search_dense(null)") == []


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1, 0], "of dimension 3, got dimension 2"),
        ([3, 4, 0], "of length 1, got length 5"),
        ([float("nan"), 0, 0], "NaN not allowed"),
    ],
)
def test_a_wrong_vector_is_refused_at_the_write(three: Database, vector: list[float], message: str) -> None:
    three.put("x", "new text")
    with pytest.raises(psycopg.Error, match=message):
        three.execute(
            "select pgrag.store_vectors('toy', array_agg(chunk_id), array_agg(hash), array[%s]) from pgrag.chunk where content = 'new text'",
            (text(vector),),
        )


def test_a_vector_of_a_text_that_changed_meanwhile_is_not_stored(three: Database) -> None:
    three.put("x", "new text")
    (job,) = three.execute("select chunk_id, hash, content from pgrag.claim_chunks('toy')")
    three.execute("update pgrag.chunk set content = 'newer text' where chunk_id = %s", (job[0],))
    stored = three.value("select pgrag.store_vectors('toy', %s, %s, %s)", ([job[0]], [job[1]], ["[1,0,0]"]))
    assert stored == 0
    assert three.value("select count(*) from pgrag.embed_queue") == 1


def test_a_space_that_lacks_vectors_is_not_activated(db: Database) -> None:
    db.put("x", "about x")
    make_space(db)
    with pytest.raises(psycopg.Error, match='space "toy" still lacks 1 vectors of collection "docs"'):
        db.execute("select pgrag.activate_space('docs', 'toy')")


def test_two_workers_get_different_chunks_and_a_lease_that_ran_out_is_given_again(db: Database) -> None:
    for n in range(4):
        db.put(f"d{n}", f"text {n}")
    make_space(db)
    claimed = [[row[0] for row in db.execute("select * from pgrag.claim_chunks('toy', 2)")] for _ in range(3)]
    assert [len(ids) for ids in claimed] == [2, 2, 0]
    assert not set(claimed[0]) & set(claimed[1])
    db.execute(
        "update pgrag.embed_queue set leased_until = now() - interval '1 second' where chunk_id = %s",
        (claimed[0][0],),
    )
    assert [row[0] for row in db.execute("select * from pgrag.claim_chunks('toy', 2)")] == [claimed[0][0]]


def test_a_chunk_that_fails_eight_times_moves_to_the_dead_letters(db: Database) -> None:
    db.put("x", "about x")
    make_space(db)
    chunk_id = db.value("select chunk_id from pgrag.chunk")
    attempts = [
        db.value("select pgrag.fail_chunk('toy', %s, 'out of memory')", (chunk_id,)) for _ in range(8)
    ]
    assert attempts == [1, 2, 3, 4, 5, 6, 7, 8]
    assert db.execute("select stage, uri, reason from pgrag.failure") == [("embed", "x", "out of memory")]
    assert db.value("select count(*) from pgrag.embed_queue") == 0


# Twenty thousand vectors in 32 dimensions, of which a caller sees all, one in ten, one in a thousand.
MANY, WIDTH = 20_000, 32


@pytest.fixture(scope="module")
def many_rows() -> np.ndarray:
    random_ = np.random.default_rng(0)
    centres = random_.normal(size=(50, WIDTH))
    rows = centres[random_.integers(0, 50, MANY)] + 0.5 * random_.normal(size=(MANY, WIDTH))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def many(db: Database, many_rows: np.ndarray) -> Database:
    db.execute("select pgrag.create_principals('user:all', 'user:tenth', 'user:few')")
    steps = {"user:all": 1, "user:tenth": 10, "user:few": 1000}
    db.load(
        [f"{n}" for n in range(MANY)], readers=lambda n: [who for who, step in steps.items() if n % step == 0]
    )
    make_space(db, dimension=WIDTH, index_kind="hnsw")
    jobs = db.execute("select chunk_id, hash, content from pgrag.claim_chunks('toy', %s)", (MANY,))
    vectors = [text(many_rows[int(content)]) for _, _, content in jobs]
    db.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)", ([j[0] for j in jobs], [j[1] for j in jobs], vectors)
    )
    db.execute("select pgrag.activate_space('docs', 'toy')")
    db.execute("analyze")
    return db


def test_recall_holds_for_everyone_and_the_plan_says_how(many: Database, many_rows: np.ndarray) -> None:
    random_ = np.random.default_rng(1)
    plans = {}
    for who, step in (("user:all", 1), ("user:tenth", 10), ("user:few", 1000)):
        visible = np.arange(0, MANY, step)
        hits = wanted = 0
        with many.acting(who) as connection:
            settings = "select array[current_setting('hnsw.ef_search', true), current_setting('hnsw.iterative_scan', true)]"
            connection.execute("select '[1]'::halfvec <=> '[1]'")
            before = connection.execute(settings).fetchone()
            for query in many_rows[random_.integers(0, MANY, 20)] + 0.05 * random_.normal(size=(20, WIDTH)):
                nearest = visible[np.argsort(-(many_rows[visible] @ query), kind="stable")[:10]]
                rows = connection.execute(
                    "select d.uri, s.plan from pgrag.search_dense(%s::halfvec) as s join pgrag.document as d using (document_id)",
                    (text(query / np.linalg.norm(query)),),
                ).fetchall()
                plans[who] = rows[0][1]
                hits += len({int(uri) for uri, _ in rows} & set(nearest.tolist()))
                wanted += 10
            assert connection.execute(settings).fetchone() == before
        assert hits / wanted >= 0.99
    assert plans == {
        "user:all": "hnsw: cheaper than exact over 20000 passages",
        "user:tenth": "exact over 2000 passages: they are few",
        "user:few": "exact over 20 passages: they are few",
    }


def test_a_search_stands_beside_a_big_table_that_would_be_scanned_in_parallel(many: Database) -> None:
    many.execute("create table public.big as select n from generate_series(1, 100000) as n")
    many.execute("grant select on public.big to public; analyze public.big")
    with many.acting("user:all") as connection:
        for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            connection.execute(f"set local {setting} = 0")
        for call in ("search_dense(%s, 1)", "search('none', embedding => %s, k => 1)"):
            row = connection.execute(
                f"select count(*) from public.big as b join pgrag.{call} as s on s.chunk_id = b.n",
                ("[1" + ",0" * (WIDTH - 1) + "]",),
            ).fetchone()
            assert row == (1,)


def test_exact_forbids_the_index(many: Database, many_rows: np.ndarray) -> None:
    rows = many.rows_as(
        "user:all",
        "select plan from pgrag.search_dense(%s::halfvec, 1, exact => true)",
        (text(many_rows[0]),),
    )
    assert rows == [(f"exact over {MANY} passages",)]


def test_a_filter_that_nothing_near_passes_is_searched_exactly(many: Database, many_rows: np.ndarray) -> None:
    order = np.argsort(-(many_rows @ many_rows[0]), kind="stable")
    # More documents than are looked up by their filter, and none that the index comes to.
    far = [f"{n:06}" for n in order[-3000:]]
    many.execute("update pgrag.document set metadata = '{\"far\": 1}' where uri = any(%s)", (far,))
    assert found(many, many_rows[0], "user:all", k=1, filter='{"far": 1}')[0][0] == far[0]


@pytest.mark.parametrize("effort", ["much", "1e400"])
def test_an_effort_that_is_no_number_is_refused(three: Database, effort: str) -> None:
    with three.acting("public") as connection:
        connection.execute("select set_config('pgrag.index_effort', %s, true)", (effort,))
        with pytest.raises(psycopg.Error, match="the setting pgrag") as caught, connection.transaction():
            connection.execute("select * from pgrag.search_dense('[1,0,0]')")
    assert caught.value.sqlstate == "RG001"
