"""sentence-transformers, and what is exported from it, on a model of two layers that is made here."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgrag.embed import Encoder, ModelFolder, OnnxEncoder, SentenceTransformerEncoder, export_onnx
from pgrag.errors import PgragError

WHY = "needs torch: pip install 'pgrag-rls[models]'"
torch = pytest.importorskip("torch", reason=WHY)
sentence_transformers = pytest.importorskip("sentence_transformers", reason=WHY)

TEXTS = ["a pump", "the valve is checked every tuesday", "gauge", "Ünïcode 機密 E-4021", "pump " * 300]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with random weights and 32 numbers a vector, saved as sentence-transformers does."""
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    place = tmp_path_factory.mktemp("models")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789:.-"]
    words += [f"##{word}" for word in words[5:]] + ["pump", "valve", "gauge", "the", "query", "passage"]
    (place / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(place / "bert")
    BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place / "bert")
    transformer = models.Transformer(str(place / "bert"), max_seq_length=48)
    model = SentenceTransformer(
        modules=[transformer, models.Pooling(32), models.Normalize()],
        device="cpu",
        prompts={"query": "query: ", "passage": "passage: "},
    )
    made = place / "tiny"
    model.save_pretrained(str(made))
    (made / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(folder, device="cpu")


def test_it_follows_the_protocol(encoder: SentenceTransformerEncoder) -> None:
    assert isinstance(encoder, Encoder)


def test_vectors_have_length_one(encoder: SentenceTransformerEncoder) -> None:
    assert np.linalg.norm(encoder.encode_documents(TEXTS), axis=1) == pytest.approx(1, abs=1e-6)


def test_the_prompt_for_passages_is_used_though_it_has_another_name(
    encoder: SentenceTransformerEncoder, folder: Path
) -> None:
    bare = SentenceTransformerEncoder(folder, device="cpu", prompts={})
    assert encoder.encode_documents(["a pump"]) == pytest.approx(
        bare.encode_documents(["passage: a pump"]), abs=1e-5
    )
    assert encoder.encode_queries(["a pump"]) == pytest.approx(
        bare.encode_queries(["query: a pump"]), abs=1e-5
    )


@pytest.mark.parametrize("text", ["", " \n", "\x00\x07", "\ud800"])
def test_a_text_without_a_word_has_a_row_of_zeros(encoder: SentenceTransformerEncoder, text: str) -> None:
    assert [bool(row.any()) for row in encoder.encode_documents(["pump", text])] == [True, False]


def test_no_texts_give_no_rows(encoder: SentenceTransformerEncoder) -> None:
    assert encoder.encode_documents([]).shape == (0, 32)


def test_each_distinct_text_is_run_once(
    encoder: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    run = encoder._run
    monkeypatch.setattr(encoder, "_run", lambda texts, *how: ran.append(list(texts)) or run(texts, *how))
    encoder.encode_documents(["pump", "valve", "pump"])
    assert ran == [["pump", "valve"]]


def test_the_passport_says_what_ran(encoder: SentenceTransformerEncoder, folder: Path) -> None:
    expected = {
        "name": "tiny",
        "model": "tiny",
        "dimension": 32,
        "normalised": True,
        "licence": "mit",
        "sha256": ModelFolder(folder).sha256,
        "max_tokens": 48,
        "tokenizer": "WordPiece",
        "pooling": "mean",
        "prompts": {"query": "query: ", "document": "passage: "},
        "runtime": "torch",
        "precision": "float32",
        "device": "cpu",
    }
    assert expected.items() <= encoder.passport.items()
    assert json.loads(json.dumps(encoder.passport)) == encoder.passport


def test_bfloat16_is_said_and_its_vectors_have_length_one(
    folder: Path, encoder: SentenceTransformerEncoder
) -> None:
    half = SentenceTransformerEncoder(folder, device="cpu", precision="bfloat16")
    vectors = half.encode_documents(TEXTS)
    assert half.passport["precision"] == "bfloat16"
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    # bfloat16 keeps 8 bits of each number.
    assert (vectors * encoder.encode_documents(TEXTS)).sum(axis=1) == pytest.approx(1, abs=2**-7)


def test_threads_may_share_it(encoder: SentenceTransformerEncoder) -> None:
    texts = [f"pump number {n}" for n in range(24)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda text: encoder.encode_queries([text])[0], texts))
        counts = list(threads.map(encoder.count_tokens, texts))
    assert np.stack(found) == pytest.approx(encoder.encode_queries(texts), abs=1e-5)
    assert counts == [encoder.count_tokens(text) for text in texts]


def test_a_model_that_isnt_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(PgragError, match=r"nowhere can't be loaded"):
        SentenceTransformerEncoder(tmp_path / "nowhere")


@pytest.mark.parametrize("int8", [False, True])
def test_an_export_gives_the_models_vectors(
    encoder: SentenceTransformerEncoder, folder: Path, tmp_path: Path, int8: bool
) -> None:
    pytest.importorskip("onnx", reason="pip install onnx")
    pytest.importorskip("onnxruntime", reason="pip install 'pgrag-rls[onnx]'")
    file = export_onnx(folder, tmp_path, int8=int8)
    exported = OnnxEncoder(tmp_path)
    assert exported.file == file
    # int8 keeps 7 bits of each weight, in two layers.
    least = 1 - (2**-5 if int8 else 1e-6)
    for encode in ("encode_documents", "encode_queries"):
        cosines = (getattr(encoder, encode)(TEXTS) * getattr(exported, encode)(TEXTS)).sum(axis=1)
        assert cosines.min() >= least


def test_an_export_has_the_originals_name_and_weights_and_says_int8(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="pip install onnx")
    pytest.importorskip("onnxruntime", reason="pip install 'pgrag-rls[onnx]'")
    export_onnx(folder, tmp_path / "elsewhere")
    passport = OnnxEncoder(tmp_path / "elsewhere").passport
    expected = {"model": "tiny", "sha256": ModelFolder(folder).sha256, "licence": "mit", "precision": "int8"}
    assert expected.items() <= passport.items()


def test_both_precisions_may_lie_in_one_folder(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="pip install onnx")
    pytest.importorskip("onnxruntime", reason="pip install 'pgrag-rls[onnx]'")
    for int8 in (True, False):
        export_onnx(folder, tmp_path, int8=int8)
    assert [OnnxEncoder(tmp_path, int8=int8).passport["precision"] for int8 in (True, False)] == [
        "int8",
        "float32",
    ]


def test_a_dense_layer_is_exported_too(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="pip install onnx")
    pytest.importorskip("onnxruntime", reason="pip install 'pgrag-rls[onnx]'")
    from sentence_transformers import SentenceTransformer, models

    torch.manual_seed(1)
    model = SentenceTransformer(
        modules=[models.Transformer(str(folder)), models.Pooling(32, "cls"), models.Dense(32, 8)],
        device="cpu",
    )
    model.save_pretrained(str(tmp_path / "dense"))
    export_onnx(tmp_path / "dense", tmp_path / "out", int8=False)
    shutil.rmtree(tmp_path / "out" / "1_Pooling")  # the graph pools
    original = SentenceTransformerEncoder(tmp_path / "dense", device="cpu")
    exported = OnnxEncoder(tmp_path / "out")
    assert exported.encode_queries(TEXTS) == pytest.approx(original.encode_queries(TEXTS), abs=1e-5)
    assert exported.dimension == 8
