"""The judge's tokenizer: digits alone, long pieces for what is said often, single bytes for everything else.

The marks of its templates are control tokens, which no content can forge. Knows nothing of the world but its texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MARKS = ("input", "context", "candidate", "turn", "of", "agent", "memory", "retry")
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|{mark}|>" for mark in MARKS)]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer(texts: Iterable[str], vocabulary: int = 640) -> Any:
    """Byte-level BPE over whole phrases: pieces may cross spaces, but never hold a digit beside something else."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL_TOKENS,
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
