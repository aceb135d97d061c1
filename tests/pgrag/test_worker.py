"""The worker against the real queue, with an encoder whose vectors are made from the text's hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from pgrag.embed import StaticEncoder
from pgrag.errors import PgragError, Refused
from pgrag.worker import EncoderError, WorkProgress, drain, work

DIMENSION = 8
SPACE = "hash"
# Each is a chunk of its own: a document a word.
WORDS = ("alder", "birch", "cedar", "damson", "elder")


def vector_of(text: str) -> NDArray[np.float32]:
    """Eight numbers that depend on the text only, of length 1."""
    numbers = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint32).astype(np.float64)
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


class HashEncoder:
    """Remembers what it was asked; ``broken`` words raise, ``odd`` ones get the given vector."""

    def __init__(self, *, broken: Sequence[str] = (), odd: dict[str, Any] | None = None) -> None:
        self.broken = broken
        self.odd = odd or {}
        self.batches: list[list[str]] = []

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(list(texts))
        for word in self.broken:
            if any(word in text for text in texts):
                raise RuntimeError(f"can't read {word}")
        rows = [
            next((vector for word, vector in self.odd.items() if word in text), vector_of(text))
            for text in texts
        ]
        return np.array(rows, np.float32).reshape(len(texts), -1)


@pytest.fixture
def queued(db: Any) -> Any:
    """A database whose queue holds one chunk a word for the space ``hash``."""
    db.execute("select pgrag.create_space(%s, 'sha256', %s)", (SPACE, DIMENSION))
    for word in WORDS:
        db.put(f"{word}.md", f"A tree called {word}.")
    assert db.value("select pgrag.attach_space('docs', %s)", (SPACE,)) == len(WORDS)
    return db


@pytest.fixture
def writer(queued: Any) -> psycopg.Connection[Any]:
    connection: psycopg.Connection[Any] = queued.connect("pgrag_test_writer")
    return connection


def vectors(db: Any) -> int:
    space_id = db.value("select space_id from pgrag.space where name = %s", (SPACE,))
    return int(db.value(f"select count(*) from pgrag.embedding_{space_id}"))


def waiting(db: Any) -> int:
    return int(db.value("select count(*) from pgrag.embed_queue"))


def never(_seconds: float) -> bool:
    return False


def test_a_space_is_filled(queued: Any, writer: psycopg.Connection[Any]) -> None:
    assert drain(writer, HashEncoder(), space=SPACE) == len(WORDS)
    assert (vectors(queued), waiting(queued)) == (len(WORDS), 0)


def test_what_is_stored_is_what_the_encoder_made(queued: Any, writer: psycopg.Connection[Any]) -> None:
    encoder = HashEncoder()
    drain(writer, encoder, space=SPACE)
    space_id = queued.value("select space_id from pgrag.space where name = %s", (SPACE,))
    rows = queued.execute(
        f"select c.context || E'\\n' || c.content, e.embedding::text from pgrag.chunk as c"
        f" join pgrag.embedding_{space_id} as e using (collection_id, chunk_id)"
    )
    for text, stored in rows:
        # halfvec keeps 11 bits.
        assert np.array(stored.strip("[]").split(","), float) == pytest.approx(vector_of(text), abs=2**-11)


def test_batches_are_no_larger_than_asked(writer: psycopg.Connection[Any]) -> None:
    encoder = HashEncoder()
    drain(writer, encoder, space=SPACE, batch=2)
    assert [len(batch) for batch in encoder.batches] == [2, 2, 1]


def test_progress_counts_up(writer: psycopg.Connection[Any]) -> None:
    seen: list[WorkProgress] = []
    drain(writer, HashEncoder(), space=SPACE, batch=2, on_progress=seen.append)
    assert seen == [WorkProgress(stored=2), WorkProgress(stored=4), WorkProgress(stored=5)]


def test_the_model_runs_in_no_transaction(queued: Any, writer: psycopg.Connection[Any]) -> None:
    states: list[str] = []

    class Watching(HashEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            query = "select state from pg_stat_activity where pid = %s"
            states.append(queued.value(query, (writer.info.backend_pid,)))
            return super().encode_documents(texts)

    drain(writer, Watching(), space=SPACE)
    assert states == ["idle"]


def test_a_connection_in_a_transaction_is_refused(writer: psycopg.Connection[Any]) -> None:
    with writer.transaction(), pytest.raises(PgragError, match="in a transaction"):
        drain(writer, HashEncoder(), space=SPACE)


def test_a_connection_that_is_not_autocommit_will_do(queued: Any, writer: psycopg.Connection[Any]) -> None:
    writer.autocommit = False
    assert drain(writer, HashEncoder(), space=SPACE) == len(WORDS)
    assert vectors(queued) == len(WORDS)


def test_a_text_that_breaks_the_encoder_costs_no_other_its_vector(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    failures: list[str] = []
    encoder = HashEncoder(broken=["cedar"])
    stored = drain(writer, encoder, space=SPACE, on_failure=lambda _id, reason: failures.append(reason))
    assert (stored, vectors(queued)) == (len(WORDS) - 1, len(WORDS) - 1)
    assert failures == ["RuntimeError: can't read cedar"]
    assert queued.execute("select attempts, error from pgrag.embed_queue") == [(1, failures[0])]


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([float("nan")] * DIMENSION, "its vector is not finite"),
        ([1.0] * DIMENSION, f"length {np.sqrt(DIMENSION)}"),
    ],
)
def test_a_vector_that_cannot_be_stored_costs_no_other_its_own(
    queued: Any, writer: psycopg.Connection[Any], vector: list[float], reason: str
) -> None:
    failures: list[str] = []
    encoder = HashEncoder(odd={"cedar": vector})
    assert (
        drain(writer, encoder, space=SPACE, on_failure=lambda _id, why: failures.append(why))
        == len(WORDS) - 1
    )
    assert len(failures) == 1
    assert reason in failures[0]
    assert waiting(queued) == 1


def test_a_blank_text_leaves_the_queue_and_is_no_failure(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    failures: list[str] = []
    zero = [0.0] * DIMENSION
    queued.put("blank.md", "\u200b")
    encoder = HashEncoder(odd={"\u200b": zero})
    stored = drain(writer, encoder, space=SPACE, on_failure=lambda _id, why: failures.append(why))
    assert (stored, vectors(queued)) == (len(WORDS), len(WORDS))
    assert (failures, waiting(queued)) == ([], 0)


def test_a_text_that_no_token_of_a_static_encoder_is_in_leaves_the_queue_and_is_no_failure(
    hybrid: Any,
) -> None:
    hybrid.put("unknown.md", "\U00013080")  # a hieroglyph
    encoder = StaticEncoder.shipped()
    failures: list[str] = []
    done = drain(
        hybrid.connect("pgrag_test_writer"),
        encoder,
        space=encoder.name,
        on_failure=lambda _id, why: failures.append(why),
    )
    assert (done, failures, waiting(hybrid)) == (0, [], 0)


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([0.0] * DIMENSION, "its vector is zero, though the text is not blank"),
        ([float("inf")] * DIMENSION, "its vector is not finite"),
    ],
)
def test_a_model_without_a_vector_for_a_text_has_failed_until_the_text_is_given_up(
    queued: Any, writer: psycopg.Connection[Any], vector: list[float], reason: str
) -> None:
    for _attempt in range(8):
        drain(writer, HashEncoder(odd={"cedar": vector}), space=SPACE)
        queued.execute("update pgrag.embed_queue set not_before = now() - interval '1 second'")
    assert vectors(queued) == len(WORDS) - 1
    assert queued.execute("select stage, uri, reason from pgrag.failure") == [("embed", "cedar.md", reason)]


@pytest.mark.parametrize("number", [0.0, float("nan")])
def test_a_model_that_has_no_vector_for_anything_stops_the_worker(
    queued: Any, writer: psycopg.Connection[Any], number: float
) -> None:
    encoder = HashEncoder(odd={"": [number] * DIMENSION})
    with pytest.raises(EncoderError, match=f"none of {len(WORDS)} texts has a vector, nor has a plain"):
        drain(writer, encoder, space=SPACE)
    assert queued.execute("select count(*), max(attempts) from pgrag.embed_queue") == [(len(WORDS), 0)]
    assert drain(writer, HashEncoder(), space=SPACE) == len(WORDS)


def test_texts_of_a_batch_that_all_lack_a_vector_are_to_blame_where_a_plain_sentence_has_one(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    encoder = HashEncoder(odd={"A tree called": [0.0] * DIMENSION})
    assert drain(writer, encoder, space=SPACE) == 0
    assert queued.execute("select count(*), max(attempts) from pgrag.embed_queue") == [(len(WORDS), 1)]


def test_an_encoder_of_another_dimension_is_refused_in_the_words_of_the_passport(
    writer: psycopg.Connection[Any],
) -> None:
    reasons: list[str] = []

    class Short(HashEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([[1, 0]] * len(texts), np.float32)

    assert drain(writer, Short(), space=SPACE, on_failure=lambda _id, reason: reasons.append(reason)) == 0
    assert f'"{SPACE}" holds vectors of sha256 of dimension {DIMENSION}, got dimension 2' in reasons[0]


def test_an_encoder_that_always_fails_stops_the_worker(queued: Any, writer: psycopg.Connection[Any]) -> None:
    for number in range(20):
        queued.put(f"{number}.md", f"Another tree, number {number}.")
    encoder = HashEncoder(broken=["tree"])
    with pytest.raises(EncoderError, match="can't read tree"):
        drain(writer, encoder, space=SPACE)
    assert queued.value("select count(*) from pgrag.embed_queue where attempts = 1") == 8
    assert waiting(queued) == len(WORDS) + 20


def test_a_chunk_that_changes_while_it_is_encoded_is_passed_over_and_stays_queued(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    class Slow(HashEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if not self.batches:
                queued.put("cedar.md", "A tree that was called cedar once.")
            return super().encode_documents(texts)

    seen: list[WorkProgress] = []
    encoder = Slow()
    assert drain(writer, encoder, space=SPACE, on_progress=seen.append) == len(WORDS)
    assert seen[0] == WorkProgress(stored=len(WORDS) - 1, passed_over=1)
    assert "was called cedar once" in encoder.batches[-1][0]
    assert (vectors(queued), waiting(queued)) == (len(WORDS), 0)


def test_a_chunk_that_is_deleted_while_it_is_encoded_is_passed_over(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    class Slow(HashEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            queued.execute("select pgrag.delete_document('docs', 'cedar.md')")
            return super().encode_documents(texts)

    assert drain(writer, Slow(), space=SPACE) == len(WORDS) - 1
    assert waiting(queued) == 0


def test_two_workers_never_encode_the_same_chunk(queued: Any, writer: psycopg.Connection[Any]) -> None:
    other = queued.connect("pgrag_test_writer")
    second = HashEncoder()

    class First(HashEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if not self.batches:
                drain(other, second, space=SPACE, batch=2)
            return super().encode_documents(texts)

    first = First()
    drain(writer, first, space=SPACE, batch=2)
    texts = [text for batch in first.batches + second.batches for text in batch]
    assert sorted(texts) == sorted(set(texts))
    assert len(texts) == len(WORDS)


def test_what_a_dead_worker_had_is_free_when_its_lease_is_over(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    lease = timedelta(minutes=5)
    with writer.transaction():
        writer.execute("select pgrag.claim_chunks(%s, 256, %s)", (SPACE, lease))
    assert drain(writer, HashEncoder(), space=SPACE) == 0
    queued.execute("update pgrag.embed_queue set leased_until = leased_until - %s", (lease,))
    assert drain(writer, HashEncoder(), space=SPACE) == len(WORDS)


class Named(HashEncoder):
    """One with a passport."""

    dimension = DIMENSION

    def __init__(self, model: str = "sha256", sha256: str | None = None) -> None:
        super().__init__()
        self.passport = {"model": model, "dimension": DIMENSION} | ({"sha256": sha256} if sha256 else {})


def test_what_a_broken_encoder_had_is_free_at_once_and_no_attempt_is_counted(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    class Down(HashEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise EncoderError("the endpoint is down")

    with pytest.raises(EncoderError, match="the endpoint is down"):
        drain(writer, Down(), space=SPACE)
    assert queued.value("select max(attempts) from pgrag.embed_queue") == 0
    assert drain(writer, HashEncoder(), space=SPACE) == len(WORDS)


def test_copies_of_a_text_are_encoded_once(queued: Any, writer: psycopg.Connection[Any]) -> None:
    for number in range(3):
        queued.put(f"copy{number}.md", "A tree called fir.")
    encoder = HashEncoder()
    assert drain(writer, encoder, space=SPACE) == len(WORDS) + 3
    assert sorted(text for batch in encoder.batches for text in batch if "fir" in text) == [
        "\nA tree called fir."
    ]
    assert (vectors(queued), waiting(queued)) == (len(WORDS) + 3, 0)


def test_a_text_that_the_space_has_is_not_encoded_again(queued: Any, writer: psycopg.Connection[Any]) -> None:
    drain(writer, HashEncoder(), space=SPACE)
    queued.put("copy.md", f"A tree called {WORDS[0]}.")
    encoder = HashEncoder()
    done = work(writer, encoder, space=SPACE, wait=never, once=True)
    assert (encoder.batches, done) == ([], WorkProgress(stored=1, copied=1))
    assert waiting(queued) == 0


def test_copies_in_a_later_batch_are_not_encoded_again(queued: Any, writer: psycopg.Connection[Any]) -> None:
    for number in range(6):
        queued.put(f"copy{number}.md", "A tree called fir.")
    encoder = HashEncoder()
    drain(writer, encoder, space=SPACE, batch=2)
    assert sum("fir" in text for batch in encoder.batches for text in batch) == 1


def test_copies_of_a_text_that_fails_fail_all(queued: Any, writer: psycopg.Connection[Any]) -> None:
    queued.put("copy.md", f"A tree called {WORDS[0]}.")
    failed: list[int] = []
    drain(
        writer,
        HashEncoder(broken=[WORDS[0]]),
        space=SPACE,
        on_failure=lambda chunk_id, _reason: failed.append(chunk_id),
    )
    assert len(failed) == 2
    assert waiting(queued) == 2


def test_short_texts_come_first(queued: Any, writer: psycopg.Connection[Any]) -> None:
    queued.put("long.md", "A tree called " + "very " * 20 + "old.")
    queued.put("short.md", "A tree.")
    encoder = HashEncoder()
    drain(writer, encoder, space=SPACE)
    lengths = [len(text) for text in encoder.batches[0]]
    assert lengths == sorted(lengths)


def test_another_model_is_refused_before_anything_is_encoded(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    encoder = Named(model="md5")
    with pytest.raises(Refused, match=f'"{SPACE}" holds vectors of sha256 .* got those of md5'):
        drain(writer, encoder, space=SPACE)
    assert (encoder.batches, waiting(queued)) == ([], len(WORDS))


def test_other_weights_are_refused_before_anything_is_encoded(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    queued.execute('update pgrag.space set passport = \'{"sha256": "aaaa"}\' where name = %s', (SPACE,))
    encoder = Named(sha256="bbbb")
    with pytest.raises(Refused, match=r"aaaa.* got .*bbbb"):
        work(writer, encoder, space=SPACE, wait=never, once=True)
    assert encoder.batches == []


class Meanwhile(Named):
    """Something happens to its space while it encodes its first batch."""

    def __init__(self, *happens: str, sha256: str | None = None, db: Any) -> None:
        super().__init__(sha256=sha256)
        self.happens = happens
        self.db = db

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = super().encode_documents(texts)
        for statement in self.happens if len(self.batches) == 1 else ():
            self.db.execute(statement)
        return vectors


MADE_ANEW = (
    f"select pgrag.drop_space('{SPACE}')",
    f"select pgrag.create_space('{SPACE}', 'another', {DIMENSION})",
    f"select pgrag.attach_space('docs', '{SPACE}')",
)
OTHER_WEIGHTS = f"update pgrag.space set passport = '{{\"sha256\": \"aaaa\"}}' where name = '{SPACE}'"


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        ((OTHER_WEIGHTS,), "sha256 aaaa, got .* sha256 bbbb"),
        (MADE_ANEW, "vectors of another .* those of sha"),
    ],
)
def test_a_space_that_becomes_another_models_meanwhile_gets_nothing_and_no_text_is_to_blame(
    queued: Any, writer: psycopg.Connection[Any], happens: tuple[str, ...], reason: str
) -> None:
    encoder = Meanwhile(*happens, sha256="bbbb", db=queued)
    with pytest.raises(Refused, match=reason):
        drain(writer, encoder, space=SPACE, batch=2)
    assert (len(encoder.batches), vectors(queued)) == (1, 0)
    assert queued.execute("select count(*), max(attempts) from pgrag.embed_queue") == [(len(WORDS), 0)]


def test_a_space_that_is_made_anew_between_two_batches_is_noticed_before_the_next(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    encoder = Named()

    def make_anew(_progress: WorkProgress) -> None:
        for statement in MADE_ANEW:
            queued.execute(statement)

    with pytest.raises(Refused, match="vectors of another"):
        drain(writer, encoder, space=SPACE, batch=2, on_progress=make_anew)
    assert (len(encoder.batches), waiting(queued)) == (1, len(WORDS))


@pytest.mark.parametrize("sha256", [None, "bbbb"])
def test_a_space_that_is_dropped_meanwhile_is_said_to_be(
    queued: Any, writer: psycopg.Connection[Any], sha256: str | None
) -> None:
    encoder = Meanwhile(f"select pgrag.drop_space('{SPACE}')", sha256=sha256, db=queued)
    with pytest.raises(Refused, match=f'space "{SPACE}" was dropped while it was filled'):
        drain(writer, encoder, space=SPACE)


def test_the_spaces_model_with_its_weights_works(queued: Any, writer: psycopg.Connection[Any]) -> None:
    queued.execute('update pgrag.space set passport = \'{"sha256": "aaaa"}\' where name = %s', (SPACE,))
    assert drain(writer, Named(sha256="aaaa"), space=SPACE) == len(WORDS)


def test_a_space_that_does_not_exist_is_refused(writer: psycopg.Connection[Any]) -> None:
    with pytest.raises(Refused, match='space "nope" does not exist'):
        drain(writer, HashEncoder(), space="nope")


@pytest.mark.parametrize("role", ["pgrag_test_reader", "pgrag_test_app", "pgrag_test_nobody"])
def test_only_a_writer_may_work(queued: Any, role: str) -> None:
    with pytest.raises(PgragError, match="permission denied"):
        drain(queued.connect(role), HashEncoder(), space=SPACE)


def test_once_stops_when_nothing_is_due(queued: Any, writer: psycopg.Connection[Any]) -> None:
    done = work(writer, HashEncoder(), space=SPACE, wait=never, once=True)
    assert done == WorkProgress(stored=len(WORDS))


def test_the_posting_log_is_merged_in_the_quiet(queued: Any, writer: psycopg.Connection[Any]) -> None:
    runs = (
        "select max(n) from"
        " (select count(*) as n from pgrag.posting group by term, collection_id, acl_id) as of_term"
    )
    assert queued.value(runs) == len(WORDS)  # "tree", once a document
    work(writer, HashEncoder(), space=SPACE, wait=never, once=True)
    assert queued.value(runs) == 1


def test_told_to_stop_it_finishes_its_batch_and_takes_no_other(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    encoder = HashEncoder()
    done = work(writer, encoder, space=SPACE, wait=lambda _seconds: bool(encoder.batches), batch=2)
    assert done == WorkProgress(stored=2)
    assert waiting(queued) == len(WORDS) - 2


def test_while_it_waits_new_chunks_arrive_and_are_embedded(
    queued: Any, writer: psycopg.Connection[Any]
) -> None:
    idled: list[float] = []

    def wait(seconds: float) -> bool:
        if seconds == 7.5:
            idled.append(seconds)
            queued.put("fir.md", "A tree called fir.")
        return len(idled) == 2

    done = work(writer, HashEncoder(), space=SPACE, wait=wait, idle_seconds=7.5)
    assert done.stored == len(WORDS) + 1
