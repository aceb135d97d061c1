"""pgrag reindex: which of its two jobs is meant, what it prints of them, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _cli import pgrag
from _pgrag import Database, login_dsn
from _token_tables import WORDS, TableEncoder, judge, serve

from pgrag.worker import drain
from pgrag_cli import reindex as command

OLD, NEW = TableEncoder("old", 8, seed=1), TableEncoder("new", 16, seed=2)
# The command with an encoder that says when it is asked, and answers when told to.
PROGRAM = """
import sys, typer
import pgrag_cli.reindex
from _token_tables import TableEncoder

class Encoder(TableEncoder):
    def encode_documents(self, texts):
        print("encoding", len(texts), file=sys.stderr, flush=True)
        sys.stdin.readline()
        return super().encode_documents(texts)

pgrag_cli.reindex.load_encoder = lambda model, space=None: Encoder("new", 16, seed=2)
sys.argv = ["pgrag", *sys.argv[1:]]
from pgrag_cli.main import run
run()
"""


@pytest.fixture
def served(db: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A document a word, which the space ``old`` answers for; models are named by the space they are for."""
    models = {"old": OLD, "new": NEW}
    monkeypatch.setattr(command, "load_encoder", lambda model, space=None: models[model])
    serve(db, OLD)
    return db


@pytest.fixture
def judged(served: Database) -> Database:
    judge(served)
    return served


CHANGE = ("reindex", "--space", "new", "--collection", "docs", "--model", "new")


def answering(db: Database) -> Any:
    return db.value("select space from pgrag.collection_settings('docs')")


def test_the_words_of_a_collection_are_analysed_again(db: Database) -> None:
    db.put("a", "pumps")
    done = pgrag(db.dsn, "reindex", "--lexical", "--collection", "docs", "--rebuild")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "1 chunks are analysed as the analyzer does now.\nPostings, statistics and lexemes are built anew.\n"
    )


def test_a_change_of_model_shows_the_figures_and_the_next_steps(judged: Database) -> None:
    done = pgrag(judged.dsn, *CHANGE, "--old-model", "old")
    assert done.returncode == 0, done.stderr
    assert re.search(r"dense +│ nDCG@10 +│ 1\.000 │ 1\.000 │ 1\.0000 │ +0 │ +24 │ +0", done.stdout)
    lines = done.stderr.splitlines()
    assert "24 judged queries; old: space old, with queries by its model; new: space new." in lines
    assert 'Collection "docs" is searched by new.' in lines
    assert "To go back: pgrag space activate old --collection docs" in lines
    assert answering(judged) == "new"


def test_it_says_when_all_passages_have_their_vectors(judged: Database) -> None:
    lines = pgrag(judged.dsn, *CHANGE, "--old-model", "old").stderr.splitlines()
    told = [line for line in lines if "passages have their vectors" in line]
    assert told[0].startswith("0 of 24 passages")
    assert told[-1] == "24 of 24 passages have their vectors"
    assert lines.index(told[-1]) < lines.index('Collection "docs" is searched by new.')


def test_json_is_the_change_as_one_object(judged: Database) -> None:
    done = pgrag(judged.dsn, *CHANGE, "--old-model", "old", "--json")
    change = json.loads(done.stdout)
    assert (change["before"], change["space"], change["activated"]) == ("old", "new", True)
    assert change["verdict"]["passed"] is True
    assert len(change["verdict"]["comparisons"]) == 2 * 2


def test_a_closed_gate_is_exit_1_and_says_how_to_force_it(judged: Database) -> None:
    judged.execute("delete from pgrag.judged_query where query_id > '000009'")
    done = pgrag(judged.dsn, *CHANGE, "--old-model", "old", "--json")
    assert done.returncode == 1
    assert (
        'Error: space "new" is ready, and the gate is closed: 10 judged queries say too little' in done.stderr
    )
    assert "--force" in done.stderr
    assert json.loads(done.stdout)["verdict"]["queries"] == 10
    assert answering(judged) == "old"


def test_without_judged_queries_it_says_what_to_import(served: Database) -> None:
    done = pgrag(served.dsn, *CHANGE)
    assert done.returncode == 1
    assert done.stderr.startswith("As yet nothing says whether the new model is better: ")
    assert done.stderr.endswith(
        "Try: pgrag eval import --collection docs --beir DIR; or --force to activate unjudged\n"
    )
    assert answering(served) == "old"


