"""What ``dense.py`` searches: vectors and questions, who may see which of them, and what the right answers are."""

from __future__ import annotations

import hashlib
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from _bench import by_group, passages, spliced
from numpy.typing import NDArray

from pgrag.embed import Encoder, OnnxEncoder, SentenceTransformerEncoder, StaticEncoder

Vectors = NDArray[np.float32]

K = 10
# Rows that are kept out of the corpus for questions.
HELD_OUT = 2000
# The share of the passages that somebody sees who sees them by chance.
SHARES = (1.0, 0.5, 0.1, 0.01, 0.001)
# Of those who see only what is far from their question.
FAR = {"farthest 90 %": 0.9, "farthest half": 0.5, "farthest tenth": 0.1}
_CLUSTER_SAMPLE = 20_000
_ROUNDS = 10
# Cosines that differ by less are ties: sums in another order differ in the last bits of float32.
_TIE = 2e-6


@dataclass(frozen=True)
class Material:
    """What is searched and what is asked: rows of length 1; no question's passage is among the documents."""

    what: str
    model: str
    documents: Vectors
    questions: Vectors


class Kept(Enum):
    """What a system keeps at half precision, as its answers show."""

    ALL = "documents and questions"
    QUESTIONS = "questions"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Question:
    """A question as one caller asks it.

    Attributes:
        number: Of the vector.
        visible: The visibility.
        vector: Its vector.
        text: The vector as pgvector reads it.
        principals: Who asks: the groups they are in.
        acls: Names of the ACLs they may read through, for whom has no policy and filters; None: all of them.
        nearest: Cosine of the tenth of the nearest that they see, by what is kept at half precision.
        right: How many rows are right: ten, or as many as they see.
        seen: How many rows they see.
    """

    number: int
    visible: str
    vector: Vectors
    text: str
    principals: tuple[str, ...]
    acls: tuple[str, ...] | None
    nearest: dict[Kept, float]
    right: int
    seen: int


