"""Serves the stage ``embed``: reads from a model's own files what its space's passport says of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pgrag.errors import PgragError

__all__ = ["ModelFolder"]

_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# What prompts of documents are called, most usual first; sentence-transformers looks in this order.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_MATRYOSHKA_KEYS = ("matryoshka_dims", "matryoshka_dimensions")
_SNAPSHOT = re.compile(r"models--(?P<name>[^/]+)/snapshots/(?P<revision>[0-9a-f]{40})")
# Names of folders that say nothing of the model in them.
_NAMELESS = {"model", "models", "onnx", "checkpoint", "final", "best"}
_UNLIMITED = 1_000_000  # transformers writes 10**30 where a tokenizer knows no limit
_READ_BYTES = 1 << 20


class ModelFolder:
    """The files of a transformer model, in the layout of sentence-transformers or of transformers alone.

    Args:
        folder: Holds ``config.json`` and, usually, ``modules.json``; a snapshot in the hub's cache will do.

    Raises:
        PgragError: it holds no model, or one of its files can't be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = self._read("config.json")
        self.modules: list[dict[str, Any]] = self._read("modules.json", list) or []
        if not self.config and not self.modules:
            raise PgragError(
                f"{folder} holds no model: there is neither modules.json nor config.json",
                "Name a folder that sentence-transformers saved, or a model on the hub.",
            )
        self._sentence = self._read("config_sentence_transformers.json")

    @classmethod
    def of_hub(cls, name: str) -> ModelFolder | None:
        """Return what the hub's cache on this machine has of a model; None where it has nothing."""
        try:
            from huggingface_hub import try_to_load_from_cache
        except ImportError:
            return None
        candidates = [name] if "/" in name else [f"sentence-transformers/{name}", name]
        for candidate in candidates:
            for file in ("modules.json", "config.json"):
                try:
                    found = try_to_load_from_cache(candidate, file)
                except ValueError:  # that can't be a model's name
                    continue
                if isinstance(found, str):
                    return cls(Path(found).parent)
        return None

    @property
    def model(self) -> str:
        """Its name on the hub where the folder is from there, else the folder's; a path would differ by machine."""
        found = _SNAPSHOT.search(self.folder.absolute().as_posix())
        return found["name"].replace("--", "/") if found else _own_name(self.folder)

    @property
    def revision(self) -> str | None:
        """The hub's commit, 40 hex digits, where the folder is a snapshot."""
        found = _SNAPSHOT.search(self.folder.absolute().as_posix())
        return found["revision"] if found else None

    @cached_property
    def pooling(self) -> tuple[str, ...]:
        """How token vectors become one: ``mean``, ``cls``, ``max``, ``lasttoken``, …; several are put side by side."""
        config = self._pooling_config
        mode = config.get("pooling_mode")
        if mode is not None:
            return (mode,) if isinstance(mode, str) else tuple(mode)
        return tuple(mode for key, mode in _POOLING_FLAGS.items() if config.get(key)) or ("mean",)

    @property
    def pools_prompt(self) -> bool:
        """Whether the prompt's tokens count in the pooling."""
        return bool(self._pooling_config.get("include_prompt", True))

    @property
    def normalises(self) -> bool:
        """Whether the model itself makes vectors of length 1."""
        return any(_kind(module) == "Normalize" for module in self.modules)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Its modules, in order, such as ``Transformer``, ``Pooling``, ``Normalize``."""
        return tuple(map(_kind, self.modules)) or ("Transformer", "Pooling")

    @property
    def lower_case(self) -> bool:
        """Whether texts are put in lower case before the tokenizer."""
        return bool(self._transformer_config.get("do_lower_case"))

    @cached_property
    def max_tokens(self) -> int | None:
        """Tokens of a text that count, those that the model adds itself included; None where no file says."""
        given = self._transformer_config.get("max_seq_length")
        if given:
            return int(given)
        limits = (
            self._read("tokenizer_config.json").get("model_max_length"),
            self.config.get("max_position_embeddings"),
        )
        known = [int(limit) for limit in limits if limit and limit < _UNLIMITED]
        return min(known) if known else None

    @cached_property
    def dimension(self) -> int | None:
        """Numbers per vector, by the last module that says so; the encoders count those that they get."""
        for module in reversed(self.modules):
            config = self._read(f"{module.get('path') or '.'}/config.json")
            if _kind(module) == "Dense" and "out_features" in config:
                return int(config["out_features"])
            if _kind(module) == "Pooling":
                width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
                return int(width) * len(self.pooling) if width else None
        width = self.config.get("hidden_size", self.config.get("dim"))
        return int(width) if width else None

    @cached_property
    def prompts(self) -> dict[str, str]:
        """What is put before a ``query`` and before a ``document``; empty where nothing is."""
        return resolve_prompts(self._sentence.get("prompts") or {}, self._sentence.get("default_prompt_name"))

    @property
    def similarity(self) -> str:
        """How its vectors are compared: ``cosine``, or what the model's files say."""
        return str(self._sentence.get("similarity_fn_name") or "cosine")

    @cached_property
    def matryoshka_dims(self) -> list[int]:
        """Sizes at which a vector may be cut, where the model says that it was trained so; longest first."""
        for config in (self._sentence, self.config):
            for key in _MATRYOSHKA_KEYS:
                if isinstance(config.get(key), list):
                    return _sizes(config[key])
        # The card that sentence-transformers writes after training shows the parameters of the loss as JSON.
        listed = re.search(r'"matryoshka_dims"\s*:\s*\[([\d\s,]+)\]', self._card)
        return _sizes(re.findall(r"\d+", listed[1])) if listed else []

    @property
    def tokenizer(self) -> str | None:
        """The tokenizer's kind, such as ``WordPiece``."""
        kind = (self._read("tokenizer.json").get("model") or {}).get("type")
        return str(kind or self._read("tokenizer_config.json").get("tokenizer_class") or "") or None

    @property
    def pad_id(self) -> int:
        """The token that fills a batch up; some models count positions by it."""
        padding = self._read("tokenizer.json").get("padding") or {}
        found = padding.get("pad_id", self.config.get("pad_token_id"))
        return int(found) if found is not None else 0

    @cached_property
    def weights(self) -> tuple[Path, ...]:
        """The files that hold its weights: safetensors, else PyTorch's, else ONNX, of all modules, by name."""
        folders = {self.folder, *(self.folder / str(module.get("path") or ".") for module in self.modules)}
        for pattern in ("*.safetensors", "*.bin", "*.onnx*"):
            places = folders | ({self.folder / "onnx"} if pattern == "*.onnx*" else set())
            files = {file.resolve(): file for place in places for file in place.glob(pattern)}
            kept = [file for file in files.values() if file.is_file() and file.name != "training_args.bin"]
            if kept:
                return tuple(sorted(kept, key=self._relative))
        return ()

    @cached_property
    def sha256(self) -> str | None:
        """The weights' fingerprint, hex: of the one file; of several, that of what ``sha256sum`` prints of them."""
        return fingerprint({self._relative(file): file for file in self.weights})

    def passport(self) -> dict[str, Any]:
        """Return what the files say of the model, by the keys of a space's passport; what they don't say is left out."""
        known = {
            "model": self.model,
            "dimension": self.dimension,
            "normalised": True,
            "revision": self.revision,
            "licence": self._front.get("license"),
            "languages": self._languages,
            "sha256": self.sha256,
            "max_tokens": self.max_tokens,
            "tokenizer": self.tokenizer,
            "pooling": "+".join(self.pooling),
            "prompts": self.prompts,
            "similarity": self.similarity,
            "matryoshka_dims": self.matryoshka_dims,
        }
        return {key: value for key, value in known.items() if value is not None and value != []}

    @property
    def _languages(self) -> list[str]:
        found = self._front.get("language") or []
        return [str(tag) for tag in (found if isinstance(found, list) else [found])]

    @cached_property
    def _card(self) -> str:
        try:
            return (self.folder / "README.md").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    @cached_property
    def _front(self) -> dict[str, Any]:
        from pgrag.ingest._markdown import front_matter  # brings parsers along that a query doesn't need

        return front_matter(self._card.replace("\r\n", "\n"))[0]

    @cached_property
    def _pooling_config(self) -> dict[str, Any]:
        for module in self.modules:
            if _kind(module) == "Pooling":
                found: dict[str, Any] = self._read(f"{module.get('path') or '.'}/config.json")
                return found
        return {}

    @cached_property
    def _transformer_config(self) -> dict[str, Any]:
        path = next((module.get("path") for module in self.modules if _kind(module) == "Transformer"), "")
        found: dict[str, Any] = self._read(f"{path or '.'}/sentence_bert_config.json")
        return found

    def _relative(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def _read(self, name: str, kind: type[Any] = dict) -> Any:
        """Return a JSON file's value; an empty one where there is no such file."""
        file = self.folder / name
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return kind()
        except (OSError, ValueError, RecursionError) as error:
            raise PgragError(
                f"the model's file {file} can't be read: {error}", "Copy the model again."
            ) from error
        if not isinstance(value, kind):
            raise PgragError(
                f"the model's file {file} isn't a JSON {'object' if kind is dict else 'array'}",
                "Copy the model again.",
            )
        return value


def fingerprint(files: Mapping[str, Path]) -> str | None:
    """Return the sha256 of files as hex: of one, its own; of several, of the lines that ``sha256sum`` prints."""
    digests = {name: _digest(file) for name, file in sorted(files.items())}
    if len(digests) < 2:
        return next(iter(digests.values()), None)
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def resolve_prompts(prompts: Mapping[str, str | None], default: str | None = None) -> dict[str, str]:
    """Return the prompts of ``query`` and ``document`` among those that a model has by name."""
    fallback = (prompts.get(default) if default else None) or ""

    def first(*names: str) -> str:
        given = [prompts[name] for name in names if name in prompts]
        return next((prompt for prompt in given if prompt), "" if given else fallback)

    return {"query": first("query"), "document": first(*_DOCUMENT_PROMPTS)}


def space_name(model: str) -> str:
    """Make a space's name of a model's: lower case, what is no letter, digit, ``_``, ``.`` or ``-`` a hyphen."""
    last = model.rstrip("/").rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9_.-]+", "-", last).lstrip("0123456789_.-")[:48] or "model"


