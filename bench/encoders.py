"""How fast the same model runs in each runtime, and whether its vectors stay the same.

    python bench/encoders.py --model FOLDER

Passages of the corpus are encoded by torch (float32 and bfloat16) and by ONNX Runtime (float32 and int8), in turns, and
the best of the rounds counts; then single queries. Agreement is the cosine with torch's float32 vector of the same
passage. On a machine that others use, the time of the CPU says more than passages a second. What isn't installed is
left out and named; without ``--model`` only the shipped table is measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _bench import Row, passages, percentile, queries, report

from pgrag.embed import Encoder, OnnxEncoder, SentenceTransformerEncoder, StaticEncoder, export_onnx
from pgrag.errors import PgragError


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="a sentence-transformers model: a folder, or a name on the hub")
    parser.add_argument("--texts", type=int, default=256, help="passages a round")
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    rows = passages(args.texts, args.seed)
    texts = [row["text"] for row in rows]
    asked = queries(rows, args.queries, args.seed)
    with tempfile.TemporaryDirectory(prefix="pgrag-bench-") as folder:
        encoders = _load(args.model, Path(folder))
        best = dict.fromkeys(encoders, 0.0)
        cpu_ms = dict.fromkeys(encoders, float("inf"))
        vectors: dict[tuple[str, str], Any] = {}
        for _ in range(args.rounds):
            for key, (encoder, _) in encoders.items():
                start, cpu = time.perf_counter(), time.process_time()
                vectors[key] = encoder.encode_documents(texts)
                best[key] = max(best[key], len(texts) / (time.perf_counter() - start))
                cpu_ms[key] = min(cpu_ms[key], 1000 * (time.process_time() - cpu) / len(texts))
        reference = vectors.get(("torch", "float32"))
        table = [
            _row(key, encoder, seconds, (best[key], cpu_ms[key]), vectors[key], reference, asked)
            for key, (encoder, seconds) in encoders.items()
        ]
        versions: Row = {}
        for encoder, _ in encoders.values():
            versions |= encoder.passport.get("versions", {})
    characters = round(sum(map(len, texts)) / len(texts))
    about = {
        "model": next(iter(encoders.values()))[0].passport["model"],
        "texts": args.texts,
        "characters a text": characters,
        "rounds": args.rounds,
        "seed": args.seed,
    }
    report("The same model in each runtime", None, versions | about, table, args.json)


def _load(model: str | None, folder: Path) -> dict[tuple[str, str], tuple[Encoder, float]]:
    """Return each encoder that can be had, by runtime and precision, with the seconds that loading took."""
    makers: dict[tuple[str, str], Callable[[], Encoder]] = {}
    if model is not None:
        makers = {
            ("torch", "float32"): lambda: SentenceTransformerEncoder(model, device="cpu"),
            ("torch", "bfloat16"): lambda: SentenceTransformerEncoder(
                model, device="cpu", precision="bfloat16"
            ),
            ("onnx", "float32"): lambda: OnnxEncoder(folder, int8=False),
            ("onnx", "int8"): lambda: OnnxEncoder(folder, int8=True),
        }
        for int8 in (False, True):
            try:
                export_onnx(model, folder, int8=int8)
            except PgragError as error:
                print(f"no {'int8' if int8 else 'float32'} export: {error}", file=sys.stderr)
    makers["static", "int8"] = StaticEncoder.shipped
    made: dict[tuple[str, str], tuple[Encoder, float]] = {}
    for key, make in makers.items():
        start = time.perf_counter()
        try:
            made[key] = (make(), time.perf_counter() - start)
        except PgragError as error:
            print(f"{' '.join(key)} is left out: {error}; {error.hint}", file=sys.stderr)
    return made


def _row(
    key: tuple[str, str],
    encoder: Encoder,
    seconds: float,
    speed: tuple[float, float],
    vectors: Any,
    reference: Any,
    asked: list[str],
) -> Row:
    taken = []
    for query in asked:
        start = time.perf_counter()
        encoder.encode_queries([query])
        taken.append(1000 * (time.perf_counter() - start))
    same = reference is not None and key[0] != "static"
    cosines = np.sum(vectors * reference, axis=1) if same else None
    return {
        "runtime": key[0],
        "precision": key[1],
        "passages a second": speed[0],
        "CPU ms a passage": speed[1],
        "query, ms": percentile(taken, 0.5),
        "load, s": seconds,
        "agreement, mean": "-" if cosines is None else f"{cosines.mean():.4f}",
        "agreement, least": "-" if cosines is None else f"{cosines.min():.4f}",
    }


if __name__ == "__main__":
    main()
