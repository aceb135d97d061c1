"""Lets a transaction act for others, as who measures what they find has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from pgrag.errors import PgragError

__all__ = ["act_as"]


def act_as(connection: psycopg.Connection[Any], principals: Sequence[str]) -> None:
    """Act for somebody until the transaction ends.

    Args:
        connection: In a transaction, of a role that may take ``pgrag_app``.
        principals: For whom; none: the public.

    Raises:
        PgragError: the role may not.
    """
    who = list(principals) or ["public"]
    try:
        connection.execute("set local role pgrag_app")
    except psycopg.errors.InsufficientPrivilege as error:
        raise PgragError(
            f"role {connection.info.user} may not act for others, so it can't search for {', '.join(who)}",
            f"As an administrator: grant pgrag_app to {connection.info.user}",
        ) from error
    connection.execute("select pgrag.act_as(variadic %s::text[])", (who,))
