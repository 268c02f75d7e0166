"""Byte-level BPE tokenizers with a chat template, trained in seconds on given texts: those of the small models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


THINKING_MARKS = ("<think>", "</think>")
THINKING_TEMPLATE = CHAT_TEMPLATE.removesuffix("{% endif %}") + (
    "<think>\n{% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}"
)
"""Of a model that thinks unless it is told not to, as DeepSeek's and Qwen's templates have it."""


def train_byte_level(texts: Iterable[str], vocabulary: int, pre_tokenizer: Any, marks: Sequence[str] = ()) -> Any:
    """A tokenizer of transformers whose control tokens are the chat template's and `marks`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[*SPECIAL_TOKENS, *marks],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|endoftext|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
