"""Judged queries in files: who asks, spans, TREC's formats, and that an export is taken in the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database

from pgrag.errors import PgragError, Refused
from pgrag.evaluate import (
    JudgedQuery,
    Judgement,
    drop_run,
    export_beir,
    export_trec,
    import_beir,
    import_judged,
    import_trec,
    judged,
    list_runs,
)

TEXT = "# One\n\nRotate the key.\n\n# Two\n\nStop the pump. Wait, and wait."
QUERIES = (
    JudgedQuery("1", "who\twaits? “naïve”", ("user:ana", "group:hr"), "Ana.", (Judgement("a", grade=2),)),
    JudgedQuery("2", " 北京 ", (), None, (Judgement("b", grade=0), Judgement("x", grade=-1))),
    JudgedQuery("3", "nothing?", ("user:bo",)),
    JudgedQuery(
        "4",
        "spans?",
        (),
        'A "quoted"\nanswer.',
        (
            Judgement("a", grade=1),
            Judgement("a", 7, 18, 3, "Rotate the "),
            Judgement("b", 0, 3, 1, "# O"),
            Judgement("x", 5, 9),
            Judgement("y", quote="of an unknown document"),
        ),
    ),
)


def write(folder: Path, **files: str) -> Path:
    """Write files, each named with ``_`` for a full stop."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


