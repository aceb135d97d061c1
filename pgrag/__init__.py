"""Retrieval with permissions and citations, inside PostgreSQL.

Example::

    import pgrag

    with pgrag.connect("postgresql://app@localhost/mydb") as store:
        ana = store.as_principals("user:ana", "group:eng")
        hits = ana.search("how do I rotate a key?", k=5)
        context = ana.pack("how do I rotate a key?", budget_tokens=1000)
    print(pgrag.verify_citations("Keys are rotated by script [P1].", context).counts)
"""

from pgrag._version import __version__
from pgrag.cite import Verification, verify_citations
from pgrag.client import AsyncCaller, AsyncStore, Caller, Store, connect, connect_async
from pgrag.errors import PgragError
from pgrag.pack import Context
from pgrag.types import Hit

__all__ = [
    "AsyncCaller",
    "AsyncStore",
    "Caller",
    "Context",
    "Hit",
    "PgragError",
    "Store",
    "Verification",
    "__version__",
    "connect",
    "connect_async",
    "verify_citations",
]
