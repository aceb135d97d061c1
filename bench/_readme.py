r"""Puts the tables that benches wrote with --json between the marks of README.md.

python bench/_readme.py static=static.json,quality.json search=search.json \
    lexical=lexical.json ingest=ingest.json,memory.json peers=build/peers.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from _bench import markdown

README = Path(__file__).parents[1] / "README.md"


def shown(found: dict[str, Any]) -> list[str]:
    """Return the tables of a file: its one, or those of many that are for README.md."""
    if "tables" in found:
        tables = [table for table in found["tables"] if table["readme"]]
        # What figures depend on is said once, beneath the last.
        return [
            markdown(table["title"], found["about"] if table is tables[-1] else {}, table["rows"])
            for table in tables
        ]
    return [markdown(found["title"], found["about"], found["rows"])]


def main() -> None:
    """Rewrite the named blocks."""
    text = README.read_text("utf-8")
    for argument in sys.argv[1:]:
        block, _, files = argument.partition("=")
        tables = [
            table for file in files.split(",") for table in shown(json.loads(Path(file).read_text("utf-8")))
        ]
        begin, end = f"<!-- bench:{block} -->\n", "<!-- /bench -->"
        before, mark, rest = text.partition(begin)
        _, mark_end, after = rest.partition(end)
        if not mark or not mark_end or begin in rest:
            sys.exit(f"README.md has not one block bench:{block}")
        text = before + begin + "\n".join(tables) + end + after
    README.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
