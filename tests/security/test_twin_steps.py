"""Invisible means absent after every step: a database and, for each caller, a twin that never holds what they may not read.

At each step something random happens to the database. To a twin happens only what its caller could notice: a document
that comes into sight is put, one that goes out of sight is deleted. The twin loads in other batches, compacts at other
times and knows nothing of what was rolled back. Then both are asked, and every score is equal to the last bit.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import _index
import pytest
from _index import Document
from _pgrag import Database

STEPS = 520
CALLERS = ("user:ana", "user:bo")
GROUPS = {"group:eng": ("user:ana", "group:ops"), "group:ops": ("user:bo",)}
READERS: tuple[tuple[str, ...], ...] = (
    ("public",),
    ("group:eng",),
    ("group:ops",),
    ("user:ana",),
    ("user:bo", "user:ana"),
    ("public", "!user:bo"),
    ("group:eng", "!group:ops"),
    ("user:boss",),
    ("user:boss",),
    (),
)

# Chunks are told by uri and ordinal, since the numbers of a twin are others; so ties may come in another order.
LEXICAL = """
select d.uri, c.ordinal, s.score from pgrag.search_lexical(%s, %s, null, %s) as s
inner join pgrag.chunk as c on c.chunk_id = s.chunk_id
inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
order by s.rank
"""
SEARCH = """
select s.uri, c.ordinal, s.title, s.content, s.lexical_rank, s.lexical_score, s.dense_rank, s.score
from pgrag.search(%s, %s, filter => %s) with ordinality as s
inner join pgrag.chunk as c on c.chunk_id = s.chunk_id
order by s.ordinality
"""
EXPLAIN = """
select d.uri, c.ordinal, s.detail, s.value
from pgrag.explain_search(%s, array(
    select c.chunk_id from pgrag.chunk as c
    inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
    where d.uri = any(%s) order by d.uri, c.ordinal
)) as s
inner join pgrag.chunk as c on c.chunk_id = s.chunk_id
inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
where s.stage = 'word' order by d.uri, c.ordinal, s.detail
"""


@dataclass
class Life:
    """What there is, and who is in which group."""

    docs: dict[str, Document] = field(default_factory=dict)
    members: set[tuple[str, str]] = field(default_factory=set)

    def visible(self, caller: str) -> dict[str, Document]:
        """The documents that somebody may read, told without the database."""
        names = {caller, "public"}
        while more := {group for group, member in self.members if member in names} - names:
            names |= more
        return {
            uri: document
            for uri, document in self.docs.items()
            if names & set(document.readers) and not any(f"!{name}" in document.readers for name in names)
        }


def prepare(database: Database, life: Life) -> None:
    database.execute("select pgrag.create_principals('user:ana', 'user:bo', 'user:boss')")
    for group, members in GROUPS.items():
        for member in members:
            database.execute("select pgrag.add_member(%s, %s)", (group, member))
            life.members.add((group, member))


def put(database: Database, documents: list[Document], rng: random.Random) -> None:
    """Put documents in batches of any size."""
    while documents:
        size = rng.choice([1, 3, 20, 500])
        batch, documents = documents[:size], documents[size:]
        _index.load(database.admin, batch)


def happen(database: Database, life: Life, rng: random.Random, number: int) -> None:
    """Do something to the database, and write down what it led to."""
    readers = rng.choice(READERS)
    known = rng.choice(sorted(life.docs)) if life.docs else "d0"
    uri = rng.choice([known, f"d{rng.randint(0, 60)}"])

    def document(uri: str) -> Document:
        length = rng.randint(1, 30)
        chunks = tuple(_index.sentence(rng, length) for _ in range(rng.choice([1, 1, 2, 4])))
        metadata = {"third": rng.randint(0, 2), "tenth": rng.randint(0, 9)}
        return Document(uri, chunks, readers, metadata, rng.choice([None, None, None, "de"]))

    done = rng.choices(
        [
            "put",
            "add",
            "move",
            "move many",
            "delete",
            "delete many",
            "load",
            "undo",
            "member",
            "compact",
            "rebuild",
        ],
        [8, 4, 6, 1, 3, 1, 2, 2, 2, 4, 0.5],
    )[0]
    match done:
        case "put":
            life.docs[uri] = document(uri)
            _index.load(database.admin, [life.docs[uri]])
        case "add":
            before = life.docs.get(known, document(known))
            life.docs[known] = replace(before, chunks=(*before.chunks[-3:], _index.sentence(rng, 5)))
            _index.load(database.admin, [life.docs[known]])
        case "move" if known in life.docs:
            life.docs[known] = replace(life.docs[known], readers=readers)
            database.execute("select pgrag.set_readers('docs', %s, %s)", (known, list(readers)))
        case "move many":
            moved = [uri for uri in life.docs if uri.endswith(str(number % 10))]
            life.docs |= {uri: replace(life.docs[uri], readers=readers) for uri in moved}
            database.execute(
                "update pgrag.document set acl_id = pgrag._acl_id(collection_id, %s) where uri = any(%s)",
                (list(readers), moved),
            )
        case "delete":
            life.docs.pop(uri, None)
            database.execute("select pgrag.delete_document('docs', %s)", (uri,))
        case "delete many":
            gone = [uri for uri in life.docs if uri.endswith(str(number % 10))]
            database.execute("delete from pgrag.document where uri = any(%s)", (gone,))
            life.docs = {uri: doc for uri, doc in life.docs.items() if uri not in gone}
        case "load":
            many = [
                replace(document(f"m{n}"), readers=rng.choice(READERS)) for n in range(rng.randint(20, 200))
            ]
            _index.load(database.admin, many)
            life.docs |= {one.uri: one for one in many}
        case "undo":
            with database.admin.transaction(force_rollback=True):
                _index.load(database.admin, [document(f"u{n}") for n in range(5)])
                database.execute("delete from pgrag.document where uri like '%3'")
                database.execute("select pgrag.compact()")
        case "member":
            group = rng.choice(sorted(GROUPS))
            member = rng.choice(GROUPS[group])
            call = "remove_member" if (group, member) in life.members else "add_member"
            database.execute(f"select pgrag.{call}(%s, %s)", (group, member))
            life.members ^= {(group, member)}
        case "compact":
            database.execute("select pgrag.compact(%s)", (rng.choice([None, 5, 50]),))
        case "rebuild":
            database.execute("select pgrag.rebuild_postings('docs')")


def follow(twin: Database, caller: str, before: Life, after: Life, rng: random.Random) -> None:
    """Do to a twin what its caller could notice."""
    for group, member in sorted(before.members ^ after.members):
        call = "add_member" if (group, member) in after.members else "remove_member"
        twin.execute(f"select pgrag.{call}(%s, %s)", (group, member))
    seen, sees = before.visible(caller), after.visible(caller)
    gone = [uri for uri in seen if uri not in sees]
    for uri in gone:
        twin.execute("select pgrag.delete_document('docs', %s)", (uri,))
    come = [document for uri, document in sees.items() if document != seen.get(uri)]
    rng.shuffle(come)
    put(twin, come, rng)
    if rng.random() < 0.1:
        twin.execute("select pgrag.compact(%s)", (rng.choice([None, 5, 50]),))


def ask(database: Database, caller: str, statement: str, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    with database.admin.transaction(force_rollback=True):
        database.execute("set local role pgrag_app")
        database.execute("select pgrag.act_as(%s)", (caller,))
        return database.execute(statement, arguments)


def compare(database: Database, twin: Database, caller: str, rng: random.Random, *, more: bool) -> int:
    """Compare what both say to one query, fusion and explanations too if ``more``; return how many chunks they found."""
    query = _index.random_query(rng)
    condition = json.dumps(query.filter)
    one, other = (ask(each, caller, LEXICAL, (query.text, 10_000, condition)) for each in (database, twin))
    scores = {(uri, ordinal): score.hex() for uri, ordinal, score in one}
    assert scores == {(uri, ordinal): score.hex() for uri, ordinal, score in other}, query
    # The best k have the k best scores, and are those that have them.
    k = rng.randint(1, 50)
    for each in (database, twin):
        rows = ask(each, caller, LEXICAL, (query.text, k, condition))
        assert [score for _, _, score in rows] == [score for _, _, score in one[:k]], query
        assert all(scores[uri, ordinal] == score.hex() for uri, ordinal, score in rows), query
    if not more:
        return len(one)
    # Ranks, and so scores of fusion, are the same where no two lexical scores are.
    if len(set(scores.values())) == len(scores):
        asked = (query.text, k, condition)
        assert ask(database, caller, SEARCH, asked) == ask(twin, caller, SEARCH, asked), query
    explained = (query.text, sorted({uri for uri, _, _ in one[:3]}))
    assert ask(database, caller, EXPLAIN, explained) == ask(twin, caller, EXPLAIN, explained), query
    return len(one)


@pytest.fixture
def databases(installed_template: str, new_database: Callable[..., str]) -> Iterator[list[Database]]:
    made = [Database(new_database(template=installed_template)) for _ in range(1 + len(CALLERS))]
    for database in made:
        database.execute("select pgrag.create_collection('docs')")
    yield made
    for database in made:
        database.close()


def test_every_score_is_that_of_the_twin_after_each_of_520_steps(databases: list[Database]) -> None:
    database, *twins = databases
    rng, others = random.Random(3), random.Random(4)
    life, compared, hidden = Life(), 0, 0
    for each in databases:
        prepare(each, life)
    for number in range(STEPS):
        before = Life(dict(life.docs), set(life.members))
        happen(database, life, rng, number)
        for caller, twin in zip(CALLERS, twins, strict=True):
            follow(twin, caller, before, life, others)
            compared += compare(database, twin, caller, rng, more=number % 4 == 0)
            hidden += len(life.docs) - len(life.visible(caller))
    assert compared > 10 * STEPS
    assert hidden > 10 * STEPS
