"""pgrag analyze: the lexemes of a text, for people and as JSON."""

from __future__ import annotations

import json
from typing import Any

from _cli import pgrag
from _pgrag import login_dsn


def test_each_lexeme_is_a_row_with_its_reason(db: Any) -> None:
    done = pgrag(db.dsn, "analyze", "the TS-999")
    assert done.returncode == 0
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines()]
    assert [cell for cell in cells if cell] == [
        ["ts", "2", "part of a joined name"],
        ["999", "3", "part of a joined name"],
        ["ts999", "4", "joined name as one word"],
        ["ts-999", "5", "identifier kept whole"],
    ]


def test_json_has_an_object_a_lexeme(db: Any) -> None:
    done = pgrag(db.dsn, "analyze", "Häuser Haus", "--analyzer", "german", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"lexeme": "haus", "positions": [1, 2], "why": "word"}
    ]


def test_a_text_without_words_says_so(db: Any) -> None:
    done = pgrag(db.dsn, "analyze", "the")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Nothing in it is counted: no words, or only stop words.\n"


def test_an_unknown_analyzer_is_an_error(db: Any) -> None:
    done = pgrag(db.dsn, "analyze", "x", "--analyzer", "klingon")
    assert done.returncode == 1
    assert done.stderr.startswith('Error: there is no analyzer "klingon"')


def test_an_application_may(db: Any) -> None:
    assert pgrag(login_dsn(db.dsn, "pgrag_test_app"), "analyze", "valves").returncode == 0


def test_bytes_that_are_no_text_are_an_error(db: Any) -> None:
    done = pgrag(db.dsn, "analyze", "bad \udcff byte")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: a text holds half of a surrogate pair")


def test_a_word_without_its_accents_is_shown(db: Any) -> None:
    done = pgrag(db.dsn, "analyze", "informação", "--analyzer", "portuguese", "--json")
    assert [json.loads(line)["why"] for line in done.stdout.splitlines()] == [
        "word",
        "word without its accents",
    ]
