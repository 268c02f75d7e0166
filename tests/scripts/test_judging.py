"""What the bundled judge is trained on: a world with one best candidate, ideal replies that the engine can read."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging.batches import Encoder, Row, padded
from judging.measuring import difference, paired, share
from judging.samples import FORM, LABELS, judge_profile, make_sample
from judging.talk import Style, say
from judging.world import KINDS, Question, make_question, wrong_answer

from debate import bundled_judge
from debate.flow import Segment
from debate.parsing.debate_reply import ParsedReply
from tests.required import required_module

SEEDS = st.integers(0, 2**32)


def question_of(seed: int) -> Question:
    return make_question(Random(seed))


def of(seed: int) -> Random:
    return Random(f"other {seed}")


# ---- the world


@given(SEEDS)
def test_exactly_one_candidate_is_best_and_its_answer_is_right(seed: int) -> None:
    question = question_of(seed)
    assert question.replies[question.best].value == question.answer
    for persona in range(3):
        said = say(question, question.answer, persona, first=False)
        weights = [component.weight for component in judge_profile().components]
        totals = [sum(w * s for w, s in zip(weights, row, strict=True)) for row in said.scores]
        assert totals.index(max(totals)) == question.best
        assert totals.count(max(totals)) == 1


@given(SEEDS)
def test_answers_are_right_by_another_way_of_computing(seed: int) -> None:
    question = question_of(seed)
    numbers = list(question.numbers)
    computed = {
        "add": lambda: str(sum(numbers)),
        "rule": lambda: str(sum(numbers)),
        "sub": lambda: str(numbers[0] - numbers[1]),
        "max": lambda: str(sorted(numbers)[-1]),
        "sort": lambda: " ".join(map(str, sorted(numbers))),
    }[question.kind]()
    assert question.answer == computed
    for number in numbers if question.rule is None else numbers[1:]:
        assert str(number) in question.x


@given(SEEDS)
def test_working_ends_in_the_answer_and_every_column_of_a_right_one_holds(seed: int) -> None:
    question = question_of(seed)
    working = question.working(question.answer)
    assert working.endswith(question.answer)
    for column in working.split("; ")[-1].split(","):
        left, equals, right = column.partition("=")
        if equals:
            assert _column(left) == int(right)


def _column(left: str) -> int:
    """`7+8+1` or `12-8-1`, added up."""
    return sum(map(int, left.replace("-", "+-").split("+")))


@given(SEEDS)
def test_a_mistaken_working_ends_in_the_mistaken_answer(seed: int) -> None:
    question = question_of(seed)
    wrong = wrong_answer(of(seed), question.kind, question.answer)
    assert wrong != question.answer
    assert question.working(wrong).endswith(wrong)


def test_all_kinds_and_both_levels_occur() -> None:
    made = [question_of(seed) for seed in range(300)]
    assert {question.kind for question in made} == set(KINDS)
    assert {question.level for question in made} == {"easy", "hard"}
    assert {reply.style for question in made for reply in question.replies} == {"plain", "padded", "hedged", "off"}


def test_the_same_seed_makes_the_same_questions() -> None:
    assert question_of(7) == question_of(7)


# ---- samples


@given(SEEDS)
def test_an_ideal_reply_is_what_the_engine_asks_for(seed: int) -> None:
    sample = make_sample(Random(seed))
    parsed = FORM.read(sample.reply)
    assert [len(row) for row in parsed.scores] == [3] * 4
    reply = json.loads(sample.reply)
    assert len(reply["overall"]) <= 60
    assert all(len(each["comment"]) <= 40 for each in reply["candidates"].values())


@given(SEEDS)
def test_a_prompt_holds_the_question_and_candidates_as_content_never_as_ours(seed: int) -> None:
    sample = make_sample(Random(seed))
    segments: list[Segment] = [s for block in (*sample.prompt.system, *sample.prompt.user) for s in block]
    ours = "".join(segment.text for segment in segments if not segment.is_content)
    assert "<|input|>" in ours
    assert ours.count("<|candidate|>") == 4
    assert not any("<|" in segment.text for segment in segments if segment.is_content)


def test_a_critic_and_a_supporter_lean_apart_on_a_hard_question_and_meet_once_they_have_heard_each_other() -> None:
    question = next(q for q in map(question_of, range(100)) if q.level == "hard" and q.kind == "add")
    apart = [say(question, question.answer, agent, first=True).scores for agent in (0, 1)]
    later = [say(question, question.answer, agent, first=False).scores for agent in (0, 1)]
    assert apart[0] != apart[1]
    assert later[0] == later[1]


# ---- batches


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    transformers: Any = required_module("transformers")
    return Encoder(transformers.AutoTokenizer.from_pretrained(bundled_judge.model_path()))


def learnt(encoder: Encoder, row: Row) -> list[str]:
    """The tokens that a row teaches, as text."""
    return [encoder.decode([token]) for token, weight in zip(row.ids, row.weights, strict=True) if weight]


def way_to(row: Row, place: int) -> list[int]:
    """The tokens from the root to a place of a row, with it."""
    return [] if place < 0 else [*way_to(row, row.before[place]), row.ids[place]]


@pytest.mark.vllm
@pytest.mark.parametrize("seed", range(5))
def test_of_a_turn_every_form_of_the_reply_is_learnt_and_its_end(encoder: Encoder, seed: int) -> None:
    sample = make_sample(Random(seed))
    row, places = encoder.row(sample)
    styles: dict[str, Style] = {"named": "named", "compact": "compact", "comments": "none"}
    for form, style in styles.items():
        [found] = places[form]
        assert encoder.decode([row.ids[n] for n in found]) == sample.said.reply(LABELS, style) + "<|im_end|>"


@pytest.mark.vllm
@pytest.mark.parametrize("seed", range(5))
def test_of_a_read_out_each_score_is_learnt_behind_the_tokens_that_the_engine_sends(
    encoder: Encoder, seed: int
) -> None:
    sample = make_sample(Random(seed))
    row, places = encoder.row(sample)
    reply = ParsedReply(sample.said.overall, sample.said.comments, sample.said.scores)
    scores = [str(score) for scores in sample.said.scores for score in scores]
    for form, said in (("cells", reply), ("silent", None)):
        for parts, score, found in zip(FORM.continuations(said), scores, places[form], strict=True):
            assert encoder.decode([row.ids[n] for n in found]) == score
            assert encoder.decode(way_to(row, found[0])).endswith("assistant\n" + "".join(parts) + score)


@pytest.mark.vllm
def test_a_token_of_a_tree_is_guessed_as_if_its_text_stood_alone(encoder: Encoder) -> None:
    torch: Any = required_module("torch")
    transformers: Any = required_module("transformers")
    from judging.training import hidden_states

    model = transformers.AutoModelForCausalLM.from_pretrained(bundled_judge.model_path(), dtype=torch.float32)
    row, places = encoder.row(make_sample(Random(3)))
    place = places["cells"][7][0]
    alone = Row.of(way_to(row, place)[:-1], [False] * (len(way_to(row, place)) - 1))
    with torch.no_grad():
        tree, line = (
            hidden_states(model, *(torch.from_numpy(each) for each in (padded([one])[0], padded([one])[2])))[0]
            for one in (row, alone)
        )
    torch.testing.assert_close(tree[row.before[place]], line[-1], rtol=0, atol=1e-3)


@pytest.mark.vllm
def test_pieces_are_added_to_a_tokenizer_and_what_is_kept_stays_as_it_was(encoder: Encoder) -> None:
    transformers: Any = required_module("transformers")
    from judging.tokens import with_pieces

    known = transformers.AutoTokenizer.from_pretrained(bundled_judge.model_path())
    kept = [make_sample(Random(seed)).reply for seed in range(20)]
    before = [known.encode(text) for text in kept]
    text = "[[[1]]]"
    more = with_pieces(known, [text] * 3, kept, n=2)
    assert more.decode(more.encode(text)) == text
    assert len(more) == len(encoder.tokenizer) + 2
    assert len(more.encode(text)) < len(encoder.tokenizer.encode(text))
    assert [more.encode(text) for text in kept] == before


@pytest.mark.vllm
@pytest.mark.parametrize("seed", range(5))
def test_of_a_drill_of_verdicts_no_digit_is_learnt(encoder: Encoder, seed: int) -> None:
    words = learnt(encoder, encoder.verdicts(Random(seed), 120))
    assert len(words) >= 8
    assert all(word.startswith(" ") and not any(map(str.isdigit, word)) for word in words)


@pytest.mark.vllm
@pytest.mark.parametrize("seed", range(5))
def test_of_a_drill_of_working_every_column_is_learnt(encoder: Encoder, seed: int) -> None:
    text = "".join(learnt(encoder, encoder.drill(Random(seed), 120)))
    assert "=" in text or "row" in text or "top" in text
    assert "<|input|>" not in text


# ---- measuring


def test_a_share_has_a_wilson_interval() -> None:
    found = share([True] * 95 + [False] * 5)
    assert found["share"] == 0.95
    assert found["interval"] == pytest.approx([0.8882, 0.9785], abs=1e-4)
    assert share([])["interval"] is None


def test_paired_differences_of_equal_arms_are_zero() -> None:
    assert paired([1, 0, 1], [1, 0, 1]) == {"mean": 0.0, "interval": [0.0, 0.0]}


def test_a_clear_difference_of_means_has_an_interval_above_zero() -> None:
    found = difference([2.0, 3.0, 2.0] * 30, [1.0, 1.0, 2.0] * 30)
    assert found["mean"] == pytest.approx(1.0, abs=1e-3)
    assert found["interval"][0] > 0


# ---- training


@pytest.mark.vllm
def test_training_makes_a_checkpoint_and_goes_on_from_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    required_module("torch")
    from judging.training import Plan, train

    small: dict[str, Any] = {"hidden": 32, "layers": 1, "tokens": 512, "threads": 1}
    train(Plan(tmp_path, steps=2, **small))
    train(Plan(tmp_path, steps=3, **small))
    said = capfd.readouterr().err
    assert "from step 0" in said
    assert "from step 2" in said
    for name in ("config.json", "model.safetensors", "tokenizer.json", "debate.yaml"):
        assert (tmp_path / name).is_file()
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
