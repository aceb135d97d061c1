"""A whole change of model while people search and documents arrive: no error, no empty answer, never a mix of spaces.

The old space is static, so each document has its vector at commit. The new one is filled by workers, of which one is
killed in the middle, and its queries are embedded in SQL as well: so a plain search can be asked all the time, and its
distances say which space answered.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database
from _token_tables import WORDS, TableEncoder, make_space

from pgrag.change import Change, ChangeProgress, change_model
from pgrag.spaces import pause_space, resume_space
from pgrag.worker import drain

OLD, NEW = TableEncoder("old", 16, seed=1), TableEncoder("new", 24, seed=2)
DOCUMENTS = 120
SEARCHERS = 3
WEIGHTS = ('{"lexical": 1, "dense": 1}', '{"lexical": 0, "dense": 1}')
# halfvec keeps 11 bits of each number.
ABSOLUTE = 4 * 2**-11
# A worker in a process of its own that says what it has claimed, and goes on when told to.
WORKER = """
import sys
from datetime import timedelta
import psycopg
from _token_tables import TableEncoder
from pgrag.worker import drain

class Encoder(TableEncoder):
    def encode_documents(self, texts):
        print(len(texts), flush=True)
        sys.stdin.readline()
        return super().encode_documents(texts)

with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    drain(connection, Encoder("new", 24, seed=2), space="new", batch=8, lease=timedelta(seconds=float(sys.argv[2])))
"""


def text_of(number: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=6)) + "."


@dataclass(frozen=True)
class Answer:
    """What one search found: text and distance of each passage that the dense arm had."""

    query: str
    rows: tuple[tuple[str, float], ...]

    def spaces(self) -> set[str]:
        """The spaces in which every passage has the distance that it was found at."""
        return {
            encoder.name
            for encoder in (OLD, NEW)
            if all(
                abs(encoder.distance(self.query, text) - distance) < ABSOLUTE for text, distance in self.rows
            )
        }


class Loop:
    """A thread that does something again and again, on a connection of its own, until the end or an error."""

    def __init__(
        self, dsn: str, once: Callable[[psycopg.Connection[Any], random.Random], None], seed: int
    ) -> None:
        self.turns = 0
        self.error: BaseException | None = None
        self._ended = threading.Event()
        self._turned = threading.Condition()
        self._thread = threading.Thread(target=self._run, args=(dsn, once, seed))
        self._thread.start()

    def _run(
        self, dsn: str, once: Callable[[psycopg.Connection[Any], random.Random], None], seed: int
    ) -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                drawn = random.Random(seed)
                while not self._ended.is_set():
                    once(connection, drawn)
                    with self._turned:
                        self.turns += 1
                        self._turned.notify_all()
        except BaseException as error:
            self.error = error
            with self._turned:
                self._turned.notify_all()

    def reach(self, turns: int) -> None:
        """Wait until it has gone round so many times."""
        with self._turned:
            assert self._turned.wait_for(lambda: self.error is not None or self.turns >= turns, timeout=60)
        self.check()

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


class People:
    """Those who search, those who write, and what the former were told, in order."""

    def __init__(self, dsn: str) -> None:
        self.answers: list[list[Answer]] = [[] for _ in range(SEARCHERS)]
        self._dsn = dsn
        self.searchers = [Loop(dsn, self._search(told), seed) for seed, told in enumerate(self.answers)]
        self.writers = [Loop(dsn, self._write(nth), 100 + nth) for nth in range(2)]

    def go_on(self, times: int = 10) -> None:
        """Wait until everybody has done so many things more."""
        for loop, turns in [(loop, loop.turns + times) for loop in (*self.searchers, *self.writers)]:
            loop.reach(turns)

    def end(self) -> None:
        for loop in (*self.searchers, *self.writers):
            loop.end()

    def check(self) -> None:
        for loop in (*self.searchers, *self.writers):
            loop.check()

    def _search(self, told: list[Answer]) -> Callable[[psycopg.Connection[Any], random.Random], None]:
        def once(connection: psycopg.Connection[Any], drawn: random.Random) -> None:
            query = " ".join(drawn.choices(WORDS, k=3))
            with connection.transaction():
                connection.execute("set local role pgrag_app")
                connection.execute("select pgrag.act_as('public')")
                rows = connection.execute(
                    "select content, dense_distance from pgrag.search(%s, 5, weights => %s)",
                    (query, drawn.choice(WEIGHTS)),
                ).fetchall()
            told.append(Answer(query, tuple((text, found) for text, found in rows if found is not None)))

        return once

    def _write(self, nth: int) -> Callable[[psycopg.Connection[Any], random.Random], None]:
        def once(connection: psycopg.Connection[Any], drawn: random.Random) -> None:
            uri = f"written-{nth}-{drawn.randrange(10)}"
            if drawn.random() < 0.2:
                connection.execute("select pgrag.delete_document('docs', %s)", (uri,))
            else:
                connection.execute(
                    "select pgrag.put_document('docs', %s, %s, '{public}')",
                    (uri, " ".join(drawn.choices(WORDS, k=6)) + "."),
                )

        return once


@pytest.fixture
def served(db: Database) -> Database:
    """Documents that the space ``old`` answers for, judged queries, and the space ``new``, attached and empty."""
    db.execute("select pgrag.create_principals('public')")
    make_space(db, OLD, kind="static")
    make_space(db, NEW, kind="external")
    db.execute("select pgrag.attach_space('docs', 'old')")
    db.load([text_of(number) for number in range(DOCUMENTS)])
    drain(db.admin, OLD, space="old")
    db.execute("select pgrag.activate_space('docs', 'old')")
    ids = [f"{number:06}" for number in range(20)]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (ids, [text_of(int(one)) for one in ids], json.dumps([[]] * len(ids)), ids, ids, [1] * len(ids)),
    )
    return db


@pytest.fixture
def people(served: Database) -> Iterator[People]:
    people = People(served.dsn)
    yield people
    people.end()


@pytest.fixture
def worker(served: Database) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(lease_seconds: float) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER, served.dsn, str(lease_seconds)],
                cwd=Path(__file__).parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def claimed(process: subprocess.Popen[str]) -> int:
    """Wait until a worker has claimed its next batch, and is encoding."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def tell(process: subprocess.Popen[str], batches: int) -> None:
    """Let it finish so many batches, claimed or to come."""
    assert process.stdin is not None
    process.stdin.write("\n" * batches)
    process.stdin.flush()


