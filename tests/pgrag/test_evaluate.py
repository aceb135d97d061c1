"""Judged queries, and the gate: whether a new space answers them significantly worse than the one of now."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pgrag import Database
from numpy.typing import NDArray

from pgrag.errors import PgragError, Refused
from pgrag.evaluate import compare_spaces, has_judged, import_beir
from pgrag.worker import drain

DOCUMENTS = 24


class Model:
    """Puts document n at n degrees, and a question for n (its letter, thrice) too, unless it is ``off`` by so many."""

    dimension = 2

    def __init__(self, name: str, off: dict[int, int] | None = None) -> None:
        self.name = name
        self.off = off or {}
        self.passport: dict[str, Any] = {"name": name, "model": name, "dimension": 2, "normalised": True}

    def _at(self, places: Sequence[float]) -> NDArray[np.float32]:
        angles = np.radians(places)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._at([int(text.split("d")[1].split()[0]) for text in texts])

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        numbers = [ord(text[0]) - ord("a") for text in texts]
        # A little to one side, so that no two documents are equally near.
        return self._at([number + self.off.get(number, 0) - 0.1 for number in numbers])

    def count_tokens(self, text: str) -> int:
        return 1


def filled(db: Database, *models: Model) -> Database:
    """Documents that share no word with the queries; each model has its space, and the first answers."""
    db.load([f"d{number}" for number in range(DOCUMENTS)])
    for model in models:
        db.execute("select pgrag.create_space(%s, %s, 2)", (model.name, model.name))
        db.execute("select pgrag.attach_space('docs', %s)", (model.name,))
        drain(db.admin, model, space=model.name)
    if models:
        db.execute("select pgrag.activate_space('docs', %s)", (models[0].name,))
    return db


def judged(db: Database, numbers: Sequence[int], principals: Sequence[str] = ()) -> None:
    """Query n is answered by document n, and by no other."""
    ids = [f"q{number}" for number in numbers]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (
            ids,
            [3 * chr(ord("a") + number) for number in numbers],
            json.dumps([list(principals)] * len(ids)),
            ids,
            [f"{number:06}" for number in numbers],
            [1] * len(ids),
        ),
    )


def figures(verdict: Any) -> dict[tuple[str, str], Any]:
    return {(one.arm, one.measure): one for one in verdict.comparisons}


def ndcg(rank: int) -> float:
    """nDCG@10 where the one answer has this rank."""
    return float(1 / np.log2(rank + 1)) if rank <= 10 else 0.0


def test_two_models_that_agree_pass(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert verdict.passed, verdict.reason
    for one in verdict.comparisons:
        assert (one.old, one.new, one.p) == (1.0, 1.0, 1.0)
        assert (one.wins, one.ties, one.losses) == (0, DOCUMENTS, 0)


def test_a_model_that_is_significantly_worse_does_not(db: Database) -> None:
    old, new = Model("old"), Model("new", off=dict.fromkeys(range(8), 1))
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    one = figures(verdict)["dense", "nDCG@10"]
    assert one.old == 1.0
    # For eight queries the next document is a tenth of a degree away and the answer nine tenths: it comes second.
    assert one.new == pytest.approx((16 + 8 * ndcg(2)) / DOCUMENTS)
    assert (one.wins, one.ties, one.losses) == (0, 16, 8)
    # Each of 8 differences may have either sign: all of them alike in 2 of 2^8 cases.
    assert one.p == pytest.approx(2 / 2**8)
    assert not verdict.passed
    assert "it is significantly worse by dense nDCG@10" in verdict.reason


def test_a_model_that_is_worse_by_chance_passes(db: Database) -> None:
    old, new = Model("old"), Model("new", off={0: 1})
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    one = figures(verdict)["dense", "nDCG@10"]
    assert one.new < one.old
    assert one.p == 1.0  # one difference, and either sign of it is as large
    assert verdict.passed


def test_a_model_that_is_significantly_better_passes(db: Database) -> None:
    old, new = Model("old", off=dict.fromkeys(range(8), 1)), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    one = figures(verdict)["dense", "nDCG@10"]
    assert (one.wins, one.losses, one.p < 0.05, verdict.passed) == (8, 0, True, True)


def test_recall_alone_closes_the_gate(db: Database) -> None:
    # At 4.9 degrees from the answer 9 documents are nearer, at 5.9 degrees 11.
    old = Model("old", off=dict.fromkeys(range(10), 5))
    new = Model("new", off=dict.fromkeys(range(10), 6))
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    recall = figures(verdict)["dense", "recall@10"]
    assert (recall.old, recall.new) == (1.0, pytest.approx((DOCUMENTS - 10) / DOCUMENTS))
    assert "dense recall@10" in verdict.reason


def test_few_queries_leave_the_gate_closed_and_claim_nothing(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(19))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert not verdict.passed
    assert verdict.reason.startswith("19 judged queries say too little; 20 are the fewest")


def test_no_judged_queries_say_what_to_import(db: Database) -> None:
    old, new = Model("old"), Model("new")
    filled(db, old, new)
    with pytest.raises(PgragError, match='collection "docs" has no judged queries') as refused:
        compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert "pgrag eval import --collection docs --beir DIR" in (refused.value.hint or "")


def test_queries_whose_answers_are_not_there_do_not_count(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), [*range(DOCUMENTS), 24, 25])
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert (verdict.queries, verdict.left_out) == (DOCUMENTS, 2)


def test_a_query_is_asked_as_its_principals(db: Database) -> None:
    old, new = Model("old"), Model("new")
    filled(db, old, new)
    db.execute("select pgrag.create_principals('user:ana', 'user:bo')")
    for number in range(DOCUMENTS):
        db.execute("select pgrag.set_readers('docs', %s, array['user:ana'])", (f"{number:06}",))
    judged(db, range(0, DOCUMENTS, 2), ["user:ana"])
    judged(db, range(1, DOCUMENTS, 2), ["user:bo"])
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert figures(verdict)["dense", "recall@10"].new == 0.5


def test_documents_are_ranked_by_their_best_passage(db: Database) -> None:
    old, new = Model("old"), Model("new")
    filled(db, old, new)
    # Twelve passages of one document, all nearer than the answer: that document is one place, not twelve.
    db.put("crowd", "\n\n".join(f"# Part\n\nd1 passage {n}" for n in range(12)))
    assert db.value("select count(*) from pgrag.chunk") == DOCUMENTS + 12
    for model in (old, new):
        drain(db.admin, model, space=model.name)
    judged(db, range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert figures(verdict)["dense", "recall@10"].new == 1.0


def test_without_the_old_model_words_alone_are_compared_and_it_says_so(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old")
    assert verdict.compared_with.startswith("words alone, since nothing embeds queries for space old")
    found = figures(verdict)
    assert (found["dense", "nDCG@10"].old, found["dense", "nDCG@10"].p) == (None, None)
    assert (found["hybrid", "nDCG@10"].old, found["hybrid", "nDCG@10"].new) == (0.0, 1.0)
    assert verdict.passed


def test_where_nothing_answers_now_words_alone_are_compared(db: Database) -> None:
    new = Model("new")
    judged(filled(db), range(DOCUMENTS))
    db.execute("select pgrag.create_space('new', 'new', 2)")
    db.execute("select pgrag.attach_space('docs', 'new')")
    drain(db.admin, new, space="new")
    verdict = compare_spaces(db.admin, "docs", new, old=None)
    assert (verdict.old, verdict.compared_with) == (None, "words alone, since no space answers now")


def test_the_old_space_is_asked_by_its_token_table(db: Database) -> None:
    from _token_tables import WORDS, TableEncoder, make_space

    old, new = TableEncoder("old", 8, seed=1), TableEncoder("new", 16, seed=2)
    make_space(db, old, kind="static")
    db.execute("select pgrag.attach_space('docs', 'old')")
    db.execute("select pgrag.activate_space('docs', 'old')")
    for word in WORDS:
        db.put(word, word)
    db.execute("select pgrag.create_space('new', 'table-2', 16)")
    db.execute("select pgrag.attach_space('docs', 'new')")
    drain(db.admin, new, space="new")
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (list(WORDS), list(WORDS), json.dumps([[]] * len(WORDS)), list(WORDS), list(WORDS), [1] * len(WORDS)),
    )
    verdict = compare_spaces(db.admin, "docs", new, old="old")
    assert verdict.compared_with == "space old, with queries by the token table old"
    assert figures(verdict)["dense", "nDCG@10"].old == 1.0


def test_a_token_table_that_stands_in_for_a_model_is_said_to(db: Database) -> None:
    from _token_tables import TableEncoder, judge, make_space

    old, new = TableEncoder("old", 8, seed=1), TableEncoder("new", 16, seed=2)
    make_space(db, old, kind="external")
    load_words(db, old, new)
    judge(db)
    verdict = compare_spaces(db.admin, "docs", new, old="old")
    assert verdict.compared_with == (
        "space old, with queries by the token table old as searches in SQL do,"
        " not by its model table-1: --old-model compares with that"
    )
    with_model = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    assert with_model.compared_with == "space old, with queries by its model"


def load_words(db: Database, *encoders: Any) -> None:
    """Load a document a word, and fill the spaces, the last of which is made."""
    from _token_tables import WORDS

    db.load(WORDS)
    db.execute("select pgrag.create_space('new', 'table-2', 16)")
    for encoder in encoders:
        db.execute("select pgrag.attach_space('docs', %s)", (encoder.name,))
        drain(db.admin, encoder, space=encoder.name)


def test_another_models_encoder_for_the_old_space_is_refused(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    with pytest.raises(Refused, match='space "old" holds vectors of old'):
        compare_spaces(db.admin, "docs", new, old="old", old_encoder=Model("third"))


def test_the_verdict_is_kept_with_what_it_was_about(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    verdict = compare_spaces(db.admin, "docs", new, old="old", old_encoder=old)
    ((name, settings, metrics),) = db.execute(
        "select name, settings, metrics from pgrag.run where run_id = %s", (verdict.run_id,)
    )
    assert name == "gate: old to new"
    assert settings["passports"]["new"]["model"] == "new"
    assert settings["passports"]["old"]["model"] == "old"
    assert set(settings["versions"]) == {"pgrag", "postgresql", "pgvector"}
    assert set(settings["libraries"]) == {"ir_measures", "scipy", "numpy"}
    assert (settings["collection"]["name"], settings["documents"]) == ("docs", DOCUMENTS)
    assert metrics["per_query"]["dense nDCG@10"]["q3"] == [1.0, 1.0]
    gate = db.value("select pgrag.space_passport('new') -> 'figures' -> 'gate'")
    assert (gate["passed"], gate["queries"], gate["run_id"]) == (True, DOCUMENTS, verdict.run_id)


def test_nothing_is_compared_by_a_role_that_may_not_search_for_others(db: Database) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    owner = db.connect()
    owner.execute("create role pgrag_test_owner login")
    try:
        owner.execute("grant pgrag_owner to pgrag_test_owner")
        owner.execute("set session authorization pgrag_test_owner")
        with pytest.raises(PgragError, match="may not act for others") as refused:
            compare_spaces(owner, "docs", new, old="old", old_encoder=old)
        assert "grant pgrag_app to" in (refused.value.hint or "")
    finally:
        owner.close()
        db.execute("drop owned by pgrag_test_owner")
        db.execute("drop role pgrag_test_owner")


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "one"}\n{"_id": "2", "text": "two", "metadata": {}}\n{"_id": "9", "text": "unjudged"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n2\ta\t2\n2\tb\t0\n")
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\tb\t1\n")
    return tmp_path


def known(db: Database) -> list[Any]:
    return db.execute("select query_id, query, principals, grades from pgrag.judged_queries('docs')")


def test_a_folder_of_beir_is_taken_in(db: Database, beir: Path) -> None:
    db.put("a", "one")
    done = import_beir(db.admin, "docs", beir)
    assert (done.queries, done.judgements, done.unknown) == (2, 3, 1)
    assert known(db) == [("1", "one", [], {"a": 1}), ("2", "two", [], {"a": 2, "b": 0})]


def test_again_replaces_and_leaves_others(db: Database, beir: Path) -> None:
    judged(db, [7])
    import_beir(db.admin, "docs", beir)
    import_beir(db.admin, "docs", beir, principals=["user:ana"], split="dev")
    assert known(db) == [
        ("1", "one", ["user:ana"], {"b": 1}),
        ("2", "two", [], {"a": 2, "b": 0}),
        ("q7", "hhh", [], {"000007": 1}),
    ]


def test_packed_queries_and_flat_judgements_without_a_header_are_read(db: Database, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "1", "text": "one"}\n'))
    (tmp_path / "qrels.tsv").write_text("1\ta\t1\n")
    assert import_beir(db.admin, "docs", tmp_path).queries == 1


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("queries.jsonl", "nonsense\n", "line 1 is no query"),
        ("queries.jsonl", '{"text": "one"}\n', "line 1 is no query"),
        ("queries.jsonl", '{"_id": "5", "text": "five"}\n', "no query with a judgement"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\ta\thigh\n", "line 2 is no judgement"),
        ("qrels/test.tsv", "1 a 1\n", "line 1 is no judgement"),
    ],
)
def test_what_cannot_be_read_is_named(db: Database, beir: Path, file: str, text: str, message: str) -> None:
    (beir / file).write_text(text)
    with pytest.raises(PgragError, match=message):
        import_beir(db.admin, "docs", beir)
    assert known(db) == []


def test_a_folder_without_judgements_says_what_it_lacks(db: Database, tmp_path: Path) -> None:
    with pytest.raises(PgragError, match="has neither qrels/test"):
        import_beir(db.admin, "docs", tmp_path)


@pytest.mark.parametrize("name", ["role:app", "ana", "user:"])
def test_who_nobody_can_act_as_is_refused(db: Database, beir: Path, name: str) -> None:
    with pytest.raises(Refused, match=f'"{name}" is not the name of a principal') as refused:
        import_beir(db.admin, "docs", beir, principals=[name])
    assert refused.value.code == "RG022"


def test_whether_anything_is_judged_is_known(db: Database) -> None:
    assert not has_judged(db.admin, "docs")
    judged(db, [7])
    assert not has_judged(db.admin, "docs")
    db.put("000007", "seven")
    assert has_judged(db.admin, "docs")


def test_a_span_that_is_judged_stands_for_its_document(db: Database) -> None:
    judged(db, [7])
    db.execute(
        "insert into pgrag.judgement (collection_id, query_id, uri, char_start, char_end, grade)"
        " select collection_id, query_id, uri, 0, 9, 3 from pgrag.judgement"
    )
    assert known(db) == [("q7", "hhh", [], {"000007": 3})]


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv"])
def test_a_file_that_is_not_utf_8_is_named(db: Database, beir: Path, name: str) -> None:
    file = beir / name
    file.write_bytes(file.read_bytes() + '{"_id": "3", "text": "caf\xe9"}\n'.encode("latin-1"))
    with pytest.raises(PgragError, match=str(file)):
        import_beir(db.admin, "docs", beir)


def test_a_packed_file_that_is_damaged_is_named(db: Database, beir: Path) -> None:
    packed = bytearray(gzip.compress((beir / "queries.jsonl").read_bytes()))
    packed[10:14] = b"\xff" * 4  # where the deflated data begins
    (beir / "queries.jsonl.gz").write_bytes(packed)
    with pytest.raises(PgragError, match=r"queries\.jsonl can't be read"):
        import_beir(db.admin, "docs", beir)


def test_the_vectors_of_the_space_of_now_are_not_counted_to_find_its_token_table(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = Model("old"), Model("new")
    judged(filled(db, old, new), range(DOCUMENTS))
    monkeypatch.setattr("pgrag.spaces._space._spaces", lambda *_: pytest.fail("spaces were counted"))
    assert compare_spaces(db.admin, "docs", new, old="old").compared_with.startswith("words alone")
