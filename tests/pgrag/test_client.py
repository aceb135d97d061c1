"""The Python door: each call is one transaction as somebody, and leaves nothing of them on the connection."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from _pgrag import login_dsn

import pgrag
from pgrag.errors import ConnectionFailed, DatabaseError, NotInstalled, Refused
from pgrag.install import init

PUMP = "# Hall four\n\nThe pump is checked every Tuesday."
SALE = "# Board\n\nThe pump is sold in May."


@pytest.fixture
def pumps(hybrid: Any) -> Any:
    """One document for everybody, one for Bo; and Ana is in a group."""
    hybrid.put("pumps.md", PUMP, title="Pumps", metadata='{"hall": 4}')
    hybrid.put("board.md", SALE, readers=["user:bo", "group:board"], title="Board")
    hybrid.execute("select pgrag.add_member('group:board', 'user:lena')")
    return hybrid


@pytest.fixture
def store(pumps: Any) -> Iterator[pgrag.Store]:
    """A store of an application, with one connection, so that each call gets the one before's."""
    with pgrag.connect(login_dsn(pumps.dsn, "pgrag_test_app"), connections=1) as opened:
        yield opened


def uris(hits: list[pgrag.Hit]) -> list[str]:
    return [hit.uri for hit in hits]


def test_a_search_finds_what_the_caller_may_read(store: pgrag.Store) -> None:
    assert uris(store.as_principals("user:ana").search("pump")) == ["pumps.md"]


def test_two_callers_of_one_connection_see_each_what_is_theirs(store: pgrag.Store) -> None:
    ana, bo = store.as_principals("user:ana"), store.as_principals("user:bo")
    found = [set(uris(caller.search("pump"))) for caller in (ana, bo, ana)]
    assert found == [{"pumps.md"}, {"pumps.md", "board.md"}, {"pumps.md"}]


def test_a_group_opens_what_it_may_read(store: pgrag.Store) -> None:
    assert "board.md" in uris(store.as_principals("user:lena").search("pump"))


def test_nobody_sees_what_everybody_may_read(store: pgrag.Store) -> None:
    assert uris(store.as_principals().search("pump")) == ["pumps.md"]


def test_a_hit_says_why_it_is_there(store: pgrag.Store) -> None:
    (hit,) = store.as_principals("user:ana").search("pump")
    assert (hit.title, hit.heading_path, hit.lexical_rank, hit.dense_rank) == ("Pumps", ("Hall four",), 1, 1)
    assert hit.score == pytest.approx(1 / (60 + 1) + 1 / (60 + 1))


def test_every_argument_of_a_search_reaches_the_database(store: pgrag.Store) -> None:
    bo = store.as_principals("user:bo")
    assert len(bo.search("pump", k=1)) == 1
    assert bo.search("pump", collections=["elsewhere"]) == []
    assert uris(bo.search("pump", filter={"hall": 4})) == ["pumps.md"]
    (hit,) = bo.search("pump", filter={"hall": 4}, rrf_k=1, weights={"lexical": 3, "dense": 0}, depth=5)
    assert hit.score == pytest.approx(3 / (1 + 1))
    assert hit.dense_rank is None


def test_an_embedding_of_ones_own_is_searched_with(store: pgrag.Store, pumps: Any) -> None:
    text = pumps.value("select embedding::text from pgrag.embed_query('pump') as e (embedding)")
    vector = [float(number) for number in text.strip("[]").split(",")]
    ana = store.as_principals("user:ana")
    own, made = ana.search("pump", embedding=vector, exact=True), ana.search("pump", exact=True)
    assert [hit.dense_distance for hit in own] == [hit.dense_distance for hit in made]


def test_explain_names_the_stages_of_a_hit(store: pgrag.Store) -> None:
    ana = store.as_principals("user:ana")
    (hit,) = ana.search("pump")
    reasons = ana.explain("pump", [hit.chunk_id])
    assert [reason.stage for reason in reasons] == ["word", "lexical", "dense", "fusion"]
    assert reasons[-1].value == hit.score


