"""A process reward model in vLLM, through its pooling API: one probability of being right per step.

    messages   user: the task; then one message `step` per step
    reply      JSON list of P(right), one per step

For models with vLLM's step pooling, such as Qwen2.5-Math-PRM: a tag token after each step, and [P(wrong), P(right)] at
each tag. Content goes in as token ids, so that a step cannot forge a tag.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from debate.backends.base import Call, Capacity
from debate.backends.vllm.environment import prepare_processes
from debate.concurrency.micro_batch import MicroBatcher
from debate.errors import CallError, ConfigError
from debate.flow import Completion
from debate.types import Usage

SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."
_MARKS = ("\ue000task\ue001", "\ue000steps\ue001")


class RewardModel:
    """A process reward model run by vLLM in this process; `engine_args` go to vLLM as they are.

    >>> RewardModel("Qwen/Qwen2.5-Math-PRM-7B", max_model_len=4096)

    Args:
        model: name or folder of the model.
        step_tag: the token that stands after each step.
        system: the system message that the model was trained with.
        batch_size: most candidates in one call of vLLM.
    """

    provider = "vllm"

    def __init__(
        self,
        model: str | Path,
        *,
        step_tag: str = "<extra_0>",
        system: str = SYSTEM,
        batch_size: int = 64,
        **engine_args: Any,
    ) -> None:
        self.model = str(model)
        self.capacity = Capacity(batch_size)
        self._step_tag = step_tag
        self._system = system
        self._engine_args = engine_args
        self._engine: Any = None
        self._batcher: MicroBatcher[list[int], list[float]] | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Load the model.

        Raises:
            ConfigError: when vLLM is not installed, cannot run this model, or the model has no such step tag; or when
                vLLM's processes would run this script again.
        """
        if self._engine is None:
            await prepare_processes(self.model)
            self._thread = ThreadPoolExecutor(1, "reward-model")  # vLLM's offline engine is for one thread
            self._engine = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)
            self._batcher = MicroBatcher(self._encode, size=self.capacity.slots)

    async def generate(self, call: Call) -> Completion:
        """Probabilities of the steps.

        Raises:
            CallError: context_length, wrong_count, or model_error.
        """
        assert self._batcher is not None, "start the backend first"
        ids = self._ids(call.messages)
        limit = int(self._engine.llm_engine.model_config.max_model_len)
        if len(ids) > limit:
            raise CallError("context_length", f"the steps are {len(ids)} tokens and the model reads {limit}")
        scores = await self._batcher.ask(ids)
        n_steps = len(call.messages) - 1
        if len(scores) != n_steps:
            raise CallError("wrong_count", f"the model gave {len(scores)} scores for {n_steps} steps")
        return Completion(json.dumps(scores), usage=Usage(len(ids), 0, 0, 1))

    async def aclose(self) -> None:
        """Shut the engine down."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.llm_engine.engine_core.shutdown)
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    def _load(self) -> Any:
        try:
            import transformers
            from vllm import LLM
            from vllm.config import PoolerConfig
        except ImportError as error:
            hint = "pip install 'debate-eval[gpu]', or 'debate-eval[cpu]' where there is no GPU"
            raise ConfigError(f"vLLM cannot be imported: {error}", field="backend", hint=hint) from error
        try:
            tokenizers: Any = transformers
            tokenizer: Any = tokenizers.AutoTokenizer.from_pretrained(self.model)
            tag = tokenizer.get_vocab().get(self._step_tag)
            if tag is None:
                raise ConfigError(f"{self._step_tag!r} is no token of {self.model!r}", field="step_tag")
            # vLLM's own default is the id that Qwen2.5-Math-PRM has.
            pooling = PoolerConfig(step_tag_id=tag)
            return LLM(self.model, runner="pooling", pooler_config=pooling, **self._engine_args)
        except (TypeError, ValueError, OSError) as error:
            message = f"vLLM cannot run {self.model!r}: {str(error).strip().splitlines()[0]}"
            raise ConfigError(message, field="model") from error

    def _ids(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """The chat template's own words as they are, the task and the steps as plain text between them."""
        tokenizer = self._engine.get_tokenizer()
        chat = [
            {"role": "system", "content": self._system},
            {"role": "user", "content": _MARKS[0]},
            {"role": "assistant", "content": _MARKS[1]},
        ]
        rendered: str = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=False)
        before, _, rest = rendered.partition(_MARKS[0])
        between, _, after = rest.partition(_MARKS[1])
        tag = int(tokenizer.convert_tokens_to_ids(self._step_tag))

        def ours(text: str) -> list[int]:
            return cast("list[int]", tokenizer.encode(text, add_special_tokens=False))

        def content(text: str) -> list[int]:
            return cast("list[int]", tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

        ids = [*ours(before), *content(messages[0]["content"]), *ours(between)]
        for message in messages[1:]:
            ids += [*content(message["content"]), tag]
        return [*ids, *ours(after)]

    async def _encode(self, batch: list[list[int]]) -> list[list[float]]:
        assert self._thread is not None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encode_now, batch)

    def _encode_now(self, batch: list[list[int]]) -> list[list[float]]:
        prompts = [{"prompt_token_ids": ids} for ids in batch]
        try:
            outputs = self._engine.encode(prompts, pooling_task="token_classify", use_tqdm=False)
        except ValueError as error:
            raise CallError("model_error", str(error)) from error
        return [[float(pair[1]) for pair in output.outputs.data.tolist()] for output in outputs]
