"""Every error that pgrag raises on purpose, in one tree; each says what is wrong and what to do next.

``PgragError.hint`` is the next step, in one sentence or command; the command line prints it after ``Try:``.
Database errors are translated here and nowhere else, by SQLSTATE.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import psycopg
import sqlalchemy.exc

__all__ = [
    "CODES",
    "NO_SPACE",
    "ConnectionFailed",
    "DatabaseError",
    "InstallError",
    "NotInstalled",
    "ParseError",
    "PgragError",
    "Refused",
    "ServerError",
    "translate",
    "translated",
]


class PgragError(Exception):
    """The root of every error that pgrag raises on purpose, each with a message and the next step.

    Args:
        message: Names the thing and the rule it broke, with the value that broke it.
        hint: The next step, or None where there is nothing to advise.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ServerError(PgragError):
    """The embedded server can't be installed, started, reached or stopped."""


class ParseError(PgragError):
    """A file can't be read as the kind of document it claims to be; ``message`` is the reason."""


class InstallError(PgragError):
    """The database can't be prepared or upgraded: too old, too new, or not enough rights."""


class DatabaseError(PgragError):
    """The database refused or failed.

    Attributes:
        code: SQLSTATE; ``RG…`` where one of pgrag's own functions refused, None where there was no answer.
    """

    def __init__(self, message: str, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message, hint)
        self.code = code


class ConnectionFailed(DatabaseError):
    """No database answers at the connection string."""


class NotInstalled(DatabaseError):
    """The database has no pgrag, or one of another release."""


class Refused(DatabaseError):
    """One of pgrag's functions refused its input; ``code`` says which rule, and the message names the value."""


# Every code that the SQL functions raise, with the rule it stands for; a test compares it with sql/.
CODES = {
    "RG001": "a number is out of its range",
    "RG002": "no such collection",
    "RG003": "a reader that no principal is known by",
    "RG004": "the name is taken",
    "RG005": "no such space, several of them, or one that isn't ready",
    "RG006": "TRUNCATE on a table that the index is kept for",
    "RG007": "a uri or a chunk twice in one batch",
    "RG008": "no readers",
    "RG009": "no content",
    "RG010": "no such analyzer",
    "RG011": "the query is too long",
    "RG012": "the chunk budget is out of its range",
    "RG013": "a text with too many different words",
    "RG014": "pruning would remove most of a collection",
    "RG020": "the role may not act for others",
    "RG021": "row security is not active",
    "RG022": "not the name of a principal",
    "RG023": "a circle of groups",
    "RG030": "arrays of different length",
    "RG031": "a vector that doesn't belong to the space",
    "RG032": "a space that is in use",
    "RG033": "a judgement that doesn't fit its document",
    "RG034": "no such run",
}

# Of these one that a worker meets when its space is dropped.
NO_SPACE = "RG005"

_NOT_INSTALLED = {"3F000", "42883", "42P01"}
_OF_SPACE = re.compile(r"pgrag\.embedding_\d+")
# psycopg sends a whole number as bigint or numeric only where it is too large for an int, and takes all of a list alike.
_TOO_LARGE = re.compile(r"function pgrag\.\w+\(.*\b(bigint|numeric)\b")
_NUMBERS = "Pass whole numbers from -2147483648 to 2147483647"
# What libpq says of a connection string that it can't read; it quotes it, and that may hold a password.
_UNREADABLE_DSN = ("connection info string", "connection option", "URI", "percent-encoded")


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn what psycopg and SQLAlchemy raise inside into one of this tree; the cause stays attached."""
    try:
        yield
    except sqlalchemy.exc.DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):
            raise
        raise translate(error.orig) from error.orig
    except psycopg.Error as error:
        raise translate(error) from error
    except UnicodeEncodeError as error:
        raise DatabaseError(
            "a text holds half of a surrogate pair, which isn't a character", "Pass text in UTF-8."
        ) from error


def translate(error: psycopg.Error) -> DatabaseError:
    """Return the error of this tree that says what a database error means."""
    code = error.sqlstate
    message = error.diag.message_primary or str(error).strip() or type(error).__name__
    if notes := getattr(error, "__notes__", []):
        message = f"{message} ({'; '.join(notes)})"
    hint = error.diag.message_hint
    if (
        code is None
        and isinstance(error, psycopg.ProgrammingError)
        and any(sign in message for sign in _UNREADABLE_DSN)
    ):
        return ConnectionFailed(
            "that isn't a connection string.", "Write it as postgresql://user@host:5432/database", code
        )
    if code is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        reason = message.splitlines()[0]
        return ConnectionFailed(
            f"no database answers: {reason}", "Start one with: pgrag up, or set PGRAG_DATABASE_URL.", code
        )
    if code is not None and code.startswith("RG"):
        return Refused(message, hint, code)
    if (code is None and "NUL (0x00)" in message) or "\\u0000" in (error.diag.message_detail or ""):
        return DatabaseError(
            "a text holds a NUL character, which PostgreSQL can't keep",
            "Take it out: text.replace('\\0', '')",
            code,
        )
    if code == "22P02" and error.diag.message_detail:
        message = f"{message}: {error.diag.message_detail}"
    if code is None and "vector type not found" in message:
        return NotInstalled("this database has no pgvector", "pgrag init, then pgrag upgrade", code)
    if code == "42501" and "schema pgrag" in message:
        return NotInstalled(
            f"the database isn't upgraded yet, or this role has no part in pgrag: {message}",
            "pgrag upgrade; or as an administrator: grant pgrag_app, pgrag_reader or pgrag_writer to the role",
            code,
        )
    if code == "42P01" and _OF_SPACE.search(message):
        return Refused("the space was dropped while it was used", "pgrag space list", NO_SPACE)
    if code == "42883" and _TOO_LARGE.search(message):
        return DatabaseError(
            f"a number is out of its range, or the database has another release of pgrag: {message}",
            f"{_NUMBERS}; else: pgrag upgrade",
            code,
        )
    if code == "22003" and "out of range" in message:
        return DatabaseError(f"a number is out of its range: {message}", hint or f"{_NUMBERS}.", code)
    if code in _NOT_INSTALLED and "pgrag" in message:
        return NotInstalled(
            f"pgrag isn't installed in this database: {message}", "pgrag init, then pgrag upgrade", code
        )
    if code == "42501" and hint is None:
        hint = "Connect as a member of pgrag_writer; groups and spaces need one of pgrag_owner."
    return DatabaseError(message, hint, code)
