"""Serves the commands that embed: which encoder a model's name, folder or address stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgrag.embed import (
    Encoder,
    EndpointEncoder,
    ModelFolder,
    OnnxEncoder,
    SentenceTransformerEncoder,
    StaticEncoder,
    has_onnx,
)
from pgrag.errors import PgragError

__all__ = ["MODEL_HELP", "QueryModel", "load_encoder"]

MODEL_HELP = (
    "A model's name on the hub, or its folder (with an .onnx file: run by ONNX Runtime; onnx:PATH and torch:PATH"
    " insist), the folder of a static encoder, or an endpoint: https://host/v1#model"
)
QueryModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="Embed the query with this model, as in pgrag worker --help; else in SQL, by the space's table.",
    ),
]


def load_encoder(model: str | None, space: str | None = None) -> Encoder:
    """Load an encoder, and say on stderr what it is run by, where it isn't the shipped one.

    Args:
        model: A sentence-transformers model by name or folder, ``onnx:`` or ``torch:`` and one, the folder of a static
            encoder, or the address of an endpoint, see ``EndpointEncoder.at``; None is the shipped encoder.
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
    loaded = _load(model, space)
    typer.echo(_said(loaded), err=True)
    return loaded


def _said(loaded: Encoder) -> str:
    """Say what runs the model; an endpoint isn't asked for that."""
    if isinstance(loaded, EndpointEncoder):
        return f"{loaded.model} is run by the endpoint {loaded.address}."
    about = loaded.passport
    runtime = {"onnx": "ONNX Runtime", "torch": "torch"}.get(about.get("runtime", ""))
    if runtime is None:
        return f"{about['model']} is a table of token vectors."
    return f"{about['model']} is run by {runtime}, {about.get('precision')}, on {about.get('device')}."


def _load(model: str, space: str | None) -> Encoder:
    if model.startswith(("http://", "https://")):
        return EndpointEncoder.at(model, name=space)
    runtime, colon, rest = model.partition(":")
    if colon and runtime == "onnx":
        cached = None if Path(rest).exists() else ModelFolder.of_hub(rest)
        return OnnxEncoder(cached.folder if cached is not None else rest, name=space)
    if colon and runtime == "torch":
        return SentenceTransformerEncoder(rest, name=space)
    folder = Path(model)
    if (folder / "tokens.npz").is_file():
        return StaticEncoder(folder, name=space)
    if folder.suffix == ".onnx" or has_onnx(folder):
        return OnnxEncoder(folder, name=space)
    return SentenceTransformerEncoder(model, name=space)
