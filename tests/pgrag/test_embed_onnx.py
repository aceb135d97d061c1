"""ONNX Runtime: a graph that only looks token vectors up, so that every vector can be worked out by hand."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgrag.embed import Encoder, OnnxEncoder
from pgrag.errors import PgragError

onnx = pytest.importorskip("onnx", reason="pip install onnx")
pytest.importorskip("onnxruntime", reason="pip install 'pgrag-rls[onnx]'")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "pump", "valve", "gauge", "query", "passage", ":"]
# Token vectors: of [CLS] and [SEP] too, since they are pooled with the rest.
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
CLS, SEP = 2, 3


def graph(output: str = "last_hidden_state", extra_input: str | None = None) -> Any:
    """A graph that gathers rows of TABLE; ``sentence_embedding`` is the first token's alone."""
    from onnx import TensorProto, helper, numpy_helper

    inputs = ["input_ids", "attention_mask", "token_type_ids", *([extra_input] if extra_input else [])]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"], axis=0)]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("Gather", ["looked_up", "zero"], [output], axis=1))
        shape: list[Any] = ["n", 4]
    else:
        nodes.append(helper.make_node("Identity", ["looked_up"], [output]))
        shape = ["n", "t", 4]
    made = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(np.array(0), "zero")],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Makes a model's folder."""

    def make(
        *,
        pooling: dict[str, Any] | None = None,
        kinds: tuple[str, ...] = ("Transformer", "Pooling", "Normalize"),
        files: tuple[str, ...] = ("onnx/model.onnx",),
        prompts: dict[str, str] | None = None,
        max_tokens: int = 16,
        lower_case: bool = False,
        **of_graph: Any,
    ) -> Path:
        from tokenizers import Tokenizer, models, pre_tokenizers, processors

        folder = tmp_path / "tiny"
        for place in ("onnx", "1_Pooling"):
            (folder / place).mkdir(parents=True, exist_ok=True)
        tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
        )
        tokenizer.save(str(folder / "tokenizer.json"))
        written = {
            "config.json": {"hidden_size": 4, "pad_token_id": 0},
            "modules.json": [
                {"idx": n, "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
                for n, kind in enumerate(kinds)
            ],
            "sentence_bert_config.json": {"max_seq_length": max_tokens, "do_lower_case": lower_case},
            "1_Pooling/config.json": pooling or {"pooling_mode": "mean"},
            "config_sentence_transformers.json": {"prompts": prompts or {}},
        }
        for name, content in written.items():
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
        for file in files:
            onnx.save(graph(**of_graph), folder / file)
        return folder

    return make


def ids(*words: str) -> list[int]:
    return [CLS, *(WORDS.index(word) for word in words), SEP]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def mean(*words: str) -> np.ndarray:
    return unit(TABLE[ids(*words)].mean(axis=0))


def test_it_follows_the_protocol(make: Callable[..., Path]) -> None:
    assert isinstance(OnnxEncoder(make()), Encoder)


ROWS = TABLE[ids("pump", "valve")]
PLACES = np.array([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("mean", ROWS.sum(axis=0) / 4),
        ("mean_sqrt_len_tokens", ROWS.sum(axis=0) / np.sqrt(4)),
        ("cls", ROWS[0]),
        ("lasttoken", ROWS[-1]),
        ("max", ROWS.max(axis=0)),
        ("weightedmean", PLACES @ ROWS / PLACES.sum()),
        (["cls", "mean"], np.concatenate([ROWS[0], ROWS.mean(axis=0)])),
    ],
)
def test_token_vectors_are_pooled_as_the_model_says(
    make: Callable[..., Path], mode: Any, expected: np.ndarray
) -> None:
    encoder = OnnxEncoder(make(pooling={"pooling_mode": mode}))
    # The longer text makes padding, which must not count.
    vectors = encoder.encode_documents(["pump valve", "gauge gauge gauge gauge gauge"])
    assert vectors[0] == pytest.approx(unit(expected), abs=1e-6)


def test_a_graph_that_pools_itself_is_taken_at_its_word(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make(output="sentence_embedding"))
    assert encoder.encode_documents(["pump"])[0] == pytest.approx(unit(TABLE[CLS]), abs=1e-6)


def test_prompts_stand_before_queries_and_documents(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make(prompts={"query": "query: ", "passage": "passage: "}))
    assert encoder.encode_queries(["pump"])[0] == pytest.approx(mean("query", ":", "pump"), abs=1e-6)
    assert encoder.encode_documents(["pump"])[0] == pytest.approx(mean("passage", ":", "pump"), abs=1e-6)


def test_prompts_of_ones_own_replace_the_models(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make(prompts={"query": "query: "}), prompts={"document": "passage: "})
    assert encoder.encode_queries(["pump"])[0] == pytest.approx(mean("pump"), abs=1e-6)
    assert encoder.encode_documents(["pump"])[0] == pytest.approx(mean("passage", ":", "pump"), abs=1e-6)


def test_a_longer_text_is_cut_at_the_models_length(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make(max_tokens=4))
    assert np.array_equal(
        encoder.encode_documents(["pump valve gauge gauge"]), encoder.encode_documents(["pump valve"])
    )


def test_a_megabyte_is_cut_too(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make(max_tokens=4))
    assert np.array_equal(
        encoder.encode_documents(["pump " * 200_000]), encoder.encode_documents(["pump pump"])
    )


def test_texts_are_lowered_where_the_model_says(make: Callable[..., Path]) -> None:
    assert OnnxEncoder(make(lower_case=True)).encode_documents(["PUMP"])[0] == pytest.approx(
        mean("pump"), abs=1e-6
    )


@pytest.mark.parametrize("text", ["", " \n", "\x00\x07", "\ud800"])
def test_a_text_without_a_word_has_a_row_of_zeros(make: Callable[..., Path], text: str) -> None:
    assert [bool(row.any()) for row in OnnxEncoder(make()).encode_documents(["pump", text])] == [True, False]


def test_half_a_surrogate_pair_is_left_out(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make())
    assert np.array_equal(encoder.encode_documents(["pu\ud800mp"]), encoder.encode_documents(["pump"]))


def test_no_texts_give_no_rows(make: Callable[..., Path]) -> None:
    assert OnnxEncoder(make()).encode_documents([]).shape == (0, 4)


def test_batches_stay_within_their_tokens_and_rows_keep_their_places(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = OnnxEncoder(make(), batch_tokens=8)
    shapes: list[tuple[int, int]] = []

    class Watched:
        def run(self, outputs: Any, inputs: Any) -> Any:
            shapes.append(inputs["input_ids"].shape)
            return session.run(outputs, inputs)

    session = encoder._session
    monkeypatch.setattr(encoder, "_session", Watched())
    texts = ["pump", "pump valve gauge pump valve gauge pump", "valve", "gauge pump", "valve pump"]
    vectors = encoder.encode_documents(texts)
    # With [CLS] and [SEP]: 9 alone, above the budget; then two of 4, and two of 3.
    assert shapes == [(1, 9), (2, 4), (2, 3)]
    assert vectors == pytest.approx(np.stack([mean(*text.split()) for text in texts]), abs=1e-6)


def test_each_distinct_text_is_run_once(make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = OnnxEncoder(make())
    ran: list[Any] = []
    run = encoder._run
    monkeypatch.setattr(encoder, "_run", lambda texts: ran.append(list(texts)) or run(texts))
    encoder.encode_documents(["pump", "valve", "pump"])
    assert ran == [["pump", "valve"]]


def test_tokens_are_counted_without_special_ones(make: Callable[..., Path]) -> None:
    encoder = OnnxEncoder(make(max_tokens=4))
    assert [encoder.count_tokens(text) for text in ("", "pump valve", "pump " * 9)] == [0, 2, 9]


FULL, INT8 = "onnx/model.onnx", "onnx/model_quantized.onnx"


@pytest.mark.parametrize(
    ("files", "int8", "taken", "precision"),
    [
        ((FULL, INT8), None, "model.onnx", "float32"),
        ((FULL, INT8), True, "model_quantized.onnx", "int8"),
        ((INT8,), None, "model_quantized.onnx", "int8"),
        (("model.onnx",), None, "model.onnx", "float32"),
        (("onnx/model_O4.onnx", FULL), None, "model.onnx", "float32"),
        (("onnx/model_fp16.onnx", FULL), None, "model.onnx", "float32"),
    ],
)
def test_the_file_is_chosen_by_its_name(
    make: Callable[..., Path], files: tuple[str, ...], int8: bool | None, taken: str, precision: str
) -> None:
    encoder = OnnxEncoder(make(files=files), int8=int8)
    assert (encoder.file.name, encoder.passport["precision"]) == (taken, precision)


def test_a_file_may_be_named(make: Callable[..., Path]) -> None:
    folder = make(files=(FULL, INT8))
    assert OnnxEncoder(folder / INT8).passport["file"] == "model_quantized.onnx"


def test_what_isnt_there_is_named_with_the_way_to_make_it(make: Callable[..., Path]) -> None:
    with pytest.raises(PgragError, match="no quantised ONNX model") as caught:
        OnnxEncoder(make(), int8=True)
    assert "export_onnx" in (caught.value.hint or "")


def test_the_passport_is_read_from_the_models_files(make: Callable[..., Path]) -> None:
    passport = OnnxEncoder(make()).passport
    expected = {
        "name": "tiny",
        "model": "tiny",
        "dimension": 4,
        "normalised": True,
        "pooling": "mean",
        "max_tokens": 16,
        "tokenizer": "WordLevel",
        "runtime": "onnx",
        "device": "cpu",
    }
    assert expected.items() <= passport.items()
    assert json.loads(json.dumps(passport)) == passport


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"kinds": ("Transformer", "Pooling", "Dense")}, "Dense"),
        ({"pooling": {"pooling_mode": "odd"}}, "odd"),
        ({"pooling": {"include_prompt": False}, "prompts": {"query": "q: "}}, "pooling without the prompt"),
        ({"extra_input": "pixel_values"}, "pixel_values"),
    ],
)
def test_a_model_that_cannot_be_run_whole_is_refused(
    make: Callable[..., Path], broken: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PgragError, match=reason):
        OnnxEncoder(make(**broken))


