"""A griffe extension: examples in docstrings, lines that begin with `>>>`, become code in the manual."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?m)^>>> .*\n?(?:^(?:>>> |\.\.\. |(?=\S)).*\n?)*")
"""From the first `>>>` to the next blank line."""


class Examples(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its examples in fences, without the prompts."""
    return _EXAMPLE.sub(lambda found: f"```python\n{_without_prompts(found[0])}\n```\n", text)


def _without_prompts(example: str) -> str:
    lines = example.rstrip("\n").split("\n")
    return "\n".join(line[4:] if line.startswith((">>> ", "... ")) else f"# {line}" for line in lines)
