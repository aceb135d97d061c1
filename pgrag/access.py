"""The stage ``access``: who may read what, as a file says it; the database alone decides who reads."""

from __future__ import annotations

import graphlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

from pgrag.errors import PgragError, translated

__all__ = ["AccessRule", "ReadersFile", "add_groups", "check_readers", "load_readers_file", "remove_members"]

_PRINCIPAL = re.compile(r"public|(?:user|group|role):\S.{0,199}")
_GLOB = re.compile(r"\*\*/|\*\*|\*|\?")
_GLOBS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class AccessRule:
    """Readers of the documents that a glob matches.

    Attributes:
        paths: Globs over a document's whole URI: ``*`` and ``?`` stay in a folder, ``**`` crosses any number.
        readers: Principals, with ``!`` before those denied; empty means nobody.
    """

    paths: tuple[str, ...]
    readers: tuple[str, ...]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{_translated(path)})" for path in self.paths), re.DOTALL)

    def matches(self, uri: str) -> bool:
        """Whether a glob matches the whole URI."""
        return self._pattern.fullmatch(uri) is not None


@dataclass(frozen=True)
class ReadersFile:
    """What a ``readers.toml`` says.

    Attributes:
        groups: Direct members by group.
        rules: In the order of the file.
    """

    groups: Mapping[str, tuple[str, ...]]
    rules: tuple[AccessRule, ...]

    def readers_of(self, uri: str) -> tuple[str, ...] | None:
        """Name the readers of a document.

        Args:
            uri: Its URI, relative to the folder that is ingested.

        Returns:
            The readers of the last rule that matches; None where none does.
        """
        return next((rule.readers for rule in reversed(self.rules) if rule.matches(uri)), None)

    @property
    def principals(self) -> tuple[str, ...]:
        """Every name in the file, sorted, without ``!``."""
        names = {name.removeprefix("!") for rule in self.rules for name in rule.readers}
        names.update(self.groups)
        names.update(member for members in self.groups.values() for member in members)
        return tuple(sorted(names))


