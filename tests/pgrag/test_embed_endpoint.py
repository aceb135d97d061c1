"""The encoder of an endpoint against a server on a real socket that speaks the protocol, well or badly."""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from _endpoint_server import Answer, Server, Status

import pgrag.embed._endpoint as endpoint_module
from pgrag.embed import Encoder, EncoderError, EndpointEncoder
from pgrag.errors import PgragError

pytest.importorskip("httpx2", reason="pip install 'pgrag-rls[endpoint]'")
pytest.importorskip("tenacity", reason="pip install 'pgrag-rls[endpoint]'")


def vector_of(text: str) -> list[float]:
    """Three numbers that tell texts apart, not of length 1."""
    return [float(len(text)), float(ord(text[0])), 1.0]


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    data = [{"index": n, "embedding": vector_of(text)} for n, text in enumerate(body["input"])]
    return {"object": "list", "model": body["model"], "data": data}


ENDPOINT = {"/v1/embeddings": embeddings}
pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def encoder(server: Server) -> Iterator[EndpointEncoder]:
    made = EndpointEncoder(server.url, "org/Small-Model")
    yield made
    made.close()


def unit(text: str) -> np.ndarray:
    vector = np.array(vector_of(text))
    return vector / np.linalg.norm(vector)


def test_it_follows_the_protocol(encoder: EndpointEncoder) -> None:
    assert isinstance(encoder, Encoder)


def test_a_text_gets_the_endpoints_vector_at_length_one(encoder: EndpointEncoder) -> None:
    assert encoder.encode_documents(["pump"])[0] == pytest.approx(unit("pump"), abs=2**-23)


def test_what_is_sent_is_openais_request(encoder: EndpointEncoder, server: Server) -> None:
    encoder.encode_documents(["pump"])
    assert server.bodies == [{"model": "org/Small-Model", "input": ["pump"], "encoding_format": "float"}]
    assert server.paths == ["/v1/embeddings"]


@pytest.mark.parametrize("end", ["", "/", "/embeddings"])
def test_the_address_may_end_as_people_write_it(server: Server, end: str) -> None:
    EndpointEncoder(server.url + end, "m").encode_queries(["pump"])
    assert server.paths == ["/v1/embeddings"]


def test_an_address_names_model_and_options(server: Server) -> None:
    made = EndpointEncoder.at(f"{server.url}#org/Small-Model?dimensions=3&query=query:%20", name="mine")
    made.encode_queries(["pump"])
    assert server.bodies[0] == {
        "model": "org/Small-Model",
        "input": ["query: pump"],
        "encoding_format": "float",
        "dimensions": 3,
    }
    assert made.name == "mine"


@pytest.mark.parametrize(
    "address",
    [
        "https://host/v1",
        "https:///v1#m",
        "ftp://host/v1#m",
        "https://host/v1#m?size=3",
        "https://host/v1#m?dimensions=x",
        "https://host/v1#m?timeout_seconds=-1",
        "https://host/v1#m?timeout_seconds=nan",
        "https://host/v1#m?total_seconds=1e300",
        "https://host/v1#m?dimensions=16001",
        "https://host/v1#m?batch_texts=0",
        "https://host/v1#m?max_characters=0",
        "https://host/v1#m?requests_per_minute=0",
    ],
)
def test_an_address_that_is_none_is_refused_with_one_that_would_do(address: str) -> None:
    with pytest.raises(PgragError) as caught:
        EndpointEncoder.at(address)
    assert "https://host/v1#model" in (caught.value.hint or "")


def test_credentials_in_the_address_are_refused_and_not_shown() -> None:
    with pytest.raises(PgragError, match="holds credentials") as caught:
        EndpointEncoder.at("https://ana:s3cret@host/v1#m")
    assert "s3cret" not in caught.value.message


def test_the_space_is_named_after_the_model(encoder: EndpointEncoder) -> None:
    assert encoder.name == "small-model"


def test_the_passport_says_what_is_known(encoder: EndpointEncoder, server: Server) -> None:
    expected = {
        "name": "small-model",
        "model": "org/Small-Model",
        "dimension": 3,
        "normalised": True,
        "runtime": "endpoint",
        "endpoint": f"{server.url}/embeddings",
    }
    assert expected.items() <= encoder.passport.items()


