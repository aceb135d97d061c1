"""Train the static token table that the package ships: a sum of token vectors that imitates MiniLM.

    python bench/train_static.py --corpus passages.jsonl.gz --model PATH --out pgrag/data/minilm_static

Needs torch, transformers, onnx, onnxruntime and tokenizers, and bm25s and ir-measures with ``--judged``;
the package itself needs only tokenizers. What it does:

1. samples texts of every length from the corpus: sentences, titles, short spans, questions, passages, words;
2. encodes them with the teacher (ONNX Runtime, int8), in shards kept in ``--cache``: it can be resumed;
3. starts each token from the teacher's vector of that token alone, minus their mean, times the token's idf;
4. fits by Adam: cosine between the normalised sum and the teacher's vector, a tenth held out to choose when
   to stop;
5. rounds to int8, one scale a token, on a grid where sums are exact; writes table, vocabulary and passport;
6. evaluates the written files on judged sets that were never trained on (nDCG@10, linear gain).

The start is that of model2vec (Tulkens and van Dongen 2024), but for its PCA.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import platform
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DIMENSION = 384
GRID_BITS = (
    11  # token values are multiples of 2**-11 below 1: exact in float16, and sums of them exact in float32
)
SHARD = 20_000
TEACHER_TOKENS = 128
SPECIAL = re.compile(r"^\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]$")
SHARES = {"sentence": 0.56, "span": 0.16, "question": 0.10, "title": 0.06, "word": 0.06, "passage": 0.06}


# 1. The sample.


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def sentences(text: str) -> Iterator[str]:
    """Split a passage at blank lines and sentence ends; white space collapsed."""
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"(?<=[.!?:;])\s+|(?<=[。！？])", " ".join(paragraph.split())):
            if 8 <= len(sentence) <= 400:
                yield sentence


def sample_texts(corpus: Path, size: int, seed: int) -> list[str]:
    """Draw ``size`` distinct texts of all kinds, shuffled, no group over a twelfth of a kind."""
    rng = random.Random(seed)
    pools: dict[str, dict[str, list[str]]] = {kind: defaultdict(list) for kind in SHARES}
    counts: dict[str, int] = defaultdict(int)
    for row in read_jsonl(corpus):
        text, group = row["text"], row["group"].split(":")[0]
        group = f"{group}:{row['lang'][:2]}" if row["lang"][:2] != "en" else group
        title = " ".join((row["title"] or "").split())
        pools["passage"][group].append(" ".join(text.split())[:900])
        if title:
            pools["title"][group].append(title)
            pools["question"][group].append(_question(title, rng))
        for word in re.findall(r"[^\W\d_]{3,24}", text):
            counts[word.lower()] += 1
        for sentence in sentences(text):
            pools["sentence"][group].append(sentence)
            words = sentence.split()
            if sentence.endswith("?"):
                pools["question"][group].append(sentence)
            if len(words) > 4:
                start = rng.randrange(len(words) - 2)
                span = " ".join(words[start : start + rng.randint(2, 9)]).strip(" ,.;:()[]")
                pools["span"][group].append(span)
                if rng.random() < 0.25:
                    pools["question"][group].append(_question(span, rng))
    pools["word"][""] = sorted(counts, key=lambda word: (-counts[word], word))[: int(size * SHARES["word"])]
    seen: set[str] = set()
    chosen: list[str] = []
    for kind, share in SHARES.items():
        want, cap = int(size * share), max(1, int(size * share / (1 if kind == "word" else 12)))
        candidates = [t for group in sorted(pools[kind]) for t in _draw(pools[kind][group], cap, rng)]
        rng.shuffle(candidates)
        for text in candidates:
            key = text.lower()
            if want and key not in seen and text:
                seen.add(key)
                chosen.append(text)
                want -= 1
    rng.shuffle(chosen)
    return chosen


def _draw(items: Sequence[str], most: int, rng: random.Random) -> list[str]:
    distinct = list(dict.fromkeys(items))
    return rng.sample(distinct, min(most, len(distinct)))


def _question(span: str, rng: random.Random) -> str:
    forms = (
        "what is {}?",
        "how to {}",
        "how do I {}?",
        "what does {} do?",
        "why {}?",
        "{}?",
        "where is {} described",
    )
    return rng.choice(forms).format(span)


# 2. The teacher.


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


# 3. and 4. The fit.


def token_start(teacher: Teacher, vocabulary: Sequence[str], texts: Sequence[Sequence[int]]) -> np.ndarray:
    """Each token's own vector minus their mean, times idf over the sample; special tokens are zero."""
    real = np.array([not SPECIAL.match(token) for token in vocabulary])
    ids = np.flatnonzero(real)
    cls, sep = vocabulary.index("[CLS]"), vocabulary.index("[SEP]")
    vectors = np.zeros((len(vocabulary), DIMENSION), np.float32)
    vectors[ids] = teacher.encode_ids([[cls, int(i), sep] for i in ids])
    vectors[ids] -= vectors[ids].mean(axis=0)
    seen = np.zeros(len(vocabulary))
    for text in texts:
        seen[np.unique(text)] += 1
    return (vectors * np.log((len(texts) + 1) / (seen + 1))[:, None]).astype(np.float32)


