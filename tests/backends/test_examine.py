"""What a model can do is found by asking it, whatever its backend."""

from __future__ import annotations

import asyncio
import json

import pytest

from debate.backends import Call, Scripted
from debate.backends.examine import examine
from debate.errors import BackendUnavailableError, CallError
from debate.testing import reply_for


def test_a_backend_that_follows_schemas_and_seeds_and_reads_labels_is_found_to() -> None:
    found = asyncio.run(examine(Scripted(reply_for, model="m")))
    assert (found.model, found.address, found.schema_form) == ("m", None, None)
    assert found.follows_schema
    assert found.seeds == "kept"
    assert found.reads == {"expected": True, "cells": True}
    assert found.read_fault is None
    assert found.usage.calls == 1


def test_the_question_does_not_name_the_keys_of_its_schema() -> None:
    asked: list[Call] = []

    def keep(call: Call) -> str:
        asked.append(call)
        return json.dumps({"capital": "Canberra", "confidence": 10})

    found = asyncio.run(examine(Scripted(keep)))
    assert not found.follows_schema
    schema = asked[0].schema
    assert schema is not None
    assert not any(key in asked[0].prompt.texts[1] for key in schema["properties"])


def test_a_model_that_answers_only_under_a_schema_has_seeds_that_are_not_known() -> None:
    def strict(call: Call) -> str:
        if call.schema is None:
            raise CallError("refused", "a schema is needed")
        return "{}"

    found = asyncio.run(examine(Scripted(strict)))
    assert found.seeds is None
    assert found.read_fault is not None


def test_a_model_that_does_not_answer_is_an_error_and_its_backend_is_closed() -> None:
    def gone(call: Call) -> str:
        raise BackendUnavailableError("gone")

    class Closing(Scripted):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    backend = Closing(gone)
    with pytest.raises(BackendUnavailableError, match="gone"):
        asyncio.run(examine(backend))
    assert backend.closed == 1
