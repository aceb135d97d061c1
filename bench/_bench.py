"""What every bench shares: a server with the settings of the product, real passages, and how figures are printed."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import random
import re
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pgrag import install
from pgrag._version import __version__
from pgrag.server import EmbeddedServer

SCALE = Path(__file__).parents[2] / "shared" / "data" / "scale" / "passages.jsonl.gz"

_COPY = (
    "copy pgrag.staging (batch_id, uri, title, content_hash, readers, content, ordinal, heading_path, char_start,"
    " char_end, context, token_count) from stdin"
)

# Who asks, and the share of the passages that they see.
CALLERS = {"user:all": 1.0, "user:tenth": 0.1, "user:hundredth": 0.01, "user:thousandth": 0.001}

Row = dict[str, Any]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows what every bench takes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--database-url", help="a database without pgrag; else an embedded server that is thrown away"
    )
    return parser


@contextmanager
def database(url: str | None, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the DSN of a database with pgrag in it; an embedded one is durable (fsync on) and goes afterwards.

    Args:
        url: A database of yours; None is an embedded server.
        settings: Of PostgreSQL, for the embedded server.
    """
    if url is not None:
        install.init(url)
        install.upgrade(url)
        yield url
        return
    # So that the server stops however the bench is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="pgrag-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedServer(Path(folder) / "data", settings=settings)
        dsn = server.start()
        try:
            install.init(dsn)
            install.upgrade(dsn)
            yield dsn
        finally:
            server.stop()


def passages(count: int, seed: int, *, shuffled: bool = True) -> list[Row]:
    """Return real passages, or made ones where the corpus isn't beside the checkout.

    Shuffled, they come in a random order; else in the corpus's own, document by document, from a random one on.
    Beyond the corpus, a passage is the halves of two of one group.
    """
    random_ = random.Random(seed)
    if not SCALE.is_file():
        words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrstx"]
        weights = [1 / rank for rank in range(1, len(words) + 1)]
        return [
            {
                "_id": f"made{n}",
                "title": "",
                "group": f"g{n % 50}",
                "text": " ".join(random_.choices(words, weights, k=75)),
            }
            for n in range(count)
        ]
    with gzip.open(SCALE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    if shuffled:
        random_.shuffle(rows)
    else:
        first = random_.randrange(len(rows))
        rows = rows[first:] + rows[:first]
    neighbours = by_group(rows)
    real = rows[:]
    while len(rows) < count:
        row = random_.choice(real)
        text = spliced(row, random_.choice(neighbours[row["group"]]))
        rows.append(row | {"_id": f"spliced{len(rows)}", "text": text})
    return rows[:count]


def by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the passages of each group."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def spliced(row: Row, other: Row) -> str:
    """Return the first half of a passage's text and the second half of another's."""
    first, second = row["text"], other["text"]
    return f"{first[: len(first) // 2]} {second[len(second) // 2 :]}"


def queries(
    rows: Sequence[Row], count: int, seed: int, *, least: int = 2, most: int = 6, passages_each: int = 1
) -> list[str]:
    """Return queries of 2 to 6 words, each from one passage, or as many words from as many as told."""
    random_ = random.Random(seed + 1)
    made: list[str] = []
    while len(made) < count:
        words = [
            word
            for _ in range(passages_each)
            for word in re.findall(r"[^\W\d_]{3,}", random_.choice(rows)["text"])
        ]
        if len(words) >= most:
            made.append(" ".join(random_.sample(words, random_.randint(least, most))))
    return made


def load(
    connection: psycopg.Connection[Any],
    collection: str,
    documents: Sequence[Row],
    readers: Sequence[Sequence[str]],
    batch: int = 2000,
) -> float:
    """Load documents of one chunk each through COPY, a transaction a batch.

    Args:
        connection: In autocommit mode.
        collection: Its name.
        documents: With ``_id``, ``title`` and ``text``.
        readers: Of each document; they become known.
        batch: Documents a transaction.

    Returns:
        Seconds, without those for the readers.
    """
    names = sorted({name for named in readers for name in named})
    connection.execute("select pgrag.create_principals(variadic %s)", (names,))
    start = time.perf_counter()
    for first in range(0, len(documents), batch):
        batch_id = uuid.uuid4()
        with connection.transaction(), connection.cursor() as cursor:
            with cursor.copy(_COPY) as copy:
                for row, named in zip(
                    documents[first : first + batch], readers[first : first + batch], strict=True
                ):
                    text = (row["text"] or row["title"] or "-").replace("\0", "")
                    digest = hashlib.sha256(text.encode()).digest()
                    copy.write_row(
                        (batch_id, row["_id"], row["title"], digest, list(named), text, *[None] * 6)
                    )
                    span: tuple[object, ...] = (0, [], 0, len(text), row["title"] or "", len(text) // 4)
                    copy.write_row((batch_id, row["_id"], None, None, None, text, *span))
            cursor.execute("select pgrag.load_staged(%s, %s)", (collection, batch_id))
    return time.perf_counter() - start


def measure(
    connection: psycopg.Connection[tuple[object, ...]], who: str, call: str, asked: Sequence[str]
) -> list[float]:
    """Return the milliseconds of each query, in one connection as the application's role."""
    taken = []
    for query in asked:
        with connection.transaction():
            connection.execute("set local role pgrag_app")
            connection.execute("select pgrag.act_as(%s)", (who,))
            start = time.perf_counter()
            connection.execute(call, (query,)).fetchall()
            taken.append(1000 * (time.perf_counter() - start))
    return taken


def report(
    title: str,
    dsn: str | None,
    settings: Row,
    rows: Sequence[Row],
    out: Path | None,
    for_readme: Sequence[Row] | None = None,
) -> None:
    """Print a table with the machine, versions, size and seed; write it as JSON where asked.

    The README shows `for_readme` instead, where there is such a thing.
    """
    about = machine(dsn) | settings
    print(markdown(title, about, rows), flush=True)
    if out is not None:
        found: Row = {"title": title, "about": about, "rows": list(rows)}
        if for_readme is not None:
            found["tables"] = [{"title": title, "readme": True, "rows": list(for_readme)}]
        out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def markdown(title: str, about: Row, rows: Sequence[Row]) -> str:
    """Return a table in Markdown, under its title and over what its figures depend on, if anything."""
    names = list(rows[0])
    lines = [f"{title}:", "", "| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |"]
    lines += ["| " + " | ".join(_shown(row[name]) for name in names) + " |" for row in rows]
    if about:
        lines += ["", "With " + ", ".join(f"{name} {value}" for name, value in about.items()) + "."]
    lines.append("")
    return "\n".join(lines)


def machine(dsn: str | None) -> Row:
    """Return what figures depend on; of the server only where there is one."""
    server = {}
    if dsn is not None:
        with psycopg.connect(dsn) as connection:
            version = connection.execute("select current_setting('server_version')").fetchone()
            vector = connection.execute(
                "select extversion from pg_extension where extname = 'vector'"
            ).fetchone()
        server = {
            "PostgreSQL": version[0] if version else "?",
            "pgvector": vector[0] if vector else "?",
        }
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    return {
        "pgrag": __version__,
        **server,
        "Python": platform.python_version(),
        "CPU": f"{cpu} x {os.cpu_count()}",
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _shown(value: object) -> str:
    return (
        f"{value:,.1f}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