def fit(
    start: np.ndarray, texts: Sequence[Sequence[int]], targets: np.ndarray, args: argparse.Namespace
) -> tuple[np.ndarray, dict[str, Any]]:
    """Minimise 1 - cosine, and the error of in-batch similarities; keep the held out's best epoch."""
    import torch
    from torch.nn import functional

    torch.manual_seed(args.seed)
    order = np.random.default_rng(args.seed).permutation(len(texts))
    held, used = order[: len(order) // 10], order[len(order) // 10 :]
    lengths = np.array([len(text) for text in texts])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.concatenate([np.asarray(text, np.int64) for text in texts])
    bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(start.copy()), mode="sum", freeze=False)
    adam = torch.optim.Adam(bag.parameters(), lr=args.rate, fused=True)
    steps = args.epochs * (len(used) // args.batch + 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: max(0.02, 1 - step / steps))

    def batch(rows: np.ndarray) -> tuple[Any, Any]:
        ids = np.concatenate([flat[starts[r] : starts[r + 1]] for r in rows])
        offsets = np.concatenate([[0], np.cumsum(lengths[rows])[:-1]])
        out = bag(torch.from_numpy(ids), torch.from_numpy(offsets))
        return functional.normalize(out, dim=-1), torch.from_numpy(targets[rows].astype(np.float32))

    best, best_cosine, best_epoch, history = start, -1.0, 0, []
    for epoch in range(args.epochs + 1):
        began, total = time.perf_counter(), 0.0
        if epoch:
            shuffled = used[torch.randperm(len(used)).numpy()]
            for at in range(0, len(shuffled), args.batch):
                mine, theirs = batch(shuffled[at : at + args.batch])
                loss = (1 - (mine * theirs).sum(-1)).mean()
                if args.relational:
                    loss = loss + args.relational * functional.mse_loss(mine @ mine.T, theirs @ theirs.T)
                    loss = loss + args.relational * functional.mse_loss(mine @ theirs.T, theirs @ theirs.T)
                adam.zero_grad()
                loss.backward()
                adam.step()
                schedule.step()
                total += float(loss) * len(mine)
        with torch.no_grad():
            sums = [
                (m * t).sum(-1)
                for m, t in (batch(held[at : at + 4_096]) for at in range(0, len(held), 4_096))
            ]
            cosine = float(torch.cat(sums).mean())
        history.append(round(cosine, 4))
        seconds = time.perf_counter() - began
        print(
            f"  epoch {epoch}: loss {total / len(used):.4f}, held-out cosine {cosine:.4f}, {seconds:.0f} s",
            file=sys.stderr,
        )
        if cosine > best_cosine:
            best, best_cosine, best_epoch = bag.weight.detach().numpy().copy(), cosine, epoch
    return best, {
        "held_out": len(held),
        "held_out_cosine": best_cosine,
        "epoch": best_epoch,
        "cosine_by_epoch": history,
    }


# 5. The files.


def quantise(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round to int8 with one float32 scale a token; the largest value of the table becomes just under 1."""
    table = table / (np.abs(table).max() * 1.001)
    scale = np.abs(table).max(axis=1) / 127
    codes = np.rint(np.divide(table, scale[:, None], out=np.zeros_like(table), where=scale[:, None] > 0))
    return codes.astype(np.int8), scale.astype(np.float32)


def dequantise(codes: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The table as the package reads it: multiples of 2**-11, float32."""
    grid = float(1 << GRID_BITS)
    return (np.rint(codes.astype(np.float32) * scale[:, None] * grid) / grid).astype(np.float32)


# 6. The evaluation.


def load_judged(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Read documents, judged queries and grades of one set in BEIR's layout."""
    corpus = next(folder / name for name in ("corpus.jsonl", "corpus.jsonl.gz") if (folder / name).exists())
    documents = {r["_id"]: f"{r.get('title') or ''}\n{r['text']}".strip() for r in read_jsonl(corpus)}
    queries = {r["_id"]: r["text"] for r in read_jsonl(folder / "queries.jsonl")}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades[query][document] = int(grade)
    return documents, {q: queries[q] for q in grades}, grades


class JudgedSet:
    """One judged set with its BM25 ranking and the teacher's vectors."""

    depth = 100

    def __init__(self, folder: Path, teacher: Teacher, cache: Path) -> None:
        import bm25s

        self.name = folder.name if folder.parent.name == "judged" else f"{folder.parent.name}/{folder.name}"
        self.documents, self.queries, self.grades = load_judged(folder)
        self.ids, self.query_ids = list(self.documents), list(self.queries)
        file = cache / f"judged-{self.name.replace('/', '-')}.npz"
        if not file.exists():
            np.savez(
                file,
                documents=teacher.encode(list(self.documents.values()), max_tokens=256),
                queries=teacher.encode(list(self.queries.values()), max_tokens=256),
            )
        vectors = np.load(file)
        self.model_documents, self.model_queries = vectors["documents"], vectors["queries"]
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        index.index(bm25s.tokenize(list(self.documents.values()), show_progress=False), show_progress=False)
        tokens = bm25s.tokenize(list(self.queries.values()), show_progress=False)
        found, scores = index.retrieve(tokens, k=self.depth, show_progress=False)
        self.lexical = [
            [self.ids[d] for d, s in zip(row, points, strict=True) if s > 0]
            for row, points in zip(found, scores, strict=True)
        ]

    def dense(self, queries: np.ndarray, documents: np.ndarray) -> list[list[str]]:
        """Rank documents by cosine for each query."""
        order = np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, : self.depth]
        return [[self.ids[d] for d in row] for row in order]

    def hybrid(self, dense: list[list[str]], rrf_k: int = 60) -> list[list[str]]:
        """RRF(d) = sum over rankings of 1 / (k + rank). Cormack, Clarke and Buettcher 2009."""
        fused = []
        for pair in zip(self.lexical, dense, strict=True):
            scores: dict[str, float] = defaultdict(float)
            for ranking in pair:
                for rank, document in enumerate(ranking, 1):
                    scores[document] += 1 / (rrf_k + rank)
            fused.append(sorted(scores, key=lambda d: (-scores[d], d))[: self.depth])
        return fused

    def ndcg(self, rankings: list[list[str]]) -> float:
        """nDCG@10 with linear gain, mean over the judged queries."""
        import ir_measures

        run = {
            q: {d: float(len(ranking) - i) for i, d in enumerate(ranking)}
            for q, ranking in zip(self.query_ids, rankings, strict=True)
        }
        return float(
            ir_measures.calc_aggregate([ir_measures.nDCG @ 10], self.grades, run)[ir_measures.nDCG @ 10]
        )

    def row(self, encode: Any) -> dict[str, float]:
        """nDCG@10 of every combination, ``encode`` being the table's encoder."""
        queries, documents = encode(list(self.queries.values())), encode(list(self.documents.values()))
        rankings = {
            "model": self.dense(self.model_queries, self.model_documents),
            "query by table": self.dense(queries, self.model_documents),
            "both by table": self.dense(queries, documents),
        }
        row = {"bm25": self.ndcg(self.lexical)}
        for name, ranking in rankings.items():
            row[name] = self.ndcg(ranking)
            row[f"bm25 + {name}"] = self.ndcg(self.hybrid(ranking))
        return row


def print_rows(rows: dict[str, dict[str, float]]) -> None:
    """Print nDCG@10 and, for the table's own columns, the share of the model's."""
    columns = list(next(iter(rows.values())))
    width = max(len(name) for name in rows) + 2
    print("nDCG@10".ljust(width) + "".join(column.rjust(max(len(column), 5) + 3) for column in columns))
    for name, row in rows.items():
        print(name.ljust(width) + "".join(f"{row[c]:.3f}".rjust(max(len(c), 5) + 3) for c in columns))
    for name, row in rows.items():
        shares = [row[f"{c} by table"] / row["model"] for c in ("query", "both")]
        hybrid = [row[f"bm25 + {c} by table"] / row["bm25 + model"] for c in ("query", "both")]
        print(
            f"{name}: of the model's, query by table {shares[0]:.2f}, both {shares[1]:.2f};"
            f" of the model's hybrid {hybrid[0]:.2f}, {hybrid[1]:.2f}"
        )


def write(folder: Path, table: np.ndarray, vocabulary: Sequence[str], passport: dict[str, Any]) -> None:
    """Write table, vocabulary and passport; the same input gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = np.flatnonzero([not SPECIAL.match(token) for token in vocabulary]).astype(np.int32)
    codes, scale = quantise(table[ids])
    np.savez_compressed(
        folder / "tokens.npz", codes=codes, scale=scale, ids=ids, grid=np.int32(1 << GRID_BITS)
    )
    passport["sha256"] = hashlib.sha256((folder / "tokens.npz").read_bytes()).hexdigest()
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (folder / "passport.json").write_text(json.dumps(passport, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Sample, teach, fit, write, evaluate."""
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
    parser.add_argument(
        "--judged", type=Path, help="folder with judged sets in BEIR's layout, to evaluate on"
    )
    parser.add_argument(
        "--sets", nargs="*", default=["scifact", "cosqa", "anthropic_contextual_code", "xquad/en", "cacm"]
    )
    parser.add_argument("--texts", type=int, default=420_000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--batch", type=int, default=2_048)
    parser.add_argument(
        "--relational", type=float, default=0.0, help="weight of the error of in-batch similarities"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    import onnxruntime
    import torch
    from tokenizers import Tokenizer

    from pgrag.embed import StaticEncoder

    processor = platform.processor() or platform.system()
    machine = f"{platform.machine()}, {processor}, {torch.get_num_threads()} threads"
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
    }
    print(f"machine: {machine}; versions: {versions}; seed {args.seed}")
    teacher = Teacher(args.model, args.cache, torch.get_num_threads())
    vocabulary = (args.model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    texts = sample_texts(args.corpus, args.texts, args.seed)
    targets = teach(teacher, texts, args.cache)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TEACHER_TOKENS - 2)
    unknown = vocabulary.index("[UNK]")
    ids = [
        [i for i in e.ids if i != unknown] for e in tokenizer.encode_batch(texts, add_special_tokens=False)
    ]
    kept = [row for row, text in enumerate(ids) if text]
    ids, targets = [ids[row] for row in kept], targets[kept]
    print(f"texts: {len(ids):,}, tokens a text {np.mean([len(text) for text in ids]):.1f}")
    start = token_start(teacher, vocabulary, ids)
    table, fitted = fit(start, ids, targets, args)
    print(f"fit: {fitted}")
    passport = {
        "name": "minilm-static",
        "model": "minilm-static (token table fitted to sentence-transformers/all-MiniLM-L6-v2)",
        "teacher": "sentence-transformers/all-MiniLM-L6-v2, ONNX Runtime int8 (per channel)",
        "teacher_sha256": hashlib.sha256((args.model / "model.safetensors").read_bytes()).hexdigest(),
        "revision": "1",
        "licence": "Apache-2.0",
        "dimension": DIMENSION,
        "max_tokens": None,
        "tokenizer": "WordPiece, uncased BERT, 30,522 tokens",
        "pooling": "sum of token vectors",
        "normalised": True,
        "query_prefix": "",
        "document_prefix": "",
        "precision": f"int8 with a scale a token, read as multiples of 2**-{GRID_BITS}",
        "languages": ["en"],
        "training": {
            "texts": len(ids),
            "corpus": "free documentation: RFCs, languages and libraries, man pages, package descriptions,"
            " handbooks in about 50 languages; public medical questions and answers",
            "kinds": SHARES,
            "seed": args.seed,
            "epochs": args.epochs,
            "rate": args.rate,
            "batch": args.batch,
            "relational": args.relational,
            **fitted,
            "versions": versions,
        },
    }
    write(args.out, table, vocabulary, passport)
    if args.judged:
        encoder = StaticEncoder(args.out)
        judged = [JudgedSet(args.judged / name, teacher, args.cache) for name in args.sets]
        rows = {one.name: one.row(encoder.encode) for one in judged}
        print_rows(rows)
        passport["ndcg_at_10"] = {n: {c: round(v, 4) for c, v in row.items()} for n, row in rows.items()}
        write(args.out, table, vocabulary, passport)
    size = sum(file.stat().st_size for file in args.out.iterdir())
    print(f"written: {args.out}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
