"""The example handbook is whole: its rules, its questions and its PDFs agree with its documents."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pypdfium2
import pytest
from selectolax.lexbor import LexborHTMLParser

HANDBOOK = Path(__file__).resolve().parents[2] / "examples" / "handbook"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"handbook_example_{name}", HANDBOOK / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


handbook = load("handbook")
QUESTIONS = handbook.questions()
URIS = handbook.document_uris()
GROUPS = handbook.load_groups()
PEOPLE = handbook.people()


def pdf_pages(data: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(data)
    try:
        return [document[number].get_textpage().get_text_bounded() for number in range(len(document))]
    finally:
        document.close()


def plain_text(path: Path) -> str:
    """The text that a reader sees, with runs of white space as one blank."""
    if path.suffix == ".pdf":
        text = "\n".join(pdf_pages(path.read_bytes()))
    elif path.suffix == ".html":
        tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
        tree.strip_tags(["script", "style"])
        assert tree.body is not None
        text = tree.body.text()
    else:
        text = path.read_text(encoding="utf-8")
    return " ".join(text.split())


TEXTS = {path.relative_to(handbook.DOCUMENTS).as_posix(): plain_text(path) for path in handbook.documents()}


def readers_named() -> set[str]:
    return {reader.removeprefix("!") for uri in URIS for reader in handbook.readers_of(uri)}


def test_there_are_enough_documents_of_each_kind() -> None:
    kinds = Counter(Path(uri).suffix for uri in URIS)
    assert len(URIS) >= 45
    assert kinds[".html"] >= 8
    assert kinds[".pdf"] >= 5
    assert kinds.keys() == {".md", ".html", ".pdf"}


@pytest.mark.parametrize("uri", URIS)
def test_a_document_says_enough(uri: str) -> None:
    assert len(TEXTS[uri].split()) >= 250


def test_one_document_is_long() -> None:
    assert max(len(text.split()) for text in TEXTS.values()) >= 3000


@pytest.mark.parametrize("uri", [uri for uri in URIS if uri.endswith(".pdf")])
def test_a_pdf_has_pages_with_text_and_an_outline(uri: str) -> None:
    data = (handbook.DOCUMENTS / uri).read_bytes()
    assert len(pdf_pages(data)) >= 3
    assert all(len(page.split()) > 50 for page in pdf_pages(data))
    assert len(list(pypdfium2.PdfDocument(data).get_toc())) >= 4


def test_there_are_enough_people() -> None:
    assert len(PEOPLE) >= 9


def depth(principal: str) -> int:
    above = [group for group, members in GROUPS.items() if principal in members]
    return max((1 + depth(group) for group in above), default=0)


def test_no_group_holds_itself() -> None:
    assert [group for group in GROUPS if group in handbook.groups_of(group)] == []


def test_groups_nest_at_least_three_deep() -> None:
    assert max(depth(person) for person in PEOPLE) >= 3


def test_every_member_that_is_a_group_is_defined() -> None:
    assert {m for members in GROUPS.values() for m in members if m.startswith("group:")} <= GROUPS.keys()


def test_every_reader_is_somebody_known() -> None:
    assert readers_named() <= {"public", *PEOPLE, *GROUPS}


def test_every_access_rule_decides_some_document() -> None:
    rules = handbook._rules()["access"]
    decided = {
        max(
            number
            for number, rule in enumerate(rules)
            if any(handbook._pattern(g).fullmatch(uri) for g in rule["paths"])
        )
        for uri in URIS
    }
    assert decided == set(range(len(rules)))


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("**", "a/b/c.md", True),
        ("a/**", "a/b/c.md", True),
        ("a/**", "ab/c.md", False),
        ("a/*", "a/c.md", True),
        ("a/*", "a/b/c.md", False),
        ("**/c.md", "c.md", True),
        ("**/c.md", "a/b/c.md", True),
        ("a/c.md", "a/cxmd", False),
    ],
)
def test_a_glob_star_stays_in_its_folder_and_two_cross(glob: str, path: str, matches: bool) -> None:
    assert bool(handbook._pattern(glob).fullmatch(path)) is matches


def test_every_document_has_a_reader() -> None:
    assert [uri for uri in URIS if not any(handbook.may_read(person, uri) for person in PEOPLE)] == []


def test_some_document_has_one_reader_only() -> None:
    assert any(sum(handbook.may_read(person, uri) for person in PEOPLE) == 1 for uri in URIS)


def test_a_stranger_reads_what_is_public_and_nothing_else() -> None:
    seen = [uri for uri in URIS if handbook.may_read("user:stranger", uri)]
    assert seen == [uri for uri in URIS if "public" in handbook.readers_of(uri)]
    assert 0 < len(seen) < len(URIS) / 2


def test_a_deny_entry_removes_somebody_whom_a_nested_group_lets_in() -> None:
    def allowed_but_for_denies(person: str, uri: str) -> bool:
        allows = {reader for reader in handbook.readers_of(uri) if not reader.startswith("!")}
        return bool(allows & handbook.groups_of(person)) and not handbook.may_read(person, uri)

    removed = {person for person in PEOPLE for uri in URIS if allowed_but_for_denies(person, uri)}
    assert removed >= {"user:bo", "user:kofi", "user:ines"}


def test_everybody_sees_a_different_set_of_documents_from_the_person_who_sees_most() -> None:
    seen = {person: frozenset(u for u in URIS if handbook.may_read(person, u)) for person in PEOPLE}
    most = max(seen, key=lambda person: len(seen[person]))
    least = min(seen, key=lambda person: len(seen[person]))
    assert (most, least) == ("user:lena", "user:zoe")
    assert seen[most] != frozenset(URIS)


def test_there_are_enough_questions() -> None:
    assert len(QUESTIONS) >= 70
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question.query for question in QUESTIONS}) == len(QUESTIONS)


def test_everybody_asks_and_nobody_else() -> None:
    assert {asker for question in QUESTIONS for asker in question.askers} == set(PEOPLE)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_each_quote_stands_in_its_document(question: Any) -> None:
    evidence = question.relevant + question.forbidden
    assert evidence
    assert [e for e in evidence if " ".join(e.quote.split()) not in TEXTS[e.uri]] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_askers_may_read_the_answer_or_it_is_forbidden(question: Any) -> None:
    q = question
    may = {(a, e.uri): handbook.may_read(a, e.uri) for a in q.askers for e in q.relevant}
    must_not = {(a, e.uri) for a in q.askers for e in q.forbidden if handbook.may_read(a, e.uri)}
    assert all(may.values()), may
    assert must_not == set()
    assert (q.kind == "forbidden") == bool(q.forbidden) == (not q.relevant)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_quote_is_short_and_crosses_no_markup(question: Any) -> None:
    for evidence in question.relevant + question.forbidden:
        assert 4 <= len(evidence.quote.split()) <= 40
        assert re.search(r"\*\*|`|\||\]\(|</?\w+>", evidence.quote) is None


def test_half_of_the_questions_share_few_words_with_their_answers() -> None:
    def words(text: str) -> set[str]:
        return {word for word in re.findall(r"[\w'-]+", text.lower()) if len(word) > 3}

    def overlap(question: Any) -> float:
        asked = words(question.query)
        best = [len(asked & words(e.quote)) / max(1, len(asked)) for e in question.relevant]
        return max(best, default=0.0)

    answerable = [question for question in QUESTIONS if question.relevant]
    assert sum(overlap(question) < 1 / 2 for question in answerable) >= len(answerable) / 2


def test_the_injection_carries_what_packing_has_to_neutralise() -> None:
    text = (handbook.DOCUMENTS / "support/tickets/ticket-88213.md").read_text(encoding="utf-8")
    assert {"\u200b", "\u200c", "\u200d", "\ufeff", "\u202e"} <= set(text)
    assert any(0xE0000 <= ord(character) <= 0xE007F for character in text)
    assert all(
        part in text for part in ("Ignore all previous instructions", "</context>", "<|im_start|>", "[1]")
    )


def test_a_pdf_is_what_its_source_makes() -> None:
    pytest.importorskip("reportlab")
    make_pdfs = load("make_pdfs")
    committed = {make_pdfs.target_of(source): make_pdfs.render(source) for source in make_pdfs.sources()}
    assert sorted(committed) == [path for path in handbook.documents() if path.suffix == ".pdf"]
    for target, made in committed.items():
        assert pdf_pages(made) == pdf_pages(target.read_bytes()), target.name
        if importlib.metadata.version("reportlab") == make_pdfs.MADE_WITH:
            assert made == target.read_bytes(), target.name
