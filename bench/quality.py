"""nDCG@10 of each arm, and recall@10 of words, on judged sets; documents and queries are encoded by the shipped token table.

python bench/quality.py --judged ../shared/data/judged
python bench/quality.py --put --only scifact cacm  # as somebody would who has only SQL
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ir_measures
import psycopg
from _bench import Row, arguments, database, load, report

from pgrag.embed import StaticEncoder
from pgrag.spaces import embed_static, load_static_space

SETS = ("scifact", "cacm", "cosqa", "anthropic_contextual_code", "xquad/en")
ARMS = {
    "lexical": '{"lexical": 1, "dense": 0}',
    "dense": '{"lexical": 0, "dense": 1}',
    "hybrid": '{"lexical": 1, "dense": 1}',
    "hybrid, dense 0.3": '{"lexical": 1, "dense": 0.3}',
}
MEASURES = {"lexical": (ir_measures.nDCG @ 10, ir_measures.R @ 10)}
DEPTH = 50  # passages; several may be of one document


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file, packed or not."""
    packed = path.with_name(path.name + ".gz")
    text = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    yield from map(json.loads, text.splitlines())


def qrels(path: Path) -> list[ir_measures.Qrel]:
    """Read judgements: query, document and grade between tabs."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return [
        ir_measures.Qrel(query, document, int(grade))
        for query, document, grade in rows
        if grade.lstrip("-").isdigit()
    ]


def put(connection: psycopg.Connection[Any], collection: str, documents: Sequence[dict[str, Any]]) -> None:
    """Put documents one by one through SQL, which cuts and, if the space is static, embeds them."""
    connection.execute("select pgrag.create_principals('public')")
    for document in documents:
        text = (document["text"] or document["title"] or "-").replace("\0", "")
        connection.execute(
            "select pgrag.put_document(%s, %s, %s, '{public}', title => %s)",
            (collection, document["_id"], text, document["title"] or None),
        )


def search(
    connection: psycopg.Connection[Any], collection: str, query: str, weights: str
) -> dict[str, float]:
    """Return the ten best documents and the score of the best passage of each."""
    best: dict[str, float] = {}
    found = connection.execute(
        "select uri, score from pgrag.search(%s, %s, array[%s], weights => %s)",
        (query, DEPTH, collection, weights),
    )
    for uri, score in found.fetchall():
        best.setdefault(uri, score)
    return dict(list(best.items())[:10])


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--judged", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "judged"
    )
    parser.add_argument("--only", nargs="+", metavar="SET", default=SETS, help="these sets")
    parser.add_argument("--arms", nargs="+", metavar="ARM", choices=ARMS, default=list(ARMS))
    parser.add_argument(
        "--put",
        action="store_true",
        help="through put_document, cut into passages; else a passage a document",
    )
    given = parser.parse_args()
    encoder, table = StaticEncoder.shipped(), []
    with database(given.database_url) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        if given.arms != ["lexical"]:
            load_static_space(dsn, encoder)
        for name in given.only:
            folder = given.judged / name
            if not folder.is_dir():
                print(f"{name}: not at {folder}, left out")
                continue
            documents = [{"title": ""} | document for document in lines(folder / "corpus.jsonl")]
            connection.execute("select pgrag.create_collection(%s)", (name,))
            if given.put:
                put(connection, name, documents)
            else:
                load(connection, name, documents, [["public"]] * len(documents))
                if given.arms != ["lexical"]:
                    embed_static(connection, name, encoder)
            connection.execute("vacuum analyze")
            judged = qrels(folder / "qrels.tsv")
            wanted = {qrel.query_id for qrel in judged}
            asked = [(q["_id"], q["text"]) for q in lines(folder / "queries.jsonl") if q["_id"] in wanted]
            row: Row = {"set": name, "documents": len(documents), "queries": len(asked)}
            for arm in given.arms:
                run = []
                with connection.transaction():
                    connection.execute("set local role pgrag_app")
                    connection.execute("select pgrag.act_as('public')")
                    for query_id, query in asked:
                        run += [
                            ir_measures.ScoredDoc(query_id, uri, score)
                            for uri, score in search(connection, name, query, ARMS[arm]).items()
                        ]
                measures = MEASURES.get(arm, (ir_measures.nDCG @ 10,))
                scores = ir_measures.calc_aggregate(measures, judged, run)
                row[arm] = f"{scores[ir_measures.nDCG @ 10]:.3f}"
                if ir_measures.R @ 10 in scores:
                    row[f"{arm}, recall@10"] = f"{scores[ir_measures.R @ 10]:.3f}"
            table.append(row)
        report(
            "nDCG@10, documents and queries by the shipped table",
            dsn,
            {
                "encoder": encoder.name,
                "documents": "put whole, cut by SQL" if given.put else "a passage each",
            },
            table,
            given.json,
        )


if __name__ == "__main__":
    main()
