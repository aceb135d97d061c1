"""Serves the stage ``embed``: makes the approximate index of a space, beside searches and writes."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from pgrag.errors import PgragError, translated
from pgrag.spaces._space import calibrate_space, find_space

__all__ = ["BuildProgress", "SpaceBuild", "build_space"]

_SECONDS = 0.25
_MEGABYTE = 2**20
# Where the server runs elsewhere, so that nothing can be said of its machine.
_UNKNOWN = 2**63


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is.

    Attributes:
        phase: In the server's words, such as ``building index: loading tuples``.
        done: Blocks or vectors of this phase that are done; None where it counts neither.
        total: Of how many.
        waits_for: The process whose transaction has to end first, or None.
        workers: Parallel workers at work.
    """

    phase: str
    done: int | None = None
    total: int | None = None
    waits_for: int | None = None
    workers: int = 0


@dataclass(frozen=True)
class SpaceBuild:
    """What a build did.

    Attributes:
        built: False where a valid index was there, or the space has none; then ``figures`` is empty.
        figures: ``seconds``, ``vectors``, ``workers``, ``needed_bytes`` (estimated), ``memory_bytes`` (allowed),
            ``index_bytes`` and ``built_at``, as they are kept in the passport.
        calibration: What searches go by; empty where there is no vector.
        calibrated: Whether it was measured now: where something was built, or nothing was measured before.
    """

    built: bool
    figures: Mapping[str, Any]
    calibration: Mapping[str, Any]
    calibrated: bool


@dataclass(frozen=True)
class _Plan:
    """A row of ``pgrag._begin_build``."""

    index_kind: str
    index_state: str
    vectors: int
    uncentred: bool
    needed_bytes: int
    allowed_bytes: int
    shared_memory: str
    create_statement: str | None
    reindex_statement: str | None
    drop_statements: list[str]
    alter_statement: str | None


def build_space(
    connection: psycopg.Connection[Any],
    space: str,
    *,
    memory: str | None = None,
    workers: int | None = None,
    rebuild: bool = False,
    slow: bool = False,
    on_progress: Callable[[BuildProgress], None] = lambda progress: None,
) -> SpaceBuild:
    """Make the approximate index of a space, concurrently, and calibrate the space where that changes something.

    A build that was stopped leaves an invalid index behind, which the next call takes away first.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``.
        space: The space's name.
        memory: ``maintenance_work_mem`` for this build, such as ``2GB``; None is the server's.
        workers: Most parallel workers; None is the server's ``max_parallel_maintenance_workers``.
        rebuild: Build a valid index anew; the old one answers meanwhile.
        slow: Build though the memory doesn't suffice; pgvector goes on on disk then, many times slower.
        on_progress: Called several times a second, from another thread.

    Raises:
        Refused: there is no such space, or somebody else is building its index.
        PgragError: memory doesn't suffice, and the hint says what to set; or an ivfflat index would be one of nothing.
    """
    if not connection.autocommit:
        raise PgragError(
            "an index is built concurrently outside a transaction, and this connection begins one",
            "psycopg.connect(dsn, autocommit=True)",
        )
    with translated(), _settings(connection) as put:
        put("maintenance_work_mem", memory, "--memory 512MB")
        put("max_parallel_maintenance_workers", None if workers is None else str(workers), "--workers 2")
        row = connection.execute("select * from pgrag._begin_build(%s)", (space,)).fetchone()
        assert row is not None  # noqa: S101 - a function call gives one row
        plan = _Plan(*row)
        figures: dict[str, Any] | None = None
        try:
            statement = _statement(plan, rebuild)
            if statement is not None and plan.index_kind == "ivfflat" and not plan.vectors:
                raise PgragError(
                    f'space "{space}" is empty, and the lists of ivfflat are made of the vectors that are there',
                    f"Fill it first: pgrag worker --once --space {space} --model MODEL",
                )
            if statement is not None and not slow:
                room = _room(connection, plan, parallel=workers != 0)
                if memory is None and plan.needed_bytes <= room < plan.allowed_bytes:
                    # All of it would be set aside for parallel workers at once.
                    put("maintenance_work_mem", _size(plan.needed_bytes), "")
                    plan = replace(plan, allowed_bytes=_megabytes(plan.needed_bytes) * _MEGABYTE)
                _check_memory(space, plan, room, rebuild=rebuild)
            figures = _run(connection, space, plan, statement, on_progress)
        finally:
            if not connection.closed:
                kept = None if figures is None else json.dumps(figures)
                row = connection.execute("select pgrag._end_build(%s, %s)", (space, kept)).fetchone()
    kept_figures = dict(row[0]) if row and row[0] else {}
    calibration: Mapping[str, Any] = {}
    if figures is None:
        calibration = find_space(connection, space).calibration
    # Measuring reads all vectors many times over; and there is nothing to measure in an empty space.
    calibrated = bool(plan.vectors) and not calibration
    if calibrated:
        calibration = calibrate_space(connection, space)
    return SpaceBuild(figures is not None, kept_figures, calibration, calibrated)


def _statement(plan: _Plan, rebuild: bool) -> str | None:
    """Choose what builds the index; None where a valid one is there, or none is wanted."""
    if plan.index_state == "valid":
        return plan.reindex_statement if rebuild else None
    return plan.create_statement


