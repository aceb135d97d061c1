"""pgrag.explain_analysis shows what analyze makes of a text, and says why."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

TEXTS = [
    "",
    "the",
    "Rotate the signing keys, then wait.",
    "the TS-999 of the getUserById in foo_bar.py; TS-999 (see E-4021)",
    "std::vector<int> in C++ and C# with .NET 4.7.3 at 10.0.0.1:8080",
    "mail ana@example.com or https://example.com/a/b?c=d#e, /usr/local/bin",
    "e-mail is email; 1,234,567 units of SKU 12-345-A",
    "北京大学 has Größe, снова; 東 和",
    "a" * 300 + " and and and the-end",
    "don't [stop] {the} «pump» — now… x:y 3.5 1/2",
    "-_-_ ... ''' \\ & : * !",
    "Überprüfung für die größten Häuser, même l’élève à l’école-là",
    "v4.7.3 at U.S.A./AT&T I/O 0xDEADBEEF 500mg TS 999 of 12",
    "infor-\nmation mailto:ana@example.com http://a.com/x?q=1#top OAuth2Client",
    "القاهرة أحمد ٤٠٢١ за\u0301мок ёлка データベース ﬁn ½",
]


def explained(db: Database, content: str, analyzer: str = "english") -> dict[tuple[str, str], list[int]]:
    rows = db.execute("select * from pgrag.explain_analysis(%s, %s)", (content, analyzer))
    return {(lexeme, why): positions for lexeme, positions, why in rows}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("analyzer", ["english", "german", "french", "arabic", "spanish", "simple"])
def test_lexemes_and_positions_are_those_of_analyze(db: Database, text: str, analyzer: str) -> None:
    query = """
        select lexeme, place from pgrag.explain_analysis(%s, %s), unnest(positions) as place order by 2, 1"""
    analysed = """
        select lexeme, place::int from unnest(pgrag.analyze(%s, %s)), unnest(positions) as place order by 2, 1"""
    assert db.execute(query, (text, analyzer)) == db.execute(analysed, (analyzer, text))


def test_a_name_is_shown_apart_joined_and_whole(db: Database) -> None:
    assert explained(db, "the TS-999 valve") == {
        ("ts", "part of a joined name"): [2],
        ("999", "part of a joined name"): [3],
        ("valv", "word"): [4],
        ("ts999", "joined name as one word"): [5],
        ("ts-999", "identifier kept whole"): [6],
    }


def test_a_lexeme_with_two_reasons_has_two_rows(db: Database) -> None:
    found = explained(db, "valve, valve_open")
    assert found["valv", "word"] == [1]
    assert found["valv", "part of a joined name"] == [2]


def test_words_in_brackets_and_before_full_stops_are_words(db: Database) -> None:
    assert {why for _, why in explained(db, "Pumps (see valves). Keys: [one],two; 'three'!")} == {"word"}


def test_a_second_stem_says_that_it_lacks_accents(db: Database) -> None:
    assert explained(db, "a informação", "portuguese") == {
        ("inform", "word"): [2],
        ("informaca", "word without its accents"): [2],
    }


def test_a_word_and_its_number_are_words_and_joined(db: Database) -> None:
    assert explained(db, "model TS 999 of 12") == {
        ("model", "word"): [1],
        ("ts", "word"): [2],
        ("999", "word"): [3],
        ("12", "word"): [5],
        ("ts999", "joined name as one word"): [6],
    }


def test_camel_case_comes_apart(db: Database) -> None:
    assert explained(db, "getUserId", "simple") == {
        ("get", "part of a joined name"): [1],
        ("user", "part of a joined name"): [2],
        ("id", "part of a joined name"): [3],
        ("getuserid", "joined name as one word"): [4],
    }


def test_chinese_is_bigrams(db: Database) -> None:
    assert explained(db, "北京大 東") == {
        ("北京", "bigram"): [1],
        ("京大", "bigram"): [2],
        ("東", "single character"): [3],
    }


def test_null_gives_no_row(db: Database) -> None:
    assert db.execute("select * from pgrag.explain_analysis(null)") == []


@pytest.mark.parametrize(
    ("text", "analyzer", "code"),
    [("x", "klingon", "RG010"), ("x", None, "RG010"), ("x" * 100_001, "english", "RG001")],
)
def test_bad_input_is_refused(db: Database, text: str, analyzer: str | None, code: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute("select pgrag.explain_analysis(%s, %s)", (text, analyzer))
    assert caught.value.sqlstate == code


def test_an_application_may_ask(db: Database) -> None:
    assert db.rows_as("user:ana", "select lexeme from pgrag.explain_analysis('valves')") == [("valv",)]


def test_a_long_text_is_explained_in_one_pass(db: Database) -> None:
    text = " ".join(f"q{number}z" for number in range(4000))
    with db.admin.transaction():
        db.execute("set local statement_timeout = '20s'")
        assert db.value("select count(*) from pgrag.explain_analysis(%s)", (text,)) >= 4000
