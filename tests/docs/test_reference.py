"""What is public is documented: SQL functions, names of ``pgrag``, commands and their options.

Three tables of the README are held against what they describe. Where one fails, its message ends with the table
as it should be, between the same marks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

import pgrag
from pgrag.install import sql_folder
from pgrag_cli.main import COMMANDS, GROUPS, app

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def marked(name: str) -> list[str]:
    """The lines between the README's ``<!-- name -->`` and ``<!-- /name -->``."""
    match = re.search(f"<!-- {name} -->\n(.*?)<!-- /{name} -->", README, re.DOTALL)
    assert match is not None, f"the README has no block {name}"
    return match[1].splitlines()


def hold(name: str, table: list[str]) -> None:
    """Compare a block of the README with what it should be."""
    expected = "\n".join([f"<!-- {name} -->", *table, f"<!-- /{name} -->"])
    assert marked(name) == table, f"the README should say:\n{expected}"


def public_files() -> list[Path]:
    """The files of the functions whose names don't begin with ``_``, in the order of the stages."""
    files = (sql_folder() / "functions").glob("*/[!_]*.sql")
    return sorted(files, key=lambda file: (file.parent.name, file.stem))


def function_table() -> list[str]:
    """A row a public function: its stage, its name and the first line of its file."""
    rows = ["| stage | function | what it does |", "| --- | --- | --- |"]
    for file in public_files():
        first = file.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("-- "), f"{file.name} doesn't begin with a sentence"
        stage = file.parent.name.partition("_")[2]
        rows.append(f"| {stage} | `{file.stem}` | {first.removeprefix('-- ')} |")
    return rows


def every_command() -> dict[str, Callable[..., None]]:
    """The commands by the words that call them, such as ``space list``."""
    alone = {command.__name__.replace("_", "-"): command for command in COMMANDS}
    grouped = {
        f"{group} {command.__name__.rstrip('_').replace('_', '-')}": command
        for group, commands in GROUPS.items()
        for command in commands
    }
    return alone | grouped


def command_table() -> list[str]:
    """A row a command, with the first line of its help; those of a group come after the rest."""
    rows = ["| command | what it does |", "| --- | --- |"]
    for words, command in every_command().items():
        rows.append(f"| `pgrag {words}` | {first_line(command)} |")
    return rows


def python_table() -> list[str]:
    """A row a public name, with the first line of its docstring."""
    documented = [name for name in pgrag.__all__ if name != "__version__"]
    rows = ["| name | what it is |", "| --- | --- |"]
    for name in documented:
        rows.append(f"| `pgrag.{name}` | {first_line(getattr(pgrag, name))} |")
    return rows


def first_line(thing: object) -> str:
    """The first paragraph of a docstring in one line; roles of Sphinx become code."""
    text = inspect.getdoc(thing)
    assert text, f"{thing} has no docstring"
    sentence = " ".join(text.split("\n\n")[0].split())
    return re.sub(r":\w+:`(\w+\.)*(\w+)`", r"`\2`", sentence).replace("``", "`")


def test_every_command_is_called_by_the_words_that_are_listed() -> None:
    found: Any = typer.main.get_command(app)
    words = {
        f"{name} {inner}" if inner else name
        for name, one in found.commands.items()
        for inner in getattr(one, "commands", [""])
    }
    assert words == set(every_command())


def test_the_readme_lists_the_public_functions() -> None:
    hold("functions", function_table())


def test_the_readme_lists_the_commands() -> None:
    hold("commands", command_table())


def test_the_readme_lists_the_public_names_of_python() -> None:
    hold("python", python_table())


def test_the_database_has_the_public_functions_and_no_others(db: Any) -> None:
    rows = db.execute(
        "select distinct proname from pg_proc where pronamespace = 'pgrag'::regnamespace and proname !~ '^_'"
    )
    assert {name for (name,) in rows} == {file.stem for file in public_files()}


@pytest.mark.parametrize("words", every_command())
def test_every_option_and_argument_of_a_command_has_help(words: str) -> None:
    found: Any = typer.main.get_command(app)
    for word in words.split():
        found = found.commands[word]
    parameters = found.params
    assert [one.name for one in parameters if not getattr(one, "help", None) and one.name != "help"] == []


@pytest.mark.parametrize("store", ["Store", "AsyncStore", "Caller", "AsyncCaller"])
def test_every_public_method_of_the_client_has_a_docstring(store: str) -> None:
    members = inspect.getmembers(getattr(pgrag, store), inspect.isfunction)
    assert [name for name, member in members if not name.startswith("_") and not member.__doc__] == []
