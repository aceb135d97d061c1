"""Reads a text file that somebody names, and says which one isn't UTF-8."""

from __future__ import annotations

from pathlib import Path

from pgrag.errors import PgragError

__all__ = ["read_utf8"]


def read_utf8(path: Path) -> str:
    """Return the text of a file in UTF-8, without a byte order mark.

    Raises:
        PgragError: it can't be read, or isn't UTF-8; the message names the file and the first wrong byte.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PgragError(
            f"{path}: can't be read: {error.strerror or error}", "Check the name and permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise PgragError(
            f"{path}: not UTF-8 at byte {error.start}: {error.reason}",
            f"If it is Latin-1: iconv -f latin1 -t utf8 {path} > NEW",
        ) from error
