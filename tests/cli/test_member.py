"""pgrag add-member and remove-member: who is in which group."""

from __future__ import annotations

from typing import Any

import pytest
from _cli import pgrag
from _pgrag import login_dsn


def read_by(db: Any, person: str) -> int:
    (row,) = db.rows_as(person, "select count(*) from pgrag.chunk")
    return int(row[0])


@pytest.fixture
def sealed(db: Any) -> Any:
    db.put("sealed.md", "Only for engineers.", readers=["group:eng"])
    return db


def test_members_of_a_group_may_read_until_they_are_taken_out(sealed: Any) -> None:
    assert pgrag(sealed.dsn, "add-member", "group:eng", "user:ana", "group:sre").returncode == 0
    assert pgrag(sealed.dsn, "add-member", "group:sre", "user:bo").returncode == 0
    assert [read_by(sealed, person) for person in ("user:ana", "user:bo", "user:cy")] == [1, 1, 0]
    assert pgrag(sealed.dsn, "remove-member", "group:eng", "user:ana").returncode == 0
    assert [read_by(sealed, person) for person in ("user:ana", "user:bo")] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["add-member", "eng", "user:ana"], 'Error: only a group has members, got "eng"'),
        (["add-member", "group:eng", "ana"], 'Error: "ana" is not the name of a principal'),
        (["remove-member", "group:eng", "user:ana"], 'Error: "user:ana" is not in "group:eng"'),
    ],
)
def test_a_refusal_says_what_to_do(sealed: Any, arguments: list[str], error: str) -> None:
    done = pgrag(sealed.dsn, *arguments)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first) == (1, error)
    assert second.startswith("Try: ")


def test_a_circle_of_groups_is_refused(sealed: Any) -> None:
    pgrag(sealed.dsn, "add-member", "group:eng", "group:sre")
    done = pgrag(sealed.dsn, "add-member", "group:sre", "group:eng")
    assert done.returncode == 1
    assert done.stderr.startswith('Error: "group:eng" can\'t be a member of "group:sre"')


def test_a_writer_may_not_change_who_is_in_a_group(sealed: Any) -> None:
    done = pgrag(login_dsn(sealed.dsn, "pgrag_test_writer"), "add-member", "group:eng", "user:ana")
    assert done.returncode == 1
    assert "pgrag_owner" in done.stderr
    assert read_by(sealed, "user:ana") == 0
