"""Train the static token table that the package ships: a sum of token vectors that imitates MiniLM.

    python bench/train_static.py --corpus passages.jsonl.gz --model PATH --out pgrag/data/minilm_static_2

Needs torch, transformers, onnx, onnxruntime and tokenizers; ``bench/static.py`` evaluates the table. What it does:

1. draws texts of every length and kind from the corpus, and makes queries of its words: ``_static_texts``;
2. encodes them with the teacher (ONNX Runtime, int8), in shards kept in ``--cache``: it can be resumed;
3. starts each token from the teacher's vector of that token alone, minus their mean, times the token's idf; pairs of
   words that often stand together start from zero;
4. fits by Adam, in phases: first the cosine between the normalised sum and the teacher's vector, over the corpus's own
   texts; then, over queries too, also how near the ranking of passages comes to the teacher's. A tenth is held out to
   choose when to stop. The fit is the package's own, which ``pgrag space fit`` runs on a corpus: ``_token_table``;
5. rounds to int8, one scale a token, on a grid where sums are exact; writes table, vocabulary and passport.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from _static_texts import QUERIES, SHARES, needs, queries, varied  # noqa: E402

from pgrag import _token_table  # noqa: E402
from pgrag._token_table import GRID_BITS, Vocabulary  # noqa: E402

DIMENSION = 384
SHARD = 20_000
TEACHER_TOKENS = 128
# A text of so many tokens counts as a passage, which queries are ranked against.
PASSAGE_TOKENS = 60


@dataclass(frozen=True)
class Phase:
    """One stretch of the fit: over which samples, one of them twice where it is named twice, and towards what.

    ``long`` are the texts of ``varied`` that count as passages; ``queries`` and ``needs`` say how many of those samples are read.
    """

    samples: tuple[str, ...]
    epochs: int
    rate: float
    ranking: float
    passages: int = 512
    batch: int = 2_048
    queries: int = 0
    needs: int = 0


PHASES = (
    Phase(("varied",), epochs=4, rate=0.003, ranking=0),
    Phase(("varied", "queries"), epochs=3, rate=0.003, ranking=0.3, queries=340_000),
    Phase(
        ("varied", "long", "queries", "needs", "needs"),
        epochs=2,
        rate=0.002,
        ranking=0.5,
        passages=1_024,
        queries=400_000,
        needs=20_000,
    ),
)
# Of rounding, from fine to coarse; see ``quantise``.
STEPS = np.arange(0.1, 1, 0.005)
SEEDS = {"varied": 0, "queries": 7, "needs": 11}


# The teacher.


class Teacher:
    """A sentence-transformers BERT with mean pooling, run by ONNX Runtime in int8."""

    def __init__(self, model: Path, cache: Path, threads: int = 2) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        cache.mkdir(parents=True, exist_ok=True)
        onnx = cache / "teacher.int8.onnx"
        if not onnx.exists():
            export_int8(model, onnx)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self.tokenizer.no_padding()

    def encode(self, texts: Sequence[str], *, max_tokens: int = TEACHER_TOKENS) -> np.ndarray:
        """Encode texts, cut at ``max_tokens``, to unit vectors, float32 (n, 384)."""
        self.tokenizer.enable_truncation(max_tokens)
        return self.encode_ids([e.ids for e in self.tokenizer.encode_batch(list(texts))])

    def encode_ids(self, ids: Sequence[Sequence[int]], *, batch_tokens: int = 2_048) -> np.ndarray:
        """Encode token ids (with [CLS] and [SEP]), batched by length."""
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        out = np.empty((len(ids), DIMENSION), np.float32)
        at = 0
        while at < len(order):
            count = max(1, batch_tokens // max(1, len(ids[order[at]])))
            rows = order[at : at + count]
            width = max(len(ids[i]) for i in rows)
            tokens, mask = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
            for r, i in enumerate(rows):
                tokens[r, : len(ids[i])] = ids[i]
                mask[r, : len(ids[i])] = 1
            out[rows] = self.session.run(None, {"input_ids": tokens, "attention_mask": mask})[0]
            at += len(rows)
        return out


def export_int8(model: Path, path: Path) -> None:
    """Export encoder, mean pooling and normalisation to ONNX, weights quantised to int8."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    example = (torch.ones(2, 8, dtype=torch.long), torch.ones(2, 8, dtype=torch.long))
    axes = {"input_ids": {0: "n", 1: "t"}, "attention_mask": {0: "n", 1: "t"}, "vector": {0: "n"}}
    full = path.with_suffix(".fp32")
    with torch.no_grad():
        torch.onnx.export(
            Pooled(),
            example,
            str(full),
            input_names=["input_ids", "attention_mask"],
            output_names=["vector"],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    quantize_dynamic(str(full), str(path), weight_type=QuantType.QInt8, per_channel=True)
    full.unlink()


def teach(teacher: Teacher, texts: Sequence[str], cache: Path) -> np.ndarray:
    """Encode in shards that are kept and reused, float16 (n, 384)."""
    parts = []
    started, done = time.perf_counter(), 0
    for at in range(0, len(texts), SHARD):
        shard = texts[at : at + SHARD]
        digest = hashlib.sha256("\0".join(shard).encode("utf-8", "replace")).hexdigest()[:16]
        file = cache / f"teacher-{digest}.npy"
        if not file.exists():
            temporary = file.with_suffix(".part.npy")
            np.save(temporary, teacher.encode(shard).astype(np.float16))
            temporary.rename(file)
            done += len(shard)
            rate = done / (time.perf_counter() - started)
            print(
                f"  {at + len(shard):,} of {len(texts):,} texts, {rate:,.0f}/s", file=sys.stderr, flush=True
            )
        parts.append(np.load(file))
    return np.concatenate(parts)


# The files.


def write(
    folder: Path, table: np.ndarray, vocabulary: Vocabulary, passport: dict[str, Any], most: int
) -> None:
    """Write table, vocabulary and passport; the same input gives the same bytes.

    The rounding is as fine as ``most`` bytes allow.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _, rows = vocabulary.rows()
    for step in STEPS:
        codes, scale = _token_table.quantise(table[rows], float(step))
        np.savez_compressed(
            folder / "tokens.npz",
            codes=codes,
            scale=scale,
            ids=vocabulary.ids.astype(np.int32),
            pairs=vocabulary.pairs.pairs.astype(np.int32),
            grid=np.int32(1 << GRID_BITS),
        )
        if (folder / "tokens.npz").stat().st_size <= most:
            break
    passport["step"] = round(float(step), 3)
    passport["sha256"] = hashlib.sha256((folder / "tokens.npz").read_bytes()).hexdigest()
    (folder / "vocab.txt").write_text("\n".join(vocabulary.tokens) + "\n", encoding="utf-8")
    (folder / "passport.json").write_text(json.dumps(passport, indent=2) + "\n", encoding="utf-8")


class Tokenizing:
    """The teacher's tokenizer, as ``wordpiece_vocabulary`` wants it."""

    def __init__(self, model: Path) -> None:
        from tokenizers import Tokenizer

        self.name, self.passport = model.name, {"model": str(model)}
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))


