"""A process reward model with random weights, in the form of Qwen2.5-Math-PRM, for vLLM's pooling runner."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from tests.scripts_loader import load_script

STEP_TAG = "<extra_0>"


def make_tiny_reward_model(folder: Path) -> Path:
    """Write the model to `folder`."""
    import torch
    import transformers
    from transformers import Qwen2Config

    models: Any = transformers
    save: Any = importlib.import_module("safetensors.torch").save_file
    load_script("make_tiny_model").make_tiny_model(folder / "chat")
    tokenizer = models.AutoTokenizer.from_pretrained(folder / "chat")
    tokenizer.add_special_tokens({"additional_special_tokens": [STEP_TAG]})
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
    )
    weights: dict[str, Any] = {
        name: tensor
        for name, tensor in models.Qwen2ForCausalLM(config).state_dict().items()
        if name.startswith("model.")
    }
    for layer, rows in ((0, 64), (2, 2)):
        weights[f"score.{layer}.weight"] = torch.randn(rows, 64) * 0.5
        weights[f"score.{layer}.bias"] = torch.zeros(rows)
    model = folder / "reward"
    tokenizer.save_pretrained(model)
    save({name: tensor.contiguous() for name, tensor in weights.items()}, model / "model.safetensors")
    described = {**config.to_dict(), "architectures": ["Qwen2ForProcessRewardModel"], "dtype": "float32"}
    (model / "config.json").write_text(json.dumps(described))
    return model
