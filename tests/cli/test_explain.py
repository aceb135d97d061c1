"""``pgrag explain``: what happened to a document at each stage, in words and as JSON."""

from __future__ import annotations

import json

import pytest
from _cli import pgrag
from _pgrag import Database

TEXT = "# Pumps\n\nThe old pump is blue.\n\n# Valves\n\nThe valve is red."


@pytest.fixture
def filled(db: Database) -> Database:
    db.put("pumps.md", TEXT)
    db.put("other.md", "pump pump pump")
    db.put("secret.md", "the secret pump", readers=["user:ana"])
    return db


def explain(database: Database, *more: str, query: str = "pump", who: str = "public") -> dict[str, object]:
    """Return the JSON object of one question about a document."""
    answer = pgrag(database.dsn, "explain", query, "--collection", "docs", "--as", who, "--json", *more)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, object] = json.loads(answer.stdout)
    return found


def test_a_kept_document_is_shown_stage_by_stage(filled: Database) -> None:
    answer = pgrag(
        filled.dsn, "explain", "pump", "--collection", "docs", "--as", "public", "--document", "pumps.md"
    )
    stages = [line.split("│")[1].strip() for line in answer.stdout.splitlines() if line.startswith("│")]
    assert stages == ["ingested", "permitted", "chunk", "words", "meaning", "fusion", "kept"]
    assert answer.stderr == "pumps.md: kept at place 2\n"


def test_what_would_have_kept_it_is_shown(filled: Database) -> None:
    answer = pgrag(
        filled.dsn,
        *("explain", "pump", "--collection", "docs", "--as", "public", "--document", "pumps.md", "-k", "1"),
    )
    assert answer.stderr == "pumps.md: lost: fusion\n"
    assert "│ fusion    │ lost: place 2, and k is 1" in answer.stdout
    # The least k that keeps it is its place.
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("│ k ")]
    assert line.split("│")[1].strip() == "k 2"
    assert line.split("│")[2].strip() == "it is kept"
    assert "No help: weights lexical 2, dense 1;" in answer.stdout


def test_the_passage_is_named_by_its_number_and_heading(filled: Database) -> None:
    answer = pgrag(
        filled.dsn, "explain", "valve", "--collection", "docs", "--as", "public", "--document", "pumps.md"
    )
    assert 'the best of it is passage 2 of the document, under "Valves"' in " ".join(
        answer.stdout.replace("│", " ").split()
    )


def test_a_quote_is_found_in_its_document(filled: Database) -> None:
    found = explain(filled, "--document", "pumps.md", "--quote", "the  old pump".replace("the", "The"))
    start = TEXT.index("The old pump")
    assert found["stage"] == "kept"
    assert found["detail"]["moved_to"] == [start, start + len("The old pump")]  # type: ignore[index]


def test_a_span_over_two_passages_is_split(filled: Database) -> None:
    found = explain(filled, "--document", "pumps.md", "--span", f"0:{len(TEXT)}")
    assert (found["stage"], len(found["detail"]["chunks"])) == ("split", 2)  # type: ignore[index]


def test_an_administrator_is_told_that_it_is_not_permitted(filled: Database) -> None:
    assert explain(filled, "--document", "secret.md")["stage"] == "not_permitted"


def test_who_may_read_it_finds_it(filled: Database) -> None:
    assert explain(filled, "--document", "secret.md", who="user:ana")["stage"] == "kept"


def test_packing_is_asked_with_a_budget(filled: Database) -> None:
    found = explain(filled, "--document", "pumps.md", "--budget", "1")
    assert (found["stage"], found["detail"]["reason"]) == ("pack", "over the budget")  # type: ignore[index]


def test_nobody_is_assumed_to_ask(filled: Database) -> None:
    answer = pgrag(filled.dsn, "explain", "pump", "--collection", "docs", "--document", "pumps.md")
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (
        1,
        "Error: nobody asks: what is found depends on who does.",
    )


@pytest.mark.parametrize("more", [("--span", "5"), ("--span", "5:5"), ("--span", "1:2", "--quote", "a")])
def test_what_is_no_span_is_wrong_usage(filled: Database, more: tuple[str, ...]) -> None:
    answer = pgrag(
        filled.dsn,
        *("explain", "pump", "--collection", "docs", "--as", "public", "--document", "pumps.md", *more),
    )
    assert answer.returncode == 2


def test_a_model_embeds_the_query(hybrid: Database) -> None:
    hybrid.put("pumps.md", TEXT)
    found = explain(
        hybrid, "--document", "pumps.md", "--model", "pgrag/data/minilm_static", query="water engine"
    )
    assert (found["stage"], found["detail"]["dense_rank"]) == ("kept", 1)  # type: ignore[index]


def test_a_model_of_another_space_is_refused(hybrid: Database) -> None:
    hybrid.put("pumps.md", TEXT)
    hybrid.execute("select pgrag.create_space('other', 'other', 3)")
    hybrid.execute("select pgrag.attach_space('docs', 'other')")
    answer = pgrag(
        hybrid.dsn,
        *("explain", "pump", "--collection", "docs", "--as", "public", "--document", "pumps.md"),
        *("--model", "pgrag/data/minilm_static", "--space", "other"),
    )
    assert answer.returncode == 1
    assert 'space "other" holds vectors of other' in answer.stderr
