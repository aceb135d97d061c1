"""Serves the stage ``embed``: fits the token table that embeds a space's queries in SQL to the space's model."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import platformdirs
import psycopg

from pgrag import _token_table
from pgrag._token_table import Fitted, Passage, Vocabulary
from pgrag._vector import register
from pgrag._version import __version__
from pgrag.embed import StaticEncoder
from pgrag.errors import PgragError, translated
from pgrag.spaces import check_encoder, space_passport
from pgrag.spaces._query_encoder import imitates, replace_query_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pgrag.embed import Encoder

    Vectors = NDArray[np.float32]

__all__ = ["FitFigures", "FitProgress", "fit_space"]

_SAMPLE = "select title, heading_path, content from pgrag.sample_passages(%s, %s, %s, %s, %s)"
# Texts encoded between two writes of what the model made of them.
_SHARD = 2_000
# Pairs of words that a corpus may add.
_PAIRS = 10_000
# Texts cut from a passage, on average: enough passages are drawn that each gives few.
_TEXTS_PER_PASSAGE = 3
# Fewer texts than this would only spoil what the table knew.
_FEWEST = 100
# The middle size of a token's numbers that Adam's rate is meant for; a table's own scale changes no text's vector.
_SIZE = 0.45


@dataclass(frozen=True)
class FitProgress:
    """How far a fit has come.

    Attributes:
        stage: ``sample``, ``encode``, ``fit`` or ``store``.
        done: Texts encoded, epochs fitted or tokens stored.
        total: Of them.
        cosine: In the stage ``fit``, of the held-out texts with the model's vectors.
    """

    stage: str
    done: int
    total: int
    cosine: float | None = None


@dataclass(frozen=True)
class FitFigures:
    """What a fit made; the space's passport keeps it, beneath ``query_encoder``.

    Attributes:
        space: The space whose queries the table embeds.
        name: The table's, which ``dense_plan`` shows.
        tokens: How many have a vector, pairs of words included.
        passages: Drawn from the corpus.
        texts: Learnt from: cut from the passages, or made of the vocabulary.
        held_out: Texts that it was judged by and did not see, a tenth.
        start: ``minilm-static`` or whichever table it began with; ``tokens``: the model's vectors of single tokens.
        cosine_before: Mean cosine of the held-out texts with the model's vectors, by the table that it began with.
        cosine: The same by the table that was stored.
        epoch: The epoch whose table was stored.
        hidden: Whether passages were used that ``public`` may not read.
        seconds: In all; of the last run, where it was interrupted.
    """

    space: str
    name: str
    tokens: int
    passages: int
    texts: int
    held_out: int
    start: str
    cosine_before: float
    cosine: float
    epoch: int
    hidden: bool
    seconds: float


def fit_space(
    connection: psycopg.Connection[Any],
    encoder: Encoder,
    *,
    space: str | None = None,
    collections: Sequence[str] | None = None,
    sample: int = 60_000,
    general: int | Sequence[str] = 12_000,
    hidden: bool = False,
    epochs: int = 10,
    seed: int = 0,
    cache: Path | None = None,
    on_progress: Callable[[FitProgress], None] | None = None,
) -> FitFigures:
    """Fit the token table that embeds a space's queries in SQL, on the space's own corpus, and store it.

    Sentences, titles, short spans, questions and lines of code are cut from passages and encoded with the space's
    model; the table is fitted so that the sum of a text's token vectors points where the model puts it. It begins
    with the shipped table where that was fitted to this model. The table before answers until the new one is stored,
    in one transaction. What was encoded and fitted before a stop is kept, so calling again goes on.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``.
        encoder: The space's model; its tokenizer must be uncased BERT's.
        space: Its name; the encoder's when None.
        collections: Take passages of these; None is all that the space holds.
        sample: Most texts that are cut from the corpus; twice as many take twice as long.
        general: Other texts that keep the table general; or so many, made of the vocabulary's words.
        hidden: Take passages too that ``public`` may not read. The table holds traces of the words that it was fitted
            on, and everybody who may search the space can read it.
        epochs: At most.
        seed: Of the sample and the fit.
        cache: Folder for what was done, kept afterwards; None is one of the user's cache, removed afterwards. It holds
            texts of the corpus.
        on_progress: Called now and then.

    Returns:
        What was stored.

    Raises:
        Refused: no such space, the encoder isn't its model, or its documents are embedded by a static table.
        PgragError: the model has another tokenizer, torch is not installed, or there is no text to fit on.
    """
    began = time.perf_counter()
    name = space or encoder.name
    _need_torch()
    with translated():
        register(connection)
    check_encoder(connection, name, encoder)
    dimension = int(space_passport(connection, name)["dimension"])
    vocabulary = _token_table.wordpiece_vocabulary(encoder)
    settings = {
        "database": _database(connection),
        "space": name,
        "model": encoder.passport["model"],
        "sha256": encoder.passport.get("sha256"),
        "collections": list(collections) if collections is not None else None,
        "sample": sample,
        "general": general if isinstance(general, int) else _digest("\0".join(general)),
        "hidden": hidden,
        "epochs": epochs,
        "seed": seed,
        "pgrag": __version__,
    }
    tell = on_progress or (lambda _: None)
    with _folder(cache, connection, name) as folder:
        drawn = folder / f"sample-{_digest(json.dumps(settings, sort_keys=True))}.json"
        if not drawn.exists():
            tell(FitProgress("sample", 0, sample))
            asked = (name, max(1, sample // _TEXTS_PER_PASSAGE), settings["collections"], seed, hidden)
            passages = _passages(connection, asked)
            made = (
                _token_table.made_texts(vocabulary, general, seed=seed)
                if isinstance(general, int)
                else general
            )
            texts = _token_table.sample_texts(passages, sample, seed=seed) + [
                ("general", text) for text in made
            ]
            _write(drawn, json.dumps([len(passages), texts]).encode())
        count, texts = json.loads(drawn.read_bytes())
        tell(FitProgress("sample", len(texts), len(texts)))
        vectors = _taught(encoder, texts, dimension, folder, tell)
        vocabulary, shipped = _with_pairs(encoder, vocabulary, [text for _, text in texts])
        ids = vocabulary.encode([text for _, text in texts])
        kept = np.array(
            [bool(len(row)) and bool(vector.any()) for row, vector in zip(ids, vectors, strict=True)]
        )
        if kept.sum() < _FEWEST:
            raise PgragError(
                f"space {name} gives {kept.sum()} texts to fit on, and {_FEWEST} are needed",
                "Put documents into its collections first"
                + ("." if hidden else "; those that public may not read count with hidden."),
            )
        bank = vectors[kept & np.array([kind == "passage" for kind, _ in texts])]
        ids, vectors = [ids[row] for row in np.flatnonzero(kept)], vectors[kept]
        start, start_name = _start(encoder, vocabulary, shipped, ids, dimension)
        state = drawn.with_suffix(".fit")
        table, fitted = _token_table.fit_table(
            start,
            ids,
            vectors,
            passages=bank,
            epochs=epochs,
            seed=seed,
            state=state,
            on_epoch=lambda epoch, of, cosine: tell(FitProgress("fit", epoch, of, cosine)),
        )
        figures = _figures(name, vocabulary, count, fitted, start_name, hidden, time.perf_counter() - began)
        written, places = vocabulary.rows()
        rows = zip(written, places.tolist(), _token_table.on_grid(table)[places], strict=True)
        tell(FitProgress("store", 0, figures.tokens))
        with translated(), connection.transaction():
            replace_query_encoder(
                connection, name, figures.name, rows, asdict(figures) | {"cosines": fitted.cosine_by_epoch}
            )
        tell(FitProgress("store", figures.tokens, figures.tokens))
        drawn.unlink()
        state.unlink(missing_ok=True)
    return figures


def _need_torch() -> None:
    """Say what is missing before anything is encoded, which takes long."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise PgragError(
            "fitting a token table needs torch, which is not installed", "pip install 'pgrag-rls[models]'"
        ) from error


