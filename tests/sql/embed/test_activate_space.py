"""pgrag.activate_space: one switch, refused while vectors would be lost by it; and pausing, which is for workers alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from _pgrag import Database, login_dsn

OLD, NEW = "old", "new"


def embed(db: Database, space: str, vector: str, uris: list[str] | None = None) -> None:
    """Store one vector for each chunk that the space lacks, or for those of these documents, as a worker would."""
    for chunk_id, text_hash, uri in db.execute(
        "select c.chunk_id, c.hash, d.uri from pgrag.embed_queue as q"
        " join pgrag.space as s on s.space_id = q.space_id and s.name = %s"
        " join pgrag.chunk as c using (chunk_id)"
        " join pgrag.document as d on d.document_id = c.document_id order by 1",
        (space,),
    ):
        if uris is None or uri in uris:
            db.execute(
                "select pgrag.store_vectors(%s, array[%s::bigint], array[%s::bytea], array[%s])",
                (space, chunk_id, text_hash, vector),
            )


def answering(db: Database) -> Any:
    return db.value("select space from pgrag.collection_settings('docs')")


def states(db: Database) -> dict[str, str]:
    return dict(db.execute("select name, state from pgrag.space"))


def forget_waiting(db: Database, space: str) -> None:
    """Take everything off the queue of a space, as a model that has no vector for a text does."""
    db.execute(
        "delete from pgrag.embed_queue where space_id = (select space_id from pgrag.space where name = %s)",
        (space,),
    )


@pytest.fixture
def two(db: Database) -> Database:
    """Three documents, which the space ``old`` answers for; ``new`` is attached and lacks them all."""
    db.execute("select pgrag.create_space(%s, 'model-a', 2)", (OLD,))
    db.execute("select pgrag.create_space(%s, 'model-b', 2)", (NEW,))
    for uri in ("a", "b", "c"):
        db.put(uri, f"Note {uri}.")
    db.execute("select pgrag.attach_space('docs', %s)", (OLD,))
    embed(db, OLD, "[1,0]")
    db.execute("select pgrag.activate_space('docs', %s)", (OLD,))
    db.execute("select pgrag.attach_space('docs', %s)", (NEW,))
    return db


def test_a_space_that_lacks_what_vectors_find_now_is_refused(two: Database) -> None:
    embed(two, NEW, "[0,1]", ["a"])
    with pytest.raises(
        psycopg.Error, match='space "new" still lacks 2 vectors of collection "docs"'
    ) as refused:
        two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert refused.value.sqlstate == "RG005"
    assert answering(two) == OLD


def test_a_full_space_answers_and_the_one_before_keeps_its_vectors(two: Database) -> None:
    embed(two, NEW, "[0,1]")
    two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert answering(two) == NEW
    assert states(two) == {OLD: "ready", NEW: "active"}
    two.execute("select pgrag.activate_space('docs', %s)", (OLD,))
    assert answering(two) == OLD
    assert states(two) == {OLD: "active", NEW: "ready"}


def test_a_space_that_another_collection_uses_stays_active(two: Database) -> None:
    two.execute("select pgrag.create_collection('other', space => %s)", (OLD,))
    embed(two, NEW, "[0,1]")
    two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert states(two) == {OLD: "active", NEW: "active"}


def test_a_static_space_stays_the_default_of_new_collections(hybrid: Database) -> None:
    hybrid.execute("select pgrag.create_space(%s, 'model-b', 2)", (NEW,))
    hybrid.execute("select pgrag.attach_space('docs', %s)", (NEW,))
    hybrid.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    hybrid.execute("select pgrag.create_collection('more')")
    assert hybrid.value("select space from pgrag.collection_settings('more')") == "minilm-static-2"


def test_what_the_space_of_now_lacks_as_well_is_no_reason(two: Database) -> None:
    embed(two, NEW, "[0,1]")
    two.put("d", "Arrived just now, and no worker has come by.")
    two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert answering(two) == NEW


def test_a_text_that_changed_is_lacking_in_both(two: Database) -> None:
    embed(two, NEW, "[0,1]")
    two.put("a", "Another text altogether.")
    two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert answering(two) == NEW


def test_a_passage_that_only_the_old_model_has_a_vector_for_is_a_reason(two: Database) -> None:
    embed(two, NEW, "[0,1]", ["a", "b"])
    forget_waiting(two, NEW)
    with pytest.raises(psycopg.Error, match='space "new" has no vector of 1 passages of collection "docs"'):
        two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert answering(two) == OLD


@pytest.mark.parametrize("emptied", [False, True])
def test_force_switches_all_the_same(two: Database, emptied: bool) -> None:
    if emptied:
        forget_waiting(two, NEW)
    two.execute("select pgrag.activate_space('docs', %s, force => true)", (NEW,))
    assert answering(two) == NEW


def test_a_passage_that_was_queued_within_the_lag_is_on_its_way(two: Database) -> None:
    embed(two, NEW, "[0,1]", ["a", "b"])
    two.execute("update pgrag.embed_queue set not_before = now() - interval '9 seconds'")
    with pytest.raises(psycopg.Error, match="still lacks 1 vectors"):
        two.execute("select pgrag.activate_space('docs', %s, lag => '5 seconds')", (NEW,))
    two.execute("select pgrag.activate_space('docs', %s, lag => '1 minute')", (NEW,))
    assert answering(two) == NEW


def test_a_passage_that_failed_is_not_on_its_way(two: Database) -> None:
    embed(two, NEW, "[0,1]", ["a", "b"])
    two.execute("select pgrag.fail_chunk(%s, chunk_id, 'why not') from pgrag.embed_queue", (NEW,))
    with pytest.raises(psycopg.Error, match="still lacks 1 vectors"):
        two.execute("select pgrag.activate_space('docs', %s, lag => '1 hour')", (NEW,))


def test_where_nothing_answers_now_everything_queued_is_a_reason(db: Database) -> None:
    db.execute("select pgrag.create_space(%s, 'model-b', 2)", (NEW,))
    db.put("a", "Note a.")
    db.execute("select pgrag.attach_space('docs', %s)", (NEW,))
    with pytest.raises(psycopg.Error, match="still lacks 1 vectors"):
        db.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    forget_waiting(db, NEW)  # the model has no vector for it, and nothing has one that could be lost
    db.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert answering(db) == NEW


def test_activating_what_is_active_does_nothing(two: Database) -> None:
    two.put("d", "Not embedded yet.")
    two.execute("select pgrag.activate_space('docs', %s)", (OLD,))
    assert (answering(two), states(two)[OLD]) == (OLD, "active")


def test_a_space_that_is_not_attached_is_refused(two: Database) -> None:
    two.execute("select pgrag.create_space('third', 'model-c', 2)")
    with pytest.raises(psycopg.Error, match='space "third" holds nothing of collection "docs"'):
        two.execute("select pgrag.activate_space('docs', 'third', force => true)")


@pytest.mark.parametrize("arguments", ["lag => '-1 second'", "lag => null", "force => null"])
def test_senseless_arguments_are_refused(two: Database, arguments: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        two.execute(f"select pgrag.activate_space('docs', 'new', {arguments})")
    assert refused.value.sqlstate == "RG001"


def test_no_space_is_refused(two: Database) -> None:
    with pytest.raises(psycopg.Error) as refused:
        two.execute("select pgrag.activate_space('docs', null)")
    assert refused.value.sqlstate == "RG005"


def test_an_aborted_switch_never_was(two: Database) -> None:
    embed(two, NEW, "[0,1]")
    with two.admin.transaction(force_rollback=True):
        two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert (answering(two), states(two)) == (OLD, {OLD: "active", NEW: "building"})


def test_a_search_waits_for_no_switch(two: Database) -> None:
    embed(two, NEW, "[0,1]")
    other = two.connect()
    with other.transaction():
        other.execute("select pgrag.activate_space('docs', %s)", (NEW,))
        with two.acting("public") as app:
            app.execute("set local lock_timeout = '1s'")
            rows = app.execute(
                "select distinct dense_distance from pgrag.search('', embedding => '[1,0]')"
            ).fetchall()
    assert rows == [(0.0,)]


def test_a_space_that_is_retired_at_the_same_moment_is_refused(two: Database) -> None:
    retiring, activating = two.connect(), two.connect()
    failures: list[psycopg.Error] = []

    def activate() -> None:
        try:
            activating.execute("select pgrag.activate_space('docs', %s, force => true)", (NEW,))
        except psycopg.Error as error:
            failures.append(error)

    thread = threading.Thread(target=activate)
    with retiring.transaction():
        retiring.execute("select pgrag.retire_space(%s)", (NEW,))
        thread.start()
        while not two.execute(
            "select 1 from pg_locks where not granted and pid = %s", (activating.info.backend_pid,)
        ):
            assert thread.is_alive()
    thread.join()
    assert [error.sqlstate for error in failures] == ["RG005"]
    assert answering(two) == OLD


def test_a_writer_waits_for_no_switch(two: Database) -> None:
    embed(two, NEW, "[0,1]")
    other, writer = two.connect(), two.connect("pgrag_test_writer")
    with other.transaction():
        other.execute("select pgrag.activate_space('docs', %s)", (NEW,))
        writer.execute("set lock_timeout = '1s'")
        for uri in ("a", "d"):
            writer.execute("select pgrag.put_document('docs', %s, 'Written meanwhile.', '{public}')", (uri,))
    assert two.value("select count(*) from pgrag.embed_queue") == 2 * len((OLD, NEW))


@pytest.mark.parametrize(
    "function",
    ["activate_space('docs', 'new')", "pause_space('new')", "resume_space('new')", "ready_space('new')"],
)
@pytest.mark.parametrize("role", ["pgrag_test_writer", "pgrag_test_app", "pgrag_test_reader"])
def test_only_the_owner_may(two: Database, role: str, function: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        two.connect(role).execute(f"select pgrag.{function}")


def claimed(db: Database) -> int:
    with db.connect("pgrag_test_writer") as writer, writer.transaction(force_rollback=True):
        return len(writer.execute("select pgrag.claim_chunks(%s)", (NEW,)).fetchall())


def test_a_paused_space_is_claimed_by_nobody(two: Database) -> None:
    assert claimed(two) == 3
    assert two.value("select pgrag.pause_space(%s)", (NEW,)) is True
    assert claimed(two) == 0
    assert two.value("select pgrag.pause_space(%s)", (NEW,)) is False
    assert two.value("select pgrag.resume_space(%s)", (NEW,)) is True
    assert claimed(two) == 3
    assert two.value("select pgrag.resume_space(%s)", (NEW,)) is False


@pytest.mark.parametrize("state", ["building", "active"])
def test_a_space_that_answers_is_not_paused(two: Database, state: str) -> None:
    embed(two, NEW, "[0,1]")
    two.execute("update pgrag.space set state = %s, paused = true where name = %s", (state, NEW))
    two.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    assert two.value("select paused from pgrag.space where name = %s", (NEW,)) is False


def test_what_was_claimed_before_a_pause_is_stored(two: Database) -> None:
    two.execute("select pgrag.pause_space(%s)", (NEW,))
    embed(two, NEW, "[0,1]")
    assert two.value("select waiting from pgrag.space_progress('docs', %s)", (NEW,)) == 0


@pytest.mark.parametrize("function", ["pause_space", "resume_space", "ready_space"])
def test_an_unknown_space_is_refused(db: Database, function: str) -> None:
    with pytest.raises(psycopg.Error, match='space "nope" does not exist') as refused:
        db.execute(f"select pgrag.{function}('nope')")
    assert refused.value.sqlstate == "RG005"


def test_ready_is_said_of_a_space_that_is_being_built(two: Database) -> None:
    assert two.value("select pgrag.ready_space(%s)", (NEW,)) is True
    assert two.value("select pgrag.ready_space(%s)", (NEW,)) is False
    assert two.value("select pgrag.ready_space(%s)", (OLD,)) is False
    assert states(two) == {OLD: "active", NEW: "ready"}


def test_progress_counts_what_waits_what_is_claimed_and_what_failed(two: Database) -> None:
    embed(two, NEW, "[0,1]", ["a"])
    two.execute("select pgrag.claim_chunks(%s, 1)", (NEW,))
    two.execute("select pgrag.fail_chunk(%s, max(chunk_id), 'why not') from pgrag.embed_queue", (NEW,))
    row = two.execute(
        "select total, waiting, claimed, failing, due_at > now(), state, paused, active_space, query_encoder"
        " from pgrag.space_progress('docs', %s)",
        (NEW,),
    )
    assert row == [(3, 2, 1, 1, True, "building", False, OLD, None)]


def test_the_progress_of_a_full_space_has_nothing_due(two: Database) -> None:
    row = two.execute("select total, waiting, due_at from pgrag.space_progress('docs', %s)", (OLD,))
    assert row == [(3, 0, None)]


# What happens to a collection with two spaces, and the vectors that each must then have: what arrives lands in both.
def vectors(db: Database, space: str) -> dict[str, int]:
    """The ACL of each document's vector in a space, by uri."""
    space_id = db.value("select space_id from pgrag.space where name = %s", (space,))
    rows = db.execute(
        f"select d.uri, e.acl_id from pgrag.embedding_{space_id} as e"
        " join pgrag.chunk as c using (collection_id, chunk_id)"
        " join pgrag.document as d on d.document_id = c.document_id"
    )
    return dict(rows)


