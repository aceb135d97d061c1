"""The stage ``ingest`` as a whole: files that changed are parsed, cut and copied, batch by batch."""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

from pgrag.chunk import CHUNKER_VERSION, Chunk, approximate_tokens, chunk_document
from pgrag.errors import ParseError, PgragError, translate, translated
from pgrag.ingest._document import ParsedDocument
from pgrag.ingest._parse import PARSER_VERSION, check_file, parse_file, unreadable
from pgrag.ingest._walk import Failure, FoundFile, shown, walk

__all__ = ["IngestProgress", "IngestReport", "ProgressCallback", "ingest_paths"]

_COPY = (
    "copy pgrag.staging (batch_id, uri, title, language, metadata, content_hash, readers, ordinal,"
    " heading_path, page, char_start, char_end, content, context, token_count) from stdin"
)
_LOOKUP_FILES = 256
_BATCH_CHARACTERS = 16_000_000
_ATTEMPTS = 3
# Two writers met: the same batch again will do.
_TRANSIENT = (pg.SerializationFailure, pg.DeadlockDetected, pg.LockNotAvailable)
# No document is to blame, so the next one would fare no better.
_FATAL_STATES = {"25006", "3F000", "42501", "42883", "42P01", "RG002"}
_FATAL_CLASSES = {"08", "53", "57", "58"}


@dataclass(frozen=True)
class IngestProgress:
    """How far an ingest has come.

    Attributes:
        files: Files dealt with, of whatever outcome, and folders that couldn't be read.
        documents: New or changed documents that were committed.
        unchanged: Documents that were left alone.
        chunks: Chunks of ``documents``.
        failures: Files and folders that failed.
    """

    files: int = 0
    documents: int = 0
    unchanged: int = 0
    chunks: int = 0
    failures: int = 0


