"""The settings of a run: from a YAML file, from flags that go before it, and in a form that can be compared.

One name for one thing: a key of the file, a flag of `debate run` and a parameter of `DebateEvaluator` are called alike.
Knows how to make the evaluator and the backends, and nothing of running them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from debate.backends import VLLM, Backend, Ollama, OpenAICompatible, RetryPolicy, RewardModel, ValueServer
from debate.bundled_judge import model_folder, settings_of
from debate.config.evaluators import make_evaluator
from debate.convergence import Over
from debate.errors import ConfigError
from debate.evaluators.base import Evaluator
from debate.evaluators.debate.candidate_order import CandidateOrder
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.evaluators.debate.settings import Mode
from debate.scoring.tensor import Method
from debate.types import Sampling
from debate.yaml_files import Located, as_input_error, read_yaml

_FOR_THE_EVALUATOR = (
    "profile", "templates", "rounds", "weights", "convergence", "over", "min_rounds", "history", "mode",
    "candidate_order", "method", "quorum", "selection", "softmax_temperature", "retries", "history_scores",
    "blind_first_round", "ties", "token_budget", "comment_chars", "overall_chars",
)  # fmt: skip


_SHARED = ("templates", "selection", "softmax_temperature", "retries", "ties")
"""Settings that other evaluators have too; one that does not have it says so."""
_OF_A_DEBATE = tuple(name for name in _FOR_THE_EVALUATOR if name not in _SHARED)


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _seconds(value: Any) -> Any:
    """`30s`, `90m`, `12h`, `7d`, or a number of seconds."""
    if isinstance(value, str) and value[-1:] in _UNITS:
        try:
            return float(value[:-1]) * _UNITS[value[-1]]
        except ValueError:
            raise ValueError(f"must be a time such as 30s, 90m, 12h or 7d, got {value!r}") from None
    return value


Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0)]
"""Seconds, or a text with a unit."""


BackendName = Literal["vllm", "openai", "ollama", "value_server", "reward_model"]
_BACKENDS: dict[BackendName, Callable[..., Backend]] = {
    "vllm": VLLM,
    "openai": OpenAICompatible,
    "ollama": Ollama,
    "value_server": ValueServer,
    "reward_model": RewardModel,
}
_IN_PROCESS = ("vllm", "reward_model")


class ModelSettings(BaseModel):
    """Where one model runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    """None is the name under which personas ask for it."""
    backend: BackendName = "vllm"
    base_url: str | None = None
    engine_args: dict[str, Any] = {}
    """Further parameters of the backend; for a server also those of its `RetryPolicy`."""

    def open_backend(self, name: str) -> Backend:
        """The backend, not yet started."""
        arguments = dict(self.engine_args)
        if self.base_url is not None:
            if self.backend in _IN_PROCESS:
                raise ConfigError("goes with --backend openai, ollama or value_server", field="base_url")
            arguments["base_url"] = self.base_url
        if self.backend not in _IN_PROCESS:
            of_retry_policy = {field.name for field in fields(RetryPolicy)} & set(arguments)
            arguments["retry_policy"] = RetryPolicy(**{key: arguments.pop(key) for key in of_retry_policy})
        kind = _BACKENDS[self.backend]
        try:
            return kind(model=model_folder(self.model or name), **arguments)
        except TypeError as error:
            raise ConfigError(f"the backend does not take this: {error}", field="engine_args") from None


def _with_the_models(values: dict[str, Any]) -> dict[str, Any]:
    """What a model in this process asks for in its own folder, where `values` say nothing else."""
    model = values.get("model")
    if not isinstance(model, str) or values.get("backend", "vllm") != "vllm":
        return values
    asked = settings_of(model)
    if values.get("evaluator", "debate") != "debate":  # the rest shapes a debate
        asked = {name: asked[name] for name in asked.keys() & {"engine_args"}}
    given = values.get("engine_args", {})
    if isinstance(given, dict) and isinstance(asked.get("engine_args"), dict):
        values = {**values, "engine_args": {**asked["engine_args"], **cast("dict[str, Any]", given)}}
    return {**asked, **values}


