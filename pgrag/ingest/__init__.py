"""The stage ``ingest``: files become text with structure, then rows; how text is cut is left to ``chunk``."""

from pgrag.ingest._document import Block, ParsedDocument
from pgrag.ingest._driver import (
    IngestProgress,
    IngestReport,
    ProgressCallback,
    ingest_paths,
)
from pgrag.ingest._parse import KINDS, parse_file
from pgrag.ingest._walk import Failure, FoundFile, walk

__all__ = [
    "KINDS",
    "Block",
    "Failure",
    "FoundFile",
    "IngestProgress",
    "IngestReport",
    "ParsedDocument",
    "ProgressCallback",
    "ingest_paths",
    "parse_file",
    "walk",
]
