"""What a search leaves unread changes no answer: against counting everything, on thousands of chunks, in each state of the log.

The text is such that it pays to leave something out: a few words are nearly everywhere, some chunks have them often, many
chunks are the same, and readers are few or hundreds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import _index
import psycopg
import pytest
from _index import Document, Passage, Query
from _pgrag import Database

CHUNKS = 6000
EDITED = 600

# Who asks: everything through hundreds of ACLs, half through two, a sixtieth, and a department of one ACL.
CALLERS = ("user:all", "user:half", "user:few", "user:one")


def readers(n: int) -> tuple[str, ...]:
    own = ("user:all", *(["user:half"] if n % 2 else []), *(["user:few"] if n % 60 == 0 else []))
    if n % 5 == 0:
        return (*own, f"user:owner{n % 300}")
    return (*own, "user:one") if n % 7 == 0 else own


def text(random_: random.Random, n: int) -> str:
    kind = n % 10
    if kind == 0:  # a frequent word, often
        return " ".join(
            [random_.choice(_index.WORDS[:3])] * random_.randint(5, 300) + [_index.sentence(random_, 5)]
        )
    if kind in (1, 2):  # the same as others
        return " ".join(_index.WORDS[n % 4 : n % 4 + 6])
    if kind == 3:  # long
        return _index.sentence(random_, random_.randint(200, 400))
    return _index.sentence(random_, random_.randint(1, 30))


@dataclass
class Corpus:
    """A database, and what each caller sees in it."""

    connection: psycopg.Connection[tuple[object, ...]]
    visible: dict[str, list[Passage]]


@pytest.fixture(scope="module")
def worn(installed_template: str, session_database: Callable[..., str]) -> str:
    """DSN of a database whose log was never merged: loaded in batches, then a tenth edited, moved and deleted each."""
    dsn = session_database(template=installed_template)
    database = Database(dsn)
    database.execute("select pgrag.create_collection('docs')")
    random_ = random.Random(0)
    documents = [
        Document(f"{n:05}", (text(random_, n),), readers(n), {"third": n % 3, "tenth": n % 10})
        for n in range(CHUNKS)
    ]
    for first in range(0, CHUNKS, 1000):
        _index.load(database.admin, documents[first : first + 1000])
    edited = [
        Document(one.uri, (text(random_, n + 1),), one.readers, one.metadata)
        for n, one in enumerate(random_.sample(documents, EDITED))
    ]
    for first in range(0, EDITED, 60):
        _index.load(database.admin, edited[first : first + 60])
    # Moved, and back again, within departments and between.
    database.execute(
        "update pgrag.document set acl_id = (select min(acl_id) from pgrag.document) where uri like '%3_'"
    )
    database.execute("delete from pgrag.document where uri like '%7_'")
    database.execute("analyze")
    database.close()
    return dsn


@pytest.fixture(scope="module", params=["never merged", "merged a little", "merged", "made anew"])
def corpus(
    request: pytest.FixtureRequest, worn: str, session_database: Callable[..., str]
) -> Iterator[Corpus]:
    with psycopg.connect(worn) as connection:
        name = connection.info.dbname
    database = Database(session_database(template=name))
    match request.param:
        case "merged a little":
            database.execute("select pgrag.compact(200)")
        case "merged":
            database.execute("select pgrag.compact()")
        case "made anew":
            database.execute("select pgrag.rebuild_postings('docs')")
    # Who reads what comes from the entries, so that no policy is believed.
    allowed: dict[str, set[str]] = {caller: set() for caller in CALLERS}
    for uri, names in database.execute(
        """select d.uri, array(select e.principal from pgrag.acl_entry as e where e.acl_id = d.acl_id)
        from pgrag.document as d"""
    ):
        for caller in set(names) & set(CALLERS):
            allowed[caller].add(uri)
    everything = _index.passages(database.admin)
    yield Corpus(
        database.admin, {caller: [p for p in everything if p.uri in allowed[caller]] for caller in CALLERS}
    )
    database.close()


def compare(corpus: Corpus, caller: str, query: Query, k: int) -> None:
    rows = _index.search(corpus.connection, [caller], query, k)
    try:
        _index.assert_found(rows, _index.score(corpus.visible[caller], query), k)
    except AssertionError as error:
        error.add_note(f"{caller} asked {query.text!r} {query.filter}, k {k}")
        raise


def test_the_index_is_right(corpus: Corpus) -> None:
    _index.assert_index_is_right(corpus.connection, whole=False)
    assert len({len(visible) for visible in corpus.visible.values()}) == len(CALLERS)


@pytest.mark.parametrize("caller", CALLERS)
def test_a_frequent_word_beside_a_rare_one(corpus: Corpus, caller: str) -> None:
    for rare in _index.WORDS[10:30:4]:
        for k in (1, 10, 100):
            compare(corpus, caller, Query((_index.WORDS[0], rare)), k)
            compare(corpus, caller, Query((_index.WORDS[1], rare, rare, _index.WORDS[2])), k)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("k", [1, 2, 10, 99, 100, 1000, 10_000])
def test_frequent_words_alone(corpus: Corpus, caller: str, k: int) -> None:
    compare(corpus, caller, Query(tuple(_index.WORDS[:1])), k)
    compare(corpus, caller, Query(tuple(_index.WORDS[:4])), k)


@pytest.mark.parametrize("caller", CALLERS)
def test_any_query(corpus: Corpus, caller: str) -> None:
    random_ = random.Random(caller)
    for _ in range(25):
        compare(corpus, caller, _index.random_query(random_), random_.choice([1, 3, 10, 50, 500]))


# A rare word, one between and a frequent one, and what makes passages long.
RARE, MIDDLE, FREQUENT, FILLING = "crint", "quabo", "kado", "wolm"


def close_texts(random_: random.Random) -> list[str]:
    """Texts whose scores lie close together, from far below to far above what the frequent word alone can give."""

    def text(rare: int, middle: int, frequent: int, filling: int) -> str:
        return " ".join([RARE] * rare + [MIDDLE] * middle + [FREQUENT] * frequent + [FILLING] * filling)

    any_of = random_.randint
    texts = [text(1, 0, any_of(0, 1) * any_of(1, 3), int(10 * 1.016**n)) for n in range(350)]
    texts += [text(any_of(1, 3), any_of(0, 2), any_of(0, 3), any_of(0, 250)) for _ in range(350)]
    texts += [text(0, any_of(1, 4), any_of(0, 4), any_of(0, 60)) for _ in range(2200)]
    texts += [text(0, 0, any_of(1, 6), any_of(0, 12)) for _ in range(3000)]
    texts += [text(0, 0, 0, any_of(1, 40)) for _ in range(600)]
    random_.shuffle(texts)
    return texts


@pytest.fixture(scope="module", params=["never merged", "merged"])
def close(
    request: pytest.FixtureRequest, installed_template: str, session_database: Callable[..., str]
) -> Iterator[Corpus]:
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    documents = [
        Document(f"{n:05}", (text,), ("user:all", "user:half") if n % 2 else ("user:all",))
        for n, text in enumerate(close_texts(random.Random(0)))
    ]
    for first in range(0, len(documents), 500):
        _index.load(database.admin, documents[first : first + 500])
    database.execute("delete from pgrag.document where uri like '%13'")
    if request.param == "merged":
        database.execute("select pgrag.compact()")
    everything = _index.passages(database.admin)
    half = [passage for passage in everything if int(passage.uri) % 2]
    yield Corpus(database.admin, {"user:all": everything, "user:half": half})
    database.close()


@pytest.mark.parametrize("caller", ["user:all", "user:half"])
@pytest.mark.parametrize(
    "words",
    [
        (RARE, FREQUENT),
        (RARE, MIDDLE, FREQUENT),
        (MIDDLE, FREQUENT),
        (RARE, MIDDLE),
        (RARE, FREQUENT, FREQUENT, FREQUENT),
        (MIDDLE, MIDDLE, RARE, FREQUENT, FILLING),
    ],
)
def test_scores_that_lie_close_together(close: Corpus, caller: str, words: tuple[str, ...]) -> None:
    """At many k, and at those for which what only later words give is just enough, or just not."""
    visible = close.visible[caller]
    expected = _index.score(visible, Query(words))
    sweep = {*range(1, 52, 5), *range(52, 700, 50)}
    rarest = [word for word in (RARE, MIDDLE, FREQUENT, FILLING) if word in words]
    for known in range(1, len(rarest)):
        first = Query(tuple(word for word in words if word in rarest[:known]))
        behind = [one.chunk_id for one in visible if not set(first.words) & set(one.positions)]
        most = max(expected[chunk_id][0] for chunk_id in behind if chunk_id in expected)
        edge = sum(points > most for points, _ in _index.score(visible, first).values())
        sweep |= set(range(max(1, edge - 6), edge + 12))
    for k in sorted(sweep):
        rows = _index.search(close.connection, [caller], Query(words), k)
        try:
            _index.assert_found(rows, expected, k)
        except AssertionError as error:
            error.add_note(f"{caller}, k {k}")
            raise


def test_a_log_of_thousands_of_deletions(installed_template: str, new_database: Callable[..., str]) -> None:
    """300 documents, each under its own ACL, are moved in a circle fifteen times: each word has 4,500 runs that take back."""
    database = Database(new_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    random_ = random.Random(0)
    documents = [
        Document(f"{n:03}", (f"kado {_index.sentence(random_, 4)}",), ("user:all", f"user:owner{n}"))
        for n in range(300)
    ]
    _index.load(database.admin, documents)
    for _ in range(15):
        database.execute(
            """update pgrag.document as d set acl_id = n.acl_id
            from (
                select a.document_id, coalesce(lead(a.acl_id) over w, first_value(a.acl_id) over w) as acl_id
                from pgrag.document as a window w as (order by a.document_id)
            ) as n
            where n.document_id = d.document_id"""
        )
    taken_back = """select count(*) from pgrag.collection as o cross join lateral pgrag._unpack_postings(o.collection_id) as p
        where p.sign < 0 and p.term = hashtextextended('kado' collate "C", 0)"""
    assert database.value(taken_back) == 15 * 300
    everything = _index.passages(database.admin)
    queries = [
        Query(("kado",)),
        Query(("kado", "lomo", "kadu")),
        Query(("kado",), excluded=(("kadu",),)),
        Query(("crint",)),
    ]
    for _ in range(2):
        for query in queries:
            for k in (1, 10, 1000):
                rows = _index.search(database.admin, ["user:all"], query, k)
                _index.assert_found(rows, _index.score(everything, query), k)
            # After fifteen moves the document of place n is under the ACL of place n + 15.
            own = [one for one in everything if int(one.uri) == 300 - 15]
            rows = _index.search(database.admin, ["user:owner0"], query, 10)
            _index.assert_found(rows, _index.score(own, query), 10)
        database.execute("select pgrag.compact()")
    database.close()
