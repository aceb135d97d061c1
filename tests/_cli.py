"""Runs ``pgrag`` inside the test's process, which takes milliseconds; tests/cli/test_main.py starts real ones."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from unittest import mock

from pgrag_cli import main

__all__ = ["pgrag"]


def pgrag(dsn: str, *arguments: str | bytes, columns: int = 100) -> subprocess.CompletedProcess[str]:
    """Return the exit code and what was printed; what isn't a known error is raised."""
    words = ["pgrag", *map(os.fsdecode, arguments)]
    out, err = io.StringIO(), io.StringIO()
    code: str | int | None = 0
    with (
        mock.patch.dict(os.environ, {"PGRAG_DATABASE_URL": dsn, "COLUMNS": str(columns)}),
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main.run()
        except SystemExit as end:
            code = end.code
    assert code is None or isinstance(code, int), code
    return subprocess.CompletedProcess(words, code or 0, out.getvalue(), err.getvalue())