def lines(*objects: Mapping[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """Two queries, of which only the first has a judgement."""
    return write(
        tmp_path,
        queries_jsonl=lines({"_id": "1", "text": "one"}, {"_id": "2", "text": "two", "metadata": {"x": 1}}),
        qrels_tsv="1\ta\t1\n",
    )


@pytest.fixture
def documents(db: Database) -> Database:
    db.put("a", TEXT)
    db.put("b", TEXT)
    return db


def asked_by(db: Database) -> dict[str, tuple[str, ...]]:
    return {one.query_id: one.principals for one in judged(db.admin, "docs")}


def test_one_import_holds_several_askers(db: Database, beir: Path) -> None:
    write(
        beir,
        queries_jsonl=lines(
            {"_id": "1", "text": "one", "principals": ["user:ana", "group:hr"]},
            {"_id": "2", "text": "two"},
            {"_id": "3", "text": "three", "principals": []},
        ),
        qrels_tsv="1\ta\t1\n2\ta\t1\n3\ta\t1\n",
    )
    import_beir(db.admin, "docs", beir, principals=["user:bo"])
    assert asked_by(db) == {"1": ("user:ana", "group:hr"), "2": ("user:bo",), "3": ()}


def test_the_file_of_askers_beats_what_stands_beside_the_text(db: Database, beir: Path) -> None:
    write(
        beir,
        queries_jsonl=lines(
            {"_id": "1", "text": "one", "principals": ["user:ana"], "answer": "1"},
            {"_id": "2", "text": "two", "principals": ["user:ana"], "answer": "2"},
        ),
        qrels_tsv="1\ta\t1\n2\ta\t1\n",
        askers_jsonl=lines({"query_id": "1", "principals": ["user:eva"]}, {"query_id": 2, "answer": "zwei"}),
    )
    import_beir(db.admin, "docs", beir, principals=["user:bo"])
    assert asked_by(db) == {"1": ("user:eva",), "2": ("user:ana",)}
    assert [one.answer for one in judged(db.admin, "docs")] == ["1", "zwei"]


def test_a_query_that_is_said_to_be_unanswerable_is_taken_in(db: Database, beir: Path) -> None:
    write(
        beir,
        queries_jsonl=lines(
            {"_id": "1", "text": "one", "unanswerable": True},
            {"_id": "2", "text": "two"},
            {"_id": "3", "text": "three"},
        ),
        qrels_tsv="",
        askers_jsonl=lines({"query_id": "3", "unanswerable": True}),
    )
    assert import_beir(db.admin, "docs", beir).queries == 2
    assert [(one.query_id, one.judgements) for one in judged(db.admin, "docs")] == [("1", ()), ("3", ())]


@pytest.mark.parametrize(
    ("judgement", "expected"),
    [
        ({"quote": "Rotate the key."}, (7, 22)),
        ({"start": 0, "end": 5}, (0, 5)),
        ({"ordinal": 0}, (0, 22)),
        ({}, (None, None)),
    ],
)
def test_a_span_is_judged_by_its_place_its_passage_or_its_quote(
    documents: Database, beir: Path, judgement: Mapping[str, Any], expected: tuple[int | None, int | None]
) -> None:
    line = {"query_id": "2", "uri": "a", "grade": 3} | dict(judgement)
    done = import_beir(documents.admin, "docs", write(beir, judgements_jsonl=lines(line)))
    assert (done.queries, done.judgements) == (2, 2)
    (one,) = judged(documents.admin, "docs")[1].judgements
    assert ((one.char_start, one.char_end), one.grade) == (expected, 3)


def test_judged_spans_beat_qrels_of_the_same_document_and_no_others(documents: Database, beir: Path) -> None:
    write(
        beir,
        qrels_tsv="1\ta\t1\n1\tb\t2\n2\ta\t3\n",
        judgements_jsonl=lines({"query_id": "1", "uri": "a", "quote": "pump"}),
    )
    import_beir(documents.admin, "docs", beir)
    found = {
        one.query_id: [(line.uri, line.quote) for line in one.judgements]
        for one in judged(documents.admin, "docs")
    }
    assert found == {"1": [("a", "pump"), ("b", None)], "2": [("a", None)]}


def test_a_split_has_judged_spans_of_its_own(documents: Database, beir: Path) -> None:
    (beir / "judgements").mkdir()
    (beir / "judgements" / "dev.jsonl").write_text(lines({"query_id": "1", "uri": "a", "quote": "pump"}))
    write(beir, judgements_jsonl=lines({"query_id": "1", "uri": "a", "quote": "key"}))
    for split, quote in (("dev", "pump"), ("test", "key")):
        import_beir(documents.admin, "docs", beir, split=split)
        assert judged(documents.admin, "docs")[0].judgements[0].quote == quote


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"askers_jsonl": '{"query_id": "9"}\n'}, 'names query "9", which is not among the queries'),
        ({"askers_jsonl": '{"principals": []}\n'}, r"askers\.jsonl, line 1 names no query"),
        ({"askers_jsonl": '{"query_id": "1", "principals": "user:ana"}\n'}, "line 1: principals is no list"),
        ({"askers_jsonl": "\n[]\n"}, "line 2 is no object about a query"),
        ({"askers_jsonl": '{"query_id": "1", "answer": 7}\n'}, "line 1: answer is no text: 7"),
        (
            {"queries_jsonl": '{"_id": "1", "text": "one", "principals": [1]}\n'},
            "line 1: principals is no list",
        ),
        ({"queries_jsonl": '{"_id": "1", "text": "\\ud800"}\n'}, "line 1 is no query"),
        ({"judgements_jsonl": '{"query_id": "9", "uri": "a"}\n'}, 'names query "9", which is not among the'),
        ({"judgements_jsonl": '{"query_id": "1"}\n'}, r"judgements\.jsonl, line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": "1", "uri": "a", "start": "0"}\n'}, "line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": "1", "uri": "a", "grade": null}\n'}, "line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": "1", "uri": "a", "grade": true}\n'}, "line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": "1", "uri": "a", "quote": 1}\n'}, "line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": true, "uri": "a"}\n'}, "line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": "1", "uri": ""}\n'}, "line 1 is no judgement"),
        ({"judgements_jsonl": '{"query_id": "1", "uri": "a", "grade": 32768}\n'}, "grade is beyond 32,767"),
        ({"queries_jsonl": '{"_id": "1", "text": ' + "[" * 100_000 + "\n"}, "line 1 is no query"),
        ({"queries_jsonl": '{"_id": null, "text": "one"}\n'}, "line 1 is no query: it has no _id"),
        ({"queries_jsonl": '{"_id": NaN, "text": "one"}\n'}, "line 1 is no query: it has no _id"),
        ({"queries_jsonl": '{"_id": "", "text": "one"}\n'}, "line 1 is no query: it has no _id"),
        ({"queries_jsonl": '{"_id": "1", "text": ["one"]}\n'}, "line 1 is no query: it has no text"),
        ({"queries_jsonl": '{"_id": "1", "text": " "}\n'}, "line 1 is no query: it has no text"),
        (
            {"queries_jsonl": lines({"_id": "1", "text": "one"}, {"_id": "1", "text": "two"})},
            'line 2 says something else of query "1"',
        ),
        (
            {
                "askers_jsonl": lines(
                    {"query_id": "1", "principals": ["user:ana"]},
                    {"query_id": "1", "principals": ["user:bo"]},
                )
            },
            r'askers\.jsonl, line 2 says something else of query "1"',
        ),
        ({"qrels_tsv": "1\t\t1\n"}, "line 1 is no judgement: .*a name is empty"),
        ({"qrels_tsv": "1\ta\t1_0\n"}, "line 1 is no judgement: .*no whole number"),
        ({"qrels_tsv": f"1\ta\t{10**30}\n"}, "line 1 is no judgement: .*grade is beyond 32,767"),
        ({"qrels_tsv": "1\ta\t-32768\n"}, "line 1 is no judgement: .*grade is beyond 32,767"),
    ],
)
def test_what_cannot_be_read_is_named(
    db: Database, beir: Path, files: Mapping[str, str], message: str
) -> None:
    with pytest.raises(PgragError, match=message):
        import_beir(db.admin, "docs", write(beir, **files))
    assert judged(db.admin, "docs") == []