def load_readers_file(path: Path) -> ReadersFile:
    """Read ``[groups]`` and ``[[access]]`` from a TOML file; whatever isn't understood is refused.

    Args:
        path: The file.

    Returns:
        Its groups and rules.

    Raises:
        PgragError: it can't be read, isn't TOML, or a group or rule is wrong; the message names the file and
            the rule, counted from 1.
    """
    try:
        found = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise PgragError(
            f"{path}: can't be read: {error.strerror or error}", "Check the name and permissions."
        ) from error
    except (ValueError, RecursionError) as error:
        raise PgragError(f"{path}: not TOML in UTF-8: {error}", "Repair the file.") from error
    _only(path, "the file", found, ("groups", "access"))
    groups = found.get("groups", {})
    if not isinstance(groups, dict):
        raise _wrong(path, "[groups]", "must be a table of groups with their members")
    rules = found.get("access", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise _wrong(path, "[[access]]", "must be tables with paths and readers")
    members = {name: _members(path, name, listed) for name, listed in groups.items()}
    _refuse_circles(path, members)
    return ReadersFile(members, tuple(_rule(path, number, rule) for number, rule in enumerate(rules, 1)))


def check_readers(connection: psycopg.Connection[Any], names: Sequence[str], *, create: bool = False) -> None:
    """Refuse readers that the database doesn't know, or make them known; in a transaction of its own.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        names: Readers, ``!`` before those denied.
        create: Make unknown ones known.

    Raises:
        PgragError: a name is malformed, or unknown and not to be created.
    """
    for name in names:
        if _PRINCIPAL.fullmatch(name.removeprefix("!")) is None:
            raise PgragError(f'"{name}" is no reader', "Write public, user:NAME, group:NAME or role:NAME.")
    with translated(), connection.transaction():
        rows = connection.execute("select * from pgrag.unknown_readers(%s)", [list(names)]).fetchall()
        found = [row[0] for row in rows]
        unknown = [name for name in found if name != "public"]  # no typing error; a new database lacks it
        if unknown and not create:
            listed = ", ".join(f'"{name}"' for name in unknown[:5]) + (", …" if len(unknown) > 5 else "")
            plural = "s are" if len(unknown) > 1 else " is"
            raise PgragError(
                f"reader{plural} not known: {listed}", "If it is no typing error, add --create-readers."
            )
        if found:
            connection.execute("select pgrag.create_principals(variadic %s)", [found])


def add_groups(connection: psycopg.Connection[Any], groups: Mapping[str, Sequence[str]]) -> None:
    """Put members into groups, all or none; nobody is taken out of one.

    Args:
        connection: Of a member of ``pgrag_owner``.
        groups: Members by group.

    Raises:
        DatabaseError: the role may not, or the groups make a circle with those in the database.
    """
    with translated(), connection.transaction():
        for group, members in groups.items():
            for member in members:
                connection.execute("select pgrag.add_member(%s, %s)", [group, member])


def remove_members(connection: psycopg.Connection[Any], group: str, members: Sequence[str]) -> None:
    """Take members out of a group, all or none.

    Args:
        connection: Of a member of ``pgrag_owner``.
        group: The group.
        members: Who leaves it.

    Raises:
        PgragError: one of them isn't in it; then nobody is taken out.
    """
    with translated(), connection.transaction():
        for member in members:
            row = connection.execute("select pgrag.remove_member(%s, %s)", [group, member]).fetchone()
            if row != (True,):
                raise PgragError(
                    f'"{member}" is not in "{group}"', "Nobody was taken out; look at the names."
                )


def _wrong(path: Path, where: str, problem: str) -> PgragError:
    return PgragError(f"{path}: {where}: {problem}", "Correct the file and try again.")


def _only(path: Path, where: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            raise _wrong(path, where, f'"{key}" is not one of {", ".join(known)}')


def _strings(path: Path, where: str, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _wrong(path, where, f"{key} must be a list of strings")
    return tuple(dict.fromkeys(value))


def _members(path: Path, group: str, listed: Any) -> tuple[str, ...]:
    where = f'group "{group}"'
    if not group.startswith("group:") or _PRINCIPAL.fullmatch(group) is None:
        raise _wrong(path, where, "the name of a group begins with group:")
    members = _strings(path, where, "members", listed)
    for member in members:
        if member == "public" or member == group or _PRINCIPAL.fullmatch(member) is None:
            raise _wrong(
                path, where, f'"{member}" can\'t be a member; write user:NAME, group:NAME or role:NAME'
            )
    return members


def _refuse_circles(path: Path, groups: Mapping[str, Sequence[str]]) -> None:
    try:
        graphlib.TopologicalSorter(groups).prepare()
    except graphlib.CycleError as error:
        raise _wrong(
            path, "[groups]", "a circle of groups: " + " > ".join(reversed(error.args[1]))
        ) from error


def _rule(path: Path, number: int, rule: Mapping[str, Any]) -> AccessRule:
    where = f"access rule {number}"
    _only(path, where, rule, ("paths", "readers"))
    for key in ("paths", "readers"):
        if key not in rule:
            raise _wrong(path, where, f"{key} is missing")
    paths = _strings(path, where, "paths", rule["paths"])
    readers = _strings(path, where, "readers", rule["readers"])
    if not paths:
        raise _wrong(path, where, "paths is empty, so it matches nothing")
    for glob in paths:
        if not glob or glob.startswith(("/", "./", "../")) or "\\" in glob:
            raise _wrong(path, where, f'"{glob}" is not a glob relative to the folder, with /')
    for reader in readers:
        if _PRINCIPAL.fullmatch(reader.removeprefix("!")) is None:
            raise _wrong(
                path, where, f'"{reader}" is no reader; write public, user:NAME, group:NAME or role:NAME'
            )
    if readers and all(reader.startswith("!") for reader in readers):
        raise _wrong(path, where, "denies only, so nobody could read; name who may")
    return AccessRule(paths, readers)


def _translated(glob: str) -> str:
    """The regular expression of a glob."""
    parts, position = [], 0
    for match in _GLOB.finditer(glob):
        # `**/` is any number of folders only where a folder begins.
        wild = match.group()
        if wild == "**/" and match.start() > 0 and glob[match.start() - 1] != "/":
            expression = ".*/"
        else:
            expression = _GLOBS[wild]
        parts += [re.escape(glob[position : match.start()]), expression]
        position = match.end()
    return "".join(parts) + re.escape(glob[position:])
