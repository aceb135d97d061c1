"""Serves the stage ``embed``: writes a model as ONNX, quantised or not, for machines without torch."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pgrag.embed._model_folder import fingerprint
from pgrag.embed._onnx import PASSPORT, OnnxEncoder
from pgrag.embed._sentence_transformer import SentenceTransformerEncoder, quiet
from pgrag.errors import PgragError

__all__ = ["export_onnx"]

_OPSET = 17
# What the export is compared with the model on: several lengths, several scripts, code.
_PROBES = (
    "key",
    "How do I rotate an API key?",
    "Error E-4021: the vault refused the key (std::vector<int>, foo_bar.py).",
    "Die Pumpe in Halle vier wird jeden Dienstag geprüft.",
    "機密情報の取り扱い",
    "Travel costs are reimbursed when you hand in the receipts within a month. " * 8,
)
# Cosine of an exported model's vectors with torch's: the least that is let through.
_LEAST = {False: 0.9999, True: 0.95}


def export_onnx(model: str | Path, folder: str | Path, *, int8: bool = True) -> Path:
    """Write a sentence-transformers model as ONNX, pooling and all that follows included. Needs torch.

    Needs the extras ``models`` and ``onnx``. The folder gets the model's configuration and tokenizer, the graph, and a
    passport that says which weights it was made of, so that a space filled by torch may be searched by its export.

    Args:
        model: A model's name on the hub, or a folder.
        folder: Where to; made where it is missing. Other precisions that are there stay.
        int8: Quantise the weights to 8 bits: about a quarter of the size and twice the speed on a CPU. Some models
            bear it badly: the least cosine with torch's vectors stands in the passport as ``agreement``.

    Returns:
        The .onnx file: ``onnx/model_int8.onnx`` or ``onnx/model.onnx`` of the folder.

    Raises:
        PgragError: an extra is not installed, there is no such model, or its export gives other vectors.
    """
    try:
        import onnx  # noqa: F401 - torch's exporter and the quantiser need it
        import onnxruntime.quantization  # noqa: F401
    except ImportError as error:
        raise PgragError(
            f"exporting {model} needs {error.name}, which is not installed",
            "pip install 'pgrag-rls[models,onnx]' onnx",
        ) from error
    original = SentenceTransformerEncoder(model, device="cpu")
    target = Path(folder)
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=target) as temporary:
        made = Path(temporary) / "model"
        with quiet():
            original._model.save_pretrained(str(made), create_model_card=False, safe_serialization=True)
        file = _write_graph(original._model, made / "onnx", int8)
        about = {
            key: original.passport[key]
            for key in ("model", "revision", "licence", "languages", "sha256", "matryoshka_dims")
            if key in original.passport
        } | {"precision": "int8" if int8 else "float32", "file_sha256": fingerprint({file.name: file})}
        about["agreement"] = _agreement(original, made, int8)
        for weights in (*made.rglob("*.safetensors"), *made.rglob("*.bin")):
            weights.unlink()
        shutil.copytree(made, target, dirs_exist_ok=True)
    place = target / "onnx" / PASSPORT
    kept: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
    place.write_text(json.dumps(kept | {file.name: about}, indent=1) + "\n", encoding="utf-8")
    return target / "onnx" / file.name


def _write_graph(model: Any, folder: Path, int8: bool) -> Path:
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    folder.mkdir(parents=True)
    full, small = folder / "model.onnx", folder / "model_int8.onnx"
    model[0].auto_model.set_attn_implementation("eager")  # the others trace to what ONNX doesn't have
    module = _whole(model.eval())
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "n", 1: "t"} for name in names} | {"sentence_embedding": {0: "n"}}
    example = (torch.ones(2, 8, dtype=torch.long), torch.ones(2, 8, dtype=torch.long))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a tracer that works, deprecated in favour of one that needs more
        torch.onnx.export(
            module,
            example,
            str(full),
            input_names=names,
            output_names=["sentence_embedding"],
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )
    if not int8:
        return full
    quantize_dynamic(str(full), str(small), weight_type=QuantType.QInt8, per_channel=True)
    full.unlink()
    return small


def _whole(model: Any) -> Any:
    """Wrap a model so that it takes tensors and gives one: the vector a text."""
    import torch

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model({"input_ids": input_ids, "attention_mask": attention_mask})[
                "sentence_embedding"
            ]

    return Whole()


def _agreement(original: SentenceTransformerEncoder, made: Path, int8: bool) -> float:
    """Return the least cosine between torch's vectors and the export's; refuse one that is too small."""
    exported = OnnxEncoder(made, int8=int8)
    least = float(
        np.sum(original.encode_documents(_PROBES) * exported.encode_documents(_PROBES), axis=1).min()
    )
    if not least >= _LEAST[int8]:
        raise PgragError(
            f"the export of {original.passport['model']} gives other vectors: cosine {least:.4f} with torch's",
            "This model bears no quantisation: int8=False" if int8 else "Run it by torch.",
        )
    return round(least, 5)
