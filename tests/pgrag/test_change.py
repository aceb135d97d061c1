"""Changing the model: filled, indexed, judged and activated; stopped, paused or refused, it goes on when repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from _pgrag import Database
from _token_tables import WORDS, TableEncoder, judge, serve
from numpy.typing import NDArray

from pgrag.change import (
    ChangeProgress,
    GateClosed,
    Stopped,
    change_model,
    seconds_left,
)
from pgrag.errors import PgragError, Refused
from pgrag.spaces import pause_space, resume_space
from pgrag.worker import EncoderError

OLD = TableEncoder("old", 8, seed=1)
NEW = TableEncoder("new", 16, seed=2)


class Counting(TableEncoder):
    """A model that remembers what it embedded, and does something before the nth batch."""

    def __init__(self, before: dict[int, Any] | None = None, *, broken: Sequence[str] = ()) -> None:
        super().__init__("new", 16, seed=2)
        self.before = before or {}
        self.broken = broken
        self.batches: list[list[str]] = []

    def encode_documents(self, texts: Sequence[str]) -> NDArray[Any]:
        self.batches.append(list(texts))
        if (act := self.before.get(len(self.batches))) is not None:
            act()
        if any(word in text for word in self.broken for text in texts):
            raise RuntimeError("can't")
        return super().encode_documents(texts)


class Confused(TableEncoder):
    """A model that takes every question for another."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[Any]:
        return -super().encode_documents(texts)


@pytest.fixture
def served(db: Database) -> Database:
    """A document a word, which the space ``old`` answers for."""
    serve(db, OLD)
    return db


@pytest.fixture
def judged(served: Database) -> Database:
    """The same, with a judged query a document."""
    judge(served)
    return served


def answering(db: Database) -> Any:
    return db.value("select space from pgrag.collection_settings('docs')")


def has_space(db: Database, space: str = "new") -> bool:
    return db.value("select pgrag.has_space(%s)", (space,)) is True


def state(db: Database, space: str = "new") -> Any:
    return db.value("select state from pgrag.space where name = %s", (space,))


def waiting(db: Database) -> int:
    return int(db.value("select waiting from pgrag.space_progress('docs', 'new')"))


def test_a_model_that_is_no_worse_answers_at_the_end(judged: Database) -> None:
    change = change_model(judged.admin, "docs", NEW, old_encoder=OLD)
    assert (change.before, change.space, change.activated) == ("old", "new", True)
    assert change.written == len(WORDS)
    assert change.verdict is not None
    assert change.verdict.passed
    assert answering(judged) == "new"
    assert (state(judged), state(judged, "old")) == ("active", "ready")
    assert judged.value("select index_state from pgrag.spaces('new')") == "valid"
    assert judged.value("select passport ->> 'model' from pgrag.space where name = 'new'") == "table-2"


def test_a_model_that_is_worse_is_left_ready(judged: Database) -> None:
    worse = Confused("new", 16, seed=2)
    with pytest.raises(GateClosed, match="the gate is closed: it is significantly worse by dense") as closed:
        change_model(judged.admin, "docs", worse, old_encoder=OLD)
    assert not closed.value.verdict.passed
    assert (answering(judged), state(judged)) == ("old", "ready")


def test_force_opens_the_gate_and_the_verdict_is_kept(judged: Database) -> None:
    change = change_model(judged.admin, "docs", Confused("new", 16, seed=2), old_encoder=OLD, force=True)
    assert change.activated
    assert change.verdict is not None
    assert not change.verdict.passed
    assert answering(judged) == "new"
    assert judged.value("select count(*) from pgrag.run") == 1


def test_unjudged_a_model_answers_and_nothing_is_kept_of_it(judged: Database) -> None:
    change = change_model(judged.admin, "docs", Confused("new", 16, seed=2), judge=False)
    assert (change.activated, change.verdict, change.unasked) == (True, None, None)
    assert answering(judged) == "new"
    assert judged.value("select count(*) from pgrag.run") == 0


def test_unjudged_is_not_forced(served: Database) -> None:
    broken = Counting(broken=[WORDS[3]])
    with pytest.raises(Refused, match='space "new" has no vector of 1 passages'):
        change_model(served.admin, "docs", broken, judge=False, wait=tries_again(served))
    assert answering(served) == "old"


