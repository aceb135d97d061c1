r"""Recall and latency of vector search for callers who see all, a part, or only what is far from their question.

    python bench/dense.py --vectors 20000
    python bench/dense.py --vectors 100000 --from vectors/*.npy --what 'MiniLM vectors of passages' --json dense.json
    python bench/dense.py --vectors 100000 --model FOLDER --cache FOLDER

One collection, in one server; every system is asked every question before the next one, in turns. pgrag decides for
each caller between comparing all that they see and the index; beside it both of these alone (the index with the
calibrated effort and iterative scan), pgvector on its own table under a policy as people write it, and the stores of
LangChain and LlamaIndex, whose callers filter by metadata: what isn't installed is named and left out. Recall counts
rows as near as the tenth nearest that the caller may see, at the precision that the system keeps.

    pip install llama-index-vector-stores-postgres langchain-core asyncpg 'sqlalchemy[asyncio]'
    pip install --no-deps langchain-postgres   # it asks for an older package pgvector, and runs with this one

"CPU" is what the server's process computed, which says more than the clock on a machine that is busy.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from _bench import Row, arguments, database, load, machine, markdown, percentile
from _dense import Encoded, Material, Question, Visibility, encoder_of, from_files, from_texts, say
from _dense_systems import (
    EXACT,
    INDEX,
    PGRAG,
    Connection,
    LangChain,
    LlamaIndex,
    System,
    make_library,
    pgrag_systems,
    pgvector_systems,
)

from pgrag.index import compact
from pgrag.spaces import activate_space, build_space, calibrate_space, create_space
from pgrag.worker import drain

RECALL = 0.99
# The statement that says which chunk each row became.
_PLACES = """
    select c.chunk_id, d.uri::int
    from pgrag.chunk as c
    inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
