"""`debate show`: what a reader finds in it, and that nothing a model wrote can act on the terminal."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from debate.cli.show import show
from debate.errors import InputError
from debate.evaluation import Evaluation
from debate.jobs.results import ResultsFile
from debate.scoring.distributions import expectation_of
from debate.types import (
    Failure,
    InvalidReply,
    Judgment,
    LabelDistribution,
    Memory,
    Scale,
    SilentReadout,
    Transcript,
    Turn,
    Usage,
)

NAN = float("nan")
app = typer.Typer()
app.command()(show)

COMPONENTS = ("accuracy", "relevance")


def turn(round: int, agent: str, scores: list[list[float]], **said: object) -> Turn:  # noqa: A002
    spoken = Turn(
        round=round,
        agent=agent,
        labels={"A": 1, "B": 0},
        scores=np.array(scores),  # (J, K)
        overall=f"{agent} compares them.",
        comments=("The first is wrong.", "The second is right."),
    )
    return replace(spoken, **said)  # pyright: ignore[reportArgumentType]


def failed_turn(round: int, agent: str) -> Turn:  # noqa: A002
    return turn(
        round,
        agent,
        [[NAN, NAN], [NAN, NAN]],
        overall="",
        comments=(),
        failure=Failure("unreadable_reply", "no readable reply in 1 tries", round, agent),
        invalid_replies=(InvalidReply("I like the \x1b[2Jsecond", "not_json", "The reply holds no JSON object."),),
    )


def debate_of(*turns: Turn, task_id: str = "sky", **changes: object) -> Evaluation:
    evaluation = Evaluation(
        task_id=task_id,
        evaluator="debate",
        status="ok",
        scores=np.array([3.0, 8.25]),
        probabilities=np.array([0.005, 0.995]),
        selected=1,
        components=COMPONENTS,
        agents=("Critic", "Supporter"),
        cv=(0.25, 0.05),
        rounds_run=2,
        stop_reason="converged",
        transcript=Transcript(turns),
        usage=Usage(12_000, 8_000, 900, 4),
        seconds=12.34,
    )
    return replace(evaluation, **changes)  # pyright: ignore[reportArgumentType]


TWO_ROUNDS = debate_of(
    turn(0, "Critic", [[2, 3.5], [8, 9]]),
    turn(0, "Supporter", [[4, 3], [9, 7]]),
    turn(1, "Critic", [[3, 3], [8, 8.25]]),
    turn(1, "Supporter", [[3, 3], [8, 8.25]]),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def write(folder: Path, *evaluations: Evaluation) -> None:
    with ResultsFile(folder / "results.jsonl") as results:
        for evaluation in evaluations:
            results.append(evaluation)


def shown(*arguments: str | Path, **environment: str) -> str:
    env = {"COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None} | environment
    result = CliRunner().invoke(app, [str(each) for each in arguments], env=env, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def words(text: str) -> str:
    """The text without the line ends and blanks of its layout."""
    return " ".join(text.split())


def fault(*arguments: str | Path) -> InputError:
    with pytest.raises(InputError) as caught:
        shown(*arguments)
    return caught.value


# What a reader finds


def test_a_debate_is_told_from_its_head_to_its_usage(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    text = words(shown(folder))
    in_order = [
        "sky selected candidate 2 (A) of 2 evaluator debate, status ok rounds 2 CV 0.25 ▅ 0.05 ▂",
        "stopped the agents agree (converged)",
        "Round 1",
        "Critic Critic compares them. 1 (B) The first is wrong. 2 (A) The second is right.",
        "Supporter Supporter compares them.",
        "CV 0.250 ▅; the debate goes on.",
        "Round 2",
        "CV 0.050 ▂; stopped: the agents agree (converged).",
        "Result",
        "1 (B) 3.00 0.005 2",
        "2 (A) 8.25 0.995 1 selected",
        "4 calls, 12,000 prompt tokens (8,000 from the cache), 900 completion tokens, 12.3 s",
    ]
    places = [text.index(part) for part in in_order]
    assert places == sorted(places)


def test_a_turn_shows_its_scores_with_the_decimals_they_have(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    text = words(shown(folder))
    assert "1 (B) 2.0 3.5 2 (A) 8.0 9.0" in text
    assert "1 (B) 4 3 2 (A) 9 7" in text


def test_of_later_rounds_only_what_changed_is_shown(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    critic, supporter = words(shown(folder).split("Round 2")[1]).split("Supporter")
    assert "Critic says the same as in round 1 candidate accuracy relevance" in critic
    assert "1 (B) 2.00 → 3.00 3.50 → 3.00 2 (A) 8.00 9.00 → 8.25" in critic
    assert "1 (B) 4.00 → 3.00 3.00 2 (A) 9.00 → 8.00 7.00 → 8.25" in supporter


def test_what_an_agent_says_again_is_not_told_again(folder: Path) -> None:
    memories = (Memory("Blue scatters."),)
    first = turn(0, "Critic", [[2, 3], [8, 9]], memories=memories)
    again = replace(first, round=1, overall="So it is.")
    other = replace(first, round=2, comments=("The first is wrong.", "No."), scores=np.array([[2, 3], [8, NAN]]))
    write(folder, debate_of(first, again, other))
    second, third = shown(folder).split("Round 2")[1].split("Round 3")
    assert words(second.split("Critic")[1]).startswith(
        "recalled the same as in round 1 So it is. 1 (B) as in round 1 2 (A) as in round 1 scores as in round 1"
    )
    assert "1 (B) as in round 2 2 (A) No. candidate accuracy relevance" in words(third)
    assert "2 (A) 8 9 → abstained" in words(third)
    assert "1 (B) 2" not in words(third)


def test_changes_are_counted_from_the_last_turn_that_could_be_read(folder: Path) -> None:
    first = turn(0, "Critic", [[2, 3], [8, 9]])
    write(
        folder, debate_of(first, failed_turn(1, "Critic"), replace(first, round=2, scores=np.array([[3, 3], [8, 9]])))
    )
    assert "says the same as in round 1 candidate accuracy relevance" in words(shown(folder))
    assert "1 (B) 2 → 3 3 " in words(shown(folder))


def test_without_unicode_arrows_and_bars_are_in_ascii(folder: Path) -> None:
    write(folder, TWO_ROUNDS, READ_OUT)
    result = CliRunner(charset="ascii").invoke(app, [str(folder), "sky"], env={"COLUMNS": "80"}, catch_exceptions=False)
    assert result.output.isascii()
    assert "2.00 -> 3.00" in result.output
    assert "CV 0.250 ####; the debate goes on." in result.output
    assert "\\" not in result.output


def read_out(r: int, agent: str, *cells: tuple[LabelDistribution, ...]) -> Turn:
    return turn(r, agent, expectation_of(cells).tolist(), distributions=cells)


SURE, UNSURE = LabelDistribution({"6": 1.0}), LabelDistribution({"2": 0.5, "8": 0.5})
ABSTAINED = LabelDistribution({"null": 0.75, "3": 0.25})
SILENT = SilentReadout(agent="Critic", scores=np.array([[4.0, NAN], [5.0, 6.0]]))
READ_OUT = debate_of(
    read_out(0, "Critic", (SURE, UNSURE), (ABSTAINED, SURE)),
    read_out(0, "Supporter", (SURE, LabelDistribution({"6": 1.0}, 0.25)), (UNSURE, UNSURE)),
    p_best=np.array([0.125, 0.875]),
    before=(SILENT,),
    after=(replace(SILENT, scores=SILENT.scores + 1.5),),
)


def test_scores_that_were_read_out_are_shown_with_their_doubt_and_who_abstained_is_told(folder: Path) -> None:
    write(folder, READ_OUT)
    text = words(shown(folder))
    assert "1 (B) 6.0 ± 0.0 5.0 ± 3.0 2 (A) abstained 6.0 ± 0.0" in text
    assert "1 (B) 6.0 ± 0.0 - 2 (A) 5.0 ± 3.0 5.0 ± 3.0" in text
    assert "abstained 1 of 8 cells" in text
    assert "candidate score probability P(best) rank" in text
    assert "2 (A) 8.25 0.995 0.875 1 selected" in text


def test_what_talking_changed_is_shown_per_agent_and_cell(folder: Path) -> None:
    write(folder, READ_OUT)
    text = words(shown(folder))
    assert "agent component 1 (B) 2 (A)" in text
    assert "Critic accuracy 4.0 → 5.5 5.0 → 6.5 Critic relevance - → - 6.0 → 7.5" in text
    assert "mean 4.0 → 5.5 5.5 → 7.0" in text


def test_a_debate_that_was_not_read_out_says_nothing_of_doubt(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    text = shown(folder)
    assert not [told for told in ("±", "P(best)", "abstained", "before") if told in text]


def test_a_score_with_its_doubt_is_not_broken_where_the_terminal_is_narrow(folder: Path) -> None:
    names = tuple(f"c{k}" for k in range(8))
    write(folder, debate_of(read_out(0, "Critic", (UNSURE,) * 8, (SURE,) * 8), components=names))
    assert "c5 5.0 ± 3.0 6.0 ± 0.0" in words(shown(folder, COLUMNS="60"))


def test_a_value_that_was_read_out_is_shown_with_its_doubt(folder: Path) -> None:
    judgments = (Judgment(candidates=(0,), value=5.0, distribution=UNSURE), Judgment(candidates=(1,), value=5.25))
    write(folder, debate_of(judgments=judgments))
    text = words(shown(folder))
    assert "candidate 1, sample 1: 5 ± 3" in text
    assert "candidate 2, sample 1: 5.25" in text


def test_the_results_file_may_be_given_itself(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    assert shown(folder / "results.jsonl") == shown(folder)


def test_a_failed_turn_shows_why_and_its_raw_replies_when_asked(folder: Path) -> None:
    write(folder, debate_of(failed_turn(0, "Critic"), status="partial", error="1 of 1 turns failed", cv=(NAN,)))
    brief, raw = words(shown(folder)), words(shown(folder, "--raw"))
    for text in (brief, raw):
        assert "failed (unreadable_reply): no readable reply in 1 tries" in text
        assert "reply 1 could not be read (not_json): The reply holds no JSON object." in text
        assert "error 1 of 1 turns failed" in text
        assert "CV undefined" in text
    assert "I like the" not in brief
    assert "--raw shows what they said" in brief
    assert r"I like the \x1b[2Jsecond" in raw


def test_recalled_memories_are_shown_with_their_score(folder: Path) -> None:
    scored = Memory("Blue light scatters most.", "id", "c", 0.75, 0.5, 0.25, 1.0, "semantic", "optics.md")
    memories = (scored, Memory("No score here."))
    write(folder, debate_of(turn(0, "Critic", [[2, 3], [8, 9]], memories=memories)))
    parts = "score 0.75: relevance 0.50, recency 0.25, importance 1.00, from optics.md"
    assert f"recalled: - Blue light scatters most. ({parts}) - No score here. Critic compares" in words(shown(folder))


def test_ties_and_candidates_nobody_scored_are_told(folder: Path) -> None:
    tie = debate_of(
        scores=np.array([7.0, NAN, 7.0, 9.0]),
        probabilities=np.array([0.1, 0.0, 0.1, 0.8]),
        selected=0,
        tied=(0, 2),
    )
    text = words(shown(write_one(folder, tie)))
    assert "selected = candidates 1, 3 of 4: tied, no decision" in text
    assert "1 7.00 0.100 2 = tied 2 unscored 0.000 - 3 7.00 0.100 2 = tied 4 9.00 0.800 1" in text


def test_a_candidate_drawn_beside_a_tie_is_a_decision(folder: Path) -> None:
    drawn = debate_of(
        scores=np.array([7.0, 7.0, 2.0]), probabilities=np.array([0.4, 0.4, 0.2]), selected=2, tied=(0, 1)
    )
    text = words(shown(write_one(folder, drawn)))
    assert "selected candidate 3 of 3 evaluator" in text
    assert "tied best candidates 1, 2" in text
    assert "1 7.00 0.400 1 = tied 2 7.00 0.400 1 = tied 3 2.00 0.200 3 selected" in text


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (1, "selected candidate 2 (A) of 2, people say 2 (A): right evaluator"),
        ("A", "selected candidate 2 (A) of 2, people say 1 (B): wrong evaluator"),
        ([0, 1], "selected candidate 2 (A) of 2, people say 1 (B) or 2 (A): right evaluator"),
        (None, "selected candidate 2 (A) of 2 evaluator"),
    ],
)
def test_the_head_says_how_the_choice_stands_to_the_label(folder: Path, best: object, said: str) -> None:
    write(folder, TWO_ROUNDS)
    evalset = folder.parent / "tasks.jsonl"
    evalset.write_text(json.dumps({"id": "sky", "x": "Q?", "candidates": ["a", "b"], "best": best}))
    assert said in words(shown(folder, "sky", "--evalset", evalset))


def test_the_reference_is_shown_with_the_task(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    evalset = folder.parent / "tasks.jsonl"
    evalset.write_text(json.dumps({"id": "sky", "x": "Q?", "candidates": ["a", "b"], "reference": "Because."}))
    assert "Q? Reference answer Because. Candidate 1" in words(shown(folder, "sky", "--evalset", evalset))


def test_the_tasks_own_components_are_shown_with_the_task(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    own = [{"name": "cites", "description": "Names a source.", "weight": 0.5}]
    evalset = folder.parent / "tasks.jsonl"
    evalset.write_text(json.dumps({"id": "sky", "x": "Q?", "candidates": ["a", "b"], "components": own}))
    text = words(shown(folder, "sky", "--evalset", evalset))
    assert "Q? Components of the task cites (weight 0.5): Names a source. Candidate 1" in text


def write_one(folder: Path, evaluation: Evaluation) -> Path:
    write(folder, evaluation)
    return folder


def test_an_evaluation_in_which_nothing_was_scored_selects_none(folder: Path) -> None:
    nothing = debate_of(
        scores=np.array([NAN, NAN]), probabilities=np.zeros(2), selected=None, status="failed", stop_reason="failed"
    )
    text = words(shown(write_one(folder, nothing)))
    assert "selected none of 2" in text
    assert "stopped no agent gave a readable reply (failed)" in text


def test_a_scale_on_which_less_is_better_ranks_from_below(folder: Path) -> None:
    errors = debate_of(scale=replace(TWO_ROUNDS.scale, higher_is_better=False), selected=0)
    assert "1 3.00 0.005 1 selected 2 8.25 0.995 2" in words(shown(write_one(folder, errors)))


def test_scores_that_tie_within_rounding_share_a_rank(folder: Path) -> None:
    tie = debate_of(scores=np.array([0.3, 0.1 + 0.2]), selected=0, tied=(0, 1))
    assert "1 0.30 0.005 1 = tied 2 0.30 0.995 1 = tied" in words(shown(write_one(folder, tie)))


def test_the_highest_score_that_there_can_be_stands_beside_the_scores(folder: Path) -> None:
    article = debate_of(scale=Scale(0, 20 / 3), scores=np.array([3.0, 5.83]))
    assert "1 3.00 of 6.67 0.005 2 2 5.83 of 6.67 0.995 1 selected" in words(shown(write_one(folder, article)))
    assert "task selected scores of 6.67 CV rounds ── sky 2 3.0 5.8 0.05 2 agreed" in re.sub(
        "─+", "──", words(shown(folder, "--list"))
    )


def test_the_members_of_a_balanced_debate_come_one_after_the_other(folder: Path) -> None:
    reverse = debate_of(
        *(replace(each, labels={"A": 0, "B": 1}) for each in TWO_ROUNDS.transcript), stop_reason="max_rounds"
    )
    both = debate_of(members=(TWO_ROUNDS, reverse), order_agreement=False, cv=(), stop_reason=None)
    text = words(shown(write_one(folder, both)))
    in_order = [
        "Member 1 of 2: debate, candidates shown in the order 2, 1",
        "1 (B) The first is wrong.",
        "Result of member 1",
        "Member 2 of 2: debate, candidates shown in the order 1, 2",
        "1 (A) The first is wrong.",
        "the last round allowed (max_rounds).",
        "Result of member 2",
        "The two candidate orders choose different candidates.",
    ]
    places = [text.index(part) for part in in_order]
    assert places == sorted(places)


# Which one is shown


def test_without_a_task_id_one_task_is_shown_and_several_are_listed(folder: Path) -> None:
    write(folder, *(debate_of(task_id=name) for name in ("first", "second", "third")))
    text = words(shown(folder))
    assert text.startswith("3 tasks: 3 decided; none has a label task selected ")
    assert text == words(shown(folder, "--list"))
    assert words(shown(folder, "second")).startswith("second selected ")
    write(folder.parent / "one", debate_of(task_id="alone"))
    assert words(shown(folder.parent / "one")).startswith("alone selected ")


def test_the_list_has_a_row_a_task(folder: Path) -> None:
    write(folder, TWO_ROUNDS, debate_of(task_id="sea", status="failed", selected=None, stop_reason="failed"))
    text = words(shown(folder, "--list"))
    assert text.startswith("2 tasks: 1 unscored, 1 decided; none has a label")
    assert "sea - 3.0 8.2 0.05 2 failed sky 2 3.0 8.2 0.05 2 agreed" in text


def test_an_unknown_task_id_is_refused_with_close_ones(folder: Path) -> None:
    write(folder, *(debate_of(task_id=name) for name in ("moon-phases", "tides")))
    assert fault(folder, "moon-phase").hint == "did you mean 'moon-phases'?"
    assert fault(folder, "moon").hint == "did you mean 'moon-phases'?"
    assert fault(folder, "xyz").hint == "--list shows the ids of all tasks"


def test_what_is_no_file_of_results_is_told(folder: Path) -> None:
    (folder / "results.jsonl").mkdir(parents=True)
    assert "results.jsonl: is no regular file" in fault(folder).message
    (folder / "results.jsonl").rmdir()
    (folder / "results.jsonl").symlink_to("/dev/zero")
    assert "results.jsonl: is no regular file" in fault(folder).message


def test_a_place_without_results_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "there is no results file" in fault(tmp_path).message
    write(folder)
    assert "holds no evaluation yet" in fault(folder).message
    assert "holds no evaluation yet" in fault(folder, "--list").message


def test_the_list_and_a_task_id_do_not_go_together(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    assert "a list shows all tasks" in fault(folder, "sky", "--list").message


# The texts, from the eval set


def test_with_the_eval_set_the_texts_that_were_judged_are_shown(folder: Path, tmp_path: Path) -> None:
    evalset = tmp_path / "tasks.jsonl"
    evalset.write_text(
        '{"id": "sea", "x": "?", "candidates": ["a"]}\n'
        '{"id": "sky", "x": "Why is the sky blue?", "context": ["It is noon."], '
        '"candidates": ["Because of the sea.", {"text": "Rayleigh scattering.", "generator": "some-model"}]}\n',
        encoding="utf-8",
    )
    write(folder, TWO_ROUNDS, debate_of(task_id="sea"), debate_of(task_id="sand"))
    text = words(shown(folder, "sky", "--evalset", evalset))
    assert (
        "Why is the sky blue? Context 1 It is noon. Candidate 1 Because of the sea. "
        "Candidate 2: by some-model Rayleigh scattering. Round 1"
    ) in text
    assert "Why is the sky blue?" not in shown(folder, "sky")
    assert "has 1 candidates, and 2 were evaluated" in fault(folder, "sea", "--evalset", evalset).message
    assert "there is no task 'sand'" in fault(folder, "sand", "--evalset", evalset).message


# On a terminal and off it


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(folder: Path, columns: int) -> None:
    long = {"overall": "word " * 60, "comments": ("a" * 200, "b c " * 50)}
    names = tuple(f"component-{k}" for k in range(8))
    wide = debate_of(turn(0, "Critic", [[7.0] * 8, [8.0] * 8], **long), components=names, task_id="t" * 150)
    write(folder, wide, TWO_ROUNDS)
    for text in (shown(folder, COLUMNS=str(columns)), shown(folder, "--list", COLUMNS=str(columns))):
        assert max(map(len, text.splitlines())) <= columns


def test_many_components_are_set_out_in_rows_where_columns_would_not_fit(folder: Path) -> None:
    names = tuple(f"component-{k}" for k in range(8))
    write(folder, debate_of(turn(0, "Critic", [[7.0] * 8, [8.0] * 8]), components=names))
    assert "component-5 7 8" in words(shown(folder, COLUMNS="80"))
    assert "1 (B) 7 7 7 7 7 7 7 7" in words(shown(folder, COLUMNS="160"))


def test_piped_output_holds_no_escape_sequences(folder: Path) -> None:
    write(folder, TWO_ROUNDS)
    assert "\x1b" not in shown(folder)
    assert "\x1b" in shown(folder, FORCE_COLOR="1")


EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202edlrow\r[red]markup[/red] [/] :smile: \x00\x7f"


@pytest.mark.parametrize("force_color", [None, "1"])
def test_nothing_a_model_wrote_acts_on_the_terminal(folder: Path, force_color: str | None) -> None:
    evil = turn(
        0,
        f"Critic{EVIL}",
        [[2, 3], [8, 9]],
        overall=EVIL,
        comments=(EVIL, EVIL),
        labels={f"A{EVIL}": 1, "B": 0},
        memories=(Memory(EVIL),),
        invalid_replies=(InvalidReply(EVIL, EVIL, EVIL),),
    )
    failed = replace(failed_turn(0, "Supporter"), failure=Failure(EVIL, EVIL))
    write(
        folder,
        debate_of(evil, failed, task_id=f"sky{EVIL}", evaluator=EVIL, error=EVIL, components=(EVIL, "relevance")),
    )
    colour = {} if force_color is None else {"FORCE_COLOR": force_color}
    for arguments in ([folder, "--raw"], [folder, "--list"]):
        text = shown(*arguments, COLUMNS="300", **colour)
        for control in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\u202e", "\r", "\x00", "\x7f"):
            assert control not in text
        assert r"\x1b[2J\x1b]0;title\x07\x9b31m\u202edlrow\x0d[red]markup[/red] [/] :smile: \x00\x7f" in text


def test_a_debate_is_drawn_as_a_picture_that_loads_nothing_and_is_the_same_each_time(folder: Path) -> None:
    write(folder, debate_of(turn(0, f"Critic{EVIL}", [[2, 3], [8, 9]], overall=f"<script>{EVIL}\ud800")))
    for name in ("a.svg", "b.svg"):
        shown(folder, "--svg", folder / name, COLUMNS="40")
    text = (folder / "a.svg").read_text(encoding="utf-8")
    assert (folder / "b.svg").read_text(encoding="utf-8") == text
    picture = ElementTree.fromstring(text)
    assert {each.tag.split("}")[1] for each in picture.iter()} <= {
        "svg",
        "style",
        "defs",
        "clipPath",
        "rect",
        "g",
        "text",
        "circle",
    }
    said = "".join(picture.itertext()).replace("\u00a0", " ")
    assert r"<script>\x1b[2J" in said
    assert "accuracy" in said
    assert "url(http" not in text


def test_a_list_cannot_be_drawn(folder: Path) -> None:
    write(folder, TWO_ROUNDS, replace(TWO_ROUNDS, task_id="sea"))
    assert "draws one debate" in str(fault(folder, "--svg", folder / "a.svg"))


def test_a_text_that_stdout_cannot_encode_is_spelled_out(folder: Path) -> None:
    write(folder, debate_of(turn(0, "Critic", [[2, 3], [8, 9]], overall="caf\u00e9 \U0001f600")))
    result = CliRunner(charset="ascii").invoke(app, [str(folder)], env={"COLUMNS": "80"}, catch_exceptions=False)
    assert r"caf\xe9 \U0001f600" in result.output
