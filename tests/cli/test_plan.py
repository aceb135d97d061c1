"""``pgrag plan``: words and exit codes."""

from __future__ import annotations

import json

from _cli import pgrag
from _pgrag import Database

MODEL = "pgrag/data/minilm_static"


def test_a_plan_is_printed(dsn: str) -> None:
    done = pgrag(dsn, "plan", "--chunks", "1000000", "--dimension", "384")

    assert done.returncode == 0, done.stderr
    assert "1,000,000 passages of 200 tokens under 500 ACLs, 384 halfvec, index hnsw" in done.stdout
    assert "storage in all" in done.stdout


def test_a_plan_is_one_json_object(dsn: str) -> None:
    done = pgrag(dsn, "plan", "--chunks", "7000", "--dimension", "384", "--index", "ivfflat", "--json")

    assert json.loads(done.stdout)["index_options"] == {"lists": 10}


def test_a_model_says_its_dimension_and_is_timed(dsn: str) -> None:
    done = pgrag(dsn, "plan", "--chunks", "1000", "--model", MODEL, "--json")

    made = json.loads(done.stdout)
    assert made["dimension"] == 384
    assert made["building"]["embed"] > 0


def test_a_prompt_with_everything_that_does_not_fit_is_told(dsn: str) -> None:
    done = pgrag(
        dsn,
        "plan",
        "--chunks",
        "1000",
        "--dimension",
        "8",
        "--context-tokens",
        "1000",
        "--rerank-ms",
        "2",
        "--price-per-million-tokens",
        "3",
        "--prefill-tokens-per-second",
        "1000",
    )

    assert "everything, which doesn't fit" in done.stdout
    assert "Reranking takes 200 ms a search." in done.stdout


def test_what_no_option_says_is_left_out_and_the_option_is_named(dsn: str) -> None:
    done = pgrag(dsn, "plan", "--chunks", "1000", "--dimension", "8", "--prefill-tokens-per-second", "1000")

    (head,) = [line for line in done.stdout.splitlines() if "a prompt with" in line]
    assert head.replace("┃", " ").split() == ["a", "prompt", "with", "tokens", "time", "to", "read"]
    assert "price (--price-per-million-tokens)" in done.stderr
    assert "--prefill-tokens-per-second" not in done.stderr


def test_why_the_index_is_not_asked_is_said_in_plain_words(dsn: str) -> None:
    options = ("--dimension", "384", "--share", "0.05")
    done = pgrag(dsn, "plan", "--chunks", "1000000", *options, columns=200)

    assert "exact: they see too small a part for the index" in done.stdout
    assert "gives at once" not in done.stdout


def test_a_space_that_is_not_calibrated_is_told_with_the_command(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 384)")
    done = pgrag(db.dsn, "plan", "--chunks", "1000", "--space", "s")

    assert "Times of searches are usual ones: space s is not calibrated.\n" in done.stderr
    assert "Next: pgrag space calibrate s\n" in done.stderr


def test_without_a_dimension_the_options_that_give_one_are_named(dsn: str) -> None:
    done = pgrag(dsn, "plan", "--chunks", "1000")

    assert done.returncode == 1
    assert "Try: pgrag plan --dimension 384, or --model MODEL, or --space NAME" in done.stderr


def test_an_option_of_another_index_is_refused(dsn: str) -> None:
    done = pgrag(dsn, "plan", "--chunks", "1000", "--dimension", "8", "--lists", "10")

    assert done.returncode == 1
    assert "lists is none of hnsw's options" in done.stderr
