"""Serves the stage ``embed``: fits a table of token vectors, so that their sum points where a model's vector does.

Knows texts, tokens and numbers; the database is left to ``pgrag.fit``, and ``bench/train_static.py`` makes the
shipped table with the same code. Fitting needs torch; the rest needs numpy and tokenizers only.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pgrag.embed._word_pairs import WordPairs
from pgrag.errors import PgragError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Vectors = NDArray[np.float32]

__all__ = [
    "GRID_BITS",
    "KINDS",
    "Fitted",
    "Passage",
    "Vocabulary",
    "dequantise",
    "fit_table",
    "made_texts",
    "normalised",
    "on_grid",
    "quantise",
    "question",
    "sample_texts",
    "sentences",
    "sum_tokens",
    "token_start",
    "wordpiece_vocabulary",
]

# Token values are multiples of 2**-11 below 1: exact in float16, and sums of them exact in float32.
GRID_BITS = 11
# Tokens of a text that are fitted: what the model reads of it.
MOST_TOKENS = 126

_SPECIAL = re.compile(r"^(\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]|</?(s|pad|unk|mask)>)$")
_PART = "##"
# A tenth is held out, and never more than this.
_HELD_OUT = 20_000


# The tokens.


@dataclass(frozen=True)
class Vocabulary:
    """The word pieces of a model, how it cuts text into them, and which pairs of words count as tokens too.

    Attributes:
        tokens: Every token of the model, at the place that is its id.
        ids: Those that can have a vector: all but the model's special ones.
        pairs: Pairs of words; their ids follow those of the tokens.
    """

    tokens: tuple[str, ...]
    ids: NDArray[np.int64]
    pairs: WordPairs
    _tokenizer: Tokenizer

    def __len__(self) -> int:
        return len(self.tokens) + len(self.pairs)

    def rows(self) -> tuple[list[str], NDArray[np.int64]]:
        """Return what can have a vector, as SQL looks it up, and the ids of it."""
        written = [self.tokens[number] for number in self.ids.tolist()] + self.pairs.written()
        return written, np.append(self.ids, np.arange(len(self.tokens), len(self)))

    def with_pairs(self, pairs: NDArray[np.integer]) -> Vocabulary:
        """Return the vocabulary with these pairs of token ids, (n, 2), in the place of its own."""
        return replace(self, pairs=WordPairs(self.tokens, pairs))

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the ids of each text, pairs last, unknown words and special tokens left out."""
        real = np.zeros(len(self.tokens), bool)
        real[self.ids] = True
        return [np.append(ids[real[ids]], self.pairs.of(ids)) for ids in self._cut(texts)]

    def frequent_pairs(self, texts: Sequence[str], most: int, *, least: int = 5) -> NDArray[np.int64]:
        """Return the pairs of words that stand side by side most often, at least so many times, most frequent first."""
        word = np.array([len(token) > 1 and token.isalnum() for token in self.tokens], bool)
        counted: dict[int, int] = {}
        for ids in self._cut(texts):
            for key in self.pairs.neighbours(ids).tolist():
                counted[key] = counted.get(key, 0) + 1
        keys = np.array(sorted(key for key, count in counted.items() if count >= least), np.int64)
        found: NDArray[np.int64] = np.stack(np.divmod(keys, len(self.tokens)), axis=1).reshape(-1, 2)
        kept = word[found].all(axis=1)
        order = np.argsort([-counted[key] for key in keys[kept].tolist()], kind="stable")[:most]
        chosen: NDArray[np.int64] = found[kept][order]
        return chosen

    def _cut(self, texts: Sequence[str]) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(texts), 1_000):
            batch = [text.encode("utf-8", "ignore").decode("utf-8") for text in texts[start : start + 1_000]]
            for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                yield np.array(encoding.ids[:MOST_TOKENS], np.int64)


