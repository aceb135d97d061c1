"""pgrag init and upgrade: each says what it did, and what must come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from _cli import pgrag
from _pgrag import login_dsn

from pgrag._version import __version__


@pytest.fixture
def empty(roles: None, new_database: Callable[..., str]) -> str:
    return new_database()


def test_init_and_upgrade_make_a_database_ready_and_say_so_twice(empty: str) -> None:
    said = [pgrag(empty, *command) for command in (["init"], ["upgrade", "--no-encoder"]) for _ in range(2)]
    assert [done.returncode for done in said] == [0, 0, 0, 0]
    assert [done.stderr for done in said] == [
        "Prepared. Next: pgrag upgrade\n",
        "Prepared already.\n",
        f"Upgraded to pgrag {__version__}.\n",
        f"Already at pgrag {__version__}.\n",
    ]


def test_upgrade_loads_the_shipped_encoder_once(dsn: str) -> None:
    said = [pgrag(dsn, "upgrade").stderr for _ in range(2)]
    assert said == [f"Upgraded to pgrag {__version__}.\n", f"Already at pgrag {__version__}.\n"]
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from pgrag.space").fetchone() == (1,)


def test_upgrade_before_init_names_init(empty: str) -> None:
    done = pgrag(empty, "upgrade")
    assert (done.returncode, done.stderr.splitlines()[1]) == (1, "Try: As an administrator: pgrag init")


def test_a_search_before_init_names_both(empty: str) -> None:
    done = pgrag(empty, "search", "pump", "--as", "user:ana")
    assert (done.returncode, done.stderr.splitlines()[1]) == (1, "Try: pgrag init, then pgrag upgrade")


@pytest.mark.parametrize("command", ["init", "upgrade"])
def test_an_ordinary_role_is_refused_with_what_is_needed(db: Any, command: str) -> None:
    done = pgrag(login_dsn(db.dsn, "pgrag_test_app"), command)
    error, advice = done.stderr.splitlines()
    assert done.returncode == 1
    assert error.startswith("Error: ")
    assert advice.startswith("Try: ")
    assert "administrator" in advice


@pytest.mark.parametrize("command", ["init", "upgrade"])
def test_no_server_is_two_lines_without_a_password(command: str) -> None:
    done = pgrag("postgresql://ana:s3cret@127.0.0.1:1/db", command)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 2)
    assert "s3cret" not in done.stderr
