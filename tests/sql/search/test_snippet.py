"""Snippets: the part of a text that a query looks for, every match marked and nothing else changed."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from _pgrag import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Connection = psycopg.Connection[tuple[Any, ...]]

NAMES = "See TS-999 (TS 999, ts999), getUserById in foo_bar.py; e-mail ana@example.com about C++, C# or .NET."
FILLER = "Nothing happens in this hall on most days. "

# What texts and queries are made of: each kind of word that the analyzer knows, and each way to join them.
WORDS = re.findall(
    r"\S+",
    "rotating keys key rotation TS-999 ts999 E-4021 C++ C# .NET foo_bar.py getUserById get user by id HTTPServer parseHTML5 std::vector "
    "10.0.0.1:8080 e-mail email café cafe\u0301 Ärger naïve 1,000 1000 12-345-A 4.7.3 state-of-the-art ana@example.com "
    "https://x.org/a_b/c.html O'Brien rock'n'roll don't the of 数据库系统 水 第3章 日本語テスト 한국어 ﬁle ① ＴＳ－９９９ Daten\u00adbank שָׁלוֹם "
    "مُحَمَّد Ёлка running runs ran 0x1F A1 a1b2c3 node.js policy policies x y z v4.7.3 4.7 U.S.A. AT&T TCP/IP "
    "500mg 12345A 0xFF hyphenated o\u02bcneil ½ straße strasse TS 999 ２０２４",
)
JOINTS = [*" " * 8, *"-_./()\n。，\"':", "-\n", ", ", "; ", " — ", "..."]


@pytest.fixture(scope="module")
def database(installed_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """One database for the module: a snippet reads no table."""
    with psycopg.connect(session_database(template=installed_template), autocommit=True) as connection:
        yield connection


def snippet(database: Connection, content: str | None, query: str | None, **more: Any) -> str:
    """The snippet with matches in square brackets, not escaped unless asked."""
    arguments = {"start_mark": "[", "stop_mark": "]", "escape_html": False} | more
    names = ", ".join(f"{name} => %({name})s" for name in arguments)
    row = database.execute(
        f"select pgrag.snippet(%(content)s, %(query)s, {names})",
        {"content": content, "query": query} | arguments,
    ).fetchone()
    assert row is not None
    return str(row[0])


def lexemes(database: Connection, analyzer: str, text: str) -> set[str]:
    row = database.execute("select tsvector_to_array(pgrag.analyze(%s, %s))", (analyzer, text)).fetchone()
    assert row is not None
    return set(row[0])


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("TS-999", ["TS-999", "TS 999", "ts999"]),
        ("ts999", ["TS-999", "TS 999", "ts999"]),
        ("getUserById", ["getUserById"]),
        ("getuserbyid", ["getUserById"]),
        ("get user", ["getUser"]),
        ("user", ["User"]),
        ("foobar", ["foo_bar"]),
        ("foo_bar.py", ["foo_bar.py"]),
        ("foo_b*", ["foo_bar"]),
        ("email", ["e-mail"]),
        ("999", ["999", "999", "999"]),
        ("ts9*", ["TS-999", "TS 999", "ts999"]),
        ("ana@example.com", ["ana@example.com"]),
        ("exam*", ["example.com"]),
        ("C++", ["C++", "C"]),
        ("C#", ["C", "C#"]),
        (".NET", [".NET"]),
    ],
)
def test_a_name_is_marked_however_it_is_typed(database: Connection, query: str, marked: list[str]) -> None:
    shown = snippet(database, NAMES, query)
    assert re.findall(r"\[(.*?)\]", shown) == marked
    assert shown.replace("[", "").replace("]", "") == NAMES


@pytest.mark.parametrize(
    ("content", "query", "analyzer", "shown"),
    [
        ("She rotates the Keys.", "rotating key", "english", "She [rotates] the [Keys]."),
        ("Die Schlüssel wechseln", "schlussel", "german", "Die [Schlüssel] wechseln"),
        ("un café, un cafe\u0301", "cafe", "french", "un [café], un [cafe\u0301]"),
        ("die Daten\u00adbank", "datenbank", "german", "die [Daten\u00adbank]"),
        ("数据库系统和水。", "据库", "english", "数[据库]系统和水。"),
        ("数据库系统和水。", "据库系", "english", "数[据库系]统和水。"),
        ("水面和水", "水", "english", "[水]面和水"),
        ("请看ＴＳ－９９９手册", "TS-999", "english", "请看[ＴＳ－９９９]手册"),
        ("שָׁלוֹם עולם", "שלום", "simple", "[שָׁלוֹם] עולם"),
        ("Ёлка горит", "елки", "russian", "[Ёлка] горит"),
        ("ﬁles and ①", "file 1", "english", "[ﬁles] and [①]"),
        ("1,000 marks", "1000", "english", "[1,000] marks"),
        ("a hyphen-\nated word", "hyphenated", "english", "a [hyphen-\nated] word"),
    ],
)
def test_words_are_marked_as_the_analyzer_reads_them(
    database: Connection, content: str, query: str, analyzer: str, shown: str
) -> None:
    assert snippet(database, content, query, analyzer=analyzer) == shown


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ('"rotating the keys"', "Hence [rotating the keys], rotate every blue key twice."),
        ('"rotating the keys" key', "Hence [rotating the keys], rotate every blue [key] twice."),
        ('"key twice" -hence', "Hence rotating the keys, rotate every blue [key twice]."),
        ('"keys"', "Hence rotating the [keys], rotate every blue [key] twice."),
        ('"twice key"', "Hence rotating the keys, rotate every blue key twice."),
        ('"twice key" hence', "[Hence] rotating the keys, rotate every blue key twice."),
    ],
)
def test_a_phrase_is_marked_as_a_whole_and_nowhere_else(database: Connection, query: str, shown: str) -> None:
    assert snippet(database, "Hence rotating the keys, rotate every blue key twice.", query) == shown


def test_excluded_words_are_not_marked(database: Connection) -> None:
    assert snippet(database, "valve and pump", "valve -pump") == "[valve] and pump"


def test_a_text_without_a_match_is_shown_from_its_beginning(database: Connection) -> None:
    assert snippet(database, "One two three four.", "zeppelin", max_characters=10) == "One two…"


def test_a_text_that_fits_comes_whole_with_its_white_space(database: Connection) -> None:
    content = "  valve\n\n\tand  pump \n"
    assert snippet(database, content, "pump", max_characters=len(content)) == "  valve\n\n\tand  [pump] \n"


def test_a_long_text_is_shown_around_its_match(database: Connection) -> None:
    shown = snippet(database, FILLER * 50 + "The gasket is torn. " + FILLER * 50, "gasket", max_characters=60)
    assert shown.startswith("…The [gasket] is torn. Nothing happens")
    assert shown.endswith("…")


def test_the_part_with_most_of_the_words_is_shown(database: Connection) -> None:
    content = "A valve. " + FILLER * 20 + "A valve. A pump. " + FILLER * 20 + "A valve, a gauge and a pump."
    shown = snippet(database, content, "valve pump gauge", max_characters=80, max_fragments=1)
    assert shown.endswith("A [valve], a [gauge] and a [pump].")


def test_a_word_that_stands_often_counts_once(database: Connection) -> None:
    content = "valve " * 20 + FILLER * 20 + "A valve and a pump."
    assert "[pump]" in snippet(database, content, "valve pump", max_characters=60, max_fragments=1)


def test_a_second_fragment_shows_what_the_first_lacks(database: Connection) -> None:
    content = "A valve. " + FILLER * 20 + "A pump."
    shown = snippet(database, content, "valve pump", max_characters=100)
    first, second = shown.split(" … ")
    assert (first.startswith("A [valve]."), second.endswith("A [pump].")) == (True, True)


def test_there_is_one_fragment_where_one_shows_all(database: Connection) -> None:
    content = FILLER * 20 + "A valve and a pump. " + FILLER * 20 + "A pump."
    assert " … " not in snippet(database, content, "valve pump", max_characters=100, max_fragments=5)


@pytest.mark.parametrize("fragments", [1, 2, 3, 20])
@pytest.mark.parametrize("characters", [1, 7, 40, 240])
def test_no_more_characters_are_shown_than_asked_for(
    database: Connection, characters: int, fragments: int
) -> None:
    content = f"{FILLER}valve {FILLER * 5}pump {FILLER * 9}{'gauge' * 60} {FILLER}"
    shown = snippet(
        database, content, "valve pump gauge*", max_characters=characters, max_fragments=fragments
    )
    assert len(re.sub(r" … |[][…]", "", shown)) <= characters
    assert "[" in shown


def test_a_word_longer_than_the_snippet_is_cut(database: Connection) -> None:
    assert snippet(database, "a " + "x" * 3000 + " b", "x" * 3000, max_characters=10) == f"…[{'x' * 10}]…"


def test_a_megabyte_is_searched_to_its_end(database: Connection) -> None:
    assert "[gasket]" in snippet(database, FILLER * (1_000_000 // len(FILLER)) + "The gasket.", "gasket")


def test_each_of_thousands_of_matches_is_marked(database: Connection) -> None:
    shown = snippet(database, "é&b, " * 1400, "é b", analyzer="simple", max_characters=10_000)
    assert shown == "[é&b], " * 1400


def test_a_match_that_lies_between_two_fragments_is_not_shown(database: Connection) -> None:
    content = f"A valve, a gauge. {FILLER * 20}A valve. {FILLER * 20}A pump, a valve."
    shown = snippet(database, content, "valve gauge pump", max_characters=100)
    first, last = shown.split(" … ")
    assert (first.startswith("A [valve], a [gauge]."), last.endswith("A [pump], a [valve].")) == (True, True)
    assert shown.count("[") == 4


def test_the_result_is_safe_html_by_default(database: Connection) -> None:
    row = database.execute(
        "select pgrag.snippet(%s, 'script \"x & y\" pump')", ("<script>alert(\"x & y\" + 'pump')</script>",)
    ).fetchone()
    assert row == (
        "&lt;<mark>script</mark>&gt;alert(&quot;<mark>x &amp; y</mark>&quot; + &#39;<mark>pump</mark>&#39;)"
        "&lt;/<mark>script</mark>&gt;",
    )


def test_a_mark_in_the_text_is_no_mark(database: Connection) -> None:
    row = database.execute("select pgrag.snippet('<mark>pump</mark>', 'pump')").fetchone()
    assert row == ("&lt;mark&gt;<mark>pump</mark>&lt;/mark&gt;",)


@pytest.mark.parametrize(("content", "query"), [(None, "pump"), ("pump", None)])
def test_null_gives_null(database: Connection, content: str | None, query: str | None) -> None:
    assert snippet(database, content, query) == "None"


def test_the_collation_of_a_column_changes_nothing(database: Connection) -> None:
    row = database.execute(
        "select pgrag.snippet(content, query, analyzer, start_mark => '[', stop_mark => ']')"
        """ from (select 'Die Häuser' collate "C", 'HÄUSER' collate "C", 'german' collate "C") as t (content, query, analyzer)"""
    ).fetchone()
    assert row == ("Die [Häuser]",)


def test_an_empty_text_gives_an_empty_snippet(database: Connection) -> None:
    assert snippet(database, "", "pump") == ""


@pytest.mark.parametrize(
    ("more", "error", "code"),
    [
        ({"max_characters": 0}, "max_characters must be between 1 and 10000, got 0", "RG001"),
        ({"max_characters": None}, "max_characters must be between 1 and 10000, got NULL", "RG001"),
        ({"max_fragments": 21}, "max_fragments must be between 1 and 20, got 21", "RG001"),
        ({"analyzer": "klingon"}, 'there is no analyzer "klingon"', "RG010"),
    ],
)
def test_arguments_out_of_range_are_refused(
    database: Connection, more: dict[str, Any], error: str, code: str
) -> None:
    with pytest.raises(psycopg.Error, match=error) as caught:
        snippet(database, "pump", "pump", **more)
    assert caught.value.sqlstate == code


def test_a_query_that_is_too_long_is_refused(database: Connection) -> None:
    with pytest.raises(psycopg.Error, match="at most 1000 different words") as caught:
        snippet(database, "pump", " ".join(map(str, range(2000))))
    assert caught.value.sqlstate == "RG011"


@pytest.mark.parametrize("analyzer", ["english", "german", "simple", "russian"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_what_is_marked_is_what_matches_and_nothing_else(
    database: Connection, analyzer: str, seed: int
) -> None:
    rng = random.Random(seed)
    content = "".join(rng.choice(WORDS) + rng.choice(JOINTS) for _ in range(rng.randint(1, 25)))
    query = " ".join(
        rng.choice(("{}", "{}", "{}", "{}*", "-{}")).format(rng.choice(WORDS))
        for _ in range(rng.randint(1, 4))
    )
    parsed = database.execute(
        "select terms, prefixes from pgrag._parse_query(%s, %s)", (analyzer, query)
    ).fetchone()
    assert parsed is not None
    terms, prefixes = parsed

    def matches(text: str) -> bool:
        return any(
            lexeme in terms or lexeme.startswith(tuple(prefixes))
            for lexeme in lexemes(database, analyzer, text)
        )

    shown = snippet(
        database,
        content,
        query,
        analyzer=analyzer,
        start_mark="\x02",
        stop_mark="\x03",
        max_characters=10_000,
    )
    assert shown.replace("\x02", "").replace("\x03", "") == content
    marked = re.findall("\x02(.*?)\x03", shown, re.DOTALL)
    assert [text for text in marked if not matches(text)] == []
    assert [run for run in shown.split() if "\x02" not in run and "\x03" not in run and matches(run)] == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80)
)
def test_any_text_is_given_back_unchanged(database: Connection, content: str) -> None:
    query = " ".join(content.split()[:3]).replace('"', "")
    shown = snippet(database, content, query, start_mark="", stop_mark="", escape_html=True)
    assert html.unescape(shown) == content


def snippets(db: Database, who: str, query: str | None, chunk_ids: list[int], **more: Any) -> dict[int, str]:
    arguments = {"escape_html": False, "start_mark": "[", "stop_mark": "]"} | more
    names = ", ".join(f"{name} => %s" for name in arguments)
    rows = db.rows_as(
        who, f"select * from pgrag.snippets(%s, %s, {names})", (query, chunk_ids, *arguments.values())
    )
    return {int(chunk_id): str(text) for chunk_id, text in rows}


def chunk_ids(db: Database) -> dict[str, int]:
    return dict(db.execute("select uri, chunk_id from pgrag.chunk join pgrag.document using (document_id)"))


def test_snippets_are_those_of_the_chunks_in_the_order_asked(db: Database) -> None:
    db.put("a", "A valve.")
    db.put("b", "A pump.")
    ids = chunk_ids(db)
    shown = snippets(db, "public", "valve pump", [ids["b"], ids["a"]])
    assert list(shown.items()) == [(ids["b"], "A [pump]."), (ids["a"], "A [valve].")]


def test_a_hidden_chunk_gives_no_snippet_like_one_that_is_not_there(db: Database) -> None:
    db.put("a", "A valve.")
    db.put("b", "A hidden valve.", ["user:bo"])
    ids = chunk_ids(db)
    assert list(snippets(db, "user:ana", "valve", [ids["b"], 10**12, ids["a"]])) == [ids["a"]]
    assert list(snippets(db, "user:bo", "valve", [ids["b"]])) == [ids["b"]]


def test_nobody_gets_a_snippet_without_saying_who_asks(db: Database) -> None:
    db.put("a", "A valve.")
    with db.connect("pgrag_test_app") as connection:
        rows = connection.execute(
            "select * from pgrag.snippets('valve', %s)", (list(chunk_ids(db).values()),)
        ).fetchall()
    assert rows == []


def test_a_chunk_is_read_by_its_own_analyzer(db: Database) -> None:
    db.execute("select pgrag.create_collection('notizen', analyzer => 'german')")
    db.put("a", "Die Häuser am See", collection="notizen")
    db.put("b", "The houses at the lake")
    ids = chunk_ids(db)
    shown = snippets(db, "public", "Haus houses", [ids["a"], ids["b"]])
    assert shown == {ids["a"]: "Die [Häuser] am See", ids["b"]: "The [houses] at the lake"}


def test_snippets_of_no_chunks_or_no_query_are_none(db: Database) -> None:
    db.put("a", "A valve.")
    assert snippets(db, "public", "valve", []) == {}
    assert snippets(db, "public", None, list(chunk_ids(db).values())) == {}


def test_too_many_chunks_are_refused(db: Database) -> None:
    with pytest.raises(
        psycopg.Error, match="number of chunk_ids must be between 0 and 1000, got 1001"
    ) as caught:
        snippets(db, "public", "valve", list(range(1001)))
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize("query", ["valve", "TS-999", '"pressure valve"', "pres*", "pump OR valve"])
def test_what_a_search_finds_has_a_mark_in_its_snippet(db: Database, query: str) -> None:
    for n in range(6):
        words = " ".join(("valve", "TS 999", "pressure valve", "pressing", "pump", "ts-999")[n : n + 2])
        db.put(f"d{n}", f"{FILLER * (9 * n)}{words}. {FILLER * 9}")
    found = [
        chunk_id
        for (chunk_id,) in db.rows_as("public", "select chunk_id from pgrag.search_lexical(%s)", (query,))
    ]
    shown = snippets(db, "public", query, found)
    assert found != []
    assert [chunk_id for chunk_id in found if "[" not in shown[chunk_id]] == []
