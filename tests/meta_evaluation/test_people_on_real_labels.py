"""Real labels of people, read, judged and joined by our own means: PandaLM, LLMBar, newsroom."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import PanelEvaluator, VoteEvaluator
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.evaluators.base import Evaluator
from debate.jobs.run import Run
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.meta_evaluation.trust import TrustFigures, agree
from debate.statistics import Accuracy
from debate.testing import SilentListener, reply_for
from debate.types import FloatArray
from tests.dataset.files import DATA
from tests.required import required
from tests.small_flows import debates

required(DATA.is_dir(), "the labelled data is not beside the checkout")

JUDGES = {"gpt-3.5-turbo": "gpt", "pandalm-7b": "pandalm"}
"""By model, how the file of its judgments calls it."""
PEOPLE = ("annotator1", "annotator2", "annotator3")
CRITERIA = ("Informativeness", "Relevance", "Fluency", "Coherence")


def judge(evalset: Path, folder: Path, evaluator: Evaluator, **scripts: Callable[[Call], str]) -> Path:
    job = Run(evalset=EvalSet(evalset), folder=folder, evaluator=evaluator, settings=RunSettings())
    job.execute({name: Scripted(script, model=name) for name, script in scripts.items()}, SilentListener())
    return folder


def rows(path: str) -> list[dict[str, Any]]:
    return json.loads((DATA / path).read_text())


# ---- PandaLM: recorded judgments of two models, replayed, against three people


def recorded(model: str) -> dict[str, int | None]:
    """What a model said of each pair: 0 is a tie, 1, 2; None where it was garbage."""
    name = JUDGES[model]
    code = {"0": 0, "Tie": 0, "1": 1, "2": 2, "garbage": None}
    return {str(row["idx"]): code[str(row[f"{name}_result"])] for row in rows(f"pandalm/{model}-testset-v1.json")}


def replayed(model: str) -> Callable[[Call], str]:
    said = recorded(model)

    def script(call: Call) -> str:
        choice, shown = said[call.info["task_id"]], {j: label for label, j in call.info["labels"].items()}
        if choice is None:
            return "garbage"
        return json.dumps({"reasoning": "as recorded", "better": "tie" if choice == 0 else shown[choice - 1]})

    return script


@pytest.fixture(scope="module")
def pandalm(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    ballot: dict[str, Any] = {"ballots": 1, "ballot": "pairwise", "retries": 0}
    panel = PanelEvaluator(members={model: VoteEvaluator(model=model, **ballot) for model in JUDGES}, quorum=1)
    scripts = {model: replayed(model) for model in JUDGES}
    folder = tmp_path_factory.mktemp("pandalm") / "out"
    return read_run(judge(DATA / "pandalm" / "testset-v1.json", folder, panel, **scripts))


def code(choice: tuple[int, ...]) -> int | None:
    """A choice in the file's spelling: 0 is a tie, 1, 2; None where nothing was chosen."""
    return None if not choice else 0 if len(choice) == 2 else choice[0] + 1


def test_recorded_judgments_against_each_annotator_are_counted_as_in_the_files(pandalm: JudgedRun) -> None:
    people = rows("pandalm/testset-v1.json")
    for n, model in enumerate(JUDGES):
        said = recorded(model)
        for h, person in enumerate(PEOPLE):
            found = Counter((code(each.members[n].choice), code(each.labels.votes[h].choice)) for each in pandalm.tasks)
            assert found == Counter((said[str(row["idx"])], row[person]) for row in people)
        assert sum(each.members[n].status == "failed" for each in pandalm.tasks) == [*said.values()].count(None)
    assert [vote.by for vote in pandalm.tasks[0].labels.votes] == [*PEOPLE]


def test_garbage_is_unscored_and_never_counted_as_an_answer(pandalm: JudgedRun) -> None:
    unread = {each.task_id for each in pandalm.tasks if not each.members[0].choice}
    assert len(unread) == 25
    assert unread == {name for name, said in recorded("gpt-3.5-turbo").items() if said is None}
    assert all(np.isnan(each.members[0].scores).all() for each in pandalm.tasks if each.task_id in unread)


RHO = {"gpt-3.5-turbo": 0.758042, "pandalm-7b": 0.714715}
"""How often each judge is at least as near to the other people as a person is. Neither may replace one."""


@pytest.fixture(scope="module")
def agreed(pandalm: JudgedRun) -> dict[str, TrustFigures]:
    """What `debate agree` says of each judge."""
    return {
        model: agree(replace(pandalm, tasks=[each.members[n] for each in pandalm.tasks]))
        for n, model in enumerate(JUDGES)
    }


def majority(row: dict[str, Any]) -> int | None:
    (choice, count), *_ = Counter(row[person] for person in PEOPLE).most_common(1)
    return choice if count > 1 else None


@pytest.mark.parametrize("model", JUDGES)
def test_what_agree_counts_of_pandalm_is_what_is_in_its_files(agreed: dict[str, TrustFigures], model: str) -> None:
    found, people = agreed[model], [majority(row) for row in rows("pandalm/testset-v1.json")]
    said = list(zip([*recorded(model).values()], people, strict=True))
    assert (found.tasks, found.rates.split, found.rates.tied) == (999, people.count(None), people.count(0))
    assert found.choices is not None
    right, dropped = found.choices.right, [both for both in said if both[1]]
    assert (found.rates.decided, right.labeled, right.right) == (
        len(dropped),
        len(dropped),
        sum(a == b for a, b in dropped),
    )
    assert right.unscored == sum(a is None for a, _ in dropped)
    assert right.tied == sum(a == 0 for a, _ in dropped)
    as_class = [a == b for a, b in said if a is not None and b is not None]
    pairs = {each.ties: each.judge for each in found.choices.pairs}
    assert (pairs["class"].estimate, pairs["class"].n) == (pytest.approx(np.mean(as_class)), len(as_class))