class RunSettings(BaseModel):
    """Everything that `debate run` can be told. The defaults of a debate are those of `DebateEvaluator`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, arbitrary_types_allowed=True)

    evaluator: Literal["debate", "value", "vote", "panel", "cross", "callback", "step"] = "debate"
    options: dict[str, Any] = {}
    """Parameters of an evaluator that is no debate; see `debate.config.evaluators`."""
    profile: str = "general"
    templates: Path | None = None
    model: str | None = None
    backend: BackendName = "vllm"
    base_url: str | None = None
    engine_args: dict[str, Any] = {}
    models: dict[str, ModelSettings] = {}
    """Further models, by the names under which personas ask for them."""
    rounds: int = Field(default=3, ge=1)
    weights: dict[str, float] | None = None
    convergence: float | None = Field(default=0.1, ge=0)
    over: Over = "agents"
    min_rounds: int = Field(default=1, ge=1)
    history: int | None = Field(default=None, ge=0)
    mode: Mode = "sequential"
    candidate_order: CandidateOrder = "shuffle"
    method: Method = "article"
    quorum: int | None = Field(default=None, ge=1)
    selection: Literal["argmax", "sample"] = "argmax"
    softmax_temperature: float = Field(default=1.0, gt=0)
    retries: int = Field(default=2, ge=0)
    history_scores: bool = True
    blind_first_round: bool = False
    ties: Literal["first", "seeded"] = "first"
    token_budget: int | None = Field(default=None, ge=1)
    comment_chars: int = Field(default=400, ge=1)
    overall_chars: int = Field(default=600, ge=1)
    temperature: float = Field(default=0.7, ge=0)
    top_p: float | None = Field(default=None, ge=0, le=1)
    reply_tokens: int | None = Field(default=None, ge=1)
    seed: int = 0
    limit: int | None = Field(default=None, ge=1)
    max_concurrency: int | None = Field(default=None, ge=1)
    out: Path | None = None
    store: str | None = None
    memory: str | None = None
    """Address of a memory store, or `built-in` for the seed memories alone; None recalls nothing."""
    format: str | None = None
    answers: tuple[Path, ...] = ()
    columns: dict[str, str] = {}
    max_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    task_seconds: float | None = Field(default=None, gt=0)
    cache: Duration | None = None
    engine_restarts: int = Field(default=3, ge=0)

    @classmethod
    def read(cls, config: Path | None, flags: Mapping[str, Any]) -> RunSettings:
        """The settings of a file, with the flags that were given before it, and those its model asks for after it.

        Raises:
            ConfigError: with the file, the line and the key, or the flag.
        """
        if config is None:
            return cls._checked(_with_the_models(dict(flags)), None)
        located = read_yaml(config, ConfigError)
        values = cast("object", located.data)
        if not isinstance(values, dict | None):
            raise ConfigError("must be a mapping of settings", file=config, line=1)
        values = cast("dict[str, Any]", values or {})
        cls._checked(values, located)
        return cls._checked(_with_the_models({**values, **flags}), None)

    @classmethod
    def _checked(cls, values: dict[str, Any], located: Located | None) -> RunSettings:
        try:
            return cls.model_validate(values)
        except ValidationError as found:
            where = located or Located(values, {}, Path("command line"))
            raise as_input_error(found, where, cls, ConfigError) from None

    def make_evaluator(self) -> Evaluator:
        """The evaluator these settings describe, checked: profile and templates are read here.

        Raises:
            InputError: for what cannot work, or does not belong to this evaluator.
        """
        if self.evaluator == "debate":
            if self.options:
                hint = "its parameters are settings of their own: rounds, profile, ..."
                raise ConfigError("do not belong to a debate", field="options", hint=hint)
            return self.debate_evaluator()
        for name in self.model_fields_set & {*_OF_A_DEBATE}:
            raise ConfigError(f"belongs to a debate, not to the evaluator {self.evaluator}", field=name)
        shared = {name: getattr(self, name) for name in self.model_fields_set & {*_SHARED}}
        of_sampling = {"temperature": "temperature", "top_p": "top_p", "reply_tokens": "max_tokens"}
        shared |= {of_sampling[name]: getattr(self, name) for name in self.model_fields_set & of_sampling.keys()}
        evaluator = make_evaluator(self.evaluator, {**shared, **self.options})
        evaluator.check()
        return evaluator

    def debate_evaluator(self) -> DebateEvaluator:
        """The debate these settings describe, checked."""
        sampling = Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.reply_tokens)
        values = {name: getattr(self, name) for name in _FOR_THE_EVALUATOR}
        evaluator = DebateEvaluator(**values, sampling=sampling)
        evaluator.check()
        return evaluator

    def open_backend(self) -> Backend:
        """The backend of the run's own model, not yet started."""
        if self.model is None:
            raise ConfigError(
                "no model was given",
                field="model",
                hint="pass --model NAME, --model FOLDER or --model built-in (a small judge of small sums), or set "
                "DEBATE_MODEL; `debate doctor` says what would run",
            )
        own = ModelSettings(
            model=self.model, backend=self.backend, base_url=self.base_url, engine_args=self.engine_args
        )
        return own.open_backend(self.model)

    def open_backends(self) -> dict[str, Backend]:
        """All backends by the name that calls ask for, the run's own first; none is started."""
        backend = self.open_backend()
        return {backend.model: backend} | {name: each.open_backend(name) for name, each in self.models.items()}

    def given(self) -> dict[str, Any]:
        """What was set, as plain data by which `debate resume` makes the same settings again."""
        return self.model_dump(mode="json", exclude_unset=True)
