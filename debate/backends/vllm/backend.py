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
from difflib import get_close_matches
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from debate.backends.base import Call, Capacity, check_is_chat
from debate.backends.vllm.environment import prepare_processes
from debate.backends.vllm.label_tokens import LabelTokens, count_distinct, places, spell
from debate.backends.vllm.process_guard import OrphanReaper
from debate.backends.vllm.prompt_tokens import PromptTokenizer
from debate.backends.vllm.read_out import Reader, one_token, reading
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
_LOADED = ("_engine", "_splice", "capacity", "_ids", "_shapes", "_spelled", "_guard")
"""What a backend has once its engine is started."""
BUILT_IN = "built-in"
"""What the bundled judge is called wherever a model is named; its folder is in `debate.bundled_judge`."""
_SHAPES = 128
"""Kinds of requests whose parameters are kept."""


class VLLM:
    """A model run by vLLM in process; `engine_args` go to vLLM as they are, and `stat_loggers` are what it reports to.

    >>> VLLM("meta-llama/Llama-3.1-8B-Instruct", tensor_parallel_size=2, max_model_len=16384)

    Raises:
        ConfigError: when vLLM is not installed, or `model` is a path at which there is no model.
    """

    is_chat = True
    reads_labels = True

    def __init__(self, model: str | Path, *, stat_loggers: Sequence[Any] = (), **engine_args: Any) -> None:
        self.model = str(model)
        self._engine_args = {**_DEFAULTS, **engine_args}
        self._engine: Any = None
        self._splice: PromptTokenizer | None = None
        self.capacity = Capacity(slots=256)
        self._ids = itertools.count()
        self._shapes: OrderedDict[Any, Any] = OrderedDict()
        self._spelled: dict[tuple[str, ...], LabelTokens] = {}
        # Other log-probabilities are those after temperature and top-p, or none.
        self.reads_labels = self._engine_args.get("logprobs_mode", "raw_logprobs") == "raw_logprobs"
        self._stat_loggers = list(stat_loggers)
        self._loads = (type(self), self.model, self._engine_args, self._stat_loggers)
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
        self._splice, self.capacity = PromptTokenizer(self.engine.get_tokenizer()), self._read_capacity()

    async def generate(self, call: Call) -> Completion:
        """Send one request and wait for its end; cancelling it aborts the request in the engine."""
        check_is_chat(call.prompt, self.model)
        ids = self.token_ids(call.prompt)
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            if call.read_out is not None:
                return await self._read_out(call, call.read_out, ids)
            params = self.sampling_params(call, len(ids))
            return await self.request(ids, params, session=call.session, replies_ahead=call.replies_ahead)
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
            return await self._final([*ids, *tail], params, call.session, call.replies_ahead)

        reader = Reader(labels, send)
        if read_out.continuations:
            tails = [self._splice.encode_blocks(blocks) for blocks in read_out.continuations]
            self._room(len(ids) + max(map(len, tails)))
            found = await reader.read_all(tails, [{} for _ in tails])
            return Completion("", usage=reader.usage(len(ids) + count_distinct(tails)), distributions=tuple(found))
        final = await self._final(ids, self.sampling_params(call, len(ids)), call.session, call.replies_ahead)
        tokens, reason = final.outputs[0].token_ids, final.outputs[0].finish_reason
        text, ends = self._splice.decode(tokens[:-1] if reason == "stop" else tokens, ids)
        at = places(text, ends)
        found = await reader.read_all([tokens[:n] for n in at], [reader.in_reply(final, n) for n in at])
        return Completion(text, reason, reader.usage(len(ids), final), distributions=tuple(found))

    def _label_tokens(self, labels: tuple[str, ...]) -> LabelTokens:
        found = self._spelled.get(labels)
        if found is None:
            splice = self._splice
            assert splice is not None, "start the backend first"
            found = self._spelled[labels] = spell(labels, splice.encode_text, lambda tokens: splice.decode(tokens)[0])
        return found

    async def request(self, ids: list[int], params: Any, *, session: str = "", replies_ahead: int = 0) -> Completion:
        """One request as it is: token ids and vLLM's own `SamplingParams`. Raises what vLLM raises."""
        final = await self._final(ids, params, session, replies_ahead)
        output = final.outputs[0]
        usage = Usage(len(ids), final.num_cached_tokens or 0, len(output.token_ids), 1)
        return Completion(output.text, output.finish_reason, usage)

    async def _final(self, ids: list[int], params: Any, session: str, replies_ahead: int) -> Any:
        """VLLM's last output of one request.

        Requests of a `session` go to the same of several engines; those with more `replies_ahead` go first, where vLLM
        schedules by priority.
        """
        config = self.engine.vllm_config
        where: dict[str, int] = {}
        if session and config.parallel_config.data_parallel_size > 1:
            where["data_parallel_rank"] = derive(session) % config.parallel_config.data_parallel_size
        if config.scheduler_config.policy == "priority":
            where["priority"] = -replies_ahead
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
        params.max_tokens = min(params.max_tokens or room, room)
        return params

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
            if current_platform.is_cpu():
                arguments = _safe_seeds_on_cpu(self.model, arguments)
            settings = AsyncEngineArgs(model=self.model, **arguments)
            with self._guard.marking():
                self._engine = AsyncLLM.from_engine_args(settings, stat_loggers=self._stat_loggers)
        except (TypeError, ValueError, OSError) as error:
            raise ConfigError(f"vLLM cannot load {self.model!r}: {_first_lines(error)}") from error
        except RuntimeError as error:
            raise BackendUnavailableError(f"the vLLM engine did not start: {_first_lines(error)}") from error


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
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = {key: arguments[key] for key in ("max_model_len", "tokenizer", "trust_remote_code") if key in arguments}
    longest: int = AsyncEngineArgs(model=model, **known).create_model_config().max_model_len
    needed = max(longest, arguments.get("max_num_batched_tokens") or 0)
    return {**arguments, "enable_chunked_prefill": False, "max_num_batched_tokens": needed}


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