def test_without_judged_queries_it_is_refused_and_says_what_to_import(served: Database) -> None:
    with pytest.raises(PgragError, match='"docs" has no judged queries') as refused:
        change_model(served.admin, "docs", NEW)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("pgrag eval import --collection docs --beir DIR")
    assert (answering(served), state(served), waiting(served)) == ("old", "ready", 0)


def test_without_judged_queries_force_says_that_nothing_was_judged(served: Database) -> None:
    change = change_model(served.admin, "docs", NEW, force=True)
    assert (change.activated, change.verdict) == (True, None)
    assert change.unasked is not None
    assert "no judged queries" in change.unasked


def test_without_the_extra_it_says_what_to_install(judged: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "ir_measures" else find(name)
    )
    with pytest.raises(PgragError, match="needs ir-measures") as refused:
        change_model(judged.admin, "docs", NEW, old_encoder=OLD)
    assert refused.value.hint == "pip install 'pgrag-rls[evaluate]'"
    assert not has_space(judged)


def test_a_wrong_model_for_the_old_space_is_refused_before_anything_is_made(judged: Database) -> None:
    with pytest.raises(Refused, match='"old" holds vectors of table-1'):
        change_model(judged.admin, "docs", NEW, old_encoder=TableEncoder("old", 8, seed=3))
    assert not has_space(judged)


def test_a_role_that_may_not_act_for_those_who_ask_is_refused_before_anything_is_made(
    judged: Database,
) -> None:
    judged.execute("create role pgrag_test_only_owner login in role pgrag_owner")
    try:
        connection = judged.connect()
        connection.execute("set session authorization pgrag_test_only_owner")
        with pytest.raises(PgragError, match="may not act for others"):
            change_model(connection, "docs", NEW, old_encoder=OLD)
        assert not has_space(judged)
    finally:
        connection.execute("reset session authorization")
        judged.execute("drop role pgrag_test_only_owner")


def test_that_nothing_is_judged_is_said_at_the_beginning(served: Database) -> None:
    said: list[tuple[str, bool]] = []

    def on_lack(lack: PgragError) -> None:
        said.append((lack.message, has_space(served)))
        judge(served)

    change = change_model(served.admin, "docs", NEW, old_encoder=OLD, on_lack=on_lack)
    assert [(made, "no judged queries" in message) for message, made in said] == [(False, True)]
    assert change.activated  # what was judged meanwhile counts


def test_it_may_stop_at_ready(judged: Database) -> None:
    change = change_model(judged.admin, "docs", NEW, activate=False)
    assert (change.activated, change.verdict, change.unasked) == (False, None, None)
    assert (answering(judged), state(judged)) == ("old", "ready")
    assert change_model(judged.admin, "docs", NEW, old_encoder=OLD).written == 0
    assert answering(judged) == "new"


def test_again_it_finds_nothing_to_do(judged: Database) -> None:
    change_model(judged.admin, "docs", NEW, old_encoder=OLD)
    change = change_model(judged.admin, "docs", NEW)
    assert (change.before, change.activated, change.written, change.verdict) == ("new", True, 0, None)


def test_where_nothing_answered_the_gate_holds_it_against_words(db: Database) -> None:
    db.load(WORDS)
    ids = [f"{number:06}" for number in range(len(WORDS))]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (ids, list(WORDS), json.dumps([[]] * len(ids)), ids, ids, [1] * len(ids)),
    )
    change = change_model(db.admin, "docs", NEW)
    assert change.before is None
    assert change.verdict is not None
    assert change.verdict.compared_with.startswith("words alone")
    assert answering(db) == "new"


def test_stopped_it_keeps_what_it_has_and_goes_on_when_repeated(served: Database) -> None:
    first = Counting()
    with pytest.raises(Stopped, match=f"stopped; {len(WORDS) - 10} of {len(WORDS)} passages"):
        change_model(served.admin, "docs", first, force=True, batch=5, wait=lambda _: len(first.batches) == 2)
    # What was claimed is finished, so nothing is left to wait for.
    assert served.value("select claimed from pgrag.space_progress('docs', 'new')") == 0
    second = Counting()
    assert change_model(served.admin, "docs", second, force=True, batch=5).written == len(WORDS) - 10
    texts = [text for batch in first.batches + second.batches for text in batch]
    assert len(texts) == len(set(texts)) == len(WORDS)


