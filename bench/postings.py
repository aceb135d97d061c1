"""What a posting costs: unpacked, with its points, looked up among candidates, summed per chunk; and a search of no word.

python bench/postings.py --chunks 100000
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from _bench import Row, arguments, database, load, measure, passages, percentile, report

from pgrag.index import compact

# Postings of the terms that most chunks hold; in a temporary table, so that reading the index does not count.
RUNS = """
create temporary table run as
select p.sign, p.entries from pgrag.posting as p
where p.term in (select t.term from pgrag.posting as t group by t.term order by sum(t.n) desc, t.term limit 4)
"""
CANDIDATES = """
create temporary table candidate as
select c.chunk_id from pgrag.chunk as c order by hashint8(c.chunk_id) limit 1000
"""
ENTRIES = "create temporary view entry as select unnest(r.entries) as entry from run as r"
SCORED = """
create temporary view scored as
select e.entry >> 23 as chunk_id, pgrag._posting_points(e.entry, 1e11, 66, 1.2, 0.75) as points from entry as e
"""
STEPS = {
    "unpacked": "select count(e.entry) from entry as e",
    "unpacked, with its points": "select max(s.points) from scored as s",
    "unpacked, looked up among 1,000 chunks": "select count(*) from entry as e"
    " inner join candidate as c on c.chunk_id = e.entry >> 23",
    "unpacked, with its points, summed per chunk": "select count(c.points)"
    " from (select sum(s.points) as points from scored as s group by s.chunk_id) as c",
}


def fastest(connection: psycopg.Connection[Any], query: str, times: int) -> float:
    """Return the seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        connection.execute(query).fetchall()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=15, help="runs, of which the fastest counts")
    given = parser.parse_args()
    rows = passages(given.chunks, given.seed)
    with database(given.database_url) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pgrag.create_collection('bench')")
        load(connection, "bench", rows, [[f"group:{row['group']}"] for row in rows])
        for group in sorted({f"group:{row['group']}" for row in rows}):
            connection.execute("select pgrag.add_member(%s, 'user:all')", (group,))
        compact(connection)
        connection.execute("vacuum analyze")
        connection.execute("set jit = off")
        connection.execute("set max_parallel_workers_per_gather = 0")
        for statement in (RUNS, CANDIDATES, "analyze run", "analyze candidate", ENTRIES, SCORED):
            connection.execute(statement)
        found = connection.execute("select sum(cardinality(entries)) from run").fetchone()
        postings = int(found[0]) if found else 0
        table: list[Row] = [
            {
                "step": step,
                "figure": f"{1e6 * fastest(connection, query, given.times) / postings:.3f}",
                "unit": "us a posting",
            }
            for step, query in STEPS.items()
        ]
        asked = [f"qwrtzx{number}" for number in range(50)]
        taken = measure(connection, "user:all", "select * from pgrag.search_lexical(%s, 10)", asked)
        table.append(
            {
                "step": "a search for a word that nobody uses",
                "figure": f"{percentile(taken, 0.5):.2f}",
                "unit": "ms",
            }
        )
        settings = {"chunks": len(rows), "postings": postings, "fastest of": given.times, "seed": given.seed}
        report("What a posting costs", dsn, settings, table, given.json)


if __name__ == "__main__":
    main()
