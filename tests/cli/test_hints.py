"""The next step, as a command where there is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgrag_cli import main
from pgrag_cli._hints import as_commands

FUNCTIONS = Path(__file__).parents[2] / "sql" / "functions"
COMMANDS = {command.__name__ for command in main.COMMANDS} | {
    f"{command.__name__.rstrip('_')}_{group}" for group, found in main.GROUPS.items() for command in found
}


def hints() -> list[str]:
    """Every literal of a hint in SQL, with a name where one is put in."""
    texts = [path.read_text("utf-8") for path in sorted(FUNCTIONS.rglob("*.sql"))]
    found = [hint for text in texts for hint in re.findall(r"hint = (?:format\()?'((?:[^']|'')*)'", text)]
    return [hint.replace("''", "'").replace("%L", "'docs'").replace("%s", "docs") for hint in found]


def test_a_call_that_a_command_stands_for_is_said_as_the_command() -> None:
    called = [(hint, name) for hint in hints() for name in re.findall(r"pgrag\.(\w+)\(", as_commands(hint))]
    assert [hint for hint, name in called if name in COMMANDS] == []


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (
            "First: select pgrag.attach_space('docs', 'two')",
            "First: pgrag space attach two --collection docs",
        ),
        ("select pgrag.retire_space('two')", "pgrag space retire two"),
        (
            "Let another answer first: select pgrag.activate_space('it''s', SPACE)",
            "Let another answer first: pgrag space activate SPACE --collection 'it'\"'\"'s'",
        ),
        ("To make it: select pgrag.create_collection('a b')", "To make it: pgrag create-collection 'a b'"),
        ("Name it: space => 'two'", "Name it: --space two"),
        ('Write it as {"m": 16}.', "Write it as --m 16."),
    ],
)
def test_its_arguments_are_the_calls(hint: str, said: str) -> None:
    assert as_commands(hint) == said


def test_what_no_command_does_is_left_as_it_is() -> None:
    hint = "Pass its text; to take it away: select pgrag.delete_document(collection, uri)"
    assert as_commands(hint) == hint
