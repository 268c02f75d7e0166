"""The settings of a run. Each is declared once, here or (those of a debate) in `DebateEvaluator`'s dataclass.

A key of a YAML file, a flag of `debate run` and a parameter of the class have the same name. The flags, the docs page
of settings and the record in `run.json` are made from the declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from debate.backends.base import Backend
from debate.backends.scripted import Scripted
from debate.backends.thinking import Thinking, ThinkingSettings
from debate.bundled_judge import model_folder, with_model_defaults
from debate.config.construct import construct, make_evaluator
from debate.errors import CallError, ConfigError
from debate.evaluators.base import Evaluator
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.flow import Call
from debate.registry import BACKENDS, EVALUATORS, FORMATS, SERVERS
from debate.scoring.tensor import Method
from debate.settings import declarations
from debate.types import Price, Sampling
from debate.yaml_files import Located, as_input_error, read_yaml

PANELS = ("Engine", "Run", "Debate", "Server")
_SHARED = {"templates", "selection", "softmax_temperature", "retries", "ties", "readout"}
"""Settings of a debate that other evaluators have too; one that does not have it says so."""
_SAMPLING = {{"max_tokens": "reply_tokens"}.get(each.name, each.name): each for each in declarations(Sampling)}
"""The settings of `Sampling` by their names here; `max_tokens` is the run's budget."""
_OF_SERVERS = ("base_url", "rpm", "tpm")
"""Settings of a model that are parameters of a server's backend."""
_GROUPS = ("members", "reserves", "judges")
"""Parameters that hold further evaluators by name."""
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
"""Seconds, or text with a unit."""


def _price(value: Any) -> str:
    """`IN,OUT`, or the numbers as a list."""
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    try:
        return str(Price.read(",".join(map(str, parts))))
    except ConfigError as error:
        raise ValueError(error.problem) from None


PriceText = Annotated[str, BeforeValidator(_price)]
"""A price as `Price.read` takes it."""


