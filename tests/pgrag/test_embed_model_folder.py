"""What a passport says of a model, read from files as sentence-transformers and the hub lay them out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pgrag.embed import ModelFolder
from pgrag.embed._model_folder import space_name
from pgrag.errors import PgragError

REVISION = "8b3219a92973c328a8e22fadcfa821b5dc75636a"


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def modules(*kinds: str) -> list[dict[str, Any]]:
    return [
        {"idx": n, "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]


@pytest.fixture
def files() -> dict[str, Any]:
    """A small model as the hub has them."""
    return {
        "modules.json": modules("Transformer", "Pooling", "Normalize"),
        "config.json": {"hidden_size": 32, "max_position_embeddings": 514, "pad_token_id": 1},
        "sentence_bert_config.json": {"max_seq_length": 128, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": 32,
            "pooling_mode_cls_token": True,
            "pooling_mode_mean_tokens": False,
        },
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "passage": "passage: "},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        "tokenizer.json": {"model": {"type": "Unigram"}, "padding": None},
        "tokenizer_config.json": {"model_max_length": 512},
        "model.safetensors": b"weights",
        "README.md": "---\nlicense: mit\nlanguage:\n- en\n- de\n---\n# Small",
    }


def test_a_passport_says_what_the_files_say(files: dict[str, Any], tmp_path: Path) -> None:
    assert ModelFolder(write(tmp_path / "small", files)).passport() == {
        "model": "small",
        "dimension": 32,
        "normalised": True,
        "licence": "mit",
        "languages": ["en", "de"],
        "sha256": hashlib.sha256(b"weights").hexdigest(),
        "max_tokens": 128,
        "tokenizer": "Unigram",
        "pooling": "cls",
        "prompts": {"query": "query: ", "document": "passage: "},
        "similarity": "cosine",
    }


def test_a_snapshot_of_the_hub_gives_name_and_revision(files: dict[str, Any], tmp_path: Path) -> None:
    found = ModelFolder(write(tmp_path / f"models--org--Small-Model/snapshots/{REVISION}", files))
    assert (found.model, found.revision) == ("org/Small-Model", REVISION)


def test_the_place_of_a_folder_is_no_part_of_the_models_name(files: dict[str, Any], tmp_path: Path) -> None:
    here, there = (ModelFolder(write(tmp_path / place / "small", files)) for place in ("a", "b"))
    assert here.passport() == there.passport()


def test_a_folder_called_model_is_named_after_the_one_around_it(
    files: dict[str, Any], tmp_path: Path
) -> None:
    assert ModelFolder(write(tmp_path / "small" / "model", files)).model == "small"


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True}, ("mean",)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, ("cls", "mean")),
        ({"pooling_mode_lasttoken": True}, ("lasttoken",)),
        ({"pooling_mode": "max"}, ("max",)),
        ({"pooling_mode": ["cls", "max"]}, ("cls", "max")),
        ({}, ("mean",)),
    ],
)
def test_pooling_is_read_as_old_and_new_files_write_it(
    files: dict[str, Any], tmp_path: Path, config: dict[str, Any], pooling: tuple[str, ...]
) -> None:
    assert ModelFolder(write(tmp_path, files | {"1_Pooling/config.json": config})).pooling == pooling


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ({}, 128),
        ({"sentence_bert_config.json": {}}, 512),
        ({"sentence_bert_config.json": {}, "tokenizer_config.json": {"model_max_length": 10**30}}, 514),
        ({"sentence_bert_config.json": {}, "tokenizer_config.json": {}, "config.json": {"dim": 32}}, None),
    ],
)
def test_the_longest_text_is_the_least_that_a_file_says(
    files: dict[str, Any], tmp_path: Path, written: dict[str, Any], tokens: int | None
) -> None:
    assert ModelFolder(write(tmp_path, files | written)).max_tokens == tokens


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        ({}, None, ("", "")),
        ({"query": "q: ", "document": "d: "}, None, ("q: ", "d: ")),
        ({"query": "q: ", "document": "", "passage": "p: "}, None, ("q: ", "p: ")),
        ({"query": "q: ", "corpus": "c: "}, None, ("q: ", "c: ")),
        ({"query": "q: "}, "query", ("q: ", "q: ")),
        ({"query": "q: ", "document": ""}, "query", ("q: ", "")),
        ({"task": "t: "}, "task", ("t: ", "t: ")),
    ],
)
def test_prompts_are_found_by_the_names_that_models_give_them(
    files: dict[str, Any],
    tmp_path: Path,
    prompts: dict[str, str],
    default: str | None,
    expected: tuple[str, str],
) -> None:
    sentence = {"prompts": prompts, "default_prompt_name": default}
    found = ModelFolder(write(tmp_path, files | {"config_sentence_transformers.json": sentence})).prompts
    assert (found["query"], found["document"]) == expected


def test_a_dense_layer_decides_the_dimension(files: dict[str, Any], tmp_path: Path) -> None:
    written = files | {
        "modules.json": modules("Transformer", "Pooling", "Dense"),
        "2_Dense/config.json": {"in_features": 32, "out_features": 16},
    }
    assert ModelFolder(write(tmp_path, written)).dimension == 16


@pytest.mark.parametrize(
    "written",
    [
        {"config.json": {"matryoshka_dimensions": [8, 32, 16]}},
        {"config_sentence_transformers.json": {"matryoshka_dims": [32, 16, 8]}},
        {"README.md": 'x\n```json\n{"loss": "L", "matryoshka_dims": [\n  32,\n  16,\n  8\n ]}\n```\n'},
    ],
)
def test_trained_matryoshka_sizes_are_read_where_they_are_declared(
    files: dict[str, Any], tmp_path: Path, written: dict[str, Any]
) -> None:
    assert ModelFolder(write(tmp_path, files | written)).passport()["matryoshka_dims"] == [32, 16, 8]


def test_several_weight_files_have_the_fingerprint_of_what_sha256sum_prints(
    files: dict[str, Any], tmp_path: Path
) -> None:
    written = files | {
        "modules.json": modules("Transformer", "Pooling", "Dense"),
        "2_Dense/model.safetensors": b"dense",
    }
    lines = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in (("2_Dense/model.safetensors", b"dense"), ("model.safetensors", b"weights"))
    )
    assert ModelFolder(write(tmp_path, written)).sha256 == hashlib.sha256(lines.encode()).hexdigest()


def test_safetensors_count_before_other_copies_of_the_weights(files: dict[str, Any], tmp_path: Path) -> None:
    more = {"pytorch_model.bin": b"copy", "onnx/model.onnx": b"copy"}
    assert ModelFolder(write(tmp_path, files | more)).sha256 == hashlib.sha256(b"weights").hexdigest()


@pytest.mark.parametrize("name", ["org/nowhere", "nowhere", "a/b/c", "", "Größe"])
def test_a_model_that_the_hubs_cache_hasnt_is_none(name: str) -> None:
    pytest.importorskip("huggingface_hub", reason="comes with tokenizers")
    assert ModelFolder.of_hub(name) is None


def test_a_model_in_the_hubs_cache_is_found(
    files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants", reason="comes with tokenizers")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    place = tmp_path / "models--org--small"
    write(place / "snapshots" / REVISION, files)
    write(place, {"refs/main": REVISION})
    found = ModelFolder.of_hub("org/small")
    assert found is not None
    assert (found.model, found.revision) == ("org/small", REVISION)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PgragError, match="holds no model"):
        ModelFolder(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "3"])
def test_a_broken_file_is_named(files: dict[str, Any], tmp_path: Path, content: str) -> None:
    with pytest.raises(PgragError, match=r"config\.json"):
        ModelFolder(write(tmp_path, files | {"config.json": content}))


def test_a_model_of_transformers_alone_is_read_too(tmp_path: Path) -> None:
    found = ModelFolder(write(tmp_path, {"config.json": {"hidden_size": 8}}))
    assert (found.dimension, found.pooling, found.normalises) == (8, ("mean",), False)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"),
        ("Größe 3", "gr-e-3"),
        ("123", "model"),
        ("x" * 60, "x" * 48),
        ("org/model:latest", "model-latest"),
    ],
)
def test_a_spaces_name_is_made_of_the_models(model: str, name: str) -> None:
    assert space_name(model) == name
