"""The metric in DSPy itself, under `Evaluate`, MIPROv2's bootstrapping and GEPA, with scripted models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from debate import Engine, Judge, Task
from debate.adapters.dspy import as_metric, prediction_text, task_of
from debate.backends import Scripted
from debate.errors import TaskError, UnscoredError
from debate.statistics import paired_difference
from examples import optimize_prompt as example_script
from tests.adapters.by_answer import ByAnswer
from tests.required import required_framework
from tests.small_flows import debates

dspy: Any = required_framework("dspy")
pytestmark = pytest.mark.filterwarnings("ignore")
GOOD = "add the numbers one by one"
"""An instruction with which the scripted student answers well."""


@pytest.fixture
def script() -> ByAnswer:
    return ByAnswer()


@pytest.fixture
def judge(script: ByAnswer) -> Iterator[Judge]:
    with Engine(Scripted(script.answer)) as engine:
        yield Judge(engine, debates(retries=0), on_unscored="fallback", fallback=0.0)


def example(question: str, **labels: str) -> Any:
    return dspy.Example(question=question, **labels).with_inputs("question")


def answering(text: str) -> Any:
    """A program that always answers alike."""

    class Program(dspy.Module):
        def forward(self, question: str) -> Any:
            return dspy.Prediction(answer=text)

    return Program()


def test_a_score_has_feedback_and_components(judge: Judge) -> None:
    found = as_metric(judge)(example("2 + 2?", answer="4"), dspy.Prediction(answer="8"))
    assert isinstance(found, dspy.Prediction)
    assert found.score == pytest.approx(0.8)
    assert found.objective_scores == pytest.approx({"clarity": 0.8, "truth": 0.8})
    assert "it is right" in found.feedback
    assert float(found) == found.score


def test_what_is_bootstrapped_has_a_plain_score_of_which_zero_is_no_success(judge: Judge) -> None:
    metric = as_metric(judge)
    assert metric(example("2 + 2?"), dspy.Prediction(answer="0"), []) == 0.0
    assert not metric(example("2 + 2?"), dspy.Prediction(answer="0"), [])
    assert metric(example("2 + 2?"), dspy.Prediction(answer="0"), [], "predict", []).score == 0.0


def test_the_judges_see_inputs_all_fields_of_the_answer_and_labels_as_the_reference() -> None:
    one = task_of(example("2 + 2?", answer="4"), dspy.Prediction(answer="5"))
    assert (one.x, [each.text for each in one.candidates], one.reference) == ("2 + 2?", ["5"], "4")
    gold = dspy.Example(question="Who?", notes=["a", 1], answer="me").with_inputs("question", "notes")
    several = task_of(gold, dspy.Prediction(reasoning="so", answer={"name": "I"}))
    assert several.x == 'question: Who?\n\nnotes: ["a", 1]'
    assert several.candidates[0].text == 'reasoning: so\n\nanswer: {"name": "I"}'
    assert task_of(example("alone"), dspy.Prediction(answer="x")).reference is None


def test_an_example_without_named_inputs_is_refused() -> None:
    with pytest.raises(TaskError, match="the inputs of an example are not named") as caught:
        task_of(dspy.Example(question="2 + 2?"), dspy.Prediction(answer="4"))
    assert "with_inputs" in str(caught.value.hint)


def test_a_baseline_is_the_second_candidate(judge: Judge) -> None:
    seen: list[Task] = []

    def noting(gold: Any, pred: Any) -> Task:
        seen.append(task_of(gold, pred))
        return seen[-1]

    metric = as_metric(judge, task=noting, against=lambda gold: dspy.Prediction(answer="3"))
    found = metric(example("2 + 2?"), dspy.Prediction(answer="8"))
    assert found.score == pytest.approx(0.8)
    assert found.feedback.startswith("Candidate 1 of 2: ")
    alone = as_metric(judge, against=lambda gold: None)(example("2 + 2?"), dspy.Prediction(answer="8"))
    assert alone.feedback.startswith("Candidate 1 of 1: ")
    assert prediction_text("3") == "3"


def test_evaluate_counts_an_unscored_example_as_the_fallback_and_goes_on(judge: Judge) -> None:
    devset = [*(example(f"{n} + 2?") for n in range(9)), example("a riddle")]
    evaluate = dspy.Evaluate(devset=devset, metric=as_metric(judge), num_threads=4, display_progress=False)
    assert evaluate(answering("8")).score == pytest.approx(100 * 0.8 * 9 / 10)


def test_evaluate_ends_when_missing_scores_are_to_raise(script: ByAnswer) -> None:
    with Engine(Scripted(script.answer)) as engine:
        metric = as_metric(Judge(engine, debates(retries=0)))
        with pytest.raises(UnscoredError, match="has no score"):
            metric(example("a riddle"), dspy.Prediction(answer="8"))
        devset = [example(f"riddle {n}") for n in range(8)]
        evaluate = dspy.Evaluate(devset=devset, metric=metric, num_threads=1, max_errors=2, display_progress=False)
        with pytest.raises(Exception, match=r"(?i)cancelled|error"):
            evaluate(answering("8"))


def test_bootstrapping_keeps_demonstrations_above_a_threshold_only(judge: Judge) -> None:
    class Student(dspy.Module):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.predict = dspy.Predict("question -> answer")

        def forward(self, question: str) -> Any:
            return self.predict(question=question)

    trainset = [example(f"{n} + 2?", answer="8") for n in range(4)]
    lm = dspy.utils.DummyLM([{"answer": answer} for answer in ("2", "9", "0", "9")] * 9)
    with dspy.context(lm=lm):
        optimizer = dspy.BootstrapFewShot(metric=as_metric(judge), metric_threshold=0.5, max_labeled_demos=0)
        compiled = optimizer.compile(Student(), trainset=trainset)
    assert {demo.answer for demo in compiled.predict.demos} == {"9"}


def gepa_run(judge: Judge, *, budget: int = 40) -> tuple[Any, list[str]]:
    """GEPA from a bad instruction: a student that follows it, and a proposer that reads the feedback."""
    shown: list[str] = []

    class Student(dspy.Module):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.predict = dspy.Predict(dspy.Signature("question -> answer", "answer somehow"))

        def forward(self, question: str) -> Any:
            good = GOOD in self.predict.signature.instructions
            with dspy.context(lm=dspy.utils.DummyLM([{"answer": "9" if good else "1"}])):
                return self.predict(question=question)

    def propose(candidate: dict[str, str], reflective_dataset: Any, components_to_update: list[str]) -> dict[str, str]:
        said = " ".join(record["Feedback"] for name in components_to_update for record in reflective_dataset[name])
        shown.append(said)
        learned = GOOD if "one by one" in said else "answer in some other way"
        return dict.fromkeys(components_to_update, learned)

    questions = [example(f"{n} + 2?") for n in range(5)] + [example("a riddle")]
    optimizer = dspy.GEPA(
        metric=as_metric(judge), max_metric_calls=budget, instruction_proposer=propose, num_threads=4, track_stats=True,
        gepa_kwargs={"frontier_type": "hybrid"},
    )  # fmt: skip
    with dspy.context(lm=dspy.utils.DummyLM([{"answer": "1"}] * 999)):
        return optimizer.compile(Student(), trainset=questions, valset=questions), shown


def test_gepa_goes_from_a_bad_instruction_to_a_good_one_past_an_unscored_example(
    judge: Judge, script: ByAnswer
) -> None:
    program, shown = gepa_run(judge)
    assert program.predict.signature.instructions == GOOD
    assert program.detailed_results.objective_pareto_front == pytest.approx({"clarity": 0.75, "truth": 0.75})
    assert any("was not scored" in said for said in shown), "the example without a score is told with its reason"
    # Two answers to five questions, and to the riddle: what GEPA asks for again is not paid again.
    assert len(script.tasks) <= 12
    assert script.calls <= 12 * 4


@pytest.fixture(scope="module")
def optimized() -> dict[str, list[tuple[int, float]]]:
    """By feedback: for each of some seeds, the cures in GEPA's last prompt, and its gain over the first one's score."""
    found: dict[str, list[tuple[int, float]]] = {}
    with Engine(Scripted(example_script.judge_answers)) as engine:
        judge = Judge(engine, debates(rounds=1), on_unscored="fallback")
        for feedback in ("judges", "none", "shuffled"):
            for seed in range(20):
                inputs = example_script.questions(seed)
                best = example_script.with_gepa(
                    judge, example_script.START, inputs, seed=seed, feedback=feedback, budget=100
                )
                start, end = (example_script.mean_score(judge, each, inputs) for each in (example_script.START, best))
                cured = sum(cure in best for cure in example_script.CURES.values())
                found.setdefault(feedback, []).append((cured, end - start))
    return found


def test_gepa_of_the_example_cures_a_bad_prompt_with_the_judges_words(optimized: Any) -> None:
    assert sum(cured == 4 for cured, _ in optimized["judges"]) >= 16
    assert min(gain for _, gain in optimized["judges"]) > 0.1


@pytest.mark.parametrize("control", ["none", "shuffled"])
def test_gepa_of_the_example_does_worse_without_words_and_with_those_on_other_inputs(
    optimized: Any, control: str
) -> None:
    gains = {feedback: [gain for _, gain in runs] for feedback, runs in optimized.items()}
    worse = paired_difference(gains[control], gains["judges"])
    assert worse.n == 20
    assert worse.interval[1] < 0, "the whole interval of the difference is below zero"
    assert sum(cured == 4 for cured, _ in optimized[control]) <= 4


class Noting(Judge):
    """A judge that notes what it is asked."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.asked: list[Task] = []

    def submit(self, task: Task) -> Any:
        self.asked.append(task)
        return super().submit(task)


