"""The samples of a log of inspect as records: `.eval`, which inspect itself reads, and `.json`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from debate.dataset.records import JSON, Record, opened
from debate.errors import ConfigError, TaskError
from debate.files import DuplicateKey

_BEGINNING = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"version":\s*\d+,\s*"status":\s*"')
_KEPT = ("id", "epoch", "input", "choices", "target", "output", "scores", "metadata", "error")
"""What is known of a sample; its events and messages are left out."""
_ATTACHED = "attachment://"
_Sample = Mapping[str, Any]


def is_log(file: Path) -> bool:
    """Whether a file is a log of inspect, by its ending or its first bytes."""
    if file.suffix.lower() == ".eval":
        return True
    try:
        with file.open("rb") as stream:
            return file.suffix.lower() == ".json" and _BEGINNING.match(stream.read(200)) is not None
    except (OSError, ValueError):
        return False  # whoever reads it says what is wrong


def samples_of(file: Path) -> Iterator[Record]:
    """The samples, each with its log's `model` and the name of the `log`. A record's line is the sample's number.

    Raises:
        TaskError: for what is no log, a log that is not complete, and one without samples.
        ConfigError: for a `.eval` log where inspect is not installed.
    """
    header, samples = _eval_log(file) if file.suffix.lower() == ".eval" else _json_log(file)
    if (status := header.get("status")) != "success":
        hint = f"`inspect eval-retry {file}` completes it, in a new log"
        raise TaskError(
            f"is a log of an evaluation that is not complete: its status is {status!r}", file=file, hint=hint
        )
    about = {"model": _mapping(header.get("eval")).get("model"), "log": file.name}
    number = 0
    for number, sample in enumerate(samples, 1):
        attached = _mapping(sample.get("attachments"))
        kept = {key: _resolved(sample.get(key), attached) for key in _KEPT}
        yield Record({**kept, **about}, file, number)
    if not number:
        raise TaskError(
            "is a log without samples", file=file, hint="inspect keeps them unless --no-log-samples is given"
        )


def _eval_log(file: Path) -> tuple[_Sample, Iterator[_Sample]]:
    """The header of a `.eval` log, and its samples, one of which is held at a time."""
    with opened(file):
        pass
    try:
        inspect: Any = import_module("inspect_ai.log")
    except ModuleNotFoundError:
        hint = "pip install 'debate-eval[inspect]'; or give the log that `inspect log convert --to json` makes of it"
        raise ConfigError("logs in the format .eval are read by inspect", file=file, hint=hint) from None
    try:
        header = inspect.read_eval_log(str(file), header_only=True).model_dump(mode="json", exclude={"samples"})
    except Exception as error:  # of whatever reads zip, zstd, JSON and the log
        raise _unreadable(file, error) from None
    return header, _read(inspect, file)


def _read(inspect: Any, file: Path) -> Iterator[_Sample]:
    dropped = {"events", "store", "events_data"}
    try:
        for sample in inspect.read_eval_log_samples(str(file), all_samples_required=False, exclude_fields=dropped):
            yield sample.model_dump(mode="json", exclude=dropped)
    except Exception as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: Exception) -> TaskError:
    return TaskError(f"is no log that inspect can read: {type(error).__name__}: {error}", file=file)


def _json_log(file: Path) -> tuple[_Sample, Iterator[_Sample]]:
    """The header of a `.json` log, and its samples. The log is held whole."""
    with opened(file) as stream:
        try:
            log = JSON.decode(stream.readall().decode("utf-8-sig"))
        except DuplicateKey as error:
            raise TaskError("duplicate key", file=file, field=str(error.args[0])) from None
        except (ValueError, RecursionError) as error:
            raise TaskError(f"is not valid JSON: {error}", file=file) from None
    samples = log.get("samples")
    found = cast("list[Any]", samples) if isinstance(samples, list) else []
    for n, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise TaskError(f"must be an object, got {type(each).__name__}", file=file, line=n, field="sample")
    return log, iter(found)


def _mapping(value: Any) -> _Sample:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _resolved(value: Any, attached: _Sample) -> Any:
    """A value with the texts that stand in the sample's attachments, and null for what is no number."""
    match value:
        case str() if value.startswith(_ATTACHED):
            return attached.get(value.removeprefix(_ATTACHED), value)
        case list():
            return [_resolved(each, attached) for each in cast("list[Any]", value)]
        case dict():
            return {key: _resolved(each, attached) for key, each in cast("dict[str, Any]", value).items()}
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
