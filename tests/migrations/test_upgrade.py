"""Installing and upgrading: one result whatever the way, however many do it, and refusals that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from _pgrag import login_dsn
from psycopg import sql

import pgrag
from pgrag import install
from pgrag.errors import ConnectionFailed, InstallError

# Everything that a dump of the schema would show, without oids and without what an upgrade can't control.
CATALOGS = """
select 'relation', c.relname, c.relkind::text, c.relrowsecurity::text || c.relforcerowsecurity::text,
    coalesce(obj_description(c.oid, 'pg_class'), ''), pg_get_userbyid(c.relowner),
    coalesce(c.relacl::text, '') || coalesce(c.reloptions::text, '')
from pg_class as c where c.relnamespace = 'pgrag'::regnamespace
union all
select 'column', a.attrelid::regclass::text || '.' || a.attname, format_type(a.atttypid, a.atttypmod),
    a.attnotnull::text || a.attidentity::text || a.attgenerated::text || a.attstorage::text || coalesce(a.attcollation::regcollation::text, ''),
    coalesce(pg_get_expr(d.adbin, d.adrelid), ''), coalesce(col_description(a.attrelid, a.attnum), ''), a.attnum::text
from pg_attribute as a
inner join pg_class as c on c.oid = a.attrelid
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where c.relnamespace = 'pgrag'::regnamespace and a.attnum > 0 and not a.attisdropped
union all
select 'constraint', c.conrelid::regclass::text || '.' || c.conname, pg_get_constraintdef(c.oid), '', '', '', ''
from pg_constraint as c where c.connamespace = 'pgrag'::regnamespace
union all
select 'index', i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), '', '', '', ''
from pg_index as i inner join pg_class as c on c.oid = i.indexrelid where c.relnamespace = 'pgrag'::regnamespace
union all
select 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid), coalesce(obj_description(p.oid, 'pg_proc'), ''),
    pg_get_userbyid(p.proowner), coalesce(p.proacl::text, ''), ''
from pg_proc as p where p.pronamespace = 'pgrag'::regnamespace
union all
select 'trigger', t.tgrelid::regclass::text || '.' || t.tgname, pg_get_triggerdef(t.oid), t.tgenabled::text, '', '', ''
from pg_trigger as t inner join pg_class as c on c.oid = t.tgrelid
where c.relnamespace = 'pgrag'::regnamespace and not t.tgisinternal
union all
select 'policy', p.polrelid::regclass::text || '.' || p.polname, pg_get_expr(p.polqual, p.polrelid),
    coalesce(pg_get_expr(p.polwithcheck, p.polrelid), ''), p.polcmd::text,
    array(select r.rolname from pg_roles as r where r.oid = any(p.polroles) order by 1)::text, ''