def test_what_another_worker_has_is_waited_for(served: Database) -> None:
    other = served.connect("pgrag_test_writer")
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        if seconds > 0:
            waited.append(seconds)
            served.execute("update pgrag.embed_queue set leased_until = null")  # the other one died
        return False

    def claim() -> None:
        other.execute("select pgrag.claim_chunks('new', 4, %s)", (timedelta(minutes=5),))

    seen: list[ChangeProgress] = []
    encoder = Counting({1: claim})
    change_model(served.admin, "docs", encoder, force=True, batch=5, wait=wait, on_progress=seen.append)
    assert len(waited) == 1
    assert max(progress.claimed for progress in seen) == 4
    assert answering(served) == "new"


def test_paused_it_waits_until_it_is_resumed(served: Database) -> None:
    seen: list[ChangeProgress] = []

    def wait(seconds: float) -> bool:
        if seconds > 0:
            assert seen[-1].paused
            resume_space(served.admin, "new")
        return False

    encoder = Counting({1: lambda: pause_space(served.connect(), "new")})
    change_model(served.admin, "docs", encoder, force=True, batch=5, wait=wait, on_progress=seen.append)
    assert any(progress.paused and progress.done == 5 for progress in seen)
    assert answering(served) == "new"


def test_documents_that_go_on_arriving_do_not_hold_it_up(served: Database) -> None:
    numbers = iter(range(10**6))

    class Swamped(Counting):
        """One more document arrives with every batch, so the queue is never empty."""

        def encode_documents(self, texts: Sequence[str]) -> NDArray[Any]:
            served.put(f"more-{next(numbers)}", WORDS[0])
            return super().encode_documents(texts)

    change_model(served.admin, "docs", Swamped(), judge=False, batch=50)
    assert answering(served) == "new"


def tries_again(db: Database) -> Callable[[float], bool]:
    """A wait, after which what was tried in vain is due at once."""

    def wait(seconds: float) -> bool:
        if seconds > 0:
            db.execute("update pgrag.embed_queue set not_before = now() - interval '1 hour'")
        return False

    return wait


def test_a_passage_that_fails_is_tried_again_and_then_holds_up_the_switch(served: Database) -> None:
    encoder = Counting(broken=[WORDS[3]])
    failures: list[str] = []
    with pytest.raises(PgragError, match="has no judged queries"):
        change_model(
            served.admin,
            "docs",
            encoder,
            wait=tries_again(served),
            on_failure=lambda _id, reason: failures.append(reason),
        )
    assert len(failures) == 8  # then it is given up
    with pytest.raises(psycopg.Error, match='space "new" has no vector of 1 passages'):
        served.execute("select pgrag.activate_space('docs', 'new')")
    change_model(served.admin, "docs", NEW, force=True)
    assert answering(served) == "new"


def test_a_model_that_fails_for_everything_ends_it(served: Database) -> None:
    with pytest.raises(EncoderError, match="can't"):
        change_model(served.admin, "docs", Counting(broken=WORDS), force=True)
    assert answering(served) == "old"


def test_another_model_of_the_same_name_is_refused(served: Database) -> None:
    change_model(served.admin, "docs", NEW, activate=False)
    with pytest.raises(Refused, match='space "new" holds vectors of table-2'):
        change_model(served.admin, "docs", TableEncoder("new", 16, seed=3), force=True)


def test_an_unknown_collection_is_refused_before_anything_is_made(served: Database) -> None:
    with pytest.raises(Refused, match='collection "nowhere" does not exist'):
        change_model(served.admin, "nowhere", NEW)
    assert served.value("select pgrag.has_space('new')") is False


def test_progress_goes_through_the_stages_in_order(judged: Database) -> None:
    seen: list[ChangeProgress] = []
    change_model(judged.admin, "docs", NEW, old_encoder=OLD, on_progress=seen.append)
    stages = [progress.stage for progress in seen]
    assert [stage for stage in dict.fromkeys(stages) if stage != "index"] == ["fill", "gate", "activate"]
    assert seen[0].total == len(WORDS)
    last = next(progress for progress in reversed(seen) if progress.stage == "gate")
    assert (last.done, last.total) == (len(WORDS), len(WORDS))


def test_the_time_left_is_by_the_rate_of_the_last_minute() -> None:
    # 20 of 100 in ten seconds: two a second, so the other 80 take 40.
    assert seconds_left([(0.0, 100), (4.0, 95), (10.0, 80)]) == 80 / ((100 - 80) / 10)
    assert seconds_left([(0.0, 100)]) is None
    assert seconds_left([(0.0, 80), (10.0, 80)]) is None  # nothing goes on
    assert seconds_left([(0.0, 80), (10.0, 90)]) is None  # more arrives than is embedded
