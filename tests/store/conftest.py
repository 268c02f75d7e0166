"""A fresh database for each test, on every kind that is at hand."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.required import required

SERVER = os.environ.get("DEBATE_TEST_POSTGRES")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database. PostgreSQL where `scripts/postgres` has named a server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.sqlite'}"
        return
    required(SERVER, "no PostgreSQL server is named in DEBATE_TEST_POSTGRES")
    assert SERVER is not None
    name = f"debate_{uuid.uuid4().hex[:12]}"
    engine = create_engine(SERVER.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield f"{SERVER.rpartition('/')[0]}/{name}"
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()
