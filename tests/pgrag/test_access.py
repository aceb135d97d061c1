"""readers.toml: which rule counts, and that mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgrag.access import ReadersFile, load_readers_file
from pgrag.errors import PgragError

_GOOD = """
[groups]
"group:hr" = ["group:payroll", "user:marta"]
[[access]]
paths = ["**"]
readers = ["group:hr"]
[[access]]
paths = ["a/*.md"]
readers = ["public"]
[[access]]
paths = ["a/secret.md"]
readers = ["user:marta", "!user:bo"]
"""


def _load(folder: Path, source: str) -> ReadersFile:
    path = folder / "readers.toml"
    path.write_text(source)
    return load_readers_file(path)


@pytest.mark.parametrize(
    ("uri", "readers"),
    [
        ("b.md", ("group:hr",)),
        ("a/x.md", ("public",)),
        ("a/b/x.md", ("group:hr",)),
        ("a/secret.md", ("user:marta", "!user:bo")),
    ],
)
def test_the_last_rule_that_matches_wins(tmp_path: Path, uri: str, readers: tuple[str, ...]) -> None:
    assert _load(tmp_path, _GOOD).readers_of(uri) == readers


def test_where_no_rule_matches_there_are_no_readers(tmp_path: Path) -> None:
    file = _load(tmp_path, '[[access]]\npaths = ["a/**"]\nreaders = ["public"]')
    assert file.readers_of("b.md") is None


@pytest.mark.parametrize(
    ("glob", "uri", "matches"),
    [
        ("**/x.md", "x.md", True),
        ("**/x.md", "a/b/x.md", True),
        ("a/**/x.md", "a/x.md", True),
        ("a/*", "a/b/c", False),
        ("a?.md", "ab.md", True),
        ("a.md", "aXmd", False),
        ("a*", "a\nb", True),
    ],
)
def test_globs(tmp_path: Path, glob: str, uri: str, matches: bool) -> None:
    file = _load(tmp_path, f'[[access]]\npaths = ["{glob}"]\nreaders = ["public"]')
    assert (file.readers_of(uri) is not None) is matches


def test_principals_are_all_names_without_denial(tmp_path: Path) -> None:
    assert _load(tmp_path, _GOOD).principals == (
        "group:hr",
        "group:payroll",
        "public",
        "user:bo",
        "user:marta",
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[groups", "not TOML"),
        ("[people]", '"people" is not one of groups, access'),
        ('[groups]\nhr = ["user:a"]', 'group "hr"'),
        ('[groups]\n"group:hr" = ["ana"]', '"ana" can\'t be a member'),
        ('[groups]\n"group:a" = ["group:b"]\n"group:b" = ["group:a"]', "a circle of groups"),
        ('[[access]]\npaths = ["**"]', "access rule 1: readers is missing"),
        (
            '[[access]]\npaths = ["**"]\nreaders = ["public"]\n[[access]]\npaths = []\nreaders = []',
            "access rule 2: paths is empty",
        ),
        ('[[access]]\npaths = ["**"]\nreaders = ["grop:hr"]', '"grop:hr" is no reader'),
        ('[[access]]\npaths = ["**"]\nreaders = "public"', "readers must be a list of strings"),
        ('[[access]]\npaths = ["**"]\nreaders = ["!user:a"]', "denies only"),
        ('[[access]]\npaths = ["/a"]\nreaders = ["public"]', '"/a" is not a glob'),
    ],
)
def test_a_mistake_is_named_with_file_and_rule(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(PgragError) as caught:
        _load(tmp_path, source)
    assert "readers.toml" in caught.value.message
    assert message in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PgragError, match=r"nowhere\.toml: can't be read"):
        load_readers_file(tmp_path / "nowhere.toml")
