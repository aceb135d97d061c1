"""``pgrag space``: what each command prints, and what it says when it is refused or stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _cli import pgrag
from _pgrag import Database

import pgrag as package
from pgrag.fit import FitFigures, FitProgress
from pgrag_cli.space._words import size

MODEL = str(Path(package.__file__).parent / "data" / "minilm_static")
SHIPPED = json.loads((Path(MODEL) / "passport.json").read_text("utf-8"))["name"]
TEXTS = {"a": "open the valve", "b": "close the pump", "c": "read the gauge"}


@pytest.fixture
def filled(hybrid: Database) -> Database:
    """A collection that the static space answers, and a second space with the same vectors and no index."""
    for uri, text in TEXTS.items():
        hybrid.put(uri, text)
    assert (
        run(hybrid, "create", "second", "--model", MODEL, "--collection", "docs", "--no-index").returncode
        == 0
    )
    done = pgrag(hybrid.dsn, "worker", "--once", "--space", "second", "--model", MODEL)
    assert done.returncode == 0, done.stderr
    return hybrid


def run(db: Database, *arguments: str, columns: int = 200) -> subprocess.CompletedProcess[str]:
    return pgrag(db.dsn, "space", *arguments, columns=columns)


def listed(db: Database, space: str) -> dict[str, Any]:
    """A row of ``pgrag space list --json``."""
    rows = [json.loads(line) for line in run(db, "list", "--json").stdout.splitlines()]
    return next(row for row in rows if row["name"] == space)


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (1024, "1.0 kB"), (15 * 2**20, "15 MB"), (3 * 2**29, "1.5 GB")],
)
def test_sizes_are_said_in_the_unit_that_suits_them(number: int, words: str) -> None:
    assert size(number) == words


def test_making_one_says_what_comes_next(hybrid: Database) -> None:
    hybrid.put("a", TEXTS["a"])
    done = run(hybrid, "create", "second", "--model", MODEL, "--collection", "docs")
    assert (done.returncode, done.stdout) == (0, "")
    assert 'Space "second" is made; 1 passages are queued for it.' in done.stderr
    assert f"Next: pgrag worker --once --space second --model {MODEL}" in done.stderr
    assert "pgrag space build" not in done.stderr  # the index is there, and grows


@pytest.mark.parametrize(
    ("choices", "built_later"),
    [
        (("--no-index",), True),
        (("--index", "ivfflat"), True),
        (("--precision", "bit"), True),
        (("--index", "none"), False),
    ],
)
def test_a_build_comes_next_only_where_there_is_something_to_build(
    hybrid: Database, choices: tuple[str, ...], built_later: bool
) -> None:
    done = run(hybrid, "create", "second", "--model", MODEL, *choices)
    assert done.returncode == 0, done.stderr
    assert ("Then: pgrag space build second" in done.stderr) is built_later


def test_its_choices_are_kept(hybrid: Database) -> None:
    choices = ("--precision", "bit", "--rotate", "--index", "hnsw", "--m", "24", "--ef-construction", "100")
    assert run(hybrid, "create", "bits", "--model", MODEL, *choices).returncode == 0
    row = listed(hybrid, "bits")
    assert (row["precision"], row["rotate"], row["index_kind"]) == ("bit", True, "hnsw")
    assert row["index_options"] == {"m": 24, "ef_construction": 100}


def test_lists_are_ivfflat_s(hybrid: Database) -> None:
    assert run(hybrid, "create", "s", "--model", MODEL, "--index", "ivfflat", "--lists", "7").returncode == 0
    assert listed(hybrid, "s")["index_options"] == {"lists": 7}


def test_an_untrained_prefix_is_refused(hybrid: Database) -> None:
    done = run(hybrid, "create", "short", "--model", MODEL, "--dimension", "128")
    assert done.returncode == 1
    assert "is not trained for a prefix of 128 numbers: its passport names none" in done.stderr
    assert "\nTry: Keep all 384 numbers" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--precision", "float8"), "'--precision'"),
        (("--index", "flat"), "'--index'"),
        (("--lists", "7"), "is no option of --index hnsw"),
        (("--index", "none", "--ef-construction", "64"), "is no option of --index none"),
        (("--rotate",), "is for --precision bit, not halfvec"),
        (("--m", "101"), "'--m'"),
    ],
)
def test_choices_that_aren_t_or_don_t_go_together_are_wrong_usage_before_a_model_is_loaded(
    hybrid: Database, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(
        sys.modules["pgrag_cli.space.create"], "load_encoder", lambda model, _space: loaded.append(model)
    )
    done = run(hybrid, "create", "s", "--model", MODEL, *arguments)
    assert (done.returncode, loaded) == (2, [])
    assert message in done.stderr


def test_what_only_the_database_can_refuse_is_said_in_the_words_of_the_command(hybrid: Database) -> None:
    done = run(hybrid, "create", "s", "--model", MODEL, "--m", "50")
    assert done.returncode == 1
    assert "Error: ef_construction must be at least twice m, got 64 and 50\n" in done.stderr
    assert "Try: Raise ef_construction: --m 32 --ef-construction 128.\n" in done.stderr


def test_attaching_queues_the_passages_and_says_what_comes_next(filled: Database) -> None:
    filled.execute("select pgrag.create_collection('notes')")
    filled.put("a", TEXTS["a"], collection="notes")
    refused = run(filled, "activate", "second", "--collection", "notes")
    assert "Try: First: pgrag space attach second --collection notes\n" in refused.stderr
    done = run(filled, "attach", "second", "--collection", "notes")
    assert (done.returncode, done.stdout) == (0, "")
    assert 'Space "second" holds collection "notes"; 1 passages are queued for it.' in done.stderr
    assert listed(filled, "second")["collections"] == ["docs", "notes"]


def test_a_list_shows_each_space(filled: Database) -> None:
    out = run(filled, "list").stdout
    assert SHIPPED in out
    assert "second" in out
    assert "hnsw, missing" in out


def test_a_list_says_which_collections_each_space_answers_and_which_it_only_holds(filled: Database) -> None:
    filled.execute("select pgrag.create_collection('notes')")
    run(filled, "attach", "second", "--collection", "notes")
    assert "no collection; holds docs, notes" in run(filled, "list").stdout
    assert run(filled, "activate", "second", "--collection", "docs").returncode == 0
    out = run(filled, "list").stdout
    assert "docs; not notes" in out  # the second
    assert "notes; not docs" in out  # the shipped one, which new collections are answered by
    assert run(filled, "activate", "second", "--collection", "notes").returncode == 0
    assert "no collection; default of new ones; holds docs, notes" in run(filled, "list").stdout


def test_a_list_is_readable_in_80_columns(filled: Database) -> None:
    lines = run(filled, "list", columns=80).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("second" in line and "halfvec" in line for line in lines)


def test_an_empty_list_says_how_to_begin(db: Database) -> None:
    done = run(db, "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Try: pgrag space create NAME --model MODEL" in done.stderr


def test_json_of_a_space_holds_its_passport(filled: Database) -> None:
    row = json.loads(run(filled, "show", "second", "--json").stdout)
    assert row["passport"]["licence"] == "Apache-2.0"
    assert (row["vectors"], row["collections"], row["answers"]) == (len(TEXTS), ["docs"], [])


def test_a_space_is_shown_with_its_passport(filled: Database) -> None:
    out = run(filled, "show", "second").stdout
    for words in ("licence", "Apache-2.0", "no collection", "384 halfvec", "hnsw, missing"):
        assert words in out


def test_how_a_model_was_trained_is_shown_on_request(filled: Database) -> None:
    filled.execute(
        """update pgrag.space set passport = passport || '{"training": {"rounds": [1, 2], "loss": 0.125}}'"""
    )
    short, whole = run(filled, "show", "second"), run(filled, "show", "second", "--passport")
    assert "training" not in short.stdout
    assert short.stderr == "The passport says more: --passport\n"
    assert "training.loss" in whole.stdout
    assert whole.stderr == ""


@pytest.mark.parametrize("command", ["show", "build", "calibrate", "evaluate", "retire", "drop"])
def test_a_space_that_isn_t_there_is_named(db: Database, command: str) -> None:
    done = run(db, command, "nothing")
    assert done.returncode == 1
    assert 'Error: space "nothing" does not exist' in done.stderr


def test_a_build_says_how_it_went_and_a_second_has_nothing_to_do(filled: Database) -> None:
    done = run(filled, "build", "second")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"by one process: {len(TEXTS)} vectors, index" in done.stderr
    assert listed(filled, "second")["index_state"] == "valid"
    assert "Calibrated." in done.stderr
    again = run(filled, "build", "second").stderr
    assert 'Space "second" has nothing to build' in again
    assert "Calibrated." not in again


def test_json_of_a_build_is_its_figures(filled: Database) -> None:
    figures = json.loads(run(filled, "build", "second", "--json", "--workers", "0", "--memory", "8MB").stdout)
    assert (figures["built"], figures["vectors"], figures["workers"]) == (True, len(TEXTS), 0)
    assert figures["memory_bytes"] == 8 * 2**20


def test_too_little_memory_says_what_to_set(filled: Database) -> None:
    done = run(filled, "build", "second", "--memory", "1MB")
    assert done.returncode == 1
    assert "needs 4MB, and maintenance_work_mem is 1MB" in done.stderr
    assert "\nTry: pgrag space build second --memory 4MB\n" in done.stderr


def interrupted(db: Database, *arguments: str) -> str:
    """What ``pgrag space build second`` says when it is interrupted while it waits for another transaction."""
    table = f"pgrag.embedding_{db.value('select max(space_id) from pgrag.space')}"
    other = db.connect()
    with other.transaction():
        other.execute(f"lock table {table} in row exclusive mode")
        process = subprocess.Popen(
            [sys.executable, "-m", "pgrag_cli.main", "space", "build", "second", *arguments],
            env=os.environ | {"PGRAG_DATABASE_URL": db.dsn},
            stderr=subprocess.PIPE,
            text=True,
            # A background job of a shell, as the whole run may be, ignores it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    waits = f"process {other.info.backend_pid} has to end its transaction"
    assert waits in line
    assert process.returncode == 130
    return err


def test_a_rebuild_that_is_interrupted_says_what_answers_meanwhile(filled: Database) -> None:
    run(filled, "build", "second")
    err = interrupted(filled, "--rebuild")
    assert "Stopped. A valid index of before answers meanwhile, else searches are exact;" in err
    assert "begin again with: pgrag space build second --rebuild\n" in err
    assert listed(filled, "second")["index_state"] == "valid"


def test_a_build_that_is_interrupted_is_repaired_by_the_next(filled: Database) -> None:
    err = interrupted(filled)
    assert "Stopped. Searches are exact meanwhile; begin again with: pgrag space build second" in err
    assert listed(filled, "second")["index_state"] == "invalid"
    assert run(filled, "build", "second").returncode == 0
    assert listed(filled, "second")["index_state"] == "valid"


def test_calibrating_shows_what_was_measured(filled: Database) -> None:
    measured = json.loads(run(filled, "calibrate", "second", "--json").stdout)
    assert measured == listed(filled, "second")["calibration"]
    assert run(filled, "calibrate", "second").returncode == 0


def test_an_evaluation_shows_recall_times_and_costs(filled: Database) -> None:
    done = run(filled, "evaluate", "second")
    assert done.returncode == 0, done.stderr
    for words in (
        "nearest 10 ",
        "nearest 100 ",
        "exact, nearest 100",
        "1.000",
        "write a vector",
        "hnsw, missing",
    ):
        assert words in done.stdout
    assert f"{len(TEXTS)} queries, asked for the owner, who sees everything." in done.stderr


def test_json_of_an_evaluation_is_its_figures(filled: Database) -> None:
    figures = json.loads(run(filled, "evaluate", "second", "--build", "--json").stdout)
    assert [(depth["k"], depth["recall"]) for depth in figures["depths"]] == [(10, 1.0), (100, 1.0)]
    assert figures["build"]["vectors"] == figures["vectors"] == len(TEXTS)
    assert (figures["index_kind"], figures["index_state"]) == ("hnsw", "valid")


def test_an_evaluation_asks_for_a_caller(filled: Database) -> None:
    done = run(filled, "evaluate", "second", "--as", "user:kofi", "--json")
    assert json.loads(done.stdout)["principals"] == ["user:kofi"]


def test_an_evaluation_asks_the_lines_of_a_file_that_have_a_vector(filled: Database, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("where is the valve\n\n\u4e02\nhow do I close the pump\n", "utf-8")
    done = run(filled, "evaluate", "second", "--queries", str(tmp_path / "queries.txt"), "--json")
    assert json.loads(done.stdout)["queries"] == 2


def test_a_file_without_a_query_is_refused(filled: Database, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("\n")
    done = run(filled, "evaluate", "second", "--queries", str(tmp_path / "queries.txt"))
    assert done.returncode == 1
    assert "no query of" in done.stderr


def test_queries_that_are_not_utf_8_are_refused_and_the_file_is_named(
    filled: Database, tmp_path: Path
) -> None:
    (tmp_path / "queries.txt").write_text("caf\xe9\n", "latin-1")
    done = run(filled, "evaluate", "second", "--queries", str(tmp_path / "queries.txt"))
    assert done.returncode == 1
    assert f"Error: {tmp_path / 'queries.txt'}: not UTF-8 at byte {len('caf')}" in done.stderr
    assert "iconv" in done.stderr


def test_activating_retiring_and_dropping(filled: Database) -> None:
    assert run(filled, "activate", "second", "--collection", "docs").returncode == 0
    assert listed(filled, "second")["answers"] == ["docs"]
    refused = run(filled, "retire", "second")
    assert refused.returncode == 1
    assert 'Error: space "second" answers the searches of docs' in refused.stderr
    assert run(filled, "drop", "second").returncode == 1
    assert run(filled, "activate", SHIPPED, "--collection", "docs").returncode == 0
    retired = run(filled, "retire", "second")
    assert retired.returncode == 0
    assert "pgrag space drop second" in retired.stderr
    assert run(filled, "drop", "second").returncode == 0
    assert "second" not in run(filled, "list").stdout


def test_activating_what_lacks_vectors_is_refused(hybrid: Database) -> None:
    hybrid.put("a", TEXTS["a"])
    run(hybrid, "create", "second", "--model", MODEL, "--collection", "docs")
    done = run(hybrid, "activate", "second", "--collection", "docs")
    assert done.returncode == 1
    assert 'space "second" still lacks 1 vectors of collection "docs"' in done.stderr


def test_activating_it_all_the_same_takes_force(hybrid: Database) -> None:
    hybrid.put("a", TEXTS["a"])
    run(hybrid, "create", "second", "--model", MODEL, "--collection", "docs")
    assert run(hybrid, "activate", "second", "--collection", "docs", "--force").returncode == 0
    assert listed(hybrid, "second")["answers"] == ["docs"]


def test_a_build_before_the_filling_says_what_is_lacking(hybrid: Database) -> None:
    hybrid.put("a", TEXTS["a"])
    run(hybrid, "create", "second", "--model", MODEL, "--collection", "docs", "--no-index")
    assert "It still lacks 1 vectors" in run(hybrid, "build", "second").stderr


def test_lists_of_nothing_are_not_built(hybrid: Database) -> None:
    run(hybrid, "create", "second", "--model", MODEL, "--index", "ivfflat")
    done = run(hybrid, "build", "second")
    assert done.returncode == 1
    assert "the lists of ivfflat are made of the vectors that are there" in done.stderr
    assert "\nTry: Fill it first: pgrag worker --once --space second --model MODEL" in done.stderr


def test_a_fit_hands_over_what_was_asked_and_says_how_it_went(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def fitted(connection: object, encoder: Any, **how: Any) -> FitFigures:
        asked.update(how, model=encoder.passport["model"])
        for done in (1, 2):
            how["on_progress"](FitProgress("fit", done, 2, cosine=0.75 + done / 100))
        return FitFigures(how["space"], "second-fitted", 900, 50, 100, 11, "tokens", 0.5, 0.77, 2, False, 1.0)

    monkeypatch.setattr(sys.modules["pgrag_cli.space.fit"], "fit_space", fitted)
    (tmp_path / "general.txt").write_text("one\ntwo\n")
    choices = (
        "--collection",
        "docs",
        "--sample",
        "100",
        "--epochs",
        "2",
        "--general",
        str(tmp_path / "general.txt"),
    )
    done = run(db, "fit", "second", "--model", MODEL, *choices, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cosine"] == 0.77
    assert "fitting, epoch 2 of 2, held-out cosine 0.7700\n" in done.stderr
    assert "embedded in SQL by second-fitted: 900 tokens, fitted on 100 texts" in done.stderr
    assert (asked["space"], asked["collections"], asked["general"]) == ("second", ["docs"], ["one", "two"])
    assert (asked["sample"], asked["epochs"], asked["hidden"]) == (100, 2, False)


def test_general_texts_that_are_not_utf_8_are_refused_and_the_file_is_named(
    db: Database, tmp_path: Path
) -> None:
    (tmp_path / "general.txt").write_text("caf\xe9\n", "latin-1")
    done = run(db, "fit", "second", "--model", MODEL, "--general", str(tmp_path / "general.txt"))
    assert done.returncode == 1
    assert f"Error: {tmp_path / 'general.txt'}: not UTF-8 at byte {len('caf')}" in done.stderr