def test_the_dimension_is_asked_for_once(encoder: EndpointEncoder, server: Server) -> None:
    assert (encoder.dimension, encoder.dimension, len(server.bodies)) == (3, 3, 1)


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGRAG_ENDPOINT_API_KEY", "k1")
    made = EndpointEncoder(server.url, "m")
    made.encode_queries(["pump"])
    assert server.headers[0]["authorization"] == "Bearer k1"
    assert "k1" not in json.dumps(made.passport)


def test_a_key_from_a_file_may_end_with_its_line(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGRAG_ENDPOINT_API_KEY", "k1\n")
    EndpointEncoder(server.url, "m").encode_queries(["pump"])
    assert server.headers[0]["authorization"] == "Bearer k1"


@pytest.mark.parametrize("key", ["schlüssel", "k1\nx-other: 1"])
def test_a_key_that_can_be_none_is_refused_and_not_shown(
    server: Server, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("PGRAG_ENDPOINT_API_KEY", key)
    with pytest.raises(PgragError, match="PGRAG_ENDPOINT_API_KEY") as caught:
        EndpointEncoder(server.url, "m")
    assert key not in caught.value.message


def test_openais_key_goes_to_openai_only(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k2")
    EndpointEncoder(server.url, "m").encode_queries(["pump"])
    assert "authorization" not in server.headers[0]


def test_each_distinct_text_is_sent_once(encoder: EndpointEncoder, server: Server) -> None:
    vectors = encoder.encode_documents(["pump", "valve", "pump"])
    assert server.bodies[0]["input"] == ["pump", "valve"]
    assert np.array_equal(vectors[0], vectors[2])


def test_texts_without_a_word_are_not_sent_and_have_no_vector(
    encoder: EndpointEncoder, server: Server
) -> None:
    vectors = encoder.encode_documents(["", " \n", "\x00", "\ud800", "pump"])
    assert server.bodies[0]["input"] == ["pump"]
    assert [bool(row.any()) for row in vectors] == [False] * 4 + [True]


def test_a_prompt_alone_is_no_text(server: Server) -> None:
    made = EndpointEncoder(server.url, "m", dimensions=3, prompts={"query": "query: "})
    assert not made.encode_queries([" "]).any()
    assert server.bodies == []


def test_no_texts_give_no_rows(encoder: EndpointEncoder) -> None:
    assert encoder.encode_documents([]).shape == (0, 3)


def test_half_a_surrogate_pair_is_left_out(encoder: EndpointEncoder, server: Server) -> None:
    encoder.encode_documents(["pu\ud800mp"])
    assert server.bodies[0]["input"] == ["pump"]


def test_a_megabyte_is_cut(server: Server) -> None:
    EndpointEncoder(server.url, "m", max_characters=1000).encode_documents(["x" * 1_000_000])
    assert [len(text) for text in server.bodies[0]["input"]] == [1000]


def test_requests_hold_no_more_texts_than_told(server: Server) -> None:
    texts = [f"{n:04}" for n in range(10)]
    vectors = EndpointEncoder(server.url, "m", batch_texts=4).encode_documents(texts)
    assert [len(body["input"]) for body in server.bodies] == [4, 4, 2]
    assert vectors == pytest.approx(np.stack([unit(text) for text in texts]), abs=2**-23)


def test_requests_hold_no_more_characters_than_told_but_for_one_long_text(server: Server) -> None:
    texts = ["x" * size for size in (25, 5, 6, 4)]
    vectors = EndpointEncoder(server.url, "m", batch_characters=10).encode_documents(texts)
    assert [list(map(len, body["input"])) for body in server.bodies] == [[4, 5], [6], [25]]
    assert vectors == pytest.approx(np.stack([unit(text) for text in texts]), abs=2**-23)


def test_order_is_by_index(encoder: EndpointEncoder, server: Server) -> None:
    server.script = [lambda body: embeddings(body) | {"data": embeddings(body)["data"][::-1]}]
    vectors = encoder.encode_documents(["pump", "a valve"])
    assert vectors == pytest.approx(np.stack([unit("pump"), unit("a valve")]), abs=2**-23)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_after_a_wait(
    encoder: EndpointEncoder, server: Server, waits: list[float], status: int
) -> None:
    server.script = [Status(status), Status(status)]
    assert encoder.encode_documents(["pump"]).any()
    assert len(server.bodies) == 3
    assert len(waits) == 2


def test_retry_after_in_seconds_is_waited_for(
    encoder: EndpointEncoder, server: Server, waits: list[float]
) -> None:
    server.script = [Status(429, retry_after="7")]
    encoder.encode_documents(["pump"])
    assert waits == [7.0]


def test_retry_after_as_a_date_is_waited_for(
    encoder: EndpointEncoder, server: Server, waits: list[float]
) -> None:
    server.script = [Status(503, retry_after=email.utils.formatdate(time.time() + 100, usegmt=True))]
    encoder.encode_documents(["pump"])
    # A date has whole seconds; and the machine may be slow.
    assert waits == [pytest.approx(100, abs=30)]


def test_a_wait_that_is_too_long_is_an_error_that_says_so(
    encoder: EndpointEncoder, server: Server, waits: list[float]
) -> None:
    server.script = [Status(429, retry_after="3600")]
    with pytest.raises(EncoderError, match="wait for 3,600 seconds"):
        encoder.encode_documents(["pump"])
    assert waits == []


def test_a_quota_that_is_used_up_is_not_waited_for(
    encoder: EndpointEncoder, server: Server, waits: list[float]
) -> None:
    server.script = [
        Status(429, '{"error": {"code": "insufficient_quota", "message": "You are out of it."}}')
    ]
    with pytest.raises(EncoderError, match="You are out of it"):
        encoder.encode_documents(["pump"])
    assert waits == []


def test_waits_grow_and_end(server: Server, waits: list[float]) -> None:
    server.script = [Status(503, "down for repair")] * 4
    with pytest.raises(EncoderError, match="down for repair") as caught:
        EndpointEncoder(server.url, "m", attempts=4).encode_documents(["pump"])
    assert server.url in caught.value.message
    assert "model m" in caught.value.message
    assert len(server.bodies) == 4
    # Each is drawn from 0 to 0.5 * 2**n.
    assert [wait <= 0.5 * 2**n for n, wait in enumerate(waits)] == [True] * 3


def test_a_server_that_hangs_is_given_up(server: Server) -> None:
    server.script = ["hang"] * 2
    with pytest.raises(EncoderError, match="Timeout"):
        EndpointEncoder(server.url, "m", timeout_seconds=0.1, attempts=2).encode_documents(["pump"])
    assert len(server.bodies) == 2


def test_an_answer_that_never_ends_is_given_up(server: Server) -> None:
    server.script = ["drip"]
    made = EndpointEncoder(server.url, "m", total_seconds=0.1)
    with pytest.raises(EncoderError, match=r"longer than 0\.1 seconds.* still coming") as caught:
        made.encode_documents(["pump"])
    assert "total_seconds" in (caught.value.hint or "")
    assert len(server.bodies) == 1


def test_a_wait_beyond_the_time_for_all_attempts_is_not_begun(server: Server, waits: list[float]) -> None:
    server.script = [Status(429, "busy", retry_after="7")]
    with pytest.raises(EncoderError, match="longer than 5 seconds, all attempts together: 429 busy"):
        EndpointEncoder(server.url, "m", total_seconds=5).encode_documents(["pump"])
    assert (waits, len(server.bodies)) == ([], 1)


def test_the_pause_of_ones_own_rate_does_not_count(server: Server) -> None:
    made = EndpointEncoder(server.url, "m", requests_per_minute=0.01, total_seconds=60)
    for text in ("pump", "valve"):
        assert made.encode_queries([text]).any()


def test_an_answer_that_is_too_long_for_vectors_is_given_up(
    encoder: EndpointEncoder, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "_BASE_BYTES", 100)
    monkeypatch.setattr(endpoint_module, "_MOST_NUMBERS", 3)
    server.script = ["x" * (100 + 2 * 3 * 32 + 1)]
    with pytest.raises(EncoderError, match=f"more than {100 + 2 * 3 * 32} bytes for 2 texts"):
        encoder.encode_documents(["pump", "valve"])
    assert len(server.bodies) == 1


def test_a_connection_that_breaks_is_made_again(encoder: EndpointEncoder, server: Server) -> None:
    server.script = ["hang up"]
    assert encoder.encode_documents(["pump"]).any()


def test_a_server_that_isnt_there_is_named(server: Server) -> None:
    server.close()
    with pytest.raises(EncoderError, match=f"{server.url}/embeddings .model m. doesn't answer"):
        EndpointEncoder(server.url, "m", attempts=2).encode_documents(["pump"])


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "PGRAG_ENDPOINT_API_KEY"),
        (403, "PGRAG_ENDPOINT_API_KEY"),
        (404, "https://host/v1#model"),
        (302, "URL"),
    ],
)
def test_what_will_not_pass_is_refused_at_once(
    encoder: EndpointEncoder, server: Server, status: int, hint: str
) -> None:
    server.script = [Status(status, '{"error": {"message": "no such thing"}}')]
    with pytest.raises(EncoderError, match=f"{status}: ") as caught:
        encoder.encode_documents(["pump"])
    assert hint in (caught.value.hint or "")
    assert len(server.bodies) == 1