class Encoded:
    """An encoder that knows the vectors of the made texts that stand for passages."""

    name = "bench"

    def __init__(self, material: Material) -> None:
        self._vectors = material.documents
        self.dimension = int(material.documents.shape[1])
        self.passport: dict[str, Any] = {
            "name": self.name,
            "model": material.model,
            "dimension": self.dimension,
            "normalised": True,
        }

    @staticmethod
    def text(row: int) -> str:
        """Return the text of a row."""
        return f"passage {row}"

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Look up the vectors."""
        return self._vectors[[int(text.rpartition(" ")[2]) for text in texts]]

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        """Count words."""
        return len(text.split())


def say(what: str) -> None:
    """Tell whoever waits how far it is."""
    print(time.strftime("%H:%M:%S"), what, file=sys.stderr, flush=True)


def from_files(
    files: Sequence[Path], questions: Path | None, what: str, count: int, asked: int, seed: int
) -> Material:
    """Return vectors that were made before; without vectors of questions, the last rows are kept out for them."""
    rows = unit(np.concatenate([np.load(file).astype(np.float32) for file in files]))
    if questions is None:
        held = min(HELD_OUT, len(rows) // 10)
        rows, pool = rows[:-held], rows[-held:]
    else:
        pool = unit(np.load(questions).astype(np.float32))
    return Material(what, "not given", rows[:count], _drawn(pool, asked, seed))


def from_texts(encoder: Encoder, cache: Path | None, count: int, asked: int, seed: int) -> Material:
    """Return vectors of passages; questions are first sentences of passages that the corpus lacks."""
    rows = passages(count + HELD_OUT, seed)
    real = [row for row in rows if not row["_id"].startswith("spliced")]
    held, corpus = real[-HELD_OUT:], real[:-HELD_OUT]
    what = "passages"
    if len(corpus) < count:
        # Anew, so that no half of a passage that is asked for is in the corpus.
        what = f"{len(corpus):,} real passages and {count - len(corpus):,} spliced from two of one group"
        random_ = random.Random(seed)
        neighbours = by_group(corpus)
        for number in range(len(corpus), count):
            row = random_.choice(corpus)
            corpus.append(
                row
                | {"_id": f"spliced{number}", "text": spliced(row, random_.choice(neighbours[row["group"]]))}
            )
    say(f"encoding {what}")
    documents = unit(encoded(encoder, [f"{row['title']}\n{row['text']}" for row in corpus], cache))
    sentences = [sentence for row in held if (sentence := _first_sentence(row["text"]))]
    pool = unit(encoder.encode_queries(sentences))
    return Material(what, str(encoder.passport["model"]), documents, _drawn(pool, asked, seed))


def encoder_of(model: str | None) -> Encoder:
    """Return the shipped table, or a model: by ONNX Runtime where its folder has such a file, else by torch."""
    if model is None:
        return StaticEncoder.shipped()
    if any(Path(model).rglob("*.onnx")):
        return OnnxEncoder(model)
    return SentenceTransformerEncoder(model)


class Visibility:
    """Who may see what.

    A passage is in a cluster of near ones, and by chance among those that the callers see who see a part. Cluster and
    chance are its ACL, in as many parts as make the number of ACLs that is wanted.

    Args:
        material: What is searched.
        clusters: How many.
        acls: How many ACLs there shall be, about.
        seed: Of clusters and chance.
    """

    def __init__(self, material: Material, clusters: int, acls: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.material = material
        documents = material.documents
        self.centers = _centers(documents, clusters, rng)
        self.cluster = _assigned(documents, self.centers)
        draws = rng.random(len(documents))
        # The number of the least share that holds it.
        self.least = np.searchsorted(-np.array(SHARES), -draws) - 1
        parts = max(1, acls // (len(self.centers) * len(SHARES)))
        self.part = np.arange(len(documents)) % parts
        self.acl = (self.cluster * len(SHARES) + self.least) * parts + self.part
        self._acl_name = {
            int(acl): self.acl_name(int(first))
            for acl, first in zip(*np.unique(self.acl, return_index=True), strict=True)
        }
        # Of length 1 again: the server divides by lengths.
        self._halved = unit(documents.astype(np.float16).astype(np.float32))

    @property
    def acls(self) -> int:
        """Return how many ACLs there are."""
        return len(self._acl_name)

    @property
    def labels(self) -> list[str]:
        """Return the visibilities."""
        return [*(f"{100 * share:g} %" for share in SHARES), *FAR]

    def acl_name(self, row: int) -> str:
        """Return the name of the ACL of a row, for whom has one value a row to filter by."""
        return f"c{self.cluster[row]}-s{self.least[row]}-p{self.part[row]}"

    def readers(self, row: int) -> list[str]:
        """Return who may read a row."""
        return [
            f"group:cluster{self.cluster[row]}",
            f"group:part{self.part[row]}",
            *(f"group:share{number}" for number in range(self.least[row] + 1)),
        ]

    def questions(self, number: int) -> list[Question]:
        """Return one question as each caller asks it, with the right answer."""
        vector = self.material.questions[number]
        cosines = {kept: self._cosines(kept, vector) for kept in Kept}
        sizes = np.bincount(self.cluster, minlength=len(self.centers))
        farthest = np.argsort(self.centers @ vector)
        before = np.cumsum(sizes[farthest]) - sizes[farthest]
        asked = []
        for place, share in enumerate(SHARES):
            seen = self.least >= place
            asked.append(
                self._question(
                    number, f"{100 * share:g} %", (f"group:share{place}",), seen, cosines, share == 1
                )
            )
        for label, share in FAR.items():
            clusters = farthest[before < share * len(self.cluster)]
            # The last goes too far: without it where that is nearer to the share.
            over = sizes[clusters].sum() - share * len(self.cluster)
            if len(clusters) > 1 and over > sizes[clusters[-1]] / 2:
                clusters = clusters[:-1]
            groups = tuple(f"group:cluster{cluster}" for cluster in clusters)
            asked.append(
                self._question(number, label, groups, np.isin(self.cluster, clusters), cosines, False)
            )
        return asked

    def _question(
        self,
        number: int,
        label: str,
        principals: tuple[str, ...],
        seen: NDArray[np.bool_],
        cosines: dict[Kept, Vectors],
        everything: bool,
    ) -> Question:
        vector = self.material.questions[number]
        count = int(seen.sum())
        right = min(K, count)
        nearest = {
            kept: float(np.partition(values[seen], count - right)[count - right]) if right else 1.0
            for kept, values in cosines.items()
        }
        acls = tuple(self._acl_name[int(acl)] for acl in np.unique(self.acl[seen]))
        return Question(
            number,
            label,
            vector,
            as_text(vector),
            principals,
            None if everything else acls,
            nearest,
            right,
            count,
        )

    def recall(self, question: Question, rows: Sequence[int], kept: Kept) -> float:
        """Return the share of the right rows that were found; as near as the tenth is right.

        Raises:
            AssertionError: a row twice, or one that the caller may not see.
        """
        assert len(set(rows)) == len(rows), "a row was found twice"
        if question.acls is not None:
            allowed = set(question.acls)
            assert all(self.acl_name(row) in allowed for row in rows), "a hidden row was found"
        if question.right == 0:
            return 1.0
        cosines = self._cosines(kept, question.vector, np.array(rows[:K], np.int64))
        return min(int((cosines >= question.nearest[kept] - _TIE).sum()), question.right) / question.right

    def _cosines(self, kept: Kept, vector: Vectors, rows: NDArray[np.int64] | slice = slice(None)) -> Vectors:
        documents = self._halved if kept is Kept.ALL else self.material.documents
        cosines: Vectors = documents[rows] @ (vector if kept is Kept.NOTHING else halved(vector))
        return cosines


def as_text(vector: Vectors) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def encoded(encoder: Encoder, texts: Sequence[str], cache: Path | None) -> Vectors:
    """Encode passages, 2,000 at once, each part kept in the cache under what it was made of."""
    made = []
    for first in range(0, len(texts), 2000):
        part = texts[first : first + 2000]
        file = None
        if cache is not None:
            digest = hashlib.sha256("\0".join([str(encoder.passport), *part]).encode("utf-8", "replace"))
            file = cache / f"{encoder.name}-{digest.hexdigest()[:24]}.npy"
            if file.is_file():
                made.append(np.load(file))
                continue
            cache.mkdir(parents=True, exist_ok=True)
        made.append(encoder.encode_documents(part))
        if file is not None:
            np.save(file, made[-1])
            say(f"{first + len(part):,} encoded")
    return np.concatenate(made)


def unit(vectors: Vectors) -> Vectors:
    """Return rows of length 1, without those that have no direction."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = lengths[:, 0] > 0
    out: Vectors = vectors[kept] / lengths[kept]
    return out


