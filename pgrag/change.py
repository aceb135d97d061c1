"""Serves the stage ``embed``: changes the model that answers a collection, while people search and documents arrive.

The new space is built beside the old: filled here and by workers anywhere, indexed, held against the old one on judged
queries, and activated in one transaction. What each step is, is left to ``pgrag.spaces``, ``pgrag.worker`` and
``pgrag.evaluate``.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from pgrag._acting import act_as
from pgrag.errors import PgragError, Refused, translated
from pgrag.evaluate import Verdict, compare_spaces, has_judged, needs_extra
from pgrag.spaces import BuildProgress, build_space, check_encoder, create_space
from pgrag.worker import LEASE, drain

if TYPE_CHECKING:
    from pgrag.embed import Encoder
    from pgrag.worker import WorkProgress

__all__ = [
    "Change",
    "ChangeProgress",
    "GateClosed",
    "Stopped",
    "change_model",
    "seconds_left",
]

# How often the queue is counted while it is worked off, which takes a fifth of a second where half a million wait.
_COUNT_SECONDS = 2.0
# How often it is looked at while others have the rest.
_LOOK_SECONDS = 1.0
# The rate of the last so many seconds says how long it will take.
_RATE_SECONDS = 60.0
# A pass over the queue that took no longer is short: so far behind is a space that workers keep up with.
_SHORT_SECONDS = 5.0


@dataclass(frozen=True)
class ChangeProgress:
    """How far a change of model is.

    Attributes:
        stage: ``fill``, ``index``, ``gate`` or ``activate``.
        done: Passages that need no vector any more, blocks of the index, or judged queries, by stage.
        total: Of how many; None where that isn't known.
        detail: Of the index, what the server is at; else empty.
        seconds_left: An estimate by the rate of the last minute, workers elsewhere included; None where there is none.
        claimed: Passages that workers have, here and elsewhere.
        failing: Passages that were tried in vain and are tried again.
        due_at: When the first that waits is free to be claimed; None where none waits.
        paused: Whether nothing is claimed, until ``pgrag.spaces.resume_space``.
    """

    stage: str
    done: int = 0
    total: int | None = None
    detail: str = ""
    seconds_left: float | None = None
    claimed: int = 0
    failing: int = 0
    due_at: datetime | None = None
    paused: bool = False


@dataclass(frozen=True)
class Change:
    """What a change of model came to.

    Attributes:
        collection: The collection.
        space: The new space.
        before: The space that answered before, or None.
        written: Vectors that were made here; workers elsewhere made the rest.
        activated: Whether the new space answers now.
        verdict: What the gate said; None where it wasn't asked.
        unasked: Why the gate couldn't be asked, in one sentence; None where it was, or wasn't to be.
        query_encoder: What embeds queries of the new space in SQL, or None.
    """

    collection: str
    space: str
    before: str | None
    written: int
    activated: bool
    verdict: Verdict | None
    unasked: str | None
    query_encoder: str | None


class GateClosed(PgragError):
    """The gate isn't open: the new space is ready, and the old one goes on to answer.

    Attributes:
        verdict: What it was held against, and the figures.
    """

    def __init__(self, message: str, hint: str, verdict: Verdict) -> None:
        super().__init__(message, hint)
        self.verdict = verdict


class Stopped(PgragError):
    """The run was told to stop between two batches; what was embedded is kept."""


def change_model(
    connection: psycopg.Connection[Any],
    collection: str,
    encoder: Encoder,
    *,
    old_encoder: Encoder | None = None,
    activate: bool = True,
    judge: bool = True,
    force: bool = False,
    batch: int = 256,
    lease: timedelta = LEASE,
    wait: Callable[[float], bool] = lambda seconds: time.sleep(seconds) or False,  # type: ignore[func-returns-value]
    on_progress: Callable[[ChangeProgress], None] = lambda progress: None,
    on_failure: Callable[[int, str], None] | None = None,
    on_lack: Callable[[PgragError], None] = lambda lack: None,
) -> Change:
    """Let another model answer the dense searches of a collection, with no moment in which none does.

    The new space is made where it isn't there, and filled: by this call, and by every ``pgrag worker`` for it. Then its
    index is built; where the server's ``maintenance_work_mem`` can't hold that, it grows with the vectors instead, which
    is slower. The gate compares both spaces on the collection's judged queries. Searches answer from the old space until
    the new one is activated, in one transaction; documents that arrive meanwhile land in both. Stopped at any point it
    goes on when called again: nothing is embedded twice. Where queries are judged already, what the gate will need is looked
    for before anything is made.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``; for the gate also of ``pgrag_app``.
        collection: Its name.
        encoder: The new model; its name is the new space's, and its passport is kept there.
        old_encoder: Embeds queries for the space that answers now, for the gate, see :func:`compare_spaces`.
        activate: Let the new space answer at the end; else it is left ready.
        judge: Ask the gate; else the new space answers however well it does, as where there is nothing to lose yet.
        force: Activate though the gate isn't open or can't be asked, or though passages have no vector in the new space
            that have one in the old.
        batch: Most passages claimed at once.
        lease: How long a batch is this run's, see ``pgrag.worker.drain``.
        wait: Waits so many seconds, 0 for not at all, and returns True as soon as it is time to stop. It is asked between
            batches: what was claimed is finished first.
        on_progress: Called as it goes on; of the index from another thread.
        on_failure: Called with the chunk_id and the reason of each attempt to embed that failed.
        on_lack: Called at the beginning where nothing is judged yet and it isn't forced, with the error that the end will
            raise unless judged queries come meanwhile.

    Returns:
        What it came to.

    Raises:
        GateClosed: the new space is significantly worse, or there are too few judged queries to say.
        Stopped: ``wait`` said so.
        Refused: there is no such collection, the space belongs to another model, or passages would lose their vectors.
        EncoderError: the model fails for every text.
        PgragError: nothing is judged or the extra ``evaluate`` is missing, and it isn't forced; or memory doesn't suffice
            for the index.
    """
    run = _Run(connection, collection, encoder, batch, lease, wait, on_progress, on_failure)
    before = run.answering()
    if activate and judge and before != encoder.name:
        _check_gate(connection, collection, before, old_encoder, None if force else on_lack)
    run.prepare()
    run.fill()
    build_space(connection, encoder.name, on_progress=lambda at: on_progress(_of_index(at)))
    with translated():
        connection.execute("select pgrag.ready_space(%s)", (encoder.name,))
    run.fill()
    change = Change(
        collection=collection,
        space=encoder.name,
        before=before,
        written=run.written,
        activated=before == encoder.name,
        verdict=None,
        unasked=None,
        query_encoder=run.query_encoder,
    )
    if not activate or change.activated:
        return change
    unasked = _unasked(connection, collection) if judge else None
    verdict = None
    if judge and unasked is None:
        verdict = compare_spaces(
            connection,
            collection,
            encoder,
            old=before,
            old_encoder=old_encoder,
            on_query=lambda done, total: on_progress(ChangeProgress("gate", done, total)),
        )
        if not verdict.passed and not force:
            raise GateClosed(
                f'space "{encoder.name}" is ready, and the gate is closed: {verdict.reason}',
                f"--force, to activate it all the same; {before or 'no space'} goes on to answer",
                verdict,
            )
    elif unasked is not None and not force:
        raise unasked
    run.activate(force)
    return replace(
        change,
        written=run.written,
        activated=True,
        verdict=verdict,
        unasked=None if unasked is None else unasked.message,
    )


@dataclass(frozen=True)
class _Filled:
    """A row of ``pgrag.space_progress``."""

    total: int
    waiting: int
    late: int
    claimed: int
    failing: int
    due_at: datetime | None
    state: str
    paused: bool
    active_space: str | None
    query_encoder: str | None


class _CaughtUp(Exception):
    """Nothing waits but what was queued since the pass began."""


class _Run:
    """One run's dealings with the new space of one collection."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        collection: str,
        encoder: Encoder,
        batch: int,
        lease: timedelta,
        wait: Callable[[float], bool],
        on_progress: Callable[[ChangeProgress], None],
        on_failure: Callable[[int, str], None] | None,
    ) -> None:
        self.written = 0
        self.query_encoder: str | None = None
        self._connection = connection
        self._collection = collection
        self._encoder = encoder
        self._space = encoder.name
        self._batch = batch
        self._lease = lease
        self._wait = wait
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._looked_at = 0.0
        self._seen: deque[tuple[float, int]] = deque()

    def answering(self) -> str | None:
        """Return the space that answers now."""
        with translated():
            row = self._connection.execute(
                "select space from pgrag.collection_settings(%s)", (self._collection,)
            ).fetchone()
        return row[0] if row else None

    def prepare(self) -> None:
        """Make the space where it isn't there, and attach it."""
        name = self._space
        with translated():
            if self._connection.execute("select pgrag.has_space(%s)", (name,)).fetchone() != (True,):
                fits = self._connection.execute(
                    "select pgrag._fits_build(%s, %s)", (self._collection, self._encoder.dimension)
                ).fetchone()
                create_space(self._connection, self._encoder, with_index=fits != (True,))
            check_encoder(self._connection, name, self._encoder)
            self._connection.execute("select pgrag.attach_space(%s, %s)", (self._collection, name))
        self._look(time.monotonic())

    def fill(self) -> float:
        """Embed what the space lacks, and wait for what others have; returns the moment of which this is true.

        Only what was queued after that moment, a reading of the monotonic clock, may still wait: with documents arriving
        all the time something always does.
        """
        while True:
            began = time.monotonic()
            try:
                self._drain(began)
            except _CaughtUp:
                return began
            filled = self._look(began)
            if filled.late == 0:
                return began
            self._stop_if_told(_LOOK_SECONDS, filled)

    def activate(self, force: bool) -> None:
        """Let the space answer, as close behind what arrives as it comes.

        Passages that were queued in the last pass are on their way and don't count; so passes are made until they get no
        shorter, or are short.
        """
        took_before = math.inf
        while True:
            began = self.fill()
            took = time.monotonic() - began
            if took < _SHORT_SECONDS or took > took_before / 2:
                self._on_progress(ChangeProgress("activate"))
                try:
                    with translated():
                        self._connection.execute(
                            "select pgrag.activate_space(%s, %s, %s, %s)",
                            (self._collection, self._space, force, _since(began)),
                        )
                except Refused:
                    # Something of before was changed or tried in vain meanwhile; else waiting is of no use.
                    if self._look(began).late == 0:
                        raise
                else:
                    return
            took_before = took

    def _drain(self, began: float) -> None:
        written = self.written

        def report(progress: WorkProgress) -> None:
            self.written = written + progress.stored
            if time.monotonic() >= self._looked_at + _COUNT_SECONDS and self._look(began).late == 0:
                raise _CaughtUp
            self._stop_if_told(0)

        drain(
            self._connection,
            self._encoder,
            space=self._space,
            batch=self._batch,
            lease=self._lease,
            on_progress=report,
            on_failure=self._on_failure,
        )

    def _look(self, began: float) -> _Filled:
        """Count what waits, and of it what was queued before a moment, and report it."""
        with translated():
            row = self._connection.execute(
                "select * from pgrag.space_progress(%s, %s, %s)",
                (self._collection, self._space, _since(began)),
            ).fetchone()
        assert row is not None  # noqa: S101 - a function call gives one row
        filled = _Filled(*row)
        self.query_encoder = filled.query_encoder
        self._looked_at = time.monotonic()
        self._seen.append((self._looked_at, filled.waiting))
        while self._seen[0][0] < self._looked_at - _RATE_SECONDS:
            self._seen.popleft()
        self._on_progress(
            ChangeProgress(
                "fill",
                max(0, filled.total - filled.waiting),
                filled.total,
                seconds_left=None if filled.paused else seconds_left(self._seen),
                claimed=filled.claimed,
                failing=filled.failing,
                due_at=filled.due_at,
                paused=filled.paused,
            )
        )
        return filled

    def _stop_if_told(self, seconds: float, filled: _Filled | None = None) -> None:
        if not self._wait(seconds):
            return
        filled = filled or self._look(time.monotonic())
        raise Stopped(
            f'stopped; {filled.waiting:,} of {filled.total:,} passages of collection "{self._collection}" still lack a'
            f" vector in space {self._space}",
            "Say the same again, and it goes on.",
        )


