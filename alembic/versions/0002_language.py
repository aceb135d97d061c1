"""A language per document: what each chunk was analysed by.

Revision ID: 0002
Revises: 0001
"""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
advice = (
    "Documents that say their language are analysed by it from now on."
    " For those that are there already: pgrag reindex --lexical --collection NAME"
)


def upgrade() -> None:
    """Add the columns and fill them; the text beside this file is never edited after a release."""
    cursor = op.get_bind().connection.cursor()
    cursor.execute(Path(__file__).with_suffix(".sql").read_text("utf-8"))
