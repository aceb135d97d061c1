"""pgrag eval report: where the page goes, and what is said when there is none."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest
from _cli import pgrag
from _pgrag import Database, login_dsn
from _runs import run_document

pytest.importorskip("matplotlib", reason="reports need the extra evaluate: matplotlib")
pytest.importorskip("jinja2", reason="reports need the extra evaluate: jinja2")

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nowhere"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is called, with a run in a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monday.json").write_text(json.dumps(run_document(8)))
    (tmp_path / "sunday.json").write_text(json.dumps(run_document(8, seed=2, run_id=6)))
    return tmp_path


def kept(db: Database) -> int:
    """Keep a small run in the database, and return its number."""
    run_id = db.value("select pgrag.record_run('docs', 'nightly', '{\"passages\": 10}', '{}')")
    row = {"query_id": "1", "arm": "lexical", "query": "lost keys", "principals": [], "visible": 5}
    row |= {"metrics": {"ndcg@10": 0.25}, "stages_ms": {"total": 3.0}}
    piece = {"query_id": "1", "uri": "keys.md", "grade": 1, "stage": "fusion"}
    db.execute("select pgrag.record_run_queries(%s, %s)", (run_id, json.dumps([row])))
    db.execute("select pgrag.record_run_evidence(%s, %s)", (run_id, json.dumps([piece])))
    db.execute("select pgrag.finish_run(%s, %s, '{}')", (run_id, json.dumps({"lexical": {"ndcg@10": 0.25}})))
    return int(run_id)


def test_a_run_in_a_file_needs_no_database(folder: Path) -> None:
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "monday.html\n", "")
    assert (folder / "monday.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_comparison_is_named_after_both(folder: Path) -> None:
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json", "--against", "sunday.json")
    assert done.stdout == "monday-against-sunday.html\n"
    assert "Held against run 6" in (folder / "monday-against-sunday.html").read_text(encoding="utf-8")


def test_a_number_is_a_run_that_was_kept(db: Database, folder: Path) -> None:
    run_id = kept(db)
    done = pgrag(db.dsn, "eval", "report", str(run_id))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"run-{run_id}.html\n", "")
    page = (folder / f"run-{run_id}.html").read_text(encoding="utf-8")
    assert "lost keys" in page
    assert "keys.md" in page


def test_a_number_that_is_no_run_is_refused(db: Database) -> None:
    done = pgrag(db.dsn, "eval", "report", "404")
    assert done.returncode == 1
    assert "404" in done.stderr


def test_a_run_that_is_not_finished_is_refused(db: Database) -> None:
    run_id = db.value("select pgrag.record_run('docs', 'nightly', '{}', '{}')")
    done = pgrag(db.dsn, "eval", "report", str(run_id))
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: run {run_id} has no measures: it isn't finished, or no run of judged queries\nTry: pgrag eval runs\n"
    )


def test_an_application_may_not(db: Database) -> None:
    done = pgrag(login_dsn(db.dsn, "pgrag_test_app"), "eval", "report", str(kept(db)))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: permission denied")


def test_output_says_where_to(folder: Path) -> None:
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json", "--output", "for mail.html")
    assert done.stdout == "for mail.html\n"
    assert (folder / "for mail.html").exists()


def test_a_dash_prints_the_page(folder: Path) -> None:
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json", "--output", "-")
    assert done.stdout.startswith("<!doctype html>")
    assert list(folder.glob("*.html")) == []


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json", "--output", "nowhere/run.html")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: nowhere/run.html can't be written: No such file or directory\nTry: --output FILE\n"
    )


def test_a_file_that_is_not_there_is_named() -> None:
    done = pgrag(NO_DATABASE, "eval", "report", "tuesday.json")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: tuesday.json can't be read: No such file or directory\n"
        "Try: pgrag eval run --collection NAME --full FILE\n"
    )


def test_open_opens_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)) or True)
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json", "--open")
    assert (opened, done.stderr) == ([(folder / "monday.html").as_uri()], "")


def test_open_without_a_browser_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    done = pgrag(NO_DATABASE, "eval", "report", "monday.json", "--open")
    assert (done.returncode, done.stderr) == (0, "No browser was found.\nTry: open monday.html yourself\n")


def test_what_goes_to_stdout_cannot_be_opened() -> None:
    assert pgrag(NO_DATABASE, "eval", "report", "monday.json", "--output", "-", "--open").returncode == 2