def _passages(connection: psycopg.Connection[Any], asked: tuple[Any, ...]) -> list[Passage]:
    with translated():
        rows = connection.execute(_SAMPLE, asked).fetchall()
    return [
        Passage(content, tuple(part for part in (title, *(headings or ())) if part))
        for title, headings, content in rows
    ]


def _taught(
    encoder: Encoder,
    texts: Sequence[tuple[str, str]],
    dimension: int,
    folder: Path,
    tell: Callable[[FitProgress], None],
) -> NDArray[np.float16]:
    """Encode in shards that are kept and reused; cut to the space's dimension, float16 (n, dimension)."""
    parts = []
    who = f"{encoder.passport['model']} {encoder.passport.get('sha256')} {dimension}"
    for at in range(0, len(texts), _SHARD):
        tell(FitProgress("encode", at, len(texts)))
        shard = texts[at : at + _SHARD]
        file = folder / f"vectors-{_digest(json.dumps([who, shard]))}.npy"
        if not file.exists():
            made = np.zeros((len(shard), encoder.dimension), np.float32)
            for encode, rows in (
                (encoder.encode_documents, [row for row, (kind, _) in enumerate(shard) if kind == "passage"]),
                (encoder.encode_queries, [row for row, (kind, _) in enumerate(shard) if kind != "passage"]),
            ):
                if rows:
                    made[rows] = encode([shard[row][1] for row in rows])
            part = file.with_suffix(".part")
            with part.open("wb") as stream:
                np.save(stream, _token_table.normalised(made[:, :dimension]).astype(np.float16))
            part.replace(file)
        parts.append(np.load(file))
    tell(FitProgress("encode", len(texts), len(texts)))
    return np.concatenate(parts) if parts else np.zeros((0, dimension), np.float16)