def test_gepa_pays_once_for_each_pair_of_an_example_and_a_response_past_an_unscored_one() -> None:
    """One example has no readable reply: GEPA ends as well as without it, and is told why it has no score."""
    inputs = example_script.questions(0)
    lost = inputs[0].x
    calls: list[tuple[Any, ...]] = []

    def answer(call: Any) -> str:
        calls.append((call.info["task_id"], call.info["agent"], call.info["round"], call.info["attempt"]))
        return "I cannot say." if lost in call.messages[-1]["content"] else example_script.judge_answers(call)

    with Engine(Scripted(answer)) as engine:
        judge = Noting(engine, debates(rounds=1, retries=0), on_unscored="fallback", fallback=0.0)
        best = example_script.with_gepa(judge, example_script.START, inputs)
    assert all(cure in best for cure in example_script.CURES.values())
    assert len(judge.asked) > 150
    assert len({task_id for task_id, *_ in calls}) == len(set(judge.asked))
    assert len(calls) == len(set(calls)), "no call is paid twice"
    unscored = [task for task in set(judge.asked) if task.x == lost]
    assert unscored


def test_miprov2_chooses_the_instruction_that_the_judges_score_best() -> None:
    inputs = example_script.questions(0)
    good = " ".join([example_script.START, *example_script.CURES.values()])
    proposals = ["Be friendly.", good, f"{example_script.START} {example_script.CURES['sums']}"]
    rows = [dspy.Example(question=each.x).with_inputs("question") for each in inputs]
    with Engine(Scripted(example_script.judge_answers)) as engine:
        metric = as_metric(Judge(engine, debates(rounds=1), on_unscored="fallback"))
        optimizer = dspy.MIPROv2(
            task_model=dspy.utils.DummyLM([]),
            metric=metric, auto=None, num_candidates=4, max_bootstrapped_demos=0, max_labeled_demos=0, num_threads=4,
            prompt_model=dspy.utils.DummyLM([{"proposed_instruction": each} for each in proposals * 9]),
        )  # fmt: skip
        with dspy.context(lm=dspy.utils.DummyLM([])):
            best = optimizer.compile(
                example_script.student(dspy, example_script.START), trainset=rows, valset=rows, num_trials=12,
                minibatch=False, program_aware_proposer=False, data_aware_proposer=False, tip_aware_proposer=False,
                fewshot_aware_proposer=False,
            )  # fmt: skip
    assert best.predict.signature.instructions == good
