"""Puts the tables that benches wrote with --json between the marks of README.md.

python bench/_readme.py static=pgrag/data/minilm_static/passport.json,quality.json search=search.json ingest=ingest.json,memory.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from _bench import markdown

README = Path(__file__).parents[1] / "README.md"


def trained(passport: dict[str, Any]) -> str:
    """Return what the training of a token table measured, from its passport."""
    rows = [
        {"set": name} | {arm: f"{value:.3f}" for arm, value in arms.items()}
        for name, arms in passport["ndcg_at_10"].items()
    ]
    training = passport["training"]
    about = {"texts": training["texts"], "epochs": training["epochs"], "seed": training["seed"]} | training[
        "versions"
    ]
    return markdown(
        "nDCG@10 by `bench/train_static.py`; the model is all-MiniLM-L6-v2, bm25 is bm25s", about, rows
    )


def main() -> None:
    """Rewrite the named blocks."""
    text = README.read_text("utf-8")
    for argument in sys.argv[1:]:
        block, _, files = argument.partition("=")
        tables = []
        for file in files.split(","):
            found = json.loads(Path(file).read_text("utf-8"))
            tables.append(
                markdown(found["title"], found["about"], found["rows"]) if "rows" in found else trained(found)
            )
        pattern = rf"(<!-- bench:{re.escape(block)} -->\n).*?(<!-- /bench -->)"
        text, changed = re.subn(
            pattern, lambda m, t=tables: m[1] + "\n".join(t) + m[2], text, flags=re.DOTALL
        )
        if changed != 1:
            sys.exit(f"README.md has {changed} blocks bench:{block}")
    README.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
