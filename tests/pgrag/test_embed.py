"""The encoders: what a vector is the sum of, and what texts without one give."""

from __future__ import annotations

import builtins
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgrag.embed import Encoder, SentenceTransformerEncoder, StaticEncoder
from pgrag.errors import PgragError

SHIPPED = Path(__file__).parents[2] / "pgrag" / "data" / "minilm_static"
TEXTS = [
    "How do I rotate an API key?",
    "Error E-4021: the vault refused the key (std::vector<int>, foo_bar.py).",
    "naïve ÇA coöperate",
    "機密情報の取り扱い",
    "the the the",
]


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder.shipped()


def token_vectors(encoder: StaticEncoder) -> dict[str, np.ndarray]:
    return {token: vector for token, _, vector in encoder.token_rows()}


def test_the_encoders_follow_the_protocol(encoder: StaticEncoder) -> None:
    assert isinstance(encoder, Encoder)


def test_vectors_have_length_one(encoder: StaticEncoder) -> None:
    # float32 rounds each number by up to 2**-24 of itself, so the length is off by no more than that.
    assert np.linalg.norm(encoder.encode(TEXTS).astype(np.float64), axis=1) == pytest.approx(1, abs=2**-23)


def test_shape_and_type_are_those_of_the_passport(encoder: StaticEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert (vectors.shape, vectors.dtype) == (
        (len(TEXTS), encoder.passport["dimension"]),
        np.dtype(np.float32),
    )


def test_a_vector_is_the_normalised_sum_of_its_tokens(encoder: StaticEncoder) -> None:
    of = token_vectors(encoder)
    total = of["token"] + 2 * of["##izer"] + of["naive"] + of["token"]
    assert encoder.encode(["tokenizer NAÏVE tokenizer"])[0] == pytest.approx(
        total / np.linalg.norm(total), abs=1e-6
    )


def test_a_batch_gives_the_same_bits_as_single_texts(encoder: StaticEncoder) -> None:
    assert np.array_equal(
        encoder.encode(TEXTS * 100), np.concatenate([encoder.encode([t]) for t in TEXTS] * 100)
    )


def test_the_order_of_words_that_are_no_pair_changes_no_bit(encoder: StaticEncoder) -> None:
    words = ["rotate", "the", "signing", "key", "before", "it", "expires", "and", "tell", "the", "owner"]
    assert np.array_equal(encoder.encode([" ; ".join(words)]), encoder.encode([" ; ".join(reversed(words))]))


def test_a_pair_of_words_adds_its_vector_where_they_are_neighbours(encoder: StaticEncoder) -> None:
    of = token_vectors(encoder)
    total = 2 * of["how"] + 2 * of["to"] + of["how to"] + of[","] + of["!"]
    assert encoder.encode(["How to, how! to"])[0] == pytest.approx(total / np.linalg.norm(total), abs=1e-6)


def test_part_of_a_word_is_no_neighbour(encoder: StaticEncoder) -> None:
    of = token_vectors(encoder)
    total = of["how"] + of["token"] + of["##izer"] + of["to"]
    assert encoder.encode(["how tokenizer to"])[0] == pytest.approx(total / np.linalg.norm(total), abs=1e-6)


def test_documents_and_queries_are_encoded_alike(encoder: StaticEncoder) -> None:
    assert np.array_equal(encoder.encode_documents(TEXTS), encoder.encode_queries(TEXTS))


@pytest.mark.parametrize("text", ["", "   \n", "\x00\x07", "\ud800", "😀", "x" * 101])
def test_a_text_without_a_known_token_has_a_row_of_zeros(encoder: StaticEncoder, text: str) -> None:
    assert not encoder.encode(["a key", text])[1].any()


def test_no_texts_give_no_rows(encoder: StaticEncoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_names_of_special_tokens_are_plain_text(encoder: StaticEncoder) -> None:
    assert np.array_equal(encoder.encode(["[SEP] key"]), encoder.encode(["[ sep ] key"]))


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("tokenizer", 2), ("E-4021", 4), ("😀 key", 2), ("中文", 2)]
)
def test_tokens_are_counted_without_special_ones(encoder: StaticEncoder, text: str, count: int) -> None:
    assert encoder.count_tokens(text) == count


def test_a_question_is_nearest_to_its_answer(encoder: StaticEncoder) -> None:
    question = encoder.encode_queries(["how do I get my travel expenses back?"])[0]
    answers = encoder.encode_documents(
        [
            "The cafeteria is open from noon to two.",
            "Travel costs are reimbursed when you hand in the receipts within a month.",
            "Database backups run at three in the morning.",
        ]
    )
    assert (answers @ question).argmax() == 1


def test_token_vectors_are_exact_in_halfvec(encoder: StaticEncoder) -> None:
    vectors = np.stack([vector for _, _, vector in encoder.token_rows()])
    assert np.array_equal(vectors, vectors.astype(np.float16).astype(np.float32))


def test_special_tokens_have_no_vector(encoder: StaticEncoder) -> None:
    assert {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[unused1]"}.isdisjoint(token_vectors(encoder))


def test_the_shipped_files_stay_within_twelve_megabytes() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) <= 12_000_000


def test_the_passport_says_what_was_trained_and_measured(encoder: StaticEncoder) -> None:
    expected = {
        "model",
        "teacher",
        "licence",
        "sha256",
        "dimension",
        "tokenizer",
        "normalised",
        "training",
        "ndcg_at_10",
    }
    assert expected <= encoder.passport.keys()


def test_a_table_that_is_not_the_passports_is_refused(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "copy")
    passport = json.loads((tmp_path / "copy" / "passport.json").read_text(encoding="utf-8")) | {
        "sha256": "0" * 64
    }
    (tmp_path / "copy" / "passport.json").write_text(json.dumps(passport), encoding="utf-8")
    with pytest.raises(PgragError, match="sha256 differs"):
        StaticEncoder(tmp_path / "copy")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(PgragError, match=str(tmp_path)):
        StaticEncoder(tmp_path)


def test_without_the_models_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "sentence_transformers":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(PgragError) as caught:
        SentenceTransformerEncoder("all-MiniLM-L6-v2")
    assert caught.value.hint == "pip install 'pgrag-rls[models]'"
