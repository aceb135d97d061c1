"""Fitting the token table of a space: what it makes, where it goes, and how it goes on after a stop."""

from __future__ import annotations

import builtins
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pgrag import Database
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from pgrag._vector import register
from pgrag.embed import StaticEncoder
from pgrag.errors import PgragError, Refused
from pgrag.fit import FitProgress, fit_space
from pgrag.spaces import attach_shipped
from pgrag.spaces._query_encoder import imitates

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

needs_torch = pytest.mark.skipif(torch is None, reason="fitting needs torch: pip install 'pgrag-rls[models]'")
WORDS = re.findall(
    r"\w+",
    "valve pump gauge handle pipe boiler wheel spring bolt filter tank motor turn stop read open close check oil clean"
    " left right slowly twice daily never before after while cold warm",
)


class ToyModel:
    """A vector of its own for each word, and a little for each pair of neighbours: nearly, not quite, a sum."""

    name = "toy"
    dimension = 16
    passport: dict[str, Any] = {"model": "toy-model", "dimension": 16, "sha256": "a" * 64}  # noqa: RUF012

    def __init__(self) -> None:
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"?.", *"abcdefghijklmnopqrstuvwxyz"]
        tokens += ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz"] + WORDS
        vocabulary = {token: number for number, token in enumerate(tokens)}
        self.tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        self.tokenizer.normalizer = BertNormalizer()
        self.tokenizer.pre_tokenizer = BertPreTokenizer()
        rng = np.random.default_rng(4)
        self._words = rng.standard_normal((len(tokens), self.dimension)) * rng.uniform(
            0.2, 3, (len(tokens), 1)
        )
        self._turn = rng.standard_normal((self.dimension, self.dimension)) / 16
        self.encoded = 0

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += len(texts)
        out = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            vectors = self._words[self.tokenizer.encode(text, add_special_tokens=False).ids]
            total = vectors.sum(axis=0) + (vectors[1:] * (vectors[:-1] @ self._turn)).sum(axis=0)
            if len(vectors):
                out[row] = total / np.linalg.norm(total)
        return out

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))


def filled(database: Database, readers: Sequence[str] = ("public",), count: int = 60) -> Database:
    """Sixty documents of three sentences each, in a collection that a space of the toy model holds."""
    rng = random.Random(9)
    for number in range(count):
        text = " ".join(" ".join(rng.choices(WORDS, k=rng.randint(5, 9))) + "." for _ in range(3))
        database.put(f"d{number}", text, readers)
    database.execute("select pgrag.create_space('toy', 'toy-model', 16, index_kind => 'none')")
    database.execute("select pgrag.attach_space('docs', 'toy')")
    return database


def fit(database: Database, encoder: ToyModel | None = None, **more: Any) -> Any:
    arguments = {"sample": 600, "general": 60, "epochs": 6} | more
    return fit_space(database.admin, encoder or ToyModel(), **arguments)


# With torch


@needs_torch
def test_a_fit_comes_nearer_to_the_model_on_texts_that_it_did_not_see(db: Database, tmp_path: Path) -> None:
    figures = fit(filled(db), cache=tmp_path)
    assert figures.cosine > figures.cosine_before


@needs_torch
def test_queries_are_embedded_in_sql_afterwards(db: Database, tmp_path: Path) -> None:
    figures = fit(filled(db), cache=tmp_path)
    rng = random.Random(1)
    queries = [" ".join(rng.choices(WORDS, k=6)) for _ in range(100)]
    found = db.execute("select pgrag.embed_query(q, 'toy')::text from unnest(%s::text[]) as q", (queries,))
    vectors = np.array([np.fromstring(row[0].strip("[]"), sep=",") for row in found])
    cosine = float((vectors * ToyModel().encode_queries(queries)).sum(axis=1).mean())
    assert cosine > figures.cosine_before


@needs_torch
def test_the_passport_says_what_was_fitted(db: Database, tmp_path: Path) -> None:
    figures = fit(filled(db), cache=tmp_path)
    kept = db.value("select pgrag.space_passport('toy') -> 'query_encoder'")
    assert {key: kept[key] for key in ("name", "cosine", "texts", "hidden", "start")} == {
        "name": "toy-fit",
        "cosine": figures.cosine,
        "texts": figures.texts,
        "hidden": False,
        "start": "tokens",
    }


@needs_torch
def test_a_tenth_is_held_out(db: Database, tmp_path: Path) -> None:
    figures = fit(filled(db), cache=tmp_path)
    assert figures.held_out == (figures.held_out + figures.texts) // 10


@needs_torch
def test_a_second_fit_replaces_the_first(db: Database, tmp_path: Path) -> None:
    filled(db)
    fit(db, cache=tmp_path)
    before = db.value("select embedding::text from pgrag.encoder_token where token = 'valve'")
    second = fit(db, cache=tmp_path, seed=1)
    assert second.tokens == db.value("select count(*) from pgrag.encoder_token")
    assert db.value("select embedding::text from pgrag.encoder_token where token = 'valve'") != before


