"""Invisible means absent: what one caller gets is what a database without the hidden rows would give, to the last bit.

One database has a long history: documents of several people and languages are put, one by one and many at once, edited,
moved between readers, deleted and rolled back; people leave groups and come back; the logs are compacted. For each
caller there are two twins. The *remembering* twin went through the same history without the documents that the caller
may not read, so its chunks are numbered in the same order, and whole answers are equal; it loads in batches of another
size and compacts at other times. The *fresh* twin was made from the final state in one go, so ties may come in another
order, and all scores are equal. What holds after every single step is in ``test_twin_steps.py``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from _index import Document as Loaded
from _index import load
from _pgrag import Database

GROUPS = {
    "group:eng": ["user:ana", "user:dan", "group:leads"],
    "group:hr": ["user:bo"],
    "group:leads": ["user:carla"],
    "group:guests": ["user:gus"],
}
READERS: tuple[list[str], ...] = (
    ["public"],
    ["group:eng"],
    ["group:hr"],
    ["user:ana"],
    ["group:eng", "!user:dan"],
    ["public", "!group:guests"],
    ["user:boss"],
    ["group:hr", "user:carla"],
    ["group:eng", "group:hr", "!group:leads"],
    [],
)
CALLERS = ("user:ana", "user:bo", "user:carla", "user:dan", "user:gus", "user:stranger", "user:boss")
WORDS = re.findall(
    r"\S+",
    "vault key keys rotate rotation server servers error failed login payroll salary merger secret budget holiday policy "
    "quarter report engine pump valve pressure region backup restore snapshot token tokens expiry renewal E-4021 E-4022 "
    "TS-999 C++ node.js foo_bar camelCase running runner ran",
)
QUERIES = (
    "vault",
    "vault key rotation",
    "error E-4021 after rotating keys",
    "E-4022",
    "TS-999 backup",
    "C++",
    "node.js engine",
    "foo_bar",
    "salary payroll budget holiday",
    "merger",
    "merger merger merger budget",
    "secret",
    '"vault key"',
    '"key rotation" server',
    '"backup restore" "snapshot token"',
    "vault -secret",
    'salary -"payroll budget"',
    "-secret",
    "vau*",
    "ro* -server",
    "re* pump",
    "tok* exp*",
    "zzz",
    "running",
    "the",
    "policy quarter report region " * 5,
    "only1 only2 only3",
    "only* server",
    "title3 title7",
    "heading vault",
)
FILTERS = ("{}", '{"team": "eng"}', '{"team": "hr", "year": 2024}', '{"nothing": 1}')


@dataclass
class Document:
    collection: str
    content: str
    readers: list[str]
    title: str
    metadata: str
    language: str | None = None
    cut: bool = True  # by put_document; else one chunk, by load_staged


@dataclass(frozen=True)
class Step:
    """One statement about one document, or about none of them; ``undone`` says that it was rolled back."""

    key: tuple[str, str] | None
    statement: str
    arguments: tuple[Any, ...]
    undone: bool = False


@dataclass(frozen=True)
class Batch:
    """Documents that were loaded by one statement, a chunk each."""

    documents: tuple[Loaded, ...]


@dataclass
class History:
    """What happened, and the state that it led to."""

    steps: list[Step | Batch] = field(default_factory=list)
    state: dict[tuple[str, str], Document] = field(default_factory=dict)

    def put(self, uri: str, document: Document) -> None:
        self.state[document.collection, uri] = document
        self.steps.append(Step((document.collection, uri), *put_statement(uri, document)))

    def load(self, documents: dict[str, Document]) -> None:
        self.state |= {("docs", uri): document for uri, document in documents.items()}
        self.steps.append(Batch(tuple(loaded(uri, document) for uri, document in documents.items())))

    def move(self, key: tuple[str, str], readers: list[str]) -> None:
        self.state[key].readers = readers
        self.steps.append(Step(key, "select pgrag.set_readers(%s, %s, %s)", (*key, readers)))

    def delete(self, key: tuple[str, str]) -> None:
        del self.state[key]
        self.steps.append(Step(key, "select pgrag.delete_document(%s, %s)", key))

    def undo(self, uri: str, document: Document) -> None:
        key = (document.collection, uri)
        self.steps.append(Step(key, *put_statement(uri, document), undone=True))

    def leave_and_come_back(self, group: str, member: str) -> None:
        self.steps.append(Step(None, "select pgrag.remove_member(%s, %s)", (group, member)))
        self.steps.append(Step(None, "select pgrag.add_member(%s, %s)", (group, member)))


def loaded(uri: str, document: Document) -> Loaded:
    return Loaded(uri, (document.content,), tuple(document.readers), json.loads(document.metadata))


def put_statement(uri: str, document: Document) -> tuple[str, tuple[Any, ...]]:
    return (
        "select pgrag.put_document(%s, %s, %s, %s, title => %s, metadata => %s, language => %s)",
        (
            document.collection,
            uri,
            document.content,
            document.readers,
            document.title,
            document.metadata,
            document.language,
        ),
    )


def history() -> History:
    """Some hundred documents and what became of them; the same each time."""
    rng = random.Random(20260807)
    made = History()

    def sentence() -> str:
        # Few words are frequent, most are rare, as in prose.
        return " ".join(
            WORDS[min(int(rng.expovariate(0.09)), len(WORDS) - 1)] for _ in range(rng.randint(4, 25))
        )

    def content(number: int) -> str:
        parts = [f"# Heading {WORDS[number % len(WORDS)]}", sentence() + f" only{number}."]
        for _ in range(rng.randint(0, 3)):
            parts += [f"## {sentence()[:30]}", sentence() + ". " + sentence() + "."]
        return "\n\n".join(parts)

    def document(number: int, collection: str, readers: list[str]) -> Document:
        metadata = rng.choice(['{"team": "eng"}', '{"team": "hr", "year": 2024}', '{"team": "hr"}', "{}"])
        language = rng.choice([None, None, None, "de", "fr"])
        return Document(collection, content(number), readers, f"title{number}", metadata, language)

    for number in range(80):
        made.put(f"doc{number}", document(number, "docs", READERS[number % len(READERS)]))
    for number in range(20):
        made.put(f"doc{number}", document(number, "closed", rng.choice([["group:hr"], ["user:boss"]])))
    for turn in range(330):
        key = rng.choice(sorted(made.state))
        before = made.state[key]
        if turn % 80 == 10:
            many = {
                f"many{turn:03}-{n:02}": Document(
                    "docs", sentence(), readers, "many", '{"team": "hr"}', cut=False
                )
                for n, readers in enumerate(READERS * 3)
            }
            made.load(many)
        elif turn % 11 == 7:
            made.undo(key[1], document(turn, key[0], before.readers))
        elif turn % 40 == 39:
            group = rng.choice(sorted(GROUPS))
            made.leave_and_come_back(group, rng.choice(GROUPS[group]))
        elif turn % 3 == 0:
            made.move(key, READERS[rng.randrange(len(READERS))])
        elif turn % 9 == 1:
            made.delete(key)
        elif turn % 9 == 4:
            made.put(f"new{turn}", document(turn, "docs", READERS[rng.randrange(len(READERS))]))
        else:
            # Only a part changes, so that chunks are kept beside new ones.
            text = before.content + f"\n\n## More\n\n{sentence()}." if turn % 2 else content(turn)
            made.put(key[1], replace(before, content=text, cut=True))
    # There and back again: visible, hidden, visible; and hidden, visible, hidden.
    for uri in sorted(uri for collection, uri in made.state if collection == "docs")[::5]:
        key = ("docs", uri)
        back = made.state[key].readers
        made.move(key, rng.choice([["user:boss"], [], ["public"]]))
        made.move(key, back)
    # A word that every document of some hidden ACL has, and then no longer.
    for uri in ("doc26", "doc36"):
        key = ("docs", uri)
        if key in made.state:
            before = made.state[key]
            made.put(uri, replace(before, content="quagmire vault", cut=True))
            made.put(uri, replace(before, cut=True))
    return made


def replay(
    database: Database, made: History, rng: random.Random, *, batch: int, caller: str | None = None
) -> None:
    """Do what was done, without the documents that the caller may not read in the end.

    Args:
        database: Prepared, and empty.
        made: What was done.
        rng: Decides when to compact, and how far.
        batch: The most documents to load by one statement.
        caller: None: nothing is left out, and what was rolled back is done and rolled back.
    """
    for step in made.steps:
        if rng.random() < 0.03:
            database.execute("select pgrag.compact(%s)", (rng.choice([None, 5, 50]),))
        if isinstance(step, Batch):
            kept = [document for document in step.documents if shown(made, ("docs", document.uri), caller)]
            for first in range(0, len(kept), batch):
                load(database.admin, kept[first : first + batch])
        elif step.undone:
            if caller is None:
                with database.admin.transaction(force_rollback=True):
                    database.execute(step.statement, step.arguments)
        elif step.key is None or shown(made, step.key, caller):
            database.execute(step.statement, step.arguments)


def shown(made: History, key: tuple[str, str], caller: str | None) -> bool:
    return caller is None or (key in made.state and may_read(caller, made.state[key].readers))


def principals(caller: str) -> set[str]:
    """Whom somebody counts as, told without the database."""
    names = {caller, "public"}
    while True:
        more = {group for group, members in GROUPS.items() if names & set(members)} - names
        if not more:
            return names
        names |= more


def may_read(caller: str, readers: list[str]) -> bool:
    names = principals(caller)
    return bool(names & set(readers)) and not any(name in readers for name in (f"!{name}" for name in names))


def prepare(database: Database) -> None:
    for group, members in GROUPS.items():
        for member in members:
            database.execute("select pgrag.add_member(%s, %s)", (group, member))
    for name in ("docs", "closed"):
        database.execute("select pgrag.create_collection(%s, chunk_tokens => 32)", (name,))


@pytest.fixture(scope="module")
def made() -> History:
    return history()


@pytest.fixture(scope="module")
def original(
    installed_template: str, session_database: Callable[..., str], made: History
) -> Iterator[Database]:
    database = Database(session_database(template=installed_template))
    prepare(database)
    replay(database, made, random.Random(1), batch=1000)
    yield database
    database.close()


@pytest.fixture(scope="module", params=CALLERS)
def caller(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def remembering(
    installed_template: str, session_database: Callable[..., str], made: History, caller: str
) -> Iterator[Database]:
    """The same history, without the documents that the caller may not read in the end."""
    database = Database(session_database(template=installed_template))
    prepare(database)
    replay(database, made, random.Random(caller), batch=7, caller=caller)
    yield database
    database.close()


@pytest.fixture(scope="module")
def fresh(
    installed_template: str, session_database: Callable[..., str], made: History, caller: str
) -> Iterator[Database]:
    """No history: the documents that the caller may read in the end, put once."""
    database = Database(session_database(template=installed_template))
    prepare(database)
    with database.admin.transaction():
        for (_, uri), document in made.state.items():
            if may_read(caller, document.readers):
                if document.cut:
                    database.execute(*put_statement(uri, document))
                else:
                    load(database.admin, [loaded(uri, document)])
    yield database
    database.close()


# Chunks are told by collection, uri and ordinal: numbers have gaps where hidden rows are.
NAMES = (
    "inner join pgrag.chunk as c on c.chunk_id = s.chunk_id inner join pgrag.document as d "
    "on d.collection_id = c.collection_id and d.document_id = c.document_id "
    "inner join pgrag.collection as o on o.collection_id = c.collection_id"
)
LEXICAL = (
    "select o.name, d.uri, c.ordinal, s.rank, s.score from pgrag.search_lexical(%s, %s, %s, %s) as s "
    f"{NAMES} order by s.rank"
)
SEARCH = (
    "select o.name, c.ordinal, s.uri, s.title, s.heading_path, s.content, s.score, s.lexical_rank, s.lexical_score, "
    f"s.dense_rank, s.dense_distance, s.dense_plan from pgrag.search(%s, %s, %s, filter => %s) with ordinality as s {NAMES} "
    "order by s.ordinality"
)
PACK = (
    "select place, passage_id, uri, title, heading_path, page, char_start, char_end, content, token_count, score, "
    "removed_characters, flagged, text, left_out from pgrag.pack_context(%s, %s, filter => %s) "
    "with ordinality order by ordinality"
)
SNIPPETS = (
    "select o.name, d.uri, c.ordinal, s.snippet from pgrag.snippets(%s, array("
    "select l.chunk_id from pgrag.search_lexical(%s, 20) as l order by l.rank)) with ordinality as s "
    f"{NAMES} order by s.ordinality"
)
EXPLAIN = (
    "select o.name, d.uri, c.ordinal, s.stage, s.rank, s.value, s.detail from pgrag.explain_search(%s, "
    "(select array_agg(c.chunk_id order by c.chunk_id) from pgrag.chunk as c "
    "inner join pgrag.document as d using (collection_id, document_id) where right(d.uri, 1) in ('3', '6'))"
    f") with ordinality as s {NAMES} order by s.ordinality"
)


def answers(
    database: Database, caller: str, statement: str, arguments: list[tuple[Any, ...]]
) -> list[list[Any]]:
    with database.acting(caller) as connection:
        return [connection.execute(statement, each).fetchall() for each in arguments]


def test_the_history_is_long(made: History) -> None:
    assert len(made.steps) >= 500


def test_the_history_has_something_to_hide_and_to_show(made: History, caller: str) -> None:
    shown = [document for document in made.state.values() if may_read(caller, document.readers)]
    assert len(made.state) - len(shown) >= 5
    assert len(shown) >= 5
    assert len({tuple(document.readers) for document in made.state.values()}) >= 8


def test_the_caller_sees_the_documents_that_plain_rules_allow(
    original: Database, made: History, caller: str
) -> None:
    allowed = sorted(key for key, document in made.state.items() if may_read(caller, document.readers))
    query = (
        "select o.name, d.uri from pgrag.document as d inner join pgrag.collection as o using (collection_id)"
    )
    assert sorted(original.rows_as(caller, query)) == allowed


@pytest.mark.parametrize("collections", [None, ["docs"], ["closed"]], ids=str)
def test_lexical_search_is_equal(
    original: Database, remembering: Database, caller: str, collections: list[str] | None
) -> None:
    asked = [(query, 3, collections, "{}") for query in QUERIES]
    asked += [(query, 1000, collections, condition) for query in QUERIES for condition in FILTERS[1:]]
    expected = answers(remembering, caller, LEXICAL, asked)
    for arguments, one, other in zip(asked, answers(original, caller, LEXICAL, asked), expected, strict=True):
        assert one == other, arguments


def test_search_is_equal(original: Database, remembering: Database, caller: str) -> None:
    asked = [
        (query, k, None, condition) for query in QUERIES for condition, k in (("{}", 10), (FILTERS[1], 2))
    ]
    expected = answers(remembering, caller, SEARCH, asked)
    for arguments, one, other in zip(asked, answers(original, caller, SEARCH, asked), expected, strict=True):
        assert one == other, arguments


def test_a_packed_context_is_equal(original: Database, remembering: Database, caller: str) -> None:
    asked = [(query, budget, "{}") for query in QUERIES for budget in (150, 2000)]
    expected = answers(remembering, caller, PACK, asked)
    for arguments, one, other in zip(asked, answers(original, caller, PACK, asked), expected, strict=True):
        assert one == other, arguments


def test_snippets_are_equal(original: Database, remembering: Database, caller: str) -> None:
    asked = [(query, query) for query in QUERIES]
    expected = answers(remembering, caller, SNIPPETS, asked)
    assert any(expected)
    for arguments, one, other in zip(
        asked, answers(original, caller, SNIPPETS, asked), expected, strict=True
    ):
        assert one == other, arguments


def test_an_explanation_is_equal(original: Database, remembering: Database, caller: str) -> None:
    asked = [(query,) for query in QUERIES[::2]]
    expected = answers(remembering, caller, EXPLAIN, asked)
    for arguments, one, other in zip(asked, answers(original, caller, EXPLAIN, asked), expected, strict=True):
        assert one == other, arguments


def test_the_list_of_collections_is_equal(original: Database, remembering: Database, caller: str) -> None:
    query = "select * from pgrag.collections()"
    assert original.rows_as(caller, query) == remembering.rows_as(caller, query)


def test_every_score_is_equal_to_that_of_a_database_without_a_history(
    original: Database, fresh: Database, caller: str
) -> None:
    asked = [(query, 10_000, None, condition) for query in QUERIES for condition in FILTERS]
    expected = answers(fresh, caller, LEXICAL, asked)
    for arguments, one, other in zip(asked, answers(original, caller, LEXICAL, asked), expected, strict=True):
        assert scores(one) == scores(other), arguments


def scores(rows: list[Any]) -> dict[tuple[str, str, int], float]:
    return {(collection, uri, ordinal): score for collection, uri, ordinal, _, score in rows}


def test_the_statistics_add_up_to_the_same(original: Database, fresh: Database, caller: str) -> None:
    query = (
        "select o.name, sum(s.chunks), sum(s.lexemes) from pgrag.corpus_stat as s "
        "inner join pgrag.collection as o using (collection_id) group by o.name order by o.name"
    )
    assert original.rows_as(caller, query) == fresh.rows_as(caller, query)


def test_compaction_changes_no_answer(original: Database, caller: str) -> None:
    asked = [(query, 1000, None, condition) for query in QUERIES for condition in FILTERS]
    before = answers(original, caller, LEXICAL, asked)
    original.execute("select pgrag.compact()")
    assert answers(original, caller, LEXICAL, asked) == before
