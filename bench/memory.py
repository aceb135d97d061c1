"""How much memory `pgrag ingest` takes as a folder grows, and how fast it is from files to committed chunks.

python bench/memory.py --megabytes 25 50 100
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from _bench import Row, arguments, database, passages, report

RUN = """
import resource, runpy, sys
sys.argv = ["pgrag", *sys.argv[1:]]
try:
    runpy.run_module("pgrag_cli.main", run_name="__main__")
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def write_folder(folder: Path, rows: Sequence[Row], megabytes: int) -> int:
    """Write Markdown files of about 20 kB each until the folder holds so much; return how many."""
    written = files = 0
    while written < megabytes * 1_000_000:
        parts = [f"# Document {files}\n"]
        while sum(map(len, parts)) < 20_000:
            row = rows[(files * 43 + len(parts)) % len(rows)]
            parts.append(f"## {row['title'] or 'Section'}\n\n{row['text']}\n")
        text = "\n".join(parts).encode()
        (folder / f"{files // 1000:04}").mkdir(exist_ok=True)
        (folder / f"{files // 1000:04}" / f"{files:07}.md").write_bytes(text)
        written += len(text)
        files += 1
    return files


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[25, 50, 100])
    given = parser.parse_args()
    rows = passages(50_000, given.seed)
    table = []
    with database(given.database_url) as dsn:
        for megabytes in given.megabytes:
            name = f"bench{megabytes}"
            with psycopg.connect(dsn) as connection:
                connection.execute("select pgrag.create_collection(%s)", (name,))
            with tempfile.TemporaryDirectory(prefix="pgrag-bench-files-") as folder:
                files = write_folder(Path(folder), rows, megabytes)
                call = ["ingest", folder, "--collection", name, "--reader", "public", "--json"]
                start = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", RUN, *call],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=os.environ | {"PGRAG_DATABASE_URL": dsn},
                )
                seconds = time.perf_counter() - start
            peak = re.search(r"peak (\d+)", done.stderr)
            chunks = re.search(r'"chunks": (\d+)', done.stdout)
            assert peak is not None
            assert chunks is not None
            table.append(
                {
                    "folder MB": megabytes,
                    "files": files,
                    "chunks": int(chunks[1]),
                    "chunks a second": int(chunks[1]) / seconds,
                    "MB a second": megabytes / seconds,
                    "peak memory MB": int(peak[1]) / 1000,
                }
            )
        report(
            "Memory of an ingest from files, without vectors", dsn, {"seed": given.seed}, table, given.json
        )


if __name__ == "__main__":
    main()
