"""Postings packed into one array per run, short enough to stay in the row; how far compaction has come.

Revision ID: 0003
Revises: 0002
"""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rewrite the posting log; the text beside this file is never edited after a release."""
    cursor = op.get_bind().connection.cursor()
    cursor.execute(Path(__file__).with_suffix(".sql").read_text("utf-8"))
