"""The baseline lsa: TF-IDF and a truncated singular value decomposition, held against numpy."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest

from pgrag.errors import PgragError
from pgrag.evaluate._lsa import fit_lsa

DOCUMENTS = [
    ("ship", "the ship sails on the ocean"),
    ("boat", "a boat sails on the ocean, a boat"),
    ("voyage", "a voyage by ship and by boat"),
    ("tree", "the tree has wood"),
    ("forest", "wood and trees: a tree, a forest"),
    ("numbers", "TS-999 and 4.7.3"),
]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def reference(query: str, dimensions: int) -> dict[str, float]:
    """The same by numpy: (1 + ln tf) * (ln((1 + n) / (1 + df)) + 1), rows of length 1, then the whole decomposition."""
    counts = [Counter(words(text)) for _, text in DOCUMENTS]
    terms = sorted(set().union(*counts))
    df = np.array([sum(term in one for one in counts) for term in terms])
    idf = np.log((1 + len(counts)) / (1 + df)) + 1

    def row(one: Counter[str]) -> np.ndarray:
        weights = np.array([1 + math.log(one[term]) if one[term] else 0.0 for term in terms]) * idf
        return weights / np.linalg.norm(weights)

    matrix = np.stack([row(one) for one in counts])
    _, _, right = np.linalg.svd(matrix, full_matrices=False)
    axes = right[:dimensions].T
    placed, asked = matrix @ axes, row(Counter(words(query))) @ axes
    cosines = placed @ asked / np.linalg.norm(placed, axis=1) / np.linalg.norm(asked)
    return {uri: float(cosine) for (uri, _), cosine in zip(DOCUMENTS, cosines, strict=True)}


@pytest.mark.parametrize("query", ["ocean voyage", "wood", "the boat the boat"])
@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_cosines_are_those_of_numpy(query: str, dimensions: int) -> None:
    ranked = dict(fit_lsa(DOCUMENTS, dimensions=dimensions).rank(query))
    expected = {uri: cosine for uri, cosine in reference(query, dimensions).items() if cosine > 1e-6}
    # The decomposition is drawn at random, and seven iterations bring it this close.
    assert {uri: ranked.get(uri, 0.0) for uri in expected} == pytest.approx(expected, abs=1e-6)


def test_best_come_first() -> None:
    cosines = [cosine for _, cosine in fit_lsa(DOCUMENTS, dimensions=3).rank("ocean voyage")]
    assert cosines == sorted(cosines, reverse=True)
    assert len(cosines) > 1


def test_a_document_is_found_by_words_that_it_does_not_hold() -> None:
    found = [uri for uri, _ in fit_lsa(DOCUMENTS, dimensions=2).rank("ocean")]
    assert "voyage" in found  # which has the ship and the boat that sail on the ocean


def test_a_query_without_a_known_word_finds_nothing() -> None:
    assert fit_lsa(DOCUMENTS).rank("qqqq zzzz") == []


def test_no_more_than_k_are_found() -> None:
    assert len(fit_lsa(DOCUMENTS, dimensions=2).rank("the ocean", k=2)) == 2


def test_equal_documents_are_ranked_by_name() -> None:
    same = [("b", "one two"), ("a", "one two"), ("c", "three four")]
    assert [uri for uri, _ in fit_lsa(same).rank("one")] == ["a", "b"]


@pytest.mark.parametrize("documents", [[], [("a", "")], [("a", " !? ")]])
def test_without_words_nothing_is_found(documents: list[tuple[str, str]]) -> None:
    assert fit_lsa(documents).rank("anything") == []


def test_one_document_is_found_by_its_words() -> None:
    assert fit_lsa([("a", "one two")]).rank("two") == [("a", pytest.approx(1 / math.sqrt(2)))]


def test_an_empty_document_among_others_is_never_found() -> None:
    assert "empty" not in dict(fit_lsa([*DOCUMENTS, ("empty", "")]).rank("the ocean"))


def test_what_is_learned_from_others_places_words_that_only_they_hold() -> None:
    learned = fit_lsa(DOCUMENTS, dimensions=2)
    assert learned.place([("v", "voyage"), ("t", "tree")]).rank("ocean")[0][0] == "v"


def test_only_what_was_placed_is_ranked() -> None:
    placed = fit_lsa(DOCUMENTS, dimensions=2).place([("ship", "the ship sails on the ocean")])
    assert [uri for uri, _ in placed.rank("ocean")] == ["ship"]


def test_more_documents_than_allowed_are_refused() -> None:
    with pytest.raises(PgragError, match="more than 5 documents") as refused:
        fit_lsa(DOCUMENTS, most=5)
    assert "--arm" in (refused.value.hint or "")


def test_the_same_seed_gives_the_same() -> None:
    first, again = (fit_lsa(DOCUMENTS, dimensions=3, seed=4).rank("the boat") for _ in range(2))
    assert first == again
