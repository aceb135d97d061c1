"""A space from being made to being dropped: what it lists, when it may go, and what it keeps."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

TEXTS = {"a": "open the valve", "b": "close the pump", "c": "read the gauge"}


@pytest.fixture
def filled(db: Database) -> Database:
    """The collection ``docs`` with three passages, whose vectors the space ``old`` holds."""
    for uri, text in TEXTS.items():
        db.put(uri, text)
    db.execute("select pgrag.create_space('old', 'm', 2, with_index => false)")
    db.execute("select pgrag.attach_space('docs', 'old')")
    fill(db, "old")
    return db


def fill(db: Database, space: str) -> int:
    """Store a vector for whatever is queued for a space; returns for how many passages."""
    chunks = db.execute("select chunk_id, hash from pgrag.claim_chunks(%s)", (space,))
    ids, hashes = [chunk_id for chunk_id, _ in chunks], [text_hash for _, text_hash in chunks]
    return int(
        db.value("select pgrag.store_vectors(%s, %s, %s, %s)", (space, ids, hashes, ["[0.6,0.8]"] * len(ids)))
    )


def listed(db: Database, space: str) -> dict[str, Any]:
    cursor = db.admin.execute("select * from pgrag.spaces(%s)", (space,))
    row = cursor.fetchone()
    assert row is not None
    return dict(zip([column.name for column in cursor.description or ()], row, strict=True))


def table(db: Database, space: str) -> str:
    return f"pgrag.embedding_{db.value('select space_id from pgrag.space where name = %s', (space,))}"


def test_a_space_says_what_it_holds_and_what_it_lacks(filled: Database) -> None:
    filled.put("d", "turn the wheel")
    row = listed(filled, "old")
    assert (row["vectors"], row["pending"], row["failing"]) == (len(TEXTS), 1, 0)
    assert (row["collections"], row["answers"]) == (["docs"], [])
    assert (row["model"], row["dimension"], row["precision"], row["state"]) == ("m", 2, "halfvec", "building")
    assert row["table_bytes"] > 0


def test_a_passage_that_was_tried_in_vain_is_counted(filled: Database) -> None:
    filled.put("d", "turn the wheel")
    filled.execute("select pgrag.fail_chunk('old', (select max(chunk_id) from pgrag.chunk), 'broken')")
    assert listed(filled, "old")["failing"] == 1


def test_spaces_are_listed_by_name(filled: Database) -> None:
    filled.execute("select pgrag.create_space('b', 'm', 2), pgrag.create_space('a', 'm', 2)")
    assert filled.execute("select name from pgrag.spaces()") == [("a",), ("b",), ("old",)]


def test_a_writer_lists_all_that_the_owner_does(filled: Database) -> None:
    query = "select name, vectors, pending, index_state, collections from pgrag.spaces()"
    assert filled.connect("pgrag_test_writer").execute(query).fetchall() == filled.execute(query)


def test_a_reader_may_not_count_what_is_hidden(filled: Database) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        filled.rows_as("public", "select * from pgrag.spaces()")


@pytest.mark.parametrize(
    ("index_kind", "with_index", "state"),
    [("hnsw", "true", "valid"), ("hnsw", "false", "missing"), ("none", "true", "none")],
)
def test_the_state_of_the_index_is_said(db: Database, index_kind: str, with_index: str, state: str) -> None:
    db.execute(
        f"select pgrag.create_space('s', 'm', 2, index_kind => '{index_kind}', with_index => {with_index})"
    )
    assert listed(db, "s")["index_state"] == state


def test_an_index_that_a_stopped_build_left_is_invalid(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2)")
    db.execute(
        f"update pg_index set indisvalid = false where indexrelid = '{table(db, 's')}_hnsw_idx'::regclass"
    )
    assert listed(db, "s")["index_state"] == "invalid"


def test_an_index_that_somebody_builds_is_being_built(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, with_index => false)")
    db.connect().execute("select pgrag._begin_build('s')")
    assert listed(db, "s")["index_state"] == "building"


@pytest.mark.parametrize(
    "call", ["spaces('x')", "retire_space('x')", "drop_space('x')", "retire_space(null)"]
)
def test_a_space_that_isn_t_there_is_refused(db: Database, call: str) -> None:
    with pytest.raises(psycopg.Error, match="does not exist") as caught:
        db.execute(f"select * from pgrag.{call}")
    assert caught.value.sqlstate == "RG005"


@pytest.mark.parametrize(
    "call",
    [
        "activate_space('docs', %s)",
        "attach_space('docs', %s)",
        "calibrate_space(%s)",
        "center_codes(%s)",
        "check_space(%s, 'm', 2)",
        "claim_chunks(%s)",
        "drop_space(%s)",
        "embed_pending(%s)",
        "fail_chunk(%s, 1, 'broken')",
        "load_encoder_tokens(%s, '{}', '{}', '{}')",
        "note_figures(%s, '{}')",
        "pause_space(%s)",
        "ready_space(%s)",
        "release_chunks(%s, '{1}')",
        "resume_space(%s)",
        "retire_space(%s)",
        "reuse_vectors(%s, '{1}')",
        "sample_passages(%s, 1)",
        "set_query_encoder(%s)",
        "space_passport(%s)",
        "space_progress('docs', %s)",
        "store_vectors(%s, '{}', '{}', '{}')",
        "_begin_build(%s)",
        "_end_build(%s)",
        "_sample_queries(%s, 1)",
        "_space_index(%s)",
        "_write_cost(%s, 1)",
    ],
)
@pytest.mark.parametrize("name", [None, "x"])
def test_no_space_is_taken_for_another(hybrid: Database, call: str, name: str | None) -> None:
    with pytest.raises(psycopg.Error, match=f'space "{name or "NULL"}" does not exist') as caught:
        hybrid.execute(f"select * from pgrag.{call}", (name,))
    assert caught.value.sqlstate == "RG005"


@pytest.mark.parametrize("figures", ["'[1]'", "'1'", "null"])
def test_figures_that_are_no_object_are_refused(db: Database, figures: str) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2)")
    with pytest.raises(psycopg.Error, match="figures must be a JSON object, got") as caught:
        db.execute(f"select pgrag.note_figures('s', {figures})")
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize("call", ["retire_space", "drop_space"])
def test_a_space_that_answers_is_neither_retired_nor_dropped(filled: Database, call: str) -> None:
    filled.execute("select pgrag.activate_space('docs', 'old')")
    with pytest.raises(psycopg.Error, match='space "old" answers the searches of docs') as caught:
        filled.execute(f"select pgrag.{call}('old')")
    assert caught.value.sqlstate == "RG032"
    assert "pgrag.activate_space('docs', SPACE)" in (caught.value.diag.message_hint or "")


@pytest.mark.parametrize("call", ["retire_space", "drop_space"])
def test_only_the_owner_retires_and_drops(filled: Database, call: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        filled.connect("pgrag_test_writer").execute(f"select pgrag.{call}('old')")


def test_a_retired_space_is_filled_no_more(filled: Database) -> None:
    filled.put("d", "turn the wheel")
    assert filled.value("select pgrag.retire_space('old')") is True
    filled.put("e", "grease the bearing")
    assert filled.value("select count(*) from pgrag.embed_queue") == 0
    row = listed(filled, "old")
    assert (row["state"], row["collections"], row["vectors"]) == ("retired", [], len(TEXTS))


def test_retiring_twice_changes_nothing(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old')")
    assert filled.value("select pgrag.retire_space('old')") is False


def test_a_retired_space_is_gone_for_readers(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old')")
    assert filled.rows_as("public", "select name from pgrag.space") == []


def test_a_retired_space_comes_back_with_what_it_kept(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old')")
    filled.put("d", "turn the wheel")
    assert filled.value("select pgrag.attach_space('docs', 'old')") == 1
    assert listed(filled, "old")["state"] == "building"


def test_a_text_that_changed_meanwhile_lost_its_vector(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old')")
    filled.put("a", "shut the valve")
    assert listed(filled, "old")["vectors"] == len(TEXTS) - 1
    assert filled.value("select pgrag.attach_space('docs', 'old')") == 1


def test_a_passage_that_went_meanwhile_took_its_vector_along(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old')")
    filled.execute("select pgrag.delete_document('docs', 'a')")
    assert listed(filled, "old")["vectors"] == len(TEXTS) - 1


def test_readers_that_change_meanwhile_change_for_kept_vectors(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old'), pgrag.create_principals('user:ana')")
    filled.execute("select pgrag.set_readers('docs', 'a', array['user:ana'])")
    assert filled.value(
        f"select count(*) from {table(filled, 'old')} as e inner join pgrag.chunk as c using (chunk_id, acl_id)"
    ) == len(TEXTS)


def test_a_writer_may_not_bring_a_retired_space_back(filled: Database) -> None:
    filled.execute("select pgrag.retire_space('old')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        filled.connect("pgrag_test_writer").execute("select pgrag.attach_space('docs', 'old')")


def test_retiring_waits_for_writers(filled: Database) -> None:
    writer, owner = filled.connect("pgrag_test_writer"), filled.connect()
    owner.execute("set lock_timeout = '50ms'")
    with writer.transaction():
        writer.execute("select pgrag.put_document('docs', 'd', 'turn the wheel', array['public'])")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            owner.execute("select pgrag.retire_space('old')")


def test_what_was_claimed_before_is_not_stored_afterwards(filled: Database) -> None:
    filled.put("d", "turn the wheel")
    ((chunk_id, chunk_hash),) = filled.execute("select chunk_id, hash from pgrag.claim_chunks('old')")
    filled.execute("select pgrag.retire_space('old')")
    assert (
        filled.value("select pgrag.store_vectors('old', %s, %s, array['[1,0]'])", ([chunk_id], [chunk_hash]))
        == 0
    )


@pytest.mark.parametrize("retired", [True, False])
def test_a_dropped_space_leaves_nothing(filled: Database, retired: bool) -> None:
    filled.put("d", "turn the wheel")
    name = table(filled, "old")
    if retired:
        filled.execute("select pgrag.retire_space('old')")
    filled.execute("select pgrag.drop_space('old')")
    assert filled.value("select to_regclass(%s)", (name,)) is None
    assert filled.execute("select * from pgrag.spaces()") == []
    assert filled.value("select count(*) from pgrag.embed_queue") == 0
    filled.put("e", "grease the bearing")


def test_a_drop_gives_up_soon_where_others_hold_the_tables(filled: Database) -> None:
    filled.execute("alter function pgrag.drop_space(text) set lock_timeout = '50ms'")
    reader = filled.connect()
    with reader.transaction():
        reader.execute("select from pgrag.chunk")
        with pytest.raises(
            psycopg.errors.LockNotAvailable, match="can't be dropped while long statements hold"
        ) as caught:
            filled.execute("select pgrag.drop_space('old')")
    assert "Try again" in (caught.value.diag.message_hint or "")
    assert listed(filled, "old")["vectors"] == len(TEXTS)


def test_dropping_takes_token_vectors_and_the_rotation_along(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, 'static', \"precision\" => 'bit', rotate => true)")
    db.execute(
        "select pgrag.load_encoder_tokens('s', array['valve'], array[1], array['[0.6,0.8]']::halfvec[])"
    )
    db.execute("select pgrag.drop_space('s')")
    assert db.value("select count(*) from pgrag.encoder_token") == 0
    assert db.value("select count(*) from pgrag.space_axis") == 0


def test_the_name_of_a_dropped_space_is_free(filled: Database) -> None:
    filled.execute("select pgrag.drop_space('old')")
    filled.execute("select pgrag.create_space('old', 'other', 3)")
    assert listed(filled, "old")["vectors"] == 0


def test_the_default_of_new_collections_is_retired_before_it_is_dropped(db: Database) -> None:
    db.execute("select pgrag.create_space('s', 'm', 2, 'static'), pgrag.open_space('s')")
    with pytest.raises(
        psycopg.Error, match='space "s" is active: new collections are answered by it'
    ) as caught:
        db.execute("select pgrag.drop_space('s')")
    assert caught.value.sqlstate == "RG032"
    db.execute("select pgrag.retire_space('s')")
    db.execute("select pgrag.drop_space('s')")
    db.execute("select pgrag.create_collection('new')")
    assert db.value("select active_space_id from pgrag.collection where name = 'new'") is None


def test_searches_go_on_over_another_space_after_a_drop(filled: Database) -> None:
    filled.execute("select pgrag.create_space('new', 'n', 2)")
    filled.execute("select pgrag.attach_space('docs', 'new')")
    fill(filled, "new")
    filled.execute("select pgrag.activate_space('docs', 'new')")
    filled.execute("select pgrag.drop_space('old')")
    rows = filled.rows_as("public", "select count(*) from pgrag.search_dense('[0.6,0.8]')")
    assert rows == [(len(TEXTS),)]
