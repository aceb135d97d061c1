"""The ingest as a whole, as a writer: what is counted, skipped, replaced, removed, and what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrag.access import add_groups, check_readers
from pgrag.errors import PgragError, Refused
from pgrag.index import ensure_collection
from pgrag.ingest import IngestReport, ingest_paths


@pytest.fixture
def writer(db: Any) -> psycopg.Connection[Any]:
    connection: psycopg.Connection[Any] = db.connect("pgrag_test_writer")
    ensure_collection(connection, "docs")
    check_readers(connection, ["public"])
    return connection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"a.md": "# A\n\nalpha", "b.md": "# B\n\nbeta", "c/d.txt": "delta"}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def _ingest(writer: psycopg.Connection[Any], *paths: Path, **options: Any) -> IngestReport:
    return ingest_paths(writer, paths, **({"collection": "docs", "readers": ["public"]} | options))


def _counts(report: IngestReport) -> tuple[int, int, int]:
    return report.documents, report.unchanged, len(report.failures)


def test_new_documents_are_taken_in(writer: psycopg.Connection[Any], folder: Path) -> None:
    assert _counts(_ingest(writer, folder)) == (3, 0, 0)


def test_unchanged_documents_are_skipped(writer: psycopg.Connection[Any], folder: Path) -> None:
    _ingest(writer, folder)
    assert _counts(_ingest(writer, folder)) == (0, 3, 0)


def test_a_changed_document_is_replaced(db: Any, writer: psycopg.Connection[Any], folder: Path) -> None:
    _ingest(writer, folder)
    (folder / "a.md").write_text("# A\n\nomega")
    assert _counts(_ingest(writer, folder)) == (1, 2, 0)
    assert db.value("select content from pgrag.chunk where content like '# A%'") == "# A\n\nomega"


def test_other_readers_make_a_change(writer: psycopg.Connection[Any], folder: Path) -> None:
    _ingest(writer, folder)
    check_readers(writer, ["user:ana"], create=True)
    assert _counts(_ingest(writer, folder, readers=["user:ana"])) == (3, 0, 0)


def test_the_language_is_that_of_files_that_declare_none(
    db: Any, writer: psycopg.Connection[Any], folder: Path
) -> None:
    (folder / "a.md").write_text("---\nlang: fr\n---\n# A\n\nalpha")
    _ingest(writer, folder, language="de")
    assert db.execute(
        "select d.uri, d.language, c.analyzer from pgrag.document as d join pgrag.chunk as c using (document_id)"
        " order by d.uri"
    ) == [("a.md", "fr", "french"), ("b.md", "de", "german"), ("c/d.txt", "de", "german")]


def test_another_language_makes_a_change(writer: psycopg.Connection[Any], folder: Path) -> None:
    _ingest(writer, folder)
    assert _counts(_ingest(writer, folder, language="de")) == (3, 0, 0)
    assert _counts(_ingest(writer, folder, language="de")) == (0, 3, 0)
    assert _counts(_ingest(writer, folder)) == (3, 0, 0)


def test_a_language_that_is_no_tag_is_refused_before_any_work(
    db: Any, writer: psycopg.Connection[Any], folder: Path
) -> None:
    with pytest.raises(Refused, match='BCP 47 tag, got "Klingon"'):
        _ingest(writer, folder, language="Klingon")
    assert db.value("select count(*) from pgrag.document") == 0


def test_a_file_that_declares_no_tag_is_taken_in(
    db: Any, writer: psycopg.Connection[Any], folder: Path
) -> None:
    (folder / "a.html").write_text('<html lang="{{ page.lang }}"><p>alpha')
    assert _counts(_ingest(writer, folder)) == (4, 0, 0)
    assert db.value("select language from pgrag.document where uri = 'a.html'") is None


def test_spans_point_into_the_stored_text(db: Any, writer: psycopg.Connection[Any], folder: Path) -> None:
    (folder / "e.md").write_text("# Ünï 🙂\n\n" + "Words of a sentence, 漢字 too. " * 200)
    _ingest(writer, folder)
    wrong = db.value(
        "select count(*) from pgrag.chunk c join pgrag.document_text t using (document_id)"
        " where c.content <> substr(t.content, c.char_start + 1, c.char_end - c.char_start)"
    )
    assert wrong == 0


def test_bad_files_fail_alone_with_their_reasons(writer: psycopg.Connection[Any], folder: Path) -> None:
    (folder / "bad.xyz").write_text("x")
    (folder / "empty.md").touch()
    report = _ingest(writer, folder)
    assert _counts(report) == (3, 0, 2)
    assert [failure.reason.split(":")[0] for failure in report.failures] == [".xyz", "empty file"]


def test_failures_are_written_down_until_the_file_is_good(
    db: Any, writer: psycopg.Connection[Any], folder: Path
) -> None:
    (folder / "empty.md").touch()
    _ingest(writer, folder)
    assert db.execute("select uri, stage, reason from pgrag.failure") == [("empty.md", "parse", "empty file")]
    (folder / "empty.md").write_text("full")
    _ingest(writer, folder)
    assert db.execute("select uri from pgrag.failure") == []


def test_a_document_that_the_database_refuses_fails_alone(
    writer: psycopg.Connection[Any], folder: Path
) -> None:
    report = _ingest(
        writer, folder, readers_for=lambda uri: ["user:nobody-knows"] if uri == "b.md" else ["public"]
    )
    assert _counts(report) == (2, 0, 1)
    assert (report.failures[0].uri, "not known" in report.failures[0].reason) == ("b.md", True)


def test_a_document_that_no_rule_names_fails(writer: psycopg.Connection[Any], folder: Path) -> None:
    report = _ingest(
        writer, folder, readers=(), readers_for=lambda uri: None if uri == "a.md" else ["public"]
    )
    assert [(failure.uri, failure.reason) for failure in report.failures] == [
        ("a.md", "no rule names its readers")
    ]


def test_prune_removes_what_vanished(writer: psycopg.Connection[Any], folder: Path) -> None:
    _ingest(writer, folder)
    (folder / "b.md").unlink()
    assert _ingest(writer, folder, prune=True).pruned == 1


def test_prune_keeps_the_document_of_a_file_that_fails_now(
    db: Any, writer: psycopg.Connection[Any], folder: Path
) -> None:
    _ingest(writer, folder)
    (folder / "b.md").write_text("")
    assert _ingest(writer, folder, prune=True).pruned == 0
    assert db.value("select count(*) from pgrag.document") == 3


def test_prune_removes_nothing_where_no_file_is_found(writer: psycopg.Connection[Any], folder: Path) -> None:
    _ingest(writer, folder)
    for path in ("a.md", "b.md", "c/d.txt"):
        (folder / path).unlink()
    report = _ingest(writer, folder, prune=True)
    assert (report.pruned, len(report.failures)) == (0, 1)


def test_prune_refuses_to_remove_most_of_a_collection_unless_told(
    writer: psycopg.Connection[Any], folder: Path, tmp_path: Path
) -> None:
    for number in range(20):
        (folder / f"more{number}.md").write_text(f"# Note {number}\n\nText.\n", "utf-8")
    _ingest(writer, folder)
    other = tmp_path.parent / "elsewhere"
    other.mkdir()
    (other / "new.md").write_text("# New\n\nText.\n", "utf-8")
    with pytest.raises(Refused, match=r"pruning would remove \d\d of \d\d documents") as caught:
        _ingest(writer, other, prune=True)
    assert caught.value.code == "RG014"
    assert _ingest(writer, other, prune=True, prune_most=True).pruned == 20 + 3


def test_prune_refuses_a_file(writer: psycopg.Connection[Any], folder: Path) -> None:
    with pytest.raises(PgragError, match="only folders can be pruned"):
        _ingest(writer, folder / "a.md", prune=True)


def test_a_collection_that_does_not_exist_is_refused(writer: psycopg.Connection[Any], folder: Path) -> None:
    with pytest.raises(Refused, match='collection "nope" does not exist'):
        _ingest(writer, folder, collection="nope")


def test_no_readers_are_refused(writer: psycopg.Connection[Any], folder: Path) -> None:
    with pytest.raises(PgragError, match="no readers are named"):
        _ingest(writer, folder, readers=())


def test_batches_are_followed_by_embedding_outside_a_transaction(
    writer: psycopg.Connection[Any], folder: Path
) -> None:
    states: list[str] = []

    def embed() -> int:
        states.append(writer.info.transaction_status.name)
        return 0

    _ingest(writer, folder, batch_documents=1, embed_pending=embed)
    assert states == ["IDLE"] * 3


def test_progress_counts_every_file(writer: psycopg.Connection[Any], folder: Path) -> None:
    seen: list[int] = []
    (folder / "bad.xyz").write_text("x")
    _ingest(writer, folder, progress=lambda progress: seen.append(progress.files))
    assert seen[-1] == 3 + 1


def test_a_reader_with_a_typing_error_is_refused(writer: psycopg.Connection[Any]) -> None:
    with pytest.raises(PgragError, match='reader is not known: "group:egn"'):
        check_readers(writer, ["!group:egn", "public"])


def test_groups_are_the_owners_business(db: Any, writer: psycopg.Connection[Any]) -> None:
    with pytest.raises(PgragError):
        add_groups(writer, {"group:hr": ["user:ana"]})
    add_groups(db.admin, {"group:hr": ["user:ana"]})
    assert db.value("select count(*) from pgrag.membership") == 1
