"""``make demo``: each person's evidence is theirs, cited, and nothing of it is in another's output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import handbook
import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"
RUNBOOK = "eng/runbooks/key-rotation.md"
TICKET = "support/tickets/ticket-90417.md"


@pytest.fixture(scope="module")
def temporary() -> Iterator[Path]:
    """A folder for temporary files, which must be empty again at the end."""
    with tempfile.TemporaryDirectory(prefix="pgrag-demo-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture(scope="module")
def output(temporary: Path) -> str:
    """All that the demo prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PGRAG_")}
    done = subprocess.run(
        [sys.executable, DEMO],
        env=kept | {"TMPDIR": str(temporary)},
        cwd=DEMO.parents[1],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def search_of(output: str, person: str) -> str:
    """What is printed between a person's search and the next thing."""
    _, after = output.split(f"--as {person} -k 2\n", 1)
    return after.split("\nmeaning: ", 1)[0]


def uris(text: str) -> set[str]:
    """The documents of the handbook that a text names."""
    return {uri for uri in handbook.document_uris() if uri in text}


def test_the_engineer_finds_the_runbook(output: str) -> None:
    found = search_of(output, "user:ana")
    assert RUNBOOK in found
    assert "trusts the retired key again" in re.sub(r"[\s│]+", " ", found)


def test_support_finds_the_ticket(output: str) -> None:
    assert TICKET in search_of(output, "user:emre")


def test_the_runbook_is_in_nobody_elses_output(output: str) -> None:
    for person in ("user:emre", "user:zoe"):
        found = search_of(output, person)
        assert "rotate_keys.py" not in found
        assert RUNBOOK not in found


@pytest.mark.parametrize("person", ["user:ana", "user:emre", "user:zoe"])
def test_everything_shown_may_be_read(output: str, person: str) -> None:
    shown = uris(search_of(output, person))
    assert shown
    assert [uri for uri in shown if not handbook.may_read(person, uri)] == []


def test_every_hit_says_its_places_by_words_and_by_meaning(output: str) -> None:
    for person in ("user:ana", "user:emre", "user:zoe"):
        assert len(re.findall(r"│ 0\.\d{5} │ +#\d+ │ +#\d+ │", search_of(output, person))) == 2


def test_the_passage_for_the_model_is_fenced_and_cited(output: str) -> None:
    packed = output.split("$ pgrag pack 'E-4021", 1)[1]
    match = re.search(r'<passage-([0-9a-f]{8}) id="P1".*?uri="([^"]+)">', packed, re.DOTALL)
    assert match is not None
    assert match[2] == RUNBOOK
    assert f"</passage-{match[1]}>" in packed


def test_the_true_answer_is_supported_and_the_forged_one_is_not(output: str) -> None:
    verdicts = re.findall(
        r"^(supported|misattributed|stitched|unsupported|uncited|fabricated) ", output, re.M
    )
    assert verdicts == ["supported", "supported", "unsupported", "fabricated"]


def test_orders_in_a_document_are_flagged_and_stay_inside_their_fence(output: str) -> None:
    shown = output.split("--as user:emre --budget 400 --json\n", 1)[1].split("\n\n", 1)[0]
    assert "flagged: true, removed_characters: " in shown, "nothing was flagged and shown"
    match = re.match(r"<passage-([0-9a-f]{8}) ", shown)
    assert match is not None
    assert "Reveal the contents" in shown
    assert re.findall(r"</?passage[^ >]*>", shown) == [f"</passage-{match[1]}>"]


def test_sql_alone_gives_the_same_as_the_command(output: str) -> None:
    rows = output.split("commit;", 1)[1]
    assert re.findall(r"^ (\S+) +\| 0\.", rows, re.M)[:2] == re.findall(
        r"^│ +│ (\S+\.(?:md|html|pdf)) +│", search_of(output, "user:zoe"), re.M
    )


def test_nothing_is_left_behind(output: str, temporary: Path) -> None:
    assert list(temporary.iterdir()) == []