def test_a_quote_that_is_not_there_is_named_with_its_query_and_document(
    documents: Database, beir: Path
) -> None:
    write(beir, judgements_jsonl=lines({"query_id": "1", "uri": "a", "quote": "the lock"}))
    with pytest.raises(Refused, match='query "1", document "a": its text does not hold the quote "the lock"'):
        import_beir(documents.admin, "docs", beir)


def test_answers_that_who_asks_cannot_read_are_counted(db: Database, beir: Path) -> None:
    db.put("a", TEXT, ["user:ana"])
    db.put("b", TEXT)
    write(
        beir,
        queries_jsonl=lines(
            {"_id": "1", "text": "one", "principals": ["user:ana"]},
            {"_id": "2", "text": "two", "principals": ["user:bo"]},
            {"_id": "3", "text": "three"},
        ),
        # Of the public: one answer hidden, one not there, one judged to be none.
        qrels_tsv="1\ta\t1\n2\ta\t1\n2\tb\t1\n3\ta\t2\n3\tmissing\t1\n",
        judgements_jsonl=lines(
            {"query_id": "2", "uri": "a", "quote": "key"}, {"query_id": "2", "uri": "a", "quote": "pump"}
        ),
    )
    assert import_beir(db.admin, "docs", beir).hidden == 2
    assert import_beir(db.admin, "docs", write(beir, qrels_tsv="3\ta\t0\n", judgements_jsonl="")).hidden == 0


def test_a_role_that_may_not_act_for_others_cannot_tell_what_is_hidden(
    documents: Database, beir: Path
) -> None:
    with documents.connect("pgrag_test_writer") as writer:
        done = import_beir(writer, "docs", beir)
    assert (done.queries, done.hidden) == (1, None)


def test_an_import_inside_a_transaction_leaves_its_role_as_it_was(documents: Database, beir: Path) -> None:
    with psycopg.connect(documents.dsn) as connection:
        before = connection.execute("select current_user").fetchone()
        assert import_beir(connection, "docs", beir).hidden == 0
        assert connection.execute("select current_user").fetchone() == before


# TREC.


