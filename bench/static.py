"""The shipped and the fitted query encoder beside the model that they imitate, on judged sets: nDCG@10 and shares.

    python bench/static.py --model MODEL --cache FOLDER --json static.json

MODEL is a folder of all-MiniLM-L6-v2, exported by ``pgrag.embed.export_onnx`` or not. Neither table ever saw a judged
query: the shipped one saw none of these documents either, the fitted one is made by ``pgrag.fit.fit_space`` from the
documents of the set alone. Documents are by the model, except under `both by table`; BM25 is bm25s, the hybrid RRF.
Needs the extra ``models``, and bm25s and ir-measures.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import bm25s
import ir_measures
import numpy as np
import psycopg
from _bench import Row, arguments, database, load, report
from quality import SETS, lines, qrels

from pgrag._vector import register
from pgrag.embed import Encoder, OnnxEncoder, SentenceTransformerEncoder, StaticEncoder
from pgrag.fit import FitFigures, FitProgress, fit_space
from pgrag.spaces import attach_shipped

DEPTH = 100
RRF_K = 60
SPACE = "model"


class JudgedSet:
    """A judged set, the model's vectors of it, and its ranking by words."""

    def __init__(self, folder: Path, name: str, encoder: Encoder, cache: Path) -> None:
        self.name = name
        self.documents = [{"title": ""} | document for document in lines(folder / "corpus.jsonl")]
        self.ids = [document["_id"] for document in self.documents]
        self.qrels = qrels(folder / "qrels.tsv")
        wanted = {qrel.query_id for qrel in self.qrels}
        asked = {q["_id"]: q["text"] for q in lines(folder / "queries.jsonl") if q["_id"] in wanted}
        self.query_ids, self.queries = list(asked), list(asked.values())
        self.texts = [f"{d['title'] or ''}\n{d['text']}".strip() for d in self.documents]
        weights = str(encoder.passport.get("sha256"))[:8]
        file = cache / f"judged-{name.replace('/', '-')}-{weights}-{encoder.passport.get('precision')}.npz"
        if not file.exists():
            np.savez(
                file,
                documents=encoder.encode_documents(self.texts),
                queries=encoder.encode_queries(self.queries),
            )
        vectors = np.load(file)
        self.model_documents, self.model_queries = vectors["documents"], vectors["queries"]
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        index.index(bm25s.tokenize(self.texts, show_progress=False), show_progress=False)
        tokens = bm25s.tokenize(self.queries, show_progress=False)
        found, scores = index.retrieve(tokens, k=DEPTH, show_progress=False)
        self.lexical = [
            [self.ids[d] for d, score in zip(row, points, strict=True) if score > 0]
            for row, points in zip(found, scores, strict=True)
        ]

    def dense(self, queries: np.ndarray, documents: np.ndarray) -> list[list[str]]:
        """Rank documents by cosine for each query."""
        order = np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :DEPTH]
        return [[self.ids[d] for d in row] for row in order]

    def hybrid(self, dense: Sequence[Sequence[str]]) -> list[list[str]]:
        """RRF(d) = sum over rankings of 1 / (k + rank). Cormack, Clarke and Buettcher 2009."""
        fused = []
        for pair in zip(self.lexical, dense, strict=True):
            scores: dict[str, float] = defaultdict(float)
            for ranking in pair:
                for rank, document in enumerate(ranking, 1):
                    scores[document] += 1 / (RRF_K + rank)
            fused.append(sorted(scores, key=lambda d: (-scores[d], d))[:DEPTH])
        return fused

    def ndcg(self, rankings: Sequence[Sequence[str]]) -> float:
        """nDCG@10 with linear gain, mean over the judged queries."""
        run = [
            ir_measures.ScoredDoc(query, document, float(len(ranking) - place))
            for query, ranking in zip(self.query_ids, rankings, strict=True)
            for place, document in enumerate(ranking)
        ]
        return float(
            ir_measures.calc_aggregate([ir_measures.nDCG @ 10], self.qrels, run)[ir_measures.nDCG @ 10]
        )

    def passages(self) -> list[Row]:
        """Return the documents as passages that ``load`` reads; an empty one is a dash."""
        return [
            {
                "_id": d["_id"],
                "title": d["title"],
                "text": (d["text"] or d["title"] or "-").replace("\0", ""),
                "group": "",
            }
            for d in self.documents
        ]


def embedded(connection: psycopg.Connection[Any], queries: Sequence[str]) -> np.ndarray:
    """Return the query vectors that the database makes."""
    rows = connection.execute(
        "select pgrag.embed_query(u.query, %s)::text from unnest(%s::text[]) with ordinality as u (query, place)"
        " order by u.place",
        (SPACE, list(queries)),
    ).fetchall()
    length = next(len(json.loads(text)) for (text,) in rows if text)
    return np.array([json.loads(text) if text else [0.0] * length for (text,) in rows], np.float32)


