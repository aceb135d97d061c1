"""How long a search takes at 100,000 chunks under row-level security, for callers who see much and little.

python bench/search.py --chunks 100000
"""

from __future__ import annotations

import random
import time

import psycopg
from _bench import CALLERS, Row, arguments, database, load, measure, passages, percentile, queries, report

from pgrag.embed import StaticEncoder
from pgrag.index import compact
from pgrag.spaces import embed_static, load_static_space


def readers_of(row: Row, random_: random.Random) -> list[str]:
    """Return the group of a passage, and by chance the callers who see only a part."""
    draw = random_.random()
    return [
        f"group:{row['group']}",
        *(name for name, share in CALLERS.items() if 0.0 < share < 1.0 and draw < share),
    ]


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    given = parser.parse_args()
    rows = passages(given.chunks, given.seed)
    encoder = StaticEncoder.shipped()
    with database(given.database_url) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        load_static_space(dsn, encoder)
        connection.execute("select pgrag.create_collection('bench')")
        random_ = random.Random(given.seed)
        load(connection, "bench", rows, [readers_of(row, random_) for row in rows])
        for group in sorted({f"group:{row['group']}" for row in rows}):
            connection.execute("select pgrag.add_member(%s, 'user:all')", (group,))
        start = time.perf_counter()
        embedded = embed_static(connection, "bench", encoder)
        rate = embedded / (time.perf_counter() - start)
        compact(connection)
        connection.execute("vacuum analyze")
        asked = queries(rows, given.queries, given.seed)
        table = []
        for who, share in CALLERS.items():
            for name, call in (
                ("lexical", "select * from pgrag.search_lexical(%s, 10)"),
                ("hybrid", "select * from pgrag.search(%s, 10)"),
            ):
                measure(connection, who, call, asked[:20])
                taken = measure(connection, who, call, asked)
                table.append(
                    {
                        "arm": name,
                        "visible": f"{100 * share:g} %",
                        "p50 ms": percentile(taken, 0.5),
                        "p95 ms": percentile(taken, 0.95),
                        "max ms": max(taken),
                    }
                )
        acls = connection.execute("select count(*) from pgrag.acl").fetchone()
        settings = {
            "chunks": len(rows),
            "ACLs": acls[0] if acls else 0,
            "queries": len(asked),
            "seed": given.seed,
            "vectors stored a second": round(rate),
        }
        report("Search under row-level security", dsn, settings, table, given.json)


if __name__ == "__main__":
    main()
