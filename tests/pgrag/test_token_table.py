"""What a token table is fitted on, and its numbers; the fit itself, where torch is, is in ``test_fit``."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE

from pgrag._token_table import (
    GRID_BITS,
    KINDS,
    Passage,
    dequantise,
    made_texts,
    on_grid,
    quantise,
    sample_texts,
    sentences,
    sum_tokens,
    token_start,
    wordpiece_vocabulary,
)
from pgrag.embed import StaticEncoder
from pgrag.errors import PgragError

PASSAGES = [
    Passage(
        f"How is valve {n} opened? Turn the handle of valve {n} slowly to the left, and wait until the gauge falls. "
        f"Pump {n} must stand still before that happens.",
        (f"Valves of unit {n}", "Opening"),
    )
    for n in range(200)
]


class Tokenizing:
    """An encoder of which only the tokenizer matters."""

    name = "toy"
    passport: dict[str, Any] = {"model": "toy"}  # noqa: RUF012 - a constant of the test

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self.tokenizer = tokenizer


@pytest.fixture(scope="module")
def shipped() -> StaticEncoder:
    return StaticEncoder.shipped()


def bert(shipped: StaticEncoder, change: str = "normalizer", **more: Any) -> Tokenizing:
    """The shipped tokenizer with a part of its description changed."""
    described = json.loads(shipped.tokenizer.to_str())
    described[change] = described[change] | more
    return Tokenizing(Tokenizer.from_str(json.dumps(described)))


# Texts


def test_a_sample_has_every_kind() -> None:
    assert {kind for kind, _ in sample_texts(PASSAGES, 500, seed=0)} == set(KINDS)


def test_no_text_is_sampled_twice() -> None:
    texts = [text.lower() for _, text in sample_texts(PASSAGES, 500, seed=0)]
    assert len(set(texts)) == len(texts)


def test_a_kind_gets_no_more_than_its_share() -> None:
    counts = Counter(kind for kind, _ in sample_texts(PASSAGES, 300, seed=0))
    assert all(counts[kind] <= 300 * share for kind, share in KINDS.items())


def test_the_same_seed_draws_the_same() -> None:
    assert sample_texts(PASSAGES, 300, seed=5) == sample_texts(PASSAGES, 300, seed=5)


def test_code_is_cut_at_its_lines() -> None:
    code = "def opened(valve):\n    return valve.state == OPEN\n\nValves are opened by hand. Pumps are not."
    assert list(sentences(code)) == [
        "def opened(valve):",
        "return valve.state == OPEN",
        "Valves are opened by hand.",
        "Pumps are not.",
    ]


def test_made_texts_hold_words_of_the_vocabulary_only(shipped: StaticEncoder) -> None:
    vocabulary = wordpiece_vocabulary(shipped)
    texts = made_texts(vocabulary, 50, seed=1)
    plain = [text for text in texts if text.replace(" ", "").isalpha()]
    assert len(texts) == 50
    assert {word for text in plain for word in text.split()} - {"how", "to", "do", "I"} <= set(
        vocabulary.tokens
    )


# Tokens


def test_special_tokens_and_unknown_words_have_no_id(shipped: StaticEncoder) -> None:
    vocabulary = wordpiece_vocabulary(shipped)
    (ids,) = vocabulary.encode(["the [MASK] 😀 valve"])
    assert [vocabulary.tokens[n] for n in ids] == ["the", "[", "mask", "]", "valve"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"lowercase": False}, "keeps case"),
        ({"strip_accents": False}, "keeps case or accents"),
        ({"change": "model", "continuing_subword_prefix": "@@"}, "marked otherwise"),
        ({"change": "pre_tokenizer", "type": "Whitespace"}, "finds words otherwise"),
    ],
)
def test_a_tokenizer_that_sql_does_not_follow_is_refused(
    shipped: StaticEncoder, changed: dict[str, Any], why: str
) -> None:
    with pytest.raises(PgragError, match=why):
        wordpiece_vocabulary(bert(shipped, **changed))


def test_a_tokenizer_of_another_kind_is_refused() -> None:
    with pytest.raises(PgragError, match="it is BPE"):
        wordpiece_vocabulary(Tokenizing(Tokenizer(BPE())))


def test_an_encoder_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(PgragError, match="is not at hand"):
        wordpiece_vocabulary(Tokenizing(None))


# Numbers


def table(rows: int = 50, columns: int = 8) -> np.ndarray:
    return np.random.default_rng(2).standard_normal((rows, columns)).astype(np.float32) * 5


def test_values_on_the_grid_are_exact_in_half_precision() -> None:
    grid = on_grid(table())
    assert np.array_equal(grid.astype(np.float16).astype(np.float32), grid)


def test_the_grid_moves_a_value_by_half_a_step_at_most() -> None:
    made = table()
    assert np.abs(on_grid(made) - made / (np.abs(made).max() * 1.001)).max() <= 0.5 / (1 << GRID_BITS) + 1e-7


def test_quantised_values_come_back_on_the_grid() -> None:
    steps = dequantise(*quantise(table())) * (1 << GRID_BITS)
    assert np.array_equal(steps, np.rint(steps))


def test_quantised_values_stay_below_one() -> None:
    assert np.abs(dequantise(*quantise(np.eye(8, dtype=np.float32), step=0.7))).max() < 1


def test_a_row_of_zeros_survives_quantising() -> None:
    made = table()
    made[3] = 0
    assert not dequantise(*quantise(made))[3].any()


def test_the_start_weighs_rare_tokens_more() -> None:
    own = np.eye(4, dtype=np.float32)
    texts = [np.array([0, 1]), np.array([0, 2]), np.array([0, 3])]
    start = token_start(own, np.arange(4), 5, texts)
    # idf of a token in every text is ln(4 / 4), of one in a third ln(4 / 2).
    assert np.linalg.norm(start, axis=1) == pytest.approx(
        np.array([*np.log([4 / 4, 4 / 2, 4 / 2, 4 / 2]) * np.sqrt(0.75), 0])
    )


def test_a_sum_of_tokens_has_length_one_and_none_has_zero() -> None:
    found = sum_tokens(np.eye(3, dtype=np.float32), [np.array([0, 0, 1]), np.array([], np.int64)])
    assert found == pytest.approx(np.array([[2, 1, 0], [0, 0, 0]]) / np.sqrt([[5], [1]]))
