"""Evaluation: answers and quotes of judged queries, runs by query and by evidence; how a collection is searched.

Revision ID: 0005
Revises: 0004
"""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and tables; the text beside this file is never edited after a release."""
    cursor = op.get_bind().connection.cursor()
    cursor.execute(Path(__file__).with_suffix(".sql").read_text("utf-8"))
