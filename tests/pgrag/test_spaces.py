"""Spaces from Python: made, filled, built, measured, activated, retired; a model takes over when its space is full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database
from numpy.typing import NDArray

from pgrag.change import change_model
from pgrag.embed import Encoder, StaticEncoder
from pgrag.errors import DatabaseError, PgragError, Refused
from pgrag.spaces import (
    BuildProgress,
    _figures,
    activate_space,
    build_space,
    calibrate_space,
    check_encoder,
    create_space,
    drop_space,
    embed_queries,
    embed_static,
    evaluate_space,
    find_space,
    list_spaces,
    load_static_space,
    pending_of,
    query_encoder_of,
    retire_space,
    space_passport,
)
from pgrag.worker import drain

TEXTS = {"a": "open the valve", "b": "close the pump", "c": "read the gauge"}


class LetterEncoder:
    """Counts a few letters: enough of a model to tell three texts apart."""

    name = "letters"
    dimension = 4
    passport: dict[str, Any] = {"model": "letter-counts", "dimension": 4}  # noqa: RUF012 - a constant of the test

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[1 + text.count(letter) for letter in "vpge"] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def filled(database: Database) -> Database:
    for uri, text in TEXTS.items():
        database.put(uri, text)
    return database


def answered_by_letters(database: Database) -> int:
    """Let the collection ``docs`` be searched by the letters, unjudged; how many vectors were new."""
    return change_model(database.admin, "docs", LetterEncoder(), judge=False).written


def test_a_model_answers_once_its_space_is_full(hybrid: Database) -> None:
    filled(hybrid)
    assert answered_by_letters(hybrid) == len(TEXTS)
    vector = LetterEncoder().encode_queries(["valve"])[0].tolist()
    rows = hybrid.rows_as(
        "public", "select uri from pgrag.search('', 1, embedding => %s::float8[]::vector::halfvec)", (vector,)
    )
    assert rows == [("a",)]
    assert (
        hybrid.value("select passport ->> 'model' from pgrag.space where name = 'letters'") == "letter-counts"
    )


def test_calling_again_embeds_only_what_is_new(hybrid: Database) -> None:
    filled(hybrid)
    answered_by_letters(hybrid)
    assert answered_by_letters(hybrid) == 0
    hybrid.put("d", "turn the wheel")
    assert answered_by_letters(hybrid) == 1


def test_going_back_needs_one_call(hybrid: Database) -> None:
    filled(hybrid)
    before = hybrid.rows_as("public", "select uri, score from pgrag.search('valve')")
    answered_by_letters(hybrid)
    hybrid.execute("select pgrag.activate_space('docs', 'minilm-static-2')")
    assert hybrid.rows_as("public", "select uri, score from pgrag.search('valve')") == before


@pytest.mark.parametrize(("model", "dimension"), [("letter-counts", 5), ("other", 4)])
def test_a_space_of_another_model_refuses_this_one(hybrid: Database, model: str, dimension: int) -> None:
    filled(hybrid)
    hybrid.execute("select pgrag.create_space('letters', %s, %s)", (model, dimension))
    message = f"holds vectors of {model} of dimension {dimension}, got those of letter-counts of dimension 4"
    with pytest.raises(Refused, match=message):
        answered_by_letters(hybrid)


def test_an_unknown_collection_is_refused_before_anything_is_made(hybrid: Database) -> None:
    with pytest.raises(Refused, match='collection "nowhere" does not exist'):
        change_model(hybrid.admin, "nowhere", LetterEncoder(), judge=False)
    assert hybrid.value("select pgrag.has_space('letters')") is False


def test_the_static_space_is_loaded_once(hybrid: Database) -> None:
    assert load_static_space(hybrid.dsn, StaticEncoder.shipped()) is False


def test_embedding_here_fills_what_sql_would_have_filled(hybrid: Database) -> None:
    filled(hybrid)
    table = f"embedding_{hybrid.value('select space_id from pgrag.space')}"
    by_sql = hybrid.execute(f"select chunk_id, embedding::text from pgrag.{table} order by 1")
    hybrid.execute(f"delete from pgrag.{table}")
    hybrid.execute(
        "insert into pgrag.embed_queue (collection_id, space_id, chunk_id) select collection_id, 1, chunk_id from pgrag.chunk"
    )
    assert embed_static(hybrid.admin, "docs", StaticEncoder.shipped()) == len(TEXTS)
    here = hybrid.execute(f"select chunk_id, embedding::text from pgrag.{table} order by 1")
    assert [row[0] for row in here] == [row[0] for row in by_sql]
    for (_, one), (_, other) in zip(by_sql, here, strict=True):
        # Half precision has 11 bits: SQL normalises in it, Python before it.
        assert np.fromstring(one[1:-1], sep=",") == pytest.approx(
            np.fromstring(other[1:-1], sep=","), abs=2**-11
        )


def test_an_ingest_that_is_killed_while_it_embeds_leaves_nothing_to_wait_for(hybrid: Database) -> None:
    class Killed(StaticEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise KeyboardInterrupt

    filled(hybrid)
    hybrid.execute(
        "insert into pgrag.embed_queue (collection_id, space_id, chunk_id) select collection_id, 1, chunk_id from pgrag.chunk"
    )
    with pytest.raises(KeyboardInterrupt):
        embed_static(hybrid.admin, "docs", Killed.shipped())
    assert embed_static(hybrid.admin, "docs", StaticEncoder.shipped()) == len(TEXTS)


def letters(db: Database, encoder: Encoder | None = None, **how: Any) -> Database:
    """The collection ``docs`` with three passages, whose vectors the space ``letters`` holds, without an index."""
    filled(db)
    create_space(db.admin, encoder or LetterEncoder(), collections=["docs"], **{"with_index": False} | how)
    drain(db.admin, encoder or LetterEncoder(), space="letters")
    return db


def index_of(db: Database, space: str = "letters") -> str:
    """The state of a space's index, as it is listed."""
    return find_space(db.admin, space).index_state


