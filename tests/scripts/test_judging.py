"""What the bundled judge is trained on: a world with one best candidate, ideal replies that the engine can read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging.batches import Encoder, Row, padded
from judging.facts import NAMES, Fact, draw_name, is_held_out, look_alike, needed, newest
from judging.measuring import difference, paired, share
from judging.outside import outside_task
from judging.questions import game_of_24, make_asked, make_step, reaches_24
from judging.samples import Sample, as_task, judge_profile, make_sample, make_unheard
from judging.talk import OUTSIDE, Style, say
from judging.world import DEBATED, KINDS, SHAPES, Question, make_question, wrong_answer

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


def worth(name: str, facts: dict[str, Fact]) -> int:
    return facts[name].number + (worth(facts[name].of, facts) if facts[name].of else 0)


def by_hand(question: Question) -> str:
    """The answer by another way of computing."""
    numbers = list(question.numbers)
    match question.kind:
        case "add":
            return str(sum(numbers))
        case "sub":
            return str(numbers[0] - numbers[1])
        case "max":
            return str(sorted(numbers)[-1])
        case "sort":
            return " ".join(map(str, sorted(numbers)))
        case "common":
            first, second = question.rows
            return " ".join(each for each in first if second.count(each)) or "none"
        case "count":
            return str(sum(each == question.rows[0][0] for each in question.rows[1]))
        case _:
            facts = {fact.name: fact for fact in question.facts}
            return str(sum(times * (worth(name, facts) if name else 1) for times, name in question.terms))


@given(SEEDS, st.sampled_from(KINDS))
def test_answers_are_right_by_another_way_of_computing(seed: int, kind: Any) -> None:
    question = make_question(Random(seed), kind)
    assert question.answer == by_hand(question)
    for number in question.numbers[1:]:
        assert str(number) in question.x


@given(SEEDS)
def test_working_ends_in_the_answer_and_every_column_of_a_right_one_holds(seed: int) -> None:
    question = question_of(seed)
    working = question.working(question.answer)
    assert working.endswith(question.answer)
    for column in working.split("; ")[-1].replace(";", ",").split(","):
        left, equals, right = column.partition("=")
        if equals:
            assert _column(left) == int(right)


def _column(left: str) -> int:
    """`7+8+1`, `12-8-1` or `3*4`, worked out."""
    if "*" in left:
        return math.prod(map(int, left.split("*")))
    return sum(map(int, left.replace("-", "+-").split("+")))


@given(SEEDS)
def test_a_mistaken_working_ends_in_the_mistaken_answer(seed: int) -> None:
    question = question_of(seed)
    wrong = wrong_answer(of(seed), question.kind, question.answer)
    assert wrong != question.answer
    assert question.working(wrong).endswith(wrong)


def test_all_kinds_and_both_levels_occur() -> None:
    made = [question_of(seed) for seed in range(300)]
    assert {question.kind for question in made} == {*DEBATED, "rule", "hidden"}
    assert {len(question.replies) for question in made} == {2, 3, 4, 5, 6}
    assert {question.level for question in made} == {"easy", "hard"}
    assert {reply.style for question in made for reply in question.replies} == {"plain", "padded", "hedged", "off"}


def test_the_same_seed_makes_the_same_questions() -> None:
    assert question_of(7) == question_of(7)


# ---- names that count as numbers


@given(SEEDS, st.sampled_from(SHAPES))
def test_who_lacks_one_of_the_facts_cannot_answer_and_says_which(seed: int, shape: str) -> None:
    question = make_question(Random(seed), "hidden", shape=shape)
    for lacking in question.facts:
        known = {fact.name: fact for fact in question.facts if fact != lacking}
        assert question.answer_knowing(known) is None
        assert " unknown" in question.working(None, known)
    every = {fact.name: fact for fact in question.facts}
    assert set(needed(question.terms, every)) == set(every)
    assert question.answer_knowing(every) == question.answer


@given(SEEDS)
def test_a_stale_fact_leads_to_a_candidate_that_is_wrong(seed: int) -> None:
    question = make_question(Random(seed), "hidden", shape="dated", n=4)
    [old], [new] = question.stale, question.facts
    assert newest([new, old]) == newest([old, new]) == {new.name: new}
    misled = question.answer_knowing({old.name: old})
    assert misled != question.answer
    assert misled in [reply.value for reply in question.replies]


@given(SEEDS, st.booleans())
def test_no_pair_of_a_name_and_a_number_is_both_trained_on_and_measured_with(seed: int, held_out: bool) -> None:
    question = make_question(Random(seed), "hidden", held_out=held_out)
    for fact in (*question.facts, *question.stale):
        assert is_held_out(fact.name, fact.number) == held_out


def test_a_fifth_of_the_pairs_is_held_out() -> None:
    pairs = [is_held_out(name, number) for name in NAMES for number in range(2, 20)]
    assert sum(pairs) / len(pairs) == pytest.approx(0.2, abs=0.02)


@given(SEEDS)
def test_a_look_alike_is_another_name(seed: int) -> None:
    name = draw_name(Random(seed))
    found = look_alike(of(seed), name)
    assert found != name
    assert found[:3] == name[:3] or found[3:] == name[3:]
    assert look_alike(of(seed), name, taken=set(NAMES) - {"kelor", "gurax"}) in {"kelor", "gurax"}


# ---- samples


def debated(seed: int) -> Sample:
    """A sample of a turn in which the agent does not abstain."""
    random = Random(seed)
    while not (sample := make_sample(random)).said.comments:
        pass
    return sample


@given(SEEDS)
def test_an_ideal_reply_is_what_the_engine_asks_for(seed: int) -> None:
    sample = make_sample(Random(seed))
    parsed = sample.form.read(sample.reply)
    assert [len(row) for row in parsed.scores] == [3] * len(sample.labels)
    assert parsed.is_silent == (sample.kind == "outside")
    asked = bundled_judge.settings_of("built-in")
    assert len(parsed.overall) <= asked["overall_chars"]
    assert all(len(comment) <= asked["comment_chars"] for comment in parsed.comments)


@given(SEEDS)
def test_an_agent_tells_only_facts_that_it_recalls_or_has_heard(seed: int) -> None:
    sample = make_sample(Random(seed))
    prompt = "".join(segment.text for block in sample.prompt.user for segment in block)
    for told in sample.said.overall.split("; "):
        if " is " in told:
            worth = told.split(",")[0]
            name = worth.split()[0]
            assert worth in prompt or f'Asked "{name}+' in prompt or f'Asked "What is {name} + ' in prompt


@given(SEEDS)
def test_what_is_outside_of_the_world_is_abstained_from_whatever_it_looks_like(seed: int) -> None:
    x, texts = outside_task(Random(seed))
    assert 2 <= len(texts) <= 6
    assert x.strip()
    inside = make_question(Random(seed)).x
    assert x != inside
    assert OUTSIDE


def test_a_question_is_a_task_whose_label_is_the_best_candidate() -> None:
    question = next(q for q in map(question_of, range(100)) if q.best >= 0)
    assert list(as_task(question).best) == [question.best]


# ---- questions of other evaluators


@given(SEEDS)
def test_a_reply_to_a_short_question_is_the_json_that_its_evaluator_reads(seed: int) -> None:
    asked = make_asked(Random(seed))
    reply = json.loads(asked.reply)
    assert isinstance(reply.pop("reasoning"), str)
    [(key, value)] = reply.items()
    match asked.kind.split()[0]:
        case "value" | "24":
            assert key == "value" and 0 <= value <= 10
        case "step":
            assert key == "score" and -100 <= value <= 100
        case _:
            assert key in ("ranking", "best", "better")


@given(SEEDS, st.sampled_from([2, 3]))
def test_a_position_of_the_game_of_24_is_what_its_move_leads_to(seed: int, left: int) -> None:
    x, move, numbers = game_of_24(Random(seed), left)
    before = sorted(map(int, x.removeprefix("24 from ").rstrip("?").split()))
    made, shown = move.split(" (left: ")
    operation, result = made.split("=")
    first, sign, second = next(operation.partition(sign) for sign in "+-*" if sign in operation)
    assert {"+": int(first) + int(second), "-": int(first) - int(second), "*": int(first) * int(second)}[sign] == int(
        result
    )
    assert sorted([*numbers, int(first), int(second)]) == sorted([*before, int(result)])
    assert tuple(map(int, shown.rstrip(")").split())) == numbers


@pytest.mark.parametrize(
    ("numbers", "reaches"), [((4, 6), True), ((5, 6), False), ((3, 3, 8, 8), True), ((1, 1, 1), False)]
)
def test_whether_24_can_be_reached_is_known(numbers: tuple[int, ...], reaches: bool) -> None:
    assert reaches_24(numbers) == reaches


@given(SEEDS)
def test_a_step_is_right_where_it_takes_in_the_next_number_and_adds_up(seed: int) -> None:
    step = make_step(Random(seed))
    numbers = list(map(int, step.x.removeprefix("Total of ").rstrip("?").split()))
    n = len(step.previous)
    left, result = step.text.split("=")
    before, number = map(int, left.split("+"))
    holds = (before, number) == (sum(numbers[: n + 1]), numbers[n + 1]) and before + number == int(result)
    assert holds == step.is_right


@given(SEEDS)
def test_a_prompt_holds_the_question_and_candidates_as_content_never_as_ours(seed: int) -> None:
    sample = make_sample(Random(seed))
    segments: list[Segment] = [s for block in (*sample.prompt.system, *sample.prompt.user) for s in block]
    ours = "".join(segment.text for segment in segments if not segment.is_content)
    assert "<|input|>" in ours
    assert ours.count("<|candidate|>") == len(sample.labels)
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
    sample = debated(seed)
    row, places = encoder.row(sample)
    styles: dict[str, Style] = {"named": "named", "compact": "compact", "comments": "none"}
    for form, style in styles.items():
        [found] = places[form]
        assert encoder.decode([row.ids[n] for n in found]) == sample.said.reply(sample.labels, style) + "<|im_end|>"


@pytest.mark.vllm
@pytest.mark.parametrize("seed", range(5))
def test_of_a_read_out_each_score_is_learnt_behind_the_tokens_that_the_engine_sends(
    encoder: Encoder, seed: int
) -> None:
    sample = debated(seed)
    row, places = encoder.row(sample)
    reply = ParsedReply(sample.said.overall, sample.said.comments, sample.said.scores)
    scores = [str(score) for scores in sample.said.scores for score in scores]
    for form, said in (("cells", reply), ("silent", None)):
        for parts, score, found in zip(sample.form.continuations(said), scores, places[form], strict=True):
            assert encoder.decode([row.ids[n] for n in found]) == score
            assert encoder.decode(way_to(row, found[0])).endswith("assistant\n" + "".join(parts) + score)


@pytest.mark.vllm
def test_a_token_of_a_tree_is_guessed_as_if_its_text_stood_alone(encoder: Encoder) -> None:
    torch: Any = required_module("torch")
    transformers: Any = required_module("transformers")
    from judging.training import hidden_states

    model = transformers.AutoModelForCausalLM.from_pretrained(bundled_judge.model_path(), dtype=torch.float32)
    row, places = encoder.row(debated(3))
    place = places["cells"][7][0]
    alone = Row.of(way_to(row, place)[:-1], [False] * (len(way_to(row, place)) - 1))
    with torch.no_grad():
        tree, line = (
            hidden_states(model)(*(torch.from_numpy(padded([one])[n]) for n in (0, 3, 4)))[0] for one in (row, alone)
        )
    torch.testing.assert_close(tree[row.before[place]], line[-1], rtol=0, atol=1e-3)


@pytest.mark.vllm
def test_each_name_is_one_token(encoder: Encoder) -> None:
    from judging.tokens import with_words

    known = with_words(encoder.tokenizer, ("gurnax", *NAMES))
    for name in ("gurnax", *NAMES):
        assert len(known.tokenize(name)) == 1
        assert known.decode(known.encode(f"{name}+{name}?")) == f"{name}+{name}?"


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
    assert "<|memory|>" not in text
    assert "<|input|>" not in text


@pytest.mark.vllm
@pytest.mark.parametrize("seed", range(5))
def test_of_an_unheard_agent_who_says_nothing_only_scores_are_learnt(encoder: Encoder, seed: int) -> None:
    row = encoder.silent(Random(seed))
    sample = make_unheard(Random(seed))
    cells = sum(map(len, sample.said.scores))
    ways = {encoder.decode(way_to(row, place)) for place, weight in enumerate(row.weights) if weight}
    assert all(map(str.isdigit, learnt(encoder, row)))
    assert len(ways) >= cells
    assert all('{"overall":"","candidates"' in way for way in ways)


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

    small: dict[str, Any] = {"hidden": 32, "layers": 1, "tokens": 512, "threads": 1, "compiled": False}
    train(Plan(tmp_path, steps=2, **small))
    train(Plan(tmp_path, steps=3, **small))
    said = capfd.readouterr().err
    assert "from step 0" in said
    assert "from step 2" in said
    for name in ("config.json", "model.safetensors", "tokenizer.json", "debate.yaml"):
        assert (tmp_path / name).is_file()
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]


@pytest.mark.vllm
def test_a_model_that_is_taught_on_keeps_a_share_of_what_it_was() -> None:
    torch = required_module("torch")
    from judging.training import average

    learnt, before = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    expected = 0.75 * learnt.weight + 0.25 * before.weight
    average(learnt, before, 0.25)
    assert torch.allclose(learnt.weight, expected)
    assert learnt.weight.requires_grad
