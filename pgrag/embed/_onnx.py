"""Serves the stage ``embed``: models of sentence-transformers, run by ONNX Runtime without torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pgrag.embed._encoder import Vectors
from pgrag.embed._model_folder import ModelFolder, fingerprint, resolve_prompts, space_name
from pgrag.embed._texts import encodable, encode_distinct, unit_length
from pgrag.errors import PgragError

__all__ = ["PASSPORT", "OnnxEncoder", "has_onnx"]

# Beside an .onnx file that pgrag exported: which model it is, and what the file's own sha256 is.
PASSPORT = "pgrag.json"

_QUANTISED = ("int8", "uint8", "quant", "qint", "quint", "q4", "q8", "bnb4")
_HALF = ("fp16", "bf16", "float16", "q4f16")
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
# Tokens that a batch may hold with its padding; larger ones were no faster on a CPU, and need more memory.
_BATCH_TOKENS = 4096

_Ids = NDArray[np.int64]


class OnnxEncoder:
    """A model in ONNX's format, with its tokenizer, pooling, normalisation and prompts from the files beside it.

    Needs the extra ``onnx``. Texts are batched by length and cut at the model's longest; each distinct one is
    encoded once. A quantised model scales by what is in its batch, so a vector's last digits depend on its
    neighbours there.

    Args:
        folder: Holds ``tokenizer.json`` and the files of sentence-transformers, and ``model.onnx`` there or in
            ``onnx``; or the .onnx file itself.
        name: The space's name; made from the model's name when None.
        int8: Take the quantised file, or the one that isn't; None takes whichever there is, first the other one.
        prompts: What is put before a ``query`` and before a ``document``; the model's own when None.
        threads: Of one operation; None is one a core.
        batch_tokens: Most tokens of a batch, its padding included; a longer text is a batch of its own.

    Raises:
        PgragError: the extra is not installed, a file is missing or not the one that was exported, or the model has
            a part that only torch can run.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        int8: bool | None = None,
        prompts: Mapping[str, str] | None = None,
        threads: int | None = None,
        batch_tokens: int = _BATCH_TOKENS,
    ) -> None:
        if not Path(folder).exists():
            kind = "file" if Path(folder).suffix == ".onnx" else "folder"
            raise PgragError(f"there is no {kind} {folder}", "Name a folder with an .onnx file, or the file.")
        try:
            import onnxruntime
        except ImportError as error:
            raise PgragError(
                f"encoding with {folder} needs onnxruntime, which is not installed",
                "pip install 'pgrag-rls[onnx]'",
            ) from error
        place, self.file = _find(Path(folder), int8)
        self._files = ModelFolder(place)
        self._tokenizer = _tokenizer(self._files)
        self._prompts = resolve_prompts(prompts) if prompts is not None else self._files.prompts
        self._batch_tokens = batch_tokens
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        providers = [name for name in _PROVIDERS if name in onnxruntime.get_available_providers()]
        try:
            self._session = onnxruntime.InferenceSession(str(self.file), options, providers=providers)
        except Exception as error:  # onnxruntime's exceptions share no base
            raise PgragError(
                f"ONNX Runtime can't load {self.file}: {error}", "Export the model again."
            ) from error
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._pool = self._choose_pooling()
        self.dimension = int(self._run(["dimension"]).shape[1])
        about = self._files.passport() | _exported(self.file)
        self.name = name or space_name(about["model"])
        self.passport: dict[str, Any] = about | {
            "name": self.name,
            "dimension": self.dimension,
            "normalised": True,
            "prompts": self._prompts,
            "similarity": "cosine",
            "runtime": "onnx",
            "precision": about.get("precision") or _precision(self.file),
            "device": self._session.get_providers()[0].removesuffix("ExecutionProvider").lower(),
            "file": self.file.name,
            "versions": {"onnxruntime": onnxruntime.__version__},
        }

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages with the model's prompt for documents, cut at its longest length."""
        return self._vectors(texts, self._prompts["document"])

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries with the model's prompt for queries."""
        return self._vectors(texts, self._prompts["query"])

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, without those that the model adds itself."""
        return len(self._counter.encode(encodable(text), add_special_tokens=False).ids)

    @cached_property
    def _counter(self) -> Tokenizer:
        """The tokenizer, cutting nothing; the other one is in use by any number of threads, and can't be told to."""
        tokenizer = Tokenizer.from_str(self._tokenizer.to_str())
        tokenizer.no_truncation()
        return tokenizer

    def _vectors(self, texts: Sequence[str], prompt: str) -> Vectors:
        return encode_distinct(
            texts, lambda: self.dimension, lambda distinct: self._run([prompt + text for text in distinct])
        )

    def _run(self, texts: Sequence[str]) -> Vectors:
        if self._files.lower_case:
            texts = [text.lower() for text in texts]
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        rows: list[int] = []
        parts: list[Vectors] = []
        for batch in _by_length([len(ids) for ids in tokens], self._batch_tokens):
            width = max(len(tokens[row]) for row in batch)
            ids: _Ids = np.full((len(batch), width), self._files.pad_id, np.int64)
            mask: _Ids = np.zeros((len(batch), width), np.int64)
            for place, row in enumerate(batch):
                ids[place, : len(tokens[row])] = tokens[row]
                mask[place, : len(tokens[row])] = 1
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (output,) = self._session.run(self._outputs, {name: given[name] for name in self._inputs})
            parts.append(self._pool(np.asarray(output, np.float32), mask))
            rows.extend(batch)
        vectors = np.concatenate(parts)
        out = np.empty_like(vectors)
        out[rows] = vectors
        return unit_length(out)

    def _choose_pooling(self) -> Callable[[Vectors, _Ids], Vectors]:
        """Take the output that is a vector a text; else pool the one of a vector a token."""
        unknown = set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise PgragError(
                f"{self.file} wants the inputs {sorted(unknown)}, which pgrag doesn't make",
                "Export the encoder alone: pgrag.embed.export_onnx(model, folder)",
            )
        shapes = {given.name: len(given.shape) for given in self._session.get_outputs()}
        whole = [name for name in ("sentence_embedding", *shapes) if shapes.get(name) == 2]
        if "sentence_embedding" in shapes or 3 not in shapes.values():
            if not whole:
                raise PgragError(
                    f"{self.file} gives neither a vector a token nor a vector a text, but {sorted(shapes)}",
                    "Export it again: pgrag.embed.export_onnx(model, folder)",
                )
            self._outputs = [whole[0]]
            return lambda output, _mask: output
        self._outputs = [next(name for name, axes in shapes.items() if axes == 3)]
        strange = set(self._files.kinds) - {"Transformer", "Pooling", "Normalize"}
        strange |= set(self._files.pooling) - _POOLINGS.keys()
        if not self._files.pools_prompt and any(self._prompts.values()):
            strange.add("pooling without the prompt")
        if strange:
            raise PgragError(
                f"{self.file} ends before a part of the model that pgrag can't run: {', '.join(sorted(strange))}",
                "Export it whole: pgrag.embed.export_onnx(model, folder)",
            )
        poolings = [_POOLINGS[mode] for mode in self._files.pooling]
        return lambda output, mask: np.concatenate([pool(output, mask) for pool in poolings], axis=1)


