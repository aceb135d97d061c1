"""Serves the stage ``embed``: fills a space with the vectors that it lacks, any number of workers at once.

A chunk is leased, not locked: the model runs between two short transactions, and what a dead worker had is
free again when its lease is over. A text is embedded once: copies of it get its vector. What the vector of a
text is, is left to the encoder.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.pq import TransactionStatus

from pgrag._vector import to_text
from pgrag.embed import EncoderError, StaticEncoder
from pgrag.embed._texts import is_blank
from pgrag.errors import NO_SPACE, DatabaseError, PgragError, Refused, translated

__all__ = ["DocumentEncoder", "EncoderError", "WorkProgress", "drain", "work"]

LEASE = timedelta(minutes=5)

_CLAIM = "select * from pgrag.claim_chunks(%s, %s, %s)"
_CHECK = "select pgrag.check_space(%s, %s, %s, %s)"
_REUSE = "select pgrag.reuse_vectors(%s, %s)"
_STORE = "select pgrag.store_vectors(%s, %s, %s, %s, %s)"
# In one statement, so that a space that another took the place of gets nothing.
_CHECK_AND_STORE = f"{_STORE} from pgrag.check_space(%s, %s, %s, %s)"
_RELEASE = "select pgrag.release_chunks(%s, %s)"
_FAIL = "select pgrag.fail_chunk(%s, %s, %s)"
_COMPACT = "select pgrag.compact(%s)"
_COMPACT_RUNS = 100_000
_COMPACT_SECONDS = 300.0
# So many chunks of a batch failed alone and none succeeded: it is the encoder, not the texts.
_HOPELESS = 8
# A vector was refused, which is no reason to give up its neighbours: pgvector's data exceptions, and ours.
_ABOUT_VECTORS = ("22", "RG031")
# Every model has a vector for it: where it has none, no text is to blame.
_PLAIN_TEXT = "The valve is open."
_ATTEMPTS = 3


class DocumentEncoder(Protocol):
    """What a worker needs of an encoder; every ``pgrag.embed.Encoder`` is one.

    Where it has a ``passport`` and a ``dimension`` too, they are compared with the space's before anything is encoded.
    """

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector a text, shape (n, dimension); a row of zeros where a text has none.

        A text has none where nothing of it can be seen, and to a ``StaticEncoder`` where it knows no token. Other rows
        of zeros, NaN and infinity are faults: the text is tried again and then given up, with the reason in
        ``pgrag.failure``; where a whole batch has them and a plain sentence too, the worker stops.
        """


@dataclass(frozen=True)
class WorkProgress:
    """What a worker did so far.

    Attributes:
        stored: Vectors written.
        failed: Attempts that failed; their chunks wait for another, or were given up, see ``pgrag.failure``.
        passed_over: Chunks whose text changed, or that were deleted, while they were encoded.
        copied: Of the vectors written, those that another chunk with the same text had, so that none was made.
    """

    stored: int = 0
    failed: int = 0
    passed_over: int = 0
    copied: int = 0


@dataclass(frozen=True, slots=True)
class _Chunk:
    chunk_id: int
    hash: bytes
    text: str


def drain(
    connection: psycopg.Connection[Any],
    encoder: DocumentEncoder,
    *,
    space: str,
    batch: int = 256,
    lease: timedelta = LEASE,
    on_progress: Callable[[WorkProgress], None] | None = None,
    on_failure: Callable[[int, str], None] | None = None,
) -> int:
    """Embed what a space lacks, until nothing is due that no other worker has.

    Args:
        connection: Of a member of ``pgrag_writer``, in no transaction.
        encoder: Makes the vectors of this space.
        space: The space's name.
        batch: Most chunks claimed at once, at least 1.
        lease: How long a batch is this worker's; longer than the encoder takes for one.
        on_progress: Called after each batch.
        on_failure: Called with the chunk_id and the reason of each attempt that failed.

    Returns:
        How many vectors were written.

    Raises:
        Refused: there is no such space, or its passport is another model's. It is looked at before each batch and
            when the batch is stored, so of a space that was dropped or made anew meanwhile nothing is written.
        EncoderError: nothing of a batch could be embedded.
        DatabaseError: the database can't be reached any more.
    """
    run = _Run(connection, encoder, space, on_failure)
    while run.embed_some(batch, lease):
        if on_progress is not None:
            on_progress(run.progress)
    return run.progress.stored


