"""What a model's folder asks for in its `debate.yaml`: how debates with it are prompted, and how vLLM loads it.

Only these keys: a downloaded folder must not decide where a run is written, or which code is trusted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from debate.errors import ConfigError
from debate.yaml_files import FileModel, as_input_error, read_yaml

FILE = "debate.yaml"


class _EngineArgs(FileModel):
    dtype: str = "auto"
    max_model_len: int = Field(default=1, ge=1)
    enforce_eager: bool = False
    kv_cache_memory_bytes: int = Field(default=1, ge=1)


class _Asked(FileModel):
    profile: str = ""
    templates: str = ""
    comment_chars: int = Field(default=1, ge=1)
    overall_chars: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    engine_args: _EngineArgs = _EngineArgs()


def read_asked(folder: Path) -> dict[str, Any]:
    """The settings in a model's folder, only those that it gives; empty where it has no such file.

    Raises:
        ConfigError: with file, line and key.
    """
    file = folder / FILE
    if not file.is_file():
        return {}
    located = read_yaml(file, ConfigError)
    try:
        return _Asked.model_validate(located.data).model_dump(exclude_unset=True)
    except ValidationError as found:
        raise as_input_error(found, located, _Asked, ConfigError) from None