def answering(db: Database) -> Any:
    return db.value("select space from pgrag.collection_settings('docs')")


def test_nobody_notices_a_change_of_model_and_back(
    served: Database, people: People, worker: Callable[[float], subprocess.Popen[str]]
) -> None:
    db = served
    connection = db.connect()
    people.go_on()
    db.execute("select pgrag.attach_space('docs', 'new')")

    # A worker is killed while it encodes its second batch.
    first = worker(1)
    assert claimed(first) == 8
    tell(first, 1)
    assert claimed(first) == 8
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    people.go_on()

    # Paused, nobody is given anything; and the change that is begun now waits.
    assert pause_space(db.admin, "new")
    assert drain(db.connect("pgrag_test_writer"), NEW, space="new") == 0
    paused = threading.Event()
    changes: list[Change | BaseException] = []

    def show(progress: ChangeProgress) -> None:
        if progress.paused:
            paused.set()

    def change() -> None:
        try:
            changes.append(change_model(connection, "docs", NEW, batch=8, on_progress=show))
        except BaseException as error:
            changes.append(error)

    running = threading.Thread(target=change)
    running.start()
    assert paused.wait(60)
    people.go_on()
    assert answering(db) == "old"

    # Another worker joins in on the rest, with all the batches it can get.
    assert resume_space(db.admin, "new")
    second = worker(60)
    tell(second, 10_000)
    running.join(timeout=120)
    assert not running.is_alive()
    (changed,) = changes
    if isinstance(changed, BaseException):
        raise changed
    assert (changed.before, changed.activated) == ("old", True)
    assert changed.verdict is not None
    assert changed.verdict.passed
    assert answering(db) == "new"
    people.go_on()

    # Back in one statement, since documents have landed in both all the time; and there again, when a worker has been
    # by, though it is never done: the old space has the vector of a document at once.
    db.execute("select pgrag.activate_space('docs', 'old')")
    people.go_on()
    drain(connection, NEW, space="new")
    db.execute("select pgrag.activate_space('docs', 'new', lag => '1 minute')")
    people.go_on()
    people.end()
    people.check()

    told = [answer for each in people.answers for answer in each]
    assert [answer for answer in told if not answer.rows] == []
    assert [answer for answer in told if len(answer.spaces()) != 1] == []
    # Each was answered by the old space, the new, the old and the new again: a switch is never seen twice.
    for each in people.answers:
        seen = [answer.spaces().pop() for answer in each]
        order = [name for name, before in zip(seen, [None, *seen], strict=False) if name != before]
        assert order == ["old", "new", "old", "new"]

    # And each space holds what it should: the vector of every passage, by its own model.
    drain(db.admin, NEW, space="new")
    for encoder in (OLD, NEW):
        space_id = db.value("select space_id from pgrag.space where name = %s", (encoder.name,))
        rows = db.execute(
            f"select c.content, e.embedding::text from pgrag.chunk as c"
            f" left join pgrag.embedding_{space_id} as e using (collection_id, chunk_id)"
        )
        assert len(rows) >= DOCUMENTS
        for text, vector in rows:
            made = np.array(vector.strip("[]").split(","), np.float32)
            assert made == pytest.approx(encoder.encode_documents([text])[0], abs=2**-11)


def test_a_mixed_answer_would_be_seen() -> None:
    query, (one, other) = WORDS[0], (text_of(1), text_of(2))
    both = Answer(query, ((one, OLD.distance(query, one)), (other, NEW.distance(query, other))))
    assert both.spaces() == set()
    assert Answer(query, ((one, OLD.distance(query, one)),)).spaces() == {"old"}
