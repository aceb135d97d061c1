"""Queries that nobody would call reasonable: found by counting, or refused with the limit that they broke."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import _index
import psycopg
import pytest
from _index import Document, Query
from _pgrag import Database, login_dsn

import pgrag
from pgrag.errors import Refused

CHUNKS = 2500
ALL, SOME = "user:all", "user:some"


@pytest.fixture(scope="module")
def corpus(installed_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    """2,500 chunks, every third of which somebody else sees too; merged, but for the last hundreds and some deletions."""
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    random_ = random.Random(0)

    def documents(first: int, last: int) -> list[Document]:
        return [
            Document(
                f"{n:04}",
                (_index.sentence(random_, random_.randint(1, 40)),),
                (ALL, SOME) if n % 3 == 0 else (ALL,),
                {"third": n % 3, "tenth": n % 10},
            )
            for n in range(first, last)
        ]

    _index.load(database.admin, documents(0, CHUNKS - 300))
    database.execute("select pgrag.compact()")
    _index.load(database.admin, documents(CHUNKS - 300, CHUNKS))
    database.execute("delete from pgrag.document where uri like '%1_'")
    yield database
    database.close()


@pytest.mark.parametrize("caller", [ALL, SOME])
@pytest.mark.parametrize("k", [1, 10, 10_000])
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(random.Random(1).choices(_index.WORDS, k=60), id="60 words"),
        pytest.param(
            [*random.Random(2).sample(_index.WORDS, 25), *_index.UNKNOWN * 12], id="60 words, many unknown"
        ),
        pytest.param(
            [f"{word}{end}" for word in _index.UNKNOWN for end in "pqvz" * 5], id="60 unknown words"
        ),
        pytest.param([*_index.UNKNOWN], id="unknown words"),
        pytest.param(["kado"] * 200 + ["crint"], id="one word 200 times"),
        pytest.param([*_index.WORDS] * 300, id="9,300 words of 31"),
        pytest.param(_index.WORDS[:1], id="the most frequent word"),
    ],
)
def test_it_is_found_by_counting(corpus: Database, words: list[str], k: int, caller: str) -> None:
    visible = [one for one in _index.passages(corpus.admin) if caller == ALL or int(one.uri) % 3 == 0]
    # A tsvector keeps 255 positions a word.
    kept = [word for n, word in enumerate(words) if words[:n].count(word) < 255]
    rows = _index.search(corpus.admin, [caller], Query(tuple(words)), k)
    _index.assert_found(rows, _index.score(visible, Query(tuple(kept))), k)
    assert bool(rows) == any(word in _index.WORDS for word in words)


def test_k_of_10000_is_everything_that_matches(corpus: Database) -> None:
    rows = _index.search(corpus.admin, [ALL], Query(tuple(_index.WORDS)), 10_000)
    words = "select count(*) from pgrag.chunk where tsv <> ''"
    assert len(rows) == corpus.value(words)
    assert len(rows) > 2000


@pytest.mark.parametrize("caller", [ALL, SOME])
@pytest.mark.parametrize(
    ("query", "limit"),
    [
        (
            " ".join(f"wq{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(10_000)),
            "at most 1000 different words",
        ),
        ("kado " * 20_001, "at most 100000 characters"),
    ],
    ids=["10,000 different words", "100,005 letters"],
)
def test_it_is_refused_with_its_limit(corpus: Database, query: str, limit: str, caller: str) -> None:
    with pytest.raises(psycopg.Error, match=limit) as caught:
        corpus.rows_as(caller, "select * from pgrag.search_lexical(%s)", (query,))
    assert caught.value.sqlstate == "RG011"


def test_python_says_the_same(corpus: Database) -> None:
    with pgrag.connect(login_dsn(corpus.dsn, "pgrag_test_app"), connections=1) as store:
        caller = store.as_principals(ALL)
        with pytest.raises(Refused, match="at most 1000 different words"):
            caller.search(" ".join(f"word{n}" for n in range(10_000)))
        with pytest.raises(Refused, match="at most 100000 characters"):
            caller.search("kado " * 20_001)
        with pytest.raises(Refused, match="k must be between 1 and 1000, got 10000"):
            caller.search("kado", k=10_000)
        assert caller.search(" ".join(_index.UNKNOWN * 20)) == []
        found = caller.search("kado " * 10_000, k=1000)
        assert [hit.chunk_id for hit in found] == [hit.chunk_id for hit in caller.search("kado", k=1000)]
        assert len(found) > 500