@pytest.mark.parametrize("model", JUDGES)
def test_people_against_people_and_the_judge_against_one_of_them_are_those_of_the_files(
    agreed: dict[str, TrustFigures], model: str
) -> None:
    found = agreed[model].among_people
    assert found is not None
    votes = [[row[person] for person in PEOPLE] for row in rows("pandalm/testset-v1.json")]
    alike = [(a == b) + (b == c) + (a == c) for a, b, c in votes]
    assert found.two_people.estimate == pytest.approx(sum(alike) / 3 / len(votes))
    with_one = [each.count(choice) / 3 for each, choice in zip(votes, recorded(model).values(), strict=True)
                if choice is not None]  # fmt: skip
    assert found.judge_and_one.estimate == pytest.approx(np.mean(with_one))


@pytest.mark.parametrize("model", JUDGES)
def test_the_alternative_annotator_test_on_three_people_is_that_of_the_files(
    agreed: dict[str, TrustFigures], model: str
) -> None:
    found, said = agreed[model].among_people, [*recorded(model).values()]
    assert found is not None
    assert found.test is not None
    assert [person.name for person in found.people] == [*PEOPLE]
    for person in found.people:
        won = total = 0
        for row, choice in zip(rows("pandalm/testset-v1.json"), said, strict=True):
            others = [row[other] for other in PEOPLE if other != person.name]
            total += choice is not None
            won += choice is not None and others.count(choice) >= others.count(row[person.name])
        assert person.advantage == pytest.approx(won / total)
    assert found.test.left_out == said.count(None)
    assert (found.test.passes, found.test.estimate) == (False, pytest.approx(RHO[model], abs=1e-6))


# ---- LLMBar: labels that come in a file of their own


def test_labels_of_llmbar_are_joined_with_a_run_that_did_not_have_them(tmp_path: Path) -> None:
    pairs = rows("llmbar/Natural.json")
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps([{key: row[key] for key in ("input", "output_1", "output_2")} for row in pairs]))
    out = judge(bare, tmp_path / "out", debates(rounds=1), scripted=reply_for)
    assert not any(each.labels for each in read_run(out).tasks)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task_id", "best"])
        ids = [each.task_id for each in read_run(out).tasks]
        writer.writerows((name, "AB"[row["label"] - 1]) for name, row in zip(ids, pairs, strict=True))
        writer.writerow(["elsewhere", "A"])
    found = read_run(out, tmp_path / "labels.csv")
    lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())  # in the order of their ends
    results = {each["task_id"]: each for each in lines}
    assert found.unknown_labels == ("elsewhere",)
    expected = Counter[str]()
    for each, row in zip(map(results.__getitem__, ids), pairs, strict=True):
        is_tied = len(each["tied"]) > 1
        expected["tied" if is_tied else "right" if each["selected"] == row["label"] - 1 else "wrong"] += 1
    choices = agree(found).choices
    assert choices is not None
    assert choices.right == Accuracy(len(pairs), expected["right"], expected["tied"], 0, 0.5)
    assert expected["right"] > 0 < expected["wrong"]


# ---- newsroom: three people rate the seven summaries of an article by four criteria


def newsroom() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "newsroom" / "ratings.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """A run over the articles, whose texts are not at hand, with the ratings as a file of labels."""
    folder = tmp_path_factory.mktemp("newsroom")
    tasks, labels = folder / "tasks.jsonl", folder / "labels.jsonl"
    with tasks.open("w") as to_judge, labels.open("w") as said:
        for article in newsroom():
            items: list[dict[str, Any]] = article["items"]
            candidates = [{"text": f"Summary {item['id']}.", "id": str(item["id"])} for item in items]
            to_judge.write(json.dumps({"id": article["doc"], "x": "Sum up.", "candidates": candidates}) + "\n")
            for n in range(3):
                scores = {name: [item["ratings"][name][n] for item in items] for name in CRITERIA}
                said.write(json.dumps({"task_id": article["doc"], "by": f"rater {n + 1}", "scores": scores}) + "\n")
    return read_run(judge(tasks, folder / "out", debates(rounds=1), scripted=reply_for), labels)


def of_people(run: JudgedRun, criterion: str) -> FloatArray:
    """What each person gave each summary, (n, people)."""
    return np.concatenate(
        [np.column_stack([vote.scores[criterion] for vote in each.labels.votes]) for each in run.tasks]
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_ratings_of_newsroom_are_those_of_the_file(rated: JudgedRun, criterion: str) -> None:
    given = [item["ratings"][criterion] for article in newsroom() for item in article["items"]]
    assert of_people(rated, criterion).tolist() == given
    together = np.concatenate([each.labels.together.scores[criterion] for each in rated.tasks])
    assert together == pytest.approx([sum(each) / 3 for each in given])


ALPHA = {"Informativeness": 0.2911500, "Relevance": 0.1684327, "Fluency": 0.0264307, "Coherence": 0.0869950}
"""Krippendorff's alpha of the three raters, interval level, by the package krippendorff 0.9."""


def test_people_against_people_on_newsroom(rated: JudgedRun) -> None:
    found = {each.name: each for each in agree(rated).components}
    assert [*found] == [*CRITERIA]
    for criterion, each in found.items():
        assert each.among_people is not None
        assert (each.among_people.estimate, each.among_people.n) == (pytest.approx(ALPHA[criterion], abs=1e-6), 420)
        assert each.people == pytest.approx(of_people(rated, criterion).mean())
