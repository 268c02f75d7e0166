"""vLLM in this process: one continuously batched engine for everything that is asked.

Prompts go in as token ids (see `prompt_tokens`), replies are decoded under the call's JSON schema, prefixes are cached.
vLLM is imported when the backend starts. Each call is one request.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import itertools
import json
import signal
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, cast

from debate.backends.base import Call, Capacity, check_is_chat
from debate.backends.thinking import Thinking, thinking_settings, with_thinking_apart
from debate.backends.vllm.environment import prepare_processes
from debate.backends.vllm.label_tokens import LabelTokens, count_distinct, places, spell
from debate.backends.vllm.process_guard import OrphanReaper
from debate.backends.vllm.prompt_tokens import PromptTokenizer
from debate.backends.vllm.read_out import Reader, one_token, reading
from debate.backends.vllm.thinking import END_TOKENS, ThinkingParser, parser_name
from debate.concurrency.daemon_thread import in_daemon_thread
from debate.errors import BackendUnavailableError, CallError, ConfigError
from debate.flow import Completion, Prompt, ReadOut
from debate.hashing import ById, derive
from debate.types import Usage

_DEFAULTS: dict[str, Any] = {
    "enable_prefix_caching": True,
    "use_tqdm_on_load": False,
    # Without it a weak model fills its reply with white space between the tokens of the JSON.
    "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
}
_LOADED = ("_engine", "_splice", "_parser", "_parser_name", "capacity", "_ids", "_shapes", "_spelled", "_guard")
"""What a backend has once its engine is started."""
BUILT_IN = "built-in"
"""What the bundled judge is called wherever a model is named; its folder is in `debate.bundled_judge`."""
_SHAPES = 128
"""Kinds of requests whose parameters are kept."""


class VLLM:
    """A model run by vLLM in process.

    >>> VLLM("meta-llama/Llama-3.1-8B-Instruct", tensor_parallel_size=2, max_model_len=16384)
    >>> VLLM("Qwen/Qwen3-8B", thinking="on", thinking_tokens=2048)

    A model that thinks does so before the schema holds; where its thinking ends, vLLM's `reasoning_parser` tells. It is
    an engine argument, and need not be given for models that write `<think>`.

    Args:
        model: name or folder of the model.
        stat_loggers: what vLLM reports to.
        thinking, thinking_tokens, chat_template_kwargs: see `debate.backends.thinking.ThinkingSettings`.
        engine_args: go to vLLM as they are.

    Raises:
        ConfigError: when vLLM is not installed, or `model` is a path at which there is no model.
    """

    is_chat = True
    reads_labels = True

    def __init__(
        self,
        model: str | Path,
        *,
        stat_loggers: Sequence[Any] = (),
        thinking: Thinking | bool = "auto",
        thinking_tokens: int | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **engine_args: Any,
    ) -> None:
        self.model = str(model)
        self._engine_args = {**_DEFAULTS, **engine_args}
        self._thinking = thinking_settings(thinking, thinking_tokens, chat_template_kwargs)
        is_auto = self._thinking.thinking == "auto"
        self.thinks = self._thinking.is_asked_for or (is_auto and bool(engine_args.get("reasoning_parser")))
        self.reply_settings = self._thinking.shaping()
        self._parser_name = ""
        self._parser: ThinkingParser | None = None
        self._engine: Any = None
        self._splice: PromptTokenizer | None = None
        self.capacity = Capacity(slots=256)
        self._ids = itertools.count()
        self._shapes: OrderedDict[Any, Any] = OrderedDict()
        self._spelled: dict[tuple[str, ...], LabelTokens] = {}
        # Other log-probabilities are those after temperature and top-p, or none.
        self.reads_labels = self._engine_args.get("logprobs_mode", "raw_logprobs") == "raw_logprobs"
        self._stat_loggers = list(stat_loggers)
        self._loads = (type(self), self.model, self._engine_args, self._stat_loggers, self._thinking)
        self._guard = OrphanReaper()
        check_model(self.model)

    @property
    def engine(self) -> Any:
        """VLLM's own engine, once started."""
        assert self._engine is not None, "start the backend first"
        return self._engine

    def token_ids(self, prompt: Prompt) -> list[int]:
        """The ids that a prompt is sent as."""
        assert self._splice is not None, "start the backend first"
        return self._splice.encode(prompt)

    async def start(self) -> None:
        """Load the model. Takes from seconds to minutes.

        Raises:
            ConfigError: when vLLM refuses the model or an argument, or its processes would run this script again.
        """
        if self._engine is not None:
            return
        await prepare_processes(self.model)
        loading = in_daemon_thread(self._load, "vllm-load")
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            # The thread cannot be stopped; what it brings up has no owner and is shut down.
            await asyncio.wait([loading])
            await self.aclose()
            raise
        tokenizer, variables = self.engine.get_tokenizer(), self._thinking.template_variables()
        self._splice, self.capacity = PromptTokenizer(tokenizer, variables), self._read_capacity()
        self._parser = ThinkingParser(self._parser_name, tokenizer, variables) if self.thinks else None

    async def generate(self, call: Call) -> Completion:
        """Send one request and wait for its end; cancelling it aborts the request in the engine."""
        check_is_chat(call.prompt, self.model)
        ids = self.token_ids(call.prompt)
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            if call.read_out is not None:
                return await self._read_out(call, call.read_out, ids)
            params = self.sampling_params(call, len(ids))
            said = await self.request(
                ids,
                params,
                session=call.session,
                replies_ahead=call.replies_ahead,
                trace_headers=call.trace_headers,
            )
            return with_thinking_apart(said)
        except EngineDeadError as error:
            raise BackendUnavailableError(
                f"the vLLM engine has died: {error}", hint="its own messages above say more", restartable=True
            ) from error
        except (asyncio.CancelledError, CallError, ConfigError):
            raise
        except Exception as error:
            raise CallError("engine_refused", f"vLLM refused the request: {error}") from error

    def is_equal(self, other: object) -> bool:
        """Whether the other loads the same model with the same arguments."""
        return isinstance(other, VLLM) and self._loads == other._loads

    def take_over(self, other: VLLM) -> None:
        """Have the engine that an equal backend has started; it is the other's to be started anew."""
        if other is not self:
            fresh = VLLM(self.model, stat_loggers=self._stat_loggers, **self._engine_args)
            for name in _LOADED:
                setattr(self, name, getattr(other, name))
                setattr(other, name, getattr(fresh, name))

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, once started."""
        return len(self.engine.get_tokenizer().encode(text, add_special_tokens=False))

    async def aclose(self) -> None:
        """Shut the engine and its processes down."""
        engine, self._engine = self._engine, None
        if engine is not None:
            if engine.output_handler is not None:
                engine.output_handler.cancel()
            await in_daemon_thread(engine.shutdown, "vllm-shutdown")
            # Its cycles would otherwise be broken at interpreter exit, when vLLM's modules are gone.
            del engine
            gc.collect()
        self._guard.dismiss()

    async def _read_out(self, call: Call, read_out: ReadOut, ids: list[int]) -> Completion:
        """Answer with distributions: of the continuations, or of the values in a reply that is decoded as always."""
        assert self._splice is not None
        labels = self._label_tokens(read_out.labels)

        async def send(tail: list[int], shared: int | None) -> Any:
            params = self._shape(("read", labels, shared), lambda: {**one_token(shared), **reading(labels)})
            return await self._final([*ids, *tail], params, call.session, call.replies_ahead, call.trace_headers)

        reader = Reader(labels, send)
        if read_out.continuations:
            tails = [self._splice.encode_blocks(blocks) for blocks in read_out.continuations]
            self._room(len(ids) + max(map(len, tails)))
            found = await reader.read_all(tails, [{} for _ in tails])
            return Completion("", usage=reader.usage(len(ids) + count_distinct(tails)), distributions=tuple(found))
        params = self.sampling_params(call, len(ids))
        final = await self._final(ids, params, call.session, call.replies_ahead, call.trace_headers)
        output, said = final.outputs[0], self._said(final, ids)
        at = [None if n is None else said.begin + n for n in places(said.text, said.ends)]
        found = await reader.read_all([output.token_ids[:n] for n in at], [reader.in_reply(final, n) for n in at])
        usage = replace(reader.usage(len(ids), final), thinking_tokens=said.begin)
        read, thinking = tuple(found), said.thinking
        return Completion(said.text, output.finish_reason, usage, distributions=read, thinking=thinking)

    def _said(self, final: Any, ids: list[int]) -> _Said:
        """What an output says, its thinking and its reply told apart."""
        assert self._splice is not None
        output = final.outputs[0]
        tokens = output.token_ids[:-1] if output.finish_reason == "stop" else output.token_ids
        if self._parser is None:
            return _Said(0, "", *self._splice.decode(tokens, ids))
        end = self._parser.end(ids, tokens)
        begin = len(tokens) if end is None else end
        thinking = self._parser.bare(self._splice.decode(tokens[:begin], ids)[0])
        # Behind the mark alone: the thinking may end inside a character, which a decoder would go on with.
        return _Said(begin, thinking, *self._splice.decode(tokens[begin:], tokens[begin - 1 : begin] if begin else ids))

    def _label_tokens(self, labels: tuple[str, ...]) -> LabelTokens:
        found = self._spelled.get(labels)
        if found is None:
            splice = self._splice
            assert splice is not None, "start the backend first"
            found = self._spelled[labels] = spell(labels, splice.encode_text, lambda tokens: splice.decode(tokens)[0])
        return found

    async def request(
        self,
        ids: list[int],
        params: Any,
        *,
        session: str = "",
        replies_ahead: int = 0,
        trace_headers: Mapping[str, str] | None = None,
    ) -> Completion:
        """One request as it is: token ids and vLLM's own `SamplingParams`. Raises what vLLM raises."""
        final = await self._final(ids, params, session, replies_ahead, trace_headers)
        output = final.outputs[0]
        usage = Usage(len(ids), final.num_cached_tokens or 0, len(output.token_ids), 1)
        if self._parser is None:
            return Completion(output.text, output.finish_reason, usage)
        said = self._said(final, ids)
        usage = replace(usage, thinking_tokens=said.begin)
        return Completion(said.text.lstrip(), output.finish_reason, usage, thinking=said.thinking)

    async def _final(
        self,
        ids: list[int],
        params: Any,
        session: str,
        replies_ahead: int,
        trace_headers: Mapping[str, str] | None,
    ) -> Any:
        """VLLM's last output of one request.

        Requests of a `session` go to the same of several engines; those with more `replies_ahead` go first, where vLLM
        schedules by priority. Where vLLM traces, its span of the request is under that of `trace_headers`.
        """
        config = self.engine.vllm_config
        where: dict[str, Any] = {} if self._parser is None else {"reasoning_parser_kwargs": self._parser.arguments}
        if session and config.parallel_config.data_parallel_size > 1:
            where["data_parallel_rank"] = derive(session) % config.parallel_config.data_parallel_size
        if config.scheduler_config.policy == "priority":
            where["priority"] = -replies_ahead
        if trace_headers and config.observability_config.otlp_traces_endpoint is not None:
            where["trace_headers"] = trace_headers
        # With its type said, vLLM takes the prompt as it is; otherwise it would go through a thread of its renderer.
        prompt = {"type": "token", "prompt_token_ids": ids}
        parts = [part async for part in self.engine.generate(prompt, params, f"debate-{next(self._ids)}", **where)]
        final = parts[-1]
        if (reason := final.outputs[0].finish_reason) not in ("stop", "length"):
            raise CallError("engine_refused", f"vLLM ended the request with {reason!r}")
        return final

    def sampling_params(self, call: Call, n_prompt: int) -> Any:
        """VLLM's parameters for a call with a prompt of so many tokens: a copy of those of its shape, checked once.

        Checking a schema takes 15 to 50 ms of this process, and vLLM would do it for every request.

        Raises:
            CallError: context_length.
        """
        room = self._room(n_prompt)
        labels = None if call.read_out is None else call.read_out.labels
        shape = self._shape((call.sampling, ById(call.schema), labels), lambda: self._of_reply(call))
        params = copy.copy(shape)
        params.seed = call.seed
        thinking = self.capacity.thinking_tokens
        said = params.max_tokens or max(1, room - thinking)
        params.max_tokens = min(said + thinking, room)
        if self._has_thinking_budget:
            params.thinking_token_budget = max(0, min(thinking, params.max_tokens - said) - END_TOKENS)
        return params

    @property
    def _has_thinking_budget(self) -> bool:
        """Whether vLLM can end thinking that has used up its tokens."""
        config = self.engine.vllm_config.reasoning_config
        return self.thinks and config is not None and bool(config.enabled)

    def _room(self, n_prompt: int) -> int:
        """Tokens that a reply may have after a prompt of so many, at least 1."""
        room = (self.capacity.context_length or n_prompt + 1) - n_prompt
        if room < 1:
            problem = f"the prompt has {n_prompt} tokens and the model takes {self.capacity.context_length}"
            hint = "show less of the debate with history=1, or raise max_model_len"
            raise CallError("context_length", problem, hint=hint)
        return room

    def _shape(self, key: Hashable, arguments: Callable[[], dict[str, Any]]) -> Any:
        """VLLM's parameters for requests of a kind, checked when they are made and kept under `key`."""
        found = self._shapes.get(key)
        if found is None:
            from vllm.sampling_params import RequestOutputKind

            found = _checked_params()(output_kind=RequestOutputKind.FINAL_ONLY, skip_clone=True, **arguments())
            config, tokenizer = self.engine.vllm_config, self.engine.get_tokenizer()
            found.check(config.model_config, config.speculative_config, config.structured_outputs_config, tokenizer)
            self._shapes[key] = found
            if len(self._shapes) > _SHAPES:
                self._shapes.popitem(last=False)
        return found

    def _of_reply(self, call: Call) -> dict[str, Any]:
        from vllm.sampling_params import StructuredOutputsParams

        text = None if call.schema is None else json.dumps(call.schema, separators=(",", ":"))
        read = {} if call.read_out is None else reading(self._label_tokens(call.read_out.labels))
        return {
            "max_tokens": None,
            **call.sampling.to_dict(),
            "seed": call.seed,  # vLLM tells by it whether requests of this kind are seeded
            "structured_outputs": None if text is None else StructuredOutputsParams(json=text),
            "detokenize": self._parser is None,  # else thinking and reply are decoded apart
            **read,
        }

    def _read_capacity(self) -> Capacity:
        config = self.engine.vllm_config
        cache = config.cache_config
        return Capacity(
            slots=config.scheduler_config.max_num_seqs * config.parallel_config.data_parallel_size,
            # VLLM has summed the blocks of its engines.
            cache_tokens=cache.num_gpu_blocks * cache.block_size if cache.num_gpu_blocks else None,
            context_length=config.model_config.max_model_len,
            thinking_tokens=self._thinking.tokens(thinks=True) + END_TOKENS if self.thinks else 0,
        )

    def _load(self) -> None:
        """Make the engine.

        It is stored, not returned: frames around this call live on in vLLM's tracebacks, and an engine that they hold
        is torn down at interpreter exit, too late to go quietly.
        """
        # The engine's processes inherit this thread's mask: Ctrl-C is ours to handle, and they end when told to. The
        # tracker comes first because starting it lifts the mask.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            hint = "pip install 'debate-eval[gpu]', or 'debate-eval[cpu]' where there is no GPU"
            raise ConfigError(f"vLLM cannot be imported: {error}", hint=hint) from error
        arguments = dict(self._engine_args)
        try:
            arguments = self._with_reasoning_parser(arguments)
            if current_platform.is_cpu():
                arguments = _safe_seeds_on_cpu(self.model, arguments)
            settings = AsyncEngineArgs(model=self.model, **arguments)
            with self._guard.marking():
                self._engine = AsyncLLM.from_engine_args(settings, stat_loggers=self._stat_loggers)
        except (TypeError, ValueError, OSError) as error:
            raise ConfigError(f"vLLM cannot load {self.model!r}: {_first_lines(error)}") from error
        except RuntimeError as error:
            raise BackendUnavailableError(f"the vLLM engine did not start: {_first_lines(error)}") from error

    def _with_reasoning_parser(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the parser that tells where thinking ends; without one for a model that does not think.

        Raises:
            ConfigError: where none fits.
        """
        given = str(arguments.pop("reasoning_parser", ""))
        if not self.thinks:
            return arguments
        from vllm import tokenizers
        from vllm.config import StructuredOutputsConfig

        plugin = str(arguments.get("reasoning_parser_plugin") or "")
        library: Any = tokenizers
        tokenizer = library.cached_tokenizer_from_config(_model_config(self.model, arguments))
        self._parser_name = parser_name(given, plugin, self.model, tokenizer.get_vocab())
        config: Any = arguments["structured_outputs_config"]
        if isinstance(config, Mapping):  # vLLM sets the parser in it, which it cannot in a mapping
            config = StructuredOutputsConfig(**cast("Mapping[str, Any]", config))
        return {**arguments, "reasoning_parser": self._parser_name, "structured_outputs_config": config}


class _Said(NamedTuple):
    """What a reply says."""

    begin: int
    """Number of its tokens that come before the text: those of the thinking."""
    thinking: str
    text: str
    ends: list[int]
    """Where in the text each of its tokens ends, in characters."""


def check_model(model: str) -> None:
    """Refuse a path at which there is no model, and what is nearly `built-in`, before a hub is asked.

    Any other name of a hub's can only be judged by loading it.

    Raises:
        ConfigError: with what was probably meant.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(f"there is no config.json in {model}", field="model", hint="give a Hugging Face folder")
        return
    looks_like_path = model.startswith((".", "/", "~")) or model.count("/") > 1
    if not path.exists() and looks_like_path:
        raise ConfigError(f"no such folder: {model}", field="model")
    is_near = "/" not in model and bool(get_close_matches(model.lower(), [BUILT_IN], cutoff=0.8))
    if is_near and not path.exists():
        is_exact = model == BUILT_IN
        hint = f"the bundled judge is loaded by Engine({BUILT_IN!r})" if is_exact else f"did you mean {BUILT_IN!r}?"
        raise ConfigError(f"there is no model {model!r}", field="model", hint=hint)


def _safe_seeds_on_cpu(model: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments under which a seeded request cannot kill vLLM's CPU engine.

    Its sampler rewinds the seed's generator whenever a prompt is prefilled in chunks, which PyTorch's CPU generator
    cannot do. So prompts are prefilled whole, and a batch takes the longest one.
    """
    if arguments.get("enable_chunked_prefill"):
        problem = "chunked prefill and seeded sampling do not go together on a CPU"
        hint = "leave it out: it is switched off on CPUs"
        raise ConfigError(problem, field="enable_chunked_prefill", hint=hint)
    longest: int = _model_config(model, arguments).max_model_len
    needed = max(longest, arguments.get("max_num_batched_tokens") or 0)
    return {**arguments, "enable_chunked_prefill": False, "max_num_batched_tokens": needed}


def _model_config(model: str, arguments: Mapping[str, Any]) -> Any:
    """VLLM's configuration of a model, before it is loaded."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = {key: arguments[key] for key in ("max_model_len", "tokenizer", "trust_remote_code") if key in arguments}
    return AsyncEngineArgs(model=model, **known).create_model_config()


@functools.cache
def _checked_params() -> type[Any]:
    """VLLM's `SamplingParams`, checked when `check` is called and not by vLLM with every request."""
    from vllm import SamplingParams

    class CheckedParams(SamplingParams):
        check = SamplingParams.verify

        def verify(self, *_: Any, **__: Any) -> None: ...

    return CheckedParams


def _first_lines(error: BaseException, n: int = 3) -> str:
    return " ".join(str(error).strip().splitlines()[:n]) or type(error).__name__
