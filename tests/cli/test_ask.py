"""`debate ask`: one debate on the command line, shown as it goes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from debate.backends import Call
from debate.testing import reply_for
from tests.command_line import debate

CALLS: list[Call] = []
SEEN: list[str] = []
_READ: list[pytest.CaptureFixture[str]] = []
ASKED = ("ask", "Which is a prime?", "Nine.", "Seven.")
BACKEND = ("--backend", f"{__name__}:answer", "--rounds", "2", "--convergence", "none")


def answer(call: Call) -> object:
    """Any reply; what had been printed before it was asked for is kept."""
    CALLS.append(call)
    SEEN.append(_READ[0].readouterr().out)
    return reply_for(call)


def mumble(call: Call) -> str:
    return "Seven, I think."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DEBATE_MODEL", raising=False)
    CALLS.clear()
    SEEN.clear()
    _READ[:] = [capsys]
    yield tmp_path
    assert list(tmp_path.glob("run*")) == [], "nothing is recorded"


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """All that was printed on stdout, in one line."""
    return " ".join(("".join(SEEN) + capsys.readouterr().out).split())


def test_every_turn_is_shown_before_the_next_one_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND) == 0
    assert len(SEEN) == 6
    for told, part in zip(
        SEEN, ("Candidate 2", "Critic\n", "Supporter\n", "Neutral Observer\n", "Critic\n", "Supporter\n"), strict=True
    ):
        assert part in told
    assert "Round 1" in SEEN[1] and "the debate goes on" in SEEN[3] and "Round 2" in SEEN[4]
    last = capsys.readouterr().out
    assert last.index("Neutral Observer") < last.index("stopped: the last round allowed") < last.index("Result")
    assert ("".join(SEEN) + last).count("Supporter\n") == 2, "each turn once"


def test_the_result_says_whether_the_best_answer_was_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND, "--best", "2") == 0
    assert "people say 2" in shown(capsys)
    assert all("best" not in text for call in CALLS for text in call.prompt.texts)


@pytest.mark.parametrize("number", [0, 3])
def test_a_best_answer_that_is_not_there_is_refused(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND, "--best", number) == 2
    assert f"--best: must be from 1 to 2, got {number}" in capsys.readouterr().err


def test_with_a_price_the_last_line_says_what_it_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND, "--price", "1000,0") == 0
    text = shown(capsys)
    tokens = int(text.partition(" calls, ")[2].partition(" prompt tokens")[0].replace(",", ""))
    assert text.endswith(f" s cost {tokens / 1000:,.2f}")


def test_a_limit_of_the_cost_needs_a_price(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND, "--max-cost", "1") == 2
    assert "max_cost: needs the price of" in capsys.readouterr().err
    assert CALLS == []


def test_context_and_reference_reach_the_agents(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--context", "A prime has two divisors.", "--context", "One is none.", "--reference", "It is 7.")
    assert debate(monkeypatch, *ASKED, *BACKEND, *more) == 0
    prompt = CALLS[0].messages[-1]["content"]
    assert all(text in prompt for text in more[1::2])
    assert "Context 2 One is none. Reference answer It is 7." in shown(capsys)


def test_a_text_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Nine, which is\n  three times three.\n"))
    assert debate(monkeypatch, "ask", "Which is a prime?", "-", "Seven.", *BACKEND) == 0
    assert "Candidate 1 Nine, which is three times three. Candidate 2 Seven." in shown(capsys)


def test_two_texts_cannot_be_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "ask", "-", "-", "Seven.", *BACKEND) == 2
    assert "only one text can be read from" in capsys.readouterr().err


@pytest.mark.parametrize(("texts", "named"), [(("", "Nine."), "question"), (("Prime?", "Nine.", " "), "answer 2")])
def test_an_empty_text_is_refused(
    texts: tuple[str, ...], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "ask", *texts, *BACKEND) == 2
    assert f"{named}: is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answers", "remark"),
    [(["Nine."], "one candidate stands alone, so that there is nothing to compare\n"), (["7", "7"], "stands twice\n")],
)
def test_what_is_probably_a_mistake_is_said_beforehand(
    answers: list[str], remark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "ask", "Which is a prime?", *answers, "--backend", "debate.testing:reply_for") == 0
    assert remark in capsys.readouterr().err


def test_a_text_that_begins_with_a_hyphen_stands_after_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "ask", *BACKEND, "--", "3-8?", "-5", "5") == 0
    assert "Candidate 1 -5 Candidate 2 5" in shown(capsys)


def test_json_is_one_line_that_show_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND, "--json") == 0
    printed = "".join(SEEN) + capsys.readouterr().out
    assert printed.count("\n") == 1
    assert len(json.loads(printed)["transcript"]) == 6
    (folder / "kept.jsonl").write_text(printed)
    assert debate(monkeypatch, "show", folder / "kept.jsonl") == 0
    assert "Round 2" in capsys.readouterr().out


def test_debates_in_both_orders_are_shown_at_the_end_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND, "--candidate-order", "balanced") == 0
    assert not any("Critic" in told for told in SEEN)
    text = shown(capsys)
    assert text.index("Member 1 of 2") < text.index("Member 2 of 2") < text.rindex("Result")
    assert text.count("Round 2") == 2


def test_other_evaluators_show_what_they_replied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, *BACKEND[:2], "--evaluator", "value") == 0
    text = shown(capsys)
    assert text.index("Replies") < text.index("Result")


def test_a_debate_that_fails_says_so_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED, "--backend", f"{__name__}:mumble", "--retries", "0") == 3
    text = shown(capsys)
    assert "failed (unreadable_reply)" in text
    assert "stopped: no agent gave a readable reply" in text


# ---- which model


def test_without_a_model_it_names_the_bundled_judge_and_how_to_ask_a_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, *ASKED) == 2
    error = capsys.readouterr().err
    assert "no model was given" in error
    assert "--model built-in" in error
    assert "--backend openai --base-url URL --model M" in error


def test_without_vllm_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("debate.cli.execution.can_find", lambda module: False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert debate(monkeypatch, *ASKED, "--model", "built-in") == 2
    assert "debate-eval[cpu]" in capsys.readouterr().err
