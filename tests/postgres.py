"""Databases of the PostgreSQL server that `scripts/postgres` has named."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import create_engine, text

from tests.required import required

SERVER = os.environ.get("DEBATE_TEST_POSTGRES")


@contextmanager
def postgres_database() -> Generator[str]:
    """The address of an empty database of PostgreSQL."""
    required(SERVER, "no PostgreSQL server is named in DEBATE_TEST_POSTGRES")
    assert SERVER is not None
    name = f"debate_{uuid.uuid4().hex[:12]}"
    engine = create_engine(SERVER.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield f"{SERVER.rpartition('/')[0]}/{name}"
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()
