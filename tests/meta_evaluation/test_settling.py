"""From which certainty on silent rounds may settle, and what became of those that did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator
from debate.backends import Call, Scripted
from debate.errors import InputError
from debate.flow import Completion
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.aggregation import Aggregation
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.meta_evaluation.settling import choose_settling, settling_figures, silent_rounds
from debate.meta_evaluation.stopping import try_rules
from debate.meta_evaluation.trust import agree
from debate.scoring.distributions import distribution_of
from debate.testing import Recorder, reply_for
from tests.meta_evaluation.silent_judge import DOUBT, judge, silent_run, tasks
from tests.meta_evaluation.small_runs import scripted_run
from tests.small_flows import debates

N_TASKS = 100
N_DOUBTFUL = N_TASKS // DOUBT
OPEN: dict[str, Any] = {"rounds": 1, "silent_readouts": True}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """Labeled tasks that were all debated after a silent round."""
    return silent_run(tmp_path_factory.mktemp("recorded"), tasks(N_TASKS), debates(**OPEN))


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """The same tasks, of which those without doubt were settled."""
    return silent_run(tmp_path_factory.mktemp("settled"), tasks(N_TASKS), debates(rounds=1, settle="p_best=0.8"))


def test_the_threshold_keeps_what_is_sure_and_right(recorded: JudgedRun) -> None:
    chosen = choose_settling(recorded, 0.05)
    assert (chosen.reference, chosen.tasks, chosen.settled) == ("labels", N_TASKS, N_TASKS - N_DOUBTFUL)
    assert (chosen.found.wrong, chosen.found.kept) == (0, N_TASKS - N_DOUBTFUL)
    assert str(chosen.rule).startswith("p_best=0.9")


@pytest.mark.parametrize("measure", ["p_best", "margin", "agreement"])
def test_the_rule_that_is_chosen_settles_what_it_was_said_to(recorded: JudgedRun, measure: Any, tmp_path: Path) -> None:
    chosen = choose_settling(recorded, 0.05, measure)
    again = silent_run(tmp_path, tasks(N_TASKS), debates(rounds=1, settle=chosen.rule))
    assert sum(task.stop_reason == "settled" for task in again.tasks) == chosen.settled


def test_without_labels_a_silent_choice_is_held_to_what_the_debates_chose(tmp_path: Path) -> None:
    run = silent_run(tmp_path, tasks(N_TASKS, is_labeled=False), debates(**OPEN))
    chosen = choose_settling(run, 0.05)
    debated = sum(set(each.choice) != set(each.task.choice) for each in silent_rounds(run))
    assert chosen.reference == "debates"
    assert debated > 20
    assert chosen.rule is None
    assert "wrong too often" in str(chosen.found.reason)


def test_without_labels_a_task_in_which_nothing_can_be_chosen_wrongly_is_no_evidence(tmp_path: Path) -> None:
    one = [{"id": f"t{1000 + k}", "x": f"{k}?", "candidates": ["good"]} for k in range(1, 100)]
    run = silent_run(tmp_path, [*one, *tasks(5, is_labeled=False)], debates(**OPEN))
    chosen = choose_settling(run, 0.1)
    assert chosen.rule is None
    assert chosen.found.n <= 5


def test_a_threshold_of_nothing_is_never_chosen(tmp_path: Path) -> None:
    def divided(call: Call) -> Any:
        """Each agent has another candidate of its own as the best, and the third is second to both."""
        if call.info.get("moment") is None:
            return reply_for(call)
        assert call.read_out is not None
        order = list(call.info["labels"].values())
        own = 0 if call.info["agent"] == "Critic" else 1
        labels = ["9" if j == own else "8" if j == 2 else "1" for j in order]
        each = len(call.read_out.continuations) // len(order)
        return Completion("", distributions=tuple(distribution_of({x: 1.0}) for x in labels for _ in range(each)))

    given = [{"id": f"t{k}", "x": f"{k}?", "candidates": ["a", "b", "c"], "best": 2} for k in range(100)]
    run = silent_run(tmp_path, given, debates(**OPEN), divided)
    chosen = choose_settling(run, 0.05, "agreement")
    assert {each.measured["agreement"] for each in silent_rounds(run)} == {0.0}
    assert chosen.rule is None


def test_a_stricter_promise_that_the_tasks_cannot_show_is_not_made(recorded: JudgedRun) -> None:
    chosen = choose_settling(recorded, 0.01)
    assert chosen.rule is None
    assert chosen.found.reason == "an error of 0.01 can be shown on 299 tasks at least, and 80 have a certainty"


def test_a_run_without_silent_rounds_says_how_one_is_recorded(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, tasks(2), debates())
    with pytest.raises(InputError, match="has no silent round") as caught:
        choose_settling(run)
    assert "--silent-readouts" in str(caught.value.hint)


def test_both_parts_of_a_run_stand_apart(settled: JudgedRun) -> None:
    found = settling_figures(settled)
    assert found is not None
    assert (found.settled.tasks, found.debated.tasks) == (N_TASKS - N_DOUBTFUL, N_DOUBTFUL)
    assert found.share.estimate == 0.8
    assert found.settled.right is not None
    assert found.settled.right.share.estimate == 1.0
    assert found.settled.calls == 2
    assert found.debated.calls == 4
    assert found.settled.completion_tokens < found.debated.completion_tokens
    assert agree(settled).settling == found


def test_a_run_without_a_rule_has_no_parts(recorded: JudgedRun) -> None:
    assert settling_figures(recorded) is None
    assert agree(recorded).settling is None


def test_stop_rules_are_tried_on_what_was_debated(settled: JudgedRun) -> None:
    found = try_rules(settled)
    assert (found.tasks, found.left_out) == (N_DOUBTFUL, N_TASKS - N_DOUBTFUL)


def test_the_scores_of_a_settled_task_are_aggregated_anew_like_those_of_others(settled: JudgedRun) -> None:
    aggregation = Aggregation.of_run(settled)
    assert aggregation is not None
    task = next(each for each in settled.tasks if each.stop_reason == "settled")
    (scores,) = aggregation.scores_of([task], lambda tensor: tensor)
    assert scores == pytest.approx(task.scores)


def test_a_run_goes_on_under_the_threshold_and_is_asked_nothing(tmp_path: Path) -> None:
    run = silent_run(tmp_path, tasks(20), debates(**OPEN))
    before = {task.task_id: task for task in run.tasks}
    script = Recorder(judge)
    again = silent_run(tmp_path, tasks(20), debates(**OPEN, settle="p_best=0.8"), script)
    assert script.calls == []
    assert sum(task.stop_reason == "settled" for task in again.tasks) == 16
    for task in again.tasks:
        assert task.stop_reason == "settled" or task.scores == pytest.approx(before[task.task_id].scores)


def test_a_run_that_is_cut_off_in_a_silent_round_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    evaluator, asked = debates(rounds=1, settle="p_best=0.8"), list[Any]()

    def cut_off(call: Call) -> Any:
        if len(asked) == 7:
            raise KeyboardInterrupt
        asked.append((call.info["task_id"], call.info["agent"], call.info.get("moment")))
        return judge(call)

    with pytest.raises(KeyboardInterrupt):
        silent_run(tmp_path / "cut", tasks(20), evaluator, cut_off)
    rest = Recorder(judge)
    done = silent_run(tmp_path / "cut", tasks(20), evaluator, rest)
    whole = Recorder(judge)
    undisturbed = silent_run(tmp_path / "whole", tasks(20), evaluator, whole)
    assert [task.scores.tolist() for task in done.tasks] == [task.scores.tolist() for task in undisturbed.tasks]
    assert len(rest.calls) < len(whole.calls)


def test_in_a_cascade_every_task_is_there_once_and_tokens_are_counted_per_model(tmp_path: Path) -> None:
    backends = {"large": Scripted(judge, model="large"), "small": Scripted(judge, model="small")}
    run = silent_run(tmp_path, tasks(20), debates(rounds=1, settle="p_best=0.8,model=small"), backends=backends)
    assert sorted(task.task_id for task in run.tasks) == sorted(f"t{n}" for n in range(20))
    with RunDirectory.existing(tmp_path).open_store() as store:
        used = store.read(run.directory.name).used()
    assert {name: usage.calls for name, usage in used.items()} == {"small": 20 * 2, "large": 4 * 2}
    assert used["large"].completion_tokens > used["small"].completion_tokens
    chosen = choose_settling(read_run(tmp_path), 0.25)
    assert str(chosen.rule).endswith(",model=small")


def test_the_profile_of_a_user_is_settled_too(tmp_path: Path) -> None:
    run = silent_run(tmp_path, tasks(10), DebateEvaluator("general", rounds=1, settle="margin=1"))
    assert sum(task.stop_reason == "settled" for task in run.tasks) == 8
