"""The query language as people, and worse, type it: each query is answered as it reads, or refused with the limit it broke."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from _pgrag import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# Every text that three of these words make, with their neighbours, and some longer ones.
WORDS = ("valve", "value", "valid", "pump", "pulse", "gauge")
TEXTS = [
    *(f"{a} {b}" for a in WORDS for b in WORDS),
    *WORDS,
    "valve pump gauge valve",
    "gauge pump valve",
    "pump pulse pump pulse gauge",
    "value valid valve pump pulse gauge",
]


@pytest.fixture(scope="module")
def corpus(
    installed_template: str, session_database: Callable[..., str]
) -> Iterator[psycopg.Connection[Any]]:
    """An application's connection to a database of ``TEXTS``, each a document named by its number."""
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs', analyzer => 'simple')")
    database.load(TEXTS)
    with database.acting("public") as connection:
        yield connection
    database.close()


def found(corpus: psycopg.Connection[Any], query: str) -> set[str]:
    """The texts that a query finds."""
    with corpus.transaction():
        rows = corpus.execute(
            "select d.uri from pgrag.search_lexical(%s, k => 10000) join pgrag.document as d using (document_id)",
            (query,),
        ).fetchall()
    return {TEXTS[int(uri)] for (uri,) in rows}


def has(text: str, words: Sequence[str]) -> bool:
    """Whether words stand in a text in a row."""
    each = text.split()
    return any(each[at : at + len(words)] == list(words) for at in range(len(each)))


word = st.sampled_from(WORDS)
phrase = st.lists(word, min_size=1, max_size=3)
# An operand of OR, as it is typed; two words are a phrase.
operand = st.one_of(phrase.map(" ".join).map('"{}"'.format), word, st.just("va*"), st.just("pulse*"))
prefix = st.sampled_from(("va", "val", "valv", "pu", "gaug", "pulse", "zz"))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.one_of(
            st.tuples(st.just("word"), word),
            st.tuples(st.just("prefix"), prefix),
            st.tuples(st.just("phrase"), phrase),
            st.tuples(st.just("either"), st.tuples(operand, operand)),
            st.tuples(st.just("no word"), word),
            st.tuples(st.just("no prefix"), prefix),
            st.tuples(st.just("no phrase"), phrase),
            st.tuples(
                st.just("noise"), st.sampled_from(["-", "--", "*", "&|!", "()", ":*", "😀", "\\", "'", "—"])
            ),
        ),
        max_size=5,
    ),
    space=st.sampled_from([" ", "  ", "\n", "\t", "\u3000"]),
)
def test_a_query_finds_what_it_says(
    corpus: psycopg.Connection[Any], parts: list[tuple[str, Any]], space: str
) -> None:
    written = {
        "word": "{}",
        "prefix": "{}*",
        "phrase": '"{}"',
        "either": "{}",
        "no word": "-{}",
        "no prefix": "-{}*",
        "no phrase": '-"{}"',
        "noise": "{}",
    }
    query = space.join(
        written[kind].format(
            f"{space}OR{space}".join(value)
            if kind == "either"
            else " ".join(value)
            if "phrase" in kind
            else value
        )
        for kind, value in parts
    )

    def begins(text: str, beginning: str) -> bool:
        return any(each.startswith(beginning) for each in text.split())

    def holds(text: str, typed: str) -> bool:
        return begins(text, typed[:-1]) if typed.endswith("*") else has(text, typed.strip('"').split())

    def wanted(text: str) -> bool:
        return any(
            (kind == "word" and has(text, [value]))
            or (kind == "prefix" and begins(text, value))
            or (kind == "phrase" and has(text, value))
            or (kind == "either" and any(holds(text, typed) for typed in value))
            for kind, value in parts
        )

    def allowed(text: str) -> bool:
        return all(
            {
                "phrase": lambda value: has(text, value),
                # Words alone are OR-ed as it is; with a phrase among them, one of them must occur.
                "either": lambda value: (
                    '"' not in "".join(value) or any(holds(text, typed) for typed in value)
                ),
                "no word": lambda value: not has(text, [value]),
                "no prefix": lambda value: not begins(text, value),
                "no phrase": lambda value: not has(text, value),
            }.get(kind, lambda value: True)(value)
            for kind, value in parts
        )

    assert found(corpus, query) == {text for text in TEXTS if wanted(text) and allowed(text)}