def has_onnx(folder: str | Path) -> bool:
    """Tell whether a model's folder holds an .onnx file."""
    return bool(_onnx_files(Path(folder)))


def _onnx_files(folder: Path) -> list[Path]:
    """Return the .onnx files of a model's folder: those in it, then those in ``onnx``, each by name."""
    return [file for place in (folder, folder / "onnx") for file in sorted(place.glob("*.onnx"))]


def _find(path: Path, int8: bool | None) -> tuple[Path, Path]:
    """Return the model's folder and the .onnx file to run."""
    if path.suffix == ".onnx":
        if not path.is_file():
            raise PgragError(f"there is no file {path}", "Name a folder with an .onnx file, or the file.")
        return (path.parent.parent if path.parent.name == "onnx" else path.parent), path
    files = _onnx_files(path)
    full = [file for file in files if _precision(file) == "float32"]
    quantised = [file for file in files if _precision(file) == "int8"]
    ordered = {None: full + quantised + files, True: quantised, False: full}[int8]
    if not ordered:
        asked = {None: "", True: "quantised ", False: "full "}[int8]
        raise PgragError(
            f"{path} holds no {asked}ONNX model"
            + (f", only {[file.name for file in files]}" if files else ""),
            f"Make one: pgrag.embed.export_onnx(model, folder, int8={bool(int8)})",
        )
    return path, next((file for file in ordered if file.stem in ("model", "model_int8")), ordered[0])