def _run(
    connection: psycopg.Connection[Any],
    space: str,
    plan: _Plan,
    statement: str | None,
    on_progress: Callable[[BuildProgress], None],
) -> dict[str, Any] | None:
    """Repair what is left of stopped builds, then build; None where there is nothing to build."""
    for leftover in plan.drop_statements:
        connection.execute(leftover.encode())
    if statement is None:
        return None
    started = time.monotonic()
    if plan.uncentred:
        on_progress(BuildProgress("centring codes"))
        connection.execute("select pgrag.center_codes(%s)", (space,))
    if plan.alter_statement is not None and statement == plan.reindex_statement:
        connection.execute(plan.alter_statement.encode())
    with _watch(connection, space, on_progress) as seen:
        try:
            connection.execute(statement.encode())
        except psycopg.errors.DiskFull as error:
            if "shared memory" not in str(error):
                raise
            raise PgragError(
                f"the server has too little shared memory for parallel workers: {error.diag.message_primary}",
                f"pgrag space build {space} --workers 0, or give its container more: --shm-size",
            ) from error
    return {
        "seconds": round(time.monotonic() - started, 3),
        "vectors": plan.vectors,
        "workers": max(seen, default=0),
        "needed_bytes": plan.needed_bytes,
        "memory_bytes": plan.allowed_bytes,
    }


@contextmanager
def _settings(connection: psycopg.Connection[Any]) -> Iterator[Callable[[str, str | None, str], None]]:
    """Yield what sets a setting, with the option to advise where it is refused; put back what was there."""
    kept: dict[str, str] = {}

    def put(setting: str, value: str | None, advice: str) -> None:
        if value is None:
            return
        row = connection.execute("select pg_catalog.current_setting(%s)", (setting,)).fetchone()
        try:
            connection.execute("select pg_catalog.set_config(%s, %s, false)", (setting, value))
        except psycopg.errors.InvalidParameterValue as error:
            raise PgragError(
                f"{setting} can't be {value}: {error.diag.message_primary}", error.diag.message_hint or advice
            ) from error
        kept.setdefault(setting, str(row[0]) if row else "")

    try:
        yield put
    finally:
        if not connection.closed:
            for setting, value in kept.items():
                connection.execute("select pg_catalog.set_config(%s, %s, false)", (setting, value))


@contextmanager
def _watch(
    connection: psycopg.Connection[Any], space: str, on_progress: Callable[[BuildProgress], None]
) -> Iterator[set[int]]:
    """Report progress from a connection of its own while the build blocks this one; yields workers seen."""
    ended = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        # Without a second connection the build goes on all the same, unseen.
        try:
            dsn, password = connection.info.dsn, connection.info.password
            with psycopg.connect(dsn, password=password, autocommit=True) as other:
                while not ended.wait(_SECONDS):
                    row = other.execute(
                        "select phase, done, total, waits_for, workers from pgrag._build_progress(%s)",
                        (space,),
                    ).fetchone()
                    if row is not None and row[0] is not None:
                        seen.add(row[4] or 0)
                        on_progress(BuildProgress(*row))
        except psycopg.Error:
            return

    thread = threading.Thread(target=look, name="pgrag-build-progress", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _room(connection: psycopg.Connection[Any], plan: _Plan, *, parallel: bool) -> int:
    """Memory that the machine has for a build, in bytes, as far as can be seen from here.

    Parallel workers share the graph of hnsw, and the server sets all of ``maintenance_work_mem`` aside for it at once.
    """
    known = [_free_memory(connection)]
    if parallel and plan.index_kind == "hnsw" and plan.shared_memory == "posix":
        known.append(_free_shared_memory(connection))
    return min((free for free in known if free is not None), default=_UNKNOWN)


def _check_memory(space: str, plan: _Plan, room: int, *, rebuild: bool) -> None:
    """Refuse a build that memory can't hold, and say what to set."""
    again = f"pgrag space build {space} --rebuild" if rebuild else f"pgrag space build {space}"
    wanted = (
        f'building the {plan.index_kind} index of space "{space}" over {plan.vectors:,} vectors needs'
        f" {_size(plan.needed_bytes)}"
    )
    if plan.needed_bytes > room:
        raise PgragError(
            f"{wanted}, and this machine has {_size(room)} free, /dev/shm included where workers are parallel",
            f"Free some; or {again} --workers 0, which needs no shared memory; or --slow, on disk and many"
            " times slower; or make a space that needs less: pgrag space create NAME --model MODEL --precision bit,"
            " or --index ivfflat",
        )
    if plan.needed_bytes > plan.allowed_bytes:
        raise PgragError(
            f"{wanted}, and maintenance_work_mem is {_size(plan.allowed_bytes)}",
            f"{again} --memory {_size(plan.needed_bytes)}",
        )
    if plan.index_kind == "hnsw" and plan.allowed_bytes > room:
        raise PgragError(
            f"parallel workers would have {_size(plan.allowed_bytes)} set aside at once, and this machine has"
            f" {_size(room)} free, /dev/shm included",
            f"{again} --memory {_size(plan.needed_bytes)}, or --workers 0",
        )


def _size(number: int) -> str:
    """Write bytes as the server reads them."""
    return f"{_megabytes(number)}MB"


def _megabytes(number: int) -> int:
    """Bytes in MB, rounded up."""
    return -(-number // _MEGABYTE)


def _free_memory(connection: psycopg.Connection[Any]) -> int | None:
    """Memory that the server could take, in bytes; None where it runs elsewhere, or the system doesn't say."""
    if not _is_local(connection):
        return None
    try:
        found = re.search(
            r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE
        )
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _free_shared_memory(connection: psycopg.Connection[Any]) -> int | None:
    """What is free beneath ``/dev/shm``, in bytes; None where the server's is another."""
    if not _is_local(connection):
        return None
    try:
        place = os.statvfs("/dev/shm")  # noqa: S108 - where the system keeps shared memory
    except OSError:
        return None
    return place.f_bavail * place.f_frsize


def _is_local(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server runs on this machine, as only a socket in a folder shows."""
    return connection.info.host.startswith(("/", "@"))