@pytest.fixture
def trec(tmp_path: Path) -> Path:
    return write(
        tmp_path, topics_tsv="301\tone two\r\n302\tthree\n", qrels_txt="301 0 a 2\n302\t0\tb\t-1\r\n\n"
    )


def taken(db: Database, folder: Path, topics: str = "topics.tsv", **more: Any) -> Any:
    import_trec(db.admin, "docs", folder / topics, folder / "qrels.txt", **more)
    return [
        (one.query_id, one.query, [(line.uri, line.grade) for line in one.judgements])
        for one in judged(db.admin, "docs")
    ]


def test_topics_and_qrels_are_taken_in(db: Database, trec: Path) -> None:
    assert taken(db, trec, principals=["user:ana"]) == [
        ("301", "one two", [("a", 2)]),
        ("302", "three", [("b", -1)]),
    ]
    assert asked_by(db) == {"301": ("user:ana",), "302": ("user:ana",)}


@pytest.mark.parametrize(
    "topic",
    [
        "<top>\n<num> Number: {0}\n<title> {1}\n\n<desc> Description:\nmore\n</top>\n",
        "<top><num>{0}</num><title>Topic: {1}</title></top>",
        "<TOP>\n<NUM>Number: {0}</NUM>\n<TITLE>\n  {1}\n</TITLE></TOP>\n",
    ],
)
def test_topics_in_angle_brackets_are_taken_in(db: Database, trec: Path, topic: str) -> None:
    write(trec, topics_txt=topic.format("301", "this &amp;\n  that") + topic.format("302", "three"))
    found = taken(db, trec, "topics.txt")
    assert [(query_id, query) for query_id, query, _ in found] == [("301", "this & that"), ("302", "three")]


def test_askers_and_spans_stand_beside_the_topics(documents: Database, trec: Path) -> None:
    write(
        trec,
        askers_jsonl=lines({"query_id": "302", "principals": ["user:eva"]}),
        judgements_jsonl=lines({"query_id": "301", "uri": "a", "quote": "pump"}),
    )
    import_trec(documents.admin, "docs", trec / "topics.tsv", trec / "qrels.txt", principals=["user:bo"])
    assert asked_by(documents) == {"301": ("user:bo",), "302": ("user:eva",)}
    assert judged(documents.admin, "docs")[0].judgements[0].quote == "pump"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"topics_tsv": "301 one\n"}, r"topics\.tsv, line 1 is no query"),
        ({"topics_tsv": "301\t \n"}, "line 1 is no query"),
        ({"topics_tsv": "<top><num>1</num></top>"}, "topic 1 has no <num> or no <title>"),
        ({"topics_tsv": "9\tnine\n"}, "has no query with a judgement in"),
        ({"topics_tsv": "301\tone\n301\ttwo\n"}, 'line 2 says something else of query "301"'),
        (
            {
                "topics_tsv": "<top><num>1<title>one</top><top><num>1<title>two</top>",
            },
            'topic 2 says something else of query "1"',
        ),
        ({"qrels_txt": "301 0 a 40000\n"}, "line 1 is no judgement: .*grade is beyond 32,767"),
        ({"qrels_txt": "301 a 1\n"}, r"qrels\.txt, line 1 is no judgement"),
        ({"qrels_txt": "301 0 a 1\n301 0 a high\n"}, "line 2 is no judgement"),
    ],
)
def test_what_is_none_of_trec_is_named(
    db: Database, trec: Path, files: Mapping[str, str], message: str
) -> None:
    with pytest.raises(PgragError, match=message):
        taken(db, write(trec, **files))


# Export.


def by_beir(db: Database, folder: Path, **more: Any) -> Any:
    return export_beir(db.admin, "docs", folder, **more)


def by_trec(db: Database, folder: Path, **more: Any) -> Any:
    return export_trec(db.admin, "docs", folder, **more)