def check_place(model: str | Path) -> None:
    """Refuse what is written as a path and leads nowhere, before a library is asked for that isn't needed.

    Args:
        model: A model's name on the hub, which has one slash at most, or a path.

    Raises:
        PgragError: it can only be a path, and there is nothing.
    """
    text = str(model)
    if Path(text).exists():
        return
    is_path = (
        isinstance(model, Path)
        or text.startswith((".", "/", "~"))
        or text.endswith(("/", ".onnx"))
        or text.count("/") > 1
        or "\\" in text
    )
    if is_path:
        raise PgragError(
            f"there is no {'file' if text.endswith('.onnx') else 'folder'} {text}",
            f"See how it is written; seen from {Path.cwd()}.",
        )


def not_here(model: str | Path) -> str:
    """Say of a name that no folder has it here, for an error about a model on the hub; else nothing."""
    return (
        ""
        if Path(model).exists()
        else f"; there is no folder {model} here, so it would be a model on the hub"
    )


def _own_name(folder: Path) -> str:
    parts = folder.absolute().parts
    named = [part for part in parts if part.lower() not in _NAMELESS]
    return named[-1] if named else parts[-1]


def _kind(module: Mapping[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _sizes(values: Iterable[Any]) -> list[int]:
    return sorted({int(value) for value in values if str(value).isdecimal() and int(value)}, reverse=True)


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