def fitted(
    dsn: str, judged: JudgedSet, encoder: Encoder, given: Any, cache: Path
) -> tuple[np.ndarray, np.ndarray, FitFigures | None]:
    """Return the query vectors by the shipped table and by one fitted on the set's documents, made in the database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        register(connection)
        connection.execute(
            "select pgrag.create_space(%s, %s, %s, index_kind => 'none', passport => %s)",
            (SPACE, encoder.passport["model"], encoder.dimension, json.dumps(encoder.passport)),
        )
        connection.execute("select pgrag.create_collection(%s, space => %s)", (judged.name, SPACE))
        load(connection, judged.name, judged.passages(), [["public"]] * len(judged.documents))
        if not attach_shipped(connection, encoder.passport, space=SPACE):
            sys.exit("the shipped table was not fitted to this model")
        shipped = embedded(connection, judged.queries)
        if given.shipped_only:
            return shipped, shipped, None

        def tell(progress: FitProgress) -> None:
            if progress.stage == "fit" or progress.done % 10_000 == 0:
                print(f"  {judged.name}: {progress}", file=sys.stderr, flush=True)

        figures = fit_space(
            connection,
            encoder,
            space=SPACE,
            sample=given.sample,
            general=given.general,
            epochs=given.epochs,
            seed=given.seed,
            cache=cache,
            on_progress=tell,
        )
        return shipped, embedded(connection, judged.queries), figures


def rows_of(
    judged: JudgedSet, shipped: np.ndarray, fit: np.ndarray, figures: FitFigures | None, static: StaticEncoder
) -> tuple[Row, dict[str, float]]:
    """Return a set's row for the table, and the figures behind it."""
    own = judged.dense(judged.model_queries, judged.model_documents)
    rankings = {
        "model": own,
        "shipped": judged.dense(shipped, judged.model_documents),
        "fitted": judged.dense(fit, judged.model_documents),
        "both by table": judged.dense(shipped, static.encode(judged.texts)),
    }
    raw = {"bm25": judged.ndcg(judged.lexical)}
    for arm, ranking in rankings.items():
        raw[arm] = judged.ndcg(ranking)
        raw[f"bm25 + {arm}"] = judged.ndcg(judged.hybrid(ranking))
    if figures is None:
        raw = {arm: value for arm, value in raw.items() if "fitted" not in arm}
    row: Row = {"set": judged.name, "bm25": f"{raw['bm25']:.3f}", "model": f"{raw['model']:.3f}"}
    for arm in ("shipped", "fitted", "both by table"):
        if arm in raw:
            row[arm] = f"{raw[arm]:.3f} ({raw[arm] / raw['model']:.0%})"
    row["bm25 + model"] = f"{raw['bm25 + model']:.3f}"
    for arm in ("shipped", "fitted"):
        if arm in raw:
            row[f"bm25 + {arm}"] = (
                f"{raw[f'bm25 + {arm}']:.3f} ({raw[f'bm25 + {arm}'] / raw['bm25 + model']:.0%})"
            )
    return row, raw


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--judged", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "judged"
    )
    parser.add_argument("--only", nargs="+", metavar="SET", default=SETS, help="these sets")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "pgrag-bench-static")
    parser.add_argument("--sample", type=int, default=60_000, help="texts cut from a set's documents")
    parser.add_argument("--general", type=int, default=12_000, help="texts made of the vocabulary's words")
    parser.add_argument("--epochs", type=int, default=10, help="of a fit, at most")
    parser.add_argument("--threads", type=int, help="of ONNX Runtime")
    parser.add_argument("--shipped-only", action="store_true", help="fit nothing")
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    encoder: Encoder = (
        OnnxEncoder(given.model, threads=given.threads)
        if any(given.model.rglob("*.onnx"))
        else SentenceTransformerEncoder(given.model)
    )
    static, table, raw, fits = StaticEncoder.shipped(), [], {}, {}
    for name in given.only:
        folder = given.judged / name
        if not folder.is_dir():
            print(f"{name}: not at {folder}, left out")
            continue
        began = time.perf_counter()
        judged = JudgedSet(folder, name, encoder, given.cache)
        with database(given.database_url) as dsn:
            shipped, fit, figures = fitted(dsn, judged, encoder, given, given.cache)
        row, raw[name] = rows_of(judged, shipped, fit, figures, static)
        if figures is not None:
            fits[name] = asdict(figures)
        table.append(row)
        print(f"{row}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    shares: Row = {"set": "mean share"}
    for arm, of in (("shipped", "model"), ("fitted", "model"), ("both by table", "model")):
        if all(arm in values for values in raw.values()):
            shares[arm] = f"{np.mean([values[arm] / values[of] for values in raw.values()]):.1%}"
    for arm in ("shipped", "fitted"):
        if all(arm in values for values in raw.values()):
            share = np.mean([values[f"bm25 + {arm}"] / values["bm25 + model"] for values in raw.values()])
            shares[f"bm25 + {arm}"] = f"{share:.1%}"
    table.append({key: shares.get(key, "") for key in table[0]})
    about = {
        "model": f"{encoder.passport['model']}, {encoder.passport['runtime']}, {encoder.passport.get('precision')}",
        "table": static.name,
        "texts a fit": given.sample,
        "numpy": np.__version__,
        "bm25s": bm25s.__version__,
        "seed": given.seed,
    }
    report(
        "nDCG@10 of queries by the model, the shipped table and a fitted one",
        given.database_url,
        about,
        table,
        given.json,
    )
    if given.json:
        kept = json.loads(given.json.read_text("utf-8"))
        given.json.write_text(json.dumps(kept | {"ndcg_at_10": raw, "fits": fits}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
