"""A fresh database for each test, on every kind that is at hand."""

from __future__ import annotations

from tests.store.conftest import url as url
