"""What other tools read: preference pairs, AlpacaEval annotations, inspect scores, MT-bench judgments."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from debate.evaluation import Evaluation
from debate.export import export_named
from debate.export.preferences import write_preferences
from debate.registry import EXPORTS
from debate.scoring.distributions import expectation_of
from debate.types import LabelDistribution, Scale, SilentReadout, Task, Transcript
from tests.export.evaluated import debated, lines_of, scored, task


def test_a_response_is_not_preferred_to_itself(tmp_path: Path) -> None:
    twins = Task("Why?", ["same", "same", "other"], "t")
    export_named("preferences").write([(twins, scored(1, 9, 3))], tmp_path / "p.jsonl", "run")
    assert [(row["chosen"], row["rejected"]) for row in lines_of(tmp_path / "p.jsonl")] == [("same", "other")]


def test_of_a_conversation_messages_are_preferred(tmp_path: Path) -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "User: hi"}]
    reply = [{"role": "assistant", "content": "no"}]
    tasks = [Task(asked, [reply, "yes"], "a"), Task("Why?", [reply, "yes"], "b"), Task("Why?", ["no", "yes"], "c")]
    export_named("preferences").write([(each, scored(1, 9)) for each in tasks], tmp_path / "p.jsonl", "run")
    rows = [(row["prompt"], row["chosen"], row["rejected"]) for row in lines_of(tmp_path / "p.jsonl")]
    yes = [{"role": "assistant", "content": "yes"}]
    assert rows == [(asked, yes, reply), ([{"role": "user", "content": "Why?"}], yes, reply), ("Why?", "yes", "no")]


def test_preferences_pair_the_best_with_every_worse_one(tmp_path: Path) -> None:
    results = [
        (task(4, "a"), scored(5, 8, math.nan, 8)),
        (task(2, "b"), scored(1, 1)),
        (task(2, "c"), scored(2, 7, scale=Scale(0, 10, False))),
    ]
    written = export_named("preferences").write(results, tmp_path / "p.jsonl", "run")
    rows = lines_of(tmp_path / "p.jsonl")
    assert [(row["task_id"], row["chosen"], row["rejected"], row["margin"]) for row in rows] == [
        ("a", "answer 1", "answer 0", 3.0),
        ("c", "answer 0", "answer 1", 5.0),
    ]
    assert dict(written.skipped) == {"no candidate is better than a different one by the margin": 1}
    assert write_preferences(results, tmp_path / "p.jsonl", "run", min_margin=4).rows == 1


def test_scores_that_tie_within_rounding_make_no_preference(tmp_path: Path) -> None:
    written = export_named("preferences").write([(task(2), scored(0.3, 0.1 + 0.2))], tmp_path / "p.jsonl", "run")
    assert written.rows == 0


def test_alpaca_annotations_hold_pairs_alone_and_say_how_many_were_left_out(tmp_path: Path) -> None:
    results = [(task(2), scored(5, 5)), (task(3), scored(1, 2, 3)), (task(2), scored(0, 9))]
    written = export_named("alpaca_eval").write(results, tmp_path / "a.json", "run")
    first, second = json.loads((tmp_path / "a.json").read_text())
    assert (first["preference"], written.skipped.total()) == (1.5, 1)
    assert 1.5 < second["preference"] <= 2
    assert (second["generator_2"], second["output_2"]) == ("m1", "answer 1")


@pytest.mark.parametrize("name", [name for name in EXPORTS.entries if name not in ("tasks", "scores", "turns")])
def test_every_format_takes_scores_that_were_read_out_and_agents_that_abstained(tmp_path: Path, name: str) -> None:
    sure, abstained = LabelDistribution({"7": 1.0}), LabelDistribution({"null": 1.0})
    cells = ((sure, abstained), (abstained, abstained))  # (J, K)
    scores = expectation_of(cells)
    found = debated([[np.ones((2, 2))]])
    turn = replace(found.transcript.turns[0], scores=scores, distributions=cells)
    silent = (SilentReadout(agent="a0", scores=scores, distributions=cells),)
    found = replace(
        found,
        scores=np.array([7.0, math.nan]),
        tensor=scores[None, None],
        agents=("a0",),
        transcript=Transcript((turn,)),
        p_best=np.array([1.0, 0.0]),
        before=silent,
        after=silent,
    )
    export = export_named(name)
    results = [(labeled(0), found), (labeled(1), replace(found, scores=np.full(2, math.nan), selected=None))]
    export.write(results, tmp_path / export.file, "run")
    text = (tmp_path / export.file).read_text()
    assert "nan" not in text
    assert ("NaN" in text) == (name == "inspect_scores")


def labeled(best: object, n: int = 2, name: str = "t") -> Task:
    return Task("Why?", task(n).candidates, name, best=best)


def test_inspect_gets_correct_or_incorrect_by_the_label_so_that_its_accuracy_is_the_runs(tmp_path: Path) -> None:
    results = [
        (labeled(1, name="right"), scored(3, 7)),
        (labeled(0, name="wrong"), scored(3, 7)),
        (labeled(0, name="tied"), scored(7, 7)),
        (labeled([0, 1], name="tied among the right"), scored(7, 7)),
        (labeled(0, name="unscored"), scored(math.nan, math.nan)),
        (task(2, "unlabeled"), scored(3, 7)),
    ]
    written = export_named("inspect").write(results, tmp_path / "i.jsonl", "run")
    rows = {row["id"]: row for row in lines_of(tmp_path / "i.jsonl")}
    values = {"right": "C", "wrong": "I", "tied": "I", "tied among the right": "C", "unscored": "N"}
    assert {name: row["value"] for name, row in rows.items()} == values
    assert {name: row["answer"] for name, row in rows.items()} == {
        "right": "m1",
        "wrong": "m1",
        "tied": "m0 = m1",
        "tied among the right": "m0 = m1",
        "unscored": None,
    }
    assert rows["right"]["metadata"]["scores"] == {"m0": 3.0, "m1": 7.0}
    assert dict(written.skipped) == {"it has no label (--to inspect_scores writes all scores)": 1}


def test_inspect_gets_a_single_candidates_score_on_0_to_1_where_there_is_no_label(tmp_path: Path) -> None:
    results = [(task(1, "high"), scored(7)), (task(1, "errors"), scored(1, scale=Scale(0, 4, False)))]
    export_named("inspect").write(results, tmp_path / "i.jsonl", "run")
    assert [row["value"] for row in lines_of(tmp_path / "i.jsonl")] == [0.7, 0.75]


def test_inspect_gets_every_candidates_score_by_its_generator_where_it_is_asked_for(tmp_path: Path) -> None:
    results = [(task(2, "a"), scored(3, math.nan)), (labeled(0, name="b"), scored(3, 7))]
    assert export_named("inspect_scores").write(results, tmp_path / "i.jsonl", "run").rows == 2
    first, second = (row["value"] for row in lines_of(tmp_path / "i.jsonl"))
    assert (first["m0"], math.isnan(first["m1"]), second) == (3.0, True, {"m0": 3.0, "m1": 7.0})


def test_mt_bench_judgments_are_on_one_to_ten(tmp_path: Path) -> None:
    export_named("mt_bench").write([(task(2, "81"), scored(0, 10))], tmp_path / "j.jsonl", "run")
    rows = lines_of(tmp_path / "j.jsonl")
    assert [(row["question_id"], row["model"], row["score"]) for row in rows] == [(81, "m0", 1.0), (81, "m1", 10.0)]


def test_only_a_plain_number_becomes_the_number_of_a_question(tmp_path: Path) -> None:
    results = [(task(1, name), scored(7)) for name in ("7", "007", "a7", "٣")]
    export_named("mt_bench").write(results, tmp_path / "j.jsonl", "run")
    assert [row["question_id"] for row in lines_of(tmp_path / "j.jsonl")] == [7, "007", "a7", "٣"]


def test_mt_bench_pairs_name_the_winner_of_each_two(tmp_path: Path) -> None:
    results = [
        (task(3, "a"), scored(5, 9, 5.1)),
        (task(2, "b"), scored(5, 9, scale=Scale(0, 10, False))),
        (task(2, "c"), scored(5, math.nan)),
    ]
    written = export_named("mt_bench_pairs").write(results, tmp_path / "j.jsonl", "run")
    rows = lines_of(tmp_path / "j.jsonl")
    assert [(row["model_1"], row["model_2"], row["g1_winner"], row["g2_winner"]) for row in rows] == [
        ("m0", "m1", "model_2", "model_2"),
        ("m0", "m2", "tie", "tie"),  # .09 apart on 1 to 10
        ("m1", "m2", "model_1", "model_1"),
        ("m0", "m1", "model_1", "model_1"),
    ]
    assert dict(written.skipped) == {"fewer than two candidates have a score": 1}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_games_of_a_pair_are_the_orders_of_a_balanced_debate(tmp_path: Path, is_reversed: bool) -> None:
    """The member that showed candidate 0 first prefers it; the other prefers candidate 1."""
    forth = _shown(debated([[[[8.0, 8.0], [2.0, 2.0]]]]), {"A": 0, "B": 1})
    back = _shown(debated([[[[3.0, 3.0], [9.0, 9.0]]]]), {"A": 1, "B": 0})
    members = (back, forth) if is_reversed else (forth, back)
    both = replace(scored(5.5, 5.5), members=members, order_agreement=False)
    export_named("mt_bench_pairs").write([(task(2), both)], tmp_path / "j.jsonl", "run")
    (row,) = lines_of(tmp_path / "j.jsonl")
    assert (row["g1_winner"], row["g2_winner"]) == ("model_1", "model_2")
    assert row["m1_score"] == row["m2_score"] == pytest.approx(5.95)
    assert row["g1_judgment"].startswith("Candidate 1 of 2: 8.00")


def _shown(evaluation: Evaluation, labels: dict[str, int]) -> Evaluation:
    turns = tuple(replace(turn, labels=labels) for turn in evaluation.transcript)
    return replace(evaluation, transcript=Transcript(turns))
