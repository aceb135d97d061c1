"""The query language: words, "phrases", -exclusions, prefix*, and everything else as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Parsed:
    """The row of ``_parse_query``, with the terms and their counts as one mapping."""

    terms: dict[str, int]
    prefixes: list[str]
    required: str | None
    excluded: str | None
    problems: list[str]


@pytest.fixture(scope="module")
def database(installed_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """One database for the module: parsing reads and writes no table."""
    with psycopg.connect(session_database(template=installed_template), autocommit=True) as connection:
        yield connection


def parse(database: Connection, query: str, config: str = "english") -> Parsed:
    row = database.execute(
        "select terms, counts, prefixes, required::text, excluded::text, problems"
        " from pgrag._parse_query(%s, %s)",
        (config, query),
    ).fetchone()
    assert row is not None
    assert len(row[0]) == len(row[1])
    return Parsed(dict(zip(row[0], row[1], strict=True)), row[2], row[3], row[4], row[5])


def matches(database: Connection, text: str, phrase: str) -> bool:
    """Whether a chunk with this text has the phrase, as search checks it."""
    row = database.execute(
        "select pgrag.analyze('english', %s) @@ required from pgrag._parse_query('english', %s)",
        (text, f'"{phrase}"'),
    ).fetchone()
    assert row is not None
    return bool(row[0])


def test_plain_words_are_terms_and_nothing_else(database: Connection) -> None:
    assert parse(database, "rotating the keys") == Parsed({"rotat": 1, "key": 1}, [], None, None, [])


def test_a_repeated_word_counts_as_often_as_it_stands(database: Connection) -> None:
    assert parse(database, "key of keys keyed").terms == {"key": 3}


def test_a_phrase_is_required_and_its_words_are_scored(database: Connection) -> None:
    assert parse(database, 'vault "rotating keys"') == Parsed(
        {"vault": 1, "rotat": 1, "key": 1}, [], "'rotat' <-> 'key'", None, []
    )


def test_beside_ten_words_a_phrase_is_required(database: Connection) -> None:
    assert parse(database, " ".join(["word"] * 10) + ' "rotating keys"').required == "'rotat' <-> 'key'"


def test_beside_more_than_ten_words_a_phrase_is_words(database: Connection) -> None:
    found = parse(database, " ".join(["word"] * 11) + ' "rotating keys" -door')
    assert (found.required, found.excluded) == (None, "'door'")
    assert found.terms["key"] == 1
    assert found.problems == [
        "beside more than 10 words a phrase need not occur; its words count like the others"
    ]


def test_two_phrases_are_both_required(database: Connection) -> None:
    assert (
        parse(database, '"rotating keys" “vault door”').required == "'rotat' <-> 'key' & 'vault' <-> 'door'"
    )


def test_stop_words_in_a_phrase_keep_their_distance(database: Connection) -> None:
    assert parse(database, '"state of the art"').required == "'state' <3> 'art'"


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("key -vault", "'vault'"),
        ('key -"vault door"', "'vault' <-> 'door'"),
        ("key -vault -door", "'vault' | 'door'"),
        ("key -TS-999", "'ts' <-> '999'"),
        ("key -4021", "'4021'"),
        ("key -vaul*", "'vaul':*"),
        ("key -C#", "'c' & 'c#'"),
    ],
)
def test_a_minus_at_the_start_of_a_word_excludes(database: Connection, query: str, excluded: str) -> None:
    assert parse(database, query) == Parsed({"key": 1}, [], None, excluded, [])


@pytest.mark.parametrize("query", ["TS-999", "a - b", "--verbose", "state-of-the-art", "5-4", "x -", "(-)"])
def test_a_minus_elsewhere_is_text(database: Connection, query: str) -> None:
    assert parse(database, query).excluded is None


def test_exclusions_alone_give_no_terms(database: Connection) -> None:
    parsed = parse(database, '-vault -"door key"')
    assert (parsed.terms, parsed.prefixes, parsed.required) == ({}, [], None)


@pytest.mark.parametrize(
    ("query", "prefixes"),
    [
        ("post*", ["post"]),
        ("Rotation*", ["rotat"]),
        ("policy*", ["polici", "policy"]),
        ("foo_b*", ["foob"]),
        ("ts-9*", ["ts-9", "ts9"]),
        ("4.7*", ["4.7"]),
        ("getUs*", ["getus"]),
        ("café*", ["cafe"]),
        ("the*", ["the"]),
        ("水", ["水"]),
        ("(post*), x", ["post"]),
        ("post* post*", ["post"]),
    ],
)
def test_a_star_makes_a_prefix(database: Connection, query: str, prefixes: list[str]) -> None:
    assert parse(database, query).prefixes == prefixes


@pytest.mark.parametrize("query", ["SELECT *", "a*b", "*args", "**bold**", "2 * 3"])
def test_a_star_elsewhere_is_text(database: Connection, query: str) -> None:
    assert parse(database, query).prefixes == []


def test_one_letter_is_too_short_for_a_prefix(database: Connection) -> None:
    parsed = parse(database, "x*")
    assert (parsed.terms, parsed.prefixes) == ({"x": 1}, [])
    assert parsed.problems == ["x* is too short for a prefix and counts as a word"]


def test_or_between_words_changes_nothing(database: Connection) -> None:
    assert parse(database, "alpha OR beta", "simple") == parse(database, "alpha beta", "simple")


@pytest.mark.parametrize(
    "query", ['5" pipe and 3" valve', '"unbalanced keys', 'rock"n"roll', '"', '""', '"the"']
)
def test_quotation_marks_that_quote_nothing_are_text(database: Connection, query: str) -> None:
    assert parse(database, query).required is None


def test_what_is_ignored_is_said(database: Connection) -> None:
    assert parse(database, 'keys "of the" -and "').problems == [
        '"of the" has no word to look for and was ignored',
        "a quotation mark has no partner and was ignored",
        "-and has no word to look for and was ignored",
    ]


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("All errors of TS-999 today", "TS-999", True),
        ("All errors of TS999 today", "TS-999", True),
        ("All errors of TS 999 today", "ts999", True),
        ("TS is not 999", "TS-999", False),
        ("an open-source project", "open source project", True),
        ("call getUserName() now", "get user name", True),
        ("C++ templates", "C++ templates", True),
        ("C# templates", "C++ templates", False),
        ("the .NET runtime", ".NET runtime", True),
        ("the net runtime", ".NET runtime", False),
        ("数据库系统", "据库系", True),
        ("数据和库系统", "据库系", False),
        ("a café noir", "cafe noir", True),
        ("it doesn't matter", "doesn't matter", True),
    ],
)
def test_a_phrase_finds_its_words_in_a_row(
    database: Connection, text: str, phrase: str, expected: bool
) -> None:
    assert matches(database, text, phrase) is expected


def test_a_query_of_ten_thousand_different_words_is_refused_with_the_limit(database: Connection) -> None:
    with pytest.raises(psycopg.Error, match="at most 1000 different words, got 10000") as caught:
        parse(database, " ".join(f"{number}" for number in range(10_000)))
    assert caught.value.sqlstate == "RG011"


def test_a_long_query_of_few_words_is_answered(database: Connection) -> None:
    assert parse(database, "key door " * 5_000).terms == {"key": 255, "door": 255}


@pytest.mark.parametrize(
    ("query", "limit"),
    [("x" * 100_001, "100000 characters"), ("-a1 " * 101, "100 phrases"), ('"a1" ' * 101, "100 phrases")],
)
def test_other_limits_are_named_too(database: Connection, query: str, limit: str) -> None:
    with pytest.raises(psycopg.Error, match=limit) as caught:
        parse(database, query)
    assert caught.value.sqlstate == "RG011"


@pytest.mark.parametrize(
    "query", ["", " ", "the of", "!!! ???", "'; drop table chunk; --", "a & | ! <-> (", "\\"]
)
def test_nothing_that_people_type_is_a_syntax_error(database: Connection, query: str) -> None:
    assert (parse(database, query).required, parse(database, query).excluded) == (None, None)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.text(
        alphabet=st.one_of(
            st.sampled_from("ab9 -\"*OR'\\():&|!<>.+#_水é“”"),
            st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        ),
        max_size=40,
    )
)
def test_any_text_is_a_query(database: Connection, query: str) -> None:
    parsed = parse(database, query)
    assert all(1 <= count <= 255 for count in parsed.terms.values())
    assert "" not in parsed.prefixes