def halved(vector: Vectors) -> Vectors:
    """Return a vector at half precision, of length 1 again."""
    half: Vectors = unit(vector[None].astype(np.float16).astype(np.float32))[0]
    return half


def _drawn(pool: Vectors, count: int, seed: int) -> Vectors:
    """Draw questions."""
    drawn: Vectors = pool[np.random.default_rng(seed).permutation(len(pool))[:count]]
    return drawn


def _first_sentence(text: str) -> str | None:
    """Return the first sentence of 30 to 200 characters."""
    return next((s for s in re.split(r"(?<=[.?!])\s", text) if 30 <= len(s) <= 200), None)


def _centers(vectors: Vectors, count: int, rng: np.random.Generator) -> Vectors:
    """Find the centres of clusters, by k-means over a sample, on the sphere."""
    sample = vectors[rng.permutation(len(vectors))[:_CLUSTER_SAMPLE]]
    centers = sample[:count]
    for _ in range(_ROUNDS):
        nearest = _assigned(sample, centers)
        centers = unit(
            np.stack([sample[nearest == n].sum(axis=0) for n in range(len(centers)) if (nearest == n).any()])
        )
    return centers


def _assigned(vectors: Vectors, centers: Vectors) -> NDArray[np.int64]:
    """Return the nearest centre of each vector."""
    return np.concatenate(
        [(vectors[at : at + 20_000] @ centers.T).argmax(axis=1) for at in range(0, len(vectors), 20_000)]
    )
