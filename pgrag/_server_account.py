"""Serves the embedded server: which account PostgreSQL runs under, and what that account can reach.

PostgreSQL refuses to run as root, so root hands it to an unprivileged account; everyone else runs it as
themselves.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgrag.errors import ServerError

__all__ = ["Account", "account_for", "first_closed_folder", "run_as"]

PREFERRED = ("postgres", "_postgres", "pgrag", "nobody")


@dataclass(frozen=True)
class Account:
    """The account that owns the data and runs the server.

    Attributes:
        name: As in the password database, or the number where that has no name for it.
        uid: User id, never 0.
        gid: Its primary group.
        switch: Whether commands have to change to it: true only where the caller is root.
    """

    name: str
    uid: int
    gid: int
    switch: bool


def account_for(data: Path) -> Account:
    """Say who runs the server that keeps its data in ``data``.

    The owner of an existing data directory stays its owner. A new one belongs to the caller, or, where the
    caller is root, to the first of ``PREFERRED`` that exists.

    Raises:
        ServerError: the data belongs to somebody else, or root has no account to hand it to.
    """
    me = os.geteuid()
    try:
        owner: int | None = data.stat().st_uid
    except FileNotFoundError:
        owner = None
    except OSError as error:
        raise ServerError(
            f"{data} can't be looked at: {error.strerror}.",
            f"Choose a folder that {_name(me)} may enter: pgrag up --data DIR",
        ) from error
    if me != 0:
        if owner not in (None, me):
            raise ServerError(
                f"data directory {data} belongs to {_name(owner)}, not to {_name(me)}.",
                f"Run pgrag as {_name(owner)} or choose another folder: pgrag up --data DIR",
            )
        return Account(_name(me), me, os.getegid(), switch=False)
    if owner:
        return _account(owner)
    return _unprivileged()


def run_as(
    account: Account,
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as ``account``, from ``/``; its output, errors joined in, is captured.

    Raises:
        ServerError: it can't be started under that account, or takes too long.
    """
    try:
        return subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            env=clean_environment() if environment is None else dict(environment),
            timeout=timeout_seconds,
            check=False,
            umask=0o077,
            user=account.uid if account.switch else None,
            group=account.gid if account.switch else None,
            extra_groups=[] if account.switch else None,
        )
    except subprocess.TimeoutExpired as error:
        raise ServerError(f"{command[0]} did not end within {timeout_seconds:.0f} seconds.") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerError(
            f"{command[0]} can't be run as account {account.name}: {error}.",
            "Run pgrag as an ordinary user, or set PGRAG_DATABASE_URL to a database that you have.",
        ) from error


def first_closed_folder(path: Path, account: Account) -> Path | None:
    """Return the outermost existing folder above ``path`` that ``account`` can't enter, or None.

    The account itself tries, so access lists and mount options count as well as modes.
    """
    folders = [folder for folder in reversed(path.parents) if folder.exists()]
    script = 'for folder in "$@"; do test -x "$folder" || exec printf "%s" "$folder"; done'
    answer = run_as(account, ["/bin/sh", "-c", script, "sh", *folders]).stdout
    return Path(answer) if answer else None


def clean_environment() -> dict[str, str]:
    """Return the caller's environment without what would change PostgreSQL's behaviour or language."""
    unwanted = ("PG", "LC_", "LANG", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return kept | {"LC_ALL": "C.UTF-8"}


def _unprivileged() -> Account:
    import pwd

    for name in PREFERRED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(name, entry.pw_uid, entry.pw_gid, switch=True)
    raise ServerError(
        f"PostgreSQL refuses to run as root, and none of the accounts {', '.join(PREFERRED)} exists.",
        "useradd --system --no-create-home pgrag",
    )


def _account(uid: int) -> Account:
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError as error:
        raise ServerError(
            f"the data directory belongs to user id {uid}, which has no account here.",
            "Choose another folder: pgrag up --data DIR",
        ) from error
    return Account(entry.pw_name, uid, entry.pw_gid, switch=True)


def _name(uid: int | None) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid if uid is not None else -1).pw_name
    except (KeyError, OverflowError):
        return f"user id {uid}"