def test_explain_says_nothing_of_a_hidden_chunk(store: pgrag.Store) -> None:
    (hidden,) = (hit for hit in store.as_principals("user:bo").search("sold") if hit.uri == "board.md")
    assert store.as_principals("user:ana").explain("sold", [hidden.chunk_id]) == []


def test_snippets_mark_what_was_asked_for_as_safe_html(store: pgrag.Store, pumps: Any) -> None:
    pumps.put("html.md", "A <b>valve</b> & a gauge.")
    ana = store.as_principals("user:ana")
    (hit,) = (hit for hit in ana.search("valves") if hit.uri == "html.md")
    assert ana.snippets("valves", [hit.chunk_id]) == {
        hit.chunk_id: "A &lt;b&gt;<mark>valve</mark>&lt;/b&gt; &amp; a gauge."
    }


def test_every_argument_of_snippets_reaches_the_database(store: pgrag.Store, pumps: Any) -> None:
    pumps.put("long.md", "A <valve>. " + "Nothing happens here. " * 20 + "A gauge.")
    ana = store.as_principals("user:ana")
    (hit,) = (hit for hit in ana.search("valve gauge") if hit.uri == "long.md")
    shown = ana.snippets(
        "valve gauge",
        [hit.chunk_id],
        max_characters=60,
        max_fragments=1,
        start_mark="[",
        stop_mark="]",
        escape_html=False,
    )[hit.chunk_id]
    assert (shown.startswith("A <[valve]>. Nothing"), len(shown) <= 60 + len("[]…")) == (True, True)


def test_snippets_say_nothing_of_a_hidden_chunk(store: pgrag.Store) -> None:
    (hidden,) = (hit for hit in store.as_principals("user:bo").search("sold") if hit.uri == "board.md")
    assert store.as_principals("user:ana").snippets("sold", [hidden.chunk_id]) == {}


def test_snippets_of_no_hits_are_none(store: pgrag.Store) -> None:
    assert store.as_principals("user:ana").snippets("pump", []) == {}


def test_a_pack_can_be_cited(store: pgrag.Store) -> None:
    context = store.as_principals("user:ana").pack("pump", budget_tokens=300)
    assert [passage.passage_id for passage in context.passages] == ["P1"]
    assert pgrag.verify_citations("The pump is checked every Tuesday [P1].", context).ok
    assert not pgrag.verify_citations("The pump is checked every Friday [P1].", context).ok


def test_collections_count_what_the_caller_may_read(store: pgrag.Store) -> None:
    counts = [
        [(found.name, found.documents) for found in store.as_principals(person).collections()]
        for person in ("user:ana", "user:bo")
    ]
    assert counts == [[("docs", 1)], [("docs", 2)]]


def test_threads_share_a_store_and_no_identity(pumps: Any) -> None:
    expected = {"user:ana": {"pumps.md"}, "user:bo": {"pumps.md", "board.md"}}
    people = ["user:ana", "user:bo"] * 10
    with (
        pgrag.connect(login_dsn(pumps.dsn, "pgrag_test_app"), connections=2) as store,
        ThreadPoolExecutor(4) as threads,
    ):
        found = list(
            threads.map(lambda person: set(uris(store.as_principals(person).search("pump"))), people)
        )
    assert found == [expected[person] for person in people]


def test_the_connection_is_clean_after_a_call(store: pgrag.Store) -> None:
    store.as_principals("user:bo").search("pump")
    with store._pool.connection() as connection:
        row = connection.execute(
            "select current_user, nullif(current_setting('pgrag.principals', true), ''), count(*) from pgrag.chunk"
        ).fetchone()
    assert row == ("pgrag_test_app", None, 0)