def again(db: Database, folder: Path) -> None:
    """Take in what was exported, into an empty database, asked by others where the files don't say who."""
    db.execute("delete from pgrag.judged_query")
    if (folder / "topics.tsv").exists():
        import_trec(db.admin, "docs", folder / "topics.tsv", folder / "qrels.txt", principals=["user:zoe"])
    else:
        import_beir(db.admin, "docs", folder, principals=["user:zoe"])


@pytest.mark.parametrize("export", [by_beir, by_trec])
def test_what_is_exported_is_taken_in_the_same(
    documents: Database, tmp_path: Path, export: Callable[..., Any]
) -> None:
    import_judged(documents.admin, "docs", QUERIES)
    before = judged(documents.admin, "docs")
    # Document x is unknown, so what its span reads is too.
    assert before == list(QUERIES)
    done = export(documents, tmp_path / "new" / "folder")
    assert (done.queries, done.judgements) == (4, 8)
    assert [file for file in done.files if not file.is_file()] == []
    again(documents, tmp_path / "new" / "folder")
    assert judged(documents.admin, "docs") == before


@pytest.mark.parametrize("export", [by_beir, by_trec])
def test_an_export_of_documents_that_have_changed_is_taken_in_the_same(
    documents: Database, tmp_path: Path, export: Callable[..., Any]
) -> None:
    import_judged(documents.admin, "docs", QUERIES)
    before = judged(documents.admin, "docs")
    documents.put("a", "Short.")
    export(documents, tmp_path)
    again(documents, tmp_path)
    assert judged(documents.admin, "docs") == before


def test_qrels_have_the_highest_grade_of_each_document(documents: Database, tmp_path: Path) -> None:
    import_judged(documents.admin, "docs", QUERIES)
    by_beir(documents, tmp_path / "beir", split="dev")
    by_trec(documents, tmp_path / "trec")
    expected = [
        ("1", "a", 2),
        ("2", "b", 0),
        ("2", "x", -1),
        ("4", "a", 3),
        ("4", "b", 1),
        ("4", "x", 1),
        ("4", "y", 1),
    ]
    assert (tmp_path / "beir" / "qrels" / "dev.tsv").read_text() == "query-id\tcorpus-id\tscore\n" + "".join(
        f"{query}\t{uri}\t{grade}\n" for query, uri, grade in expected
    )
    assert (tmp_path / "trec" / "qrels.txt").read_text() == "".join(
        f"{query} 0 {uri} {grade}\n" for query, uri, grade in expected
    )


