"""pgrag.forget_judged: judged queries go with their judgements, and runs stay."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

IMPORT = (
    "select pgrag.import_judged(%s, array['1', '2'], array['one', 'two'], '[[], []]', array['1', '2'], array['a', 'b'],"
    " array[1, 1])"
)


@pytest.fixture
def judged(db: Database) -> Database:
    """Two judged queries in each of two collections."""
    db.execute("select pgrag.create_collection('other')")
    for collection in ("docs", "other"):
        db.execute(IMPORT, (collection,))
    return db


def test_named_queries_go_with_their_judgements(judged: Database) -> None:
    assert judged.value("select pgrag.forget_judged('docs', array['1', 'none'])") == 1
    assert judged.execute("select query_id, uri from pgrag.export_judged('docs')") == [("2", "b")]
    assert judged.value("select count(*) from pgrag.judgement") == 4 - 1


def test_unnamed_all_of_the_collection_go_and_no_others(judged: Database) -> None:
    assert judged.value("select pgrag.forget_judged('docs')") == 2
    assert judged.value("select count(*) from pgrag.export_judged('docs')") == 0
    assert judged.value("select count(*) from pgrag.export_judged('other')") == 2


def test_an_empty_list_forgets_nothing(judged: Database) -> None:
    assert judged.value("select pgrag.forget_judged('docs', '{}')") == 0


def test_what_a_run_found_stays(judged: Database) -> None:
    run_id = judged.value("select pgrag.record_run('docs', 'tried', '{}', '{}')")
    judged.execute(
        "select pgrag.record_run_queries(%s, %s)",
        (run_id, '[{"query_id": "1", "arm": "dense", "query": "one", "metrics": {"mrr": 1}}]'),
    )
    judged.execute("select pgrag.forget_judged('docs')")
    assert len(judged.value("select pgrag.load_run(%s)", (run_id,))["queries"]) == 1


def test_a_collection_that_is_none_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.execute("select pgrag.forget_judged('nowhere')")
    assert refused.value.sqlstate == "RG002"


def test_a_writer_may_and_an_application_may_not(judged: Database) -> None:
    with judged.connect("pgrag_test_writer") as writer:
        assert writer.execute("select pgrag.forget_judged('docs')").fetchone() == (2,)
    with judged.connect("pgrag_test_app") as application, pytest.raises(psycopg.errors.InsufficientPrivilege):
        application.execute("select pgrag.forget_judged('other')")
