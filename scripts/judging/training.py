"""The model and its training: a small Llama, AdamW, a schedule by time or steps, checkpoints to resume from.

Knows nothing of the world but what batches hold.
"""

from __future__ import annotations

import copy
import json
import math
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, cast, get_args

from debate import bundled_judge
from debate.bundled_judge import FILE
from judging.batches import Batch, Encoder, Row, in_background, padded
from judging.facts import FIRST, LAST, NAMES
from judging.questions import Asked, make_asked
from judging.samples import Sample, make_sample
from judging.talk import Style
from judging.tokens import train_tokenizer, with_words

_PIECES = (*FIRST, *LAST, *NAMES)
"""Pieces of the tokenizer whatever its texts are: a name is one token, and its syllables come before it."""
_MARKS = re.compile(r"<\|\w+\|>")


@dataclass(frozen=True)
class Plan:
    """How the judge is trained."""

    folder: Path
    minutes: float | None = None
    steps: int = 2000
    seed: int = 0
    device: str = "cpu"
    hidden: int = 192
    layers: int = 4
    tokens: int = 2048
    """In one batch."""
    rate: float = 2e-3
    threads: int = 2
    start: Path | None = None
    """Folder of a model that is taught on, with its tokenizer, instead of a new one."""
    keep: float = 0.0
    """How much of the weights of `start` is kept at the end: they are averaged with those that were learnt."""
    compiled: bool = True
    """Whether steps are compiled: half a minute per length of rows, and then steps are faster by half."""


def make_model(tokenizer: Any, plan: Plan) -> Any:
    """A Llama with heads of 32, or the one to start from with room for the tokenizer's pieces."""
    from transformers import LlamaConfig, LlamaForCausalLM

    if plan.start is not None:
        start: Any = LlamaForCausalLM
        model = start.from_pretrained(plan.start, dtype="float32")  # whatever its file is in
        _widen(model, tokenizer)
        return _deepened(model, plan.layers)
    heads = plan.hidden // 32
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=plan.hidden,
            intermediate_size=3 * plan.hidden,
            num_hidden_layers=plan.layers,
            num_attention_heads=heads,
            num_key_value_heads=heads // 2 if heads % 2 == 0 else heads,
            head_dim=32,
            max_position_embeddings=16384,  # trained on about 900
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=2,
            pad_token_id=0,
        )
    )


def _widen(model: Any, tokenizer: Any) -> None:
    """Give the model embeddings of the tokens that are new to it: drawn as if they were further syllables of names."""
    torch: Any = import_module("torch")
    n = model.config.vocab_size
    if len(tokenizer) == n:
        return
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    rows = model.get_input_embeddings().weight.data
    known = rows[tokenizer.convert_tokens_to_ids(list(FIRST))]
    rows[n:] = known.mean(0) + known.std(0) * torch.randn(len(tokenizer) - n, rows.shape[1])


def _deepened(model: Any, layers: int) -> Any:
    """The model with further layers among its own, which at first change nothing (Chen et al. 2016, Net2Net)."""
    torch: Any = import_module("torch")
    found = list(model.model.layers)
    for n in range(layers - len(found)):
        made = copy.deepcopy(found[2 * n + 1])
        for output in (made.self_attn.o_proj, made.mlp.down_proj):
            torch.nn.init.zeros_(output.weight)
        found.insert(2 * n + 2 + n % 2, made)
    model.model.layers = torch.nn.ModuleList(found)
    model.config.num_hidden_layers = len(found)
    for n, layer in enumerate(found):
        layer.self_attn.layer_idx = n
    return model