def test_texts_that_are_refused_are_no_reason_to_give_up_on_others(
    encoder: EndpointEncoder, server: Server
) -> None:
    server.script = [Status(400, '{"error": "too long"}')]
    with pytest.raises(PgragError, match="400: too long") as caught:
        encoder.encode_documents(["pump"])
    assert not isinstance(caught.value, EncoderError)


def changed(**item: Any) -> Answer:
    """An answer whose first vector is changed."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        data = embeddings(body)["data"]
        return {"data": [data[0] | item, *data[1:]]}

    return answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("<html>Welcome</html>", "it isn't JSON, but '<html>Welcome</html>'"),
        ("[1]", "no list `data`"),
        ('{"data": [1, 2]}', "no list `data`"),
        (lambda body: {"data": embeddings(body)["data"][:1]}, "2 texts gave 1 vectors"),
        (lambda body: {"data": embeddings(body)["data"] * 2}, "2 texts gave 4 vectors"),
        (changed(index=1), "its indexes are not those from 0 to 1"),
        (changed(index=None), "its indexes are not those from 0 to 1"),
        (changed(index=[]), "its indexes are not those from 0 to 1"),
        (changed(embedding=[1.0]), "not lists of numbers of one length"),
        (changed(embedding=["a", "b", "c"]), "not lists of numbers of one length"),
        (changed(embedding=None), "not lists of numbers"),
        (changed(embedding=[math.nan, 1, 1]), "NaN or infinity"),
        (changed(embedding=[math.inf, 1, 1]), "NaN or infinity"),
        (changed(embedding=[0, 0.0, 0]), "a vector is zero"),
        (lambda body: {"data": [{"index": n, "embedding": []} for n in range(2)]}, "not lists of numbers"),
        (lambda body: {"data": [{"index": n, "embedding": [1, 2]} for n in range(2)]}, "dimension 2, not 3"),
    ],
)
def test_a_wrong_answer_is_refused_and_says_of_whom(server: Server, answer: Any, reason: str) -> None:
    server.script = [answer]
    with pytest.raises(PgragError) as caught:
        EndpointEncoder(server.url, "m", dimensions=3).encode_documents(["pump", "a valve"])
    assert reason in caught.value.message
    assert caught.value.message.startswith(f"{server.url}/embeddings (model m) gave a wrong answer")


def test_huge_numbers_are_scaled_and_not_lost(encoder: EndpointEncoder, server: Server) -> None:
    server.script = [changed(embedding=[3e300, 0, 4e300])]
    assert encoder.encode_documents(["pump"])[0] == pytest.approx([3 / 5, 0, 4 / 5])


def test_a_dimension_that_changes_is_refused(encoder: EndpointEncoder, server: Server) -> None:
    encoder.encode_documents(["pump"])
    server.script = [changed(embedding=[1.0, 0.0])]
    with pytest.raises(PgragError, match="dimension 2, not 3"):
        encoder.encode_documents(["valve"])


def test_requests_keep_to_the_rate(server: Server, waits: list[float]) -> None:
    made = EndpointEncoder(server.url, "m", requests_per_minute=0.01)
    for text in ("pump", "valve", "gauge"):
        made.encode_queries([text])
    # One request each 6,000 seconds; nobody waited, so the third has to wait for two.
    assert waits == [pytest.approx(6000, abs=60), pytest.approx(12000, abs=60)]


def test_tokens_are_estimated(encoder: EndpointEncoder, server: Server) -> None:
    # 3 words and a full stop; 1.1 tokens each.
    assert encoder.count_tokens("Check the pump.") == math.ceil(1.1 * 4)
    assert (encoder.count_tokens(""), server.bodies) == (0, [])