def test_forced_it_says_that_nothing_was_judged(served: Database) -> None:
    done = pgrag(served.dsn, *CHANGE, "--force")
    assert done.returncode == 0
    assert "The gate was not asked: nothing says whether the new model is better" in done.stderr
    assert answering(served) == "new"


def test_it_may_be_left_ready(served: Database) -> None:
    done = pgrag(served.dsn, *CHANGE, "--no-activate")
    assert done.returncode == 0
    assert 'Space "new" is filled, indexed and ready; old goes on to answer.' in done.stderr
    assert answering(served) == "old"


def test_again_it_says_that_nothing_is_lacking(served: Database) -> None:
    pgrag(served.dsn, *CHANGE, "--force")
    done = pgrag(served.dsn, *CHANGE)
    assert done.stderr.endswith('Collection "docs" was searched by new already; it lacks nothing.\n')


def test_pause_and_resume_are_for_workers_anywhere(served: Database) -> None:
    pgrag(served.dsn, *CHANGE, "--no-activate")
    paused = "select paused from pgrag.space where name = 'new'"
    done = pgrag(served.dsn, "reindex", "--space", "new", "--pause")
    assert (done.returncode, done.stderr, served.value(paused)) == (0, 'Space "new" is paused.\n', True)
    again = pgrag(served.dsn, "reindex", "--space", "new", "--pause")
    assert again.stderr == 'Space "new" is paused already.\n'
    done = pgrag(served.dsn, "reindex", "--space", "new", "--resume")
    assert (done.stderr, served.value(paused)) == ('Space "new" goes on.\n', False)
    again = pgrag(served.dsn, "reindex", "--space", "new", "--resume")
    assert again.stderr == 'Space "new" was not paused.\n'


def test_resumed_with_a_model_the_run_goes_on_too(served: Database) -> None:
    pgrag(served.dsn, *CHANGE, "--no-activate")
    served.execute("select pgrag.pause_space('new')")
    served.put("more", WORDS[0])
    assert pgrag(served.dsn, *CHANGE, "--resume", "--force").returncode == 0
    assert answering(served) == "new"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--collection", "docs"),
        ("--collection", "docs", "--lexical", "--space", "new"),
        ("--lexical",),
        ("--space", "new", "--model", "new"),
        ("--collection", "docs", "--lexical", "--model", "new"),
        ("--collection", "docs", "--lexical", "--pause"),
        ("--collection", "docs", "--space", "new", "--analyzer", "german"),
        ("--space", "new", "--pause", "--resume"),
        ("--space", "new", "--collection", "docs", "--pause", "--model", "new"),
    ],
)
def test_what_makes_no_sense_together_is_wrong_usage(served: Database, arguments: tuple[str, ...]) -> None:
    assert pgrag(served.dsn, "reindex", *arguments).returncode == 2


def test_an_application_may_not(served: Database) -> None:
    done = pgrag(login_dsn(served.dsn, "pgrag_test_app"), *CHANGE)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: permission denied")


def test_a_signal_lets_it_finish_its_batch_and_say_what_is_left(served: Database) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *CHANGE, "--batch", "10", "--force"],
        env=os.environ | {"PGRAG_DATABASE_URL": served.dsn, "COLUMNS": "200"},
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stdin is not None
    for line in process.stderr:
        if line == "encoding 10\n":
            break
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate("\n", timeout=60)
    assert process.returncode == 1
    left = len(WORDS) - 10
    assert (
        f'Error: stopped; {left} of {len(WORDS)} passages of collection "docs" still lack a vector in space new'
        in err
    )
    assert served.value("select claimed from pgrag.space_progress('docs', 'new')") == 0


def test_going_back_is_one_command_and_may_be_forced(served: Database) -> None:
    pgrag(served.dsn, *CHANGE, "--force")
    back = ("space", "activate", "old", "--collection", "docs")
    done = pgrag(served.dsn, *back)
    assert (done.returncode, answering(served)) == (0, "old")
    pgrag(served.dsn, *CHANGE, "--force")
    served.put("more", WORDS[0])
    drain(served.admin, NEW, space="new")  # and no worker of the old model runs any more
    done = pgrag(served.dsn, *back)
    assert done.returncode == 1
    assert done.stderr.startswith('Error: space "old" still lacks 1 vectors of collection "docs"')
    assert pgrag(served.dsn, *back, "--force").returncode == 0
    assert answering(served) == "old"
