"""The analyzer: what the lexical index counts, the same for chunks and for queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def database(installed_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """One database for the module: analysis reads and writes no table."""
    with psycopg.connect(session_database(template=installed_template), autocommit=True) as connection:
        yield connection


def analyze(database: Connection, text: str, config: str = "english") -> dict[str, list[int]]:
    """Return each lexeme and its positions."""
    rows = database.execute(
        "select u.lexeme, u.positions from unnest(pgrag.analyze(%s, %s)) as u", (config, text)
    ).fetchall()
    return {lexeme: list(positions) for lexeme, positions in rows}


@pytest.mark.parametrize(
    ("text", "lexemes"),
    [
        ("TS-999", {"ts", "999", "ts999", "ts-999"}),
        ("ts999", {"ts", "999", "ts999"}),
        ("TS 999", {"ts", "999"}),
        ("E-4021", {"e", "4021", "e4021", "e-4021"}),
        ("ORA-00942", {"ora", "00942", "ora00942", "ora-00942"}),
        ("4.7.3", {"4", "7", "3", "4.7.3"}),
        ("C++", {"c", "c++"}),
        ("C#", {"c", "c#"}),
        ("C++17", {"c", "17", "c++", "c++17"}),
        (".NET", {"net", ".net"}),
        ("foo_bar.py", {"foo", "bar", "py", "foobar", "foo_bar.py"}),
        ("std::vector<int>", {"std", "vector", "int", "std::vector"}),
        ("getUserById", {"get", "user", "id", "getuserbyid"}),
        ("get_user_id", {"get", "user", "id", "getuserid"}),
        ("HTMLParser", {"html", "parser", "htmlparser"}),
        ("10.0.0.1:8080", {"10", "0", "1", "8080", "10.0.0.1", "10.0.0.1:8080"}),
        ("12-345-A", {"12", "345", "12345a", "12-345-a"}),
        ("e-mail", {"e", "mail", "email"}),
        ("ana@example.com", {"ana", "exampl", "com", "ana@example.com", "example.com"}),
        (
            "https://example.com/docs/install.html",
            {"https", "exampl", "com", "doc", "instal", "html", "example.com", "install.html"}
            | {"https://example.com/docs/install.html"},
        ),
        ("/etc/nginx.conf", {"etc", "nginx", "conf", "nginx.conf", "etc/nginx.conf"}),
        ("0x1F4a", {"0x1f4a"}),
        ("AT&T", {"at&t"}),
        ("1,000", {"1", "000", "1000"}),
        ("-5", {"5"}),
        ("<b>bold</b>", {"b", "bold"}),
    ],
)
def test_an_identifier_is_kept_whole_and_taken_apart(
    database: Connection, text: str, lexemes: set[str]
) -> None:
    assert set(analyze(database, text)) == lexemes


@pytest.mark.parametrize(
    ("config", "text", "lexemes"),
    [
        ("english", "café naïve", {"cafe", "naiv"}),
        ("english", "Straße", {"strasse"}),
        ("german", "Häuser", {"haus"}),
        ("spanish", "año canción", {"año", "cancion"}),
        ("swedish", "ö", {"ö"}),
        ("russian", "Ёлки", {"елк"}),
        ("english", "Ёлки", {"елки"}),
        ("arabic", "كِتَابٌ", {"كتاب"}),
        ("english", "كِتَابٌ", {"كتاب"}),
        ("english", "ｆｕｌｌ ｗｉｄｔｈ", {"full", "width"}),
        ("english", "soft\u00adhyphen", {"softhyphen"}),
        ("english", "non\u2011breaking", {"non", "break", "nonbreak"}),
        ("simple", "The Houses", {"the", "houses"}),
    ],
)
def test_each_language_gets_its_own_words(
    database: Connection, config: str, text: str, lexemes: set[str]
) -> None:
    assert set(analyze(database, text, config)) == lexemes


def test_chinese_japanese_and_korean_give_bigrams_in_a_row(database: Connection) -> None:
    assert analyze(database, "数据库系统") == {"数据": [1], "据库": [2], "库系": [3], "系统": [4]}
    assert set(analyze(database, "データベース")) == {"デー", "ータ", "タベ", "ベー", "ース"}
    assert set(analyze(database, "안녕하세요")) == {"안녕", "녕하", "하세", "세요"}


def test_latin_words_come_apart_from_the_cjk_text_around_them(database: Connection) -> None:
    assert {"使用", "postgr", "很快"} <= set(analyze(database, "使用Postgres很快"))


def test_every_configuration_of_the_server_analyses(database: Connection) -> None:
    for (config,) in database.execute("select cfgname::text from pg_ts_config").fetchall():
        assert "ts-999" in analyze(database, "see TS-999", config), config


def test_an_unknown_analyzer_is_refused_by_name(database: Connection) -> None:
    with pytest.raises(psycopg.Error, match='there is no analyzer "klingon"') as caught:
        analyze(database, "text", "klingon")
    assert caught.value.sqlstate == "RG010"
    assert "english" in (caught.value.diag.message_hint or "")


def test_words_count_positions_from_one_with_stop_words(database: Connection) -> None:
    assert analyze(database, "rotation of the keys") == {"rotat": [1], "key": [4]}


def test_names_however_joined_are_the_same_words_in_a_row(database: Connection) -> None:
    for text in ("open source code", "open-source code", "open_source code", "openSource code"):
        found = analyze(database, text)
        assert (found["open"], found["sourc"], found["code"]) == ([1], [2], [3]), text


def test_what_is_repeated_has_a_position_each_time(database: Connection) -> None:
    found = analyze(database, "TS-999 TS-999 TS-999")
    assert {lexeme: len(positions) for lexeme, positions in found.items()} == dict.fromkeys(
        ("ts", "999", "ts999", "ts-999"), 3
    )


@pytest.mark.parametrize("text", ["", " \n", "...", "-- ++ ## !!", "the of and", "=" * 5000])
def test_text_without_words_is_an_empty_vector(database: Connection, text: str) -> None:
    assert analyze(database, text) == {}


@pytest.mark.parametrize(
    "word", ["x" * 3000, "x_" * 3000, "a.b@" * 2000, "é" * 3000, "/a" * 3000, "Ab" * 3000]
)
def test_a_word_of_thousands_of_characters_hides_nothing(database: Connection, word: str) -> None:
    assert "tail" in analyze(database, f"{word} tail")


def test_a_long_word_is_found_by_itself(database: Connection) -> None:
    assert analyze(database, "x" * 3000) == {"x" * 255: [1]}


def test_a_megabyte_of_prose_is_analysed(database: Connection) -> None:
    assert len(analyze(database, "A megabyte of plain words. " * 40000)) == len({"megabyt", "plain", "word"})


def test_a_megabyte_of_different_words_is_refused_with_the_limit(database: Connection) -> None:
    text = " ".join(f"{number:x}" for number in range(150_000))
    with pytest.raises(psycopg.Error, match="1 MB of lexemes") as caught:
        analyze(database, text)
    assert caught.value.sqlstate == "RG013"


def test_null_is_null(database: Connection) -> None:
    assert database.execute("select pgrag.analyze('english', null), pgrag.analyze(null, 'x')").fetchone() == (
        None,
        None,
    )


@pytest.mark.parametrize("query", ["TS-999", "ts999", "TS 999", "ts_999", "999"])
def test_a_searcher_finds_the_part_number_however_it_is_typed(db: Any, query: str) -> None:
    db.put("said", "Replace the filter of model TS-999 every year.")
    db.put("other", "Replace the filter of model TS-998 every year.")
    db.put("neither", "Replace the filter of model QX every year, says page 12.")
    rows = db.rows_as(
        "user:ana",
        "select uri from pgrag.search_lexical(%s) join pgrag.document using (document_id) order by rank",
        (query,),
    )
    assert rows[0] == ("said",)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(
        alphabet=st.one_of(
            st.sampled_from("aB9-_./:@#+&<>'\"\\,; \n水カ한éёß\u0301\u00ad\u200b"),
            st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        ),
        max_size=60,
    )
)
def test_any_text_is_analysed_the_same_twice(database: Connection, text: str) -> None:
    assert analyze(database, text) == analyze(database, text)
    assert all(positions for positions in analyze(database, text, "french").values())
