"""The tables of the first release, as they were then.

Revision ID: 0001
Revises:
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; the text beside this file is never edited after a release."""
    cursor = op.get_bind().connection.cursor()
    cursor.execute(Path(__file__).with_suffix(".sql").read_text("utf-8"))