def draw(name: str, given: argparse.Namespace, tokens: Sequence[str]) -> list[str]:
    """Return the texts of a sample."""
    if name == "varied":
        return varied(given.corpus, given.varied, SEEDS[name])
    if name == "queries":
        return queries(given.corpus, tokens, given.queries, SEEDS[name])
    return needs(given.corpus, given.needs, SEEDS[name])


def main() -> None:
    """Sample, teach, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="JSON Lines: title, text, lang, group")
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        help="folder of all-MiniLM-L6-v2 in sentence-transformers' layout",
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "pgrag-train-static")
    parser.add_argument("--name", default="minilm-static-2")
    parser.add_argument("--varied", type=int, default=420_000, help="texts of that sample")
    parser.add_argument("--queries", type=int, default=400_000)
    parser.add_argument("--needs", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=30_000, help="pairs of words that get a vector")
    parser.add_argument("--most", type=int, default=11_750_000, help="bytes of the table's file")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    import onnxruntime
    import torch

    threads = torch.get_num_threads()
    machine = f"{platform.machine()}, {platform.processor() or platform.system()}, {threads} threads"
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
    }
    print(f"machine: {machine}; versions: {versions}; seed {given.seed}")
    teacher = Teacher(given.model, given.cache, threads)
    vocabulary = _token_table.wordpiece_vocabulary(Tokenizing(given.model))
    texts, targets = {}, {}
    for name in SEEDS:
        texts[name] = draw(name, given, vocabulary.tokens)
        targets[name] = teach(teacher, texts[name], given.cache)
        print(f"{name}: {len(texts[name]):,} texts")
    vocabulary = vocabulary.with_pairs(
        vocabulary.frequent_pairs(texts["varied"] + texts["queries"], given.pairs)
    )
    ids = {name: vocabulary.encode(some) for name, some in texts.items()}
    long = [row for row, text in enumerate(ids["varied"]) if len(text) >= PASSAGE_TOKENS]
    ids["long"], targets["long"] = [ids["varied"][row] for row in long], targets["varied"][long]
    special = [vocabulary.tokens.index(token) for token in ("[CLS]", "[SEP]")]
    own = teacher.encode_ids([[special[0], int(token), special[1]] for token in vocabulary.ids])
    first = ids[PHASES[0].samples[0]]
    table = _token_table.token_start(own, vocabulary.ids, len(vocabulary), first)
    history = []
    for number, phase in enumerate(PHASES):
        most = {"queries": phase.queries, "needs": phase.needs}
        rows = [row for sample in phase.samples for row in ids[sample][: most.get(sample)]]
        goals = np.concatenate([targets[sample][: most.get(sample)] for sample in phase.samples])
        kept = np.array([bool(len(row)) for row in rows])
        rows, goals = [rows[place] for place in np.flatnonzero(kept)], goals[kept]
        table, fitted = _token_table.fit_table(
            table,
            rows,
            goals,
            passages=targets["long"],
            most_passages=phase.passages,
            epochs=phase.epochs,
            rate=phase.rate,
            batch=phase.batch,
            ranking=phase.ranking,
            lazy=False,
            seed=given.seed,
            state=given.cache / f"phase-{number}.fit",
            on_epoch=lambda epoch, of, cosine: print(
                f"  epoch {epoch} of {of}: held-out cosine {cosine:.4f}", flush=True
            ),
        )
        history.append(asdict(phase) | asdict(fitted))
        print(f"phase {number}: {fitted}")
    passport = {
        "name": given.name,
        "model": f"{given.name} (token table fitted to sentence-transformers/all-MiniLM-L6-v2)",
        "teacher": "sentence-transformers/all-MiniLM-L6-v2, ONNX Runtime int8 (per channel)",
        "teacher_sha256": hashlib.sha256((given.model / "model.safetensors").read_bytes()).hexdigest(),
        "revision": "2",
        "licence": "Apache-2.0",
        "dimension": DIMENSION,
        "max_tokens": None,
        "tokenizer": f"WordPiece, uncased BERT, {len(vocabulary.tokens):,} tokens; {len(vocabulary.pairs):,} pairs of words",
        "pooling": "sum of token vectors",
        "normalised": True,
        "query_prefix": "",
        "document_prefix": "",
        "precision": f"int8 with a scale a token, read as multiples of 2**-{GRID_BITS}",
        "languages": ["en"],
        "training": {
            "corpus": "free documentation: RFCs, languages and libraries, man pages, package descriptions,"
            " handbooks in about 50 languages; public medical questions and answers",
            "texts": {name: len(some) for name, some in texts.items()},
            "kinds": {"varied": SHARES, "queries": QUERIES},
            "seeds": SEEDS,
            "seed": given.seed,
            "phases": history,
            "versions": versions,
        },
    }
    write(given.out, table, vocabulary, passport, given.most)
    size = sum(file.stat().st_size for file in given.out.iterdir())
    print(f"written: {given.out}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
