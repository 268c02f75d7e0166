"""Labels taught through memories: agreement on held-out tasks, provenance, forgetting, and going on after a kill."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import DebateEvaluator, Engine, Evaluation, Profile, Task
from debate.backends import Call, Scripted
from debate.errors import ConfigError, InputError, RunMismatchError
from debate.memory import HashingEmbedder, MemoryStore
from debate.meta_evaluation.align import Alignment, Teaching, align, fold_of_each, plan_alignment
from debate.meta_evaluation.judged import read_run
from debate.meta_evaluation.teaching import ALIGN, forget
from debate.testing import SilentListener, reply_for
from tests.meta_evaluation.names_world import NUMBERS, PAIR, Counting, as_tasks, evaluator, judge, make_run, questions

ROWS = questions(16)
FEW = Teaching(folds=4, sizes=(0, 12))
CASES, RULES = replace(FEW, rules=False), replace(FEW, cases=False)
NEW = questions(12, seed=5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made"), ROWS)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore(tmp_path / "memory.sqlite", HashingEmbedder(), "exact") as opened:
        yield opened


def aligned(
    run: Path,
    memory: MemoryStore,
    teaching: Teaching = CASES,
    script: Any = judge,
    labels: Path | None = None,
    how: DebateEvaluator | None = None,
    recalls: str | None = None,
) -> Alignment:
    plan = plan_alignment(read_run(run, labels), how or evaluator(), teaching)
    return align(plan, {"scripted": Scripted(script, slots=1)}, memory, SilentListener(), recalls)


def shares(found: Alignment) -> list[float]:
    return [each.agreement.estimate for each in found.learned]


def judged(rows: Sequence[dict[str, Any]], memory: MemoryStore | None) -> list[Evaluation]:
    """A later run over these tasks, with what the memory holds."""
    with Engine(Scripted(judge), memory=memory) as engine:
        return engine.evaluate_batch(as_tasks(rows), evaluator())


def agreement(rows: Sequence[dict[str, Any]], memory: MemoryStore | None) -> float:
    found = [each.verdict([row["best"]]) == "right" for each, row in zip(judged(rows, memory), rows, strict=True)]
    return sum(found) / len(found)


# ---- what is learned


def test_held_out_tasks_are_judged_better_with_more_labels_of_others(run: Path, memory: MemoryStore) -> None:
    found = aligned(run, memory, replace(CASES, sizes=(0, 3, 50)))
    none, few, many = found.learned
    assert [each.labels for each in found.learned] == [0, 3, 12]
    assert found.notes == ("at most 12 labels can be tried, so many are in the other folds",)
    assert none.agreement.estimate == 0.0
    assert 0.3 < few.agreement.estimate <= many.agreement.estimate
    assert many.agreement.estimate > 0.9
    assert many.difference is not None
    assert many.difference.estimate == many.agreement.estimate
    assert many.difference.interval[0] > 0.7
    assert (many.won, many.lost) == (round(16 * many.agreement.estimate), 0)
    assert (many.recalled, many.rules, found.unread) == (1.0, 0, {})
    assert (found.labels, found.disagreements, found.folds, found.chance) == (16, 16, 4, 0.25)
    assert list(found.groups) == ["even", "odd"]
    assert all(after.agreement.n == 8 and after.won > 6 and before.won == 0 for before, after in found.groups.values())


def test_a_later_run_knows_what_was_taught_until_it_is_forgotten(run: Path, memory: MemoryStore) -> None:
    memory.add("pair/Critic", "Check the units first.", source="handbook")
    assert agreement(NEW, memory) == 0.0
    found = aligned(run, memory)
    assert found.written == {"pair/Critic": 16, "pair/Reader": 16}
    assert agreement(NEW, memory) > 0.9
    assert forget(memory, found.run) == 32
    assert memory.collections() == {"pair/Critic": 1}
    assert agreement(NEW, memory) == 0.0


def test_rules_alone_teach_and_the_model_distills_them_from_disagreements(run: Path, memory: MemoryStore) -> None:
    found = aligned(run, memory, RULES)
    assert shares(found)[-1] > 0.7
    assert all(each.rules > 0 for each in found.learned[1:])
    assert memory.collections() == {"pair/Critic": 4, "pair/Reader": 4}
    texts = {each.text for each in memory.newest("pair/Critic", 9)}
    assert texts <= {f"{name} is {number}" for name, number in NUMBERS.items()}
    assert {each.kind for each in memory.newest("pair/Critic", 9)} == {"reflection"}
    assert agreement(NEW, memory) > 0.7


def test_cases_and_rules_stand_side_by_side_and_rules_link_to_their_cases(run: Path, memory: MemoryStore) -> None:
    aligned(run, memory, FEW)
    kinds = Counter(each.kind for each in memory.newest("pair/Critic", 99))
    assert kinds == {"episodic": 16, "reflection": 4}
    cases = {each["id"] for each in exported(memory) if each["kind"] == "episodic"}
    rules = [each["metadata"] for each in exported(memory) if each["kind"] == "reflection"]
    assert all(rule["evidence"] and set(rule["evidence"]) <= cases for rule in rules)
    assert all(len(rule["came_of"]) > 2 * len(rule["tasks"]) for rule in rules)  # of all that was read


def exported(memory: MemoryStore) -> list[dict[str, Any]]:
    file = Path(memory.place).with_name("exported.jsonl")
    memory.export(file)
    return list(map(json.loads, file.read_text().splitlines()))


# ---- never its own label


def strangers(n: int, seed: int) -> list[dict[str, Any]]:
    """Tasks that share no name: only its own label would help one."""
    return questions(n, seed, [f"name{chr(97 + i)}" for i in range(n)])


def test_no_task_learns_from_its_own_label_neither_now_nor_in_later_runs(tmp_path: Path, memory: MemoryStore) -> None:
    rows = strangers(9, seed=0)
    run = make_run(tmp_path, rows)
    found = aligned(run, memory, FEW)
    assert shares(found) == [0.0, 0.0]
    assert agreement(rows, memory) == 0.0
    recalled = {
        memory_.source.rpartition(" ")[2]
        for each in judged(rows, memory)
        for turn in each.transcript
        for memory_ in turn.memories
        if memory_.source is not None and memory_.source.endswith(each.task_id)
    }
    assert recalled == set()
    assert agreement(strangers(9, seed=1), memory) > 0.7  # other tasks learn from the very same labels


def test_tasks_that_ask_the_same_are_held_out_together(tmp_path: Path, memory: MemoryStore) -> None:
    rows = strangers(6, seed=0)
    twins = [{**row, "id": f"twin of {row['id']}", "candidates": [*row["candidates"], "none"]} for row in rows]
    run = make_run(tmp_path, [*rows, *twins])
    found = aligned(run, memory)
    assert shares(found) == [0.0, 0.0]
    assert found.learned[-1].agreement.n == 12


@given(st.lists(st.sampled_from("abc"), min_size=4, max_size=40), st.integers(2, 5), st.integers(0, 9))
def test_folds_hold_as_much_of_each_group_as_can_be(groups: list[str], n: int, seed: int) -> None:
    tasks = [Task(f"question {i}", ["a", "b"], metadata={"group": group}) for i, group in enumerate(groups)]
    folds = fold_of_each(tasks, n, seed)
    assert folds == fold_of_each(tasks, n, seed)
    for group in {*groups, None}:
        counts = Counter(fold for fold, own in zip(folds, groups, strict=True) if group in (own, None))
        sizes = [counts[fold] for fold in range(n)]
        assert max(sizes) - min(sizes) <= 1


# ---- provenance


def test_a_memory_says_which_run_task_and_person_taught_it(run: Path, memory: MemoryStore, tmp_path: Path) -> None:
    rows = [{"task_id": row["id"], "best": row["best"], "by": "anna"} for row in ROWS[:8]]
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = aligned(run, memory, labels=file)
    assert (found.labels, found.left_out) == (8, {"no label": 8})
    case = next(each for each in exported(memory) if each["metadata"]["tasks"] == ["s0-1"])
    assert case["source"] == f"align {found.run}: s0-1"
    assert case["metadata"] | {"came_of": 0} == {ALIGN: found.run, "tasks": ["s0-1"], "by": ["anna"], "came_of": 0}
    assert case["text"].startswith('Asked "kelor+3?", people found "10" best, not ')
    assert memory.forget(source=case["source"])


def test_a_label_that_is_taken_back_is_gone_after_the_next_alignment(
    run: Path, memory: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "labels.jsonl"
    for n in (6, 5):
        file.write_text("".join(json.dumps({"task_id": row["id"], "best": row["best"]}) + "\n" for row in ROWS[:n]))
        aligned(run, memory, FEW, labels=file)
    tasks = {name for each in exported(memory) for name in each["metadata"]["tasks"]}
    assert tasks == {row["id"] for row in ROWS[:5]}


def test_labels_that_teach_nothing_are_counted_with_the_reason(run: Path, memory: MemoryStore, tmp_path: Path) -> None:
    split = [{"by": "anna", "best": 0}, {"by": "ben", "best": 1}]
    odd = [
        {"task_id": "s0-0", "ranking": [1, 1, 1, 1]},
        {"task_id": "s0-1", "votes": split},
        {"task_id": "?", "best": 0},
    ]
    rows = [*odd, *({"task_id": row["id"], "best": row["best"]} for row in ROWS[2:])]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = aligned(run, memory, replace(CASES, sizes=(0,)), labels=tmp_path / "labels.jsonl")
    assert found.left_out == {
        "people found all candidates equally good": 1,
        "people do not agree on a best candidate": 1,
        "not a task of the run": 1,
    }
    assert (found.labels, found.written["pair/Critic"], len(found.learned)) == (14, 14, 1)


# ---- going on


def test_a_killed_alignment_goes_on_and_asks_nothing_twice(made: Path, tmp_path: Path) -> None:
    whole, killed = Counting(), Counting(interrupt_at=25)
    found: list[Alignment] = []
    for name, script, times in (("whole", whole, 1), ("killed", killed, 2)):
        folder = shutil.copytree(made, tmp_path / name)
        with MemoryStore(tmp_path / f"{name}.sqlite", HashingEmbedder(), "exact") as memory:
            if times == 2:
                with pytest.raises(KeyboardInterrupt):
                    aligned(folder, memory, FEW, script)
                assert memory.collections() == {}
            found.append(aligned(folder, memory, FEW, script))
    assert len(killed.asked) == len(whole.asked)
    assert sorted(killed.asked) == sorted(whole.asked)
    assert [plain_figures(each) for each in found[:1]] == [plain_figures(each) for each in found[1:]]


def plain_figures(found: Alignment) -> list[Any]:
    return [(each.labels, each.agreement, each.difference, each.rules, each.usage) for each in found.learned]


def test_the_same_alignment_again_asks_nothing_and_starts_no_model(run: Path, memory: MemoryStore) -> None:
    first = aligned(run, memory, FEW)

    def refuse(call: Call) -> str:
        raise AssertionError(call)

    assert aligned(run, memory, FEW, refuse) == first


def test_replies_that_give_no_rules_are_counted_and_cases_are_taught_all_the_same(
    run: Path, memory: MemoryStore
) -> None:
    def mumbling(call: Call) -> str:
        return judge(call) if call.info.get("agent") else "hm"

    found = aligned(run, memory, FEW, mumbling)
    assert [sum(each.unread.values()) for each in found.learned] == [0, 8]  # 4 folds, 2 agents
    assert sum(found.unread.values()) == 2
    assert all(reason for each in found.learned for reason in each.unread)
    assert shares(found)[-1] > 0.9
    assert found.written == {"pair/Critic": 16, "pair/Reader": 16}


# ---- how


def test_what_the_run_recalled_before_is_recalled_still(run: Path, memory: MemoryStore, tmp_path: Path) -> None:
    known = tmp_path / "known.sqlite"
    with MemoryStore(known, HashingEmbedder(), "exact") as store:
        for agent in ("Critic", "Reader"):
            store.add(f"pair/{agent}", [f"{name} is {NUMBERS[name]}" for name in ("blorp", "kelor", "quax")])
    found = aligned(run, memory, replace(CASES, sizes=(1,)), recalls=str(known))
    assert shares(found)[1] >= 0.75
    assert {each.kind for each in memory.newest("pair/Critic", 99)} == {"episodic"}


def test_a_set_of_templates_has_its_own_words_for_cases_and_may_ask_for_no_rules(
    tmp_path: Path, memory: MemoryStore
) -> None:
    run = read_run(make_run(tmp_path, ROWS[:4], evaluator(templates="compact"), reply_for))
    plan = plan_alignment(run, evaluator(templates="compact"), FEW)
    assert plan.cases[1].texts["pair/Reader"] == 'Asked "kelor+3?", best was "10"'
    assert plan.teaching == replace(FEW, rules=False)
    assert "labeled cases alone" in plan.notes[0]
    with pytest.raises(ConfigError, match="nothing would be taught"):
        plan_alignment(run, evaluator(templates="compact"), RULES)


def test_a_folder_of_templates_may_say_how_a_case_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "mine" / "align").mkdir(parents=True)
    (tmp_path / "mine" / "align" / "case.j2").write_text("{{ x }} -> {{ best | join(' or ') }}\n")
    how = evaluator(templates=tmp_path / "mine")
    plan = plan_alignment(read_run(make_run(tmp_path, ROWS[:4], how)), how, FEW)
    assert plan.cases[1].texts["pair/Critic"] == "kelor+3? -> 10"


def test_agents_without_memories_cannot_be_taught(run: Path) -> None:
    nobody = Profile("pair", tuple(replace(each, memory=None) for each in PAIR.personas), PAIR.components)
    with pytest.raises(ConfigError, match="no agent of this run recalls memories"):
        plan_alignment(read_run(run), evaluator(profile=nobody), FEW)


def test_one_label_is_too_few(run: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"task_id": "s0-0", "best": 0}\n')
    with pytest.raises(InputError, match="labels on two different inputs, got 1"):
        plan_alignment(read_run(run, tmp_path / "labels.jsonl"), evaluator(), FEW)


def test_other_settings_than_the_runs_are_refused(run: Path, memory: MemoryStore) -> None:
    with pytest.raises(RunMismatchError, match="mode: sequential -> independent"):
        aligned(run, memory, how=evaluator(mode="independent"))


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"cases": False, "rules": False}, "rules"), ({"folds": 1}, "folds"), ({"sizes": (-1,)}, "sizes")],
)
def test_what_cannot_be_taught_is_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Teaching(**settings)
    assert caught.value.field == field


def test_a_balanced_panel_of_debates_is_taught_as_well(tmp_path: Path, memory: MemoryStore) -> None:
    how = evaluator(candidate_order="balanced")
    run = make_run(tmp_path, ROWS[:12], how)
    found = aligned(run, memory, replace(CASES, sizes=(8,)), how=how)
    assert shares(found)[1] > 0.7
    assert found.learned[1].recalled == 1.0
    assert "I had said of" in memory.newest("pair/Reader", 1)[0].text
