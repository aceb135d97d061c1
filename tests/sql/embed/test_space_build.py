"""Building the index of a space: the estimate of its memory, who may build, and what is kept of a build."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

MEGABYTE = 2**20


@pytest.mark.parametrize(
    ("precision", "value"), [("vector", 8 + 4 * 384), ("halfvec", 8 + 2 * 384), ("bit", 8 + 384 // 8)]
)
def test_hnsw_holds_the_vectors_and_their_links(db: Database, precision: str, value: int) -> None:
    assert db.value("select pgrag._build_bytes(1000, 384, %s, 'hnsw', '{\"m\": 24}')", (precision,)) == (
        3 * MEGABYTE + 1000 * (value + 200 + 32 * 24)
    )


def test_ivfflat_holds_a_sample_and_its_distances_to_the_centres(db: Database) -> None:
    lists, samples, value = 400, 400 * 50, 8 + 2 * 384
    bounds = 4 * samples * lists
    assert db.value("select pgrag._build_bytes(1000000, 384, 'halfvec', 'ivfflat', '{\"lists\": 400}')") == (
        samples * value
        + 2 * lists * value
        + 4 * lists * 384
        + bounds
        + 8 * samples
        + 4 * lists**2
        + 12 * lists
    )


def test_ivfflat_has_no_distances_of_vectors_that_aren_t_there(db: Database) -> None:
    lists, vectors, value = 10, 500, 8 + 2 * 384
    assert db.value("select pgrag._build_bytes(500, 384, 'halfvec', 'ivfflat', '{\"lists\": 10}')") == (
        10_000 * value
        + 2 * lists * value
        + 4 * lists * 384
        + 4 * vectors * lists
        + 8 * vectors
        + 4 * lists**2
        + 12 * lists
    )


def test_without_an_index_nothing_is_needed(db: Database) -> None:
    assert db.value("select pgrag._build_bytes(1000, 384, 'halfvec', 'none', '{}')") == 0


def test_two_don_t_build_the_same_index(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, with_index => false)")
    db.connect().execute("select pgrag._begin_build('s')")
    with pytest.raises(
        psycopg.Error, match='the index of space "s" is being built by another session'
    ) as caught:
        db.execute("select pgrag._begin_build('s')")
    assert caught.value.sqlstate == "RG032"


def test_after_the_end_another_may_build(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, with_index => false)")
    other = db.connect()
    other.execute("select pgrag._begin_build('s')")
    other.execute("select pgrag._end_build('s')")
    assert db.value("select index_state from pgrag._begin_build('s')") == "missing"


def test_what_stopped_builds_left_is_to_be_dropped(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2)")
    name = f"embedding_{db.value('select space_id from pgrag.space')}_hnsw_idx"
    db.execute(
        f"create index {name}_ccnew on pgrag.{name.removesuffix('_hnsw_idx')} using hnsw (embedding halfvec_cosine_ops)"
    )
    db.execute(f"update pg_index set indisvalid = false where indexrelid = 'pgrag.{name}_ccnew'::regclass")
    assert db.execute("select index_state, drop_statements from pgrag._begin_build('s')") == [
        ("valid", [f"drop index concurrently if exists pgrag.{name}_ccnew"])
    ]


def test_the_figures_of_a_build_are_kept_with_the_size_of_the_index(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2)")
    db.execute("select pgrag.note_figures('s', '{\"ndcg\": 0.5}')")
    db.execute("select pgrag._end_build('s', '{\"seconds\": 2}')")
    figures = db.value("select passport -> 'figures' from pgrag.spaces()")
    assert figures["ndcg"] == 0.5
    assert figures["build"]["seconds"] == 2
    assert figures["build"]["index_bytes"] == db.value("select index_bytes from pgrag.spaces()") > 0


@pytest.mark.parametrize("figures", ["null", "'{}'"])
@pytest.mark.parametrize(
    ("with_index", "pending", "state"),
    [(True, False, "ready"), (True, True, "building"), (False, False, "building")],
)
def test_a_space_that_lacks_neither_vectors_nor_index_is_ready(
    db: Database, with_index: bool, pending: bool, state: str, figures: str
) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, with_index => %s)", (with_index,))
    db.execute("select pgrag.attach_space('docs', 's')")
    if pending:
        db.put("a", "open the valve")
    db.execute(f"select pgrag._end_build('s', {figures})")
    assert db.value("select state from pgrag.space") == state


def test_a_build_that_can_t_begin_lets_others(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, with_index => false)")
    db.execute("alter table pgrag.embedding_1 rename to hidden")
    broken = db.connect()
    with pytest.raises(psycopg.errors.UndefinedTable):
        broken.execute("select pgrag._begin_build('s')")
    db.execute("alter table pgrag.hidden rename to embedding_1")
    assert db.value("select index_state from pgrag._begin_build('s')") == "missing"


@pytest.mark.parametrize(("options", "altered"), [("{}", True), ('{"lists": 12}', False)])
def test_ivfflat_built_anew_has_the_lists_that_suit_the_vectors_of_now(
    db: Database, options: str, altered: bool
) -> None:
    db.execute(
        "select pgrag.create_space('s', 'm', 2, index_kind => 'ivfflat', index_options => %s)", (options,)
    )
    db.execute(
        "create index embedding_1_ivfflat_idx on pgrag.embedding_1 using ivfflat (embedding halfvec_cosine_ops) with (lists = 12)"
    )
    least = 10
    assert db.value("select alter_statement from pgrag._begin_build('s')") == (
        f"alter index pgrag.embedding_1_ivfflat_idx set (lists = {least})" if altered else None
    )