@pytest.mark.parametrize(
    ("query", "same_as"),
    [
        ("valve OR pump", "valve pump"),
        ("OR valve OR", "valve"),
        ("OR OR", ""),
        ("valve AND pump", "valve and pump"),
        ("valve NEAR pump", "valve near pump"),
        ("(valve) [pump] {gauge}", "valve pump gauge"),
        ("((valve", "valve"),
        ("valve & pump | !gauge <-> pulse", "valve pump gauge pulse"),
        ("valve:* pump:A", "valve* pump a"),
        ("\u200fvalve \u200e-pump", "valve -pump"),
        ('\u2067"valve pump"\u2069', '"valve pump"'),
        ('"valve pump" OR "gauge"', '"gauge" OR "valve pump"'),
        ('"valve pump" OR OR "gauge"', '"valve pump" OR "gauge"'),
        ('("valve pump" OR "gauge")', '"valve pump" OR "gauge"'),
        ('"valve pump" OR', '"valve pump"'),
        ('OR "valve pump"', '"valve pump"'),
        ('"valve pump" OR -gauge', '"valve pump" -gauge'),
        ('-"valve pump" OR "gauge"', '-"valve pump" "gauge"'),
        ("'valve' \\pump\\", "valve pump"),
        ("“valve pump”", '"valve pump"'),
        ("„valve pump“", '"valve pump"'),
        ("«valve pump»", '"valve pump"'),
        ('"valve pump', "valve pump"),
        ('-"valve pump', "valve pump"),
        ('""', ""),
        ('"" valve', "valve"),
        ('"valve" "', '"valve"'),
        ("- valve", "valve"),
        ("--valve", "valve"),
        ("valve -", "valve"),
        ("*valve", "valve"),
        ("valve *", "valve"),
        ("\u202evalve\u202c", "valve"),
        ("ＶＡＬＶＥ", "valve"),
        ("valve😀pump", "valve pump"),
        ("valve pump " * 5000, "valve pump"),
        ("%s $1 %(x)s {0}", "s 1 x 0"),
        ("'; drop table pgrag.chunk; --", "drop table pgrag chunk"),
    ],
)
def test_what_means_nothing_is_text(corpus: psycopg.Connection[Any], query: str, same_as: str) -> None:
    assert found(corpus, query) == found(corpus, same_as)


@pytest.mark.parametrize(
    "query", ["", " ", "\n\t", "?!", "-", "*", '"', "-valve", '-"valve pump" -gauge*', "😀", "\u202e", "zz*"]
)
def test_a_query_that_looks_for_nothing_finds_nothing(corpus: psycopg.Connection[Any], query: str) -> None:
    assert found(corpus, query) == set()


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        (" ".join(f"w{number}" for number in range(10_000)), "at most 1000 different words, got"),
        ("x" * 100_001, "at most 100000 characters, got 100001"),
        ("-a1 " * 101, "at most 100 phrases, exclusions and prefixes"),
        ('"valve pump" ' * 101, "at most 100 phrases, exclusions and prefixes"),
        ("valve* " * 101, "at most 100 phrases, exclusions and prefixes"),
    ],
)
def test_a_query_beyond_a_limit_is_refused_by_its_name(
    corpus: psycopg.Connection[Any], query: str, limit: str
) -> None:
    with pytest.raises(psycopg.Error, match=limit) as caught:
        found(corpus, query)
    assert caught.value.sqlstate == "RG011"


@pytest.mark.parametrize(
    "query",
    [
        "valve " + "w" * 3000,
        "valve " + " ".join(f"w{n}" for n in range(60)),
        "valve " + "(" * 5000,
        "valve" + " -" * 5000,
    ],
)
def test_long_words_and_long_queries_are_ordinary(corpus: psycopg.Connection[Any], query: str) -> None:
    assert found(corpus, query) == found(corpus, "valve")


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.lists(
        st.one_of(
            word,
            st.sampled_from(
                [*"\"'-*()[]{}<>&|!:;,.\\/@#+_~^$%=?`“”„«»‘’–—\u202e\u200f\u200b\ufeff😀水é", " ", " ", " "]
            ),
            st.sampled_from(
                ["OR", "AND", "NOT", "NEAR", ' "', '" ', " -", "* ", "<->", ":*", "TS-999", "C++", "1,000"]
            ),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3),
        ),
        max_size=25,
    ).map("".join)
)
def test_no_query_is_an_error(corpus: psycopg.Connection[Any], query: str) -> None:
    assert found(corpus, query) <= set(TEXTS)
