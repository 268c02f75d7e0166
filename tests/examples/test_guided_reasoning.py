"""`examples/guided_reasoning.py`: the final answer goes by the transcript, and is not made up without one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from debate import DebateEvaluator, Engine
from debate.backends import Call, Scripted
from examples import guided_reasoning as script

RIGHT, FIRST_DRAFT = "20.00", "18.00"


class Watched:
    """The scripted model, or another in its place, with the calls it got."""

    def __init__(self, answer: Callable[[Call], str] | None = None) -> None:
        self.answer: Callable[[Call], str] = answer or script.scripted
        self.calls: list[Call] = []

    def __call__(self, call: Call) -> str:
        self.calls.append(call)
        return self.answer(call)

    def last_prompt(self) -> str:
        """What the answerer was shown."""
        (call,) = [call for call in self.calls if call.messages[0]["content"] == script.FINAL]
        return call.messages[-1]["content"]


def reason(watched: Watched, seed: int = 0, **options: object) -> str | None:
    with Engine(Scripted(watched), seed=seed) as engine:
        return script.reason(engine, DebateEvaluator("general", rounds=2), script.QUESTION, **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_right_with_the_transcript_and_wrong_without(seed: int) -> None:
    assert reason(Watched(), seed=seed) == RIGHT
    assert reason(Watched(), seed=seed, with_debate=False) == FIRST_DRAFT


def test_the_answer_is_better_than_every_draft() -> None:
    watched = Watched()
    answer = reason(watched)
    drafts = [script.scripted(call) for call in watched.calls if call.messages[0]["content"] == script.DRAFT]
    assert len(drafts) == 4
    assert answer == RIGHT
    assert not any(RIGHT in draft for draft in drafts)


def test_drafts_in_the_last_prompt_are_numbered_as_in_the_transcript() -> None:
    watched = Watched()
    reason(watched)
    drafts, _, debate = watched.last_prompt().partition("# Debate")
    for n, draft in enumerate(script.DRAFTS, 1):
        assert f"Candidate {n}: {draft}" in drafts
    assert "Candidate 1: pens 6.00 is right, notebooks 12.00 is wrong" in debate
    assert "Candidate 2: pens 5.00 is wrong, notebooks 14.00 is right" in debate


def test_the_transcript_is_cut_to_the_characters_asked_for() -> None:
    whole, cut = Watched(), Watched()
    reason(whole, max_characters=0)
    reason(cut, max_characters=300)
    lengths = [len(watched.last_prompt().partition("# Debate\n")[2]) for watched in (whole, cut)]
    assert 0 < lengths[1] <= 300 < lengths[0]


def test_equal_drafts_are_debated_once_and_each_was_asked_with_a_seed_of_its_own() -> None:
    watched = Watched()
    reason(watched, n_drafts=6)
    seeds = {call.seed for call in watched.calls if call.messages[0]["content"] == script.DRAFT}
    assert len(seeds) == 6
    assert all(len(call.info["labels"]) == 2 for call in watched.calls if "labels" in call.info)


@pytest.mark.parametrize("mute", ["drafts", "answer", "debate"])
def test_a_call_that_fails_for_good_is_answered_by_nothing_made_up(mute: str) -> None:
    def answer(call: Call) -> str:
        of = {script.DRAFT: "drafts", script.FINAL: "answer"}
        if of.get(call.messages[0]["content"], "debate") == mute:
            raise ValueError("no more")
        return script.scripted(call)

    assert reason(Watched(answer)) is None


def test_a_models_thoughts_are_left_out_of_drafts_and_answer() -> None:
    def thinking(call: Call) -> str:
        text = script.scripted(call)
        return text if call.schema else f"<think>pens 1.00 is right</think>\n{text}"

    watched = Watched(thinking)
    assert reason(watched) == RIGHT
    assert "pens 1.00" not in watched.last_prompt()


def test_the_command_prints_the_answer_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([]) == 0
    assert capsys.readouterr().out == f"{RIGHT}\n"
    assert script.main(["--no-debate"]) == 0
    assert capsys.readouterr().out == f"{FIRST_DRAFT}\n"


def test_nothing_scored_is_exit_code_3_and_no_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mumble(call: Call) -> str:
        return "no JSON" if call.schema else script.DRAFTS[0]

    monkeypatch.setattr(script, "scripted", mumble)
    assert script.main([]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nothing was scored" in printed.err


@pytest.mark.parametrize(
    "arguments", [["--drafts", "0"], ["Another question?"], ["--model", ""], ["--model", "m", "--backend", "magic"]]
)
def test_what_cannot_be_done_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(arguments) == 2
    assert "error:" in capsys.readouterr().err