@pytest.fixture
def both(two: Database) -> Database:
    """As ``two``, with both spaces full."""
    embed(two, NEW, "[0,1]")
    return two


def test_a_document_that_arrives_lands_in_both(both: Database) -> None:
    both.put("d", "Note d.")
    assert both.execute("select space, pending from pgrag.space_backlog('docs')") == [(NEW, 1), (OLD, 1)]
    embed(both, OLD, "[1,0]")
    embed(both, NEW, "[0,1]")
    assert set(vectors(both, OLD)) == set(vectors(both, NEW)) == {"a", "b", "c", "d"}


def test_a_text_that_changes_changes_in_both(both: Database) -> None:
    both.put("a", "Another text altogether.")
    assert both.execute("select space, pending from pgrag.space_backlog('docs')") == [(NEW, 1), (OLD, 1)]
    assert set(vectors(both, OLD)) == set(vectors(both, NEW)) == {"b", "c"}


def test_a_document_that_goes_is_gone_from_both(both: Database) -> None:
    both.execute("select pgrag.delete_document('docs', 'a')")
    assert set(vectors(both, OLD)) == set(vectors(both, NEW)) == {"b", "c"}


def test_readers_that_change_change_in_both(both: Database) -> None:
    before = vectors(both, NEW)["a"]
    both.execute("select pgrag.create_principals('user:ana')")
    both.execute("select pgrag.set_readers('docs', 'a', array['user:ana'])")
    after = vectors(both, NEW)["a"]
    assert after != before
    assert vectors(both, OLD)["a"] == after


