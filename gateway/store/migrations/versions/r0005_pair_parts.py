"""What `quantgate diff` shows of a pair beside its score: the noise leg's parts, why, and the likelihood's details."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_WORDS = {"capped_by": 32, "unscored": 32, "noise_failure": 32}
_TEXTS = {"noise_parts": "{}", "likelihood": "{}"}


def upgrade() -> None:
    """Earlier rows do not know them."""
    for name, length in _WORDS.items():
        op.add_column("pairs", sa.Column(name, sa.String(length=length), server_default="", nullable=False))
    for name, default in _TEXTS.items():
        op.add_column("pairs", sa.Column(name, sa.Text(), server_default=default, nullable=False))


def downgrade() -> None:
    """Drop them."""
    for name in (*_WORDS, *_TEXTS):
        op.drop_column("pairs", name)