def relation(db: Database) -> str:
    """The name of the index of the newest space."""
    return f"pgrag.embedding_{db.value('select max(space_id) from pgrag.space')}_hnsw_idx"


def test_a_space_is_made_with_the_passport_of_its_encoder(db: Database) -> None:
    filled(db)
    queued = create_space(db.admin, LetterEncoder(), collections=["docs"], precision="vector", index="none")
    space = find_space(db.admin, "letters")
    assert queued == space.pending == len(TEXTS)
    assert (space.model, space.dimension, space.precision, space.index_kind) == (
        "letter-counts",
        4,
        "vector",
        "none",
    )
    assert space.passport == LetterEncoder.passport


def test_a_space_that_can_t_be_attached_is_not_made(db: Database) -> None:
    with pytest.raises(Refused, match='collection "nowhere" does not exist'):
        create_space(db.admin, LetterEncoder(), collections=["nowhere"])
    assert list_spaces(db.admin) == []


def test_a_prefix_that_the_model_isn_t_trained_for_is_refused(db: Database) -> None:
    class Nested(LetterEncoder):
        passport: dict[str, Any] = LetterEncoder.passport | {"matryoshka_dims": [2, 4]}

    with pytest.raises(Refused, match=r"letter-counts is not trained for a prefix of 3 numbers.*\[2, 4\]"):
        create_space(db.admin, Nested(), dimension=3)
    with pytest.raises(Refused, match=r"not trained for a prefix of 3 numbers: its passport names none"):
        create_space(db.admin, LetterEncoder(), dimension=3)


def test_a_trained_prefix_is_kept_and_searched(db: Database) -> None:
    class Nested(LetterEncoder):
        passport: dict[str, Any] = LetterEncoder.passport | {"matryoshka_dims": [2, 4]}

    letters(db, Nested(), dimension=2, index="none")
    space = find_space(db.admin, "letters")
    assert (space.dimension, space.model_dimension, space.vectors) == (2, 4, len(TEXTS))
    assert evaluate_space(db.admin, "letters", writes=0).depths[0].recall == 1


def test_a_static_encoder_may_have_several_spaces(hybrid: Database) -> None:
    filled(hybrid)
    encoder = StaticEncoder.shipped()
    encoder.name = "bits"
    create_space(hybrid.admin, encoder, collections=["docs"], precision="bit", rotate=True)
    assert drain(hybrid.admin, encoder, space="bits") == len(TEXTS)
    build_space(hybrid.admin, "bits")
    assert find_space(hybrid.admin, "bits").index_state == "valid"
    assert embed_queries(hybrid.admin, "bits", ["open the valve", "\u4e02"]).shape == (1, 384)


@pytest.mark.parametrize("how", [{"index": "ivfflat"}, {"precision": "bit"}])
def test_an_index_that_goes_by_the_vectors_is_left_to_the_build(db: Database, how: dict[str, Any]) -> None:
    create_space(db.admin, LetterEncoder(), **how)
    assert index_of(db) == "missing"