def _precision(file: Path) -> str:
    stem = file.stem.lower()
    if any(word in stem for word in _HALF):
        return "float16"
    return "int8" if any(word in stem for word in _QUANTISED) else "float32"


def _exported(file: Path) -> dict[str, Any]:
    """Return what was written beside an exported file: the original's name and sha256, and that it's quantised."""
    try:
        about: dict[str, Any] = json.loads((file.parent / PASSPORT).read_text(encoding="utf-8"))[file.name]
    except (FileNotFoundError, KeyError):
        return {}
    except (OSError, ValueError) as error:
        raise PgragError(
            f"{file.parent / PASSPORT} can't be read: {error}", "Export the model again."
        ) from error
    if fingerprint({file.name: file}) != about.get("file_sha256"):
        raise PgragError(
            f"{file} is not the file that was exported: its sha256 differs from that in {PASSPORT}",
            "Export the model again.",
        )
    return about


def _tokenizer(files: ModelFolder) -> Tokenizer:
    place = files.folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(place))
    except Exception as error:  # tokenizers raises nothing narrower
        raise PgragError(
            f"the tokenizer {place} can't be read: {error}", "Save the model again with a fast tokenizer."
        ) from error
    tokenizer.no_padding()
    if files.max_tokens is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(files.max_tokens)
    return tokenizer


def _by_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield rows, longest first, so that a batch times its longest stays within ``most``."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    at = 0
    while at < len(order):
        count = max(1, most // max(1, lengths[order[at]]))
        yield order[at : at + count]
        at += count


def _weigh(output: Vectors, weights: NDArray[Any]) -> Vectors:
    """Return the mean of each text's token vectors, weighted: float32 (n, dimension)."""
    shares = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    out: Vectors = np.einsum("ntd,nt->nd", output, shares)
    return out


def _mean(output: Vectors, mask: _Ids) -> Vectors:
    return _weigh(output, mask)


def _mean_sqrt(output: Vectors, mask: _Ids) -> Vectors:
    out: Vectors = _weigh(output, mask) * np.sqrt(mask.sum(axis=1, keepdims=True, dtype=np.float32))
    return out


def _weighted(output: Vectors, mask: _Ids) -> Vectors:
    return _weigh(output, mask * np.arange(1, mask.shape[1] + 1))


def _first(output: Vectors, mask: _Ids) -> Vectors:
    return output[:, 0]


def _last(output: Vectors, mask: _Ids) -> Vectors:
    out: Vectors = output[np.arange(len(output)), mask.sum(axis=1) - 1]
    return out


def _greatest(output: Vectors, mask: _Ids) -> Vectors:
    out: Vectors = np.where(mask[:, :, None] > 0, output, np.float32(-np.inf)).max(axis=1)
    return out


_POOLINGS: dict[str, Callable[[Vectors, _Ids], Vectors]] = {
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "cls": _first,
    "lasttoken": _last,
    "max": _greatest,
    "weightedmean": _weighted,
}
