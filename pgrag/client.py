"""The door for Python: connect, say for whom, search; every call is one transaction as that caller.

Searching and packing happen in SQL under row-level security; this module hands arguments over and maps rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import psycopg
from pgvector import HalfVector
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from pgrag._vector import register, register_async
from pgrag.errors import ConnectionFailed, DatabaseError, NotInstalled, Refused, translated
from pgrag.pack import Context, context_from_rows
from pgrag.types import Collection, Embedding, Explanation, Hit, QueryEncoder

__all__ = ["AsyncCaller", "AsyncStore", "Caller", "Store", "connect", "connect_async"]

_ROLE = "set local role pgrag_app"
_ACT_AS = "select pgrag.act_as(variadic %s::text[])"
# In each of these, a space by its name, or the one that the caller's model is of.
_SEARCH = (
    "select * from pgrag.search(%s, %s::int, %s, %s, %s, %s::int, %s::int, %s,"
    " coalesce(%s, pgrag.model_space(%s, %s, %s)), %s, %s)"
)
_PACK = (
    "select * from pgrag.pack_context(%s, %s::int, %s::int, %s, %s, %s,"
    " coalesce(%s, pgrag.model_space(%s, %s, %s)), %s)"
)
_EXPLAIN = (
    "select * from pgrag.explain_search(%s, %s::bigint[], %s::int, %s, %s, %s, %s::int, %s::int, %s,"
    " coalesce(%s, pgrag.model_space(%s, %s, %s)), %s, %s)"
)
_SNIPPETS = "select * from pgrag.snippets(%s, %s::bigint[], %s::int, %s::int, %s, %s, %s)"
_COLLECTIONS = "select * from pgrag.collections()"
# A space that the caller sees no collection of is as if it weren't there, and so is what it was made by.
_CHECK = (
    "select pgrag.check_space(asked.space, %s, %s, %s)"
    " from (select coalesce(%s, pgrag.model_space(%s, %s, %s))) as asked (space)"
    " where pgrag.has_space(asked.space)"
)

_ROLE_REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue)
_CONNECT_SECONDS = 10.0

_Row = tuple[Any, ...]
_Call = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class _Asked:
    """A query as it goes to the database: its words, its vector and space, and what is to be checked of these."""

    query: str
    vector: HalfVector | None
    space: tuple[str | None, ...]
    check: tuple[_Call, ...] = ()

    @classmethod
    def by(
        cls,
        encoder: QueryEncoder | None,
        query: str,
        embedding: Embedding | None,
        space: str | None,
        weights: dict[str, float] | None = None,
    ) -> _Asked:
        """Embed a query, unless that was done or is of no use; this may run a model, and no connection should wait."""
        if embedding is not None or encoder is None or (weights or {}).get("dense") == 0:
            vector = None if embedding is None else HalfVector(list(embedding))
            return cls(query, vector, (space, None, None, None))
        made = np.asarray(encoder.encode_queries([query])[0], np.float32)
        passport = getattr(encoder, "passport", None) or {}
        model, weights_hash = passport.get("model"), passport.get("sha256")
        where = (space, model, weights_hash, encoder.name)
        check: tuple[_Call, ...] = ()
        if model is not None:
            check = ((_CHECK, (model, len(made), weights_hash, *where)),)
        # A text without a known word has no direction: words alone find it.
        return cls(query, HalfVector(made) if made.any() else None, where, check)


class _Calls:
    """Builds the calls that the sync and the async caller make; the one place that knows their arguments."""

    @staticmethod
    def search(
        asked: _Asked,
        k: int,
        collections: Sequence[str] | None,
        filter: dict[str, Any] | None,  # noqa: A002 - the name of the argument in SQL
        depth: int | None,
        rrf_k: int | None,
        weights: dict[str, float] | None,
        exact: bool,
        fusion: str | None,
    ) -> _Call:
        arguments = (
            asked.query,
            k,
            None if collections is None else list(collections),
            asked.vector,
            Jsonb(filter or {}),
            depth,
            rrf_k,
            None if weights is None else Jsonb(weights),
            *asked.space,
            exact,
            fusion,
        )
        return _SEARCH, arguments

    @staticmethod
    def explain(chunk_ids: Sequence[int], search: _Call) -> _Call:
        query, *rest = search[1]
        return _EXPLAIN, (query, list(chunk_ids), *rest)

    @staticmethod
    def snippets(query: str, chunk_ids: Sequence[int], *shown: int | str | bool) -> _Call:
        return _SNIPPETS, (query, list(chunk_ids), *shown)

    @staticmethod
    def pack(
        asked: _Asked,
        budget_tokens: int,
        k: int,
        collections: Sequence[str] | None,
        filter: dict[str, Any] | None,  # noqa: A002 - the name of the argument in SQL
        exact: bool,
    ) -> _Call:
        arguments = (
            asked.query,
            budget_tokens,
            k,
            None if collections is None else list(collections),
            asked.vector,
            Jsonb(filter or {}),
            *asked.space,
            exact,
        )
        return _PACK, arguments


def _hit(row: _Row) -> Hit:
    chunk_id, document_id, uri, title, heading_path, *rest = row
    return Hit(chunk_id, document_id, uri, title, tuple(heading_path), *rest)


class Store:
    """A database with pgrag, and a pool of connections to it; safe to share between threads."""

    def __init__(self, pool: ConnectionPool, encoder: QueryEncoder | None = None) -> None:
        self._pool = pool
        self._encoder = encoder

    def as_principals(self, *principals: str) -> Caller:
        """Return the view of somebody; ``public`` is always among the principals.

        Args:
            principals: ``user:NAME`` and ``group:NAME``, as many as the caller is; none: what everybody may see.
        """
        return Caller(self._pool, self._encoder, principals)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Caller:
    """What somebody may find; every call is one transaction in which the application acts for them."""

    def __init__(self, pool: ConnectionPool, encoder: QueryEncoder | None, principals: Sequence[str]) -> None:
        self._pool = pool
        self._encoder = encoder
        self.principals = tuple(principals)

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        collections: Sequence[str] | None = None,
        embedding: Embedding | None = None,
        encoder: QueryEncoder | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
        depth: int | None = None,
        rrf_k: int | None = None,
        weights: dict[str, float] | None = None,
        space: str | None = None,
        exact: bool = False,
        fusion: Literal["rrf", "minmax"] | None = None,
    ) -> list[Hit]:
        """Find the chunks that answer a query best: ``pgrag.search``, with its names, units and defaults.

        Args:
            query: Words, ``"phrases"``, ``-exclusions`` and ``prefix*``.
            k: Most hits, 1 to 1,000.
            collections: Names; None is all that the caller may see.
            embedding: The query's vector by the space's model; None is made by the encoder where there is one, else
                in SQL where the space has a query encoder there, else the search is lexical.
            encoder: Makes the query's vector, before the transaction; None is the store's. Where it has a passport, it
                is compared with the space's in the same transaction, if the caller sees a collection of that; if not,
                the search is lexical. Of no account beside ``embedding``, or where ``weights`` leave ``dense`` out.
            filter: What a document's metadata must contain.
            depth: Candidates of each arm, 1 to 10,000. None, here and for ``rrf_k``, ``weights`` and ``fusion``: what
                the collections are set to, where they agree.
            rrf_k: The constant of reciprocal rank fusion.
            weights: Of the arms ``lexical`` and ``dense``; 0 leaves one out.
            space: Answer from this embedding space; None is that of the encoder's name, or the collections' own.
            exact: Forbid the approximate index.
            fusion: ``rrf``, by ranks, or ``minmax``, by scores.

        Returns:
            At most ``k`` hits, best first.

        Raises:
            Refused: an argument is out of its range, the role may not act for others, or the encoder isn't the
                space's.
            DatabaseError: the database failed.
        """
        asked = _Asked.by(encoder or self._encoder, query, embedding, space, weights)
        call = _Calls.search(asked, k, collections, filter, depth, rrf_k, weights, exact, fusion)
        return [_hit(row) for row in self._rows(*call, *asked.check)]

    def explain(
        self,
        query: str,
        chunk_ids: Sequence[int],
        *,
        k: int = 10,
        collections: Sequence[str] | None = None,
        embedding: Embedding | None = None,
        encoder: QueryEncoder | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
        depth: int | None = None,
        rrf_k: int | None = None,
        weights: dict[str, float] | None = None,
        space: str | None = None,
        exact: bool = False,
        fusion: Literal["rrf", "minmax"] | None = None,
    ) -> list[Explanation]:
        """Say why chunks are at their places in a search, or at which stage they were lost.

        Args:
            query: As in :meth:`search`, like the rest.
            chunk_ids: Those asked about, at most 1,000; one that the caller may not see is as if it weren't there.
            k: Most hits of the search.
            collections: Names; None is all that the caller may see.
            embedding: The query's vector.
            encoder: Makes it, where it isn't given.
            filter: What a document's metadata must contain.
            depth: Candidates of each arm.
            rrf_k: The constant of reciprocal rank fusion.
            weights: Of the arms.
            space: Answer from this embedding space.
            exact: Forbid the approximate index.
            fusion: ``rrf`` or ``minmax``.

        Returns:
            The reasons, chunk by chunk as asked, in the order of the stages.
        """
        asked = _Asked.by(encoder or self._encoder, query, embedding, space, weights)
        call = _Calls.search(asked, k, collections, filter, depth, rrf_k, weights, exact, fusion)
        return [Explanation(*row) for row in self._rows(*_Calls.explain(chunk_ids, call), *asked.check)]

    def snippets(
        self,
        query: str,
        chunk_ids: Sequence[int],
        *,
        max_characters: int = 240,
        max_fragments: int = 2,
        start_mark: str = "<mark>",
        stop_mark: str = "</mark>",
        escape_html: bool = True,
    ) -> dict[int, str]:
        """Show the parts of chunks that a query looks for, with the matches marked: ``pgrag.snippets``.

        Args:
            query: As in :meth:`search`.
            chunk_ids: At most 1,000; one that the caller may not see is as if it weren't there.
            max_characters: Of a chunk's text that are shown, 1 to 10,000; marks are not counted.
            max_fragments: Most parts of one chunk, 1 to 20; they share ``max_characters``.
            start_mark: Before each match; it isn't escaped, so it's never for a user to choose.
            stop_mark: After each match, likewise.
            escape_html: Escape the text, so that the result is safe to show as HTML; False for everything else.

        Returns:
            The snippet of each chunk, by its id, in the order asked. A chunk without a match is shown from its
            beginning, with no mark.

        Raises:
            Refused: an argument is out of its range.
        """
        shown = (max_characters, max_fragments, start_mark, stop_mark, escape_html)
        return dict(self._rows(*_Calls.snippets(query, chunk_ids, *shown)))

    def pack(
        self,
        query: str,
        *,
        budget_tokens: int = 2000,
        k: int = 20,
        collections: Sequence[str] | None = None,
        embedding: Embedding | None = None,
        encoder: QueryEncoder | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
        space: str | None = None,
        exact: bool = False,
    ) -> Context:
        """Pack the best passages for a query into a token budget: ``pgrag.pack_context``.

        Args:
            query: As in :meth:`search`.
            budget_tokens: Most tokens, fences and sources included.
            k: Most candidates.
            collections: As in :meth:`search`, like the rest.
            embedding: The query's vector.
            encoder: Makes it, where it isn't given.
            filter: What a document's metadata must contain.
            space: Answer from this embedding space.
            exact: Forbid the approximate index.

        Returns:
            The context: passages in the order of the text, what was left out and why.

        Raises:
            Refused: an argument is out of its range.
        """
        asked = _Asked.by(encoder or self._encoder, query, embedding, space)
        call = _Calls.pack(asked, budget_tokens, k, collections, filter, exact)
        return context_from_rows(query, budget_tokens, self._rows(*call, *asked.check))

    def collections(self) -> list[Collection]:
        """List the collections in which the caller may see something, by name."""
        return [Collection(*row) for row in self._rows(_COLLECTIONS, ())]

    def _rows(self, query: str, arguments: Sequence[Any], *before: _Call) -> list[_Row]:
        with self._transaction() as connection:
            for check in before:
                connection.execute(*check)
            return connection.execute(query, arguments or None).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[_Row]]:
        with translated():
            try:
                with self._pool.connection() as connection, connection.transaction():
                    try:
                        connection.execute(_ROLE)
                    except _ROLE_REFUSED as error:
                        raise _no_role(connection.info.user, error) from error
                    connection.execute(_ACT_AS, (list(self.principals) or ["public"],))
                    yield connection
            except PoolTimeout as error:
                raise _no_connection(error) from error


class AsyncStore:
    """A database with pgrag, and a pool of connections to it, for asyncio."""

    def __init__(self, pool: AsyncConnectionPool, encoder: QueryEncoder | None = None) -> None:
        self._pool = pool
        self._encoder = encoder

    def as_principals(self, *principals: str) -> AsyncCaller:
        """Return the view of somebody, as :meth:`Store.as_principals`."""
        return AsyncCaller(self._pool, self._encoder, principals)

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncCaller:
    """What somebody may find, for asyncio; the methods of :class:`Caller`."""

    def __init__(
        self, pool: AsyncConnectionPool, encoder: QueryEncoder | None, principals: Sequence[str]
    ) -> None:
        self._pool = pool
        self._encoder = encoder
        self.principals = tuple(principals)

    async def search(
        self,
        query: str,
        *,
        k: int = 10,
        collections: Sequence[str] | None = None,
        embedding: Embedding | None = None,
        encoder: QueryEncoder | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
        depth: int | None = None,
        rrf_k: int | None = None,
        weights: dict[str, float] | None = None,
        space: str | None = None,
        exact: bool = False,
        fusion: Literal["rrf", "minmax"] | None = None,
    ) -> list[Hit]:
        """Find the chunks that answer a query best, as :meth:`Caller.search`."""
        asked = await _asked(encoder or self._encoder, query, embedding, space, weights)
        call = _Calls.search(asked, k, collections, filter, depth, rrf_k, weights, exact, fusion)
        return [_hit(row) for row in await self._rows(*call, *asked.check)]

    async def explain(
        self,
        query: str,
        chunk_ids: Sequence[int],
        *,
        k: int = 10,
        collections: Sequence[str] | None = None,
        embedding: Embedding | None = None,
        encoder: QueryEncoder | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
        depth: int | None = None,
        rrf_k: int | None = None,
        weights: dict[str, float] | None = None,
        space: str | None = None,
        exact: bool = False,
        fusion: Literal["rrf", "minmax"] | None = None,
    ) -> list[Explanation]:
        """Say why chunks are at their places, or where they were lost, as :meth:`Caller.explain`."""
        asked = await _asked(encoder or self._encoder, query, embedding, space, weights)
        call = _Calls.search(asked, k, collections, filter, depth, rrf_k, weights, exact, fusion)
        return [Explanation(*row) for row in await self._rows(*_Calls.explain(chunk_ids, call), *asked.check)]

    async def snippets(
        self,
        query: str,
        chunk_ids: Sequence[int],
        *,
        max_characters: int = 240,
        max_fragments: int = 2,
        start_mark: str = "<mark>",
        stop_mark: str = "</mark>",
        escape_html: bool = True,
    ) -> dict[int, str]:
        """Show the parts of chunks that a query looks for, with the matches marked, as :meth:`Caller.snippets`."""
        shown = (max_characters, max_fragments, start_mark, stop_mark, escape_html)
        return dict(await self._rows(*_Calls.snippets(query, chunk_ids, *shown)))

    async def pack(
        self,
        query: str,
        *,
        budget_tokens: int = 2000,
        k: int = 20,
        collections: Sequence[str] | None = None,
        embedding: Embedding | None = None,
        encoder: QueryEncoder | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
        space: str | None = None,
        exact: bool = False,
    ) -> Context:
        """Pack the best passages for a query into a token budget, as :meth:`Caller.pack`."""
        asked = await _asked(encoder or self._encoder, query, embedding, space)
        call = _Calls.pack(asked, budget_tokens, k, collections, filter, exact)
        return context_from_rows(query, budget_tokens, await self._rows(*call, *asked.check))

    async def collections(self) -> list[Collection]:
        """List the collections in which the caller may see something, by name."""
        return [Collection(*row) for row in await self._rows(_COLLECTIONS, ())]

    async def _rows(self, query: str, arguments: Sequence[Any], *before: _Call) -> list[_Row]:
        async with self._transaction() as connection:
            for check in before:
                await connection.execute(*check)
            return await (await connection.execute(query, arguments or None)).fetchall()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[psycopg.AsyncConnection[_Row]]:
        with translated():
            try:
                async with self._pool.connection() as connection, connection.transaction():
                    try:
                        await connection.execute(_ROLE)
                    except _ROLE_REFUSED as error:
                        raise _no_role(connection.info.user, error) from error
                    await connection.execute(_ACT_AS, (list(self.principals) or ["public"],))
                    yield connection
            except PoolTimeout as error:
                raise _no_connection(error) from error


def connect(dsn: str, *, encoder: QueryEncoder | None = None, connections: int = 4) -> Store:
    """Connect to a database with pgrag.

    Args:
        dsn: Connection string of a member of ``pgrag_app``, or of an administrator who may become one.
        encoder: Embeds queries outside the database, unless a call names another; None: in SQL, by the space's own.
        connections: Most connections at once.

    Raises:
        ConnectionFailed: no database answers.
    """
    with translated(), psycopg.connect(dsn) as connection:
        register(connection)  # a pool would hide why it can't connect, and go on trying
    pool = ConnectionPool(
        dsn,
        min_size=1,
        max_size=connections,
        configure=register,
        check=ConnectionPool.check_connection,
        timeout=_CONNECT_SECONDS,
        open=True,
    )
    return Store(pool, encoder)


async def connect_async(dsn: str, *, encoder: QueryEncoder | None = None, connections: int = 4) -> AsyncStore:
    """Connect to a database with pgrag, for asyncio; arguments and errors as :func:`connect`."""
    with translated():
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await register_async(connection)
    pool = AsyncConnectionPool(
        dsn,
        min_size=1,
        max_size=connections,
        check=AsyncConnectionPool.check_connection,
        configure=register_async,
        timeout=_CONNECT_SECONDS,
        open=False,
    )
    await pool.open()
    return AsyncStore(pool, encoder)


async def _asked(
    encoder: QueryEncoder | None,
    query: str,
    embedding: Embedding | None,
    space: str | None,
    weights: dict[str, float] | None = None,
) -> _Asked:
    """Embed a query in a thread, where a model does that; the loop goes on."""
    if embedding is not None or encoder is None:
        return _Asked.by(None, query, embedding, space)
    return await asyncio.to_thread(_Asked.by, encoder, query, None, space, weights)


def _no_role(user: str, error: psycopg.Error) -> DatabaseError:
    """Say why ``set role`` failed: the role isn't there, or this one may not take it."""
    if isinstance(error, psycopg.errors.InvalidParameterValue):
        return NotInstalled(
            "pgrag isn't installed on this server: it has no role pgrag_app", "pgrag init, then pgrag upgrade"
        )
    return Refused(
        f'role "{user}" may not act for others', f"As an administrator: grant pgrag_app to {user}", "RG020"
    )


def _no_connection(error: Exception) -> ConnectionFailed:
    return ConnectionFailed(
        f"no connection became free: {error}", "Raise `connections`, or look at the server."
    )
