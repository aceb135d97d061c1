"""``pgrag up``, ``down``, ``status`` and ``psql``, each as a process of its own, on one embedded server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from pgrag.server import EmbeddedServer


def pgrag(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PGRAG_")}
    command = [sys.executable, "-m", "pgrag_cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=kept | environment, check=False)


@pytest.fixture(scope="module")
def data(module_place: Path) -> Iterator[Path]:
    with EmbeddedServer(module_place / "my data", settings={"fsync": "off"}) as server:
        yield server.data


@pytest.fixture(scope="module")
def dsn(data: Path) -> str:
    return f"postgresql://postgres@/postgres?host={quote(str(data), safe='')}&port=5432"


def test_up_prints_only_the_dsn_to_stdout(data: Path, dsn: str) -> None:
    assert pgrag("up", "--data", data).stdout == f"{dsn}\n"


def test_up_says_how_to_export_it(data: Path, dsn: str) -> None:
    assert f"export PGRAG_DATABASE_URL='{dsn}'" in pgrag("up", "--data", data).stderr


def test_up_starts_a_server_that_outlives_it(place: Path) -> None:
    with psycopg.connect(pgrag("up", "--data", place / "new").stdout.strip()) as connection:
        assert connection.info.parameter_status("server_encoding") == "UTF8"


def test_down_stops_it(place: Path) -> None:
    server = EmbeddedServer(place / "new", settings={"fsync": "off"})
    server.start()
    pgrag("down", "--data", place / "new")
    assert not server.status().running


def test_down_without_a_server_is_no_failure(place: Path) -> None:
    answer = pgrag("down", "--data", place / "none")
    assert (answer.returncode, answer.stderr) == (0, f"No server runs in {place}/none\n")


def test_status_knows_the_server(data: Path, dsn: str) -> None:
    server = json.loads(pgrag("status", "--data", data, "--json").stdout)["server"]
    assert (server["running"], server["version"], server["dsn"]) == (True, 18, dsn)


def test_status_knows_the_versions_of_what_it_reaches(data: Path) -> None:
    database = json.loads(pgrag("status", "--data", data, "--json").stdout)["database"]
    assert (database["postgresql"], database["pgvector"], database["pgvector_available"]) == (
        "18.6",
        None,
        "0.8.6",
    )


def test_status_without_a_server_says_so_and_is_no_failure(place: Path) -> None:
    answer = pgrag("status", "--json", PGRAG_DATA=str(place / "none"))
    assert answer.returncode == 0
    assert json.loads(answer.stdout)["database"]["reachable"] is False


def test_status_hides_the_password_of_a_database_that_it_can_not_reach(place: Path) -> None:
    url = f"postgresql://ana:s3cret@/db?host={quote(str(place), safe='')}"
    answer = pgrag("status", PGRAG_DATA=str(place / "none"), PGRAG_DATABASE_URL=url)
    assert "ana:***@" in answer.stdout
    assert "s3cret" not in answer.stdout + answer.stderr


def test_status_is_a_line_a_fact(data: Path) -> None:
    lines = pgrag("status", "--data", data).stdout.splitlines()
    assert f"{'server data':{len('database pgvector available')}}  {data}" in lines


def test_psql_runs_in_the_embedded_server(data: Path) -> None:
    assert pgrag("psql", "--data", data, "--", "-Atc", "show data_directory").stdout == f"{data}\n"


def test_psql_finds_the_running_server_by_itself(data: Path) -> None:
    assert pgrag("psql", "--", "-Atc", "select 6 * 7", PGRAG_DATA=str(data)).stdout == "42\n"


def test_psql_prefers_the_database_of_the_environment(data: Path, dsn: str, place: Path) -> None:
    answer = pgrag(
        "psql", "--", "-Atc", "select 6 * 7", PGRAG_DATA=str(place / "none"), PGRAG_DATABASE_URL=dsn
    )
    assert answer.stdout == "42\n"


def test_psql_hands_on_the_exit_code(data: Path) -> None:
    assert pgrag("psql", "--data", data, "--", "-v", "ON_ERROR_STOP=1", "-f", "/nowhere").returncode == 1


def test_psql_keeps_the_password_out_of_the_list_of_processes(dsn: str) -> None:
    url = dsn.replace("postgres@", "postgres:s3cret@")
    seen = pgrag("psql", "--", "-Atc", r"\! tr '\0' ' ' < /proc/$PPID/cmdline", PGRAG_DATABASE_URL=url).stdout
    assert "dbname=postgres" in seen
    assert "s3cret" not in seen


def test_psql_without_a_database_says_what_to_do(place: Path) -> None:
    answer = pgrag("psql", PGRAG_DATA=str(place / "none"))
    assert (answer.returncode, answer.stderr.splitlines()[1]) == (
        1,
        "Try: pgrag up, and the export line that it prints",
    )


def test_psql_of_a_url_that_is_none_does_not_repeat_it() -> None:
    answer = pgrag("psql", PGRAG_DATABASE_URL="s3cret and more")
    assert answer.returncode == 1
    assert "s3cret" not in answer.stderr
