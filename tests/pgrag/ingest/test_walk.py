"""Walking: which files, in which order, under which URIs, and what is said of the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgrag.ingest import Failure, FoundFile, walk


def _make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def _uris(*paths: Path) -> list[str]:
    return [found.uri for found in walk(paths) if isinstance(found, FoundFile)]


def _reasons(*paths: Path) -> list[str]:
    return [found.reason for found in walk(paths) if isinstance(found, Failure)]


def test_uris_are_relative_and_sorted(tmp_path: Path) -> None:
    _make(tmp_path, "b.md", "a/z.md", "a/b/c.md", "a-b.md")
    assert _uris(tmp_path) == sorted(["b.md", "a/z.md", "a/b/c.md", "a-b.md"])


def test_a_file_that_is_given_has_its_name(tmp_path: Path) -> None:
    _make(tmp_path, "a/z.md")
    assert _uris(tmp_path / "a" / "z.md") == ["z.md"]


def test_hidden_files_and_folders_are_skipped(tmp_path: Path) -> None:
    _make(tmp_path, ".git/a.md", ".b.md", "c.md")
    assert _uris(tmp_path) == ["c.md"]


def test_a_symlink_loop_is_a_failure_and_the_rest_goes_on(tmp_path: Path) -> None:
    _make(tmp_path, "a/x.md", "b.md")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    assert _uris(tmp_path) == ["a/x.md", "b.md"]
    assert _reasons(tmp_path) == ["symlink loop: it leads to a folder that it lies in"]


def test_a_symlink_to_itself_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "a.md")
    assert _reasons(tmp_path) == ["symlink loop: it leads to itself"]


def test_a_linked_folder_is_followed(tmp_path: Path) -> None:
    _make(tmp_path, "elsewhere/x.md", "here/y.md")
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    assert _uris(tmp_path / "here") == ["link/x.md", "y.md"]


def test_links_that_double_a_tree_at_every_level_do_not_multiply(tmp_path: Path) -> None:
    for level in range(20):
        (tmp_path / f"d{level}").mkdir()
    for level in range(19):
        for name in ("a", "b"):
            (tmp_path / f"d{level}" / name).symlink_to(tmp_path / f"d{level + 1}")
    assert len(list(walk([tmp_path / "d0"]))) <= 2 * 19


def test_what_is_not_there_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "gone")
    assert _reasons(tmp_path) == ["symlink to something that doesn't exist"]
    assert _reasons(tmp_path / "nowhere") == ["no such file or folder"]


def test_a_name_that_is_not_utf8_is_a_failure_that_can_be_printed(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("x")
    (failure,) = walk([tmp_path])
    assert isinstance(failure, Failure)
    assert failure.path.endswith(r"caf\xe9.md")
    assert "UTF-8" in failure.reason


def test_two_files_with_one_uri_are_not_confused(tmp_path: Path) -> None:
    _make(tmp_path, "one/x.md", "two/x.md")
    assert _uris(tmp_path / "one", tmp_path / "two") == ["x.md"]
    assert "is that of" in _reasons(tmp_path / "one", tmp_path / "two")[0]


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    _make(tmp_path, "x.md")
    assert _uris(tmp_path, tmp_path) == ["x.md"]
    assert _reasons(tmp_path, tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_a_failure(tmp_path: Path) -> None:
    _make(tmp_path, "a/x.md", "b.md")
    (tmp_path / "a").chmod(0)
    try:
        assert (_uris(tmp_path), _reasons(tmp_path)) == (["b.md"], ["no permission to read it"])
    finally:
        (tmp_path / "a").chmod(0o755)


def test_a_path_that_no_index_could_hold_is_a_failure(tmp_path: Path) -> None:
    folder = "d" * 200
    _make(
        tmp_path,
        "/".join([*[folder] * 9, "x" * (2000 - 9 * 201 - 3) + ".md"]),
        "/".join([*[folder] * 10, "x.md"]),
    )
    assert [len(uri) for uri in _uris(tmp_path)] == [2000]
    assert _reasons(tmp_path) == [f"its path is {10 * 201 + 4:,} bytes long, over the limit of 2,000"]