"""
_WARM_UP = 2
# A system that takes so long is asked every tenth question, after the first of each visibility.
_FIRST = 5
_ONE_IN = 10


@dataclass
class Measured:
    """What a system did at a visibility."""

    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    plans: Counter[str] = field(default_factory=Counter)

    @property
    def recall(self) -> float:
        """Return the mean recall."""
        return sum(self.recalls) / len(self.recalls)

    def row(self, system: str, vectors: int, visible: str) -> Row:
        """Return the row of the file."""
        return {
            "system": system,
            "vectors": vectors,
            "visible": visible,
            "recall_at_10": round(self.recall, 4),
            "p50_ms": round(percentile(self.ms, 0.5), 3),
            "p95_ms": round(percentile(self.ms, 0.95), 3),
            "plan": "; ".join(f"{plan} ({count})" for plan, count in self.plans.most_common(3)),
            "cpu_p50_ms": round(percentile(self.cpu_ms, 0.5), 3) if self.cpu_ms else None,
            "queries": len(self.recalls),
            "visible_vectors": round(sum(self.seen) / len(self.seen)),
        }


def fill(
    connection: Connection, material: Material, visibility: Visibility, given: argparse.Namespace
) -> dict[int, int]:
    """Put the vectors into pgrag, in its own way, and build the index; return the row of each chunk."""
    encoder = Encoded(material)
    connection.execute("select pgrag.create_collection('bench')")
    rows = [
        {"_id": str(row), "title": "", "text": encoder.text(row)} for row in range(len(material.documents))
    ]
    seconds = load(connection, "bench", rows, [visibility.readers(row) for row in range(len(rows))])
    compact(connection)
    say(f"{len(rows):,} passages under {visibility.acls:,} ACLs loaded in {seconds:.0f} s")
    create_space(
        connection,
        encoder,
        collections=["bench"],
        precision=given.precision,
        rotate=given.rotate,
        index=given.index,
        index_options=dict(given.index_option),
        with_index=False,
    )
    start = time.perf_counter()
    drain(connection, encoder, space=encoder.name, batch=2000)
    say(f"vectors stored in {time.perf_counter() - start:.0f} s")
    built = build_space(connection, encoder.name, memory=given.memory, workers=given.workers)
    say(f"index built in {built.figures.get('seconds', 0):.0f} s")
    activate_space(connection, "bench", encoder.name)
    return dict(connection.execute(_PLACES).fetchall())


def asked_in_turns(
    systems: Sequence[System], questions: Sequence[Sequence[Question]], visibility: Visibility, slow_ms: float
) -> dict[tuple[str, str], Measured]:
    """Ask every system every question as every caller, in turns; return what they did."""
    measured: dict[tuple[str, str], Measured] = defaultdict(Measured)
    for question in questions[-1]:
        for system in systems:
            for _ in range(_WARM_UP):
                system.ask(question)
    start = time.perf_counter()
    for number, callers in enumerate(questions):
        for caller, question in enumerate(callers):
            # Each comes first now and then.
            first = (number + caller) % len(systems)
            for system in (*systems[first:], *systems[:first]):
                kept = measured[question.visible, system.name]
                slow = len(kept.ms) >= _FIRST and percentile(kept.ms, 0.5) > slow_ms
                if slow and number % _ONE_IN:
                    continue
                answer = system.ask(question)
                kept.ms.append(answer.ms)
                if answer.cpu_ms is not None:
                    kept.cpu_ms.append(answer.cpu_ms)
                kept.recalls.append(visibility.recall(question, answer.rows, system.kept))
                kept.seen.append(question.seen)
                kept.plans[answer.plan] += 1
        if number % 10 == 9:
            say(f"{number + 1} questions in {time.perf_counter() - start:.0f} s")
    return measured


def ratios(measured: Mapping[tuple[str, str], Measured], labels: Sequence[str]) -> list[Row]:
    """Compare pgrag with the better of its pure strategies that reach the recall, at each visibility."""
    rows = []
    for label in labels:
        own = measured[label, PGRAG]
        row: Row = {
            "visible": label,
            "vectors seen": round(sum(own.seen) / len(own.seen)),
            "recall@10": f"{own.recall:.3f}",
            "p50 ms": f"{percentile(own.ms, 0.5):.2f}",
        }
        pure = {name: measured[label, name] for name in (EXACT, INDEX) if (label, name) in measured}
        for name, title in ((EXACT, "exact"), (INDEX, "index alone")):
            if name in pure:
                row[f"{title}: recall / p50"] = (
                    f"{pure[name].recall:.3f} / {percentile(pure[name].ms, 0.5):.2f}"
                )
        able = [each for each in pure.values() if each.recall >= RECALL]
        better = min(percentile(each.ms, 0.5) for each in able)
        row["of the better"] = f"{percentile(own.ms, 0.5) / better:.2f}"
        if own.cpu_ms:
            better = min(percentile(each.cpu_ms, 0.5) for each in able)
            row["CPU ms"] = f"{percentile(own.cpu_ms, 0.5):.2f}"
            row["CPU, of the better"] = f"{percentile(own.cpu_ms, 0.5) / better:.2f}"
        row["plan"] = own.plans.most_common(1)[0][0]
        rows.append(row)
    return rows


def side_by_side(
    measured: Mapping[tuple[str, str], Measured], names: Sequence[str], labels: Sequence[str]
) -> list[Row]:
    """Return a row a system, with recall and median at each visibility."""
    return [
        {"system": name}
        | {
            label: f"{measured[label, name].recall:.2f} / {percentile(measured[label, name].ms, 0.5):.1f}"
            for label in labels
        }
        for name in names
    ]


def material_of(given: argparse.Namespace) -> Material:
    """Return the vectors that were asked for."""
    if given.files:
        return from_files(
            given.files, given.queries_from, given.what, given.vectors, given.queries, given.seed
        )
    return from_texts(encoder_of(given.model), given.cache, given.vectors, given.queries, given.seed)


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument(
        "--from",
        dest="files",
        type=Path,
        nargs="+",
        metavar="FILE.npy",
        help="vectors, (n, dimension); the last rows are kept for questions",
    )
    parser.add_argument("--queries-from", type=Path, metavar="FILE.npy", help="vectors of questions")
    parser.add_argument("--what", default="vectors", help="what they are, for the title")
    parser.add_argument("--model", help="encodes passages and questions; without: the shipped token table")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keeps what the model made")
    parser.add_argument("--index", choices=("hnsw", "ivfflat", "none"), default="hnsw")
    parser.add_argument(
        "--index-option",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        type=lambda given: (given.partition("=")[0], int(given.partition("=")[2])),
    )
    parser.add_argument("--precision", choices=("vector", "halfvec", "bit"), default="halfvec")
    parser.add_argument("--rotate", action="store_true", help="with bit")
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--acls", type=int, default=250)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=("pgrag", "pgvector", "langchain", "llamaindex"),
        help="pgrag always is; default: all",
    )
    parser.add_argument("--types", nargs="+", choices=("halfvec", "vector"), default=["halfvec", "vector"])
    parser.add_argument("--memory", default="2GB", help="maintenance_work_mem")
    parser.add_argument("--workers", type=int, help="of a build")
    parser.add_argument(
        "--slow-ms", type=float, default=500.0, help="a system that takes longer is asked one question in ten"
    )
    given = parser.parse_args()
    material = material_of(given)
    documents = material.documents
    visibility = Visibility(material, given.clusters, given.acls, given.seed)
    questions = [visibility.questions(number) for number in range(len(material.questions))]
    say(f"{len(documents):,} vectors, {len(questions)} questions of {len(questions[0])} callers")
    local = given.database_url is None
    # Plans are for one core, whoever searches.
    settings = {"max_parallel_workers_per_gather": "0", "maintenance_work_mem": given.memory}
    with database(given.database_url, settings) as dsn:

        def connect() -> Connection:
            return psycopg.connect(dsn, autocommit=True, prepare_threshold=None)

        connection = connect()
        place = fill(connection, material, visibility, given)
        chosen = given.only or ["pgrag", "pgvector", "langchain", "llamaindex"]
        others: list[System] = []
        if "pgvector" in chosen:
            others += pgvector_systems(connect, visibility, given.types, local=local)
        connection.execute("create schema if not exists bench")
        for name, make in (("langchain", LangChain), ("llamaindex", LlamaIndex)):
            if name in chosen:
                others += make_library(make, dsn, connection, visibility, local=local)
        connection.execute("vacuum analyze")
        if local:
            connection.execute("checkpoint")
        calibration = calibrate_space(connection, Encoded.name)
        say(f"calibrated: {json.dumps(calibration)}")
        systems = pgrag_systems(connect, Encoded.name, place, local=local) + others
        measured = asked_in_turns(systems, questions, visibility, given.slow_ms)
        about = machine(dsn) | {
            "model": material.model,
            "dimension": documents.shape[1],
            "vectors": len(documents),
            "index": given.index,
            "precision": given.precision,
            "effort": calibration.get("effort", "none"),
            "clusters": len(visibility.centers),
            "ACLs": visibility.acls,
            "queries": len(questions),
            "seed": given.seed,
        }
    labels, names = visibility.labels, [system.name for system in systems]
    tables: list[Row] = [
        {
            "title": f"Vector search over {len(documents):,} {material.what}: recall@10 / median ms by what the caller sees",
            "readme": True,
            "rows": side_by_side(measured, names, labels),
        },
        {
            "title": "pgrag beside its pure strategies",
            "readme": True,
            "rows": ratios(measured, labels),
        },
    ]
    rows = [measured[label, name].row(name, len(documents), label) for label in labels for name in names]
    if given.json is not None:
        found = {"title": tables[0]["title"], "about": about, "rows": rows, "tables": tables}
        given.json.write_text(json.dumps(found | {"calibration": calibration}, indent=1) + "\n", "utf-8")
    shown = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    print(markdown("All of it", {}, shown))
    for table in tables:
        print(markdown(table["title"], about if table is tables[-1] else {}, table["rows"]), flush=True)


if __name__ == "__main__":
    main()