def work(
    connection: psycopg.Connection[Any],
    encoder: DocumentEncoder | None,
    *,
    space: str,
    wait: Callable[[float], bool],
    once: bool = False,
    batch: int = 256,
    lease: timedelta = LEASE,
    idle_seconds: float = 5.0,
    on_progress: Callable[[WorkProgress], None] | None = None,
    on_failure: Callable[[int, str], None] | None = None,
) -> WorkProgress:
    """Embed what comes, and merge the posting log in the quiet, until told to stop.

    Args:
        connection: As of ``drain``.
        encoder: As of ``drain``; None embeds nothing, for a database that is searched by words alone.
        space: As of ``drain``; of no account without an encoder.
        wait: Waits so many seconds, 0 for not at all, and returns True as soon as it is time to stop. It is
            asked between batches: what was claimed is finished first.
        once: Stop when nothing is due and the log is merged.
        batch: As of ``drain``.
        lease: As of ``drain``.
        idle_seconds: How long to wait when nothing is due.
        on_progress: Called after each batch, and after each look at the queue that found nothing.
        on_failure: As of ``drain``.

    Returns:
        What was done.

    Raises:
        PgragError: as of ``drain``.
    """
    run = _Run(connection, encoder, space, on_failure)
    compact_at = time.monotonic()
    while not wait(0):
        found = run.embed_some(batch, lease)
        if on_progress is not None:
            on_progress(run.progress)
        if found:
            continue
        if time.monotonic() >= compact_at:
            if run.compact() == 0:
                compact_at = time.monotonic() + _COMPACT_SECONDS
        elif once or wait(idle_seconds):
            break
    return run.progress


