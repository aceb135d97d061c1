"""How fast chunks of 200 words enter through COPY, with the posting log on and without vectors.

python bench/ingest.py --chunks 20000
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from _bench import Row, arguments, database, load, passages, report


def chunks_of(rows: Sequence[Row], words: int, count: int) -> list[Row]:
    """Return chunks of about so many words, each from passages that stood together."""
    made: list[Row] = []
    text: list[str] = []
    for row in rows:
        text += row["text"].replace("\0", "").split()
        while len(text) >= words and len(made) < count:
            made.append(
                {
                    "_id": f"{len(made):08}",
                    "title": row["title"],
                    "group": row["group"],
                    "text": " ".join(text[:words]),
                }
            )
            text = text[words:]
    return made


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument(
        "--shuffled", action="store_true", help="documents of all groups mixed, not folder by folder"
    )
    given = parser.parse_args()
    rows = passages(given.chunks * given.words // 60 + 1000, given.seed, shuffled=given.shuffled)
    chunks = chunks_of(rows, given.words, given.chunks)
    with database(given.database_url) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pgrag.create_collection('bench')")
        readers = [[f"group:{chunk['group']}"] for chunk in chunks]
        seconds = load(connection, "bench", chunks, readers, given.batch)
        postings = connection.execute(
            "select sum(n), pg_total_relation_size('pgrag.posting') from pgrag.posting"
        ).fetchone()
        assert postings is not None
        row = {
            "chunks": len(chunks),
            "words a chunk": given.words,
            "order": "mixed" if given.shuffled else "folder by folder",
            "ACLs": len({name for (name,) in readers}),
            "seconds": seconds,
            "chunks a second": len(chunks) / seconds,
            "postings": int(postings[0]),
            "bytes a posting": float(postings[1] / postings[0]),
        }
        report("Ingest without vectors", dsn, {"batch": given.batch, "seed": given.seed}, [row], given.json)


if __name__ == "__main__":
    main()