# A search reads which space answers once, in the snapshot of its statement. Here one is held inside, before or after
# it has read that, until the switch is committed: and it still answers from the space that was active when it began.
HELD = """
alter function pgrag._dense_arms(text, halfvec, text[], text) rename to _dense_arms_itself;
create function pgrag._dense_arms(query text, given halfvec, asked text[], in_space text)
returns table (of_space pgrag.space, collection_ids int[], visible bigint, embedding halfvec)
language plpgsql stable parallel restricted security invoker as $$
begin
    if {before} then
        perform pg_advisory_lock_shared(4711);
    end if;
    return query select * from pgrag._dense_arms_itself(query, given, asked, in_space);
    if not {before} then
        perform pg_advisory_lock_shared(4711);
    end if;
end
$$;
grant execute on all functions in schema pgrag to pgrag_reader;
"""


@pytest.fixture
def static_two(db: Database, fill_static: Callable[[Database, str, dict[str, str]], None]) -> Database:
    """Two static spaces of one document, in which the same query has the distances 0 and 1."""
    db.execute("select pgrag.create_collection('wall')")
    fill_static(db, OLD, {"note": "[1,0]", "a": "[0,1]"})
    fill_static(db, NEW, {"note": "[1,0]", "a": "[1,0]"})
    for space in (OLD, NEW):
        db.execute("select pgrag.attach_space('docs', %s)", (space,))
    db.put("a", "note")
    db.execute("select pgrag.activate_space('docs', %s)", (OLD,))
    return db


