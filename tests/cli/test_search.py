"""pgrag search: passages as a table or as lines of JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from _cli import pgrag
from _pgrag import login_dsn

PARTS = "# Parts\n\n## Blocked\n\nCells 40-900-A are blocked and may leave the shelf only for disposal."


@pytest.fixture
def parts(db: Any) -> Any:
    db.put("parts.md", PARTS, title="Parts")
    db.put("deal.md", "Cells 40-900-A are sold to Orrin.", readers=["user:bo"], title="Deal")
    db.execute("select pgrag.create_collection('hidden')")
    db.put("plan.md", "Cells of the next series.", readers=["user:bo"], collection="hidden")
    return db


def test_a_table_says_where_a_passage_is_and_why(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "40-900-A", "--as", "user:ana")
    assert done.returncode == 0, done.stderr
    assert "Parts › Blocked" in done.stdout
    assert "parts.md" in done.stdout
    assert "Cells 40-900-A are blocked" in done.stdout
    assert f"{1 / (60 + 1):.5f}" in done.stdout


def test_a_title_that_is_the_first_heading_is_shown_once(parts: Any) -> None:
    assert "Parts › Parts" not in pgrag(parts.dsn, "search", "40-900-A", "--as", "user:ana").stdout


def test_what_is_hidden_is_nowhere_in_the_output(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "cells sold to Orrin", "--as", "user:ana", "--explain")
    assert "deal" not in (done.stdout + done.stderr).lower()
    assert "sold" not in done.stdout + done.stderr


def test_a_long_passage_is_shown_around_the_words_asked_for(parts: Any) -> None:
    filler = " ".join(["Nothing happens in this hall."] * 20)
    parts.put("long.md", f"{filler} The gasket is torn. {filler}")
    printed = pgrag(parts.dsn, "search", "gasket", "--as", "user:ana").stdout
    assert "The gasket is torn." in " ".join(printed.replace("│", " ").split())


def test_words_are_shown_in_every_form_that_the_index_counts(parts: Any) -> None:
    filler = " ".join(["Nothing happens in this hall."] * 20)
    parts.put("long.md", f"{filler} They were rotating TS 999. {filler}")
    printed = pgrag(parts.dsn, "search", "rotation ts999", "--as", "user:ana").stdout
    assert "They were rotating TS 999." in " ".join(printed.replace("│", " ").split())


def test_text_without_spaces_is_folded_and_not_cut(parts: Any) -> None:
    filler = "学校每年为成绩优秀的学生提供" * 4
    uri = f"{'scholarships-of-the-university-' * 4}2026.md"
    parts.put(uri, f"{filler}奖学金。")
    printed = pgrag(parts.dsn, "search", "奖学金", "--as", "user:ana", columns=80).stdout
    whole = re.sub(r"[\s│]", "", printed)
    assert f"{filler}奖学金。" in whole
    assert uri in whole


def test_words_only_leaves_meaning_out(hybrid: Any) -> None:
    hybrid.put("a.md", "The physician examines a patient.")
    hybrid.put("b.md", "The doctor is ill.")

    def found(*options: str) -> dict[str, Any]:
        done = pgrag(hybrid.dsn, "search", "doctor", "--as", "user:ana", "--json", *options)
        return {hit["uri"]: hit["dense_rank"] for hit in map(json.loads, done.stdout.splitlines())}

    assert found().keys() == {"a.md", "b.md"}
    assert found("--words-only") == {"b.md": None}


def test_words_only_is_explained_as_it_was_searched(hybrid: Any) -> None:
    hybrid.put("b.md", "The doctor is ill.")
    arguments = ("search", "doctor", "--as", "user:ana", "--words-only", "--explain", "--json")
    (hit,) = map(json.loads, pgrag(hybrid.dsn, *arguments).stdout.splitlines())
    (fusion,) = [reason["value"] for reason in hit["explanation"] if reason["stage"] == "fusion"]
    assert fusion == pytest.approx(1 / (60 + 1))


def test_words_only_with_a_model_is_wrong_usage(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "cells", "--as", "user:ana", "--words-only", "--model", "x")
    assert done.returncode == 2


def test_what_is_not_a_terminal_gets_no_signs_for_one(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "40-900-A", "--as", "user:ana")
    assert [sign for sign in ("\x1b", "\x02", "\x03", "<mark>") if sign in done.stdout] == []


def test_a_terminal_shows_matches_emphasised(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    printed = pgrag(parts.dsn, "search", "blocked", "--as", "user:ana").stdout
    assert re.search(r"40-900-A are \x1b\[[0-9;]*1[0-9;]*mblocked\x1b\[0m and", printed) is not None


def test_control_characters_of_a_passage_do_not_reach_the_terminal(parts: Any) -> None:
    parts.put("evil\x1b[2J.md", "A gasket \x1b[31m\x1b]0;owned\x07 \u202egnitrats.", title="Evil \x1b[2J")
    printed = pgrag(parts.dsn, "search", "gasket", "--as", "user:ana").stdout
    assert "gasket" in printed
    assert [sign for sign in ("\x1b", "\x07", "\u202e") if sign in printed] == []


def test_json_has_a_snippet_as_html(parts: Any) -> None:
    parts.put("html.md", "A <b>gasket</b>.")
    done = pgrag(parts.dsn, "search", "gaskets", "--as", "user:ana", "--json")
    (hit,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert hit["snippet"] == "A &lt;b&gt;<mark>gasket</mark>&lt;/b&gt;."


def test_json_is_a_line_a_passage(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "40-900-A", "--as", "user:bo", "--json")
    hits = [json.loads(line) for line in done.stdout.splitlines()]
    assert {hit["uri"] for hit in hits} == {"parts.md", "deal.md"}
    assert [hit["lexical_rank"] for hit in hits] == [1, 2]


def test_explain_shows_what_each_word_and_arm_gave(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "blocked", "--as", "user:ana", "--explain")
    assert 'word: "block"' in done.stdout
    assert "fusion: kept at place 1" in done.stdout


def test_explain_as_json_is_part_of_the_passage(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "blocked", "--as", "user:ana", "--explain", "--json")
    (hit,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert [reason["stage"] for reason in hit["explanation"]] == ["word", "lexical", "dense", "fusion"]


def test_somebody_must_ask(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "40-900-A")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "Error: nobody asks: what is found depends on who does.",
        "Try: --as user:NAME, or --as public",
    ]


def test_a_hidden_collection_is_refused_like_one_that_is_not_there(parts: Any) -> None:
    hidden, missing = (
        pgrag(parts.dsn, "search", "cells", "--as", "user:ana", "--collection", name)
        for name in ("hidden", "no")
    )
    assert (hidden.returncode, missing.returncode) == (1, 1)
    assert hidden.stderr.replace("hidden", "no") == missing.stderr


def test_one_collection_can_be_searched(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", "cells", "--as", "user:bo", "--collection", "hidden", "--json")
    assert [json.loads(line)["uri"] for line in done.stdout.splitlines()] == ["plan.md"]


@pytest.mark.parametrize("query", ["zeppelin", "-cells"])
def test_nothing_found_is_no_failure(parts: Any, query: str) -> None:
    done = pgrag(parts.dsn, "search", "--as", "user:ana", "--", query)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Nothing that user:ana may read matches.\n"


@pytest.mark.parametrize("query", ["", " ", '"?!"'])
def test_a_query_without_a_word_is_told_so(parts: Any, query: str) -> None:
    done = pgrag(parts.dsn, "search", query, "--as", "user:ana")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "The query has no word to look for.\n"


@pytest.mark.parametrize("command", ["search", "pack"])
def test_a_query_that_looks_like_an_option_is_told_where_it_goes(command: str) -> None:
    done = pgrag("", command, "-pump", "--as", "user:ana")
    assert done.returncode == 2
    assert f"pgrag {command} --as WHO -- '-old pump'" in done.stderr


@pytest.mark.parametrize("words", [["pump", "station"], ["pump", "-station"]])
def test_a_query_without_quotes_is_told_to_have_them(words: list[str]) -> None:
    done = pgrag("", "search", *words, "--as", "user:ana")
    assert done.returncode == 2
    assert "Put the query in quotes" in done.stderr


@pytest.mark.parametrize("words", [["--jsno"], ["-k"], ["-k", "many"], ["-k", "0"], ["-k", "1001"]])
def test_other_wrong_usage_gets_no_hint_about_queries(words: list[str]) -> None:
    done = pgrag("", "search", "pump", *words)
    assert done.returncode == 2
    assert "Put the query" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--as", "ana"], '"ana" is not the name of a principal'),
        (["--as", "role:postgres"], 'an application can\'t act as a database role, got "role:postgres"'),
    ],
)
def test_a_refusal_is_two_lines_with_the_value_and_what_to_do(
    parts: Any, arguments: list[str], error: str
) -> None:
    done = pgrag(parts.dsn, "search", "cells", "--as", "user:ana", *arguments)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first) == (1, f"Error: {error}")
    assert second.startswith("Try: ")


@pytest.mark.parametrize("filter_", ["{", "[1]"])
def test_a_filter_that_is_no_json_object_is_wrong_usage(parts: Any, filter_: str) -> None:
    assert pgrag(parts.dsn, "search", "cells", "--as", "user:ana", "--filter", filter_).returncode == 2


def test_a_query_that_is_not_utf_8_is_refused(parts: Any) -> None:
    done = pgrag(parts.dsn, "search", b"\xff\xfe", "--as", "user:ana")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: a text holds half of a surrogate pair")


def test_a_role_that_may_not_act_for_others_is_told_what_to_grant(parts: Any) -> None:
    done = pgrag(login_dsn(parts.dsn, "pgrag_test_nobody"), "search", "cells", "--as", "user:ana")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        'Error: role "pgrag_test_nobody" may not act for others',
        "Try: As an administrator: grant pgrag_app to pgrag_test_nobody",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:s3cret@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 user=ana password=s3cret",
        "postgresql:/ana:s3cret@host/db",
    ],
)
def test_a_database_that_is_not_there_is_two_lines_without_a_password(url: str) -> None:
    done = pgrag(url, "search", "cells", "--as", "user:ana")
    error, advice = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert error.startswith("Error: ")
    assert advice.startswith("Try: ")
    assert "s3cret" not in done.stderr
