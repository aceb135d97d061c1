"""Figures of the system: times by stage, update lag, the cache."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from _pgrag import Database
from numpy.typing import NDArray

from pgrag.errors import Refused
from pgrag.evaluate._system import SEARCH_STAGES, cache_hits, latency, update_lag


class Model:
    """Gives each text a direction of its own."""

    name = "model"
    dimension = 2
    passport: dict[str, Any] = {"name": "model", "model": "model", "dimension": 2, "normalised": True}  # noqa: RUF012

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.radians([sum(map(ord, text)) % 360 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        return 1


@pytest.fixture
def model_space(db: Database) -> Database:
    db.execute("select pgrag.create_space('model', 'model', 2)")
    db.execute("select pgrag.attach_space('docs', 'model')")
    return db


def test_by_words_a_document_is_found_at_once(db: Database) -> None:
    lag = update_lag(db.admin, probes=3)
    assert lag.keys() == {"lexical"}
    assert 0 < lag["lexical"]["p50"] <= lag["lexical"]["p95"] <= lag["lexical"]["p99"]


def test_what_a_model_takes_is_part_of_the_lag_of_vectors(
    model_space: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr("pgrag.evaluate._system.time.perf_counter", lambda: next(seconds))
    lag = update_lag(model_space.admin, space="model", encoder=Model(), probes=3)
    # A second goes by between two looks at the clock, and the server has one of its own.
    assert lag["dense"]["p50"] > 1000
    assert lag["lexical"]["p50"] < lag["dense"]["p50"]


def test_a_models_space_is_not_measured_without_its_model(model_space: Database) -> None:
    assert update_lag(model_space.admin, space="model", probes=2).keys() == {"lexical"}


def test_a_static_space_needs_none(hybrid: Database) -> None:
    assert update_lag(hybrid.admin, space="minilm-static-2", probes=2).keys() == {"lexical", "dense"}


def test_nothing_is_left_behind(hybrid: Database) -> None:
    update_lag(hybrid.admin, space="minilm-static-2", probes=2)
    for table in ("document", "chunk", "posting", "corpus_stat", "embed_queue", "document_history"):
        assert hybrid.value(f"select count(*) from pgrag.{table}") == 0
    assert hybrid.value("select array_agg(name) from pgrag.collection") == ["docs"]


def test_a_space_that_is_not_there_is_refused(db: Database) -> None:
    with pytest.raises(Refused, match="nowhere"):
        update_lag(db.admin, space="nowhere")


def test_stages_come_in_their_order() -> None:
    stages = dict.fromkeys(reversed(SEARCH_STAGES), 1.0)
    assert tuple(latency([{"stages_ms": {"hybrid": stages}}])["hybrid"]) == SEARCH_STAGES


def test_times_are_summed_up_by_stage() -> None:
    times = [float(ms) for ms in range(1, 101)]
    figures = latency([{"stages_ms": {"dense": {"total": ms, "dense": ms / 2}}} for ms in times])
    assert figures["dense"]["total"] == {
        f"p{which}": float(np.percentile(times, which)) for which in (50, 95, 99)
    }
    assert figures["dense"]["dense"]["p50"] == figures["dense"]["total"]["p50"] / 2


def test_hits_of_the_cache_are_what_came_between() -> None:
    assert cache_hits((100, 10), (190, 20)) == {"hits": 90, "reads": 10, "share": 90 / (90 + 10)}


@pytest.mark.parametrize("after", [(100, 10), (5, 1)])
def test_nothing_is_said_of_a_cache_that_was_not_used_or_whose_counts_began_anew(
    after: tuple[int, int],
) -> None:
    assert cache_hits((100, 10), after) == {}