@needs_torch
def test_a_fit_that_was_stopped_encodes_nothing_twice(db: Database, tmp_path: Path) -> None:
    filled(db)
    first = ToyModel()

    def stop(progress: FitProgress) -> None:
        if progress.stage == "fit" and progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(db, first, cache=tmp_path, on_progress=stop)
    again = ToyModel()
    seen: list[int] = []
    fit(db, again, cache=tmp_path, on_progress=lambda p: seen.append(p.done) if p.stage == "fit" else None)
    # What is left is the start: the vector of each token.
    assert (again.encoded < first.encoded, seen[0]) == (True, 3)


@needs_torch
def test_a_fit_that_was_stopped_ends_as_one_that_was_not(db: Database, tmp_path: Path) -> None:
    filled(db)

    def stop(progress: FitProgress) -> None:
        if progress.stage == "fit" and progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(db, cache=tmp_path / "one", on_progress=stop)
    stopped, whole = fit(db, cache=tmp_path / "one"), fit(db, cache=tmp_path / "two")
    assert (stopped.cosine, stopped.epoch) == (whole.cosine, whole.epoch)


@needs_torch
def test_no_text_of_the_corpus_is_left_behind(db: Database, tmp_path: Path) -> None:
    fit(filled(db), cache=tmp_path)
    assert {file.suffix for file in tmp_path.iterdir()} == {".npy"}


@needs_torch
def test_a_corpus_that_public_may_not_read_gives_nothing_to_fit_on(db: Database, tmp_path: Path) -> None:
    filled(db, ["user:boss"])
    with pytest.raises(PgragError, match="texts to fit on"):
        fit(db, cache=tmp_path, general=0)


@needs_torch
def test_hidden_passages_count_when_told_so(db: Database, tmp_path: Path) -> None:
    assert fit(filled(db, ["user:boss"]), cache=tmp_path, hidden=True).hidden is True


@needs_torch
def test_another_model_is_refused(db: Database, tmp_path: Path) -> None:
    filled(db)
    other = ToyModel()
    other.passport = other.passport | {"model": "other-model"}
    with pytest.raises(Refused, match="holds vectors of toy-model"):
        fit(db, other, cache=tmp_path)


@needs_torch
def test_a_space_whose_documents_are_by_the_table_is_refused(hybrid: Database, tmp_path: Path) -> None:
    shipped = StaticEncoder.shipped()
    with pytest.raises(Refused, match="by its own token table"):
        fit_space(hybrid.admin, shipped, space=shipped.name, sample=200, cache=tmp_path)


# Without torch


def test_without_torch_the_error_says_what_to_install(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(PgragError) as caught:
        fit_space(db.admin, ToyModel())
    assert caught.value.hint == "pip install 'pgrag-rls[models]'"


def passport(**more: Any) -> dict[str, Any]:
    return {"model": "all-MiniLM-L6-v2", "dimension": 384} | more


def test_the_model_of_the_shipped_table_is_known_by_its_weights() -> None:
    shipped = StaticEncoder.shipped()
    assert imitates(shipped, passport(model="a-copy", sha256=shipped.passport["teacher_sha256"]))


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "sentence-transformers/all-minilm-l6-v2"])
def test_the_model_of_the_shipped_table_is_known_by_its_name_where_nothing_else_is_known(model: str) -> None:
    assert imitates(StaticEncoder.shipped(), passport(model=model))


@pytest.mark.parametrize("other", [{"sha256": "0" * 64}, {"model": "all-mpnet-base-v2"}, {"dimension": 768}])
def test_another_model_is_not_that_of_the_shipped_table(other: dict[str, Any]) -> None:
    assert not imitates(StaticEncoder.shipped(), passport(**other))


def test_a_space_of_the_shipped_tables_model_gets_it(db: Database) -> None:
    shipped = StaticEncoder.shipped()
    db.execute("select pgrag.create_space('minilm', 'all-MiniLM-L6-v2', 384)")
    register(db.admin)
    assert attach_shipped(db.admin, passport(), space="minilm") is True
    (found,) = db.execute("select pgrag.embed_query('rotate a key', 'minilm')::text")
    # halfvec rounds a number below 1 by half of 2**-11 at most.
    assert np.fromstring(found[0].strip("[]"), sep=",") == pytest.approx(
        shipped.encode_queries(["rotate a key"])[0], abs=2**-12 + 2**-20
    )


def test_a_space_of_another_model_does_not(db: Database) -> None:
    db.execute("select pgrag.create_space('other', 'other', 384)")
    assert attach_shipped(db.admin, passport(model="other"), space="other") is False
    assert db.value("select query_encoder from pgrag.space") is None
