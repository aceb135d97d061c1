"""Serves the stage ``embed``: turns text into vectors, by a token table, torch, ONNX Runtime or an endpoint.

Storing vectors is left to ``pgrag.worker`` and ``pgrag.spaces``; the static encoder runs inside the database as
well, as ``pgrag.embed_query``. Nothing heavy is imported before an encoder that needs it is made.
"""

from pgrag.embed._encoder import Encoder, EncoderError
from pgrag.embed._endpoint import EndpointEncoder
from pgrag.embed._model_folder import ModelFolder
from pgrag.embed._onnx import OnnxEncoder, has_onnx
from pgrag.embed._onnx_export import export_onnx
from pgrag.embed._sentence_transformer import SentenceTransformerEncoder
from pgrag.embed._static import StaticEncoder

__all__ = [
    "Encoder",
    "EncoderError",
    "EndpointEncoder",
    "ModelFolder",
    "OnnxEncoder",
    "SentenceTransformerEncoder",
    "StaticEncoder",
    "export_onnx",
    "has_onnx",
]
