"""The schema of version 0.1.0, from which later ones migrate. A new database is made without migrations."""

revision = "0001"
down_revision = None