def test_another_model_is_not_that_of_the_space(db: Database) -> None:
    class Other(LetterEncoder):
        passport: dict[str, Any] = LetterEncoder.passport | {"model": "word-counts"}

    create_space(db.admin, LetterEncoder())
    with pytest.raises(Refused, match=r"holds vectors of letter-counts .* got those of word-counts"):
        check_encoder(db.admin, "letters", Other())


@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
@pytest.mark.parametrize("precision", ["vector", "halfvec", "bit"])
def test_a_build_makes_the_index_and_keeps_its_figures(db: Database, index: str, precision: str) -> None:
    letters(db, index=index, precision=precision)
    done = build_space(db.admin, "letters")
    space = find_space(db.admin, "letters")
    assert (done.built, space.index_state, space.state) == (True, "valid", "ready")
    assert done.figures["vectors"] == len(TEXTS)
    assert done.figures == space.passport["figures"]["build"]
    assert done.calibration == space.calibration


def test_a_valid_index_is_not_built_again(db: Database) -> None:
    letters(db, with_index=True)
    assert build_space(db.admin, "letters").built is False
    assert "figures" not in find_space(db.admin, "letters").passport


def test_a_rebuild_replaces_a_valid_index(db: Database) -> None:
    letters(db, with_index=True)
    file = f"select pg_relation_filenode('{relation(db)}')"
    before = db.value(file)
    assert build_space(db.admin, "letters", rebuild=True).built is True
    assert db.value(file) != before
    assert index_of(db) == "valid"


def test_a_rebuild_of_ivfflat_has_the_lists_that_suit_the_vectors_of_now(db: Database) -> None:
    random_space(db, 100, 4, "ivfflat")
    build_space(db.admin, "random")
    name = "pgrag.embedding_1_ivfflat_idx"
    db.execute(f"alter index {name} set (lists = 90)")
    db.execute(f"reindex index {name}")
    size = f"select pg_relation_size('{name}')"
    before = db.value(size)
    build_space(db.admin, "random", rebuild=True)
    least = 10
    assert db.value(f"select reloptions from pg_class where oid = '{name}'::regclass") == [f"lists={least}"]
    # Each list has a page of its own.
    assert db.value(size) < before / 2


def test_a_rebuild_centres_codes_that_were_not(db: Database) -> None:
    letters(db, precision="bit")
    db.execute(db.value("select pgrag._space_index('letters')"))
    build_space(db.admin, "letters", rebuild=True)
    assert db.value("select center is not null from pgrag.space") is True


def test_what_is_measured_and_was_not_built_is_not_measured_again(db: Database) -> None:
    letters(db, with_index=True)
    first, second = build_space(db.admin, "letters"), build_space(db.admin, "letters")
    assert (first.calibrated, second.calibrated) == (True, False)
    assert second.calibration == first.calibration == find_space(db.admin, "letters").calibration


def test_what_was_built_anew_is_measured_again(db: Database) -> None:
    letters(db)
    build_space(db.admin, "letters")
    assert build_space(db.admin, "letters", rebuild=True).calibrated is True


def test_an_empty_space_gets_an_index_that_grows(db: Database) -> None:
    create_space(db.admin, LetterEncoder(), collections=["docs"], with_index=False)
    done = build_space(db.admin, "letters")
    assert (done.built, done.figures["vectors"], done.calibration) == (True, 0, {})


def test_a_model_may_answer_a_collection_that_is_still_empty(hybrid: Database) -> None:
    assert answered_by_letters(hybrid) == 0
    assert find_space(hybrid.admin, "letters").answers == ("docs",)


def test_a_space_without_an_index_has_nothing_to_build(db: Database) -> None:
    letters(db, index="none")
    assert build_space(db.admin, "letters").built is False


def test_a_build_that_is_stopped_is_repaired_by_the_next(db: Database) -> None:
    letters(db)
    builder, other = db.connect(), db.connect()
    seen: list[BuildProgress] = []

    def stop(progress: BuildProgress) -> None:
        if progress.waits_for is not None and not seen:
            seen.append(progress)
            db.execute("select pg_cancel_backend(%s)", (builder.info.backend_pid,))

    table = relation(db).removesuffix("_hnsw_idx")
    with other.transaction():
        other.execute(f"lock table {table} in row exclusive mode")
        with pytest.raises(DatabaseError, match="canceling statement"):
            build_space(builder, "letters", on_progress=stop)
    assert seen[0].waits_for == other.info.backend_pid
    assert index_of(db) == "invalid"
    assert build_space(builder, "letters").built is True
    assert index_of(db) == "valid"
    assert (
        db.value(f"select count(*) from pg_index where indrelid = '{table}'::regclass and not indisvalid")
        == 0
    )


