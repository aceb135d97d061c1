"""The stage ``embed``: spaces are made, filled, indexed, measured, activated and taken away; all work is in SQL.

What turns text into vectors is left to ``pgrag.embed``, and filling a space to ``pgrag.worker``.
"""

from pgrag.spaces._build import BuildProgress, SpaceBuild, build_space
from pgrag.spaces._figures import DepthFigures, SpaceFigures, evaluate_space
from pgrag.spaces._query_encoder import attach_shipped, embed_queries
from pgrag.spaces._space import (
    Space,
    activate_space,
    attach_space,
    calibrate_space,
    check_encoder,
    create_space,
    drop_space,
    find_space,
    list_spaces,
    pause_space,
    pending_of,
    query_encoder_of,
    resume_space,
    retire_space,
    space_passport,
)
from pgrag.spaces._static import embed_static, load_static_space

__all__ = [
    "BuildProgress",
    "DepthFigures",
    "Space",
    "SpaceBuild",
    "SpaceFigures",
    "activate_space",
    "attach_shipped",
    "attach_space",
    "build_space",
    "calibrate_space",
    "check_encoder",
    "create_space",
    "drop_space",
    "embed_queries",
    "embed_static",
    "evaluate_space",
    "find_space",
    "list_spaces",
    "load_static_space",
    "pause_space",
    "pending_of",
    "query_encoder_of",
    "resume_space",
    "retire_space",
    "space_passport",
]
