"""Puts the tables that benches wrote with --json between the marks of README.md.

python bench/_readme.py static=quality.json search=search.json ingest=ingest.json,memory.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from _bench import markdown

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    """Rewrite the named blocks."""
    text = README.read_text("utf-8")
    for argument in sys.argv[1:]:
        block, _, files = argument.partition("=")
        tables = []
        for file in files.split(","):
            found = json.loads(Path(file).read_text("utf-8"))
            tables.append(markdown(found["title"], found["about"], found["rows"]))
        pattern = rf"(<!-- bench:{re.escape(block)} -->\n).*?(<!-- /bench -->)"
        text, changed = re.subn(
            pattern, lambda m, t=tables: m[1] + "\n".join(t) + m[2], text, flags=re.DOTALL
        )
        if changed != 1:
            sys.exit(f"README.md has {changed} blocks bench:{block}")
    README.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
