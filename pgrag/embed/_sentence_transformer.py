"""Serves the stage ``embed``: models of sentence-transformers, run by torch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pgrag.embed._encoder import Vectors
from pgrag.embed._model_folder import ModelFolder, check_place, not_here, resolve_prompts, space_name
from pgrag.embed._texts import encodable, encode_distinct, unit_length
from pgrag.errors import PgragError

__all__ = ["SentenceTransformerEncoder", "quiet"]

_BATCH = {"cpu": 32}
_GPU_BATCH = 128


class SentenceTransformerEncoder:
    """A sentence-transformers model, on CUDA where there is one. Needs the extra ``models``.

    Texts are sorted by length and cut at the model's longest; each distinct one is encoded once.

    Args:
        model: A model's name on the hub, or a folder.
        name: The space's name; made from the model's name when None.
        prompts: What is put before a ``query`` and before a ``document``; the model's own when None.
        device: Such as ``cpu`` or ``cuda:1``; None is the best that there is.
        batch_size: Texts that the model gets at a time; None is 32 on a CPU and 128 elsewhere.
        precision: Of weights and arithmetic. ``bfloat16`` is faster where the processor has instructions for it, and
            costs a little quality; vectors are normalised in float32 all the same.

    Raises:
        PgragError: the extra is not installed, or there is no such model.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        name: str | None = None,
        prompts: Mapping[str, str] | None = None,
        device: str | None = None,
        batch_size: int | None = None,
        precision: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        check_place(model)
        try:
            import sentence_transformers
            import torch
            import transformers
        except ImportError as error:
            raise PgragError(
                f"encoding with {model} needs sentence-transformers, which is not installed{not_here(model)}",
                "pip install 'pgrag-rls[models]'",
            ) from error
        try:
            with quiet() if Path(model).is_dir() else contextlib.nullcontext():
                self._model = sentence_transformers.SentenceTransformer(str(model), device=device)
        except (OSError, ValueError) as error:
            raise PgragError(
                f"the model {model} can't be loaded: {error}",
                "Name a folder with a sentence-transformers model, or a model on the hub.",
            ) from error
        if precision == "bfloat16":
            self._model.bfloat16()
        kind = self._model.device.type
        self._one_at_a_time = threading.Lock()  # transformers' tokenizers change while they are used
        self._batch_size = batch_size or _BATCH.get(kind, _GPU_BATCH)
        files = ModelFolder(Path(model)) if Path(model).is_dir() else ModelFolder.of_hub(str(model))
        if prompts is not None:
            self._prompts = resolve_prompts(prompts)
        elif files is not None:
            self._prompts = files.prompts
        else:
            self._prompts = resolve_prompts(self._model.prompts, self._model.default_prompt_name)
        self.dimension = int(self._run(["dimension"]).shape[1])
        about = files.passport() if files is not None else {"model": str(model)}
        self.name = name or space_name(about["model"])
        self.passport: dict[str, Any] = about | {
            "name": self.name,
            "dimension": self.dimension,
            "normalised": True,
            "max_tokens": self._model.max_seq_length,
            "prompts": self._prompts,
            "similarity": "cosine",
            "runtime": "torch",
            "precision": precision,
            "device": str(self._model.device),
            "versions": {
                "sentence_transformers": sentence_transformers.__version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        }

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages with the model's prompt for documents, cut at its longest length."""
        return self._vectors(texts, self._prompts["document"], "document")

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries with the model's prompt for queries."""
        return self._vectors(texts, self._prompts["query"], "query")

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, without those that the model adds itself."""
        with self._one_at_a_time:
            tokens = self._model.tokenizer(encodable(text), add_special_tokens=False, verbose=False)
        return len(tokens["input_ids"])

    def _vectors(self, texts: Sequence[str], prompt: str, task: str) -> Vectors:
        return encode_distinct(
            texts, lambda: self.dimension, lambda distinct: self._run(distinct, prompt, task)
        )

    def _run(self, texts: list[str], prompt: str = "", task: str = "document") -> Vectors:
        # encode_query and encode_document matter to models with a module for each; the prompt is ours in any case.
        encode = self._model.encode_query if task == "query" else self._model.encode_document
        with self._one_at_a_time:
            vectors = encode(texts, prompt=prompt, batch_size=self._batch_size, show_progress_bar=False)
        return unit_length(np.asarray(vectors, np.float32))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show no bar of transformers while weights are read from the disk or written there."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