def _name(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > _LONGEST_NAME:
        raise ValueError(f"must be 1 to {_LONGEST_NAME} visible characters, got {value[:_LONGEST_NAME]!r}")
    return value


_LONGEST_NAME = 200
RunName = Annotated[str, AfterValidator(_name)]
"""How a run is called in its store."""


def _setting(
    default: Any,
    text: str,
    panel: str = "Run",
    *,
    flag: str | None = None,
    env: str | None = None,
    may_change: bool = False,
    **bounds: Any,
) -> Any:
    """A setting's declaration.

    flag: where it is not `--name`.
    env: an environment variable that stands for the flag.
    may_change: whether a run may be resumed with another value.
    """
    about: dict[str, Any] = {"panel": panel, "flag": flag, "env": env, "may_change": may_change}
    return Field(default=default, description=text, json_schema_extra=about, **bounds)


_THINKING = {each.name: each for each in declarations(ThinkingSettings)}


def _of_thinking(name: str, flag: str | None = None, *, may_change: bool = False) -> Any:
    """A setting of a model as `ThinkingSettings` declares it; None leaves it to the backend."""
    declared = _THINKING[name]
    about: dict[str, Any] = {"flag": flag, "may_change": may_change, **declared.bounds}
    return _setting(None, declared.help, "Engine", **about)


def _on_or_off(value: Any) -> Any:
    """The words on and off, which YAML reads as true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class ModelSettings(BaseModel):
    """Where one model runs."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: str | None = _setting(None, "Model name, or the folder of one.", "Engine", env="DEBATE_MODEL")
    backend: str = _setting("vllm", f"{BACKENDS.names()}; a plain function answers as `scripted` does.", "Engine")
    base_url: str | None = _setting(None, f"Address of the model's server, for {SERVERS}.", "Engine")
    engine_args: dict[str, Any] = _setting(
        {}, "Parameters of the backend, and of a server's retry policy.", "Engine", flag="--engine-arg"
    )
    thinking: Annotated[Thinking | None, BeforeValidator(_on_or_off)] = _of_thinking("thinking")
    thinking_tokens: int | None = _of_thinking("thinking_tokens", may_change=True)
    chat_template_kwargs: dict[str, Any] | None = _of_thinking("chat_template_kwargs", "--chat-template-kwarg")
    rpm: int | None = _setting(
        None,
        "Most requests per minute that this process sends the server, retries included.",
        "Engine",
        may_change=True,
        ge=1,
    )
    tpm: int | None = _setting(
        None,
        "Most tokens per minute, of prompts and replies, that this process asks the server for.",
        "Engine",
        may_change=True,
        ge=1,
    )

    price: PriceText | None = _setting(
        None,
        "What a million tokens cost: IN,OUT, or IN,CACHED,OUT where prompts in the server's cache have another price.",
        "Engine",
        may_change=True,
    )

    def open_backend(self, name: str | None = None) -> Backend:
        """The backend, not yet started.

        name: the model, where none is set.

        Raises:
            ConfigError: for a backend that cannot be made of these settings.
        """
        found = BACKENDS.load(self.backend)
        if hasattr(found, "generate") and not inspect.isclass(found):
            return found
        make = found if inspect.isclass(found) else Scripted
        given = {**self.engine_args, **({} if make is found else {"fn": found})}
        parameters = inspect.signature(make).parameters
        for setting in _OF_SERVERS:
            if (value := getattr(self, setting)) is None:
                continue
            if setting not in parameters:
                takes = SERVERS if setting == "base_url" else "openai and ollama have such limits"
                raise ConfigError("goes with the backend of a server", field=setting, hint=takes)
            given[setting] = value
        given |= self._of_thinking(parameters)
        model = self.model or name
        if model is not None and "model" in parameters:
            given["model"] = model_folder(model)
        elif "model" in parameters and parameters["model"].default is inspect.Parameter.empty:
            hint = (
                "--model built-in is a small judge of small sums, --model NAME or FOLDER runs on vLLM here, and "
                "--backend openai --base-url URL --model M asks a server; `debate doctor` says what would run here"
            )
            raise ConfigError("no model was given", field="model", hint=hint)
        return cast("Backend", construct(make, given, self.backend, "engine_args"))

    def _of_thinking(self, parameters: Collection[str]) -> dict[str, Any]:
        """The settings of thinking that are given, for a backend with these parameters."""
        given = {name: value for name in _THINKING if (value := getattr(self, name)) is not None}
        for name in given.keys() - set(parameters):
            raise ConfigError(f"is no setting of the backend {self.backend}", field=name)
        return given


class _RunLevel(ModelSettings):
    """The settings that are not a debate's."""

    evaluator: str = _setting("debate", f"{EVALUATORS.names()}.")
    options: dict[str, Any] = _setting({}, "Parameters of an evaluator other than debate.", flag="--option")
    seed: int = _setting(0, "Seed of the run.")
    limit: int | None = _setting(None, "Evaluate only the first so many tasks.", may_change=True, ge=1)
    format: str | None = _setting(None, f"Format of the eval set, where its keys do not tell: {FORMATS.names()}.")
    answers: tuple[Path, ...] = _setting((), "A further file of candidates, one per model.")
    columns: dict[str, str] = _setting({}, "Columns of a table: x=COLUMN, candidates=FIRST,SECOND.", flag="--column")
    prefix_ids: bool = _setting(
        False, "Put the name of its file before the id of a task, NAME/ID: for several eval sets that share ids."
    )
    out: Path | None = _setting(None, "Folder of the run; runs/NAME-OF-EVALSET by default.")
    store: str | None = _setting(
        None,
        "Where everything is recorded: a SQLite file or postgresql://USER@HOST/NAME; by default run.sqlite in the "
        "run's folder.",
        env="DEBATE_STORE",
    )
    run: RunName | None = _setting(
        None,
        "Name of the run in its store; the folder's path by default. Processes with the same store and name share the "
        "work.",
    )
    memory: str | None = _setting(
        None, "Memory store that agents recall from (see `debate memory`), or `built-in` for the built-in memories."
    )
    cache: Duration | None = _setting(
        None, "Use replies in the store that are not older than this: 12h, 7d.", may_change=True
    )
    max_concurrency: int | None = _setting(
        None, "Evaluations open at once; by default what fits.", may_change=True, ge=1
    )
    max_tokens: int | None = _setting(None, "Tokens that the whole run may use.", may_change=True, ge=1)
    max_cost: float | None = _setting(None, "What the whole run may cost, by --price.", may_change=True, gt=0)
    max_seconds: float | None = _setting(None, "Seconds that this session may take.", may_change=True, gt=0)
    task_seconds: float | None = _setting(
        None, "Seconds after which an evaluation stops asking.", may_change=True, gt=0
    )
    engine_restarts: int = _setting(3, "How often an engine that died is started again.", may_change=True, ge=0)
    models: dict[str, ModelSettings] = _setting(
        {}, "Further models, by the names under which personas ask for them: NAME={backend: B, model: M}.", "Engine"
    )


def _of_a_debate() -> Iterator[tuple[str, Any]]:
    """The settings of a debate as fields of a model, those of its sampling among them."""
    for each in declarations(DebateEvaluator):
        about: dict[str, Any] = {"flag": "--weight" if each.name == "weights" else None, **each.bounds}
        declared = _setting(each.default, each.help, "Debate", may_change=not each.shapes_prompts, **about)
        if each.name != "sampling":
            yield each.name, (each.file_type, declared)
            continue
        for name, inner in _SAMPLING.items():
            about = dict(inner.bounds)
            yield name, (inner.file_type, _setting(getattr(each.default, inner.name), inner.help, "Debate", **about))


if TYPE_CHECKING:
    _WithDebate = _RunLevel
else:
    _WithDebate = create_model("_WithDebate", __base__=_RunLevel, **dict(_of_a_debate()))


class RunSettings(_WithDebate):
    """Everything that `debate run` can be told."""

    if TYPE_CHECKING:  # the settings of a debate

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def read(cls, config: Path | None, flags: Mapping[str, Any]) -> Self:
        """The settings: flags, then those of a file, then what the model's folder asks for; the first that is given.

        Raises:
            ConfigError: with the file, the line and the key, or the flag.
        """
        values: dict[str, Any] = {}
        if config is not None:
            located = read_yaml(config, ConfigError)
            if not isinstance(cast("object", located.data), dict | None):
                raise ConfigError("must be a mapping of settings", file=config, line=1)
            values = located.data or {}
            cls._checked(values, located)
        values = {**values, **flags}
        checked = cls._checked(values, None)
        if checked.model is not None and checked.backend == "vllm":
            values = with_model_defaults(checked.model, values, is_debate=checked.evaluator == "debate")
        return cls._checked(values, None)

    @classmethod
    def _checked(cls, values: dict[str, Any], located: Located | None) -> Self:
        try:
            return cls.model_validate(values)
        except ValidationError as found:
            where = located or Located(values, {}, Path("command line"))
            raise as_input_error(found, where, cls, ConfigError) from None

    def with_methods_of(self, identity: Any) -> RunSettings:
        """These settings, with the method that a run was recorded with for each debate that is not given one.

        identity: of the run, as `run.json` has it.
        """
        values, described = self.model_dump(exclude_unset=True), _entry(identity, "evaluator")
        if self.evaluator == "debate":
            values = {**_recorded_method(described), **values}
        elif self.options:
            values["options"] = _with_methods_of(described, self.options)
        return self._checked(values, None)

    def make_evaluator(self) -> Evaluator:
        """The evaluator that these settings describe, checked: profile and templates are read here.

        Raises:
            InputError: for what cannot work, or does not belong to this evaluator.
        """
        of_debate = {each.name for each in declarations(DebateEvaluator)} - {"sampling"}
        if self.evaluator == "debate":
            names = of_debate | _SAMPLING.keys()
            if self.options:
                hint = "its parameters are settings of their own: rounds, profile, ..."
                raise ConfigError("do not belong to a debate", field="options", hint=hint)
        else:
            names = self.model_fields_set & (_SHARED | _SAMPLING.keys())
            for name in self.model_fields_set & (of_debate - _SHARED):
                raise ConfigError(f"belongs to a debate, not to the evaluator {self.evaluator}", field=name)
        values = {_SAMPLING[name].name if name in _SAMPLING else name: getattr(self, name) for name in sorted(names)}
        evaluator = make_evaluator(self.evaluator, {**values, **self.options})
        evaluator.check()
        return evaluator

    def open_backends(self, evaluator: Evaluator | None = None) -> dict[str, Backend]:
        """All backends by the name that calls ask for, the run's own first; none is started.

        evaluator: one that asks no model gets a backend that answers nothing, and no model is needed.
        """
        if evaluator is not None and not asks_models(evaluator):
            nobody = Scripted(_refuse, model="none" if self.model is None else model_folder(self.model))
            return {nobody.model: nobody}
        own = self.open_backend()
        opened = {own.model: own} | {name: each.open_backend(name) for name, each in self.models.items()}
        if evaluator is not None and (missing := sorted(evaluator.models - opened.keys())):
            hint = f"name it: --models {missing[0]}={{backend: B, model: M}}, or under `models` in --config"
            problem = (
                f"{evaluator.name} asks for the model {missing[0]!r}, and the run has {', '.join(map(repr, opened))}"
            )
            raise ConfigError(problem, field="models", hint=hint)
        return opened

    def prices(self, backends: Iterable[str]) -> dict[str, Price]:
        """The prices that are known, by the names of the backends that `open_backends` has opened."""
        own = next(iter(backends))
        texts = {own: self.price} | {name: each.price for name, each in self.models.items()}
        return {name: Price.read(text) for name, text in texts.items() if text is not None}

    def prices_asked(self, models: Iterable[str]) -> list[Price]:
        """The prices of the run's own model and of these others; none where one of them has no price."""
        settings = [self, *(self.models[name] for name in models if name in self.models)]
        texts = [each.price for each in settings if each.price is not None]
        return [Price.read(text) for text in texts] if len(texts) == len(settings) else []

    def given(self) -> dict[str, Any]:
        """What was set, as plain data by which `debate resume` makes the same settings again."""
        return self.model_dump(mode="json", exclude_unset=True)


def _with_methods_of(described: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """An evaluator's options, with the recorded method for each debate in it that is not given one."""
    kept = dict(options)
    if options.get("evaluator") == "debate":
        kept = {**_recorded_method(described), **options}
    for group in _GROUPS:
        recorded_group = _entry(described, group)
        for name, inner in _entry(options, group).items():
            if isinstance(inner, dict):
                made = _with_methods_of(_entry(recorded_group, name), cast("dict[str, Any]", inner))
                kept[group] = {**kept[group], name: made}
    return kept


def _recorded_method(described: Any) -> dict[str, Any]:
    """The method of a debate as an option; none where the record has none."""
    method = _entry(described, "aggregation").get("method")
    return {"method": method} if method in get_args(Method) else {}


def _entry(data: Any, key: str) -> dict[str, Any]:
    """The mapping at a key, or an empty one."""
    found = cast("dict[str, Any]", data).get(key) if isinstance(data, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def asks_models(evaluator: Evaluator) -> bool:
    """Whether an evaluator, or any of its members, asks a model: all do that do not say `asks_models = False`."""
    groups = (getattr(evaluator, group, {}) for group in _GROUPS)
    members = [member for group in groups for member in group.values()]
    return any(map(asks_models, members)) if members else bool(getattr(evaluator, "asks_models", True))


def _refuse(call: Call) -> str:
    raise CallError("no_model", "this evaluator said that it asks no model, and a call came")


class ServerLimits(BaseModel):
    """How much of a server's time one request may take."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    max_body: int = _setting(8 * 1024 * 1024, "Bytes of a request, at most.", "Server", ge=1)
    max_conversations: int = _setting(1000, "Conversations in a request, at most.", "Server", ge=1)
    max_tasks: int = _setting(1000, "Tasks in a request, at most.", "Server", ge=1)
    max_characters: int = _setting(1_000_000, "Characters of a task or a conversation, at most.", "Server", ge=1)
    body_seconds: float = _setting(30.0, "Seconds in which the whole request must have arrived.", "Server", gt=0)
    grace_seconds: int = _setting(
        10, "Seconds that requests have to finish once the server is told to end.", "Server", ge=0
    )


class ServeSettings(ServerLimits, RunSettings):
    """Everything that `debate serve` can be told, besides where to listen."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as the command line and the docs page show it."""

    name: str
    """Key in a YAML file."""
    annotation: Any
    """Its type, without bounds."""
    default: Any
    bounds: str
    """Such as `>= 1`; empty where there are none."""
    help: str
    panel: str
    """One of `PANELS`."""
    flag: str
    env: str | None
    """Environment variable that stands for the flag."""
    may_change: bool
    """Whether a run may be resumed with another value."""


def settings_table(of: type[RunSettings] = RunSettings) -> list[SettingRow]:
    """Every setting of a run, for the command line and the docs, by panel.

    of: `ServeSettings` adds those of a server.
    """
    rows = [_row(name, field) for name, field in of.model_fields.items()]
    return sorted(rows, key=lambda row: PANELS.index(row.panel))


def _row(name: str, field: FieldInfo) -> SettingRow:
    about = dict(cast("dict[str, Any]", field.json_schema_extra))
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    found = [(signs[side], getattr(each, side)) for each in field.metadata for side in signs if hasattr(each, side)]
    bounds = ", ".join(f"{sign} {value:g}" for sign, value in found)
    about |= {"flag": about["flag"] or f"--{name.replace('_', '-')}"}
    return SettingRow(name, field.annotation, field.default, bounds, field.description or "", **about)