def test_the_connection_is_clean_after_a_refusal(store: pgrag.Store) -> None:
    with pytest.raises(Refused):
        store.as_principals("user:bo").search("pump", k=0)
    assert uris(store.as_principals("user:ana").search("pump")) == ["pumps.md"]


def test_a_superusers_connection_sees_no_more_than_the_caller(pumps: Any) -> None:
    with pgrag.connect(pumps.dsn) as store:
        assert uris(store.as_principals("user:ana").search("pump")) == ["pumps.md"]


def test_an_argument_out_of_range_is_refused_with_its_code(store: pgrag.Store) -> None:
    with pytest.raises(Refused, match="k must be between 1 and 1000, got 0") as refusal:
        store.as_principals("user:ana").search("pump", k=0)
    assert (refusal.value.code, bool(refusal.value.hint)) == ("RG001", True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pump\0", "a text holds a NUL character"),
        ("pump\ud800", "a text holds half of a surrogate pair"),
    ],
)
def test_what_is_no_text_is_named_wherever_it_stands(store: pgrag.Store, text: str, named: str) -> None:
    ana = store.as_principals("user:ana")
    calls: list[Callable[[], object]] = [
        lambda: ana.search(text),
        lambda: ana.search("pump", collections=[text]),
        lambda: ana.search("pump", space=text),
        lambda: ana.snippets(text, [1]),
        lambda: ana.snippets("pump", [1], start_mark=text),
        lambda: ana.explain(text, [1]),
        lambda: ana.pack(text),
        lambda: store.as_principals(f"user:{text}").search("pump"),
    ]
    for call in calls:
        with pytest.raises(DatabaseError, match=named) as refusal:
            call()
        assert refusal.value.hint


def test_a_nul_in_a_filter_is_named(store: pgrag.Store) -> None:
    with pytest.raises(DatabaseError, match="a text holds a NUL character"):
        store.as_principals("user:ana").search("pump", filter={"hall": "\0"})


def test_a_number_too_large_for_the_database_is_no_missing_installation(store: pgrag.Store) -> None:
    with pytest.raises(DatabaseError, match="out of range"):
        store.as_principals("user:ana").search("pump", k=2**40)


def test_a_malformed_principal_is_refused(store: pgrag.Store) -> None:
    with pytest.raises(Refused, match='"ana" is not the name of a principal') as refusal:
        store.as_principals("ana").search("pump")
    assert refusal.value.code == "RG022"


@pytest.mark.parametrize("role", ["pgrag_test_reader", "pgrag_test_nobody"])
def test_a_role_that_may_not_act_for_others_is_refused_with_what_to_grant(pumps: Any, role: str) -> None:
    with (
        pgrag.connect(login_dsn(pumps.dsn, role)) as store,
        pytest.raises(Refused, match=f'role "{role}" may not act for others') as refusal,
    ):
        store.as_principals("user:ana").search("pump")
    assert refusal.value.code == "RG020"
    assert refusal.value.hint == f"As an administrator: grant pgrag_app to {role}"


def test_no_server_is_said_at_once(tmp_path: Any) -> None:
    with pytest.raises(ConnectionFailed, match="no database answers"):
        pgrag.connect(f"host={tmp_path} dbname=none")


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql//bo:s3cret@host/x",
        "s3cret",
        "host=h s3cret=x",
        "postgresql://bo:s3cret@[::1/x",
        "postgresql://bo:s3cret%zz@host/x",
        "host=h password='s3cret",
    ],
)
def test_a_string_that_is_no_dsn_is_refused_without_its_password(dsn: str) -> None:
    with pytest.raises(ConnectionFailed, match="isn't a connection string") as refusal:
        pgrag.connect(dsn)
    assert "s3cret" not in str(refusal.value)


def test_a_database_without_pgvector_is_not_installed(new_database: Callable[..., str]) -> None:
    with pytest.raises(NotInstalled) as refusal:
        pgrag.connect(new_database())
    assert refusal.value.hint == "pgrag init, then pgrag upgrade"