class ProgressCallback(Protocol):
    """Is told how far an ingest has come, after every file and every batch."""

    def __call__(self, progress: IngestProgress, /) -> None:
        """Take notice."""


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did.

    Attributes:
        documents: New or changed documents.
        unchanged: Documents that were left alone: same bytes, readers and way of chunking.
        chunks: Chunks of ``documents``.
        pruned: Documents removed because their files are gone.
        failures: What was not taken in, in the order met. A document that fails keeps its earlier version.
    """

    documents: int
    unchanged: int
    chunks: int
    pruned: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    found: FoundFile
    readers: tuple[str, ...]
    digest: bytes


@dataclass(frozen=True, slots=True)
class _Ready:
    candidate: _Candidate
    document: ParsedDocument
    chunks: list[Chunk]


@dataclass(slots=True)
class _Batch:
    items: list[_Ready] = field(default_factory=list)
    chunks: int = 0
    characters: int = 0

    def add(self, item: _Ready) -> None:
        self.items.append(item)
        self.chunks += len(item.chunks)
        self.characters += len(item.document.text)


def ingest_paths(
    connection: psycopg.Connection[Any],
    paths: Sequence[Path],
    *,
    collection: str,
    readers: Sequence[str] = (),
    readers_for: Callable[[str], Sequence[str] | None] | None = None,
    prune: bool = False,
    prune_most: bool = False,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
    tokenizer: str = "approximate",
    language: str | None = None,
    max_bytes: int | None = None,
    batch_documents: int = 500,
    batch_chunks: int = 2000,
    embed_pending: Callable[[], int] | None = None,
    progress: ProgressCallback | None = None,
) -> IngestReport:
    """Bring files and folders into a collection.

    A file whose bytes, readers and way of chunking are as at its last ingest costs one lookup. The rest is
    committed in batches; a document that the database refuses fails alone. Memory is bounded by the largest
    file and one batch, and by the number of failures; with ``prune``, or several paths, by the URIs too.

    Args:
        connection: Idle, of a member of ``pgrag_writer`` or ``pgrag_owner``.
        paths: Files and folders; :func:`pgrag.ingest.walk` says what the URIs are.
        collection: Its name; it exists.
        readers: Principals that may read, ``!`` before those denied.
        readers_for: Readers by URI; None as its answer means ``readers``, and a failure where there are none.
        prune: Remove documents of the collection that ``paths`` no longer hold. Only folders may be given
            then. Nothing is removed where a folder couldn't be read or no file was found.
        prune_most: Prune even where more than half of the documents, and more than ten, would go.
        max_tokens: Most tokens of a chunk and its context together; None is what the collection says.
        count_tokens: Tokens of a string.
        tokenizer: Name of what ``count_tokens`` counts; another name makes every document count as changed.
        language: BCP 47 tag of the files that declare none, such as ``de``; another tag makes every document count
            as changed. None: those files are analysed as the collection says.
        max_bytes: Largest file; None for the limit of its kind.
        batch_documents: Most documents in a transaction.
        batch_chunks: Chunks after which a transaction ends; a document is never divided.
        embed_pending: Called after each batch, outside a transaction.
        progress: Told how far it is.

    Returns:
        What was done, with every failure and its reason.

    Raises:
        PgragError: wrong use, such as no readers or a file with ``prune``.
        Refused: ``language`` is no tag; or ``prune`` would remove most of the collection, and what was taken in
            stays.
        DatabaseError: there is no such collection, the role may not write, or the connection broke. What was
        committed stays.
    """
    if not readers and readers_for is None:
        raise PgragError(
            "no readers are named, so nobody could read the documents", "Name one, such as group:staff."
        )
    if connection.info.transaction_status != TransactionStatus.IDLE:
        raise PgragError("the connection is inside a transaction", "Commit or roll back first.")
    for path in paths if prune else ():
        if path.is_file():
            raise PgragError(f"{path}: only folders can be pruned", "Name its folder, or leave --prune out.")
    if max_tokens is None:
        max_tokens = chunk_tokens(connection, collection)
    way = f"{PARSER_VERSION}/{CHUNKER_VERSION}/{max_tokens}/{tokenizer}{f'/{language}' if language else ''}"
    run = _Run(connection, collection, tuple(readers), readers_for, way, language, progress, embed_pending)
    with translated():
        run.unchanged([], ())  # the collection is there, before any work
        run.check_language()
        for group in _grouped(run.candidates(walk(paths), max_bytes, keep=prune)):
            batch = _Batch()
            for candidate in run.changed(group):
                item = run.prepare(candidate, max_tokens, count_tokens, max_bytes)
                if item is None:
                    continue
                if batch.items and batch.characters + len(item.document.text) > _BATCH_CHARACTERS:
                    run.load(batch)
                    batch = _Batch()
                batch.add(item)
                if batch.chunks >= batch_chunks or len(batch.items) >= batch_documents:
                    run.load(batch)
                    batch = _Batch()
            run.load(batch)
        pruned = run.prune(even_most=prune_most) if prune else 0
    done = run.done
    return IngestReport(done.documents, done.unchanged, done.chunks, pruned, tuple(run.failures))


def chunk_tokens(connection: psycopg.Connection[Any], collection: str) -> int:
    """Return the most tokens that a chunk of a collection has.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.

    Raises:
        Refused: there is no such collection.
    """
    with translated(), connection.transaction():
        row = connection.execute(
            "select chunk_tokens from pgrag.collection_settings(%s)", [collection]
        ).fetchone()
    return int(row[0]) if row else 0


def _grouped(candidates: Iterator[_Candidate]) -> Iterator[list[_Candidate]]:
    while group := list(itertools.islice(candidates, _LOOKUP_FILES)):
        yield group


class _Run:
    """One ingest: the connection, the counts and the failures."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        collection: str,
        readers: tuple[str, ...],
        readers_for: Callable[[str], Sequence[str] | None] | None,
        way: str,
        language: str | None,
        progress: ProgressCallback | None,
        embed_pending: Callable[[], int] | None,
    ) -> None:
        self.connection = connection
        self.collection = collection
        self.readers = readers
        self.readers_for = readers_for
        self.way = way
        self.language = language
        self.progress = progress
        self.embed_pending = embed_pending
        self.done = IngestProgress()
        self.failures: list[Failure] = []
        self.seen: list[str] = []
        self.unseen_folders = False

    def count(
        self, *, files: int = 0, documents: int = 0, unchanged: int = 0, chunks: int = 0, failures: int = 0
    ) -> None:
        done = self.done
        self.done = IngestProgress(
            done.files + files,
            done.documents + documents,
            done.unchanged + unchanged,
            done.chunks + chunks,
            done.failures + failures,
        )
        if self.progress is not None:
            self.progress(self.done)

    def fail(self, failure: Failure, stage: str) -> None:
        """Put a failure into the report and among the dead letters."""
        self.failures.append(failure)
        with self.connection.transaction():
            self.connection.execute(
                "select pgrag.record_failure(%s, %s, %s, %s)",
                [self.collection, stage, failure.uri or failure.path, failure.reason],
            )
        self.count(files=1, failures=1)

    def candidates(
        self, found: Iterator[FoundFile | Failure], max_bytes: int | None, *, keep: bool
    ) -> Iterator[_Candidate]:
        """Files with their readers and hashes; what can't be read is noted."""
        for file in found:
            if keep and file.uri:
                self.seen.append(file.uri)
            if isinstance(file, Failure):
                self.unseen_folders |= file.is_folder
                self.fail(file, "parse")
                continue
            try:
                check_file(file.path, max_bytes=max_bytes)
                readers = self.readers_of(file.uri)
                digest = self.digest(file.path)
            except ParseError as error:
                self.fail(Failure(shown(file.path), error.message, file.uri), "parse")
                continue
            yield _Candidate(file, readers, digest)

    def readers_of(self, uri: str) -> tuple[str, ...]:
        named = self.readers_for(uri) if self.readers_for is not None else None
        if named is None and not self.readers:
            raise ParseError("no rule names its readers", "Add a rule, or readers for the rest.")
        return tuple(self.readers if named is None else named)

    def digest(self, path: Path) -> bytes:
        digest = hashlib.sha256(self.way.encode() + b"\0")
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise unreadable(error) from error
        return digest.digest()

    def unchanged(self, group: Sequence[_Candidate], readers: tuple[str, ...]) -> set[str]:
        with self.connection.transaction():
            rows = self.connection.execute(
                "select * from pgrag.unchanged(%s, %s::text[], %s::bytea[], %s::text[])",
                [
                    self.collection,
                    [each.found.uri for each in group],
                    [each.digest for each in group],
                    list(readers),
                ],
            ).fetchall()
        return {row[0] for row in rows}

    def check_language(self) -> None:
        """Refuse a tag that is none."""
        with self.connection.transaction():
            self.connection.execute("select pgrag._check_language(%s)", [self.language])

    def changed(self, group: list[_Candidate]) -> Iterator[_Candidate]:
        """Those of a group that must be read again; one lookup for each set of readers."""
        by_readers: dict[tuple[str, ...], list[_Candidate]] = {}
        for candidate in group:
            by_readers.setdefault(candidate.readers, []).append(candidate)
        same = set[str]()
        for readers, those in by_readers.items():
            same |= self.unchanged(those, readers)
        if same:
            self.count(files=len(same), unchanged=len(same))
        return (candidate for candidate in group if candidate.found.uri not in same)

    def prepare(
        self,
        candidate: _Candidate,
        max_tokens: int,
        count_tokens: Callable[[str], int],
        max_bytes: int | None,
    ) -> _Ready | None:
        """Parse and chunk; whatever goes wrong is this file's failure."""
        path = candidate.found.path
        stage = "parse"
        try:
            document = parse_file(path, max_bytes=max_bytes)
            if document.language is None:
                document = replace(document, language=self.language)
            stage = "chunk"
            return _Ready(
                candidate,
                document,
                chunk_document(document, max_tokens=max_tokens, count_tokens=count_tokens),
            )
        except ParseError as error:
            reason = error.message
        except Exception as error:  # a parser's own mistake must not end the batch
            reason = f"the {stage}r failed: {type(error).__name__}: {error}".replace("\0", "")[:1000]
        self.fail(Failure(shown(path), reason, candidate.found.uri), stage)
        return None

    def load(self, batch: _Batch) -> None:
        """Commit a batch; where the database refuses it, document by document."""
        if not batch.items:
            return
        try:
            documents, chunks = self.commit(batch.items)
            self.count(files=len(batch.items), documents=documents, chunks=chunks)
        except psycopg.Error as error:
            self.raise_if_fatal(error)
            if len(batch.items) == 1:
                candidate = batch.items[0].candidate
                reason = translate(error).message
                self.fail(Failure(shown(candidate.found.path), reason, candidate.found.uri), "load")
                return
            for item in batch.items:
                alone = _Batch()
                alone.add(item)
                self.load(alone)
            return
        if self.embed_pending is not None:
            self.embed_pending()

    def commit(self, items: list[_Ready]) -> tuple[int, int]:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.copy(items)
            except _TRANSIENT:
                continue
        return self.copy(items)

    def copy(self, items: list[_Ready]) -> tuple[int, int]:
        batch_id = uuid.uuid4()
        with self.connection.transaction():
            with self.connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                for item in items:
                    for row in _rows(batch_id, item):
                        copy.write_row(row)
            loaded = self.connection.execute(
                "select documents, chunks from pgrag.load_staged(%s, %s)", [self.collection, batch_id]
            ).fetchone()
        return (loaded[0], loaded[1]) if loaded is not None else (0, 0)

    def raise_if_fatal(self, error: psycopg.Error) -> None:
        state = error.sqlstate
        canceled = isinstance(error, pg.QueryCanceled)  # a statement timeout: a smaller batch may do
        if self.connection.closed or state is None or state in _FATAL_STATES:
            raise error
        if state[:2] in _FATAL_CLASSES and not canceled:
            raise error

    def prune(self, *, even_most: bool) -> int:
        """Remove documents whose files are gone, if that can be known."""
        if self.unseen_folders or not self.seen:
            reason = "a folder could not be read" if self.unseen_folders else "no file was found"
            self.failures.append(Failure("--prune", f"nothing was removed, since {reason}"))
            self.count(failures=1)
            return 0
        with self.connection.transaction():
            row = self.connection.execute(
                "select pgrag.prune_documents(%s, %s, %s::text[], %s)",
                [self.collection, "", self.seen, not even_most],
            ).fetchone()
        return int(row[0]) if row is not None else 0


def _rows(batch_id: uuid.UUID, item: _Ready) -> Iterator[tuple[Any, ...]]:
    """The staging rows of a document: itself, then its chunks."""
    candidate, document = item.candidate, item.document
    uri = candidate.found.uri
    yield (
        *(batch_id, uri, document.title, document.language, Jsonb(document.metadata), candidate.digest),
        *(list(candidate.readers), None, None, None, None, None, document.text, None, None),
    )
    for chunk in item.chunks:
        yield (
            *(
                batch_id,
                uri,
                None,
                None,
                None,
                None,
                None,
                chunk.ordinal,
                list(chunk.heading_path),
                chunk.page,
            ),
            *(chunk.char_start, chunk.char_end, chunk.content, chunk.context, chunk.token_count),
        )