def _with_pairs(
    encoder: Encoder, vocabulary: Vocabulary, texts: Sequence[str]
) -> tuple[Vocabulary, StaticEncoder | None]:
    """Return the vocabulary with the corpus's frequent pairs of words, and the shipped table where it is of this model.

    The shipped table's own pairs are kept.
    """
    shipped: StaticEncoder | None = StaticEncoder.shipped()
    if shipped is not None and not imitates(shipped, encoder.passport):
        shipped = None
    pairs = vocabulary.frequent_pairs(texts, _PAIRS)
    if shipped is not None:
        place = {token: number for number, token in enumerate(vocabulary.tokens)}
        known = [tuple(place[word] for word in pair.split(" ")) for pair in shipped.pairs.written()]
        pairs = np.array(list(dict.fromkeys([*known, *map(tuple, pairs.tolist())])), np.int64)
    return vocabulary.with_pairs(pairs), shipped


def _start(
    encoder: Encoder,
    vocabulary: Vocabulary,
    shipped: StaticEncoder | None,
    texts: Sequence[NDArray[np.int64]],
    dimension: int,
) -> tuple[Vectors, str]:
    """Return the table to begin with: the shipped one, else the tokens' own vectors; pairs that are new begin at zero."""
    if shipped is not None and dimension == shipped.dimension:
        written, places = vocabulary.rows()
        place = dict(zip(written, places.tolist(), strict=True))
        table = np.zeros((len(vocabulary), dimension), np.float32)
        for token, _, vector in shipped.token_rows():
            table[place[token]] = vector
        name = shipped.name
    else:
        words = [vocabulary.tokens[number].removeprefix("##") for number in vocabulary.ids]
        own = _token_table.normalised(encoder.encode_queries(words)[:, :dimension])
        table, name = _token_table.token_start(own, vocabulary.ids, len(vocabulary), texts), "tokens"
    middle = float(np.median(np.sqrt(np.square(table[vocabulary.ids]).mean(axis=1))))
    return table * np.float32(_SIZE / middle if middle else 1), name


def _figures(
    space: str,
    vocabulary: Vocabulary,
    passages: int,
    fitted: Fitted,
    start: str,
    hidden: bool,
    seconds: float,
) -> FitFigures:
    return FitFigures(
        space=space,
        name=f"{space}-fit",
        tokens=len(vocabulary.ids) + len(vocabulary.pairs),
        passages=passages,
        texts=fitted.texts,
        held_out=fitted.held_out,
        start=start,
        cosine_before=round(fitted.cosine_before, 4),
        cosine=round(fitted.cosine, 4),
        epoch=fitted.epoch,
        hidden=hidden,
        seconds=round(seconds, 1),
    )


@contextlib.contextmanager
def _folder(cache: Path | None, connection: psycopg.Connection[Any], space: str) -> Iterator[Path]:
    """Yield the folder for what was done; one that nobody named goes once the fit has succeeded."""
    own = _digest(f"{_database(connection)} {space}")
    folder = cache or platformdirs.user_cache_path("pgrag") / "fit" / own
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PgragError(
            f"the folder {folder} for what was fitted can't be made: {error.strerror}",
            "Name another: --cache",
        ) from error
    yield folder
    if cache is None:
        shutil.rmtree(folder, ignore_errors=True)


def _database(connection: psycopg.Connection[Any]) -> str:
    return f"{connection.info.host} {connection.info.port} {connection.info.dbname}"


def _write(file: Path, content: bytes) -> None:
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.replace(file)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
