"""The analyzer: what the lexical index counts, the same for chunks and for queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

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
        ("TS 999", {"ts", "999", "ts999"}),
        ("of 999", {"999"}),
        ("TS 9", {"ts", "9"}),
        ("seventh 999", {"seventh", "999"}),
        ("E-4021", {"e", "4021", "e4021", "e-4021"}),
        ("ORA-00942", {"ora", "00942", "ora00942", "ora-00942"}),
        ("4.7.3", {"4", "7", "3", "4.7", "4.7.3"}),
        ("v4.7.3", {"v", "4", "7", "3", "v4", "v4.7.3", "4.7", "4.7.3"}),
        ("4.7", {"4", "7", "4.7"}),
        ("C++", {"c", "c++"}),
        ("C#", {"c", "c#"}),
        ("C++17", {"c", "17", "c++", "c++17"}),
        (".NET", {"net", ".net"}),
        ("foo_bar.py", {"foo", "bar", "py", "foobar", "foo_bar.py"}),
        ("std::vector<int>", {"std", "vector", "int", "std::vector"}),
        ("getUserById", {"get", "user", "id", "getuserbyid"}),
        ("get_user_id", {"get", "user", "id", "getuserid"}),
        ("HTMLParser", {"html", "parser", "htmlparser"}),
        ("10.0.0.1:8080", {"10", "0", "1", "8080", "10.0", "10.0.0", "10.0.0.1", "10.0.0.1:8080"}),
        ("12-345-A", {"12", "345", "12345a", "12-345-a"}),
        ("e-mail", {"e", "mail", "email"}),
        ("0xDEADBEEF", {"0", "x", "deadbeef", "0xdeadbeef"}),
        ("0xdeadbeef", {"0xdeadbeef", "deadbeef"}),
        ("80070005", {"80070005"}),
        ("0x80070005", {"0x80070005", "80070005"}),
        ("500mg", {"500", "mg"}),
        ("12345A", {"12345", "12345a"}),
        ("OAuth2Client", {"o", "auth", "2", "client", "oauth2client"}),
        ("infor-\nmation", {"infor", "mation", "inform"}),
        ("I/O", {"o", "io"}),
        ("TCP/IP", {"tcp", "ip", "tcpip"}),
        ("U.S.A.", {"u", "usa", "u.s.a"}),
        ("e.g.", {"e", "g", "e.g"}),
        ("mailto:a@b.org", {"mailto", "b", "org", "mailto:a@b.org", "a@b.org", "b.org"}),
        (
            "a.com/x?q=1#top",
            {"com", "x", "q", "1", "top", "a.com", "a.com/x", "a.com/x?q=1#top", "1#top"},
        ),
        ("ana@example.com", {"ana", "exampl", "com", "ana@example.com", "example.com"}),
        (
            "https://example.com/docs/install.html",
            {"https", "exampl", "com", "doc", "instal", "html", "example.com", "install.html"}
            | {"example.com/docs/install.html"},
        ),
        ("/etc/nginx.conf", {"etc", "nginx", "conf", "nginx.conf", "etc/nginx.conf"}),
        ("0x1F4a", {"0x1f4a", "1f4a"}),
        ("AT&T", {"at&t", "att"}),
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
        ("english", "Straße Strasse", {"strass"}),
        ("english", "résumés RÉSUMÉ resume", {"resum"}),
        ("portuguese", "informação", {"inform", "informaca"}),
        ("portuguese", "informacao", {"informaca"}),
        ("french", "même", set()),
        ("turkish", "ısparta İSPARTA", {"ispar"}),
        ("romanian", "situația situaţia", {"situ", "situat"}),
        ("greek", "ΛΟΓΟΣ λόγος", {"λογ"}),
        ("english", "ΛΟΓΟΣ λόγος", {"λογοσ"}),
        ("russian", "за\u0301мок", {"замок"}),
        ("arabic", "القـــاهرة", {"قاهر", "قاهره"}),
        ("english", "أحمد احمد", {"احمد"}),
        ("english", "٤٠٢١ ۴۰۲۱ ４０２１", {"4021"}),
        ("simple", "½ в", {"в", "1", "2", "12", "1/2"}),
        ("german", "Häuser", {"haus"}),
        ("spanish", "año canción", {"año", "cancion"}),
        ("swedish", "ö", {"ö"}),
        ("russian", "Ёлки", {"елк"}),
        ("english", "Ёлки", {"елки"}),
        ("arabic", "كِتَابٌ", {"كتاب"}),
        ("english", "كِتَابٌ", {"كتاب"}),
        ("english", "ｆｕｌｌ ｗｉｄｔｈ", {"full", "width"}),
        ("english", "soft\u00adhyphen", {"softhyphen"}),
        ("english", "zero\u200bwidth\u200djoiner\ufeff", {"zero", "widthjoin"}),
        ("english", "L’eau don’t donʼt don´t", {"l", "eau"}),
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


def test_a_word_without_its_accents_stands_where_the_word_does(database: Connection) -> None:
    assert analyze(database, "a informação pública", "portuguese") == {
        "inform": [2],
        "informaca": [2],
        "public": [3],
    }


@pytest.mark.parametrize("collation", ["C", "POSIX", "ucs_basic"])
def test_the_collation_of_the_arguments_says_nothing(database: Connection, collation: str) -> None:
    text = "Älteste ﬁle-Größe: бета-ёлка TS-999, getÜberId, É.É.É., Ω++"
    row = database.execute(
        sql.SQL(
            """
            select pgrag.analyze('german' collate {0}, %(text)s) = pgrag.analyze('german', %(text)s),
                pgrag.analyze('german', %(text)s collate {0}) = pgrag.analyze('german', %(text)s),
                pgrag._word_lexemes('german', %(text)s collate {0}) = pgrag._word_lexemes('german', %(text)s),
                pgrag._identifier_lexemes(%(text)s collate {0}) = pgrag._identifier_lexemes(%(text)s)"""
        ).format(sql.Identifier("pg_catalog", collation)),
        {"text": text},
    ).fetchone()
    assert row == (True, True, True, True)


def test_what_is_repeated_has_a_position_each_time(database: Connection) -> None:
    found = analyze(database, "TS-999 TS-999 TS-999")
    assert {lexeme: len(positions) for lexeme, positions in found.items()} == dict.fromkeys(
        ("ts", "999", "ts999", "ts-999"), 3
    )


@pytest.mark.parametrize(
    "text", ["", " \n", "...", "-- ++ ## !!", "the of and", "=" * 5000, "🎉🎊", "’‘“”…—"]
)
def test_text_without_words_is_an_empty_vector(database: Connection, text: str) -> None:
    assert analyze(database, text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "\u200b\u00ad\u2060\ufeff",
        "\u202e\u202c",
        "\U0010ffff\ufffe",
        "\u0301\u0308",
        "،؛؟",
        "。、「」",
        "\x01\x02\x7f",
    ],
)
def test_marks_alone_are_no_words(database: Connection, text: str) -> None:
    assert analyze(database, text) == {}


@pytest.mark.parametrize(
    "piece",
    [
        "x",
        "x_",
        "a.b@",
        "é",
        "/a",
        "Ab",
        "1",
        "1.",
        "a1",
        "ж",
        "水",
        "م",
        "x\u0301",
        "0f",
        "a-\n",
        "::",
        "A&",
    ],
)
def test_a_word_of_thousands_of_characters_hides_nothing(database: Connection, piece: str) -> None:
    assert "tail" in analyze(database, f"{piece * 3000} tail")


def test_a_long_word_is_found_by_itself(database: Connection) -> None:
    assert analyze(database, "x" * 3000) == {"x" * 255: [1]}


def test_a_megabyte_of_prose_is_analysed(database: Connection) -> None:
    assert len(analyze(database, "A megabyte of plain words. " * 40000)) == len({"megabyt", "plain", "word"})


@pytest.mark.parametrize("piece", ["é", "水", "مدرسة ", "Ab", "1.2.3.4 ", "a-\n", "TS 99 "])
def test_a_megabyte_of_anything_is_analysed(database: Connection, piece: str) -> None:
    text = piece * (1_000_000 // len(piece.encode()))
    assert "tail" in analyze(database, f"{text} tail", "french")


@pytest.mark.parametrize("config", ["english", "french"])
def test_what_the_limit_leaves_is_never_the_parser_s_own_error(database: Connection, config: str) -> None:
    # Each word of these two letters and a number makes four lexemes; just below the size that is looked at more closely.
    text = " ".join(f"é-{number}.1.1" for number in range(100_000))
    assert analyze(database, text[:60_000], config)
    with pytest.raises(psycopg.Error) as caught:
        analyze(database, text, config)
    assert caught.value.sqlstate == "RG013"


def test_a_zero_byte_is_refused_by_the_driver_and_a_lone_surrogate_too(database: Connection) -> None:
    with pytest.raises(psycopg.DataError):
        analyze(database, "zero \0 byte")
    with pytest.raises(UnicodeEncodeError):
        analyze(database, "lone \ud800 surrogate")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("שלום עולם E-4021", {"שלום", "עולם", "4021", "e4021", "e-4021"}),
        ("\u202eאבג\u202c abc", {"אבג", "abc"}),
        ("مرحبا بالعالم hello", {"مرحبا", "بالعالم", "hello"}),
        ("abcабвαβγ漢字אבג", {"漢字"}),
        ("100% ٪100", {"100"}),
    ],
)
def test_scripts_may_be_mixed_and_run_from_right_to_left(
    database: Connection, text: str, words: set[str]
) -> None:
    assert words <= set(analyze(database, text))


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