@pytest.fixture
def fill_static() -> Callable[[Database, str, dict[str, str]], None]:
    def fill(db: Database, name: str, tokens: dict[str, str]) -> None:
        db.execute("select pgrag.create_space(%s, %s, 2, kind => 'static')", (name, name))
        db.execute(
            "select pgrag.load_encoder_tokens(%s, %s, %s, %s::halfvec[])",
            (name, list(tokens), list(range(len(tokens))), list(tokens.values())),
        )

    return fill


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        "select dense_distance from pgrag.search('a')",
        "select dense_distance from pgrag.search('a', weights => '{\"lexical\": 0, \"dense\": 1}')",
    ],
)
def test_a_search_that_began_before_a_switch_answers_from_the_space_before(
    static_two: Database, before: bool, query: str
) -> None:
    db = static_two
    db.admin.execute(HELD.format(before=before))
    db.execute("select pg_advisory_lock(4711)")
    found: list[Any] = []

    def search() -> None:
        with db.acting("public") as app:
            found.extend(app.execute(query).fetchall())

    thread = threading.Thread(target=search)
    thread.start()
    watch = db.connect()
    while not watch.execute(
        "select 1 from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"
    ).fetchone():
        assert thread.is_alive()
    watch.execute("select pgrag.activate_space('docs', %s)", (NEW,))
    db.execute("select pg_advisory_unlock(4711)")
    thread.join()
    assert found == [(1.0,)]
    assert db.rows_as("public", query) == [(0.0,)]


def test_a_vector_without_a_space_is_compared_in_the_space_that_was_active(both: Database) -> None:
    with both.acting("public") as app:
        app.execute("select")
        both.execute("select pgrag.activate_space('docs', %s)", (NEW,))
        rows = app.execute("select distinct distance from pgrag.search_dense('[1,0]')").fetchall()
    assert rows == [(1.0,)]


def test_two_switches_at_once_come_one_after_the_other(both: Database) -> None:
    first, second = both.connect(), psycopg.connect(both.dsn, autocommit=True)
    with second, first.transaction():
        first.execute("select pgrag.activate_space('docs', %s)", (NEW,))
        second.execute("set lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute("select pgrag.activate_space('docs', %s)", (OLD,))
    assert answering(both) == NEW


def test_an_application_keeps_to_its_login(two: Database) -> None:
    with (
        psycopg.connect(login_dsn(two.dsn, "pgrag_test_app")) as app,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        app.execute("select pgrag.space_progress('docs', 'new')")