def wordpiece_vocabulary(encoder: Any) -> Vocabulary:
    """Return the vocabulary of an encoder whose tokenizer is uncased BERT's, the only one that SQL knows.

    Args:
        encoder: Has its tokenizer, of ``tokenizers`` or of transformers, as ``tokenizer``.

    Raises:
        PgragError: it has no tokenizer to look at (an endpoint), or another one.
    """
    from tokenizers import Tokenizer

    places = (encoder, "tokenizer"), (encoder, "_tokenizer"), (getattr(encoder, "_model", None), "tokenizer")
    held = next((found for of, name in places if (found := getattr(of, name, None)) is not None), None)
    tokenizer = getattr(held, "backend_tokenizer", held)
    if not isinstance(tokenizer, Tokenizer):
        raise PgragError(
            f"the tokenizer of {_model(encoder)} is not at hand, so no token table can be fitted to it",
            "Fit with the model itself, by sentence-transformers or ONNX Runtime.",
        )
    described = json.loads(tokenizer.to_str())
    if different := _unlike_bert(described):
        raise PgragError(
            f"the tokenizer of {_model(encoder)} is not uncased BERT's ({different}), which is the only one that"
            " embed_query can follow in SQL",
            "Pass embedding => ... with queries that the model embeds, or take a model with that tokenizer, such as"
            " all-MiniLM-L6-v2.",
        )
    vocabulary = {str(token): int(number) for token, number in described["model"]["vocab"].items()}
    tokens = [""] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        tokens[number] = token
    ids = [number for number, token in enumerate(tokens) if token and not _SPECIAL.match(token)]
    own = Tokenizer.from_str(
        json.dumps({**described, "truncation": None, "padding": None, "added_tokens": []})
    )
    none = WordPairs(tokens, np.zeros((0, 2), np.int64))
    return Vocabulary(tuple(tokens), np.array(ids, np.int64), none, own)


def _unlike_bert(described: dict[str, Any]) -> str | None:
    """Say in what a tokenizer's description differs from uncased BERT's."""
    model = described["model"]
    if model.get("type") != "WordPiece":
        return f"it is {model.get('type') or 'of another kind'}"
    if (model.get("continuing_subword_prefix"), model.get("unk_token")) != (_PART, "[UNK]"):
        return "its pieces are marked otherwise"
    normalizer = described.get("normalizer") or {}
    wanted = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    if {key: normalizer.get(key) for key in wanted} != wanted or normalizer.get("strip_accents") is False:
        return "it keeps case or accents"
    if (described.get("pre_tokenizer") or {}).get("type") != "BertPreTokenizer":
        return "it finds words otherwise"
    return None


def _model(encoder: Any) -> str:
    return str(encoder.passport.get("model", encoder.name))


# The texts.


@dataclass(frozen=True)
class Passage:
    """What texts are cut from.

    Attributes:
        text: The passage.
        titles: Title and headings above it.
    """

    text: str
    titles: tuple[str, ...] = ()


# Of a sample, the share of each kind of text.
KINDS = {
    "sentence": 0.42,
    "span": 0.12,
    "keywords": 0.12,
    "question": 0.12,
    "title": 0.08,
    "passage": 0.08,
    "word": 0.06,
}
# Most of a passage that is encoded: about what the models read of it.
_HEAD = 900
_QUESTIONS = (
    "what is {}?",
    "how to {}",
    "how do I {}?",
    "what does {} do?",
    "why {}?",
    "{}?",
    "where is {} described",
)
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after all also an and any are as at be been before being below between both but by can could did do"
        " does during each for from had has have he her his how i if in into is it its may me might more most must my"
        " no nor not of off on once only or other our out over own per same shall she should so some such than that"
        " the their them then there these they this those through to too under until up us very was we were what when"
        " where which while who whom whose why will with would you your",
    )
)


