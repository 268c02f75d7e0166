"""Data inside an HTML file: JSON, compressed, in an inert script that the page's own script unpacks."""

from __future__ import annotations

import base64
import gzip
from typing import Any

from debate.files import json_text


def packed(text: str) -> str:
    """A text, compressed, in base64, which cannot end the script that holds it.

    The same text gives the same one: the compressed form names no time.
    """
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


def inert_script(name: str, data: Any) -> str:
    """A script element that no browser runs, with packed data, found by its id."""
    return inert_json(name, json_text(data))


def inert_json(name: str, text: str) -> str:
    """The same with data that are JSON already."""
    return f'<script type="application/gzip" id="{name}">{packed(text)}</script>\n'