def seconds_left(seen: Sequence[tuple[float, int]]) -> float | None:
    """Return how long the rest takes, if it goes on as it did.

    Args:
        seen: Moments in seconds, and what waited then, in order; at least one.

    Returns:
        Seconds; None where nothing went on, or more arrived than was done.
    """
    (first_at, first), (last_at, last) = seen[0], seen[-1]
    return None if last >= first else (last_at - first_at) / (first - last) * last


def _since(moment: float) -> timedelta:
    """Return how long ago a moment of the monotonic clock was."""
    return timedelta(seconds=time.monotonic() - moment)


def _unasked(connection: psycopg.Connection[Any], collection: str) -> PgragError | None:
    """Return why the gate can't be asked, or None."""
    if not has_judged(connection, collection):
        return _unjudged(collection)
    return needs_extra()


def _unjudged(collection: str) -> PgragError:
    return PgragError(
        f'nothing says whether the new model is better: collection "{collection}" has no judged queries whose answers'
        " it holds",
        f"pgrag eval import --collection {collection} --beir DIR; or --force to activate unjudged",
    )


def _check_gate(
    connection: psycopg.Connection[Any],
    collection: str,
    before: str | None,
    old_encoder: Encoder | None,
    on_lack: Callable[[PgragError], None] | None,
) -> None:
    """Refuse, before hours of filling, what the gate would refuse after them; forced without ``on_lack``."""
    if not has_judged(connection, collection):
        if on_lack is not None:
            on_lack(_unjudged(collection))
        return
    missing = needs_extra()
    if missing is not None:
        if on_lack is None:
            return
        raise missing
    if before is not None and old_encoder is not None:
        check_encoder(connection, before, old_encoder)
    with translated(), connection.transaction(force_rollback=True):
        act_as(connection, ["public"])


def _of_index(at: BuildProgress) -> ChangeProgress:
    return ChangeProgress("index", at.done or 0, at.total, at.phase)