def sentences(text: str) -> Iterator[str]:
    """Cut a passage at blank lines and sentence ends, code at its lines; white space collapsed."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        if len(lines) > 1 and sum(map(_like_code, lines)) * 3 > len(lines):
            parts = lines
        else:
            parts = re.split(r"(?<=[.!?:;])\s+|(?<=[。！？])", " ".join(paragraph.split()))
        for part in parts:
            if 8 <= len(sentence := " ".join(part.split())) <= 400:
                yield sentence


def _like_code(line: str) -> bool:
    """Guess whether a line is code: it ends as code does, or has more signs than words."""
    line = line.strip()
    return line.endswith(("{", "}", ";", ":", ")", ",", "\\")) or len(
        re.findall(r"[=(){}\[\]<>_/|&*]", line)
    ) * 12 > len(line)


def question(span: str, rng: random.Random) -> str:
    """Make something like a question of a span of text."""
    return rng.choice(_QUESTIONS).format(span)


def sample_texts(passages: Iterable[Passage], size: int, *, seed: int) -> list[tuple[str, str]]:
    """Draw distinct texts of all kinds, each with its kind, shuffled: ``size`` of them, where there are so many.

    Args:
        passages: Where from.
        size: Most texts.
        seed: The same passages and seed draw the same.
    """
    rng = random.Random(seed)  # noqa: S311 - draws a sample
    pools: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    counts: dict[str, int] = {}
    for passage in passages:
        pools["passage"][" ".join(passage.text.split())[:_HEAD]] = None
        for title in passage.titles:
            if title := " ".join(title.split()):
                pools["title"][title] = None
                pools["question"][question(title, rng)] = None
        for word in re.findall(r"[^\W\d_]{3,24}", passage.text):
            counts[word.lower()] = counts.get(word.lower(), 0) + 1
        for sentence in sentences(passage.text):
            pools["sentence"][sentence] = None
            if sentence.endswith("?"):
                pools["question"][sentence] = None
            for kind, text in _shorter(sentence, rng):
                pools[kind][text] = None
    pools["word"] = dict.fromkeys(sorted(counts, key=lambda word: (-counts[word], word)))
    seen: set[str] = {""}
    chosen: list[tuple[str, str]] = []
    for kind, share in KINDS.items():
        texts = list(pools[kind])
        if kind != "word":
            rng.shuffle(texts)
        want = int(size * share)
        for text in texts:
            if want and text.lower() not in seen:
                seen.add(text.lower())
                chosen.append((kind, text))
                want -= 1
    rng.shuffle(chosen)
    return chosen


def _shorter(sentence: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield a span of a sentence, words that bear its meaning, and questions of either; identifiers are split."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", sentence)
    bare = [
        word
        for word in re.findall(r"[^\s.,;:!?()\[\]{}\"'`<>*|=/]+", split)
        if word.lower() not in _EMPTY_WORDS
    ]
    if len(bare) >= 2:
        count = min(len(bare), rng.randint(2, 7))
        start = rng.randrange(len(bare) - count + 1)
        keywords = " ".join(bare[start : start + count]).lower()
        yield "keywords", keywords
        if rng.random() < 0.25:
            yield "question", question(keywords, rng)
    words = sentence.split()
    if len(words) <= 4:
        return
    start = rng.randrange(len(words) - 2)
    span = " ".join(words[start : start + rng.randint(2, 9)]).strip(" ,.;:()[]")
    yield "span", span
    if rng.random() < 0.25:
        yield "question", question(span, rng)


def made_texts(vocabulary: Vocabulary, size: int, *, seed: int) -> list[str]:
    """Make texts of whole words of the vocabulary, one to five each, some as questions: they know no corpus.

    A table that is fitted on a corpus keeps with them what it knew of words that the corpus lacks.
    """
    rng = random.Random(seed)  # noqa: S311 - draws a sample
    words = [token for token in vocabulary.tokens if len(token) > 1 and token.isalpha()]
    texts: list[str] = []
    while words and len(texts) < size:
        text = " ".join(rng.choices(words, k=rng.choice((1, 2, 2, 3, 3, 4, 5))))
        texts.append(question(text, rng) if rng.random() < 0.2 else text)
    return texts


# The numbers.


def normalised(vectors: Vectors) -> Vectors:
    """Return rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    out: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return out


def sum_tokens(table: Vectors, texts: Sequence[NDArray[np.int64]]) -> Vectors:
    """Encode texts, given as token ids, by a table."""
    out = np.zeros((len(texts), table.shape[1]), np.float32)
    for row, ids in enumerate(texts):
        if len(ids):
            out[row] = table[ids].sum(axis=0)
    return normalised(out)


def token_start(
    own: Vectors, ids: NDArray[np.int64], rows: int, texts: Sequence[NDArray[np.int64]]
) -> Vectors:
    """Each token's own vector minus their mean, times its idf over the texts; other rows are zero.

    The start is that of model2vec (Tulkens and van Dongen 2024), but for its PCA.

    Args:
        own: The model's vector of each token alone, in the order of ids.
        ids: Which tokens they are.
        rows: Of the table.
        texts: The sample, as token ids.
    """
    table = np.zeros((rows, own.shape[1]), np.float32)
    table[ids] = own - own.mean(axis=0)
    seen = np.zeros(len(table))
    for text in texts:
        seen[np.unique(text)] += 1
    return (table * np.log((len(texts) + 1) / (seen + 1))[:, None]).astype(np.float32)


