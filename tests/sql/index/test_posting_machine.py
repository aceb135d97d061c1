"""The lexical index after every step of a random life: it says what the chunks say, and searches score by it.

A state machine puts, edits, moves, deletes, compacts, rebuilds, re-analyses, changes memberships and rolls back. After
each step the index is compared with one made anew, and searches of several callers with BM25 in plain Python, in the
transaction of the step and, while that is open, beside it. ``PGRAG_EXAMPLES=500`` runs longer, with new examples.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import _index
from _index import Document
from _pgrag import Database
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import sql

EXAMPLES = int(os.environ.get("PGRAG_EXAMPLES", "0"))
SETTINGS = settings(
    max_examples=EXAMPLES or 25,
    stateful_step_count=30,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

# Who asks: everything but what denies them, much, little, nothing.
CALLERS = ("user:all", "user:ana", "user:bo", "user:none")
READERS: tuple[tuple[str, ...], ...] = (
    ("user:all", "group:eng"),
    ("user:all", "group:eng", "!user:ana"),
    ("user:all", "group:ops"),
    ("user:all", "user:ana"),
    ("user:all", "user:bo"),
    ("user:all", "user:ana", "user:bo", "!group:ops"),
    ("public", "!user:none"),
    ("user:all", "!group:eng"),
    ("group:ops",),
    (),
)
MOST_CHUNKS = 1500

State = tuple[dict[str, Document], set[tuple[str, str]]]

uris = st.integers(0, 15).map(lambda n: f"d{n:02}")
readers = st.sampled_from(READERS)
seeds = st.integers(0, 2**32 - 1)
bounds = st.sampled_from([None, None, 2, 3, 10, 100, 1000])


class Machine(RuleBasedStateMachine):
    """A database, what should be in it, and what should be in it for everybody else while a transaction is open."""

    def __init__(self, new_database: Callable[[], Database]) -> None:
        super().__init__()
        self.db = new_database()
        self.own = self.db.admin
        self.other = self.db.connect()
        self.docs: dict[str, Document] = {}
        self.members: set[tuple[str, str]] = set()
        self.committed: State | None = None  # None: no transaction is open
        self.savepoints: list[State] = []
        self.drifted = False
        self.random = random.Random(0)

    def teardown(self) -> None:
        if self.committed is not None:
            self.own.execute("rollback")
        self.db.close()

    @initialize(seed=seeds, count=st.sampled_from([0, 30, 300, 600]), owners=st.sampled_from([1, 8, 300]))
    def begin_with(self, seed: int, count: int, owners: int) -> None:
        self.random = random.Random(seed)
        self.own.execute("update pgrag.collection set chunk_tokens = 32")
        self.own.execute("select pgrag.create_principals(variadic %s::text[])", (list(CALLERS),))
        for group, member in (("group:eng", "user:ana"), ("group:eng", "group:ops")):
            self.join(group, member)
        self.load_many(0, count, owners, seed)

    # What is done

    @rule(uri=uris, readers=readers, seed=seeds, length=st.integers(1, 150))
    def put(self, uri: str, readers: tuple[str, ...], seed: int, length: int) -> None:
        """Put or replace a document that SQL cuts into one chunk or some."""
        content = _index.sentence(random.Random(seed), length)
        third = seed % 3
        self.own.execute(
            "select pgrag.put_document('docs', %s, %s, %s, metadata => jsonb_build_object('third', %s::int))",
            (uri, content, list(readers), third),
        )
        self.docs[uri] = Document(uri, (content,), readers, {"third": third})

    @rule(uri=uris, seed=seeds, words=st.integers(1, 12))
    def add_to_a_document(self, uri: str, seed: int, words: int) -> None:
        """Replace a document by itself and a little more, so that chunks are kept beside new ones."""
        if uri in self.docs:
            before = self.docs[uri]
            chunks = (*before.chunks, _index.sentence(random.Random(seed), words))
            self.docs[uri] = replace(before, chunks=chunks)
            _index.load(self.own, [self.docs[uri]])

    @precondition(lambda self: self.size() < MOST_CHUNKS)
    @rule(
        first=st.integers(0, 300),
        count=st.integers(10, 600),
        owners=st.sampled_from([1, 3, 8, 300]),
        seed=seeds,
    )
    def load_many(self, first: int, count: int, owners: int, seed: int) -> None:
        """Put or replace hundreds in one statement, of few readers or of nearly as many as documents."""
        chosen = random.Random(seed)
        documents = []
        for n in range(first, first + count):
            length = chosen.randint(1, 30)
            chunks = tuple(_index.sentence(chosen, length) for _ in range(1 + (n % 20 == 0)))
            owner: tuple[str, ...] = READERS[(n + seed) % owners % len(READERS)]
            if owners > len(READERS):
                owner = ("user:all", f"user:u{n % owners}")
            documents.append(Document(f"m{n:04}", chunks, owner, {"third": n % 3, "tenth": n % 10}))
        _index.load(self.own, documents)
        self.docs |= {document.uri: document for document in documents}

    @rule(uri=uris, readers=readers)
    def move(self, uri: str, readers: tuple[str, ...]) -> None:
        moved = self.own.execute("select pgrag.set_readers('docs', %s, %s)", (uri, list(readers))).fetchall()
        assert moved == [(uri in self.docs,)]
        if uri in self.docs:
            self.docs[uri] = replace(self.docs[uri], readers=readers)

    @precondition(lambda self: self.docs)
    @rule(ending=st.integers(0, 9), readers=readers)
    def move_many(self, ending: int, readers: tuple[str, ...]) -> None:
        """Move a tenth of all documents in one statement."""
        self.own.execute(
            """update pgrag.document set acl_id = pgrag._acl_id(collection_id, %s) where uri like '%%' || %s::text""",
            (list(readers), ending),
        )
        for uri in self.docs:
            if uri.endswith(str(ending)):
                self.docs[uri] = replace(self.docs[uri], readers=readers)

    @rule(uri=uris)
    def delete(self, uri: str) -> None:
        gone = self.own.execute("select pgrag.delete_document('docs', %s)", (uri,)).fetchall()
        assert gone == [(self.docs.pop(uri, None) is not None,)]

    @rule(endings=st.sets(st.integers(0, 9), min_size=1, max_size=4))
    def delete_many(self, endings: set[int]) -> None:
        """Delete tenths of all documents in one statement."""
        like = [f"%{ending}" for ending in endings]
        self.own.execute("delete from pgrag.document where uri like any(%s)", (like,))
        self.docs = {uri: doc for uri, doc in self.docs.items() if int(uri[-1]) not in endings}

    @rule(remainder=st.integers(0, 6), seed=seeds)
    def edit_chunks_apart_from_their_documents(self, remainder: int, seed: int) -> None:
        content = _index.sentence(random.Random(seed), 1 + seed % 25)
        self.own.execute(
            "update pgrag.chunk set content = %s where mod(chunk_id, 7) = %s", (content, remainder)
        )
        self.drifted = True

    @rule()
    def touch_what_no_index_knows(self) -> None:
        self.own.execute("update pgrag.chunk set page = coalesce(page, 0) + 1 where mod(chunk_id, 3) = 0")

    @rule(group=st.sampled_from(["group:eng", "group:ops"]), member=st.sampled_from(CALLERS[1:]))
    def join(self, group: str, member: str) -> None:
        self.own.execute("select pgrag.add_member(%s, %s)", (group, member))
        self.members.add((group, member))

    @rule(
        group=st.sampled_from(["group:eng", "group:ops"]), member=st.sampled_from([*CALLERS[1:], "group:ops"])
    )
    def leave(self, group: str, member: str) -> None:
        self.own.execute("select pgrag.remove_member(%s, %s)", (group, member))
        self.members.discard((group, member))

    # What keeps the index

    @rule(bound=bounds)
    def compact(self, bound: int | None) -> None:
        self.own.execute("select pgrag.compact(%s)", (bound,))

    @rule(bound=bounds)
    def compact_again(self, bound: int | None) -> None:
        self.own.execute("select pgrag.compact(max_runs => %s)", (bound,))

    @rule()
    def rebuild(self) -> None:
        self.own.execute("select pgrag.rebuild_postings('docs')")

    @rule(analyzer=st.sampled_from(["english", "simple"]), batch=st.sampled_from([1, 50, 1000]))
    def reindex(self, analyzer: str, batch: int) -> None:
        """To ``simple`` and back every chunk with the stop word changes."""
        self.own.execute("select pgrag.set_analyzer('docs', %s)", (analyzer,))
        after: Any = 0
        batch = max(batch, self.size() // 5)
        while after is not None:
            [[after]] = self.own.execute(
                "select pgrag.reindex_chunks('docs', %s, %s)", (after, batch)
            ).fetchall()

    @rule()
    def analyze_tables(self) -> None:
        self.own.execute("analyze pgrag.posting, pgrag.chunk, pgrag.corpus_stat, pgrag.lexeme")

    # Transactions

    def state(self) -> State:
        return dict(self.docs), set(self.members)

    @precondition(lambda self: self.committed is None)
    @rule()
    def begin(self) -> None:
        self.committed = self.state()
        self.own.execute("begin")

    @precondition(lambda self: self.committed is not None)
    @rule()
    def set_savepoint(self) -> None:
        self.own.execute(f"savepoint s{len(self.savepoints)}")
        self.savepoints.append(self.state())

    @precondition(lambda self: self.savepoints)
    @rule()
    def roll_back_to_savepoint(self) -> None:
        self.docs, self.members = self.savepoints.pop()
        self.own.execute(f"rollback to savepoint s{len(self.savepoints)}")

    @precondition(lambda self: self.committed is not None)
    @rule()
    def roll_back(self) -> None:
        assert self.committed is not None
        self.docs, self.members = self.committed
        self.end("rollback")

    @precondition(lambda self: self.committed is not None)
    @rule()
    def commit(self) -> None:
        self.end("commit")

    def end(self, how: str) -> None:
        self.own.execute(sql.SQL(how))
        self.committed = None
        self.savepoints = []

    # What must hold

    def size(self) -> int:
        return sum(len(document.chunks) for document in self.docs.values())

    @invariant()
    def the_index_says_what_the_chunks_say(self) -> None:
        # Analysing everything again takes long; not after every step of many documents.
        whole = self.size() < 100 or self.random.random() < 0.15
        _index.assert_index_is_right(self.own, whole=whole, drifted=self.drifted)

    @invariant()
    def every_caller_finds_what_counting_finds(self) -> None:
        self.compare(self.own, *self.state())

    @invariant()
    def nobody_else_finds_what_is_not_committed(self) -> None:
        if self.committed is not None:
            self.compare(self.other, *self.committed)

    def compare(
        self, connection: _index.Connection, docs: dict[str, Document], members: set[tuple[str, str]]
    ) -> None:
        everything = _index.passages(connection)
        assert {passage.uri for passage in everything} == set(docs)
        assert all(passage.metadata == docs[passage.uri].metadata for passage in everything)
        for caller in CALLERS:
            names = principals(caller, members)
            visible = [passage for passage in everything if may_read(names, docs[passage.uri].readers)]
            query, k = _index.random_query(self.random), self.random.choice([1, 2, 5, 10, 50, 1000])
            expected = _index.score(visible, query)
            rows = _index.search(connection, [caller], query, k)
            try:
                _index.assert_found(rows, expected, k)
            except AssertionError as error:
                error.add_note(
                    f"{caller} asked {query.text!r} {query.filter}, k {k}, of {len(visible)} chunks"
                )
                raise


def principals(caller: str, members: set[tuple[str, str]]) -> set[str]:
    """Whom somebody counts as."""
    names = {caller, "public"}
    while more := {group for group, member in members if member in names} - names:
        names |= more
    return names


def may_read(names: set[str], readers: tuple[str, ...]) -> bool:
    return not names.isdisjoint(readers) and names.isdisjoint(r[1:] for r in readers if r.startswith("!"))


def test_words_of_the_machine_are_their_own_lexemes(db: Database) -> None:
    query = "select w from unnest(%s::text[]) as w where pgrag.analyze('english', w) <> (w || ':1')::tsvector"
    assert db.execute(query, ([*_index.WORDS, *_index.UNKNOWN],)) == [("the",)]


def test_the_index_is_right_after_every_step(
    installed_template: str, server_dsn: str, new_database: Callable[..., str]
) -> None:
    made: list[Database] = []

    def fresh() -> Database:
        if made:
            made[0].close()
            made.clear()
        database = Database(new_database(template=installed_template))
        database.execute("select pgrag.create_collection('docs')")
        made.append(database)
        return database

    run_state_machine_as_test(lambda: Machine(fresh), settings=SETTINGS)  # type: ignore[arg-type]
