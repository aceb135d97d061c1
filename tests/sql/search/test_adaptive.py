"""Dense search through an index and without: the nearest are found whoever asks, and a wrong guess costs time only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import psycopg
import pytest
from _pgrag import Database
from numpy.typing import NDArray

MANY, WIDTH, CLUSTERS = 10_000, 96, 20
# As if the index cost nothing, or everything.
CHEAP = {"exact_us": 100, "hidden_us": 10, "index_us": 0.001, "effort": 600}
DEAR = {"exact_us": 1, "hidden_us": 0.1, "index_us": 1000, "effort": 400}
FOUND = """
select d.uri, s.plan, s.distance
from pgrag.search_dense(%s::halfvec, 10{}) as s
join pgrag.document as d using (document_id)
order by s.rank
"""


@dataclass
class Corpus:
    """Vectors in clusters that stand apart; cluster ``n`` is for ``group:n``, document ``n`` has ``{"most": n % 4 > 0}``."""

    database: Database
    vectors: NDArray[np.float64]
    clusters: NDArray[np.int64]

    def calibrate(self, figures: dict[str, float]) -> None:
        self.database.execute("update pgrag.space set calibration = %s", (json.dumps(figures),))

    def found(self, who: str, query: NDArray[np.float64], more: str = "") -> tuple[list[int], str]:
        rows = self.database.rows_as(who, FOUND.format(more), (text(query),))
        return [int(uri) for uri, _, _ in rows], rows[0][1]

    def nearest(self, query: NDArray[np.float64], visible: NDArray[np.int64]) -> list[int]:
        return [int(n) for n in visible[np.argsort(-(self.vectors[visible] @ query), kind="stable")[:10]]]

    def recall(
        self, who: str, visible: NDArray[np.int64], more: str = "", near: int | None = None
    ) -> tuple[float, set[str]]:
        """Return the share of the nearest that were found over 20 queries near a cluster, and the plans."""
        random_ = np.random.default_rng(1)
        places = np.arange(MANY) if near is None else np.flatnonzero(self.clusters == near)
        hits, plans = 0, set()
        for row in random_.choice(places, 20):
            query = self.vectors[row] + 0.05 * random_.normal(size=WIDTH)
            query /= np.linalg.norm(query)
            found, plan = self.found(who, query, more)
            hits += len(set(found) & set(self.nearest(query, visible)))
            plans.add(plan)
        return hits / (20 * min(10, len(visible))), plans


def text(vector: NDArray[np.float64]) -> str:
    return "[" + ",".join(f"{number:.6f}" for number in vector) + "]"


@pytest.fixture(scope="module", params=["hnsw", "ivfflat", "bit"])
def corpus(
    request: pytest.FixtureRequest, installed_template: str, session_database: Callable[..., str]
) -> Iterator[Corpus]:
    random_ = np.random.default_rng(0)
    centres = random_.normal(size=(CLUSTERS, WIDTH))
    clusters = random_.integers(0, CLUSTERS, MANY)
    vectors = centres[clusters] + 0.5 * random_.normal(size=(MANY, WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    names = [f"group:{n}" for n in range(CLUSTERS)]
    database.execute("select pgrag.create_principals(variadic %s)", ([*names, "user:all", "user:few"],))
    for name in names:
        database.execute("select pgrag.add_member(%s, 'user:all')", (name,))
    database.load(
        [f"{n}" for n in range(MANY)],
        readers=lambda n: [f"group:{clusters[n]}", *(["user:few"] if n % 50 == 0 else [])],
        metadata=lambda n: {"most": n % 4 > 0, "hundred": n % 100},
    )
    kind = "hnsw" if request.param == "bit" else request.param
    precision = "bit" if request.param == "bit" else "halfvec"
    database.execute(
        "select pgrag.create_space('toy', 'toy', %s, index_kind => %s, \"precision\" => %s, with_index => false)",
        (WIDTH, kind, precision),
    )
    database.execute("select pgrag.attach_space('docs', 'toy')")
    jobs = database.execute("select chunk_id, hash, content from pgrag.claim_chunks('toy', %s)", (MANY,))
    database.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)",
        ([j[0] for j in jobs], [j[1] for j in jobs], [text(vectors[int(j[2])]) for j in jobs]),
    )
    database.execute("select pgrag.center_codes('toy')")
    database.execute("analyze")
    database.execute(database.value("select pgrag._space_index('toy')"))
    database.execute("select pgrag.activate_space('docs', 'toy')")
    yield Corpus(database, vectors, clusters)
    database.close()


@pytest.fixture
def index(corpus: Corpus) -> str:
    """Return the name that plans give the index."""
    return str(corpus.database.value("select index_kind from pgrag.space"))


def test_the_index_finds_the_nearest(corpus: Corpus, index: str) -> None:
    corpus.calibrate(CHEAP)
    recall, plans = corpus.recall("user:all", np.arange(MANY))
    assert plans == {f"{index}: cheaper than exact over {MANY} passages"}
    assert recall >= 0.99


def test_a_dear_index_is_not_used(corpus: Corpus, index: str) -> None:
    corpus.calibrate(DEAR)
    assert corpus.recall("user:all", np.arange(MANY)) == (
        1,
        {f"exact over {MANY} passages: cheaper than {index}"},
    )


def test_who_sees_one_in_fifty_finds_as_much(corpus: Corpus) -> None:
    corpus.calibrate(CHEAP)
    recall, _ = corpus.recall("user:few", np.arange(0, MANY, 50))
    assert recall >= 0.99


def test_who_sees_none_of_the_nearest_is_answered_exactly(corpus: Corpus, index: str) -> None:
    corpus.calibrate(CHEAP)
    # Ten clusters are visible, and queries are near one that isn't.
    members = [f"group:{n}" for n in range(10)]
    visible = np.flatnonzero(corpus.clusters < 10)
    hits = 0
    for row in np.flatnonzero(corpus.clusters == 15)[:20]:
        query = corpus.vectors[row]
        rows = corpus.database.rows_as(members, FOUND.format(""), (text(query),))
        hits += len({int(uri) for uri, _, _ in rows} & set(corpus.nearest(query, visible)))
    assert hits / 200 >= 0.99


def test_a_caller_is_not_told_that_the_nearest_are_hidden(corpus: Corpus, index: str) -> None:
    corpus.calibrate(CHEAP)
    members = [f"group:{n}" for n in range(18)]
    visible = int((corpus.clusters < 18).sum())
    for near in (3, 19):
        query = text(corpus.vectors[np.flatnonzero(corpus.clusters == near)[0]])
        rows = corpus.database.rows_as(members, FOUND.format(""), (query,))
        assert {plan for _, plan, _ in rows} == {f"{index}: cheaper than exact over {visible} passages"}


def test_a_filter_that_leaves_most_goes_through_the_index(corpus: Corpus, index: str) -> None:
    corpus.calibrate(CHEAP)
    recall, plans = corpus.recall(
        "user:all", np.flatnonzero(np.arange(MANY) % 4), """, filter => '{"most": true}'"""
    )
    assert plans == {f"{index}: cheaper than exact over {MANY} passages"}
    assert recall >= 0.99


def test_a_filter_that_leaves_few_is_exact_over_these(corpus: Corpus) -> None:
    corpus.calibrate(CHEAP)
    recall, plans = corpus.recall("user:all", np.arange(7, MANY, 100), """, filter => '{"hundred": 7}'""")
    assert (recall, plans) == (1, {f"exact over {MANY // 100} passages"})


def test_more_than_the_index_gives_at_once_is_found_exactly(corpus: Corpus) -> None:
    corpus.calibrate(CHEAP)
    query = corpus.vectors[0]
    rows = corpus.database.rows_as(
        "user:all", "select distance from pgrag.search_dense(%s::halfvec, 2000)", (text(query),)
    )
    ordered = np.sort(1 - corpus.vectors @ query)[:2000]
    assert np.array([row[0] for row in rows]) == pytest.approx(ordered, abs=1e-3)


def test_distances_through_the_index_are_the_exact_ones(corpus: Corpus) -> None:
    query = text(corpus.vectors[3])
    corpus.calibrate(CHEAP)
    found, right = (
        {
            uri: distance
            for uri, _, distance in corpus.database.rows_as("user:all", FOUND.format(more), (query,))
        }
        for more in ("", ", exact => true")
    )
    both = found.keys() & right.keys()
    assert len(both) >= 9
    assert [found[uri] for uri in both] == [right[uri] for uri in both]


def test_a_search_leaves_the_caller_s_settings_alone(corpus: Corpus, index: str) -> None:
    corpus.calibrate(CHEAP)
    names = (
        ("hnsw.ef_search", "hnsw.iterative_scan", "enable_sort")
        if index == "hnsw"
        else ("ivfflat.probes", "enable_sort")
    )
    settings = "select " + ", ".join(f"current_setting('{name}')" for name in names)
    with corpus.database.acting("user:all") as connection:
        connection.execute("select '[1]'::halfvec <=> '[1]'")
        connection.execute("set local enable_sort = off")
        before = connection.execute(settings).fetchone()
        connection.execute("select from pgrag.search_dense(%s::halfvec)", (text(corpus.vectors[0]),))
        assert connection.execute(settings).fetchone() == before


def test_an_index_that_was_not_built_is_not_used(corpus: Corpus) -> None:
    corpus.calibrate(CHEAP)
    name = corpus.database.value("select 'embedding_1_' || index_kind || '_idx' from pgrag.space")
    with corpus.database.admin.transaction(force_rollback=True):
        corpus.database.execute(
            "update pg_index set indisvalid = false where indexrelid = ('pgrag.' || %s)::regclass", (name,)
        )
        connection = corpus.database.admin
        connection.execute("set local role pgrag_app")
        connection.execute("select pgrag.act_as('user:all')")
        row = connection.execute(
            "select plan from pgrag.search_dense(%s::halfvec, 1)", (text(corpus.vectors[0]),)
        ).fetchone()
    assert row == (f"exact over {MANY} passages: the index is not built",)


def test_calibration_finds_the_effort_that_reaches_the_recall(corpus: Corpus, index: str) -> None:
    found = corpus.database.value("select pgrag.calibrate_space('toy', 20, recall => 0.95)")
    assert (found["queries"], found["index"]) == (20, index)
    assert min(found["exact_us"], found["hidden_us"], found["index_us"]) > 0
    reached = [tried["recall_at_10"] >= 0.95 for tried in found["tried"]]
    assert reached == [False] * (len(reached) - 1) + [True]
    assert found["effort"] == found["tried"][-1]["effort"]
    assert corpus.database.value("select calibration from pgrag.space") == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'toy', 0", "queries must be between 1 and 1000, got 0"),
        ("'toy', recall => 2", "recall must be between 0.5 and 1, got 2"),
        ("'none'", 'space "none" does not exist'),
    ],
)
def test_what_can_t_be_calibrated_is_refused(db: Database, arguments: str, message: str) -> None:
    db.execute("select pgrag.create_space('toy', 'toy', 3)")
    with pytest.raises(psycopg.Error, match=message):
        db.execute(f"select pgrag.calibrate_space({arguments})")


def test_an_empty_space_has_nothing_to_calibrate_by(db: Database) -> None:
    db.execute("select pgrag.create_space('toy', 'toy', 3)")
    with pytest.raises(psycopg.Error, match='space "toy" holds no vectors yet') as caught:
        db.execute("select pgrag.calibrate_space('toy')")
    assert caught.value.sqlstate == "RG005"


def toy(db: Database, count: int, dimension: int = 3, **space: str) -> None:
    """A space ``toy`` with so many vectors, a document each, two by two the same."""
    db.load([f"{n}" for n in range(count)])
    options = "".join(f", {name} => '{value}'" for name, value in space.items())
    db.execute(f"select pgrag.create_space('toy', 'toy', {dimension}{options})")
    db.execute("select pgrag.attach_space('docs', 'toy')")
    rows = np.random.default_rng(0).normal(size=(count, dimension))
    jobs = db.execute("select chunk_id, hash, content from pgrag.claim_chunks('toy', %s)", (count,))
    vectors = [text(rows[int(job[2]) % 7] / np.linalg.norm(rows[int(job[2]) % 7])) for job in jobs]
    db.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)", ([j[0] for j in jobs], [j[1] for j in jobs], vectors)
    )


def test_vectors_as_near_as_the_tenth_are_found_as_well(db: Database) -> None:
    # Of 7 different vectors, so that the ten nearest of 300 are any of about 43 that are the same.
    toy(db, 300)
    tried = db.value("select pgrag.calibrate_space('toy', 20)")["tried"]
    assert [each["recall_at_10"] for each in tried] == [1]


@pytest.mark.parametrize(("asked", "queries"), [(30, 30), (5, 5)])
def test_few_vectors_are_asked_as_often_as_wanted(db: Database, asked: int, queries: int) -> None:
    toy(db, 40, index_kind="none")
    assert db.value("select pgrag.calibrate_space('toy', %s) -> 'queries'", (asked,)) == queries


def test_queries_are_made_of_two_vectors_and_are_the_same_each_time(db: Database) -> None:
    toy(db, 40, index_kind="none")
    kept = [
        np.array(row[0]) for row in db.execute("select distinct embedding::real[] from pgrag.embedding_1")
    ]
    made = db.execute("select embedding::real[] from pgrag._sample_queries('toy', 9)")
    pairs = [0.64 * one + 0.36 * other for one in kept for other in kept]
    pairs = [pair / np.linalg.norm(pair) for pair in pairs]
    assert len(made) == 9
    assert all(min(np.abs(pair - row[0]).max() for pair in pairs) < 1e-3 for row in made)
    assert db.execute("select embedding::real[] from pgrag._sample_queries('toy', 9)") == made
    assert db.execute("select embedding::real[] from pgrag._sample_queries('toy', 9, 1)") != made


def test_a_narrow_filter_over_two_collections_is_exact_over_what_it_leaves(db: Database) -> None:
    toy(db, 40, index_kind="none")
    db.execute("select pgrag.create_collection('more'), pgrag.attach_space('more', 'toy')")
    for uri, kind in (("a", "x"), ("b", "x"), ("c", "y")):
        db.put(uri, uri, collection="more", metadata=json.dumps({"kind": kind}))
    db.put("d", "d", metadata=json.dumps({"kind": "x"}))
    db.put("e", "e", metadata=json.dumps({"kind": "y"}))
    jobs = db.execute("select chunk_id, hash from pgrag.claim_chunks('toy')")
    db.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)",
        ([j[0] for j in jobs], [j[1] for j in jobs], ["[1,0,0]"] * len(jobs)),
    )
    db.execute("select pgrag.activate_space(c, 'toy') from unnest('{docs,more}'::text[]) as u (c)")
    rows = db.rows_as(
        "public",
        "select d.uri, s.plan from pgrag.search_dense('[1,0,0]'::halfvec, 10, filter => '{\"kind\": \"x\"}') as s"
        " join pgrag.document as d using (document_id) order by d.uri",
    )
    passed = ["a", "b", "d"]
    assert rows == [(uri, f"exact over {len(passed)} passages") for uri in passed]
