"""The lexical index under writers, a compactor and a reader at once, and after a merge that was cut off in the middle."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import _index
import psycopg
import pytest
from _index import Document, assert_index_is_right
from _pgrag import Database

from pgrag._server_account import account_for
from pgrag._server_process import orphans, wait_until_gone
from pgrag.install import init, upgrade
from pgrag.server import EmbeddedServer

CALLERS = ("user:all", "user:ana", "user:none")
READERS: tuple[tuple[str, ...], ...] = (("user:all",), ("user:all", "user:ana"), ("user:all", "!user:ana"))

COMPACTING = (
    "select count(*) from pg_stat_activity where query like '%%pgrag.compact%%' and wait_event_type = 'Lock'"
    " and datname = current_database() and pid <> pg_backend_pid()"
)


def assert_searches_are_right(connection: _index.Connection, random_: random.Random) -> None:
    """Searches of every caller are BM25 over what they see, in one snapshot."""
    readers = dict(
        connection.execute(
            """select d.uri, array(
                select case when e.allow then e.principal else '!' || e.principal end
                from pgrag.acl_entry as e where e.acl_id = d.acl_id)
            from pgrag.document as d"""
        )
    )
    everything = _index.passages(connection)
    for caller in CALLERS:
        visible = [p for p in everything if caller in readers[p.uri] and f"!{caller}" not in readers[p.uri]]
        query, k = _index.random_query(random_), random_.choice([1, 10, 50])
        _index.assert_found(_index.search(connection, [caller], query, k), _index.score(visible, query), k)


class Pace:
    """Lets others do one thing for every so many of the writers, so that they are at it from beginning to end."""

    def __init__(self, writes: int) -> None:
        self.writes = writes
        self._done = threading.Semaphore(0)

    def went_on(self) -> None:
        self._done.release()

    def wait(self) -> None:
        for _ in range(self.writes):
            assert self._done.acquire(timeout=60)


def write(connection: _index.Connection, name: str, operations: int, paces: list[Pace]) -> set[str]:
    """Do so many things to documents of one's own and of everybody, and return which of one's own are left."""
    random_ = random.Random(name)
    left: set[str] = set()
    for _ in range(operations):
        for pace in paces:
            pace.went_on()
        own = random_.random() < 0.7
        uri = f"{name}{random_.randint(0, 9)}" if own else f"shared{random_.randint(0, 3)}"
        readers = list(random_.choice(READERS))
        text = _index.sentence(random_, random_.randint(1, 60))
        match random_.choice(["put", "put", "put", "load", "move", "delete", "undo"]):
            case "put":
                connection.execute("select pgrag.put_document('docs', %s, %s, %s)", (uri, text, readers))
                left |= {uri} if own else set()
            case "load":
                more = [f"{name}{n}" for n in range(random_.randint(1, 9))]
                _index.load(connection, [Document(u, (text, u), tuple(readers)) for u in more])
                left |= set(more)
            case "move":
                connection.execute("select pgrag.set_readers('docs', %s, %s)", (uri, readers))
            case "delete":
                connection.execute("select pgrag.delete_document('docs', %s)", (uri,))
                left -= {uri}
            case "undo":
                with connection.transaction(force_rollback=True):
                    connection.execute("select pgrag.put_document('docs', %s, %s, %s)", (uri, text, readers))
                    connection.execute("select pgrag.delete_document('docs', %s)", (f"{name}0",))
    return left


def compact(connection: _index.Connection, operations: int, pace: Pace) -> None:
    random_ = random.Random(operations)
    for n in range(operations):
        pace.wait()
        connection.execute("select pgrag.compact(%s)", (random_.choice([None, 2, 10, 100]),))
        if n % 30 == 29:
            connection.execute("select pgrag.rebuild_postings('docs')")


def read(connection: _index.Connection, operations: int, pace: Pace) -> None:
    random_ = random.Random(operations)
    for _ in range(operations):
        pace.wait()
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            assert_index_is_right(connection, whole=False)
            assert_searches_are_right(connection, random_)


def fill(connection: _index.Connection, documents: int = 300, batches: int = 6) -> None:
    """A log of several runs a term, some of them negative, under three ACLs."""
    connection.execute("select pgrag.create_principals(variadic %s::text[])", (list(CALLERS),))
    random_ = random.Random(0)
    for batch in range(batches):
        made = [
            Document(f"{n:05}", (_index.sentence(random_, 20),), READERS[n % len(READERS)])
            for n in range(batch, documents, 2)
        ]
        _index.load(connection, made)


def test_two_writers_a_compactor_and_a_reader_at_once(db: Database) -> None:
    fill(db.admin, 60)
    start = threading.Barrier(5)

    def together(work: Callable[..., Any], *arguments: Any) -> Any:
        connection = db.connect()
        start.wait(timeout=60)
        return work(connection, *arguments)

    paces = [Pace(2), Pace(3), Pace(12)]
    operations = 300
    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(together, write, name, operations, paces) for name in ("ana", "bo")]
        others = [
            pool.submit(together, work, 2 * operations // pace.writes, pace)
            for work, pace in zip((compact, compact, read), paces, strict=True)
        ]
        left = set().union(*(writer.result() for writer in writers))
        for other in others:
            other.result()
    assert_index_is_right(db.admin)
    found = {str(uri) for (uri,) in db.execute("select uri from pgrag.document")}
    assert {uri for uri in found if uri.startswith(("ana", "bo"))} == left
    random_ = random.Random(1)
    for _ in range(20):
        assert_searches_are_right(db.admin, random_)
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin)
    assert_searches_are_right(db.admin, random_)


def write_hidden(connection: _index.Connection, operations: int, paces: list[Pace]) -> None:
    """Put, move and delete documents that Ana may not read."""
    random_ = random.Random(0)
    for _ in range(operations):
        for pace in paces:
            pace.went_on()
        uri, readers = (
            f"hidden{random_.randint(0, 20)}",
            list(random_.choice([("user:all",), ("user:none",)])),
        )
        if random_.random() < 0.8:
            text = _index.sentence(random_, random_.randint(1, 60))
            connection.execute("select pgrag.put_document('docs', %s, %s, %s)", (uri, text, readers))
        else:
            connection.execute("select pgrag.delete_document('docs', %s)", (uri,))


def test_who_may_not_read_what_others_write_finds_the_same_bits_all_the_while(db: Database) -> None:
    fill(db.admin, 200)
    random_ = random.Random(0)
    queries = [_index.random_query(random_) for _ in range(12)]
    before = [_index.search(db.admin, ["user:ana"], query, 50) for query in queries]
    paces = [Pace(2), Pace(3)]
    operations = 300

    def look(connection: _index.Connection, times: int, pace: Pace) -> None:
        for n in range(times):
            pace.wait()
            rows = _index.search(connection, ["user:ana"], queries[n % 12], 50)
            assert rows == before[n % 12], queries[n % 12]

    with ThreadPoolExecutor(3) as pool:
        every = [
            pool.submit(write_hidden, db.connect(), operations, paces),
            pool.submit(compact, db.connect(), operations // 2, paces[0]),
            pool.submit(look, db.connect(), operations // 3, paces[1]),
        ]
        for one in every:
            one.result()
    assert any(before)
    assert_index_is_right(db.admin)


@contextmanager
def compaction_in_the_middle(dsn: str) -> Iterator[int]:
    """Yield the pid of a backend that merges, and waits for a table that somebody else holds."""
    with (
        psycopg.connect(dsn) as holder,
        psycopg.connect(dsn, autocommit=True) as compactor,
        psycopg.connect(dsn, autocommit=True) as watcher,
    ):
        holder.execute("lock table pgrag.posting in share mode")
        ended: list[psycopg.Error | None] = []

        def run() -> None:
            try:
                compactor.execute("select pgrag.compact()")
                ended.append(None)
            except psycopg.Error as error:
                ended.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        pause = threading.Event()
        for _ in range(3000):
            if watcher.execute(COMPACTING).fetchone() == (1,):
                break
            pause.wait(0.01)
        else:
            pytest.fail("the merge never waited")
        yield compactor.info.backend_pid
        thread.join(timeout=60)
        assert [type(error) for error in ended] != [type(None)], "the merge ended as if nothing had happened"
        with suppress(psycopg.Error):
            holder.rollback()


@pytest.mark.parametrize("how", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_compaction_that_is_stopped_in_the_middle_changes_nothing(db: Database, how: str) -> None:
    fill(db.admin)
    before = db.execute("select ctid from pgrag.posting order by ctid")
    with compaction_in_the_middle(db.dsn) as pid:
        assert db.value(f"select {how}(%s)", (pid,))
    assert db.execute("select ctid from pgrag.posting order by ctid") == before
    assert_index_is_right(db.admin)
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin)
    assert len(db.execute("select ctid from pgrag.posting")) < len(before)


def test_a_compaction_that_runs_out_of_time_changes_nothing(db: Database) -> None:
    fill(db.admin)
    other = db.connect()
    stopped = 0
    for ms in (1, 2, 4, 8, 16, 32):
        other.execute(f"set statement_timeout = {ms}")
        try:
            other.execute("select pgrag.compact()")
        except psycopg.errors.QueryCanceled:
            stopped += 1
        assert_index_is_right(db.admin, whole=False)
    assert stopped > 0
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin)


def test_a_compaction_that_is_rolled_back_changes_nothing(db: Database) -> None:
    fill(db.admin)
    before = db.execute("select ctid from pgrag.posting order by ctid")
    with db.admin.transaction(force_rollback=True):
        db.execute("select pgrag.compact()")
        assert_index_is_right(db.admin, whole=False)
    assert db.execute("select ctid from pgrag.posting order by ctid") == before
    assert_index_is_right(db.admin)


def test_a_compaction_does_not_hold_up_a_writer_or_a_reader(db: Database) -> None:
    fill(db.admin)
    other = db.connect("pgrag_test_writer")
    other.execute("set lock_timeout = '2s'")
    with db.admin.transaction():
        db.execute("select pgrag.compact()")
        other.execute("select pgrag.put_document('docs', '00001', 'kado kadu lomo', array['user:all'])")
        other.execute("select pgrag.delete_document('docs', '00002')")
        other.execute("select pgrag.set_readers('docs', '00003', array['user:ana'])")
        assert db.rows_as("user:ana", "select count(*) > 0 from pgrag.search_lexical('kado')") == [(True,)]
    assert_index_is_right(db.admin)
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin)


# Kill -9, on a server of one's own


@pytest.fixture
def server(place: Path, postgres_bindir: Path | None) -> EmbeddedServer:
    """A server with pgrag and a collection; it doesn't wait for the disk, since only processes die here."""
    server = EmbeddedServer(place / "data", postgres_bindir, settings={"fsync": "off"})
    dsn = server.start()
    init(dsn)
    upgrade(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pgrag.create_collection('docs')")
        fill(connection, 200)
    return server


def kill_9(server: EmbeddedServer) -> None:
    pid = server.status().pid
    assert pid is not None
    for one in {pid, *orphans(server.data, account_for(server.data))}:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
        assert wait_until_gone(one, 20)


def test_a_server_that_is_killed_in_the_middle_of_a_compaction_loses_and_doubles_nothing(
    server: EmbeddedServer,
) -> None:
    with suppress(psycopg.OperationalError), compaction_in_the_middle(server.start()):
        kill_9(server)
    with psycopg.connect(server.start(), autocommit=True) as connection:
        assert_index_is_right(connection)
        connection.execute("select pgrag.compact()")
        assert_index_is_right(connection)


def test_a_server_that_is_killed_while_it_writes_and_compacts_keeps_what_it_acknowledged(
    server: EmbeddedServer,
) -> None:
    random_ = random.Random(0)
    for turn in range(3):
        dsn = server.start()
        acknowledged: list[str] = []
        enough = threading.Event()

        def work(dsn: str, turn: int, acknowledged: list[str], enough: threading.Event) -> None:
            with suppress(psycopg.Error), psycopg.connect(dsn, autocommit=True) as connection:
                for n in range(100_000):
                    document = Document(f"turn{turn}-{n}", (_index.sentence(random_, 30),), ("user:all",))
                    _index.load(connection, [document])
                    acknowledged.append(document.uri)
                    connection.execute("delete from pgrag.document where uri = %s", (f"{n + 60 * turn:05}",))
                    connection.execute("select pgrag.compact(%s)", (random_.choice([None, 50]),))
                    if n == 12 + 7 * turn:
                        enough.set()

        thread = threading.Thread(target=work, args=(dsn, turn, acknowledged, enough))
        thread.start()
        assert enough.wait(60)
        kill_9(server)
        thread.join(timeout=60)
        with psycopg.connect(server.start(), autocommit=True) as connection:
            there = {str(uri) for (uri,) in connection.execute("select uri from pgrag.document")}
            assert set(acknowledged) <= there
            assert_index_is_right(connection)
            assert_searches_are_right(connection, random_)
