"""What a server tells of itself for an evaluation: times by stage, update lag, what is kept in its cache, digests."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

SPACE = "minilm-static-2"


def stages(db: Database, **arguments: Any) -> dict[str, float]:
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    rows = db.rows_as(
        "public",
        f"select stage, ms from pgrag.time_search('the pump', collections => array['docs'], {named or 'k => 20'})",
        arguments,
    )
    assert len({stage for stage, _ in rows}) == len(rows)
    return dict(rows)


def test_a_search_by_words_has_no_stage_of_vectors(db: Database) -> None:
    db.put("a", "the pump")
    assert stages(db).keys() == {"lexical", "text", "fuse", "total"}


def test_a_hybrid_search_has_all_of_them(hybrid: Database) -> None:
    hybrid.put("a", "the pump")
    found = stages(hybrid, space=SPACE, budget_tokens=500)
    assert found.keys() == {"embed", "dense", "lexical", "text", "fuse", "pack", "total"}
    assert min(found.values()) >= 0
    assert found["total"] > 0


def test_an_arm_without_weight_is_not_timed(hybrid: Database) -> None:
    hybrid.put("a", "the pump")
    found = stages(hybrid, space=SPACE, weights='{"lexical": 0, "dense": 1}')
    assert "lexical" not in found
    assert "dense" in found


def test_a_given_vector_is_not_embedded(hybrid: Database) -> None:
    hybrid.put("a", "the pump")
    vector = hybrid.value("select pgrag.embed_query('the pump', %s)::text", (SPACE,))
    assert "embed" not in stages(hybrid, space=SPACE, embedding=vector)


def test_texts_are_listed_as_far_as_they_may_be_read(db: Database) -> None:
    db.put("b", "the text of b", title="B")
    db.put("a", "the text of a")
    db.put("hidden", "a secret", readers=["user:ana"])
    rows = db.rows_as("public", "select uri, content from pgrag.document_texts('docs')")
    assert rows == [("a", "the text of a"), ("b", "B\nthe text of b")]


def test_a_collection_that_is_not_there_has_no_texts(db: Database) -> None:
    assert db.rows_as("public", "select * from pgrag.document_texts('nowhere')") == []


DIGEST = "select pgrag.collection_digest('docs')"


def test_the_digest_stays_while_nothing_changes(db: Database) -> None:
    db.put("a", "one")
    before = db.value(DIGEST)
    db.put("a", "one")
    assert db.value(DIGEST) == before


@pytest.mark.parametrize(
    "change",
    [
        "select pgrag.put_document('docs', 'a', 'two', array['public'])",
        "select pgrag.put_document('docs', 'b', 'one', array['public'])",
        "select pgrag.set_readers('docs', 'a', array['user:ana'])",
        "select pgrag.delete_document('docs', 'a')",
        "select pgrag.put_document('docs', 'a', 'one', array['public'], title => 'A')",
    ],
)
def test_the_digest_changes_with_a_document(db: Database, change: str) -> None:
    db.put("a", "one")
    db.execute("select pgrag.create_principals('user:ana')")
    before = db.value(DIGEST)
    db.execute(change)
    assert db.value(DIGEST) != before


def test_the_digest_is_that_of_the_documents_in_whatever_order_they_came(db: Database) -> None:
    db.put("a", "one")
    db.put("b", "two")
    before = db.value(DIGEST)
    db.execute("select pgrag.delete_document('docs', 'a')")
    db.put("a", "one")
    assert db.value(DIGEST) == before


def test_blocks_that_are_read_are_counted(db: Database) -> None:
    db.put("a", "one")
    hits, reads = db.execute("select hits, reads from pgrag.cache_counts()")[0]
    db.execute("select * from pgrag.chunk")
    more, later = db.execute("select hits, reads from pgrag.cache_counts()")[0]
    assert more + later > hits + reads


def everything(db: Database) -> dict[str, int]:
    """The rows of every table of pgrag's."""
    tables = db.execute("select tablename from pg_tables where schemaname = 'pgrag'")
    return {name: db.value(f'select count(*) from pgrag."{name}"') for (name,) in tables}


def test_the_update_lag_is_measured_and_nothing_is_left_behind(hybrid: Database) -> None:
    hybrid.put("a", "the pump")
    before = everything(hybrid)
    rows = hybrid.execute(
        "select arm, ms from pgrag._update_lag(array['the first pump', 'a second filter'], %s)", (SPACE,)
    )
    assert [arm for arm, _ in rows] == ["lexical", "dense"] * 2
    assert all(0 < ms < 10_000 for _, ms in rows)
    assert everything(hybrid) == before


def test_the_update_lag_of_a_models_space_is_measured_with_the_vectors_that_are_given(db: Database) -> None:
    db.execute("select pgrag.create_space('model', 'model', 2)")
    db.execute("select pgrag.attach_space('docs', 'model')")
    before = everything(db)
    rows = db.execute(
        "select arm, ms from pgrag._update_lag(array['one', 'two'], 'model', array['[1,0]', '[0,1]'])"
    )
    assert [arm for arm, _ in rows] == ["lexical", "dense"] * 2
    assert everything(db) == before


def test_without_a_space_words_alone_are_measured(db: Database) -> None:
    assert [arm for arm, _ in db.execute("select * from pgrag._update_lag(array['one'])")] == ["lexical"]


def test_a_space_that_is_not_there_is_refused_and_nothing_is_left_behind(db: Database) -> None:
    before = everything(db)
    with pytest.raises(psycopg.Error) as refused:
        db.execute("select * from pgrag._update_lag(array['one'], 'nowhere')")
    assert refused.value.sqlstate == "RG005"
    assert everything(db) == before


def test_a_writer_may_not_measure_the_update_lag(db: Database) -> None:
    with db.connect("pgrag_test_writer") as writer, pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute("select * from pgrag._update_lag(array['one'])")


def test_an_arm_that_the_collection_leaves_out_is_not_timed(hybrid: Database) -> None:
    hybrid.put("a", "the pump")
    hybrid.execute("""select pgrag.set_search_settings('docs', '{"weights": {"lexical": 0, "dense": 1}}')""")
    assert "lexical" not in stages(hybrid, space=SPACE)


def test_whoever_sees_nothing_is_timed_too(hybrid: Database) -> None:
    hybrid.put("a", "the pump", readers=["user:ana"])
    assert stages(hybrid)["total"] > 0


def test_what_hinders_a_probe_is_said(db: Database) -> None:
    db.execute(
        "create function public.hinder() returns trigger language plpgsql as $$ begin raise exception 'not today'; end $$;"
        "create trigger hinder before insert on pgrag.document for each row execute function public.hinder()"
    )
    with pytest.raises(psycopg.errors.RaiseException, match="not today"):
        db.execute("select * from pgrag._update_lag('{a pump}')")
