"""The README tells the truth: its examples run, in order, and print what it shows.

A block ```` ```sql ```` begins with ``-- as`` and who runs it: ``app`` and ``loader`` are the login roles that the README
makes (here under other names, since roles belong to the whole server), an administrator is the superuser. psql runs it.
``$ pgrag …`` in ```` ```console ```` is run as a process, and what stands below it is all that it prints, but for the
shell's line breaks. ```` ```toml ```` is read as a readers file. ```` ```python ```` is executed, in one namespace. A block
```` ```text ```` is what the block above it prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from _pgrag import login_dsn
from psycopg import sql

from pgrag.access import load_readers_file
from pgrag.server import EmbeddedServer

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# What isn't executed here: the first two are what runs these tests and tests/journey/test_demo.py,
# and tests/journey/test_install.py installs.
NOT_RUN = [
    "make demo     # a handbook, three people, one question: what each may read, with citations",
    "make test     # every test",
    "pip install '.[local]'",
]
LOGINS = {"app": "pgrag_readme_app", "loader": "pgrag_readme_loader"}


@dataclass(frozen=True)
class Block:
    """A fenced block of the README, and the ``text`` block right below it, if there is one."""

    language: str
    line: int
    body: str
    shown: str | None


def blocks() -> list[Block]:
    """The blocks that can be run, in their order."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
    return [
        Block(match[1], README.count("\n", 0, match.start()) + 1, match[2], match[3])
        for match in fence.finditer(README)
    ]


class Place:
    """A database and a namespace, in which the blocks are run one after the other."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.names: dict[str, object] = {"__name__": "readme"}

    def sql(self, block: Block) -> None:
        """Run a block as psql would, as who its first line says."""
        first, _, statements = block.body.partition("\n")
        who = first.removeprefix("-- as ")
        assert who in {"an administrator", *LOGINS}, f"line {block.line}: say `-- as` who runs this"
        for name, login in LOGINS.items():
            statements = re.sub(rf"\b(role|to) {name}\b", rf"\1 {login}", statements)
        if who in LOGINS:
            statements = f"set session authorization {LOGINS[who]};\n{statements}"
        program = str(EmbeddedServer().binary("psql"))
        printed = run([program, "-X", "-v", "ON_ERROR_STOP=1", "-f", "-", self.dsn], statements).stdout
        assert block.shown is None or block.shown in printed, printed

    def console(self, block: Block, environment: dict[str, str]) -> None:
        """Run each command of a block, and compare what it prints where the README shows that."""
        for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
            typed, _, shown = part.partition("\n")
            program, *arguments = shlex.split(typed)
            assert program == "pgrag"
            refused = shown.startswith("Error:")
            command = [sys.executable, "-m", "pgrag_cli.main", *arguments]
            done = run(command, environment=environment, code=1 if refused else 0)
            if shown:
                assert (done.stderr if refused else done.stdout) == shown

    def readers_file(self, block: Block) -> None:
        """Read a block as ``--readers-file`` is."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(block.body)
            file.flush()
            assert load_readers_file(Path(file.name)).rules

    def python(self, block: Block) -> None:
        """Execute a block in the namespace of those before it."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.body, f"README.md, line {block.line}", "exec"), self.names)  # noqa: S102
        assert block.shown is None or printed.getvalue() == block.shown


def run(
    command: list[str], stdin: str = "", *, environment: dict[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout and insist on its exit code."""
    done = subprocess.run(
        command,
        input=stdin,
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def readme_logins(roles: None, server_dsn: str) -> Iterator[None]:
    """Take the login roles that the README makes away again, after the databases in which they were used."""
    yield
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        for name in LOGINS.values():
            admin.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


@pytest.fixture
def environment(place: Path, hybrid_dsn: str) -> dict[str, str]:
    """The variables for commands: the test's database, and an embedded server's data that goes at the end."""
    return os.environ | {
        "PGRAG_DATABASE_URL": hybrid_dsn,
        "PGRAG_DATA": str(place / "data"),
        "COLUMNS": "100",
    }


def test_every_example_runs_and_prints_what_is_shown(
    readme_logins: None, hybrid_dsn: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(hybrid_dsn)
    monkeypatch.setenv("PGRAG_DATABASE_URL", login_dsn(hybrid_dsn, "pgrag_test_app"))
    execute: dict[str, Callable[[Block], None]] = {
        "sql": place.sql,
        "console": lambda block: place.console(block, environment),
        "python": place.python,
        "sh": lambda block: None,
        "toml": place.readers_file,
    }
    for block in blocks():
        try:
            execute[block.language](block)
        except Exception as error:
            error.add_note(f"in README.md, the block at line {block.line}")
            raise


def test_only_the_listed_commands_are_not_run() -> None:
    lines = [line for block in blocks() if block.language == "sh" for line in block.body.splitlines()]
    assert lines == NOT_RUN


def test_every_link_to_a_file_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_path_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:sql|alembic|pgrag|cli|tests|examples|bench|docker)/[\w./-]*)`", README)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
