"""Serves the commands that embed: which encoder a model's name or folder stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgrag.embed import Encoder, SentenceTransformerEncoder, StaticEncoder
from pgrag.errors import PgragError

__all__ = ["QueryModel", "load_encoder"]

QueryModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="Embed the query with this sentence-transformers model; else in SQL, by the shipped table.",
    ),
]


def load_encoder(model: str | None, space: str | None = None) -> Encoder:
    """Load an encoder.

    Args:
        model: A sentence-transformers model by name or folder, or the folder of a static encoder; None is the
            shipped one.
        space: Name of its space; None is the model's own.

    Raises:
        PgragError: it isn't there, needs an extra, or isn't of that space.
    """
    if model is None:
        encoder = StaticEncoder.shipped()
        if space is not None and space != encoder.name:
            raise PgragError(
                f'space "{space}" is not that of the shipped encoder, which is "{encoder.name}"',
                "Name the model of the space: --model MODEL",
            )
        return encoder
    folder = Path(model)
    if (folder / "tokens.npz").is_file():
        return StaticEncoder(folder)
    return SentenceTransformerEncoder(model, name=space)
