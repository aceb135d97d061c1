"""Spaces at a precision of their own, with index options, a calibration, a query encoder and a pause.

Revision ID: 0004
Revises: 0003
"""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; the text beside this file is never edited after a release."""
    cursor = op.get_bind().connection.cursor()
    cursor.execute(Path(__file__).with_suffix(".sql").read_text("utf-8"))