from pg_policy as p inner join pg_class as c on c.oid = p.polrelid where c.relnamespace = 'pgrag'::regnamespace
order by 1, 2
"""


def catalogs(dsn: str) -> set[tuple[str, ...]]:
    with psycopg.connect(dsn) as connection:
        connection.execute("set search_path = pg_catalog")
        return set(connection.execute(CATALOGS).fetchall())


def revise_from(dsn: str, revision: str) -> None:
    """Put a prepared database where the release of a revision left its tables."""
    script = Path(install._beside("_alembic", "alembic")) / "versions" / f"{revision}_initial.sql"
    with psycopg.connect(dsn) as connection:
        connection.execute("set role pgrag_owner")
        connection.execute(script.read_text("utf-8").encode())
        connection.execute("create table pgrag.alembic_version (version_num varchar(32) not null)")
        connection.execute(
            "alter table pgrag.alembic_version add constraint alembic_version_pkc primary key (version_num)"
        )
        connection.execute("insert into pgrag.alembic_version values (%s)", (revision,))


def test_a_fresh_schema_and_an_upgraded_one_are_equal(new_database: Callable[..., str]) -> None:
    fresh, upgraded = new_database(), new_database()
    for dsn in (fresh, upgraded):
        install.init(dsn)
    revise_from(upgraded, "0001")
    install.upgrade(fresh)
    install.upgrade(upgraded)
    assert catalogs(fresh) ^ catalogs(upgraded) == set()


def test_postings_of_an_earlier_release_are_packed_in_their_order(new_database: Callable[..., str]) -> None:
    dsn = new_database()
    install.init(dsn)
    revise_from(dsn, "0001")
    # A chunk that was changed twice and not compacted: three frequencies of one term, in the order they were written.
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_length, chunk_ids, tfs, lengths)"
            " values (7, 1, 1, 2, 1, 3, 9, '{5, 6}', '{3, 1}', '{9, 9}'), (7, 1, 1, 1, 1, 1, 9, '{5}', '{1}', '{9}'),"
            " (7, 1, 1, 1, 1, 2, 9, '{5}', '{2}', '{9}'), (7, 1, 1, 2, -1, 3, 9, '{5, 5}', '{3, 1}', '{9, 9}')"
        )
    install.upgrade(dsn)
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "select sign, n, max_tf, min_ratio, entries from pgrag.posting order by sign desc"
        ).fetchall()

    def pack(chunk: int, tf: int, length: int) -> int:
        return chunk << 23 | tf << 15 | length

    kept = [pack(5, 1, 9), pack(5, 2, 9), pack(5, 3, 9), pack(6, 1, 9)]
    assert rows == [(1, 4, 3, 9 // 3, kept), (-1, 2, 3, 9 // 3, [pack(5, 1, 9), pack(5, 3, 9)])]


def test_chunks_of_an_earlier_release_say_that_their_collections_analyzer_made_them(
    new_database: Callable[..., str],
) -> None:
    dsn = new_database()
    install.init(dsn)
    revise_from(dsn, "0001")
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into pgrag.collection (name, analyzer) values ('a', 'german'), ('b', 'english'), ('c', 'simple');"
            "insert into pgrag.acl (collection_id, digest) select collection_id, '' from pgrag.collection;"
            "insert into pgrag.document (collection_id, acl_id, uri, language, content_hash)"
            " select collection_id, acl_id, 'x', 'fr', '' from pgrag.acl;"
            "insert into pgrag.chunk (collection_id, acl_id, document_id, ordinal, char_start, char_end, token_count,"
            " lexeme_count, hash, content, tsv)"
            " select collection_id, acl_id, document_id, 0, 0, 1, 1, 1, '', 'x', 'x:1' from pgrag.document;"
            "insert into pgrag.corpus_stat select collection_id, acl_id, 1, 1 from pgrag.acl"
        )
    install.upgrade(dsn)
    with psycopg.connect(dsn) as connection:
        for table in ("chunk", "corpus_stat"):
            query = sql.SQL(
                "select o.name, t.analyzer from {} as t join pgrag.collection as o using (collection_id) order by o.name"
            ).format(sql.Identifier("pgrag", table))
            assert connection.execute(query).fetchall() == [
                ("a", "german"),
                ("b", "english"),
                ("c", "simple"),
            ]


# A space as the first release made it: its table with the approximate index, in the order in which they are needed.
SPACE_OF_0001 = """
insert into pgrag.space (name, kind, model, dimension, state) values ('{name}', '{kind}', 'toy', 2, 'active');
create table pgrag.embedding_{id} (
    chunk_id bigint not null,
    collection_id int not null,
    acl_id int not null,
    embedding halfvec(2) not null,
    constraint embedding_{id}_pkey primary key (collection_id, chunk_id),
    constraint embedding_{id}_chunk_fkey foreign key (collection_id, chunk_id, acl_id)
    references pgrag.chunk (collection_id, chunk_id, acl_id) on update cascade on delete cascade
);
create index embedding_{id}_acl_idx on pgrag.embedding_{id} (collection_id, acl_id);
create index embedding_{id}_hnsw_idx on pgrag.embedding_{id} using hnsw (embedding halfvec_cosine_ops);
alter table pgrag.embedding_{id} owner to pgrag_owner;
insert into pgrag.collection (name) values ('{name}');
insert into pgrag.collection_space values ({id}, {id});
update pgrag.collection set active_space_id = {id} where name = '{name}';
insert into pgrag.acl (collection_id, digest) values ({id}, '');
insert into pgrag.acl_entry (collection_id, acl_id, principal, allow) values ({id}, {id}, 'public', true);
insert into pgrag.document (collection_id, acl_id, uri, content_hash) values ({id}, {id}, 'pump', ''), ({id}, {id}, 'valve', '');
insert into pgrag.chunk (collection_id, acl_id, document_id, ordinal, char_start, char_end, token_count, lexeme_count, hash, content, tsv)
select collection_id, acl_id, document_id, 0, 0, 4, 1, 1, '', uri, '' from pgrag.document where collection_id = {id};
insert into pgrag.embedding_{id} select c.chunk_id, c.collection_id, c.acl_id, case c.content when 'valve' then '[1,0]' else '[0,1]' end::halfvec
from pgrag.chunk as c where c.collection_id = {id};
insert into pgrag.corpus_stat values ({id}, {id}, 2, 2);
"""


def test_spaces_of_an_earlier_release_go_on_answering(roles: None, new_database: Callable[..., str]) -> None:
    dsn = new_database()
    install.init(dsn)
    revise_from(dsn, "0001")
    with psycopg.connect(dsn) as connection:
        for number, (name, kind) in enumerate([("by-table", "static"), ("by-model", "external")], 1):
            connection.execute(SPACE_OF_0001.format(id=number, name=name, kind=kind).encode())
        connection.execute(
            "insert into pgrag.encoder_token values (1, 'valve', 7, '[1,0]'), (1, 'pump', 8, '[0,1]')"
        )
    install.upgrade(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("grant pgrag_app to pgrag_test_app")
        assert connection.execute(
            'select name, query_encoder, dimension, model_dimension, "precision", index_state, vectors'
            " from pgrag.spaces() order by name"
        ).fetchall() == [
            ("by-model", None, 2, 2, "halfvec", "valid", 2),
            ("by-table", "by-table", 2, 2, "halfvec", "valid", 2),
        ]
    with pgrag.connect(login_dsn(dsn, "pgrag_test_app")) as store:
        caller = store.as_principals("user:ana")
        by_table = caller.search("valve", collections=["by-table"])
        by_model = caller.search("valve", collections=["by-model"], embedding=[0, 1])
    assert [(hit.uri, hit.dense_distance) for hit in by_table] == [("valve", 0), ("pump", 1)]
    assert [(hit.uri, hit.dense_distance) for hit in by_model] == [("pump", 0), ("valve", 1)]


def test_judged_queries_and_runs_of_an_earlier_release_are_kept(new_database: Callable[..., str]) -> None:
    dsn = new_database()
    install.init(dsn)
    revise_from(dsn, "0001")
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into pgrag.collection (name) values ('docs');"
            "insert into pgrag.judged_query values (1, 'q', 'how?', '{user:ana}');"
            "insert into pgrag.judgement (collection_id, query_id, uri, grade) values (1, 'q', 'a', 2);"
            "insert into pgrag.run (collection_id, name, metrics, started_at) values (1, 'gate', '{\"passed\": true}', '2026-01-01')"
        )
    install.upgrade(dsn)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select * from pgrag.export_judged('docs')").fetchall() == [
            ("q", "how?", ["user:ana"], None, "a", None, None, 2, None)
        ]
        row = connection.execute(
            "select name, metrics, finished_at = started_at from pgrag.runs()"
        ).fetchone()
        assert row == ("gate", {"passed": True}, True)
        assert connection.execute("select search_settings from pgrag.collection").fetchone() == ({},)


def test_an_upgrade_says_what_to_run_afterwards(new_database: Callable[..., str]) -> None:
    fresh, upgraded = new_database(), new_database()
    for dsn in (fresh, upgraded):
        install.init(dsn)
    revise_from(upgraded, "0001")
    assert install.upgrade(fresh).advice == ()
    assert [line for line in install.upgrade(upgraded).advice if "pgrag reindex --lexical" in line] != []
    assert install.upgrade(upgraded).advice == ()


def test_upgrading_twice_changes_nothing(dsn: str) -> None:
    before = catalogs(dsn)
    assert install.upgrade(dsn).changed is False
    assert catalogs(dsn) == before


def test_running_the_repeatable_files_again_changes_nothing(dsn: str) -> None:
    before = catalogs(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("update pgrag.installation set digest = 'of an earlier release'")
    assert install.upgrade(dsn).changed is True
    assert catalogs(dsn) == before


def test_an_overload_of_an_earlier_release_is_dropped(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("set role pgrag_owner")
        connection.execute(
            "create function pgrag.search(query text) returns int language sql return 1;"
            "update pgrag.installation set digest = 'of an earlier release'"
        )
    install.upgrade(dsn)
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select count(*) from pg_proc where pronamespace = 'pgrag'::regnamespace and proname = 'search'"
        ).fetchone()
    assert row == (1,)


def test_functions_of_an_earlier_release_that_call_each_other_are_dropped(dsn: str) -> None:
    before = catalogs(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "set role pgrag_owner;"
            "create function pgrag._old_a() returns int language sql begin atomic select 1; end;"
            "create function pgrag._old_b() returns int language sql begin atomic select pgrag._old_a(); end;"
            "update pgrag.installation set digest = 'of an earlier release'"
        )
    install.upgrade(dsn)
    assert catalogs(dsn) == before


def test_a_search_that_an_upgrade_meets_halfway_goes_on(dsn: str) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as admin,
        psycopg.connect(dsn) as reader,
        ThreadPoolExecutor(1) as aside,
    ):
        admin.execute("update pgrag.installation set digest = 'of an earlier release'")
        reader.execute("select from pgrag.posting")
        upgraded = aside.submit(install.upgrade, dsn)
        # The reader has posting and wants chunk; the upgrade has chunk, at times, and wants posting.
        while admin.execute(
            "select count(*) from pg_locks where not granted and relation = 'pgrag.posting'::regclass"
        ).fetchone() == (0,):
            assert not upgraded.done()
        reader.execute("select from pgrag.chunk")
        reader.rollback()
        assert upgraded.result(60).changed is True


def test_tables_that_stay_in_use_are_said_and_not_waited_for_forever(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "LOCK_TIMEOUT_MS", 10)
    monkeypatch.setattr(install, "LOCK_ATTEMPTS", 3)
    with psycopg.connect(dsn) as admin, psycopg.connect(dsn) as reader:
        admin.execute("update pgrag.installation set digest = 'of an earlier release'")
        admin.commit()
        reader.execute("select from pgrag.posting")
        with pytest.raises(InstallError, match="the tables are in use"):
            install.upgrade(dsn)


def test_twenty_installers_at_once_agree(new_database: Callable[..., str]) -> None:
    dsn = new_database()

    def install_it(_: int) -> tuple[bool, bool]:
        return install.init(dsn).changed, install.upgrade(dsn).changed

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(install_it, range(20)))
    assert (sum(prepared for prepared, _ in results), sum(upgraded for _, upgraded in results)) == (1, 1)


def test_a_newer_database_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("update pgrag.alembic_version set version_num = '9999'")
    with pytest.raises(InstallError, match=r"newer than pgrag .* revision 9999"):
        install.upgrade(dsn)


def test_an_unprepared_database_is_refused(new_database: Callable[..., str]) -> None:
    with pytest.raises(InstallError, match="isn't prepared") as caught:
        install.upgrade(new_database())
    assert caught.value.hint == "As an administrator: pgrag init"


def test_a_stranger_may_not_upgrade(dsn: str) -> None:
    with pytest.raises(InstallError, match="only a member of pgrag_owner"):
        install.upgrade(login_dsn(dsn, "pgrag_test_nobody"))


def test_a_role_that_may_create_roles_installs_without_superuser(
    roles: None, server_dsn: str, new_database: Callable[..., str]
) -> None:
    dsn = new_database()
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("create extension vector")
        admin.execute("create role pgrag_test_admin login createrole password 'pgrag_test'")
        name = admin.info.dbname
        admin.execute(sql.SQL("alter database {} owner to pgrag_test_admin").format(sql.Identifier(name)))
        existing = [
            r
            for (r,) in admin.execute(
                "select rolname from pg_roles where rolname ~ '^pgrag_(owner|reader|app|writer)$'"
            )
        ]
        for role in existing:
            admin.execute(
                sql.SQL("grant {} to pgrag_test_admin with admin option").format(sql.Identifier(role))
            )
        try:
            administrator = login_dsn(dsn, "pgrag_test_admin")
            assert install.init(administrator).changed is True
            assert install.upgrade(administrator).changed is True
        finally:
            admin.execute(sql.SQL("alter database {} owner to current_user").format(sql.Identifier(name)))
            admin.execute("drop owned by pgrag_test_admin")
            admin.execute("drop role pgrag_test_admin")


def test_pgvector_may_be_in_a_schema_of_its_own(roles: None, new_database: Callable[..., str]) -> None:
    dsn = new_database()
    with psycopg.connect(dsn) as admin:
        admin.execute("create schema elsewhere; create extension vector schema elsewhere")
    install.init(dsn)
    install.upgrade(dsn)
    with psycopg.connect(dsn) as admin:
        admin.execute("grant pgrag_app to pgrag_test_app")
        admin.execute("select pgrag.create_collection('docs')")
        admin.execute("select pgrag.create_space('toy', 'toy-model', 3)")
        admin.execute("select pgrag.attach_space('docs', 'toy')")
        admin.execute("select pgrag.put_document('docs', 'x', 'about x', array['public'])")
        admin.execute(
            "select pgrag.store_vectors('toy', array_agg(chunk_id), array_agg(hash), array['[1,0,0]'])"
            " from pgrag.claim_chunks('toy')"
        )
        admin.execute("select pgrag.activate_space('docs', 'toy')")
    with pgrag.connect(login_dsn(dsn, "pgrag_test_app")) as store:
        (hit,) = store.as_principals("user:ana").search("nothing", embedding=[1, 0, 0])
    assert (hit.uri, hit.dense_distance) == ("x", 0)


def test_a_role_that_may_not_create_extensions_is_told_who_must(
    roles: None, new_database: Callable[..., str]
) -> None:
    with pytest.raises(InstallError, match="may not create extensions") as caught:
        install.init(login_dsn(new_database(), "pgrag_test_nobody"))
    assert caught.value.hint == "As an administrator: create extension vector"


def test_no_server_is_said_with_what_to_do() -> None:
    with pytest.raises(ConnectionFailed, match="no database answers") as caught:
        install.init("host=/nowhere/at/all dbname=x user=x")
    assert caught.value.hint is not None
    assert "pgrag up" in caught.value.hint


def test_an_old_pgvector_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "OLDEST_VECTOR", (99, 0, 0))
    with pytest.raises(InstallError, match=r"needs pgvector 99.0.0 or newer, this database has \d") as caught:
        install.init(dsn)
    assert caught.value.hint is not None
    assert "alter extension vector update" in caught.value.hint


def test_a_schema_in_which_anybody_may_create_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("grant create on schema public to public")
    with pytest.raises(InstallError, match='anybody may create functions in the schema "public"') as caught:
        install.init(dsn)
    assert caught.value.hint == "revoke create on schema public from public"


def test_a_server_that_keeps_plans_across_roles_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(dsn) as connection:
        major, minor = divmod(connection.info.server_version, 10_000)
    monkeypatch.setattr(install, "OLDEST_MINORS", {major: 10_000 * major + minor + 1})
    with pytest.raises(InstallError, match=rf"PostgreSQL {major}\.{minor} may use one role's plan") as caught:
        install.init(dsn)
    assert caught.value.hint == f"Upgrade the server to {major}.{minor + 1} or a later {major}."


def test_an_old_server_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "OLDEST_SERVER", 99)
    with pytest.raises(InstallError, match=r"needs PostgreSQL 99 or newer, this server is \d\d"):
        install.init(dsn)