def quantise(table: Vectors, step: float = 0.2) -> tuple[NDArray[np.int8], Vectors]:
    """Round each row to multiples of a scale of its own, float32; the table's largest value becomes just under 1.

    Args:
        table: (tokens, dimension).
        step: The scale, of the geometric mean of the row's size and the greatest row's, sizes being roots of mean squares:
            rows that weigh less in a sum are rounded more coarsely. 0.2 costs 0.4 % of a text's direction, and four
            bits a number once they are compressed.
    """
    table = table / (np.abs(table).max() * 1.001)
    size = np.sqrt(np.square(table).mean(axis=1))
    scale = np.maximum(np.sqrt(size * size.max()) * step, np.abs(table).max(axis=1) / 127)
    codes = np.rint(np.divide(table, scale[:, None], out=np.zeros_like(table), where=scale[:, None] > 0))
    # Rounding must not carry a number to 1, from where on half precision is coarser.
    most = np.floor(np.divide(0.9995, scale, out=np.full_like(scale, 127), where=scale > 0))[:, None]
    return np.clip(codes, -most, most).astype(np.int8), scale.astype(np.float32)


def dequantise(codes: NDArray[np.int8], scale: Vectors) -> Vectors:
    """The table as the package reads it: multiples of 2**-11, float32."""
    grid = float(1 << GRID_BITS)
    out: Vectors = (np.rint(codes.astype(np.float32) * scale[:, None] * grid) / grid).astype(np.float32)
    return out


def on_grid(table: Vectors) -> Vectors:
    """Round a table to multiples of 2**-11 below 1, so that Python and SQL agree to the last bit."""
    grid = float(1 << GRID_BITS)
    out: Vectors = (np.rint(table / (np.abs(table).max() * 1.001) * grid) / grid).astype(np.float32)
    return out


# The fit.


@dataclass(frozen=True)
class Fitted:
    """How a fit went.

    Attributes:
        texts: Texts that it learnt from.
        held_out: Texts that it was judged by and did not see.
        cosine_before: Mean cosine of the held out with the model's vectors, by the table that it began with.
        cosine: The same by the table that it kept.
        cosine_by_epoch: The same after each epoch, from the start.
        epoch: The epoch whose table was kept; 0 is the start.
        epochs: Epochs that were run.
    """

    texts: int
    held_out: int
    cosine_before: float
    cosine: float
    cosine_by_epoch: tuple[float, ...]
    epoch: int
    epochs: int


