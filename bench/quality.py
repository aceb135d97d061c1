"""nDCG@10 of each arm on judged sets, with documents and queries encoded by the shipped token table.

python bench/quality.py --judged ../shared/data/judged
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
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


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--judged", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "judged"
    )
    given = parser.parse_args()
    encoder, table = StaticEncoder.shipped(), []
    with database(given.database_url) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        load_static_space(dsn, encoder)
        for name in SETS:
            folder = given.judged / name
            if not folder.is_dir():
                print(f"{name}: not at {folder}, left out")
                continue
            documents = [{"title": ""} | document for document in lines(folder / "corpus.jsonl")]
            connection.execute("select pgrag.create_collection(%s)", (name,))
            load(connection, name, documents, [["public"]] * len(documents))
            embed_static(connection, name, encoder)
            connection.execute("vacuum analyze")
            judged = qrels(folder / "qrels.tsv")
            wanted = {qrel.query_id for qrel in judged}
            asked = [(q["_id"], q["text"]) for q in lines(folder / "queries.jsonl") if q["_id"] in wanted]
            row: Row = {"set": name, "documents": len(documents), "queries": len(asked)}
            for arm, weights in ARMS.items():
                run = []
                with connection.transaction():
                    connection.execute("set local role pgrag_app")
                    connection.execute("select pgrag.act_as('public')")
                    for query_id, query in asked:
                        found = connection.execute(
                            "select uri, score from pgrag.search(%s, 10, array[%s], weights => %s)",
                            (query, name, weights),
                        )
                        run += [
                            ir_measures.ScoredDoc(query_id, uri, score) for uri, score in found.fetchall()
                        ]
                measure = ir_measures.nDCG @ 10
                row[arm] = f"{ir_measures.calc_aggregate([measure], judged, run)[measure]:.3f}"
            table.append(row)
        report(
            "nDCG@10, documents and queries by the shipped table",
            dsn,
            {"encoder": encoder.name},
            table,
            given.json,
        )


if __name__ == "__main__":
    main()
