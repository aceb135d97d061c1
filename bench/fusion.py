"""Is any fusion of words and vectors better than reciprocal ranks 1:1? nDCG@10 on judged sets, cross-validated.

    python bench/fusion.py --model MODEL --cache FOLDER --json fusion.json

MODEL is a folder of all-MiniLM-L6-v2, exported by ``pgrag.embed.export_onnx`` or not; without one, vectors are by the shipped
token table. Words and vectors are found by pgrag, a passage a document; then every setting is computed from what they found.
"tuned" scores each query by what the other folds chose; p is a paired permutation test against rrf 1:1, alone and after Holm's
correction over all rows of its set. A gain that other sets choose, "by the other sets", needs no judged queries of one's own.
Needs the extra ``evaluate``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from _bench import Row, arguments, database, load, report
from quality import SETS, lines

from pgrag._vector import to_text
from pgrag.embed import Encoder, OnnxEncoder, SentenceTransformerEncoder, StaticEncoder, has_onnx
from pgrag.evaluate._fusing import Candidates, SearchSettings, fused
from pgrag.evaluate._measures import measure, ranking
from pgrag.evaluate._significance import holm, paired
from pgrag.evaluate._tune import GRID, cross_validated, folds_of

DEPTH = 100
MEASURE = "ndcg@10"
WEIGHTS, RRF_K = GRID["weights"], GRID["rrf_k"]
RRF = SearchSettings(DEPTH)
SPACES: Mapping[str, Sequence[SearchSettings]] = {
    "rrf, weights": [SearchSettings(DEPTH, 60, *pair) for pair in WEIGHTS],
    "rrf, weights and k": [SearchSettings(DEPTH, k, *pair) for k in RRF_K for pair in WEIGHTS],
    "minmax, weights": [SearchSettings(DEPTH, 60, *pair, "minmax") for pair in WEIGHTS],
    "any of these": [SearchSettings(DEPTH, k, *pair) for k in RRF_K for pair in WEIGHTS]
    + [SearchSettings(DEPTH, 60, *pair, "minmax") for pair in WEIGHTS],
}
FIXED: Mapping[str, SearchSettings] = {
    "words alone": SearchSettings(DEPTH, 60, 1.0, 0.0),
    "vectors alone": SearchSettings(DEPTH, 60, 0.0, 1.0),
    "minmax 1:1": SearchSettings(DEPTH, 60, 1.0, 1.0, "minmax"),
}
_ARM = (
    "select chunk_id, uri, coalesce(lexical_score, dense_distance) from pgrag.search"
    "(%s, %s, array[%s], %s, depth => %s, weights => %s, exact => true) order by coalesce(lexical_rank, dense_rank)"
)


class Found:
    """What words and vectors find for the queries of a judged set, and the value of each setting."""

    def __init__(
        self, connection: psycopg.Connection[Any], folder: Path, name: str, encoder: Encoder, cache: Path
    ) -> None:
        documents = [{"title": ""} | document for document in lines(folder / "corpus.jsonl")]
        rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()]
        self.qrels: dict[str, dict[str, int]] = {}
        for query, document, grade in rows:
            if grade.lstrip("-").isdigit():
                self.qrels.setdefault(query, {})[document] = int(grade)
        asked = {q["_id"]: q["text"] for q in lines(folder / "queries.jsonl") if q["_id"] in self.qrels}
        # The vectors that bench/static.py keeps, of all queries that somebody judged.
        judged_ids = list(asked)
        self.ids = [one for one in asked if any(grade > 0 for grade in self.qrels[one].values())]
        self.qrels = {one: self.qrels[one] for one in self.ids}
        self._values: dict[SearchSettings, np.ndarray] = {}
        about = f"{str(encoder.passport.get('sha256'))[:8]}-{encoder.passport.get('precision')}"
        file = cache / f"judged-{name.replace('/', '-')}-{about}.npz"
        if not file.is_file():
            texts = [f"{d['title'] or ''}\n{d['text']}".strip() for d in documents]
            np.savez(
                file,
                documents=encoder.encode_documents(texts),
                queries=encoder.encode_queries(list(asked.values())),
            )
        vectors = np.load(file)
        space = encoder.name
        connection.execute("select pgrag.create_collection(%s, space => %s)", (name, space))
        load(connection, name, documents, [["public"]] * len(documents))
        self._store(connection, space, [d["_id"] for d in documents], vectors["documents"])
        connection.execute("vacuum analyze")
        self.uris: list[str] = []
        numbers: dict[str, int] = {}
        self.found = []
        with connection.transaction():
            connection.execute("set local role pgrag_app")
            connection.execute("select pgrag.act_as('public')")
            for one, vector in zip(judged_ids, vectors["queries"], strict=True):
                if one not in self.qrels:
                    continue
                arms = []
                for weights in ('{"lexical": 1, "dense": 0}', '{"lexical": 0, "dense": 1}'):
                    given = (asked[one], DEPTH, name, to_text(vector), DEPTH, weights)
                    hits = connection.execute(_ARM, given).fetchall()
                    for _, uri, _ in hits:
                        if uri not in numbers:
                            numbers[uri] = len(self.uris)
                            self.uris.append(uri)
                    arms.append([(chunk, numbers[uri], value) for chunk, uri, value in hits])
                self.found.append(Candidates.of(*arms))

    @staticmethod
    def _store(
        connection: psycopg.Connection[Any], space: str, ids: Sequence[str], vectors: np.ndarray
    ) -> None:
        of = dict(zip(ids, vectors, strict=True))
        while claimed := connection.execute(
            "select c.chunk_id, c.hash, d.uri from pgrag.claim_chunks(%s, 1000) as c"
            " inner join pgrag.chunk as h on h.chunk_id = c.chunk_id"
            " inner join pgrag.document as d on d.collection_id = h.collection_id and d.document_id = h.document_id",
            (space,),
        ).fetchall():
            chunk_ids, hashes, uris = zip(*claimed, strict=True)
            texts = [to_text(of[uri]) if of[uri].any() else None for uri in uris]
            connection.execute(
                "select pgrag.store_vectors(%s, %s, %s, %s)", (space, list(chunk_ids), list(hashes), texts)
            )

    def values(self, settings: SearchSettings) -> np.ndarray:
        """Return the measure of each query."""
        settings = settings.plain()
        if settings not in self._values:
            run = {
                query: ranking(self.uris[found.documents[place]] for place in fused(found, settings)[:10])
                for query, found in zip(self.ids, self.found, strict=True)
            }
            per_query = measure(run, self.qrels, (MEASURE,)).per_query
            self._values[settings] = np.array([per_query[query][MEASURE] for query in self.ids])
        return self._values[settings]

    def best(self, options: Sequence[SearchSettings], on: np.ndarray | None = None) -> SearchSettings:
        """Return what these queries, or all, choose; of equal ones rrf 1:1, then the first."""
        choices = [RRF, *options]
        means = [float(self.values(one)[slice(None) if on is None else on].mean()) for one in choices]
        return choices[int(np.argmax(np.array(means) > max(means) - 1e-12))]


def shown(settings: SearchSettings) -> str:
    """Write settings in words."""
    k = f" k {settings.rrf_k}" if settings.fusion == "rrf" else ""
    return f"{settings.fusion}{k} {settings.lexical:g}:{settings.dense:g}"


def others(found: Mapping[str, Found], name: str, options: Sequence[SearchSettings]) -> SearchSettings:
    """Return what is best on the other sets, each with equal weight."""
    choices = [RRF, *options]
    means = [
        np.mean([one.values(choice).mean() for other, one in found.items() if other != name])
        for choice in choices
    ]
    return choices[int(np.argmax(means))]


def rows_of(name: str, before: np.ndarray, tried: Sequence[tuple[str, np.ndarray, str]]) -> list[Row]:
    """Return the rows of a set: rrf 1:1, and each fusion that was tried beside it."""
    pairs = [paired(before, after) for _, after, _ in tried]
    corrected = holm([pair.p_permutation for pair in pairs])
    first = {"difference, 95 %": "", "p": "", "p, Holm": "", "better, equal, worse": "", "chosen": ""}
    rows: list[Row] = [{"set": name, "fusion": "rrf 1:1", MEASURE: f"{before.mean():.3f}"} | first]
    for (label, after, chosen), pair, p in zip(tried, pairs, corrected, strict=True):
        rows.append(
            {
                "set": name,
                "fusion": label,
                MEASURE: f"{after.mean():.3f}",
                "difference, 95 %": f"{pair.low:+.3f} to {pair.high:+.3f}",
                "p": f"{pair.p_permutation:.4f}",
                "p, Holm": f"{p:.4f}",
                "better, equal, worse": f"{pair.wins} {pair.ties} {pair.losses}",
                "chosen": chosen,
            }
        )
    return rows


def summary(table: Sequence[Row]) -> list[Row]:
    """Return a row a set: nDCG@10 of what isn't tuned, and how sure it is that scores beat ranks."""
    rows: dict[str, Row] = {}
    for row in table:
        one = rows.setdefault(row["set"], {"set": row["set"]})
        if row["fusion"] in ("words alone", "vectors alone", "rrf 1:1", "minmax 1:1"):
            one[row["fusion"]] = row["ndcg@10"]
        if row["fusion"] == "minmax 1:1":
            one["minmax - rrf, 95 %"], one["p, Holm"] = row["difference, 95 %"], row["p, Holm"]
    return list(rows.values())


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--judged", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "judged"
    )
    parser.add_argument("--only", nargs="+", metavar="SET", default=SETS, help="these sets")
    parser.add_argument("--model", help="a folder or a name; else the shipped token table")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "pgrag-bench-vectors",
        help="where vectors are kept",
    )
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    encoder: Encoder
    if given.model is None:
        encoder = StaticEncoder.shipped()
    elif has_onnx(Path(given.model)):
        encoder = OnnxEncoder(given.model, name="model")
    else:
        encoder = SentenceTransformerEncoder(given.model, name="model")
    found: dict[str, Found] = {}
    table: list[Row] = []
    with database(given.database_url) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select pgrag.create_space(%s, %s, %s, index_kind => 'none', passport => %s)",
            (encoder.name, encoder.passport["model"], encoder.dimension, json.dumps(encoder.passport)),
        )
        for name in given.only:
            if (given.judged / name).is_dir():
                found[name] = Found(connection, given.judged / name, name, encoder, given.cache)
            else:
                print(f"{name}: not at {given.judged / name}, left out")
        for name, one in found.items():
            parts = folds_of(len(one.ids), given.folds, given.seed)
            before = one.values(RRF)
            tried: list[tuple[str, np.ndarray, str]] = [
                (label, one.values(settings), "") for label, settings in FIXED.items()
            ]
            for label, options in SPACES.items():
                scored, choices = cross_validated(lambda on, o=options: one.best(o, on), one.values, parts)  # noqa: B023
                chosen = "; ".join(dict.fromkeys(map(shown, choices)))
                tried.append((f"{label}, tuned", scored, chosen))
            for label in ("rrf, weights", "minmax, weights"):
                if len(found) > 1:
                    settings = others(found, name, SPACES[label])
                    tried.append((f"{label}, by the other sets", one.values(settings), shown(settings)))
            table += rows_of(name, before, tried)
        if len(found) > 1:
            # Every set counts as much as another, however many queries it has.
            scale = {
                name: sum(len(one.ids) for one in found.values()) / len(found) / len(one.ids)
                for name, one in found.items()
            }
            everywhere = {
                label: np.concatenate([scale[name] * one.values(settings) for name, one in found.items()])
                for label, settings in {"rrf 1:1": RRF, **FIXED}.items()
            }
            before = everywhere.pop("rrf 1:1")
            table += rows_of("all alike", before, [(label, after, "") for label, after in everywhere.items()])
        about = {
            "queries": ", ".join(f"{name} {len(one.ids)}" for name, one in found.items()),
            "model": encoder.passport["model"],
            "runtime": f"{encoder.passport.get('runtime', 'table')} {encoder.passport.get('precision', '')}".strip(),
            "numpy": np.__version__,
            "depth": DEPTH,
            "folds": given.folds,
            "seed": given.seed,
        }
        report(
            f"Fusion of words and vectors by {encoder.passport['model']}, nDCG@10, against reciprocal ranks 1:1",
            dsn,
            about,
            table,
            given.json,
            summary(table),
        )


if __name__ == "__main__":
    main()