def make_tokenizer(plan: Plan) -> Any:
    """A tokenizer for the texts of 4,000 samples, or the one to start from; each name is one token."""
    models: Any = import_module("transformers")
    if plan.start is not None:
        return with_words(models.AutoTokenizer.from_pretrained(plan.start), _PIECES)
    random = Random(f"tokenizer-{plan.seed}")
    samples = [make_asked(random) if n % 4 == 0 else make_sample(random) for n in range(4000)]
    found = [text for sample in samples for text in (*_pieces(sample), *_replies(sample))]
    frame = ["system\n", "\n", "user\n", "assistant\n"] * 4000
    return with_words(train_tokenizer([*frame, *found], vocabulary=800), _PIECES)


def _pieces(sample: Sample | Asked) -> list[str]:
    """The texts of a prompt between its marks."""
    blocks = (*sample.prompt.system, *sample.prompt.user)
    return [part for block in blocks for segment in block for part in _MARKS.split(segment.text)]


def _replies(sample: Sample | Asked) -> list[str]:
    if isinstance(sample, Asked):
        return [sample.reply]
    return [sample.said.reply(sample.labels, style) for style in get_args(Style)]


def train(plan: Plan, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Train, or go on from the folder's checkpoint, until the plan's minutes or steps are over; writes the model."""
    import torch
    import transformers

    models: Any = transformers
    torch.set_num_threads(plan.threads)
    torch.manual_seed(plan.seed)  # pyright: ignore[reportUnknownMemberType]
    plan.folder.mkdir(parents=True, exist_ok=True)
    if not (plan.folder / "tokenizer.json").is_file():
        make_tokenizer(plan).save_pretrained(plan.folder)
    tokenizer = models.AutoTokenizer.from_pretrained(plan.folder)
    model = make_model(tokenizer, plan).to(plan.device)
    model.set_attn_implementation("eager")  # quicker than fused attention with the masks of trees
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.05, fused=True)
    step, spent = _resume(plan, model, optimizer)
    _say(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens, from step {step}")
    queue, shared = in_background(str(plan.folder), f"train-{plan.seed}-{step}", plan.tokens)
    encoder, started, saved, losses = Encoder(tokenizer), time.monotonic() - spent, time.monotonic(), list[float]()
    core = _compiled(hidden_states(model)) if plan.compiled else hidden_states(model)
    while not is_stopped() and (progress := _progress(plan, step, time.monotonic() - started)) < 1:
        shared.value = progress if plan.start is None else 0.22 + 0.78 * progress
        for group in optimizer.param_groups:
            group["lr"] = plan.rate * min(1, (step + 1) / 60) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        losses.append(_step(model, core, optimizer, queue.get(), plan.device))
        step += 1
        if step % 100 == 0:
            seconds = time.monotonic() - started
            _say(f"step {step}  {seconds:.0f} s  loss {sum(losses[-100:]) / 100:.4f}")
        if time.monotonic() - saved > 300:
            saved = time.monotonic()
            _save(plan, model, optimizer, step, saved - started)
            _say(json.dumps(held_out(model, encoder, plan.device, 64)))
    _save(plan, model, optimizer, step, time.monotonic() - started)
    if is_stopped():
        _say(f"stopped at step {step}; the same command goes on from there")
        return
    if plan.start is not None and plan.keep:
        average(model, make_model(tokenizer, plan).to(plan.device), plan.keep)
        model.save_pretrained(plan.folder)
    _say(json.dumps(held_out(model, encoder, plan.device, 150)))


def average(model: Any, start: Any, keep: float) -> None:
    """Put a share of another model's weights in a model's (Wortsman et al. 2022, WiSE-FT).

    What was taught on keeps most of what it learnt and gets back most of what it forgot, where both have one start.

    Args:
        model: is changed.
        start: of the same shape.
        keep: share of `start`, from 0 to 1.
    """
    torch: Any = import_module("torch")
    with torch.no_grad():
        for learnt, before in zip(model.parameters(), start.parameters(), strict=True):
            learnt.lerp_(before, keep)


def _progress(plan: Plan, step: int, seconds: float) -> float:
    return step / plan.steps if plan.minutes is None else seconds / (60 * plan.minutes)


def _step(model: Any, core: Any, optimizer: Any, batch: Batch, device: str) -> float:
    torch: Any = import_module("torch")
    ids, weights, before, sees, depth = (torch.from_numpy(each).to(device) for each in batch)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=_has_bfloat16(device)):
        hidden = core(ids, sees, depth)  # (B, T, H)
        rows, places = (weights > 0).nonzero(as_tuple=True)
        weight = weights[rows, places]
        logits = model.lm_head(hidden[rows, before[rows, places]])
    losses = torch.nn.functional.cross_entropy(logits.float(), ids[rows, places], reduction="none")
    loss = (losses * weight).sum() / weight.sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.item())


def _has_bfloat16(device: str) -> bool:
    """Whether bfloat16 halves the time; a CPU without its instructions takes fifty times as long."""
    cpu: Any = import_module("torch").cpu
    return device != "cpu" or bool(cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported())


def hidden_states(model: Any) -> Callable[[Any, Any, Any], Any]:
    """The last hidden states (B, T, H) of rows that are trees: each token attends to those on its way to the root."""

    def of_rows(ids: Any, sees: Any, depth: Any) -> Any:
        torch: Any = import_module("torch")
        mask = torch.zeros(sees.shape, device=sees.device).masked_fill_(~sees, torch.finfo(torch.float32).min)
        attends = mask[:, None]  # (B, 1, T, T), added to the attention's logits
        return model.model(input_ids=ids, attention_mask=attends, position_ids=depth, use_cache=False).last_hidden_state

    return of_rows


def held_out(model: Any, encoder: Encoder, device: str, n: int) -> dict[str, float]:
    """Share of fresh samples whose next tokens, given the ideal ones before, are all right, by form of the reply.

    What belongs to another form does not count as a guess, as under a grammar. Of the named reply, also how many
    workings are right by sort of question; of the cells, the share of single scores.
    """
    torch: Any = import_module("torch")
    random, hits = Random("held-out"), defaultdict[str, list[bool]](list)
    for k in range(n):
        sample = make_asked(random) if k % 3 == 0 else make_sample(random)
        row, places = encoder.row(sample)
        ids, _, _, sees, depth = (torch.from_numpy(each).to(device) for each in padded([row]))
        with torch.no_grad():
            logits = model.lm_head(hidden_states(model)(ids, sees, depth)[0])  # (T, V)

        def is_right(place: int, row: Row = row, logits: Any = logits) -> bool:
            guesses = logits[row.before[place]].clone()
            guesses[row.others(place)] = -math.inf
            return int(guesses.argmax()) == row.ids[place]

        for form, found in places.items():
            hits[form] += [all(map(is_right, learnt)) for learnt in found]
        if isinstance(sample, Asked):
            hits[sample.kind].append(all(map(is_right, places["asked"][0])))
        elif "named" in places:
            working = places["named"][0][: encoder.n_working(sample)]
            hits["working " + sample.kind].append(all(map(is_right, working)))
    return {name: round(sum(each) / len(each), 3) for name, each in sorted(hits.items())}


def _compiled(model: Any) -> Any:
    import torch

    return cast("Any", torch).compile(model, dynamic=False)  # its types are known in part only


def _resume(plan: Plan, model: Any, optimizer: Any) -> tuple[int, float]:
    import torch

    path = plan.folder / "checkpoint.pt"
    if not path.is_file():
        return 0, 0.0
    state = torch.load(path, map_location=plan.device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["seconds"]


def _save(plan: Plan, model: Any, optimizer: Any, step: int, seconds: float) -> None:
    import torch

    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "seconds": seconds}
    torch.save(state, plan.folder / "checkpoint.new")
    (plan.folder / "checkpoint.new").replace(plan.folder / "checkpoint.pt")
    model.save_pretrained(plan.folder)
    (plan.folder / FILE).write_bytes((bundled_judge.model_path() / FILE).read_bytes())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