@pytest.mark.parametrize(("export", "name"), [(by_beir, "queries.jsonl"), (by_trec, "qrels.txt")])
def test_a_file_that_is_there_is_not_written_over(
    documents: Database, tmp_path: Path, export: Callable[..., Any], name: str
) -> None:
    import_judged(documents.admin, "docs", QUERIES)
    (tmp_path / name).write_text("mine")
    with pytest.raises(PgragError, match=f"{name} is there already"):
        export(documents, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("export", "query"),
    [
        (by_beir, JudgedQuery("1", "x", judgements=(Judgement("a\tb"),))),
        (by_beir, JudgedQuery("1\n", "x")),
        (by_beir, JudgedQuery("1", " ")),
        (by_trec, JudgedQuery("1", "x", judgements=(Judgement("my file.md"),))),
        (by_trec, JudgedQuery("1 2", "x")),
        (by_trec, JudgedQuery("1", "x\ny")),
        (by_trec, JudgedQuery("1", " ")),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_nothing_written(
    db: Database, tmp_path: Path, export: Callable[..., Any], query: JudgedQuery
) -> None:
    import_judged(db.admin, "docs", [query])
    with pytest.raises(PgragError, match="can't hold"):
        export(db, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_names_with_spaces_fit_into_beirs_layout(db: Database, tmp_path: Path) -> None:
    one = JudgedQuery("1 2", "x\ny", judgements=(Judgement("my file\u2028.md"),))
    import_judged(db.admin, "docs", [one])
    by_beir(db, tmp_path)
    again(db, tmp_path)
    assert judged(db.admin, "docs") == [JudgedQuery("1 2", "x\ny", judgements=one.judgements)]


# Runs.


def recorded(db: Database, *hits: Sequence[Any]) -> int:
    """Keep a run that found these, each query, arm, rank, uri, ordinal and score, and return its id."""
    run_id = db.value("select pgrag.record_run('docs', 'tried', '{}', '{}')")
    keys = ("query_id", "arm", "rank", "uri", "ordinal", "score")
    rows = [dict(zip(keys, hit, strict=True)) for hit in hits]
    db.execute("select pgrag.record_run_hits(%s, %s)", (run_id, json.dumps(rows)))
    return int(run_id)


@pytest.mark.parametrize("export", [by_beir, by_trec])
def test_a_run_is_exported_as_documents_by_their_best_passage_a_file_an_arm(
    db: Database, tmp_path: Path, export: Callable[..., Any]
) -> None:
    import_judged(db.admin, "docs", [JudgedQuery("1", "one")])
    run_id = recorded(
        db,
        ("1", "dense", 1, "a", 3, 0.75),
        ("1", "dense", 2, "b", 0, 0.5),
        ("1", "dense", 3, "a", 1, 0.25),
        ("2", "dense", 1, "b", 0, 0.5),
        ("1", "lexical", 1, "b", 0, 8.0),
    )
    export(db, tmp_path, run_id=run_id)
    tag = f"pgrag-{run_id}"
    assert (tmp_path / f"run-{run_id}-dense.txt").read_text() == (
        f"1 Q0 a 1 0.75 {tag}-dense\n1 Q0 b 2 0.5 {tag}-dense\n2 Q0 b 1 0.5 {tag}-dense\n"
    )
    assert (tmp_path / f"run-{run_id}-lexical.txt").read_text() == f"1 Q0 b 1 8 {tag}-lexical\n"


def test_scores_of_an_exported_run_fall_with_the_rank_in_single_precision(
    db: Database, tmp_path: Path
) -> None:
    import_judged(db.admin, "docs", [JudgedQuery("1", "one")])
    scores = [0.5, 0.5, 0.5, 0.5 - 1e-12, 0.1]
    run_id = recorded(db, *(("1", "dense", n + 1, f"d{n}", 0, score) for n, score in enumerate(scores)))
    by_trec(db, tmp_path, run_id=run_id)
    rows = [line.split() for line in (tmp_path / f"run-{run_id}-dense.txt").read_text().splitlines()]
    written = [np.float32(row[4]) for row in rows]
    assert [row[2] for row in rows] == [f"d{n}" for n in range(5)]
    assert sorted(set(written), reverse=True) == written
    assert np.allclose(written, scores, rtol=1e-6)


def test_an_exported_run_and_its_qrels_are_read_by_another_program(db: Database, tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    import_judged(db.admin, "docs", [JudgedQuery("1", "one", judgements=(Judgement("b"), Judgement("z")))])
    run_id = recorded(db, *(("1", "dense", n + 1, uri, 0, 0.5) for n, uri in enumerate("ab")))
    by_trec(db, tmp_path, run_id=run_id)
    values = ir_measures.calc_aggregate(
        [ir_measures.RR, ir_measures.R @ 10],
        ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")),
        ir_measures.read_trec_run(str(tmp_path / f"run-{run_id}-dense.txt")),
    )
    assert values == {ir_measures.RR: 1 / 2, ir_measures.R @ 10: 1 / 2}


def test_a_run_of_which_no_hits_were_kept_says_so(db: Database, tmp_path: Path) -> None:
    with pytest.raises(PgragError, match="nothing was kept"):
        by_trec(db, tmp_path, run_id=recorded(db))


def test_runs_are_listed_and_forgotten(db: Database) -> None:
    run_id = recorded(db)
    (one,) = list_runs(db.admin, "docs")
    assert (one.run_id, one.name, one.kind, one.finished_at) == (run_id, "tried", "run", None)
    drop_run(db.admin, run_id)
    assert list_runs(db.admin) == []
