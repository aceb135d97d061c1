"""pgrag ingest: what it says in its help, and a path that can't be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _cli import pgrag


def test_help_says_what_a_readers_file_holds() -> None:
    command = [sys.executable, "-m", "pgrag_cli.main", "ingest", "--help"]
    shown = subprocess.run(
        command, env=os.environ | {"COLUMNS": "200"}, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "A readers.toml: groups, and access rules by path" in shown


def test_a_named_file_that_cannot_be_read_does_not_stop_the_others(
    db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked.md").write_text("# Locked", encoding="utf-8")
    (tmp_path / "open.md").write_text("# Open", encoding="utf-8")
    # Root may read everything, so the check that typer would make is answered here.
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: "locked" not in str(path) and may(path, mode, **more)
    )
    done = pgrag(
        db.dsn,
        *("ingest", str(tmp_path / "locked.md"), str(tmp_path / "open.md")),
        *("--collection", "new", "--create-collection", "--reader", "public"),
    )
    assert done.stdout.startswith("2 documents taken in"), done.stderr


def test_the_language_of_the_files_is_an_option(db: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Die Häuser der Stadt", encoding="utf-8")
    done = pgrag(
        db.dsn,
        *("ingest", str(tmp_path), "--collection", "docs", "--reader", "public", "--language", "de"),
        "--create-readers",
    )
    assert done.returncode == 0, done.stderr
    assert '"uri": "a.txt"' in pgrag(db.dsn, "search", "Häusern", "--as", "public", "--json").stdout


def test_a_language_that_is_no_tag_is_named_with_what_would_be_one(db: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    done = pgrag(
        db.dsn,
        *("ingest", str(tmp_path), "--collection", "docs", "--reader", "public", "--language", "Deutsch"),
        "--create-readers",
    )
    assert done.returncode == 1
    assert 'language must be a BCP 47 tag, got "Deutsch"' in done.stderr
    assert "de, pt-BR or zh-Hant" in done.stderr