def test_a_file_that_is_no_graph_is_named(make: Callable[..., Path]) -> None:
    folder = make()
    (folder / FULL).write_bytes(b"nothing")
    with pytest.raises(PgragError, match=r"can't load .*model\.onnx"):
        OnnxEncoder(folder)


def test_a_missing_tokenizer_is_named(make: Callable[..., Path]) -> None:
    folder = make()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(PgragError, match=r"tokenizer\.json"):
        OnnxEncoder(folder)


def test_an_exported_file_that_was_changed_is_refused(make: Callable[..., Path]) -> None:
    folder = make()
    about = {"model": "original", "sha256": "0" * 64, "file_sha256": "1" * 64}
    (folder / "onnx" / "pgrag.json").write_text(json.dumps({"model.onnx": about}), encoding="utf-8")
    with pytest.raises(PgragError, match="its sha256 differs"):
        OnnxEncoder(folder)


def test_it_runs_without_torch(make: Callable[..., Path]) -> None:
    program = (
        "import sys; from pgrag.embed import OnnxEncoder; OnnxEncoder(sys.argv[1]).encode_queries(['pump']);"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(make())], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(PgragError) as caught:
        OnnxEncoder(tmp_path)
    assert caught.value.hint == "pip install 'pgrag-rls[onnx]'"
