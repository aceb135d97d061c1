"""pgrag pack: the text for a generator on stdout, what is in it on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

ARGUMENTS = ("pack", "who checks the pump?", "--as", "user:ana")


def pgrag(dsn: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pgrag_cli.main", *arguments]
    environment = os.environ | {"PGRAG_DATABASE_URL": dsn}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def pumps(db: Any) -> Any:
    db.put("pumps.md", "# Hall four\n\nThe pump is checked every Tuesday.", title="Pumps")
    db.put("copy.md", "# Hall four\n\nThe pump is checked  every Tuesday.", title="Pumps")
    db.put("secret.md", "The pump is sold.", readers=["user:bo"])
    return db


def test_the_context_goes_to_stdout_and_the_report_to_stderr(pumps: Any) -> None:
    done = pgrag(pumps.dsn, *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    assert "The pump is checked every Tuesday.\n</passage-" in done.stdout
    assert "sold" not in done.stdout + done.stderr
    first, packed, left_out = done.stderr.splitlines()
    assert first.startswith("1 packed, ")
    assert first.endswith(" of 2000 tokens; 1 left out")
    assert packed.startswith("  P1  pumps.md › Hall four: ")
    assert left_out.startswith("  -  copy.md › Hall four: ")
    assert left_out.endswith(" tokens, same text as P1")


def test_json_is_one_object_with_passages_and_what_was_left_out(pumps: Any) -> None:
    done = pgrag(pumps.dsn, *ARGUMENTS, "--json")
    context = json.loads(done.stdout)
    assert [passage["uri"] for passage in context["passages"]] == ["pumps.md"]
    assert [left["reason"] for left in context["left_out"]] == ["same text as P1"]


def test_a_budget_that_is_too_small_packs_nothing_and_says_so(pumps: Any) -> None:
    done = pgrag(pumps.dsn, *ARGUMENTS, "--budget", "1")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("0 packed, 0 of 1 tokens; 2 left out")


def test_a_budget_out_of_range_is_refused(pumps: Any) -> None:
    done = pgrag(pumps.dsn, *ARGUMENTS, "--budget", "0")
    assert done.returncode == 2
    assert "'--budget'" in done.stderr


def test_nothing_found_is_said_on_stderr(pumps: Any) -> None:
    done = pgrag(pumps.dsn, "pack", "zeppelin", "--as", "user:ana")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Nothing that user:ana may read matches.\n"


def test_somebody_must_ask(pumps: Any) -> None:
    assert pgrag(pumps.dsn, "pack", "pump").returncode == 1


def test_a_query_without_a_word_is_told_so(pumps: Any) -> None:
    done = pgrag(pumps.dsn, "pack", "?", "--as", "user:ana")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "The query has no word to look for.\n")
