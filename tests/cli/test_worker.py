"""``pgrag worker`` as a process: what signals do to it, and what it prints."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _cli import pgrag
from numpy.typing import NDArray

from pgrag.worker import drain

SPACE = "slow"
CHUNKS = 5
# The command with an encoder that says when it is asked, and answers when told to.
PROGRAM = """
import numpy, sys, typer
import pgrag_cli.worker

class Encoder:
    name = "slow"

    def encode_documents(self, texts):
        print("encoding", len(texts), file=sys.stderr, flush=True)
        sys.stdin.readline()
        return numpy.array([[0.6, 0.8]] * len(texts), numpy.float32)

pgrag_cli.worker.load_encoder = lambda model, space: Encoder()
typer.run(pgrag_cli.worker.worker)
"""


class Encoder:
    """The same without waiting."""

    def encode_documents(self, texts: Any) -> NDArray[np.float32]:
        return np.array([[0.6, 0.8]] * len(texts), np.float32)


class Worker:
    """The process, and the two ends that the test holds."""

    def __init__(self, dsn: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=os.environ | {"PGRAG_DATABASE_URL": dsn, "COLUMNS": "200"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def reads(self, line: str) -> None:
        """Wait until it prints this line."""
        assert self.process.stderr is not None
        seen = []
        for text in self.process.stderr:
            seen.append(text)
            if text.strip() == line:
                return
        raise AssertionError("".join(seen))

    def answers(self) -> None:
        """Let the encoder finish one batch."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ends(self) -> tuple[int, str, str]:
        """Let every further batch finish too; return exit code, stdout and the rest of stderr."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def queued(db: Any) -> Any:
    db.execute("select pgrag.create_space(%s, 'slow', 2)", (SPACE,))
    for number in range(CHUNKS):
        db.put(f"{number}.md", f"Note number {number}.")
    db.execute("select pgrag.attach_space('docs', %s)", (SPACE,))
    return db


@pytest.fixture
def start(queued: Any, dsn: str) -> Iterator[Any]:
    workers: list[Worker] = []

    def start(*arguments: str) -> Worker:
        workers.append(Worker(dsn, *arguments))
        return workers[-1]

    yield start
    for worker in workers:
        worker.process.kill()
        worker.process.communicate()


def waiting(db: Any) -> int:
    return int(db.value("select count(*) from pgrag.embed_queue"))


def test_once_empties_the_queue_and_says_what_it_did(queued: Any, start: Any) -> None:
    code, out, err = start("--once").ends()
    assert code == 0, err
    assert out == f"{CHUNKS} vectors stored, 0 attempts failed, 0 chunks had changed\n"
    assert waiting(queued) == 0


def test_json_is_one_object_on_stdout(start: Any) -> None:
    _, out, _ = start("--once", "--json").ends()
    assert json.loads(out) == {"stored": CHUNKS, "failed": 0, "passed_over": 0, "copied": 0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_it_finish_its_batch_and_no_other(
    queued: Any, start: Any, number: signal.Signals
) -> None:
    worker = start("--batch", "2")
    worker.reads("encoding 2")
    worker.process.send_signal(number)
    worker.answers()
    code, out, err = worker.ends()
    assert code == 0, err
    assert out.startswith("2 vectors stored")
    assert waiting(queued) == CHUNKS - 2


def test_a_second_signal_ends_it_at_once(queued: Any, start: Any) -> None:
    worker = start()
    worker.reads(f"encoding {CHUNKS}")
    worker.process.send_signal(signal.SIGTERM)
    for _ in range(100):  # two that come together count as one
        worker.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            worker.process.wait(0.1)
            break
    assert worker.process.returncode == -signal.SIGTERM
    assert waiting(queued) == CHUNKS


def test_a_signal_ends_its_waiting(start: Any) -> None:
    worker = start("--idle-seconds", "3600")
    worker.reads(f"encoding {CHUNKS}")
    worker.answers()
    worker.reads(f"{CHUNKS} vectors stored, 0 attempts failed, 0 chunks had changed")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.ends()[0] == 0


def test_after_kill_9_another_worker_finishes_when_the_lease_is_over(queued: Any, start: Any) -> None:
    worker = start("--lease-seconds", "300")
    worker.reads(f"encoding {CHUNKS}")
    worker.process.kill()
    worker.process.wait()
    writer = queued.connect("pgrag_test_writer")
    assert drain(writer, Encoder(), space=SPACE) == 0
    queued.execute("update pgrag.embed_queue set leased_until = leased_until - interval '300 seconds'")
    assert drain(writer, Encoder(), space=SPACE) == CHUNKS
    assert waiting(queued) == 0


def test_the_lease_is_as_long_as_asked(queued: Any, start: Any) -> None:
    start("--lease-seconds", "90").reads(f"encoding {CHUNKS}")
    left = "select max(extract(epoch from leased_until - now())) from pgrag.embed_queue"
    assert 60 < queued.value(left) <= 90


def test_the_heartbeat_is_touched(start: Any, tmp_path: Path) -> None:
    heartbeat = tmp_path / "worker"
    start("--once", "--heartbeat", str(heartbeat)).ends()
    assert heartbeat.exists()


def test_a_failure_is_named_and_the_exit_code_is_1(queued: Any, start: Any) -> None:
    # An encoder of another dimension than the space's.
    queued.execute("update pgrag.space set dimension = 3, model_dimension = 3 where name = %s", (SPACE,))
    code, out, err = start("--once").ends()
    assert code == 1
    assert out.startswith(f"0 vectors stored, {CHUNKS} attempts failed")
    assert (
        len(re.findall(r'^chunk \d+: space "slow" holds vectors of slow of dimension 3', err, re.M)) == CHUNKS
    )


def test_another_space_than_the_encoders_needs_its_model(dsn: str) -> None:
    from pgrag.errors import PgragError
    from pgrag_cli.worker import worker

    with pytest.raises(PgragError, match='space "other" is not that of the shipped encoder'):
        worker(space="other", database_url=dsn)


def test_without_an_encoder_it_merges_the_index_and_needs_no_space(db: Any) -> None:
    for number in range(5):
        db.put(f"{number}.md", "pump station")
    done = pgrag(db.dsn, "worker", "--no-encoder", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert db.value("select count(*) from pgrag.posting") == len({"pump", "station"})


def test_copies_of_a_text_are_counted_apart(queued: Any, start: Any) -> None:
    start("--once").ends()
    queued.put("copy.md", "Note number 0.")
    out = start("--once").ends()[1]
    assert out == "1 vectors stored (1 of a text that had one), 0 attempts failed, 0 chunks had changed\n"


def test_without_an_encoder_no_model_may_be_named(db: Any) -> None:
    done = pgrag(db.dsn, "worker", "--no-encoder", "--model", "x")
    assert done.returncode == 2