def test_what_a_stopped_rebuild_left_is_taken_away(db: Database) -> None:
    letters(db, with_index=True)
    left = f"{relation(db)}_ccnew"
    table = relation(db).removesuffix("_hnsw_idx")
    db.execute(
        f"create index {left.removeprefix('pgrag.')} on {table} using hnsw (embedding halfvec_cosine_ops)"
    )
    db.execute(f"update pg_index set indisvalid = false where indexrelid = '{left}'::regclass")
    assert build_space(db.admin, "letters").built is False
    assert db.value("select to_regclass(%s)", (left,)) is None
    assert index_of(db) == "valid"


def test_a_build_that_memory_can_t_hold_is_refused(db: Database) -> None:
    letters(db)
    needed = -(-(3 * 2**20 + len(TEXTS) * (8 + 2 * 4 + 200 + 32 * 16)) // 2**20)
    message = (
        f'the hnsw index of space "letters" over 3 vectors needs {needed}MB, and maintenance_work_mem is 1MB'
    )
    with pytest.raises(PgragError, match=message) as caught:
        build_space(db.admin, "letters", memory="1MB")
    assert caught.value.hint == f"pgrag space build letters --memory {needed}MB"
    assert index_of(db) == "missing"
    assert build_space(db.admin, "letters", memory=f"{needed}MB").built is True


def test_a_build_on_disk_has_to_be_asked_for(db: Database) -> None:
    letters(db)
    assert build_space(db.admin, "letters", memory="1MB", slow=True).built is True


def test_the_settings_of_before_are_put_back(db: Database) -> None:
    letters(db)
    settings = (
        "select current_setting('maintenance_work_mem'), current_setting('max_parallel_maintenance_workers')"
    )
    db.execute("set maintenance_work_mem = '7MB'; set max_parallel_maintenance_workers = 1")
    build_space(db.admin, "letters", memory="9MB", workers=0)
    assert db.execute(settings) == [("7MB", "1")]


def test_a_machine_without_the_memory_is_named(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    letters(db)
    monkeypatch.setattr("pgrag.spaces._build._free_memory", lambda connection: 2**20)
    with pytest.raises(PgragError, match="needs 4MB, and this machine has 1MB free") as caught:
        build_space(db.admin, "letters")
    assert "--precision bit" in (caught.value.hint or "")


def test_shared_memory_is_for_parallel_workers_only(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    letters(db)
    monkeypatch.setattr("pgrag.spaces._build._free_memory", lambda connection: 2**40)
    monkeypatch.setattr("pgrag.spaces._build._free_shared_memory", lambda connection: 2**20)
    with pytest.raises(PgragError, match="/dev/shm included") as caught:
        build_space(db.admin, "letters", workers=2)
    assert "--workers 0" in (caught.value.hint or "")
    assert build_space(db.admin, "letters", workers=0).built is True


def test_no_more_than_the_machine_has_is_set_aside(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    letters(db)
    db.execute("set maintenance_work_mem = '64MB'")
    monkeypatch.setattr("pgrag.spaces._build._free_memory", lambda connection: 16 * 2**20)
    # 3 MB and a little, in whole MB.
    assert build_space(db.admin, "letters").figures["memory_bytes"] == 4 * 2**20
    assert db.value("select current_setting('maintenance_work_mem')") == "64MB"


def test_more_than_the_machine_has_is_not_set_aside_when_asked(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters(db)
    monkeypatch.setattr("pgrag.spaces._build._free_memory", lambda connection: 16 * 2**20)
    with pytest.raises(PgragError, match="64MB set aside at once, and this machine has 16MB free"):
        build_space(db.admin, "letters", memory="64MB")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"memory": "lots"}, 'invalid value for parameter "maintenance_work_mem": "lots"'),
        ({"workers": 5000}, "5000"),
    ],
)
def test_settings_that_the_server_refuses_are_named(db: Database, how: dict[str, Any], message: str) -> None:
    letters(db)
    with pytest.raises(PgragError, match=message):
        build_space(db.admin, "letters", **how)


def test_a_connection_that_begins_transactions_can_t_build(db: Database) -> None:
    letters(db)
    with psycopg.connect(db.dsn) as connection, pytest.raises(PgragError, match="outside a transaction"):
        build_space(connection, "letters")


def random_space(db: Database, count: int, dimension: int, index: str) -> None:
    """A space ``random`` with so many vectors, without an index."""
    db.load([str(number) for number in range(count)])
    db.execute(
        "select pgrag.create_space('random', 'm', %s, index_kind => %s, with_index => false)",
        (dimension, index),
    )
    db.execute("select pgrag.attach_space('docs', 'random')")
    db.execute(
        f"insert into pgrag.embedding_{db.value('select max(space_id) from pgrag.space')}"
        " (collection_id, chunk_id, acl_id, embedding)"
        " select c.collection_id, c.chunk_id, c.acl_id, array(select random() - 0.5 + c.chunk_id * 0"
        f" from generate_series(1, {dimension}))::vector::halfvec from pgrag.chunk as c"
    )
    db.execute("delete from pgrag.embed_queue")


@pytest.mark.parametrize(("share", "overflows"), [(1.0, False), (0.8, True)])
def test_pgvector_builds_hnsw_within_the_memory_that_is_estimated(
    db: Database, share: float, overflows: bool
) -> None:
    random_space(db, 2000, 384, "hnsw")
    notices: list[str] = []
    db.admin.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    needed = 3 * 2**20 + 2000 * (8 + 2 * 384 + 200 + 32 * 16)
    # The 3 MB are for what parallel workers share, and one process does without.
    memory = f"{int((needed - 3 * 2**20) * share) // 1024 + (1024 if not overflows else 0)}kB"
    build_space(db.admin, "random", memory=memory, workers=0, slow=True)
    assert any("no longer fits into maintenance_work_mem" in notice for notice in notices) is overflows


def test_pgvector_builds_ivfflat_within_the_memory_that_is_estimated(db: Database) -> None:
    random_space(db, 1000, 384, "ivfflat")
    needed = db.value("select pgrag._build_bytes(1000, 384, 'halfvec', 'ivfflat', '{\"lists\": 10}')")
    with pytest.raises(DatabaseError, match="memory required is"):
        build_space(db.admin, "random", memory=f"{needed // 1024 - 16}kB", slow=True)
    assert build_space(db.admin, "random", memory=f"{needed // 1024 + 1}kB").built is True


def test_a_model_s_index_is_built_when_its_vectors_are_there(hybrid: Database) -> None:
    filled(hybrid)
    answered_by_letters(hybrid)
    space = find_space(hybrid.admin, "letters")
    assert (space.index_state, space.answers) == ("valid", ("docs",))
    assert space.passport["figures"]["build"]["vectors"] == len(TEXTS)


def test_where_memory_can_t_hold_the_build_the_index_grows_with_the_vectors(hybrid: Database) -> None:
    filled(hybrid)
    hybrid.execute("set maintenance_work_mem = '1MB'")
    answered_by_letters(hybrid)
    space = find_space(hybrid.admin, "letters")
    assert space.index_state == "valid"
    assert "figures" not in space.passport


def test_retiring_and_dropping_from_python(db: Database) -> None:
    letters(db)
    assert retire_space(db.admin, "letters") is True
    assert retire_space(db.admin, "letters") is False
    drop_space(db.admin, "letters")
    assert list_spaces(db.admin) == []


def test_activating_from_python(db: Database) -> None:
    letters(db)
    activate_space(db.admin, "docs", "letters")
    assert find_space(db.admin, "letters").answers == ("docs",)


def test_calibrating_says_what_is_kept(db: Database) -> None:
    letters(db)
    assert calibrate_space(db.admin, "letters") == find_space(db.admin, "letters").calibration


def test_exact_search_finds_everything(db: Database) -> None:
    letters(db, index="none")
    figures = evaluate_space(db.admin, "letters", count=2)
    assert figures.queries == 2
    assert [(depth.k, depth.recall) for depth in figures.depths] == [(10, 1.0), (100, 1.0)]
    assert all(depth.plan.startswith("exact") for depth in figures.depths)
    assert 0 < figures.depths[0].p50_ms <= figures.depths[0].p95_ms


def test_what_is_written_to_measure_is_taken_back(db: Database) -> None:
    letters(db)
    table = relation(db).removesuffix("_hnsw_idx")
    rows = f"select chunk_id, embedding::text from {table} order by 1"
    before = db.execute(rows)
    figures = evaluate_space(db.admin, "letters")
    assert figures.insert_ms is not None
    assert figures.insert_ms > 0
    assert figures.delete_ms is not None
    assert figures.delete_ms > 0
    assert db.execute(rows) == before
    assert db.value("select count(*) from pgrag.embed_queue") == 0


def test_a_space_is_evaluated_for_a_caller(db: Database) -> None:
    letters(db)
    db.execute("select pgrag.create_principals('user:ana')")
    db.put("a", TEXTS["a"], readers=["user:ana"])
    figures = evaluate_space(db.admin, "letters", principals=["user:ana"])
    assert figures.principals == ("user:ana",)
    assert figures.depths[0].recall == 1


def test_a_caller_who_sees_nothing_is_told_so(db: Database) -> None:
    letters(db)
    db.execute("select pgrag.create_principals('user:ana')")
    for uri in TEXTS:
        db.execute("select pgrag.set_readers('docs', %s, array['user:ana'])", (uri,))
    with pytest.raises(PgragError, match='nothing of space "letters" is found by user:kofi'):
        evaluate_space(db.admin, "letters", principals=["user:kofi"])


def test_who_may_not_act_for_others_is_told_what_is_missing(db: Database) -> None:
    letters(db)
    owner = db.connect()
    owner.execute("create role pgrag_test_operator in role pgrag_owner")
    try:
        owner.execute("set session authorization pgrag_test_operator")
        assert evaluate_space(owner, "letters").depths[0].recall == 1
        with pytest.raises(PgragError, match=r"may not act for others, so it can't search for user:ana"):
            evaluate_space(owner, "letters", principals=["user:ana"])
    finally:
        owner.execute("reset session authorization")
        owner.execute("drop role pgrag_test_operator")


def test_an_empty_space_has_nothing_to_evaluate(db: Database) -> None:
    create_space(db.admin, LetterEncoder())
    with pytest.raises(PgragError, match='nothing of space "letters" is found by its owner'):
        evaluate_space(db.admin, "letters")


def test_the_queries_that_are_given_are_asked(db: Database) -> None:
    letters(db)
    asked = LetterEncoder().encode_queries(["valve", "pump", "gauge", "wheel"])
    assert evaluate_space(db.admin, "letters", queries=asked, writes=0).queries == 4


@pytest.mark.parametrize(
    ("found", "nearest", "recall"),
    [
        ([0.1, 0.2], [0.1, 0.2], 1.0),
        ([0.1, 0.3], [0.1, 0.2], 1 / 2),
        ([], [0.1, 0.2], 0.0),
        # Another as near as the last of the nearest is as good as it.
        ([0.1, 0.2, 0.2], [0.1, 0.2], 1.0),
        ([0.2, 0.2], [0.1, 0.2], 1.0),
    ],
)
def test_recall_counts_what_is_as_near_as_the_nearest(
    found: list[float], nearest: list[float], recall: float
) -> None:
    assert _figures._recall(found, nearest) == recall


def test_what_a_space_lacks_is_counted_over_its_collections(db: Database) -> None:
    db.execute("select pgrag.create_collection('more')")
    db.execute("select pgrag.put_document('more', 'd', 'turn the wheel', array['public'])")
    filled(db)
    create_space(db.admin, LetterEncoder(), collections=["docs", "more"])
    assert pending_of(db.admin, "letters") == len(TEXTS) + 1


def test_a_passport_says_what_made_the_vectors(db: Database) -> None:
    create_space(db.admin, LetterEncoder())
    assert space_passport(db.admin, "letters") == LetterEncoder.passport | {
        "name": "letters",
        "normalised": True,
    }
    with pytest.raises(Refused, match='space "nowhere" does not exist'):
        space_passport(db.admin, "nowhere")


def test_a_static_space_embeds_its_queries_and_an_external_one_nothing(hybrid: Database) -> None:
    create_space(hybrid.admin, LetterEncoder())
    shipped = StaticEncoder.shipped().name
    assert query_encoder_of(hybrid.admin, shipped) == shipped
    assert query_encoder_of(hybrid.admin, "letters") is None


def test_vectors_that_are_counted_once_are_not_counted_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters(db)
    asked: list[str] = []

    def find(connection: Any, name: str) -> Any:
        asked.append(name)
        return find_space(connection, name)

    monkeypatch.setattr(_figures, "find_space", find)
    evaluate_space(db.admin, "letters", count=2, writes=0)
    assert asked == ["letters"]
