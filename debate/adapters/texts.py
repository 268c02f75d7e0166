"""What a framework's values are as texts that judges read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_text(value: object) -> str:
    """A text as it is, any other value as JSON, and an empty text for None.

    What JSON does not know is shown as Python shows it.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def fields_as_text(fields: Mapping[str, Any]) -> str:
    """The only field's value, or a paragraph `name: value` for each of several; fields that are None are left out."""
    texts = {name: as_text(value) for name, value in fields.items() if value is not None}
    return "\n\n".join(f"{name}: {text}" for name, text in texts.items()) if len(texts) > 1 else "".join(texts.values())
