"""Serves the stage ``evaluate``: says which library of its extras is missing, before one is needed."""

from __future__ import annotations

import importlib.util

from pgrag.errors import PgragError

__all__ = ["needs_extra"]

# Names to install by, where they aren't those to import by.
_DISTRIBUTIONS = {"ir_measures": "ir-measures", "ppi_py": "ppi-python", "sklearn": "scikit-learn"}
# Those of the extra ``judge``; all others are of ``evaluate``.
_OF_JUDGE = {"httpx2", "ppi_py", "tenacity"}


def needs_extra(*modules: str, what: str = "comparing two spaces on judged queries") -> PgragError | None:
    """Return the error that says what is missing, where a library of ``evaluate`` or ``judge`` isn't installed; else None.

    Args:
        *modules: Names to import by; none: ir_measures and scipy.
        what: What needs them, as the beginning of a sentence.
    """
    missing = [name for name in modules or ("ir_measures", "scipy") if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    extras = sorted({"judge" if name in _OF_JUDGE else "evaluate" for name in missing})
    return PgragError(
        f"{what} needs {_DISTRIBUTIONS.get(missing[0], missing[0])}, which is not installed",
        f"pip install 'pgrag-rls[{','.join(extras)}]'",
    )
