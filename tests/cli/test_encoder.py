"""Which encoder ``--model`` stands for, and what is said of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import pgrag_cli._encoder as module
from pgrag.embed import EndpointEncoder, StaticEncoder
from pgrag.errors import PgragError
from pgrag_cli._encoder import load_encoder

SHIPPED = Path(__file__).parents[2] / "pgrag" / "data" / "minilm_static"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str | None]]:
    """What would be loaded by which runtime, as which space."""
    asked: list[tuple[str, str, str | None]] = []

    def stand_in(runtime: str) -> Any:
        class Loaded:
            def __init__(self, model: Any, *, name: str | None = None) -> None:
                asked.append((runtime, str(model), name))
                self.passport = {"model": "small", "runtime": runtime, "precision": "int8", "device": "cpu"}

        return Loaded

    monkeypatch.setattr(module, "OnnxEncoder", stand_in("onnx"))
    monkeypatch.setattr(module, "SentenceTransformerEncoder", stand_in("torch"))
    return asked


def with_onnx(folder: Path, file: str = "onnx/model.onnx") -> Path:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).touch()
    return folder


def test_no_model_is_the_shipped_encoder() -> None:
    assert isinstance(load_encoder(None), StaticEncoder)


def test_a_folder_with_a_table_is_a_static_encoder_of_the_space_that_is_named() -> None:
    encoder = load_encoder(str(SHIPPED), "mine")
    assert (type(encoder), encoder.name) == (StaticEncoder, "mine")


def test_a_name_is_a_model_for_torch(loaded: list[Any]) -> None:
    load_encoder("org/small", "mine")
    assert loaded == [("torch", "org/small", "mine")]


@pytest.mark.parametrize("file", ["model.onnx", "onnx/model_int8.onnx"])
def test_a_folder_with_an_onnx_file_is_run_by_onnx_runtime(
    loaded: list[Any], tmp_path: Path, file: str
) -> None:
    load_encoder(str(with_onnx(tmp_path, file)))
    assert loaded == [("onnx", str(tmp_path), None)]


def test_an_onnx_file_is_too(loaded: list[Any], tmp_path: Path) -> None:
    file = with_onnx(tmp_path) / "onnx" / "model.onnx"
    load_encoder(str(file))
    assert loaded == [("onnx", str(file), None)]


def test_a_runtime_may_be_insisted_on(loaded: list[Any], tmp_path: Path) -> None:
    with_onnx(tmp_path)
    load_encoder(f"torch:{tmp_path}")
    load_encoder(f"onnx:{tmp_path}", "mine")
    assert loaded == [("torch", str(tmp_path), None), ("onnx", str(tmp_path), "mine")]


def test_what_runs_the_model_is_said_on_stderr(
    loaded: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_encoder(str(with_onnx(tmp_path)))
    assert capsys.readouterr() == ("", "small is run by ONNX Runtime, int8, on cpu.\n")


def test_an_address_is_an_endpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("httpx2", reason="pip install 'pgrag-rls[endpoint]'")
    encoder = load_encoder("http://localhost:1/v1#org/small", "mine")
    assert isinstance(encoder, EndpointEncoder)
    assert (encoder.model, encoder.name) == ("org/small", "mine")
    assert capsys.readouterr().err == "org/small is run by the endpoint http://localhost:1/v1/embeddings.\n"


def test_an_address_without_a_model_is_refused_with_one_that_would_do() -> None:
    with pytest.raises(PgragError) as caught:
        load_encoder("https://host/v1")
    assert "https://host/v1#model" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "model", ["./modle", "../modle", "/nowhere/modle", "a/b/modle", "modle/", "torch:./modle", "~/modle"]
)
def test_a_path_that_leads_nowhere_is_said_to_be_and_nothing_is_to_be_installed(model: str) -> None:
    with pytest.raises(
        PgragError, match=f"there is no folder {re.escape(model.removeprefix('torch:'))}$"
    ) as caught:
        load_encoder(model)
    assert "pip install" not in (caught.value.hint or "")


@pytest.mark.parametrize(("model", "kind"), [("modle.onnx", "file"), ("onnx:modle", "folder")])
def test_neither_is_it_for_onnx(model: str, kind: str) -> None:
    with pytest.raises(PgragError, match=f"there is no {kind} {model.removeprefix('onnx:')}$") as caught:
        load_encoder(model)
    assert "pip install" not in (caught.value.hint or "")


def test_a_name_that_may_be_a_folder_written_wrongly_is_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        PgragError, match="there is no folder modle here, so it would be a model on the hub"
    ) as caught:
        load_encoder("modle")
    assert caught.value.hint == "pip install 'pgrag-rls[models]'"
