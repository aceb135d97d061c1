"""Parsing: structure is found, and every bad file has its reason."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pgrag.chunk import chunk_document
from pgrag.errors import ParseError
from pgrag.ingest import KINDS, ParsedDocument, parse_file

_MESSY = Path(__file__).parents[4] / "shared" / "data" / "messy"


def _pdf_writer() -> Any:
    spec = importlib.util.spec_from_file_location("pdf_writer", Path(__file__).with_name("pdf_writer.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


make_pdf = _pdf_writer().make_pdf


def _parse(folder: Path, name: str, data: bytes, **options: int) -> ParsedDocument:
    path = folder / name
    path.write_bytes(data)
    return parse_file(path, **options)


def _texts(document: ParsedDocument, kind: str) -> list[str]:
    return [document.text[b.char_start : b.char_end] for b in document.blocks if b.kind == kind]


def test_markdown_keeps_its_source_and_takes_front_matter(tmp_path: Path) -> None:
    source = b"---\ntitle: Guide\nlang: en\ntags: [a, b]\n---\n# *Top*\r\n\ntext\n"
    document = _parse(tmp_path, "a.md", source)
    assert document.text == "# *Top*\n\ntext\n"
    assert (document.title, document.language, document.metadata) == ("Guide", "en", {"tags": ["a", "b"]})


@pytest.mark.parametrize(
    ("front_matter", "language", "metadata"),
    [
        ("lang: de-AT", "de-AT", {}),
        ("language: pt_BR", "pt-BR", {}),
        ("language: no", "no", {}),
        ("language: python", None, {"language": "python"}),
        ("language: python\nlang: en", "en", {"language": "python"}),
        ("language: ''", None, {"language": ""}),
    ],
)
def test_markdown_declares_its_language_by_a_tag(
    tmp_path: Path, front_matter: str, language: str | None, metadata: dict[str, str]
) -> None:
    document = _parse(tmp_path, "a.md", f"---\n{front_matter}\n---\ntext\n".encode())
    assert (document.language, document.metadata) == (language, metadata)


@pytest.mark.parametrize(
    ("lang", "language"),
    [("de", "de"), (" en_US ", "en-US"), ("Deutsch", None), ("{{ lang }}", None), ("", None)],
)
def test_html_declares_its_language_by_a_tag(tmp_path: Path, lang: str, language: str | None) -> None:
    assert _parse(tmp_path, "a.html", f'<html lang="{lang}"><p>text'.encode()).language == language


def test_markdown_title_is_the_first_heading(tmp_path: Path) -> None:
    assert _parse(tmp_path, "a.md", b"# A [link](x) `b`\n").title == "A link b"


def test_markdown_blocks_by_kind(tmp_path: Path) -> None:
    source = b"# T\n\npara\n\n- a\n- b\n\n```\ncode\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n"
    document = _parse(tmp_path, "a.md", source)
    assert [block.kind for block in document.blocks] == ["heading", "paragraph", "list", "code", "table"]
    assert document.blocks[-1].header == "a | b"


def test_a_hash_inside_a_fence_is_no_heading(tmp_path: Path) -> None:
    document = _parse(tmp_path, "a.md", b"```\n# no\n```\n")
    assert _texts(document, "heading") == []


def test_a_long_source_read_in_parts_keeps_every_heading(tmp_path: Path) -> None:
    document = _parse(
        tmp_path, "a.md", b"".join(b"## S%d\n\n```\n# no\n```\n\n" % number for number in range(6000))
    )
    assert len(_texts(document, "heading")) == 6000


def test_html_drops_what_is_not_read_and_keeps_structure(tmp_path: Path) -> None:
    source = (
        b"<title>T</title><nav>menu</nav><h1>Top</h1><script>x</script><p hidden>no</p><p>a<br><br>b"
        b"<ul><li>one<li>two</ul><table><tr><th>n<th>v<tr><td>1<td>2</table><pre>x\n  y</pre>"
    )
    document = _parse(tmp_path, "a.html", source)
    assert document.text == "Top\n\na\n\nb\n\n- one\n- two\n\nn | v\n1 | 2\n\nx\n  y"
    assert document.title == "T"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("bom16.txt", "héllo wörld".encode("utf-16")),
        ("bom8.txt", "héllo wörld".encode("utf-8-sig")),
        ("bare16.txt", "héllo wörld".encode("utf-16-le")),
        ("western.txt", ("plain words " * 20 + "héllo wörld").encode("cp1252")),
        ("meta.html", b'<meta charset="iso-8859-1"><p>' + "héllo wörld".encode("cp1252")),
        ("lying.html", b'<meta charset="iso-8859-1"><p>' + "héllo wörld".encode()),
        ("unknown.html", b'<meta charset="base64"><p>' + "héllo wörld".encode()),
    ],
)
def test_encodings(tmp_path: Path, name: str, data: bytes) -> None:
    assert "héllo wörld" in _parse(tmp_path, name, data).text


def test_cyrillic_without_a_declaration_is_detected(tmp_path: Path) -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
    assert _parse(tmp_path, "a.txt", text.encode("cp1251")).text == text


def test_nul_bytes_are_taken_out_and_counted(tmp_path: Path) -> None:
    document = _parse(tmp_path, "a.txt", b"one\x00two\x07 and more")
    assert (document.text, document.metadata["replaced_characters"]) == ("onetwo and more", 2)


def test_a_lone_surrogate_becomes_a_replacement_character(tmp_path: Path) -> None:
    assert _parse(tmp_path, "a.txt", b"\xff\xfea\x00\x00\xd8b\x00").text.encode("utf-8")


def test_pdf_headings_pages_and_title(tmp_path: Path) -> None:
    body = (11, 740, "First line of the body text, long enough."), (11, 727, "Second line.")
    data = make_pdf([[(24, 780, "Manual"), *body], [(11, 780, "On the second page.")]], title="The Manual")
    document = _parse(tmp_path, "a.pdf", data)
    assert document.title == "The Manual"
    assert [(block.kind, block.page, block.heading_path) for block in document.blocks] == [
        ("heading", 1, ("Manual",)),
        ("paragraph", 1, ("Manual",)),
        ("paragraph", 2, ("Manual",)),
    ]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"", "empty file"),
        ("a.md", b"", "empty file"),
        ("a.txt", b" \n\t", "no text in the file"),
        ("a.html", b"<script>x</script>", "no text in the file"),
        ("a.xyz", b"x", ".xyz: not a kind pgrag reads"),
        ("a", b"x", "no extension: not a kind pgrag reads"),
        ("a.pdf", b"no pdf", "broken PDF"),
        ("a.pdf", b"%PDF-1.4 cut off", "broken PDF"),
        ("a.pdf", make_pdf([[]]), "scanned PDF without text: run OCR first"),
        ("a.pdf", make_pdf([[(11, 700, "x")]], encrypted=True), "encrypted PDF"),
        ("a.txt", bytes(range(256)) * 50, "binary data, not text"),
        ("a.html", b"<b>" * 5000 + b"x", "nested, or never closed"),
        ("a.html", b"<p>" * 1_000_001, "more than 1,000,000 tags"),
    ],
)
def test_a_bad_file_has_its_reason(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        _parse(tmp_path, name, data)
    assert reason in caught.value.message
    assert caught.value.hint


def test_a_file_over_the_limit_is_refused_by_name_of_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    with pytest.raises(ParseError, match=r"200\.0 MB is over the limit for text, 64 MB"):
        parse_file(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(ParseError, match="not a regular file"):
        parse_file(tmp_path / "a.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(ParseError, match="no permission"):
        parse_file(path)


@pytest.mark.parametrize("source", [b"<" * 100_000, b"&amp;" * 50_000, b"<table>" * 3_000 + b"x"])
def test_hostile_html_ends(tmp_path: Path, source: bytes) -> None:
    assert _parse(tmp_path, "a.html", source).text


@pytest.mark.parametrize("unit", [b"> ", b"- ", b"[", b"*", b"`", b"[a]: b\n", b"|a|b|\n|-|-|\n\n", b"```\n"])
def test_hostile_markdown_ends(tmp_path: Path, unit: bytes) -> None:
    assert chunk_document(_parse(tmp_path, "a.md", unit * 20_000))


@pytest.mark.skipif(not _MESSY.is_dir(), reason="../shared/data/messy is not beside the checkout")
def test_every_messy_file_is_read_or_refused_with_a_reason() -> None:
    outcomes: list[str] = []
    for path in sorted(file for file in _MESSY.iterdir() if file.suffix in KINDS):
        try:
            outcomes.append(f"{len(chunk_document(parse_file(path)))} chunks")
        except ParseError as error:
            outcomes.append(error.message)
    assert all(outcomes)
    assert sum(outcome.endswith("chunks") for outcome in outcomes) > 50