def test_a_database_that_is_only_prepared_is_not_installed(
    roles: None, new_database: Callable[..., str]
) -> None:
    dsn = new_database()
    init(dsn)
    with pgrag.connect(dsn) as store, pytest.raises(NotInstalled) as refusal:
        store.as_principals("user:ana").search("pump")
    assert "pgrag upgrade" in str(refusal.value.hint)


def test_a_database_with_pgvector_alone_is_not_installed(
    roles: None, new_database: Callable[..., str]
) -> None:
    dsn = new_database()
    with psycopg.connect(dsn) as connection:
        connection.execute("create extension vector")
    with pgrag.connect(dsn) as store, pytest.raises(NotInstalled):
        store.as_principals("user:ana").search("pump")


def test_a_busy_pool_is_said_and_not_waited_for_in_vain(pumps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgrag.client._CONNECT_SECONDS", 0.1)
    with (
        pgrag.connect(login_dsn(pumps.dsn, "pgrag_test_app"), connections=1) as store,
        store._pool.connection(),
        pytest.raises(ConnectionFailed, match="no connection became free"),
    ):
        store.as_principals("user:ana").search("pump")


def test_every_error_is_of_one_tree() -> None:
    assert issubclass(DatabaseError, pgrag.PgragError)


def test_asyncio_finds_packs_explains_and_counts_the_same(store: pgrag.Store, pumps: Any) -> None:
    async def ask() -> tuple[Any, ...]:
        async with await pgrag.connect_async(login_dsn(pumps.dsn, "pgrag_test_app")) as opened:
            bo = opened.as_principals("user:bo")
            hits = await bo.search("pump")
            reasons = await bo.explain("pump", [hits[0].chunk_id])
            shown = await bo.snippets("pump", [hit.chunk_id for hit in hits])
            return hits, reasons, shown, await bo.pack("pump"), await bo.collections()

    bo = store.as_principals("user:bo")
    hits = bo.search("pump")
    reasons, shown = (
        bo.explain("pump", [hits[0].chunk_id]),
        bo.snippets("pump", [hit.chunk_id for hit in hits]),
    )
    expected = (hits, reasons, shown, bo.pack("pump"), bo.collections())
    assert asyncio.run(ask()) == expected


def test_callers_at_once_on_asyncio_see_each_what_is_theirs(pumps: Any) -> None:
    people = ["user:ana", "user:bo"] * 5

    async def ask() -> list[set[str]]:
        async with await pgrag.connect_async(login_dsn(pumps.dsn, "pgrag_test_app"), connections=2) as store:
            found = await asyncio.gather(*(store.as_principals(person).search("pump") for person in people))
        return [set(uris(hits)) for hits in found]

    assert asyncio.run(ask()) == [{"pumps.md"}, {"pumps.md", "board.md"}] * 5


def test_asyncio_translates_the_same_errors(pumps: Any, tmp_path: Any) -> None:
    async def connect_to_nothing() -> None:
        await pgrag.connect_async(f"host={tmp_path} dbname=none")

    async def search(role: str, k: int) -> None:
        async with await pgrag.connect_async(login_dsn(pumps.dsn, role)) as store:
            await store.as_principals("user:ana").search("pump", k=k)

    with pytest.raises(ConnectionFailed):
        asyncio.run(connect_to_nothing())
    for role, k, code in (("pgrag_test_app", 0, "RG001"), ("pgrag_test_nobody", 1, "RG020")):
        with pytest.raises(Refused) as refusal:
            asyncio.run(search(role, k))
        assert refusal.value.code == code


def test_the_example_of_the_package_runs(pumps: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, example = str(pgrag.__doc__).partition("Example::\n")
    assert "postgresql://app@localhost/mydb" in example
    exec(textwrap.dedent(example.replace("postgresql://app@localhost/mydb", pumps.dsn)), {})  # noqa: S102
    assert "'supported': " in capsys.readouterr().out
