"""What every command shares: exit codes, errors in two lines, and passwords that are never shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgrag._version import __version__
from pgrag.errors import PgragError
from pgrag_cli import main
from pgrag_cli._database import redact, resolve_dsn


def pgrag(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PGRAG_")}
    command = [sys.executable, "-m", "pgrag_cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=kept | environment, check=False)


def test_the_version_goes_to_stdout() -> None:
    assert pgrag("--version").stdout == f"pgrag {__version__}\n"


def test_an_unknown_command_is_wrong_usage() -> None:
    assert pgrag("serach").returncode == 2


def test_an_unknown_option_is_wrong_usage() -> None:
    assert pgrag("status", "--jsno").returncode == 2


def test_every_command_has_a_sentence_of_help() -> None:
    assert [command.__name__ for command in main.COMMANDS if not command.__doc__] == []


def test_a_known_error_is_two_lines_on_stderr_and_exit_1(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("")
    answer = pgrag("up", "--data", str(tmp_path / "letter"))
    error, advice = answer.stderr.splitlines()
    assert (answer.returncode, answer.stdout) == (1, "")
    assert error.startswith("Error: ")
    assert advice.startswith("Try: ")


def test_the_password_in_an_error_is_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise PgragError("postgresql://ana:s3cret@host/db is down.", "psql postgresql://ana:s3cret@host/db")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit, match="1"):
        main.run()
    assert capsys.readouterr().err == (
        "Error: postgresql://ana:***@host/db is down.\nTry: psql postgresql://ana:***@host/db\n"
    )


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("postgresql://ana:s3cret@host:5432/db", "postgresql://ana:***@host:5432/db"),
        ("postgresql+psycopg://ana:s3cret@host/db", "postgresql+psycopg://ana:***@host/db"),
        ("postgres://ana:with@at/slash@host/db", "postgres://ana:***@host/db"),
        ("postgresql://:s3cret@host/db", "postgresql://:***@host/db"),
        (
            "postgresql://host/db?user=ana&password=s3cret&port=1",
            "postgresql://host/db?user=ana&password=***&port=1",
        ),
        ("host=h password=s3cret user=ana", "host=h password=*** user=ana"),
        ("host=h password='s3 \\' cret' user=ana", "host=h password=*** user=ana"),
        ("host=h sslpassword = s3cret", "host=h sslpassword = ***"),
        ("postgresql://ana@host:5432/db", "postgresql://ana@host:5432/db"),
        ("postgresql://postgres@/postgres?host=%2Ftmp", "postgresql://postgres@/postgres?host=%2Ftmp"),
        ("write to ana@example.org", "write to ana@example.org"),
    ],
)
def test_passwords_are_redacted_and_nothing_else(text: str, redacted: str) -> None:
    assert redact(text) == redacted


def test_the_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGRAG_DATABASE_URL", "postgresql://environment/db")
    assert resolve_dsn("postgresql://option/db") == "postgresql://option/db"


def test_the_environment_is_used_without_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGRAG_DATABASE_URL", "postgresql://environment/db")
    assert resolve_dsn(None) == "postgresql://environment/db"


def test_no_database_at_all_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PGRAG_DATABASE_URL", raising=False)
    monkeypatch.setenv("PGRAG_DATA", str(tmp_path / "none"))
    with pytest.raises(PgragError, match="no database") as refusal:
        resolve_dsn(None)
    assert refusal.value.hint == "pgrag up, and the export line that it prints"
