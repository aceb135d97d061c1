"""``pgrag embed``: a model's space is made, filled and activated in one step."""

from __future__ import annotations

from pathlib import Path

from _cli import pgrag
from _pgrag import Database

import pgrag as package

MODEL = str(Path(package.__file__).parent / "data" / "minilm_static")


def test_a_model_answers_and_nothing_is_judged(db: Database) -> None:
    db.put("a", "open the valve")
    done = pgrag(db.dsn, "embed", MODEL, "--collection", "docs", "--space", "second")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert 'Collection "docs" is searched by second; 1 vectors were new.' in done.stderr
    assert f"--collection docs --model {MODEL} --space second\n" in done.stderr
    assert db.value("select space from pgrag.collection_settings('docs')") == "second"


def test_again_it_embeds_nothing(db: Database) -> None:
    db.put("a", "open the valve")
    pgrag(db.dsn, "embed", MODEL, "--collection", "docs", "--space", "second")
    done = pgrag(db.dsn, "embed", MODEL, "--collection", "docs", "--space", "second")
    assert 'Collection "docs" is searched by second; 0 vectors were new.' in done.stderr


def test_the_help_says_what_a_model_is_and_what_it_needs(db: Database) -> None:
    out = pgrag(db.dsn, "embed", "--help", columns=200).stdout
    for words in (
        "onnx:PATH",
        "https://host/v1#model",
        "extra `onnx`",
        "endpoint `endpoint`",
        "any other model `models`",
    ):
        assert words in " ".join(out.replace("│", " ").split())