def fit_table(
    start: Vectors,
    texts: Sequence[NDArray[np.int64]],
    targets: NDArray[Any],
    *,
    passages: NDArray[Any] | None = None,
    most_passages: int = 512,
    epochs: int = 8,
    rate: float = 0.003,
    batch: int | None = None,
    ranking: float = 0.5,
    temperature: float = 0.05,
    lazy: bool = True,
    seed: int = 0,
    state: Path | None = None,
    on_epoch: Callable[[int, int, float], None] | None = None,
) -> tuple[Vectors, Fitted]:
    """Fit a table by Adam, and keep the epoch that the held-out tenth likes best.

    The loss is 1 - cosine with the model's vector, plus how far the ranking of passages departs: the divergence
    of softmax(similarity / temperature) over passages of the batch, by the model and by the table.

    Args:
        start: (tokens, dimension); tokens that no text has keep it.
        texts: Token ids of each text, none empty.
        targets: The model's vector of each text, of length 1.
        passages: The model's vectors of passages, which texts are ranked against; None leaves that loss out.
        most_passages: A step ranks against so many of them, drawn at random.
        epochs: At most; it stops where two in a row were no better.
        rate: Adam's, falling to a fiftieth of it.
        batch: Texts a step; None is a hundredth of them, 64 to 1,024.
        ranking: Weight of the ranking's loss.
        temperature: Of its softmax: the less, the more only the nearest passages count.
        lazy: Move only the tokens of a step's texts, which is much faster where these are few; else also those that
            have momentum left.
        seed: Of what is held out and of the order.
        state: File that an interrupted fit goes on from; written after each epoch.
        on_epoch: Called with epoch, epochs and the held-out cosine.

    Raises:
        PgragError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise PgragError(
            "fitting a token table needs torch, which is not installed", "pip install 'pgrag-rls[models]'"
        ) from error
    from torch.nn import functional

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    tenth = max(1, min(len(order) // 10, _HELD_OUT))
    held, used = order[:tenth], order[tenth:]
    batch = batch or min(1_024, max(64, len(used) // 100))
    lengths = np.array([len(text) for text in texts])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.concatenate([np.asarray(text, np.int64) for text in texts])
    bag = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(start.copy()), mode="sum", freeze=False, sparse=lazy
    )
    adam = (torch.optim.SparseAdam if lazy else torch.optim.Adam)(bag.parameters(), lr=rate)
    steps = epochs * max(1, -(-len(used) // batch))
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: max(0.02, 1 - step / steps))
    bank = None if passages is None or not len(passages) or not ranking else np.asarray(passages)

    def encoded(rows: NDArray[np.int64]) -> tuple[Any, Any]:
        ids = np.concatenate([flat[starts[row] : starts[row + 1]] for row in rows])
        offsets = np.concatenate([[0], np.cumsum(lengths[rows])[:-1]])
        out = bag(torch.from_numpy(ids), torch.from_numpy(offsets))
        return functional.normalize(out, dim=-1), torch.from_numpy(targets[rows].astype(np.float32))

    def departure(mine: Any, theirs: Any, drawn: NDArray[Any]) -> Any:
        against = torch.from_numpy(drawn.astype(np.float32)).T
        model = functional.log_softmax(theirs @ against / temperature, dim=-1)
        table = functional.log_softmax(mine @ against / temperature, dim=-1)
        return (model.exp() * (model - table)).sum(-1).mean()

    def judge() -> tuple[float, float]:
        """Return cosine and loss of the held out."""
        cosine = loss = 0.0
        with torch.no_grad():
            for at in range(0, len(held), 2_048):
                mine, theirs = encoded(held[at : at + 2_048])
                share = len(mine) / len(held)
                cosine += float((mine * theirs).sum(-1).mean()) * share
                if bank is not None:
                    loss += ranking * float(departure(mine, theirs, bank[:most_passages])) * share
        return cosine, loss + 1 - cosine

    cosines: list[float] = []
    best, best_loss, best_epoch, first = start, np.inf, 0, 0
    if state is not None and state.exists():
        kept = torch.load(state, weights_only=True)
        with torch.no_grad():
            bag.weight.copy_(kept["table"])
        adam.load_state_dict(kept["adam"])
        schedule.load_state_dict(kept["schedule"])
        cosines, best_epoch, best_loss = kept["cosines"], kept["best_epoch"], kept["best_loss"]
        best, first = kept["best"].numpy(), kept["epoch"] + 1
    for epoch in range(first, epochs + 1):
        if epoch - best_epoch > 2:
            break
        if epoch:
            mixed = np.random.default_rng([seed, epoch])
            shuffled = used[mixed.permutation(len(used))]
            for at in range(0, len(shuffled), batch):
                mine, theirs = encoded(shuffled[at : at + batch])
                loss = (1 - (mine * theirs).sum(-1)).mean()
                if bank is not None:
                    drawn = bank[mixed.integers(0, len(bank), min(len(bank), most_passages))]
                    loss = loss + ranking * departure(mine, theirs, drawn)
                adam.zero_grad()
                loss.backward()
                adam.step()
                schedule.step()
        cosine, judged = judge()
        cosines.append(cosine)
        if judged < best_loss:
            best, best_loss, best_epoch = bag.weight.detach().numpy().copy(), judged, epoch
        if state is not None:
            part = state.with_suffix(".part")
            torch.save(
                {
                    "table": bag.weight.detach(),
                    "adam": adam.state_dict(),
                    "schedule": schedule.state_dict(),
                    "cosines": cosines,
                    "best": torch.from_numpy(best),
                    "best_epoch": best_epoch,
                    "best_loss": best_loss,
                    "epoch": epoch,
                },
                part,
            )
            part.replace(state)
        if on_epoch is not None:
            on_epoch(epoch, epochs, cosine)
    return best, Fitted(
        texts=len(used),
        held_out=len(held),
        cosine_before=cosines[0],
        cosine=cosines[best_epoch],
        cosine_by_epoch=tuple(round(value, 4) for value in cosines),
        epoch=best_epoch,
        epochs=len(cosines) - 1,
    )
