"""Make a tiny Llama with random weights, a tokenizer and a chat template: a model that is always there.

    python scripts/make_tiny_model.py DIR

Takes a few seconds and downloads nothing. What it says is noise: it exists so that the whole machinery (vLLM, prefix
cache, structured decoding) can run for real where no weights are to be had.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from byte_level import THINKING_MARKS, THINKING_TEMPLATE, train_byte_level

from debate.bundled_judge import demo_tasks

REPOSITORY = Path(__file__).resolve().parents[1]


def make_tiny_model(folder: Path, *, context_length: int = 32768, seed: int = 0, thinks: bool = False) -> Path:
    """Write the model to `folder` unless it is there already.

    thinks: whether its chat template opens a think block, as that of a reasoning model.
    """
    if (folder / "model.safetensors").is_file():
        return folder
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    tokenizer = _tokenizer(thinks=thinks)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context_length,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=2,
    )
    model: Any = LlamaForCausalLM(config)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder


def _tokenizer(*, thinks: bool) -> Any:
    """Byte-level BPE, trained on the project's own templates, personas and tasks."""
    from tokenizers import pre_tokenizers

    marks = THINKING_MARKS if thinks else ()
    tokenizer = train_byte_level(_corpus(), 2048, pre_tokenizers.ByteLevel(add_prefix_space=False), marks)
    if thinks:
        tokenizer.chat_template = THINKING_TEMPLATE
    return tokenizer


def _corpus() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "templates").rglob("*.j2"))]
    texts += [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "personas").glob("*.yaml"))]
    for tasks in (demo_tasks(), REPOSITORY / "scripts" / "general_tasks.jsonl"):
        for line in tasks.read_text(encoding="utf-8").splitlines():
            task = json.loads(line)
            texts += [task["x"], *task["candidates"]]
    components = ("confidence", "relevance", "accuracy", "completeness", "timeliness")
    scores = ", ".join(f'"{name}": 7.5' for name in components)
    return [*texts, *(['{"comment": "The", "scores": {' + scores + '}}, "candidates": {"A": '] * 50)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--context-length", type=int, default=32768)
    parser.add_argument("--thinks", action="store_true", help="with a think block in its chat template")
    arguments = parser.parse_args()
    print(make_tiny_model(arguments.folder, context_length=arguments.context_length, thinks=arguments.thinks))
