"""pgrag eval answers: answers judged by an endpoint on a real socket."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from _cli import pgrag
from _endpoint_server import Server, Status
from _judge_endpoint import JUDGE, completion
from _pgrag import Database

pytest.importorskip("httpx2", reason="pip install 'pgrag-rls[endpoint]'")
pytest.importorskip("ir_measures", reason="pip install 'pgrag-rls[evaluate]'")


ENDPOINT = JUDGE
pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    lines = [
        {"query_id": "q1", "answer": "It rains. It pours.", "contexts": ["It rains"]},
        {"query": "Why?", "answer": "It rains.", "contexts": ["No", "It rains"], "reference": "It rains."},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def judge(db: Database, server: Server, file: Path, *more: str) -> CompletedProcess[str]:
    db.execute(
        "select pgrag.import_judged('docs', array['q1'], array['How is it?'], '[[]]', array['q1'], array['x'], array[1])"
    )
    where = ["--collection", "docs", "--answers", str(file), "--judge-url", server.url, "--judge-model", "m"]
    return pgrag(db.dsn, "eval", "answers", *where, "--parallel", "1", *more)


def report(done: CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_figures_are_shown_and_kept_as_a_run(db: Database, server: Server, file: Path) -> None:
    done = judge(db, server, file)
    assert done.returncode == 0, done.stderr
    table = [line.split() for line in done.stdout.splitlines()]
    (faithful,) = [line for line in table if "faithfulness" in line]
    assert f"{(1 / 2 + 1) / 2:.3f}" in faithful
    ((run_id, name, metrics),) = db.execute("select run_id, name, metrics from pgrag.run")
    assert done.stderr.endswith(f"Kept as run {run_id}.\n")
    assert name == "answers, judged by m"
    assert metrics["answers"]["context_precision"] == 1 / 2


def test_json_has_all_of_it_and_nothing_else_is_on_stdout(db: Database, server: Server, file: Path) -> None:
    found = report(judge(db, server, file, "--json", "-"))
    assert found["run_id"] == db.value("select run_id from pgrag.run")
    assert found["judge"]["prompts"]["version"] == 1
    assert found["metrics"]["faithfulness"]["mean"] == (1 / 2 + 1) / 2
    assert [one["query_id"] for one in found["answers"]] == ["q1", "Why?"]


def test_json_goes_into_a_file(db: Database, server: Server, file: Path, tmp_path: Path) -> None:
    done = judge(db, server, file, "--json", str(tmp_path / "figures.json"))
    assert "faithfulness" in done.stdout
    assert json.loads((tmp_path / "figures.json").read_text())["judge"]["model"] == "m"


def test_one_metric_alone_may_be_asked_for(db: Database, server: Server, file: Path) -> None:
    found = report(judge(db, server, file, "--json", "-", "--metric", "context_recall"))
    assert set(found["metrics"]) == {"context_recall"}


def test_labels_of_people_are_counted_and_too_few_say_so(
    db: Database, server: Server, file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ppi_py", reason="pip install 'pgrag-rls[judge]'")
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"query_id": "q1", "faithfulness": 0.5}\n')
    done = judge(db, server, file, "--json", "-", "--labels", str(labels))
    assert report(done)["metrics"]["faithfulness"]["labels"] == 1
    why = "1 labels of judged answers, and 10 are the fewest"
    assert report(done)["metrics"]["faithfulness"]["why_none"] == why
    assert [line for line in done.stderr.splitlines() if line.startswith("No interval")] == [
        f"No interval of faithfulness: {why}."
    ]


def test_help_says_what_each_metric_needs_and_how_many_labels() -> None:
    words = " ".join(pgrag("postgresql://nowhere", "eval", "answers", "--help", columns=400).stdout.split())
    assert (
        "Faithfulness needs contexts; context precision and context recall need contexts and a ref" in words
    )
    assert "each metric with 10 labels or more" in words


def test_what_an_answer_lacks_is_counted_and_named_once_for_all(
    db: Database, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "bare.jsonl"
    file.write_text("".join(f'{{"query": "{n}?", "answer": "It rains."}}\n' for n in range(3)))
    done = judge(db, server, file)
    (faithful,) = [line.split() for line in done.stdout.splitlines() if "faithfulness" in line]
    assert [word for word in faithful if word != "│"] == ["faithfulness", "-", "0", "3"]
    assert "Not judged: 0? and 2 more, faithfulness: no contexts\n" in done.stderr


def test_figures_are_readable_in_80_columns(db: Database, server: Server, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("ppi_py", reason="pip install 'pgrag-rls[judge]'")
    lines = [
        {"query": f"{n}?", "answer": "It rains.", "contexts": ["It rains"[: n % 3 * 4]]} for n in range(30)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(f'{{"query": "{n}?", "faithfulness": {n % 2}}}\n' for n in range(12)))
    where = ["--collection", "docs", "--answers", str(file), "--judge-url", server.url, "--judge-model", "m"]
    done = pgrag(db.dsn, "eval", "answers", *where, "--labels", str(labels), columns=80)
    assert done.returncode == 0, done.stderr
    (faithful,) = [line for line in done.stdout.splitlines() if "faithfulness" in line]
    assert len(faithful) <= 80
    assert "…" not in done.stdout
    assert re.search(r" 0\.\d{3}, 0\.\d{3} to 0\.\d{3} ", faithful)


def test_the_key_is_in_no_output_and_in_no_run(
    db: Database, server: Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGRAG_JUDGE_API_KEY", "s3cret-key")
    done = judge(db, server, file, "--json", "-")
    assert server.headers[0]["authorization"] == "Bearer s3cret-key"
    assert "s3cret" not in done.stdout + done.stderr
    assert "s3cret" not in str(db.execute("select settings, metrics, figures from pgrag.run"))


def test_a_key_has_no_option() -> None:
    done = pgrag("postgresql://nowhere", "eval", "answers", "--help", columns=200)
    assert "PGRAG_JUDGE_API_KEY" in done.stdout
    assert "--api-key" not in done.stdout


def test_what_was_not_judged_is_told_with_the_reason(db: Database, server: Server, file: Path) -> None:
    server.script = [Status(400, '{"error": {"message": "too long"}}')] * 4
    done = judge(db, server, file, "--metric", "faithfulness")
    assert done.returncode == 0
    assert "Not judged: q1, faithfulness: " in done.stderr
    assert "400: too long" in done.stderr


def test_where_nothing_could_be_judged_the_command_failed(db: Database, server: Server, file: Path) -> None:
    server.script = [Status(400, "no")] * 100
    done = judge(db, server, file, "--metric", "faithfulness")
    assert done.returncode == 1
    assert "Error: no answer could be judged, and no run was kept" in done.stderr
    assert "400: no" in done.stderr
    assert db.value("select count(*) from pgrag.run") == 0


def test_a_judge_that_wants_a_key_says_where_it_is_read_from(
    db: Database, server: Server, tmp_path: Path, file: Path
) -> None:
    server.script = [Status(401, "who are you?")] * 100
    done = judge(db, server, file)
    assert done.returncode == 1
    assert "401: who are you?" in done.stderr
    assert done.stderr.endswith("Try: Put a key that may use the model into PGRAG_JUDGE_API_KEY.\n")
    assert db.value("select count(*) from pgrag.run") == 0


def test_an_unknown_collection_is_refused_before_anybody_is_asked(
    db: Database, server: Server, file: Path
) -> None:
    where = ["--answers", str(file), "--judge-url", server.url, "--judge-model", "m"]
    done = pgrag(db.dsn, "eval", "answers", "--collection", "nowhere", *where)
    assert done.returncode == 1
    assert done.stderr.startswith('Error: collection "nowhere" does not exist')
    assert server.bodies == []


def test_what_is_missing_is_named_before_anybody_is_asked(
    db: Database, server: Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = judge(db, server, file)
    assert done.returncode == 1
    assert "judging answers needs ir-measures" in done.stderr
    assert "pip install 'pgrag-rls[evaluate,judge]'" in done.stderr
    assert server.bodies == []


def test_judgements_that_cannot_be_kept_are_in_the_file(
    db: Database, server: Server, file: Path, tmp_path: Path
) -> None:
    def renamed_meanwhile(body: dict[str, Any]) -> Any:
        db.execute("update pgrag.collection set name = 'gone'")
        return completion(body)

    server.script = [renamed_meanwhile]
    done = judge(db, server, file, "--json", str(tmp_path / "figures.json"))
    assert (done.returncode, 'collection "docs" does not exist' in done.stderr) == (1, True)
    found = json.loads((tmp_path / "figures.json").read_text())
    assert (found["run_id"], found["answers"][0]["metrics"]["faithfulness"]) == (None, 1 / 2)
