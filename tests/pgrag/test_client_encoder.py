"""Query vectors from outside the database: who makes them, when, and what isn't let through."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from _pgrag import login_dsn
from numpy.typing import NDArray

import pgrag
from pgrag.errors import Refused

SPACE, MODEL, WEIGHTS = "hand", "by-hand", "a" * 64


class Encoder:
    """Every query has one vector."""

    def __init__(
        self, vector: Sequence[float] = (0.6, 0.8), *, model: str = MODEL, sha256: str | None = WEIGHTS
    ) -> None:
        self.name = SPACE
        self.vector = vector
        self.passport = {"name": SPACE, "model": model, "sha256": sha256}
        self.asked: list[tuple[str, str]] = []

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += [(text, threading.current_thread().name) for text in texts]
        return np.array([self.vector] * len(texts), np.float32)


class Bare:
    """As little as will do: no passport."""

    name = SPACE

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1, 0]] * len(texts), np.float32)


@pytest.fixture
def pumps(db: Any) -> Any:
    """Two documents in a space of two numbers a vector."""
    db.execute(
        "select pgrag.create_space(%s, %s, 2, passport => %s)",
        (SPACE, MODEL, f'{{"sha256": "{WEIGHTS}"}}'),
    )
    db.execute("select pgrag.attach_space('docs', %s)", (SPACE,))
    for uri, text, vector in (("pump.md", "A pump.", "[1,0]"), ("valve.md", "A valve.", "[0,1]")):
        db.put(uri, text)
        db.execute(
            "select pgrag.store_vectors(%s, array_agg(chunk_id), array_agg(hash), array[%s])"
            " from pgrag.claim_chunks(%s)",
            (SPACE, vector, SPACE),
        )
    db.execute("select pgrag.activate_space('docs', %s)", (SPACE,))
    return db


@pytest.fixture
def store(pumps: Any) -> Iterator[pgrag.Store]:
    with pgrag.connect(login_dsn(pumps.dsn, "pgrag_test_app"), connections=1) as opened:
        yield opened


def distances(hits: list[pgrag.Hit]) -> dict[str, float | None]:
    return {hit.uri: hit.dense_distance for hit in hits}


# Cosine distance of (0.6, 0.8) from (1, 0) and from (0, 1); halfvec keeps 11 bits.
EXPECTED = {
    "pump.md": pytest.approx(1 - 0.6, abs=2**-10),
    "valve.md": pytest.approx(1 - 0.8, abs=2**-10),
}


def test_an_encoder_given_to_a_search_embeds_its_query(store: pgrag.Store) -> None:
    encoder = Encoder()
    assert distances(store.as_principals().search("machines", encoder=encoder)) == EXPECTED
    assert [text for text, _ in encoder.asked] == ["machines"]


def test_an_encoder_without_a_passport_will_do(store: pgrag.Store) -> None:
    assert distances(store.as_principals().search("machines", encoder=Bare())) == {
        "pump.md": pytest.approx(0),
        "valve.md": pytest.approx(1),
    }


def test_the_calls_encoder_goes_before_the_stores(pumps: Any) -> None:
    stores, calls = Encoder(), Encoder()
    with pgrag.connect(login_dsn(pumps.dsn, "pgrag_test_app"), encoder=stores) as store:
        store.as_principals().search("machines", encoder=calls)
        assert (len(stores.asked), len(calls.asked)) == (0, 1)
        store.as_principals().search("machines")
        assert (len(stores.asked), len(calls.asked)) == (1, 1)


def test_an_embedding_goes_before_both(store: pgrag.Store) -> None:
    encoder = Encoder()
    hits = store.as_principals().search("machines", embedding=[1, 0], encoder=encoder, space=SPACE)
    assert distances(hits)["pump.md"] == pytest.approx(0)
    assert encoder.asked == []


def test_pack_and_explain_take_one_too(store: pgrag.Store) -> None:
    anyone, encoder = store.as_principals(), Encoder()
    context = anyone.pack("machines", encoder=encoder)
    # Nearest first, the valve's.
    assert {passage.uri for passage in context.passages} == {"pump.md", "valve.md"}
    (first, *_) = anyone.search("machines", encoder=encoder)
    reasons = anyone.explain("machines", [first.chunk_id], encoder=encoder)
    dense = next(reason for reason in reasons if reason.stage == "dense")
    assert (first.uri, dense.rank, dense.value) == ("valve.md", 1, EXPECTED["valve.md"])


@pytest.mark.parametrize(
    ("encoder", "reason"),
    [
        (
            Encoder(model="by-foot", sha256=None),
            f'"{SPACE}" holds vectors of {MODEL} of dimension 2, got those of by-foot',
        ),
        (Encoder((1, 0, 0)), f"{MODEL} of dimension 2, got those of {MODEL} of dimension 3"),
        (Encoder(sha256="b" * 64), "a" * 16 + ".*" + "b" * 16),
    ],
)
@pytest.mark.parametrize("call", ["search", "pack"])
def test_another_model_is_refused_and_both_are_named(
    store: pgrag.Store, call: str, encoder: Encoder, reason: str
) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        getattr(store.as_principals(), call)("machines", encoder=encoder)
    assert caught.value.code == "RG031"


def test_a_space_may_have_another_name_than_the_encoder(store: pgrag.Store) -> None:
    encoder = Encoder()
    encoder.name = "elsewhere"
    assert distances(store.as_principals().search("machines", encoder=encoder, space=SPACE)) == EXPECTED


def test_a_query_without_a_vector_is_searched_by_words(store: pgrag.Store) -> None:
    hits = store.as_principals().search("pump", encoder=Encoder((0, 0)))
    assert distances(hits) == {"pump.md": None}


def test_no_connection_waits_for_the_model(pumps: Any, store: pgrag.Store) -> None:
    states: list[str] = []

    class Watching(Encoder):
        def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
            states.extend(
                row[0]
                for row in pumps.execute(
                    "select state from pg_stat_activity where usename = 'pgrag_test_app' and datname = current_database()"
                )
            )
            return super().encode_queries(texts)

    store.as_principals().collections()  # so that the pool has its connection
    store.as_principals().search("machines", encoder=Watching())
    assert set(states) == {"idle"}


def test_on_asyncio_the_model_runs_in_a_thread(pumps: Any) -> None:
    encoder = Encoder()

    async def ask() -> list[pgrag.Hit]:
        async with await pgrag.connect_async(
            login_dsn(pumps.dsn, "pgrag_test_app"), encoder=encoder
        ) as store:
            anyone = store.as_principals()
            await anyone.pack("machines")
            hits = await anyone.search("machines")
            await anyone.explain("machines", [hits[0].chunk_id])
            return hits

    assert distances(asyncio.run(ask())) == EXPECTED
    assert [text for text, _ in encoder.asked] == ["machines"] * 3
    assert threading.main_thread().name not in {thread for _, thread in encoder.asked}


def test_on_asyncio_another_model_is_refused_too(pumps: Any) -> None:
    async def ask() -> None:
        async with await pgrag.connect_async(login_dsn(pumps.dsn, "pgrag_test_app")) as store:
            await store.as_principals().search("machines", encoder=Encoder(model="by-foot", sha256=None))

    with pytest.raises(Refused, match="by-foot"):
        asyncio.run(ask())


def test_an_error_of_the_model_leaves_the_store_usable(store: pgrag.Store) -> None:
    class Broken(Encoder):
        def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        store.as_principals().search("machines", encoder=Broken())
    assert distances(store.as_principals().search("machines", encoder=Encoder())) == EXPECTED


@pytest.mark.parametrize("space", ["hidden", "nowhere"])
def test_a_space_that_the_caller_sees_no_collection_of_is_as_if_it_werent_there(
    pumps: Any, store: pgrag.Store, space: str
) -> None:
    pumps.execute("select pgrag.create_space('hidden', %s, 2)", (MODEL,))
    hits = store.as_principals().search("pump", encoder=Encoder(model="by-foot", sha256=None), space=space)
    assert distances(hits) == {"pump.md": None}


def test_who_sees_nothing_finds_nothing_with_an_encoder_too(pumps: Any, store: pgrag.Store) -> None:
    pumps.execute("select pgrag.create_principals('user:ana')")
    for uri in ("pump.md", "valve.md"):
        pumps.execute("select pgrag.set_readers('docs', %s, array['user:ana'])", (uri,))
    assert store.as_principals().search("machines", encoder=Encoder()) == []
    assert store.as_principals().pack("machines", encoder=Encoder()).passages == ()
    assert len(store.as_principals("user:ana").search("machines", encoder=Encoder())) == 2


def test_words_alone_need_no_model(store: pgrag.Store) -> None:
    encoder = Encoder(model="by-foot")
    anyone = store.as_principals()
    hits = anyone.search("pump", encoder=encoder, weights={"lexical": 1, "dense": 0})
    anyone.explain("pump", [hits[0].chunk_id], encoder=encoder, weights={"dense": 0})
    assert distances(hits) == {"pump.md": None}
    assert encoder.asked == []


def test_a_weight_that_is_left_out_is_not_0(store: pgrag.Store) -> None:
    encoder = Encoder()
    store.as_principals().search("pump", encoder=encoder, weights={"lexical": 2})
    assert [text for text, _ in encoder.asked] == ["pump"]


def test_on_asyncio_words_alone_need_no_model_either(pumps: Any) -> None:
    encoder = Encoder()

    async def ask() -> list[pgrag.Hit]:
        async with await pgrag.connect_async(
            login_dsn(pumps.dsn, "pgrag_test_app"), encoder=encoder
        ) as store:
            return await store.as_principals().search("pump", weights={"dense": 0})

    assert distances(asyncio.run(ask())) == {"pump.md": None}
    assert encoder.asked == []


def test_the_space_that_answers_and_was_made_by_the_model_is_found_whatever_its_name(
    pumps: Any, store: pgrag.Store
) -> None:
    pumps.execute("update pgrag.space set name = 'renamed'")
    assert distances(store.as_principals().search("machines", encoder=Encoder())) == EXPECTED