class _Run:
    """One worker's dealings with one space."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        encoder: DocumentEncoder | None,
        space: str,
        on_failure: Callable[[int, str], None] | None,
    ) -> None:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            raise PgragError(
                "the worker's connection is in a transaction, and no model may run inside one",
                "Commit first.",
            )
        self.progress = WorkProgress()
        self._connection = connection
        self._encoder = encoder
        self._space = space
        self._on_failure = on_failure
        self._hopeless = 0
        self._was_there = False
        self._passport: Mapping[str, Any] = getattr(encoder, "passport", None) or {}

    def check(self) -> None:
        """Refuse an encoder whose passport isn't that of the space."""
        if "model" in self._passport:
            self._call(_CHECK, *self._of_model())

    def _of_model(self) -> tuple[object, ...]:
        """Return the arguments of pgrag.check_space."""
        dimension = getattr(self._encoder, "dimension", self._passport.get("dimension"))
        return self._space, self._passport["model"], dimension, self._passport.get("sha256")

    def embed_some(self, batch: int, lease: timedelta) -> bool:
        """Claim a batch and embed it; False where nothing was due, or nothing is to be embedded."""
        if self._encoder is None:
            return False
        self.check()
        chunks = [_Chunk(*row) for row in self._call(_CLAIM, self._space, batch, lease)]
        self._hopeless = _HOPELESS
        try:
            texts = _by_text(self._without_copies(chunks))
            if texts:
                self._embed(self._encoder, texts)
        except BaseException:
            # What is left of the batch would wait for the end of its lease, though nobody is at it.
            with contextlib.suppress(PgragError):
                self._call(_RELEASE, self._space, [chunk.chunk_id for chunk in chunks])
            raise
        return bool(chunks)

    def compact(self) -> int:
        """Merge a part of the posting log; returns the runs looked at: 0 at its end, and where another is at it."""
        return int(self._call(_COMPACT, _COMPACT_RUNS)[0][0])

    def _without_copies(self, chunks: Sequence[_Chunk]) -> list[_Chunk]:
        """Give chunks the vectors that others with the same text have; return those that nobody has one for."""
        if not chunks:
            return []
        found = set(self._call(_REUSE, self._space, [chunk.chunk_id for chunk in chunks])[0][0])
        self.progress = replace(
            self.progress, stored=self.progress.stored + len(found), copied=self.progress.copied + len(found)
        )
        return [chunk for chunk in chunks if chunk.chunk_id not in found]

    def _embed(self, encoder: DocumentEncoder, texts: Sequence[Sequence[_Chunk]]) -> None:
        """Encode and store; where that fails, halve, until the texts that are to blame stand alone."""
        try:
            vectors = np.asarray(encoder.encode_documents([chunks[0].text for chunks in texts]), np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts):
                raise ValueError(f"{len(texts)} texts gave vectors of shape {vectors.shape}")
            self._store(texts, vectors)
        except Exception as error:  # a model may raise anything
            if isinstance(error, DatabaseError) and not (error.code or "").startswith(_ABOUT_VECTORS):
                raise
            if isinstance(error, EncoderError):
                raise
            if isinstance(error, Refused):
                self.check()  # where another model's space took its place, no text is to blame
            if len(texts) > 1:
                middle = len(texts) // 2
                self._embed(encoder, texts[:middle])
                self._embed(encoder, texts[middle:])
                return
            reason = error.message if isinstance(error, PgragError) else f"{type(error).__name__}: {error}"
            for chunk in texts[0]:
                self._fail(chunk, reason)
            self._hopeless -= 1
            if self._hopeless == 0:
                raise EncoderError(
                    f"{_HOPELESS} texts failed one by one and none succeeded; the last: {reason}",
                    f"See whether the model works and is of space {self._space}; the chunks stay queued.",
                ) from error

    def _store(self, texts: Sequence[Sequence[_Chunk]], vectors: NDArray[np.float32]) -> None:
        reasons = [self._fault(chunks[0].text, vector) for chunks, vector in zip(texts, vectors, strict=True)]
        if all(reasons):
            self._stop_if_broken(len(texts), reasons[0] or "")
        ids: list[int] = []
        hashes: list[bytes] = []
        written: list[str | None] = []
        for chunks, vector, reason in zip(texts, vectors, reasons, strict=True):
            if reason is None:
                ids += [chunk.chunk_id for chunk in chunks]
                hashes += [chunk.hash for chunk in chunks]
                # A text without a known word has no direction: it leaves the queue, and words alone find it.
                written += [to_text(vector) if vector.any() else None] * len(chunks)
        if ids:
            wanted = sum(text is not None for text in written)
            rows = (self._space, ids, hashes, written, self._passport.get("sha256"))
            if "model" in self._passport:
                found = self._call(_CHECK_AND_STORE, *rows, *self._of_model())
            else:
                found = self._call(_STORE, *rows)
            stored = int(found[0][0])
            self.progress = replace(
                self.progress,
                stored=self.progress.stored + stored,
                passed_over=self.progress.passed_over + wanted - stored,
            )
            self._hopeless = -1  # the encoder works
        for chunks, reason in zip(texts, reasons, strict=True):
            if reason is not None:
                for chunk in chunks:
                    self._fail(chunk, reason)

    def _fault(self, text: str, vector: NDArray[np.float32]) -> str | None:
        """Say what is wrong with the vector of a text, where something is."""
        if not np.isfinite(vector).all():
            return "its vector is not finite"
        if not vector.any() and not isinstance(self._encoder, StaticEncoder) and not is_blank(text):
            return "its vector is zero, though the text is not blank"
        return None

    def _stop_if_broken(self, texts: int, reason: str) -> None:
        """Raise where the model has no vector for a plain sentence either."""
        assert self._encoder is not None  # noqa: S101 - it made the vectors
        plain = np.asarray(self._encoder.encode_documents([_PLAIN_TEXT]), np.float32)
        if plain.shape[:1] == (1,) and self._fault(_PLAIN_TEXT, plain[0]) is None:
            return
        raise EncoderError(
            f"none of {texts} texts has a vector, nor has a plain sentence; the first: {reason}",
            f"See whether the model of space {self._space} works here; the chunks stay queued.",
        )

    def _fail(self, chunk: _Chunk, reason: str) -> None:
        self._call(_FAIL, self._space, chunk.chunk_id, reason)
        self.progress = replace(self.progress, failed=self.progress.failed + 1)
        if self._on_failure is not None:
            self._on_failure(chunk.chunk_id, reason)

    def _call(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Run one function in a transaction of its own; one that met another writer is run again."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with translated(), self._connection.transaction(), self._connection.cursor() as cursor:
                    rows = cursor.execute(query, arguments).fetchall()
                self._was_there = True
                return rows
            except DatabaseError as error:
                if error.code == NO_SPACE and self._was_there:
                    raise Refused(
                        f'space "{self._space}" was dropped while it was filled',
                        "pgrag space list shows those that there are.",
                        error.code,
                    ) from error
                if not (error.code or "").startswith("40") or attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")


def _by_text(chunks: Sequence[_Chunk]) -> list[list[_Chunk]]:
    """Put chunks of one text together; short texts first, so that a batch of the model's is of one length."""
    texts: dict[bytes, list[_Chunk]] = {}
    for chunk in chunks:
        texts.setdefault(chunk.hash, []).append(chunk)
    return sorted(texts.values(), key=lambda same: len(same[0].text))
